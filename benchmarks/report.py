"""The benchmark's results as JSON, as a markdown table and as an SVG chart."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from measure import Timing

START, END = "<!-- figures: start -->", "<!-- figures: end -->"
ENGINES = ("pyparq", "pyarrow", "polars", "duckdb", "datafusion")
COLOURS = dict(zip(ENGINES, ("#d1495b", "#30638e", "#edae49", "#7a9e7e", "#8d6a9f"), strict=True))


def line(
    name: str,
    file: str,
    timings: Mapping[str, Timing],
    peers: set[str],
    target: float,
    floor: float,
    floor_meaning: str,
    most_bytes: int | None,
) -> dict[str, Any]:
    """One measurement as plain data; `peers` are the engines that do the whole job and so may be the best."""
    best = min(peers, key=lambda p: timings[p].median_ms) if peers else None
    found: dict[str, Any] = {
        "name": name,
        "file": file,
        "engines": {engine: timing.to_json() for engine, timing in timings.items()},
        "best_peer": best,
        "target": target,
        "floor_ms": round(floor * 1e3, 4),
        "floor": floor_meaning,
        "most_bytes": most_bytes,
    }
    if best and "pyparq" in timings:
        found["ratio"] = round(timings["pyparq"].median_ms / timings[best].median_ms, 3)
        found["ratio_of_minima"] = round(
            timings["pyparq"].min_ms / min(timings[p].min_ms for p in peers), 3
        )  # steadier than the medians when the machine is busy with something else
        ours, sizes = timings["pyparq"].file_bytes, [timings[p].file_bytes or 0 for p in peers]
        if ours:
            found["size_ratio"] = round(ours / min(sizes), 3)
    return found


def save(results: dict[str, Any], folder: Path) -> None:
    """Write results.json and chart.svg, and put the table between the marks in README.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "chart.svg").write_text(as_svg(results))
    readme = folder / "README.md"
    text = readme.read_text() if readme.exists() else f"{START}\n{END}\n"
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{START}\n{as_markdown(results)}{END}{after}")


def as_markdown(results: Mapping[str, Any]) -> str:
    names = [name for name in ENGINES if name in results["engines"]]
    versions = ", ".join(f"{name} {results['engines'][name]['version']}" for name in names)
    lines = [
        f"Medians in ms, {results['rows']:,} rows; {results['machine']}; {versions}; copying memory: "
        f"{results['memory_bandwidth_gb_s']} GB/s a thread; {results['when']}.",
        "",
    ]
    for file in dict.fromkeys(item["file"] for item in results["measurements"]):
        lines += table(file, [item for item in results["measurements"] if item["file"] == file], names)
    if "import_ms" in results:
        lines += [f"`import pyparq` takes {results['import_ms']} ms beyond numpy (target: at most 60).", ""]
    return "\n".join(lines) + "\n"


def table(file: str, items: list[dict[str, Any]], names: list[str]) -> list[str]:
    title = {"": "Writing", "wide": "The wide file (written by pyarrow)"}.get(file, f"Events file written by {file}")
    size = "file size" if file == "" else "bytes read"
    head = ["", *names, "ratio to best peer (target)", "physical limit", size]
    lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for item in items:
        timings = item["engines"]
        cells = [item["name"]]
        for name in names:
            cell = f"{timings[name]['median_ms']:.3g}" if name in timings else "–"
            cells.append(f"**{cell}**" if name == item["best_peer"] else cell)
        ratio = f"{item['ratio']:.2f}" if "ratio" in item else "–"
        cells += [
            f"{ratio} (≤ {item['target']})",
            f"{item['floor_ms']:.3g}: {item['floor']}",
            amounts(item, names),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def amounts(item: Mapping[str, Any], names: list[str]) -> str:
    """Who read or wrote how much, in table order; ours as counted from outside."""
    parts = []
    for name in names:
        timing = item["engines"].get(name, {})
        counted = timing.get("file_bytes") or timing.get("counted_bytes") or timing.get("bytes_read")
        if counted is not None:
            parts.append(f"{name} {human(counted)}")
    if "size_ratio" in item:
        parts.append(f"ours {item['size_ratio']} of the smallest peer's")
    if item["most_bytes"]:
        parts.append(f"(ours ≤ {human(item['most_bytes'])})")
    return ", ".join(parts)


def human(count: int) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB" if count >= 1e3 else f"{count} B"


def as_svg(results: Mapping[str, Any]) -> str:
    """Bars on a logarithmic axis: pyarrow's events file, the wide file, writes; a tick is the floor."""
    items = [item for item in results["measurements"] if item["file"] in ("pyarrow", "wide", "")]
    names = [name for name in ENGINES if name in results["engines"]]
    values = [t["median_ms"] for item in items for t in item["engines"].values()]
    values += [item["floor_ms"] for item in items]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    bar, gap, left, width = 9, 10, 210, 560

    def x(value: float) -> float:
        return left + width * (math.log10(value) - low) / (high - low)

    top, y, body = 58, 58.0, []
    for item in items:
        present = [name for name in names if name in item["engines"]]
        middle = y + bar * len(present) / 2 + 4
        body.append(text(left - 8, middle, item["name"], "end"))
        for i, name in enumerate(present):
            value = item["engines"][name]["median_ms"]
            body.append(
                f'<rect x="{left}" y="{y + i * bar:.1f}" width="{x(value) - left:.1f}" height="{bar - 1}" '
                f'fill="{COLOURS[name]}"><title>{escape(name)}: {value:.3g} ms</title></rect>'
            )
            body.append(text(x(value) + 3, y + i * bar + bar - 2, f"{value:.3g}", size=8))
        floor = x(item["floor_ms"])
        body.append(
            f'<path d="M{floor:.1f} {y - 2:.1f}V{y + bar * len(present) + 1:.1f}" '
            f'stroke="#111" stroke-width="2">'
            f"<title>{escape(item['floor'])}: {item['floor_ms']:.3g} ms</title></path>"
        )
        y += bar * len(present) + gap
    axis = []
    for power in range(low, high + 1):
        at = x(10.0**power)
        axis.append(f'<path d="M{at:.1f} {top - 6}V{y:.1f}" stroke="#ddd"/>')
        axis.append(text(at, y + 12, f"{10.0**power:g}", "middle"))
    legend, at = [], left
    for name in names:
        legend.append(f'<rect x="{at}" y="32" width="10" height="10" fill="{COLOURS[name]}"/>')
        legend.append(text(at + 14, 41, name))
        at += 90
    legend.append(f'<path d="M{at + 4} 31V43" stroke="#111" stroke-width="2"/>')
    legend.append(text(at + 10, 41, "physical limit"))
    title = text(12, 20, f"Milliseconds (logarithmic, shorter is better), {results['rows']:,} events", size=14)
    height = y + 22
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height:.0f}" '
        f'viewBox="0 0 {left + width + 60} {height:.0f}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{title}'
        f"{''.join(legend)}{''.join(axis)}{''.join(body)}</svg>\n"
    )


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'
