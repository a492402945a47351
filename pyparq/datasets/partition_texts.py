"""Values of partition columns as text for the names of folders, as Spark writes it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.to_python import column_to_pylist
from pyparq.datasets.folder_names import NULL, escaped
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType

_MAX_NAME = 255
"""Bytes of one name that file systems take."""


def check_partition_type(name: str, type_: DataType) -> None:
    """Raise :class:`UnsupportedError` for a type whose values cannot be written in the name of a folder."""
    if type_.kind not in _TEXTS:
        raise UnsupportedError(
            f"a column of type {type_} cannot be a partition column. Cast it to a string, a number, a date or a "
            "timestamp first",
            column=name,
        )


def folder_name(column: str, text: str | None) -> str:
    """``column=value``, both escaped. ``None`` is null. Raises :class:`DataError` for a value that cannot be in the
    name of a folder."""
    name = f"{escaped(column)}={NULL if text is None else escaped(text)}"
    if text == NULL:
        raise DataError(f"the value {text!r} of a partition column would be read back as null", column=column)
    try:
        size = len(os.fsencode(name))
    except UnicodeEncodeError:
        raise DataError(f"the partition value {text!r} is not valid Unicode", column=column) from None
    if "\x00" in name or size > _MAX_NAME:
        why = "contains a zero byte" if "\x00" in name else f"makes a folder name of {size} bytes, over {_MAX_NAME}"
        raise DataError(f"the partition value {(text or '')[:40]!r} {why}", column=column)
    return name


def texts_of(column: Column, name: str) -> list[str | None]:
    """The text of each value. ``None`` for null, and for the empty string, which Spark makes null too."""
    if column.length == 0:
        return []
    texts = _TEXTS[column.type.kind](column, name)
    mask = column.valid_mask()
    present = [True] * column.length if mask is None else mask.tolist()
    return [text if there and text else None for text, there in zip(texts, present, strict=True)]


def _plain(column: Column, name: str) -> list[Any]:
    return ["" if value is None else str(value) for value in column_to_pylist(column)]


def _flags(column: Column, name: str) -> list[Any]:
    return ["true" if value else "false" for value in column_to_pylist(column)]


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


def _nulls(column: Column, name: str) -> list[Any]:
    return [""] * column.length


_TEXTS: dict[str, Callable[[Column, str], list[Any]]] = {
    "int": _plain, "uint": _plain, "bool": _flags, "float": _floats, "string": _plain, "binary": _binary,
    "decimal": _decimals, "date": _dates, "timestamp": _timestamps, "null": _nulls,
}  # fmt: skip
