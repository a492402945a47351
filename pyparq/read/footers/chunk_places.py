"""Where the parts of a file begin, and which column chunks begin at the same place.

Sizes in the footer are hints, and sound writers are known to declare a few bytes too many. The start of a chunk is no
hint: nothing else tells where it is. So operations on a whole file end each chunk where the next one begins, and refuse
a chunk that begins where another does. Then no byte is read as part of two chunks, and a small file cannot cause
endless work.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pyparq.format.chunk_numbers import ChunkNumbers
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node
from pyparq.read.footers.chunks import LeafSet, check_numbers
from pyparq.read.footers.footer_read import MAGIC, TRAILER

Int64Array = npt.NDArray[np.int64]
Key = tuple[int, int]
"""(row group, leaf column)."""

SLAB = 1 << 16
"""Column chunks whose numbers are in memory at a time."""
KEPT = 16
"""Row groups whose places are kept."""


class Neighbours:
    """Where column chunks, indexes and Bloom filters begin, of one row group and the one behind it."""

    def __init__(self, footer: LazyFileMetaData, file_size: int) -> None:
        self._footer = footer
        self._end = file_size - TRAILER
        self._known: dict[int, list[int]] = {}

    def behind(self, row_group: int, place: int) -> int:
        """The first start behind ``place``, or the end of the file."""
        found = self._end
        for places in self._near(row_group):
            k = bisect_right(places, place)
            if k < len(places):
                found = min(found, places[k])
        return found

    def has(self, row_group: int, place: int) -> bool:
        """Whether something begins at ``place``."""
        for places in self._near(row_group):
            k = bisect_left(places, place)
            if k < len(places) and places[k] == place:
                return True
        return False

    def _near(self, row_group: int) -> list[list[int]]:
        return [self._places(k) for k in range(row_group, min(row_group + 2, self._footer.num_row_groups))]

    def _places(self, row_group: int) -> list[int]:
        known = self._known.get(row_group)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[row_group] = self._listed(row_group)
        return known

    def _listed(self, row_group: int) -> list[int]:
        found: list[int | None] = []
        for column in range(self._footer.num_columns(row_group)):
            raw = self._footer.column_chunk(row_group, column)
            found += [raw.offset_index_offset, raw.column_index_offset]
            if raw.meta_data is not None:
                meta = raw.meta_data
                starts = [o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset or 0) if o > 0]
                found += [min(starts, default=None), meta.bloom_filter_offset]
        return sorted({place for place in found if place is not None and len(MAGIC) <= place < self._end})


class ModulePlaces:
    """Which column chunk owns the index or Bloom filter at a place: the first one that asked for it.

    The owned parts are no longer than the file together, so no byte is read again and again.
    """

    def __init__(self, file_size: int) -> None:
        self._owners: dict[int, Key] = {}
        self._left = file_size

    def belongs(self, place: int, length: int | None, row_group: int, column: int) -> bool:
        """Whether these ``length`` bytes at ``place`` belong to that chunk. Bytes without an owner belong to it from
        now on."""
        key, size = (row_group, column), max(length or 0, 0)
        owner = self._owners.get(place)
        if owner is None and size <= self._left:
            owner = self._owners.setdefault(place, key)
            self._left -= size
        return owner == key


class ChunkPlaces:
    """Where all column chunks of a file begin."""

    def __init__(self, starts: Int64Array) -> None:
        """``starts``: int64, row groups x leaves. 0 for a chunk without pages, or whose start is not known."""
        self._num_leaves = starts.shape[1]
        flat = starts.reshape(-1)
        placed = np.flatnonzero(flat)
        self._chunks = placed[np.argsort(flat[placed], kind="stable")]
        self._starts = flat[self._chunks]
        self._shared = np.sort(self._chunks[1:][self._starts[1:] == self._starts[:-1]])

    def first_at(self, start: int) -> Key | None:
        """The first chunk, in the order of the footer, that begins at this place."""
        k = int(np.searchsorted(self._starts, start))
        if k == len(self._starts) or self._starts[k] != start:
            return None
        row_group, column = divmod(int(self._chunks[k]), self._num_leaves)
        return row_group, column

    def behind(self, place: int) -> int | None:
        """The place where the next chunk begins."""
        k = int(np.searchsorted(self._starts, place, side="right"))
        return int(self._starts[k]) if k < len(self._starts) else None

    def first_shared(self) -> Key | None:
        """The first chunk that begins at the same place as an earlier chunk."""
        if not len(self._shared):
            return None
        row_group, column = divmod(int(self._shared[0]), self._num_leaves)
        return row_group, column

    def is_shared(self, row_group: int, column: int) -> bool:
        """Whether a chunk begins at the same place as an earlier chunk of the footer."""
        chunk = row_group * self._num_leaves + column
        k = int(np.searchsorted(self._shared, chunk))
        return k < len(self._shared) and bool(self._shared[k] == chunk)


def places_of(
    footer: LazyFileMetaData, leaves: Sequence[Node], file_size: int, start_of: Callable[[int, Node], int] | None
) -> ChunkPlaces:
    """Where all column chunks of a file of ``file_size`` bytes begin. Does not report wrong places.

    ``start_of``: for an encrypted file, whose columns' metadata may be encrypted. It gives the start of one chunk, by
    row group and leaf; 0 for a chunk without pages, or one that cannot be opened.
    """
    chosen = LeafSet(leaves)
    groups, step = footer.num_row_groups, max(SLAB // max(len(chosen), 1), 1)
    starts = np.zeros((groups, len(chosen)), np.int64)
    if start_of is not None:
        for row_group in range(groups):
            starts[row_group] = [start_of(row_group, node) for node in chosen.nodes]
        return ChunkPlaces(starts)
    for first in range(0, groups if len(chosen) else 0, step):
        part = np.arange(first, min(first + step, groups))
        starts[first : first + step] = _starts(footer, part, chosen, file_size)
    return ChunkPlaces(starts)


def _starts(footer: LazyFileMetaData, groups: Int64Array, leaves: LeafSet, file_size: int) -> Int64Array:
    rows = footer.rows[groups]
    stack = footer.chunk_numbers(groups, leaves.columns, leaves.stored_paths, len(leaves))
    start, _, _ = check_numbers(stack, leaves, rows, file_size)
    numbers = ChunkNumbers(*stack)
    holds = (numbers.total_compressed_size != 0) | (numbers.num_values != 0) | (rows[:, None] != 0)
    inside = (start >= len(MAGIC)) & (start < file_size - TRAILER)
    return np.where(holds & inside, start, 0)
