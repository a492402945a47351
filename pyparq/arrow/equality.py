"""Whether two columns hold the same values, whatever their chunks, offsets and layouts of nulls.

NaN equals NaN and 0.0 equals -0.0. Dictionaries, runs and views are compared by the values they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, list_items, ranges, slice_column, struct_child, take
from pyparq.arrow.layouts import normalize
from pyparq.errors import UnsupportedError
from pyparq.format.types import DataType, Field, Schema

STEP = 1 << 18
"""Number of rows compared at a time, so that temporary arrays stay small."""
_SMALL = {"U": "u", "Z": "z", "+L": "+l", "+vL": "+vl"}
_EXTENSION = b"ARROW:extension:name"


# ---- types ---------------------------------------------------------------------------------------------------------


def same_schema(a: Schema, b: Schema, check_metadata: bool = False) -> bool:
    """The same names, types and nullability in the same order; with ``check_metadata``, the same metadata at any
    depth."""
    if len(a) != len(b) or (check_metadata and not _same_pairs(a.metadata, b.metadata)):
        return False
    return all(_same_field(x, y, check_metadata, names=True) for x, y in zip(a, b, strict=True))


def same_type(a: DataType, b: DataType, *, check_metadata: bool = False, offsets: bool = True) -> bool:
    """Whether two types are the same. The names of list items and map parts matter only with ``check_metadata``.
    ``offsets=False``: int32 and int64 offsets count as equal."""
    if _form(a, offsets) != _form(b, offsets) or len(a.children) != len(b.children) or a.ordered != b.ordered:
        return False
    if (a.dictionary is None) != (b.dictionary is None):
        return False
    if a.dictionary is not None and b.dictionary is not None:
        return same_type(a.dictionary, b.dictionary, check_metadata=check_metadata, offsets=offsets)
    named = a.format == "+s" or check_metadata
    if a.format == "+m" and not check_metadata:  # its entries are a struct, of which only the types matter
        pairs = zip(a.children[0].type.children, b.children[0].type.children, strict=False)
        return len(a.children[0].type.children) == len(b.children[0].type.children) and all(
            _same_field(x, y, False, names=False, offsets=offsets) for x, y in pairs
        )
    return all(
        _same_field(x, y, check_metadata, names=named, offsets=offsets)
        for x, y in zip(a.children, b.children, strict=True)
    )


def _same_field(a: Field, b: Field, check_metadata: bool, *, names: bool, offsets: bool = True) -> bool:
    if (names and a.name != b.name) or a.nullable != b.nullable:
        return False
    if check_metadata and not _same_pairs(a.metadata, b.metadata):
        return False
    if a.metadata.get(_EXTENSION) != b.metadata.get(_EXTENSION):  # an extension type is a type of its own
        return False
    return same_type(a.type, b.type, check_metadata=check_metadata, offsets=offsets)


def _form(type_: DataType, offsets: bool) -> str:
    form = type_.format
    if form.startswith("d:"):
        return form.removesuffix(",128")
    return form if offsets else _SMALL.get(form, form)


def _same_pairs(a: Mapping[bytes, bytes], b: Mapping[bytes, bytes]) -> bool:
    return dict(a) == dict(b)


# ---- values --------------------------------------------------------------------------------------------------------


def equal_chunks(a: Sequence[Column], b: Sequence[Column]) -> bool:
    """Whether two columns of one type, each in chunks, have the same values and nulls in the same places."""
    if sum(chunk.length for chunk in a) != sum(chunk.length for chunk in b):
        return False
    a, b = ([_plain(chunk) if chunk.type.is_nested else chunk for chunk in chunks] for chunks in (a, b))
    k = n = at_a = at_b = 0
    while k < len(a) and n < len(b):
        rows = min(a[k].length - at_a, b[n].length - at_b, STEP)
        if rows and not _equal(_part(a[k], at_a, rows), _part(b[n], at_b, rows)):
            return False
        at_a, at_b = at_a + rows, at_b + rows
        if at_a == a[k].length:
            k, at_a = k + 1, 0
        if at_b == b[n].length:
            n, at_b = n + 1, 0
    return True


def _part(column: Column, start: int, rows: int) -> Column:
    return slice_column(column, start, start + rows)


def _equal(a: Column, b: Column) -> bool:
    if _same_indices(a, b):
        return True
    return _same_values(_plain(a), _plain(b), None)


def _same_indices(a: Column, b: Column) -> bool:
    """Whether both are the same indices into the same dictionary object. Equal values in another form are compared
    elsewhere."""
    if a.dictionary is None or a.dictionary is not b.dictionary or a.validity is not None or b.validity is not None:
        return False
    form = DataType(a.type.format)
    one, other = (Column(form, c.length, None, c.buffers, 0, offset=c.offset).values() for c in (a, b))
    return bool(np.array_equal(one, other))


def _plain(column: Column) -> Column:
    """Dictionaries, runs and views laid out; intervals as so many bytes."""
    return normalize(_as_bytes(column), "")


def _as_bytes(column: Column) -> Column:
    """Intervals, at any depth, as the bytes they are."""
    type_ = column.type
    if type_.kind == "interval":
        type_ = DataType(f"w:{type_.byte_width}")
    elif type_.kind == "union":
        raise UnsupportedError(f"columns of {type_} cannot be compared")
    children = tuple(map(_as_bytes, column.children))
    dictionary = None if column.dictionary is None else _as_bytes(column.dictionary)
    if type_ is column.type and dictionary is column.dictionary and all(map(_is, children, column.children)):
        return column
    fields = (replace(f, type=c.type) for f, c in zip(type_.children, children, strict=True))
    type_ = replace(type_, children=tuple(fields), dictionary=None if dictionary is None else dictionary.type)
    return Column(
        type_, column.length, column.validity, column.buffers, column.null_count, children, dictionary, column.offset
    )


def _is(a: object, b: object) -> bool:
    return a is b


def _same_values(a: Column, b: Column, asked: Mask | None) -> bool:
    """Whether two columns of plain layout and equal length are equal at the elements ``asked`` (``None``: all)."""
    mine, others = _present(a, asked), _present(b, asked)
    if mine is None or others is None:
        if not all(mask is None or mask.all() for mask in (mine, others)):
            return False
        mask: Mask | None = None
    elif not np.array_equal(mine, others):
        return False
    else:
        mask = mine
    form = a.type.format
    if form == "n":
        return True
    if form == "+s":
        kids = range(len(a.children))
        return all(_same_values(struct_child(a, k), struct_child(b, k), mask) for k in kids)
    if form.startswith("+w:"):
        size = int(form[3:])
        below = None if mask is None else np.repeat(mask, size)
        return _same_values(_items(a, size), _items(b, size), below)
    if a.type.is_nested:
        return _same_lists(a, b, mask)
    if a.type.is_binary_like:
        return _same_bytes(a, b, mask)
    return _same_fixed(a.values(), b.values(), mask)


def _present(column: Column, asked: Mask | None) -> Mask | None:
    """The elements of ``asked`` that are not null. ``None`` stands for all."""
    mask = column.valid_mask()
    if asked is None:
        return mask
    return asked if mask is None else mask & asked


def _items(column: Column, size: int) -> Column:
    first = column.offset * size
    return slice_column(column.children[0], first, first + column.length * size)


def _same_fixed(a: npt.NDArray[Any], b: npt.NDArray[Any], mask: Mask | None) -> bool:
    if mask is not None:
        a, b = a[mask], b[mask]
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _same_bytes(a: Column, b: Column, mask: Mask | None) -> bool:
    if mask is not None:
        rows = np.flatnonzero(mask)
        a, b = take(a, rows), take(b, rows)
    one, other = a.offsets(), b.offsets()
    if not np.array_equal(np.diff(one), np.diff(other)):
        return False
    mine, theirs = (c.buffers[1].view(np.uint8)[int(o[0]) : int(o[-1])] for c, o in ((a, one), (b, other)))
    return bool(np.array_equal(mine, theirs))


def _same_lists(a: Column, b: Column, mask: Mask | None) -> bool:
    (one, mine), (other, others) = list_items(a), list_items(b)
    lengths, theirs = np.diff(one).astype(np.int64), np.diff(other).astype(np.int64)
    if mask is None:
        if not np.array_equal(lengths, theirs):
            return False
        return _same_values(
            slice_column(mine, int(one[0]), int(one[-1])), slice_column(others, int(other[0]), int(other[-1])), None
        )
    if not np.array_equal(lengths[mask], theirs[mask]):
        return False
    lengths = lengths[mask]
    used = [ranges(edges[:-1][mask].astype(np.int64), lengths) for edges in (one, other)]
    return _same_values(take(mine, used[0]), take(others, used[1]), None)
