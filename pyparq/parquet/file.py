"""``ParquetFile`` as pyarrow has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from pyparq.column_names import ColumnName
from pyparq.option_checks import as_columns, methods_told
from pyparq.parquet.arguments import check_footer, check_source, check_tuning, is_folder, located, read_options
from pyparq.parquet.arrow import (
    Asked,
    arrow_errors,
    even_batches,
    has_pyarrow,
    index_columns,
    schema_of,
    schema_with_types,
    table_of,
    with_types,
)
from pyparq.parquet.metadata import FileMetaData
from pyparq.read.file import ParquetFile as OwnFile


@methods_told
class ParquetFile:
    """One Parquet file. The arguments and methods are those of ``pyarrow.parquet.ParquetFile``.

    ``memory_map``, ``buffer_size``, ``pre_buffer`` and others that tune pyarrow are taken and change nothing.

    Example::

        import pyparq.parquet as pq

        with pq.ParquetFile("flights.parquet") as file:
            for batch in file.iter_batches(batch_size=1000, columns=["flight"]):
                print(batch.num_rows)
    """

    def __init__(
        self,
        source: Any,
        *,
        metadata: FileMetaData | None = None,
        common_metadata: FileMetaData | None = None,
        read_dictionary: Sequence[str] | None = None,
        binary_type: Any = None,
        list_type: Any = None,
        coerce_int96_timestamp_unit: str | None = None,
        decryption_properties: Any = None,
        filesystem: Any = None,
        page_checksum_verification: bool = False,
        arrow_extensions_enabled: bool = True,
        schema_depth_limit: int | None = None,
        buffer_size: int = 0,
        **tuning: Any,
    ) -> None:
        check_tuning(ParquetFile.__init__, tuning)
        asked = Asked(binary_type, list_type, arrow_extensions_enabled, coerce_int96_timestamp_unit == "s")
        check_source(source, buffer_size)
        place, storage = located(source, filesystem)
        options = read_options(coerce_int96_timestamp_unit, decryption_properties, schema_depth_limit)
        if is_folder(place):
            raise IsADirectoryError(f"Cannot open for reading: path '{place}' is a directory")
        self.common_metadata = common_metadata
        self._metadata = metadata
        self._closed = False
        with arrow_errors():
            self._own = OwnFile(place, storage_options=storage, **options)
            known = text_columns(self._own.tree, read_dictionary or ())
            if known:
                self._own = OwnFile(place, storage_options=storage, read_dictionary=known, **options)
            check_footer(self._own, tuning)
        self._types = asked.of(self._own.key_value_metadata)
        self._handle = place if hasattr(place, "closed") else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def close(self, force: bool = False) -> None:
        """Close the file. A file object that was given stays open, unless ``force``."""
        self._own.close()
        self._closed = True
        if force and self._handle is not None:
            self._handle.close()

    @property
    def closed(self) -> bool:
        """Whether the file is closed. A file object that was given stays open until you close it."""
        return self._closed if self._handle is None else bool(self._handle.closed)

    @property
    def metadata(self) -> FileMetaData:
        if self._metadata is None:
            found = self._own.metadata
            self._metadata = FileMetaData(found.raw, found.serialized_size)
        return self._metadata

    reader = property(lambda self: self)
    schema = property(lambda self: self.metadata.schema)
    num_row_groups = property(lambda self: self._own.num_row_groups)

    @property
    def schema_arrow(self) -> Any:
        """pyarrow's schema of the table that :meth:`read` returns."""
        return schema_with_types(schema_of(self._own.schema_arrow), self._types)

    def _table(self, table: Any) -> Any:
        return with_types(table_of(table), self._types)

    def _names(self, columns: Sequence[str] | None, use_pandas_metadata: bool) -> list[ColumnName] | None:
        """The columns that the file has of these. Other names are passed over, as pyarrow does."""
        if columns is None:
            return None
        wanted: list[str] = [name for name in as_columns(columns) if name is not None]
        if use_pandas_metadata:
            wanted += [name for name in index_columns(self._own.key_value_metadata) if name not in wanted]
        return known_columns(self._own.tree, wanted)

    def read(
        self, columns: Sequence[str] | None = None, use_threads: bool = True, use_pandas_metadata: bool = False
    ) -> Any:
        """All rows as a table."""
        with arrow_errors():
            return self._table(self._own.read(self._names(columns, use_pandas_metadata)))

    def read_row_group(
        self, i: int, columns: Sequence[str] | None = None, use_threads: bool = True, use_pandas_metadata: bool = False
    ) -> Any:
        """The rows of one row group as a table."""
        return self.read_row_groups([i], columns, use_threads, use_pandas_metadata)

    def read_row_groups(
        self,
        row_groups: Sequence[int],
        columns: Sequence[str] | None = None,
        use_threads: bool = True,
        use_pandas_metadata: bool = False,
    ) -> Any:
        """The rows of these row groups as a table."""
        for i in row_groups:
            self.metadata.row_group(i)  # or an error
        with arrow_errors():
            return self._table(self._own.read_row_groups(row_groups, self._names(columns, use_pandas_metadata)))

    def iter_batches(
        self,
        batch_size: int = 65536,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        use_threads: bool = True,
        use_pandas_metadata: bool = False,
    ) -> Iterator[Any]:
        """The rows as record batches of ``batch_size`` rows; the last one may have fewer."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        names = self._names(columns, use_pandas_metadata)
        return self._batches(int(batch_size), row_groups, names)

    def _batches(self, size: int, row_groups: Sequence[int] | None, names: list[ColumnName] | None) -> Iterator[Any]:
        with arrow_errors():
            pieces = (table_of(batch) for batch in self._own.iter_batches(size, row_groups, names))
            for batch in even_batches(pieces, size) if has_pyarrow() else pieces:
                yield with_types(batch, self._types)

    def read_column(self, i: int) -> Any:
        """The leaf column number ``i``."""
        if not 0 <= i < self.metadata.num_columns:
            raise IndexError(f"there is no column {i}: the file has {self.metadata.num_columns}")
        return self.read(columns=[self.schema.column(i).path]).column(0)

    def scan_contents(self, columns: Sequence[str] | None = None, batch_size: int = 65536) -> int:
        """Read all values of the columns, and return the number of rows."""
        return sum(batch.num_rows for batch in self.iter_batches(batch_size, columns=columns))


def text_columns(tree: Any, wanted: Sequence[str]) -> list[ColumnName]:
    """The columns of text and bytes among these."""
    found = set(wanted)
    return [
        leaf.path
        for leaf in tree.leaves
        if (leaf.dotted in found or leaf.path[0] in found) and leaf.type.is_binary and leaf.type.kind != "decimal"
    ]


def known_columns(tree: Any, wanted: Sequence[str]) -> list[ColumnName]:
    """The leaves that the names stand for: columns, or paths as ``path_in_schema`` has them. Columns are in the order
    of the names, and the leaves of one column in that of the file.

    A name stands for all leaves below it. Names that the file does not have are passed over.
    """
    asked: dict[tuple[str, ...], int] = {}
    for place, name in enumerate(wanted):
        asked.setdefault((name,), place)
        asked.setdefault(tuple(name.split(".")), place)
    found: list[tuple[int, list[ColumnName]]] = []
    for child in tree.root.children:
        paths = [(child.name,)] if (child.name,) in asked else [leaf.path for leaf in child.leaves()]
        places = {path: [asked[path[:k]] for k in range(1, len(path) + 1) if path[:k] in asked] for path in paths}
        named = [path for path in paths if places[path]]
        if named:
            found.append((min(min(places[path]) for path in named), [*named]))
    return [path for _, paths in sorted(found, key=lambda column: column[0]) for path in paths]


@arrow_errors()
def read_metadata(
    where: Any, memory_map: bool = False, decryption_properties: Any = None, filesystem: Any = None, **tuning: Any
) -> FileMetaData:
    """The metadata of one file.

    Example::

        import pyparq.parquet as pq

        print(pq.read_metadata("flights.parquet").row_group(0).column(0).statistics)
    """
    with ParquetFile(where, decryption_properties=decryption_properties, filesystem=filesystem, **tuning) as file:
        return file.metadata


@arrow_errors()
def read_schema(
    where: Any, memory_map: bool = False, decryption_properties: Any = None, filesystem: Any = None, **tuning: Any
) -> Any:
    """The schema of one file as pyarrow's.

    Example::

        import pyparq.parquet as pq

        print(pq.read_schema("flights.parquet").names)
    """
    with ParquetFile(where, decryption_properties=decryption_properties, filesystem=filesystem, **tuning) as file:
        return file.schema_arrow
