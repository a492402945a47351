"""``read`` and ``count``: plan once, answer at once what is small, and let Spark's workers read the rest."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyparq.errors import OptionError, SkippedFileWarning
from pyparq.options import ReadOptions
from pyparq.spark.keys import check_factory
from pyparq.spark.paths import absolute
from pyparq.spark.question import Question, Reply, answered, counted
from pyparq.spark.session import check_session, is_case_sensitive, is_connect, parallelism
from pyparq.spark.types import SparkTypes
from pyparq.spark.work import over_payloads

if TYPE_CHECKING:
    from pyparq.arguments import Filters, Names

SMALL = 8 << 20
"""Bytes of pages up to which a read is answered where it is planned."""


def read(
    spark: Any,
    source: Any,
    *,
    columns: Names | None = None,
    filters: Filters | None = None,
    schema: Any = None,
    partitions: int | None = None,
    small: int = SMALL,
    decryption: str | None = None,
    on_error: str = "raise",
    truncate: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Parquet files as a Spark DataFrame. Only the pages that can hold matching rows are read.

    ``spark``: the session, classic or Connect. ``source``: a file, folder, glob, URL or a list of these, as in
    :func:`pyparq.dataset`; it must mean the same on every worker. ``columns`` and ``filters``: as in
    :func:`pyparq.read_table`; names are matched as ``spark.sql.caseSensitive`` says. Filters that are applied to the
    DataFrame later skip nothing: give them here. ``schema``: the schema to read the files with; a Spark schema or its
    text will do. ``partitions``: of the DataFrame, at most; by default as many as the session has cores. ``small``:
    read at once, without a Spark job, where at most so many bytes of pages are left. ``decryption``: the name of a
    function that makes the keys on each worker (``"module:function"``). ``on_error``: ``"skip"`` leaves out files that
    cannot be read, and warns. ``truncate``: cut nanoseconds to the microseconds that Spark has. ``options``: of
    :func:`pyparq.dataset` and :class:`pyparq.ReadOptions`.

    The DataFrame is a snapshot of the files that are there now. A file that changes before it is read is an error
    (:class:`pyparq.PlanError`). Raises :class:`pyparq.UnsupportedError` for a column that Spark has no type for.
    """
    question = _question(
        spark, source, columns, filters, schema, partitions, small, decryption, on_error, truncate, storage_options,
        options,
    )  # fmt: skip
    if columns is not None and not isinstance(columns, str) and not list(columns):
        raise OptionError("a DataFrame needs a column: name one in columns, or use pyparq.spark.count")
    reply: Reply = _where_the_files_are(spark, question)
    for said in reply.skipped:
        warnings.warn(said, SkippedFileWarning, stacklevel=2)
    types = SparkTypes(reply.schema, truncate=truncate)
    if reply.answer is not None:
        return spark.createDataFrame(_table(reply.answer), schema=types.spark)
    return over_payloads(spark, "read", reply.parts, types.spark, question.settings())


def count(
    spark: Any,
    source: Any,
    filters: Filters | None = None,
    *,
    schema: Any = None,
    partitions: int | None = None,
    small: int = SMALL,
    decryption: str | None = None,
    on_error: str = "raise",
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> int:
    """The number of rows that match. Without a filter only footers are read, and no Spark job runs.

    The parameters are those of :func:`read`.
    """
    question = _question(
        spark, source, [], filters, schema, partitions, small, decryption, on_error, False, storage_options, options
    )
    if is_connect(spark):
        found = _ask(spark, "count_plan", question)
    else:
        found = counted(question, lambda: parallelism(spark))
    if isinstance(found, int):
        return found
    rows = over_payloads(spark, "count", found, "rows long", question.settings()).collect()
    return sum(row[0] for row in rows)


def _question(
    spark: Any,
    source: Any,
    columns: Any,
    filters: Any,
    schema: Any,
    partitions: int | None,
    small: int,
    decryption: Any,
    on_error: str,
    truncate: bool,
    storage_options: Any,
    options: dict[str, Any],
) -> Question:
    check_session(spark)
    check_factory(decryption)
    if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
        raise OptionError(f"partitions must be at least 1, not {partitions!r}")
    if not isinstance(small, int) or small < 0:
        raise OptionError(f"small must be a number of bytes, at least 0, not {small!r}")
    known = {"partitioning", "filename", "by"}
    ReadOptions.check_known({k: v for k, v in options.items() if k not in known}, (*_PARAMETERS, *known))
    return Question(
        absolute(source, is_connect(spark)), columns, filters, _arrow_schema(schema),
        partitions, small, decryption, on_error, truncate, storage_options,
        is_case_sensitive(spark), options,
    )  # fmt: skip


_PARAMETERS = (
    "columns", "filters", "schema", "partitions", "small", "decryption", "on_error", "truncate", "storage_options",
)  # fmt: skip


def _arrow_schema(schema: Any) -> Any:
    """A Spark schema (or its text) as Arrow's; everything else as it is."""
    if isinstance(schema, str):
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(schema)
    if schema is None or not type(schema).__module__.startswith("pyspark."):
        return schema
    from pyspark.sql.pandas.types import to_arrow_schema

    from pyparq.schemas.parse import schema as parse_schema

    return parse_schema(to_arrow_schema(schema, timezone="UTC"))


def _where_the_files_are(spark: Any, question: Question) -> Reply:
    if not is_connect(spark):
        return answered(question, lambda: parallelism(spark))
    reply: Reply = _ask(spark, "plan", question)
    return reply


def _ask(spark: Any, task: str, question: Question) -> Any:
    """The reply of a job of one task."""
    payload = pickle.dumps((question, parallelism(spark)))
    rows = over_payloads(spark, task, [payload], "reply binary").collect()
    return pickle.loads(bytes(rows[0][0]))


def _table(answer: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(answer).read_all()
