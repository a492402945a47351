"""Splits the rows of a batch into partitions, by the distinct values of its partition columns. Their texts name
folders, as Spark writes them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import binary_column, fixed_column, take
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.to_python import column_to_pylist
from pyparq.datasets.kept_files import PREFIX
from pyparq.datasets.partitions import NULL, escaped
from pyparq.errors import DataError, OptionError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Schema
from pyparq.kernels import dict_encode_binary, dict_encode_fixed, divide_binary, divide_fixed
from pyparq.write.row_groups import slice_batch

_MAX_NAME = 255
"""Bytes of one name that file systems take."""
_MOST_ROWS = 1 << 20
"""Rows that are divided together. Their copies are in memory beside the batch."""


def _plain(column: Column, name: str) -> list[Any]:
    return ["" if value is None else str(value) for value in column_to_pylist(column)]


def _floats(column: Column, name: str) -> list[Any]:
    return [_float(value) for value in column.values()]


def _float(value: Any) -> str:
    """A float as Java's ``Double.toString`` and ``Float.toString`` write it: the fewest digits that restore the
    value."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    digits, _, exponent = np.format_float_scientific(value, unique=True, trim="0").partition("e")
    if digits.endswith(".0"):  # Java has two digits, and so the two that are nearest: 4.9E-324
        digits, _, exponent = f"{float(value):.1e}".partition("e")
    return f"{digits}E{int(exponent)}"


def _decimals(column: Column, name: str) -> list[Any]:
    return ["" if value is None else format(value, "f") for value in column_to_pylist(column)]


def _dates(column: Column, name: str) -> list[Any]:
    values = column.values().view("M8[ms]") if column.type.format == "tdm" else column.values()
    return [moment_text(day) for day in values.astype("M8[D]")]


def _timestamps(column: Column, name: str) -> list[Any]:
    """``2024-02-29 10:00:00.5``: without a zone. Timestamps with a zone are written in UTC."""
    return [moment_text(moment) for moment in column.values().view(f"M8[{column.type.unit}]")]


def moment_text(moment: np.datetime64) -> str:
    """A day or a point in time without zeros at the end of a second's part. Years before 0 and after 9999 have a sign,
    and all have four digits or more: ``-0001-03-01``, ``+10000-01-01``."""
    text = str(moment).replace("T", " ")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    year, rest = text[: text.index("-", 1)], text[text.index("-", 1) :]
    number = int(year)
    return f"{'-' if number < 0 else '+' if number > 9999 else ''}{abs(number):04d}{rest}"


def _binary(column: Column, name: str) -> list[Any]:
    try:
        return [(value or b"").decode() for value in column_to_pylist(column)]
    except UnicodeDecodeError:
        raise DataError(
            "a binary partition value is not UTF-8, so no folder can be named after it", column=name
        ) from None


_TEXTS: dict[str, Callable[[Column, str], list[Any]]] = {
    "int": _plain, "uint": _plain,
    "bool": lambda column, name: ["true" if value else "false" for value in column_to_pylist(column)],
    "float": _floats, "string": _plain, "binary": _binary,
    "decimal": _decimals, "date": _dates, "timestamp": _timestamps, "null": _plain,
}  # fmt: skip


class PartitionNames:
    """How the folders and files of a write are called: as Spark calls them."""

    in_each_folder = False
    """Whether files are numbered in each folder anew, and not over all of them."""
    digits = "05d"
    """The form of their numbers."""

    def check(self, name: str, type_: DataType) -> None:
        """Raise :class:`UnsupportedError` for a type whose values cannot be written in the name of a folder."""
        if type_.kind not in _TEXTS:
            raise UnsupportedError(
                f"a column of type {type_} cannot be a partition column. Cast it to a string, a number, a date or a "
                "timestamp first",
                column=name,
            )

    def texts(self, column: Column, name: str) -> list[str | None]:
        """The text of each value. ``None`` for null, and for the empty string, which Spark makes null too."""
        if column.length == 0:
            return []
        texts = _TEXTS[column.type.kind](column, name)
        mask = column.valid_mask()
        present = [True] * column.length if mask is None else mask.tolist()
        return [text if is_valid and text else None for text, is_valid in zip(texts, present, strict=True)]

    def folder(self, column: str, text: str | None) -> str:
        """The name of the folder of a value, without a check of its length; empty for none."""
        if text == NULL:
            raise DataError(f"the value {text!r} of a partition column would be read back as null", column=column)
        return f"{escaped(column)}={NULL if text is None else escaped(text)}"


SPARK_NAMES = PartitionNames()

Codes = npt.NDArray[np.int64]
_ALL = 1 << 62
"""No limit on the size of a dictionary."""


class Splitter:
    """Splits batches of ``schema`` by the columns ``names``, which are removed from the data.

    Raises :class:`OptionError` for names that are no columns, :class:`UnsupportedError` for types whose values cannot
    name folders, and :class:`DataError` if no other column is left.
    """

    def __init__(self, schema: Schema, names: Sequence[str], called: PartitionNames = SPARK_NAMES) -> None:
        columns = schema.names
        for name in names:
            if name not in columns:
                near = near_matches(name, columns)
                raise OptionError(f"the partition column {name!r} is not in the data{near}", column=name)
            if columns.count(name) > 1:
                raise OptionError(
                    f"{columns.count(name)} columns have the name {name!r}: rename all but the partition column",
                    column=name,
                )
        self._names, self._called = list(names), called
        self._places = [columns.index(name) for name in names]
        self._kept = [k for k in range(len(schema.fields)) if k not in self._places]
        for name, place in zip(names, self._places, strict=True):
            called.check(name, schema.fields[place].type)
        if names and not self._kept and not called.in_each_folder:
            raise DataError("every column is a partition column, so nothing is left to write to the files")
        self.schema = replace(schema, fields=tuple([schema.fields[k] for k in self._kept]))
        """Of the files: without the partition columns."""

    def split(self, batch: RecordBatch) -> Iterable[tuple[tuple[str, ...], RecordBatch]]:
        """The folders of each partition in the batch, and its rows in their order."""
        if not self._names and batch.num_rows:
            return [((), RecordBatch([batch.columns[k] for k in self._kept], batch.num_rows))]
        starts = range(0, batch.num_rows, _MOST_ROWS)
        some = (slice_batch(batch, start, min(start + _MOST_ROWS, batch.num_rows)) for start in starts)
        return chain.from_iterable(map(self._split, some))

    def _split(self, batch: RecordBatch) -> list[tuple[tuple[str, ...], RecordBatch]]:
        codes, named = [], []
        for name, place in zip(self._names, self._places, strict=True):
            code, texts = self._codes(batch.columns[place], name)
            codes.append(code)
            named.append(["", *self._folders(name, texts[1:])] if code.all() else self._folders(name, texts))
        groups, firsts, counts = _groups(codes)
        divided = [_divided(batch.columns[k], groups, counts) for k in self._kept]
        of_columns = [
            [folder[code] for code in some[firsts].tolist()] for some, folder in zip(codes, named, strict=True)
        ]
        folders = [self._path(names) for names in zip(*of_columns, strict=True)]
        batches = [RecordBatch([parts[n] for parts in divided], count) for n, count in enumerate(counts.tolist())]
        return [*zip(folders, batches, strict=True)]

    def _path(self, names: Sequence[str]) -> tuple[str, ...]:
        """The folders from the root on: a value may be several, or none. Raises :class:`DataError` for none before
        others: those would be taken for its values."""
        path = "/".join(names).rstrip("/")
        if path.startswith("/") or "//" in path:
            text = "a null or empty partition value before another one would be read back as that"
            raise DataError(text, column=self._names[names.index("")])
        return tuple(path.split("/")) if path else ()

    def _folders(self, column: str, texts: Sequence[str | None]) -> list[str]:
        """The names of folders. Raises :class:`DataError` for one that file systems do not take."""
        found = []
        for text in texts:
            name = self._called.folder(column, text)
            try:
                size = len(os.fsencode(name))
            except UnicodeEncodeError:
                raise DataError(f"the partition value {text!r} is not valid Unicode", column=column) from None
            if name.startswith(PREFIX):
                raise DataError(f"the folder name {name!r} is kept for writes that are under way", column=column)
            if "\x00" in name or size > _MAX_NAME:
                zero = "contains a zero byte"
                why = zero if "\x00" in name else f"makes a folder name of {size} bytes, over {_MAX_NAME}"
                raise DataError(f"the partition value {(text or '')[:40]!r} {why}", column=column)
            found.append(name)
        return found

    def _codes(self, column: Column, name: str) -> tuple[Codes, list[str | None]]:
        """A number for each row, and the text of each number. Values with the same text have the same number."""
        mask = column.valid_mask()
        present = np.arange(column.length) if mask is None else np.flatnonzero(mask)
        if column.type.kind == "null" or not len(present):
            return np.zeros(column.length, np.int64), [None]
        some = column if mask is None else take(column, present)
        indices, firsts = _distinct(some)
        numbers: dict[str | None, int] = {None: 0}
        own = [numbers.setdefault(text, len(numbers)) for text in self._called.texts(take(some, firsts), name)]
        codes = np.zeros(column.length, np.int64)
        codes[present] = np.array(own, np.int64)[indices]
        return codes, list(numbers)


def _groups(codes: Sequence[Codes]) -> tuple[npt.NDArray[np.int32], Codes, Codes]:
    """Each row's combination of codes as a number from 0 on; of each combination its first row, and how many it has."""
    combined = codes[0]
    for code in codes[1:]:
        combined = _numbered(combined * (int(code.max()) + 1) + code)[0].astype(np.int64)
    numbers, firsts = _numbered(combined)
    return numbers, firsts, np.bincount(numbers)


def _divided(column: Column, groups: npt.NDArray[np.int32], counts: Codes) -> Sequence[Column]:
    """The values of each group, in their order. ``groups``: that of each row. ``counts``: the rows of each."""
    type_ = column.type
    if len(counts) == 1:
        return [column]
    width = 1 if type_.format == "b" else type_.byte_width
    if (
        type_.is_nested
        or type_.dictionary is not None
        or column.codes is not None
        or not (width or type_.is_binary_like)
    ):
        order = np.argsort(groups.astype(np.uint16 if len(counts) <= 1 << 16 else np.int64), kind="stable")
        return [take(column, rows) for rows in np.split(order, np.cumsum(counts)[:-1])]
    mask = column.valid_mask()
    masks = [None] * len(counts) if mask is None else [m.view(np.bool_) for m in divide_fixed(mask, 1, groups, counts)]
    if not width:
        offsets, data = np.ascontiguousarray(column.offsets()), column.buffers[1].view(np.uint8)
        parts = divide_binary(offsets, data, groups, counts)
        return [binary_column(type_, edges, data, m) for (edges, data), m in zip(parts, masks, strict=True)]
    values = np.ascontiguousarray(column.values())
    divided = divide_fixed(values.reshape(-1).view(np.uint8), width, groups, counts)
    typed = [part.view(values.dtype) for part in divided]
    if mask is None and type_.format != "b":
        return [Column(type_, count, None, (part,), 0) for part, count in zip(typed, counts.tolist(), strict=True)]
    return [fixed_column(type_, part.reshape(-1, *values.shape[1:]), m) for part, m in zip(typed, masks, strict=True)]


def _distinct(column: Column) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """For each value the number of its distinct value, and the first position of each distinct value."""
    if column.type.is_binary_like:
        return dict_encode_binary(column.offsets().astype(np.int64), column.buffers[1].view(np.uint8), _ALL)
    return _numbered(np.ascontiguousarray(column.values()))


def _numbered(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    return dict_encode_fixed(values.reshape(-1).view(np.uint8), values.nbytes // len(values), len(values))
