"""From physical values to an Arrow column: widths, units and byte order of the annotation (LogicalTypes.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError, DataError
from pyparq.schemas import int96
from pyparq.schemas.types import LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues

Bytes = npt.NDArray[np.uint8]
Valid = npt.NDArray[np.uint8]

_UNIT_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def fixed_buffer(values: Any, leaf: LeafType, valid: Valid | None) -> npt.NDArray[Any]:
    """The Arrow values buffer of fixed-width values (or of BYTE_ARRAY decimals)."""
    kind = leaf.kind
    if kind == "bool":
        return np.packbits(values, bitorder="little")
    if kind in ("int", "uint") and leaf.bits < 32:
        narrow = arrow_type(leaf).numpy_dtype
        return np.asarray(values.astype(narrow))
    if kind == "decimal":
        return _decimal_buffer(values, leaf, valid)
    if kind == "int96":
        return int96_ticks(values, leaf.unit or "ns", valid)
    return np.asarray(values.reshape(-1))


def _decimal_buffer(values: Any, leaf: LeafType, valid: Valid | None) -> Bytes:
    """Little-endian two's complement of 16 bytes (32 beyond 38 digits)."""
    width = 32 if leaf.precision > 38 else 16
    if isinstance(values, BinaryValues):
        return binary_decimals(values, width)
    out: npt.NDArray[Any]
    if leaf.physical in (Physical.INT32, Physical.INT64):
        out = np.empty((len(values), width // 8), np.int64)
        out[:, 0] = values
        out[:, 1:] = (out[:, 0] >> 63)[:, None]
        return out.reshape(-1).view(np.uint8)
    return _big_endian_decimals(values, width).reshape(-1)


def _big_endian_decimals(values: Bytes, width: int) -> Bytes:
    """Rows of big-endian two's complement to little-endian rows of ``width`` bytes."""
    stored = values.shape[1]
    if stored > width:
        # A wider storage than the precision needs: the leading bytes may only repeat the sign.
        sign = (values[:, stored - width] >> 7) * np.uint8(255)
        if (values[:, : stored - width] != sign[:, None]).any():
            raise CorruptFileError("a decimal value is too large for its precision")
        values, stored = values[:, stored - width :], width
    out = np.empty((len(values), width), np.uint8)
    out[:, :stored] = values[:, ::-1]
    out[:, stored:] = ((values[:, :1] >> 7) * np.uint8(255)) if stored else 0
    return out


def binary_decimals(values: BinaryValues, width: int) -> Bytes:
    """BYTE_ARRAY decimals have lengths of their own: convert all of one length together."""
    lengths = np.diff(values.offsets)
    out = np.zeros((len(lengths), width), np.uint8)
    for length in np.unique(lengths).tolist():
        if length == 0:
            continue  # null slots, and the empty encoding of zero
        rows = np.flatnonzero(lengths == length)
        index = values.offsets[rows][:, None] + np.arange(length)
        out[rows] = _big_endian_decimals(values.data[index], width)
    return out.reshape(-1)


_SPARK_DAYS = ((1 << 63) - 1) // (86_400 * 10**6) - 1
"""Julian days, before or after day 0, that 64 bits of microseconds hold."""


def int96_ticks(values: Bytes, unit: str, valid: Valid | None) -> npt.NDArray[np.int64]:
    """INT96 timestamps in ``unit``. Other readers let those wrap around that are beyond int64; here they raise
    :class:`DataError`."""
    found, fits = int96.instants(values, unit)
    if valid is not None:
        null = valid == 0
        found[null] = 0
        fits |= null
    if not fits.all() and unit == "us":
        # Spark counts microseconds from Julian day 0, and wraps at 64 bits both when it writes and when it reads.
        fits |= np.abs(int96.parts(values)[0] + int96.JULIAN_EPOCH) <= _SPARK_DAYS
    if not fits.all():
        days, _ = int96.parts(values[int(np.argmin(fits))])
        coarser = "us" if unit == "ns" else "ms" if unit == "us" else "s"
        raise DataError(
            f"an INT96 timestamp {int(days[0])} days from 1970 does not fit 64 bits in {_UNIT_NAMES[unit]}"
            f"{' (years 1677 to 2262)' if unit == 'ns' else ''}: "
            + ("it is damaged" if unit == "s" else f'read it with coerce_int96_timestamp_unit="{coarser}"')
        )
    return found


def check_utf8(values: BinaryValues) -> None:
    """Raise :class:`CorruptFileError` when a value is not UTF-8."""
    bad = kernels.utf8_validate(values.offsets, values.data)
    if bad >= 0:
        shown = values.value(bad)[:24]
        raise CorruptFileError(
            f"value {bad} of the page is not UTF-8: {shown!r}...; read it with binary_columns=[...] to get bytes"
        )
