"""``pyparq explain`` and ``pyparq map``: what each index rules out for a query, and what is read for it."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from pyparq.cli.options import COLUMNS, IGNORE_CASE, JSON, ROW_GROUP, SOURCE, WHERE, misused
from pyparq.cli.output import Busy, Grid, emit, print_explanation, print_json, ranges, title
from pyparq.cli.sources import condition, is_dataset, make_scan, opened_any


@click.command("explain")
@SOURCE
@WHERE
@COLUMNS
@IGNORE_CASE
@ROW_GROUP
@click.option("--no-run", is_flag=True, help="Use the indexes, but read no data.")
@click.option("--plan", "with_plan", is_flag=True, help="Also list what would be read from each column chunk.")
@JSON
def explain_command(
    file: str,
    where: str | None,
    columns: list[str],
    row_groups: tuple[int, ...],
    no_run: bool,
    with_plan: bool,
    as_json: bool,
) -> None:
    """What each index rules out for a query, and the pages, requests and bytes that the query takes.

    The query runs (unless --no-run is given), but its rows are not shown. --where takes SQL as in 'pyparq query'.
    """
    with opened_any(file) as parquet:
        if with_plan and is_dataset(parquet):
            misused("--plan is for a single file")
        scan = make_scan(parquet, where, columns, row_groups)
        with Busy("reading"):
            explanation = scan.explain(execute=not no_run)
        reads = _reads(make_scan(parquet, where, columns, row_groups)) if with_plan else None
        if as_json:
            document = explanation.to_dict()
            print_json(document if reads is None else document | {"plan": reads})
            return
        print_explanation(explanation, sys.stdout)
        if reads is not None:
            _print_reads(reads)


def _reads(scan: Any) -> list[dict[str, Any]]:
    """What the plan of a scan reads at most, one dict per column chunk."""
    return [
        {
            "row_group": group.row_group,
            "column": read.name,
            "step": step,
            "pages": None if read.whole else read.pages.ordinals.tolist(),
            "rows": read.num_rows,
            "bytes": read.num_bytes,
        }
        for group in scan.plan().row_groups
        for step, reads in (("filter", group.filter_reads), ("output", group.output_reads))
        for read in reads
    ]


def _print_reads(reads: list[dict[str, Any]]) -> None:
    grid = Grid(">group|step|=column|=pages|rows|bytes")
    for read in reads:
        pages = "all" if read["pages"] is None else ranges(read["pages"])
        grid.add(str(read["row_group"]), read["step"], read["column"], pages, read["rows"], read["bytes"])
    emit()
    title("plan: filter columns first, then at most these pages of the others (only pages with matching rows)")
    grid.show()


@click.command("map")
@SOURCE
@click.option(
    "--output", "-o", metavar="PATH", default="map.html", show_default=True,
    help="Where to write the page. - for stdout.",
)  # fmt: skip
@WHERE
@COLUMNS
@IGNORE_CASE
@JSON
def map_command(file: str, output: str, where: str | None, columns: list[str], as_json: bool) -> None:
    """A picture of SOURCE as one HTML page: its bytes, row groups and columns, pages, indexes and footer, to scale.

    With --where or --columns the query runs. Each page is then coloured by what ruled it out, or as read. The HTML page
    needs no network. It shows for each column whether sorting would help. --json prints the data behind it instead.
    """
    with opened_any(file) as parquet:
        predicate = condition(parquet, where)
        with Busy("reading"):
            made = parquet.map(None, columns or None, predicate)
    if as_json:
        print_json(made.to_dict())
    elif output == "-":
        sys.stdout.write(made.html)
    else:
        made.save(output)
        click.echo(f"{output}: {os.path.getsize(output):,} bytes", err=True)
