"""What runs on Spark's workers: each function takes a payload and yields Arrow batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from pyparq.spark.keys import keys_of
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
    yield from types.cast(_scan(plan, settings))


def _scan(plan: Any, settings: Mapping[str, Any]) -> Any:
    # One thread: Spark has as many tasks at a time as there are cores.
    return plan.scan(
        decryption=keys_of(settings["decryption"]), storage_options=settings["storage_options"], use_threads=False
    )


def _count(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The number of rows of a part of a plan that match."""
    import pyarrow as pa

    counted = _scan(pickle.loads(payload), settings).count()
    yield pa.RecordBatch.from_pydict({"rows": pa.array([counted], pa.int64())})


def _plan(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """What a question comes to, planned here: see :mod:`pyparq.spark.question`."""
    from pyparq.spark.question import answered

    question, slots = pickle.loads(payload)
    yield _reply(answered(question, lambda: slots))


def _count_plan(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The number of rows that match where planning tells it, or the parts to count."""
    from pyparq.spark.question import counted

    question, slots = pickle.loads(payload)
    yield _reply(counted(question, lambda: slots))


def run_batches(batches: Iterator[Any], task: str, job: bytes) -> Iterator[Any]:
    """The batches of the task with this name over the batches of a partition."""
    return _BATCH_TASKS[task](batches, pickle.loads(job))


def _write(batches: Iterator[Any], job: Any) -> Iterator[Any]:
    """Write a partition into staging."""
    from pyspark import TaskContext

    from pyparq.spark.writing import write_task

    context = TaskContext.get()
    reply = write_task(batches, job, context.partitionId(), f"task-{context.taskAttemptId()}")
    yield _reply(reply)


def _commit_step(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A step of a commit where the files are."""
    from pyparq.spark.writing import STEPS

    step, arguments = pickle.loads(payload)
    yield _reply(STEPS[step](*arguments))


def _list(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The files of a source."""
    from pyparq.spark.files import listed

    yield _reply(listed(*pickle.loads(payload)))


def _files(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A row of the report for each file of the payload."""
    import pyarrow as pa

    from pyparq.spark.files import REPORT, file_rows

    types = {"string": pa.string(), "boolean": pa.bool_(), "long": pa.int64(), "double": pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in (column.split() for column in REPORT.split(", "))])
    yield pa.RecordBatch.from_pylist(list(file_rows(*pickle.loads(payload))), schema)


def _rewrite_plan(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """What a rewrite comes to, planned here."""
    from pyparq.spark.rewriting import parts_of

    yield _reply(parts_of(pickle.loads(payload)))


def _rewrite(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Write a part of a plan into staging."""
    from pyspark import TaskContext

    from pyparq.spark.rewriting import rewrite_task

    for reply in rewrite_task(payload, f"task-{TaskContext.get().taskAttemptId()}"):
        yield _reply(reply)


def _reply(value: Any) -> Any:
    """A batch of one row that holds a pickled value."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(value)], pa.binary())})


_BATCH_TASKS = {"write": _write}
_TASKS = {
    "read": _read, "count": _count, "plan": _plan, "count_plan": _count_plan, "commit_step": _commit_step,
    "list": _list, "files": _files, "rewrite_plan": _rewrite_plan, "rewrite": _rewrite,
}  # fmt: skip
