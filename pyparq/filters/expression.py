"""Filter expressions as a user writes them: ``(col("a") == 1) & ~col("b.c").is_null()``.

An expression holds only names and Python literals. :mod:`pyparq.filters.bind` binds it to a file. Logic is SQL's with
three values: a comparison with a null is unknown, ``~unknown`` is unknown, and a row is kept only where the whole
expression is true. NaN equals itself and lies above every number; ``-0.0 == 0.0``.

A computed value is null where a value that it is made of is null, and where it divides by zero. Integers and decimals
are computed exactly: nothing wraps, and ``/`` keeps the remainder. So are dates, points in time and durations. Where a
column or a literal is floating-point (and no column is a decimal), arithmetic is that of doubles.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, NamedTuple, NoReturn

from pyparq.column_names import NOT_COMPUTED
from pyparq.errors import FilterError, OtherNames, by_each
from pyparq.filters.value_array import ByteArray, ValueArray, is_null_literal, list_of_values
from pyparq.option_checks import is_number, keywords, methods_told
from pyparq.runtime.text import printable


class Operator(NamedTuple):
    """A comparison: the same with its sides exchanged, its negation, and its answer for Python's values."""

    flipped: str
    negated: str
    holds: Callable[[Any, Any], bool]


OPERATORS = {
    "==": Operator("==", "!=", operator.eq),
    "!=": Operator("!=", "==", operator.ne),
    "<": Operator(">", ">=", operator.lt),
    "<=": Operator(">=", ">", operator.le),
    ">": Operator("<", "<=", operator.gt),
    ">=": Operator("<=", "<", operator.ge),
}
ARITHMETIC = ("+", "-", "*", "/", "%", "rem")
"""Numbers are computed with all of them. ``%`` has the sign of the divisor, ``rem`` that of the dividend, as in SQL. To
a date or a point in time a duration can be added, and taken from it; two of them have a difference."""
PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
"""Parts of dates and points in time, in UTC."""
_PATTERNS = ("like", "ilike", "matches")
_PLAIN = (int, float, str, bool, bytes)
_MAX_DEPTH = 200

Path = tuple[str, ...] | str
"""A leaf's place: names from the top down, or one string, dotted when it is nested (:data:`ColumnName`)."""


def dotted(path: Path) -> str:
    return path if isinstance(path, str) else ".".join(path)


class Expression:
    """A filter: true, false or unknown for each row. Combine expressions with ``&``, ``|`` and ``~``.

    Example::

        wanted = (pyparq.col("dest") == "LAX") | ~(pyparq.col("dep_delay") < 60)
        table = pyparq.read_table("flights.parquet", filters=wanted)
    """

    __slots__ = ()
    # numpy scalars on the left (``np.int64(3) < col("a")``) must leave the comparison to us.
    __array_ufunc__ = None
    _parts: tuple[str, ...] = ()
    """The slots with the values that it is made of."""

    def __and__(self, other: object) -> Expression:
        return AllOf((*_operands(self, AllOf), *_operands(other, AllOf)))

    def __rand__(self, other: object) -> Expression:
        return self.__and__(other)  # only called with values that are no expressions: raises the error

    def __or__(self, other: object) -> Expression:
        return AnyOf((*_operands(self, AnyOf), *_operands(other, AnyOf)))

    def __ror__(self, other: object) -> Expression:
        return self.__or__(other)

    def __invert__(self) -> Expression:
        return Not(as_condition(self))

    def _condition(self) -> Expression:
        """This expression where a condition is needed."""
        return self

    def _columns(self) -> tuple[Path, ...]:
        """The columns that it looks at."""
        found = tuple[Path, ...]()
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, Expression):
                found += part._columns()
        return found

    def _replaced(self, found: Callable[[ColumnRef], Value]) -> Any:
        """The same with other values in the place of columns."""
        other = copy(self)
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, Expression):
                setattr(other, name, part._replaced(found))
        return other

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a filter expression has no truth value: combine expressions with & | ~ instead of and/or/not, "
            "put parentheses around each comparison, and write .between(a, b) for a <= x <= b"
        )


def as_condition(value: object) -> Expression:
    """``value`` as a condition. A column alone stands for ``column == True``."""
    if isinstance(value, Expression):
        return value._condition()
    raise TypeError(
        f"{value!r} is not a filter expression: & and | bind tighter than comparisons, so put each "
        'comparison in parentheses, as in (col("a") == 1) & (col("b") > 2)'
    )


def _operands(value: object, kind: type[AllOf] | type[AnyOf]) -> tuple[Expression, ...]:
    """Keep chains flat: ``a & b & c`` is one node with three children."""
    condition = as_condition(value)
    return condition.children if isinstance(condition, kind) else (condition,)


# ---- logic


class Known(Expression):
    """A test whose outcome is the same for all rows: true, false, or ``None`` for unknown. Users do not write it."""

    __slots__ = ("value",)

    def __init__(self, value: bool | None) -> None:
        self.value = value

    @printable
    def __repr__(self) -> str:
        return {True: "true", False: "false", None: "unknown"}[self.value]


class Not(Expression):
    __slots__ = ("child",)

    def __init__(self, child: Expression) -> None:
        self.child = child

    def _columns(self) -> tuple[Path, ...]:
        return self.child._columns()

    @printable
    def __repr__(self) -> str:
        return f"~{self.child!r}"


class _Junction(Expression):
    __slots__ = ("children",)
    _sign = ""

    def __init__(self, children: tuple[Expression, ...]) -> None:
        self.children = children

    def _columns(self) -> tuple[Path, ...]:
        return tuple(path for child in self.children for path in child._columns())

    @printable
    def __repr__(self) -> str:
        return f"({self._sign.join(map(repr, self.children))})"


class AllOf(_Junction):
    __slots__ = ()
    _sign = " & "


class AnyOf(_Junction):
    __slots__ = ()
    _sign = " | "


def simplified(expression: Expression, look: Callable[[Expression], Expression], depth: int = _MAX_DEPTH) -> Expression:
    """The expression with every test replaced by the result of ``look``, without the parts that are decided by that.

    ``look`` returns the test itself, another test, or a :class:`Known`. Unknown (null) follows SQL: it stays unknown
    under NOT, and decides neither an AND nor an OR.
    """
    if depth == 0:
        raise FilterError(f"the filter nests more than {_MAX_DEPTH} levels deep")
    if isinstance(expression, Known):
        return expression
    if isinstance(expression, Not):
        child = simplified(expression.child, look, depth - 1)
        if isinstance(child, Known):
            return Known(None if child.value is None else not child.value)
        return Not(child)
    if isinstance(expression, _Junction):
        parts = [simplified(child, look, depth - 1) for child in expression.children]
        return _decided(parts, type(expression))
    return look(expression)


def _decided(parts: list[Expression], kind: type[_Junction]) -> Expression:
    decisive = kind is AnyOf  # the value that decides the whole: False for AND, True for OR
    known = [part.value for part in parts if isinstance(part, Known)]
    if decisive in known:
        return Known(decisive)
    rest = [part for part in parts if not isinstance(part, Known)]
    if None in known:
        rest.append(Known(None))
    return joined(rest, kind) if rest else Known(not decisive)


def joined(parts: list[Expression], kind: type[_Junction]) -> Expression:
    """The AND or OR of at least one condition."""
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


# ---- values


def _comparison(op: str) -> Callable[[Any, Any], Expression]:
    return lambda value, other: Compare(value, op, other)


def _arithmetic(op: str) -> tuple[Callable[[Any, Any], Value], Callable[[Any, Any], Value]]:
    """The operator, and the one for a value on its right."""
    return lambda value, other: Arithmetic(op, value, other), lambda value, other: Arithmetic(op, other, value)


@methods_told
class Value(OtherNames, Expression):
    """A column, or something computed from columns. Compare it to get a condition."""

    __slots__ = ()
    _elsewhere = by_each({
        "str list": "the method itself: col('x').starts_with('a'), .lower(), .contains('b'), .matches('^a')", "dt": "=",
        "is_in": "=isin", "startswith": "=starts_with", "endswith": "=ends_with", "is_between": "=between",
        "isnull isna": "is_null()", "notnull notna is_not_nan": "is_not_null()",
        "eq ne lt le gt ge": "the operators ==, !=, <, <=, > and >=", "not_ invert": "~ before the condition",
        "and_ or_": "& and |, with each condition in parentheses", "cast astype": "a literal of the column's type",
        "fill_null fillna coalesce": "(col('x') == 1) | col('x').is_null()", "not_in": "~col('x').isin([...])",
        "match rlike": "matches(pattern)", "len": "length()",
        "alias": f"rename_columns() of the table, or {NOT_COMPUTED}",
    })  # fmt: skip
    _like = (("polars", "Expr", "an expression of polars in pyparq.polars.scan(path)"),)
    __hash__ = None  # type: ignore[assignment]
    depth = 0
    """How many computations are nested in it."""

    def _condition(self) -> Expression:
        raise TypeError(f"{self!r} is a value and not a condition: compare it, as in {self!r} == 1")

    # ---- comparisons

    __eq__, __ne__ = _comparison("=="), _comparison("!=")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def between(self, low: Any, high: Any) -> Expression:
        """``low <= value <= high``."""
        return AllOf((self >= low, self <= high))

    def isin(self, values: Iterable[Any]) -> Expression:
        """The value is one of ``values``. Never true for a null. With a null in ``values``, ``~isin`` is never true."""
        return IsIn(self, values)

    def is_null(self) -> Expression:
        """The value is null. Never unknown."""
        return IsNull(self)

    def is_not_null(self) -> Expression:
        """The value is not null. Never unknown."""
        return Not(IsNull(self))

    # ---- arithmetic

    __add__, __radd__ = _arithmetic("+")
    __sub__, __rsub__ = _arithmetic("-")
    __mul__, __rmul__ = _arithmetic("*")
    __truediv__, __rtruediv__ = _arithmetic("/")
    """``/``: the exact quotient of integers and decimals. Null where the divisor is zero."""

    __mod__, __rmod__ = _arithmetic("%")
    """``%``: the remainder, with the sign of the divisor, as in Python. Null where the divisor is zero."""

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


@methods_told
class ColumnRef(Value):
    """A column to be compared; made by :func:`col`."""

    __slots__ = ("path",)
    __iter__ = None  # it has no end

    def __init__(self, path: Path) -> None:
        self.path = path

    def _columns(self) -> tuple[Path, ...]:
        return (self.path,)

    def _replaced(self, found: Callable[[ColumnRef], Value]) -> Value:
        return found(self)

    def _condition(self) -> Expression:
        return Compare(self, "==", True)

    def __getitem__(self, key: Any) -> Item:
        """An item of a list, counted from 0 (-1: the last), the value of a key of a map, or a field of a struct or
        Variant: ``col("l")[0] > 5``, ``col("m")["unit"] == "kg"``. Null where there is none."""
        return Item(self, key)

    is_valid = Value.is_not_null  # pyarrow's name

    def is_nan(self) -> Expression:
        """The value is NaN (floating-point columns); unknown for a null."""
        return IsNan(self)

    def intersects_box(self, xmin: float, ymin: float, xmax: float, ymax: float) -> Expression:
        """The box around the geometry's coordinates and this box have a point in common; edges count.

        For GEOMETRY and GEOGRAPHY columns, and binary columns of WKB. The geometry itself need not touch the box. An
        empty geometry has no box. ``xmin`` above ``xmax`` is a box across the antimeridian. Raises
        :class:`FilterError` for NaN, or ``ymin`` above ``ymax``; reading raises it for a value that is no ISO WKB.
        """
        return IntersectsBox(self, (xmin, ymin, xmax, ymax))

    def contains(self, value: Any) -> Expression:
        """An item of the list equals ``value``, at any depth of nested lists. Also works for a field of structs in a
        list (``col("ls.y")``) and for keys or values of a map (``col("m.key")``). Of text or binary values: ``value``
        is a part of it.

        Unknown for a null list. Null items are skipped, so ``~contains`` is true for a list of nulls.
        ``contains(None)`` looks for a null item instead: a null at any depth below the outermost list, down to the
        values. For a list of structs, ``col("ls")`` then looks for null structs, and ``col("ls.y")`` also for a null
        ``y`` in other structs.
        """
        return Contains(self, value)

    @printable
    def __repr__(self) -> str:
        names = self.path if isinstance(self.path, tuple) and len(self.path) > 1 else (self.path,)
        return f"col({', '.join(map(repr, names))})"


class Item(Value):
    """What stands in a column, or in another item, at a key: see :meth:`ColumnRef.__getitem__`. ``None``: nothing."""

    __slots__ = ("key", "value")
    __iter__ = None
    _parts = ("value",)

    def __init__(self, value: ColumnRef | Item, key: Any) -> None:
        if isinstance(key, (slice, Expression)):
            raise FilterError(f"an item is named by a number or a key, not by {key!r}")
        self.value, self.key = value, key

    __getitem__, is_valid, is_nan = ColumnRef.__getitem__, ColumnRef.is_valid, ColumnRef.is_nan
    _condition = ColumnRef._condition

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}[{self.key!r}]"


@keywords
def col(*path: str | tuple[str, ...]) -> ColumnRef:
    """A column for a filter: ``col("a")``, nested ``col("a.b")``, ``col("a", "b")`` or ``col(("a", "b"))``.

    A dotted name first looks for a top-level column with exactly that name, then for a path. In a path, the dots may
    separate names or be part of them. Several names, or a tuple of names, give the exact path.

    Example::

        late = (pyparq.col("dep_delay") > 60) & pyparq.col("dest").isin(["LAX", "ORD"])
        table = pyparq.read_table("flights.parquet", filters=late | pyparq.col("dep_delay").is_null())
    """
    names = path[0] if len(path) == 1 else path
    if type(names) is str:
        return ColumnRef(names)
    if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
        raise FilterError(f"col() takes column names, not {', '.join(map(repr, path)) or 'nothing'}")
    return ColumnRef(names)  # type: ignore[arg-type]


class Literal(Value):
    """A value that is the same for all rows."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @printable
    def __repr__(self) -> str:
        return repr(self.value)


class Arithmetic(Value):
    """``left op right``; ``op`` is one of :data:`ARITHMETIC`. ``strict``: only where other libraries
    compute the same, which make float32 of float32."""

    __slots__ = ("depth", "left", "op", "right", "strict")
    _parts = ("left", "right")

    def __init__(self, op: str, left: Any, right: Any, strict: bool = False) -> None:
        self.op = op
        self.left = as_value(left)
        self.right = as_value(right)
        self.strict = strict
        self.depth = _deeper(self.left, self.right)

    @printable
    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


class Call(Value):
    """A function of a value: one of :data:`PARTS`, ``lower``, ``upper`` or ``length``. ``strict``: only where other
    libraries compute the same, which take parts of times in the zone of the column."""

    __slots__ = ("depth", "name", "strict", "value")
    _parts = ("value",)

    def __init__(self, name: str, value: Value, strict: bool = False) -> None:
        self.name = name
        self.value = value
        self.strict = strict
        self.depth = _deeper(value)

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.{self.name}()"


def _deeper(*values: Value) -> int:
    depth = 1 + max(value.depth for value in values)
    if depth > _MAX_DEPTH:
        raise FilterError(f"the filter nests more than {_MAX_DEPTH} computations")
    return depth


def as_value(value: Any) -> Value:
    """A value as it is, or a literal."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Expression):
        raise FilterError(f"{value!r} is a condition: compare and compute values, and join conditions with & | ~")
    return Literal(value)


# ---- tests


class ValueTest(Expression):
    """A condition on ``value``: a column (its path will do), or what is computed from columns."""

    __slots__ = ("value",)
    _parts: tuple[str, ...] = ("value",)
    value: Value

    def __init__(self, value: Value | Path) -> None:
        self.value = ColumnRef(value) if isinstance(value, (str, tuple)) else value

    @property
    def path(self) -> Any:
        """The column of a test of a column and literals. ``None`` for a test that computes something."""
        return self.value.path if isinstance(self.value, ColumnRef) and not self._computes() else None

    def _computes(self) -> bool:
        """Whether the test computes something even of a column."""
        return False

    @property
    def _name(self) -> str | None:
        return None if self.path is None else dotted(self.path)

    def with_literals(self, change: Callable[[Any], Any]) -> ValueTest:
        """The same test with other literals, where it compares a column with some."""
        return self


class Compare(ValueTest):
    """``value op other``; ``op`` is one of :data:`OPERATORS`, and ``other`` a literal or a value. A literal does not
    stand on the left of a value."""

    __slots__ = ("op", "other")
    _parts = ("value", "other")

    def __init__(self, value: Any, op: str, other: Any) -> None:
        if type(value) is not ColumnRef:
            value = ColumnRef(value) if isinstance(value, (str, tuple)) else as_value(value)
        if type(other) not in _PLAIN:
            other = as_value(other)
            if isinstance(value, Literal):
                value, op, other = other, OPERATORS[op].flipped, value
            other = _checked(value, other)
        self.value, self.op, self.other = value, op, other

    def _replaced(self, found: Callable[[ColumnRef], Value]) -> Compare:
        other = self.other._replaced(found) if isinstance(self.other, Value) else self.other
        return Compare(self.value._replaced(found), self.op, other)

    def _computes(self) -> bool:
        return isinstance(self.other, Value)

    def with_literals(self, change: Callable[[Any], Any]) -> ValueTest:
        return self if self.path is None else Compare(self.value, self.op, change(self.other))

    @printable
    def __repr__(self) -> str:
        return f"({self.value!r} {self.op} {self.other!r})"


def _checked(value: Value, other: Value) -> Any:
    """What a value is compared with: a literal as it is, which must not be null."""
    if not isinstance(other, Literal):
        return other
    if is_null_literal(other.value):
        column = dotted(value.path) if isinstance(value, ColumnRef) else None
        raise FilterError(
            f"a comparison with {other.value!r} is never true: use .is_null() or .is_not_null()", column=column
        )
    return other.value


class IsIn(ValueTest):
    """The value is one of ``values``: a tuple, or buffers of many numbers, texts or bytes."""

    __slots__ = ("values",)

    def __init__(self, value: Value | Path, values: Any) -> None:
        super().__init__(value)
        if isinstance(values, (str, bytes, Expression)) or not hasattr(values, "__iter__"):
            raise FilterError(f"isin() takes a collection of values, not {values!r}", column=self._name)
        self.values: tuple[Any, ...] | ValueArray | ByteArray = list_of_values(values)

    def with_literals(self, change: Callable[[Any], Any]) -> ValueTest:
        return self if self.path is None else IsIn(self.value, [change(value) for value in self.values])

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.isin({list(self.values)!r})"


class IsNull(ValueTest):
    __slots__ = ()

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.is_null()"


class IsNan(ValueTest):
    __slots__ = ()

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.is_nan()"


class Contains(ValueTest):
    """An item of the list equals ``item``. If ``item`` is null, an item is null."""

    __slots__ = ("item",)

    def __init__(self, value: Value | Path, item: Any) -> None:
        super().__init__(value)
        if isinstance(item, Expression):
            raise FilterError("contains() takes a value to look for, not a column", column=self._name)
        self.item = item

    def with_literals(self, change: Callable[[Any], Any]) -> ValueTest:
        return Contains(self.value, change(self.item))

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.contains({self.item!r})"


class Matches(ValueTest):
    """A text fits a pattern; ``kind`` is one of ``like ilike matches starts_with ends_with contains``."""

    __slots__ = ("escape", "kind", "pattern")

    def __init__(self, value: Value | Path, kind: str, pattern: Any, escape: str = "") -> None:
        super().__init__(value)
        self.kind, self.pattern, self.escape = kind, pattern, escape
        kinds: tuple[type, ...] = (str,) if kind in _PATTERNS else (str, bytes)
        if not isinstance(pattern, kinds):
            names = " or ".join(each.__name__ for each in kinds)
            raise FilterError(f"{kind}() takes a {names}, not {pattern!r}", column=self._name)
        if not isinstance(escape, str) or len(escape) > 1:
            raise FilterError(f"escape must be one character, not {escape!r}", column=self._name)
        if kind == "matches":
            assert isinstance(pattern, str)
            try:
                re.compile(pattern)
            except re.error as error:
                raise FilterError(f"{pattern!r} is not a regular expression: {error}", column=self._name) from None

    def _computes(self) -> bool:
        return self.kind != "starts_with"

    @printable
    def __repr__(self) -> str:
        escape = f", escape={self.escape!r}" if self.escape else ""
        return f"{self.value!r}.{self.kind}({self.pattern!r}{escape})"


class IntersectsBox(ValueTest):
    """The box around a geometry intersects ``box``: xmin, ymin, xmax, ymax."""

    __slots__ = ("box",)

    def __init__(self, value: Value | Path, box: tuple[float, float, float, float]) -> None:
        super().__init__(value)
        if not all(is_number(v) and v == v for v in box):
            raise FilterError(f"intersects_box() takes four numbers, not {box!r}", column=self._name)
        if box[1] > box[3]:
            raise FilterError(f"ymin ({box[1]!r}) is above ymax ({box[3]!r})", column=self._name)
        self.box = tuple(map(float, box))

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r}.intersects_box({', '.join(map(repr, self.box))})"


def tested_paths(test: Expression) -> tuple[Path, ...]:
    """The columns that a test looks at."""
    return test._columns()


def top_names(expression: Expression | None) -> set[str]:
    """The top-level columns that an expression may look at."""
    paths = () if expression is None else expression._columns()
    return {part for path in paths for part in (path[:1] if isinstance(path, tuple) else (path, path.split(".")[0]))}


def moved(test: Any, change: Callable[[Path], Path]) -> Any:
    """The same test of other columns: ``change`` gives the new path for each path."""
    return test._replaced(lambda ref: ColumnRef(change(ref.path)))
