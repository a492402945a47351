"""One engine in an interpreter of its own: what two threads bring, and how much memory a read takes.

``run`` starts ``python child.py`` with a pickled `Task` on its standard input and reads JSON from its output.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Task:
    """A question to `path`, or, with `job`, the table in `path` written to `target`. Runs on `cpus` processors."""

    engine: str
    path: str
    runs: int
    cpus: int | None = None
    query: Any = None
    job: Any = None
    target: str | None = None


def run(task: Task) -> dict[str, Any]:
    """``ms``: of every run. ``peak`` and ``result``: bytes that the first run takes at most, and that its answer has.

    RuntimeError when the engine fails.
    """
    command = [sys.executable, __file__]
    found = subprocess.run(command, input=pickle.dumps(task), capture_output=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr.decode(errors="replace").strip().splitlines()[-1])
    figures: dict[str, Any] = json.loads(found.stdout)
    return figures


def main() -> None:
    task: Task = pickle.load(sys.stdin.buffer)
    if task.cpus is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: task.cpus])
        os.environ["POLARS_MAX_THREADS"] = str(task.cpus)
    import pyarrow as pa
    import pyarrow.parquet as pq
    from engines import engine_named

    pa.set_cpu_count(task.cpus or pa.cpu_count())
    engine = engine_named(task.engine)
    if task.engine == "duckdb" and task.cpus is not None:
        engine.connection.execute(f"set threads={task.cpus}")  # type: ignore[attr-defined]
    path = Path(task.path)
    if task.job is None:
        step = lambda: engine.run(path, task.query)  # noqa: E731
    else:
        table = engine.own_table(pq.ParquetFile(path).read())
        step = lambda: engine.write(table, Path(task.target or ""), task.job)  # noqa: E731
    warm(engine)
    before = memory("VmRSS")
    milliseconds, result, peak = [], 0, 0
    for k in range(task.runs + 1):  # the first one warms up, and is the one whose memory counts
        start = time.perf_counter()
        answer = step()
        milliseconds.append((time.perf_counter() - start) * 1e3)
        if k == 0:
            peak = memory("VmHWM") - before
            result = 0 if answer is None else answer.nbytes
        del answer
    print(json.dumps({"ms": milliseconds[1:] or milliseconds, "peak": peak, "result": result}))


def warm(engine: Any) -> None:
    """What an engine and pyarrow load at their first answer is not memory of the read that is measured."""
    import engines
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "three_rows.parquet")
        pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), path)
        engine.run(path, engines.Query())


def memory(name: str) -> int:
    """``VmRSS``: bytes in memory now. ``VmHWM``: the most so far."""
    return next(int(row.split()[1]) << 10 for row in STATUS.read_text().splitlines() if row.startswith(name))


if __name__ == "__main__":
    sys.modules["child"] = sys.modules["__main__"]  # where the pickle says that Task is
    main()
