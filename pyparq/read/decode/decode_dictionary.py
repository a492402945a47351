"""Converts a column of dictionary codes to a column of values.

A filter looks at the entries of a dictionary once, and then at codes. If the column is in the result too, its values
are made afterwards, for the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import binary_column
from pyparq.errors import LimitError
from pyparq.kernels.buffers import empty_results
from pyparq.read.decode.memory_account import Account, Portion

Codes = npt.NDArray[np.int32]

_MOST_OFFSET = (1 << 31) - 1


def spelled_out(column: Column, account: Account | Portion, most: int) -> Column:
    """The values, at most ``most`` bytes. ``account`` counts them before they are allocated."""
    entries = column.dictionary
    assert entries is not None
    codes = column.values()
    nulls = column.valid_mask()
    if nulls is not None:  # null slots use one additional entry, which is empty
        codes = np.where(nulls, codes, np.int32(entries.length))
    spell = _binary if entries.type.is_binary_like else _fixed
    values = spell(entries, codes, nulls is not None, lambda size: _count(size, account, most))
    values.validity, values.null_count = column.validity, column.null_count
    return values


def _fixed(entries: Column, codes: Codes, has_nulls: bool, count: Callable[[int], None]) -> Column:
    width = entries.type.byte_width
    count(width * len(codes))
    known = entries.buffers[0].reshape(-1).view(np.uint8)[: width * entries.length]
    if has_nulls:
        known = np.append(known, np.zeros(width, np.uint8))
    out = empty_results((width * len(codes),), np.uint8)
    kernels.gather_fixed(known, width, codes, out)
    return Column(entries.type, len(codes), None, (out.view(entries.buffers[0].dtype),), 0)


def _binary(entries: Column, codes: Codes, has_nulls: bool, count: Callable[[int], None]) -> Column:
    edges, data = entries.offsets(), entries.buffers[1]
    longest = int(np.diff(edges).max(initial=0))
    if has_nulls:
        edges = np.append(edges, edges[-1])
    wide = longest * len(codes) > _MOST_OFFSET
    count((len(codes) + 1) * (8 if wide else 4))
    offsets = empty_results((len(codes) + 1,), np.int64 if wide else np.int32)
    size = kernels.gather_binary_offsets(edges, codes, offsets, 0)
    count(size)
    out = empty_results((size,), np.uint8)
    kernels.gather_binary_bytes(edges, data, codes, out)
    return binary_column(entries.type, offsets, out)


def _count(size: int, account: Account | Portion, most: int) -> None:
    if size > most:
        raise LimitError(f"the decoded column chunk takes {size} bytes: more than limits.max_column ({most})")
    account.take(size)
