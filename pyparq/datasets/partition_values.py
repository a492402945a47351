"""Values of partition columns of a declared type, from the names of folders. Nothing is rounded or cut off."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import VIEWS, as_views, fixed_column, null_column, pack_mask
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.errors import DataError, ParquetError
from pyparq.format.types import DataType

_FLAGS = {"true": True, "false": False}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DATE = re.compile(r"[+-]?\d{4,9}-\d\d-\d\d")
_MOMENT = re.compile(rf"({_DATE.pattern})[ T](\d\d:\d\d:\d\d)(?:\.(\d{{1,18}}))?")
"""Timestamps as :mod:`pyparq.datasets.partition_texts` writes them: any year, any number of digits."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def declared_column(name: str, texts: Sequence[str | None], type_: DataType) -> Column:
    """The column of these texts. ``None`` is null. Raises :class:`DataError` for a text that is no value of the
    type."""
    if type_.dictionary is not None:
        return _dictionary(name, texts, type_, type_.dictionary)
    if type_.format in VIEWS:
        return as_views(declared_column(name, texts, DataType("u" if type_.kind == "string" else "z")), type_)
    try:
        values = [None if text is None else _parsed(text, type_) for text in texts]
        if type_.kind == "timestamp":
            return _of_ticks(values, type_)
        return cast(column_from_list(values, name), type_, name)
    except (ParquetError, ValueError, ArithmeticError) as error:
        raise DataError(f"a partition value is not a {type_}: {error}", column=name) from None


def _dictionary(name: str, texts: Sequence[str | None], type_: DataType, of: DataType) -> Column:
    """The distinct values, and the codes."""
    known = {text: k for k, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    codes = DataType(type_.format).numpy_dtype
    if len(known) > 1 << (8 * codes.itemsize - 1):
        raise DataError(f"{len(known):,} partition values are too many for the indices of {type_}", column=name)
    if not known:
        return null_column(type_, len(texts))
    mask = np.array([text is not None for text in texts], np.bool_)
    numbers = np.array([0 if text is None else known[text] for text in texts], codes)
    validity, nulls = pack_mask(None if mask.all() else mask)
    return Column(type_, len(texts), validity, (numbers,), nulls, (), declared_column(name, list(known), of))


def _of_ticks(ticks: Sequence[int | None], type_: DataType) -> Column:
    mask = np.array([tick is not None for tick in ticks], np.bool_)
    return fixed_column(type_, np.array([tick or 0 for tick in ticks], np.int64), None if mask.all() else mask)


def _parsed(text: str, type_: DataType) -> Any:
    """A value from its text. For a timestamp, its number in the type's unit."""
    kind = type_.kind
    if kind in ("int", "uint"):
        return int(text)
    if kind == "float":
        return _float(text)
    if kind == "bool":
        if text.lower() not in _FLAGS:
            raise ValueError(f"{text!r} is neither true nor false")
        return _FLAGS[text.lower()]
    if kind == "decimal":
        return Decimal(text)
    if kind == "date":
        return _date(text)
    if kind == "timestamp":
        return _ticks(text, type_.unit, bool(type_.timezone))
    if kind == "binary":
        return text.encode("utf-8", "surrogateescape")
    return text


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(f"{text} is too large")
    return value


def _date(text: str) -> Any:
    # numpy has years beyond Python's.
    return np.datetime64(text, "D") if _DATE.fullmatch(text) else dt.date.fromisoformat(text)


def _ticks(text: str, unit: str, zoned: bool) -> int:
    """Ticks since 1970 in ``unit``: of an instant in UTC (a text without a zone is in UTC too), or, if not ``zoned``,
    of a local time."""
    match = _MOMENT.fullmatch(text)
    if match is not None:
        seconds = Fraction(int(np.datetime64(f"{match[1]}T{match[2]}", "s").astype(np.int64)))
        if match[3]:
            seconds += Fraction(int(match[3]), 10 ** len(match[3]))
    elif _DATE.fullmatch(text):
        seconds = Fraction(int(np.datetime64(text, "D").astype(np.int64)) * 86_400)
    else:
        value = dt.datetime.fromisoformat(text)
        if value.tzinfo is not None and not zoned:
            raise ValueError(f"{text} has a time zone")
        since = (value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)) - _EPOCH
        seconds = Fraction(since // dt.timedelta(microseconds=1), 10**6)
    ticks = seconds * _TICKS[unit]
    if ticks.denominator != 1:
        raise ValueError(f"{text} has a finer unit")
    if not -(1 << 63) < ticks < 1 << 63:
        raise ValueError(f"{text} does not fit 64 bits in {unit}")
    return int(ticks)
