"""Reads and writes by many threads at a time, a fork among them, and Ctrl-C: for sanitize.py --threads."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pyparq
from pyparq import col

ROWS = 200_000
CODECS = ("snappy", "gzip", "zstd")


def read(path: Path, number: int) -> None:
    for step in range(4):
        assert pyparq.read_table(path, filters=col("a") > number * 1000 * step).num_rows
        with pyparq.ParquetFile(path) as file:
            assert sum(batch.num_rows for batch in file.scan(["s", "b"], filters=col("b") < 0.5).iter_batches(5000))


def count(path: Path, number: int) -> None:
    for value in range(number, number + 40):
        assert pyparq.dataset(path).count(col("a") == value) == 1


def write(data: dict[str, Any], path: Path) -> None:
    for codec in CODECS:
        pyparq.write_table(data, path, row_group_size=30_000, compression=codec)


def all_at_once(tasks: list[Callable[[], None]]) -> None:
    """Run the tasks on threads, and fork while they run. An error in any of them is one of this process."""
    failures: list[BaseException] = []

    def kept(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=kept, args=(task,)) for task in tasks]
    for thread in running:
        thread.start()
    child = os.fork()
    if child == 0:
        tasks[0]()
        os._exit(0)
    for thread in running:
        thread.join()
    assert os.waitpid(child, 0)[1] == 0
    if failures:
        raise failures[0]


def interrupted(path: Path) -> bool:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for _ in range(2000):
            pyparq.read_table(path)
    except KeyboardInterrupt:
        return True
    return False


def main() -> None:
    draw = np.random.default_rng(1)
    data = {"a": np.arange(ROWS), "b": draw.random(ROWS), "s": np.array([f"t{k % 1000}" for k in range(ROWS)])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        pyparq.write_table(data, path, row_group_size=20_000, bloom_filters=["a"])
        tasks: list[Callable[[], None]] = [lambda k=k: read(path, k) for k in range(6)]  # type: ignore[misc]
        tasks += [
            lambda: count(path, 7),
            lambda: write(data, Path(folder) / "1"),
            lambda: write(data, Path(folder) / "2"),
        ]
        all_at_once(tasks)
        assert interrupted(path)
    print("reads, writes, a fork and an interrupt: done")


if __name__ == "__main__":
    main()
