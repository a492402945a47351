"""A polars LazyFrame over files: polars says which columns and rows it needs, and no others are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyparq.arrow.table import Table
from pyparq.datasets.dataset import Dataset
from pyparq.datasets.write.write_dataset import write_dataset
from pyparq.errors import FilterError, OptionError, UnsupportedError
from pyparq.filters.expression import Expression
from pyparq.filters.polars_expressions import as_filters
from pyparq.options import ReadOptions, with_options
from pyparq.read.file import ParquetFile
from pyparq.read.scan import BATCH_ROWS
from pyparq.runtime.messages import requirement
from pyparq.write.file import write_table

if TYPE_CHECKING:
    import polars


def scan(
    source: Any,
    *,
    n_rows: int | None = None,
    row_index_name: str | None = None,
    row_index_offset: int = 0,
    **options: Any,
) -> polars.LazyFrame:
    """A polars LazyFrame over a file, a folder, a glob, a URL, a list of these, or a :class:`pyparq.Dataset`.

    When polars runs a query, it tells which columns and how many rows it needs, and for which filter. Statistics, Bloom
    filters, dictionaries and page indexes then rule out row groups and pages, as in :meth:`pyparq.Dataset.scan`. Parts
    of a filter that pyparq cannot evaluate are left to polars; the result is the same.

    ``n_rows``: the first rows alone. ``row_index_name``: a column in front that counts rows from ``row_index_offset``.
    ``options``: the arguments of :func:`pyparq.dataset`; none for a :class:`pyparq.Dataset`.

    Only footers are read before the query runs. Raises :class:`pyparq.UnsupportedError` without polars, and what
    :func:`pyparq.dataset` raises.

    Example::

        import polars as pl
        import pyparq.polars

        flights = pyparq.polars.scan("flights/")
        print(flights.filter(pl.col("dest") == "LAX").select("flight").collect())
    """
    if "include_file_paths" in options:
        options["filename"] = options.pop("include_file_paths")
    if isinstance(source, Dataset) and options:
        raise OptionError(f"{min(options)} belongs to the dataset: give it to pyparq.dataset")
    frame = _Source(source if isinstance(source, Dataset) else Dataset(source, **options)).lazy_frame()
    frame = frame if n_rows is None else frame.head(n_rows)
    return frame if row_index_name is None else frame.with_row_index(row_index_name, row_index_offset)


scan.__doc__ = with_options(scan.__doc__, ReadOptions)
scan_parquet = scan  # polars' name


def read_parquet(source: Any, *, columns: Any = None, **options: Any) -> polars.DataFrame:
    """A DataFrame, as ``polars.read_parquet`` returns it. ``columns``: names, or numbers from 0; one
    that is not there is a :class:`pyparq.ColumnNotFoundError`. ``options``: those of ``pyparq.polars.scan``.

    Example::

        import pyparq.polars

        frame = pyparq.polars.read_parquet("flights.parquet", columns=["flight"], n_rows=10)
    """
    rows, offset = options.pop("row_index_name", None), options.pop("row_index_offset", 0)  # beside any columns
    frame = scan(source, **options)
    if columns is not None:
        every = Table.from_pydict({name: [] for name in frame.collect_schema()})
        frame = frame.select(every.select(columns).column_names)
    return (frame if rows is None else frame.with_row_index(rows, offset)).collect()


def write_parquet(frame: Any, file: Any, *, partition_by: Sequence[str] | str | None = None, **options: Any) -> None:
    """Write a frame of polars, a lazy one too, to a file, or to a folder where ``partition_by`` is given. ``options``:
    those of :func:`pyparq.write_table` or :func:`pyparq.write_dataset`.

    Example::

        import polars as pl
        import pyparq.polars

        pyparq.polars.write_parquet(pl.DataFrame({"id": [1, 2]}), "ids.parquet", compression="zstd")
    """
    if partition_by is None:
        write_table(frame, file, **options)
    else:
        write_dataset(frame, file, partition_cols=partition_by, **options)


sink_parquet = write_parquet


def read_parquet_schema(source: Any) -> polars.Schema:
    """Names and types of the columns, as ``polars.read_parquet_schema`` gives them."""
    return scan(source).collect_schema()


def read_parquet_metadata(source: Any) -> dict[str, str]:
    """The key-value metadata of a file, as ``polars.read_parquet_metadata`` gives them."""
    with ParquetFile(source) as file:
        return {name.decode(): value.decode() for name, value in file.key_value_metadata.items()}


class _Source:
    """What polars calls."""

    def __init__(self, files: Dataset) -> None:
        self._files = files
        self._schema: polars.Schema | None = None

    def lazy_frame(self) -> polars.LazyFrame:
        try:
            from polars.io.plugins import register_io_source
        except ImportError:
            raise UnsupportedError(f"pyparq.polars.scan needs polars: pip install {requirement('polars')}") from None
        return register_io_source(self.frames, schema=self.schema())  # here, because polars would wrap its errors

    def schema(self) -> polars.Schema:
        """The types that polars has for the columns of all files."""
        if self._schema is None:
            self._schema = Table(self._files.schema, []).to_polars().schema
        return self._schema

    def frames(
        self, columns: list[str] | None, predicate: polars.Expr | None, num_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        """The rows for which ``predicate`` is true, of the first ``num_rows``, piece by piece."""
        wanted = list(self.schema()) if columns is None else columns
        needed = list(dict.fromkeys([*wanted, *([] if predicate is None else predicate.meta.root_names())]))
        pushed = None if predicate is None or num_rows is not None else as_filters(predicate, self.schema())
        any_frame = False
        for frame in self._read(needed, pushed, num_rows, batch_size):
            found = frame if predicate is None else frame.filter(predicate)
            any_frame = True
            # Without columns, drop() keeps the number of rows, and select() loses it.
            yield found.select(wanted) if wanted else found.drop(found.columns)
        if not any_frame:
            import polars as pl

            yield pl.DataFrame(schema={name: self.schema()[name] for name in wanted})

    def _read(
        self, columns: list[str], filters: Expression | None, num_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        names = [(name,) for name in columns]  # exact, whatever the names hold
        try:
            rows = self._files.scan(names, filters, limit=num_rows)
        except FilterError:  # a literal that pyparq would not compare: polars does
            rows = self._files.scan(names, limit=num_rows)
        for batch in rows.iter_batches(max(batch_size or 0, BATCH_ROWS)):
            yield batch.to_polars()
