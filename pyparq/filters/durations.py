"""Filters on durations: a file holds plain integers there, and a literal is counted in that file's unit.

A timedelta stands for the same time in every file, whatever unit each has. A bare number is refused: it would mean
another time in each of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.expression import Compare, Contains, Expression, IsIn, is_null_literal, with_literals
from pyparq.filters.temporal import UNIT_NS, duration_ns
from pyparq.format.schema_node import Node


def counted(test: Expression, leaf: Node, unit: str) -> Expression:
    """``test`` on a column shown as durations, its literals counted in ``unit``.

    Raises :class:`FilterError` for a literal that is no duration.
    """
    if isinstance(test, IsIn):
        return with_literals(test, tuple(ticks(v, leaf, unit) for v in test.values))
    if isinstance(test, (Compare, Contains)):
        return with_literals(test, ticks(test.value, leaf, unit))
    return test


def ticks(value: Any, leaf: Node, unit: str) -> Any:
    """A duration counted in ``unit``; a null as it is.

    A fraction where the literal is finer than the unit: it lies between two values of the column. Raises
    :class:`FilterError` for a literal that is no duration.
    """
    if is_null_literal(value):
        return value
    try:
        found = duration_ns(value)
        problem = "" if found is not None else f"{type(value).__name__} {value!r} has no unit"
    except ValueError as error:
        found, problem = None, str(error)
    if found is None:
        raise FilterError(
            f"cannot compare a column of type duration[{unit}] with {problem[:100]}: "
            "give a datetime.timedelta or a numpy.timedelta64 (in SQL: INTERVAL '6 seconds')",
            column=leaf.dotted,
        )
    ticks = Fraction(found) / UNIT_NS[unit]
    return ticks.numerator if ticks.denominator == 1 else ticks
