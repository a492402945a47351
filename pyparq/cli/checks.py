"""``pyparq verify`` and ``pyparq advise``: what files say of themselves against their data, and what another way of
writing would change."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import click

from pyparq.cli.options import COLUMNS, FILE, JSON, SOURCE, SPARK, decryption, storage_for
from pyparq.cli.output import FOUND, Busy, Grid, count, emit, print_json, say, title
from pyparq.cli.sources import opened, plain_errors_of, source_of
from pyparq.cli.upkeep import run_on_spark
from pyparq.io.url import shown


@click.command("verify")
@SOURCE
@COLUMNS
@SPARK
@JSON
def verify_command(file: str, columns: list[Any], as_json: bool, on_spark: bool, master: str | None) -> int:
    """Check what FILE says of itself against its data.

    Checks checksums, sizes, counts, statistics, page indexes, Bloom filters, sort orders and values. FILE may also be a
    folder or a glob. Everything that is wrong is listed with its column, page and row. The exit code is 1 if there is
    anything. Columns whose keys are missing are not checked, and are named.
    """
    from pyparq.maintenance.verify.verify import verify

    if on_spark or master:
        return run_on_spark("verify", file, None, master, as_json, columns=columns or None)
    with plain_errors_of(file), Busy("verifying", share=True) as busy:
        report = verify(
            source_of(file), columns or None, decryption=decryption(), storage_options=storage_for(file),
            progress=busy.show_share,
        )  # fmt: skip
    click.get_current_context().meta[FOUND] = 0 if report.ok else 1
    if not report.files:
        raise click.ClickException(f"the folder has no data files: {file}")
    if as_json:
        print_json(report.to_dict())
    else:
        _show_report(report)
    return 0 if report.ok else 1


def _show_report(report: Any) -> None:
    title(report.summary())
    names, rows = report.column_table()
    _show_table([f"={names[0]}", *(f"?>{name}" for name in names[1:-1]), names[-1]], rows)
    if report.not_checked:
        emit()
        say("not checked:")
        for reason in report.not_checked:
            say(f"  {reason}")
    if not report.ok:
        emit()
        names, rows = report.finding_table()
        _show_table([*names[:-1], f"={names[-1]}"], rows)


def _show_table(names: list[str], rows: list[list[str]]) -> None:
    grid = Grid("|".join(names))
    for row in rows:
        grid.add(*row)
    grid.show()


# ---- advice

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
    command = _command(shown(file), advice.options)
    if as_json:
        for trial in advice.trials:
            trial.options = _named(trial.options)
        print_json({"file": shown(file), **asdict(advice), "command": command})
        return
    title(f"{shown(file)}: measured on {count(advice.rows, 'row')}")
    if not advice.trials:
        emit("  nothing to measure: the file has no rows or no columns")
        return
    _show_advice(advice)
    say("nothing pays: the file is well written as it is" if command is None else f"try: {command}")


def _show_advice(advice: Any) -> None:
    grid, base = Grid("=written|bytes|>change|>rows to read|pays"), advice.trials[0]
    for trial in advice.trials:
        change = "-" if trial is base else f"{100 * (trial.bytes / base.bytes - 1):+.1f}%"
        grid.add(trial.change, trial.bytes, change, f"{trial.rows_left:,.0f}", "yes" if trial.pays else "")
    grid.show()
    if advice.queried:
        say(f"  example queries: {', '.join(advice.queried)}")


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
            words += [_OPTIONS[name], ".".join(one) if isinstance(one, tuple) else str(one)]
    return shlex.join(words)
