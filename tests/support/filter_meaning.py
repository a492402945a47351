"""What is shown, and where a literal stands among it: the oracle of tests/filters/test_filter_meaning.py.

Values are pyarrow's scalars, as the reader hands them out. A rank can be compared with ranks of its own kind. Nothing
here knows how a file stores anything.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
INFINITE = Fraction(10) ** 400
EPOCH = dt.datetime(1970, 1, 1)
Rank = tuple[Any, ...]


def number(value: Any) -> Rank:
    """NaN above every number, zeros equal."""
    if value != value:
        return ("number", 1, 0)
    if isinstance(value, (float, np.floating, Decimal)) and str(value).lower().lstrip("+-").startswith("inf"):
        return ("number", 0, INFINITE if value > 0 else -INFINITE)
    exact = isinstance(value, np.floating)
    return (
        "number",
        0,
        Fraction(*value.as_integer_ratio()) if exact else Fraction(int(value) if whole(value) else value),
    )


def whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


# ---- values that are shown -----------------------------------------------------------------------------------------


def inside(scalar: Any) -> Any:
    """What a dictionary, a run or an extension type is of; ``None`` for a null."""
    while scalar is not None and scalar.is_valid:
        if isinstance(scalar, pa.DictionaryScalar):
            scalar = scalar.dictionary[scalar.index.as_py()]
        elif isinstance(scalar, (pa.RunEndEncodedScalar, pa.ExtensionScalar)):
            scalar = scalar.value
        else:
            return scalar
    return None


def rank_shown(scalar: Any, type_: pa.DataType) -> Rank | None:
    """``None`` for a null."""
    found = inside(scalar)
    if found is None:
        return None
    if getattr(type_, "extension_name", "") == "arrow.bool8":
        return ("number", 0, Fraction(found.as_py()))
    of = found.type
    if pa.types.is_timestamp(of) or pa.types.is_duration(of) or pa.types.is_time(of):
        return (family(of), 0, Fraction(found.value * NS[of.unit]))
    if pa.types.is_date(of):
        return ("instant", 0, Fraction(found.value * (86_400 * 10**9 if pa.types.is_date32(of) else 10**6)))
    value = found.as_py()
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, (str, bytes)):
        return ("bytes", value.encode() if isinstance(value, str) else value)
    return number(value)


def family(type_: pa.DataType) -> str:
    if pa.types.is_duration(type_):
        return "duration"
    return "clock" if pa.types.is_time(type_) else "instant"


# ---- literals ------------------------------------------------------------------------------------------------------


def rank_literal(literal: Any, type_: pa.DataType) -> Rank | None:
    """``None`` where a column of that type cannot be compared with such a literal."""
    if isinstance(type_, pa.BaseExtensionType):
        if type_.extension_name == "arrow.uuid":
            return _of_uuid(literal)
        if type_.extension_name == "arrow.bool8" and isinstance(literal, (bool, np.bool_)):
            return ("truth", bool(literal))
        return rank_literal(literal, type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return rank_literal(literal, type_.value_type)
    if isinstance(literal, np.bool_):
        literal = bool(literal)
    for fits, rank in _RULES:
        if fits(type_):
            return rank(literal, type_)
    return None


def _of_uuid(literal: Any) -> Rank | None:
    if isinstance(literal, str):
        try:
            literal = uuid.UUID(literal)
        except ValueError:
            return None
    if isinstance(literal, uuid.UUID):
        literal = literal.bytes
    return ("bytes", bytes(literal)) if isinstance(literal, (bytes, bytearray)) else None


def _of_bool(literal: Any, type_: pa.DataType) -> Rank | None:
    return ("bool", literal) if isinstance(literal, bool) else None


def _of_bytes(literal: Any, type_: pa.DataType) -> Rank | None:
    if isinstance(literal, str):
        return ("bytes", literal.encode())
    return ("bytes", bytes(literal)) if isinstance(literal, (bytes, bytearray)) else None


def _of_number(literal: Any, type_: pa.DataType) -> Rank | None:
    if isinstance(literal, (bool, np.timedelta64)):
        return None
    if not isinstance(literal, (int, float, Decimal, Fraction, np.integer, np.floating)):
        return None
    if isinstance(literal, Decimal) and literal.is_snan():
        return None
    if pa.types.is_decimal(type_) and isinstance(literal, (float, np.floating)) and np.isfinite(literal):
        literal = Decimal(repr(float(literal)) if isinstance(literal, float) else str(literal))
    return number(literal)


def _of_instant(literal: Any, type_: pa.DataType) -> Rank | None:
    if isinstance(literal, str):
        try:
            literal = dt.datetime.fromisoformat(literal) if literal[4:5] == "-" else None
        except ValueError:
            return None
    if isinstance(literal, np.datetime64):
        unit = np.datetime_data(literal.dtype)[0]
        if unit in NS:
            return ("instant", 0, Fraction(int(literal.astype(np.int64)) * NS[unit]))
        return ("instant", 0, Fraction(int(literal.astype("M8[s]").astype(np.int64)) * 10**9))
    if isinstance(literal, pa.TimestampScalar):
        ns, aware = literal.value * NS[literal.type.unit], literal.type.tz is not None
    elif isinstance(literal, pd.Timestamp):
        ns, aware = int(literal.as_unit("ns").value), literal.tzinfo is not None
    elif isinstance(literal, dt.datetime):
        since = literal.replace(tzinfo=None) - EPOCH - (literal.utcoffset() or dt.timedelta(0))
        ns, aware = since // dt.timedelta(microseconds=1) * 1000, literal.tzinfo is not None
    elif isinstance(literal, dt.date):
        ns, aware = (literal - EPOCH.date()).days * 86_400 * 10**9, False
    else:
        return None
    has_zone = pa.types.is_timestamp(type_) and type_.tz is not None
    return None if aware and not has_zone else ("instant", 0, Fraction(ns))


def _of_clock(literal: Any, type_: pa.DataType) -> Rank | None:
    if isinstance(literal, str):
        try:
            literal = dt.time.fromisoformat(literal) if literal[2:3] == ":" else None
        except ValueError:
            return None
    if isinstance(literal, pa.Time64Scalar):
        return ("clock", 0, Fraction(literal.value * NS[literal.type.unit]))
    if isinstance(literal, dt.time):
        seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
        return None if literal.tzinfo else ("clock", 0, Fraction(seconds * 10**9 + literal.microsecond * 1000))
    found = _of_duration(literal, type_)
    return found and ("clock", *found[1:])


def _of_duration(literal: Any, type_: pa.DataType) -> Rank | None:
    if isinstance(literal, pd.Timedelta):
        return ("duration", 0, Fraction(literal.as_unit("ns").value))
    if isinstance(literal, dt.timedelta):
        return ("duration", 0, Fraction(literal // dt.timedelta(microseconds=1) * 1000))
    if isinstance(literal, pa.DurationScalar):
        return ("duration", 0, Fraction(literal.value * NS[literal.type.unit]))
    if isinstance(literal, np.timedelta64) and np.datetime_data(literal.dtype)[0] in NS:
        return ("duration", 0, Fraction(int(literal.astype(np.int64)) * NS[np.datetime_data(literal.dtype)[0]]))
    return None


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _is_bytes(type_: pa.DataType) -> bool:
    return any(word in str(type_) for word in ("string", "binary"))


_RULES: list[tuple[Any, Any]] = [
    (pa.types.is_boolean, _of_bool), (_is_number, _of_number), (_is_bytes, _of_bytes), (pa.types.is_date, _of_instant),
    (pa.types.is_timestamp, _of_instant), (pa.types.is_time, _of_clock), (pa.types.is_duration, _of_duration),
]  # fmt: skip


# ---- comparisons ---------------------------------------------------------------------------------------------------


def passes(op: str, shown: Rank | None, literal: Rank) -> bool | None:
    """``None`` (unknown) for a null."""
    if shown is None:
        return None
    if literal[0] == "truth":  # bool8: every byte but 0 is true
        shown = ("truth", shown[2] != 0)
    assert shown[0] == literal[0]
    return bool(
        {
            "==": shown == literal, "!=": shown != literal, "<": shown < literal, "<=": shown <= literal,
            ">": shown > literal, ">=": shown >= literal,
        }[op]
    )  # fmt: skip
