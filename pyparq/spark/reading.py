"""``read`` and ``count``: plan once, answer at once what is small, and let Spark's workers read the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.errors import OptionError
from pyparq.options import ReadOptions
from pyparq.spark import stores
from pyparq.spark.columns import is_column, taken
from pyparq.spark.keys import check_factory
from pyparq.spark.partition_types import folders_of
from pyparq.spark.paths import absolute
from pyparq.spark.planning import reply
from pyparq.spark.progress import Progress, Watch
from pyparq.spark.question import SMALL, Question
from pyparq.spark.session import check_session, is_ansi, is_case_sensitive, is_connect, many_files, time_zone
from pyparq.spark.skipped import LeftOut, note, warn
from pyparq.spark.types import SparkTypes
from pyparq.spark.work import ask, over_payloads, replies

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names


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
    skipped_to: Any = None,
    truncate: bool = False,
    residual: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Parquet files as a Spark DataFrame. Only the pages that can hold matching rows are read.

    ``spark``: the session, classic or Connect. ``source``: a file, folder, glob, URL or a list of these, as in
    :func:`pyparq.dataset`; it must mean the same on every worker. ``columns`` and ``filters``: as in
    :func:`pyparq.read_table`; names are matched as ``spark.sql.caseSensitive`` says. A filter may also be a condition
    in Spark's SQL, or a ``Column``. ``residual``: what pyparq has no equal for in it is left to Spark, and rows are
    skipped by the rest. Filters that are applied to the DataFrame later skip nothing: give them here. ``schema``: the
    schema to read the files with; a Spark schema or its text will do. ``partitions``: of the DataFrame, at most; by
    default as many as the session has cores. ``small``: read at once, without a Spark job, where at most so many bytes
    of pages are left. ``decryption``: the name of a function that makes the keys on a worker (``"module:function"``).
    ``on_error``: ``"skip"`` leaves out files that cannot be read. It warns of those found now. ``skipped_to``:
    a folder, the same for all workers, that gets a note (JSON with ``path`` and ``error``) of each file that is left
    out, now or when the DataFrame is used. ``truncate``: cut nanoseconds to the microseconds that Spark has.
    ``progress``: called while Spark's tasks plan, as in :func:`pyparq.spark.write`; Spark itself shows how the
    DataFrame is read later.
    ``options``: of :func:`pyparq.dataset` and :class:`pyparq.ReadOptions`.

    The DataFrame is a snapshot of the files that are there now. A file that changes before it is read is an error
    (:class:`pyparq.PlanError`). Raises :class:`pyparq.UnsupportedError` for a column that Spark has no type for.

    Example::

        import pyparq.spark as ps

        df = ps.read(spark, "flights/", columns=["flight"], filters="dest = 'LAX'")
        df.show(3)
    """
    if columns is not None and not isinstance(columns, str) and not list(columns):
        raise OptionError("a DataFrame needs a column: name one in columns, or use pyparq.spark.count")
    question = _question(
        spark, source, columns=columns, filters=filters, schema=schema, partitions=partitions, small=small,
        decryption=decryption, on_error=on_error, skipped_to=skipped_to, truncate=truncate,
        residual=residual, storage_options=storage_options, **options,
    )  # fmt: skip
    with Watch(spark, progress):
        frame = _frame(spark, question)
    return _filtered(frame, filters, columns) if residual else frame


def _frame(spark: Any, question: Question) -> Any:
    """The DataFrame that answers the question, except for the conditions that are left to Spark."""
    found = reply(spark, question)
    warn(found.skipped)
    _note(spark, question, found.skipped)
    assert found.schema is not None  # it is no number of rows
    types = SparkTypes(found.schema, truncate=question.truncate)
    if isinstance(found.answer, bytes):
        return spark.createDataFrame(_table(found.answer), schema=types.spark)
    return over_payloads(spark, "read", found.parts, types.spark, question.settings())


def _filtered(frame: Any, condition: Any, columns: Any) -> Any:
    """The rows where Spark finds the condition true, without the columns that were read for it alone."""
    kept = frame.where(condition)
    if columns is None:
        return kept
    count = 1 if isinstance(columns, str) else len(list(columns))
    return kept.select(*("`" + name.replace("`", "``") + "`" for name in frame.columns[:count]))


def count(
    spark: Any, source: Any, filters: Filters | None = None, *, progress: Progress | None = None, **options: Any
) -> int:
    """The number of rows that match. Without a filter only footers are read.

    ``options``: the parameters of :func:`read`, but for ``columns`` and ``truncate``.

    Example::

        import pyparq.spark as ps

        print(ps.count(spark, "flights/", "dest = 'LAX'"))
    """
    if not {"columns", "truncate"}.isdisjoint(options):
        raise OptionError("a count takes neither columns nor truncate")
    if options.get("residual"):
        with Watch(spark, progress):
            frame = _frame(spark, _question(spark, source, columns=[], filters=filters, **options))
            return int(frame.where(filters).count())
    question = _question(spark, source, columns=[], filters=filters, counts=True, **options)
    with Watch(spark, progress):
        found = reply(spark, question)
        counted = [] if isinstance(found.answer, int) else replies(spark, "count", found.parts, question.settings())
    skipped = [*found.skipped, *(file for _, said in counted for file in said)]
    warn(skipped)
    _note(spark, question, skipped)
    return found.answer if isinstance(found.answer, int) else sum(rows for rows, _ in counted)


def _note(spark: Any, question: Question, skipped: Sequence[LeftOut]) -> None:
    """Write notes where the files are. The folder is made even if there is nothing to note: so it can be read."""
    if question.skipped_to is not None:
        arguments = question.skipped_to, skipped, question.storage_options
        if is_connect(spark):
            ask(spark, "note", *arguments)
        else:
            note(*arguments)


def _question(
    spark: Any,
    source: Any,
    *,
    columns: Any,
    filters: Any,
    schema: Any = None,
    partitions: int | None = None,
    small: int = SMALL,
    decryption: Any = None,
    on_error: str = "raise",
    skipped_to: Any = None,
    truncate: bool = False,
    residual: bool = False,
    storage_options: Any = None,
    counts: bool = False,
    **options: Any,
) -> Question:
    """What was asked, with its options checked."""
    check_session(spark)
    check_factory(decryption)
    if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
        raise OptionError(f"partitions must be at least 1, not {partitions!r}")
    if not isinstance(small, int) or small < 0:
        raise OptionError(f"small must be a number of bytes, at least 0, not {small!r}")
    if skipped_to is not None and on_error != "skip":
        raise OptionError('skipped_to needs on_error="skip": otherwise no file is left out')
    if residual and not (isinstance(filters, str) or is_column(filters)):
        raise OptionError("residual=True needs a filter that Spark understands too: SQL text or a Column")
    source = absolute(source, is_connect(spark))
    storage_options = stores.storage_options(spark, storage_options, source)
    known = {"partitioning", "filename", "by"}
    ReadOptions.check_known({k: v for k, v in options.items() if k not in known}, (*_PARAMETERS, *known))
    return Question(
        source, columns, taken(filters, spark), _arrow_schema(schema), partitions, small, decryption, on_error,
        truncate, storage_options, is_case_sensitive(spark), options, counts,
        None if skipped_to is None else absolute(skipped_to, is_connect(spark)), many_files(spark),
        time_zone(spark), folders_of(spark), residual, is_ansi(spark),
    )  # fmt: skip


_PARAMETERS = (
    "columns", "filters", "schema", "partitions", "small", "decryption", "on_error", "skipped_to", "truncate",
    "residual", "storage_options", "progress",
)  # fmt: skip


def _arrow_schema(schema: Any) -> Any:
    """A Spark schema (or its text) as Arrow's; everything else as it is."""
    if isinstance(schema, str):
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(schema)
    if schema is None or not type(schema).__module__.startswith("pyspark."):
        return schema
    from pyspark.sql.pandas.types import to_arrow_schema

    return parse_schema(to_arrow_schema(schema, timezone="UTC"))


def _table(answer: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(answer).read_all()
