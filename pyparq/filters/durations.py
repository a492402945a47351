"""Filters on durations. The file holds plain integers, so a literal is converted to the file's unit.

A timedelta means the same time in every file, whatever its unit. A bare number is refused, because it would mean
different times in different files.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.expression import Compare, Contains, Expression, IsIn, is_null_literal, with_literals
from pyparq.filters.temporal import UNIT_NS, duration_ns
from pyparq.format.schema_node import Node


def counted(test: Expression, leaf: Node, unit: str) -> Expression:
    """``test`` on a column that is shown as durations, with its literals counted in ``unit``. Raises
    :class:`FilterError` for a literal that is no duration."""
    if isinstance(test, IsIn):
        return with_literals(test, tuple(ticks(v, leaf, unit) for v in test.values))
    if isinstance(test, (Compare, Contains)):
        return with_literals(test, ticks(test.value, leaf, unit))
    return test


def ticks(value: Any, leaf: Node, unit: str) -> Any:
    """A duration counted in ``unit``. A null stays as it is. The result is a fraction if the literal is finer than
    the unit: it then lies between two values of the column. Raises :class:`FilterError` for a literal that is no
    duration."""
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
