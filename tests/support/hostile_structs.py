"""Every field of every metadata struct of a file, set to values that it should not have, one at a time.

Structs behind the pages (indexes, Bloom headers, page headers) are put at the end of the data and pointed to anew, so
that a change of length disturbs nothing else.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from pyparq.errors import ParquetError
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import deserialize, serialize

Mutation = tuple[str, bytes]
"""What was changed, and the file with it."""

_WIDTHS = {3: 8, 6: 16, 8: 32, 10: 64}  # Thrift's numbers of byte, i16, i32, i64
_BOOL, _STRING, _STRUCT, _LIST = 2, 11, 12, 15


def field_changes(value: Any, path: str = "") -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """(what, change, restore) for every field at or below a generated struct."""
    for spec in value.thrift_spec:
        if spec is None:
            continue
        _, wire, name, args, _ = spec
        old, where = getattr(value, name), f"{path}.{name}" if path else name
        for new in _alternatives(old, wire, args):
            yield f"{where} = {_shown(new)}", _setter(value, name, new), _setter(value, name, old)
        if wire == _STRUCT and old is not None:
            yield from field_changes(old, where)
        elif wire == _LIST and old and args[0] == _STRUCT:
            for k in {0, len(old) - 1}:
                yield from field_changes(old[k], f"{where}[{k}]")


def _setter(value: Any, name: str, new: Any) -> Callable[[], None]:
    return lambda: setattr(value, name, new)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:40]}... ({len(text)} characters)"


def _alternatives(old: Any, wire: int, args: Any) -> list[Any]:
    """Values worth trying in a field; those it has left out."""
    if wire in _WIDTHS:
        bits = _WIDTHS[wire]
        tries = [-(1 << bits - 1), -1, 0, 1, 2, 3, 5, 7, 63, 1000, (1 << bits - 1) - 1]
        tries += [n for n in (70_000, 1 << 24, 1 << 29) if bits >= 32] + [n for n in (1 << 40, 1 << 61) if bits == 64]
        if old is not None:
            tries += [n for n in (old - 1, old + 1, old * 2) if abs(n) < 1 << bits - 1]
        return [None, *dict.fromkeys(n for n in tries if n != old)]
    if wire == _BOOL:
        return [None, not old]
    if wire == _STRING:
        if args == "BINARY":
            return [None, b"", b"\xff", b"\xff" * 16, b"\0" * 300]
        return [None, "", "x" * 3000]
    if wire == _LIST:
        if not old:
            return [None, []]
        return [None, [], old[:-1], old + old[-1:], old[::-1], old * 50]
    return [None] if old is not None else []


class Workpiece:
    """A file taken apart: its data before the footer, and the footer's structs."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[-8:-4], "little")
        self.data = data[: -8 - size]
        self.meta = LazyFileMetaData(data[-8 - size : -8]).full()

    def with_footer(self, meta: Any, data: bytes | None = None) -> bytes:
        footer = serialize(meta)
        return (self.data if data is None else data) + footer + len(footer).to_bytes(4, "little") + b"PAR1"

    def mutations(self) -> Iterator[Mutation]:
        yield from self._of_footer()
        for column in range(len(self.meta.row_groups[0].columns)):
            yield from self._of_indexes(column)
            yield from self._of_bloom(column)
            yield from self._of_pages(column)

    def _of_footer(self) -> Iterator[Mutation]:
        for what, change, restore in field_changes(self.meta):
            change()
            try:
                yield f"footer: {what}", self.with_footer(self.meta)
            except ParquetError:  # the codec does not write it
                pass
            finally:
                restore()

    def _chunk(self, column: int) -> tuple[Any, Any]:
        meta = copy.deepcopy(self.meta)
        return meta, meta.row_groups[0].columns[column]

    def _of_indexes(self, column: int) -> Iterator[Mutation]:
        for cls, name in ((tt.ColumnIndex, "column_index"), (tt.OffsetIndex, "offset_index")):
            meta, chunk = self._chunk(column)
            if not getattr(chunk, f"{name}_offset"):
                continue
            index, _ = deserialize(cls, self.data, getattr(chunk, f"{name}_offset"))
            for what, raw in _serialized(index):
                setattr(chunk, f"{name}_offset", len(self.data))
                setattr(chunk, f"{name}_length", len(raw))
                yield f"{name} of column {column}: {what}", self.with_footer(meta, self.data + raw)

    def _of_bloom(self, column: int) -> Iterator[Mutation]:
        meta, chunk = self._chunk(column)
        at = chunk.meta_data.bloom_filter_offset
        if not at:
            return
        header, bits = deserialize(tt.BloomFilterHeader, self.data, at)
        bitset = self.data[bits : bits + header.numBytes]
        for what, raw in _serialized(header):
            for length in (None, len(raw) + len(bitset)):
                chunk.meta_data.bloom_filter_offset = len(self.data)
                chunk.meta_data.bloom_filter_length = length
                yield f"Bloom header of column {column}: {what}", self.with_footer(meta, self.data + raw + bitset)

    def _of_pages(self, column: int) -> Iterator[Mutation]:
        """The first two pages of the chunk: the dictionary page where there is one, and a data page."""
        at = self._chunk(column)[1].meta_data
        start = at.dictionary_page_offset or at.data_page_offset
        end = start + at.total_compressed_size
        for _ in range(2):
            if start >= end:
                return
            header, body = deserialize(tt.PageHeader, self.data, start)
            for what, raw in _serialized(header):
                yield f"page header of column {column}: {what}", self._with_page(column, start, body, raw)
            start = body + header.compressed_page_size

    def _with_page(self, column: int, start: int, body: int, header: bytes) -> bytes:
        """The column chunk moved to the end, with another header for the page that starts at ``start``."""
        meta, chunk = self._chunk(column)
        stored = chunk.meta_data
        first = stored.dictionary_page_offset or stored.data_page_offset
        moved, grown = len(self.data) - first, len(header) - (body - start)
        pages = self.data[first:start] + header + self.data[body : first + stored.total_compressed_size]
        if stored.dictionary_page_offset:
            stored.data_page_offset += grown if start == first else 0
            stored.dictionary_page_offset += moved
        stored.data_page_offset += moved
        stored.total_compressed_size += grown
        stored.total_uncompressed_size += max(grown, 0)
        chunk.offset_index_offset = chunk.column_index_offset = None
        return self.with_footer(meta, self.data + pages)


def several_changes(data: bytes, rng: random.Random, before: str) -> Mutation:
    """Two to four fields of the footer changed at once, where they can be. ``before``: what was changed already."""
    try:
        piece = Workpiece(data)
    except ParquetError:
        return before, data
    changes = rng.sample(list(field_changes(piece.meta)), rng.randint(2, 4))
    for _, change, _ in changes:
        change()
    try:
        return " and ".join([before, *(what for what, _, _ in changes)]), piece.with_footer(piece.meta)
    except ParquetError:
        return before, data


def _serialized(value: Any) -> Iterator[tuple[str, bytes]]:
    for what, change, restore in field_changes(value):
        change()
        try:
            yield what, serialize(value)
        except ParquetError:
            pass
        finally:
            restore()
