"""Rows of a decoded column by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import UnsupportedError
from pyparq.table import Column

Positions = npt.NDArray[np.int64]


def take(column: Column, positions: Positions) -> Column:
    """The elements at ``positions`` (int64, all within the column), in that order."""
    count = len(positions)
    validity, nulls = None, 0
    mask = column.valid_mask()
    if mask is not None:
        kept = mask[positions]
        nulls = count - int(np.count_nonzero(kept))
        validity = np.packbits(kept, bitorder="little") if nulls else None
    type_ = column.type
    buffers: tuple[npt.NDArray[Any], ...]
    if type_.format == "n":
        return Column(type_, count, None, (), count)
    if type_.format == "b":
        buffers = (np.packbits(column.values()[positions], bitorder="little"),)
    elif type_.is_binary_like:
        offsets, data = kernels.take_binary(column.offsets(), column.buffers[1], positions)
        wide = type_.format in ("U", "Z")
        buffers = (offsets if wide else offsets.astype(np.int32), data)
    elif type_.is_nested:
        raise UnsupportedError(f"rows of {type_} by position")
    else:
        buffers = (np.ascontiguousarray(column.values()[positions]).reshape(-1),)
    return Column(type_, count, validity, buffers, nulls)
