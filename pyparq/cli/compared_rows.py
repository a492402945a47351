"""Rows of two sources compared, by position or by key. A row is the text of its cells in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from pyparq.cli.cells import JSON, cells_of, lines
from pyparq.cli.export import pieces
from pyparq.errors import DataError

Progress = Callable[[float, int], None]
Digests = npt.NDArray[np.bytes_]
LOOKED_AT = 10_000
"""Changed rows of which the columns that differ are counted."""


@dataclass(slots=True)
class RowDifferences:
    """Numbers of rows, and some rows that differ."""

    old: int = 0
    new: int = 0
    same: int = 0
    changed: int = 0
    removed: int = 0
    added: int = 0
    changed_columns: dict[str, int] = field(default_factory=dict)
    looked_at: int | None = None
    """Changed rows that ``changed_columns`` counts; ``None`` for all of them."""
    examples: list[dict[str, Any]] = field(default_factory=list)
    """Each with ``change``, ``where`` (row numbers, or keys) and ``cells`` (by column, the old and the new value)."""

    @property
    def differ(self) -> bool:
        return bool(self.changed or self.removed or self.added)

    def count_columns(self, names: Sequence[str], old: Any, new: Any) -> None:
        """Count the columns in which rows differ; two tables with the rows in one order."""
        for name in names:
            sides = [_column_texts(table, name) for table in (old, new)]
            unlike = sum(a != b for a, b in zip(*sides, strict=True))
            if unlike:
                self.changed_columns[name] = self.changed_columns.get(name, 0) + unlike


# ---- by position


def compare_by_position(first: Any, second: Any, names: list[str], shown: int, show: Progress) -> RowDifferences:
    """Row 1 with row 1, row 2 with row 2."""
    found, unlike = RowDifferences(), list[int]()
    old, new = (_Texts(source, names) for source in (first, second))
    while True:
        rows = min(old.waiting(), new.waiting())
        if rows == 0:
            break
        a, b = old.take(rows), new.take(rows)
        if a != b:
            unlike += [found.old + n for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        found.old += rows
        show(old.share, found.old)
    common = found.old
    found.changed, found.same = len(unlike), common - len(unlike)
    found.removed, found.added = old.rest(), new.rest()
    found.old, found.new = common + found.removed, common + found.added
    _look_at(found, first, second, names, unlike, unlike, shown)
    _add_alone(found, "removed", first, names, range(common, found.old), [], shown)
    _add_alone(found, "added", second, names, range(common, found.new), [], shown)
    return found


class _Texts:
    """The rows of a source as text, some at a time."""

    def __init__(self, source: Any, names: list[str]) -> None:
        self._scan = source.scan(names)
        self._pieces = pieces(self._scan.batches())
        self._lines: list[bytes] = []
        self._at = 0

    @property
    def share(self) -> float:
        return float(self._scan.share_done)

    def waiting(self) -> int:
        """Rows that are there; 0 at the end."""
        while self._at == len(self._lines):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._lines, self._at = row_texts(piece, range(len(piece.columns))), 0
        return len(self._lines) - self._at

    def take(self, rows: int) -> list[bytes]:
        self._at += rows
        return self._lines[self._at - rows : self._at]

    def rest(self) -> int:
        """Rows that are left."""
        left = self.waiting()
        self._lines = []
        return left + sum(int(piece.num_rows) for piece in self._pieces)


def row_texts(batch: Any, columns: Sequence[int]) -> list[bytes]:
    """A line for each row, with the columns of these numbers."""
    cells = [cells_of(batch.columns[k], JSON, batch.schema.fields[k]) for k in columns]
    return lines(cells, ["" if k == 0 else ", " for k in range(len(cells))], "\n", batch.num_rows).split(b"\n")[:-1]


# ---- by key


def compare_by_key(
    first: Any, second: Any, keys: list[str], names: list[str], shown: int, show: Progress
) -> RowDifferences:
    """Rows with one key. Raises :class:`DataError` where a key comes twice on one side."""
    old, new = (_Digests(source, keys, names, show) for source in (first, second))
    for side in (old, new):
        side.check_unique(keys)
    both_old, both_new = _common_places(old, new)
    unlike = old.rows[both_old] != new.rows[both_new]
    removed, added = (np.setdiff1d(np.arange(len(s.keys)), b) for s, b in ((old, both_old), (new, both_new)))
    found = RowDifferences(
        len(old.keys), len(new.keys), int((~unlike).sum()), int(unlike.sum()), len(removed), len(added)
    )
    changed = np.argsort(both_old[unlike], kind="stable")
    _look_at(found, first, second, names, both_old[unlike][changed], both_new[unlike][changed], shown, keys)
    _add_alone(found, "removed", first, names, removed, keys, shown)
    _add_alone(found, "added", second, names, added, keys, shown)
    return found


class _Digests:
    """Digests of the key and of the rest of each row: 16 bytes each, so that two that are equal mean equal texts."""

    def __init__(self, source: Any, keys: list[str], names: list[str], show: Progress) -> None:
        self._source = source
        scan = source.scan([*keys, *names])
        found: list[tuple[Digests, Digests]] = []
        rows = 0
        for piece in pieces(scan.batches()):
            found.append((_digests(piece, range(len(keys))), _digests(piece, range(len(keys), len(keys) + len(names)))))
            rows += piece.num_rows
            show(scan.share_done, rows)
        self.keys, self.rows = (
            np.concatenate([_none(), *side]) for side in (zip(*found, strict=True) if found else ((), ()))
        )
        self.order = np.argsort(self.keys, kind="stable")

    def check_unique(self, names: list[str]) -> None:
        ordered = self.keys[self.order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(again):
            row = int(self.order[again[0]])
            values = self._source.take([row], names).to_pylist()[0]
            shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
            raise DataError(
                f"the key does not tell rows apart: {shown} comes more than once. Name more columns with --key, or "
                "leave --key out to compare rows by their position"
            )


def _none() -> Digests:
    return np.empty(0, "S16")


def _digests(piece: Any, columns: range) -> Digests:
    texts = row_texts(piece, columns) if columns else [b""] * piece.num_rows
    return np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, texts)), "S16")


def _common_places(old: _Digests, new: _Digests) -> tuple[Any, Any]:
    """Rows of both sides with one key, pair by pair."""
    ordered = new.keys[new.order]
    if not len(ordered):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(ordered, old.keys), len(ordered) - 1)
    hit = ordered[at] == old.keys
    return np.flatnonzero(hit), new.order[at[hit]]


# ---- some of the rows that differ


def _look_at(
    found: RowDifferences, first: Any, second: Any, names: list[str], old: Any, new: Any, shown: int,
    keys: Sequence[str] = (),
) -> None:  # fmt: skip
    """Count the columns that differ in the rows ``old`` and ``new``, and keep the first rows."""
    if len(old) > LOOKED_AT:
        found.looked_at = LOOKED_AT
    old, new = list(map(int, old[:LOOKED_AT])), list(map(int, new[:LOOKED_AT]))
    if not old or not (names or keys):
        return
    tables = [source.take(rows, [*keys, *names]) for source, rows in ((first, old), (second, new))]
    found.count_columns(names, *tables)
    sides = [_objects(table.slice(0, shown)) for table in tables]
    for row, a, b in zip(old, *sides, strict=False):
        cells = {name: (a[name], b[name]) for name in names if a[name] != b[name]}
        where = {key: a[key] for key in keys} or {"row": row}
        found.examples.append({"change": "changed", "where": where, "cells": cells})


def _add_alone(
    found: RowDifferences, change: str, source: Any, names: list[str], rows: Any, keys: Sequence[str], shown: int
) -> None:
    some = [int(row) for row in rows[:shown]]
    if not some or not (names or keys):
        return
    for row, values in zip(some, _objects(source.take(some, list(keys) or names)), strict=True):
        where = {key: values[key] for key in keys} or {"row": row}
        found.examples.append({"change": change, "where": where, "cells": {}})


def _objects(table: Any) -> list[dict[str, Any]]:
    """Rows as --json shows them."""
    names = table.schema.names
    columns = [[json.loads(text) for text in _column_texts(table, name)] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column_texts(table: Any, name: str) -> list[bytes]:
    k = table.schema.names.index(name)
    return [text for batch in table.batches for text in row_texts(batch, [k])]
