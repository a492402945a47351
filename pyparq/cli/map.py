"""``pyparq map``: a picture of a file or a folder, as one HTML page."""

from __future__ import annotations

import os
import sys

import click

from pyparq.cli.common import COLUMNS, IGNORE_CASE, SOURCE, WHERE, is_dataset, opened_any
from pyparq.cli.progress import Busy

DEFAULT = "map.html"


@click.command("map")
@SOURCE
@click.option(
    "--output", "-o", metavar="PATH", default=DEFAULT, show_default=True, help="Where to write the page. - for stdout."
)
@WHERE
@COLUMNS
@IGNORE_CASE
def map_command(file: str, output: str, where: str | None, columns: list[str]) -> None:
    """A picture of SOURCE as one HTML page: its bytes, row groups and columns, pages, indexes and footer, to scale.

    With --where or --columns the query runs. Each page is then coloured by what ruled it out, or as read. The HTML page
    needs no network. It shows for each column whether sorting would help.
    """
    from pyparq.filters.sql_text import parse_where

    with opened_any(file) as parquet:
        tree = parquet.tree if is_dataset(parquet) else parquet.schema
        predicate = None if where is None else parse_where(where, tree)
        with Busy("reading"):
            made = parquet.map(None, predicate, columns or None)
    if output == "-":
        sys.stdout.write(made.html)
        return
    made.save(output)
    click.echo(f"{output}: {os.path.getsize(output):,} bytes", err=True)
