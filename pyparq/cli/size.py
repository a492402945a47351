"""``pyparq size``: the bytes of each column, and of everything beside the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from pyparq.cli.common import JSON, SOURCES, file_of, is_dataset, opened_all, print_json, ratio
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, show, title
from pyparq.cli.text import count, visible
from pyparq.datasets.dataset import files_of

ORDERS = ("size", "schema")


@dataclass(slots=True)
class _Column:
    """A leaf over all row groups and files."""

    name: str
    values: int = 0
    compressed: int = 0
    uncompressed: int = 0
    bloom: int = 0
    indexes: int = 0


@click.command("size")
@SOURCES
@click.option(
    "--sort", "order", type=click.Choice(ORDERS), default="size", show_default=True,
    help="The largest columns first, or as in the schema.",
)  # fmt: skip
@JSON
def size_command(sources: tuple[str, ...], order: str, as_json: bool) -> None:
    """The bytes of each column, as stored and before compression. Only footers are read.

    "share" is the part of all files that the column takes. "indexes" are ColumnIndexes and OffsetIndexes. What is left
    over at the end is footers, and room between the columns.
    """
    with opened_all(sources) as parquet:
        if is_dataset(parquet):
            with Busy("reading footers"):
                files = [file for _, file in files_of(parquet).open_all(range(len(parquet.files)))]
        else:
            files = [file_of(parquet)]
        columns = _columns(files)
        rows = sum(file.num_rows_of(k) for file in files for k in range(file.num_row_groups))
        total = sum(file.fetcher.source.size for file in files)
    if order == "size":
        columns.sort(key=lambda c: -(c.compressed + c.bloom + c.indexes))
    if as_json:
        print_json(_document(sources, columns, len(files), rows, total))
    else:
        title(f"{visible(', '.join(sources))}: {count(len(files), 'file')}, {count(rows, 'row')}, {total:,} bytes")
        _print(columns, total)


def _columns(files: list[Any]) -> list[_Column]:
    """The leaves of all files, by their paths."""
    found: dict[tuple[str, ...], _Column] = {}
    with Busy("adding up", len(files)) as busy:
        for file in files:
            for leaf in file.tree.leaves:
                column = found.setdefault(tuple(leaf.path), _Column(leaf.dotted))
                for k in range(file.num_row_groups):
                    _add(column, file.chunk(k, leaf))
            busy.step()
    return list(found.values())


def _add(column: _Column, chunk: Any) -> None:
    meta, raw = chunk.meta, chunk.raw
    column.values += meta.num_values
    column.compressed += chunk.size
    column.uncompressed += meta.total_uncompressed_size
    column.bloom += meta.bloom_filter_length or 0
    column.indexes += (raw.column_index_length or 0) + (raw.offset_index_length or 0)


def _print(columns: list[_Column], total: int) -> None:
    grid = Grid(headings("=column|>compressed|>share|>uncompressed|?>ratio|??>bytes/value|?>Bloom filters|?>indexes"))
    for c in columns:
        grid.add(
            c.name, f"{c.compressed:,}", _share(c.compressed, total), f"{c.uncompressed:,}",
            ratio(c.compressed, c.uncompressed), f"{c.compressed / c.values:.3g}" if c.values else "-",
            f"{c.bloom:,}" if c.bloom else "-", f"{c.indexes:,}" if c.indexes else "-",
        )  # fmt: skip
    if columns:
        show(grid.without_empty("Bloom filters", "indexes"))
    emit(f"  left over: {_rest(columns, total):,} bytes")


def _rest(columns: list[_Column], total: int) -> int:
    return total - sum(c.compressed + c.bloom + c.indexes for c in columns)


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.1f}%" if total else "-"


def _document(sources: tuple[str, ...], columns: list[_Column], files: int, rows: int, total: int) -> dict[str, Any]:
    return {
        "sources": list(sources),
        "num_files": files,
        "num_rows": rows,
        "bytes": total,
        "columns": [
            {
                "name": c.name, "num_values": c.values, "compressed": c.compressed, "uncompressed": c.uncompressed,
                "bloom_filters": c.bloom, "indexes": c.indexes,
            }
            for c in columns
        ],
        "left_over": _rest(columns, total),
    }  # fmt: skip
