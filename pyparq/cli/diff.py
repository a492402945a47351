"""``pyparq diff``: schema, metadata and rows of two sources compared. A row is the text of its cells in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import xxhash

from pyparq.cli.cells import JSON as JSON_FORM
from pyparq.cli.cells import cells_of, lines, pieces
from pyparq.cli.options import COLUMNS, JSON, READING, complete_columns, complete_files, list_of_names
from pyparq.cli.output import Busy, Grid, count, cut, emit, print_json, say, title
from pyparq.cli.sources import opened_any
from pyparq.cli.values import metadata_json
from pyparq.errors import ColumnNotFoundError, DataError, OptionError, near_matches
from pyparq.runtime.text import visible

Progress = Callable[[float, int], None]
Digests = npt.NDArray[np.bytes_]
LOOKED_AT = 10_000
"""Changed rows of which the columns that differ are counted."""
PARTS = ("schema", "metadata", "rows")
IGNORED_KEYS = (b"ARROW:schema",)
"""It repeats the schema in another form."""
CELL = 60


@click.command("diff")
@click.argument("old", metavar="OLD", shell_complete=complete_files)
@click.argument("new", metavar="NEW", shell_complete=complete_files)
@READING
@click.option("--key", "-k", "key", metavar="NAMES", shell_complete=complete_columns,
              help="Columns that tell rows apart, separated by commas. Without them, rows are compared by "
              "their position.")  # fmt: skip
@click.option("--only", "parts", multiple=True, type=click.Choice(PARTS), help="Compare this alone. May be repeated.")
@COLUMNS
@click.option("--show", "shown", default=10, show_default=True, type=click.IntRange(min=0), metavar="N",
              help="How many rows of each kind to show.")  # fmt: skip
@JSON
def diff_command(
    old: str, new: str, key: str | None, parts: tuple[str, ...], columns: list[str], shown: int, as_json: bool
) -> int:
    """What differs between two files, folders or globs: columns and types, key-value metadata, rows.

    Values are compared as --json shows them, so 1 in an INT32 column equals 1 in an INT64 column, and NaN equals NaN.
    Columns that only one side has are named, and left out when rows are compared. Comparing by key takes 64 bytes of
    memory for each row. The exit code is 1 if anything differs, and 0 if not.

    \b
    pyparq diff old.parquet new.parquet --key id
    pyparq diff january/ january-rewritten/ --only rows --json
    """
    wanted = parts or PARTS
    with opened_any(old) as first, opened_any(new) as second:
        schemas = first.scan().schema, second.scan().schema
        found: dict[str, Any] = {"old": old, "new": new}
        if "schema" in wanted:
            found["schema"] = _schema_differences(*schemas)
        if "metadata" in wanted:
            found["metadata"] = _metadata_differences(*schemas)
        rows = _rows(first, second, schemas, columns, key, shown) if "rows" in wanted else None
    if rows is not None:
        found["rows"] = asdict(rows)
    differs = bool(found.get("schema") or found.get("metadata") or (rows is not None and rows.differ))
    if as_json:
        print_json({**found, "differs": differs})
    else:
        _print(found, rows, differs)
    return 1 if differs else 0


def _schema_differences(old: Any, new: Any) -> list[dict[str, Any]]:
    """Columns of one side alone, and those whose type or place differs."""
    before, after = ({f.name: f for f in schema.fields} for schema in (old, new))
    found = [
        {"column": n, "change": "removed", "old": _type(f), "new": None} for n, f in before.items() if n not in after
    ]
    found += [
        {"column": n, "change": "added", "old": None, "new": _type(f)} for n, f in after.items() if n not in before
    ]
    both = [name for name in before if name in after]
    for name in both:
        if _type(before[name]) != _type(after[name]):
            found.append({"column": name, "change": "type", "old": _type(before[name]), "new": _type(after[name])})
    if both != [name for name in after if name in before]:
        found.append({"column": None, "change": "order", "old": ", ".join(before), "new": ", ".join(after)})
    return found


def _type(field: Any) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _metadata_differences(old: Any, new: Any) -> list[dict[str, Any]]:
    before, after = ({k: v for k, v in s.metadata.items() if k not in IGNORED_KEYS} for s in (old, new))
    return [
        {
            "key": metadata_json(key),
            "old": None if key not in before else metadata_json(before[key]),
            "new": None if key not in after else metadata_json(after[key]),
        }
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def _rows(
    first: Any, second: Any, schemas: tuple[Any, Any], columns: list[Any], keys: str | None, shown: int
) -> RowDifferences:
    names = _common(schemas, columns)
    if keys is None:
        with Busy("comparing", rows=True) as busy:
            return compare_by_position(first, second, names, shown, busy.show)
    key_names = [str(name) for name in list_of_names(keys)]
    for name in key_names:
        if name not in _common(schemas, []):
            raise ColumnNotFoundError(f"--key: no column {name!r} on both sides{near_matches(name, names)}")
    with Busy("comparing", rows=True) as busy:
        return compare_by_key(first, second, key_names, [n for n in names if n not in key_names], shown, busy.show)


def _common(schemas: tuple[Any, Any], columns: list[Any]) -> list[str]:
    """The columns to compare: those of both sides, or those asked for."""
    sides = [schema.names for schema in schemas]
    for names in sides:
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise OptionError(f"several columns are called {twice!r}: their rows cannot be compared")
    both = [name for name in sides[0] if name in sides[1]]
    for name in columns:
        if name not in both:
            raise ColumnNotFoundError(f"no column {name!r} on both sides{near_matches(str(name), both)}")
    return [name for name in both if not columns or name in columns]


# ---- text


def _print(found: dict[str, Any], rows: RowDifferences | None, differs: bool) -> None:
    if not differs:
        title("no differences")
    if found.get("schema"):
        title("schema")
        _show_table("=column|change|=old|=new", found["schema"])
    if found.get("metadata"):
        title("metadata")
        _show_table("=key|=old|=new", found["metadata"])
    if rows is not None and (rows.differ or differs):
        title("rows")
        say(f"  {_counted(rows)}")
        if rows.changed_columns:
            named = ", ".join(f"{visible(name)} ({number:,})" for name, number in rows.changed_columns.items())
            say(f"  changed columns: {named}" + (f" (of the first {rows.looked_at:,} rows)" if rows.looked_at else ""))
        _print_rows(rows)


def _counted(rows: RowDifferences) -> str:
    same = f"{rows.same:,} the same"
    return f"{count(rows.old, 'row')} and {count(rows.new, 'row')}: {same}, {rows.changed:,} changed, " \
        f"{rows.removed:,} removed, {rows.added:,} added"  # fmt: skip


def _print_rows(rows: RowDifferences) -> None:
    grid = Grid("row|-=column|-=old|-=new")
    for example in rows.examples:
        where = example["change"] + " " + ", ".join(f"{k}={_cell(v)}" for k, v in example["where"].items())
        for name, (old, new) in example["cells"].items():
            grid.add(where, name, _cell(old), _cell(new))
            where = ""
        if not example["cells"]:
            grid.add(where, "", "", "")
    if grid.rows:
        grid.show()


def _cell(value: Any) -> str:
    return "NULL" if value is None else cut(visible(str(value)), CELL)


def _show_table(spec: str, found: list[dict[str, Any]]) -> None:
    grid = Grid(spec)
    for entry in found:
        grid.add(*(None if value is None else _cell(value) for value in entry.values()))
    grid.show()
    emit()


# ---- rows


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
    common = 0
    for old, new in zip_longest(_texts_of(first, names, show), _texts_of(second, names)):
        if old is None:
            found.added += 1
        elif new is None:
            found.removed += 1
        else:
            if old != new:
                unlike.append(common)
            common += 1
    found.changed, found.same = len(unlike), common - len(unlike)
    found.old, found.new = common + found.removed, common + found.added
    _look_at(found, first, second, names, unlike, unlike, shown)
    _add_alone(found, "removed", first, names, range(common, found.old), [], shown)
    _add_alone(found, "added", second, names, range(common, found.new), [], shown)
    return found


def _texts_of(source: Any, names: list[str], show: Progress | None = None) -> Iterator[bytes]:
    """The rows of a source as text. ``show``: is told how far it is."""
    scan, rows = source.scan(names), 0
    for piece in pieces(scan.iter_batches()):
        yield from row_texts(piece, range(len(piece.columns)))
        rows += piece.num_rows
        if show is not None:
            show(scan.share_read, rows)


def row_texts(batch: Any, columns: Sequence[int]) -> list[bytes]:
    """A line for each row, with the columns of these numbers."""
    cells = [cells_of(batch.columns[k], JSON_FORM, batch.schema.fields[k]) for k in columns]
    return lines(cells, ["" if k == 0 else ", " for k in range(len(cells))], "\n", batch.num_rows).split(b"\n")[:-1]


# ---- by key


def compare_by_key(
    first: Any, second: Any, keys: list[str], names: list[str], shown: int, show: Progress
) -> RowDifferences:
    """Rows with one key. Raises :class:`DataError` where a key comes twice on one side."""
    (old, old_rows), (new, new_rows) = (_digests_of(source, keys, names, show) for source in (first, second))
    _, both_old, both_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    unlike = old_rows[both_old] != new_rows[both_new]
    removed, added = (np.setdiff1d(np.arange(len(s)), b) for s, b in ((old, both_old), (new, both_new)))
    found = RowDifferences(len(old), len(new), int((~unlike).sum()), int(unlike.sum()), len(removed), len(added))
    changed = np.argsort(both_old[unlike], kind="stable")
    _look_at(found, first, second, names, both_old[unlike][changed], both_new[unlike][changed], shown, keys)
    _add_alone(found, "removed", first, names, removed, keys, shown)
    _add_alone(found, "added", second, names, added, keys, shown)
    return found


def _digests_of(source: Any, keys: list[str], names: list[str], show: Progress) -> tuple[Digests, Digests]:
    """Digests of the key and of the rest of each row: 16 bytes each, so that two that are equal mean equal texts."""
    scan, rows = source.scan([*keys, *names]), 0
    of_keys, of_rows = [np.empty(0, "S16")], [np.empty(0, "S16")]
    for piece in pieces(scan.iter_batches()):
        of_keys.append(_digests(piece, range(len(keys))))
        of_rows.append(_digests(piece, range(len(keys), len(keys) + len(names))))
        rows += piece.num_rows
        show(scan.share_read, rows)
    found = np.concatenate(of_keys)
    order = np.argsort(found, kind="stable")
    again = np.flatnonzero(found[order][1:] == found[order][:-1])
    if len(again):
        values = source.take([int(order[again[0]])], keys).to_pylist()[0]
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise DataError(
            f"the key does not tell rows apart: {shown} comes more than once. Name more columns with --key, or "
            "leave --key out to compare rows by their position"
        )
    return found, np.concatenate(of_rows)


def _digests(piece: Any, columns: range) -> Digests:
    texts = row_texts(piece, columns) if columns else [b""] * piece.num_rows
    return np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, texts)), "S16")


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
