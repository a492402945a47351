"""``ParquetWriter`` as pyarrow has it."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from pyparq.errors import OptionError
from pyparq.format.thrift_codec import serialize
from pyparq.parquet.arrow import arrow_errors, has_pyarrow
from pyparq.parquet.file import ParquetFile
from pyparq.parquet.metadata import FileMetaData
from pyparq.parquet.options import write_options
from pyparq.parquet.prepared import converted, written_schema
from pyparq.parquet.sources import located
from pyparq.write.file import ParquetWriter as OwnWriter

_MOST_ROWS = 64 << 20
_USUAL_ROWS = 1 << 20


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
        self.where = where
        self.schema = schema
        self.is_open = False
        self._collector = metadata_collector
        self._allow_truncated = allow_truncated_timestamps
        place, storage = located(where, filesystem)
        self._place, self._storage = place, storage
        with arrow_errors():
            if has_pyarrow() and hasattr(schema, "field"):
                self.schema = written_schema(_as_pyarrow(schema), version, flavor, coerce_timestamps, int96)
            given = write_options({**options, "use_deprecated_int96_timestamps": int96})
            streams = given.pop("use_byte_stream_split", False)
            if streams:
                given["column_encoding"] = _streams(streams, self.schema, given)
            self._own = OwnWriter(place, self.schema, storage_options=storage, force=force, **given)
        self.is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        if has_pyarrow():
            import pyarrow as pa

            batch = pa.Table.from_batches([batch], batch.schema) if isinstance(batch, pa.RecordBatch) else batch
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
        size = min(int(row_group_size or _USUAL_ROWS), _MOST_ROWS)
        with arrow_errors():
            self._own.write(self._converted(table), row_group_size=size)
            self._own.flush()

    def _converted(self, table: Any) -> Any:
        if not has_pyarrow():
            return table
        import pyarrow as pa

        if not isinstance(table, pa.Table):
            return table
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

    def _metadata(self) -> Any:
        if _is_path(self._place):
            with ParquetFile(self._place) as file:
                return file.metadata
        found = self._own.metadata
        return None if found is None else FileMetaData(found, len(serialize(found)))


def _is_path(where: Any) -> bool:
    return isinstance(where, str) or hasattr(where, "__fspath__")


def _as_pyarrow(schema: Any) -> Any:
    import pyarrow as pa

    return schema if isinstance(schema, pa.Schema) else pa.schema(schema)


def _streams(given: Any, schema: Any, options: dict[str, Any]) -> dict[str, str]:
    """``use_byte_stream_split`` as encodings: for all columns without a dictionary, or for the named columns."""
    encodings = dict(options.get("column_encoding") or {})
    if given is True:
        names = [f.name for f in schema if str(f.type) in ("float", "double")]
        plain = options.get("use_dictionary", True)
        names = [name for name in names if plain is not True and (plain is False or name not in plain)]
    else:
        names = list(given)
    return {**dict.fromkeys(names, "BYTE_STREAM_SPLIT"), **encodings}
