"""Rows: ``pyparq head``, ``tail``, ``sample``, ``cat``, ``query``, ``lookup`` and ``count``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from pyparq.cli import saving
from pyparq.cli.options import (
    COLUMNS,
    IGNORE_CASE,
    JSON,
    ROW_GROUP,
    SOURCE,
    SOURCES,
    WHERE,
    all_of,
    complete_files,
    misused,
)
from pyparq.cli.output import (
    GAP,
    NULL,
    Busy,
    Grid,
    Heading,
    count,
    cut,
    emit,
    on_terminal,
    print_json,
    terminal_width,
    width,
)
from pyparq.cli.sources import PIPE, dataset_of, make_scan, opened_any, rows_in, rows_where
from pyparq.runtime.text import visible

LIMIT = 20
"""Rows of a table when --limit is not given."""
CELL = 40
"""Cells of the terminal that one column may take before others get their share."""
LONGEST = 2000
"""Cells of a table are cut to this even in a pipe; JSON and CSV are whole."""
_NUMBERS = ("int", "uint", "float", "decimal")


def _note(ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    if given is not None:
        ctx.meta.setdefault("pyparq.forms", []).append("csv" if given == "csv" else "jsonl")


FORM = all_of(
    click.option("--json", "as_json", flag_value="jsonl", expose_value=False, callback=_note,
                 help="Print one JSON object per row, each on one line."),
    click.option("--csv", "as_csv", flag_value="csv", expose_value=False, callback=_note,
                 help="Print CSV with a header line."),
    click.option("--format", type=click.Choice(["json", "csv"]), expose_value=False, callback=_note,
                 help="The same by its name."),
)  # fmt: skip
ROWS = click.option("--rows", "-n", default=10, show_default=True, type=click.IntRange(min=0), help="Number of rows.")
OUTPUT = click.option(
    "--output", "-o", metavar="PATH", shell_complete=complete_files,
    help="Write the rows to a file: .parquet, .csv, .json (one object per line), .arrow or .feather. "
    "- is standard output, as Parquet.",
)  # fmt: skip


@click.command("head")
@SOURCE
@ROWS
@COLUMNS
@IGNORE_CASE
@FORM
def head_command(file: str, rows: int, columns: list[str]) -> None:
    """The first rows of a file, a folder or a glob. If the files have page indexes, only the first pages are read."""
    with opened_any(file) as parquet:
        scan = parquet.scan(columns or None, limit=rows)
        _show(scan.schema, scan.iter_batches(), _form(), lambda: rows_in(parquet))


@click.command("tail")
@SOURCES
@ROWS
@COLUMNS
@IGNORE_CASE
@FORM
def tail_command(sources: tuple[str, ...], rows: int, columns: list[str]) -> None:
    """The last rows of files, in their order. If the files have page indexes, only the last pages are read."""
    with opened_any(*sources) as parquet:
        total = rows_in(parquet)
        table = parquet.read_rows(max(total - rows, 0), total, columns or None)
        _show(table.schema, table.batches, _form(), lambda: total)


@click.command("sample")
@SOURCES
@ROWS
@click.option("--seed", type=int, metavar="N", help="The same number chooses the same rows.")
@COLUMNS
@IGNORE_CASE
@FORM
@OUTPUT
def sample_command(
    sources: tuple[str, ...], rows: int, seed: int | None, columns: list[str], output: str | None
) -> None:
    """Some rows, chosen at random, in the order of the files. Every row is equally likely, and comes once at most.

    If the files have page indexes, only the pages with these rows are read.

    \b
    pyparq sample flights/ -n 1000 --seed 7 -o some.parquet
    """
    form = _form(output)
    with opened_any(*sources) as parquet:
        with Busy("reading"):
            table = parquet.sample(rows, columns or None, seed=seed)
        _show(table.schema, table.batches, form, lambda: rows_in(parquet), output)


@click.command("cat")
@SOURCES
@COLUMNS
@IGNORE_CASE
@FORM
@OUTPUT
def cat_command(sources: tuple[str, ...], columns: list[str], output: str | None) -> None:
    """All rows of files, one after the other: as lines of JSON (the default) or CSV, or into one file.

    Columns that a file does not have are null in its rows.

    \b
    pyparq cat january.parquet february.parquet --csv | sort | uniq -c
    pyparq cat 'logs/*.parquet' -o - | pyparq count -
    """
    form = _form(output) or ("jsonl" if output is None else None)
    with opened_any(*sources) as parquet:
        scan = parquet.scan(columns or None)
        _show(scan.schema, _limited(scan, None), form, None, output)


def _form(output: str | None = None) -> str | None:
    """What standard output gets; ``None`` for a table."""
    given = click.get_current_context().meta.get("pyparq.forms", [])
    if len(given) + (output is not None) > 1:
        misused("use only one of --json, --csv and --output")
    return given[0] if given else None


_WHERE_HELP = """
\b
--where understands:
  = != <> < <= > >=, AND, OR, NOT, IN (…), BETWEEN … AND …
  IS [NOT] NULL, IS [NOT] NAN, IS [NOT] TRUE, IS [NOT] FALSE
  IS [NOT] DISTINCT FROM
  [NOT] LIKE 'a%b_', ILIKE, column ~ 'regular expression', isnan(column)
  starts_with, ends_with, contains (column, 'text'), column < column
  + - * / %, lower, upper, length, year, month, day, hour, … (column)
  numbers, 'text', TRUE, FALSE, DATE '2013-01-31',
  TIMESTAMP '2013-01-31 12:00:00', TIME '12:00:00', X'00ff' (bytes)
  INTERVAL '1 day 02:30:00' (beside a duration, or + - to a time)
  column::DECIMAL(18, 2), column::DATE
  names, "quoted names", nested.names

As in SQL, a comparison with a null is unknown, and only rows for which the whole condition is true are kept. NaN equals
itself and is greater than every number. Numbers are compared exactly and never rounded to the column's type. One
exception: for a FLOAT column, 0.1 means the float that is printed as 0.1 (the same for FLOAT16 and DOUBLE).
"""


@click.command("query", epilog=_WHERE_HELP)
@SOURCE
@WHERE
@COLUMNS
@IGNORE_CASE
@ROW_GROUP
@click.option(
    "--limit", "-l", type=click.IntRange(min=0),
    help=f"Maximum number of rows; 0 means all. [default: {LIMIT} in a table]",
)  # fmt: skip
@click.option("--explain", is_flag=True, help="Also show what each index ruled out and what was read.")
@FORM
@OUTPUT
def query_command(
    file: str, where: str | None, columns: list[str], row_groups: tuple[int, ...], limit: int | None, explain: bool,
    output: str | None,
) -> None:  # fmt: skip
    """Rows of SOURCE (a file, a folder, or a glob in quotes) where a condition is true. Indexes are used wherever they
    help. A condition on partition columns (year=2024/) rules out whole files.

    \b
    pyparq query flights.parquet --where "tailnum = 'N14228' AND dep_delay > 60"
    pyparq query flights.parquet -w "time_hour < TIMESTAMP '2013-01-02'" -c flight,dest -o out.parquet
    """
    form = _form(output)
    with opened_any(file) as parquet:
        if limit is None and form is None and output is None:
            limit = LIMIT
        scan = make_scan(parquet, where, columns, row_groups, limit)
        batches = _limited(scan, limit)
        if output is not None or form is not None:
            _show(scan.schema, batches, form, None, output)
        else:
            _show_matches(parquet, scan, list(batches), where, row_groups, limit)
        if explain:
            from pyparq.cli.output import print_explanation

            print_explanation(scan.explain(execute=False), sys.stderr if form is not None else sys.stdout, apart=True)


def _show_matches(
    parquet: Any, scan: Any, batches: list[Any], where: str | None, row_groups: Sequence[int], limit: int | None
) -> None:
    """A table. How many rows match in all is counted where the limit was reached: the filter columns alone are read."""
    total = sum(int(batch.num_rows) for batch in batches)
    if limit and total >= limit:
        with Busy("counting the rows beyond the limit"):
            total = int(make_scan(parquet, where, row_groups=row_groups).count())
    _show(scan.schema, batches, None, lambda: total, hint="--limit 0 shows all")


def _limited(scan: Any, limit: int | None) -> Iterator[Any]:
    """The batches of a scan, cut off after ``limit`` rows (``None`` or 0: all)."""
    left, rows = limit or 1 << 62, 0
    with Busy("reading", rows=True) as busy:
        for batch in scan.iter_batches():
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows
            if left <= 0:
                return
            rows += batch.num_rows
            busy.show(max(scan.share_read, rows / limit if limit else 0.0), rows)


@click.command("lookup")
@SOURCE
@click.argument("column")
@click.argument("wanted", metavar="KEY...", nargs=-1)
@click.option(
    "--from", "listed", metavar="PATH", type=click.File(), help="Also look for the keys in a file, one a line."
)
@COLUMNS
@IGNORE_CASE
@click.option("--path", is_flag=True, help="Add a column with the name of each row's file.")
@FORM
def lookup_command(
    file: str, column: str, wanted: tuple[str, ...], listed: Any, columns: list[str], path: bool
) -> None:
    """The rows of SOURCE (a file, a folder, or a glob in quotes) where COLUMN is one of the keys. The statistics and
    Bloom filters of all files are asked at once. The exit code is 0 also where no row is found.

    \b
    pyparq lookup flights/ tailnum N14228 N24211
    pyparq lookup flights/ tailnum --from tails.txt --path --json
    """
    from pyparq.filters.conditions import probe_value
    from pyparq.format.schema_node import shown_field

    form = _form()
    texts = [*wanted, *(line.rstrip("\r\n") for line in listed or ())]
    if not texts and listed is None:
        misused("give at least one key, or --from with a file of keys")
    dataset = dataset_of(file)
    tree = dataset.tree
    node = tree.find(column)
    field = shown_field(node, tree.root.children, dataset.schema.fields)
    values = [probe_value(text, node, field) for text in texts]
    with Busy("looking"):
        found = dataset.lookup(column, values, columns=columns or None, filename="filename" if path else False)
    _show(found.schema, found.batches, form, lambda: int(found.num_rows))


@click.command("count")
@SOURCES
@WHERE
@IGNORE_CASE
@click.option("--each", is_flag=True, help="A line for each SOURCE, and one for all of them.")
@JSON
def count_command(sources: tuple[str, ...], where: str | None, each: bool, as_json: bool) -> None:
    """The number of rows, as a plain number. Without a condition, only footers are read.

    With --where, columns are read only where indexes do not give the answer. The exit code is 0 also if no row matches.

    \b
    pyparq count flights.parquet --where "dest = 'LAX'"
    pyparq count *.parquet --each
    """
    counts: list[dict[str, Any]] = []
    together = [(source,) for source in sources] if each else [sources]
    with Busy("counting", len(together)) as busy:
        for some in together:
            counts.append({"source": some[0], "rows": rows_where(some, where)})
            busy.step()
    total = sum(found["rows"] for found in counts)
    if as_json:
        print_json({"rows": total, **({"sources": counts} if each else {})})
    elif each:
        Grid("rows|=source", [*counts, {"source": "(all)", "rows": total}], indent=0).show()
    else:
        emit(str(total))


# ---- rows as a table


def _show(
    schema: Any, batches: Iterable[Any], form: str | None, total: Any, output: str | None = None,
    hint: str = "-n N shows more",
) -> None:  # fmt: skip
    """Rows in a file, as JSON or CSV, or as a table and how many there are. ``total``: a function that tells it."""
    if output is not None or form is not None:
        return saving.save_and_say(output or PIPE, schema, iter(batches), form)
    whole, given = total(), list(batches)
    shown = sum(batch.num_rows for batch in given)
    _show_table(schema, given)
    emit(f"{count(shown, 'row')} shown, {whole - shown:,} more ({hint})" if whole > shown else count(shown, "row"))


def _show_table(schema: Any, batches: Sequence[Any]) -> None:
    """All columns to a pipe; to a terminal, as many as fit."""
    if not schema.fields:
        emit("(no columns)")
        return
    columns = [_cells(field, [b.columns[k] for b in batches]) for k, field in enumerate(schema.fields)]
    heads = [Heading(visible(f.name), right=f.type.kind in _NUMBERS) for f in schema.fields]
    fitting = len(heads)
    if on_terminal():
        columns = [[None if c is None else cut(c, CELL) for c in column] for column in columns]
        fitting = _fitting(heads, columns)
    grid = Grid(heads[:fitting], indent=0)
    grid.rows = [list(row) for row in zip(*columns[:fitting], strict=True)]
    grid.show()
    if fitting < len(heads):
        names = ", ".join(h.title for h in heads[fitting:])
        text = f"… {count(len(heads) - fitting, 'more column')} (choose with --columns): {names}"
        emit(cut(text, terminal_width()))


def _cells(field: Any, chunks: Sequence[Any]) -> list[str | None]:
    from pyparq.arrow.to_python import field_to_pylist
    from pyparq.cli.values import cell_format

    form = cell_format(field)
    values = (v for chunk in chunks for v in field_to_pylist(field, chunk))
    return [None if v is None else visible(cut(form(v), LONGEST)) for v in values]


def _fitting(heads: Sequence[Heading], columns: Sequence[Sequence[str | None]]) -> int:
    """How many of the first columns a terminal holds (at least one)."""
    room = terminal_width()
    for k, (head, column) in enumerate(zip(heads, columns, strict=True)):
        room -= max([width(head.title), *(len(NULL) if c is None else width(c) for c in column)])
        if room < 0:
            return max(k, 1)
        room -= GAP
    return len(heads)
