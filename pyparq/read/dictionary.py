"""Columns that stay dictionary-encoded, or become so again: indices grow page by page, the file's dictionary comes
along as it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq.columns import binary_column
from pyparq.encodings import dictionary, rle
from pyparq.read.account import Share
from pyparq.read.builder import Builder, EncodedPage, FixedBuilder, Valid, make_builder, slots_of
from pyparq.read.physical import fixed_buffer
from pyparq.schemas.types import DataType, LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues, Values, count_of, empty_values
from pyparq.table import Column

_INDEX = LeafType(Physical.INT32, "int", bits=32)
_NO_LIMIT = (1 << 63) - 1


class DictionaryBuilder:
    """Builds the indices of a leaf.

    A page that is not dictionary-encoded ends that: the values are spelled out then, and made a dictionary again at
    the end.
    """

    def __init__(self, leaf: LeafType, capacity: int, data_capacity: int, max_bytes: int, share: Share) -> None:
        self._leaf = leaf
        self._capacity = capacity
        self._data_capacity = data_capacity
        self._max_bytes = max_bytes
        self._share = share
        self._entries: Values | None = None
        self._indices = FixedBuilder(_INDEX, capacity, max_bytes, share)
        self._plain: Builder | None = None

    def append_indices(self, entries: Values, indices: npt.NDArray[np.int32], valid: Valid | None, count: int) -> None:
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

    def _spelled_out(self) -> Builder:
        if self._plain is None:
            self._plain = make_builder(self._leaf, self._capacity, self._data_capacity, self._max_bytes, self._share)
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
        if self._plain is not None:
            source: Builder = self._plain
            valid = source.valid()
            indices, entries = _encoded(self._plain.values(), valid, self._leaf)
        else:
            source, valid = self._indices, self._indices.valid()
            entries = empty_values(self._leaf) if self._entries is None else self._entries
            indices, entries = _without_duplicates(self._indices.values(), entries, self._leaf)
        values = _column_of(entries, self._leaf)
        validity = None if valid is None else np.packbits(valid, bitorder="little")
        type_ = DataType("i", (), values.type)
        return Column(type_, source.length, validity, (indices,), source.null_count, (), values)


def _column_of(entries: Values, leaf: LeafType) -> Column:
    type_ = arrow_type(leaf)
    if isinstance(entries, BinaryValues) and leaf.kind != "decimal":
        return binary_column(type_, entries.offsets, entries.data)
    return Column(type_, count_of(entries), None, (fixed_buffer(entries, leaf, None),), 0)


def _encoded(values: Values, valid: Valid | None, leaf: LeafType) -> tuple[npt.NDArray[np.int32], Values]:
    """Indices of all slots (0 under nulls) and the entries, of values that are spelled out."""
    if isinstance(values, BinaryValues):
        offsets = values.offsets.astype(np.int64, copy=False)
        if valid is not None:  # null slots are empty: leaving their edges out leaves the bytes
            offsets = np.append(offsets[:-1][valid.view(np.bool_)], offsets[-1])
        values = BinaryValues(offsets, values.data)
    elif valid is not None:
        values = values[valid.view(np.bool_)]
    packed, firsts = dictionary.build(values, leaf, _NO_LIMIT)
    found = dictionary.entries(values, firsts)
    if valid is None:
        return packed, found
    indices = np.zeros(len(valid), np.int32)
    indices[valid.view(np.bool_)] = packed
    return indices, found


def _without_duplicates(
    indices: npt.NDArray[np.int32], entries: Values, leaf: LeafType
) -> tuple[npt.NDArray[np.int32], Values]:
    """A file may list a value twice in its dictionary; readers of Arrow dictionaries (pandas) may not like that."""
    places, firsts = dictionary.build(entries, leaf, _NO_LIMIT)
    if len(firsts) == count_of(entries):
        return indices, entries
    return places[indices], dictionary.entries(entries, firsts)
