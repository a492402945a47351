"""``pyparq head``, ``tail``, ``sample``, ``cat`` and ``query``: rows, as a table, JSON, CSV or a new file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from pyparq.cli import completion
from pyparq.cli.common import (
    COLUMNS,
    IGNORE_CASE,
    ROW_GROUP,
    SOURCE,
    SOURCES,
    WHERE,
    opened_all,
    opened_any,
    rows_in,
)
from pyparq.cli.export import save
from pyparq.cli.pipes import PIPE
from pyparq.cli.progress import Busy
from pyparq.cli.questions import chosen_groups, make_scan
from pyparq.cli.text import count, visible

LIMIT = 20
"""Rows of a table when --limit is not given."""

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row, each on one line.")
AS_CSV = click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header line.")


ROWS = click.option("--rows", "-n", default=10, show_default=True, type=click.IntRange(min=0), help="Number of rows.")
OUTPUT = click.option(
    "--output", "-o", metavar="PATH", shell_complete=completion.files,
    help="Write the rows to a file: .parquet, .csv, .json (one object per line), .arrow or .feather. "
    "- is standard output, as Parquet.",
)  # fmt: skip


@click.command("head")
@SOURCE
@ROWS
@COLUMNS
@IGNORE_CASE
@AS_JSON
@AS_CSV
def head_command(file: str, rows: int, columns: list[str], as_json: bool, as_csv: bool) -> None:
    """The first rows of a file, a folder or a glob. If the files have page indexes, only the first pages are read."""
    with opened_any(file) as parquet:
        scan = parquet.scan(columns or None, limit=rows)
        if as_json or as_csv:
            _stream(scan.schema, scan.batches(), as_json)
            return
        total = rows_in(parquet)
        _print(scan.schema, list(scan.batches()), total, "-n N shows more")


@click.command("tail")
@SOURCES
@ROWS
@COLUMNS
@IGNORE_CASE
@AS_JSON
@AS_CSV
def tail_command(sources: tuple[str, ...], rows: int, columns: list[str], as_json: bool, as_csv: bool) -> None:
    """The last rows of files, in their order. If the files have page indexes, only the last pages are read."""
    with opened_all(sources) as parquet:
        total = rows_in(parquet)
        table = parquet.read_rows(max(total - rows, 0), total, columns or None)
        _show(table, total, as_json, as_csv)


@click.command("sample")
@SOURCES
@ROWS
@click.option("--seed", type=int, metavar="N", help="The same number chooses the same rows.")
@COLUMNS
@IGNORE_CASE
@AS_JSON
@AS_CSV
@OUTPUT
def sample_command(
    sources: tuple[str, ...], rows: int, seed: int | None, columns: list[str], as_json: bool, as_csv: bool,
    output: str | None,
) -> None:  # fmt: skip
    """Some rows, chosen at random, in the order of the files. Every row is equally likely, and comes once at most.

    If the files have page indexes, only the pages with these rows are read.

    \b
    pyparq sample flights/ -n 1000 --seed 7 -o some.parquet
    """
    _check_one_form(as_json, as_csv, output)
    with opened_all(sources) as parquet:
        with Busy("reading"):
            table = parquet.sample(rows, columns or None, seed=seed)
        if output is not None:
            _save(output, table.schema, table.to_batches())
        else:
            _show(table, rows_in(parquet), as_json, as_csv)


@click.command("cat")
@SOURCES
@COLUMNS
@IGNORE_CASE
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row, each on one line (the default).")
@AS_CSV
@OUTPUT
def cat_command(sources: tuple[str, ...], columns: list[str], as_json: bool, as_csv: bool, output: str | None) -> None:
    """All rows of files, one after the other: as lines of JSON or CSV, or into one file.

    Columns that a file does not have are null in its rows.

    \b
    pyparq cat january.parquet february.parquet --csv | sort | uniq -c
    pyparq cat 'logs/*.parquet' -o - | pyparq count -
    """
    _check_one_form(as_json, as_csv, output)
    with opened_all(sources) as parquet:
        scan = parquet.scan(columns or None)
        if output is not None:
            _save(output, scan.schema, _limited(scan, None))
        else:
            _stream(scan.schema, _limited(scan, None), not as_csv)


def _check_one_form(as_json: bool, as_csv: bool, output: str | None) -> None:
    if as_json + as_csv + (output is not None) > 1:
        raise click.UsageError("use only one of --json, --csv and --output", ctx=click.get_current_context())


_WHERE_HELP = """
\b
--where understands:
  = != <> < <= > >=, AND, OR, NOT, IN (…), BETWEEN … AND …
  IS [NOT] NULL, IS [NOT] NAN, IS [NOT] TRUE, IS [NOT] FALSE
  [NOT] LIKE 'a%b_', ILIKE, column ~ 'regular expression', isnan(column)
  starts_with, ends_with, contains (column, 'text'), column < column
  + - * /, lower, upper, length, year, month, day, hour, … (column)
  numbers, 'text', TRUE, FALSE, DATE '2013-01-31',
  TIMESTAMP '2013-01-31 12:00:00', TIME '12:00:00', X'00ff' (bytes)
  INTERVAL '1 day 02:30:00' (beside a duration)
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
    "--limit",
    "-l",
    type=click.IntRange(min=0),
    help=f"Maximum number of rows; 0 means all. [default: {LIMIT} in a table]",
)
@click.option("--explain", is_flag=True, help="Also show what each index ruled out and what was read.")
@AS_JSON
@AS_CSV
@OUTPUT
def query_command(
    file: str,
    where: str | None,
    columns: list[str],
    row_groups: tuple[int, ...],
    limit: int | None,
    explain: bool,
    as_json: bool,
    as_csv: bool,
    output: str | None,
) -> None:
    """Rows of SOURCE (a file, a folder, or a glob in quotes) where a condition is true. Indexes are used wherever they
    help. A condition on partition columns (year=2024/) rules out whole files.

    \b
    pyparq query flights.parquet --where "tailnum = 'N14228' AND dep_delay > 60"
    pyparq query flights.parquet -w "time_hour < TIMESTAMP '2013-01-02'" -c flight,dest -o out.parquet
    """
    _check_one_form(as_json, as_csv, output)
    with opened_any(file) as parquet:
        groups = chosen_groups(parquet, row_groups)
        if limit is None and not (as_json or as_csv or output):
            limit = LIMIT
        scan = make_scan(parquet, where, columns, groups, limit)
        if output is not None:
            _save(output, scan.schema, _limited(scan, limit))
        elif as_json or as_csv:
            _stream(scan.schema, _limited(scan, limit), as_json)
        else:
            batches = list(_limited(scan, limit))
            _print(scan.schema, batches, _total(parquet, where, groups, batches, limit), "--limit 0 shows all")
        if explain:
            from pyparq.cli.explain import print_explanation

            aside = as_json or as_csv
            print_explanation(scan.explain(execute=False), sys.stderr if aside else sys.stdout, apart=True)


def _limited(scan: Any, limit: int | None) -> Iterator[Any]:
    """The batches of a scan, cut off after ``limit`` rows (``None`` or 0: all)."""
    left, rows = limit or 1 << 62, 0
    with Busy("reading", rows=True) as busy:
        for batch in scan.batches():
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows
            if left <= 0:
                return
            rows += batch.num_rows
            busy.show(max(scan.share_done, rows / limit if limit else 0.0), rows)


def _total(parquet: Any, where: str | None, groups: Sequence[int] | None, batches: list[Any], limit: int | None) -> int:
    """How many rows match in all. Counted only if the limit was reached: the filter columns alone are read for it."""
    shown = sum(int(batch.num_rows) for batch in batches)
    if not limit or shown < limit:
        return shown
    with Busy("counting the rows beyond the limit"):
        return int(make_scan(parquet, where, [], groups).count())


def _stream(schema: Any, batches: Iterator[Any], as_json: bool) -> None:
    save(PIPE, schema, batches, "jsonl" if as_json else "csv")


def _show(table: Any, total: int, as_json: bool, as_csv: bool) -> None:
    if as_json or as_csv:
        _stream(table.schema, iter(table.batches), as_json)
    else:
        _print(table.schema, table.batches, total, "-n N shows more")


def _save(output: str, schema: Any, batches: Iterable[Any]) -> None:
    rows = save(output, schema, batches)
    if output != PIPE:
        click.echo(f"wrote {count(rows, 'row')} to {visible(output)}", err=True)


def _print(schema: Any, batches: Sequence[Any], total: int, hint: str) -> None:
    from pyparq.cli.table import emit
    from pyparq.cli.wide import show_rows

    shown = sum(batch.num_rows for batch in batches)
    show_rows(schema, batches)
    if total > shown:
        emit(f"{count(shown, 'row')} shown, {total - shown:,} more ({hint})")
    else:
        emit(count(shown, "row"))
