"""How many calls of pyparq's Python a small job takes, over how many files: ``python tests/support/call_counts.py``.

Counted is the least of five runs after two others: what is loaded or computed once is there by then, and what a busy
machine adds, such as a wait, is not the job's own. The files do not lie in ``/tmp``: a write looks again for tables in
the folders above it when entries come or go there, and other tests make theirs in ``/tmp`` meanwhile.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import pyparq

PACKAGE = str(Path(pyparq.__file__).parent)
ROWS = 1000
QUIET = Path.home()
"""Where entries seldom change. The calls depend on how many folders are above it."""


def data(first: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(first)
    return {
        "id": np.arange(ROWS) + first,
        "v": rng.random(ROWS),
        "s": [f"s{k % 97}" for k in range(ROWS)],
        "g": [k % 4 for k in range(ROWS)],
    }


def jobs(folder: Path) -> dict[str, Callable[[], Any]]:
    one, four, numbers = folder / "one.parquet", folder / "four", count()
    pyparq.write_table(data(), one)
    four.mkdir()
    for k in range(4):
        pyparq.write_table(data(k * ROWS), four / f"{k}.parquet")
    table = pyparq.read_table(one)
    return {
        "read": lambda: pyparq.read_table(one),
        "filtered read": lambda: pyparq.read_table(one, filters=pyparq.col("id") == 500),
        "four files, filtered": lambda: pyparq.read_table(four, filters=pyparq.col("id") == 2500),
        "write": lambda: pyparq.write_table(table, folder / "out.parquet"),
        "folder of four written": lambda: pyparq.write_dataset(
            table,
            folder / f"out{next(numbers)}",
            partition_cols=["g"],
            use_threads=False,  # what threads do is not seen
        ),
    }


def counted(job: Callable[[], Any]) -> tuple[int, int, int]:
    """Calls, files, and changes from one file to another."""
    job()
    job()
    return min(_counted_once(job) for _ in range(5))


def _counted_once(job: Callable[[], Any]) -> tuple[int, int, int]:
    files: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.append(frame.f_code.co_filename)

    time.sleep(0.15)  # the folder of the job has entries of an age by then, see table_formats._TICK_NS
    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    changes = sum(a != b for a, b in zip([None, *files], files, strict=False))
    return len(files), len(set(files)), changes


def main() -> None:
    with tempfile.TemporaryDirectory(dir=QUIET) as folder:
        print(json.dumps({name: counted(job) for name, job in jobs(Path(folder)).items()}))


if __name__ == "__main__":
    main()
