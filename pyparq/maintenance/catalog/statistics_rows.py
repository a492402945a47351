"""The statistics of new files on their way into a catalog: columns that grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.datasets.catalog.bounds_table import OF_LEAF


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
