"""Columns that were dictionary-encoded and are wanted as plain columns. The values are made when they are accessed.

The writer keeps most dictionaries, and needs only the codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import binary_column, pack_mask, take
from pyparq.format.types import DataType
from pyparq.kernels import tally_codes

Codes = npt.NDArray[np.int32]


class SpelledColumn(Column):
    """A column of a plain type whose values are entries of ``dictionary``.

    ``codes`` has the entry of each element (0 where ``mask`` is false, for nulls). ``buffers`` are made when they are
    accessed.
    """

    __slots__ = ("_entries", "_mask", "codes")

    codes: Codes  # type: ignore[misc]

    def __init__(self, type: DataType, dictionary: Column, codes: Codes, mask: npt.NDArray[np.bool_] | None) -> None:
        self.type = type
        self.length = len(codes)
        self.validity, self.null_count = pack_mask(mask)
        self.children = ()
        self.dictionary = self._entries = dictionary  # some take the former away, who want nothing kept
        self.offset = 0
        self.codes = codes
        self._mask = mask

    def __getattr__(self, name: str) -> Any:
        if name != "buffers":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        taken = take(self._entries, self.codes.astype(np.int64))
        if self.type.is_binary_like:
            taken = binary_column(self.type, taken.offsets(), taken.buffers[1])
        self.buffers = taken.buffers
        return self.buffers

    def __reduce__(self) -> tuple[Any, ...]:
        return Column, (
            self.type, self.length, self.validity, self.buffers, self.null_count, (), self.dictionary, 0
        )  # fmt: skip

    def part(self, start: int, stop: int) -> SpelledColumn:
        """Elements ``start`` to ``stop``."""
        mask = None if self._mask is None else self._mask[start:stop]
        return self._of(self.codes[start:stop], mask)

    def taken(self, rows: npt.NDArray[np.int64]) -> SpelledColumn:
        """The elements at ``rows``, which must exist."""
        mask = None if self._mask is None else self._mask[rows]
        return self._of(self.codes[rows], mask)

    def _of(self, codes: Codes, mask: npt.NDArray[np.bool_] | None) -> SpelledColumn:
        made = SpelledColumn(self.type, self._entries, codes, mask)
        made.dictionary = self.dictionary
        return made

    def text_bytes(self, start: int, stop: int) -> int:
        """Bytes of the strings of these elements."""
        lengths = np.diff(self._entries.offsets()).astype(np.int32)
        edges = np.array([0, stop - start], np.int64)
        return int(tally_codes(self.codes[start:stop], edges, len(lengths), lengths)[2][0])
