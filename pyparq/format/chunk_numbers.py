"""The numbers of column chunks: what pruning, planning and reading need of each, without an object per chunk.

`kernels/src/column_chunks.hpp` reads them from stored ColumnChunks, many in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.kernels._native import bytes_at

__all__ = ["ALL_DICTIONARY", "HAS_STATISTICS", "ODD", "ChunkNumbers", "bytes_of_buffers", "stored_path"]

Int64Array = npt.NDArray[np.int64]

ODD, ALL_DICTIONARY, HAS_STATISTICS = 1, 2, 4
"""Bits of `ChunkNumbers.flags`. Odd: something is unusual or damaged, so that only the decoded chunk tells what to
make of it. All dictionary: every data page is certainly dictionary-encoded."""


class ChunkNumbers(NamedTuple):
    """Numbers of one column chunk, or an array of each: row groups x columns.

    Names are those of ColumnChunk, ColumnMetaData and Statistics. What is absent is 0 for places in the file and their
    lengths, -1 for anything else. Places of bounds are within the footer.
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
    min_value: Any
    min_value_size: Any
    max_value: Any
    max_value_size: Any
    min: Any
    min_size: Any
    max: Any
    max_size: Any


def bytes_of_buffers(buffers: list[Any], of: Int64Array, starts: Int64Array, sizes: Int64Array) -> list[bytes | None]:
    """Bytes of several footers, each by the place of the footer in ``buffers``, start and size; ``None`` for a start of
    -1."""
    return bytes_at(buffers, of, starts, sizes)


def stored_path(path: Sequence[str]) -> bytes:
    """A `path_in_schema` as the compact protocol stores it."""
    count = len(path)
    head = bytes((count << 4 | 8,)) if count < 15 else b"\xf8" + _varint(count)
    names = [name.encode() for name in path]
    return head + b"".join([_varint(len(name)) + name for name in names])


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
