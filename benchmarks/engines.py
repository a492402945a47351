"""The engines under comparison, each in the fastest way its documentation offers for one question.

Common ground: a connection or a thread pool may be kept, **the file is opened anew** for every question and no
footer, index or page cache survives between two of them; the result is handed over as a ``pyarrow.Table``
through the Arrow C stream without a conversion of types; every engine uses its default threads.
"""

from __future__ import annotations

import importlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_, eq, ge, gt, le, lt
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset

OPERATORS = {"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
SQL_OPERATORS = {"==": "="}


@dataclass(frozen=True)
class Term:
    """``column op value``; with ``in``, `value` is an array of numpy or a tuple. ``there``: not null."""

    column: str
    op: Literal["==", "<", "<=", ">", ">=", "in", "starts with", "there"]
    value: Any = None


@dataclass(frozen=True)
class Condition:
    """A condition in the words of each engine; ``column`` makes its column of a name."""

    sql: str
    pyparq: Callable[[Callable[[str], Any]], Any]
    polars: Callable[[Callable[[str], Any]], Any]
    pyarrow: Callable[[Callable[[str], Any]], Any]


@dataclass(frozen=True)
class Query:
    """``select columns or * from file [where term and term ...]``, or the rows with these numbers."""

    columns: tuple[str, ...] | None = None
    where: tuple[Term, ...] = ()
    rows: tuple[int, ...] | None = None
    count: bool = False  # only how many rows there are, as a table of one number called "count"
    small: bool = False  # few rows come back: for engines that offer a choice of interfaces
    condition: Condition | None = None  # what a row must fulfil besides

    @property
    def needed(self) -> set[str] | None:
        """The columns that have to be read, and words of the condition that are no columns; ``None`` for all."""
        if self.columns is None:
            return None
        text = "" if self.condition is None else re.sub("'[^']*'", "", self.condition.sql)
        return {*self.columns, *(term.column for term in self.where), *re.findall(r"\w+", text)}

    def __str__(self) -> str:
        where = " and ".join(f"{t.column} {t.op} {str(t.value)[:40]}" for t in self.where)
        where = where if self.condition is None else self.condition.sql
        return f"columns {self.columns or 'all'}, where {where or 'everything'}, rows {str(self.rows)[:40]}"


@dataclass(frozen=True)
class WriteJob:
    """One file written from a table in memory. What is None is left to the engine's defaults."""

    codec: Literal["snappy", "zstd", "gzip", "brotli"] | None = None
    level: int | None = None
    bloom: tuple[str, ...] = ()  # columns with a Bloom filter of a false-positive rate of 1 %
    rows: int | None = None  # rows per row group
    page_rows: int | None = None  # rows per page, at most
    dictionary: tuple[str, ...] | None = None  # the columns that repeat values, for engines that want to be told
    indexed: bool = True  # with a page index, where the engine offers one


BLOOM_RATE = 0.01


class NotOffered(Exception):
    """An engine has no way to do this."""


class Engine(ABC):
    """One reader and writer. `how` says in words what is called, for the report."""

    name: str
    how: str
    #: Jobs an engine does only in part (no page index, say): shown, but never the peer to beat.
    writes_page_index = True
    writes_bloom = True
    keeps_order = True  # rows come back in the order of the file

    @abstractmethod
    def run(self, path: Path, query: Query) -> pa.Table:
        """The answer from one file, or from a folder of files."""

    @abstractmethod
    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        """`table` is what `own_table` returned."""

    def own_table(self, table: pa.Table) -> Any:
        """The table in the engine's own memory, made outside the timing where that is not Arrow's."""
        return table

    @property
    def version(self) -> str:
        return str(importlib.import_module(self.name).__version__)


class Pyparq(Engine):
    name = "pyparq"
    how = "ParquetFile(path).scan(columns, filters).to_table() or .take(rows); dataset(folder).read(columns, filters)"

    def __init__(self) -> None:
        import pyparq

        self.pyparq: Any = pyparq

    def scan(self, source: Any, query: Query) -> Any:
        """The open scan, from which ``explain`` tells what is going to be read."""
        return source.scan(columns=self.columns(query), filters=self.filters(query))

    def columns(self, query: Query) -> list[str] | None:
        return None if query.columns is None else list(query.columns)

    def filters(self, query: Query) -> Any:
        terms = [self.term(self.pyparq.col(t.column), t) for t in query.where]
        terms += [query.condition.pyparq(self.pyparq.col)] if query.condition else []
        return reduce(and_, terms) if terms else None

    def term(self, column: Any, t: Term) -> Any:
        if t.op == "in":
            return column.isin(t.value)
        if t.op == "starts with":
            return column.starts_with(t.value)
        return column.is_not_null() if t.op == "there" else OPERATORS[t.op](column, t.value)

    def run(self, path: Path, query: Query) -> pa.Table:
        if path.is_dir():
            return pa.table(self.pyparq.dataset(path).read(self.columns(query), self.filters(query)))
        with self.pyparq.ParquetFile(path) as source:
            if query.rows is not None:
                return pa.table(source.take(np.array(query.rows)))
            if query.count:
                return counted(self.scan(source, query).count())
            return pa.table(self.scan(source, query).to_table())

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        options = {"row_group_size": job.rows, "max_rows_per_page": job.page_rows, "compression": job.codec}
        self.pyparq.write_table(
            table,
            path,
            compression_level=job.level,
            bloom_filters=dict.fromkeys(job.bloom, BLOOM_RATE) or None,
            **{name: value for name, value in options.items() if value is not None},
        )


class PyArrow(Engine):
    name = "pyarrow"
    how = "pyarrow.parquet.read_table(path, filters=…); ParquetFile(path).read(columns) without a filter"

    def run(self, path: Path, query: Query) -> pa.Table:
        import pyarrow.parquet as pq

        columns = None if query.columns is None else list(query.columns)
        if query.rows is not None:
            return pq.read_table(path, columns=columns).take(pa.array(query.rows))
        if query.count:
            return counted(pa.dataset.dataset(path).count_rows(filter=self.filters(query)))
        if query.where or query.condition or path.is_dir():
            return pq.read_table(path, columns=columns, filters=self.filters(query))
        with pq.ParquetFile(path, pre_buffer=True) as source:
            return source.read(columns=columns)

    def filters(self, query: Query) -> Any:
        from pyarrow.compute import field

        terms = [self.term(field(t.column), t) for t in query.where]
        terms += [query.condition.pyarrow(field)] if query.condition else []
        return reduce(and_, terms) if terms else None

    def term(self, column: Any, t: Term) -> Any:
        import pyarrow.compute as pc

        if t.op == "in":
            return column.isin(pa.array(t.value))
        if t.op == "starts with":
            return pc.starts_with(column, t.value)
        return column.is_valid() if t.op == "there" else OPERATORS[t.op](column, t.value)

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        import pyarrow.parquet as pq

        bloom = {name: {"ndv": min(job.rows or 1 << 20, table.num_rows), "fpp": BLOOM_RATE} for name in job.bloom}
        options = {"max_rows_per_page": job.page_rows, "bloom_filter_options": bloom or None}
        pq.write_table(
            table,
            path,
            row_group_size=job.rows,
            compression=job.codec or "snappy",
            compression_level=job.level,
            use_dictionary=True if job.dictionary is None else list(job.dictionary),
            write_page_index=job.indexed,
            **{name: value for name, value in options.items() if value is not None},
        )


class Polars(Engine):
    name = "polars"
    how = "polars.scan_parquet(path).filter(…).select(…).collect(), exported with its newest Arrow types"
    writes_bloom = False

    def run(self, path: Path, query: Query) -> pa.Table:
        import polars as pl

        frame = pl.scan_parquet(path, cache=False)
        if query.rows is not None:
            frame = frame.with_row_index("row_number").filter(pl.col("row_number").is_in(list(query.rows)))
            frame = frame.drop("row_number")
        for t in query.where:
            column = pl.col(t.column)
            if t.op == "in":
                frame = frame.filter(column.is_in(pl.Series(t.value).implode()))
            elif t.op == "starts with":
                frame = frame.filter(column.str.starts_with(t.value))
            elif t.op == "there":
                frame = frame.filter(column.is_not_null())
            else:
                frame = frame.filter(OPERATORS[t.op](column, t.value))
        if query.condition:
            frame = frame.filter(query.condition.polars(pl.col))
        if query.count:
            return counted(frame.select(pl.len()).collect().item())
        if query.columns is not None:
            frame = frame.select(query.columns)
        return frame.collect().to_arrow(compat_level=pl.CompatLevel.newest())

    def own_table(self, table: pa.Table) -> Any:
        import polars as pl

        return pl.from_arrow(table)

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        options = {"row_group_size": job.rows, "compression": job.codec, "compression_level": job.level}
        if job.page_rows is not None:
            raise NotOffered("no limit of rows per page")
        table.write_parquet(path, **{name: value for name, value in options.items() if value is not None})


class DuckDB(Engine):
    name = "duckdb"
    how = "one connection kept, file cache off; execute(…).to_arrow_table() for small answers, sql(…) for large"
    writes_page_index = False
    writes_bloom = False  # only for dictionary-encoded chunks, of which columns of distinct values have none

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("set enable_external_file_cache=false")
        self.connection.execute("set timezone='UTC'")
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")

    def run(self, path: Path, query: Query) -> pa.Table:
        columns = (
            "count(*) as count"
            if query.count
            else "*"
            if query.columns is None
            else ", ".join(f'"{name}"' for name in query.columns)
        )
        files = f"{path}/*.parquet" if path.is_dir() else f"{path}"
        terms = []
        for place, t in enumerate(query.where):
            if t.op == "in":
                self.connection.register(f"wanted_{place}", pa.table({"v": t.value}))
                terms.append(f'"{t.column}" in (select v from wanted_{place})')
            elif t.op == "starts with":
                terms.append(f"""starts_with("{t.column}", '{t.value}')""")
            elif t.op == "there":
                terms.append(f'"{t.column}" is not null')
            else:
                terms.append(f'"{t.column}" {SQL_OPERATORS.get(t.op, t.op)} {sql_literal(t.value)}')
        terms += [query.condition.sql] if query.condition else []
        if query.rows is not None:
            columns = "* exclude (file_row_number)" if query.columns is None else columns
            sql = f"select {columns} from read_parquet('{files}', file_row_number=true)"
            terms.append(f"file_row_number in ({', '.join(map(str, query.rows))})")
        else:
            sql = f"select {columns} from read_parquet('{files}')"
        if terms:
            sql += " where " + " and ".join(terms)
        if query.rows is not None:
            sql += " order by file_row_number"
        small = query.small or query.rows is not None
        return (self.connection.execute if small else self.connection.sql)(sql).to_arrow_table()

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        options = {"row_group_size": job.rows, "compression": job.codec, "compression_level": job.level}
        if job.page_rows is not None:
            raise NotOffered("no limit of rows per page")
        given = "".join(f", {name} {value}" for name, value in options.items() if value is not None)
        self.connection.register("source", table)
        self.connection.execute(f"copy source to '{path}' (format parquet{given})")
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
        from datafusion import col, functions, lit

        if query.rows is not None:
            raise NotOffered("no row numbers")
        if query.condition:
            raise NotOffered("not asked")
        context = self.context()
        frame = context.read_parquet(path)
        for t in query.where:
            if t.op == "in":
                wanted = context.from_arrow(pa.table({"wanted": t.value}))
                frame = frame.join(wanted, left_on=[t.column], right_on=["wanted"], how="semi")
            elif t.op == "starts with":
                frame = frame.filter(functions.starts_with(col(f'"{t.column}"'), lit(t.value)))
            elif t.op == "there":
                frame = frame.filter(col(f'"{t.column}"').is_not_null())
            else:
                frame = frame.filter(OPERATORS[t.op](col(f'"{t.column}"'), datafusion_literal(lit, t.value)))
        if query.count:
            return counted(frame.count())
        if query.columns is not None:
            frame = frame.select(*[f'"{name}"' for name in query.columns])
        return frame.to_arrow_table()

    def write(self, table: Any, path: Path, job: WriteJob) -> None:
        from datafusion import ParquetColumnOptions, ParquetWriterOptions

        columns: dict[str, Any] = {}
        if job.dictionary is not None:
            plain = ParquetColumnOptions(dictionary_enabled=False)
            columns |= {name: plain for name in table.column_names if name not in job.dictionary}
        columns |= {
            name: ParquetColumnOptions(
                dictionary_enabled=job.dictionary is None or name in job.dictionary,
                bloom_filter_enabled=True,
                bloom_filter_fpp=BLOOM_RATE,
                bloom_filter_ndv=min(job.rows or 1 << 20, table.num_rows),
            )
            for name in job.bloom
        }
        given = {
            "max_row_group_size": job.rows,
            "compression": f"{job.codec}({job.level})" if job.level else job.codec,
            "data_page_row_count_limit": job.page_rows,
        }
        options = ParquetWriterOptions(
            statistics_enabled="page",
            column_specific_options=columns,
            **{name: value for name, value in given.items() if value is not None},
        )
        self.context().from_arrow(table).write_parquet_with_options(path, options)


def counted(rows: int) -> pa.Table:
    return pa.table({"count": pa.array([rows], pa.int64())})


def sql_literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"timestamptz '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return str(value) if isinstance(value, Decimal) else repr(value)


def datafusion_literal(lit: Any, value: Any) -> Any:
    return lit(pa.scalar(value, pa.timestamp("us", "UTC")) if isinstance(value, datetime) else pa.scalar(value))


KINDS: tuple[type[Engine], ...] = (Pyparq, PyArrow, Polars, DuckDB, DataFusion)
NAMES = tuple(kind.name for kind in KINDS)


def available_engines(names: list[str] | None = None) -> tuple[list[Engine], dict[str, str]]:
    """The engines that can be imported, ours first, and why the others cannot."""
    engines: list[Engine] = []
    missing: dict[str, str] = {}
    for kind in KINDS:
        if names is not None and kind.name not in names:
            continue
        try:
            importlib.import_module(kind.name)
            engines.append(kind())
        except ImportError as error:
            missing[kind.name] = str(error)
    return engines, missing


def engine_named(name: str) -> Engine:
    """One engine; ImportError where it is not installed."""
    (kind,) = (kind for kind in KINDS if kind.name == name)
    return kind()
