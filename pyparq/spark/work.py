"""Tasks of pyparq as Spark jobs: over payloads, one per partition, or over the batches of a DataFrame."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def over_payloads(
    spark: Any, task: str, payloads: Sequence[bytes], schema: Any, settings: Mapping[str, Any] | None = None
) -> Any:
    """A DataFrame of what the function ``task`` of :mod:`pyparq.spark.tasks` gives for each payload.

    Each payload is one partition and one task, in this order. They travel as rows and not in a closure, which Spark
    would send whole to every task. ``schema``: Spark's, of the result. ``settings`` go to every task, and do not show
    in the UI or in logs.
    """
    import pyarrow as pa

    table = pa.table({"bin": pa.array(range(len(payloads)), pa.int32()), "payload": pa.array(payloads, pa.binary())})
    rows = spark.createDataFrame(table, schema="bin int, payload binary")
    run = _runner("run_payloads", task, dict(settings or {}))
    return rows.repartitionById(max(len(payloads), 1), "bin").mapInArrow(run, schema)


def ask(spark: Any, task: str, *arguments: Any) -> Any:
    """What a job of one task replies. The errors that it gives back are raised as they are. The arguments are settings:
    they may hold secrets."""
    return replies(spark, task, [b""], {"arguments": pickle.dumps(arguments)})[0]


def replies(spark: Any, task: str, payloads: Sequence[bytes], settings: Mapping[str, Any] | None = None) -> list[Any]:
    """What the tasks of a job reply, in the order of their payloads: see :func:`ask`."""
    return replies_of(over_payloads(spark, task, payloads, "reply binary", settings))


def replies_of(frame: Any) -> list[Any]:
    """Run the job of a frame of replies: see :func:`ask`."""
    found = [pickle.loads(bytes(row[0])) for row in frame.collect()]
    for reply in found:
        if isinstance(reply, Exception):
            raise reply
    return found


def over_batches(df: Any, task: str, job: Any, schema: Any) -> Any:
    """A DataFrame of what the function ``task`` gives for the batches of each partition of ``df``. ``job`` is pickled
    into the task. The columns of the batches are numbered: PySpark looks its columns up by their names, and fails for
    names with dots and for names that several columns have."""
    numbered = df.toDF(*(f"c{k}" for k in range(len(df.columns))))
    return numbered.mapInArrow(_runner("run_batches", task, pickle.dumps(job)), schema)


def _runner(entry: str, task: str, about: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    # A worker unpickles this function before it can say what it lacks: nothing of pyparq may be named in it but the
    # import inside.
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        try:
            from pyparq.spark import tasks
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"the Python of Spark's workers ({sys.executable}) has no module {error.name!r}. Install "
                '"pyparq[spark]" for it on every worker, or set PYSPARK_PYTHON (or spark.pyspark.python) to a Python '
                "that has it, before the session starts"
            ) from error
        yield from getattr(tasks, entry)(batches, task, about)

    return run
