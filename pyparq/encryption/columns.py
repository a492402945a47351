"""Resolves the column names of keys to leaf columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyparq.column_names import ColumnName
from pyparq.errors import ColumnNotFoundError, OptionError, near_matches
from pyparq.format.schema_tree import SchemaTree

T = TypeVar("T")
Path = tuple[str, ...]
Find = Callable[[ColumnName], Path | None]
"""The path of the column or group that a name stands for; ``None`` where there is none. Raises
:class:`ColumnNotFoundError` where a name may be any of several: a key must not serve more columns, or others, than its
owner meant."""


def find_in(tree: SchemaTree) -> Find:
    """Names of columns in a schema, resolved as everywhere (:meth:`SchemaTree.find`)."""

    def find(name: ColumnName) -> Path | None:
        nodes = tree.fitting(name)
        if len({node.path for node in nodes}) > 1:
            tree.only(nodes, name)
        return nodes[0].path if nodes else None

    return find


def find_among(leaves: Sequence[ColumnName]) -> Find:
    """Names of the leaves at these paths and of the groups above them, without a schema."""
    paths = map(path_of, leaves)
    known = list(dict.fromkeys(path[:k] for path in paths for k in range(1, len(path) + 1)))

    def find(name: ColumnName) -> Path | None:
        fits = [path for path in known if name in (path, ".".join(path))]
        if len(fits) > 1:
            raise ColumnNotFoundError(f"{name!r} matches {len(fits)} columns. Give the path as a tuple: one of {fits}")
        return fits[0] if fits else None

    return find


def path_of(leaf: ColumnName) -> Path:
    return tuple(leaf.split(".")) if isinstance(leaf, str) else leaf


def assign(leaves: Sequence[ColumnName], named: Mapping[ColumnName, T], find: Find) -> dict[ColumnName, T]:
    """The value for each leaf that has one: by its own name, or by the name of the nearest group above it.

    Raises :class:`ColumnNotFoundError` for a name of no column, and :class:`OptionError` for two names of one column.
    """
    given: dict[Path, T] = {}
    for name, value in named.items():
        path = find(name)
        if path is None:
            known = [leaf if isinstance(leaf, str) else ".".join(leaf) for leaf in leaves]
            shown = name if isinstance(name, str) else ".".join(name)
            raise ColumnNotFoundError(
                f"a key is given for column {name!r}, which does not exist{near_matches(shown, known)}"
            )
        if path in given:
            raise OptionError(f"column {'.'.join(path)!r} has two keys: the second is given as {name!r}")
        given[path] = value
    found = {leaf: nearest(path_of(leaf), given) for leaf in leaves}
    return {leaf: value for leaf, value in found.items() if value is not None}


def nearest(path: Path, given: Mapping[Path, T]) -> T | None:
    """The value for a leaf, or for the nearest group above it."""
    for length in range(len(path), 0, -1):
        if path[:length] in given:
            return given[path[:length]]
    return None
