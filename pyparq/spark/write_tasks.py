"""The tasks of a write that run where the files are: write rows into staging, begin a write, and make it visible."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.staging import Staging
from pyparq.datasets.write.commit import Committer, complete_writes
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.store_commit import StoreCommitter, StoreStaging
from pyparq.datasets.write.write_dataset import StagedPart, WriteReport, WrittenFile, check_write, write_staged
from pyparq.errors import DataError, TargetExistsError
from pyparq.io.url import is_url, local_path, shown
from pyparq.spark.keys import keys_of
from pyparq.spark.partition_types import with_clocks, zoned_names
from pyparq.spark.stored import floored

AnyStaging = Staging | StoreStaging
AnyCommitter = Committer | StoreCommitter


@dataclass(frozen=True)
class WriteJob:
    """What every task of a write has to know."""

    staging: AnyStaging
    schema: Any
    """Of the rows, as pyarrow has it."""
    partition_cols: tuple[str, ...]
    encryption: str | None
    options: dict[str, Any]
    storage_options: Any = None
    sources: Sources | None = None
    """The files that the write replaces; ``None``: those that its mode says."""
    zone: str = ""
    """Of the clocks that folders of timestamps are named after; ``""``: UTC."""

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


def started(
    target: str,
    mode: str,
    schema: Any,
    partition_cols: tuple[str, ...],
    options: dict[str, Any],
    storage_options: Any = None,
    force: bool = False,
    *,
    detached: bool,
) -> AnyCommitter | None:
    """Begin a write, after a look at its options; ``None`` for mode ``"ignore"`` where there is something already.
    ``detached``: it ends in another process."""
    check_write(schema, partition_cols, "error" if mode == "ignore" else mode, options)
    real = "error" if mode == "ignore" else mode
    try:
        if is_url(target):
            return StoreCommitter.start(target, real, storage_options, force=force)
        return Committer.start(local_path(target) or target, real, detached=detached, force=force)
    except TargetExistsError:
        if mode == "ignore":
            return None
        raise


def start(target: str, mode: str, *about: Any) -> AnyStaging | None:
    """Begin a write that another process commits: see :func:`started`."""
    begun = started(target, mode, *about, detached=True)
    return None if begun is None else begun.staging


def commit(job: WriteJob, replies: Iterable[TaskReply | None]) -> WriteReport:
    """Make the files of all tasks of a write visible that another process has begun: see :func:`committed`."""
    return committed(_resumed(job.staging, job.storage_options), job, replies)


def _resumed(staging: AnyStaging, storage_options: Any) -> AnyCommitter:
    return StoreCommitter(staging, storage_options) if isinstance(staging, StoreStaging) else Committer.resume(staging)


def committed(committer: AnyCommitter, job: WriteJob, replies: Iterable[TaskReply | None]) -> WriteReport:
    """Make the files of all tasks visible. Raises what :func:`all_parts` does."""
    try:
        parts = all_parts(replies)
        # No rows are no partition: as with Spark, nothing tells the columns then.
        if not parts and not job.partition_cols and (job.staging.mode == "overwrite" or not committer.has_data()):
            parts = write_staged(
                [], job.staging, "empty", partition_cols=job.partition_cols, schema=job.schema, even_empty=True,
                prefix="part-00000", options=job.write_options(), storage_options=job.storage_options,
            )  # fmt: skip
        fsync = bool(job.options.get("fsync"))
        replaced = committer.commit([part.file for part in parts], fsync=fsync, sources=job.sources)
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
        _resumed(staging, storage_options).abort()


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

    reader = pa.RecordBatchReader.from_batches(job.schema, (_as(job.schema, batch) for batch in batches))
    zoned = zoned_names(job.schema, job.partition_cols, job.zone)
    if zoned:
        reader = with_clocks(reader, job.schema, zoned, job.zone)
    parts = write_staged(
        reader, job.staging, attempt, partition_cols=job.partition_cols, schema=reader.schema, even_empty=False,
        prefix=f"part-{partition:05d}", options=job.write_options(), storage_options=job.storage_options,
    )  # fmt: skip
    return TaskReply(partition, tuple(parts))


def _as(schema: Any, batch: Any) -> Any:
    """The batch with exactly this schema: Spark's says that some columns have no nulls."""
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    columns = [floored(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


STEPS: Mapping[str, Any] = {"sources": sources_of, "start": start, "commit": commit, "abort": abort}
