"""Requests that a read of a remote file makes before it is certain that it needs them, so that it waits less often.

Each stage of pruning needs the result of the stage before it, so a local file is read stage by stage. A store takes
many milliseconds to answer a request, in which it could send megabytes. So the bytes that later steps will likely need
are requested together with those of the next step. A lookup of few rows then takes four steps:

1. the end of the file, with the footer;
2. ColumnIndexes, OffsetIndexes, Bloom filter blocks, dictionaries that are tested;
3. the pages of the filter columns;
4. the pages of the other columns.

An index that is asked for and waited for must save more than the wait costs. Where the answer can only save fewer bytes
than a store sends in that time, column chunks and pages are requested one step earlier (:class:`EarlyReads`), so that
it takes two or three steps. While row groups are decoded, the reads of the next ones are requested (:class:`Prefetch`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.format.schema_node import Node
from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import EarlyRequests, Fetcher
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan import page_indexes
from pyparq.read.plan.candidates import Selection
from pyparq.read.plan.page_reads import ColumnRead, plan_column
from pyparq.runtime import fork_safety

TRIP = 2_400_000
"""Bytes that a store sends while a client waits for one more answer: 30 ms, at 80 MB/s. So many may be read in vain to
save one wait."""
MOST = 8 << 20
"""Bytes that are requested in one step before they are known to be needed. A store sends about as many in the time that
one more request takes."""
GAP = 128 << 10
"""Maximum number of bytes between two ranges that become one request, in place of :data:`pyparq.io.fetch.REMOTE_GAP`.
These requests run at the same time. A larger gap would join the blocks of Bloom filters across whole filters."""
MOST_CHUNKS = 1000
"""Maximum number of column chunks whose metadata and page locations are looked at before they are known to be
needed."""
FEW_FILTERS = 4
"""Row groups whose chunks are requested beside their Bloom filters, at most: a filter rules out most row groups, and
each chunk is a request."""


def chosen(kinds: Iterable[Sequence[Range]]) -> list[Range]:
    """The ranges of several kinds that are requested in one step. The most useful kinds come first. A kind that is too
    large is left out, and requested later when it is needed."""
    wanted, left = list[Range](), MOST
    for ranges in kinds:
        size = sum(length for _, length in ranges)
        if size <= left:
            left -= size
            wanted += ranges
    return wanted


def hold(fetcher: Fetcher, ranges: Sequence[Range]) -> EarlyRequests:
    """Request the :func:`chosen` ranges in one step."""
    return fetcher.hold(ranges, GAP)


def chunks_to_locate(file: OpenFile, selections: Sequence[Selection], nodes: Sequence[Node]) -> list[Chunk]:
    """The chunks of leaves whose page locations are not known. Unreadable chunks are left out: they may not be
    needed."""
    found: list[Chunk] = []
    for selection in selections:
        for node in nodes:
            if selection.planned is None and node.column not in selection.locations:
                with suppress(ParquetError):
                    found.append(file.chunk(selection.row_group, node))
    return found


class SpareBytes:
    """What a scan may still read in vain. All files of a dataset's scan share it: they are asked at the same time, so
    that only the first waits count."""

    def __init__(self, most: int = TRIP) -> None:
        self._left = most
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take ``size`` bytes, unless fewer are left. Returns whether they may be read."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Rows of these bytes were needed: a wait was saved."""
        with self._lock:
            self._left += size


class EarlyReads:
    """Column chunks or pages that are requested without waiting, if they have few bytes."""

    def __init__(self, file: OpenFile, spare: SpareBytes | None) -> None:
        self._file = file
        self._spare = spare
        self._taken = 0
        self._ahead: EarlyRequests | None = None

    def _begin(self, groups: Sequence[Sequence[Range]]) -> bool:
        size = self._file.fetcher.missing_bytes(groups)
        if self._spare is None or not self._spare.take(size):
            return False
        self._taken = size
        self._ahead = self._file.fetcher.begin_groups(groups)
        return True

    def beside_indexes(
        self, selections: Sequence[Selection], tested: Sequence[Node], others: Sequence[Node],
        indexes: Sequence[Range], filters: int,
    ) -> None:  # fmt: skip
        """Request the chunks that are read if the indexes rule nothing out, if any of the ``indexes`` has to be waited
        for: all chunks, or those of the ``tested`` leaves. The bytes are kept until the scan ends.

        ``filters``: the number of Bloom filters among the indexes.
        """
        many = filters > FEW_FILTERS or len(selections) * (len(tested) + len(others)) > MOST_CHUNKS
        if many or not self._file.fetcher.missing_bytes([indexes]):
            return
        with suppress(ParquetError):  # the read meets the error again, if it needs the chunk
            for nodes in ([*tested, *others], tested):
                chunks = [[self._file.chunk(selection.row_group, node) for node in nodes] for selection in selections]
                if self._begin([[(chunk.start, chunk.size) for chunk in group] for group in chunks]):
                    return

    def beside_filter(self, selections: Sequence[Selection], nodes: Sequence[Node], with_pages: bool) -> None:
        """Request what the other columns, ``nodes``, will need while the filter columns are read: the pages of all rows
        that can match, ``with_pages`` and if they have few bytes, or else the places of pages."""
        if with_pages and self._spare is not None:
            with suppress(ParquetError):  # the read meets the error again, if it needs the column
                groups, left = list[list[Range]](), TRIP
                for selection in selections:
                    groups.append([place for read in self._reads(selection, nodes) for place in read.ranges])
                    left -= sum(size for _, size in groups[-1])
                    if left < 0:
                        break
                if left >= 0 and self._begin([*groups, self._places_of_pages(selections, nodes)]):
                    return
        if self._file.options.use_page_index:
            narrowed = [s for s in selections if s.narrows]
            self._ahead = self._file.fetcher.begin(self._places_of_pages(narrowed, nodes))

    def count_use(self, is_needed: bool) -> None:
        """Say whether any row is left, so that the bytes are needed."""
        if is_needed and self._spare is not None:
            self._spare.give_back(self._taken)
        self._taken = 0

    def release(self) -> None:
        """Release the bytes."""
        if self._ahead is not None:
            self._file.fetcher.forget(self._ahead)

    def _reads(self, selection: Selection, nodes: Sequence[Node]) -> Iterator[ColumnRead]:
        """The pages that hold rows which can match. Where pages are not known, the whole chunks."""
        for node in nodes:
            if selection.planned is not None:
                yield selection.planned[node.column].narrowed(selection.maybe)
            else:
                chunk = self._file.chunk(selection.row_group, node)
                yield plan_column(chunk, selection.maybe, selection.locations.get(node.column))[0]

    def _places_of_pages(self, selections: Sequence[Selection], nodes: Sequence[Node]) -> list[Range]:
        if not self._file.options.use_page_index:
            return []
        chunks = chunks_to_locate(self._file, selections, nodes)
        return [place for chunk in chunks for place in page_indexes.offset_index_range(chunk, self._file)]


Step = Sequence[Range]
"""Ranges that are fetched together: one large column chunk, or all small ones of a row group."""


class Prefetch:
    """The future reads of one scan, in the order in which they are needed. Several threads may use it.

    A read begins when the reads that began before it, and whose bytes were not taken yet, hold fewer bytes than the
    limit.
    """

    def __init__(self, fetcher: Fetcher, most: int) -> None:
        """``most``: maximum number of bytes that are requested before they are needed."""
        self._fetcher = fetcher
        self._most = most
        self._queue: deque[Step] = deque()
        self._later: Iterator[Step] = iter(())
        self._begun: dict[Range, EarlyRequests] = {}
        self._size = 0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._planning = False

    def follow(self, reads: Iterator[Step]) -> None:
        """Add ``reads`` to the queue. They are planned when they begin. An error while planning ends the queue; the
        code that needs those reads meets the error again."""
        self._later = reads
        self._begin()

    def expect(self, reads: Iterable[Step]) -> None:
        """Put these reads before all others: they are needed now."""
        with self._lock:
            new = [ranges for ranges in reads if ranges and ranges[0] not in self._begun]
            known = {ranges[0] for ranges in new}
            self._queue = deque([*new, *(ranges for ranges in self._queue if ranges[0] not in known)])
        self._begin()

    def fetch(self, reads: Sequence[Step]) -> list[list[memoryview]]:
        """The bytes of some reads, in one step. Bytes that were requested before are not requested again. Begins the
        next reads, and raises the errors of the requests."""
        with self._lock:
            firsts = {ranges[0] for ranges in reads if ranges}
            self._queue = deque(ranges for ranges in self._queue if ranges[0] not in firsts)
        try:
            return self._fetcher.fetch_groups(reads)
        finally:
            for first in firsts:
                self._forget(first)
            self._begin()

    def stop(self) -> None:
        """End: no more bytes are needed."""
        with self._lock:
            self._queue.clear()
            self._later = iter(())
            for first in list(self._begun):
                self._forget(first)

    def _forget(self, first: Range) -> None:
        with self._lock:
            ahead = self._begun.pop(first, None)
            if ahead is not None:
                self._size -= ahead.num_bytes
        if ahead is not None:
            self._fetcher.forget(ahead)

    def _begin(self) -> None:
        """Begin as many reads as the limit allows, and at least one."""
        while True:
            with self._lock:
                if self._size >= self._most:
                    return
                ranges = self._queue.popleft() if self._queue else None
                if ranges is not None:
                    if self._begun and self._size + sum(length for _, length in ranges) > self._most:
                        self._queue.appendleft(ranges)
                        return
                    if ranges[0] not in self._begun:
                        with suppress(ParquetError):  # outside the file: the code that needs these bytes raises it
                            self._begun[ranges[0]] = ahead = self._fetcher.begin(ranges)
                            self._size += ahead.num_bytes
                    continue
            if not self._plan_next():
                return

    def _plan_next(self) -> bool:
        """Plan and queue the next read. Returns whether there was one. Only one thread plans at a time."""
        with self._lock:
            if self._planning:
                return False
            self._planning = True
        try:
            ranges = next(self._later, None)
        except ParquetError:
            ranges = None
        finally:
            self._planning = False
        if ranges is None:
            return False
        with self._lock:
            if ranges:
                self._queue.append(ranges)
        return True
