"""``pyparq meta`` and ``pyparq size``: what footers say of files, row groups, columns and column chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from pyparq.cli.options import ALL, COLUMNS, IGNORE_CASE, JSON, ROW_GROUP, SOURCE, SOURCES, misused
from pyparq.cli.output import (
    Busy,
    Grid,
    count,
    cut,
    emit,
    facts,
    on_terminal,
    one_line,
    print_json,
    raise_problems,
    ratio,
    title,
)
from pyparq.cli.sources import chosen_leaves, chosen_row_groups, file_of, files_in, is_dataset, opened_any
from pyparq.cli.values import bound_json, bound_text, metadata_json
from pyparq.errors import MissingKeyError, ParquetError, SchemaError
from pyparq.filters.literal import type_text
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.order import FLOAT_KINDS
from pyparq.index.statistics import bounds_of_chunks, gregorian
from pyparq.runtime.text import visible

SHOWN = 100
"""Rows of a table on a terminal before the rest needs ``--all``."""
BOUND = 28
"""Characters of a string bound in a table."""


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
    limit = SHOWN if on_terminal() and not everything else 1 << 60
    with opened_any(file) as parquet:
        if is_dataset(parquet):
            if columns or row_groups:
                misused("--columns and --row-group are for a single file")
            _show_files(parquet, as_json, limit)
            return
        groups, leaves = chosen_row_groups(parquet, row_groups), chosen_leaves(parquet, columns)
        if as_json:
            document = _document(parquet, groups, leaves)
            print_json(document)
            described = [column for group in document["row_groups"] for column in group["columns"]]
            raise_problems([column["error"] for column in described if "error" in column])
            return
        _show_file(parquet)
        _show_row_groups(parquet, groups, limit)
        if leaves and (columns or row_groups):
            _show_chunks(parquet, groups, leaves, limit)
        elif leaves:
            _show_columns(parquet, groups, leaves, limit)


def _show_left_out(left: int, noun: str, advice: str = "choose with --columns or --row-group, or use --all") -> None:
    if left > 0:
        emit(f"  … {count(left, f'more {noun}')}: {advice}")


# ---- a folder


def _show_files(dataset: Any, as_json: bool, limit: int) -> None:
    """The files of ``dataset``, at most ``limit`` of them, and their totals."""
    with Busy("reading footers"):
        lines = [
            {
                "file": file.name,
                "rows": sum(map(file.num_rows_of, range(file.num_row_groups))),
                "row_groups": file.num_row_groups,
                "bytes": file.fetcher.source.size,
                "created_by": file.created_by,
            }
            for file in files_in(dataset)
        ]
    fields = dataset.partitions.fields
    if as_json:
        print_json({"source": dataset.root, "partitions": [field.name for field in fields], "files": lines})
        return
    rows, groups, size = (sum(line[name] for line in lines) for name in ("rows", "row_groups", "bytes"))
    writers = Counter(line["created_by"] for line in lines).most_common(5)
    title(dataset.root)
    facts(
        [
            ("files", f"{len(lines):,}"),
            ("partitions", ", ".join(f"{field.name} ({field.type})" for field in fields) or "(none)"),
            ("rows", f"{rows:,} in {count(groups, 'row group')}"),
            ("size", f"{size:,} bytes"),
            *(("written by", f"{writer or '(unknown)'}: {count(n, 'file')}") for writer, n in writers),
        ]
    )
    emit()
    title("files")
    prefix = dataset.root.rstrip("/") + "/"
    shown = [line | {"file": line["file"].removeprefix(prefix), "#": str(k)} for k, line in enumerate(lines[:limit])]
    Grid(">#|=file|rows|row groups:row_groups|bytes", shown).show()
    _show_left_out(len(lines) - limit, "file", "use --all")


# ---- a file


def _show_file(parquet: Any) -> None:
    meta, source = parquet.metadata, file_of(parquet).fetcher.source
    columns, leaves = len(parquet.tree.root.children), len(parquet.tree.leaves)
    pairs = [
        ("rows", f"{meta.num_rows:,} in {count(meta.num_row_groups, 'row group')}"),
        ("columns", f"{columns:,}" + (f" with {leaves:,} leaves" if leaves != columns else "")),
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
    title(source.name)
    facts(pairs)


def _footer_size(parquet: Any) -> int:
    return int.from_bytes(file_of(parquet).fetcher.read_tail(8)[:4], "little")


def _show_row_groups(parquet: Any, groups: list[int], limit: int) -> None:
    if not groups:
        return
    grid = Grid(">#|rows|compressed|uncompressed|>ratio|-=sorted by")
    for k in groups[:limit]:
        group, stored = parquet.metadata.row_group(k), _stored_size(parquet, k)
        order = ", ".join(
            f"{name}{' descending' if descending else ''}{' nulls first' if nulls_first else ''}"
            for name, descending, nulls_first in group.sorting_columns
        )
        size = group.total_byte_size
        grid.add(str(k), group.num_rows, stored, size, ratio(stored, size), order)
    emit()
    title("row groups")
    grid.show()
    _show_left_out(len(groups) - limit, "row group")


def _stored_size(parquet: Any, k: int) -> int:
    """Compressed bytes of a row group: as it says, else the sum of its chunks (-1 when one is damaged)."""
    said = file_of(parquet).raw_row_group(k).total_compressed_size
    if said is not None:
        return int(said)
    try:
        return sum(file_of(parquet).chunk(k, leaf).size for leaf in parquet.tree.leaves)
    except ParquetError:
        return -1


# ---- columns


def _show_columns(parquet: Any, groups: list[int], leaves: Sequence[Any], limit: int) -> None:
    """One line per column, all row groups together."""
    problems: list[str] = []
    grid = Grid(
        ">#|=column|=type|?codec|???=encodings|??values|-nulls|compressed|???>ratio|-=min|-=max|-?page index|-?Bloom "
        "bytes|-?=key"
    )
    with Busy("reading metadata", min(len(leaves), limit)) as busy:
        for leaf in leaves[:limit]:
            grid.add(str(leaf.column), leaf.dotted, type_text(leaf), *_summary(parquet, leaf, groups, problems))
            busy.step()
    emit()
    title("columns")
    grid.show()
    _show_left_out(len(leaves) - limit, "column")
    raise_problems(problems)


def _summary(parquet: Any, leaf: Any, groups: Sequence[int], problems: list[str]) -> list[Any]:
    """The cells for a leaf: what its chunks have in common or come to. Faults go to ``problems``."""
    file, known, key = file_of(parquet), [], ""
    try:
        type_ = leaf.type
    except SchemaError as error:
        problems.append(one_line(str(error)))
        groups = ()
    for k in groups:
        try:
            encrypted = parquet.metadata.row_group(k).column_encryption(leaf.column)
            key = key if encrypted is None else encrypted.key
            known.append(file.chunk(k, leaf))
        except MissingKeyError:
            key = f"{encrypted.key if encrypted else ''} (not given)"
        except ParquetError as error:
            problems.append(one_line(str(error)))
    if not known:
        return ["-", "-", None, None, None, "-", "-", "-", "-", "-", key]
    metas = [chunk.meta for chunk in known]
    compressed, uncompressed = sum(chunk.size for chunk in known), sum(m.total_uncompressed_size for m in metas)
    order = file.column_order(leaf)
    bounds = gregorian(bounds_of_chunks(type_, metas, order, file.created_by))
    usable, minimum, maximum = bounds.has_bounds, "-", "-"
    if bool(usable.any()) and bool((usable | bounds.all_null).all()):
        minimum = bound_text(bounds.leaf, min(bounds.mins[usable].tolist()), order, BOUND)
        maximum = bound_text(bounds.leaf, max(bounds.maxs[usable].tolist()), order, BOUND)
    return [
        " ".join(dict.fromkeys(codec_name(m.codec) for m in metas)),
        list(dict.fromkeys(encoding_name(e) for m in metas for e in m.encodings or ())),
        sum(m.num_values for m in metas),
        int(bounds.null_counts.sum()) if bool((bounds.null_counts >= 0).all()) else None,
        compressed, ratio(compressed, uncompressed), minimum, maximum, _page_index(known),
        sum(m.bloom_filter_length or 0 for m in metas if m.bloom_filter_offset) or None, key,
    ]  # fmt: skip


def _page_index(known: Sequence[Any]) -> str:
    """``bounds`` (both indexes), ``places`` (OffsetIndex alone), with how many chunks when not all have it."""
    both = sum(bool(c.raw.column_index_offset and c.raw.offset_index_offset) for c in known)
    places = sum(bool(c.raw.offset_index_offset) for c in known)
    name, having = ("bounds", both) if both else ("places", places)
    if not having:
        return "-"
    return name if having == len(known) else f"{name} {having}/{len(known)}"


# ---- column chunks


def _show_chunks(parquet: Any, groups: list[int], leaves: Sequence[Any], limit: int) -> None:
    """One line per column chunk."""
    problems: list[str] = []
    places = [(k, leaf) for leaf in leaves for k in groups] if len(leaves) < len(groups) else []
    places = places or [(k, leaf) for k in groups for leaf in leaves]
    grid = Grid(
        ">group|=column|=type|?codec|???=encodings|??values:num_values|-nulls:null_count|-NaNs:nan_count|???@offset|"
        "compressed:compressed_size|???uncompressed:uncompressed_size|-=min|-=max|-?ColumnIndex|-?OffsetIndex|"
        "-??@Bloom offset|-?Bloom bytes"
    )
    with Busy("reading metadata", min(len(places), limit)) as busy:
        for k, leaf in places[:limit]:
            busy.step()
            found = _chunk_document(parquet, leaf, k, bound_cell)
            if "error" in found:
                problems.append(found["error"])
                continue
            indexes = [found[name] or {} for name in ("column_index", "offset_index", "bloom_filter")]
            found |= {"group": str(k), "column": leaf.dotted, "Bloom offset": indexes[2].get("offset")}
            found |= dict(
                zip(("ColumnIndex", "OffsetIndex", "Bloom bytes"), (i.get("length") for i in indexes), strict=True)
            )
            grid.add(*(found[heading.key] for heading in grid.headings))
    emit()
    title("column chunks (indexes: size in bytes)")
    grid.show()
    _show_left_out(len(places) - limit, "column chunk")
    raise_problems(problems)


def bound_cell(leaf: Any, value: Any, order: Any) -> str:
    return bound_text(leaf, value, order, BOUND)


def _chunk_document(
    parquet: Any, leaf: Any, k: int, bound: Callable[[Any, Any, Any], Any] = bound_json
) -> dict[str, Any]:
    """All there is to say of one chunk, as plain values; the reason when its metadata is damaged."""
    named: dict[str, Any] = named_chunk(leaf) | {"type": type_text(leaf)}
    if parquet.metadata.encryption is not None:
        encrypted = parquet.metadata.row_group(k).column_encryption(leaf.column)
        named["key"] = None if encrypted is None else encrypted.key
    try:
        column = parquet.metadata.row_group(k).column(leaf.column)
        bounds = column.bounds
    except ParquetError as error:
        return named | {"error": one_line(str(error))}
    meta, raw = file_of(parquet).chunk(k, leaf).meta, column.raw
    statistics, has, order = meta.statistics, bool(bounds.has_bounds[0]), file_of(parquet).column_order(leaf)
    return named | {
        "physical_type": column.physical_type,
        "codec": column.compression,
        "encodings": list(column.encodings),
        "num_values": column.num_values,
        "null_count": known(bounds.null_counts[0]),
        "nan_count": known(bounds.nan_counts[0]) if leaf.type.kind in FLOAT_KINDS else None,
        "distinct_count": None if statistics is None else statistics.distinct_count,
        "min": bound(bounds.leaf, bounds.mins[0], order) if has else None,
        "max": bound(bounds.leaf, bounds.maxs[0], order) if has else None,
        "min_exact": statistics.is_min_value_exact if has else None,
        "max_exact": statistics.is_max_value_exact if has else None,
        "offset": column.file_offset,
        "dictionary_page_offset": column.dictionary_page_offset,
        "data_page_offset": column.data_page_offset,
        "compressed_size": column.total_compressed_size,
        "uncompressed_size": column.total_uncompressed_size,
        "column_index": place(raw.column_index_offset, raw.column_index_length),
        "offset_index": place(raw.offset_index_offset, raw.offset_index_length),
        "bloom_filter": place(meta.bloom_filter_offset, meta.bloom_filter_length),
    }


def named_chunk(leaf: Any) -> dict[str, Any]:
    return {"column": leaf.column, "name": leaf.dotted, "path": list(leaf.path)}


def known(value: Any) -> int | None:
    """A count; ``None`` for one that is not known."""
    return int(value) if value >= 0 else None


def place(offset: int | None, length: int | None) -> dict[str, int | None] | None:
    return {"offset": offset, "length": length or None} if offset else None


# ---- JSON


def _document(parquet: Any, groups: list[int], leaves: Sequence[Any]) -> dict[str, Any]:
    meta, encryption = parquet.metadata, parquet.metadata.encryption
    described = []
    with Busy("reading metadata", len(groups)) as busy:
        for k in groups:
            described.append(_group_document(parquet, k, leaves))
            busy.step()
    names = ("algorithm", "plaintext_footer", "footer_verified", "key")
    return {
        "file": file_of(parquet).name,
        "size": file_of(parquet).fetcher.source.size,
        "footer_size": _footer_size(parquet),
        **{name: getattr(meta, name) for name in ("num_rows", "num_row_groups", "num_columns")},
        "created_by": meta.created_by,
        "format_version": meta.format_version,
        "encryption": None if encryption is None else {
            **{name: getattr(encryption, name) for name in names},
            "key_metadata": None if encryption.key_metadata is None else metadata_json(encryption.key_metadata),
        },
        "key_value_metadata": {metadata_json(k): metadata_json(v) for k, v in meta.metadata.items()},
        "row_groups": described,
    }  # fmt: skip


def _group_document(parquet: Any, k: int, leaves: Sequence[Any]) -> dict[str, Any]:
    group = parquet.metadata.row_group(k)
    names = ("column", "descending", "nulls_first")
    return {
        "row_group": k,
        "num_rows": group.num_rows,
        "total_byte_size": group.total_byte_size,
        "total_compressed_size": _stored_size(parquet, k),
        "sorting_columns": [dict(zip(names, order, strict=True)) for order in group.sorting_columns],
        "columns": [_chunk_document(parquet, leaf, k) for leaf in leaves],
    }


# ---- sizes


@dataclass(slots=True)
class _Sizes:
    """A leaf over all row groups and files."""

    name: str
    num_values: int = 0
    compressed: int = 0
    uncompressed: int = 0
    bloom_filters: int = 0
    indexes: int = 0

    def add(self, chunk: Any) -> None:
        meta, raw = chunk.meta, chunk.raw
        self.num_values += meta.num_values
        self.compressed += chunk.size
        self.uncompressed += meta.total_uncompressed_size
        self.bloom_filters += meta.bloom_filter_length or 0
        self.indexes += (raw.column_index_length or 0) + (raw.offset_index_length or 0)

    @property
    def stored(self) -> int:
        return self.compressed + self.bloom_filters + self.indexes


@click.command("size")
@SOURCES
@click.option(
    "--sort", "order", type=click.Choice(("size", "schema")), default="size", show_default=True,
    help="The largest columns first, or as in the schema.",
)  # fmt: skip
@JSON
def size_command(sources: tuple[str, ...], order: str, as_json: bool) -> None:
    """The bytes of each column, as stored and before compression. Only footers are read.

    "share" is the part of all files that the column takes. "indexes" are ColumnIndexes and OffsetIndexes. What is left
    over at the end is footers, and room between the columns.
    """
    with opened_any(*sources) as parquet:
        with Busy("reading footers"):
            files = files_in(parquet)
        columns = _sizes_of(files)
        rows = sum(file.num_rows_of(k) for file in files for k in range(file.num_row_groups))
        total = sum(file.fetcher.source.size for file in files)
    if order == "size":
        columns.sort(key=lambda c: -c.stored)
    left_over = total - sum(c.stored for c in columns)
    if as_json:
        counts = {"num_files": len(files), "num_rows": rows, "bytes": total}
        print_json({"sources": sources, **counts, "columns": list(map(asdict, columns)), "left_over": left_over})
        return
    title(f"{', '.join(sources)}: {count(len(files), 'file')}, {count(rows, 'row')}, {total:,} bytes")
    grid = Grid("=column|compressed|>share|uncompressed|?>ratio|??>bytes/value|?-Bloom filters|?-indexes")
    for c in columns:
        grid.add(
            c.name, c.compressed, f"{100 * c.compressed / total:.1f}%" if total else "-", c.uncompressed,
            ratio(c.compressed, c.uncompressed), f"{c.compressed / c.num_values:.3g}" if c.num_values else "-",
            c.bloom_filters or "-", c.indexes or "-",
        )  # fmt: skip
    if columns:
        grid.show()
    emit(f"  left over: {left_over:,} bytes")


def _sizes_of(files: list[Any]) -> list[_Sizes]:
    """The leaves of all files, by their paths."""
    found: dict[tuple[str, ...], _Sizes] = {}
    with Busy("adding up", len(files)) as busy:
        for file in files:
            for leaf in file.tree.leaves:
                column = found.setdefault(tuple(leaf.path), _Sizes(leaf.dotted))
                for k in range(file.num_row_groups):
                    column.add(file.chunk(k, leaf))
            busy.step()
    return list(found.values())
