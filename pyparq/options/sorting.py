"""Sort orders, as options give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyparq.errors import OptionError
from pyparq.options.checks import ColumnName, is_name


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort order."""

    name: ColumnName | int
    """The column: its name, its path, or its number among the leaf columns, counted from 0."""
    descending: bool = False
    """Sort from the largest value to the smallest."""
    nulls_first: bool = False
    """Put nulls before all values. By default they come after all values, in either direction."""


def sort_keys(given: Any) -> tuple[SortKey, ...]:
    """The keys of ``sort_by`` or ``sorting_columns``: names, tuples, or :class:`SortKey`."""
    if given is None:
        return ()
    if isinstance(given, (str, SortKey)):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise OptionError(f"a sort order must be a list of names or (name, direction) tuples, not {given!r}")
    keys = tuple(_sort_key(item) for item in given)
    names = [key.name for key in keys]
    if len(set(names)) != len(names):
        raise OptionError(f"the sort order names a column twice: {names}")
    return keys


_DIRECTIONS = ("ascending", "descending", "asc", "desc")
"""What stands for a direction, or was meant to, and not for the second name of a path."""


def _sort_key(item: Any) -> SortKey:
    if isinstance(item, SortKey):
        return item
    if isinstance(item, str):
        return SortKey(item)
    if hasattr(item, "column_index") and hasattr(item, "descending"):  # pyarrow.parquet.SortingColumn
        return SortKey(item.column_index, bool(item.descending), bool(getattr(item, "nulls_first", False)))
    if is_name(item) and len(item) > 1 and item[1].lower() not in _DIRECTIONS:
        return SortKey(item)
    if isinstance(item, tuple) and 1 <= len(item) <= 3 and is_name(item[0]):
        direction = item[1] if len(item) > 1 else "ascending"
        nulls = item[2] if len(item) > 2 else False
        if direction in ("ascending", "descending") and nulls in (True, False, "nulls_first", "nulls_last"):
            return SortKey(item[0], direction == "descending", nulls in (True, "nulls_first"))
    raise OptionError(
        f"{item!r} is not a sort key. Give a name, (name, 'ascending' | 'descending'), or "
        "(name, 'ascending' | 'descending', 'nulls_first' | 'nulls_last')"
    )
