"""Filter expressions as a user writes them: ``(col("a") == 1) & ~col("b.c").is_null()``.

An expression holds only names and Python literals. :mod:`pyparq.filters.bind` binds it to a file. Logic is SQL's with
three values: a comparison with a null is unknown, ``~unknown`` is unknown, and a row is kept only where the whole
expression is true. NaN equals itself and lies above every number; ``-0.0 == 0.0``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters.arrow_times import exact_values
from pyparq.filters.logic import (
    AllOf,
    AnyOf,
    Expression,
    Known,
    Not,
    Path,
    as_condition,
    dotted,
    is_null_literal,
)
from pyparq.filters.value_array import ValueArray, value_array
from pyparq.filters.value_expressions import CompareValues, Value, ValueTest
from pyparq.option_checks import is_number
from pyparq.runtime.text import printable

__all__ = [
    "NARROW_FLOATS",
    "AllOf",
    "AnyOf",
    "ColumnRef",
    "Compare",
    "CompareValues",
    "Contains",
    "Expression",
    "IntersectsBox",
    "IsIn",
    "IsNan",
    "IsNull",
    "Known",
    "Not",
    "Path",
    "StartsWith",
    "Value",
    "ValueTest",
    "as_condition",
    "col",
    "compared",
    "dotted",
    "is_null_literal",
    "moved",
    "tested_paths",
    "with_literals",
]


class ColumnRef(Value):
    """A column to be compared; made by :func:`col`."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def _columns(self) -> tuple[Path, ...]:
        return (self.path,)

    def _moved(self, change: Callable[[Path], Path]) -> ColumnRef:
        return ColumnRef(change(self.path))

    def _condition(self) -> Expression:
        return Compare(self.path, "==", True)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return compared(self, "==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return compared(self, "!=", other)

    def __lt__(self, other: object) -> Expression:
        return compared(self, "<", other)

    def __le__(self, other: object) -> Expression:
        return compared(self, "<=", other)

    def __gt__(self, other: object) -> Expression:
        return compared(self, ">", other)

    def __ge__(self, other: object) -> Expression:
        return compared(self, ">=", other)

    __hash__ = None

    def isin(self, values: Iterable[Any]) -> Expression:
        """The value is one of ``values``. Never true for a null. With a null in ``values``, ``~isin`` is never true."""
        return IsIn(self.path, values)

    def is_null(self) -> Expression:
        return IsNull(self.path)

    def is_not_null(self) -> Expression:
        return Not(IsNull(self.path))

    def is_valid(self) -> Expression:
        """Same as :meth:`is_not_null`; this is pyarrow's name."""
        return Not(IsNull(self.path))

    def is_nan(self) -> Expression:
        """The value is NaN (floating-point columns); unknown for a null."""
        return IsNan(self.path)

    def starts_with(self, prefix: str | bytes) -> Expression:
        """The string or binary value starts with ``prefix``, byte for byte."""
        return StartsWith(self.path, prefix)

    def intersects_box(self, xmin: float, ymin: float, xmax: float, ymax: float) -> Expression:
        """The box around the geometry's coordinates and this box have a point in common; edges count.

        For GEOMETRY and GEOGRAPHY columns, and binary columns of WKB. The geometry itself need not touch the box. An
        empty geometry has no box. ``xmin`` above ``xmax`` is a box across the antimeridian. Raises
        :class:`FilterError` for NaN, or ``ymin`` above ``ymax``; reading raises it for a value that is no ISO WKB.
        """
        return IntersectsBox(self.path, (xmin, ymin, xmax, ymax))

    def contains(self, value: Any) -> Expression:
        """An item of the list equals ``value``, at any depth of nested lists. Also works for a field of structs in a
        list (``col("ls.y")``) and for keys or values of a map (``col("m.key")``). Of a text, or a binary value, that is
        no list: ``value`` is somewhere in it.

        Unknown for a null list. Null items are skipped, so ``~contains`` is true for a list of nulls.
        ``contains(None)`` looks for a null item instead: a null at any depth below the outermost list, down to the
        values. For a list of structs, ``col("ls")`` then looks for null structs, and ``col("ls.y")`` also for a null
        ``y`` in other structs.
        """
        return Contains(self.path, value)

    @printable
    def __repr__(self) -> str:
        names = self.path if isinstance(self.path, tuple) and len(self.path) > 1 else (self.path,)
        return f"col({', '.join(map(repr, names))})"


def col(*path: str | tuple[str, ...]) -> ColumnRef:
    """A column for a filter: ``col("a")``, nested ``col("a.b")``, ``col("a", "b")`` or ``col(("a", "b"))``.

    A dotted name first looks for a top-level column with exactly that name, then for a path. In a path, the dots may
    separate names or be part of them. Several names, or a tuple of names, give the exact path.

    Example::

        late = (pyparq.col("dep_delay") > 60) & pyparq.col("dest").isin(["LAX", "ORD"])
        table = pyparq.read_table("flights.parquet", filters=late | pyparq.col("dep_delay").is_null())
    """
    names = path[0] if len(path) == 1 else path
    parts = names if isinstance(names, tuple) else (names,)
    if not parts or not all(isinstance(name, str) for name in parts):
        raise FilterError(f"col() takes column names, not {', '.join(map(repr, path)) or 'nothing'}")
    return ColumnRef(names)  # type: ignore[arg-type]


# Plain classes: seven dataclasses would take longer to define than the rest of the import together.


class Compare(Expression):
    """``column op value``; ``op`` is one of ``== != < <= > >=``."""

    __slots__ = ("op", "path", "value")

    def __init__(self, path: Path, op: str, value: Any) -> None:
        if is_null_literal(value):
            raise FilterError(
                f"a comparison with {value!r} is never true: use .is_null() or .is_not_null()", column=dotted(path)
            )
        self.path = path
        self.op = op
        self.value = value

    @printable
    def __repr__(self) -> str:
        return f"({ColumnRef(self.path)!r} {self.op} {self.value!r})"


class Contains(Expression):
    """An item of the list equals ``value``. If ``value`` is null, an item is null."""

    __slots__ = ("path", "value")

    def __init__(self, path: Path, value: Any) -> None:
        if isinstance(value, Expression):
            raise FilterError("contains() takes a value to look for, not a column", column=dotted(path))
        self.path = path
        self.value = value

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.contains({self.value!r})"


class IsIn(Expression):
    """The column's value is one of ``values``: a tuple, or a :class:`ValueArray` for many numbers."""

    __slots__ = ("path", "values")

    def __init__(self, path: Path, values: Any) -> None:
        if isinstance(values, (str, bytes, Expression)) or not hasattr(values, "__iter__"):
            raise FilterError(f"isin() takes a collection of values, not {values!r}", column=dotted(path))
        self.path = path
        self.values: tuple[Any, ...] | ValueArray = values if isinstance(values, ValueArray) else _as_values(values)

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.isin({list(self.values)!r})"


def _as_values(values: Any) -> tuple[Any, ...] | ValueArray:
    many = value_array(values)
    return _as_tuple(values) if many is None else many


def _as_tuple(values: Any) -> tuple[Any, ...]:
    """Python values of an array. The scalars of pyarrow and numpy are slower, and masked ones are no longer None."""
    narrow = NARROW_FLOATS.get(str(getattr(values, "type", getattr(values, "dtype", ""))))
    if narrow is not None:  # keep their own digits, which Python's floats would lose
        known = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist() if _counts(values) else values
        return tuple(None if value is None or is_null_literal(value) else narrow(value) for value in known)
    exact = exact_values(values)
    if exact is not None:
        return exact
    if hasattr(values, "to_pylist"):
        return tuple(values.to_pylist())
    if _counts(values) and getattr(values.dtype, "itemsize", 8) <= 8:
        return tuple(values.tolist())
    return tuple(values)


def _counts(values: Any) -> bool:
    return hasattr(values, "dtype") and getattr(values.dtype, "kind", "") in ("b", "i", "u", "f", "U", "S")


NARROW_FLOATS: dict[str, Any] = {
    "float16": np.float16, "halffloat": np.float16, "float32": np.float32, "float": np.float32,
    "Float32": np.float32, "float[pyarrow]": np.float32, "halffloat[pyarrow]": np.float16,
}  # fmt: skip
"""Float types narrower than Python's, by the names of numpy, pyarrow, pandas and polars."""


class IsNull(Expression):
    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.is_null()"


class IsNan(Expression):
    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.is_nan()"


class StartsWith(Expression):
    __slots__ = ("path", "prefix")

    def __init__(self, path: Path, prefix: str | bytes) -> None:
        if not isinstance(prefix, (str, bytes)):
            raise FilterError(f"starts_with() takes a str or bytes, not {prefix!r}", column=dotted(path))
        self.path = path
        self.prefix = prefix

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.starts_with({self.prefix!r})"


class IntersectsBox(Expression):
    """The box around a geometry intersects ``box``: xmin, ymin, xmax, ymax."""

    __slots__ = ("box", "path")

    def __init__(self, path: Path, box: tuple[float, float, float, float]) -> None:
        if not all(is_number(v) and v == v for v in box):
            raise FilterError(f"intersects_box() takes four numbers, not {box!r}", column=dotted(path))
        if box[1] > box[3]:
            raise FilterError(f"ymin ({box[1]!r}) is above ymax ({box[3]!r})", column=dotted(path))
        self.path = path
        self.box = tuple(map(float, box))

    @printable
    def __repr__(self) -> str:
        return f"{ColumnRef(self.path)!r}.intersects_box({', '.join(map(repr, self.box))})"


def with_literals(test: Compare | Contains | IsIn, literals: Any) -> Expression:
    """The same test with other literals: one value, or the values of :class:`IsIn`."""
    if isinstance(test, Compare):
        return Compare(test.path, test.op, literals)
    return (Contains if isinstance(test, Contains) else IsIn)(test.path, literals)


def compared(column: ColumnRef, op: str, value: Any) -> Expression:
    """``column op value``, for a literal or another value."""
    return CompareValues(column, op, value) if isinstance(value, Expression) else Compare(column.path, op, value)


def tested_paths(test: Expression) -> tuple[Path, ...]:
    """The columns that a test looks at."""
    return test._columns() if isinstance(test, ValueTest) else (test.path,)  # type: ignore[attr-defined]


def moved(test: Expression, change: Callable[[Path], Path]) -> Expression:
    """The same test of other columns: ``change`` gives the new path for each path."""
    if isinstance(test, ValueTest):
        return test._moved(change)
    other = copy(test)
    other.path = change(test.path)  # type: ignore[attr-defined]
    return other
