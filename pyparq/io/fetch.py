"""Fetches the ranges that stages declare from a source.

Near ranges become one request (across a stated gap). Ranges in the tail that was read first cost nothing. Every request
and byte is counted, for ``explain()``.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.errors import CorruptFileError
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.kept_files import KeptFile
from pyparq.runtime import fork_safety
from pyparq.runtime.messages import debug_logger
from pyparq.runtime.threads import Task, check_stopped, request_pool

LOCAL_GAP = 4 << 10
"""A page of the page cache: reading it costs less than one more call."""
REMOTE_GAP = 1 << 20
"""An object store takes milliseconds to answer. Up to about this size, reading the bytes between is cheaper."""
JOINED = 1 << 20
"""A range up to this size that ends in the tail is copied together from both, so that the end is not read twice."""
MAX_MERGED = 32 << 20
"""Merged ranges grow no larger, so that one request does not delay many readers."""

LOGGED = 20
"""Requests of one step that a debug line lists."""

FEW = 32
"""Ranges up to which lists are quicker than arrays."""

Int64Array: TypeAlias = npt.NDArray[np.int64]
_LARGEST = (1 << 63) - 1

_START = itemgetter(0)

NOWHERE = 1 << 63
"""Start of the tail before there is one: behind all files."""


class EarlyRequests:
    """Requests for merged ranges of one file, made in one step: by another thread or, with :meth:`at_once`, by this
    one."""

    def __init__(self, parts: Sequence[Range], declared: int) -> None:
        """``parts``: sorted, disjoint ranges. ``declared``: the ranges that were merged into them."""
        self.parts = list(parts)
        self.declared = declared
        self._starts = [start for start, _ in parts]
        self._task: Task[list[memoryview]] | None = None
        self._found: list[memoryview] = []

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.parts)

    def begin(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Start the requests on a thread. An error is raised when the bytes are taken."""
        if self.parts:
            self._task = Task(_unless_stopped, read, self.parts)
            self._task.start(request_pool)

    def at_once(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Make them now."""
        self._found = read(self.parts) if self.parts else []

    def drop(self) -> None:
        """Drop the requests: those that have not begun do not begin."""
        if self._task is not None:
            self._task.stopped = True

    def place(self, offset: int, end: int) -> int | None:
        """The number of the part that holds the bytes from ``offset`` to ``end``. ``None`` if no part does."""
        k = bisect_right(self._starts, offset) - 1
        return k if k >= 0 and end <= self._starts[k] + self.parts[k][1] else None

    def take(self, k: int, offset: int, length: int) -> memoryview:
        """The bytes of part ``k``. Waits for them."""
        found = self._found if self._task is None else self._task.result()
        return found[k][offset - self._starts[k] :][:length]


def _unless_stopped(read: Callable[[Sequence[Range]], list[memoryview]], parts: list[Range]) -> list[memoryview]:
    check_stopped()
    return read(parts)


Ready: TypeAlias = EarlyRequests | KeptFile
"""What has bytes of the file already."""


@dataclass(slots=True)
class IOCounts:
    """Counts of requests to the source, of bytes, and of the ranges that stages declared."""

    requests: int = 0
    bytes: int = 0
    ranges: int = 0


class Fetcher:
    """Reads ranges of one source, merged and counted. Safe to share between threads."""

    def __init__(self, source: Source, gap: int | None = None) -> None:
        self.source = source
        self.is_slow = not source.is_local
        """Whether a request takes so long that asking for more at once pays."""
        self.gap = gap if gap is not None else LOCAL_GAP if source.is_local else REMOTE_GAP
        self.counts = IOCounts()
        self._logger = debug_logger("io") if "logging" in sys.modules else None
        self.log: list[Range] | None = None
        """Where each request is noted, for a picture of them. ``None``: nowhere."""
        self._tail = memoryview(b"")
        self._tail_start = NOWHERE
        self.kept: KeptFile | None = None
        """What is kept of this version of the file when it is closed. Indexes are added to it."""
        self.is_reopened = False
        """Whether its footer was kept: more questions are likely to follow."""
        self._is_proven = [True]
        """Whether the source has answered for this version. Forks share it."""
        self._lock = threading.Lock()
        self.ahead: list[EarlyRequests] = []
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self.ahead = []  # requests of the parent do not arrive in a forked child

    def fork(self, gap: int | None = None) -> Fetcher:
        """A fetcher of the same source and the same tail, with its own counts. ``gap``: another gap, if given."""
        other = Fetcher(self.source, self.gap if gap is None else gap)
        other._tail, other._tail_start = self._tail, self._tail_start
        other.kept, other.is_reopened, other._is_proven = self.kept, self.is_reopened, self._is_proven
        return other

    def use(self, kept: KeptFile, is_proven: bool) -> None:
        """Take the end of the file, and its indexes, from what is kept of it. ``is_proven``: whether the source has
        said that the file still has this version. If not, the first request tells."""
        self.kept, self.is_reopened, self._is_proven[0] = kept, True, is_proven
        self._tail, self._tail_start = memoryview(kept.footer), kept.size - len(kept.footer)

    @property
    def is_proven(self) -> bool:
        """Whether the source has answered for the version of the file that is read."""
        return self._is_proven[0]

    def prove(self) -> None:
        """Raise :class:`ChangedFileError` if the file has another version than the one that was kept. Makes a request
        if there was none yet."""
        if not self._is_proven[0]:
            self._request([(0, 1)], 1)  # also a shorter file has it

    def read_tail(self, length: int) -> memoryview:
        """The last ``length`` bytes (all if the file is shorter). They are kept, so later ranges inside them are
        free."""
        if self._tail_start == NOWHERE:
            read_end = getattr(self.source, "read_end", None)
            if read_end is None:
                start = max(self.source.size - length, 0)
                self._tail = self._request([(start, self.source.size - start)], 1)[0]
            else:  # before this request, the size of a remote file is not known
                self._tail = read_end(length)
                self._count([(0, len(self._tail))], 1)
            self._tail_start = self.source.size - len(self._tail)
        start = max(self.source.size - length, 0)
        if start < self._tail_start:
            more = self._request([(start, self._tail_start - start)], 1)[0]
            self._tail, self._tail_start = memoryview(b"".join((more, self._tail))), start
        return self._tail[start - self._tail_start :]

    @property
    def tail(self) -> memoryview:
        """The end of the file, as far as it is known."""
        return self._tail

    def in_tail(self, start: int, stop: int) -> memoryview | None:
        """The bytes ``[start, stop)``, if they were read with the end. ``None`` for any others."""
        inside = self._tail_start <= start <= stop <= self._tail_start + len(self._tail)
        return self._tail[start - self._tail_start : stop - self._tail_start] if inside else None

    def note(self, requests: int, size: int) -> None:
        """Count requests that other code has made to the source: each for one range, with so many bytes in all."""
        with self._lock:
            self.counts.requests += requests
            self.counts.bytes += size
            self.counts.ranges += requests
        if self._logger is not None:
            self._logger.debug("%s: %d requests of %d bytes in all", self.source.name, requests, size)

    def fetch(self, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of every range, in the order given.

        Raises :class:`CorruptFileError` for a range outside the file.
        """
        return self.fetch_groups([ranges])[0]

    def fetch_indexes(self, ranges: Sequence[Range]) -> list[memoryview]:
        """As :meth:`fetch`, for what may be asked again when the file is opened the next time."""
        found = self.fetch(ranges)
        if self.kept is not None:
            self.kept.keep(zip(ranges, found, strict=True))
        return found

    def kept_part(self, offset: int, length: int) -> memoryview | None:
        """The bytes of a range that is kept. ``None`` for any other."""
        k = None if self.kept is None else self.kept.place(offset, offset + length)
        return None if self.kept is None or k is None else self.kept.take(k, offset, length)

    def keep_indexes(self, ranges: Sequence[Range]) -> None:
        """Keep ranges that are there already for the next time that the file is opened."""
        if self.kept is not None:
            self.fetch_indexes(ranges)

    def fetch_groups(self, groups: Sequence[Sequence[Range]]) -> list[list[memoryview]]:
        """As :meth:`fetch`, in one step for several groups. No request spans two groups.

        Row groups are such groups. Bloom filters may lie between them, and must neither change the requests of a full
        scan nor be read.
        """
        tail, size = self._tail_start, self.source.size
        found = []
        for ranges in groups:
            views = []
            for offset, length in ranges:
                if not tail <= offset <= offset + length <= size:
                    return self._fetched(groups)
                views.append(self._tail[offset - tail :][:length])
            found.append(views)
        return found

    def _fetched(self, groups: Sequence[Sequence[Range]]) -> list[list[memoryview]]:
        merged, declared, ready = self._missing(groups, self.gap)
        wanted: list[Range] = []
        for part in merged:
            wanted += part
        fetched, found, done = self._request(wanted, declared) if declared else [], [], 0
        for ranges, part in zip(groups, merged, strict=True):
            starts, data, views = list(map(_START, part)), fetched[done : done + len(part)], []
            for r in ranges:
                views.append(self._view(r, starts, data, ready.get(r)))
            found.append(views)
            done += len(part)
        return found

    def fetch_stretches(self, start: Int64Array, size: Int64Array) -> list[tuple[int, memoryview]]:
        """As :meth:`fetch_groups`, for ranges in arrays, one group per row. The ranges must not overlap or be empty.
        Returns the parts that were read, each with its offset. Every range lies within one part."""
        end, tail = start + size, self._tail_start
        # merge_rows has no largest size
        if self.ahead or start.size <= FEW or int((end.max(axis=1) - start.min(axis=1)).max()) > MAX_MERGED:
            groups = [list(zip(a, b, strict=True)) for a, b in zip(start.tolist(), size.tolist(), strict=True)]
            pairs = zip(groups, self.fetch_groups(groups), strict=True)
            return [(r[0], view) for ranges, part in pairs for r, view in zip(ranges, part, strict=True)]
        if int(start.min()) < 0 or int(size.min()) < 0 or int(end.max()) > self.source.size:
            self._check(list(zip(start.reshape(-1).tolist(), size.reshape(-1).tolist(), strict=True)))
        starts, ends = merge_rows(start, end, self.gap, min(tail, _LARGEST))
        before = start < min(tail, _LARGEST)
        across = [(int(start.flat[k]), int(size.flat[k])) for k in np.flatnonzero(before & (end > min(tail, _LARGEST)))]
        wanted = list(zip(starts.tolist(), (ends - starts).tolist(), strict=True))
        if across and across[0][1] <= JOINED:
            wanted = [(place, min(length, tail - place)) for place, length in wanted]
        views = self._request(wanted, int(np.count_nonzero(before))) if wanted else []
        found = [(place, view) for (place, _), view in zip(wanted, views, strict=True)]
        if across and across[0][1] <= JOINED:
            first, length = across[0]
            place, view = next((place, view) for place, view in found if place <= first < place + len(view))
            found.append((first, memoryview(b"".join((view[first - place :], self._tail[: first + length - tail])))))
        return [*found, (tail, self._tail)] if len(self._tail) else found

    def _missing(
        self, groups: Sequence[Sequence[Range]], gap: int
    ) -> tuple[list[list[Range]], int, dict[Range, tuple[Ready, int]]]:
        """The ranges to request for each group, the number of ranges that they serve, and the ranges that were
        requested before, or are kept, each with its place."""
        ready = self._found_ahead(groups) if self.ahead or self.kept is not None else {}
        tail, declared, merged = self._tail_start, 0, []
        for ranges in groups:
            self._check(ranges)
            absent = []
            for r in ranges:
                if r[0] < tail and r[1] > 0 and r not in ready:
                    absent.append(r)
            declared += len(absent)
            joined = merge(absent, gap) if absent else absent
            merged.append(joined if tail == NOWHERE else self._before_tail(joined, absent))
        return merged, declared, ready

    # ---- ahead of need

    def begin(self, ranges: Sequence[Range]) -> EarlyRequests:
        """Request ``ranges`` without waiting, unless they are there or requested already. A thread makes the requests.
        :meth:`fetch` finds the bytes until they are passed to :meth:`forget`."""
        return self.begin_groups([ranges])

    def begin_groups(self, groups: Sequence[Sequence[Range]]) -> EarlyRequests:
        """As :meth:`begin`, for several groups. No request spans two groups, unless they share bytes."""
        ahead = self._planned(groups, self.gap)
        self._count(ahead.parts, ahead.declared)
        ahead.begin(self._read)
        return ahead

    def hold(self, ranges: Sequence[Range], gap: int) -> EarlyRequests:
        """As :meth:`begin`, but wait. All ranges are one step. ``gap``: a smaller gap than that of other requests."""
        ahead = self._planned([ranges], min(gap, self.gap))
        try:
            ahead.at_once(lambda parts: self._request(parts, ahead.declared))
        except BaseException:
            self.forget(ahead)
            raise
        return ahead

    def forget(self, ahead: EarlyRequests) -> None:
        """Release bytes that are not needed any more."""
        ahead.drop()
        with self._lock:
            # A new list: other threads go through the old one without the lock.
            self.ahead = [other for other in self.ahead if other is not ahead]

    def forget_all(self) -> None:
        """Release all bytes that were requested ahead."""
        for ahead in self.ahead:
            self.forget(ahead)

    def missing_bytes(self, groups: Sequence[Sequence[Range]]) -> int:
        """The bytes that :meth:`begin_groups` would request."""
        return self._not_there(groups, self.gap).num_bytes

    def _planned(self, groups: Sequence[Sequence[Range]], gap: int) -> EarlyRequests:
        ahead = self._not_there(groups, gap)
        with self._lock:
            self.ahead = [*self.ahead, ahead]
        return ahead

    def _not_there(self, groups: Sequence[Sequence[Range]], gap: int) -> EarlyRequests:
        merged, declared, _ = self._missing(groups, gap)
        missing = [r for part in merged for r in part]
        if len(groups) > 1:
            missing.sort()
            if any(offset + size > following for (offset, size), (following, _) in pairwise(missing)):
                missing = merge(missing, 0)
        return EarlyRequests(missing, declared)

    def _found_ahead(self, groups: Sequence[Sequence[Range]]) -> dict[Range, tuple[Ready, int]]:
        """The ranges that were requested before, or are kept, each with its place."""
        found = dict[Range, tuple[Ready, int]]()
        known: list[Ready] = [*self.ahead] if self.kept is None else [*self.ahead, self.kept]
        for offset, length in (r for ranges in groups for r in ranges):
            end = min(offset + length, self._tail_start)
            for ahead in known:
                k = ahead.place(offset, end)
                if k is not None:
                    found[offset, length] = ahead, k
        return found

    def _before_tail(self, merged: list[Range], ranges: Sequence[Range]) -> list[Range]:
        """``merged`` without the part in the tail.

        A range that begins before the tail is joined from both. It is read whole if copying would cost more than
        reading its end again.
        """
        across = [length for offset, length in ranges if offset + length > self._tail_start]
        if not across or max(across) > JOINED:
            return merged
        return [(start, min(size, self._tail_start - start)) for start, size in merged]

    def _check(self, ranges: Sequence[Range]) -> None:
        size = self.source.size
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > size:
                raise CorruptFileError(
                    f"the range of {length} bytes at offset {offset} is outside the file of {size} bytes"
                )

    def _request(self, ranges: Sequence[Range], declared: int) -> list[memoryview]:
        self._count(ranges, declared)
        return self._read(ranges)

    def _read(self, ranges: Sequence[Range]) -> list[memoryview]:
        found = self.source.read_ranges(ranges)
        self._is_proven[0] = True
        return found

    def _count(self, ranges: Sequence[Range], declared: int) -> None:
        with self._lock:
            self.counts.requests += len(ranges)
            for _, length in ranges:
                self.counts.bytes += length
            self.counts.ranges += declared
            if self.log is not None:
                self.log += ranges
        if self._logger is not None and ranges:
            text = ", ".join(f"{length:,} bytes at {offset}" for offset, length in ranges[:LOGGED])
            more = f" and {len(ranges) - LOGGED:,} more" if len(ranges) > LOGGED else ""
            self._logger.debug("%s: %d requests: %s%s", self.source.name, len(ranges), text, more)

    def _view(
        self, wanted: Range, starts: list[int], fetched: list[memoryview], ready: tuple[Ready, int] | None
    ) -> memoryview:
        offset, length = wanted
        if length == 0:
            return memoryview(b"")
        if offset >= self._tail_start:
            return self._tail[offset - self._tail_start :][:length]
        if ready is not None:
            found = ready[0].take(ready[1], offset, length)
        else:
            k = bisect_right(starts, offset) - 1
            found = fetched[k][offset - starts[k] : offset - starts[k] + length]
        if len(found) < length:  # it continues in the tail, in which what was found may end
            tail = self._tail_start
            found = memoryview(b"".join((found[: tail - offset], self._tail[: offset + length - tail])))
        return found


def gap_of(source: Source, given: int | None) -> int:
    """The given gap, or the default of the source."""
    return given if given is not None else LOCAL_GAP if source.is_local else REMOTE_GAP


def merge_rows(start: Int64Array, end: Int64Array, gap: int, tail: int) -> tuple[Int64Array, Int64Array]:
    """Starts and ends of ranges that cover the given ones, for each row, joined where at most ``gap`` bytes lie
    between. Ranges that begin in the tail or behind it are left out."""
    order = np.argsort(start, axis=1, kind="stable")
    first = np.take_along_axis(start, order, axis=1)
    reach = np.maximum.accumulate(np.take_along_axis(end, order, axis=1), axis=1)
    begins = np.ones(first.shape, np.bool_)
    begins[:, 1:] = first[:, 1:] - reach[:, :-1] > gap
    kept = first < tail
    begins, first, reach = begins[kept], first[kept], reach[kept]
    places = np.flatnonzero(begins)
    last = np.append(places[1:], len(first))[: len(places)] - 1
    return first[places], reach[last]


def merge(ranges: Sequence[Range], gap: int, max_merged: int = MAX_MERGED) -> list[Range]:
    """Sorted ranges that cover ``ranges``, joined where at most ``gap`` bytes lie between."""
    merged: list[Range] = []
    for offset, length in sorted(ranges):
        if merged:
            start, size = merged[-1]
            end = max(start + size, offset + length)
            # Ranges that touch or overlap are always one: no byte is requested twice.
            if offset <= start + size or (offset - start - size <= gap and end - start <= max_merged):
                merged[-1] = (start, end - start)
                continue
        merged.append((offset, length))
    return merged
