"""Filters as pyarrow takes them: lists of tuples, or expressions of ``pyarrow.compute``."""

from __future__ import annotations

from typing import Any

_OPERATORS = ("==", "=", "!=", "<", ">", "<=", ">=", "in", "not in")


def is_expression(filters: Any) -> bool:
    """Whether this is an expression of pyarrow's."""
    return type(filters).__module__.startswith("pyarrow")


def checked(filters: Any) -> Any:
    """Lists of tuples, as pyarrow allows them. Raises :class:`ValueError` for others."""
    if filters is None or is_expression(filters):
        return filters
    if not filters or not isinstance(filters, (list, tuple)):
        raise ValueError("Malformed filters: a list of tuples is needed, or a list of such lists")
    groups = [[filters]] if isinstance(filters[0], str) else [filters] if isinstance(filters[0], tuple) else filters
    for group in groups:
        for test in group:
            if not isinstance(test, (tuple, list)) or len(test) != 3:
                raise ValueError(f"Malformed filters: {test!r} is not (column, operator, value)")
            _check(*test)
    return [[_taken(*test) for test in group] for group in groups]


def _taken(name: Any, operator: str, value: Any) -> tuple[Any, str, Any]:
    """A test whose collection is a list: text stands for its letters, as in pyarrow."""
    return name, operator, list(value) if operator in ("in", "not in") else value


def _check(name: Any, operator: str, value: Any) -> None:
    if operator not in _OPERATORS:
        raise ValueError(f'"{operator}" is not a valid operator in predicates, such as {(name, "==", value)}')
    if operator not in ("in", "not in") and isinstance(value, (set, list, tuple, frozenset)):
        raise NotImplementedError(f"{(name, operator, value)}: only 'in' and 'not in' take a collection")


def filters_to_expression(filters: Any) -> Any:
    """Lists of tuples as an expression of ``pyarrow.compute``: ANDs, joined by OR.

    Example::

        import pyparq.parquet as pq

        print(pq.filters_to_expression([("dest", "==", "LAX"), ("flight", "<", 10)]))
    """
    import pyarrow.compute as pc

    if is_expression(filters):
        return filters
    whole = None
    for group in checked(filters):
        both = None
        for name, operator, value in group:
            test = _expression(pc.field(name), operator, value)
            both = test if both is None else both & test
        whole = both if whole is None else whole | both
    return whole


def _expression(field: Any, operator: str, value: Any) -> Any:
    if operator in ("in", "not in"):
        found = field.isin(list(value))
        return found if operator == "in" else ~found
    import operator as compare

    functions = {"=": compare.eq, "==": compare.eq, "!=": compare.ne, "<": compare.lt, ">": compare.gt,
                 "<=": compare.le, ">=": compare.ge}  # fmt: skip
    return functions[operator](field, value)
