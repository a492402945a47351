"""The writing side of the data source: ``df.write.format("pyparq")``, where Spark has two modes, append and overwrite,
and ``df.writeStream.format("pyparq")``, where each batch is one commit.

A batch that Spark repeats after a restart must not write its rows again. So every commit has one file more, the batch's
record (``_pyparq_stream-<query>/<batch>.json``, a name that readers pass over), and where that is already, the batch
has been written. It becomes visible in the same commit as the files.

Spark makes a writer for the tasks of each batch, and another one to commit or abort it, which knows of the first only
what the messages of the tasks say.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from pyparq.datasets.staging import Staging, staging_folders
from pyparq.datasets.write.commit import Committer
from pyparq.datasets.write.targets import StagedFile
from pyparq.datasets.write.write_dataset import check_write
from pyparq.errors import OptionError, TargetExistsError, UnsupportedError
from pyparq.io.url import is_url
from pyparq.spark.file_choice import as_flag
from pyparq.spark.options import as_list, as_value, as_write_option, options_of_write, source_of
from pyparq.spark.tasks import OnWorkers
from pyparq.spark.writing import TaskReply, WriteJob, WriteRequest, abort, all_parts, commit, write_task


def _request(options: Mapping[str, Any], schema: Any, overwrite: bool) -> WriteRequest:
    """What the text that Spark hands on asks for. Raises :class:`OptionError`."""
    given = options_of_write(options, schema)
    target = source_of(given)
    if not isinstance(target, str):
        raise OptionError("give one folder to write to")
    force = as_flag(given, "force")
    storage, zone, encryption, names = (
        given.get(name) for name in ("storage_options", "time_zone", "encryption", "partition_cols")
    )
    values = {name: as_write_option(name, text) for name, text in given.items() if name not in _OF_THE_WRITE}
    return WriteRequest.of(
        target, "overwrite" if overwrite else "append", schema, as_list(names) or (), values, as_value(storage), force,
        encryption, zone=zone or "", session={},
    )  # fmt: skip


_OF_THE_WRITE = ("path", "paths", "schema", "encryption", "storage_options", "force", "time_zone", "partition_cols")


class Message(WriterCommitMessage):  # type: ignore[misc]
    """What one task has written."""

    def __init__(self, reply: TaskReply) -> None:
        self.reply = reply


class Writer(OnWorkers, DataSourceArrowWriter):  # type: ignore[misc]
    """One write. Made once, where Spark plans; its parts run in other processes."""

    def __init__(self, options: Mapping[str, Any], schema: Any, overwrite: bool) -> None:
        super().__init__()
        job = _request(options, schema, overwrite).begun()
        assert job is not None  # for mode "ignore" alone
        self.job = job

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        attempt = f"task-{context.taskAttemptId()}"
        return Message(write_task(iterator, self.job, context.partitionId(), attempt))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.job, [None if message is None else message.reply for message in messages])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.job.staging, self.job.storage_options)


KEPT = 100
"""Records of batches that stay: as many as Spark keeps of its own (``spark.sql.streaming.minBatchesToRetain``)."""

_QUERY = "sql.streaming.queryId"
"""Where Spark tells a task the query's id, which stays the same when the query is started again from its checkpoint."""
_OWNER = "stream"
"""File of a staging folder that says which query's it is."""


@dataclass(frozen=True)
class StreamReply:
    """What one task of a batch has written."""

    query: str
    job: WriteJob
    reply: TaskReply


class StreamMessage(WriterCommitMessage):  # type: ignore[misc]
    """The same, as Spark carries it."""

    def __init__(self, reply: StreamReply) -> None:
        self.reply = reply


class StreamWriter(OnWorkers, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writes the batches of a stream. ``overwrite``: each batch replaces all files (output mode ``complete``)."""

    def __init__(self, options: Mapping[str, Any], schema: Any, overwrite: bool) -> None:
        super().__init__()
        given = {name.lower(): value for name, value in options.items()}
        place = given.pop("checkpointlocation", None)
        self._owner = "" if place is None else hashlib.sha256(place.encode()).hexdigest()[:32]
        given.pop("queryname", None)
        self._request = _request(given, schema, overwrite)
        if is_url(self._request.target):
            raise UnsupportedError(
                "a stream cannot commit its batches on a store, which renames nothing: write each batch by "
                "foreachBatch "
                'and pyparq.spark.write, with mode="overwrite" and a folder for each batch (docs/spark.md)'
            )
        check_write(self._request.schema, self._request.partition_cols, self._request.mode, self._request.options)
        self._job: WriteJob | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Spark pickles a writer to send it to the tasks of a batch: this begins the batch."""
        if self._job is None:
            self._give_up()
            job = self._request.begun()
            assert job is not None  # for mode "ignore" alone
            with open(os.path.join(job.staging.folder, _OWNER), "w", encoding="ascii") as file:
                file.write(self._owner)
            self._job = job
        return self.__dict__

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        assert self._job is not None  # the writer was pickled
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY) or self._owner
        if not query:
            raise OptionError('the stream has no id: give option("checkpointLocation", …)')
        reply = write_task(iterator, self._job, context.partitionId(), f"task-{context.taskAttemptId()}")
        return StreamMessage(StreamReply(query, self._job, reply))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        commit_batch([None if message is None else message.reply for message in messages], batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        for staging in {message.reply.job.staging for message in messages if message is not None}:
            abort(staging)
        self._give_up()

    def _give_up(self) -> None:
        """Remove what earlier attempts of this query left: it works on one batch at a time."""
        if not self._owner or not os.path.isdir(self._request.target):
            return
        for folder in staging_folders(os.path.realpath(self._request.target)):
            with suppress(OSError), open(os.path.join(folder, _OWNER), encoding="ascii") as file:
                if file.read() == self._owner:
                    abort(Staging(os.path.dirname(folder), folder, self._request.mode))


def commit_batch(replies: Sequence[StreamReply | None], batch: int) -> None:
    """Make the files of a batch visible; nothing, where the batch has been committed before.

    Raises :class:`DataError` for a partition that is missing or came twice.
    """
    if not replies:
        return
    parts = all_parts([None if reply is None else reply.reply for reply in replies])
    first = next(reply for reply in replies if reply is not None)
    staging = first.job.staging
    assert isinstance(staging, Staging)
    place = os.path.join(f"_pyparq_stream-{first.query}", f"{batch}.json")
    record = os.path.join(staging.target, place)
    if os.path.exists(record):
        abort(staging)
        return
    files = [_named(part.file, first.query, batch) for part in parts]
    committer = Committer.resume(staging)
    try:
        staged = staging.place("record", 0)
        with open(staged, "w", encoding="utf-8") as file:
            json.dump({"query": first.query, "batch": batch, "files": [file.path for file in files]}, file)
        committer.commit([*files, StagedFile(staged, place)], fsync=bool(first.job.options.get("fsync")))
    except TargetExistsError:
        committer.abort()
        if not os.path.exists(record):  # else another run of the query has committed the batch meanwhile
            raise
    except BaseException:
        committer.abort()
        raise
    with suppress(OSError):
        os.unlink(os.path.join(os.path.dirname(record), f"{batch - KEPT}.json"))


def _named(file: StagedFile, query: str, batch: int) -> StagedFile:
    """The file with the name that it has in every run of the batch: another one's is never taken for new."""
    folder, name = os.path.split(file.path)
    return replace(file, path=os.path.join(folder, f"batch-{batch:08d}-{name.rpartition('-')[0]}-{query}.parquet"))
