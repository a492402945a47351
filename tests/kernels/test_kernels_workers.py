"""Threads that are not Python's: every task once; errors, signals, forks and the interpreter's end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import pytest

from pyparq.kernels._native import probes
from pyparq.runtime import threads
from pyparq.runtime.threads import Stopped, Task


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [0, 1, 2, 7, 500])
def test_every_task_once(tasks: int, workers: int) -> None:
    done: list[int] = []
    probes.run_parallel(tasks, workers, done.append)
    assert sorted(done) == list(range(tasks))


def test_others_take_part() -> None:
    """Four tasks that wait for each other: as many threads must be at it."""
    together = threading.Barrier(4)
    seen = set()

    def task(_: int) -> None:
        together.wait(20)
        seen.add(threading.get_native_id())

    probes.run_parallel(4, 4, task)
    assert len(seen) == 4
    assert threading.get_native_id() in seen


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    under_way: Counter[str] = Counter()

    def task(k: int) -> None:
        under_way["begun"] += 1
        if k == 3:
            raise LookupError("of task 3")
        time.sleep(0.01)
        under_way["ended"] += 1

    with pytest.raises(LookupError, match="of task 3"):
        probes.run_parallel(1000, 3, task)
    assert under_way["ended"] == under_way["begun"] - 1
    assert under_way["begun"] < 1000


def test_the_others_are_asked_to_stop() -> None:
    def task(k: int) -> None:
        if k == 0:
            raise LookupError
        end = time.monotonic() + 20
        while not probes.stop_requested():
            assert time.monotonic() < end
            time.sleep(0.001)

    with pytest.raises(LookupError):
        probes.run_parallel(2, 2, task)
    assert not probes.stop_requested()


def test_tasks_within_tasks() -> None:
    done: Counter[int] = Counter()

    def outer(k: int) -> None:
        probes.run_parallel(10, 4, lambda j: done.update([10 * k + j]))

    probes.run_parallel(20, 3, outer)
    assert done == Counter(range(200))


def test_an_error_within_a_task_within_a_task() -> None:
    def inner(j: int) -> None:
        if j == 5:
            raise LookupError("inner")

    with pytest.raises(LookupError, match="inner"):
        probes.run_parallel(20, 3, lambda k: probes.run_parallel(10, 4, inner))


def test_several_callers() -> None:
    found: dict[int, int] = {}

    def caller(k: int) -> None:
        done: list[int] = []
        for _ in range(50):
            probes.run_parallel(20, 3, done.append)
        found[k] = len(done)

    callers = [threading.Thread(target=caller, args=(k,)) for k in range(5)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert found == dict.fromkeys(range(5), 1000)


def test_a_python_task_that_nobody_waits_for() -> None:
    began = threading.Event()
    ended: list[type[BaseException]] = []

    def task(_: int) -> None:
        began.set()
        while not probes.stop_requested():
            time.sleep(0.001)

    def whole() -> None:
        try:
            probes.run_parallel(2, 2, task)
        except BaseException as error:
            ended.append(type(error))
            raise

    python_task: Task[Any] = Task(whole)
    python_task.start()
    assert began.wait(20)
    threads.stop_all([python_task])
    assert ended == [Stopped]


# --- signals, forks and the end: in processes of their own ---------------------------------------------------------


def run(code: str, timeout: float = 60) -> str:
    command = [
        sys.executable,
        "-c",
        "import os, signal, sys, threading, time\nfrom pyparq.kernels._native import probes\n" + code,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


POLL = """
def task(k):
    while not probes.stop_requested():
        time.sleep(0.001)
"""


@pytest.mark.skipif(not hasattr(signal, "raise_signal") or os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_ctrl_c(workers: int) -> None:
    """Also where this thread does nothing but wait, or nothing but work."""
    code = f"""{POLL}
def interrupt():
    time.sleep(0.2)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
sent = []
threading.Thread(target=interrupt).start()
try:
    probes.run_parallel({workers}, {workers}, task)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0] < 10)
probes.run_parallel(10, {workers}, lambda k: None)
"""
    assert run(code) == "interrupted True"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    code = """
together = threading.Barrier(3)
probes.run_parallel(3, 3, lambda k: together.wait(20))
child = os.fork()
together = threading.Barrier(3)
probes.run_parallel(3, 3, lambda k: together.wait(20))
if child:
    print(os.waitpid(child, 0)[1])
else:
    os._exit(0)
"""
    assert run(code) == "0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_others_work() -> None:
    code = f"""{POLL}
def caller():
    try:
        probes.run_parallel(2, 2, task)
    except BaseException:
        pass
threading.Thread(target=caller, daemon=True).start()
time.sleep(0.2)
for _ in range(20):
    child = os.fork()
    if not child:
        probes.run_parallel(4, 2, lambda k: None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    run(code)


def test_the_interpreter_ends() -> None:
    """With threads that idle; and where another thread is in the middle of it."""
    run("probes.run_parallel(4, 4, lambda k: time.sleep(0.01))")
    code = f"""{POLL}
def caller():
    try:
        probes.run_parallel(3, 3, task)
    except Exception as error:
        print(error, flush=True)
threading.Thread(target=caller, daemon=True).start()
time.sleep(0.2)
"""
    assert run(code) in ("the interpreter is shutting down", "")


def test_the_interpreter_ends_while_threads_ask_for_the_gil() -> None:
    """It ends them in the middle of C++ (until Python 3.13): they crash nothing."""
    code = """
import io, pyparq
file = io.BytesIO()
pyparq.write_table({"n": range(200_000)}, file, row_group_size=20_000)
data, values = file.getvalue(), bytes(80_000)
def read():
    while True:
        pyparq.read_table(io.BytesIO(data))
def compute():
    while True:
        pyparq.kernels.xxh64_fixed(values, 8)
for caller in (read, read, read, compute, compute):
    threading.Thread(target=caller, daemon=True).start()
time.sleep(0.3)
"""
    assert run(code) == ""


def test_work_at_the_end_of_the_interpreter() -> None:
    code = """
import atexit
done = []
class Last:
    def __del__(self):
        probes.run_parallel(5, 3, done.append)
        print(len(done))
last = Last()
"""
    assert run(code) == "5"
