"""``ParquetDataset``: one file, or many as one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pyparq.datasets.read.dataset import Dataset
from pyparq.parquet.arrow import arrow_errors, has_pyarrow, schema_of, table_of
from pyparq.parquet.file import ParquetFile, known_columns
from pyparq.parquet.filters import checked, is_expression
from pyparq.parquet.options import TUNING_OF_READS, read_options
from pyparq.parquet.pandas_index import index_columns
from pyparq.parquet.sources import is_folder, located
from pyparq.parquet.types import with_asked_types


class ParquetDataset:
    """One Parquet file, a folder, or a list of files. Arguments and methods are those of pyarrow's class."""

    def __init__(
        self,
        path_or_paths: Any,
        filesystem: Any = None,
        schema: Any = None,
        *,
        filters: Any = None,
        read_dictionary: Sequence[str] | None = None,
        binary_type: Any = None,
        list_type: Any = None,
        partitioning: Any = "hive",
        coerce_int96_timestamp_unit: str | None = None,
        decryption_properties: Any = None,
        page_checksum_verification: bool = False,
        **tuning: Any,
    ) -> None:
        unknown = tuning.keys() - set(TUNING_OF_READS)
        if unknown:
            raise TypeError(f"ParquetDataset() got an unexpected keyword argument {min(unknown)!r}")
        self._filters = checked(filters)
        self._given_schema = schema
        self._filesystem = filesystem
        self._asked = binary_type, list_type
        self._place, self._storage = located(path_or_paths, filesystem)
        self._options = read_options(
            read_dictionary, coerce_int96_timestamp_unit, decryption_properties, page_checksum_verification
        )
        self._partitioning = _partitioning(partitioning)
        self._dataset: Dataset | None = None
        if isinstance(self._place, (list, tuple)) and len(self._place) == 1:
            self._place = self._place[0]
        with arrow_errors():
            self._one = self._single_file()
            if self._one is None:
                self._open()

    def _single_file(self) -> ParquetFile | None:
        if isinstance(self._place, (list, tuple)) or is_folder(self._place) or self._given_schema is not None:
            return None
        if isinstance(self._place, str) and "://" in self._place:
            return None
        if isinstance(self._place, str) and not os.path.exists(self._place):
            raise FileNotFoundError(self._place)
        return ParquetFile(
            self._place, read_dictionary=self._options.get("read_dictionary"),
            coerce_int96_timestamp_unit=self._options.get("coerce_int96_timestamp_unit"),
            decryption_properties=self._options.get("decryption"),
        )  # fmt: skip

    def _open(self) -> Dataset:
        if self._dataset is None:
            self._dataset = Dataset(
                self._place, schema=self._given_schema, partitioning=self._partitioning,
                storage_options=self._storage, **self._options,
            )  # fmt: skip
        return self._dataset

    # ---- what it is

    @property
    def schema(self) -> Any:
        """pyarrow's schema of the table that :meth:`read` returns."""
        if self._one is not None:
            return with_asked_types(self._one.schema_arrow, *self._asked)
        return with_asked_types(self._in_dictionaries(schema_of(self._open().schema)), *self._asked)

    @property
    def files(self) -> list[str]:
        """Paths of the files."""
        if self._one is not None:
            return [os.fspath(self._place)] if isinstance(self._place, str) else []
        return list(self._open().files)

    @property
    def fragments(self) -> list[Any]:
        """pyarrow's fragments of the files, for use with :mod:`pyarrow.dataset`."""
        import pyarrow.dataset as ds

        made = ds.dataset(self.files, format="parquet", partitioning=None)
        return list(made.get_fragments())

    @property
    def filesystem(self) -> Any:
        if self._filesystem is not None:
            return self._filesystem
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    @property
    def partitioning(self) -> Any:
        return self._partitioning

    def equals(self, other: object) -> bool:
        return isinstance(other, ParquetDataset) and self.files == other.files and self.schema == other.schema

    def __eq__(self, other: object) -> bool:
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    # ---- rows

    def read(
        self, columns: Sequence[str] | None = None, use_threads: bool = True, use_pandas_metadata: bool = False
    ) -> Any:
        """The rows that the filters leave, as a table.

        Raises pyarrow's ``ArrowInvalid`` for columns that do not exist.
        """
        with arrow_errors():
            wanted = None if columns is None else list(columns)
            if wanted is not None and use_pandas_metadata:
                wanted += [name for name in self._index_columns() if name not in wanted]
            made = self._read(wanted)
            return self._finished(made)

    def read_pandas(self, columns: Sequence[str] | None = None, use_threads: bool = True) -> Any:
        return self.read(columns, use_threads, use_pandas_metadata=True)

    def _index_columns(self) -> list[str]:
        metadata = self._one._own.key_value_metadata if self._one is not None else self._open().schema.metadata
        return index_columns(metadata)

    def _read(self, wanted: list[str] | None) -> Any:
        filters = self._filters
        later = filters if is_expression(filters) else None
        own_filters = None if later is not None else filters
        columns = wanted if later is None else None
        if self._one is not None:
            own = self._one._own
            names = None if columns is None else _all_known(own.schema, columns)
            table = table_of(own.read(names, own_filters))
        else:
            dataset = self._open()
            table = table_of(dataset.read(columns, own_filters))
        if later is None:
            return table
        kept = table.filter(later)
        return kept if wanted is None else kept.select(wanted)

    def _finished(self, table: Any) -> Any:
        if not has_pyarrow():
            return table
        if self._one is None:
            wanted = self._in_dictionaries(table.schema)
            if wanted is not table.schema:
                table = _encoded(table, wanted)
        wanted = with_asked_types(table.schema, *self._asked)
        return table if wanted is table.schema else table.cast(wanted)

    def _in_dictionaries(self, schema: Any) -> Any:
        """The schema with partition columns as pyarrow has them: dictionaries of text or of int32."""
        names = {field.name for field in self._open().partition_values.fields} if self._given_schema is None else set()
        if not names or not has_pyarrow() or self._partitioning is None:
            return schema
        import pyarrow as pa

        fields = []
        for field in schema:
            type_ = field.type
            if field.name in names and not pa.types.is_dictionary(type_):
                value = pa.int32() if pa.types.is_integer(type_) else pa.string()
                field = field.with_type(pa.dictionary(pa.int32(), value)).with_nullable(True)
            fields.append(field)
        return pa.schema(fields, schema.metadata)


def _encoded(table: Any, schema: Any) -> Any:
    import pyarrow as pa

    columns = [
        column if column.type == field.type else column.cast(field.type.value_type).dictionary_encode().cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _all_known(tree: Any, wanted: Sequence[str]) -> Any:
    """The columns in the order of ``wanted``. Raises what an unknown one raises."""
    if all((name,) in {(child.name,) for child in tree.root.children} for name in wanted):
        return [(name,) for name in wanted]
    for name in wanted:
        tree.find(name)
    return known_columns(tree, wanted)


def _partitioning(given: Any) -> Any:
    """pyarrow's partitioning as pyparq's."""
    if given is None or isinstance(given, (str, list)):
        return given
    schema = getattr(given, "schema", None)
    kind = getattr(given, "type_name", type(given).__name__)
    if schema is not None and kind in ("directory", "DirectoryPartitioning"):
        return [field.name for field in schema]
    if schema is not None:
        return {field.name: field for field in schema}
    return "hive"
