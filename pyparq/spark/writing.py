"""``write``: a DataFrame as a folder of Parquet files. Tasks write into staging, one committer makes all visible."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.write_dataset import WriteReport
from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.url import check_storage_options
from pyparq.maintenance.kept_storage import ROW_METADATA
from pyparq.spark import stores
from pyparq.spark.keys import check_factory
from pyparq.spark.paths import absolute
from pyparq.spark.progress import Progress, Watch
from pyparq.spark.session import check_session, is_connect, time_zone
from pyparq.spark.settings import obeyed, of_session, stored_as_set
from pyparq.spark.stored import as_stored
from pyparq.spark.tables import unmarked
from pyparq.spark.types import SparkTypes, in_microseconds
from pyparq.spark.work import ask, over_batches, replies_of
from pyparq.spark.write_tasks import AnyStaging, TaskReply, WriteJob, committed, sources_of, started

MODES = {"error": "error", "errorifexists": "error", "append": "append", "overwrite": "overwrite", "ignore": "ignore",
         "overwrite_partitions": "overwrite_partitions"}  # fmt: skip
"""Spark's modes, and what Spark calls dynamic partition overwrite."""


def write(
    df: Any,
    path: Any,
    *,
    mode: str = "error",
    partition_cols: Sequence[str] | str = (),
    encryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> WriteReport:
    """Write a DataFrame to a folder of Parquet files; all of them become visible together.

    ``path``: the folder or its URL, the same for every worker; on a store, files become visible one by one when all are
    complete (docs/spark.md). ``mode``: ``"error"``, ``"append"``, ``"overwrite"`` and
    ``"ignore"`` as in Spark, and ``"overwrite_partitions"``, which replaces only the partitions that the data has.
    ``partition_cols``: columns whose values become names of folders, as Spark writes them. ``encryption``: the name of
    a function that makes the properties on each worker (``"module:function"``). ``force``: write even where Delta Lake,
    Iceberg or Hudi manages the folder. ``storage_options``: for the file system of a URL. ``progress``:
    called with the number of Spark's tasks that are done, and the number of all tasks so far, from another thread;
    first with zeros. ``options``: those of :func:`pyparq.write_table`, for each file: ``bloom_filters``, ``sort_by``
    (within each file) and the others, and ``max_rows_per_file`` and ``max_bytes_per_file`` of
    :func:`pyparq.write_dataset`; ``partitionOverwriteMode`` and ``maxRecordsPerFile`` too, as Spark spells them. Where
    the call does not say, the session's settings do: docs/spark.md has the list. Each partition of the DataFrame makes
    a file for each folder that it has rows for: ``df.repartition`` decides how many; after ``df.repartitionByRange``
    the files together are in order, by their names too.

    Tasks that fail, are repeated or run twice leave nothing visible. An error leaves what was there. The path may be
    one that the DataFrame reads (docs/spark.md says what holds for concurrent readers). Raises
    :class:`pyparq.TargetExistsError` in mode ``"error"`` where the folder is not empty.

    Example::

        import pyparq.spark as ps

        df = ps.read(spark, "flights.parquet")
        ps.write(df, "by-month", mode="overwrite", partition_cols=["month"], bloom_filters=["tailnum"])
    """
    spark = df.sparkSession
    check_session(spark)
    if mode not in MODES:
        raise OptionError(f"mode must be {', '.join(map(repr, MODES))}, not {mode!r}")
    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"the target must be a folder's path, not {type(path).__name__}")
    target, watch = absolute(path, is_connect(spark)), Watch(spark, progress)
    storage_options = stores.storage_options(spark, storage_options, target)
    check_target(target, storage_options)
    names, session = [partition_cols] if isinstance(partition_cols, str) else list(partition_cols), of_session(spark)
    mode, options = obeyed(MODES[mode], names, options, session)
    schema, options = stored_as_set(arrow_schema(df), df.schema, names, options, session)
    options = with_row_metadata(options, df.schema, names)
    check_factory(encryption, "encryption")
    commits = committer_of(spark)
    staging = commits.start(target, mode, schema, tuple(names), options, storage_options, force)
    if staging is None:
        return WriteReport(target, ())
    job = WriteJob(staging, schema, tuple(names), encryption, options, storage_options, zone=time_zone(spark))
    return committed_or_aborted(commits, job, watch, lambda: replies_of(over_batches(df, "write", job, "reply binary")))


def committed_or_aborted(commits: Any, job: WriteJob, watch: Watch, run: Callable[[], Any]) -> WriteReport:
    """Run the tasks of a job and commit their files. After an error the target is as it was."""
    try:
        with watch:
            found = run()
        report: WriteReport = commits.commit(job, found)
        return report
    except BaseException:
        commits.abort(job.staging, job.storage_options)
        raise


def check_target(target: str, storage_options: Any) -> None:
    """Raise :class:`UnsupportedError` for a URL that other processes cannot write to, :class:`OptionError` for options
    of none."""
    check_storage_options(storage_options)
    if target.startswith("memory://"):
        raise UnsupportedError(f"each of Spark's workers has a memory of its own: {target} would be lost with them")


def arrow_schema(df: Any) -> Any:
    """The DataFrame's schema as pyarrow has it. Every column can be null, as in files that Spark writes.

    Raises :class:`UnsupportedError`, which names the column, for a type that Parquet or Arrow has nothing for.
    """
    return nullable_schema(df.schema)


def nullable_schema(schema: Any) -> Any:
    """A Spark schema as pyarrow has it, every column nullable: see :func:`arrow_schema`."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    for field in schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except Exception as error:
            raise UnsupportedError(
                f"Spark hands over no values of type {field.dataType.simpleString()}: leave the column out or cast it",
                column=field.name,
            ) from error
    arrow = SparkTypes(parse_schema(to_arrow_schema(schema, timezone="UTC"))).arrow
    return pa.schema([as_stored(field.with_type(in_microseconds(field.type))) for field in arrow])


def with_row_metadata(options: dict[str, Any], schema: Any, partition_cols: Sequence[str]) -> dict[str, Any]:
    """The options, with Spark's schema among the key-value metadata: from there Spark knows intervals, for which
    Parquet has no type, and the metadata of columns."""
    from pyspark.sql.types import StructType

    own = StructType([field for field in unmarked(schema).fields if field.name not in partition_cols])
    return {**options, "key_value_metadata": {ROW_METADATA: own.json(), **dict(options.get("key_value_metadata", {}))}}


# ---- where the files are: here, or where a task of a Connect session runs -----------------------------------------


def committer_of(spark: Any) -> _Here | _Far:
    """What begins and ends a write of the session."""
    return _Far(spark) if is_connect(spark) else _Here()


class _Here:
    """The committer in this process, whose lock shows until the end that the write is under way."""

    def start(self, target: str, mode: str, *about: Any) -> AnyStaging | None:
        self._committer = started(target, mode, *about, detached=False)
        return None if self._committer is None else self._committer.staging

    def sources(self, folder: str, storage_options: Any) -> Sources:
        return sources_of(folder, storage_options)

    def commit(self, job: WriteJob, replies: Sequence[TaskReply]) -> WriteReport:
        assert self._committer is not None  # start() gave its staging
        return committed(self._committer, job, replies)

    def abort(self, staging: AnyStaging, storage_options: Any) -> None:
        assert self._committer is not None
        self._committer.abort()


class _Far:
    """The committer in a job of one task: the client may not see the files."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def start(self, *arguments: Any) -> AnyStaging | None:
        found: AnyStaging | None = ask(self._spark, "commit_step", "start", *arguments)
        return found

    def sources(self, folder: str, storage_options: Any) -> Sources:
        found: Sources = ask(self._spark, "commit_step", "sources", folder, storage_options)
        return found

    def commit(self, job: WriteJob, replies: Sequence[TaskReply]) -> WriteReport:
        report: WriteReport = ask(self._spark, "commit_step", "commit", job, list(replies))
        return report

    def abort(self, staging: AnyStaging, storage_options: Any) -> None:
        ask(self._spark, "commit_step", "abort", staging, storage_options)
