"""Progress on stderr, for people: only on a terminal, and only when something takes more than a second."""

from __future__ import annotations

import sys
import threading
from typing import Any, Self, TypeVar

from pyparq.runtime import fork_safety

T = TypeVar("T")

DELAY = 1.0
"""Seconds of silence."""


class Busy:
    """``with Busy("reading", total) as busy: ... busy.step()``; without a total, a spinner. ``share``: a percentage
    (:meth:`show`). ``rows``: rows are counted, and shown beside it."""

    def __init__(self, text: str, total: int | None = None, *, rows: bool = False, share: bool = False) -> None:
        self._text = text
        self._total: float | None = 1.0 if rows or share else total
        self._shows_share = share
        self._counts_rows = rows
        self._rows = 0
        self._done = 0.0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        """No bar in a child: the threads that draw it are its parent's."""
        self._lock = threading.Lock()
        self._progress: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer = threading.Timer(DELAY, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        if self._counts_rows:
            columns += [BarColumn(), TextColumn("{task.percentage:.0f} %, {task.fields[rows]:,} rows", markup=False)]
        elif self._shows_share:
            columns += [BarColumn(), TextColumn("{task.percentage:.0f} %", markup=False)]
        elif self._total is not None:
            columns += [BarColumn(), MofNCompleteColumn()]
        with self._lock:
            if self._timer is None:  # it ended in the meantime
                return
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(self._text, total=self._total, completed=self._done, rows=self._rows)
            self._progress.start()

    def step(self) -> None:
        """One of ``total`` is done."""
        self._done += 1
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done)

    def show(self, share: float, rows: int) -> None:
        """So much of all is done (0 to 1), and so many rows came of it."""
        self._done, self._rows = share, rows
        if self._progress is not None:
            self._progress.update(self._task, completed=share, rows=rows)

    def show_share(self, done: int, total: int) -> None:
        """``done`` of ``total`` is done."""
        self.show(done / total if total else 0.0, 0)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._progress is not None:
                self._progress.stop()
