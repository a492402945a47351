"""The writing side of the data source: ``df.write.format("pyparq")``. Spark has two modes for it: append, overwrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyparq.errors import OptionError
from pyparq.spark.keys import check_factory
from pyparq.spark.option_text import as_flag, as_list, as_value, as_write_option, source_of
from pyparq.spark.settings import obeyed, stored_as_set
from pyparq.spark.tables import options_of_write
from pyparq.spark.write_tasks import AnyStaging, TaskReply, WriteJob, abort, commit, start, write_task
from pyparq.spark.writing import check_target, nullable_schema, with_row_metadata


@dataclass(frozen=True)
class Wanted:
    """What the options of a write ask for."""

    target: str
    schema: Any
    """Of the rows, as pyarrow has it."""
    partition_cols: tuple[str, ...]
    encryption: str | None
    options: dict[str, Any]
    """Of :func:`pyparq.write_table`, for each file."""
    storage_options: Any
    force: bool = False
    """Write even where a table format manages the folder."""
    mode: str = "append"
    zone: str = ""
    """Of the folders of timestamps; ``""``: UTC."""

    @classmethod
    def of(cls, options: Mapping[str, Any], schema: Any, overwrite: bool) -> Wanted:
        """From the text that Spark hands on. Raises :class:`OptionError`."""
        given = options_of_write(options, schema)
        target = source_of(given)
        if not isinstance(target, str):
            raise OptionError("give one folder to write to")
        given = {name: value for name, value in given.items() if name not in ("path", "paths", "schema")}
        encryption = given.pop("encryption", None)
        check_factory(encryption, "encryption")
        storage = as_value(given.pop("storage_options", None))
        check_target(target, storage)
        force, zone = as_flag(given, "force"), given.pop("time_zone", "")
        given.pop("force", None)
        names = tuple(as_list(given.pop("partition_cols", None)) or ())
        values = {name: as_write_option(name, text) for name, text in given.items()}
        mode, settings = obeyed("overwrite" if overwrite else "append", names, values, {})
        rows, settings = stored_as_set(nullable_schema(schema), schema, names, settings, {})
        settings = with_row_metadata(settings, schema, names)
        return cls(target, rows, names, encryption, settings, storage, force, mode, zone)

    @property
    def about(self) -> tuple[Any, tuple[str, ...], dict[str, Any], Any, bool]:
        return self.schema, self.partition_cols, self.options, self.storage_options, self.force

    def job(self, staging: AnyStaging) -> WriteJob:
        return WriteJob(
            staging, self.schema, self.partition_cols, self.encryption, self.options, self.storage_options,
            zone=self.zone,
        )  # fmt: skip


class Message(WriterCommitMessage):  # type: ignore[misc]
    """What one task has written."""

    def __init__(self, reply: TaskReply) -> None:
        self.reply = reply


class Writer(DataSourceArrowWriter):  # type: ignore[misc]
    """One write. Made once, where Spark plans; its parts run in other processes."""

    def __init__(self, options: Mapping[str, Any], schema: Any, overwrite: bool) -> None:
        super().__init__()
        wanted = Wanted.of(options, schema, overwrite)
        staging = start(wanted.target, wanted.mode, *wanted.about)
        assert staging is not None  # for mode "ignore" alone
        self.job = wanted.job(staging)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        attempt = f"task-{context.taskAttemptId()}"
        return Message(write_task(iterator, self.job, context.partitionId(), attempt))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.job, [None if message is None else message.reply for message in messages])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.job.staging, self.job.storage_options)
