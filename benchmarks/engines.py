"""The engines under comparison, each in the fastest way its documentation offers for one query on one file.

Common ground: a connection or a thread pool may be kept, **the file is opened anew** for every query and no
footer, index or page cache survives between two queries; the result is handed over as a ``pyarrow.Table``
through the Arrow C stream without a conversion of types; every engine uses its default threads.
"""

from __future__ import annotations

import importlib
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from events import BLOOM_COLUMNS, BLOOM_RATE, DICTIONARY_COLUMNS

Value = int | str | datetime
ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Query:
    """``select <columns or *> from file [where column = low | where column between low and high]``."""

    columns: tuple[str, ...] | None = None
    column: str | None = None
    low: Value | None = None
    high: Value | None = None
    small: bool = False  # few rows come back: for engines that offer a choice of interfaces


@dataclass(frozen=True)
class WriteJob:
    """One file written from a table in memory, in row groups of `rows`, with a page index where offered."""

    codec: Literal["snappy", "zstd"]
    bloom: bool
    rows: int

    @property
    def level(self) -> int | None:
        return ZSTD_LEVEL if self.codec == "zstd" else None


class Engine(ABC):
    """One reader and writer. `how` says in words what is called, for the report."""

    name: str
    how: str
    #: Jobs an engine does only in part (no page index, say): shown, but never the peer to beat.
    writes_page_index = True
    writes_bloom = True
    keeps_order = True  # rows come back in the order of the file

    @abstractmethod
    def run(self, path: Path, query: Query) -> pa.Table: ...

    @abstractmethod
    def write(self, table: Any, path: Path, job: WriteJob) -> None: ...

    def own_table(self, table: pa.Table) -> Any:
        """The table in the engine's own memory, made outside the timing where that is not Arrow's."""
        return table

    @property
    def version(self) -> str:
        return str(importlib.import_module(self.name).__version__)


class Pyparq(Engine):
    name = "pyparq"
    how = "pyparq.ParquetFile(path).scan(columns, filters).to_table()"

    def __init__(self) -> None:
        import pyparq

        self.pyparq: Any = pyparq
        for wanted in ("ParquetFile", "col", "write_table"):
            if not hasattr(pyparq, wanted):
                raise ImportError(f"pyparq has no {wanted}")

    def scan(self, source: Any, query: Query) -> Any:
        """The open scan, from which ``explain`` tells what is going to be read."""
        return source.scan(columns=None if query.columns is None else list(query.columns), filters=self.filters(query))

    def filters(self, query: Query) -> Any:
        if query.column is None:
            return None
        column = self.pyparq.col(query.column)
        if query.high is None:
            return column == query.low
        return (column >= query.low) & (column <= query.high)

    def run(self, path: Path, query: Query) -> pa.Table:
        with self.pyparq.ParquetFile(path) as source:
            return pa.table(self.scan(source, query).to_table())

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        self.pyparq.write_table(
            table,
            path,
            row_group_size=job.rows,
            compression=job.codec,
            compression_level=job.level,
            bloom_filters=dict.fromkeys(BLOOM_COLUMNS, BLOOM_RATE) if job.bloom else None,
        )


class PyArrow(Engine):
    name = "pyarrow"
    how = "pyarrow.parquet.read_table(path, filters=…); ParquetFile(path).read(columns) without a filter"

    def run(self, path: Path, query: Query) -> pa.Table:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        columns = None if query.columns is None else list(query.columns)
        if query.column is None:
            with pq.ParquetFile(path, pre_buffer=True) as source:
                return source.read(columns=columns)
        field = pc.field(query.column)
        where = field == query.low if query.high is None else (field >= query.low) & (field <= query.high)
        return pq.read_table(path, columns=columns, filters=where)

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        import pyarrow.parquet as pq

        options = {name: {"ndv": job.rows, "fpp": BLOOM_RATE} for name in BLOOM_COLUMNS}
        pq.write_table(
            table,
            path,
            row_group_size=job.rows,
            compression=job.codec,
            compression_level=job.level,
            use_dictionary=list(DICTIONARY_COLUMNS),
            write_page_index=True,
            bloom_filter_options=options if job.bloom else None,
        )


class Polars(Engine):
    name = "polars"
    how = "polars.scan_parquet(path).filter(…).select(…).collect(), exported with its newest Arrow types"
    writes_bloom = False

    def run(self, path: Path, query: Query) -> pa.Table:
        import polars as pl

        frame = pl.scan_parquet(path, cache=False)
        if query.column is not None:
            column = pl.col(query.column)
            where = column == query.low if query.high is None else (column >= query.low) & (column <= query.high)
            frame = frame.filter(where)
        if query.columns is not None:
            frame = frame.select(query.columns)
        return frame.collect().to_arrow(compat_level=pl.CompatLevel.newest())

    def own_table(self, table: pa.Table) -> Any:
        import polars as pl

        return pl.from_arrow(table)

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        table.write_parquet(
            path,
            row_group_size=job.rows,
            compression=job.codec,
            compression_level=job.level,
        )


class DuckDB(Engine):
    name = "duckdb"
    how = "one connection kept, file cache off; execute(…).to_arrow_table() for small answers, sql(…) for large"
    writes_page_index = False
    writes_bloom = False  # only for dictionary-encoded chunks, of which id and url have none

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("set enable_external_file_cache=false")
        self.connection.execute("set timezone='UTC'")
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")

    def run(self, path: Path, query: Query) -> pa.Table:
        columns = "*" if query.columns is None else ", ".join(query.columns)
        sql = f"select {columns} from read_parquet('{path}')"
        if query.column is None:
            run = self.connection.execute if query.small else self.connection.sql
            return run(sql).to_arrow_table()
        if query.high is None:
            sql += f" where {query.column} = {sql_literal(query.low)}"
        else:
            low, high = sql_literal(query.low), sql_literal(query.high)
            sql += f" where {query.column} between {low} and {high}"
        return self.connection.execute(sql).to_arrow_table()

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        level = f", compression_level {job.level}" if job.level else ""
        self.connection.register("source", table)
        self.connection.execute(
            f"copy source to '{path}' (format parquet, row_group_size {job.rows}, compression {job.codec}{level})"
        )
        self.connection.unregister("source")


class DataFusion(Engine):
    name = "datafusion"
    how = (
        "a fresh SessionContext per query (0.05 ms; a kept one caches footers), "
        "pushdown_filters, reorder_filters, page index and Bloom filters on; rows in any order"
    )
    keeps_order = False

    def context(self) -> Any:
        from datafusion import SessionConfig, SessionContext

        parquet = "datafusion.execution.parquet"
        config = SessionConfig()
        for option in ("pushdown_filters", "reorder_filters", "enable_page_index", "bloom_filter_on_read"):
            config = config.set(f"{parquet}.{option}", "true")
        return SessionContext(config)

    def run(self, path: Path, query: Query) -> pa.Table:
        from datafusion import col, lit

        frame = self.context().read_parquet(path)
        if query.column is not None:
            column = col(query.column)
            low, high = (datafusion_literal(lit, v) for v in (query.low, query.high))
            frame = frame.filter(column == low if query.high is None else (column >= low) & (column <= high))
        if query.columns is not None:
            frame = frame.select(*query.columns)
        return frame.to_arrow_table()

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        from datafusion import ParquetColumnOptions, ParquetWriterOptions

        bloom = ParquetColumnOptions(
            dictionary_enabled=False,
            bloom_filter_enabled=True,
            bloom_filter_fpp=BLOOM_RATE,
            bloom_filter_ndv=job.rows,
        )
        plain = {
            name: ParquetColumnOptions(dictionary_enabled=False)
            for name in table.column_names
            if name not in DICTIONARY_COLUMNS
        }
        options = ParquetWriterOptions(
            max_row_group_size=job.rows,
            compression=f"zstd({job.level})" if job.level else job.codec,
            statistics_enabled="page",
            column_specific_options=plain | (dict.fromkeys(BLOOM_COLUMNS, bloom) if job.bloom else {}),
        )
        self.context().from_arrow(table).write_parquet_with_options(path, options)


def sql_literal(value: Value | None) -> str:
    return f"timestamptz '{value.isoformat()}'" if isinstance(value, datetime) else repr(value)


def datafusion_literal(lit: Any, value: Value | None) -> Any:
    return lit(pa.scalar(value, pa.timestamp("us", "UTC")) if isinstance(value, datetime) else value)


def available_engines(names: list[str] | None) -> tuple[list[Engine], dict[str, str]]:
    """The engines that can be imported, ours first, and why the others cannot."""
    engines: list[Engine] = []
    missing: dict[str, str] = {}
    for kind in (Pyparq, PyArrow, Polars, DuckDB, DataFusion):
        if names is not None and kind.name not in names:
            continue
        try:
            importlib.import_module(kind.name)
            engines.append(kind())
        except ImportError as error:
            missing[kind.name] = str(error)
    return engines, missing
