"""What the native decoder gives back becomes an Arrow column of the leaf's type (LogicalTypes.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pyparq.decoding.physical_values import binary_decimals, fixed_buffer, int96_ticks
from pyparq.encodings import dictionary
from pyparq.kernels import DecodedColumn
from pyparq.schemas.types import DataType, LeafType, Physical, arrow_type
from pyparq.schemas.values import BinaryValues, Values, count_of, empty_values, from_plain_bytes
from pyparq.tables.column import Column, NativeColumn
from pyparq.tables.column_operations import binary_column

Kind = Literal["values", "large", "dictionary", "codes", "views", "stored"]
"""What a leaf comes out as: large values have offsets of 64 bits; dictionaries and codes are for pages that are
dictionary-encoded. A dictionary has each entry once. Codes come with the dictionary as the file has it, or as values
where any page has no codes. Stored values are as the file has them, to be made a dictionary."""

Levels = npt.NDArray[np.uint8]

_KINDS: dict[Kind, int] = {"values": 0, "large": 0, "dictionary": 1, "codes": 1, "views": 2, "stored": 0}
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
        _conversion(leaf) if kind in ("values", "codes") else _NONE, kind == "large", kind == "codes",
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

    def __init__(self, leaf: LeafType, kind: Kind, result: Any) -> None:
        """``result``: a :class:`DecodedColumn`; for dictionaries also the entries of each piece, for views the bytes
        that they look at."""
        native: DecodedColumn
        native, beside = (result, []) if isinstance(result, DecodedColumn) else result
        self.leaf = leaf
        self.def_levels, self.rep_levels = native.definition_levels, native.repetition_levels
        if kind in ("values", "large") or (kind == "codes" and native is result):
            self.column = column_of(leaf, native)
        elif kind == "views":
            self.column = _views(leaf, native, beside)
        elif kind == "stored":
            self.column = _encoded(leaf, native)
        else:
            self.column = _codes(leaf, native, beside[0] if beside else None, distinct=kind == "dictionary")
        held = beside if kind == "views" else [part for entry in beside if entry is not None for part in entry[1:]]
        self.size = native.size + sum(a.nbytes for a in held if a is not None)


@lru_cache(maxsize=1024)
def native_type(leaf: LeafType) -> DataType | None:
    """The Arrow type of what the decoder leaves as Arrow has it; ``None`` where something is left to do."""
    if leaf.kind in ("null", "int96") or (leaf.kind == "decimal" and leaf.is_binary):
        return None
    return arrow_type(leaf)


def column_of(leaf: LeafType, native: DecodedColumn) -> Column:
    """A column of values, in the order of the slots."""
    ready = native_type(leaf)
    if ready is not None:
        return NativeColumn(DataType(ready.format.upper()) if native.has_wide_offsets else ready, native)
    slots, nulls = native.length, native.null_count
    if leaf.kind == "null":
        return Column(DataType("n"), slots, None, (), slots)
    type_, validity = arrow_type(leaf), native.validity
    if leaf.kind == "decimal":
        width = 32 if leaf.precision > 38 else 16
        values = binary_decimals(BinaryValues(native.offsets, native.values), width)
        return Column(type_, slots, validity, (values,), nulls)
    valid = None if validity is None else np.unpackbits(validity, count=slots, bitorder="little")
    ticks = int96_ticks(native.values.reshape(-1, 12), leaf.unit or "ns", valid)
    return Column(type_, slots, validity, (ticks,), nulls)


def _views(leaf: LeafType, native: DecodedColumn, buffers: list[Any]) -> Column:
    sizes = np.array([len(b) for b in buffers], np.int64)  # Arrow's last buffer of views
    type_ = DataType("v" + arrow_type(leaf).format)
    return Column(type_, native.length, native.validity, (native.values, *buffers, sizes), native.null_count)


def _codes(leaf: LeafType, native: DecodedColumn, stored: Any, *, distinct: bool) -> Column:
    """A dictionary column with int32 indices. A file may list a value twice; with ``distinct`` each occurs once, as
    readers of Arrow dictionaries (pandas) expect."""
    entries, codes = _entries(leaf, stored), native.values.view(np.int32)
    if distinct:
        places, firsts = dictionary.build(entries, leaf, _NO_LIMIT)
        if len(firsts) < count_of(entries):
            codes, entries = places[codes], dictionary.entries(entries, firsts)
    return _dictionary_column(leaf, native.length, native.null_count, native.validity, codes, entries)


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


def _encoded(leaf: LeafType, native: DecodedColumn) -> Column:
    """A dictionary column of stored values (0 under nulls)."""
    slots, nulls, validity = native.length, native.null_count, native.validity
    values, offsets = native.values, native.offsets
    mask = None if validity is None else np.unpackbits(validity, count=slots, bitorder="little").view(np.bool_)
    stored: Values
    if offsets is not None:
        edges = offsets.astype(np.int64, copy=False)
        if mask is not None:  # null slots are empty: leaving their edges out leaves the bytes
            edges = np.append(edges[:-1][mask], edges[-1])
        stored = BinaryValues(edges, values)
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
