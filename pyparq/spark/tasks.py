"""What runs on Spark's workers: each function takes a payload and yields Arrow batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyparq.errors import ParquetError
from pyparq.spark.keys import keys_of
from pyparq.spark.skipped import LeftOut, note
from pyparq.spark.types import SparkTypes


def run(task: str, payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The batches of the task with this name."""
    return _TASKS[task](payload, settings)


def run_payloads(batches: Iterator[Any], task: str, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The same for each payload in the rows of a partition."""
    for batch in batches:
        for payload in batch.column(1).to_pylist():
            yield from run(task, payload, settings)


def _read(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The rows of a part of a plan."""
    plan = pickle.loads(payload)
    types = SparkTypes(plan.schema, truncate=settings["truncate"])
    scan = _scan(plan, settings)
    yield from types.cast(scan)
    if settings["skipped_to"] is not None and scan.skipped:
        note(settings["skipped_to"], [LeftOut(*file) for file in scan.skipped], settings["storage_options"])


def _scan(plan: Any, settings: Mapping[str, Any]) -> Any:
    # One thread: Spark has as many tasks at a time as there are cores.
    return plan.scan(
        decryption=keys_of(settings["decryption"]), storage_options=settings["storage_options"], use_threads=False
    )


def _count(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The number of matching rows in a part of a plan, and the errors of files that were left out."""
    from pyparq.spark.skipped import left_out

    with left_out() as said:
        yield _told(lambda: (_scan(pickle.loads(payload), settings).count(), said()))


def _question(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """What a question comes to: see :mod:`pyparq.spark.question`."""
    from pyparq.spark.question import replied

    question, slots = pickle.loads(settings["arguments"])
    yield _told(lambda: replied(question, lambda: slots))


def _whole_plan(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The plan of a question."""
    from pyparq.spark.question import planned_or_listed

    (question,) = pickle.loads(settings["arguments"])
    yield _told(lambda: planned_or_listed(question))


def _as_stored(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The question with shredded Variants as they are stored."""
    from pyparq.spark.question import as_stored

    (question,) = pickle.loads(settings["arguments"])
    yield _told(lambda: as_stored(question))


def _answer(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """What a plan that many tasks have made comes to."""
    from pyparq.spark.question import reply_to
    from pyparq.spark.skipped import left_out

    plan, question, slots = pickle.loads(settings["arguments"])
    with left_out() as said:
        yield _told(lambda: reply_to(plan, question, lambda: slots, said))


def _share(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """What a share of many files holds: see :mod:`pyparq.spark.planning_tasks`."""
    from pyparq.spark.planning_tasks import share_reply

    yield _told(lambda: share_reply(pickle.loads(payload), **settings))


def run_batches(batches: Iterator[Any], task: str, job: bytes) -> Iterator[Any]:
    """The batches of the task with this name over the batches of a partition."""
    return _BATCH_TASKS[task](batches, pickle.loads(job))


def _write(batches: Iterator[Any], job: Any) -> Iterator[Any]:
    """Write a partition into staging."""
    from pyspark import TaskContext

    from pyparq.spark.write_tasks import write_task

    context = TaskContext.get()
    yield _written(lambda: write_task(batches, job, context.partitionId(), f"task-{context.taskAttemptId()}"))


def _note(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Write down which files were left out, where the files are."""
    yield _told(lambda: note(*pickle.loads(settings["arguments"])))


def _commit_step(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A step of a commit where the files are."""
    from pyparq.spark.write_tasks import STEPS

    step, *arguments = pickle.loads(settings["arguments"])
    yield _told(lambda: STEPS[step](*arguments))


def _list(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The files of a source."""
    from pyparq.spark.file_jobs import listed

    yield _told(lambda: listed(*pickle.loads(settings["arguments"])))


def _files(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A row of the report for each file of the payload."""
    import pyarrow as pa

    from pyparq.spark.file_jobs import REPORT
    from pyparq.spark.file_tasks import file_rows

    types = {"string": pa.string(), "boolean": pa.bool_(), "long": pa.int64(), "double": pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in (column.split() for column in REPORT.split(", "))])
    yield pa.RecordBatch.from_pylist(list(file_rows(*pickle.loads(payload))), schema)


def _rewrite(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Write a part of a plan into staging."""
    from pyspark import TaskContext

    from pyparq.spark.rewrite_tasks import rewrite_task

    yield _written(lambda: rewrite_task(payload, settings, f"task-{TaskContext.get().taskAttemptId()}"))


def _compact(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A step of a compaction."""
    from pyspark import TaskContext

    from pyparq.spark.compaction_tasks import do

    step, work = pickle.loads(payload)
    yield _told(lambda: do(step, work, settings, f"task-{TaskContext.get().taskAttemptId()}"))


def _columns(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The files of a folder by their columns."""
    from pyparq.spark.file_columns import columns_of_files

    yield _told(lambda: columns_of_files(*pickle.loads(settings["arguments"])))


def _choose(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Which files a compaction makes anew."""
    from pyparq.spark.choosing import choose

    yield _told(lambda: choose(*pickle.loads(settings["arguments"])))


def _catalog(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A step of the making of a catalog."""
    from pyparq.spark.catalog_tasks import STEPS

    step, *arguments = pickle.loads(payload or settings["arguments"])
    own = [settings["job"]] if payload else []
    yield _told(lambda: STEPS[step](*own, *arguments))


def _told(make: Callable[[], Any]) -> Any:
    """The reply that ``make`` gives, or the error of a file or an option that it raises: the driver raises it then.
    From a failed task Spark would make an error of its own."""
    try:
        made = make()
    except (ParquetError, OSError) as error:
        made = error
    return _reply(made)


def _written(make: Callable[[], Any]) -> Any:
    """The same for a task that writes. What the system refuses is raised: Spark runs such a task again, which may
    help."""
    try:
        made = make()
    except ParquetError as error:
        made = error
    return _reply(made)


def _reply(value: Any) -> Any:
    """A batch of one row that holds a pickled value."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(value)], pa.binary())})


_BATCH_TASKS = {"write": _write}
_TASKS = {
    "read": _read, "count": _count, "question": _question, "whole_plan": _whole_plan, "as_stored": _as_stored,
    "answer": _answer,
    "share": _share, "note": _note, "commit_step": _commit_step, "list": _list, "files": _files, "rewrite": _rewrite,
    "compact": _compact, "choose": _choose, "columns": _columns, "catalog": _catalog,
}  # fmt: skip
