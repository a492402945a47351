"""Functions of pyparq as tasks of Spark jobs: over payloads, one per partition, or over the batches of a DataFrame.

A function travels by its name, and a task loads the module that it stands in. :class:`Watch` tells of the progress.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from pyparq._version import __version__
from pyparq.errors import DataError, LimitError, ParquetError, UnsupportedError
from pyparq.spark.session import is_connect

PER_SLOT = 4
"""Tasks for each slot of the session: one that takes long does not keep the others waiting."""

GIVEN_BACK = (ParquetError, OSError)
"""Errors of a task that are its reply, and that the driver raises. From a failed task Spark would make an error of its
own."""
OF_WRITES = (ParquetError,)
"""The same for a task that writes. What the system refuses fails the task: Spark runs it again, which may help."""

Errors = tuple[type[Exception], ...]


def here(spark: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function gives where the files are: in this process, or, over Spark Connect, in a task."""
    return in_tasks(spark, _called, [()], function, arguments)[0] if is_connect(spark) else function(*arguments)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def in_tasks(
    spark: Any,
    function: Callable[..., Any],
    payloads: Sequence[tuple[Any, ...]],
    *shared: Any,
    errors: Errors = GIVEN_BACK,
) -> list[Any]:
    """What ``function(*payload, *shared)`` gives for each payload, in their order: each is a task. The first of
    ``errors`` that a task replies is raised. ``shared`` may hold secrets: see :func:`over_payloads`."""
    if not payloads:
        return []
    pickled = [pickle.dumps(payload, pickle.HIGHEST_PROTOCOL) for payload in payloads]
    return _replies(over_payloads(spark, _reply_to_payload, pickled, "reply binary", function, shared, errors))


def _reply_to_payload(
    payload: tuple[Any, ...], function: Callable[..., Any], shared: tuple[Any, ...], errors: Errors
) -> Iterator[Any]:
    yield _reply(errors, function, *payload, *shared)


def over_payloads(
    spark: Any,
    function: Callable[..., Iterator[Any]],
    payloads: Sequence[bytes],
    schema: Any,
    *shared: Any,
    name: str = "pyparq",
) -> Any:
    """A DataFrame of the batches that ``function(payload, *shared)`` gives for each payload, which is pickled.

    Each payload is one partition and one task, in this order. They travel as rows and not in a closure, which Spark
    would send whole to every task. ``schema``: Spark's, of the result. What is ``shared`` goes to every task, and does
    not show in the UI or in logs; ``name`` shows in the plan.
    """
    import pyarrow as pa

    table = pa.table({"bin": pa.array(range(len(payloads)), pa.int32()), "payload": pa.array(payloads, pa.binary())})
    rows = spark.createDataFrame(table, schema="bin int, payload binary")
    task = _task(_each_payload, function, shared, name=name)
    return rows.repartitionById(max(len(payloads), 1), "bin").mapInArrow(task, schema)


def _each_payload(batches: Iterator[Any], function: Callable[..., Iterator[Any]], shared: Sequence[Any]) -> Any:
    for batch in batches:
        for payload in batch.column(1).to_pylist():
            yield from function(pickle.loads(payload), *shared)


def over_partitions(df: Any, function: Callable[..., Any], *shared: Any, errors: Errors = GIVEN_BACK) -> list[Any]:
    """What ``function(batches, *shared)`` gives for the batches of each partition of ``df``. The columns of the batches
    are numbered: PySpark looks its columns up by their names, and fails for names with dots and for names that several
    columns have."""
    numbered = df.toDF(*(f"c{k}" for k in range(len(df.columns))))
    return _replies(numbered.mapInArrow(_task(_reply_to_partition, function, shared, errors), "reply binary"))


def _reply_to_partition(
    batches: Iterator[Any], function: Callable[..., Any], shared: Sequence[Any], errors: Errors
) -> Any:
    yield _reply(errors, function, batches, *shared)


def _reply(errors: Errors, function: Callable[..., Any], *arguments: Any) -> Any:
    """A batch of one row that holds what the function gives, pickled, or the error that it raises."""
    import pyarrow as pa

    try:
        made = function(*arguments)
    except errors as error:
        made = error
    except (OSError, MemoryError, pa.ArrowException) as error:
        error.add_note(NOTE + json.dumps(_told(error)))
        raise
    return pa.RecordBatch.from_pydict({"reply": pa.array([pickle.dumps(made)], pa.binary())})


def _replies(frame: Any) -> list[Any]:
    """Run the job of a frame of replies."""
    from pyspark.errors import PySparkException

    try:
        rows = frame.collect()
    except PySparkException as error:
        own = of_task(str(error))
        if own is None:
            raise
        raise own from error
    found = [pickle.loads(bytes(row[0])) for row in rows]
    for reply in found:
        if isinstance(reply, Exception):
            raise reply
    return found


def _task(*call: Any, name: str = "pyparq") -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for ``mapInArrow`` that makes a call of one of ours: the function, and what follows the batches."""
    pickled, guard = pickle.dumps(call), worker_guard()

    # A worker unpickles this function before it can say what it lacks: nothing of pyparq may be named in it but the
    # import inside.
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle

        guard()
        function, *arguments = pickle.loads(pickled)
        yield from function(batches, *arguments)

    run.__name__ = name  # by which Spark's plans and its UI call it
    return run


class OnWorkers:
    """What Spark pickles for its workers, of a class of ours: they say what they lack (:func:`worker_guard`)."""

    def __reduce__(self) -> tuple[Any, ...]:
        guard = worker_guard()

        def opened(state: bytes) -> Any:
            import pickle

            guard()
            kind, inner = pickle.loads(state)
            made = kind.__new__(kind)
            made.__dict__.update(inner)
            return made

        return opened, (pickle.dumps((type(self), self.__getstate__())),)


def worker_guard() -> Callable[[], None]:
    """A function for a worker, which raises where its Python has no pyparq or another version than this process.

    It is pickled by its code (it stands in another function), because a worker without pyparq could not load it by its
    name.
    """
    ours, note = __version__, NOTE

    def guard() -> None:
        import json
        import sys

        def refused(text: str) -> RuntimeError:
            error = RuntimeError(text)
            error.add_note(note + json.dumps({"kind": "UnsupportedError", "message": text}))
            return error

        try:
            import pyparq.spark.session
        except ModuleNotFoundError as error:
            raise refused(
                f"the Python of Spark's workers ({sys.executable}) has no module {error.name!r}. Install "
                '"pyparq[spark]" for it on every worker, or set PYSPARK_PYTHON (or spark.pyspark.python) to a Python '
                "that has it, before the session starts"
            ) from None
        if pyparq.__version__ != ours:
            raise refused(
                f"the driver has pyparq {ours}, and the Python of Spark's workers ({sys.executable}) has "
                f"{pyparq.__version__}: install the same version on all machines"
            )

    return guard


NOTE = "pyparq task: "
"""Begins the line of a worker's traceback that says what :func:`of_task` raises on the driver."""


def _told(error: Exception) -> dict[str, Any]:
    """What the driver has to know of an error of the system, or of Arrow, in a task."""
    if isinstance(error, OSError) and error.errno is not None:
        text = error.strerror or os.strerror(error.errno)
        return {
            "kind": "OSError",
            "errno": error.errno,
            "message": text,
            "file": error.filename and str(error.filename),
        }
    kind = "OSError" if isinstance(error, OSError) else "LimitError" if isinstance(error, MemoryError) else "DataError"
    return {"kind": kind, "message": str(error) or "there is not enough memory"}


def of_task(text: str) -> Exception | None:
    """The error of a task, from the text of Spark's own error: one of pyparq's, or of the system. ``None`` where the
    text tells of none, as for errors of a user's function."""
    found = re.findall(rf"^{NOTE}(\{{.*\}})\s*$", text, re.MULTILINE)
    try:
        told = json.loads(found[-1]) if found else None
        if told is None:
            return None
        kind, message = told["kind"], told["message"]
    except (ValueError, KeyError, TypeError):  # cut off on the way
        return None
    if kind == "OSError":
        return OSError(told["errno"], message, told["file"]) if "errno" in told else OSError(message)
    kinds = {"DataError": DataError, "LimitError": LimitError, "UnsupportedError": UnsupportedError}
    return kinds[kind](message) if kind in kinds else None


def attempt() -> str:
    """The name of this attempt of a task: that of no other."""
    from pyspark import TaskContext

    return f"task-{TaskContext.get().taskAttemptId()}"


# ---- progress --------------------------------------------------------------------------------------------------------

Progress = Callable[[int, int], Any]
"""Called with the number of tasks that are done and the number of tasks."""

EVERY = 0.5
"""Seconds between two looks at what Spark does."""


class Watch:
    """Calls ``progress`` while the body of a ``with`` has Spark work; for several bodies, one after the other.

    It is called once when this is made, with ``(0, 0)``: the first sign of life. Then whenever more tasks are done or
    known, from another thread. What it raises is raised at the end of the body, and it is not called again.
    """

    def __init__(self, spark: Any, progress: Progress | None) -> None:
        self._progress = progress
        self._watching: _Jobs | _Operations | None = None
        self._last = (0, 0)
        self._before = (0, 0)
        """Of the bodies that have ended."""
        self._error: BaseException | None = None
        if progress is not None:
            self._watching = _Operations(spark, self._tell) if is_connect(spark) else _Jobs(spark, self._tell)
            progress(0, 0)

    def __enter__(self) -> None:
        self._before = self._last
        if self._watching is not None:
            self._watching.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._watching is not None:
            self._watching.stop()
        if error is None and self._error is not None:
            raise self._error

    def _tell(self, done: int, total: int) -> None:
        now = self._before[0] + done, self._before[1] + total
        if self._progress is None or self._error is not None or total == 0 or now == self._last:
            return
        self._last = now
        try:
            self._progress(*now)
        except BaseException as error:  # this is not the thread that waits for Spark
            self._error = error


_GROUP = "spark.jobGroup.id"


class _Jobs:
    """A classic session: the jobs of this thread get a group of their own, and Spark's status tracker knows it."""

    def __init__(self, spark: Any, tell: Progress) -> None:
        self._context = spark.sparkContext
        self._tell = tell

    def start(self) -> None:
        self._group, self._users = f"pyparq-{uuid.uuid4()}", self._context.getLocalProperty(_GROUP)
        self._context.setLocalProperty(_GROUP, self._group)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pyparq progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._context.setLocalProperty(_GROUP, self._users)
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        """Look now and then, and once more at the end."""
        tracker, is_last = self._context.statusTracker(), False
        while not is_last:
            is_last = self._ended.wait(EVERY)
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            known = [stage for stage in stages if stage is not None]
            self._tell(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))


class _Operations:
    """A session of Spark Connect: the server tells of the stages of what it runs."""

    def __init__(self, spark: Any, tell: Progress) -> None:
        self._spark = spark
        self._tell = tell

    def start(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}
        self._spark.registerProgressHandler(self._handle)

    def stop(self) -> None:
        self._spark.removeProgressHandler(self._handle)

    def _handle(self, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        if stages:
            self._found[operation_id] = (
                sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages)
            )  # fmt: skip
            found = self._found.values()
            self._tell(sum(done for done, _ in found), sum(total for _, total in found))
