"""``pyparq advise``: what another way of writing a file would change."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import click

from pyparq.cli.common import FILE, JSON, opened, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, say, show, title
from pyparq.cli.text import count, visible

_OPTIONS = {
    "compression": "--compression", "sort_by": "--sort-by", "bloom_filters": "--bloom",
    "row_group_size": "--row-group-rows", "max_rows_per_page": "--page-rows",
}  # fmt: skip


@click.command("advise")
@FILE
@click.option("--rows", default=200_000, show_default=True, type=click.IntRange(min=1), help="Rows of the sample.")
@JSON
def advise_command(file: str, rows: int, as_json: bool) -> None:
    """What sorting, Bloom filters, other encodings, another codec, smaller pages or row groups would change, measured.

    A sample of FILE is written in memory in each way. "rows to read" is how many rows the indexes leave to an example
    query, on average: column = value, for a value that is there and one that is not. A change pays if it saves 5% of
    the bytes or 30% of the rows to read, and does not cost as much of the other. Try it with your own queries:
    'pyparq explain'.
    """
    from pyparq.maintenance.advise import advise

    with opened(file) as parquet, Busy("measuring") as busy:
        advice = advise(parquet, rows=rows, progress=lambda _: busy.step())
    command = _command(file, advice.options)
    if as_json:
        for trial in advice.trials:
            trial.options = _named(trial.options)
        print_json({"file": file, **asdict(advice), "command": command})
        return
    title(f"{visible(file)}: measured on {count(advice.rows, 'row')}")
    if not advice.trials:
        emit("  nothing to measure: the file has no rows or no columns")
        return
    _print(advice)
    say("nothing pays: the file is well written as it is" if command is None else f"try: {command}")


def _print(advice: Any) -> None:
    grid, base = Grid(headings("=written|>bytes|>change|>rows to read|pays")), advice.trials[0]
    for trial in advice.trials:
        change = 100 * (trial.bytes / base.bytes - 1)
        grid.add(
            trial.change, f"{trial.bytes:,}", "-" if trial is base else f"{change:+.1f}%", f"{trial.rows_left:,.0f}",
            "yes" if trial.pays else "",
        )  # fmt: skip
    show(grid)
    if advice.queried:
        say(f"  example queries: {', '.join(map(visible, advice.queried))}")


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the paths of columns as text."""
    encodings = options["column_encoding"]
    return options | {"column_encoding": encodings and {".".join(path): name for path, name in encodings.items()}}


def _command(file: str, options: dict[str, Any]) -> str | None:
    """The command that writes the file so; ``None`` where nothing pays."""
    if not options:
        return None
    words = ["pyparq", "rewrite", file, "-o", "new.parquet"]
    for name, value in options.items():
        if name not in _OPTIONS:  # column_encoding: what the command does anyway
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [
                _OPTIONS[name],
                one if isinstance(one, str) else ".".join(one) if isinstance(one, tuple) else str(one),
            ]
    return shlex.join(words)
