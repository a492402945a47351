"""The only comparison rules: which leaves have an order, and what their bounds mean in it.

Every leaf that has an order has a *comparable domain*, in which plain ``<`` is that order:

==========================================  =================================================
leaf                                        comparable domain
==========================================  =================================================
BOOLEAN, signed integers, date, time,       numpy int64
timestamp, DECIMAL on INT32 and INT64
unsigned integers                           numpy uint64
FLOAT, DOUBLE, FLOAT16                      numpy float64 (NaN has no place in bounds)
string, enum, JSON, BSON, binary, fixed,    Python ``bytes`` in an object array
UUID
DECIMAL on FIXED_LEN_BYTE_ARRAY and         Python ``int`` (unscaled) in an object array
BYTE_ARRAY
INT96 (under INT96_TIMESTAMP_ORDER alone)   numpy int64 in the unit it is read in
==========================================  =================================================

INTERVAL, VARIANT, GEOMETRY, GEOGRAPHY and always-null leaves have none
(parquet.thrift, ColumnOrder). Bounds are stored as PLAIN bytes, without a length prefix for BYTE_ARRAY.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format import int96
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.types import LeafType, Physical

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

FLOAT_KINDS = frozenset({"float16", "float", "double"})
_SIGNED_KINDS = frozenset({"int", "date", "time", "timestamp"})
_BYTES_KINDS = frozenset({"string", "enum", "json", "bson", "binary", "fixed", "uuid"})

_STRUCTS = {
    Physical.INT32: struct.Struct("<i"), Physical.INT64: struct.Struct("<q"),
    Physical.FLOAT: struct.Struct("<f"), Physical.DOUBLE: struct.Struct("<d"),
}  # fmt: skip
_UNSIGNED_STRUCTS = {Physical.INT32: struct.Struct("<I"), Physical.INT64: struct.Struct("<Q")}
_HALF = struct.Struct("<e")


class Order(IntEnum):
    """The order that a footer gives a column (``ColumnOrder``). ``ABSENT`` and ``TYPE`` stand for false and true."""

    ABSENT = 0
    """The footer has no column orders. Only the deprecated, signed ``min`` and ``max`` may be valid."""
    TYPE = 1
    """TYPE_ORDER."""
    TOTAL = 2
    """IEEE_754_TOTAL_ORDER."""
    INT96 = 4
    """INT96_TIMESTAMP_ORDER."""
    UNKNOWN = 3
    """An unknown order, annotation or combination, or a writer that is known to get it wrong."""


def domain(leaf: LeafType) -> str:
    """``"int"``, ``"uint"``, ``"float"``, ``"bytes"``, ``"decimal"``, ``"int96"``, or ``""`` for a leaf
    without an order.
    """
    kind = leaf.kind
    if kind in _SIGNED_KINDS or kind == "bool":
        return "int"
    if kind == "uint":
        return "uint"
    if kind in FLOAT_KINDS:
        return "float"
    if kind in _BYTES_KINDS:
        return "bytes"
    if kind == "decimal":
        return "int" if leaf.physical in (Physical.INT32, Physical.INT64) else "decimal"
    return "int96" if kind == "int96" else ""


def has_order(leaf: LeafType) -> bool:
    """Whether bounds of this leaf can be valid: under TYPE_ORDER, or for INT96 under its own order."""
    return domain(leaf) != ""


def order_of(leaf: LeafType, column_order: Any, element: Any = None) -> Order:
    """The order of a column of a file.

    ``column_order`` is the footer's ``ColumnOrder`` for the leaf (``None`` when it has no list of them),
    ``element`` the leaf's SchemaElement: an annotation from the future makes the order unknown.
    """
    logical = None if element is None else element.logicalType
    if logical is not None and all(getattr(logical, name) is None for name in logical.__slots__):
        return Order.UNKNOWN
    if leaf.kind == "int96":
        own = column_order is not None and column_order.INT96_TIMESTAMP_ORDER is not None
        return Order.INT96 if own else Order.UNKNOWN
    if column_order is None:
        return Order.ABSENT
    if column_order.TYPE_ORDER is not None:
        return Order.TYPE
    if column_order.IEEE_754_TOTAL_ORDER is not None and leaf.kind in FLOAT_KINDS:
        return Order.TOTAL
    return Order.UNKNOWN


@lru_cache(maxsize=256)
def bound_dtype(leaf: LeafType) -> np.dtype[Any]:
    """dtype of an array in the leaf's comparable domain (object for a leaf without an order)."""
    return _DOMAIN_DTYPES[domain(leaf)]


_DOMAIN_DTYPES: dict[str, np.dtype[Any]] = {
    "int": np.dtype(np.int64), "uint": np.dtype(np.uint64), "float": np.dtype(np.float64),
    "bytes": np.dtype(object), "decimal": np.dtype(object), "int96": np.dtype(np.int64), "": np.dtype(object),
}  # fmt: skip


def stored_dtype(leaf: LeafType) -> np.dtype[Any] | None:
    """The dtype in which the leaf's PLAIN values compare correctly. None where numpy has none."""
    if leaf.kind == "bool":
        return np.dtype(np.uint8)
    if leaf.kind == "float16":
        return np.dtype("<f2")
    code = {"int": "i", "uint": "u", "float": "f"}.get(domain(leaf))
    return _numbers(code, leaf.width) if code else None


@cache
def _numbers(code: str, width: int) -> np.dtype[Any]:
    return np.dtype(f"<{code}{width}")


@cache
def number_layout(leaf: LeafType) -> tuple[int, int]:
    """Size of a stored bound in bytes, and how kernels read it (0 signed, 1 unsigned, 2 floating, 3 boolean) into
    numbers of :func:`bound_dtype`. The size is 0 if the bound is no number, or if kernels do not read it."""
    stored = stored_dtype(leaf)
    if stored is None or leaf.kind == "float16":
        return 0, 0
    return stored.itemsize, 3 if leaf.kind == "bool" else "iuf".index(stored.kind)


def decode_bounds(leaf: LeafType, raw: Sequence[bytes | None]) -> tuple[npt.NDArray[Any], BoolArray]:
    """Stored bounds as an array in the comparable domain, and a mask of the usable ones.

    Missing bounds, bounds of a wrong length and NaN are not usable. The array's value is undefined there. Never raises
    an error for the content of the bytes.
    """
    dtype = stored_dtype(leaf)
    if dtype is not None:
        return _decode_numbers(raw, dtype, bound_dtype(leaf), leaf.kind == "bool")
    values = np.empty(len(raw), object)
    kind = domain(leaf)
    if kind == "int96":
        return int96.decode_bounds(list(raw), leaf.unit or "ns")
    if kind == "bytes":
        values[:] = [b"" if r is None else r for r in raw]
        return values, np.array([r is not None for r in raw], bool)
    if kind == "decimal":
        fits = [r is not None and (len(r) == leaf.length if leaf.length else len(r) > 0) for r in raw]
        values[:] = [
            int.from_bytes(r, "big", signed=True) if ok and r is not None else 0
            for r, ok in zip(raw, fits, strict=True)
        ]
        return values, np.array(fits, bool)
    values[:] = [b""] * len(raw)
    return values, np.zeros(len(raw), bool)


def _decode_numbers(
    raw: Sequence[bytes | None], stored: np.dtype[Any], wanted: np.dtype[Any], boolean: bool
) -> tuple[npt.NDArray[Any], BoolArray]:
    width = stored.itemsize
    if None not in raw and set(map(len, raw)) <= {width}:  # type: ignore[arg-type]
        joined = b"".join(raw)  # type: ignore[arg-type]
        ok = np.ones(len(raw), bool)
    else:
        blank = bytes(width)
        parts = [r if r is not None and len(r) == width else None for r in raw]
        joined = b"".join([blank if r is None else r for r in parts])
        ok = np.array([r is not None for r in parts], bool)
    found = np.frombuffer(joined, stored)
    if stored.kind == "f":
        with np.errstate(invalid="ignore"):  # numpy warns about signalling NaNs, which are unusable like other NaNs
            values = found.astype(wanted)
        return values, ok & ~np.isnan(values)
    values = found.astype(wanted)
    return values, ok & (values <= 1) if boolean else ok


def decode_bound_pairs(
    leaf: LeafType, low: Sequence[bytes | None], high: Sequence[bytes | None]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], BoolArray]:
    """(lower bounds, upper bounds, mask of the parts where both are usable): see :func:`decode_bounds`.

    A lower bound above its upper bound is unusable.
    """
    count = len(low)
    values, usable = decode_bounds(leaf, [*low, *high])
    mins, maxs = values[:count], values[count:]
    return mins, maxs, usable[:count] & usable[count:] & np.asarray(mins <= maxs, bool)


def encode_bound(leaf: LeafType, value: Any) -> bytes:
    """PLAIN bytes (no length prefix) of a value of the comparable domain, in the leaf's physical type.

    Raises ``ValueError`` or ``OverflowError`` for a value that the type cannot hold exactly, ``TypeError``
    for one of the wrong kind or a leaf without an order.
    """
    kind = domain(leaf)
    if kind == "bytes":
        if not isinstance(value, bytes):
            raise TypeError(f"{leaf.kind} bounds are bytes, not {type(value).__name__}")
        return value
    if kind == "decimal":
        if value != int(value):
            raise ValueError(f"{value!r} is not an unscaled value")
        whole = int(value)
        # BYTE_ARRAY decimals take the fewest bytes that hold the sign.
        length = leaf.length or ((whole if whole >= 0 else ~whole).bit_length() + 8) // 8
        return whole.to_bytes(length, "big", signed=True)
    if kind == "float":
        return _encode_float(leaf, float(value))
    if kind == "int96":
        data, fits = int96.from_ticks(np.array([value], np.int64), leaf.unit or "ns")
        if not fits[0]:
            raise ValueError(f"{value!r} is beyond the days of INT96")
        return data.tobytes()
    if kind == "":
        raise TypeError(f"{leaf.kind} has no order")
    if leaf.kind == "bool":
        return b"\x01" if value else b"\x00"
    packer = (_UNSIGNED_STRUCTS if kind == "uint" else _STRUCTS)[leaf.physical]
    try:
        return packer.pack(value)
    except struct.error as error:
        raise ValueError(f"{value!r} does not fit {leaf.physical.name}: {error}") from None


def _encode_float(leaf: LeafType, value: float) -> bytes:
    packer = _HALF if leaf.kind == "float16" else _STRUCTS[leaf.physical]
    data = packer.pack(value)
    back = packer.unpack(data)[0]
    if back != value and not math.isnan(value):
        raise ValueError(f"{value!r} is not a {leaf.kind} value")
    return data


@dataclass(slots=True)
class SegmentBounds:
    """Smallest and largest value of consecutive segments (pages) of a leaf, as PLAIN bytes.

    ``None`` where a segment has no value that could be a bound: it is empty, all NaN, or the leaf has no
    order.
    """

    mins: list[bytes | None]
    maxs: list[bytes | None]
    nan_counts: Int64Array | None
    """NaNs per segment for the float kinds, else ``None``."""

    def __len__(self) -> int:
        return len(self.mins)


_DOMAINS = {"": 0, "int": 1, "uint": 2, "float": 3, "bytes": 4, "decimal": 5, "int96": 6}


@lru_cache(maxsize=4096)
def native_order(leaf: LeafType, order: Order = Order.TYPE) -> kernels.LeafOrder:
    """The number by which the kernels know the leaf's order."""
    total = order == Order.TOTAL and leaf.kind in FLOAT_KINDS
    return kernels.LeafOrder(_DOMAINS[domain(leaf)], leaf.width, total, can_truncate(leaf), leaf.is_text)


_CUTTABLE = frozenset({"string", "enum", "json", "bson", "binary"})


def can_truncate(leaf: LeafType) -> bool:
    """Whether bounds of this leaf may be cut: every prefix of a value is a value of the type."""
    return leaf.physical == Physical.BYTE_ARRAY and leaf.kind in _CUTTABLE


def segment_minmax(leaf: LeafType, values: Values, bounds: Int64Array, order: Order = Order.TYPE) -> SegmentBounds:
    """Bounds of the segments ``values[bounds[k]:bounds[k + 1]]``, ``k`` from 0 to ``len(bounds) - 2``.

    ``values`` are physical values without nulls, ``bounds`` int64 and ascending. Floats follow the rules for writers
    of their ``order``. TYPE: NaN is left out (and counted), a zero minimum is -0.0, a zero maximum +0.0. TOTAL: NaN is
    left out too, but is the bound of a segment that holds nothing else; zeros keep their signs.
    """
    edges = np.ascontiguousarray(bounds, np.int64)
    rules = native_order(leaf, order)
    if isinstance(values, BinaryValues):
        return SegmentBounds(*kernels.segment_bounds_binary(rules, values.offsets, values.data, edges))
    raw = np.ascontiguousarray(values)
    if not leaf.width:  # a fixed-size binary of no bytes
        raw = raw.reshape(len(values), 0)
    return SegmentBounds(*kernels.segment_bounds_fixed(rules, raw, edges))
