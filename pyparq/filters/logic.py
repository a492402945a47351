"""Conditions and how they combine: true, false or unknown for each row. What users write is in
:mod:`pyparq.filters.expression`."""

from __future__ import annotations

from typing import NoReturn

from pyparq.runtime.text import printable

_NULL_TYPES = frozenset(("NoneType", "NAType", "NaTType"))

Path = tuple[str, ...] | str
"""A leaf's place: names from the top down, or one string, dotted when it is nested (:data:`ColumnName`)."""


def is_null_literal(value: object) -> bool:
    """None, ``pandas.NA``, ``NaT`` of pandas or numpy, a null of pyarrow (told by type name: neither is imported)."""
    name = type(value).__name__
    if name in _NULL_TYPES:
        return True
    if name in ("datetime64", "timedelta64"):
        return bool(value != value)
    return name.endswith("Scalar") and not getattr(value, "is_valid", True)


class Expression:
    """A filter: true, false or unknown for each row. Combine expressions with ``&``, ``|`` and ``~``.

    Example::

        wanted = (pyparq.col("dest") == "LAX") | ~(pyparq.col("dep_delay") < 60)
        table = pyparq.read_table("flights.parquet", filters=wanted)
    """

    __slots__ = ()
    # numpy scalars on the left (``np.int64(3) < col("a")``) must leave the comparison to us.
    __array_ufunc__ = None

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

    @printable
    def __repr__(self) -> str:
        return f"~{self.child!r}"


class AllOf(Expression):
    __slots__ = ("children",)

    def __init__(self, children: tuple[Expression, ...]) -> None:
        self.children = children

    @printable
    def __repr__(self) -> str:
        return "(" + " & ".join(map(repr, self.children)) + ")"


class AnyOf(Expression):
    __slots__ = ("children",)

    def __init__(self, children: tuple[Expression, ...]) -> None:
        self.children = children

    @printable
    def __repr__(self) -> str:
        return "(" + " | ".join(map(repr, self.children)) + ")"


def dotted(path: Path) -> str:
    return path if isinstance(path, str) else ".".join(path)
