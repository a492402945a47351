"""Writing with pyarrow's names: ``ParquetWriter``, and functions for files, folders and metadata."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

from pyparq.datasets.write.partition_split import SPARK_NAMES
from pyparq.datasets.write.rolling_files import FileLimits
from pyparq.datasets.write.write_dataset import write_folder
from pyparq.errors import OptionError
from pyparq.format.thrift_codec import serialize
from pyparq.option_checks import methods_told
from pyparq.parquet.arguments import ArrowNames, located, names_of, write_options
from pyparq.parquet.arrow import arrow_errors, as_table, converted, has_pyarrow, written_schema
from pyparq.parquet.file import read_metadata
from pyparq.parquet.metadata import FileMetaData
from pyparq.write.file import ParquetWriter as OwnWriter

if TYPE_CHECKING:
    from pyparq.arguments import WriteArguments

_MOST_ROWS = 64 << 20
_USUAL_ROWS = 1 << 20


@methods_told
class ParquetWriter:
    """Writes a file table by table. Each table makes row groups of its own, as with pyarrow.

    The arguments are those of ``pyarrow.parquet.ParquetWriter``. A page index and page checksums are written unless
    ``write_page_index=False`` and ``write_page_checksum=False`` are given. ``force=True`` writes even into a folder
    that a table format manages (Delta Lake, Apache Iceberg, Apache Hudi).

    Example::

        import pyarrow as pa
        import pyparq.parquet as pq

        table = pa.table({"id": [1, 2, 3]})
        with pq.ParquetWriter("ids.parquet", table.schema) as writer:
            writer.write_table(table)
    """

    def __init__(
        self,
        where: Any,
        schema: Any,
        filesystem: Any = None,
        flavor: Any = None,
        version: str = "2.6",
        use_deprecated_int96_timestamps: bool | None = None,
        coerce_timestamps: str | None = None,
        allow_truncated_timestamps: bool = False,
        metadata_collector: Any = None,
        force: bool = False,
        **options: Any,
    ) -> None:
        if where is None or isinstance(where, (int, float)):
            raise TypeError(f"a target must be a path or a file, not {type(where).__name__}")
        if schema is None:
            raise TypeError("ParquetWriter needs a schema")
        if flavor not in (None, "spark") and not isinstance(flavor, (set, list, tuple)):
            raise OptionError(f"flavor must be 'spark' or None, not {flavor!r}")
        int96 = bool(flavor and "spark" in flavor if use_deprecated_int96_timestamps is None
                     else use_deprecated_int96_timestamps)  # fmt: skip
        self.where, self.flavor = where, flavor
        self.file_handle = where if hasattr(where, "write") else None
        self.schema = schema
        self.is_open = False
        self._collector = metadata_collector
        self._allow_truncated = allow_truncated_timestamps
        place, storage = located(where, filesystem)
        self._place, self._storage = place, storage
        with arrow_errors():
            if has_pyarrow() and hasattr(schema, "field"):
                self.schema = written_schema(_as_pyarrow(schema), version, flavor, coerce_timestamps, int96)
            streams = options.pop("use_byte_stream_split", False)
            given = write_options(
                {**options, "version": version, "use_deprecated_int96_timestamps": int96}, list(self.schema)
            )
            if streams:
                given["column_encoding"] = _streams(streams, self.schema, given)
            self._own = OwnWriter(place, self.schema, storage_options=storage, force=force, **given)
        self.is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.is_open = False
            self._own.abort()
        else:
            self.close()

    def write(self, table_or_batch: Any, row_group_size: int | None = None) -> None:
        """Write a table or a record batch."""
        if hasattr(table_or_batch, "to_batches"):
            self.write_table(table_or_batch, row_group_size)
        elif hasattr(table_or_batch, "num_rows") and hasattr(table_or_batch, "schema"):
            self.write_batch(table_or_batch, row_group_size)
        else:
            raise TypeError(type(table_or_batch))

    def write_batch(self, batch: Any, row_group_size: int | None = None) -> None:
        """Write a record batch."""
        self.write_table(batch, row_group_size)

    def write_table(self, table: Any, row_group_size: int | None = None) -> None:
        """Write a table. ``row_group_size``: rows of each row group, at most; 2**20 by default.

        Raises :class:`ValueError` for a table of another schema.
        """
        if not self.is_open:
            raise ValueError("the writer is closed")
        if row_group_size == 0:
            raise OptionError("Row group size must be positive")
        if row_group_size is not None and row_group_size < 0:
            row_group_size = None
        size, table = min(int(row_group_size or _USUAL_ROWS), _MOST_ROWS), as_table(table)
        with arrow_errors():
            self._own.write(self._converted(table), row_group_size=size)
            self._own.flush(keep_empty=not table.num_rows)

    def _converted(self, table: Any) -> Any:
        if not has_pyarrow():
            return table
        import pyarrow as pa

        if not isinstance(self.schema, pa.Schema):
            return table
        made = converted(table, self.schema, self._allow_truncated) if self._is_changed(table) else table
        if not made.schema.equals(self.schema, check_metadata=False):
            raise ValueError(
                f"Table schema does not match schema used to create file: \ntable:\n{made.schema!s} vs. \n"
                f"file:\n{self.schema!s}"
            )
        return made

    def _is_changed(self, table: Any) -> bool:
        """Whether the table differs from the written schema only in what the arguments change."""
        same_names = len(table.schema) == len(self.schema)
        return same_names and not table.schema.equals(self.schema) and all(
            a.equals(b) or str(a).split("[")[0] == str(b).split("[")[0] or (str(a), str(b)) == ("uint32", "int64")
            or "timestamp" in str(a)
            for a, b in zip(table.schema.types, self.schema.types, strict=True)
        )  # fmt: skip

    def add_key_value_metadata(self, key_value_metadata: Any) -> None:
        """Add pairs to the file's metadata."""
        self._own.add_key_value_metadata(key_value_metadata)

    def close(self) -> None:
        """Write the footer. The file appears under its name."""
        if not self.is_open:
            return
        self.is_open = False
        with arrow_errors():
            self._own.close()
        if self._collector is not None:
            self._collector.append(self._metadata())

    @property
    def writer(self) -> Self:
        """The writer itself, for programs that ask pyarrow's ``writer`` for its ``metadata``."""
        return self

    @property
    def metadata(self) -> Any:
        """The metadata of the file, once it is closed; ``None`` before."""
        return None if self.is_open else self._metadata()

    def _metadata(self) -> Any:
        if isinstance(self._place, str) or hasattr(self._place, "__fspath__"):
            return read_metadata(self._place)
        found = self._own.metadata
        return None if found is None else FileMetaData(found, len(serialize(found)))


def _as_pyarrow(schema: Any) -> Any:
    import pyarrow as pa

    return schema if isinstance(schema, pa.Schema) else pa.schema(schema)


def _streams(given: Any, schema: Any, options: dict[str, Any]) -> dict[str, str]:
    """``use_byte_stream_split`` as encodings: for all columns without a dictionary, or for the named columns."""
    encodings = dict(options.get("column_encoding") or {})
    if given is True:
        names = [f.name for f in schema if getattr(f.type, "num_fields", 0) == 0]
        plain = options.get("use_dictionary", True)
        names = [name for name in names if plain is not True and (plain is False or name not in plain)]
    else:
        names = list(given)
    if encodings and (given is True or encodings.keys() & names):
        raise OptionError("'use_byte_stream_split' cannot be passed together with 'column_encoding'")
    return {**dict.fromkeys(names, "BYTE_STREAM_SPLIT"), **encodings}


# ---- functions


@arrow_errors()
def write_table(table: Any, where: Any, row_group_size: int | None = None, **options: Any) -> None:
    """Write a table to one file. The arguments are those of ``pyarrow.parquet.write_table``.

    If writing fails, no new file appears, and an older one stays.

    Example::

        import pyarrow as pa
        import pyparq.parquet as pq

        pq.write_table(pa.table({"id": [1, 2, 3]}), "ids.parquet", compression="zstd")
    """
    row_group_size, table = options.pop("chunk_size", row_group_size), as_table(table)
    with ParquetWriter(where, table.schema, **options) as writer:
        writer.write_table(table, row_group_size)


_MODES = {None: "overwrite_files", "overwrite_or_ignore": "overwrite_files", "error": "error",
          "delete_matching": "overwrite_partitions"}  # fmt: skip
_UNUSED = {
    "create_dir", "max_partitions", "max_open_files", "max_rows_per_file", "min_rows_per_group", "preserve_order",
}  # fmt: skip


@arrow_errors()
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

    ``existing_data_behavior``: ``"overwrite_or_ignore"`` (default) adds files, and replaces those of the same names,
    ``"error"`` wants an empty folder, ``"delete_matching"`` replaces the folders that get files, with those below them.
    ``force``: write even into a folder that a table format manages (Delta Lake, Apache Iceberg, Apache Hudi).

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
    names, kind = names_of(partition_cols, partitioning)
    place, storage = located(root_path, filesystem)
    for unused in _UNUSED:
        options.pop(unused, None)
    table = _converted(as_table(table), schema, options)
    if options.pop("use_byte_stream_split", False):
        raise OptionError("use_byte_stream_split is an argument of write_table; give column_encoding here")
    given = write_options(options, [field for field in table.schema if field.name not in names])
    if row_group_size is not None:
        given["row_group_size"] = row_group_size
    template = (basename_template or "{guid}-{i}.parquet").replace("{guid}", "{id}")
    if "{i}" not in template:
        raise OptionError("basename_template did not contain '{i}'")
    mode = _MODES[existing_data_behavior] if names or existing_data_behavior != "delete_matching" else "overwrite"
    report = write_folder(
        table, place, names, mode, FileLimits(), basename_template=template,
        storage_options=storage, force=force, called=ArrowNames(kind) if has_pyarrow() else SPARK_NAMES,
        options=cast("WriteArguments", given),
    )  # fmt: skip
    for file in report.files if collector is not None or file_visitor is not None else ():
        metadata = read_metadata(file.path)
        metadata.set_file_path(os.path.relpath(file.path, os.fspath(place)))
        if collector is not None:
            collector.append(metadata)
        else:
            file_visitor(SimpleNamespace(path=file.path, metadata=metadata, size=os.path.getsize(file.path)))


def _converted(table: Any, schema: Any, options: dict[str, Any]) -> Any:
    """The table in the schema that is written."""
    if not has_pyarrow():
        return table
    int96 = bool(options.get("use_deprecated_int96_timestamps") or options.get("flavor") == "spark")
    if schema is not None:
        table = table.cast(schema)
    wanted = written_schema(
        table.schema, options.get("version", "2.6"), options.pop("flavor", None),
        options.get("coerce_timestamps"), int96,
    )  # fmt: skip
    return converted(table, wanted, bool(options.get("allow_truncated_timestamps")))


@arrow_errors()
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
