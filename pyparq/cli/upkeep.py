"""Files changed, joined and written anew: ``pyparq add-index``, ``edit-metadata``, ``index-dataset``, ``merge``,
``split`` and ``rewrite``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from pyparq.cli.options import (
    ARGUMENTS,
    FORCE,
    JSON,
    SOURCES,
    SPARK,
    STORAGE,
    WRITING,
    Size,
    complete_columns,
    complete_folders,
    decryption,
    memory,
    misused,
    one_name,
    storage_for,
)
from pyparq.cli.output import Busy, Grid, count, emit, print_json, say, title
from pyparq.cli.sources import PIPE, complete_output, opened_any, rows_in, sources_of
from pyparq.errors import OptionError

OUTPUT = click.option(
    "--output", "-o", metavar="PATH", help="Write here (for several files: a folder) instead of in place."
)


@click.command("add-index")
@SOURCES
@OUTPUT
@click.option(
    "--bloom", "blooms", multiple=True, metavar="COLUMN[=RATE]",
    help="Add Bloom filters for this column, with this rate of false positives (0.01). May be repeated.",
)  # fmt: skip
@click.option("--all-blooms", is_flag=True, help="Add Bloom filters for every column that can use one.")
@click.option(
    "--layout", type=click.Choice(["footer", "row_group"]), default="footer",
    help="Put the filters after all row groups, or each row group's right after it.",
)  # fmt: skip
@click.option("--no-page-index", is_flag=True, help="Add no ColumnIndexes and OffsetIndexes.")
@click.option("--replace", is_flag=True, help="Build indexes anew that are there already.")
@click.option(
    "--remove", multiple=True, type=click.Choice(["bloom_filters", "column_indexes", "page_indexes"]),
    help="Remove indexes of this kind. May be repeated.",
)  # fmt: skip
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

    options: dict[str, Any] = {
        "bloom_filters": True if all_blooms else _rates(blooms), "bloom_filter_layout": layout,
        "page_index": not no_page_index and "page_indexes" not in remove, "replace": replace, "remove": list(remove),
        "force": force,
    }  # fmt: skip
    if on_spark or master:
        return run_on_spark("add_indexes", _given(sources), output, master, as_json, **options)
    with Busy("adding indexes") as busy:
        report = add_indexes(
            _given(sources), output, **options, on_error="skip" if skip_errors else "raise",
            progress=lambda done, total: busy.step(), decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
    else:
        for file in report.files:
            _show_indexed(file)
    return 0 if report.ok else 1


def _given(sources: Sequence[str]) -> Any:
    return sources[0] if len(sources) == 1 else list(sources)


def _rates(given: Sequence[str]) -> dict[Any, Any]:
    """``id=0.001`` as a column and its rate."""
    found: dict[Any, Any] = {}
    for text in given:
        name, equals, rate = text.rpartition("=")
        try:
            found[one_name(name if equals else text)] = float(rate) if equals else True
        except ValueError:
            raise OptionError(f"--bloom {text!r}: the rate must be a number, such as id=0.01") from None
    return found


def _show_indexed(file: Any) -> None:
    if file.error is not None or not file.written:
        title(f"{file.source}: {'nothing to do' if file.error is None else f'failed: {file.error}'}")
        if file.error is not None:
            return
    else:
        where = "" if file.target == file.source else f", written to {file.target}"
        title(
            f"{file.source}{where}: {file.bytes_copied:,} bytes copied, {file.bytes_written:,} new, "
            f"{file.bytes_decoded:,} decoded"
        )
    grid = Grid("=column|Bloom filter|ColumnIndex|OffsetIndex|bytes added")
    for column in file.columns:
        kinds = (column.bloom_filter, column.column_index, column.offset_index)
        grid.add(column.name, *map(_counted, kinds), column.bytes_added)
    grid.show()
    reasons = [f"{column.name}: {reason}" for column in file.columns for reason in column.reasons]
    for line in (*reasons, *file.notes):
        emit(line)


def _counted(counts: dict[str, int]) -> str:
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
            _given(sources), output, update=update, remove=remove, force=force,
            progress=lambda done, total: busy.step(), decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    if as_json:
        print_json({"files_written": written})
    else:
        emit(f"{count(written, 'file')} written" if written else "nothing to do")


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
    from pyparq.datasets.catalog.index_dataset import index_dataset

    with Busy("reading keys", share=True) as busy:
        report = index_dataset(
            folder, [one_name(column) for column in columns] or None, rebuild=rebuild, progress=busy.show_share,
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
        say(f"left out: {name}: {reason}")


@click.command("merge")
@ARGUMENTS
@STORAGE
@click.option("--output", "-o", required=True, metavar="PATH", help="The new file, or - for stdout.")
@FORCE
@JSON
def merge_command(sources: tuple[str, ...], output: str, force: bool, as_json: bool) -> None:
    """Join files of one schema into one. A SOURCE is a file, a folder or a glob.

    Row groups, Bloom filters and page indexes are copied as they are. Row groups stay as small as they are: the command
    "rewrite" makes larger ones.
    """
    from pyparq.maintenance.merge import merge

    with Busy("merging") as busy, complete_output(output) as target:
        report = merge(
            sources_of(sources), target, force=force, progress=lambda *_: busy.step(),
            storage_options=storage_for(*sources, output),
        )  # fmt: skip
    if output == PIPE:
        return
    if as_json:
        print_json(asdict(report))
        return
    rows, groups = count(report.num_rows, "row"), count(report.num_row_groups, "row group")
    emit(f"{report.target}: {count(report.num_files, 'file')}, {groups}, {rows}, {report.num_bytes:,} bytes")
    for line in (
        *(f"key {key} left out: the files have different values" for key in report.dropped_keys),
        *report.notes,
        *filter(None, [report.advice]),
    ):
        emit(line)


# ---- rows written anew


def _rewrite(
    doing: str, sources: Sequence[str], target: Any, output: str, as_json: bool, **options: Any
) -> None:  # fmt: skip
    from pyparq.maintenance.rewrite import rewrite

    with Busy(doing) as busy:
        report = rewrite(
            sources_of(sources), target, decryption=decryption(), progress=lambda _: busy.step(),
            storage_options=storage_for(*sources, output), **options,
        )  # fmt: skip
    if output == PIPE:
        return
    if as_json:
        files = [{"path": file.path, "num_rows": file.num_rows, "bytes": file.num_bytes} for file in report.files]
        print_json(
            {"path": report.path, "num_rows": report.num_rows, "files": files, "replaced": list(report.replaced)}
        )
        return
    replaced = f", {count(len(report.replaced), 'file')} replaced" if report.replaced else ""
    rows, files_written = count(report.num_rows, "row"), count(len(report.files), "file")
    emit(f"{report.path}: {files_written}, {rows}, {report.num_bytes:,} bytes{replaced}")


@click.command("split")
@SOURCES
@click.option(
    "--output", "-o", required=True, metavar="FOLDER", shell_complete=complete_folders,
    help="Where the files go: a folder that is new or empty.",
)  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="Rows of each file, at most.")
@click.option(
    "--bytes", "most_bytes", metavar="SIZE", type=Size(), help="Bytes of each file, about: a number, or such as 256M."
)
@click.option("--files", type=click.IntRange(min=1), metavar="N", help="Number of files, with equally many rows.")
@click.option(
    "--by", multiple=True, metavar="COLUMN", shell_complete=complete_columns,
    help="A folder for each value of this column (column=value). May be repeated.",
)  # fmt: skip
@JSON
def split_command(
    sources: tuple[str, ...], output: str, rows: int | None, most_bytes: int | None, files: int | None,
    by: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Cut files into several, in the order of their rows. --by may be joined with one of the others.

    All files appear at once when they are complete. To go on from there: 'pyparq merge' joins files again, and
    'pyparq rewrite' has more options, such as sorting.

    \b
    pyparq split flights.parquet -o parts --files 8
    pyparq split flights.parquet -o by-month --by year --by month --bytes 256M
    """
    asked = [option for option in (rows, most_bytes, files) if option is not None]
    if len(asked) > 1 or not (asked or by):
        misused("give one of --rows, --bytes and --files, or --by")
    if files is not None:
        if PIPE in sources:
            misused("--files needs files that can be read twice, not -")
        with opened_any(*sources) as parquet:
            rows = max(-(-rows_in(parquet) // files), 1)
    _rewrite(
        "splitting", sources, output.rstrip("/") + "/", output, as_json, max_rows_per_file=rows,
        max_bytes_per_file=most_bytes, partition_cols=list(by) or None,
    )  # fmt: skip


@click.command("rewrite")
@SOURCES
@click.option("--output", "-o", required=True, metavar="PATH", help="A file (*.parquet), a folder, or - for stdout.")
@WRITING
@click.option("--partition-by", multiple=True, metavar="COLUMN", help="One folder per value. May be repeated.")
@click.option(
    "--mode", type=click.Choice(["error", "append", "overwrite", "overwrite_partitions"]), default="error",
    help="What to do with a folder that has files.",
)  # fmt: skip
@click.option("--max-file-size", metavar="SIZE", type=Size(), help="Begin a new file there: bytes, or such as 256M.")
@click.option("--max-file-rows", type=int, metavar="N", help="Begin a new file there.")
@click.option(
    "--page-rows", "max_rows_per_page", type=click.IntRange(min=1), metavar="N", help="Rows per data page, at most."
)
@click.option("--shred", is_flag=True, help="Store parts of Variants in columns of their own.")
@memory("Memory to use")
@click.option("--temp", metavar="PATH", help="Folder for temporary files of a sort.")
@FORCE
@JSON
def rewrite_command(
    sources: tuple[str, ...], output: str, partition_by: tuple[str, ...], mode: str, max_file_size: int | None,
    max_file_rows: int | None, shred: bool, memory: int, temp: str | None, force: bool, as_json: bool, **writing: Any,
) -> None:  # fmt: skip
    """Write the rows of files again. A SOURCE is a file, a folder or a glob.

    The output may be the source: a file is replaced when the new one is complete, a folder with --mode overwrite.
    """
    given = {name: value for name, value in writing.items() if value} | ({"shredding": "auto"} if shred else {})
    with complete_output(output) as target:
        _rewrite(
            "rewriting", sources, target, output, as_json, partition_cols=list(partition_by) or None, mode=mode,
            max_memory=memory, max_bytes_per_file=max_file_size, max_rows_per_file=max_file_rows, temp_folder=temp,
            force=force, **given,
        )  # fmt: skip


# ---- on Spark


def run_on_spark(work: str, sources: Any, target: Any, master: str | None, as_json: bool, **options: Any) -> int:
    """Run ``pyparq.spark``'s function ``work`` and show its report; the exit code, 1 where a file failed."""
    if decryption() is not None:
        raise OptionError('keys are not sent to Spark. Use pyparq.spark with decryption="module:function" instead')
    import pyparq.spark
    from pyparq.spark.session import local_session

    spark = local_session("pyparq", master)
    spark.sparkContext.setLogLevel("ERROR")
    with Busy("working on Spark") as busy:
        arguments = {} if target is None else {"target": target}
        frame = getattr(pyparq.spark, work)(spark, sources, **arguments, **options, progress=busy.show_share)
    rows = [row.asDict() for row in frame.collect()]
    spark.stop()
    if as_json:
        print_json({"files": rows})
    else:
        _show_jobs(rows)
    return 0 if all(row["ok"] for row in rows) else 1


def _show_jobs(rows: list[dict[str, Any]]) -> None:
    failed = [row for row in rows if not row["ok"]]
    title(f"{count(len(rows), 'file')}, {len(failed) or 'none'} with errors")
    lines = [{**row, "seconds": f"{row['seconds']:.2f}"} for row in rows]
    Grid("=file:path|rows|?bytes copied:bytes_copied|?bytes new:bytes_written|?>seconds|added", lines).show()
    if failed:
        emit()
    for row in failed:
        say(f"{row['path']}: {row['error']}")
