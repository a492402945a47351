"""The numbers of column chunks that pruning, planning and reading need, without a Python object per chunk.

`kernels/src/thrift/column_chunks.hpp` reads them from stored ColumnChunks, many in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.kernels import bytes_at

__all__ = ["ALL_DICTIONARY", "HAS_STATISTICS", "ODD", "BoundPlaces", "ChunkNumbers", "bit_of", "stored_path"]

Int64Array = npt.NDArray[np.int64]

ODD, ALL_DICTIONARY, HAS_STATISTICS = 1, 2, 4
"""Bits of `ChunkNumbers.flags`. Odd: something is unusual or damaged, so the chunk must be decoded and looked at by
itself. All dictionary: every data page is certainly dictionary-encoded."""


class ChunkNumbers(NamedTuple):
    """The numbers of one column chunk, or an int64 array of each (row groups x columns).

    Names are those of ColumnChunk, ColumnMetaData and Statistics. A missing number is 0 for places in the file and
    their lengths, and -1 for anything else. Places of bounds are offsets in the footer.
    """

    flags: Any
    type: Any
    codec: Any
    num_values: Any
    total_uncompressed_size: Any
    total_compressed_size: Any
    data_page_offset: Any
    dictionary_page_offset: Any
    bloom_filter_offset: Any
    bloom_filter_length: Any
    offset_index_offset: Any
    offset_index_length: Any
    column_index_offset: Any
    column_index_length: Any
    null_count: Any
    nan_count: Any
    data_pages: Any
    """Number of data pages, where encoding_stats tell it."""
    encodings: Any
    """Those that the chunk lists, as a set: see `bit_of`."""
    page_types: Any
    """Those that encoding_stats tell of, as a set."""
    min_value: Any
    min_value_size: Any
    max_value: Any
    max_value_size: Any
    min: Any
    min_size: Any
    max: Any
    max_size: Any


def bit_of(number: int) -> int:
    """What stands for a small number in a set of them. All that are not small share a bit."""
    return 1 << (number if 0 <= number < 62 else 62)


class BoundPlaces(NamedTuple):
    """The bytes that the places of bounds refer to: one or several serialized footers."""

    footers: list[Any]
    of: Int64Array = np.empty(0, np.int64)
    """For each chunk, the number of its footer. Empty if there is one footer, or if the places contain the number."""
    shift: int = 0
    """If not 0, a place holds the number of its footer in the bits above this many."""

    def bytes_at(self, starts: Int64Array, sizes: Int64Array) -> list[bytes | None]:
        """The stored bytes. ``None`` for a start of -1."""
        if self.shift:
            within = np.where(starts < 0, -1, starts & ((1 << self.shift) - 1))
            return bytes_at(self.footers, starts >> self.shift, within, sizes)
        of = self.of if len(self.of) else np.zeros(len(starts), np.int64)
        return bytes_at(self.footers, of, starts, sizes)


def stored_path(path: Sequence[str]) -> bytes:
    """A `path_in_schema` as the compact protocol encodes it."""
    count = len(path)
    head = bytes((count << 4 | 8,)) if count < 15 else b"\xf8" + _varint(count)
    names = [name.encode() for name in path]
    return head + b"".join([_varint(len(name)) + name for name in names])


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
