"""Writing: files, folders and metadata."""

from __future__ import annotations

import os
from typing import Any

from pyparq.datasets.write.write_dataset import write_dataset
from pyparq.errors import OptionError
from pyparq.parquet.arrow import has_pyarrow, with_arrow_errors
from pyparq.parquet.file import ParquetFile
from pyparq.parquet.options import write_options
from pyparq.parquet.prepared import converted, written_schema
from pyparq.parquet.read import read_metadata
from pyparq.parquet.sources import located
from pyparq.parquet.writer import ParquetWriter


@with_arrow_errors
def write_table(table: Any, where: Any, row_group_size: int | None = None, **options: Any) -> None:
    """Write a table to one file. The arguments are those of ``pyarrow.parquet.write_table``.

    A file that fails to be written is not there, and one that was there before stays.

    Example::

        import pyarrow as pa
        import pyparq.parquet as pq

        pq.write_table(pa.table({"id": [1, 2, 3]}), "ids.parquet", compression="zstd")
    """
    row_group_size = options.pop("chunk_size", row_group_size)
    with ParquetWriter(where, table.schema, **options) as writer:
        writer.write_table(table, row_group_size)


_MODES = {None: "append", "overwrite_or_ignore": "append", "error": "error", "delete_matching": "overwrite_partitions"}


@with_arrow_errors
def write_to_dataset(
    table: Any,
    root_path: Any,
    partition_cols: Any = None,
    filesystem: Any = None,
    schema: Any = None,
    partitioning: Any = None,
    basename_template: str | None = None,
    use_threads: bool | None = None,
    file_visitor: Any = None,
    existing_data_behavior: str | None = None,
    force: bool = False,
    **options: Any,
) -> None:
    """Write a table to a folder, by partitions. The files become visible together.

    ``existing_data_behavior``: ``"overwrite_or_ignore"`` (default) adds files, ``"error"`` wants an empty folder,
    ``"delete_matching"`` replaces the partitions that the table has rows of. ``force``: write even into a folder that a
    table format manages (Delta Lake, Apache Iceberg, Apache Hudi).

    Example::

        import pyarrow as pa
        import pyparq.parquet as pq

        pq.write_to_dataset(pa.table({"id": [1, 2], "year": [2023, 2024]}), "years", partition_cols=["year"])
    """
    collector = options.pop("metadata_collector", None)
    row_group_size = options.pop("row_group_size", None) or options.pop("chunk_size", None)
    if existing_data_behavior not in _MODES:
        known = ", ".join(repr(name) for name in _MODES if name)
        raise OptionError(f"existing_data_behavior must be one of {known}, not {existing_data_behavior!r}")
    if file_visitor is not None and collector is not None:
        raise OptionError("give either file_visitor or metadata_collector, not both")
    names = list(partition_cols or _names_of(partitioning))
    place, storage = located(root_path, filesystem)
    for unused in (
        "create_dir",
        "max_partitions",
        "max_open_files",
        "max_rows_per_file",
        "min_rows_per_group",
        "preserve_order",
    ):
        options.pop(unused, None)
    table = _converted(table, schema, options)
    given = write_options(options)
    streams = given.pop("use_byte_stream_split", False)
    if streams:
        raise OptionError("use_byte_stream_split is an argument of write_table; give column_encoding here")
    if row_group_size is not None:
        given["row_group_size"] = row_group_size
    template = (basename_template or "{guid}-{i}.parquet").replace("{guid}", "{id}")
    if "{i}" not in template:
        raise OptionError("basename_template did not contain '{i}'")
    report = write_dataset(
        table, place, partition_cols=names, mode=_MODES[existing_data_behavior],
        basename_template=template if "{id}" in template else template.replace("{i}", "{i}-{id}"),
        storage_options=storage, force=force, **given,
    )  # fmt: skip
    for file in report.files:
        _told(file, os.fspath(place), collector, file_visitor)


def _names_of(partitioning: Any) -> list[str]:
    if partitioning is None:
        return []
    if isinstance(partitioning, (list, tuple)):
        return list(partitioning)
    return [field.name for field in partitioning.schema]


def _converted(table: Any, schema: Any, options: dict[str, Any]) -> Any:
    """The table in the schema that is written."""
    if not has_pyarrow():
        return table
    int96 = bool(options.get("use_deprecated_int96_timestamps") or options.get("flavor") == "spark")
    if schema is not None:
        table = table.cast(schema)
    wanted = written_schema(
        table.schema, options.pop("version", "2.6"), options.pop("flavor", None),
        options.get("coerce_timestamps"), int96,
    )  # fmt: skip
    return converted(table, wanted, bool(options.get("allow_truncated_timestamps")))


class _WrittenFile:
    """What ``file_visitor`` is called with."""

    def __init__(self, path: str, metadata: Any, size: int) -> None:
        self.path, self.metadata, self.size = path, metadata, size


def _told(file: Any, root: str, collector: Any, visitor: Any) -> None:
    if collector is None and visitor is None:
        return
    whole = os.fspath(file.path)
    with ParquetFile(whole) as opened:
        metadata = opened.metadata
    metadata.set_file_path(os.path.relpath(whole, root))
    if collector is not None:
        collector.append(metadata)
    if visitor is not None:
        visitor(_WrittenFile(whole, metadata, os.path.getsize(whole)))


@with_arrow_errors
def write_metadata(
    schema: Any, where: Any, metadata_collector: Any = None, filesystem: Any = None, **options: Any
) -> None:
    """Write a file without rows that has the schema, and the row groups of other files that were collected.

    ``metadata_collector``: the :class:`FileMetaData` of each file, with its path set.

    Example::

        import pyarrow as pa
        import pyparq.parquet as pq

        table, collected = pa.table({"id": [1, 2]}), []
        pq.write_to_dataset(table, "parts", metadata_collector=collected)
        pq.write_metadata(table.schema, "parts/_metadata", metadata_collector=collected)
    """
    with ParquetWriter(where, schema, filesystem=filesystem, **options):
        pass
    if metadata_collector is not None:
        metadata = read_metadata(where, filesystem=filesystem)
        for one in metadata_collector:
            metadata.append_row_groups(one)
        metadata.write_metadata_file(where)
