"""The page that shows where everything lies in a file: one HTML document with its data, style and script inside.

The script draws with a canvas and puts text into the page as text, never as HTML. So names in a file cannot become
markup. The data is JSON, in which ``<``, ``>`` and ``&`` are escaped.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

COMPRESSED_FROM = 400_000
"""Characters of JSON from which it is compressed. Browsers since 2023 can decompress it."""

FRAME_HEIGHT = 760
"""Pixels of a page inside a notebook."""

_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def map_page(document: dict[str, Any]) -> str:
    """The page that shows ``document``, which :mod:`pyparq.read.picture` describes."""
    kind, data = _data(document)
    parts = {
        "title": html.escape(f"Map of {document['name']}"),
        "style": template("map.css"),
        "script": template("map.js"),
        "kind": kind,
        "data": data,
    }
    page = template("map.html")
    before, *rest = page.split("{{")
    made = [before]
    for part in rest:
        name, _, after = part.partition("}}")
        made += [parts[name], after]
    return "".join(made)


def framed(page: str) -> str:
    """A page inside another, such as a notebook's. It can neither reach the network nor the page around it."""
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" title="Map of a Parquet file" '
        f'style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
    )


@cache
def template(name: str) -> str:
    """A file beside this module."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _data(document: dict[str, Any]) -> tuple[str, str]:
    """The media type and the text of the data."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    if len(text) < COMPRESSED_FROM:
        return "application/json", text.translate(_ESCAPES)
    return "application/zlib", base64.b64encode(zlib.compress(text.encode(), 9)).decode()
