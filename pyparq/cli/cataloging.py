"""``pyparq index-dataset``: the catalog of keys beside a folder of files."""

from __future__ import annotations

import click

from pyparq.cli.common import JSON, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.storage import storage_for
from pyparq.cli.table import emit, say, title
from pyparq.cli.text import count, visible


@click.command("index-dataset")
@click.argument("folder")
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
@click.option("--rebuild", is_flag=True, help="Make the catalog anew, whatever is there.")
@JSON
def index_dataset_command(folder: str, columns: tuple[str, ...], rebuild: bool, as_json: bool) -> None:
    """Make a catalog of the keys in the files of FOLDER, or bring it up to date.

    A COLUMN is a key column, such as id. Without any, those of the catalog that is there are kept. Lookups, and all
    queries with conditions on key columns, then open only files that have the key. Their results stay the same.
    """
    from pyparq.cli.names import one_name
    from pyparq.datasets.catalog.index_dataset import index_dataset

    with Busy("reading keys", share=True) as busy:
        report = index_dataset(
            folder, [one_name(column) for column in columns] or None, rebuild=rebuild,
            progress=lambda done, total: busy.show(done / total if total else 0.0, 0),
            storage_options=storage_for(folder),
        )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
        return
    what = "catalog written" if report.changed else "nothing to do"
    title(
        f"{what}: {count(report.files, 'file')}, {report.files_read:,} read, {report.files_removed:,} removed; "
        f"{report.entries:,} entries for {', '.join(report.columns)}; {report.bytes:,} bytes"
    )
    for name, reason in report.left_out:
        emit()
        say(visible(f"left out: {name}: {reason}"))
