"""One of the files that are merged: its bytes at their new place, with rebuilt offsets and page indexes."""

from __future__ import annotations

from pyparq.errors import SchemaError, UnsupportedError
from pyparq.io.sink import Sink
from pyparq.maintenance.copied_bytes import copy_range
from pyparq.maintenance.footer_edit import (
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    OFFSET_INDEX_LENGTH,
    OFFSET_INDEX_OFFSET,
    FooterTree,
    moved_offset_index,
)
from pyparq.maintenance.index_layout import Layout, free_ranges
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_indexes import check_own_index, has_column_index, has_offset_index

_MAGIC = 4
"""Bytes in front of the data."""
OLD_BOUNDS = (1, 2)
"""Fields of Statistics: the max and min of writers before column orders."""
BOUNDS = (5, 6, 7, 8)
"""max_value, min_value, and whether they are exact."""


class Part:
    """A file on its way into another one: :meth:`copy` first, then its indexes in any order."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.footer = FooterTree(file)
        if self.footer.has_unknown_offsets(_MAGIC):
            raise UnsupportedError(
                "the footer has fields that are not known and may be offsets, which would be wrong in another file. "
                "Use pyparq.rewrite",
                file=file.name,
            )
        file.check_chunk_counts()
        file.check_places()
        self._chunks = [file.chunk(k, leaf) for k in range(file.num_row_groups) for leaf in file.tree.leaves]
        for chunk in self._chunks:
            check_own_index(file, chunk)
        self._layout = Layout(self.footer.start)
        self._layout.cuts = free_ranges(self._indexes(), self._others(), self.footer.start)
        self._layout.settle()
        self._shift = 0
        self.without_bounds: dict[int, tuple[int, ...]] = {}
        """For each leaf column, the fields of its statistics to leave out. Its ColumnIndexes are left out too."""

    def _indexes(self) -> list[tuple[int, int]]:
        """The places of the page indexes. They are stored anew, together with those of the other files."""
        found = []
        for chunk in self._chunks:
            if has_column_index(chunk):
                found.append((chunk.raw.column_index_offset, chunk.raw.column_index_length))
            if has_offset_index(chunk):
                found.append((chunk.raw.offset_index_offset, chunk.raw.offset_index_length))
        return [(start, start + size) for start, size in found]

    def _others(self) -> list[tuple[int, int]]:
        """Other known places. A filter may not state its length, so no cut begins inside one."""
        found = [(chunk.start, chunk.end) for chunk in self._chunks]
        for chunk in self._chunks:
            start = chunk.meta.bloom_filter_offset
            if start:
                found.append((start, start + max(chunk.meta.bloom_filter_length or 0, 1)))
        return found

    def copy(self, sink: Sink) -> None:
        """Append everything except the page indexes, and rebuild the offsets in the footer."""
        self._shift = sink.position - _MAGIC
        source = self.file.fetcher.source
        for start, stop in self._layout.pieces():
            copy_range(sink, source, max(start, _MAGIC), stop)
        by_place = {(chunk.row_group, chunk.node.column): chunk for chunk in self._chunks}
        self.footer.move(self._moved, lambda k, column: by_place[k, column])
        for chunk in self._chunks:
            fields = self.without_bounds.get(chunk.node.column)
            if fields:
                self.footer.chunk(chunk.row_group, chunk.node.column).drop_bounds(fields)

    def store_column_indexes(self, sink: Sink) -> None:
        """Append the ColumnIndexes as they are."""
        kept = [c for c in self._chunks if has_column_index(c) and not self.without_bounds.get(c.node.column)]
        ranges = [(c.raw.column_index_offset, c.raw.column_index_length) for c in kept]
        stored = dict(zip(map(_key, kept), self.file.fetcher.fetch(ranges), strict=True))
        for chunk in self._chunks:
            data = stored.get(_key(chunk))
            self._place(sink, chunk, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH, None if data is None else bytes(data))

    def store_offset_indexes(self, sink: Sink) -> None:
        """Append the OffsetIndexes for the new places of the pages."""
        kept = [c for c in self._chunks if has_offset_index(c)]
        ranges = [(c.raw.offset_index_offset, c.raw.offset_index_length) for c in kept]
        stored = dict(zip(map(_key, kept), self.file.fetcher.fetch(ranges), strict=True))
        for chunk in self._chunks:
            data = stored.get(_key(chunk))
            moved = None if data is None else moved_offset_index(data, self._moved)
            self._place(sink, chunk, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, moved)

    def _place(self, sink: Sink, chunk: Chunk, offset: int, length: int, data: bytes | None) -> None:
        place = None
        if data is not None:
            place = sink.position, len(data)
            sink.write([data])
        self.footer.chunk(*_key(chunk)).place_index(offset, length, place)

    def _moved(self, at: int) -> int:
        return self._layout.moved(at) + self._shift


def _key(chunk: Chunk) -> tuple[int, int]:
    return chunk.row_group, chunk.node.column


def check_part(file: OpenFile, first: OpenFile) -> None:
    """Raise :class:`UnsupportedError` for an encrypted file, and :class:`SchemaError` for one with another schema than
    the first."""
    if file.decryption.info is not None:
        raise encrypted(file.name)
    if file.footer.schema_bytes == first.footer.schema_bytes:
        return
    mine, theirs = file.footer.schema(), first.footer.schema()
    if mine[1:] == theirs[1:]:  # the root's own attributes do not matter
        return
    here = {leaf.dotted: (leaf.path, str(leaf.element)) for leaf in file.tree.leaves}
    there = {leaf.dotted: (leaf.path, str(leaf.element)) for leaf in first.tree.leaves}
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    raise SchemaError(
        f"the file does not have the schema of {first.name}, and files are merged without changing their data. "
        "Use pyparq.rewrite",
        file=file.name,
        column=names[0] if names else None,
    )


def encrypted(name: str) -> UnsupportedError:
    """Encryption binds each page to its file and to the number of its row group."""
    return UnsupportedError(
        "encrypted files cannot be merged, as their pages are bound to their file. Use pyparq.rewrite with the keys",
        file=name,
    )
