"""Tasks on the shared pool."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyparq import threads
from pyparq.threads import map_tasks


@pytest.fixture(autouse=True)
def two_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wherever this runs."""
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(threads, "cpu_count", lambda: 2)
        monkeypatch.setattr(threads, "_pool", pool)
        yield


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("use_threads", [True, False])
def test_results_come_in_order(count: int, use_threads: bool) -> None:
    assert map_tasks(lambda n: n * n, range(count), use_threads) == [n * n for n in range(count)]


def test_two_workers_take_from_both_ends() -> None:
    both, seen = threading.Barrier(2, timeout=60), []

    def task(number: int) -> int:
        if number in (0, 9):
            both.wait()  # passes only when the first and the last run at the same time
        seen.append(number)
        return number

    assert map_tasks(task, range(10), True) == list(range(10))
    assert set(seen[:2]) <= {0, 1, 8, 9}


def test_nothing_runs_any_more_once_an_error_is_raised() -> None:
    running, started = [], []

    def task(number: int) -> None:
        started.append(number)
        running.append(number)
        time.sleep(0.01)
        running.remove(number)
        if number in (0, 99):
            raise KeyError(number)

    with pytest.raises(KeyError) as caught:
        map_tasks(task, range(100), True)
    assert caught.value.args[0] in (0, 99)
    assert not running
    assert len(started) < 10


def test_the_first_of_several_errors_is_raised() -> None:
    both = threading.Barrier(2, timeout=60)

    def task(number: int) -> None:
        both.wait()
        raise KeyError(number)

    with pytest.raises(KeyError, match="0"):
        map_tasks(task, range(2), True)


def test_an_interrupted_caller_leaves_nothing_running() -> None:
    running, started = [], []

    def task(number: int) -> None:
        started.append(number)
        running.append(number)
        try:
            time.sleep(0.05)  # the caller has a task of its own by then
            if number == 0:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                time.sleep(0.05)
        finally:
            running.remove(number)

    with pytest.raises(KeyboardInterrupt):
        map_tasks(task, range(1000), True)
    assert not running
    assert len(started) < 100
