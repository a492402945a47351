"""``ParquetFile`` as pyarrow has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from pyparq.column_names import ColumnName
from pyparq.parquet.arrow import arrow_errors, schema_of, table_of
from pyparq.parquet.metadata import FileMetaData
from pyparq.parquet.options import TUNING_OF_READS, read_options
from pyparq.parquet.pandas_index import index_columns
from pyparq.parquet.schema import ParquetSchema
from pyparq.parquet.sources import located
from pyparq.parquet.types import with_asked_types
from pyparq.read.file import ParquetFile as OwnFile


class ParquetFile:
    """One Parquet file. The arguments and methods are those of ``pyarrow.parquet.ParquetFile``.

    ``memory_map``, ``buffer_size``, ``pre_buffer``, ``thrift_string_size_limit``, ``thrift_container_size_limit`` and
    others that tune pyarrow are taken and change nothing.
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
        **tuning: Any,
    ) -> None:
        unknown = tuning.keys() - set(TUNING_OF_READS)
        if unknown:
            raise TypeError(f"ParquetFile() got an unexpected keyword argument {min(unknown)!r}")
        self._asked = binary_type, list_type
        place, storage = located(source, filesystem)
        options = read_options(
            read_dictionary, coerce_int96_timestamp_unit, decryption_properties, page_checksum_verification
        )
        self.common_metadata = common_metadata
        self._metadata = metadata
        self._closed = False
        with arrow_errors():
            self._own = OwnFile(place, storage_options=storage, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, force: bool = False) -> None:
        """Close the file. A file object that was given stays open, unless ``force``."""
        self._own.close()
        self._closed = True

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def metadata(self) -> FileMetaData:
        if self._metadata is None:
            opened = self._own._file
            self._metadata = FileMetaData(opened.footer.full(), len(opened.footer.stored), opened.options)
        return self._metadata

    @property
    def schema(self) -> ParquetSchema:
        return self.metadata.schema

    @property
    def schema_arrow(self) -> Any:
        """pyarrow's schema of the table that :meth:`read` returns."""
        return with_asked_types(schema_of(self._own.schema_arrow), *self._asked)

    @property
    def num_row_groups(self) -> int:
        return self._own.num_row_groups

    def _table(self, table: Any) -> Any:
        made = table_of(table)
        wanted = with_asked_types(made.schema, *self._asked)
        return made if wanted is made.schema else made.cast(wanted)

    def _names(self, columns: Sequence[str] | None, use_pandas_metadata: bool) -> list[ColumnName] | None:
        """The columns that the file has of these. Other names are passed over, as pyarrow does."""
        if columns is None:
            return None
        wanted: list[str] = list(columns)
        if use_pandas_metadata:
            wanted += [name for name in index_columns(self._own.key_value_metadata) if name not in wanted]
        return known_columns(self._own.schema, wanted)

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
            if not 0 <= i < self.num_row_groups:
                raise IndexError(f"there is no row group {i}: the file has {self.num_row_groups}")
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
        """The rows as record batches of at most ``batch_size`` rows."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        names = self._names(columns, use_pandas_metadata)
        with arrow_errors():
            for batch in self._own.iter_batches(batch_size, row_groups, names):
                yield from self._batches(batch)

    def _batches(self, batch: Any) -> Iterator[Any]:
        made = table_of(batch)
        if made is batch:
            yield batch
        else:
            wanted = with_asked_types(made.schema, *self._asked)
            yield made if wanted is made.schema else made.cast(wanted)

    def scan_contents(self, columns: Sequence[str] | None = None, batch_size: int = 65536) -> int:
        """Read all values of the columns, and return the number of rows."""
        return sum(batch.num_rows for batch in self.iter_batches(batch_size, columns=columns))


def known_columns(tree: Any, wanted: Sequence[str]) -> list[ColumnName]:
    """The leaves that the names stand for, in the order of the file: columns, or paths as ``path_in_schema`` has them.

    A name stands for all leaves below it. Names that the file does not have are passed over.
    """
    asked = {tuple(name.split(".")) for name in wanted} | {(name,) for name in wanted}
    found: list[ColumnName] = []
    for child in tree.root.children:
        if (child.name,) in asked:
            found.append((child.name,))
            continue
        found += [
            leaf.path for leaf in child.leaves() if any(leaf.path[:k] in asked for k in range(1, len(leaf.path) + 1))
        ]
    return found
