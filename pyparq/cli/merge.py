"""``pyparq merge``: files joined by copying their row groups."""

from __future__ import annotations

import click

from pyparq.cli.progress import Busy
from pyparq.cli.table import emit
from pyparq.cli.text import count


@click.command("merge")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--output", "-o", required=True, metavar="PATH", help="The new file.")
@click.option("--force", is_flag=True, help="Write even into the folder of a Delta Lake, Iceberg or Hudi table.")
def merge_command(sources: tuple[str, ...], output: str, force: bool) -> None:
    """Join files of one schema into one. A SOURCE is a file, a folder or a glob.

    Row groups, Bloom filters and page indexes are copied as they are. Row groups stay as small as they are: the command
    "rewrite" makes larger ones.
    """
    from pyparq.maintenance.merge import merge

    with Busy("merging") as busy:
        report = merge(
            sources[0] if len(sources) == 1 else list(sources), output, force=force, progress=lambda *_: busy.step()
        )
    rows, groups = count(report.num_rows, "row"), count(report.num_row_groups, "row group")
    emit(f"{report.target}: {count(report.num_files, 'file')}, {groups}, {rows}, {report.num_bytes:,} bytes")
    for key in report.dropped_keys:
        emit(f"key {key} left out: the files have different values")
    for note in report.notes:
        emit(note)
