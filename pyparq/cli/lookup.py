"""``pyparq lookup``: the rows with certain keys, out of many files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli.common import COLUMNS, IGNORE_CASE, SOURCE, dataset_of
from pyparq.cli.export import csv_lines, json_lines
from pyparq.cli.progress import Busy
from pyparq.cli.rows import AS_CSV, AS_JSON
from pyparq.cli.text import count
from pyparq.filters.conditions import probe_value
from pyparq.format.shown_types import shown_field

FILENAME = "filename"


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
@AS_JSON
@AS_CSV
def lookup_command(
    file: str,
    column: str,
    wanted: tuple[str, ...],
    listed: Any,
    columns: list[str],
    path: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """The rows of SOURCE (a file, a folder, or a glob in quotes) where COLUMN is one of the keys. The statistics and
    Bloom filters of all files are asked at once. The exit code is 0 also where no row is found.

    \b
    pyparq lookup flights/ tailnum N14228 N24211
    pyparq lookup flights/ tailnum --from tails.txt --path --json
    """
    if as_json and as_csv:
        raise click.UsageError("use only one of --json and --csv", ctx=click.get_current_context())
    texts = [*wanted, *(line.rstrip("\r\n") for line in listed or ())]
    if not texts and listed is None:
        raise click.UsageError("give at least one key, or --from with a file of keys", ctx=click.get_current_context())
    with dataset_of(file) as dataset:
        tree = dataset.tree
        node = tree.find(column)
        shown = shown_field(node, tree.root.children, dataset.schema.fields)
        values = [probe_value(text, node, shown) for text in texts]
        with Busy("looking"):
            found = dataset.lookup(column, values, columns=columns or None, path=FILENAME if path else False)
    _print(found, as_json, as_csv)


def _print(found: Any, as_json: bool, as_csv: bool) -> None:
    batches: Sequence[Any] = found.batches
    if as_json or as_csv:
        for line in (json_lines if as_json else csv_lines)(found.schema, iter(batches)):
            sys.stdout.write(line.decode("utf-8", "surrogatepass"))
        return
    from pyparq.cli.table import emit
    from pyparq.cli.wide import show_rows

    show_rows(found.schema, list(batches))
    emit(count(found.num_rows, "row"))
