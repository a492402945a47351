"""Simplifies filters by tests with a result that needs no data: on partition values and on missing columns."""

from __future__ import annotations

from collections.abc import Callable

from pyparq.errors import FilterError
from pyparq.filters.expression import AllOf, AnyOf, Expression, Known, Not

_MAX_DEPTH = 200


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
    if isinstance(expression, (AllOf, AnyOf)):
        parts = [simplified(child, look, depth - 1) for child in expression.children]
        return _joined(parts, type(expression))
    return look(expression)


def _joined(parts: list[Expression], kind: type[AllOf] | type[AnyOf]) -> Expression:
    decisive = kind is AnyOf  # the value that decides the whole: False for AND, True for OR
    known = [part.value for part in parts if isinstance(part, Known)]
    if decisive in known:
        return Known(decisive)
    rest = [part for part in parts if not isinstance(part, Known)]
    if None in known:
        if not rest:
            return Known(None)
        rest.append(Known(None))
    elif not rest:
        return Known(not decisive)
    return rest[0] if len(rest) == 1 else kind(tuple(rest))
