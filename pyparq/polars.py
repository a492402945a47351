"""A polars LazyFrame over files: polars says which columns and rows it needs, and no others are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyparq.arrow.table import Table
from pyparq.datasets.dataset import Dataset
from pyparq.errors import FilterError, OptionError, UnsupportedError
from pyparq.filters.expression import Expression
from pyparq.filters.polars_expressions import as_filters
from pyparq.options import ReadOptions, with_options
from pyparq.read.scan import BATCH_ROWS
from pyparq.runtime.messages import requirement

if TYPE_CHECKING:
    from typing import Unpack

    import polars

    from pyparq.arguments import ReadArguments


def scan(
    source: Any,
    *,
    schema: Any = None,
    partitioning: Any = "hive",
    filename: bool | str = False,
    by: str = "name",
    on_error: str = "raise",
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> polars.LazyFrame:
    """A polars LazyFrame over a file, a folder, a glob, a URL, a list of these, or a :class:`pyparq.Dataset`.

    When polars runs a query, it tells which columns and how many rows it needs, and for which filter. Statistics, Bloom
    filters, dictionaries and page indexes then rule out row groups and pages, as in :meth:`pyparq.Dataset.scan`. Parts
    of a filter that pyparq cannot evaluate are left to polars; the result is the same.

    The arguments are those of :func:`pyparq.dataset`. For a :class:`pyparq.Dataset`, give none. Only footers are read
    before the query runs.

    Raises :class:`pyparq.UnsupportedError` without polars, and what :func:`pyparq.dataset` raises.

    Example::

        import polars as pl
        import pyparq.polars

        flights = pyparq.polars.scan("flights/")
        print(flights.filter(pl.col("dest") == "LAX").select("flight").collect())
    """
    given = {"schema": schema, "partitioning": partitioning, "filename": filename, "by": by, "on_error": on_error,
             "storage_options": storage_options, "filesystem": filesystem}  # fmt: skip
    if isinstance(source, Dataset):
        changed = [name for name, value in given.items() if value != (scan.__kwdefaults__ or {})[name]] + list(options)
        if changed:
            raise OptionError(f"{changed[0]} belongs to the dataset: give it to pyparq.dataset")
        files = source
    else:
        files = Dataset(source, **given, **options)
    return _Source(files).lazy_frame()


scan.__doc__ = with_options(scan.__doc__, ReadOptions)
scan_parquet = scan  # polars' name


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
