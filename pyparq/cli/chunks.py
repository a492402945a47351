"""Column chunks described: one by one, and summed up over row groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from pyparq.cli.common import file_of, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.text import count, one_line
from pyparq.cli.values import bound_json, bound_text
from pyparq.errors import MissingKeyError, ParquetError, SchemaError
from pyparq.filters.literal import describe as describe_type
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.order import FLOAT_KINDS
from pyparq.index.bounds import gregorian
from pyparq.index.statistics import bounds_of_chunks

BOUND = 28
"""Characters of a string bound in a table."""


def type_name(leaf: Any) -> str:
    """A leaf's type as a user knows it; its physical type where the annotation makes no sense."""
    try:
        return describe_type(leaf.type)
    except SchemaError:
        return f"type {leaf.element.type}"


def stored_size(parquet: Any, k: int) -> int:
    """Compressed bytes of a row group: as it says, else the sum of its chunks (-1 when one is damaged)."""
    said = file_of(parquet).raw_row_group(k).total_compressed_size
    if said is not None:
        return int(said)
    try:
        return sum(file_of(parquet).chunk(k, leaf).size for leaf in parquet.schema.leaves)
    except ParquetError:
        return -1


def raise_problems(problems: Sequence[str]) -> None:
    """End with an error when chunks could not be described (what could be has been printed)."""
    if problems:
        more = f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
        raise click.ClickException(problems[0] + more)


def print_document(
    places: Sequence[tuple[int, Any]], doing: str, describe: Callable[[int, Any], dict[str, Any]]
) -> None:
    """JSON with an entry for each chunk (row group, leaf), its error in the place of what cannot be described."""
    document = []
    with Busy(doing, len(places)) as busy:
        for k, leaf in places:
            entry: dict[str, Any] = {
                "row_group": k, "column": leaf.column, "name": leaf.dotted, "path": list(leaf.path),
            }  # fmt: skip
            try:
                entry |= describe(k, leaf)
            except ParquetError as error:
                entry["error"] = one_line(str(error))
            document.append(entry)
            busy.step()
    print_json(document)
    raise_problems([entry["error"] for entry in document if "error" in entry])


@dataclass(slots=True)
class Summary:
    """A column over several row groups; ``-`` or -1 where something is not known."""

    codec: str = "-"
    encodings: str = "-"
    values: int = 0
    nulls: int = 0
    compressed: int = 0
    uncompressed: int = 0
    minimum: str = "-"
    maximum: str = "-"
    page_index: str = "-"
    bloom_bytes: int = 0
    key: str = "-"
    """The algorithm and the key that it is encrypted with."""
    problems: list[str] = field(default_factory=list)


def summary(parquet: Any, leaf: Any, groups: Sequence[int]) -> Summary:
    """What the chunks of a leaf have in common or come to."""
    found = Summary()
    file, known = file_of(parquet), []
    try:
        type_ = leaf.type
    except SchemaError as error:
        found.problems.append(one_line(str(error)))
        return found
    for k in groups:
        try:
            encrypted = parquet.metadata.row_group(k).column_encryption(leaf.column)
            if encrypted is not None:
                found.key = encrypted.key
            known.append(file.chunk(k, leaf))
        except MissingKeyError:
            found.key = f"{encrypted.key if encrypted else ''} (not given)"
        except ParquetError as error:
            found.problems.append(one_line(str(error)))
    if not known:
        found.values = found.nulls = found.compressed = -1
        return found
    metas = [chunk.meta for chunk in known]
    found.codec = " ".join(dict.fromkeys(codec_name(m.codec) for m in metas))
    found.encodings = " ".join(dict.fromkeys(encoding_name(e) for m in metas for e in m.encodings or ()))
    found.values = sum(m.num_values for m in metas)
    found.compressed = sum(chunk.size for chunk in known)
    found.uncompressed = sum(m.total_uncompressed_size for m in metas)
    found.bloom_bytes = sum(m.bloom_filter_length or 0 for m in metas if m.bloom_filter_offset)
    found.page_index = _page_index(known)
    bounds = gregorian(bounds_of_chunks(type_, metas, file.column_order(leaf), file.created_by))
    found.nulls = int(bounds.null_counts.sum()) if bool((bounds.null_counts >= 0).all()) else -1
    usable, order = bounds.has_bounds, file.column_order(leaf)
    if bool(usable.any()) and bool((usable | bounds.all_null).all()):
        found.minimum = bound_text(bounds.leaf, min(bounds.mins[usable].tolist()), order, BOUND)
        found.maximum = bound_text(bounds.leaf, max(bounds.maxs[usable].tolist()), order, BOUND)
    return found


def _page_index(known: Sequence[Any]) -> str:
    """``bounds`` (both indexes), ``places`` (OffsetIndex alone), with how many chunks when not all have it."""
    both = sum(bool(c.raw.column_index_offset and c.raw.offset_index_offset) for c in known)
    places = sum(bool(c.raw.offset_index_offset) for c in known)
    name, having = ("bounds", both) if both else ("places", places)
    if not having:
        return "-"
    return name if having == len(known) else f"{name} {having}/{len(known)}"


def bound_texts(parquet: Any, leaf: Any, k: int) -> tuple[str, str]:
    """Smallest and largest value of a chunk as its statistics say, ``-`` where they cannot be told."""
    bounds = parquet.metadata.row_group(k).column(leaf.column).bounds
    if not bounds.has_bounds[0]:
        return "-", "-"
    order = file_of(parquet).column_order(leaf)
    return bound_text(bounds.leaf, bounds.mins[0], order, BOUND), bound_text(bounds.leaf, bounds.maxs[0], order, BOUND)


def describe(parquet: Any, leaf: Any, k: int) -> dict[str, Any] | str:
    """All there is to say of one chunk, as plain values; the reason when its metadata is damaged."""
    try:
        column = parquet.metadata.row_group(k).column(leaf.column)
        bounds = column.bounds
    except ParquetError as error:
        return one_line(str(error))
    meta, raw = file_of(parquet).chunk(k, leaf).meta, column.raw
    statistics, has, order = meta.statistics, bool(bounds.has_bounds[0]), file_of(parquet).column_order(leaf)
    return {
        "physical_type": column.physical_type,
        "codec": column.compression,
        "encodings": list(column.encodings),
        "num_values": column.num_values,
        "null_count": _known(bounds.null_counts[0]),
        "nan_count": _known(bounds.nan_counts[0]) if leaf.type.kind in FLOAT_KINDS else None,
        "distinct_count": None if statistics is None else statistics.distinct_count,
        "min": bound_json(bounds.leaf, bounds.mins[0], order) if has else None,
        "max": bound_json(bounds.leaf, bounds.maxs[0], order) if has else None,
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


def _known(value: Any) -> int | None:
    return int(value) if value >= 0 else None


def place(offset: int | None, length: int | None) -> dict[str, int | None] | None:
    return {"offset": offset, "length": length or None} if offset else None
