"""Converts the results of the native decoder to Arrow columns of the leaf's type (LogicalTypes.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column, NativeColumn
from pyparq.arrow.column_operations import Mask, binary_column, pack_mask, take
from pyparq.arrow.decimals import beyond_digits
from pyparq.errors import CorruptFileError, DataError
from pyparq.format import int96
from pyparq.format import leaf_values as value_dictionary
from pyparq.format.leaf_values import BinaryValues, Values, count_of, empty_values, from_plain_bytes
from pyparq.format.types import DataType, LeafType, Physical, arrow_type
from pyparq.kernels import DecodedColumn, LeafSpec

Bytes = npt.NDArray[np.uint8]

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


Kind = Literal["values", "large", "dictionary", "codes", "views", "stored"]
"""The form in which a leaf is decoded.

Large values have 64-bit offsets. Dictionaries and codes are for dictionary-encoded pages. A dictionary has each entry
once. Codes come with the dictionary of the file, or as values if any page has no codes. Stored values keep the file's
form, to be made a dictionary.
"""

Levels = npt.NDArray[np.uint8]

_FORMS: dict[Kind, str] = {"dictionary": "codes", "codes": "codes", "views": "views"}
"""The forms of the native decoder. The other kinds are values."""
_NONE, _INT_8, _INT_16, _UINT_8, _UINT_16, _DECIMAL_16, _DECIMAL_32, _BYTES_16, _BYTES_32 = range(9)
_AS_BYTES = (Physical.FIXED_LEN_BYTE_ARRAY, Physical.INT96)


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
        places, firsts = value_dictionary.build(entries, leaf)
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
    codes, firsts = value_dictionary.build(stored, leaf)
    if mask is not None:
        packed, codes = codes, np.zeros(slots, np.int32)
        codes[mask] = packed
    return _dictionary_column(leaf, slots, nulls, validity, codes, value_dictionary.entries(stored, firsts))
