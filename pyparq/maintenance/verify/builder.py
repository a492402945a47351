"""Grow one column from decoded pages: values spread over their slots, nulls left as gaps.

Each builder owns one output buffer sized up front; a page is decoded into its place, or copied there once. Slots are
rows for a flat column, list elements for a nested leaf. ``valid`` is a uint8 per slot (1 = present), ``None`` when all
are.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import LimitError
from pyparq.format import encodings
from pyparq.format.encodings import (  # fmt: skip
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    PLAIN,
    delta_byte_array,  # fmt: skip
    plain,  # fmt: skip
    rle,  # fmt: skip
)
from pyparq.format.encodings.dictionary import as_bytes
from pyparq.format.leaf_values import BinaryValues, Values, count_of, empty_values
from pyparq.format.types import LeafType
from pyparq.kernels.buffers import empty_results
from pyparq.read.decode.memory_account import Share

Valid = npt.NDArray[np.uint8]
EncodedPage = tuple[Any, int, Valid | None]
"""The value bytes of a page, how many values these are, and which slots are theirs."""
_INT32_MAX = 0x7FFFFFFF
_SPARE = 2 << 20

SURELY_FITS = 1 << 20
"""Bytes that a builder allocates without asking how many are left."""
AT_ONCE = 64 << 20
"""Bytes that a builder allocates before it has seen a page."""


class _Builder:
    """What all builders share: how far they are, and which slots are null."""

    def __init__(self, capacity: int, slot_bytes: int, max_bytes: int, share: Share) -> None:
        self.length = 0
        # A file may claim any number of rows: beyond some size, room is made for those that have come.
        at_once = AT_ONCE if capacity * slot_bytes < SURELY_FITS else min(AT_ONCE, share.left * 3 // 4)
        self.capacity = min(capacity, max(at_once // slot_bytes, 1))
        self._expected = capacity
        self.null_count = 0
        self._valid: Valid | None = None
        self._slot_bytes = slot_bytes
        self._max_bytes = max_bytes
        self._share = share

    def _reserve(self, count: int) -> None:
        needed = self.length + count
        if needed > self.capacity:
            self._check_size(needed * self._slot_bytes)
            twice = self.capacity * 2
            if needed <= self._expected:
                twice = min(twice, self._expected)
            self._grow(max(needed, twice) if twice * self._slot_bytes < self._share.left else needed)

    def _empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Memory for results, counted."""
        self._share.take(prod(shape) * np.dtype(dtype).itemsize)
        return empty_results(shape, dtype)

    def _enlarged(self, array: npt.NDArray[Any], capacity: int, used: int) -> npt.NDArray[Any]:
        larger = self._empty((capacity, *array.shape[1:]), array.dtype)
        larger[:used] = array[:used]
        self._share.give(array.nbytes)
        return larger

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise LimitError(
                f"the decoded column chunk takes {size} bytes: more than limits.max_column ({self._max_bytes})"
            )

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        if self._valid is not None:
            self._valid = self._enlarged(self._valid, capacity, self.length)

    def _mark(self, valid: Valid | None, count: int, present: int) -> None:
        """Note which of the next ``count`` slots are null, and step past them."""
        if valid is not None:
            if self._valid is None:
                self._share.take(self.capacity)
                self._valid = kernels.take_memory(self.capacity)
                self._valid[: self.length] = 1
            self._valid[self.length : self.length + count] = valid
            self.null_count += count - present
        elif self._valid is not None:
            self._valid[self.length : self.length + count] = 1
        self.length += count

    def _mark_pages(self, pages: list[EncodedPage]) -> None:
        """The same for the slots of all these pages."""
        if self._valid is None and all(page[2] is None for page in pages):
            self.length += sum(page[1] for page in pages)
            return
        for page in pages:
            self._mark(page[2], slots_of(page), page[1])

    def valid(self) -> Valid | None:
        """One byte per slot, ``None`` when nothing is null."""
        return None if self._valid is None or self.null_count == 0 else self._valid[: self.length]


class FixedBuilder(_Builder):
    """Fixed-width values, in their physical dtype."""

    def __init__(self, leaf: LeafType, capacity: int, max_bytes: int, share: Share) -> None:
        super().__init__(capacity, leaf.width, max_bytes, share)
        sample = empty_values(leaf)
        assert isinstance(sample, np.ndarray)
        self._leaf = leaf
        self._width = leaf.width
        share.take(self.capacity * leaf.width)
        self._out = empty_results((self.capacity, *sample.shape[1:]), sample.dtype)

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._out = self._enlarged(self._out, capacity, self.length)

    def _next(self, count: int) -> npt.NDArray[Any]:
        """The next ``count`` slots, to be filled."""
        self._reserve(count)
        return self._out[self.length : self.length + count]

    def append(self, values: Values, valid: Valid | None, count: int) -> None:
        assert isinstance(values, np.ndarray)
        out = self._next(count)
        if valid is None:
            out[:] = values
        else:
            kernels.scatter_fixed(as_bytes(np.ascontiguousarray(values)), self._width, valid, as_bytes(out))
        self._mark(valid, count, len(values))

    def append_encoded(self, encoding: int, page: EncodedPage) -> Values:
        """Decode a page's values; returns them (without the nulls; gone with the next page)."""
        data, present, valid = page
        if valid is not None:
            size = present * self._width
            self._share.take(size)
            values = encodings.decode(encoding, data, present, self._leaf)
            self.append(values, valid, len(valid))
            self._share.give(size)
            return values
        values = encodings.decode(encoding, data, present, self._leaf, self._next(present))
        self._mark(None, present, present)
        return values

    def append_pages(self, dictionary: Values, pages: list[EncodedPage]) -> None:
        """Decode pages of dictionary indices."""
        assert isinstance(dictionary, np.ndarray)
        out = self._next(sum(map(slots_of, pages)))
        kernels.gather_pages(as_bytes(dictionary), self._width, pages, as_bytes(out))
        self._mark_pages(pages)

    def append_indices(
        self, dictionary: Values, indices: npt.NDArray[np.int32], valid: Valid | None, count: int
    ) -> None:
        assert isinstance(dictionary, np.ndarray)
        if valid is None:
            kernels.gather_fixed(as_bytes(dictionary), self._width, indices, as_bytes(self._next(count)))
            self._mark(None, count, count)
            return
        size = len(indices) * self._width
        self._share.take(size)
        packed = np.empty((len(indices), *dictionary.shape[1:]), dictionary.dtype)
        kernels.gather_fixed(as_bytes(dictionary), self._width, indices, as_bytes(packed))
        self.append(packed, valid, count)
        self._share.give(size)

    @property
    def held(self) -> int:
        """Bytes of the buffer that values go into, with what it has to spare."""
        return self._out.nbytes

    def values(self) -> npt.NDArray[Any]:
        """All slots; null ones hold zeros."""
        return self._out[: self.length]


class BinaryBuilder(_Builder):
    """Byte strings: offsets and growing data. Offsets are int32 until the data passes 2 GiB, then int64."""

    def __init__(self, leaf: LeafType, capacity: int, data_capacity: int, max_bytes: int, share: Share) -> None:
        super().__init__(capacity, 4, max_bytes, share)
        self._leaf = leaf
        if data_capacity > SURELY_FITS:
            data_capacity = min(data_capacity, share.left // 4)
        share.take(4 * self.capacity + data_capacity + 4)
        self._offsets: npt.NDArray[Any] = empty_results((self.capacity + 1,), np.int32)
        self._offsets[0] = 0
        self._data = empty_results((data_capacity,), np.uint8)
        self._used = 0
        self._dictionary: BinaryValues | None = None
        self._short_dictionary: kernels.ShortDictionary | None = None

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._offsets = self._enlarged(self._offsets, capacity + 1, self.length + 1)

    def _reserve_data(self, count: int) -> None:
        if self._used + count > len(self._data):
            self._check_size(self._used + count)
            needed, twice = self._used + count, len(self._data) * 2
            room = max(needed, twice) if twice < self._share.left else needed
            self._data = self._enlarged(self._data, room, self._used)
        if self._used + count > _INT32_MAX and self._offsets.dtype == np.int32:
            wide = self._empty((len(self._offsets),), np.int64)
            wide[: self.length + 1] = self._offsets[: self.length + 1]
            self._share.give(self._offsets.nbytes)
            self._offsets = wide

    def append(self, values: Values, valid: Valid | None, count: int) -> None:
        assert isinstance(values, BinaryValues)
        self._reserve(count)
        first, last = int(values.offsets[0]), int(values.offsets[-1])
        self._reserve_data(last - first)
        self._data[self._used : self._used + last - first] = values.data[first:last]
        self._place(values.offsets, valid, count)
        self._used += last - first

    def append_encoded(self, encoding: int, page: EncodedPage) -> BinaryValues:
        """Decode a page's values; returns them (without the nulls; gone with the next page)."""
        data, present, _ = page
        if encoding == PLAIN:
            plain.check_size(data, present)
            return self._decode_in_place(kernels.plain_binary_decode, page)
        if encoding == DELTA_LENGTH_BYTE_ARRAY:
            return self._decode_in_place(kernels.delta_length_decode, page)
        if encoding == DELTA_BYTE_ARRAY:  # a few bytes may stand for any number
            self._reserve(slots_of(page))
            values = self._shared_prefixes(data, present)
        else:
            values = encodings.decode(encoding, data, present, self._leaf)
        assert isinstance(values, BinaryValues)
        size = values.data.nbytes + values.offsets.nbytes
        self._share.take(size)
        self.append(values, page[2], slots_of(page))
        self._share.give(size)
        return values

    def _shared_prefixes(self, data: Any, count: int) -> Values:
        """Decode a page of DELTA_BYTE_ARRAY, in no more memory than is left."""
        most = min(max(self._share.left - 8 * count, 0), delta_byte_array.MAX_PAGE_BYTES)
        try:
            return delta_byte_array.decode(data, count, self._leaf, most=most)
        except kernels.KernelError as error:
            if most < delta_byte_array.MAX_PAGE_BYTES and "bytes allowed" in str(error):
                raise self._share.refusal(most) from error
            raise

    def _decode_in_place(self, kernel: Any, page: EncodedPage) -> BinaryValues:
        """By a kernel that writes offsets from a base up, and bytes, fewer than the page has."""
        data, present, valid = page
        count = slots_of(page)
        self._reserve(count)
        self._reserve_data(len(data))
        if valid is None:
            offsets = self._offsets[self.length : self.length + count + 1]
        else:
            offsets = np.empty(present + 1, self._offsets.dtype)
        kernel(data, present, offsets, self._data[self._used : self._used + len(data)], self._used)
        if valid is None:
            self._mark(None, count, present)
        else:
            self._place(offsets, valid, count)
        self._used = int(offsets[-1])
        return BinaryValues(offsets, self._data)

    def append_pages(self, dictionary: Values, pages: list[EncodedPage]) -> None:
        """Decode pages of dictionary indices."""
        assert isinstance(dictionary, BinaryValues)
        short = self._short(dictionary, sum(page[1] for page in pages))
        if short is None:
            self._append_long(dictionary, pages)
            return
        # Room is made for values of the greatest length: for few enough of them that most of it is there already.
        first = 0
        while first < len(pages):
            after, values = first + 1, pages[first][1]
            while after < len(pages) and short.room(values + pages[after][1]) <= _SPARE:
                values += pages[after][1]
                after += 1
            self._append_short(short, dictionary, pages[first:after], values)
            first = after

    def _append_long(self, dictionary: BinaryValues, pages: list[EncodedPage]) -> None:
        for data, present, valid in pages:
            self._share.take(4 * present)
            indices = rle.decode_indices(data, present, count_of(dictionary))
            self.append_indices(dictionary, indices, valid, present if valid is None else len(valid))
            self._share.give(4 * present)

    def _append_short(
        self, short: kernels.ShortDictionary, dictionary: BinaryValues, pages: list[EncodedPage], values: int
    ) -> None:
        room, count = short.room(values), sum(map(slots_of, pages))
        if self._used + room > _INT32_MAX:
            self._append_long(dictionary, pages)
            return
        self._reserve(count)
        self._reserve_data(room)
        offsets = self._offsets[self.length : self.length + count + 1]
        self._used += short.gather_pages(pages, offsets, self._used, self._data[self._used :])
        self._mark_pages(pages)

    def append_indices(
        self, dictionary: Values, indices: npt.NDArray[np.int32], valid: Valid | None, count: int
    ) -> None:
        assert isinstance(dictionary, BinaryValues)
        self._reserve(count)
        short = self._short(dictionary, len(indices))
        if short is not None and self._used + short.room(len(indices)) <= _INT32_MAX:
            self._reserve_data(short.room(len(indices)))
            out_data = self._data[self._used :]
            if valid is None:
                out = self._offsets[self.length : self.length + count + 1]
                total = short.gather(indices, out, self._used, out_data)
                self._mark(None, count, count)
            else:
                packed = np.empty(len(indices) + 1, np.int32)
                total = short.gather(indices, packed, 0, out_data)
                self._place(packed, valid, count)
        else:
            size = 8 * len(indices)
            self._share.take(size)
            packed = np.empty(len(indices) + 1, np.int64)
            total = kernels.gather_binary_offsets(dictionary.offsets, indices, packed, 0)
            self._reserve_data(total)
            self._place(packed, valid, count)
            out_data = self._data[self._used : self._used + total]
            kernels.gather_binary_bytes(dictionary.offsets, dictionary.data, indices, out_data)
            self._share.give(size)
        self._used += total

    def _short(self, dictionary: BinaryValues, count: int) -> kernels.ShortDictionary | None:
        """The dictionary laid out for the quicker kernel, where its entries are short; made once per dictionary, and
        not at all for a ``count`` of values that does not pay for it."""
        if self._dictionary is not dictionary:
            if count < len(dictionary.offsets):
                return None
            lengths = np.diff(dictionary.offsets)
            fits = len(lengths) > 0 and int(lengths.max()) <= kernels.SHORT_DICTIONARY_LONGEST
            self._dictionary = dictionary
            self._short_dictionary = kernels.ShortDictionary(dictionary.offsets, dictionary.data) if fits else None
        return self._short_dictionary

    def _place(self, packed: npt.NDArray[Any], valid: Valid | None, count: int) -> None:
        """Offsets of the next ``count`` slots from offsets of the present values."""
        out = self._offsets[self.length : self.length + count + 1]
        kernels.spread_offsets(packed, valid, self._used - int(packed[0]), out)
        self._mark(valid, count, len(packed) - 1)

    @property
    def held(self) -> int:
        """Bytes of the buffers that values go into, with what they have to spare."""
        return self._offsets.nbytes + self._data.nbytes

    def values(self) -> BinaryValues:
        """All slots; null ones are empty."""
        return BinaryValues(self._offsets[: self.length + 1], self._data[: self._used])


Builder = FixedBuilder | BinaryBuilder


def make_builder(leaf: LeafType, capacity: int, data_capacity: int, max_bytes: int, share: Share) -> Builder:
    """A builder for a leaf; ``data_capacity`` guesses the bytes of all byte strings.

    It raises :class:`LimitError` rather than hold more than ``max_bytes``, or than can be taken for ``share``.
    """
    if leaf.is_binary:
        # Room to spare costs nothing until it is touched, and saves a copy when the guess is short by a page.
        return BinaryBuilder(leaf, capacity, data_capacity + min(data_capacity, _SPARE), max_bytes, share)
    return FixedBuilder(leaf, capacity, max_bytes, share)


def slots_of(page: EncodedPage) -> int:
    """Slots of a page, null ones included."""
    return page[1] if page[2] is None else len(page[2])
