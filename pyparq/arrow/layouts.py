"""Arrow's many layouts of one type to the plain ones: dictionaries and runs decoded, views laid out as offsets,
intervals as Parquet's INTERVAL.

After this a column's type is null, bool, a number, ``u U z Z``, fixed width, decimal, date, time, timestamp, list,
large list, fixed-size list, struct or map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import (
    binary_column,
    fixed_column,
    list_column,
    null_column,
    pack_mask,
    ranges,
    take,
)
from pyparq.arrow.schema.extensions import FIELD_ID, LOGICAL_TYPE
from pyparq.errors import DataError
from pyparq.format.types import DataType, Field, Schema
from pyparq.kernels import KernelError, lay_out_views, tally_codes

_PLAIN = frozenset("nbcCsSiIlLefguUzZ") | {"tdD", "tdm", "tts", "ttm", "ttu", "ttn"}
"""Formats of types that are plain as they are (not all such)."""
_VIEWS = {"vu": "U", "vz": "Z"}
BoolArray = npt.NDArray[np.bool_]


def normal_schema(schema: Schema) -> Schema:
    """The same object when all types are plain already."""
    for field in schema.fields:
        if field.type.dictionary is not None or field.type.format not in _PLAIN:
            return replace(schema, fields=tuple(map(normal_field, schema.fields)))
    return schema


def normal_field(field: Field) -> Field:
    type_ = normal_type(field.type)
    if type_ is field.type:
        return field
    if field.type.kind == "interval":
        return replace(field, type=type_, metadata={**field.metadata, LOGICAL_TYPE: b"INTERVAL"})
    if field.type.dictionary is None:
        return replace(field, type=type_)
    # Other metadata of a dictionary column (polars' categories) do not hold for its values.
    return replace(field, type=type_, metadata={k: v for k, v in field.metadata.items() if k == FIELD_ID})


def normal_type(type_: DataType) -> DataType:
    """The plain type that a column of ``type_`` gets; the same object when it is plain already."""
    if type_.dictionary is None and type_.format in _PLAIN:
        return type_
    if type_.dictionary is not None:
        value = normal_type(type_.dictionary)
        # The decoded strings may need offsets that the dictionary did not.
        return DataType({"u": "U", "z": "Z"}.get(value.format, value.format), value.children)
    if type_.format in _VIEWS:
        return DataType(_VIEWS[type_.format])
    if type_.format.startswith("d:") and type_.format.endswith(",128"):
        return DataType(type_.format.removesuffix(",128"))
    if type_.kind == "interval":
        return DataType("w:12")
    if type_.kind == "run_end" and len(type_.children) == 2:
        value = normal_type(type_.children[1].type)
        return DataType({"u": "U", "z": "Z"}.get(value.format, value.format), value.children)
    children = tuple(normal_field(f) for f in type_.children)
    if type_.kind == "list_view":
        return DataType({"+vl": "+l", "+vL": "+L"}[type_.format], children)
    if all(a is b for a, b in zip(children, type_.children, strict=True)):
        return type_
    return DataType(type_.format, children)


def normalize(column: Column, name: str, present: BoolArray | None = None) -> Column:
    """The column in its plain layout (the same object if it has it).

    ``name`` is for errors. ``present`` marks the elements that exist in the structs and fixed-size lists around it.
    Elements under a null may be anything, even an index into an empty dictionary (pyarrow's builders make such).
    """
    target = normal_type(column.type)
    if target is column.type:
        return column
    if column.type.dictionary is not None:
        return _decoded(column, target, name, present)
    if column.type.format in _VIEWS:
        return _from_views(column, target, name)
    if column.type.kind == "interval":
        return intervals(column, target, name)
    if column.type.kind == "run_end":
        return _from_runs(column, target, name)
    if column.type.kind == "list_view":
        return _from_list_views(column, target, name)
    children = tuple(normalize(c, name, _present_below(column, c, present)) for c in column.children)
    return Column(
        target, column.length, column.validity, column.buffers, column.null_count, children, None, column.offset
    )


def _present_below(column: Column, child: Column, present: BoolArray | None) -> BoolArray | None:
    """Which elements of ``child`` stand below a struct or fixed-size list that is there; ``None`` when all do."""
    if column.type.format != "+s" and not column.type.format.startswith("+w:"):
        return None  # the items are those that the offsets reach: nulls need not have any
    size = 1 if column.type.format == "+s" else int(column.type.format[3:])
    mask = _both(column.valid_mask(), present)
    if mask is None and child.length == size * column.length:
        return None
    below = np.zeros(child.length, np.bool_)
    first = size * column.offset
    below[first : first + size * column.length] = True if mask is None else np.repeat(mask, size)
    return below


def _decoded(column: Column, target: DataType, name: str, present: BoolArray | None) -> Column:
    if column.dictionary is None:
        raise DataError("the column is dictionary-encoded but has no dictionary", column=name)
    values = normalize(column.dictionary, name)
    mask = column.valid_mask()
    index_type = DataType(column.type.format)
    rows = Column(index_type, column.length, None, column.buffers, 0, offset=column.offset).values()
    used = _both(mask, present)
    if used is not None:
        rows = np.where(used, rows, 0)
    if values.length == 0:
        if column.length if used is None else used.any():
            raise DataError("the column has dictionary indices, but its dictionary is empty", column=name)
        return null_column(target, column.length)
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= values.length):
        raise DataError(f"a dictionary index is outside of 0 to {values.length - 1}", column=name)
    if values.valid_mask() is None and not values.type.is_nested and values.type.format != "n":
        return SpelledColumn(target, values, np.ascontiguousarray(rows, np.int32), mask)  # the writer may keep them
    taken = take(values, rows.astype(np.int64))
    mask = _both(mask, taken.valid_mask())
    if taken.type.is_binary_like:
        return binary_column(target, taken.offsets(), taken.buffers[1], mask)
    return with_mask(taken, mask)


def _from_runs(column: Column, target: DataType, name: str) -> Column:
    """Run ``k`` ends before element ``ends[k]`` (counted with the array's offset) and has value ``k``."""
    ends = column.children[0].values().astype(np.int64)
    values = normalize(column.children[1], name)
    first, last = column.offset, column.offset + column.length
    rising = len(ends) == 0 or (int(ends[0]) > 0 and bool(np.all(ends[1:] > ends[:-1])))
    if not rising or values.length < len(ends) or (column.length and (len(ends) == 0 or int(ends[-1]) < last)):
        raise DataError("the run ends do not increase, or stop before the end of the array", column=name)
    taken = take(values, np.searchsorted(ends, np.arange(first, last, dtype=np.int64), side="right"))
    if taken.type.is_binary_like:
        return binary_column(target, taken.offsets(), taken.buffers[1], taken.valid_mask())
    return taken


def _from_list_views(column: Column, target: DataType, name: str) -> Column:
    """List views may lie in any order and overlap: the items are gathered into place."""
    dtype = np.int64 if column.type.format == "+vL" else np.int32
    first, last = column.offset, column.offset + column.length
    starts, lengths = (b.view(dtype)[first:last].astype(np.int64) for b in column.buffers)
    items, mask = normalize(column.children[0], name), column.valid_mask()
    if mask is not None:
        lengths[~mask] = 0
    used = lengths > 0
    if np.any(lengths < 0) or np.any(starts[used] < 0) or np.any((starts + lengths)[used] > items.length):
        raise DataError("a list view points outside of its items", column=name)
    taken = take(items, ranges(starts, lengths))
    return list_column(target, np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), taken, mask)


def _both(a: BoolArray | None, b: BoolArray | None) -> BoolArray | None:
    """Two masks as one; ``None`` stands for all."""
    return b if a is None else a if b is None else a & b


def with_mask(column: Column, mask: BoolArray | None) -> Column:
    """The same values under another validity (for a column that starts at offset 0)."""
    validity, nulls = pack_mask(mask)
    return Column(column.type, column.length, validity, column.buffers, nulls, column.children)


# ---- views ---------------------------------------------------------------------------------------------------------


def _from_views(column: Column, target: DataType, name: str) -> Column:
    """String views: 16 bytes per value, a length, then the bytes themselves or (prefix, buffer, offset)."""
    first, last = column.offset, column.offset + column.length
    views = np.ascontiguousarray(column.buffers[0].view(np.uint8)[16 * first : 16 * last])
    buffers = [b.view(np.uint8) for b in column.buffers[1:-1]]  # the last one holds the others' sizes
    mask = column.valid_mask()
    try:
        offsets, data = lay_out_views(views, None if mask is None else mask.view(np.uint8), buffers)
    except KernelError as error:
        raise DataError(str(error), column=name) from None
    return binary_column(target, offsets, data, mask)


_NS_PER_MS = 1_000_000
_MOST = (1 << 32) - 1


def intervals(column: Column, target: DataType, name: str) -> Column:
    """A column of 12-byte intervals from one of months, of days and milliseconds, or of months, days and nanoseconds.

    Raises :class:`DataError` with the row for what INTERVAL cannot hold: negative parts, and times of day that are not
    whole milliseconds or beyond 49 days.
    """
    raw = np.ascontiguousarray(column.values())
    count, mask = column.length, column.valid_mask()
    months: npt.NDArray[Any] = np.zeros(count, np.int64)
    days: npt.NDArray[Any] = months
    ms: npt.NDArray[Any] = months
    exact = np.ones(count, np.bool_)
    words = raw.reshape(-1).view("<i4").reshape(count, column.type.byte_width // 4)
    if column.type.format == "tiM":
        months = words[:, 0]
    elif column.type.format == "tiD":
        days, ms = words[:, 0], words[:, 1]
    else:
        months, days = words[:, 0], words[:, 1]
        ns = raw.reshape(-1).view("<i8").reshape(count, 2)[:, 1]
        ms, rest = np.divmod(ns, _NS_PER_MS)
        exact = rest == 0
    ok = exact & (months >= 0) & (days >= 0) & (ms >= 0) & (ms <= _MOST)
    bad = ~ok if mask is None else ~ok & mask
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"row {row}: a Parquet INTERVAL has no negative parts and is exact to the millisecond only "
            f"({months[row]} months, {days[row]} days, {ms[row]} ms"
            f"{'' if exact[row] else ' and a fraction of a millisecond'})",
            column=name,
        )
    out = np.zeros((count, 3), "<u4")
    for k, part in enumerate((months, days, ms)):
        out[:, k] = part if mask is None else np.where(mask, part, 0)
    return fixed_column(target, out.view(np.uint8).reshape(count, 12), mask)


Codes = npt.NDArray[np.int32]


class SpelledColumn(Column):
    """A column of a plain type whose values are entries of ``dictionary``.

    ``codes`` has the entry of each element (0 where ``mask`` is false, for nulls). ``buffers`` are made when they are
    accessed.
    """

    __slots__ = ("_entries", "_mask", "codes")

    codes: Codes  # type: ignore[misc]

    def __init__(self, type: DataType, dictionary: Column, codes: Codes, mask: npt.NDArray[np.bool_] | None) -> None:
        self.type = type
        self.length = len(codes)
        self.validity, self.null_count = pack_mask(mask)
        self.children = ()
        self.dictionary = self._entries = dictionary  # some take the former away, who want nothing kept
        self.offset = 0
        self.codes = codes
        self._mask = mask

    def __getattr__(self, name: str) -> Any:
        if name != "buffers":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        taken = take(self._entries, self.codes.astype(np.int64))
        if self.type.is_binary_like:
            taken = binary_column(self.type, taken.offsets(), taken.buffers[1])
        self.buffers = taken.buffers
        return self.buffers

    def __reduce__(self) -> tuple[Any, ...]:
        return Column, (
            self.type, self.length, self.validity, self.buffers, self.null_count, (), self.dictionary, 0
        )  # fmt: skip

    def part(self, start: int, stop: int) -> SpelledColumn:
        """Elements ``start`` to ``stop``."""
        mask = None if self._mask is None else self._mask[start:stop]
        return self._of(self.codes[start:stop], mask)

    def taken(self, rows: npt.NDArray[np.int64]) -> SpelledColumn:
        """The elements at ``rows``, which must exist."""
        mask = None if self._mask is None else self._mask[rows]
        return self._of(self.codes[rows], mask)

    def _of(self, codes: Codes, mask: npt.NDArray[np.bool_] | None) -> SpelledColumn:
        made = SpelledColumn(self.type, self._entries, codes, mask)
        made.dictionary = self.dictionary
        return made

    def text_bytes(self, start: int, stop: int) -> int:
        """Bytes of the strings of these elements."""
        lengths = np.diff(self._entries.offsets()).astype(np.int32)
        edges = np.array([0, stop - start], np.int64)
        return int(tally_codes(self.codes[start:stop], edges, len(lengths), lengths)[2][0])
