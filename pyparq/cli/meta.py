"""``pyparq meta``: the footer: the file, its row groups and column chunks, statistics, indexes and Bloom filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli import chunks
from pyparq.cli.common import (
    ALL,
    COLUMNS,
    IGNORE_CASE,
    JSON,
    ROW_GROUP,
    SOURCE,
    chosen_leaves,
    chosen_row_groups,
    facts,
    file_of,
    is_dataset,
    number,
    opened_any,
    print_json,
    ratio,
)
from pyparq.cli.files import show_files
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, on_terminal, show, title
from pyparq.cli.text import count, cut, visible
from pyparq.cli.values import metadata_json

SHOWN = 100
"""Rows of a table on a terminal before the rest needs ``--all``."""


@click.command("meta")
@SOURCE
@COLUMNS
@IGNORE_CASE
@ROW_GROUP
@ALL
@JSON
def meta_command(file: str, columns: list[str], row_groups: tuple[int, ...], everything: bool, as_json: bool) -> None:
    """The footer of a file: sizes, codecs, encodings, statistics, indexes, Bloom filters. For a folder or a glob: the
    files with their rows, row groups and sizes.

    Each column has one line for all row groups. With --row-group or --columns, each column chunk has a line.
    Under "page index", "bounds" means ColumnIndex and OffsetIndex, and "places" means OffsetIndex alone.

    Minima and maxima are shown only if they can be trusted. Those of known faulty writers, or in an undefined sort
    order, are not shown.
    """
    with opened_any(file) as parquet:
        if is_dataset(parquet):
            show_files(parquet, columns, row_groups, as_json, SHOWN if on_terminal() and not everything else 1 << 60)
            return
        groups, leaves = chosen_row_groups(parquet, row_groups), chosen_leaves(parquet, columns)
        if as_json:
            document = _document(parquet, groups, leaves)
            print_json(document)
            described = [column for group in document["row_groups"] for column in group["columns"]]
            chunks.raise_problems([column["error"] for column in described if "error" in column])
            return
        limit = SHOWN if on_terminal() and not everything else 1 << 60
        _print_file(parquet)
        _print_row_groups(parquet, groups, limit)
        if not leaves:
            return
        if columns or row_groups:
            _print_chunks(parquet, groups, leaves, limit)
        else:
            _print_columns(parquet, groups, leaves, limit)


# ---- the file


def _print_file(parquet: Any) -> None:
    meta, source = parquet.metadata, file_of(parquet).fetcher.source
    title(source.name)
    pairs = [
        ("rows", f"{meta.num_rows:,} in {count(meta.num_row_groups, 'row group')}"),
        ("columns", f"{len(parquet.schema.root.children):,}" + _leaves(parquet)),
        ("size", f"{source.size:,} bytes, {_footer_size(parquet):,} of them the footer"),
        ("format", f"version {meta.format_version}"),
        ("written by", meta.created_by or "(unknown)"),
    ]
    encryption = meta.encryption
    if encryption is not None:
        footer = "signed" if encryption.plaintext_footer else "encrypted"
        unverified = "" if encryption.footer_verified else ", signature not checked"
        pairs.append(("encryption", f"{encryption.algorithm}, footer {footer} ({encryption.key}){unverified}"))
    for key, value in meta.metadata.items():
        text = metadata_json(value)
        size = f"{len(value):,} bytes: " if len(text) > 60 else ""
        pairs.append(("metadata", f"{metadata_json(key)} = {size}{cut(visible(text), 60)}"))
    facts(pairs)


def _leaves(parquet: Any) -> str:
    leaves = len(parquet.schema.leaves)
    return "" if leaves == len(parquet.schema.root.children) else f" with {leaves:,} leaves"


def _footer_size(parquet: Any) -> int:
    return int.from_bytes(file_of(parquet).fetcher.read_tail(8)[:4], "little")


def _print_row_groups(parquet: Any, groups: list[int], limit: int) -> None:
    grid = Grid(headings(">#|>rows|>compressed|>uncompressed|>ratio|~sorted by"))
    for k in groups[:limit]:
        group = parquet.metadata.row_group(k)
        stored = chunks.stored_size(parquet, k)
        order = ", ".join(
            f"{name}{' descending' if descending else ''}{' nulls first' if nulls_first else ''}"
            for name, descending, nulls_first in group.sorting_columns
        )
        size = group.total_byte_size
        grid.add(str(k), f"{group.num_rows:,}", number(stored), number(size), ratio(stored, size), order or "-")
    if not groups:
        return
    emit()
    title("row groups")
    show(grid.without_empty("sorted by"))
    _print_left_out(len(groups) - limit, "row group")


def _print_left_out(number_left: int, noun: str) -> None:
    if number_left > 0:
        emit(f"  … {count(number_left, f'more {noun}')}: choose with --columns or --row-group, or use --all")


# ---- columns


def _print_columns(parquet: Any, groups: list[int], leaves: Sequence[Any], limit: int) -> None:
    """One line per column, all row groups together."""
    heads = (
        ">#|=column|=type|?codec|???=encodings|??>values|>nulls|>compressed|???>ratio|~min|~max|?page index|"
        "?>Bloom bytes|?=key"
    )
    grid = Grid(headings(heads))
    problems: list[str] = []
    with Busy("reading metadata", min(len(leaves), limit)) as busy:
        for leaf in leaves[:limit]:
            found = chunks.summary(parquet, leaf, groups)
            problems += found.problems
            grid.add(
                str(leaf.column), leaf.dotted, chunks.type_name(leaf), found.codec, found.encodings,
                number(found.values), number(found.nulls), number(found.compressed),
                ratio(found.compressed, found.uncompressed), found.minimum, found.maximum, found.page_index,
                number(found.bloom_bytes) if found.bloom_bytes else "-", found.key,
            )  # fmt: skip
            busy.step()
    emit()
    title("columns")
    show(grid.without_empty("Bloom bytes", "page index", "nulls", "min", "max", "key"))
    _print_left_out(len(leaves) - limit, "column")
    chunks.raise_problems(problems)


def _print_chunks(parquet: Any, groups: list[int], leaves: Sequence[Any], limit: int) -> None:
    """One line per column chunk."""
    heads = (
        ">#|=column|=type|?codec|???=encodings|??>values|>nulls|>compressed|???>ratio|~min|~max|?page index|"
        "?>Bloom bytes|?=key"
    )
    grid = Grid(headings(heads))
    problems: list[str] = []
    places = [(k, leaf) for leaf in leaves for k in groups] if len(leaves) < len(groups) else []
    places = places or [(k, leaf) for k in groups for leaf in leaves]
    with Busy("reading metadata", min(len(places), limit)) as busy:
        for k, leaf in places[:limit]:
            busy.step()
            found = chunks.describe(parquet, leaf, k)
            if isinstance(found, str):
                problems.append(found)
                continue
            grid.add(
                str(k), leaf.dotted, chunks.type_name(leaf), found["codec"], " ".join(found["encodings"]),
                number(found["num_values"]), number(found["null_count"]),
                "-" if found["nan_count"] is None else number(found["nan_count"]),
                str(found["offset"]), number(found["compressed_size"]), number(found["uncompressed_size"]),
                *chunks.bound_texts(parquet, leaf, k),
                *(number(found[name]["length"]) if found[name] else "-" for name in ("column_index", "offset_index")),
                str(found["bloom_filter"]["offset"]) if found["bloom_filter"] else "-",
                number(found["bloom_filter"]["length"]) if found["bloom_filter"] else "-",
            )  # fmt: skip
    emit()
    title("column chunks (indexes: size in bytes)")
    show(grid.without_empty("nulls", "NaNs", "min", "max", "ColumnIndex", "OffsetIndex", "Bloom offset", "Bloom bytes"))
    _print_left_out(len(places) - limit, "column chunk")
    chunks.raise_problems(problems)


# ---- JSON


def _document(parquet: Any, groups: list[int], leaves: Sequence[Any]) -> dict[str, Any]:
    meta = parquet.metadata
    described = []
    with Busy("reading metadata", len(groups)) as busy:
        for k in groups:
            described.append(_group_document(parquet, k, leaves))
            busy.step()
    return {
        "file": file_of(parquet).name,
        "size": file_of(parquet).fetcher.source.size,
        "footer_size": _footer_size(parquet),
        "num_rows": meta.num_rows,
        "num_row_groups": meta.num_row_groups,
        "num_columns": meta.num_columns,
        "created_by": meta.created_by,
        "format_version": meta.format_version,
        "encryption": _encryption_document(meta.encryption),
        "key_value_metadata": {metadata_json(k): metadata_json(v) for k, v in meta.metadata.items()},
        "row_groups": described,
    }


def _encryption_document(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "algorithm": found.algorithm,
        "plaintext_footer": found.plaintext_footer,
        "footer_verified": found.footer_verified,
        "key": found.key,
        "key_metadata": None if found.key_metadata is None else metadata_json(found.key_metadata),
    }


def _group_document(parquet: Any, k: int, leaves: Sequence[Any]) -> dict[str, Any]:
    group = parquet.metadata.row_group(k)
    columns = []
    for leaf in leaves:
        found = chunks.describe(parquet, leaf, k)
        named = {"column": leaf.column, "name": leaf.dotted, "path": list(leaf.path), "type": chunks.type_name(leaf)}
        if parquet.metadata.encryption is not None:
            encrypted = group.column_encryption(leaf.column)
            named["key"] = None if encrypted is None else encrypted.key
        columns.append(named | ({"error": found} if isinstance(found, str) else found))
    return {
        "row_group": k,
        "num_rows": group.num_rows,
        "total_byte_size": group.total_byte_size,
        "total_compressed_size": chunks.stored_size(parquet, k),
        "sorting_columns": [
            {"column": name, "descending": descending, "nulls_first": nulls_first}
            for name, descending, nulls_first in group.sorting_columns
        ],
        "columns": columns,
    }
