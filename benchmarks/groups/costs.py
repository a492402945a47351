"""What does not depend on the data: encryption, the import, a tiny file."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import encryption
from engines import Engine, Query
from inputs import PLAIN, Inputs
from lines import Line, Read
from measure import Timing

MODULES = {"numpy": "numpy", "pyparq": "pyparq", "pyarrow": "pyarrow.parquet", "polars": "polars", "duckdb": "duckdb"}


def lines(inputs: Inputs) -> Iterator[Line]:
    for writer in ("pyarrow", "pyparq"):
        yield Read(
            group="costs", name="a tiny file: 5,000 rows, 3 columns", writer=writer, target=0.8,
            path=partial(inputs.file, writer, PLAIN, "tiny"), table=partial(inputs.table, "tiny"),
            queries=lambda: [Query(small=True)],
        )  # fmt: skip
    yield Import(group="costs", name='`python -c "import …"`, against numpy', target=1.45)
    for what in ("read", "write"):
        yield Encryption(group="costs", name=f"encryption, {what}", target=1.0, what=what)


@dataclass(frozen=True, kw_only=True)
class Import(Line):
    """A fresh interpreter that imports one module and ends."""

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        taken: dict[str, list[float]] = {name: [] for name in MODULES}
        names = {engine.name for engine in engines} | {"numpy"}
        with tempfile.TemporaryDirectory() as empty:  # in a checkout, `-c` would import the sources
            for step in range(inputs.sizes.runs + 1):
                for name, module in MODULES.items():
                    if name in names:
                        start = time.perf_counter()
                        subprocess.run([sys.executable, "-c", f"import {module}"], cwd=empty, check=True)
                        if step:
                            taken[name].append((time.perf_counter() - start) * 1e3)
        timings = {
            name: Timing(round(statistics.median(ms), 2), round(min(ms), 2), round(min(ms), 2), len(ms))
            for name, ms in taken.items()
            if ms
        }
        return self.figures(timings, {"numpy"}, {})


@dataclass(frozen=True, kw_only=True)
class Encryption(Line):
    """What GCM and CTR add to a read or a write of a quarter of the events, in pyparq and in pyarrow."""

    what: str

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        names = [engine.name for engine in engines if engine.name in ("pyparq", "pyarrow")]
        with tempfile.TemporaryDirectory(dir=inputs.data_dir) as folder:
            cases = self.cases(names, inputs, Path(folder))
            taken = encryption.in_rounds(cases, max(1, inputs.sizes.runs // 2), time.perf_counter)
        found: dict[str, dict[str, float]] = {}
        for name in names:
            by_case = taken[name]
            found[name] = {"plain": round(statistics.median(by_case["plain"]), 2)}
            for algorithm in ("GCM", "CTR"):
                more = [a - b for a, b in zip(by_case[algorithm], by_case["plain"], strict=True)]
                found[name][algorithm] = round(statistics.median(more), 2)
        line: dict[str, Any] = {"kind": "added", "group": self.group, "name": self.name, "target": self.target}
        if len(names) == 2:
            line["ratios"] = {
                algorithm: round(found["pyparq"][algorithm] / max(found["pyarrow"][algorithm], 0.1), 2)
                for algorithm in ("GCM", "CTR")
            }
        return line | {"engines": found}

    def cases(self, names: list[str], inputs: Inputs, folder: Path) -> dict[str, Callable[[str], Any]]:
        table = inputs.table("events", max(4, inputs.sizes.events // 4))
        ways = {
            "pyparq": (encryption.ours_write, encryption.ours_read),
            "pyarrow": (encryption.arrow_write, encryption.arrow_read),
        }
        cases: dict[str, Callable[[str], Any]] = {}
        for name in names:
            write, read = ways[name]
            if self.what == "write":
                target = folder / f"{name}.parquet"
                cases[name] = lambda case, w=write, t=target: w(table, t, encryption.CASES[case], True)
                continue
            for case, algorithm in encryption.CASES.items():
                write(table, folder / f"{name}-{case}.parquet", algorithm, True)
            cases[name] = lambda case, r=read, n=name: r(folder / f"{n}-{case}.parquet", encryption.CASES[case], True)
        return cases
