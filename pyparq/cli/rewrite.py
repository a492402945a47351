"""``pyparq rewrite``: the rows of files written again, with other options."""

from __future__ import annotations

from typing import Any

import click

from pyparq.cli.common import JSON, SOURCES, decryption, print_json, report_document
from pyparq.cli.pipes import PIPE, complete_output, source_of
from pyparq.cli.progress import Busy
from pyparq.cli.sizes import size
from pyparq.cli.sorting import sort_order
from pyparq.cli.storage import storage_for
from pyparq.cli.table import emit
from pyparq.cli.text import count


@click.command("rewrite")
@SOURCES
@click.option("--output", "-o", required=True, metavar="PATH", help="A file (*.parquet), a folder, or - for stdout.")
@click.option("--sort-by", multiple=True, metavar="COLUMN[:desc]", help="Sort all rows by this. May be repeated.")
@click.option("--partition-by", multiple=True, metavar="COLUMN", help="One folder per value. May be repeated.")
@click.option(
    "--mode",
    type=click.Choice(["error", "append", "overwrite", "overwrite_partitions"]),
    default="error",
    help="What to do with a folder that has files.",
)
@click.option("--max-file-size", metavar="SIZE", help="Begin a new file there: bytes, or such as 256M.")
@click.option("--max-file-rows", type=int, metavar="N", help="Begin a new file there.")
@click.option("--row-group-rows", type=int, metavar="N", help="Rows per row group.")
@click.option("--page-rows", type=click.IntRange(min=1), metavar="N", help="Rows per data page, at most.")
@click.option("--compression", metavar="CODEC", help="none, snappy, gzip, zstd, brotli or lz4_raw.")
@click.option("--bloom", "blooms", multiple=True, metavar="COLUMN", help="Write Bloom filters. May be repeated.")
@click.option("--shred", is_flag=True, help="Store parts of Variants in columns of their own.")
@click.option("--memory", default="1G", metavar="SIZE", help="Memory to use, approximately (1G).")
@click.option("--temp", metavar="PATH", help="Folder for temporary files of a sort.")
@click.option("--force", is_flag=True, help="Write even into the folder of a Delta Lake, Iceberg or Hudi table.")
@JSON
def rewrite_command(
    sources: tuple[str, ...], output: str, sort_by: tuple[str, ...], partition_by: tuple[str, ...], mode: str,
    max_file_size: str | None, max_file_rows: int | None, row_group_rows: int | None, page_rows: int | None,
    compression: Any,
    blooms: tuple[str, ...], shred: bool, memory: str, temp: str | None, force: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Write the rows of files again. A SOURCE is a file, a folder or a glob.

    The output may be the source: a file is replaced when the new one is complete, a folder with --mode overwrite.
    """
    from pyparq.cli.names import one_name
    from pyparq.maintenance.rewrite import rewrite

    options: dict[str, Any] = {}
    if compression is not None:
        options["compression"] = compression
    if row_group_rows is not None:
        options["row_group_size"] = row_group_rows
    if page_rows is not None:
        options["max_rows_per_page"] = page_rows
    if shred:
        options["shredding"] = "auto"
    given = [source_of(source) for source in sources]
    with Busy("rewriting") as busy, complete_output(output) as target:
        report = rewrite(
            given[0] if len(given) == 1 else given, target, sort_by=sort_order(sort_by),
            partition_cols=list(partition_by) or None, mode=mode, max_memory=size("--memory", memory),
            max_bytes_per_file=None if max_file_size is None else size("--max-file-size", max_file_size),
            max_rows_per_file=max_file_rows, bloom_filters=[one_name(name) for name in blooms], temp_folder=temp,
            force=force, decryption=decryption(), progress=lambda _: busy.step(),
            storage_options=storage_for(*sources, output), **options,
        )  # fmt: skip
    if output == PIPE:
        return
    if as_json:
        print_json(report_document(report))
        return
    replaced = f", {count(len(report.replaced), 'file')} replaced" if report.replaced else ""
    rows, files = count(report.num_rows, "row"), count(len(report.files), "file")
    emit(f"{report.path}: {files}, {rows}, {report.num_bytes:,} bytes{replaced}")
