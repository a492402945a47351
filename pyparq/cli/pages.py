"""``pyparq pages``: every page of a column chunk, as its header describes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from pyparq.cli import choice, chunks
from pyparq.cli.common import (
    ALL,
    COLUMNS,
    FILE,
    JSON,
    ROW_GROUP,
    chosen_leaves,
    chosen_row_groups,
    file_of,
    number,
    opened,
    ratio,
)
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, on_terminal, say, show, title
from pyparq.cli.text import count
from pyparq.errors import ParquetError
from pyparq.read.page_headers import PageFacts, walk_headers

SHOWN = 20
"""Column chunks on a terminal before the rest needs ``--all`` or a choice."""


@click.command("pages")
@FILE
@COLUMNS
@ROW_GROUP
@ALL
@JSON
def pages_command(file: str, columns: list[str], row_groups: tuple[int, ...], everything: bool, as_json: bool) -> None:
    """Every page of FILE: type, encoding, values, rows, offset, sizes, and whether it has a CRC.

    Only page headers are read. For column chunks that pyparq wrote, a line above the pages says why the encoding was
    chosen. The sizes are those of the page without its header, as stored and uncompressed.
    """
    with opened(file) as parquet:
        leaves, groups = chosen_leaves(parquet, columns), chosen_row_groups(parquet, row_groups)
        file_of(parquet).place_chunks()
        places = [(k, leaf) for k in groups for leaf in leaves]
        if as_json:
            chunks.print_document(places, "reading page headers", partial(_chunk_document, parquet))
            return
        limited = on_terminal() and not everything and not columns
        shown = places[:SHOWN] if limited else places
        _print(parquet, shown)
        if len(shown) < len(places):
            left = count(len(places) - len(shown), "more column chunk")
            emit(f"\n… {left}: choose with --columns, or use --all")


def _print(parquet: Any, places: Sequence[tuple[int, Any]]) -> None:
    problems: list[str] = []
    with Busy("reading page headers", len(places)) as busy:
        for n, (k, leaf) in enumerate(places):
            try:
                chunk = file_of(parquet).chunk(k, leaf)
                pages = list(walk_headers(file_of(parquet), chunk))
            except ParquetError as error:
                problems.append(str(error))
                continue
            finally:
                busy.step()
            if n:
                emit()
            _print_chunk(parquet, chunk, pages)
    chunks.raise_problems(problems)


def _print_chunk(parquet: Any, chunk: Any, pages: Sequence[PageFacts]) -> None:
    from pyparq.format.compression import codec_name

    data = sum(page.ordinal is not None for page in pages)
    other = len(pages) - data
    dictionaries = sum(page.type == "dictionary" for page in pages)
    extra = f" and {count(dictionaries, 'dictionary')}" if dictionaries else ""
    extra += f" and {count(other - dictionaries, 'other page')}" if other > dictionaries else ""
    codec = codec_name(chunk.meta.codec)
    title(
        f"row group {chunk.row_group}, column {chunk.name}: {chunks.type_name(chunk.node)}, {codec}, "
        f"{count(data, 'data page')}{extra} in {chunk.size:,} bytes at {chunk.start}"
    )
    why = choice.reason(parquet, chunk, pages)
    if why:
        say(f"encoding: {why}")
    grid = Grid(
        headings(
            ">page|type|=encoding|>values|>nulls|??>rows|?>offset|??>header|>compressed|?>uncompressed|??>ratio|CRC"
        )
    )
    for page in pages:
        grid.add(
            "-" if page.ordinal is None else str(page.ordinal), page.type, page.encoding or "-", number(page.values),
            number(page.nulls), number(page.rows), str(page.offset), str(page.header_size),
            number(page.compressed_size), number(page.uncompressed_size),
            ratio(page.compressed_size, page.uncompressed_size), "no" if page.crc is None else "yes",
        )  # fmt: skip
    if pages:
        show(grid.without_empty("nulls", "rows"))


def _chunk_document(parquet: Any, k: int, leaf: Any) -> dict[str, Any]:
    chunk = file_of(parquet).chunk(k, leaf)
    pages = list(walk_headers(file_of(parquet), chunk))
    return {
        "offset": chunk.start,
        "size": chunk.size,
        "pages": [asdict(page) for page in pages],
        "encoding_reason": choice.reason(parquet, chunk, pages),
    }
