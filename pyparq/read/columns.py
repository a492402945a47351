"""Execute column reads of one or several row groups: fetch, decode, keep the wanted rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyparq import forks
from pyparq.errors import ChecksumError, CorruptFileError, located
from pyparq.index.row_mask import RowMask, Rows
from pyparq.index.row_ranges import RowRanges
from pyparq.io.source import Range
from pyparq.read.account import Account
from pyparq.read.decode import ChunkDecoder, Kind
from pyparq.read.ends import beyond_its_size, check_end
from pyparq.read.extents import Extents
from pyparq.read.indexes import read_locations
from pyparq.read.leaf import DecodedLeaf
from pyparq.read.open import Chunk, OpenFile
from pyparq.read.page_reads import ColumnRead, Needed, PageRead, plan_column
from pyparq.read.pages import DICTIONARY_PAGE, PageBuffers, PageWalk, StoredPage, read_header
from pyparq.read.prefetch import Prefetch
from pyparq.read.row_groups import Selection
from pyparq.read.sparse import PAYS_FROM
from pyparq.schemas.tree import Node
from pyparq.threads import check_stopped, cpu_count, map_tasks

THREADS_FROM = 2 << 20
"""From this many stored bytes on, decoding is worth handing to threads."""
TASK_FROM = 64 << 10
"""Chunks of fewer stored bytes do not count for that: they are mostly Python, which one thread runs at a time."""
TOGETHER = 1 << 20
"""Column reads below this many bytes are fetched in one step with their neighbours and decoded without threads."""

MASK_PAYS_FROM = 16
"""The same as :data:`PAYS_FROM` for rows here and there, which a pass over all of them keeps at little cost."""

PREFETCHED = 8
"""At most this part of the memory that a read may hold is taken by bytes that are requested before they are needed."""


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
    mask: RowMask | None = None
    """Which of ``rows`` are wanted, where these are no more than ranges around them. The leaf holds no others then."""

    @classmethod
    def at(cls, selection: Selection, node: Node, rows: Rows) -> Wanted:
        """Rows in either form."""
        if isinstance(rows, RowMask):
            return cls(selection, node, rows.cover, mask=rows)
        return cls(selection, node, rows)

    @property
    def count(self) -> int:
        """How many rows are wanted."""
        return self.rows.count if self.mask is None else self.mask.count


class ColumnReader:
    """Reads columns of one file and counts what it decodes."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.account = Account(file.options.limits)
        """What this read has decoded and alive."""
        self._extents = Extents()
        self.options = file.options
        self.counts = ScanCounts()
        self.prefetch: Prefetch | None = None
        """What is to be read next, of a remote file."""
        most = min(self.options.prefetch_bytes, self.account.most // PREFETCHED)
        if most > 0 and self.options.use_threads and not file.fetcher.source.is_local:
            self.prefetch = Prefetch(file.fetcher, most)
        self._buffers: list[PageBuffers] = []
        """Those that no chunk needs now: the next finds them in the caches."""
        self._after_fork()
        forks.watch(self)

    def forget_buffers(self) -> None:
        """Give up the memory that pages are opened in: whoever keeps the reader does not need it."""
        with self._lock:
            self._buffers.clear()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

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

    def locate(self, wanted: Sequence[Wanted]) -> None:
        """Fetch the OffsetIndexes of these columns, of those that are not known, in one step."""
        missing = self.not_located(wanted)
        if not missing:
            return
        found = read_locations(self.file, [self.file.chunk(w.selection.row_group, w.node) for w in missing])
        for w in missing:
            w.selection.locations[w.node.column] = found.get((w.selection.row_group, w.node.column))

    def not_located(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Those whose OffsetIndex is not known, and would be of use."""
        if not self.options.use_page_index:
            return []
        return [w for w in wanted if w.selection.planned is None and w.node.column not in w.selection.locations]

    def read(self, wanted: Sequence[Wanted]) -> list[DecodedLeaf]:
        """Decode all that is wanted, in order; large chunks on threads of their own."""
        reads = self.plan(wanted)
        sizes = [read.num_bytes for read in reads]
        threads = self.options.use_threads and sum(n for n in sizes if n >= TASK_FROM) >= THREADS_FROM
        small = self._small(reads, sizes, threads)
        prefetch = self.prefetch
        if prefetch is not None:
            prefetch.expect(_steps(reads, small)[len(small) :])  # the small ones follow at once
        fetched = self._fetch_small(reads, small)

        def run(k: int) -> DecodedLeaf:
            read, item = reads[k], wanted[k]
            with located(file=self.file.name, row_group=read.row_group, column=read.name):
                data = fetched.get(k) or self._fetch([read.ranges])[0]
                return self._decode(item, read, data, alone)

        alone = threads and len(reads) == 1
        # The largest first: a long task that starts last would leave the other threads idle. But remote ones in the
        # order in which they are asked for.
        order = list(range(len(reads)))
        if threads and prefetch is None:
            order.sort(key=lambda k: -sizes[k])
        done = dict(zip(order, map_tasks(run, order, threads, in_order=prefetch is not None), strict=True))
        return [done[k] for k in range(len(reads))]

    def steps(self, wanted: Sequence[Wanted]) -> list[list[Range]]:
        """The ranges that :meth:`read` is going to fetch, each list of them in one step."""
        reads = self.plan(wanted)
        return _steps(reads, self._small(reads, [read.num_bytes for read in reads], threads=True))

    def _fetch(self, steps: Sequence[Sequence[Range]]) -> list[list[memoryview]]:
        return (self.file.fetcher.fetch_groups if self.prefetch is None else self.prefetch.fetch)(steps)

    def _small(self, reads: Sequence[ColumnRead], sizes: Sequence[int], threads: bool) -> dict[int, list[int]]:
        """The places in ``reads`` of small ones, by row group: these are fetched in one step, merged within their row
        groups."""
        groups: dict[int, list[int]] = {}
        # Single pages of a local file hardly merge with other columns': each thread may as well read its own.
        apart = threads and self.file.fetcher.source.is_local
        for k, (read, size) in enumerate(zip(reads, sizes, strict=True)):
            if size < TOGETHER and not (apart and read.whole is None and size >= TASK_FROM):
                groups.setdefault(read.row_group, []).append(k)
        return groups

    def _fetch_small(self, reads: Sequence[ColumnRead], small: dict[int, list[int]]) -> dict[int, list[memoryview]]:
        """The bytes of the small reads by their place in ``reads``."""
        found = self._fetch([[r for k in part for r in reads[k].ranges] for part in small.values()])
        fetched: dict[int, list[memoryview]] = {}
        for part, data in zip(small.values(), found, strict=True):
            views = iter(data)
            fetched |= {k: [next(views) for _ in reads[k].ranges] for k in part}
        return fetched

    def _decode(self, item: Wanted, read: ColumnRead, data: list[memoryview], alone: bool) -> DecodedLeaf:
        chunk = self.file.chunk(read.row_group, item.node)
        try:
            return self._decode_as(chunk, item, read, data, alone)
        except ChecksumError:
            raise
        except CorruptFileError:
            longer = beyond_its_size(self.file, chunk, data[0]) if read.whole is not None else None
            if longer is None:
                raise
        data = self.file.fetcher.fetch([(longer.start, longer.size)])
        return self._decode_as(longer, item, read, data, alone)

    def _decode_as(
        self, chunk: Chunk, item: Wanted, read: ColumnRead, data: list[memoryview], alone: bool
    ) -> DecodedLeaf:
        sparse = item.count * (PAYS_FROM if item.mask is None else MASK_PAYS_FROM) <= read.num_rows
        only = None if not sparse else item.rows if item.mask is None else item.mask.ranges
        rows = read.row_ranges(chunk.num_rows) if only is None else only
        known = item.selection.dictionaries.get(read.column)
        kind = self._kind(item, chunk, sparse)
        try:
            buffers = self._buffers.pop()
        except IndexError:
            buffers = PageBuffers()
        decoder = ChunkDecoder(
            chunk, self.options, _slots_in(chunk, rows.count), known, kind, only, buffers, self.account
        )
        try:
            if read.whole is not None:
                start, end = chunk.start, chunk.start + self._feed_whole(decoder, data[0], alone)
            else:
                start, end = self._feed_pages(decoder, read, data)
            leaf = decoder.finish(rows)
            if item.mask is not None:
                leaf = self._masked(leaf, item.mask)
        except BaseException:
            decoder.release()
            raise
        if decoder.dictionary is not None:
            item.selection.dictionaries.setdefault(read.column, decoder.dictionary)
        with self._lock:
            self._extents.add((read.row_group, read.column), start, end)
            self.counts.data_pages += decoder.pages_decoded
            self.counts.dictionary_pages += decoder.dictionary_decoded
            self.counts.column_chunks += 1
        self._buffers.append(buffers)
        return leaf

    def _masked(self, leaf: DecodedLeaf, mask: RowMask) -> DecodedLeaf:
        """The leaf at the rows of a mask; what is left out is no longer counted."""
        if leaf.rows.count == mask.count:
            return replace(leaf, rows=mask)
        before = leaf.num_bytes
        room = before * mask.count // max(leaf.rows.count, 1) + 8 * mask.count
        self.account.take(room)
        kept = leaf.select(mask)
        self.account.give(room + before - kept.num_bytes)
        return kept

    def _kind(self, item: Wanted, chunk: Chunk, sparse: bool) -> Kind:
        """What the leaf is to come out as. Few rows would keep all entries of a dictionary of views alive."""
        fields = self.file.fields
        if fields.is_dictionary(item.node):
            return "dictionary"
        if sparse or item.tested or not fields.is_view(item.node) or not chunk.is_all_dictionary:
            return "values"
        return "views"

    def _feed_whole(self, decoder: ChunkDecoder, data: memoryview, alone: bool) -> int:
        """Decode all pages of a chunk; where they end in ``data``."""
        walk = PageWalk(data, decoder.chunk, self.options)
        if alone and cpu_count() > 1:
            decoder.feed(walk, ahead=True)
        else:
            decoder.feed_chunk(walk)
        decoder.check_end()
        if walk.at < len(data):
            check_end(self.file, walk)
        return walk.at

    def _feed_pages(self, decoder: ChunkDecoder, read: ColumnRead, data: list[memoryview]) -> Range:
        """Decode the pages of a plan; from where to where they lie, with the dictionary that is read."""
        stored, ranges = iter(data), read.ranges
        extent = (ranges[0][0], sum(ranges[-1])) if ranges else (0, 0)
        if read.dictionary is not None:
            header, body, _ = read_header(next(stored), 0, decoder.chunk, self.options, "dictionary")
            if header.type == DICTIONARY_PAGE:
                decoder.feed([StoredPage(header, body, "dictionary")])
        parts, listed, k = list(stored), list[PageRead](), 0
        while read.pages is not None and k < len(parts):
            check_stopped()
            k += decoder.feed_many(read.pages, parts, k)
            if k == len(parts):
                break
            listed = listed or list(read.pages)
            page = listed[k]
            with located(row_group=read.row_group, column=read.name, page=page.ordinal):
                decoder.row = page.first_row
                header, body, _ = read_header(parts[k], 0, decoder.chunk, self.options, page.ordinal)
                decoder.feed_page(StoredPage(header, body, page.ordinal), page.num_rows)
            k += 1
        return extent


def _steps(reads: Sequence[ColumnRead], small: dict[int, list[int]]) -> list[list[Range]]:
    """The ranges of ``reads`` as they are fetched: first the small ones of each row group, then the others."""
    together = {k for part in small.values() for k in part}
    steps = [[r for k in part for r in reads[k].ranges] for part in small.values()]
    return steps + [read.ranges for k, read in enumerate(reads) if k not in together]


def _slots_in(chunk: Chunk, num_rows: int) -> int:
    """How many values, nulls included, to expect in some rows of a chunk: a guess where lists are of any length."""
    if chunk.node.max_rep == 0 or chunk.num_rows == 0:
        return num_rows
    return int(-(-chunk.meta.num_values * num_rows // chunk.num_rows))
