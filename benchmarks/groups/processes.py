"""What needs an interpreter of its own: two threads against one, and the peak memory of a read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import events
from child import Task, run
from engines import Engine, Query, WriteJob
from inputs import EVENTS_JOB, PLAIN, Inputs
from lines import Line
from tables import ORDERS_OUT

from groups.filters import HALF

MORE = 64 << 20  # bytes that a read may take beyond 1.15 times its result


def lines(inputs: Inputs) -> Iterator[Line]:
    sizes = inputs.sizes
    job = replace(EVENTS_JOB, rows=events.row_group_rows(sizes.events))
    event_file = partial(inputs.file, "pyarrow", job, "events", sizes.events)
    orders = partial(inputs.file, "pyarrow", PLAIN, "orders", sizes.rows)
    log = partial(inputs.file, "pyarrow", PLAIN, "log", sizes.log_lines)
    kept = Query(ORDERS_OUT, HALF)
    for name, path, query in (
        ("events, all", event_file, Query()),
        ("keeps 50 %, 7 columns out", orders, kept),
        ("log lines, all", log, Query()),
    ):
        yield Speedup(group="processes", name=name, target=1.7, path=path, query=query)
    for name, path in (("events, write snappy", event_file), ("log lines, write snappy", log)):
        yield Speedup(group="processes", name=name, target=1.7, path=path, job=WriteJob("snappy"))
    lineitem = partial(inputs.file, "pyarrow", PLAIN, "lineitem", sizes.lineitem)
    for name, path in (("events, all", event_file), ("log lines, all", log), ("lineitem, all", lineitem)):
        yield Memory(group="processes", name=name, target=1.0, path=path)


@dataclass(frozen=True, kw_only=True)
class Speedup(Line):
    """How many times quicker two processors are than one."""

    path: Callable[[], Path]
    query: Query | None = None
    job: WriteJob | None = None

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        path, target = self.path(), inputs.scratch("speedup")
        taken: dict[str, dict[int, list[float]]] = {engine.name: {1: [], 2: []} for engine in engines}
        refused: dict[str, str] = {}
        runs = 3 if inputs.sizes.budget else 1
        try:
            for _ in range(max(1, inputs.sizes.processes // 2)):
                for name in [name for name in taken if name not in refused]:
                    for cpus in (1, 2):
                        task = Task(name, str(path), runs, cpus, self.query, self.job, str(target))
                        try:
                            taken[name][cpus] += run(task)["ms"]
                        except RuntimeError as error:
                            if name == "pyparq":
                                raise
                            refused[name] = str(error)[:200]
        finally:
            target.unlink(missing_ok=True)
        found = {
            name: {"one_ms": round(statistics.median(ms[1]), 2), "two_ms": round(statistics.median(ms[2]), 2)}
            for name, ms in taken.items()
            if ms[1] and ms[2]
        }
        for figures in found.values():
            figures["speedup"] = round(figures["one_ms"] / figures["two_ms"], 2)
        return {
            "kind": "speedup", "group": self.group, "name": self.name, "target": self.target, "engines": found,
            "refused": refused,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Memory(Line):
    """The most memory that a first read takes, against 1.15 times its result and 64 MB."""

    path: Callable[[], Path]

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        path = self.path()
        found: dict[str, dict[str, float]] = {}
        for engine in engines:
            figures = run(Task(engine.name, str(path), 0, query=Query()))
            share = figures["peak"] / (1.15 * figures["result"] + MORE)
            found[engine.name] = {"peak": figures["peak"], "result": figures["result"], "share": round(share, 3)}
        return {
            "kind": "memory", "group": self.group, "name": self.name, "target": self.target, "engines": found,
            "refused": {},
        }  # fmt: skip
