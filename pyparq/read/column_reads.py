"""Reads columns of one or several row groups: fetches the bytes, decodes them, and keeps the wanted rows."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.errors import ChecksumError, CorruptFileError, LimitError, ParquetError, located
from pyparq.format.schema_node import Node
from pyparq.format.types import Physical
from pyparq.index.row_ranges import RowMask, RowRanges, Rows
from pyparq.io.byte_ranges import Range
from pyparq.kernels import PieceFacts
from pyparq.read.decode.arrow_columns import Kind
from pyparq.read.decode.chunk_pages import ChunkPages
from pyparq.read.decode.decoder import ColumnJob, Piece, PieceError, decode
from pyparq.read.decode.leaves import DecodedLeaf
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan import page_indexes
from pyparq.read.plan.ahead import TRIP, Prefetch, SpareBytes
from pyparq.read.plan.candidates import Selection, Trace
from pyparq.read.plan.page_reads import NO_PAGES, ColumnRead, Needed, plan_column
from pyparq.runtime.messages import debug_logger
from pyparq.runtime.threads import map_tasks, runs_within

Key = tuple[int, int]
"""(row group, leaf column)."""


class Extents:
    """For each column chunk, the first and the last byte that was read. The pages of a chunk are contiguous."""

    def __init__(self) -> None:
        self._of: dict[Key, tuple[int, int]] = {}
        self._sorted: list[tuple[int, int, Key]] = []

    def add(self, key: Key, start: int, end: int) -> None:
        """Note that pages of a column chunk lie between ``start`` and ``end``. Raises :class:`CorruptFileError` if
        pages of another chunk overlap them."""
        if start >= end:
            return
        known = self._of.get(key)
        if known is not None:
            start, end = min(start, known[0]), max(end, known[1])
            if known == (start, end):
                return
            self._sorted.remove((*known, key))
        if self._sorted and start < self._sorted[-1][1]:
            self._check(start, end, key)
        insort(self._sorted, (start, end, key))
        self._of[key] = start, end

    def add_if_new(self, key: Key, start: int, end: int) -> None:
        """:meth:`add` for a column chunk without an extent so far."""
        if key not in self._of:
            self.add(key, start, end)

    def _check(self, start: int, end: int, key: Key) -> None:
        at = bisect_left(self._sorted, (start, end, key))
        for other in self._sorted[max(at - 1, 0) : at + 1]:
            if other[0] < end and start < other[1]:
                raise CorruptFileError(
                    f"its pages (offset {start} to {end}) overlap those of column chunk {other[2][1]} in row group "
                    f"{other[2][0]} (offset {other[0]} to {other[1]})"
                )


def beyond_its_size(file: OpenFile, chunk: Chunk, data: memoryview) -> Chunk | None:
    """The chunk with the length of its pages, if these hold the stated number of values only behind the stated end.

    ``None`` if they do not, or if ``data`` holds all of them. Encrypted chunks are not extended.
    """
    if chunk.crypto.encrypted or _end_of_pages(chunk, data, file) is not None:
        return None
    room = file.room_at(chunk.row_group, chunk.start)
    if room <= len(data):
        return None
    (longer,) = file.fetcher.fetch([(chunk.start, room)])
    end = _end_of_pages(chunk, longer, file)
    return None if end is None else chunk.of_size(end)


def _end_of_pages(chunk: Chunk, data: memoryview, file: OpenFile) -> int | None:
    try:
        pages = ChunkPages(data, chunk, file.options, Account(file.options.limits))
        pages.check()
    except (CorruptFileError, LimitError):
        return None
    return pages.size


def check_end(file: OpenFile, chunk: Chunk, data: memoryview, at: int, ordinal: int) -> None:
    """Raise :class:`CorruptFileError` if data page ``ordinal`` of the chunk follows at ``data[at]``, behind the pages
    with the stated number of values. Its values would be lost silently."""
    stated = min(len(data), chunk.numbers.total_compressed_size)
    if at >= stated or chunk.crypto.encrypted or file.begins_at(chunk.row_group, chunk.start + at):
        return
    try:
        pages = ChunkPages(data[at:], chunk, file.options, Account(file.options.limits)).pages
    except LimitError:
        return
    if pages and pages[0].offset == chunk.start and pages[0].num_values:  # (otherwise it is padding)
        raise CorruptFileError(
            f"the column chunk declares {chunk.num_values} values, but another page of {pages[0].num_values} follows",
            page=ordinal,
        )


TOGETHER = 1 << 20
"""Column reads of fewer bytes are fetched in one step with their neighbours."""
WINDOW = 32 << 20
"""Stored bytes that are in memory at a time. One larger column chunk may exceed it."""

CODES_FROM = 1 << 12
"""From this many rows on, a filter is tested on the dictionary entries of a column. Below, it is tested on the
values."""

PREFETCHED = 8
"""Bytes that are requested before they are needed take at most this fraction (one eighth) of the memory limit."""


@dataclass(slots=True)
class ScanCounts:
    """Pages decoded so far, by kind. Bytes and requests are counted where they are made, by the fetcher."""

    data_pages: int = 0
    dictionary_pages: int = 0
    column_chunks: int = 0


@dataclass(slots=True)
class Wanted:
    """Some rows of one leaf in one row group."""

    selection: Selection
    node: Node
    rows: RowRanges
    tested: bool = False
    """Are the values compared with something?"""
    by_entries: bool = False
    """Is that all, and does a test of a value take longer than looking up the answer for its entry of a dictionary?"""
    mask: RowMask | None = None
    """The bitmap of wanted rows, if ``rows`` only holds the ranges around them. The leaf then holds the wanted rows
    only."""

    @classmethod
    def at(cls, selection: Selection, node: Node, rows: Rows) -> Wanted:
        """Wanted rows of a leaf, given as ranges or as a bitmap."""
        if isinstance(rows, RowMask):
            return cls(selection, node, rows.cover, mask=rows)
        return cls(selection, node, rows)

    @property
    def count(self) -> int:
        """Number of wanted rows."""
        return self.rows.count if self.mask is None else self.mask.count


class ColumnReader:
    """Reads columns of one file and counts what it decodes."""

    def __init__(self, file: OpenFile, spare: SpareBytes | None = None) -> None:
        """``spare``: of a scan of several files, which share it."""
        self.file = file
        self.account = Account(file.options.limits)
        """What this read has decoded and alive."""
        self._extents = Extents()
        self.joins = True
        """Whether small row groups may be read whole, without checking where each page lies."""
        self.options = file.options
        self.counts = ScanCounts()
        self.logger = debug_logger("read") if "logging" in sys.modules else None
        self.trace: Trace | None = None
        """Where every read is noted, for a picture of them."""
        self.prefetch: Prefetch | None = None
        """Requests the next row groups of a remote file early. ``None``: it does not pay."""
        most = min(self.options.prefetch_bytes, self.account.most // PREFETCHED)
        if most > 0 and self.options.use_threads and not file.fetcher.source.is_local:
            self.prefetch = Prefetch(file.fetcher, most)
        self.spare = spare
        """What may be read in vain, so that fewer requests are waited for. ``None`` without :attr:`prefetch`."""
        if self.spare is None and self.prefetch is not None:
            self.spare = SpareBytes(min(TRIP, most))

    def plan(self, wanted: Sequence[Wanted]) -> list[ColumnRead]:
        """The pages to read, after fetching the OffsetIndexes that this takes (all in one step)."""
        self.locate([w for w in wanted if not w.rows.is_all])
        reads: list[ColumnRead] = []
        needed: Needed | None = None
        for w in wanted:
            column, planned = w.node.column, w.selection.planned
            if planned is not None:
                reads.append(planned[column].narrowed(w.rows))
                continue
            locations = w.selection.locations.get(column) if self.options.use_page_index else None
            known = column in w.selection.dictionaries
            chunk = self.file.chunk(w.selection.row_group, w.node)
            read, needed = plan_column(chunk, w.rows, locations, has_dictionary=known, last=needed)
            reads.append(read)
        return reads

    def note_whole(self, row_group: int, nodes: Iterable[Node]) -> None:
        """Note where the pages of a row group lie that was read whole: where the footer says."""
        for node in nodes:
            chunk = self.file.chunk(row_group, node)
            with located(file=self.file.name, row_group=row_group, column=chunk.name):
                self._extents.add_if_new((row_group, node.column), chunk.start, chunk.end)

    def locate(self, wanted: Sequence[Wanted]) -> None:
        """Fetch the OffsetIndexes of these columns that are not known yet, in one step."""
        missing = self.not_located(wanted)
        if not missing:
            return
        found = page_indexes.read_locations(
            self.file, [self.file.chunk(w.selection.row_group, w.node) for w in missing]
        )
        for w in missing:
            w.selection.locations[w.node.column] = found.get((w.selection.row_group, w.node.column))

    def not_located(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """The columns whose OffsetIndex is not known and would help."""
        if not self.options.use_page_index:
            return []
        return [w for w in wanted if w.selection.planned is None and w.node.column not in w.selection.locations]

    def read(self, wanted: Sequence[Wanted]) -> list[DecodedLeaf]:
        """Decode everything in ``wanted``, in order, on several threads where that pays."""
        reads = self.plan(wanted)
        if self.logger is not None:
            self._log(reads)
        windows = self._windows(reads)
        ranges = [read.ranges for read in reads]
        steps = [self._window_steps(reads, ranges, window) for window in windows]
        # The small reads of the first window are needed at once, so requesting them early gains nothing.
        if self.prefetch is not None:
            self.prefetch.expect([step for small, large in steps[:1] for step in large] + _all_steps(steps[1:]))
        leaves: list[DecodedLeaf] = []
        for window, (small, large) in zip(windows, steps, strict=True):
            with located(file=self.file.name):
                data = self._fetch_window(reads, ranges, window, small, large)
                leaves += self._decode([wanted[k] for k in window], [reads[k] for k in window], data)
        return leaves

    def _log(self, reads: Sequence[ColumnRead]) -> None:
        assert self.logger is not None
        for read in reads:
            pages = "all pages" if read.whole is not None or read.pages is None else f"{len(read.pages)} pages"
            self.logger.debug(
                "%s: planned row group %d, column %s: %s, %d bytes",
                self.file.name, read.row_group, read.name, pages, read.num_bytes,
            )  # fmt: skip

    def steps(self, wanted: Sequence[Wanted]) -> list[list[Range]]:
        """The byte ranges that :meth:`read` will fetch. Each list is one step."""
        reads = self.plan(wanted)
        ranges = [read.ranges for read in reads]
        return _all_steps([self._window_steps(reads, ranges, window) for window in self._windows(reads)])

    @staticmethod
    def _windows(reads: Sequence[ColumnRead]) -> list[list[int]]:
        """The reads, grouped into windows. The stored bytes of one window are in memory at a time."""
        sizes, places = [read.num_bytes for read in reads], [*range(len(reads))]
        return [places][: len(reads)] if sum(sizes) <= WINDOW else list(runs_within(places, (sizes, WINDOW)))

    def _window_steps(
        self, reads: Sequence[ColumnRead], ranges: Sequence[Step], window: list[int]
    ) -> tuple[list[Step], list[Step]]:
        """The steps that fetch a window: the small reads of each row group together, and each large read by itself."""
        small: dict[int, Step] = {}
        large: list[Step] = []
        for k in window:
            read = reads[k]
            if read.num_bytes < TOGETHER:
                small.setdefault(read.row_group, []).extend(ranges[k])
            else:
                large.append(ranges[k])
        return list(small.values()), large

    def _fetch_window(
        self,
        reads: Sequence[ColumnRead],
        ranges: Sequence[Step],
        window: list[int],
        small: list[Step],
        large: list[Step],
    ) -> list[list[memoryview]]:
        """The bytes of each read of a window."""
        if len(small) == 1 and not large:  # all of one row group
            views = iter(self._fetch(small)[0])
            return [[next(views) for _ in ranges[k]] for k in window]
        few = iter([view for group in self._fetch(small) for view in group]) if small else iter(())
        threads = self.options.use_threads and self.prefetch is None and len(large) > 1
        many = iter(map_tasks(lambda ranges: self._fetch([ranges])[0], large, threads))
        by_group: dict[int, dict[int, list[memoryview]]] = {}
        for k in window:
            if reads[k].num_bytes < TOGETHER:
                by_group.setdefault(reads[k].row_group, {})[k] = []
        found: dict[int, list[memoryview]] = {}
        for group in by_group.values():  # in the order in which they were fetched
            for k in group:
                found[k] = [next(few) for _ in ranges[k]]
        return [found[k] if k in found else next(many) for k in window]

    def _fetch(self, steps: Sequence[Sequence[Range]]) -> list[list[memoryview]]:
        return (self.file.fetcher.fetch_groups if self.prefetch is None else self.prefetch.fetch)(steps)

    def _decode(self, wanted: list[Wanted], reads: list[ColumnRead], data: list[list[memoryview]]) -> list[DecodedLeaf]:
        """Decode a window. A chunk that is longer than the footer states is read again in full."""
        columns = [self._column(*item) for item in zip(wanted, reads, data, strict=True)]
        while True:  # once more for each chunk that turns out to be longer than stated
            try:
                decoded, facts = decode(columns, self.options, self.account)
                break
            except PieceError as refused:
                piece = columns[refused.column].pieces[refused.piece]
                assert isinstance(piece, Piece)
                self._mend(piece, refused.error)
        leaves = []
        for item, read, column, found, fact in zip(wanted, reads, columns, decoded, facts, strict=True):
            piece = column.pieces[0]
            assert isinstance(piece, Piece)
            kept = item.rows if item.mask is None else item.mask
            leaf = DecodedLeaf(item.node, found.column, found.def_levels, found.rep_levels, kept)
            try:
                extent = self._extent(read, piece, fact)
                with self.account.lock:  # row groups may be decoded on several threads
                    self._extents.add((read.row_group, read.column), *extent)
                leaf.check_rows()
            except ParquetError as error:
                error.locate(row_group=read.row_group, column=read.name)
                raise
            leaves.append(leaf)
        if self.trace is not None:
            self.trace.reads += reads
        self.count(len(facts), sum(fact.data_pages for fact in facts), sum(fact.dictionary_pages for fact in facts))
        return leaves

    def _column(self, item: Wanted, read: ColumnRead, data: list[memoryview]) -> ColumnJob:
        chunk = self.file.chunk(read.row_group, item.node)
        rows: Any = None
        if item.mask is not None:
            rows = item.mask.bits
        elif not item.rows.is_all:
            rows = item.rows.starts, item.rows.ends
        known = item.selection.dictionaries.get(read.column)
        if read.whole is not None:
            piece = Piece(chunk, data[0], rows=rows, dictionary=known)
        else:
            pages = read.pages if read.pages is not None else NO_PAGES
            piece = Piece(chunk, data, pages, read.dictionary is not None, rows, known)
        return ColumnJob(item.node, self._kind(item), [piece])

    def _mend(self, piece: Piece, error: BaseException) -> None:
        """Read the chunk again if it continues behind its stated end. Otherwise raise ``error``."""
        chunk = piece.chunk
        with located(row_group=chunk.row_group, column=chunk.name):
            if piece.pages is not None or not isinstance(error, CorruptFileError) or isinstance(error, ChecksumError):
                raise error
            longer = beyond_its_size(self.file, chunk, piece.data)
            if longer is None:
                raise error
            (piece.data,) = self.file.fetcher.fetch([(longer.start, longer.size)])
            piece.chunk = longer

    def _kind(self, item: Wanted) -> Kind:
        """The form that the leaf is decoded into."""
        fields = self.file.fields
        if fields.is_dictionary(item.node):
            return "dictionary"
        if item.tested:
            return "codes" if _by_codes(item) else "values"
        return "views" if fields.is_view(item.node) else "large" if fields.is_large(item.node) else "values"

    def _extent(self, read: ColumnRead, piece: Piece, facts: PieceFacts) -> tuple[int, int]:
        """The first and last byte that was read. The last one is known only where the chunk may end there."""
        chunk = piece.chunk
        if read.whole is not None:
            if facts.end < len(piece.data):
                check_end(self.file, chunk, piece.data, facts.end, facts.data_pages)
            return chunk.start, chunk.start + facts.end
        return read.extent

    def count(self, chunks: int, data_pages: int, dictionary_pages: int) -> None:
        """Add to the counts of decoded pages and chunks."""
        with self.account.lock:
            self.counts.data_pages += data_pages
            self.counts.dictionary_pages += dictionary_pages
            self.counts.column_chunks += chunks


def _by_codes(item: Wanted) -> bool:
    """Whether it pays to test each dictionary entry once and then look at codes only."""
    leaf = item.node.type
    if leaf.physical in (Physical.BOOLEAN, Physical.INT96) or leaf.kind == "null":
        return False
    # Decoding the codes afterwards costs as much as it saves, unless values take more room than codes.
    return item.count >= CODES_FROM and (item.by_entries or leaf.is_binary or leaf.kind == "decimal" or leaf.width > 8)


Step = list[Range]
"""Ranges that are fetched together."""


def _all_steps(windows: Sequence[tuple[list[Step], list[Step]]]) -> list[Step]:
    return [step for small, large in windows for step in (*small, *large)]
