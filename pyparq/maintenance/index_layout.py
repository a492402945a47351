"""The layout of the new file: the ranges of the old file that are copied, and the pieces between and behind them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from pyparq.errors import UnsupportedError
from pyparq.format.lazy_footer import MAGIC
from pyparq.maintenance.footer_edit import Place
from pyparq.read.footers.open_file import OpenFile


@dataclass(slots=True)
class Layout:
    """The bytes ``[0, end)`` of a file with inserted pieces and omitted ranges. ``moved`` is known once all of them
    are."""

    end: int
    inserts: dict[int, list[Any]] = field(default_factory=dict)
    """What is put in before the old byte at a place."""
    cuts: list[tuple[int, int]] = field(default_factory=list)
    """Old ranges that are left out: from, to."""
    _places: list[int] = field(default_factory=list)
    _shifts: list[int] = field(default_factory=list)

    def insert(self, at: int, parts: list[Any]) -> None:
        """Insert pieces at a place, behind pieces that were inserted there before."""
        self.inserts.setdefault(at, []).extend(parts)

    def place_all(self) -> None:
        """All pieces and cuts are known."""
        self.cuts = sorted(self.cuts)
        changes: dict[int, int] = {}
        for at, parts in self.inserts.items():
            changes[at] = changes.get(at, 0) + sum(memoryview(part).nbytes for part in parts)
        for start, stop in self.cuts:
            changes[stop] = changes.get(stop, 0) - (stop - start)
        shift = 0
        for at in sorted(changes):
            shift += changes[at]
            self._places.append(at)
            self._shifts.append(shift)

    def moved(self, at: int) -> int:
        """The new place of what began at ``at``."""
        k = bisect_right(self._places, at)
        return at if k == 0 else at + self._shifts[k - 1]

    def pieces(self) -> Iterable[Place | list[Any]]:
        """The new file in order: ranges of the old file as (from, to), and lists of new bytes."""
        edges = sorted({0, self.end, *self.inserts, *(edge for cut in self.cuts for edge in cut)})
        starts = dict(self.cuts)
        at, gone_until = 0, 0
        for edge in edges:
            if edge > at:
                if at >= gone_until:
                    yield at, edge
                at = edge
            if edge in self.inserts:
                yield self.inserts[edge]
            gone_until = max(gone_until, starts.get(edge, 0))


def free_ranges(ranges: Iterable[tuple[int, int]], used: Iterable[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """The parts of ``ranges`` that lie within the data and overlap nothing in ``used``, joined where they touch."""
    taken = sorted(used)
    starts = [start for start, _ in taken]
    reach = list(accumulate((stop for _, stop in taken), max))
    free: list[tuple[int, int]] = []
    for start, stop in sorted(set(ranges)):
        if not 4 <= start < stop <= end:
            continue
        before = bisect_right(starts, stop - 1)
        if before and reach[before - 1] > start:
            continue
        if free and start < free[-1][1]:
            continue
        free.append((start, stop))
    return free


def group_ends(
    file: OpenFile, extents: Sequence[Sequence[tuple[int, int]]], places: Iterable[int], end_of_data: int
) -> list[int]:
    """A place behind the pages of each row group, from the extents of its column chunks.

    The place is in front of the next known part of the file (``places``: where something begins). The stated size of a
    chunk may be too small, and readers find its last pages all the same. Raises :class:`UnsupportedError` if pages of
    another row group lie around that place.
    """
    everything = sorted(extent for group in extents for extent in group)
    starts = [start for start, _ in everything]
    reach = list(accumulate((stop for _, stop in everything), max))
    known = sorted({*starts, *places, end_of_data})
    ends = []
    for k, group in enumerate(extents):
        stated = max((stop for _, stop in group), default=len(MAGIC))
        before = bisect_left(starts, stated)
        if before and reach[before - 1] > stated:
            raise UnsupportedError(
                "the row groups of the file overlap, so nothing can be put between them: "
                'use bloom_filter_layout="footer"',
                file=file.name, row_group=k,
            )  # fmt: skip
        ends.append(known[min(bisect_left(known, stated), len(known) - 1)])
    return ends
