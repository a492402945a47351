"""The benchmark's results as JSON, as markdown tables, and as charts (``chart.py``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import chart
from engines import NAMES
from groups import GROUPS, MEANS, TITLES
from lines import geometric_mean

START, END = "<!-- figures: start -->", "<!-- figures: end -->"
Item = Mapping[str, Any]


def save(results: Item, folder: Path) -> None:
    """Write results.json and the charts, and put the tables between the marks in README.md. Groups that were not
    measured this time stay, each with its day."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"when": results["when"], **item} for item in results["lines"]]
    if (folder / "results.json").exists():
        before = json.loads((folder / "results.json").read_text())
        measured = {item["group"] for item in lines}
        lines += [{"when": before["when"], **item} for item in before["lines"] if item["group"] not in measured]
    results = {**results, "lines": lines}
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "chart.svg").write_text(chart.ratios(results["lines"], MEANS))
    (folder / "growth.svg").write_text(chart.growth(results["lines"]))
    readme = folder / "README.md"
    text = readme.read_text() if readme.exists() else f"{START}\n{END}\n"
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{START}\n{as_markdown(results)}{END}{after}")


def in_short(item: Item, cpu: bool = False) -> str:
    """One line while it runs."""
    by = f" (by {item['writer']})" if item.get("writer") else ""
    name = f"{item['name'] + by:56}"
    if item["kind"] == "added":
        return f"{name} {item.get('ratios', '')} of what it adds to pyarrow"
    if item["kind"] == "speedup":
        return f"{name} " + ", ".join(f"{n} {f['speedup']:.2f}" for n, f in item["engines"].items())
    if item["kind"] == "memory":
        return f"{name} " + ", ".join(f"{n} {f['share']:.2f}" for n, f in item["engines"].items())
    part = "cpu_ms" if cpu else "median_ms"
    times = "  ".join(f"{n} {t[part]:.3g}" for n, t in item["engines"].items())
    refused = "".join(f"; {n} left out: {why[:80]}" for n, why in item["refused"].items())
    ratio = item.get("ratio_of_cpu" if cpu else "ratio")
    verdict = "" if ratio is None else f"{ratio:6.2f} of {item['best_peer']} (≤ {item['target']})"
    return f"{name} {verdict}   {times}{refused}"


def as_markdown(results: Item) -> str:
    names = [name for name in NAMES if name in results["engines"]]
    versions = ", ".join(f"{name} {results['engines'][name]['version']}" for name in names)
    lines = [
        f"Medians; {results['machine']}; {versions}; copying memory: {results['memory_bandwidth_gb_s']} GB/s a thread; "
        f"load before the run: {results['load_at_start']}; {results['when']}.",
        "",
        *summary(results),
    ]
    for group in GROUPS:
        items = [item for item in results["lines"] if item["group"] == group]
        if items:
            days = {item.get("when", results["when"])[:10] for item in items} - {results["when"][:10]}
            on = f" ({', '.join(sorted(days))})" if days else ""
            lines += [f"## {TITLES[group]}", "", f"`python benchmarks/run.py --only {group}`{on}", ""]
            lines += tables(items, names, results["clock"] == "cpu")
    lines += [f"Left out: {name}: {reason}" for name, reason in results["left_out"].items()]
    return "\n".join(lines).rstrip() + "\n\n"


def means(items: Sequence[Item], key: str = "ratio") -> dict[str, tuple[float, Item]]:
    """By group: the geometric mean of the ratios, and the worst line."""
    found: dict[str, tuple[float, Item]] = {}
    for group in MEANS:
        counted = [item for item in items if item["group"] == group and item.get("counted") and key in item]
        if counted:
            worst = max(counted, key=lambda item: float(item[key]))
            found[group] = geometric_mean([item[key] for item in counted]), worst
    return found


def summary(results: Item) -> list[str]:
    """One row per group."""
    cpu = results["clock"] == "cpu"
    key = "ratio_of_cpu" if cpu else "ratio"
    found = means(results["lines"], key)
    if not found:
        return []
    title = "processor time" if cpu else "time"
    lines = [
        f"| group | {title} / best peer's, geometric mean (at most) | worst line | quicker than every peer |",
        "|---|---:|---|---:|",
    ]
    for group, (mean, worst) in found.items():
        counted = [item for item in results["lines"] if item["group"] == group and item["counted"] and key in item]
        won = sum(item[key] < 1 for item in counted)
        by = f", by {worst['writer']}" if worst["writer"] else ""
        lines.append(
            f"| {group} | {mean:.2f} ({MEANS[group]}) | {worst[key]:.2f}: {worst['name']}{by} "
            f"| {won} of {len(counted)} |"
        )
    everything = [
        item[key] for item in results["lines"] if item.get("counted") and key in item and item["group"] in MEANS
    ]
    return [
        *lines,
        f"| all | {geometric_mean(everything):.2f} | | {sum(r < 1 for r in everything)} of {len(everything)} |",
        "",
    ]


def tables(items: Sequence[Item], names: list[str], cpu: bool) -> list[str]:
    """A table for each kind of figure."""
    makers = {"time": times, "added": added, "speedup": speedups, "memory": memory}
    lines: list[str] = []
    for kind, make in makers.items():
        some = [item for item in items if item["kind"] == kind]
        if some:
            lines += [*(make(some, names, cpu) if kind == "time" else make(some, names)), ""]
    return lines


def head(*cells: str) -> list[str]:
    return ["| " + " | ".join(cells) + " |", "|---" + "|---:" * (len(cells) - 1) + "|"]


def times(items: Sequence[Item], names: list[str], cpu: bool) -> list[str]:
    """Milliseconds; the peer to beat in bold."""
    extra = {
        "MB": any("file_bytes" in t for item in items for t in item["engines"].values()),
        "limit": any("floor_ms" in item for item in items),
        "bytes read": any("counted_bytes" in t for item in items for t in item["engines"].values()),
    }
    others = [name for name in dict.fromkeys(n for i in items for n in i["engines"]) if name not in names]
    shown = [*names, *others]
    lines = head("ms", "file by", *shown, "ratio (at most)", *(name for name, there in extra.items() if there))
    part, key = ("cpu_ms", "ratio_of_cpu") if cpu else ("median_ms", "ratio")
    for item in items:
        cells = [item["name"], item["writer"]]
        for name in shown:
            cell = f"{item['engines'][name][part]:.3g}" if name in item["engines"] else "–"
            cells.append(f"**{cell}**" if name == item["best_peer"] else cell)
        cells.append(f"{item[key]:.2f} ({item['target']})" if key in item else "–")
        if extra["MB"]:
            sizes = [f"{t['file_bytes'] / 1e6:.3g}" for t in item["engines"].values() if "file_bytes" in t]
            whose = f"; ours {item['size_ratio']} of the smallest peer's" if "size_ratio" in item else "–"
            cells.append(" / ".join(sizes) + whose)
        if extra["limit"]:
            cells.append(f"{item['floor_ms']:.3g}" if "floor_ms" in item else "–")
        if extra["bytes read"]:
            cells.append(" / ".join(human(item["engines"][n]) for n in names if n in item["engines"]))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def human(timing: Item) -> str:
    """Bytes read, as counted from outside."""
    count = timing.get("counted_bytes", timing.get("bytes_read", 0))
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"


def added(items: Sequence[Item], names: list[str]) -> list[str]:
    lines = head("ms added", "pyparq plain", "GCM", "CTR", "pyarrow plain", "GCM", "CTR", "ratio GCM", "ratio CTR")
    for item in items:
        cells = [item["name"]]
        for name in ("pyparq", "pyarrow"):
            found = item["engines"].get(name, {})
            cells += [f"{found[part]:+.3g}" if part in found else "–" for part in ("plain", "GCM", "CTR")]
        cells += [f"{item['ratios'][part]:.2f}" if "ratios" in item else "–" for part in ("GCM", "CTR")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def speedups(items: Sequence[Item], names: list[str]) -> list[str]:
    lines = head("two processors against one, times quicker", *names)
    for item in items:
        found = item["engines"]
        cells = [
            f"{found[n]['speedup']:.2f} ({found[n]['one_ms']:.3g} to {found[n]['two_ms']:.3g} ms)"
            if n in found
            else "–"
            for n in names
        ]
        lines.append("| " + " | ".join([f"{item['name']} (ours at least {item['target']})", *cells]) + " |")
    return lines


def memory(items: Sequence[Item], names: list[str]) -> list[str]:
    lines = head("peak MB of a read, and of its result (share of 1.15 times the result and 64 MB)", *names)
    for item in items:
        found = item["engines"]
        cells = [
            f"{found[n]['peak'] / 1e6:.0f}, {found[n]['result'] / 1e6:.0f} ({found[n]['share']:.2f})"
            if n in found else "–"
            for n in names
        ]  # fmt: skip
        lines.append("| " + " | ".join([item["name"], *cells]) + " |")
    return lines
