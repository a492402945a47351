"""``pyparq diff``: schema, metadata and rows of two sources compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from pyparq.cli import completion
from pyparq.cli.common import COLUMNS, JSON, READING, opened_any, print_json
from pyparq.cli.compared_rows import RowDifferences, compare_by_key, compare_by_position
from pyparq.cli.names import list_of_names
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, say, show, title
from pyparq.cli.text import count, cut, visible
from pyparq.cli.values import metadata_json
from pyparq.errors import ColumnNotFoundError, OptionError, near_matches

PARTS = ("schema", "metadata", "rows")
IGNORED_KEYS = (b"ARROW:schema",)
"""It repeats the schema in another form."""
CELL = 60


@click.command("diff")
@click.argument("old", metavar="OLD", shell_complete=completion.files)
@click.argument("new", metavar="NEW", shell_complete=completion.files)
@READING
@click.option("--key", "-k", "key", metavar="NAMES", shell_complete=completion.columns,
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
        _table("=column|change|=old|=new", found["schema"])
    if found.get("metadata"):
        title("metadata")
        _table("=key|~old|~new", found["metadata"])
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
    grid = Grid(headings("row|~column|~old|~new"))
    for example in rows.examples:
        where = example["change"] + " " + ", ".join(f"{k}={_cell(v)}" for k, v in example["where"].items())
        cells = example["cells"]
        for n, (name, (old, new)) in enumerate(cells.items()):
            grid.add("" if n else where, name, _cell(old), _cell(new))
        if not cells:
            grid.add(where, "", "", "")
    if grid.rows:
        show(grid.without_empty("column", "old", "new"))


def _cell(value: Any) -> str:
    return "NULL" if value is None else cut(visible(str(value)), CELL)


def _table(spec: str, found: list[dict[str, Any]]) -> None:
    grid = Grid(headings(spec))
    for entry in found:
        grid.add(*("-" if value is None else cut(visible(str(value)), CELL) for value in entry.values()))
    show(grid)
    emit()
