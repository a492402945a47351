"""Few rows of a leaf outside of lists: where a level is a row, it is known beforehand which are wanted, and a page is
inflated and decoded no further than these need."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import encodings, kernels
from pyparq.encodings import BIT_PACKED, DICTIONARY_ENCODINGS, PLAIN, RLE, encoding_name, rle
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.index.row_ranges import RowRanges
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.account import Share
from pyparq.read.many import Opened, Together
from pyparq.read.open import Chunk
from pyparq.read.page_reads import Pages
from pyparq.read.pages import (
    DataHeader,
    Levels,
    PageBody,
    PageBuffers,
    StoredPage,
    check_page,
    inflate_page,
    read_levels,
    room_of,
    split_page,
)
from pyparq.schemas.types import Physical
from pyparq.schemas.values import BinaryValues, Values, from_plain_bytes

Int64Array = npt.NDArray[np.int64]
PAYS_FROM = 4
"""Rows that the pages hold per row that is wanted, from which on picking page by page is the quicker way."""

WINDOW = 1 << 20
"""Inflated bytes of the pages that lie open at once. They are worked on in steps, each for all of them: inflating one
leaves little in the caches of what the other steps need."""


MISSES = 3
"""Times that no page could be opened together, after which nobody tries any more."""


class WantedPage(NamedTuple):
    """A page and its rows that are wanted: those from ``start`` to ``stop`` among all that are."""

    page: StoredPage
    header: DataHeader
    first_row: int
    start: int
    stop: int


class PlannedPages(NamedTuple):
    """Pages of a plan, a number of each in every array."""

    stored: Sequence[memoryview]
    ordinals: Int64Array
    first_rows: Int64Array
    num_rows: Int64Array
    needed: Int64Array
    """Rows from the first to the last that is wanted."""
    edges: Int64Array
    """Where the wanted rows start among all that are, and the end of the last page's."""


@dataclass(slots=True)
class Picked:
    """What the wanted rows of some pages hold."""

    num_rows: int
    def_levels: Levels | None
    """``None`` where no value is null."""
    is_indices: bool
    """``values`` are int32 indices into the dictionary."""
    values: Values
    """Those that are present."""


class SparseRows:
    """Takes the pages of one chunk, and picks the wanted rows of them."""

    def __init__(self, chunk: Chunk, options: ReadOptions, rows: RowRanges, buffers: PageBuffers, share: Share) -> None:
        self._chunk = chunk
        self._leaf = chunk.node.type
        self._options = options
        self._wanted = rows.rows()
        self._items = memoryview(self._wanted)  # type: ignore[arg-type]
        """The same as Python numbers."""
        self._buffers = buffers
        self._share = share
        self._in_part = self._leaf.physical != Physical.BOOLEAN  # a byte may hold eight of them, or any number
        self._pages: list[WantedPage] = []
        self._size = 0
        self._together: Together | None = Together(chunk, options, self._buffers, share)
        self._misses = 0
        self.picked: list[Picked] = []

    def take_many(self, pages: Pages, stored: Sequence[memoryview], at: int, entries: int | None) -> int:
        """Pick the wanted rows of pages that a plan names, from page ``at`` on, up to the first that is in any way
        special; returns how many these are. Whatever there is to say of that one, :meth:`take` says.

        Each of them has such rows. Those with indices know of so many ``entries`` in their dictionary."""
        together = self._together
        if together is None:
            return 0
        self.settle(entries)
        if at:
            pages, stored = pages.at(slice(at, None)), stored[at:]
        ordinals, counts = pages.ordinals, pages.num_rows
        limits = np.append(pages.first_rows, pages.first_rows[-1] + counts[-1])
        edges, first_rows = self._wanted.searchsorted(limits), limits[:-1]
        firsts = self._wanted[edges[1:] - 1] - first_rows + 1 if self._in_part else counts
        planned, done = PlannedPages(stored, ordinals, first_rows, counts, firsts, edges), 0
        while done < len(pages):
            picked = self._pick_together(together, planned, done, entries)
            if picked is None:
                self._together = None
            if not picked:
                break
            done += picked
        self._misses += done == 0
        if self._misses == MISSES:
            self._together = None
        return done

    def _pick_together(self, together: Together, planned: PlannedPages, at: int, entries: int | None) -> int | None:
        """Pick from pages of a plan from page ``at`` on; of how many, or ``None`` where something is wrong with one."""
        stored, ordinals, first_rows, counts, firsts, edges = planned
        for needed in (firsts, counts):  # all of their values, where those of the rows did not lie where they seemed to
            self._buffers.clear()
            try:
                opened = together.planned(stored, at, ordinals, needed, counts, WINDOW)
                end = at + len(opened)
                self.picked += self._pick(opened, first_rows[at:end], edges[at : end + 1], entries)
            except (ParquetError, KernelError):
                continue
            return len(opened)
        return None

    def take(self, page: StoredPage, first_row: int, num_rows: int, entries: int | None) -> bool:
        """Whether any of the page's rows are wanted. They are picked when enough pages have come, and by
        :meth:`settle`."""
        start = bisect_left(self._items, first_row)
        stop = bisect_left(self._items, first_row + num_rows, start)
        if start == stop:
            return False
        header = check_page(page, self._chunk, self._options)
        self._pages.append(WantedPage(page, header, first_row, start, stop))
        self._size += page.header.uncompressed_page_size
        if self._size >= WINDOW:
            self.settle(entries)
        return True

    def settle(self, entries: int | None) -> None:
        """Pick the wanted rows of the pages that have been taken one by one."""
        pages, self._pages, self._size = self._pages, [], 0
        if not pages:
            return
        try:
            self.picked += self._open_and_pick(pages, entries, self._in_part)
        except (ParquetError, KernelError):  # as above
            for wanted in pages:
                with located(page=wanted.page.ordinal):
                    self.picked += self._open_and_pick([wanted], entries, False)

    def _open_and_pick(self, pages: list[WantedPage], entries: int | None, in_part: bool) -> list[Picked]:
        """``in_part``: inflate no more of a page than its rows seem to need."""
        chunk, buffers, inflated = self._chunk, self._buffers, []
        self._share.make_room(sum(room_of(wanted.page, chunk.node) for wanted in pages))
        buffers.clear()
        for page, header, first_row, _, stop in pages:
            first = self._items[stop - 1] - first_row + 1 if in_part else None
            inflated.append(inflate_page(page, header, chunk, buffers, first))
        opened = [self._opened(split_page(pages[k].header, chunk.node, found)) for k, found in enumerate(inflated)]
        first_rows = np.array([page.first_row for page in pages], np.int64)
        edges = np.array([page.start for page in pages] + [pages[-1].stop], np.int64)
        return self._pick(opened, first_rows, edges, entries)

    def _pick(
        self, opened: list[Opened], first_rows: Int64Array, edges: Int64Array, entries: int | None
    ) -> list[Picked]:
        """From pages one after another; the wanted rows of page ``k`` are those from ``edges[k]`` to
        ``edges[k + 1]``."""
        picked, begin = [], 0
        for encoding, group in groupby(opened, lambda page: page[3]):
            pages = list(group)
            end = begin + len(pages)
            starts, firsts, begin = edges[begin : end + 1], first_rows[begin:end], end
            try:
                if encoding in DICTIONARY_ENCODINGS:
                    picked.append(self._indices(pages, starts, firsts, entries))
                elif encoding == PLAIN and self._leaf.physical != Physical.BOOLEAN:
                    picked.append(self._plain(pages, starts, firsts))
                else:
                    picked += [
                        self._from_whole(encoding, page, starts[k : k + 2], firsts[k : k + 1])
                        for k, page in enumerate(pages)
                    ]
            except KernelError as error:
                raise CorruptFileError(f"bad {encoding_name(encoding)} data: {error}") from error
        return picked

    def _opened(self, body: PageBody) -> Opened:
        """As the kernels take it."""
        levels = body.def_levels
        if levels is not None and body.def_encoding == BIT_PACKED:
            try:
                found, _ = read_levels(levels, BIT_PACKED, body.num_levels, self._chunk.node.max_def, True)
            except KernelError as error:
                raise CorruptFileError(f"bad levels: {error}") from error
            assert found is not None
            levels = rle.encode_levels(found, self._chunk.node.max_def)
        return body.data, levels, body.num_levels, body.encoding, None

    def _indices(self, pages: list[Opened], starts: Int64Array, firsts: Int64Array, entries: int | None) -> Picked:
        if entries is None:
            raise CorruptFileError("the page is dictionary-encoded, but the column chunk has no dictionary page")
        indices, levels = kernels.pick_indices(pages, self._wanted, starts, firsts, self._chunk.node.max_def, entries)
        return Picked(int(starts[-1] - starts[0]), levels, True, indices)

    def _plain(self, pages: list[Opened], starts: Int64Array, firsts: Int64Array) -> Picked:
        maximum, leaf, count = self._chunk.node.max_def, self._leaf, int(starts[-1] - starts[0])
        if leaf.is_binary:
            offsets, data, levels = kernels.pick_plain_binary(pages, self._wanted, starts, firsts, maximum)
            return Picked(count, levels, False, BinaryValues(offsets, data))
        # As in plain.py; of a page inflated in part it cannot be seen that the values are not that wide.
        if leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY and any(len(p[0]) > p[2] * leaf.width for p in pages):
            raise CorruptFileError(f"the page has more bytes than its values of {leaf.width} bytes each can take")
        found, levels = kernels.pick_fixed(pages, self._wanted, starts, firsts, maximum, leaf.width)
        return Picked(count, levels, False, from_plain_bytes(found, len(found) // leaf.width, leaf))

    def _from_whole(self, encoding: int, page: Opened, starts: Int64Array, firsts: Int64Array) -> Picked:
        """From a page whose values have to be decoded all."""
        data, levels, count = page[:3]
        maximum = self._chunk.node.max_def
        present = count if levels is None else read_levels(levels, RLE, count, maximum, False)[1]
        values = encodings.decode(encoding, data, present, self._leaf)
        places, found = kernels.pick_places([page], self._wanted, starts, firsts, maximum)
        return Picked(int(starts[1] - starts[0]), found, False, pick(values, places))


def pick(values: Values, places: Int64Array) -> Values:
    """The values at ``places``."""
    if isinstance(values, BinaryValues):
        return BinaryValues(*kernels.take_binary(np.ascontiguousarray(values.offsets), values.data, places))
    picked: npt.NDArray[Any] = values[places]
    return picked
