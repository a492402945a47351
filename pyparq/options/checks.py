"""What values of options are checked to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError

ColumnName = str | tuple[str, ...]
"""A column as a user names it: a string, with dots for nested columns, or a tuple of names, which is the exact
path even where the names contain dots."""


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_int(name: str, value: Any, least: int) -> None:
    if not is_int(value) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")


def check_switch(name: str, value: Any, per_column: bool) -> None:
    """``True``, ``False``, or the columns it is on for, as names or (``per_column``) as a dict of booleans."""
    if isinstance(value, bool):
        return
    if isinstance(value, Mapping) and per_column and all(isinstance(v, bool) for v in value.values()):
        return
    if isinstance(value, (list, tuple, set, frozenset)) and all(is_name(v) for v in value):
        return
    more = ", or a dict of names to booleans" if per_column else ""
    raise OptionError(f"{name} must be True, False or a list of names{more}, not {value!r}")


def is_name(value: Any) -> bool:
    """Can it be a :data:`ColumnName`?"""
    if isinstance(value, tuple):
        return len(value) > 0 and all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def check_names(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise OptionError(f"{name} must be a list of names; did you mean [{value!r}]?")
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(is_name(v) for v in value):
        raise OptionError(f"{name} must be a list of names, not {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
