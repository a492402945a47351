"""The statistics of all row groups of the known files, as columns: a filter rules out files without their footers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Table
from pyparq.datasets.catalog.layout import Part, Place
from pyparq.format.chunk_numbers import ODD, ChunkNumbers, Int64Array, stored_path
from pyparq.format.schema_node import Node
from pyparq.format.types import Schema
from pyparq.index.statistics import Bounds, believed_bounds, bounds_of_stored
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan

MOST_LEAVES = 200
"""Leaf columns of which statistics are kept: the first ones."""
LONGEST = 256
"""Bytes of a bound. Longer ones are left out."""

OF_LEAF = (("min", "binary?"), ("max", "binary?"), ("nulls", "int64"), ("nans", "int64"), ("values", "int64"))
"""The columns that are kept for a leaf, with their types. An unknown number is -1."""


def leaf_key(node: Node) -> str:
    """A leaf in the names of columns."""
    return ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in node.path)


def schema_for(keys: Iterable[str]) -> Schema:
    """The schema of a table with the statistics of these leaves."""
    fields = {"file": "int64", "row_group": "int32", "rows": "int64"}
    return parse_schema(fields | {f"{what} {key}": type_ for key in keys for what, type_ in OF_LEAF})


def statistics_of(file: OpenFile) -> dict[str, tuple[list[bytes | None], ...]]:
    """The statistics of a file by leaf: columns as :data:`OF_LEAF` has them, with a value per row group."""
    leaves = file.tree.leaves[:MOST_LEAVES]
    groups = np.arange(file.num_row_groups)
    if not leaves or not len(groups):
        return {}
    columns = np.array([leaf.column for leaf in leaves], np.int64)
    paths = [stored_path(leaf.path) for leaf in leaves]
    stack = file.footer.chunk_numbers(groups, columns, paths, len(file.tree.leaves))
    return {leaf_key(leaf): _of_leaf(file, leaf, ChunkNumbers(*stack[:, :, j])) for j, leaf in enumerate(leaves)}


def _of_leaf(file: OpenFile, leaf: Node, numbers: ChunkNumbers) -> tuple[list[Any], ...]:
    modern, old = believed_bounds(leaf.type, file.column_order(leaf), file.created_by)
    usual = (numbers.flags & ODD) == 0
    new = modern & ((numbers.min_value >= 0) | (numbers.max_value >= 0))
    nothing = np.full(len(usual), -1, np.int64)
    sides = []
    for place, size, before, before_size in (
        (numbers.min_value, numbers.min_value_size, numbers.min, numbers.min_size),
        (numbers.max_value, numbers.max_value_size, numbers.max, numbers.max_size),
    ):
        starts = np.where(usual, np.where(new, place, before if old else nothing), -1)
        sizes = np.where(new, size, before_size)
        sides.append(file.footer.places.bytes_at(np.where(sizes <= LONGEST, starts, -1), sizes))
    counts = [
        np.where(usual, found, -1).tolist() for found in (numbers.null_count, numbers.nan_count, numbers.num_values)
    ]
    return (*sides, *counts)


class BoundsTable:
    """The statistics, read leaf by leaf when they are asked for."""

    def __init__(self, place: Place, part: Part) -> None:
        self._place = place
        self._part = part
        self._file: OpenFile | None = None
        self._known: dict[str, Any] = {}
        self._bounds: dict[tuple[str, int], Bounds] = {}

    def _opened(self) -> OpenFile:
        if self._file is None:
            self._file = self._place.opened(self._part)
        return self._file.fork()

    @property
    def keys(self) -> list[str]:
        """The leaves that it has (:func:`leaf_key`)."""
        names = (leaf.path[0] for leaf in self._opened().tree.leaves)
        return [name.removeprefix("values ") for name in names if name.startswith("values ")]

    def has(self, node: Node) -> bool:
        """Whether there are statistics of a leaf."""
        return self._opened().tree.has_leaf((f"values {leaf_key(node)}",))

    @property
    def units(self) -> tuple[Int64Array, Int64Array]:
        """The numbers of the files, and their row groups, of all rows."""
        self.load([])
        return self._known["file"], self._known["row_group"]

    def load(self, nodes: Sequence[Node]) -> None:
        """Read the statistics of these leaves, all in one step."""
        own = [f"{what} {leaf_key(node)}" for node in nodes for what, _ in OF_LEAF]
        missing = [name for name in dict.fromkeys(("file", "row_group", *own)) if name not in self._known]
        if missing:
            table: Table = Scan(self._opened(), [(name,) for name in missing]).to_table()
            for name in missing:
                values = table.column(name)
                self._known[name] = values.to_pylist() if name[:3] in ("min", "max") else values.to_numpy()

    def bounds(self, node: Node, rows: Int64Array) -> Bounds:
        """The bounds of a leaf in the row groups at these rows of the table."""
        lows, highs, nulls, nans, counts = (self._known[f"{what} {leaf_key(node)}"] for what, _ in OF_LEAF)
        picked = rows.tolist()
        return bounds_of_stored(
            node.type, [lows[k] for k in picked], [highs[k] for k in picked], nulls[rows], nans[rows], counts[rows]
        )

    def columns(self, keys: Sequence[str], rows: Int64Array) -> dict[str, Any]:
        """Some rows of the statistics of these leaves, as they are written."""
        names = ["file", "row_group", "rows", *(f"{what} {key}" for key in keys for what, _ in OF_LEAF)]
        file = self._opened()
        stored = [name for name in names if file.tree.has_leaf((name,))]
        table = Scan(file, [(name,) for name in stored]).to_table()
        picked = rows.tolist()
        found: dict[str, Any] = {}
        for name in names:
            if name not in stored:
                found[name] = [None if name[:3] in ("min", "max") else -1] * len(picked)
            elif name[:3] in ("min", "max"):
                values = table.column(name).to_pylist()
                found[name] = [values[k] for k in picked]
            else:
                found[name] = table.to_numpy(name)[rows]
        return found


class StatisticsRows:
    """Rows of a bounds table. A leaf that only later files have is unknown in the rows before."""

    def __init__(self) -> None:
        self._units: dict[str, list[int]] = {"file": [], "row_group": [], "rows": []}
        self._leaves: dict[str, list[list[Any]]] = {}

    @property
    def keys(self) -> list[str]:
        """The leaves that any file has."""
        return list(self._leaves)

    def add(self, number: int, rows: Sequence[int], statistics: Mapping[str, tuple[list[Any], ...]]) -> None:
        """The row groups of a file with their rows, and the statistics by leaf."""
        before = len(self._units["file"])
        self._units["file"] += [number] * len(rows)
        self._units["row_group"] += range(len(rows))
        self._units["rows"] += rows
        for key, columns in statistics.items():
            for column, values in zip(self._column(key, before), columns, strict=True):
                column += values
        for key in self._leaves.keys() - statistics.keys():
            self._column(key, before + len(rows))

    def extend(self, other: StatisticsRows) -> None:
        """Add the rows of others."""
        before, count = len(self._units["file"]), len(other._units["file"])
        for name, values in other._units.items():
            self._units[name] += values
        for key in other.keys:
            for column, values in zip(self._column(key, before), other._column(key, count), strict=True):
                column += values
        for key in self._leaves.keys() - other._leaves.keys():
            self._column(key, before + count)

    def _column(self, key: str, length: int) -> list[list[Any]]:
        """The columns of a leaf, with at least so many rows."""
        columns = self._leaves.setdefault(key, [[] for _ in OF_LEAF])
        for column, (_, type_) in zip(columns, OF_LEAF, strict=True):
            column += [None if type_.endswith("?") else -1] * (length - len(column))
        return columns

    def columns(self, keys: Sequence[str]) -> dict[str, list[Any]]:
        """All rows, with the statistics of these leaves."""
        found: dict[str, list[Any]] = dict(self._units)
        for key in keys:
            columns = self._column(key, len(self._units["file"]))
            found |= {f"{what} {key}": column for (what, _), column in zip(OF_LEAF, columns, strict=True)}
        return found
