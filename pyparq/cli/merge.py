"""``pyparq merge``: files joined by copying their row groups."""

from __future__ import annotations

from dataclasses import asdict

import click

from pyparq.cli.common import JSON, print_json
from pyparq.cli.completion import files
from pyparq.cli.pipes import PIPE, complete_output, source_of
from pyparq.cli.progress import Busy
from pyparq.cli.storage import STORAGE, storage_for
from pyparq.cli.table import emit
from pyparq.cli.text import count


@click.command("merge")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, shell_complete=files)
@STORAGE
@click.option("--output", "-o", required=True, metavar="PATH", help="The new file, or - for stdout.")
@click.option("--force", is_flag=True, help="Write even into the folder of a Delta Lake, Iceberg or Hudi table.")
@JSON
def merge_command(sources: tuple[str, ...], output: str, force: bool, as_json: bool) -> None:
    """Join files of one schema into one. A SOURCE is a file, a folder or a glob.

    Row groups, Bloom filters and page indexes are copied as they are. Row groups stay as small as they are: the command
    "rewrite" makes larger ones.
    """
    from pyparq.maintenance.merge import merge

    given = [source_of(source) for source in sources]
    with Busy("merging") as busy, complete_output(output) as target:
        report = merge(
            given[0] if len(given) == 1 else given, target, force=force, progress=lambda *_: busy.step(),
            storage_options=storage_for(*sources, output),
        )  # fmt: skip
    if output == PIPE:
        return
    if as_json:
        print_json(asdict(report))
        return
    rows, groups = count(report.num_rows, "row"), count(report.num_row_groups, "row group")
    emit(f"{report.target}: {count(report.num_files, 'file')}, {groups}, {rows}, {report.num_bytes:,} bytes")
    for key in report.dropped_keys:
        emit(f"key {key} left out: the files have different values")
    for note in report.notes:
        emit(note)
