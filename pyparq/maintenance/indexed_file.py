"""Adds indexes to one file: decides, builds, lays out and writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyparq._version import __version__
from pyparq.encryption.cipher import Module
from pyparq.errors import UnsupportedError
from pyparq.format.thrift_codec import serialize
from pyparq.index.page_index import OffsetIndexBuilder
from pyparq.io.sink import Sink, copy_range
from pyparq.maintenance.footer_edit import (
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    OFFSET_INDEX_LENGTH,
    OFFSET_INDEX_OFFSET,
    FooterTree,
    Place,
    moved_offset_index,
)
from pyparq.maintenance.index_building import (
    BLOOM,
    COLUMN_INDEX,
    KINDS,
    OFFSET_INDEX,
    ChunkChange,
    Request,
    change_chunk,
)
from pyparq.maintenance.index_layout import Layout, free_ranges, group_ends
from pyparq.maintenance.report import ADDED, REMOVED, REPLACED
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_indexes import claim_modules, has_column_index, has_offset_index
from pyparq.runtime.threads import map_tasks

Extent = tuple[int, int]
"""From, to."""


@dataclass(slots=True)
class Changes:
    """The changes to the indexes of a file."""

    chunks: list[ChunkChange]
    """By row group, then in column order."""
    adds_orders: bool = False
    notes: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return any(change.changed for change in self.chunks)


def find_changes(file: OpenFile, request: Request) -> Changes:
    """Decide about every column chunk, and build the needed indexes. Nothing is written.

    Raises :class:`CorruptFileError` for damage in any page that has to be read.
    """
    file.check_chunk_counts()
    file.check_places()
    orders_missing = file.footer.meta.column_orders is None
    account = Account(file.options.limits)
    places = [(k, leaf) for k in range(file.num_row_groups) for leaf in file.tree.leaves]

    for row_group, leaf in places:  # in order: an index belongs to the first chunk that names it
        claim_modules(file, row_group, leaf)

    def work(place: Any) -> ChunkChange:
        return change_chunk(file, request, place[0], place[1], orders_missing, account)

    chunks = map_tasks(work, places, file.options.use_threads)
    changes = Changes(chunks)
    if orders_missing and any(change.column_index is not None for change in chunks):
        _decide_orders(file, changes)
    return changes


def _decide_orders(file: OpenFile, changes: Changes) -> None:
    """Decide about column orders, without which a ColumnIndex means nothing. They are added unless existing statistics
    would become wrong. In that case no ColumnIndex is written."""
    for change in changes.chunks:
        reason = change.contradiction or _unchecked(file, change)
        if reason:
            place = f"row group {change.row_group}, column {change.node.dotted}"
            break
    else:
        changes.adds_orders = True
        return
    for change in changes.chunks:
        if change.column_index is not None:
            change.column_index = None
            change.leave(
                COLUMN_INDEX,
                "the footer has no column orders, and with them readers would believe wrong statistics "
                f"({place}: {reason})",
                False,
            )


def _unchecked(file: OpenFile, change: ChunkChange) -> str:
    """The reason why it is not known whether a chunk's statistics are true."""
    if change.chunk is None:
        return "its key is missing"
    if has_column_index(change.chunk) and change.column_index is None:
        return "its ColumnIndex was not checked"
    return ""


# ---- writing -------------------------------------------------------------------------------------------------------


class IndexWriter:
    """Writes a file again with other indexes."""

    def __init__(self, file: OpenFile, request: Request, changes: Changes) -> None:
        self._file = file
        self._changes = changes
        self._footer = FooterTree(file)
        self._in_groups = request.layout == "row_group" and any(c.bloom is not None for c in changes.chunks)
        self._layout = Layout(self._footer.start)
        self._blooms: dict[tuple[int, int], Place] = {}
        self._moved_indexes: dict[tuple[int, int], bytes] = {}
        self._pages_move = False
        self.bytes_copied = 0
        self.bytes_written = 0
        self.bytes_of: dict[int, int] = {}
        """New bytes of indexes and filters by leaf column."""

    def prepare(self) -> None:
        """Decide the layout. Raises :class:`UnsupportedError` if filters cannot be inserted between the row groups."""
        cuts = self._cuts()
        if self._in_groups:
            self._insert_filters()
        self._layout.cuts = cuts
        self._layout.place_all()
        if self._layout.inserts or cuts:
            self._move()

    def write(self, sink: Sink) -> None:
        """Write the whole file. The caller commits."""
        for piece in self._layout.pieces():
            if isinstance(piece, list):
                sink.write(piece)
            else:
                copy_range(sink, self._file.fetcher, *piece)
                self.bytes_copied += piece[1] - piece[0]
        if not self._in_groups:
            for change in self._changes.chunks:
                if change.bloom is not None:
                    self._blooms[_key(change)] = self._store(sink, change, change.bloom)
        self._place_filters()
        self._write_indexes(sink, COLUMN_INDEX)
        self._write_indexes(sink, OFFSET_INDEX)
        if self._changes.adds_orders:
            self._footer.add_column_orders(len(self._file.tree.leaves))
        record = updated_record(self._footer.key_value(RECORD_KEY), self._changes.chunks)
        if record is None:
            self._footer.change_key_values({}, [RECORD_KEY])
        else:
            self._footer.change_key_values({RECORD_KEY: record})
        sink.write(self._footer.parts())
        self.bytes_written = sink.position - self.bytes_copied

    def _store(self, sink: Sink, change: ChunkChange, parts: Sequence[Any]) -> Place:
        start = sink.position
        sink.write(parts)
        column = change.node.column
        self.bytes_of[column] = self.bytes_of.get(column, 0) + sink.position - start
        return start, sink.position - start

    # ---- filters

    def _insert_filters(self) -> None:
        extents = self._extents()
        if extents is None:
            raise UnsupportedError(
                "filters between the row groups would move the pages of columns whose keys are missing, and their "
                'offsets cannot be changed: give the keys, or use bloom_filter_layout="footer"',
                file=self._file.name,
            )
        chunks = [change.chunk for change in self._changes.chunks if change.chunk is not None]
        places = [start for chunk in chunks for _, (start, _) in _stored(chunk)]
        ends = group_ends(self._file, extents, places, self._footer.start)
        for change in self._changes.chunks:
            if change.bloom is not None:
                at = ends[change.row_group]
                self._layout.insert(at, change.bloom)
                self._blooms[_key(change)] = at, sum(memoryview(part).nbytes for part in change.bloom)
        if self._footer.has_unknown_offsets(min(self._layout.inserts)):
            raise UnsupportedError(
                "the footer has fields that are not known and may be offsets of what would move: use "
                'bloom_filter_layout="footer"',
                file=self._file.name,
            )

    def _place_filters(self) -> None:
        """Enter the places of the filters in the footer. Filters that are inserted at one place follow each other."""
        behind: dict[int, int] = {}
        for change in self._changes.chunks:
            place = self._blooms.get(_key(change))
            if place is not None and change.chunk is not None:
                if self._in_groups:
                    at, size = place
                    start = behind.get(at) or self._start_of_insert(at)
                    behind[at] = start + size
                    place = start, size
                    self.bytes_of[change.node.column] = self.bytes_of.get(change.node.column, 0) + size
                self._footer.chunk(*_key(change)).place_bloom(change.chunk, place)
            elif change.outcome.get(BLOOM) == REMOVED and change.chunk is not None:
                self._footer.chunk(*_key(change)).place_bloom(change.chunk, None)

    def _start_of_insert(self, at: int) -> int:
        """The new place of what was inserted before the old byte ``at``."""
        size = sum(memoryview(part).nbytes for part in self._layout.inserts[at])
        return self._layout.moved(at) - size

    # ---- page indexes

    def _write_indexes(self, sink: Sink, kind: str) -> None:
        fields = (
            (COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH)
            if kind == COLUMN_INDEX
            else (OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH)
        )
        for change in self._changes.chunks:
            stored = change.column_index if kind == COLUMN_INDEX else self._offset_index(change)
            if stored is not None:
                place = self._store(sink, change, [stored])
                self._footer.chunk(*_key(change)).place_index(*fields, place)
            elif change.outcome.get(kind) == REMOVED:
                self._footer.chunk(*_key(change)).place_index(*fields, None)

    def _offset_index(self, change: ChunkChange) -> bytes | None:
        if change.pages is None:
            return self._moved_indexes.get(_key(change))
        assert change.chunk is not None
        builder = OffsetIndexBuilder()
        complete = all(page.unencoded is not None for page in change.pages)
        for page in change.pages:
            place = self._layout.moved(page.offset)
            builder.add_page(place, page.size, page.first_row, page.unencoded if complete else None)
        return b"".join(change.chunk.crypto.seal(Module.OFFSET_INDEX, [serialize(builder.finish())]))

    # ---- what moves

    def _move(self) -> None:
        """Rebuild the offsets of moved parts, in the footer and in OffsetIndexes that are kept."""
        by_place = {_key(change): change for change in self._changes.chunks}
        self._footer.move(self._layout.moved, lambda k, column: by_place[k, column].chunk)
        if not self._pages_move:
            return
        for key, change in by_place.items():
            chunk = change.chunk
            if chunk is None or change.pages is not None or not has_offset_index(chunk):
                continue
            if change.outcome.get(OFFSET_INDEX) == REMOVED:
                continue
            (stored,) = self._file.fetcher.fetch([(chunk.raw.offset_index_offset, chunk.raw.offset_index_length)])
            plain = chunk.crypto.open(Module.OFFSET_INDEX, stored)
            moved = moved_offset_index(plain, self._layout.moved)
            self._moved_indexes[key] = b"".join(chunk.crypto.seal(Module.OFFSET_INDEX, [moved]))

    def _extents(self) -> list[list[Extent]] | None:
        """The bytes of the column chunks, by row group. ``None`` if some are not known because their key is missing."""
        extents: list[list[Extent]] = [[] for _ in range(self._file.num_row_groups)]
        for change in self._changes.chunks:
            if change.chunk is None:
                return None
            extents[change.row_group].append((change.chunk.start, change.chunk.end))
        return extents

    def _cuts(self) -> list[Extent]:
        """Old indexes and filters that are replaced or removed, and whose bytes nothing else uses."""
        extents = self._extents()
        if extents is None:
            return []
        pages = [extent for group in extents for extent in group]
        cuts = self._free(pages, moves=self._in_groups)
        if cuts and not self._in_groups and _before_any(cuts, pages):
            cuts = self._free(pages, moves=True)
        if cuts and self._footer.has_unknown_offsets(cuts[0][0]):
            cuts = []
        self._pages_move = self._in_groups or _before_any(cuts, pages)
        return cuts

    def _free(self, pages: list[Extent], moves: bool) -> list[Extent]:
        """The ranges that can be omitted. ``moves``: whether pages move, so that every OffsetIndex is rebuilt."""
        gone: list[Extent] = []
        kept: list[Extent] = []
        for change in self._changes.chunks:
            if change.chunk is None:
                continue
            for kind, (start, size) in _stored(change.chunk):
                replaced = (
                    change.outcome.get(kind) in (REPLACED, REMOVED)
                    or (kind == COLUMN_INDEX and change.column_index is not None)
                    or (kind == OFFSET_INDEX and moves)
                )
                # A filter without a stated length: its end is unknown.
                (gone if replaced and size else kept).append((start, start + max(size, 1)))
        return free_ranges(gone, [*kept, *pages], self._footer.start)


def _before_any(cuts: Sequence[Extent], pages: Sequence[Extent]) -> bool:
    """Whether pages lie behind the first cut."""
    return bool(cuts) and any(start > cuts[0][0] for start, _ in pages)


def _key(change: ChunkChange) -> tuple[int, int]:
    return change.row_group, change.node.column


def _stored(chunk: Chunk) -> list[tuple[str, Place]]:
    """The indexes and the filter of a chunk with their places. The length is 0 if it is not stated."""
    found: list[tuple[str, Place]] = []
    if chunk.meta.bloom_filter_offset:
        found.append((BLOOM, (chunk.meta.bloom_filter_offset, chunk.meta.bloom_filter_length or 0)))
    if has_column_index(chunk):
        found.append((COLUMN_INDEX, (chunk.raw.column_index_offset, chunk.raw.column_index_length)))
    if has_offset_index(chunk):
        found.append((OFFSET_INDEX, (chunk.raw.offset_index_offset, chunk.raw.offset_index_length)))
    return found


# ---- the record of pyparq's own indexes in the key-value metadata

RECORD_KEY = "pyparq.indexes"

_NAMES = {BLOOM: "bloom_filters", COLUMN_INDEX: "column_indexes", OFFSET_INDEX: "offset_indexes"}


def updated_record(stored: bytes | None, changes: Sequence[ChunkChange]) -> str | None:
    """The value of the key after these changes. ``None`` if no index of pyparq's is left."""
    ours = _parsed(stored)
    for kind in KINDS:
        names = ours[kind]
        for change in changes:
            name = change.node.dotted
            outcome = change.outcome.get(kind)
            if outcome in (ADDED, REPLACED) and name not in names:
                names[name] = None
            elif outcome == REMOVED:
                names.pop(name, None)
    if not any(ours.values()):
        return None
    record = {"version": __version__, **{_NAMES[kind]: list(ours[kind]) for kind in KINDS if ours[kind]}}
    return json.dumps(record, ensure_ascii=False)


def _parsed(stored: bytes | None) -> dict[str, dict[str, None]]:
    """The columns in a stored value, by kind of index. Empty if the value is not a record of pyparq's."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    try:
        value = json.loads(stored or b"{}")
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return found
    for kind, name in _NAMES.items():
        listed = value.get(name) if isinstance(value, dict) else None
        if isinstance(listed, list):
            found[kind] = {column: None for column in listed if isinstance(column, str)}
    return found
