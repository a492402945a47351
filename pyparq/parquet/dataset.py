"""``ParquetDataset``: one file, or many as one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pyparq.datasets.dataset import Dataset, files_of
from pyparq.errors import FilterError
from pyparq.parquet.arrow import arrow_errors, has_pyarrow, schema_of, table_of
from pyparq.parquet.file import ParquetFile, known_columns, text_columns
from pyparq.parquet.filters import checked, is_expression
from pyparq.parquet.options import TUNING_OF_READS, read_options
from pyparq.parquet.pandas_index import index_columns
from pyparq.parquet.sources import check_source, is_folder, located
from pyparq.parquet.types import asked_of, with_asked_types, with_types
from pyparq.read.file import ParquetFile as OwnFile


class ParquetDataset:
    """One Parquet file, a folder, or a list of files. Arguments and methods are those of pyarrow's class.

    Example::

        import pyparq.parquet as pq

        table = pq.ParquetDataset("flights/", filters=[("month", "=", 2)]).read(columns=["flight"])
    """

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
        arrow_extensions_enabled: bool = True,
        schema_depth_limit: int | None = None,
        buffer_size: int = 0,
        **tuning: Any,
    ) -> None:
        unknown = tuning.keys() - set(TUNING_OF_READS)
        if unknown:
            raise TypeError(f"ParquetDataset() got an unexpected keyword argument {min(unknown)!r}")
        self._filters = checked(filters)
        self._given_schema = schema
        self._filesystem = filesystem
        check_source(path_or_paths, buffer_size)
        self._asked = binary_type, list_type, arrow_extensions_enabled
        self._depth = schema_depth_limit
        self._dictionaries = list(read_dictionary or ())
        self._place, self._storage = located(path_or_paths, filesystem)
        self._options = read_options(
            None, coerce_int96_timestamp_unit, decryption_properties, page_checksum_verification, schema_depth_limit
        )
        self._partitioning = _partitioning(partitioning, self._place)
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
            self._place, read_dictionary=self._dictionaries,
            coerce_int96_timestamp_unit=self._options.get("coerce_int96_timestamp_unit"),
            decryption_properties=self._options.get("decryption"), schema_depth_limit=self._depth,
        )  # fmt: skip

    def _open(self) -> Dataset:
        if self._dataset is None:
            if self._dictionaries:
                whole = Dataset(self._place, partitioning=self._partitioning, storage_options=self._storage)
                first = files_of(whole).open(0) if whole.files else None
                self._options["read_dictionary"] = [] if first is None else text_columns(first.tree, self._dictionaries)
            self._dataset = Dataset(
                self._place, schema=self._given_schema, partitioning=self._partitioning,
                storage_options=self._storage, **self._options,
            )  # fmt: skip
        return self._dataset

    # ---- schema and files

    @property
    def schema(self) -> Any:
        """pyarrow's schema of the table that :meth:`read` returns."""
        if self._one is not None:
            return self._one.schema_arrow
        schema = self._in_dictionaries(schema_of(self._open().schema))
        return with_asked_types(schema, *asked_of(self._metadata(), *self._asked))

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
            if wanted is None or len(set(wanted)) == len(wanted):
                made = self._finished(self._read(wanted))
                return self._with_pandas(made) if use_pandas_metadata else made
            once = self._finished(self._read(list(dict.fromkeys(wanted))))
            return once.select(wanted)

    def read_pandas(self, columns: Sequence[str] | None = None, use_threads: bool = True) -> Any:
        return self.read(columns, use_threads, use_pandas_metadata=True)

    def _index_columns(self) -> list[str]:
        return index_columns(self._metadata())

    def _with_pandas(self, table: Any) -> Any:
        """The table with what the folder's summary says about pandas' frame, where its files say nothing."""
        found = self._metadata().get(b"pandas")
        own = dict(table.schema.metadata or {})
        if found is None or b"pandas" in own or not has_pyarrow():
            return table
        return table.replace_schema_metadata({**own, b"pandas": found})

    def _metadata(self) -> Any:
        """Key-value metadata: that of the file, or of the folder's summary where the files have none of pandas'."""
        if self._one is not None:
            return self._one._own.key_value_metadata
        first = files_of(self._open()).open(0) if self._open().files else None
        found = {} if first is None else dict(first.key_values)
        for name in ("_common_metadata", "_metadata"):
            summary = os.path.join(self._place, name) if isinstance(self._place, str) else ""
            if b"pandas" not in found and os.path.isfile(summary):
                with OwnFile(summary) as file:
                    found = {**file.key_value_metadata, **found}
        return found

    def _read(self, wanted: list[str] | None) -> Any:
        if not is_expression(self._filters):
            return self._read_by(wanted, self._filters, None)
        try:
            return self._read_by(wanted, self._filters, None)
        except FilterError:  # it has a part that pyparq does not know: pyarrow looks at the rows
            return self._read_by(wanted, None, self._filters)

    def _read_by(self, wanted: list[str] | None, own_filters: Any, later: Any) -> Any:
        """The rows that pyparq's filter and then pyarrow's expression leave."""
        columns = wanted if later is None else None
        if self._one is not None:
            own = self._one._own
            names = None if columns is None else _all_known(own.schema, columns)
            table = table_of(own.read(names, own_filters))
        else:
            dataset = self._open()
            table = table_of(dataset.read(columns, own_filters))
        kept = table if later is None else table.filter(later)
        return kept if wanted is None else _selected(kept, wanted)

    def _finished(self, table: Any) -> Any:
        if not has_pyarrow():
            return table
        if self._one is None:
            schema = table.schema
            wanted = self._in_dictionaries(schema)
            if wanted is not schema:
                table = _encoded(table, wanted)
        return with_types(table, *asked_of(self._metadata(), *self._asked))

    def _in_dictionaries(self, schema: Any) -> Any:
        """The schema with partition columns as pyarrow has them: dictionaries of text or of int32."""
        names = set(self._open().partitions.names) if self._given_schema is None else set()
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


def _selected(table: Any, wanted: Sequence[str]) -> Any:
    """The columns in the order of ``wanted``. A path such as ``"a.b"`` is a column of its own, called ``b``."""
    if not has_pyarrow() or all(name in table.column_names for name in wanted):
        return table.select(wanted)
    import pyarrow as pa
    import pyarrow.compute as pc

    columns, names = [], []
    for name in wanted:
        if name in table.column_names:
            columns.append(table[name])
            names.append(name)
            continue
        top, *path = name.split(".")
        columns.append(pc.struct_field(table[top], path))
        names.append(path[-1])
    return pa.table(columns, names=names).replace_schema_metadata(table.schema.metadata)


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


def _partitioning(given: Any, place: Any) -> Any:
    """pyarrow's partitioning as pyparq's. A factory of pyarrow's looks at the folders."""
    if given is None or isinstance(given, (str, list)):
        return given
    schema = getattr(given, "schema", None)
    if schema is None and isinstance(place, str) and type(given).__module__.startswith("pyarrow"):
        schema = _inspected(given, place)
    kind = getattr(given, "type_name", type(given).__name__)
    if schema is not None and kind in ("directory", "DirectoryPartitioning"):
        return [field.name for field in schema]
    if schema is not None:
        return {field.name: field.type for field in schema}
    return "hive"


def _inspected(factory: Any, place: str) -> Any:
    """The partition columns that a factory of pyarrow's finds in the folders."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    own = set(Dataset(place, partitioning=None).schema.names)
    whole = ds.dataset(place, format="parquet", partitioning=factory).schema
    return pa.schema([field for field in whole if field.name not in own])
