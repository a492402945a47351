"""``ParquetDataset``: one file, or many as one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from pyparq.datasets.dataset import Dataset, files_of
from pyparq.errors import ColumnNotFoundError, FilterError, SchemaError
from pyparq.option_checks import as_columns, methods_told
from pyparq.parquet.arguments import (
    check_source,
    check_tuning,
    check_values,
    files_in,
    filters_to_expression,
    folder_rules,
    given_filters,
    is_folder,
    located,
    read_options,
)
from pyparq.parquet.arrow import (
    Asked,
    arrow_errors,
    has_pyarrow,
    index_columns,
    schema_of,
    schema_with_types,
    table_of,
    with_dictionaries,
    with_types,
    without_dictionaries,
)
from pyparq.parquet.file import ParquetFile, known_columns, text_columns
from pyparq.read.file import ParquetFile as OwnFile


@methods_told
class ParquetDataset:
    """One Parquet file, a folder, or a list of files. Arguments and methods are those of pyarrow's class.

    Example::

        import pyparq.parquet as pq

        table = pq.ParquetDataset("flights/", filters=[("month", "=", 2)]).read(columns=["flight"])
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        made = super().__new__(cls)
        made._arguments = arguments, options
        return made

    def __reduce__(self) -> Any:
        """The arguments: the files are opened again where it is unpickled."""
        arguments, options = self._arguments
        return partial(type(self), **options), arguments

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

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
        ignore_prefixes: Sequence[str] | None = None,
        partitioning: Any = "hive",
        coerce_int96_timestamp_unit: str | None = None,
        decryption_properties: Any = None,
        page_checksum_verification: bool = False,
        arrow_extensions_enabled: bool = True,
        schema_depth_limit: int | None = None,
        buffer_size: int = 0,
        **tuning: Any,
    ) -> None:
        check_tuning(ParquetDataset.__init__, tuning)
        self._limits = {name: value for name, value in tuning.items() if name.startswith("thrift")}
        self._filters = given_filters(filters)
        self._given_schema, self._ignored = schema, ignore_prefixes
        self._filesystem = filesystem
        check_source(path_or_paths, buffer_size)
        self._types = Asked(binary_type, list_type, arrow_extensions_enabled, coerce_int96_timestamp_unit == "s")
        self._depth = schema_depth_limit
        self._dictionaries = list(read_dictionary or ())
        self._place, self._storage = located(path_or_paths, filesystem)
        self._options = read_options(coerce_int96_timestamp_unit, decryption_properties, schema_depth_limit)
        self._partitioning = partitioning
        if isinstance(self._place, (list, tuple)) and len(self._place) == 1:
            self._place = self._place[0]
        with arrow_errors():
            self._one = self._single_file()
            self._folder: Any = None if self._one is not None else self._many_files()
        if self._folder is not None:
            self._types = self._types._replace(kept=getattr(schema, "names", self._folder.partitions.names))

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
            **self._limits,
        )  # fmt: skip

    def _many_files(self, schema: Any = None) -> Dataset:
        """``schema``: what to read the files in, where nobody has given one."""
        place: Any = self._place
        root: str | None = None
        if is_folder(place) and self._ignored is not None:
            place, root = files_in(place, self._ignored), place
        rules = folder_rules(self._partitioning, self._place, has_pyarrow() and self._given_schema is None, root)
        given = {"partitioning": rules, "storage_options": self._storage}
        if self._dictionaries:
            whole = Dataset(place, **given)
            first = files_of(whole).open(0) if whole.files else None
            self._options["read_dictionary"] = [] if first is None else text_columns(first.tree, self._dictionaries)
        return Dataset(place, schema=schema or without_dictionaries(self._given_schema), **given, **self._options)

    # ---- schema and files

    @property
    def schema(self) -> Any:
        """pyarrow's schema of the table that :meth:`read` returns."""
        if self._one is not None:
            return self._one.schema_arrow
        return schema_with_types(schema_of(self._folder.schema), self._types.of(self._metadata()))

    @property
    def files(self) -> list[str]:
        """Paths of the files."""
        if self._one is not None:
            return [os.fspath(self._place)] if isinstance(self._place, str) else []
        return list(self._folder.files)

    @property
    def fragments(self) -> list[Any]:
        """pyarrow's fragments of the files, for use with :mod:`pyarrow.dataset`."""
        return list(self._dataset.get_fragments())

    @property
    def _dataset(self) -> Any:
        """pyarrow's dataset of the files, which some programs reach for. pyarrow reads it."""
        import pyarrow.dataset as ds

        return ds.dataset(self.files, format="parquet", partitioning=self._partitioning, schema=self._given_schema)

    @property
    def filesystem(self) -> Any:
        if self._filesystem is not None:
            return self._filesystem
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    partitioning = property(lambda self: self._partitioning)

    def equals(self, other: object) -> bool:
        return isinstance(other, ParquetDataset) and self.files == other.files and self.schema == other.schema

    __eq__ = equals

    __hash__ = None  # type: ignore[assignment]

    # ---- rows

    def read(
        self, columns: Sequence[str] | None = None, use_threads: bool = True, use_pandas_metadata: bool = False
    ) -> Any:
        """The rows that the filters leave, as a table.

        Raises pyarrow's ``ArrowInvalid`` for columns that do not exist.
        """
        check_values(self._filters)
        with arrow_errors():
            wanted = None if columns is None else as_columns(columns)
            if wanted is not None and use_pandas_metadata:
                wanted += [name for name in index_columns(self._metadata()) if name not in wanted]
            if wanted is None or len(set(wanted)) == len(wanted):
                made = self._finished(self._read(wanted))
                return self._with_pandas(made) if use_pandas_metadata else made
            once = self._finished(self._read(list(dict.fromkeys(wanted))))
            return once.select(wanted)

    def read_pandas(self, columns: Sequence[str] | None = None, use_threads: bool = True) -> Any:
        return self.read(columns, use_threads, use_pandas_metadata=True)

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
        first = files_of(self._folder).open(0) if self._folder.files else None
        found = {} if first is None else dict(first.key_values)
        for name in ("_common_metadata", "_metadata"):
            summary = os.path.join(self._place, name) if isinstance(self._place, str) else ""
            if b"pandas" not in found and os.path.isfile(summary):
                with OwnFile(summary) as file:
                    found = {**file.key_value_metadata, **found}
        return found

    def _read(self, wanted: list[str] | None) -> Any:
        try:
            return self._read_by(wanted, self._filters, None)
        except FilterError:
            if not has_pyarrow():
                raise
            # A part that pyparq does not know: pyarrow tests the rows.
            return self._read_by(wanted, None, filters_to_expression(self._filters))
        except ColumnNotFoundError:
            raise
        except SchemaError:
            if self._one is not None or self._given_schema is not None:
                raise
            # The types of some files have no common one. Those of the first file count, as in pyarrow.
            first: Any = files_of(self._folder).open(0)
            self._folder = self._many_files(first.fields.schema)
            return self._read_by(wanted, self._filters, None)

    def _read_by(self, wanted: list[str] | None, own_filters: Any, later: Any) -> Any:
        """The rows that pyparq's filter and then pyarrow's expression leave."""
        columns = wanted if later is None else None
        if self._one is not None:
            own = self._one._own
            names = None if columns is None else _all_known(own.tree, columns)
            table = table_of(own.read(names, own_filters))
        else:
            table = table_of(self._folder.read(columns, own_filters))
        kept = table if later is None else table.filter(later)
        return kept if wanted is None else _selected(kept, wanted)

    def _finished(self, table: Any) -> Any:
        if not has_pyarrow():
            return table
        if without_dictionaries(self._given_schema) is not self._given_schema:
            table = with_dictionaries(table, self._given_schema)
        return with_types(table, self._types.of(self._metadata()))


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


def _all_known(tree: Any, wanted: Sequence[str]) -> Any:
    """The columns in the order of ``wanted``. Raises what an unknown one raises."""
    if all((name,) in {(child.name,) for child in tree.root.children} for name in wanted):
        return [(name,) for name in wanted]
    for name in wanted:
        tree.find(name)
    return known_columns(tree, wanted)


@arrow_errors()
def read_table(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    use_threads: bool = True,
    schema: Any = None,
    use_pandas_metadata: bool = False,
    **options: Any,
) -> Any:
    """A file, a folder or a list of files as a table.

    ``source``: a path, a folder, a list of paths, a file object or a buffer. ``columns``: names, or paths such as
    ``"a.b"``. ``schema``: pyarrow's, which all files are read in. ``use_pandas_metadata``: read the columns of pandas'
    index too. ``options``: those of :class:`ParquetDataset`, with ``filters``, ``partitioning`` and ``filesystem``.

    Example::

        import pyparq.parquet as pq

        table = pq.read_table("flights.parquet", columns=["flight"], filters=[("dest", "==", "LAX")])
    """
    return ParquetDataset(source, schema=schema, **options).read(columns, use_threads, use_pandas_metadata)


def read_pandas(source: Any, columns: Sequence[str] | None = None, **options: Any) -> Any:
    """``read_table`` with the columns of pandas' index.

    Example::

        import pyparq.parquet as pq

        frame = pq.read_pandas("flights.parquet", columns=["flight"]).to_pandas()
    """
    return read_table(source, columns=columns, use_pandas_metadata=True, **options)
