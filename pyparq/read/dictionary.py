"""Columns that stay dictionary-encoded: indices grow page by page, the file's dictionary comes along as it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq.columns import binary_column
from pyparq.encodings import dictionary, rle
from pyparq.read.account import Share
from pyparq.read.builder import BinaryBuilder, EncodedPage, FixedBuilder, Valid, slots_of
from pyparq.schemas.types import DataType, LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues, Values, count_of
from pyparq.table import Column

_INDEX = LeafType(Physical.INT32, "int", bits=32)
_NO_LIMIT = (1 << 63) - 1


class DictionaryBuilder:
    """Builds the indices of a BYTE_ARRAY leaf.

    A page that is not dictionary-encoded ends that: the values are spelled out then, and made a dictionary again at
    the end.
    """

    def __init__(self, leaf: LeafType, capacity: int, data_capacity: int, max_bytes: int, share: Share) -> None:
        self._leaf = leaf
        self._capacity = capacity
        self._data_capacity = data_capacity
        self._max_bytes = max_bytes
        self._share = share
        self._entries: BinaryValues | None = None
        self._indices = FixedBuilder(_INDEX, capacity, max_bytes, share)
        self._plain: BinaryBuilder | None = None

    def append_indices(self, entries: Values, indices: npt.NDArray[np.int32], valid: Valid | None, count: int) -> None:
        assert isinstance(entries, BinaryValues)
        if self._plain is not None:
            self._plain.append_indices(entries, indices, valid, count)
            return
        self._entries = entries
        self._indices.append(indices, valid, count)

    def append(self, values: Values, valid: Valid | None, count: int) -> None:
        self._spelled_out().append(values, valid, count)

    def append_pages(self, entries: Values, pages: list[EncodedPage]) -> None:
        for page in pages:
            self._share.take(4 * page[1])
            self.append_indices(
                entries, rle.decode_indices(page[0], page[1], count_of(entries)), page[2], slots_of(page)
            )
            self._share.give(4 * page[1])

    def append_encoded(self, encoding: int, page: EncodedPage) -> Values:
        return self._spelled_out().append_encoded(encoding, page)

    def _spelled_out(self) -> BinaryBuilder:
        if self._plain is None:
            self._plain = BinaryBuilder(self._leaf, self._capacity, self._data_capacity, self._max_bytes, self._share)
            if self._indices.length:
                valid, slots = self._indices.valid(), self._indices.values()
                assert self._entries is not None
                packed = slots if valid is None else slots[valid.view(np.bool_)]
                self._plain.append_indices(self._entries, np.ascontiguousarray(packed), valid, len(slots))
        return self._plain

    @property
    def held(self) -> int:
        """Bytes of the buffers that indices and values go into."""
        return self._indices.held + (0 if self._plain is None else self._plain.held)

    def column(self) -> Column:
        """The slots as a dictionary column with int32 indices; every entry occurs once in its dictionary."""
        value_type = arrow_type(self._leaf)
        if self._plain is not None:
            source: FixedBuilder | BinaryBuilder = self._plain
            valid = source.valid()
            indices, entries = _encoded(self._plain.values(), valid, self._leaf)
        else:
            source, valid = self._indices, self._indices.valid()
            entries = self._entries or BinaryValues(np.zeros(1, np.int64), np.empty(0, np.uint8))
            indices, entries = _without_duplicates(self._indices.values(), entries, self._leaf)
        values = binary_column(value_type, entries.offsets, entries.data)
        validity = None if valid is None else np.packbits(valid, bitorder="little")
        type_ = DataType("i", (), values.type)
        return Column(type_, source.length, validity, (indices,), source.null_count, (), values)


def _encoded(values: BinaryValues, valid: Valid | None, leaf: LeafType) -> tuple[npt.NDArray[np.int32], BinaryValues]:
    """Indices of all slots (0 under nulls) and the entries, of values that are spelled out."""
    offsets = values.offsets.astype(np.int64, copy=False)
    if valid is not None:  # null slots are empty: leaving their edges out leaves the bytes
        offsets = np.append(offsets[:-1][valid.view(np.bool_)], offsets[-1])
    packed, firsts = dictionary.build(BinaryValues(offsets, values.data), leaf, _NO_LIMIT)
    found = dictionary.entries(BinaryValues(offsets, values.data), firsts)
    assert isinstance(found, BinaryValues)
    if valid is None:
        return packed, found
    indices = np.zeros(len(valid), np.int32)
    indices[valid.view(np.bool_)] = packed
    return indices, found


def _without_duplicates(
    indices: npt.NDArray[np.int32], entries: BinaryValues, leaf: LeafType
) -> tuple[npt.NDArray[np.int32], BinaryValues]:
    """A file may list a value twice in its dictionary; readers of Arrow dictionaries (pandas) may not like that."""
    places, firsts = dictionary.build(entries, leaf, _NO_LIMIT)
    if len(firsts) == len(entries.offsets) - 1:
        return indices, entries
    found = dictionary.entries(entries, firsts)
    assert isinstance(found, BinaryValues)
    return places[indices], found
