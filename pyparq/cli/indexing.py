"""``pyparq add-index`` and ``pyparq edit-metadata``: what can be changed in a file while its pages stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli.common import JSON, SOURCES, decryption, print_json
from pyparq.cli.on_spark import SPARK, run
from pyparq.cli.progress import Busy
from pyparq.cli.storage import storage_for
from pyparq.cli.table import Grid, emit, headings, show, title
from pyparq.cli.text import count
from pyparq.errors import OptionError

OUTPUT = click.option(
    "--output", "-o", metavar="PATH", help="Write here (for several files: a folder) instead of in place."
)
FORCE = click.option("--force", is_flag=True, help="Replace files of a Delta Lake, Iceberg or Hudi table too.")


@click.command("add-index")
@SOURCES
@OUTPUT
@click.option(
    "--bloom",
    "blooms",
    multiple=True,
    metavar="COLUMN[=RATE]",
    help="Add Bloom filters for this column, with this rate of false positives (0.01). May be repeated.",
)
@click.option("--all-blooms", is_flag=True, help="Add Bloom filters for every column that can use one.")
@click.option(
    "--layout",
    type=click.Choice(["footer", "row_group"]),
    default="footer",
    help="Put the filters after all row groups, or each row group's right after it.",
)
@click.option("--no-page-index", is_flag=True, help="Add no ColumnIndexes and OffsetIndexes.")
@click.option("--replace", is_flag=True, help="Build indexes anew that are there already.")
@click.option(
    "--remove",
    multiple=True,
    type=click.Choice(["bloom_filters", "column_indexes", "page_indexes"]),
    help="Remove indexes of this kind. May be repeated.",
)
@FORCE
@click.option("--skip-errors", is_flag=True, help="Go on with the other files where one fails.")
@SPARK
@JSON
def add_index_command(
    sources: tuple[str, ...], output: str | None, blooms: tuple[str, ...], all_blooms: bool, layout: Any,
    no_page_index: bool, replace: bool, remove: tuple[str, ...], force: bool, skip_errors: bool, as_json: bool,
    on_spark: bool, master: str | None,
) -> int:  # fmt: skip
    """Add Bloom filters and page indexes to files, in place. A SOURCE is a file, a folder or a glob.

    No page is written anew: only the indexes, and the footer that points to them. Indexes that are there are kept.
    """
    from pyparq.maintenance.add_indexes import add_indexes

    source = sources[0] if len(sources) == 1 else list(sources)
    options: dict[str, Any] = {
        "bloom_filters": True if all_blooms else _rates(blooms), "bloom_filter_layout": layout,
        "page_index": not no_page_index and "page_indexes" not in remove, "replace": replace, "remove": list(remove),
        "force": force,
    }  # fmt: skip
    if on_spark or master:
        return run("add_indexes", source, output, master, as_json, **options)
    with Busy("adding indexes") as busy:
        report = add_indexes(
            source, output, **options, on_error="skip" if skip_errors else "raise",
            progress=lambda done, total: busy.step(), decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
    else:
        for file in report.files:
            _print(file)
    return 0 if report.ok else 1


def _rates(given: Sequence[str]) -> dict[Any, Any]:
    """``id=0.001`` as a column and its rate."""
    from pyparq.cli.names import one_name

    found: dict[Any, Any] = {}
    for text in given:
        name, equals, rate = text.rpartition("=")
        try:
            found[one_name(name if equals else text)] = float(rate) if equals else True
        except ValueError:
            raise OptionError(f"--bloom {text!r}: the rate must be a number, such as id=0.01") from None
    return found


def _print(file: Any) -> None:
    if file.error is not None:
        title(f"{file.source}: failed: {file.error}")
        return
    if not file.written:
        title(f"{file.source}: nothing to do")
    else:
        where = "" if file.target == file.source else f", written to {file.target}"
        title(
            f"{file.source}{where}: {file.bytes_copied:,} bytes copied, {file.bytes_written:,} new, "
            f"{file.bytes_decoded:,} decoded"
        )
    grid = Grid(headings("=column|Bloom filter|ColumnIndex|OffsetIndex|>bytes added"))
    for column in file.columns:
        kinds = (column.bloom_filter, column.column_index, column.offset_index)
        grid.add(column.name, *map(_said, kinds), f"{column.bytes_added:,}")
    show(grid)
    for column in file.columns:
        for reason in column.reasons:
            emit(f"{column.name}: {reason}")
    for note in file.notes:
        emit(note)


def _said(counts: dict[str, int]) -> str:
    if len(counts) <= 1:
        return next(iter(counts), "-")
    return ", ".join(f"{what} in {n}" for what, n in counts.items())


@click.command("edit-metadata")
@SOURCES
@OUTPUT
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Set a key. May be repeated.")
@click.option("--remove", multiple=True, metavar="KEY", help="Remove a key. May be repeated.")
@FORCE
@JSON
def edit_metadata_command(
    sources: tuple[str, ...], output: str | None, pairs: tuple[str, ...], remove: tuple[str, ...], force: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Change the key-value metadata of files, in place. Only the footer is written anew."""
    from pyparq.maintenance.edit_metadata import edit_metadata

    update = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {text!r} must be KEY=VALUE")
        update[key] = value
    with Busy("writing footers") as busy:
        written = edit_metadata(
            sources[0] if len(sources) == 1 else list(sources), output, update=update, remove=remove, force=force,
            progress=lambda done, total: busy.step(), decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    if as_json:
        print_json({"files_written": written})
    else:
        emit(f"{count(written, 'file')} written" if written else "nothing to do")
