"""What the native decoder gives back becomes an Arrow column of the leaf's type (LogicalTypes.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pyparq.decoding.physical_values import binary_decimals, fixed_buffer, int96_ticks
from pyparq.encodings import dictionary
from pyparq.schemas.types import DataType, LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues, Values, count_of, empty_values, from_plain_bytes
from pyparq.tables.column_operations import as_views, binary_column
from pyparq.tables.table import Column

Kind = Literal["values", "dictionary", "views", "stored"]
"""What a leaf comes out as: views and dictionaries are for pages that are dictionary-encoded. Stored values are as the
file has them, to be made a dictionary."""

Levels = npt.NDArray[np.uint8]

_KINDS: dict[Kind, int] = {"values": 0, "dictionary": 1, "views": 2, "stored": 0}
_NONE, _NARROW_8, _NARROW_16, _DECIMAL_16, _DECIMAL_32, _BYTES_16, _BYTES_32 = range(7)
_AS_BYTES = (Physical.FIXED_LEN_BYTE_ARRAY, Physical.INT96)
_NO_LIMIT = (1 << 63) - 1


@lru_cache(maxsize=4096)
def leaf_terms(
    leaf: LeafType, kind: Kind, max_def: int, max_rep: int, slot_level: int, keeps_levels: bool
) -> tuple[int, ...]:
    """A leaf as the native decoder takes it."""
    return (
        int(leaf.physical), leaf.width, max_def, max_rep, slot_level, keeps_levels, leaf.is_text, _KINDS[kind],
        _conversion(leaf) if kind == "values" else _NONE,
    )  # fmt: skip


def _conversion(leaf: LeafType) -> int:
    if leaf.kind in ("int", "uint") and leaf.bits < 32:
        return _NARROW_8 if leaf.bits == 8 else _NARROW_16
    if leaf.kind != "decimal" or leaf.is_binary:
        return _NONE
    wide = leaf.precision > 38
    if leaf.physical in (Physical.INT32, Physical.INT64):
        return _DECIMAL_32 if wide else _DECIMAL_16
    return _BYTES_32 if wide else _BYTES_16


class Decoded:
    """One decoded leaf: ``column`` has an element per slot, the levels an entry per pair (see :mod:`.leaf`)."""

    __slots__ = ("column", "def_levels", "leaf", "rep_levels", "size")

    def __init__(self, leaf: LeafType, kind: Kind, result: tuple[Any, ...]) -> None:
        slots, nulls, validity, values, offsets, data, self.def_levels, self.rep_levels, entries = result
        self.leaf = leaf
        if kind == "values":
            self.column = _column(leaf, slots, nulls, validity, values, offsets, data)
        elif kind == "views":
            self.column = _views(leaf, slots, nulls, validity, values, entries)
        elif kind == "stored":
            self.column = _encoded(leaf, slots, nulls, validity, values, offsets, data)
        else:
            self.column = _codes(leaf, slots, nulls, validity, values.view(np.int32), entries[0] if entries else None)
        arrays = (validity, values, offsets, data, self.def_levels, self.rep_levels)
        held = [part for entry in entries or () if entry is not None for part in entry[1:]]
        self.size = sum(a.nbytes for a in (*arrays, *held) if a is not None)

    def as_kind(self, kind: Kind) -> Decoded:
        """The same as views, made of values that are spelled out."""
        if kind == "views":
            self.column = as_views(self.column, DataType("v" + arrow_type(self.leaf).format))
        return self


@lru_cache(maxsize=1024)
def _buffer_type(leaf: LeafType) -> tuple[DataType, Any]:
    """(Arrow type, dtype of the buffer of values)."""
    type_ = arrow_type(leaf)
    if leaf.is_binary or leaf.kind in ("decimal", "bool") or leaf.physical in _AS_BYTES:
        return type_, np.uint8
    return type_, type_.numpy_dtype


def _column(leaf: LeafType, slots: int, nulls: int, validity: Any, values: Any, offsets: Any, data: Any) -> Column:
    if leaf.kind == "null":
        return Column(DataType("n"), slots, None, (), slots)
    type_, dtype = _buffer_type(leaf)
    if offsets is not None:
        if leaf.kind == "decimal":
            width = 32 if leaf.precision > 38 else 16
            return Column(type_, slots, validity, (binary_decimals(BinaryValues(offsets, data), width),), nulls)
        if offsets.dtype == np.int64:
            type_ = DataType(type_.format.upper())
        return Column(type_, slots, validity, (offsets, data), nulls)
    if leaf.kind == "int96":
        valid = None if validity is None else np.unpackbits(validity, count=slots, bitorder="little")
        ticks = int96_ticks(values.reshape(-1, 12), leaf.unit or "ns", valid)
        return Column(type_, slots, validity, (ticks,), nulls)
    return Column(type_, slots, validity, (values if dtype is np.uint8 else values.view(dtype),), nulls)


def _views(leaf: LeafType, slots: int, nulls: int, validity: Any, views: Any, entries: list[Any]) -> Column:
    buffers = [np.empty(0, np.uint8) if e is None else e[2] for e in entries]
    sizes = np.array([len(b) for b in buffers], np.int64)  # Arrow's last buffer of views
    return Column(DataType("v" + arrow_type(leaf).format), slots, validity, (views, *buffers, sizes), nulls)


def _codes(leaf: LeafType, slots: int, nulls: int, validity: Any, codes: Any, stored: Any) -> Column:
    """A dictionary column with int32 indices; every entry occurs once in its dictionary."""
    entries = _entries(leaf, stored)
    places, firsts = dictionary.build(entries, leaf, _NO_LIMIT)
    if len(firsts) < count_of(entries):
        # A file may list a value twice; readers of Arrow dictionaries (pandas) may not like that.
        codes, entries = places[codes], dictionary.entries(entries, firsts)
    return _dictionary_column(leaf, slots, nulls, validity, codes, entries)


def _dictionary_column(leaf: LeafType, slots: int, nulls: int, validity: Any, codes: Any, entries: Values) -> Column:
    values = _column_of(entries, leaf)
    return Column(DataType("i", (), values.type), slots, validity, (codes,), nulls, (), values)


def _entries(leaf: LeafType, stored: Any) -> Values:
    if stored is None:
        return empty_values(leaf)
    count, offsets, data = stored
    return from_plain_bytes(data, count, leaf) if offsets is None else BinaryValues(offsets, data[: offsets[-1]])


def _column_of(entries: Values, leaf: LeafType) -> Column:
    type_ = arrow_type(leaf)
    if isinstance(entries, BinaryValues) and leaf.kind != "decimal":
        return binary_column(type_, entries.offsets, entries.data)
    return Column(type_, count_of(entries), None, (fixed_buffer(entries, leaf, None),), 0)


def _encoded(leaf: LeafType, slots: int, nulls: int, validity: Any, values: Any, offsets: Any, data: Any) -> Column:
    """A dictionary column of stored values (0 under nulls)."""
    mask = None if validity is None else np.unpackbits(validity, count=slots, bitorder="little").view(np.bool_)
    stored: Values
    if offsets is not None:
        edges = offsets.astype(np.int64, copy=False)
        if mask is not None:  # null slots are empty: leaving their edges out leaves the bytes
            edges = np.append(edges[:-1][mask], edges[-1])
        stored = BinaryValues(edges, data)
    else:
        bits = leaf.physical == Physical.BOOLEAN
        stored = (
            np.unpackbits(values, count=slots, bitorder="little") if bits else from_plain_bytes(values, slots, leaf)
        )
        stored = stored if mask is None else stored[mask]
    codes, firsts = dictionary.build(stored, leaf, _NO_LIMIT)
    if mask is not None:
        packed, codes = codes, np.zeros(slots, np.int32)
        codes[mask] = packed
    return _dictionary_column(leaf, slots, nulls, validity, codes, dictionary.entries(stored, firsts))
