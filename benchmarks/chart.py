"""The benchmark's charts as SVG: the ratio of every line, and how times grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from engines import NAMES

Item = Mapping[str, Any]
COLOURS = dict(zip(NAMES, ("#d1495b", "#30638e", "#edae49", "#7a9e7e", "#8d6a9f"), strict=True))


def ratios(items: Sequence[Item], targets: Mapping[str, float]) -> str:
    """A dot per line, its time against the best peer's, a row per group; the bar is the geometric mean."""
    groups = {g: [i for i in items if i["group"] == g and i.get("counted") and "ratio" in i] for g in targets}
    groups = {group: some for group, some in groups.items() if some}
    values = [item["ratio"] for some in groups.values() for item in some] or [1.0]
    low = min(math.floor(math.log10(min(values))), -1)
    high = max(math.ceil(math.log10(max(values))), 1)
    left, width, top, row = 90, 620, 50, 44

    def x(value: float) -> float:
        return left + width * (math.log10(value) - low) / (high - low)

    body, bottom = [], top + row * len(groups)
    for power in range(low, high + 1):
        for step in (1, 2, 5):
            value = step * 10.0**power
            if value <= 10.0**high:
                colour = "#888" if value == 1 else "#e4e4e4"
                body.append(f'<path d="M{x(value):.1f} {top - 6}V{bottom}" stroke="{colour}"/>')
                body.append(text(x(value), bottom + 14, f"{value:g}", "middle", 10))
    for place, (group, some) in enumerate(groups.items()):
        y = top + row * place + row / 2
        body.append(text(left - 10, y + 4, group, "end"))
        for k, item in enumerate(sorted(some, key=lambda i: float(i["ratio"]))):
            by = f" by {item['writer']}" if item["writer"] else ""
            body.append(
                f'<circle cx="{x(item["ratio"]):.1f}" cy="{y + (k % 5 - 2) * 5:.1f}" r="3.4" fill="#d1495b" '
                f'fill-opacity="0.75"><title>{escape(item["name"] + by)}: {item["ratio"]:.2f}</title></circle>'
            )
        mean = math.exp(sum(math.log(i["ratio"]) for i in some) / len(some))
        for value, colour, what in (
            (mean, "#111", "geometric mean"),
            (targets[group], "#30638e", "target of the mean"),
        ):
            body.append(
                f'<path d="M{x(value):.1f} {y - 15}V{y + 15}" stroke="{colour}" stroke-width="2.5">'
                f"<title>{what}: {value:.2f}</title></path>"
            )
    title = "pyparq's time against the best of four peers, line by line (logarithmic; left of 1 is quicker)"
    note = "black: geometric mean of the group; blue: its target"
    return svg(left + width + 30, bottom + 26, [text(12, 20, title, size=13), text(12, 36, note, size=10), *body])


def growth(items: Sequence[Item]) -> str:
    """Small charts, both axes logarithmic: milliseconds over the number of columns, row groups, pages and so on."""
    curves: dict[str, list[Item]] = {}
    for item in items:
        if item.get("curve"):
            curves.setdefault(item["curve"][0], []).append(item)
    across, wide, tall = 3, 290, 220
    body: list[str] = [text(12, 20, "Milliseconds as a file or a question grows (both axes logarithmic)", size=13)]
    body += legend(COLOURS, 90)
    for place, (title, points) in enumerate(curves.items()):
        left, top = 46 + wide * (place % across), 70 + tall * (place // across)
        body += panel(title, sorted(points, key=lambda i: int(i["curve"][1])), left, top, wide - 60, tall - 60)
    rows = math.ceil(len(curves) / across)
    return svg(wide * across + 10, 60 + tall * rows, body)


def lookups(items: Sequence[Item], colours: Mapping[str, str]) -> str:
    """One key in more and more files: seconds, and requests to the store."""
    title = "A key in files of 100 rows behind a network of 30 ms (both axes logarithmic)"
    body = [text(12, 20, title, size=13), *legend(colours, 130)]
    for place, what in enumerate(("seconds", "requests")):
        points = [
            {"curve": (what, files), "engines": {
                item["engine"]: {"median_ms": max(item[what], 1e-3)} for item in items if item["files"] == files
            }}
            for files in sorted({item["files"] for item in items})
        ]  # fmt: skip
        body += panel(f"{what}, by number of files", points, 60 + 360 * place, 76, 280, 200, colours)
    return svg(730, 310, body)


def legend(colours: Mapping[str, str], step: int) -> list[str]:
    body = []
    for place, (name, colour) in enumerate(colours.items()):
        at = 12 + step * place
        body += [f'<rect x="{at}" y="30" width="10" height="10" fill="{colour}"/>', text(at + 14, 39, name)]
    return body


def panel(
    title: str, points: Sequence[Item], left: float, top: float, width: float, height: float,
    colours: Mapping[str, str] = COLOURS,
) -> list[str]:  # fmt: skip
    xs = [point["curve"][1] for point in points]
    ys = [timing["median_ms"] for point in points for timing in point["engines"].values()]
    x_low, x_high = math.log10(min(xs)), max(math.log10(max(xs)), math.log10(min(xs)) + 0.1)
    y_low, y_high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)

    def x(value: float) -> float:
        return left + width * (math.log10(value) - x_low) / (x_high - x_low)

    def y(value: float) -> float:
        return top + height * (1 - (math.log10(value) - y_low) / max(y_high - y_low, 1))

    body = [text(left, top - 8, title, size=11)]
    for power in range(y_low, y_high + 1):
        body.append(f'<path d="M{left} {y(10.0**power):.1f}H{left + width}" stroke="#e4e4e4"/>')
        body.append(text(left - 5, y(10.0**power) + 3, f"{10.0**power:g}", "end", 9))
    for value in xs:
        body.append(text(x(value), top + height + 13, f"{value:,}", "middle", 9))
    for name, colour in reversed(colours.items()):  # ours on top
        line = [(x(p["curve"][1]), y(p["engines"][name]["median_ms"])) for p in points if name in p["engines"]]
        if line:
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in line)
            body.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>' for a, b in line]
    return body


def svg(width: float, height: float, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(body)}</svg>\n'
    )


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'
