"""Columns as a user names them, and collections of such names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Protocol, TypeAlias, TypeVar

ColumnName: TypeAlias = str | tuple[str, ...]
"""A column as a user names it: a string, with dots for nested columns, or a tuple of names, which is the exact
path even where the names contain dots."""

T = TypeVar("T")
Item = TypeVar("Item", covariant=True)


class ListOf(Protocol[Item]):
    """A list or a tuple, but not a string (its ``in`` takes only text) and not a dict (it has no numbered items)."""

    def __contains__(self, item: object, /) -> bool: ...
    def __getitem__(self, place: int, /) -> Item: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...


Names: TypeAlias = str | ListOf[ColumnName] | Set[ColumnName]
"""Columns; a text alone is one column."""
PerColumn: TypeAlias = Mapping[Any, T]
"""Values by column (:obj:`ColumnName`). Columns that are not named keep the default."""


def is_name(value: Any) -> bool:
    """Can it be a :data:`ColumnName`?"""
    if isinstance(value, tuple):
        return len(value) > 0 and all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def as_list(given: Any) -> Any:
    """A name alone as a list of it."""
    return [given] if isinstance(given, str) else given


NOT_COMPUTED = "pyparq.polars.scan(path).with_columns(name=...) for columns that are computed"
