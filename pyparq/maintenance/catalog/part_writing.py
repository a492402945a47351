"""Writes the Parquet files of a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.datasets.catalog.layout import CheckingSink, Part, Place, block_for, new_name
from pyparq.option_values import Encoding
from pyparq.write.file import ParquetWriter


def write_part(
    place: Place, kind: str, schema: Any, tables: Sequence[Any], encodings: Mapping[str, Encoding] | None = None,
    page_rows: int = 20_000,
) -> Part:  # fmt: skip
    """A new part with these rows. ``encodings``: of columns without a dictionary."""
    name, given = new_name(kind), dict(encodings or {})
    rows = sum(_num_rows(table) for table in tables)
    sink = CheckingSink(place.sink(name), block_for(rows * 8))
    with ParquetWriter(
        sink, schema, compression="zstd", max_rows_per_page=page_rows, column_encoding=given or None,
        use_dictionary=not given, write_page_checksum=True,
    ) as writer:  # fmt: skip
        for table in tables:
            writer.write(table)
    return sink.part(name, rows, sink.position - _indexes_begin(writer, sink.position))


def _num_rows(table: Any) -> int:
    return table.num_rows if hasattr(table, "num_rows") else len(next(iter(table.values()), ()))


def _indexes_begin(writer: ParquetWriter, end: int) -> int:
    """Where the page indexes of a file begin, or its footer."""
    metadata = writer.metadata
    chunks = [chunk for group in (metadata.row_groups if metadata is not None else ()) for chunk in group.columns]
    places = [p for c in chunks for p in (c.column_index_offset, c.offset_index_offset) if p]
    return min(places, default=max(end - (64 << 10), 0))
