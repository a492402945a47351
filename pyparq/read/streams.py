"""One run of a scan as a stream of Arrow batches (the Arrow C stream interface). The consumer asks for each batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from pyparq.arrow.column import batch_capsule, schema_capsule
from pyparq.arrow.column_operations import take
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.tabular import Tabular
from pyparq.column_names import NOT_COMPUTED, as_list
from pyparq.errors import CorruptFileError, OptionError, OtherNames, by_each
from pyparq.format.types import Schema
from pyparq.kernels import arrow_stream
from pyparq.option_checks import methods_told
from pyparq.read.async_reads import batches_async
from pyparq.read.hinted_types import depends_on_data

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from pyparq.arguments import Filters
    from pyparq.column_names import Names

ScanT = TypeVar("ScanT")
PlanT = TypeVar("PlanT")
ExplanationT = TypeVar("ExplanationT")
MapT = TypeVar("MapT")


class ScanStream:
    """The batches of ``scan``, one after the other. Only this stream may use the scan.

    Nothing is read before the first batch is requested. The schema is an exception: where the data may contradict the
    hints of ``ARROW:schema``, the first batch is read to know it. The file stays open as long as this object refers to
    it. After the file is closed by name, the next batch is an :class:`OptionError`.
    """

    def __init__(self, scan: Any, name: str, check_open: Callable[[], None] | None = None) -> None:
        """``name``: of the source, for messages. ``check_open``: raises if the file is closed."""
        self._name = name
        self._check_open = check_open
        self._promised: Schema = scan.schema
        self._batches: Generator[Batch] = scan.iter_batches()
        self._ahead: Batch | None = None
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The schema of all batches."""
        if self._schema is None:
            self._schema = self._found_schema()
        return self._schema

    def _found_schema(self) -> Schema:
        if not any(depends_on_data(field.type) for field in self._promised.fields):
            return self._promised
        self._ahead = self._next()
        return self._promised if self._ahead is None or self._ahead.schema is None else self._ahead.schema

    def __iter__(self) -> ScanStream:
        return self

    def __next__(self) -> Batch:
        schema = self.schema
        batch, self._ahead = self._ahead or self._next(), None
        if batch is None:
            raise StopIteration
        if batch.schema is not None and [f.type for f in batch.schema.fields] != [f.type for f in schema.fields]:
            raise CorruptFileError("a batch has other types than the stream's schema", file=self._name)
        return batch

    def _next(self) -> Batch | None:
        if self._check_open is not None:
            self._check_open()
        return next(self._batches, None)

    # ---- what pyparq.kernels.arrow_stream asks for

    def get_schema(self) -> object:
        return schema_capsule(self.schema)

    def get_next(self) -> object:
        batch = next(self, None)
        if batch is None:
            return None
        return batch_capsule(batch.columns, batch.num_rows)

    def close(self) -> None:
        """Release the batch that was read and the file."""
        self._batches.close()
        self.__dict__.clear()


def set_last_apart(batches: list[Batch], size: int) -> None:
    """Copy the last rows (``size`` at most) into a batch with its own memory.

    A consumer may keep the last batch of one row group while the next row group is decoded. Without the copy it would
    keep the whole row group in memory.
    """
    if not batches or batches[-1].num_rows <= size:
        return
    batch = batches.pop()
    first = (batch.num_rows - 1) // size * size
    last = np.arange(first, batch.num_rows)
    batches += [batch.slice(0, first), Batch([take(column, last) for column in batch.columns], len(last))]


def slices(batches: list[Batch], size: int | None) -> Iterator[Batch]:
    """The batches cut to ``size`` rows. The list is emptied on the way, so that memory is released early."""
    while batches:
        batch = batches.pop(0)
        step = size or max(batch.num_rows, 1)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, min(step, batch.num_rows - start))


@methods_told
class Convertible(OtherNames, Generic[ScanT]):
    """Something with ``to_table`` and ``iter_batches``, which is an Arrow stream too."""

    _elsewhere = by_each({
        "to_pylist to_pydict to_numpy fetchall fetchone": "to_table(), which has to_pylist(), to_pydict(), to_numpy()",
        "where query": "filter(...)", "collect fetch": "=to_table", "limit tail first slice": "limit=",
        "names": "schema.names", "num_rows height shape len size is_empty empty nulls name": "count(), or to_table()",
        "append insert write": 'pyparq.write_dataset(data, folder, mode="append")',
        "compact optimize vacuum": "pyparq.rewrite", "metadata common_metadata": "pyparq.read_metadata(path) of a file",
        "get_fragments fragments paths pieces": "files", "to_batches scan_batches": "=iter_batches", "scanner": "=scan",
        "batches": "=!iter_batches", "df to_dataframe": "=to_pandas", "pl": "=to_polars", "arrow": "=to_arrow",
        "explain_plan": "=explain", "count_rows": "=count", "projected_schema dataset_schema": "=schema",
        "to_reader": "pyarrow.RecordBatchReader.from_stream, which takes it", "with_columns with_column": NOT_COMPUTED,
        "sink_parquet write_parquet to_parquet": "pyparq.write_table, which takes it as it is",
        "sort_by sort join group_by groupby": "to_arrow() or to_polars(), or DuckDB, which reads it by its name",
    })  # fmt: skip
    _like = Tabular._like

    def to_table(self) -> Table:
        """All (matching) rows as a table."""
        raise NotImplementedError

    def iter_batches(self) -> Generator[Batch]:
        """All (matching) rows in batches."""
        raise NotImplementedError

    def filter(self, filters: Filters) -> ScanT:
        """A scan of the rows for which ``filters`` is true. Nothing is read yet.

        Raises :class:`pyparq.OptionError` for a scan with a limit, and for one that runs the plan of a dataset.
        """
        if self._question[2] is not None:
            raise OptionError("the scan has a limit: give the filter to what made the scan, as filters=")
        columns, own, _ = self._question
        added = self._asking([], filters).filters
        return self._asking(columns, added if own is None else own & added)  # type: ignore[no-any-return]

    def select(self, *columns: Any) -> ScanT:
        """A scan of these columns only: names, or a list of them. Nothing is read yet."""
        names: Any = columns if len(columns) != 1 or isinstance(columns[0], str) else columns[0]
        return self._asking(names, *self._question[1:])  # type: ignore[no-any-return]

    _question: Any = property(attrgetter("columns", "filters", "limit"))

    def _asking(self, columns: Names | None, filters: Filters | None, limit: int | None = None) -> Any:
        """A scan with another question."""
        raise NotImplementedError

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All (matching) rows as a pandas DataFrame: see :meth:`pyparq.Table.to_pandas`."""
        return self.to_table().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All (matching) rows as a polars DataFrame: see :meth:`pyparq.Table.to_polars`."""
        return self.to_table().to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """All (matching) rows as a ``pyarrow.Table``: see :meth:`pyparq.Table.to_arrow`."""
        return self.to_table().to_arrow()

    def __iter__(self) -> Iterator[Batch]:
        """All (matching) rows in batches, as :meth:`iter_batches` gives them."""
        return self.iter_batches()

    def __aiter__(self) -> AsyncIterator[Batch]:
        """:meth:`iter_batches` for a program with an event loop: ``async for batch in scan``. Each batch is read when
        it is asked for: see :func:`pyparq.run_async`."""
        return batches_async(self.iter_batches)

    def _stream(self) -> ScanStream:
        """The batches of a new run."""
        raise NotImplementedError

    def __arrow_c_schema__(self) -> object:
        return self._stream().get_schema()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The (matching) rows as a stream of Arrow batches (PyCapsule interface), those of :meth:`iter_batches`.

        Each call runs the scan anew and reads one row group at a time, as batches are requested. It keeps an open
        file open; after :meth:`pyparq.ParquetFile.close` the next batch is an error. ``requested_schema`` is
        ignored, as the protocol allows: consumers cast.
        """
        return arrow_stream(self._stream())

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[Batch]]:
        """Schema and batches for pyparq's own writer. Errors are not translated."""
        stream = self._stream()
        return stream.schema, stream


@methods_told
class Asked(Convertible[ScanT], Generic[ScanT, PlanT, ExplanationT, MapT]):
    """A file, or many, that scans ask."""

    def scan(self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None) -> Any:
        raise NotImplementedError

    _question = None, None, None

    def _asking(self, columns: Names | None, filters: Filters | None, limit: int | None = None) -> Any:
        return self.scan(columns, filters, limit=limit)

    def _stream(self) -> ScanStream:
        return self.scan()._stream()  # type: ignore[no-any-return]

    def read(self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None) -> Table:
        """All (matching) rows as a table; with ``limit`` at most so many, the first."""
        return self.scan(columns, filters, limit=limit).to_table()  # type: ignore[no-any-return]

    to_table = read

    def head(self, num_rows: int = 10, columns: Names | None = None, filters: Filters | None = None) -> Table:
        """The first (matching) rows."""
        return self.read(columns, filters, limit=num_rows)

    def count(self, filters: Filters | None = None) -> int:
        """The number of (matching) rows. Without a filter, or with one on partition columns, only footers are read."""
        return self.scan([], filters).count()  # type: ignore[no-any-return]

    count_rows = count  # pyarrow's name

    def explain(
        self, columns: Names | None = None, filters: Filters | None = None, *, execute: bool = True
    ) -> ExplanationT:
        """What the indexes of all files remove, and what a scan reads: see :meth:`pyparq.Scan.explain`."""
        return self.scan(columns, filters).explain(execute=execute)  # type: ignore[no-any-return]

    def plan(self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None) -> PlanT:
        """What a scan would read, as a value for other processes: see :meth:`pyparq.Scan.plan`."""
        return self.scan(columns, filters, limit=limit).plan()  # type: ignore[no-any-return]

    def map(
        self, path: Any = None, columns: Names | None = None, filters: Filters | None = None, *, most_files: int = 500
    ) -> MapT:
        """A picture of the files as an HTML page, one after the other: where everything lies, and how well pages can be
        told apart. Of many files, the first ``most_files``.

        With ``columns`` or ``filters``, the query runs, and the picture shows of each page what ruled it out or that it
        was read. ``path``: where to write the page, too. A notebook shows the result. docs/pictures.md explains it.

        Reads the page indexes. Without them it reads page headers, of a local file of up to 2,000 column chunks.
        Raises what :meth:`scan` raises.
        """
        asked: Any = self
        made = asked._map(None if filters is None and columns is None else self.scan(columns, filters), most_files)
        if path is not None:
            made.save(path)
        return made  # type: ignore[no-any-return]

    @property
    def dtypes(self) -> pandas.Series[Any]:
        """The type of each column in pandas, by its name."""
        return self.head(0).to_pandas().dtypes

    def to_pandas(
        self, columns: Names | None = None, filters: Filters | None = None, *, index: Any = None, **options: Any
    ) -> pandas.DataFrame:
        """All (matching) rows as a DataFrame: see :meth:`pyparq.Table.to_pandas`. ``index``: the column, or columns, of
        the index."""
        frame = self.read(columns, filters).to_pandas(**options)
        return frame if index is None or frame.index.names == as_list(index) else frame.set_index(index)
