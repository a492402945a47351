"""A map of a file, or of the files of a folder: the document behind it, its page, and how it is saved.

The page is one HTML document with its data, style and script inside. The script draws with a canvas and puts text into
the page as text, never as HTML. So names in a file cannot become markup. The data is JSON, in which ``<``, ``>`` and
``&`` are escaped.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pyparq.io.sink import open_sink
from pyparq.read.explain import Explanation
from pyparq.read.file_facts import FileFacts, ValueRanges, file_facts, value_ranges
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_fates import Fates
from pyparq.read.plan.candidates import Trace
from pyparq.read.scan import Scan, traced
from pyparq.runtime.tables import viewable
from pyparq.runtime.text import printable

VERSION = 1
"""Of the document."""

MOST_PAGES = 150_000
"""Pages that a map shows one by one. With more, each column chunk is one block."""

COMPRESSED_FROM = 400_000
"""Characters of JSON from which it is compressed. Browsers since 2023 can decompress it."""

FRAME_HEIGHT = 760
"""Pixels of a page inside a notebook."""

_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class FileMap:
    """A picture of one file or of many: where everything lies, and what a query read and skipped.

    :meth:`pyparq.ParquetFile.map` and :meth:`pyparq.Dataset.map` make it. It is one HTML page that needs no network.
    A notebook shows it by itself.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            file.map(filters=pyparq.col("tailnum") == "N14228").save("map.html")
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def html(self) -> str:
        """The page."""
        return map_page(self._document)

    def save(self, path: Any) -> None:
        """Write the page to a path, a URL or a binary file object. A file that exists is replaced when the new one is
        complete."""
        sink = open_sink(path)
        try:
            sink.write([self.html.encode()])
            sink.commit()
        except BaseException:
            sink.abort()
            raise

    def to_dict(self) -> dict[str, Any]:
        """The data behind the picture, as plain values."""
        return self._document

    @printable
    def __repr__(self) -> str:
        pages, query = len(self._document["pages"]["size"]), self._document["query"]
        asked = "" if query is None else f" where {query['predicate']}"
        return f"<FileMap {self._document['name']}: {pages:,} pages{asked}>"

    @viewable
    def _repr_html_(self) -> str:
        return framed(self.html)


@dataclass(slots=True)
class MapQuery:
    """A query that ran over one file, for the picture."""

    scan: Scan
    trace: Trace
    explanation: Explanation

    @classmethod
    def run(cls, scan: Scan) -> MapQuery:
        """Run ``scan``, and note what it does."""
        trace = traced(scan)
        return cls(scan, trace, scan.explain())

    @property
    def fates(self) -> Fates:
        """What became of each page."""
        return Fates(self.scan.predicate, self.scan.projection.leaves.nodes, self.trace)

    @property
    def requests(self) -> list[tuple[int, int]]:
        """All requests with those that opened the file, which read its end."""
        opened, size = self.scan.file.open_counts, self.scan.file.fetcher.source.size
        first = [(max(size - opened.bytes, 0), min(opened.bytes, size))] if opened.bytes else []
        return [*first, *self.trace.requests]


@dataclass(slots=True)
class MappedFile:
    """One file of a map."""

    facts: FileFacts
    requests: list[tuple[int, int]] = field(default_factory=list)


def map_file(file: OpenFile, scan: Scan | None) -> FileMap:
    """The map of one file. ``scan``: the query to show; it runs."""
    asked = None if scan is None else MapQuery.run(scan)
    part = mapped_file(file, asked)
    return FileMap(document(file.name, [part], None if asked is None else asked.explanation.to_dict()))


def mapped_file(file: OpenFile, asked: MapQuery | None, most_pages: int = MOST_PAGES) -> MappedFile:
    """The facts of one file, and of the query that was asked of it."""
    facts = file_facts(file, file.tree.leaves, None if asked is None else asked.fates, most_pages)
    return MappedFile(facts, [] if asked is None else asked.requests)


def document(name: str, parts: Sequence[MappedFile], query: dict[str, Any] | None) -> dict[str, Any]:
    """The data of a page, from the facts of its files.

    ``chunks`` has lists with one entry per column chunk: all columns of the first row group, then of the second, and so
    on over all files. ``pages`` has lists with one entry per page, in the same order. ``skip`` is the distance of a
    page from the end of the one before. Lists without any fact are left out.
    """
    facts = [part.facts for part in parts]
    columns = list(dict.fromkeys(column for one in facts for column in one.columns))
    chunks, pages, bounds = _joined(facts, columns)
    ranges = [_ranges_of_column(c, columns, chunks, bounds) for c in range(len(columns))]
    _place_ranges(ranges, chunks, pages, len(columns))
    return {
        "version": VERSION,
        "name": name,
        "files": [_file(part) for part in parts],
        "columns": [
            {"name": path, "type": kind} | _summary(found, by_page)
            for (path, kind), (found, by_page) in zip(columns, ranges, strict=True)
        ],
        "groups": [rows for one in facts for rows in one.rows],
        "chunks": _with_facts(chunks),
        "pages": _with_facts(pages),
        "query": query,
    }


def _file(part: MappedFile) -> dict[str, Any]:
    facts = part.facts
    return {
        "name": facts.name, "size": facts.size, "createdBy": facts.created_by, "groups": len(facts.rows),
        "footer": facts.footer, "requests": [list(place) for place in part.requests],
    }  # fmt: skip


Lists = dict[str, list[Any]]
Places = list[tuple[Any, bool, int]]
"""For each chunk: its bounds, whether they are those of its pages, and the number of pages."""


def _joined(facts: Sequence[FileFacts], columns: Sequence[tuple[str, str]]) -> tuple[Lists, Lists, Places]:
    """The facts of all files, in the columns of all files."""
    chunks: Lists = {name: [] for name in facts[0].chunks} if facts else {}
    pages: Lists = {name: [] for name in ("skip", "size", "rows", "nulls", "min", "max", "raw", "encoding", "fate")}
    bounds: Places = []
    for one in facts:
        place_of = {column: k for k, column in enumerate(one.columns)}
        width, counts = len(one.columns), _listed(one)
        starts = np.cumsum([0, *counts]).tolist()
        for group in range(len(one.rows)):
            for column in columns:
                k = place_of.get(column)
                if k is None:
                    _add_missing(chunks, bounds)
                    continue
                at = group * width + k
                for name, values in chunks.items():
                    values.append(one.chunks[name][at])
                bounds.append((one.bounds[at], one.by_page[at], counts[at]))
                _take_pages(pages, one, at, starts[at], counts[at])
    chunks["listed"] = [count for _, _, count in bounds]
    return chunks, pages, bounds


def _listed(one: FileFacts) -> list[int]:
    """For each chunk, the number of entries that it has in the lists of pages."""
    known, pages = one.chunks["known"], one.chunks["pages"]
    return [count if how else min(count, 1) for how, count in zip(known, pages, strict=True)]


def _add_missing(chunks: Lists, bounds: Places) -> None:
    empty = {"size": -1, "raw": -1, "codec": "", "encoding": "", "min": None, "max": None, "nulls": None}
    for name, values in chunks.items():
        values.append("this file has no such column" if name == "note" else empty.get(name, 0))
    bounds.append((None, False, 0))


def _take_pages(pages: Lists, one: FileFacts, chunk: int, start: int, count: int) -> None:
    end = one.chunks["start"][chunk] + one.chunks["dictionary"][chunk]
    for k in range(start, start + count):
        offset, size = one.pages["offset"][k], one.pages["size"][k]
        pages["skip"].append(offset - end)
        end = offset + size
    for name, values in pages.items():
        if name != "skip":
            values += one.pages[name][start : start + count]


def _ranges_of_column(
    column: int, columns: Sequence[Any], chunks: Lists, bounds: Places
) -> tuple[ValueRanges | None, bool]:
    """The ranges of a column, and whether they are those of pages."""
    mine = bounds[column :: len(columns)]
    by_page = any(of_pages for _, of_pages, _ in mine)
    if by_page:
        parts = [known if of_pages else None for known, of_pages, _ in mine]
        return value_ranges(parts, [count for _, _, count in mine]), True
    return value_ranges([known for known, _, _ in mine], [1] * len(mine)) if mine else None, False


def _summary(found: ValueRanges | None, by_page: bool) -> dict[str, Any]:
    if found is None:
        return {}
    return {
        "min": found.smallest, "max": found.largest, "touched": round(found.touched, 4),
        "parts": int((found.low >= 0).sum()), "by": "page" if by_page else "chunk",
    }  # fmt: skip


def _place_ranges(ranges: Sequence[tuple[ValueRanges | None, bool]], chunks: Lists, pages: Lists, width: int) -> None:
    """Put the positions of all ranges into the lists of chunks or of pages."""
    listed = np.array(chunks.get("listed", []), np.int64)
    starts = np.cumsum(listed) - listed
    for side in ("low", "high"):
        of_chunks, of_pages = np.full(len(listed), -1, np.int64), np.full(int(listed.sum()), -1, np.int64)
        for column, (found, by_page) in enumerate(ranges):
            if found is None:
                continue
            places = getattr(found, side)
            if not by_page:
                of_chunks[column::width] = places
                continue
            counts = listed[column::width]
            inner = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
            of_pages[np.repeat(starts[column::width], counts) + inner] = places
        chunks[side], pages[side] = of_chunks.tolist(), of_pages.tolist()


_NOTHING: tuple[Any, ...] = (None, -1, 0, "")
_ALWAYS = {"start", "size", "rows", "listed"}
_COUNTED = {"nulls", "low", "high"}
"""Lists in which 0 is a fact."""


def _with_facts(lists: Lists) -> Lists:
    """Without the lists whose values are all empty."""
    return {name: values for name, values in lists.items() if name in _ALWAYS or _says_something(name, set(values))}


def _says_something(name: str, values: set[Any]) -> bool:
    if len(values) != 1:
        return bool(values)
    (value,) = values
    return value not in _NOTHING or (value == 0 and name in _COUNTED)


# ---- the page


def map_page(document: dict[str, Any]) -> str:
    """The page that shows ``document``."""
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
