"""``write``: a DataFrame as a folder of Parquet files. Tasks write into staging, one committer makes all visible."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.staging import Staging
from pyparq.datasets.write.commit import Committer, complete_writes
from pyparq.datasets.write.store_commit import StoreCommitter, StoreStaging
from pyparq.datasets.write.targets import Sources, check_partitions
from pyparq.datasets.write.write_dataset import StagedPart, check_write, write_staged
from pyparq.errors import ChangedMeanwhile, DataError, OptionError, PlanError, TargetExistsError, UnsupportedError
from pyparq.io.url import check_storage_options, is_url, local_path, shown
from pyparq.maintenance.kept_storage import ROW_METADATA
from pyparq.spark.job_log import tell_job
from pyparq.spark.options import check_factory, keys_of, obeyed, of_session, stored_as_set, unmarked
from pyparq.spark.session import absolute, check_session, is_connect, learner, store_options, time_zone
from pyparq.spark.stored import as_stored, floored
from pyparq.spark.tasks import OF_WRITES, Progress, Watch, attempt, here, over_partitions
from pyparq.spark.types import SparkTypes, in_microseconds, with_clocks, zoned_names
from pyparq.write.file_layout import WriteReport, WrittenFile

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
    table: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> WriteReport:
    """Write a DataFrame to a folder of Parquet files; all of them become visible together.

    ``path``: the folder or its URL, the same for every worker; on a store, files become visible one by one when all are
    complete (docs/spark.md). ``mode``: ``"error"``, ``"append"``, ``"overwrite"`` and
    ``"ignore"`` as in Spark, and ``"overwrite_partitions"``, which replaces only the partitions that the data has.
    ``partition_cols``: columns whose values become names of folders, as Spark writes them. ``encryption``: the name of
    a function that makes the properties on each worker (``"module:function"``). ``force``: write even where Delta Lake,
    Iceberg or Hudi manages the folder. ``storage_options``: for the file system of a URL. ``table``: the table of the
    catalog that has its files there; it learns of new partitions and of replaced files. ``progress``:
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
    storage_options = store_options(spark, storage_options, target)
    request = WriteRequest.of(
        target, MODES[mode], df.schema, partition_cols, options, storage_options, force, encryption,
        zone=time_zone(spark), session=of_session(spark),
    )  # fmt: skip
    learn = learner(spark, table, target)
    job = begin(spark, request)
    if job is None:
        return WriteReport(target, ())
    report: WriteReport = run_write(
        spark, job, watch, lambda: over_partitions(df, _write_partition, job, errors=OF_WRITES)
    )
    learn()
    return report


def _write_partition(batches: Any, job: WriteJob) -> TaskReply:
    from pyspark import TaskContext

    return write_task(batches, job, TaskContext.get().partitionId(), attempt())


def begin(spark: Any, request: WriteRequest) -> WriteJob | None:
    """Begin a write of the session, which :func:`run_write` ends: see :meth:`WriteRequest.begun`."""
    job: WriteJob | None = here(spark, request.begun, not is_connect(spark))
    return job


def run_write(
    spark: Any, job: WriteJob, watch: Watch, tasks: Callable[[], Sequence[Any]], end: Callable[..., Any] | None = None
) -> Any:
    """Run the tasks of a job that :func:`begin` has made, and commit their files. After an error the target is as it
    was. ``end``: commits instead of :func:`commit`, and takes what it takes.

    Raises :class:`ChangedMeanwhile` for a file that the job replaces and that has changed.
    """
    try:
        with watch:
            replies = tasks()
        found = here(spark, end or commit, job, replies)
    except BaseException as error:
        here(spark, abort, job.staging, job.storage_options)
        if isinstance(error, PlanError) and job.sources is not None:
            raise ChangedMeanwhile(
                "the file has changed since this job began, so nothing is replaced: run the job again", file=error.file
            ) from error
        raise
    if isinstance(found, WriteReport):
        sizes = sum(file.num_bytes for file in found.files)
        tell_job(f"write ({job.mode})", job.target, len(found.files), found.num_rows, sizes)
    return found


def check_target(target: str, storage_options: Any) -> None:
    """Raise :class:`UnsupportedError` for a URL that other processes cannot write to, :class:`OptionError` for options
    of none."""
    check_storage_options(storage_options)
    if target.startswith("memory://"):
        raise UnsupportedError(f"each of Spark's workers has a memory of its own: {target} would be lost with them")


def one_folder(spark: Any, path: Any, storage_options: Mapping[str, Any] | None, job: str) -> tuple[str, Any]:
    """The checked folder of a job, and the options for its file system."""
    where = absolute(path, is_connect(spark))
    if not isinstance(where, str):
        raise OptionError(f"{job} takes one folder")
    storage_options = store_options(spark, storage_options, where)
    check_target(where, storage_options if is_url(where) else None)
    return where, storage_options


def nullable_schema(schema: Any) -> Any:
    """A Spark schema as pyarrow has it. Every column can be null, as in files that Spark writes.

    Raises :class:`UnsupportedError`, which names the column, for a type that Parquet or Arrow has nothing for.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    for own in schema.fields:
        try:
            to_arrow_schema(StructType([own]), timezone="UTC")
        except Exception as error:
            raise UnsupportedError(
                f"Spark hands over no values of type {own.dataType.simpleString()}: leave the column out or cast it",
                column=own.name,
            ) from error
    arrow = SparkTypes(parse_schema(to_arrow_schema(schema, timezone="UTC"))).arrow
    return pa.schema([as_stored(f.with_type(in_microseconds(f.type))) for f in arrow])


def with_row_metadata(options: dict[str, Any], schema: Any, partition_cols: Sequence[str]) -> dict[str, Any]:
    """The options, with Spark's schema among the key-value metadata: from there Spark knows intervals, for which
    Parquet has no type, and the metadata of columns."""
    from pyspark.sql.types import StructType

    own = StructType([f for f in unmarked(schema).fields if f.name not in partition_cols])
    return {**options, "key_value_metadata": {ROW_METADATA: own.json(), **dict(options.get("key_value_metadata", {}))}}


# ---- steps of a write: where the files are --------------------------------------------------------------------------

AnyStaging = Staging | StoreStaging
AnyCommitter = Committer | StoreCommitter


@dataclass(frozen=True)
class WriteRequest:
    """A write that has not begun."""

    target: str
    mode: str
    schema: Any
    """Of the rows, as pyarrow has it."""
    partition_cols: tuple[str, ...]
    options: dict[str, Any]
    """Of :func:`pyparq.write_table`, for each file."""
    storage_options: Any = None
    force: bool = False
    """Write even where a table format manages the folder."""
    encryption: str | None = None
    sources: Sources | None = None
    """The files that the write replaces; ``None``: those that its mode says."""
    zone: str = ""
    """Of the clocks that folders of timestamps are named after; ``""``: UTC."""
    keep_old: float = 0
    """Seconds for which replaced files stay for readers that have listed them."""

    @classmethod
    def of(
        cls, target: str, mode: str, schema: Any, partition_cols: Sequence[str] | str, options: Mapping[str, Any],
        storage_options: Any, force: bool, encryption: str | None, *, zone: str, session: Mapping[str, str],
    ) -> WriteRequest:  # fmt: skip
        """Of rows that have Spark's ``schema``, with what the settings of the session say where the options do not.

        Raises :class:`OptionError` and :class:`UnsupportedError`.
        """
        check_target(target, storage_options)
        check_factory(encryption, "encryption")
        names = (partition_cols,) if isinstance(partition_cols, str) else tuple(partition_cols)
        mode, given = obeyed(mode, names, options, session)
        rows, given = stored_as_set(nullable_schema(schema), schema, names, given, session)
        given = with_row_metadata(given, schema, names)
        return cls(target, mode, rows, names, given, storage_options, force, encryption, zone=zone)

    def begun(self, attached: bool = False) -> WriteJob | None:
        """Begin the write, after a look at its options; ``None`` for mode ``"ignore"`` where there is something
        already. ``attached``: it ends in this process too, and its lock shows until then that it is under way."""
        mode = "error" if self.mode == "ignore" else self.mode
        check_write(self.schema, self.partition_cols, mode, self.options)
        committer: AnyCommitter
        try:
            if is_url(self.target):
                committer = StoreCommitter.start(self.target, mode, self.storage_options, force=self.force)
            else:
                path = local_path(self.target) or self.target
                committer = Committer.start(path, mode, detached=not attached, force=self.force)
        except TargetExistsError:
            if self.mode == "ignore":
                return None
            raise
        try:
            there = committer.data_file()
            if there is not None and not self.force:
                check_partitions(there, self.partition_cols, mode, shown(self.target))
        except BaseException:
            committer.abort()
            raise
        if attached:
            _attached[committer.staging.folder] = committer
        return WriteJob(**vars(self), staging=committer.staging)


@dataclass(frozen=True)
class WriteJob(WriteRequest):
    """A write that has begun: what every task of it has to know."""

    staging: AnyStaging = field(kw_only=True)

    def write_options(self) -> dict[str, Any]:
        """Options of :func:`pyparq.write_table`, with the keys made here. A task has one core, as Spark counts."""
        options, keys = {"use_threads": False, **self.options}, keys_of(self.encryption, "encryption")
        return options if keys is None else {**options, "encryption": keys}


@dataclass(frozen=True)
class TaskReply:
    """What one task has written."""

    partition: int
    parts: tuple[StagedPart, ...]


def sources_of(folder: str, storage_options: Any) -> Sources:
    """The files of a folder that a job is about to replace. Crashed writes there are completed first."""
    complete_writes(folder)
    return Sources.listed(folder, storage_options)


_attached: dict[str, AnyCommitter] = {}
"""Writes that have begun in this process, and end in it, by their staging folders."""


def committer_of(staging: AnyStaging, storage_options: Any) -> AnyCommitter:
    begun = _attached.pop(staging.folder, None)
    if begun is not None:
        return begun
    return StoreCommitter(staging, storage_options) if isinstance(staging, StoreStaging) else Committer.resume(staging)


def commit(job: WriteJob, replies: Iterable[TaskReply | None]) -> WriteReport:
    """Make the files of all tasks visible. Raises what :func:`all_parts` does."""
    committer = committer_of(job.staging, job.storage_options)
    try:
        parts = all_parts(replies)
        # No rows are no partition: as with Spark, nothing tells the columns then.
        if not parts and not job.partition_cols and (job.staging.mode == "overwrite" or committer.data_file() is None):
            parts = write_staged(
                [], job.staging, "empty", partition_cols=job.partition_cols, schema=job.schema, even_empty=True,
                prefix="part-00000", options=job.write_options(), storage_options=job.storage_options,
            )  # fmt: skip
        fsync = bool(job.options.get("fsync"))
        kept: dict[str, Any] = {"keep_old": job.keep_old} if job.keep_old else {}  # on a file system alone
        replaced = committer.commit([part.file for part in parts], fsync=fsync, sources=job.sources, **kept)
    except BaseException:
        committer.abort()
        raise
    committer.note_success("_SUCCESS")
    target = shown(job.staging.target)
    written = (WrittenFile(os.path.join(target, p.file.path), p.num_rows, p.num_bytes) for p in parts)
    return WriteReport(target, tuple(sorted(written, key=lambda file: file.path)), tuple(replaced))


def abort(staging: AnyStaging, storage_options: Any = None) -> None:
    """Give a write up. After a commit it does nothing."""
    if isinstance(staging, StoreStaging) or os.path.isdir(staging.folder):
        committer_of(staging, storage_options).abort()


def all_parts(replies: Iterable[TaskReply | None]) -> list[StagedPart]:
    """The files of all tasks. Raises :class:`DataError` for a partition that is missing or came twice: then some rows
    would be lost or doubled."""
    seen: set[int] = set()
    parts: list[StagedPart] = []
    for reply in replies:
        if reply is None:
            raise DataError("a partition of the DataFrame was not written: its task gave no answer")
        if reply.partition in seen:
            raise DataError(f"partition {reply.partition} of the DataFrame was written twice")
        seen.add(reply.partition)
        parts += reply.parts
    return parts


def write_task(batches: Any, job: WriteJob, partition: int, attempt: str) -> TaskReply:
    """Write the rows of one task into staging. ``attempt`` differs between tasks and between their attempts."""
    import pyarrow as pa

    rows = pa.RecordBatchReader.from_batches(job.schema, (fitted(job.schema, batch) for batch in batches))
    return stage(rows, job, partition, attempt)


def stage(rows: Any, job: WriteJob, number: int, attempt: str) -> TaskReply:
    """Write rows of the job's schema into staging, as the task of this number."""
    import pyarrow as pa

    schema = job.schema
    zoned = zoned_names(pa.schema(schema), job.partition_cols, job.zone)
    if zoned:
        rows = with_clocks(pa.RecordBatchReader.from_stream(rows), zoned, job.zone)
        schema = rows.schema
    parts = write_staged(
        rows, job.staging, attempt, partition_cols=job.partition_cols, schema=schema, even_empty=False,
        prefix=f"part-{number:05d}", options=job.write_options(), storage_options=job.storage_options,
    )  # fmt: skip
    return TaskReply(number, tuple(parts))


def fitted(schema: Any, batch: Any) -> Any:
    """The batch with exactly this schema: Spark's says that some columns have no nulls."""
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    columns = [floored(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
