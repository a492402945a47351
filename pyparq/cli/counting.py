"""``pyparq count``: how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli.common import IGNORE_CASE, JSON, SOURCES, WHERE, opened_all, opened_any, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.questions import make_scan
from pyparq.cli.table import Grid, emit, headings, show
from pyparq.cli.text import visible


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
    counts = _counts(sources, where) if each else [(None, _count(sources, where))]
    total = sum(rows for _, rows in counts)
    if as_json:
        document: dict[str, Any] = {"rows": total}
        print_json(document | ({"sources": [{"source": s, "rows": n} for s, n in counts]} if each else {}))
    elif each:
        grid = Grid(headings(">rows|=source"))
        for source, rows in counts:
            grid.add(f"{rows:,}", visible(source or ""))
        grid.add(f"{total:,}", "(all)")
        show(grid, 0)
    else:
        emit(str(total))


def _counts(sources: Sequence[str], where: str | None) -> list[tuple[str | None, int]]:
    found: list[tuple[str | None, int]] = []
    with Busy("counting", len(sources)) as busy:
        for source in sources:
            with opened_any(source) as parquet:
                found.append((source, int(make_scan(parquet, where, [], None).count())))
            busy.step()
    return found


def _count(sources: Sequence[str], where: str | None) -> int:
    with opened_all(sources) as parquet, Busy("counting"):
        return int(make_scan(parquet, where, [], None).count())
