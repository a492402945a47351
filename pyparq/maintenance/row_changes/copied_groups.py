"""Row groups that go from one file to another byte for byte: their pages, their filters and their page indexes.

Only the known parts of a row group are copied. What lies between them, such as filters that were replaced, may hold
values of rows that go.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyparq.encryption.cipher import MAX_ORDINAL
from pyparq.errors import ParquetError
from pyparq.format.lazy_footer import TRAILER
from pyparq.format.thrift_tree import I16, I64
from pyparq.index.bloom_filter import parse_header
from pyparq.io.sink import Sink, copy_range
from pyparq.maintenance.footer_edit import (
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    GROUP_FILE_OFFSET,
    GROUP_ORDINAL,
    OFFSET_INDEX_LENGTH,
    OFFSET_INDEX_OFFSET,
    ChunkTree,
    FooterTree,
    moved_offset_index,
)
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.bloom_probe import HEADER
from pyparq.read.plan.page_indexes import has_column_index, has_offset_index


class NoSink:
    """Counts what would be written (:class:`pyparq.io.sink.Sink`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = 0

    def write(self, parts: Sequence[Any]) -> None:
        self.position += sum(memoryview(part).nbytes for part in parts)

    def skip(self, size: int) -> None:
        """As if so many bytes were written."""
        self.position += size

    def commit(self) -> None:
        return None

    def abort(self) -> None:
        return None


class Copied:
    """The row groups of one file that are copied."""

    def __init__(self, file: OpenFile, footer: FooterTree, without_bounds: Mapping[int, Sequence[int]]) -> None:
        """``footer``: of this file; its offsets are rebuilt. ``without_bounds``: by leaf, the fields of its statistics
        that the new file does not have."""
        self.file = file
        self.footer = footer
        self.without_bounds = without_bounds
        self.num_bytes = 0
        """Bytes that were copied."""

    def copy_range(self, sink: Sink, start: int, stop: int) -> None:
        if isinstance(sink, NoSink):
            sink.skip(stop - start)
        else:
            copy_range(sink, self.file.fetcher, start, stop)
        self.num_bytes += stop - start

    def copy(self, row_group: int, ordinal: int, sink: Sink) -> CopiedGroup:
        """Append the pages of a row group. It becomes row group ``ordinal`` of the new file."""
        group = CopiedGroup(self, row_group)
        group.copy(sink, ordinal)
        return group


class CopiedGroup:
    """A row group whose pages are in the new file (:class:`pyparq.write.file_layout.StoredGroup`)."""

    def __init__(self, of: Copied, row_group: int) -> None:
        self._of = of
        self._row_group = row_group
        self._chunks = [of.file.chunk(row_group, leaf) for leaf in of.file.tree.leaves]
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._shifts: list[int] = []
        self.num_rows = of.file.num_rows_of(row_group)

    def copy(self, sink: Sink, ordinal: int) -> None:
        """Append the column chunks in their order in the file, and rebuild their offsets."""
        first = sink.position
        for start, stop in _joined((chunk.start, chunk.end) for chunk in self._chunks if chunk.size):
            self._starts.append(start)
            self._ends.append(stop)
            self._shifts.append(sink.position - start)
            self._of.copy_range(sink, start, stop)
        group = self._of.footer.row_group(self._row_group)
        if group.field(GROUP_FILE_OFFSET) is not None:
            group.set_integer(GROUP_FILE_OFFSET, I64, first)
        if group.field(GROUP_ORDINAL) is not None:
            group.remove(GROUP_ORDINAL)
            if ordinal <= MAX_ORDINAL:
                group.set_integer(GROUP_ORDINAL, I16, ordinal)
        for chunk in self._chunks:
            tree = self._tree(chunk)
            tree.move(self._moved, chunk)
            tree.drop_bounds(self._of.without_bounds.get(chunk.node.column, ()))

    def _moved(self, at: int) -> int:
        """The new place of what lies in a column chunk. 0 for anything else: the new file does not have it, or it is
        placed later."""
        k = bisect_right(self._starts, at) - 1
        return at + self._shifts[k] if k >= 0 and at < self._ends[k] else 0

    def store_filters(self, sink: Sink) -> None:
        """Append the Bloom filters as they are. One that cannot be read is left out."""
        for chunk in self._chunks:
            place = _filter_place(self._of.file, chunk)
            if place is not None:
                start = sink.position
                self._of.copy_range(sink, place[0], sum(place))
                place = start, place[1]
            self._tree(chunk).place_bloom(chunk, place)

    def store_column_indexes(self, sink: Sink) -> None:
        """Append the ColumnIndexes as they are."""
        kept = [c for c in self._chunks if has_column_index(c) and not self._of.without_bounds.get(c.node.column)]
        ranges = [(c.raw.column_index_offset, c.raw.column_index_length) for c in kept]
        stored = self._of.file.fetcher.fetch(ranges)
        self._place(sink, (COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH), kept, [bytes(data) for data in stored])

    def store_offset_indexes(self, sink: Sink) -> None:
        """Append the OffsetIndexes for the new places of the pages."""
        kept = [c for c in self._chunks if has_offset_index(c)]
        ranges = [(c.raw.offset_index_offset, c.raw.offset_index_length) for c in kept]
        stored = self._of.file.fetcher.fetch(ranges)
        moved = [moved_offset_index(data, self._moved) for data in stored]
        self._place(sink, (OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH), kept, moved)

    def _place(self, sink: Sink, fields: tuple[int, int], chunks: Sequence[Chunk], stored: Sequence[bytes]) -> None:
        """Append one index for each of the chunks, and note the places. Other chunks have none."""
        by_column = {chunk.node.column: data for chunk, data in zip(chunks, stored, strict=True)}
        for chunk in self._chunks:
            data, place = by_column.get(chunk.node.column), None
            if data is not None:
                place = sink.position, len(data)
                self._of.num_bytes += len(data)
                sink.write([data])
            self._tree(chunk).place_index(*fields, place)

    def serialized(self) -> bytes:
        return self._of.footer.row_group(self._row_group).serialize()

    def _tree(self, chunk: Chunk) -> ChunkTree:
        return self._of.footer.chunk(chunk.row_group, chunk.node.column)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, as one where they touch or overlap."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _filter_place(file: OpenFile, chunk: Chunk) -> tuple[int, int] | None:
    """Offset and length of a chunk's Bloom filter. ``None`` if it has none that can be read."""
    offset = chunk.meta.bloom_filter_offset
    if not offset:
        return None
    left = file.fetcher.source.size - TRAILER - offset
    if left <= 0:
        return None
    (head,) = file.fetcher.fetch([(offset, min(HEADER, left))])
    try:
        size, header = parse_header(head, file.options.limits, available=left)
    except ParquetError:
        return None
    return offset, header + size


def whole_chunks(file: OpenFile, row_group: int, end: int) -> bool:
    """Whether the pages of a row group surely lie where the footer says. The stated size of a chunk may be too small,
    and readers find its last pages all the same: copied by its size, it would lose them. ``end``: where the footer
    begins."""
    behind = []
    for leaf in file.tree.leaves:
        chunk = file.chunk(row_group, leaf)
        room = min(file.room_at(row_group, chunk.start), end - chunk.start)
        if chunk.size and not has_offset_index(chunk) and room > chunk.size:
            behind.append((chunk.end, min(8, end - chunk.end)))
    return not any(any(bytes(data)) for data in file.fetcher.fetch(behind)) if behind else True
