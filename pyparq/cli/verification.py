"""``pyparq verify``: what files say of themselves, checked against their data."""

from __future__ import annotations

from typing import Any

import click

from pyparq.cli.common import COLUMNS, JSON, SOURCE, decryption, plain_errors_of, print_json
from pyparq.cli.on_spark import SPARK, run
from pyparq.cli.pipes import source_of
from pyparq.cli.progress import Busy
from pyparq.cli.storage import storage_for
from pyparq.cli.table import Grid, emit, headings, say, show, title
from pyparq.cli.text import visible


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
        return run("verify", file, None, master, as_json, columns=columns or None)
    with plain_errors_of(file), Busy("verifying", share=True) as busy:
        report = verify(
            source_of(file), columns or None, decryption=decryption(), storage_options=storage_for(file),
            progress=lambda done, total: busy.show(done / total if total else 0.0, 0),
        )  # fmt: skip
    if not report.files:
        raise click.ClickException(f"the folder has no data files: {file}")
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    return 0 if report.ok else 1


def _print(report: Any) -> None:
    title(report.summary())
    names, rows = report.column_table()
    show(_grid([f"={names[0]}", *(f"?{name}" for name in names[1:-1]), names[-1]], rows))
    if report.not_checked:
        emit()
        say("not checked:")
        for reason in report.not_checked:
            say(f"  {visible(reason)}")
    if not report.ok:
        emit()
        names, rows = report.finding_table()
        show(_grid([*names[:-1], f"={names[-1]}"], rows))


def _grid(names: list[str], rows: list[list[str]]) -> Grid:
    grid = Grid(headings("|".join(names)))
    for row in rows:
        grid.add(*row)
    return grid
