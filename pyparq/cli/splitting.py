"""``pyparq split``: several files out of one source."""

from __future__ import annotations

from typing import Any

import click

from pyparq.cli import completion
from pyparq.cli.common import JSON, SOURCES, decryption, opened_all, print_json, report_document, rows_in
from pyparq.cli.pipes import source_of
from pyparq.cli.progress import Busy
from pyparq.cli.sizes import size
from pyparq.cli.storage import storage_for
from pyparq.cli.table import emit
from pyparq.cli.text import count


@click.command("split")
@SOURCES
@click.option("--output", "-o", required=True, metavar="FOLDER", shell_complete=completion.folders,
              help="Where the files go: a folder that is new or empty.")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="Rows of each file, at most.")
@click.option("--bytes", "most_bytes", metavar="SIZE", help="Bytes of each file, about: a number, or such as 256M.")
@click.option("--files", type=click.IntRange(min=1), metavar="N", help="Number of files, with equally many rows.")
@click.option("--by", multiple=True, metavar="COLUMN", shell_complete=completion.columns,
              help="A folder for each value of this column (column=value). May be repeated.")  # fmt: skip
@JSON
def split_command(
    sources: tuple[str, ...], output: str, rows: int | None, most_bytes: str | None, files: int | None,
    by: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Cut files into several, in the order of their rows. --by may be joined with one of the others.

    All files appear at once when they are complete. To go on from there: 'pyparq merge' joins files again, and
    'pyparq rewrite' has more options, such as sorting.

    \b
    pyparq split flights.parquet -o parts --files 8
    pyparq split flights.parquet -o by-month --by year --by month --bytes 256M
    """
    from pyparq.maintenance.rewrite import rewrite

    asked = [option for option in (rows, most_bytes, files) if option is not None]
    if len(asked) > 1 or not (asked or by):
        raise click.UsageError("give one of --rows, --bytes and --files, or --by", ctx=click.get_current_context())
    given: list[Any] = [source_of(source) for source in sources]
    if files is not None:
        if given != list(sources):
            raise click.UsageError("--files needs files that can be read twice, not -", ctx=click.get_current_context())
        with opened_all(sources) as parquet:
            rows = max(-(-rows_in(parquet) // files), 1)
    with Busy("splitting") as busy:
        report = rewrite(
            given[0] if len(given) == 1 else given, output.rstrip("/") + "/", max_rows_per_file=rows,
            max_bytes_per_file=None if most_bytes is None else size("--bytes", most_bytes),
            partition_cols=list(by) or None, decryption=decryption(),
            storage_options=storage_for(*sources, output), progress=lambda _: busy.step(),
        )  # fmt: skip
    if as_json:
        print_json(report_document(report))
    else:
        emit(f"{report.path}: {count(len(report.files), 'file')}, {count(report.num_rows, 'row')}")
