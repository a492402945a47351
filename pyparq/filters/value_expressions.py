"""Values that a filter computes from columns, and their tests: ``col("a") + 1 > col("b")``, ``col("s").lower()``.

A computed value is null where a value that it is made of is null, and where it divides by zero. Its tests are unknown
there. Integers and decimals are computed exactly: nothing wraps, and ``/`` keeps the remainder. Where a column or a
literal is floating-point (and no column is a decimal), arithmetic is that of doubles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.logic import AllOf, AnyOf, Expression, Known, Not, Path, is_null_literal
from pyparq.runtime.text import printable

Change = Callable[[Path], Path]

PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
"""Parts of dates and points in time, in UTC."""
TEXT_FUNCTIONS = ("lower", "upper")
FUNCTIONS = (*PARTS, *TEXT_FUNCTIONS, "length")


_MAX_DEPTH = 200


class Value(Expression):
    """A column, or something computed from columns. Compare it to get a condition."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    depth = 0
    """How many computations are nested in it."""

    def _columns(self) -> tuple[Path, ...]:
        """The columns that it is computed from."""
        raise NotImplementedError

    def _moved(self, change: Change) -> Value:
        """The same value of other columns."""
        raise NotImplementedError

    def _condition(self) -> Expression:
        raise TypeError(f"{self!r} is a value and not a condition: compare it, as in {self!r} == 1")

    # ---- comparisons

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return CompareValues(self, "==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return CompareValues(self, "!=", other)

    def __lt__(self, other: object) -> Expression:
        return CompareValues(self, "<", other)

    def __le__(self, other: object) -> Expression:
        return CompareValues(self, "<=", other)

    def __gt__(self, other: object) -> Expression:
        return CompareValues(self, ">", other)

    def __ge__(self, other: object) -> Expression:
        return CompareValues(self, ">=", other)

    def between(self, low: Any, high: Any) -> Expression:
        """``low <= value <= high``."""
        return AllOf((self >= low, self <= high))

    def isin(self, values: Iterable[Any]) -> Expression:
        """The value is one of ``values``. Never true for a null. With a null in ``values``, ``~isin`` is never true."""
        if isinstance(values, (str, bytes, Expression)) or not hasattr(values, "__iter__"):
            raise FilterError(f"isin() takes a collection of values, not {values!r}")
        parts: list[Expression] = [Known(None) if is_null_literal(v) else self == v for v in values]
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts)) if parts else Known(False)

    def is_null(self) -> Expression:
        """The value is null. Never unknown."""
        return NullValue(self)

    def is_not_null(self) -> Expression:
        """The value is not null. Never unknown."""
        return Not(self.is_null())

    # ---- arithmetic

    def __add__(self, other: Any) -> Value:
        return Arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Value:
        return Arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Value:
        return Arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Value:
        return Arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Value:
        return Arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Value:
        return Arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Value:
        """The exact quotient of integers and decimals. Null where ``other`` is zero."""
        return Arithmetic("/", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return Arithmetic("/", other, self)

    def __neg__(self) -> Value:
        return Arithmetic("*", self, -1)

    # ---- points in time

    def year(self) -> Value:
        """The year of a date or a point in time (in UTC). A comparison with a number prunes like a range of times."""
        return Call("year", self)

    def quarter(self) -> Value:
        """The quarter, 1 to 4 (in UTC)."""
        return Call("quarter", self)

    def month(self) -> Value:
        """The month, 1 to 12 (in UTC)."""
        return Call("month", self)

    def day(self) -> Value:
        """The day of the month, from 1 (in UTC)."""
        return Call("day", self)

    def hour(self) -> Value:
        """The hour of a point in time (in UTC) or a time of day, 0 to 23."""
        return Call("hour", self)

    def minute(self) -> Value:
        """The minute, 0 to 59."""
        return Call("minute", self)

    def second(self) -> Value:
        """The whole second, 0 to 59."""
        return Call("second", self)

    # ---- text

    def lower(self) -> Value:
        """The text in lower case, as Python's ``str.lower`` makes it."""
        return Call("lower", self)

    def upper(self) -> Value:
        """The text in upper case, as Python's ``str.upper`` makes it."""
        return Call("upper", self)

    def length(self) -> Value:
        """The number of characters (code points) of a text, or of bytes of a binary value."""
        return Call("length", self)

    def like(self, pattern: str, *, escape: str = "") -> Expression:
        """The whole text fits ``pattern``, as with SQL's LIKE: ``%`` stands for any characters, ``_`` for one.
        ``escape``: a character that makes the next one stand for itself. ``"abc%"`` prunes like ``starts_with``."""
        return Matches(self, "like", pattern, escape)

    def ilike(self, pattern: str, *, escape: str = "") -> Expression:
        """As :meth:`like`, without regard to case (as Python's ``re.IGNORECASE`` does)."""
        return Matches(self, "ilike", pattern, escape)

    def starts_with(self, prefix: str | bytes) -> Expression:
        """The string or binary value starts with ``prefix``, byte for byte."""
        return Matches(self, "starts_with", prefix)

    def ends_with(self, suffix: str | bytes) -> Expression:
        """The string or binary value ends with ``suffix``, byte for byte."""
        return Matches(self, "ends_with", suffix)

    def contains(self, value: Any) -> Expression:
        """The string or binary value has ``value`` in it, byte for byte."""
        return Matches(self, "contains", value)

    def matches(self, pattern: str) -> Expression:
        """Python's ``re.search(pattern, text)`` finds something. Write ``^`` and ``$`` to match the whole text."""
        return Matches(self, "matches", pattern)


class Literal(Value):
    """A value that is the same for all rows."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _columns(self) -> tuple[Path, ...]:
        return ()

    def _moved(self, change: Change) -> Value:
        return self

    @printable
    def __repr__(self) -> str:
        return repr(self.value)


class Arithmetic(Value):
    """``left op right``; ``op`` is one of ``+ - * /``. ``strict``: only where other libraries compute the same, which
    make float32 of float32."""

    __slots__ = ("depth", "left", "op", "right", "strict")

    def __init__(self, op: str, left: Any, right: Any, strict: bool = False) -> None:
        self.op = op
        self.left = as_value(left)
        self.right = as_value(right)
        self.strict = strict
        self.depth = _deeper(self.left, self.right)

    def _columns(self) -> tuple[Path, ...]:
        return self.left._columns() + self.right._columns()

    def _moved(self, change: Change) -> Value:
        return Arithmetic(self.op, self.left._moved(change), self.right._moved(change), self.strict)

    @printable
    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


class Call(Value):
    """One of :data:`FUNCTIONS` of a value. ``strict``: only where other libraries compute the same, which take parts of
    times in the zone of the column."""

    __slots__ = ("depth", "name", "strict", "value")

    def __init__(self, name: str, value: Value, strict: bool = False) -> None:
        self.name = name
        self.value = value
        self.strict = strict
        self.depth = _deeper(value)

    def _columns(self) -> tuple[Path, ...]:
        return self.value._columns()

    def _moved(self, change: Change) -> Value:
        return Call(self.name, self.value._moved(change), self.strict)

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.{self.name}()"


class ValueTest(Expression):
    """A condition on computed values."""

    __slots__ = ()

    def _columns(self) -> tuple[Path, ...]:
        """The columns that it looks at."""
        raise NotImplementedError

    def _moved(self, change: Change) -> ValueTest:
        """The same test of other columns."""
        raise NotImplementedError

    def replaced(self, found: Callable[[Value], Value]) -> ValueTest:
        """The same test with other values in the place of columns."""
        raise NotImplementedError


class CompareValues(ValueTest):
    """``left op right``; ``op`` is one of ``== != < <= > >=``."""

    __slots__ = ("left", "op", "right")

    def __init__(self, left: Any, op: str, right: Any) -> None:
        for side in (left, right):
            if is_null_literal(side):
                raise FilterError(f"a comparison with {side!r} is never true: use .is_null() or .is_not_null()")
        self.left = as_value(left)
        self.op = op
        self.right = as_value(right)

    def _columns(self) -> tuple[Path, ...]:
        return self.left._columns() + self.right._columns()

    def _moved(self, change: Change) -> ValueTest:
        return CompareValues(self.left._moved(change), self.op, self.right._moved(change))

    def replaced(self, found: Callable[[Value], Value]) -> ValueTest:
        return CompareValues(_replaced(self.left, found), self.op, _replaced(self.right, found))

    @printable
    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


PATTERNS = ("like", "ilike", "matches", "starts_with", "ends_with", "contains")


class Matches(ValueTest):
    """A text fits a pattern; ``kind`` is one of :data:`PATTERNS`."""

    __slots__ = ("escape", "kind", "pattern", "value")

    def __init__(self, value: Value, kind: str, pattern: Any, escape: str = "") -> None:
        self.value = value
        self.kind = kind
        self.pattern = pattern
        self.escape = escape
        _check_pattern(self)

    def _columns(self) -> tuple[Path, ...]:
        return self.value._columns()

    def _moved(self, change: Change) -> ValueTest:
        return Matches(self.value._moved(change), self.kind, self.pattern, self.escape)

    def replaced(self, found: Callable[[Value], Value]) -> ValueTest:
        return Matches(_replaced(self.value, found), self.kind, self.pattern, self.escape)

    @printable
    def __repr__(self) -> str:
        escape = f", escape={self.escape!r}" if self.escape else ""
        return f"{self.value!r}.{self.kind}({self.pattern!r}{escape})"


class NullValue(ValueTest):
    """A computed value is null."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def _columns(self) -> tuple[Path, ...]:
        return self.value._columns()

    def _moved(self, change: Change) -> ValueTest:
        return NullValue(self.value._moved(change))

    def replaced(self, found: Callable[[Value], Value]) -> ValueTest:
        return NullValue(_replaced(self.value, found))

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.is_null()"


def _deeper(*values: Value) -> int:
    depth = 1 + max(value.depth for value in values)
    if depth > _MAX_DEPTH:
        raise FilterError(f"the filter nests more than {_MAX_DEPTH} computations")
    return depth


def as_value(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, Expression):
        raise FilterError(f"{value!r} is a condition: compare and compute values, and join conditions with & | ~")
    return Literal(value)


def _replaced(value: Value, found: Callable[[Value], Value]) -> Value:
    if isinstance(value, Arithmetic):
        return Arithmetic(value.op, _replaced(value.left, found), _replaced(value.right, found), value.strict)
    if isinstance(value, Call):
        return Call(value.name, _replaced(value.value, found), value.strict)
    return value if isinstance(value, Literal) else found(value)


def _check_pattern(test: Matches) -> None:
    kinds: tuple[type, ...] = (str,) if test.kind in ("like", "ilike", "matches") else (str, bytes)
    if not isinstance(test.pattern, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise FilterError(f"{test.kind}() takes a {names}, not {test.pattern!r}")
    if not isinstance(test.escape, str) or len(test.escape) > 1:
        raise FilterError(f"escape must be one character, not {test.escape!r}")
    if test.kind == "matches" and isinstance(test.pattern, str):
        try:
            re.compile(test.pattern)
        except re.error as error:
            raise FilterError(f"{test.pattern!r} is not a regular expression: {error}") from None
