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
    import pyarrow as pa

    from pyparq.spark.question import answered

    question, slots = pickle.loads(payload)
    found = answered(question, lambda: slots)
    yield pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(found)], pa.binary())})


def _count_plan(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The number of rows that match where planning tells it, or the parts to count."""
    import pyarrow as pa

    from pyparq.spark.question import counted

    question, slots = pickle.loads(payload)
    found = counted(question, lambda: slots)
    yield pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(found)], pa.binary())})


def run_batches(task: str, batches: Iterator[Any], job: bytes) -> Iterator[Any]:
    """The batches of the task with this name over the batches of a partition."""
    return _BATCH_TASKS[task](batches, pickle.loads(job))


def _write(batches: Iterator[Any], job: Any) -> Iterator[Any]:
    """Write a partition into staging."""
    import pyarrow as pa
    from pyspark import TaskContext

    from pyparq.spark.writing import write_task

    context = TaskContext.get()
    reply = write_task(batches, job, context.partitionId(), f"task-{context.taskAttemptId()}")
    yield pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(reply)], pa.binary())})


def _commit_step(payload: bytes, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A step of a commit where the files are."""
    import pyarrow as pa

    from pyparq.spark.writing import Steps

    step, arguments = pickle.loads(payload)
    yield pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(Steps[step](*arguments))], pa.binary())})


_BATCH_TASKS = {"write": _write}
_TASKS = {"read": _read, "count": _count, "plan": _plan, "count_plan": _count_plan, "commit_step": _commit_step}
