"""pyparq as a data source of Spark: ``spark.read.format("pyparq")`` and SQL's ``USING pyparq``.

Its API has no column pruning and no partitioning report, and its filter pushdown gives wrong rows in Spark 4.3: say in
options what to read, or use :func:`pyparq.spark.read`, which is faster too.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from pyparq.errors import DataError
from pyparq.filters.expression import Expression, col
from pyparq.options import ReadOptions
from pyparq.spark.file_choice import SPELLED, NoneLeft, as_flag, as_spark
from pyparq.spark.job_log import left_out, note, tell_of_source, tell_read, warn
from pyparq.spark.options import (
    OF_TABLES,
    as_filters,
    as_list,
    as_value,
    as_whole,
    check_factory,
    is_of_writes,
    options_of,
    source_of,
    with_options,
)
from pyparq.spark.question import ANSWER_ROWS, SMALL, Question, partition_names, parts_of, pickled, planned, schema_of
from pyparq.spark.reading import arrow_schema, read_part
from pyparq.spark.session import check_session, is_connect, local
from pyparq.spark.tasks import OnWorkers, worker_guard
from pyparq.spark.types import SparkFolders, SparkTypes, declared_folders

_NAMES = ("columns", "filters", "partitions", "small", "decryption", "on_error", "truncate", "pushdown", "schema",
          "storage_options", "case_sensitive", "skipped_to", "time_zone", "late_seconds",
          "maxfilespertrigger", *SPELLED)  # fmt: skip


def register(spark: Any) -> None:
    """Make ``spark.read.format("pyparq")`` and ``CREATE TABLE … USING pyparq`` known to a session (docs/spark.md).

    In a classic session it becomes the active one: Spark looks for data sources there, whichever session asks.

    Example::

        import os

        import pyparq.spark as ps

        ps.register(spark)
        spark.read.format("pyparq").load(os.path.abspath("flights")).show(3)
    """
    check_session(spark)
    if not is_connect(spark):
        # Spark looks for sources in the active session, which may be another one. Making a DataFrame changes that.
        spark.createDataFrame([(1,)], "x int")
    spark.dataSource.register(_registered())


def _registered() -> type[DataSource]:
    """The data source as it is registered: a class that Spark pickles by its code (it stands in a function), so that a
    Python without pyparq can say what it lacks."""
    guard = worker_guard()

    class Registered(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "pyparq"

        def _own(self) -> Any:
            guard()
            from pyparq.spark.source import PyparqDataSource

            return PyparqDataSource(self.options)

        def schema(self) -> Any:
            return self._own().schema()

        def reader(self, schema: Any) -> Any:
            return self._own().reader(schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return self._own().writer(schema, overwrite)

        def streamReader(self, schema: Any) -> Any:
            return self._own().streamReader(schema)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return self._own().streamWriter(schema, overwrite)

    return Registered


class PyparqDataSource(DataSource):  # type: ignore[misc]
    """Parquet files read by pyparq. Options are those of :func:`pyparq.spark.read`, as text."""

    @classmethod
    def name(cls) -> str:
        return "pyparq"

    def schema(self) -> StructType:
        asked = _question(self.options, None)
        found: StructType = SparkTypes(schema_of(asked), truncate=asked.truncate).spark
        return with_options(found, self.options) if "provider" in self.options else found

    def reader(self, schema: StructType) -> DataSourceReader:
        # Spark refuses any query over a reader that has pushFilters while the session has not switched it on.
        kind = PushdownReader if as_flag(self.options, "pushdown") else Reader
        return kind(dict(self.options) or options_of(schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from pyparq.spark.source_writers import Writer

        return Writer(dict(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyparq.spark.stream_reader import LATE, StreamReader

        given = {name.lower(): text for name, text in self.options.items()}
        late = as_whole(given, "late_seconds")
        asked = _question(self.options, schema)
        return StreamReader(asked, schema, LATE if late is None else late, as_whole(given, "maxfilespertrigger"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from pyparq.spark.source_writers import StreamWriter

        return StreamWriter(dict(self.options), schema, overwrite)


class Part(InputPartition):  # type: ignore[misc]
    """A part of a plan. ``None``: there is nothing to read."""

    def __init__(self, payload: bytes | None) -> None:
        super().__init__(payload)


class Reader(OnWorkers, DataSourceReader):  # type: ignore[misc]
    """Plans once per loaded DataFrame, then reads the planned pages."""

    def __init__(self, options: dict[str, Any], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        asked = _question(self._options, self._schema)
        with left_out() as said:
            try:
                asked = declared(asked, self._schema)
                plan, left = planned(asked, self._pushed())
            except NoneLeft:  # whose columns the user has declared
                return [Part(None)]
        warn(said())
        if asked.skipped_to is not None:
            note(asked.skipped_to, said(), asked.storage_options)
        is_one = plan.num_bytes <= asked.small and plan.num_rows <= ANSWER_ROWS  # a task costs more than to read these
        count = asked.parts or (1 if is_one else parts_of(plan.num_bytes, os.cpu_count() or 1))
        parts = pickled(plan.split(count)) if plan.files else [None]
        tell_of_source()
        tell_read("read", asked.source, asked.filters, left, f"{len(parts):,} tasks will read it")
        return [Part(payload) for payload in parts]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Part):  # an UnsupportedError of the plan: for Spark it is one partition
            for part in self.partitions():
                yield from self.read(part)
        elif partition.value is not None:
            asked = _question(self._options, self._schema)
            yield from in_schema(read_part(pickle.loads(partition.value), asked.settings()), self._schema)

    def _pushed(self) -> Expression | None:
        return None


class PushdownReader(Reader):
    """Also takes filters that Spark pushes down. Spark 4.3 then gives wrong rows where one DataFrame is used with
    several filters (docs/spark.md)."""

    def __init__(self, options: dict[str, Any], schema: StructType) -> None:
        super().__init__(options, schema)
        self._taken: list[Expression] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for given in filters:
            made = _expression(given)
            if made is not None:
                self._taken.append(made)
            yield given  # Spark applies it again: what is pushed only has to lose no row

    def _pushed(self) -> Expression | None:
        return reduce(lambda a, b: a & b, self._taken) if self._taken else None


def _expression(given: Filter) -> Expression | None:
    """A filter of Spark as one of ours; ``None`` where we have none."""
    if isinstance(given, Not):
        inner = _expression(given.child)
        return None if inner is None else ~inner
    if not hasattr(given, "attribute"):
        return None
    column = col(*given.attribute)
    if isinstance(given, IsNull):
        return column.is_null()
    if isinstance(given, IsNotNull):
        return ~column.is_null()
    value: Any = getattr(given, "value", None)
    if isinstance(given, EqualNullSafe):
        return column.is_null() if value is None else column == value
    if isinstance(given, In):
        return column.isin(list(value))
    if value is None:
        return None
    if isinstance(given, StringStartsWith):
        return column.starts_with(value)
    makers = {
        EqualTo: column.__eq__, LessThan: column.__lt__, LessThanOrEqual: column.__le__,
        GreaterThan: column.__gt__, GreaterThanOrEqual: column.__ge__,
    }  # fmt: skip
    make = makers.get(type(given))
    return None if make is None else make(value)


def declared(asked: Question, schema: StructType) -> Question:
    """The question, read with the columns of ``schema`` where they are not simply columns of the files: Spark's readers
    widen types, do not tell names apart by case, and fill absent columns with null."""
    if asked.schema is not None:
        return asked
    whole = SparkTypes(schema_of(replace(asked, columns=None)), truncate=asked.truncate).spark
    own = {field.name: field.dataType for field in whole}
    if all(own.get(field.name) == field.dataType for field in schema):
        return asked
    wanted = {field.name.lower(): field.dataType for field in schema}
    names = [] if asked.options.get("partitioning", "hive") != "hive" else partition_names(asked)
    folders = StructType([StructField(name, wanted.get(name.lower(), own[name])) for name in names])
    options = asked.options
    if any(own[field.name] != field.dataType for field in folders):
        options = {**options, "partitioning": declared_folders(folders, asked.zone)}
    nullable = StructType([StructField(field.name, field.dataType) for field in schema])
    return replace(asked, schema=arrow_schema(nullable), options=options)


def in_schema(batches: Iterator[Any], schema: StructType) -> Iterator[Any]:
    """The batches with exactly the declared schema, whose columns may be called ``NOT NULL``.

    Raises :class:`DataError` for a column with nulls that is called so: Spark would take them for values.
    """
    import pyarrow as pa

    if all(field.nullable for field in schema):
        yield from batches
        return
    aimed = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        for column, field in zip(batch.columns, schema, strict=True):
            if column.null_count and not field.nullable:
                raise DataError("the declared schema says NOT NULL, and there are nulls", column=field.name)
        yield pa.RecordBatch.from_arrays(batch.columns, schema=aimed)


# ---- options ---------------------------------------------------------------------------------------------------------


def _question(options: Mapping[str, Any], schema: StructType | None) -> Question:
    """What the options and a declared schema ask."""
    given = {name.lower(): value for name, value in options.items()}
    source, zone = source_of(given), given.get("time_zone", "")
    own = as_spark(given, given.get("on_error"), zone, lambda _, default: default)
    check_factory(given.get("decryption"))
    known = {f: f for f in (*_NAMES, "partitioning", "filename", "by", *ReadOptions.__dataclass_fields__)}
    others = {} if own.partitioned else {"partitioning": None}
    for name, value in given.items():
        if name in ("path", "paths", *_NAMES, *OF_TABLES) or name.startswith("option.") or is_of_writes(name):
            continue
        if name not in known:
            ReadOptions.check_known({name: value}, (*_NAMES, "partitioning", "filename", "by"), "the format pyparq")
        others[name] = as_value(value)
    columns = as_list(given.get("columns"))
    if columns is None and schema is not None:
        columns = [(name,) for name in schema.names]
    small = as_whole(given, "small")
    return Question(
        source, columns, as_filters(given.get("filters")), as_value(given.get("schema")),
        as_whole(given, "partitions"), SMALL if small is None else small, given.get("decryption"),
        own.on_error,
        as_flag(given, "truncate"), as_value(given.get("storage_options")), as_flag(given, "case_sensitive"), others,
        skipped_to=None if given.get("skipped_to") is None else local(given["skipped_to"]),
        zone=zone, folders=SparkFolders(zone), choice=own.choice,
    )  # fmt: skip
