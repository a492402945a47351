"""Converts columns from the types of the file's schema to the types that are hinted or asked for.

The hints come from ``ARROW:schema``: see :mod:`pyparq.arrow.schema.hints`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import as_views, fixed_column, holding, list_items, null_column, pack_mask, take
from pyparq.arrow.decimals import in_width
from pyparq.arrow.schema.keys import CATEGORIES, ENUM_VALUES, enum_values, most_categories
from pyparq.format import leaf_values as value_dictionary
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.types import DataType, Field, LeafType, Physical
from pyparq.read import hinted_types as hinted_layouts
from pyparq.read.variants import bytes_of_whole, is_shredded, unshredded

_MS_PER_DAY = 86_400_000
_NS_PER_MS = 1_000_000


def seconds(column: Column, type_: DataType) -> Column | None:
    """Milliseconds as seconds. ``None`` if one of them is not a whole second."""
    mask = column.valid_mask()
    values, rest = np.divmod(column.values(), np.array(1000, column.type.numpy_dtype))
    wrong = rest != 0
    if (wrong if mask is None else wrong & mask).any():
        return None
    return fixed_column(type_, values, mask)


def days_in_ms(column: Column, type_: DataType) -> Column:
    """Days as date64, which counts milliseconds."""
    return fixed_column(type_, column.values().astype(np.int64) * _MS_PER_DAY, column.valid_mask())


def intervals(column: Column, type_: DataType) -> Column | None:
    """INTERVAL (unsigned months, days and milliseconds) as one of Arrow's interval types. ``None`` if a value does not
    fit."""
    parts = np.ascontiguousarray(column.values()).view("<u4").astype(np.int64).reshape(-1, 3)
    mask = column.valid_mask()
    if mask is not None:
        parts[~mask] = 0
    months, days, ms = parts[:, 0], parts[:, 1], parts[:, 2]
    unused = {"tiM": (days, ms), "tiD": (months,), "tin": ()}[type_.format]
    if any(part.any() for part in unused) or max(parts[:, :2].max(initial=0), 0) >= 1 << 31:
        return None
    if type_.format == "tiM":
        made = months.astype("<i4").view(np.uint8)
    elif type_.format == "tiD":
        if ms.max(initial=0) >= 1 << 31:
            return None
        made = parts[:, 1:].astype("<i4").view(np.uint8)
    else:
        made = np.empty((column.length, 16), np.uint8)
        made[:, :8] = parts[:, :2].astype("<i4").view(np.uint8).reshape(-1, 8)
        made[:, 8:] = (ms * _NS_PER_MS).astype("<i8").view(np.uint8).reshape(-1, 8)
    return fixed_column(type_, made.reshape(column.length, type_.byte_width), mask)


def runs(column: Column, type_: DataType) -> Column:
    """The same values, run-end encoded. Consecutive nulls form a run too."""
    codes = _codes(column)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.empty(0, np.int64)
    ends_type = type_.children[0].type
    ends = np.append(starts[1:], len(codes)) if len(codes) else starts
    values = take(column, starts.astype(np.int64))
    parts = fixed_column(ends_type, ends.astype(ends_type.numpy_dtype)), values
    return Column(type_, column.length, None, (), 0, parts)


def _codes(column: Column) -> npt.NDArray[np.int64]:
    """One number per element. Elements of equal bytes have equal numbers, and all nulls share one."""
    if column.type.is_binary_like:
        offsets = np.ascontiguousarray(column.offsets(), np.int64)
        leaf = LeafType(Physical.BYTE_ARRAY, "binary")
        found, _ = value_dictionary.build(BinaryValues(offsets, column.buffers[1].view(np.uint8)), leaf)
    else:
        raw = np.ascontiguousarray(column.values())
        rows = raw.view(np.uint8).reshape(column.length, -1) if column.length else np.empty((0, 1), np.uint8)
        leaf = LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "fixed", rows.shape[1])
        found, _ = value_dictionary.build(rows, leaf)
    codes, mask = found.astype(np.int64), column.valid_mask()
    if mask is not None:
        codes[~mask] = -1
    return codes


def with_true_notes(field: Field, columns: Sequence[Column]) -> Field:
    """The field without the notes that the data in ``columns`` (the parts of the column) contradict."""
    if field.type.dictionary is not None:
        wrong = [key for key in (ENUM_VALUES, CATEGORIES) if key in field.metadata and not _holds(field, key, columns)]
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in wrong}) if wrong else field
    if not field.type.children or field.type.format == "+r":
        return field
    below = [column.children if field.type.format == "+s" else (list_items(column)[1],) for column in columns]
    checked = tuple(
        with_true_notes(child, [parts[k] for parts in below]) for k, child in enumerate(field.type.children)
    )
    if all(a is b for a, b in zip(checked, field.type.children, strict=True)):
        return field
    return replace(field, type=replace(field.type, children=checked))


def _holds(field: Field, key: bytes, columns: Sequence[Column]) -> bool:
    entries = [column.dictionary for column in columns if column.dictionary is not None]
    if key == CATEGORIES:
        return all(len(column) <= most_categories(field.metadata[key]) for column in entries)
    known = enum_values(field.metadata[key])
    return known is not None and all(_texts(column) <= known for column in entries)


def _texts(column: Column) -> set[bytes]:
    offsets = column.offsets().tolist()
    raw = column.buffers[1].tobytes()
    return {raw[a:b] for a, b in pairwise(offsets)}


_FREE = 64 << 20
"""Null lists of a fixed size need items that the file does not hold. They may take this many bytes without further
checks."""

_ENTRIES = {"c": 1 << 7, "C": 1 << 8, "s": 1 << 15, "S": 1 << 16}
"""Number of dictionary entries that narrow indices can number. int32 indices can number all entries that a file can
hold."""

_WIDTHS = {"vu": 16, "vz": 16, "U": 8, "Z": 8, "+L": 8, "+vl": 8, "+vL": 16, "u": 0, "z": 0, "+l": 0, "+m": 0, "+s": 0}
"""Bytes per row that a layout needs beside the row's text or items: views, offsets, sizes."""


class HintMismatch(Exception):
    """The data cannot be shown in the hinted type: the hint was wrong."""


class _TooManyEntries(HintMismatch):
    """A dictionary has more entries than the hinted index type can number."""


def restore_all(columns: list[Column], type_: DataType, max_bytes: int) -> list[Column]:
    """The parts of one column converted to ``type_``: see :func:`restore`.

    If one dictionary gets large values, all of them do. If the hinted index type cannot number the entries of one
    dictionary, all keep int32 indices.
    """
    try:
        return _restore_all(columns, type_, max_bytes)
    except _TooManyEntries:
        return _restore_all(columns, with_int32_indices(type_), max_bytes)


def with_int32_indices(type_: DataType) -> DataType:
    """The type with int32 as the index type of every dictionary in it."""
    children = tuple(replace(f, type=with_int32_indices(f.type)) for f in type_.children)
    return replace(type_, format=type_.format if type_.dictionary is None else "i", children=children)


def depends_on_data(type_: DataType) -> bool:
    """Whether data can contradict this type where it is hinted, or come out in another type. This holds for lists of a
    fixed size and for dictionaries. All other hints can always be followed."""
    if type_.dictionary is not None or type_.format.startswith("+w:"):
        return True
    return any(depends_on_data(field.type) for field in type_.children)


def too_many(column: Column, wanted: DataType) -> bool:
    """Whether the column's dictionary has more entries than the index type of ``wanted`` can number."""
    if column.dictionary is None or wanted.dictionary is None:
        return False
    return column.dictionary.length > _ENTRIES.get(wanted.format, column.dictionary.length)


def added_bytes(column: Column, type_: DataType, length: int | None = None) -> int:
    """An upper bound for the bytes that :func:`restore` allocates for ``type_``. ``length``: rows of the column, if the
    column does not exist yet."""
    length = column.length if length is None else length
    if type_.format.startswith("+w:") and column.children:
        return added_bytes(column.children[0], type_.children[0].type, length * int(type_.format[3:]))
    if column.type == type_ and length == column.length:
        return 0
    if is_shredded(column.type, type_):
        return bytes_of_whole(column)
    if type_.dictionary is not None:
        values = 0 if column.dictionary is None else added_bytes(column.dictionary, type_.dictionary)
        return type_.byte_width * length + values
    if type_.format == "+r":
        return added_bytes(column, type_.children[1].type)
    pairs = zip(column.children, type_.children, strict=False)
    grown = max(length - column.length, 0)  # null lists of a fixed size need items
    below = sum(added_bytes(child, field.type, child.length + grown) for child, field in pairs)
    return _WIDTHS.get(type_.format, type_.byte_width) * length + below


def _restore_all(columns: list[Column], type_: DataType, max_bytes: int) -> list[Column]:
    done = [restore(column, type_, max_bytes) for column in columns]
    values = [(c.type.dictionary.format, c.type) for c in done if c.type.dictionary is not None]
    wide = next((type_ for form, type_ in values if form in ("U", "Z")), None)
    return done if wide is None else [restore(column, wide, max_bytes) for column in done]


def restore(column: Column, type_: DataType, max_bytes: int) -> Column:
    """The column converted to ``type_``, or the column itself if nothing changes. ``max_bytes`` limits the size of a
    list of a hinted fixed size. Raises :class:`HintMismatch`."""
    have = column.type
    if have == type_:
        return column
    if type_.dictionary is not None:
        return _dictionary(column, type_, max_bytes)
    if type_.format == "+r":
        return _runs(column, type_, max_bytes)
    if is_shredded(have, type_):
        return unshredded(column, type_)
    for fits, convert in _CONVERSIONS:
        if fits(have.format, type_.format):
            return convert(column, type_, max_bytes)
    raise HintMismatch(f"{have} cannot be shown as {type_}")


def _dictionary(column: Column, type_: DataType, max_bytes: int) -> Column:
    values, wanted = column.dictionary, type_.dictionary
    if values is None or wanted is None:
        raise HintMismatch(f"{column.type} cannot be shown as {type_}")
    if too_many(column, type_):
        raise _TooManyEntries(f"{values.length} entries in a dictionary of {type_}")
    if values.type != wanted:
        values = restore(values, wanted, max_bytes)
    made = DataType(type_.format, (), values.type, type_.ordered)
    buffers = column.buffers
    if column.type.format != type_.format:  # Values under nulls may wrap around: they have no meaning.
        have = DataType(column.type.format).numpy_dtype
        buffers = (buffers[0].view(have).astype(DataType(type_.format).numpy_dtype),)
    return Column(made, column.length, column.validity, buffers, column.null_count, (), values, column.offset)


def _same_buffers(column: Column, type_: DataType, max_bytes: int) -> Column:
    return _retyped(column, type_, column.buffers, column.children)


def _retyped(
    column: Column, type_: DataType, buffers: tuple[npt.NDArray[Any], ...], children: tuple[Column, ...]
) -> Column:
    return Column(
        type_, column.length, column.validity, buffers, column.null_count, children, column.dictionary, column.offset
    )


def _large(column: Column, type_: DataType, max_bytes: int) -> Column:
    offsets = column.buffers[0].view(np.int32).astype(np.int64)
    return _retyped(column, type_, (offsets, *column.buffers[1:]), column.children)


def _runs(column: Column, type_: DataType, max_bytes: int) -> Column:
    ends, values = type_.children
    shown = restore(column, values.type, max_bytes)
    if column.length >= 1 << (8 * ends.type.byte_width - 1):
        raise HintMismatch(f"{column.length} rows in runs of {ends.type}")
    return hinted_layouts.runs(shown, holding(type_, (Column(ends.type, 0, None, (), 0), shown)))


def _by(convert: Callable[[Column, DataType], Column | None]) -> Callable[[Column, DataType, int], Column]:
    """A conversion that returns ``None`` where a value does not fit."""

    def checked(column: Column, type_: DataType, max_bytes: int) -> Column:
        made = convert(column, type_)
        if made is None:
            raise HintMismatch(f"{column.type} that cannot be shown as {type_}")
        return made

    return checked


# ---- views ---------------------------------------------------------------------------------------------------------


def _views(column: Column, type_: DataType, max_bytes: int) -> Column:
    return as_views(column, type_)


# ---- nested --------------------------------------------------------------------------------------------------------


def _children(column: Column, type_: DataType, max_bytes: int) -> Column:
    if len(column.children) != len(type_.children):
        raise HintMismatch(f"{column.type} cannot be shown as {type_}")
    pairs = zip(column.children, type_.children, strict=True)
    children = tuple(restore(_field(column, child, f.type), f.type, max_bytes) for child, f in pairs)
    return _retyped(column, holding(type_, children), column.buffers, children)


def _field(column: Column, child: Column, wanted: DataType) -> Column:
    """A child of a struct. If it becomes a list of a fixed size, it is made null wherever the struct is null. A
    required list has no items there, and that must not contradict the hint. So is a shredded Variant: a required one
    has no metadata there."""
    mask = column.valid_mask() if column.type.format == "+s" and _needs_nulls(child.type, wanted) else None
    if mask is None:
        return child
    own, first = child.valid_mask(), child.offset + column.offset
    present = np.zeros(child.offset + child.length, np.bool_)
    present[first : first + column.length] = mask
    if own is not None:
        present[child.offset :] &= own
    validity, nulls = np.packbits(present, bitorder="little"), child.length - int(np.count_nonzero(present))
    return Column(child.type, child.length, validity, child.buffers, nulls, child.children, None, child.offset)


def _needs_nulls(have: DataType, wanted: DataType) -> bool:
    """Whether a column becomes a list of a fixed size or a whole Variant, or is a struct that holds such a column."""
    if wanted.format.startswith("+w:") or is_shredded(have, wanted):
        return True
    fields = zip(have.children, wanted.children, strict=False)
    return have.format == wanted.format == "+s" and any(_needs_nulls(a.type, b.type) for a, b in fields)


def _large_list(column: Column, type_: DataType, max_bytes: int) -> Column:
    wide = _large(column, DataType("+L", column.type.children), max_bytes)
    return restore(wide, type_, max_bytes)


def _list_view(column: Column, type_: DataType, max_bytes: int) -> Column:
    """A list view: the start and the length of each list. It is large if the list's offsets need to be."""
    offsets, items = list_items(column)
    child = restore(items, type_.children[0].type, max_bytes)
    form, width = ("+vL", np.int64) if type_.format == "+vL" or column.type.format == "+L" else ("+vl", np.int32)
    buffers = offsets[:-1].astype(width), np.diff(offsets).astype(width)
    validity, nulls = pack_mask(column.valid_mask())
    made = holding(DataType(form, type_.children), (child,))
    return Column(made, column.length, validity, buffers, nulls, (child,))


def _fixed_list(column: Column, type_: DataType, max_bytes: int) -> Column:
    """Every list must have the hinted size. Items under null lists have no meaning, but they must exist."""
    size = int(type_.format[3:])
    offsets, items = list_items(column)
    lengths, mask = np.diff(offsets.astype(np.int64)), column.valid_mask()
    wrong = lengths != size
    if mask is not None:
        wrong &= mask
    if wrong.any():
        raise HintMismatch(f"a list of {int(lengths[int(np.argmax(wrong))])} items in a column of lists of {size}")
    if mask is None:
        used = items if items.length == size * column.length else take(items, np.arange(offsets[0], offsets[-1]))
    elif _is_bomb(column.length, int(np.count_nonzero(mask)), size * max(items.type.byte_width, 1), max_bytes):
        raise HintMismatch(f"null lists of {size} items each are too large")
    elif items.length == 0:
        used = null_column(items.type, column.length * size)
    else:
        starts = np.where(mask, offsets[:-1], 0).astype(np.int64)
        places = starts[:, None] + np.arange(size)
        places[~mask] = 0
        used = take(items, places.reshape(-1))
    child = restore(used, type_.children[0].type, max_bytes)
    validity, nulls = pack_mask(mask)
    return Column(holding(type_, (child,)), column.length, validity, (), nulls, (child,))


def _is_bomb(rows: int, present: int, row_bytes: int, max_bytes: int) -> bool:
    """Whether null rows would take much memory for which the file holds no bytes."""
    total = rows * row_bytes
    return total > max_bytes or (total > _FREE and present * 1024 < rows)


_Fits = Callable[[str, str], bool]
_Convert = Callable[[Column, DataType, int], Column]
_CONVERSIONS: list[tuple[_Fits, _Convert]] = [
    (lambda a, b: a in ("u", "z") and b == a.upper(), _large),
    # Bytes that do not fit int32 offsets: the column keeps its large type, as it would without a hint.
    (lambda a, b: a in ("U", "Z") and b == a.lower(), lambda column, type_, most: column),
    (lambda a, b: a.lower() in ("u", "z") and b == "v" + a.lower(), _views),
    (lambda a, b: a.startswith("ts") and a[:4] == b[:4], _same_buffers),
    (lambda a, b: (a[:3], b[:3]) in (("tsm", "tss"), ("ttm", "tts")), _by(hinted_layouts.seconds)),
    (lambda a, b: (a, b) == ("tdD", "tdm"), _by(hinted_layouts.days_in_ms)),
    (lambda a, b: a.startswith("d:") and b.startswith("d:"), _by(in_width)),
    (lambda a, b: a == "w:12" and b.startswith("ti"), _by(hinted_layouts.intervals)),
    (lambda a, b: (a, b[:2]) in (("l", "tD"), ("w:16", "_p")), _same_buffers),
    (lambda a, b: a == b and a in ("+s", "+m", "+l", "+L"), _children),
    (lambda a, b: a == "+l" and b == "+L", _large_list),
    (lambda a, b: a == "+L" and b == "+l", lambda one, to, most: restore(one, DataType("+L", to.children), most)),
    (lambda a, b: a in ("+l", "+L") and b in ("+vl", "+vL"), _list_view),
    (lambda a, b: a in ("+l", "+L") and b.startswith("+w:"), _fixed_list),
]
"""(formats that it is for, conversion)."""
