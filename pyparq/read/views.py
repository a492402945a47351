"""Columns of string views: the views of a dictionary's entries are made once, and values that repeat share bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq.columns import as_views, binary_column, concat
from pyparq.read.account import Share
from pyparq.read.builder import BinaryBuilder, EncodedPage, FixedBuilder, Valid
from pyparq.read.physical import pack_validity, to_column
from pyparq.schemas.types import DataType, LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues, Values
from pyparq.table import Column

_VIEW = LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "fixed", length=16)


class ViewBuilder:
    """Builds the views of a BYTE_ARRAY leaf whose pages, most probably, are all dictionary-encoded.

    From the first one on that is not, the values are spelled out, and get views at the end.
    """

    def __init__(self, leaf: LeafType, capacity: int, data_capacity: int, max_bytes: int, share: Share) -> None:
        self._leaf = leaf
        self._type = DataType("v" + arrow_type(leaf).format)
        self._terms = capacity, data_capacity, max_bytes, share
        self._share = share
        self._views = FixedBuilder(_VIEW, capacity, max_bytes, share)
        self._entries: BinaryValues | None = None
        self._entry_views: Column | None = None
        self._plain: BinaryBuilder | None = None

    def append_pages(self, entries: Values, pages: list[EncodedPage]) -> None:
        if self._plain is None:
            self._views.append_pages(self._views_of(entries), pages)
        else:
            self._plain.append_pages(entries, pages)

    def append_indices(self, entries: Values, indices: npt.NDArray[np.int32], valid: Valid | None, count: int) -> None:
        if self._plain is None:
            self._views.append_indices(self._views_of(entries), indices, valid, count)
        else:
            self._plain.append_indices(entries, indices, valid, count)

    def append(self, values: Values, valid: Valid | None, count: int) -> None:
        self._spelled_out().append(values, valid, count)

    def append_encoded(self, encoding: int, page: EncodedPage) -> Values:
        return self._spelled_out().append_encoded(encoding, page)

    def _spelled_out(self) -> BinaryBuilder:
        if self._plain is None:
            self._plain = BinaryBuilder(self._leaf, *self._terms)
        return self._plain

    def _views_of(self, entries: Values) -> npt.NDArray[np.uint8]:
        """One row for each entry of the chunk's dictionary."""
        assert isinstance(entries, BinaryValues)
        if self._entry_views is None or self._entries is not entries:
            self._entries = entries
            self._share.take(self._entries_size(entries))
            plain = binary_column(arrow_type(self._leaf), entries.offsets, entries.data)
            self._entry_views = as_views(plain, self._type)
        return self._entry_views.buffers[0].reshape(-1, 16)

    @staticmethod
    def _entries_size(entries: BinaryValues) -> int:
        return 16 * len(entries.offsets)

    @property
    def held(self) -> int:
        """Bytes of the views, those of the entries and of values that are spelled out among them."""
        spelled_out = 0 if self._plain is None else self._plain.held + 16 * self._plain.length
        return self._views.held + spelled_out + (0 if self._entries is None else self._entries_size(self._entries))

    def column(self) -> Column:
        """The slots as a column of views."""
        views, buffers = self._views, () if self._entry_views is None else self._entry_views.buffers[1:]
        found = Column(
            self._type, views.length, pack_validity(views.valid()), (views.values().reshape(-1), *buffers),
            views.null_count,
        )  # fmt: skip
        if self._plain is None and buffers:
            return found
        self._share.take(16 * self._spelled_out().length)
        rest = as_views(to_column(self._spelled_out(), self._leaf), self._type)
        return concat([found, rest]) if views.length else rest
