"""Converts physical values to an Arrow column: widths, units and byte order of the annotation (LogicalTypes.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.decimals import beyond_digits
from pyparq.errors import CorruptFileError, DataError
from pyparq.format import int96
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.types import LeafType, Physical, arrow_type

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_UNIT_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def fixed_buffer(values: Any, leaf: LeafType) -> tuple[npt.NDArray[Any], Mask | None]:
    """The Arrow values buffer of fixed-width values (or of BYTE_ARRAY decimals), and a mask of the values that do not
    fit the type.

    Their slots are undefined. ``None`` if all fit.
    """
    kind = leaf.kind
    if kind == "bool":
        return np.packbits(values, bitorder="little"), None
    if kind in ("int", "uint") and leaf.bits < 32:
        narrow = values.astype(arrow_type(leaf).numpy_dtype)
        return narrow, _if_any(narrow != values)
    if kind == "decimal":
        made = _decimals(values, leaf)
        beyond = None if leaf.precision == 0 else beyond_digits(made, leaf.precision)
        return made.reshape(-1), _if_any(beyond)
    if kind == "int96":
        found, fits = int96.instants(values, leaf.unit or "ns")
        return found, _if_any(~fits)
    return np.asarray(values.reshape(-1)), None


def _if_any(mask: Mask | None) -> Mask | None:
    return mask if mask is not None and mask.any() else None


def _decimals(values: Any, leaf: LeafType) -> Bytes:
    """Rows of little-endian two's complement of 16 bytes (32 beyond 38 digits)."""
    width = 32 if leaf.precision > 38 else 16
    if isinstance(values, BinaryValues):
        return _binary_decimals(values, width)
    out: npt.NDArray[Any]
    if leaf.physical in (Physical.INT32, Physical.INT64):
        out = np.empty((len(values), width // 8), np.int64)
        out[:, 0] = values
        out[:, 1:] = (out[:, 0] >> 63)[:, None]
        return out.view(np.uint8)
    return _big_endian_decimals(values, width)


def _big_endian_decimals(values: Bytes, width: int) -> Bytes:
    """Rows of big-endian two's complement as little-endian rows of ``width`` bytes. A value that is too long becomes
    the largest number, which has too many digits for any decimal."""
    stored = values.shape[1]
    too_long = None
    if stored > width:
        # A wider storage than the precision needs: the leading bytes may only repeat the sign.
        sign = (values[:, stored - width] >> 7) * np.uint8(255)
        too_long = (values[:, : stored - width] != sign[:, None]).any(axis=1)
        values, stored = values[:, stored - width :], width
    out = np.empty((len(values), width), np.uint8)
    out[:, :stored] = values[:, ::-1]
    out[:, stored:] = ((values[:, :1] >> 7) * np.uint8(255)) if stored else 0
    if too_long is not None:
        out[too_long] = 255
        out[too_long, -1] = 127
    return out


def _binary_decimals(values: BinaryValues, width: int) -> Bytes:
    """BYTE_ARRAY decimals differ in length. All of one length are converted together."""
    lengths = np.diff(values.offsets)
    out = np.zeros((len(lengths), width), np.uint8)
    for length in np.unique(lengths).tolist():
        if length == 0:
            continue  # null slots, and the empty encoding of zero
        rows = np.flatnonzero(lengths == length)
        index = values.offsets[rows][:, None] + np.arange(length)
        out[rows] = _big_endian_decimals(values.data[index], width)
    return out


def misfit_error(values: Any, beyond: Mask, leaf: LeafType) -> DataError:
    """The error for the first of the values that do not fit the type."""
    if leaf.kind == "decimal":
        return DataError(too_many_digits(leaf.precision))
    if leaf.kind != "int96":
        return DataError(too_many_bits(leaf.bits, leaf.kind == "int"))
    unit = leaf.unit or "ns"
    seconds, _ = int96.instants(values[int(np.argmax(beyond))], "s")
    coarser = "us" if unit == "ns" else "ms" if unit == "us" else "s"
    return DataError(
        f"an INT96 timestamp {int(seconds[0]) // 86_400} days from 1970 does not fit 64 bits in {_UNIT_NAMES[unit]}"
        f"{' (years 1677 to 2262)' if unit == 'ns' else ''}: "
        + ("it is damaged" if unit == "s" else f'read it with coerce_int96_timestamp_unit="{coarser}"')
        + ', or with out_of_range="null"'
    )


_OPTIONS = (
    'out_of_range="widen" reads the column in a type that holds them, and out_of_range="null" such values as nulls, '
    "where it may have nulls"
)


def too_many_digits(precision: int) -> str:
    return f"a decimal has more digits than the column's precision, which is {precision}: {_OPTIONS}"


def too_many_bits(bits: int, signed: bool) -> str:
    return f"an integer does not fit the column's type, {'int' if signed else 'uint'}{bits}: {_OPTIONS}"


def check_utf8(values: BinaryValues) -> None:
    """Raise :class:`CorruptFileError` when a value is not UTF-8."""
    bad = kernels.utf8_validate(values.offsets, values.data)
    if bad >= 0:
        shown = values.value(bad)[:24]
        raise CorruptFileError(
            f"value {bad} of the page is not UTF-8: {shown!r}...; read it with binary_columns=[...] to get bytes"
        )
