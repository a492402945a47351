"""Converts the results of the native decoder to Arrow columns of the leaf's type (LogicalTypes.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column, NativeColumn
from pyparq.arrow.column_operations import binary_column, pack_mask, take
from pyparq.arrow.decimals import beyond_digits
from pyparq.format import value_dictionary
from pyparq.format.leaf_values import BinaryValues, Values, count_of, empty_values, from_plain_bytes
from pyparq.format.types import DataType, LeafType, Physical, arrow_type
from pyparq.kernels import DecodedColumn, LeafSpec
from pyparq.read.decode.physical_values import fixed_buffer, misfit_error

Kind = Literal["values", "large", "dictionary", "codes", "views", "stored"]
"""The form in which a leaf is decoded.

Large values have 64-bit offsets. Dictionaries and codes are for dictionary-encoded pages. A dictionary has each entry
once. Codes come with the dictionary of the file, or as values if any page has no codes. Stored values keep the file's
form, to be made a dictionary.
"""

Levels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_FORMS: dict[Kind, str] = {"dictionary": "codes", "codes": "codes", "views": "views"}
"""The forms of the native decoder. The other kinds are values."""
_NONE, _INT_8, _INT_16, _UINT_8, _UINT_16, _DECIMAL_16, _DECIMAL_32, _BYTES_16, _BYTES_32 = range(9)
_AS_BYTES = (Physical.FIXED_LEN_BYTE_ARRAY, Physical.INT96)
_NO_LIMIT = (1 << 63) - 1


@lru_cache(maxsize=4096)
def leaf_spec(leaf: LeafType, kind: Kind, max_def: int, max_rep: int, slot_level: int, keeps_levels: bool) -> LeafSpec:
    """A leaf in the form of the native decoder."""
    return LeafSpec(
        leaf.physical, leaf.width, max_def, max_rep, slot_level, keeps_levels, leaf.is_text, _FORMS.get(kind, "values"),
        _conversion(leaf) if kind in ("values", "codes") else _NONE, large_offsets=kind == "large",
        codes_or_values=kind == "codes", digits=_digits(leaf),
    )  # fmt: skip


def _digits(leaf: LeafType) -> int:
    """Number of digits up to which the native decoder checks decimals. 0: the storage holds no more, or Python checks
    them."""
    if leaf.kind != "decimal" or leaf.is_binary or leaf.nulls_beyond:
        return 0
    return leaf.precision if 10**leaf.precision <= 1 << (8 * leaf.width - 1) else 0


def _conversion(leaf: LeafType) -> int:
    if leaf.kind in ("int", "uint") and leaf.bits < 32:
        if leaf.nulls_beyond:  # Python handles values that do not fit
            return _NONE
        if leaf.kind == "int":
            return _INT_8 if leaf.bits == 8 else _INT_16
        return _UINT_8 if leaf.bits == 8 else _UINT_16
    if leaf.kind != "decimal" or leaf.is_binary:
        return _NONE
    wide = leaf.precision > 38
    if leaf.physical in (Physical.INT32, Physical.INT64):
        return _DECIMAL_32 if wide else _DECIMAL_16
    return _BYTES_32 if wide else _BYTES_16


class Decoded:
    """One decoded leaf: ``column`` has an element per slot, the levels have an entry per pair (see
    :mod:`.decoded_leaf`).

    ``lost`` is a mask of slots whose values do not fit the type. They are null now. ``None``: there are none.
    """

    __slots__ = ("column", "def_levels", "leaf", "lost", "rep_levels", "size")

    def __init__(self, leaf: LeafType, kind: Kind, result: Any) -> None:
        """``result``: a :class:`DecodedColumn`. For dictionaries also the entries of each piece, for views the bytes
        that they point to."""
        native: DecodedColumn
        native, beside = (result, []) if isinstance(result, DecodedColumn) else result
        self.leaf = leaf
        self.lost: Mask | None = None
        self.def_levels, self.rep_levels = native.definition_levels, native.repetition_levels
        if kind in ("values", "large") or (kind == "codes" and native is result):
            self.column, self.lost = _column_of_slots(leaf, native)
        elif kind == "views":
            self.column = _views(leaf, native, beside)
        elif kind == "stored":
            self.column, self.lost = _encoded(leaf, native)
        else:
            entries = beside[0] if beside else None
            self.column, self.lost = _codes(leaf, native, entries, distinct=kind == "dictionary")
        held = beside if kind == "views" else [part for entry in beside if entry is not None for part in entry[1:]]
        self.size = native.size + sum(a.nbytes for a in held if a is not None)

    def lower_levels(self, slot_level: int, max_def: int) -> None:
        """Lower the levels of a nested leaf so that :attr:`lost` values are null."""
        if self.lost is None:
            return
        if self.def_levels is None:
            entries = self.column.length if self.rep_levels is None else len(self.rep_levels)
            levels = np.full(entries, max_def, np.uint8)
        else:
            levels = self.def_levels.copy()
        levels[np.flatnonzero(levels >= slot_level)[self.lost]] = max_def - 1
        self.def_levels = levels


@lru_cache(maxsize=1024)
def native_type(leaf: LeafType) -> DataType | None:
    """The Arrow type of results that the decoder leaves in Arrow's form. ``None`` if Python has to convert them."""
    if leaf.kind in ("null", "int96") or (leaf.kind == "decimal" and leaf.is_binary) or leaf.nulls_beyond:
        return None
    return arrow_type(leaf)


def column_of(leaf: LeafType, native: DecodedColumn) -> Column:
    """A column of values, in the order of the slots. Raises :class:`ParquetError` for a value that does not fit the
    type."""
    return _column_of_slots(leaf, native)[0]


def _column_of_slots(leaf: LeafType, native: DecodedColumn) -> tuple[Column, Mask | None]:
    ready = native_type(leaf)
    if ready is not None:
        return NativeColumn(DataType(ready.format.upper()) if native.has_wide_offsets else ready, native), None
    slots, nulls = native.length, native.null_count
    if leaf.kind == "null":
        return Column(DataType("n"), slots, None, (), slots), None
    type_, validity = arrow_type(leaf), native.validity
    if leaf.kind == "decimal" and not leaf.is_binary:  # the decoder has converted them
        buffer = native.values
        beyond = beyond_digits(buffer.reshape(slots, -1), leaf.precision) if slots and leaf.precision else None
        stored: Values = buffer
    else:
        stored = native.values
        if leaf.is_binary:
            stored = BinaryValues(native.offsets, stored)
        elif leaf.width == 12:
            stored = stored.reshape(-1, 12)
        else:
            stored = stored.view(np.int32)
        buffer, beyond = fixed_buffer(stored, leaf)
    lost = _without_nulls(beyond, _mask_of(validity, slots))
    if lost is None:
        return Column(type_, slots, validity, (buffer,), nulls), None
    if not leaf.nulls_beyond:
        raise misfit_error(stored, lost, leaf)
    valid = ~lost if validity is None else _mask_of(validity, slots) & ~lost
    validity, nulls = pack_mask(valid)
    rows = buffer.reshape(slots, -1).copy()
    rows[lost] = 0
    return Column(type_, slots, validity, (rows.reshape(-1),), nulls), lost


def _mask_of(validity: Any, slots: int) -> Any:
    return None if validity is None else np.unpackbits(validity, count=slots, bitorder="little").view(np.bool_)


def _without_nulls(beyond: Mask | None, valid: Mask | None) -> Mask | None:
    """The slots that do not fit and are not null. ``None`` if there are none."""
    if beyond is None:
        return None
    lost = beyond if valid is None else beyond & valid
    return lost if lost.any() else None


def _views(leaf: LeafType, native: DecodedColumn, buffers: list[Any]) -> Column:
    sizes = np.array([len(b) for b in buffers], np.int64)  # Arrow's last buffer of views
    type_ = DataType("v" + arrow_type(leaf).format)
    return Column(type_, native.length, native.validity, (native.values, *buffers, sizes), native.null_count)


def _codes(leaf: LeafType, native: DecodedColumn, stored: Any, *, distinct: bool) -> tuple[Column, Mask | None]:
    """A dictionary column with int32 indices. A file may list a value twice; with ``distinct`` each occurs once, as
    readers of Arrow dictionaries (pandas) expect. Entries that no slot uses may be anything."""
    entries, codes = _entries(leaf, stored), native.values.view(np.int32)
    if distinct:
        places, firsts = value_dictionary.build(entries, leaf, _NO_LIMIT)
        if len(firsts) < count_of(entries):
            codes, entries = places[codes], value_dictionary.entries(entries, firsts)
    return _dictionary_column(leaf, native.length, native.null_count, native.validity, codes, entries)


def _dictionary_column(
    leaf: LeafType, slots: int, nulls: int, validity: Any, codes: Any, entries: Values
) -> tuple[Column, Mask | None]:
    values, beyond = _column_of_entries(entries, leaf)
    lost = None
    if beyond is not None:
        valid = _mask_of(validity, slots)
        lost = _without_nulls(beyond[codes] if slots else None, valid)
        if lost is not None and not leaf.nulls_beyond:
            raise misfit_error(entries, beyond, leaf)
        # No such entry may stay, because libraries check all entries.
        values = take(values, np.flatnonzero(~beyond))
        codes = np.maximum(np.cumsum(~beyond, dtype=np.int32) - 1, 0)[codes]
        if lost is not None:
            validity, nulls = pack_mask(~lost if valid is None else valid & ~lost)
            codes[lost] = 0
    return Column(DataType("i", (), values.type), slots, validity, (codes,), nulls, (), values), lost


def _entries(leaf: LeafType, stored: Any) -> Values:
    if stored is None:
        return empty_values(leaf)
    count, offsets, data = stored
    return from_plain_bytes(data, count, leaf) if offsets is None else BinaryValues(offsets, data[: offsets[-1]])


def _column_of_entries(entries: Values, leaf: LeafType) -> tuple[Column, Mask | None]:
    type_ = arrow_type(leaf)
    if isinstance(entries, BinaryValues) and leaf.kind != "decimal":
        return binary_column(type_, entries.offsets, entries.data), None
    buffer, beyond = fixed_buffer(entries, leaf)
    return Column(type_, count_of(entries), None, (buffer,), 0), beyond


def _encoded(leaf: LeafType, native: DecodedColumn) -> tuple[Column, Mask | None]:
    """A dictionary column of stored values (0 under nulls)."""
    slots, nulls, validity = native.length, native.null_count, native.validity
    values, offsets = native.values, native.offsets
    mask = _mask_of(validity, slots)
    stored: Values
    if offsets is not None:
        edges = offsets.astype(np.int64, copy=False)
        if mask is not None:  # null slots are empty: dropping their offsets leaves the bytes unchanged
            edges = np.append(edges[:-1][mask], edges[-1])
        stored = BinaryValues(edges, values)
    else:
        bits = leaf.physical == Physical.BOOLEAN
        stored = (
            np.unpackbits(values, count=slots, bitorder="little") if bits else from_plain_bytes(values, slots, leaf)
        )
        stored = stored if mask is None else stored[mask]
    codes, firsts = value_dictionary.build(stored, leaf, _NO_LIMIT)
    if mask is not None:
        packed, codes = codes, np.zeros(slots, np.int32)
        codes[mask] = packed
    return _dictionary_column(leaf, slots, nulls, validity, codes, value_dictionary.entries(stored, firsts))
