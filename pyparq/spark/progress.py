"""The progress of a Spark job: the number of finished tasks, and the number of known tasks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pyparq.spark.session import is_connect

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
