"""Tasks on the shared pool."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyparq
from pyparq.runtime import threads
from pyparq.runtime.threads import Task, check_stopped, map_tasks, stop_all


@pytest.fixture(autouse=True)
def two_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wherever this runs."""
    threads.give_up_pools()
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    yield
    threads.pool().shutdown()
    threads.give_up_pools()


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


# ---- tasks within tasks


@pytest.mark.parametrize("depth", [2, 3])
def test_tasks_within_tasks(depth: int) -> None:
    """They find an end with any number of threads, in order, and no more threads work than the pool has."""
    workers: set[int] = set()

    def count(below: int, base: int) -> Any:
        workers.add(threading.get_ident())
        time.sleep(0.001)
        return base if below == 0 else map_tasks(lambda k: count(below - 1, 10 * base + k), range(6), True)

    def expected(below: int, base: int) -> Any:
        return base if below == 0 else [expected(below - 1, 10 * base + k) for k in range(6)]

    assert count(depth, 1) == expected(depth, 1)
    assert len(workers) <= 3  # two of the pool, and the caller


def test_all_threads_of_the_pool_wait_at_once() -> None:
    """As many callers as threads, each within a task of the pool: nobody is left who could begin what they wait for."""
    both = threading.Barrier(2, timeout=60)

    def outer(n: int) -> list[int]:
        both.wait()
        return map_tasks(lambda k: n * k, range(5), True)

    tasks = [Task(outer, n) for n in (1, 2)]
    for task in tasks:
        task.start()
    time.sleep(0.05)
    assert [task.result() for task in tasks] == [[0, 1, 2, 3, 4], [0, 2, 4, 6, 8]]


def test_an_error_within_tasks_within_tasks() -> None:
    def inner(n: int) -> None:
        if n == 3:
            raise KeyError(n)

    with pytest.raises(KeyError, match="3"):
        map_tasks(lambda _: map_tasks(inner, range(5), True), range(4), True)


def test_files_are_written_and_read_within_tasks(tmp_path: Path) -> None:
    """The writer's tasks and the reader's, which two threads share, among those of the caller."""
    data = {f"c{k}": np.random.default_rng(k).integers(0, 1 << 60, 300_000) for k in range(3)}

    def there_and_back(n: int) -> bool:
        path = tmp_path / f"{n}.parquet"
        pyparq.write_table(data, path, row_group_size=100_000)
        found = [pyparq.read_table(path, [name]).to_numpy(name) for name in data]
        whole = pyparq.read_table(path)
        return all(
            np.array_equal(values, mine) and np.array_equal(whole.to_numpy(name), mine)
            for values, (name, mine) in zip(found, data.items(), strict=True)
        )

    assert all(map_tasks(there_and_back, range(6), True))


# ---- stopping


def test_a_stopped_task_ends_at_its_next_page() -> None:
    begun, passed = threading.Event(), []

    def task() -> None:
        begun.set()
        for page in range(1000):
            check_stopped()
            passed.append(page)
            time.sleep(0.005)

    running = Task(task)
    running.start()
    begun.wait()
    stop_all([running])
    count = len(passed)
    assert count < 900
    time.sleep(0.02)
    assert len(passed) == count


def test_a_task_that_has_not_begun_never_does() -> None:
    blocked, ran = threading.Event(), []
    busy = [Task(blocked.wait) for _ in range(2)]
    for task in busy:
        task.start()
    late = Task(ran.append, 1)
    late.start()
    stop_all([late])
    blocked.set()
    assert [task.result() for task in busy] == [True, True]
    assert not ran


def test_tasks_within_a_stopped_task_are_stopped() -> None:
    begun, passed = threading.Event(), []

    def inner(n: int) -> None:
        begun.set()
        for _ in range(400):
            check_stopped()
            passed.append(n)
            time.sleep(0.005)

    outer = Task(map_tasks, inner, range(4), True)
    outer.start()
    begun.wait()
    stop_all([outer])
    count = len(passed)
    time.sleep(0.02)
    assert len(passed) == count < 800


def test_an_interrupted_caller_waits_for_no_more_than_a_page() -> None:
    """The task of the other thread has a thousand pages left, that of the caller is where the signal comes in."""
    passed: list[int] = []

    def task(number: int) -> None:
        for _ in range(1000):
            check_stopped()
            if threading.current_thread() is not threading.main_thread():
                passed.append(number)
                if len(passed) == 3:
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.002)

    with pytest.raises(KeyboardInterrupt):
        map_tasks(task, range(2), True)
    count = len(passed)
    assert count < 500
    time.sleep(0.02)
    assert len(passed) == count


def test_a_second_interrupt_does_not_end_the_wait() -> None:
    """Whoever is interrupted again while a page is waited for must still not return before it is done."""
    begun, running = threading.Event(), []

    def task() -> None:
        running.append(1)
        begun.set()
        for _ in range(3):
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.05)
        running.clear()

    started = Task(task)
    started.start()
    begun.wait()
    stop_all([started])
    assert not running


def test_an_interrupt_while_a_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool may not know that thread, and would wait for it for ever at the end: it is given up, with all of its
    threads, and the next task gets another."""

    class Interrupted(ThreadPoolExecutor):
        def _adjust_thread_count(self) -> None:
            super()._adjust_thread_count()  # type: ignore[misc]
            self._threads.clear()
            raise KeyboardInterrupt

    before = threading.enumerate()
    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures, "ThreadPoolExecutor", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            map_tasks(lambda n: n, range(10), True)
    for thread in [thread for thread in threading.enumerate() if thread not in before]:
        thread.join(10)
        assert not thread.is_alive()
    assert map_tasks(lambda n: n, range(10), True) == list(range(10))
    assert not isinstance(threads.pool(), Interrupted)


def test_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """While Python shuts down, say: the caller makes all calls."""

    class Shut(ThreadPoolExecutor):
        def submit(self, *args: Any, **options: Any) -> Any:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures, "ThreadPoolExecutor", Shut)
        assert map_tasks(lambda n: n, range(10), True) == list(range(10))
        assert isinstance(threads.pool(), Shut)


# ---- Ctrl-C in a process of its own

INTERRUPTED = """
import sys, threading, time
import numpy as np
import pyparq

what, path, use_threads, interrupts = sys.argv[1], sys.argv[2], sys.argv[3] == "True", int(sys.argv[4])
rows = 6_000_000 if what == "write" else 400_000  # no write ends before it is interrupted
columns = {f"c{k}": np.random.default_rng(k).integers(0, 1000, rows) * 7919 for k in range(4)}
if what == "write":
    def call():
        while True:
            pyparq.write_table(
                columns, path, compression="gzip", compression_level=9, use_dictionary=False, use_threads=use_threads,
                column_encoding="PLAIN",
            )
else:
    pyparq.write_table(columns, path, compression="zstd", use_dictionary=False)
    def call():
        while True:
            pyparq.read_table(path, use_threads=use_threads)
print("ready", flush=True)
try:
    call()
except KeyboardInterrupt:
    print("out", time.process_time(), flush=True)
before = time.process_time()
time.sleep(0.2)
print("later", time.process_time() - before, flush=True)
"""


def processor_seconds(pid: int) -> float:
    """What a process has used so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.sweep(4)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's processor times of another process")
@pytest.mark.parametrize("use_threads", [True, False])
@pytest.mark.parametrize("what", ["write", "read"])
@pytest.mark.parametrize("interrupts", [1, 2])
def test_interrupted(what: str, use_threads: bool, interrupts: int, tmp_path: Path) -> None:
    """Within a second of the processor, however long that takes where others use it too. Nothing is left running, and
    no half file."""
    path = tmp_path / "t.parquet"
    command = [sys.executable, "-c", INTERRUPTED, what, str(path), str(use_threads), str(interrupts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.6)
        asked = processor_seconds(child.pid)
        for _ in range(interrupts):
            child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    told = dict(line.split() for line in out.splitlines())
    if interrupts == 1:
        assert float(told["out"]) - asked < 1.0, errors
        assert float(told["later"]) < 0.1, "something still works"
    assert os.listdir(tmp_path) == ([] if what == "write" else ["t.parquet"])


# ---- requests


def test_requests_wait_beside_each_other() -> None:
    """More of them than the machine has processors."""
    meeting = threading.Barrier(threads.REQUESTS)
    assert sorted(threads.map_requests(lambda n: meeting.wait(20) * 0 + n, range(threads.REQUESTS))) == list(
        range(threads.REQUESTS)
    )


def test_the_first_request_that_fails_is_told() -> None:
    def ask(n: int) -> int:
        if n % 3 == 2:
            raise ValueError(n)
        return n

    with pytest.raises(ValueError, match="2"):
        threads.map_requests(ask, range(3))


def test_nobody_waits_for_requests_after_an_interrupt() -> None:
    """The caller's own request is interrupted while the others do not end."""
    answer, asked = threading.Event(), threading.Barrier(3)

    def ask(n: int) -> int:
        asked.wait(20)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        answer.wait(20)
        done.append(n)
        return n

    done: list[int] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.map_requests(ask, range(3))
        assert not done
    finally:
        answer.set()


def test_requests_share_threads() -> None:
    """Ten times as many calls as there are threads; each thread is used again when it is free."""
    found = threads.map_requests(lambda n: threading.current_thread().name, range(10 * threads.REQUESTS))
    assert len(set(found)) <= threads.REQUESTS + 1
    for _ in range(5 * threads.REQUESTS):  # one after the other: no new thread for each
        task = Task(threading.get_ident)
        task.start(threads.request_pool)
        assert task.result()
    alive = [thread for thread in threading.enumerate() if thread.name.startswith("pyparq-request")]
    assert len(alive) <= threads.REQUESTS
