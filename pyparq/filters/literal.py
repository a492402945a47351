"""Where a Python literal stands among the values that a leaf can hold, and what a stored value looks like.

Nothing is rounded: a literal that the leaf cannot hold (3.5 for an integer, 2**40 for an int32, 0.1 for a
float) is located between its two neighbours, and the comparison is rewritten in terms of those.
Conventions:

- A naive ``datetime`` on a UTC column means UTC; an aware one on a column of local times is refused,
  because the zone of such a column is not known. INT96 timestamps are instants in UTC by convention: both
  are accepted.
- A ``date`` on a timestamp column is that day's midnight. ISO 8601 strings stand for dates, times,
  timestamps.
- A Python ``float`` on a decimal column stands for the decimal number it prints as: 9.99 is 9.99.
- ``str`` is its UTF-8 bytes, also on binary columns; on a UUID column it is the UUID's text.
"""

from __future__ import annotations

import math
import numbers
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from pyparq.errors import FilterError, SchemaError
from pyparq.filters.times import DAY_NS, UNIT_NS, date_ns, duration_ns, shown_clock, time_ns, timestamp_ns
from pyparq.filters.value_array import BYTES_KINDS, plain
from pyparq.format.hybrid_calendar import meant
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.runtime.text import printable


class Place(NamedTuple):
    """``below`` is the largest value of the leaf's domain that is <= the literal, ``above`` the smallest >=
    it.

    They are one object when the leaf can hold the literal, and ``None`` where there is no such value. NaN lies
    above every number, so ``above`` is ``None`` for a NaN on a leaf without NaN; on a float leaf both are
    NaN.
    """

    below: Any | None
    above: Any | None

    @property
    def exact(self) -> bool:
        return self.below is not None and self.below is self.above


class Interpreted:
    """A literal that the types of a dataset have given its meaning: a number, bytes, or nanoseconds since 1970. The
    types of a file do not interpret it again."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @printable
    def __repr__(self) -> str:
        return repr(self.value)


FLOAT_TYPES: dict[str, Any] = {"float16": np.float16, "float": np.float32, "double": np.float64}


class WrittenNumber(Decimal):
    """A number as SQL text has it. Beside floats it is the nearest float of their width, so that a printed value finds
    itself. Beside everything else it is exact."""

    __slots__ = ()

    def beside(self, kind: str) -> Any:
        """The value that it has beside a column of ``kind``."""
        narrow = FLOAT_TYPES.get(kind)
        if narrow is None:
            return Decimal(self)
        with np.errstate(over="ignore", under="ignore"):
            near = narrow(str(self))
        # Beyond the range of the type there is no nearest float. It is compared as the exact number.
        vanished = (np.isinf(near) and self.is_finite()) or (near == 0 and self != 0)
        return Decimal(self) if vanished else float(near)

    def __neg__(self, context: Any = None) -> WrittenNumber:
        return WrittenNumber(self.copy_negate())  # which keeps all digits

    def __repr__(self) -> str:
        return str(self)


def locate(leaf: LeafType, value: Any, column: str) -> Place:
    """The place of ``value`` in the comparable domain of ``leaf``.

    Raises :class:`FilterError` naming ``column`` when a value of that kind cannot be compared with the leaf.
    """
    kind = leaf.kind
    if type(value) is int and kind in ("int", "uint"):  # the common case first
        low = -(1 << leaf.bits - 1) if kind == "int" else 0
        return Place(value, value) if low <= value < low + (1 << leaf.bits) else _in_range(value, value, leaf)
    locator, advice = _KINDS.get(kind, (_locate_unordered, ""))
    try:
        if isinstance(value, Interpreted):
            return _OF_INTERPRETED.get(kind, locator)(leaf, value.value)
        return locator(leaf, plain(value))
    except _Mismatch as mismatch:
        hint = str(mismatch) or advice
    except (ValueError, ArithmeticError) as error:
        hint = f"{error}; {advice}"
    value = value.value if isinstance(value, Interpreted) else value
    try:
        shown = repr(value)
    except Exception:  # pandas' Timestamps beyond Python's years have none
        shown = "without a repr"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    name = "number" if isinstance(value, WrittenNumber) else type(value).__name__
    raise FilterError(
        f"cannot compare a column of type {describe(leaf)} with {name} {shown}: {hint}",
        column=column,
    )


def describe(leaf: LeafType) -> str:
    """The leaf's type in the words of a user: ``int32``, ``decimal(9, 2)``, ``timestamp[us, UTC]``."""
    kind = leaf.kind
    if kind in ("int", "uint"):
        return f"{kind}{leaf.bits}"
    if kind == "decimal":
        return f"decimal({leaf.precision}, {leaf.scale})"
    if kind == "timestamp":
        return f"timestamp[{leaf.unit}{', UTC' if leaf.utc else ''}]"
    if kind == "time":
        return f"time[{leaf.unit}]"
    return f"fixed[{leaf.length}]" if kind == "fixed" else kind


class _Mismatch(Exception):
    """The literal is of a kind that the leaf cannot be compared with."""


def type_text(leaf: Node) -> str:
    """A leaf's type as a user knows it; its physical type where the annotation makes no sense."""
    try:
        return describe(leaf.type)
    except SchemaError:
        return f"type {leaf.element.type}"


def _in_range(below: int, above: int, leaf: LeafType) -> Place:
    low, high = int_range(leaf)
    if low <= below and above <= high:
        return Place(below, below if above == below else above)
    # Within the range both neighbours exist. At its ends only one does.
    return Place(min(below, high) if below >= low else None, max(above, low) if above <= high else None)


def int_range(leaf: LeafType) -> tuple[int, int]:
    """The range of integers that the leaf can hold, in the file and in memory (decimals have 128 bits there, or 256
    beyond 38 digits)."""
    if leaf.kind == "bool":
        return 0, 1
    if leaf.kind == "uint":
        return 0, (1 << leaf.bits) - 1
    bits = 64 if leaf.kind == "int96" else leaf.bits or 8 * leaf.width
    if leaf.kind == "decimal":
        memory = 128 if leaf.precision <= 38 else 256
        bits = min(bits, memory) if bits else memory
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _rational(numerator: int, denominator: int, leaf: LeafType) -> Place:
    quotient, rest = divmod(numerator, denominator)
    return _in_range(quotient, quotient + (rest != 0), leaf)


_HUGE = 10**400
"""More than every finite value of every leaf. Literals with more digits need not be converted exactly."""


def _is_infinite(value: Any) -> bool:
    """Whether a number is infinite, asked of its own type. :func:`math.isinf` would convert it to a float first, and
    make finite numbers beyond float64 infinite."""
    if isinstance(value, Decimal):
        return value.is_infinite()
    return isinstance(value, (float, np.floating)) and bool(np.isinf(value))


def as_ratio(value: Any) -> tuple[int, int] | None:
    """A finite number as an exact fraction. Tiny and huge numbers are replaced by others that compare alike. None for
    NaN. Infinities become ±10**400, beyond the range of integer and decimal columns."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, numbers.Rational, np.floating)):
        raise _Mismatch
    if isinstance(value, np.timedelta64):  # numpy counts it among its integers
        raise _Mismatch
    if isinstance(value, int):
        return value, 1
    if isinstance(value, numbers.Rational):
        return int(value.numerator), int(value.denominator)
    if value != value:
        return None
    if _is_infinite(value) or (isinstance(value, Decimal) and value.adjusted() > 400):
        return (-_HUGE if value < 0 else _HUGE), 1
    if isinstance(value, Decimal):
        if value and value.adjusted() < -400:
            return (-1 if value < 0 else 1), _HUGE
        return value.as_integer_ratio()
    numerator, denominator = value.as_integer_ratio()
    return int(numerator), int(denominator)


def _above_all(leaf: LeafType) -> Place:
    """The place of NaN on a leaf that has no NaN: above all values."""
    return Place(int_range(leaf)[1], None)


def _locate_int(leaf: LeafType, value: Any) -> Place:
    ratio = as_ratio(value)
    return _above_all(leaf) if ratio is None else _rational(*ratio, leaf)


def _locate_decimal(leaf: LeafType, value: Any) -> Place:
    if isinstance(value, (float, np.longdouble)) and np.isfinite(value):
        value = Decimal(repr(value) if isinstance(value, float) else str(value))
    ratio = as_ratio(value)
    if ratio is None:
        return _above_all(leaf)
    return _rational(ratio[0] * 10**leaf.scale, ratio[1], leaf)


def _locate_bool(leaf: LeafType, value: Any) -> Place:
    if not isinstance(value, bool):
        raise _Mismatch
    return _in_range(int(value), int(value), leaf)


def _locate_float(leaf: LeafType, value: Any) -> Place:
    if isinstance(value, WrittenNumber):
        value = value.beside(leaf.kind)
    if type(value) is float and leaf.kind == "double":
        value += 0.0  # -0.0 becomes 0.0
        return Place(value, value)
    if _is_infinite(value):
        value = float(value)
        return Place(value, value)
    ratio = as_ratio(value)
    if ratio is None:
        nan = math.nan
        return Place(nan, nan)
    numerator, denominator = ratio
    narrow = FLOAT_TYPES[leaf.kind]
    try:
        wide = numerator / denominator  # correctly rounded for integers of any size
    except OverflowError:
        wide = math.inf if numerator > 0 else -math.inf
    with np.errstate(all="ignore"):
        return _between_floats(numerator, denominator, narrow(wide), narrow)


def _between_floats(numerator: int, denominator: int, near: Any, narrow: Any) -> Place:
    """The place of a fraction that rounds to ``near``. Rounding is monotonic, so it lies between ``near`` and a
    neighbour."""
    exactly = float(near) + 0.0  # -0.0 becomes 0.0
    if math.isinf(exactly):
        largest = float(np.finfo(narrow).max)
        return Place(largest, exactly) if exactly > 0 else Place(exactly, -largest)
    n, d = exactly.as_integer_ratio()
    difference = numerator * d - n * denominator
    if difference == 0:
        return Place(exactly, exactly)
    if difference > 0:
        return Place(exactly, float(np.nextafter(near, narrow(math.inf))))
    return Place(float(np.nextafter(near, narrow(-math.inf))), exactly)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise _Mismatch("it is not valid Unicode") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _Mismatch


def _locate_binary(leaf: LeafType, value: Any) -> Place:
    raw = _bytes(value)
    return Place(raw, raw)


def _locate_uuid(leaf: LeafType, value: Any) -> Place:
    if isinstance(value, str):
        value = uuid.UUID(value)
    return _locate_fixed(leaf, value.bytes if isinstance(value, uuid.UUID) else value)


def _locate_fixed(leaf: LeafType, value: Any) -> Place:
    """Values of another length lie between two values of the leaf's length, in unsigned byte order."""
    raw, width = _bytes(value), leaf.length
    if len(raw) == width:
        return Place(raw, raw)
    if len(raw) < width:
        above = raw.ljust(width, b"\0")
        number = int.from_bytes(above, "big")
        return Place((number - 1).to_bytes(width, "big") if number else None, above)
    number = int.from_bytes(raw[:width], "big") + 1
    return Place(raw[:width], number.to_bytes(width, "big") if number >> (8 * width) == 0 else None)


def _locate_date(leaf: LeafType, value: Any) -> Place:
    ns = date_ns(value)
    if ns is None:
        raise _Mismatch
    return _rational(ns.numerator, ns.denominator * DAY_NS, leaf)


def _locate_timestamp(leaf: LeafType, value: Any) -> Place:
    found = timestamp_ns(value)
    if found is None:
        raise _Mismatch
    ns, aware = found
    if aware and not leaf.utc and leaf.kind != "int96":
        raise _Mismatch("the column holds local times without a time zone; give a value without one")
    return _rational(ns.numerator, ns.denominator * UNIT_NS[leaf.unit or "ns"], leaf)


def _locate_time(leaf: LeafType, value: Any) -> Place:
    ns = time_ns(value)
    if ns is None:
        ns = duration_ns(value)
    if ns is None:
        raise _Mismatch
    return _rational(ns.numerator, ns.denominator * UNIT_NS[leaf.unit], leaf)


def _locate_unordered(leaf: LeafType, value: Any) -> Place:
    raise _Mismatch("only is_null() and is_not_null() apply to it")


# ---- literals that the types of a dataset have interpreted


def interpreted(leaf: LeafType, value: Any, column: str) -> Interpreted:
    """The meaning of ``value`` to a dataset's leaf. Raises :class:`FilterError` as :func:`locate` does."""
    place = locate(leaf, value, column)
    if isinstance(value, Interpreted):
        return value
    kind, value = leaf.kind, plain(value)
    if isinstance(value, WrittenNumber):
        return Interpreted(value.beside(kind))
    if kind in BYTES_KINDS:
        return Interpreted(_bytes(value))
    if kind == "uuid":
        return Interpreted(place.below if place.exact else _bytes(value))
    if kind in ("timestamp", "int96", "date"):
        found = timestamp_ns(value)
        assert found is not None  # it is located already
        return Interpreted(found[0])
    if kind == "decimal" and isinstance(value, float) and math.isfinite(value):
        return Interpreted(Decimal(repr(value)))
    return Interpreted(value)


def _interpreted_time(leaf: LeafType, ns: Any) -> Place:
    unit = DAY_NS if leaf.kind == "date" else UNIT_NS[leaf.unit or "ns"]
    return _rational(ns.numerator, ns.denominator * unit, leaf)


# A dataset may show truth values as 0 and 1.
_OF_INTERPRETED = {"bool": _locate_int, **dict.fromkeys(("date", "timestamp", "int96"), _interpreted_time)}

_NUMBER, _TEXT, _BYTES = "give a number", "give a str", "give bytes"
_MOMENT = "give a datetime, date, numpy.datetime64 or an ISO 8601 string"
_KINDS: dict[str, tuple[Callable[[LeafType, Any], Place], str]] = {
    "bool": (_locate_bool, "give True or False"),
    **dict.fromkeys(("int", "uint"), (_locate_int, _NUMBER)),
    **dict.fromkeys(("float16", "float", "double"), (_locate_float, _NUMBER)),
    "decimal": (_locate_decimal, "give a decimal.Decimal, int or float"),
    **dict.fromkeys(("string", "enum", "json"), (_locate_binary, _TEXT)),
    **dict.fromkeys(("binary", "bson"), (_locate_binary, _BYTES)),
    "fixed": (_locate_fixed, _BYTES),
    "uuid": (_locate_uuid, "give a uuid.UUID, its text or its 16 bytes"),
    "date": (_locate_date, "give a datetime.date, numpy.datetime64 or 'YYYY-MM-DD'"),
    "time": (_locate_time, "give a datetime.time without a zone, a timedelta since midnight or 'HH:MM:SS'"),
    **dict.fromkeys(("timestamp", "int96"), (_locate_timestamp, _MOMENT)),
    "null": (lambda leaf, value: Place(None, None), ""),  # no comparison is ever true
}
"""How literals of each kind of column are read, and what an error advises."""


# ---- stored values as text


def format_literal(leaf: LeafType, value: Any) -> str:
    """A literal of the comparable domain as readable text."""
    kind = leaf.kind
    if isinstance(value, tuple):
        return f"({', '.join(map(repr, value))})"
    if leaf.hybrid:
        value = meant(leaf, value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "decimal":
        return format(Decimal(f"{value}e-{leaf.scale}"), "f")
    if kind == "date":
        return str(np.datetime64(value, "D"))
    if kind in ("timestamp", "int96"):
        if value == np.iinfo(np.int64).min:  # numpy calls it NaT
            return f"{value} {leaf.unit or 'ns'}"
        return str(np.array(value, f"M8[{leaf.unit or 'ns'}]")) + ("Z" if leaf.utc else "")
    if kind == "time":
        return shown_clock(value * UNIT_NS[leaf.unit])
    if isinstance(value, bytes):
        if kind == "uuid" and len(value) == 16:
            return str(uuid.UUID(bytes=value))
        try:
            return repr(value.decode()) if leaf.is_text else repr(value)
        except UnicodeDecodeError:
            return repr(value)
    return str(value)
