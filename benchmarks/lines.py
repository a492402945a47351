"""One line of the benchmark: a question, or a file to write, that all engines take in turn.

``measure`` compares all answers with the right answer, value for value, and only then takes the time. A peer
that refuses, or answers otherwise, is left out of the line, with the reason; pyparq's wrong answer ends the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import floors
import measure
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from engines import OPERATORS, Engine, NotOffered, Pyparq, Query, WriteJob, counted
from inputs import Inputs

ARROW_OPERATORS = dict(zip(OPERATORS, (pc.equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal), strict=True))


@dataclass(frozen=True, kw_only=True)
class Line(ABC):
    """One line of a table."""

    group: str
    name: str
    writer: str = ""  # who wrote the file
    target: float  # pyparq's time against the best peer's, at most
    counted: bool = True  # in the group's geometric mean; points of a curve that the table does not ask for are not
    curve: tuple[str, int] | None = None  # the growth curve it is a point of, and where

    @abstractmethod
    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        """The figures, as plain data."""

    def figures(
        self, timings: dict[str, measure.Timing], peers: set[str], refused: dict[str, str], **more: Any
    ) -> dict[str, Any]:
        """`peers` are the engines that do the whole job and so may be the best."""
        found: dict[str, Any] = {
            "kind": "time", "group": self.group, "name": self.name, "writer": self.writer, "target": self.target,
            "counted": self.counted, "curve": self.curve, "refused": refused,
            "engines": {name: timing.to_json() for name, timing in timings.items()},
        }  # fmt: skip
        able = [name for name in timings if name in peers]
        found["best_peer"] = min(able, key=lambda name: timings[name].median_ms) if able else None
        ours = timings.get("pyparq")
        if able and ours:
            for key, part in (("ratio", "median_ms"), ("ratio_of_minima", "min_ms"), ("ratio_of_cpu", "cpu_ms")):
                best = min(getattr(timings[name], part) for name in able)
                found[key] = round(getattr(ours, part) / max(best, 1e-4), 3)
        return found | more


@dataclass(frozen=True, kw_only=True)
class Read(Line):
    """Queries of one kind to one file or folder. `table` is what the file was made from."""

    path: Callable[[], Path]
    table: Callable[[], pa.Table]
    queries: Callable[[], Sequence[Query]]
    counts_bytes: bool = False
    with_floor: bool = False

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        path, queries, sizes = self.path(), self.queries(), inputs.sizes
        able, refused = self.check(engines, path, queries[:2])
        calls = {e.name: (lambda step, e=e: e.run(path, queries[step % len(queries)])) for e in able}
        runs = sizes.runs * (3 if self.counts_bytes else 1)
        timings = measure.interleave(calls, runs, budget=sizes.budget)
        more: dict[str, Any] = {}
        for engine in able:
            if isinstance(engine, Pyparq) and self.counts_bytes:
                measure.count_ours(engine, path, queries, timings[engine.name])
        if self.with_floor:
            columns = queries[0].needed
            pages = [p for p in floors.walk_pages(path) if columns is None or p.column.split(".")[0] in columns]
            more["floor_ms"] = round(floors.read_floor(path, pages) * 1e3, 4)
        return self.figures(timings, {e.name for e in able if not isinstance(e, Pyparq)}, refused, **more)

    def check(
        self, engines: Sequence[Engine], path: Path, queries: Sequence[Query]
    ) -> tuple[list[Engine], dict[str, str]]:
        """The engines that answer rightly, and why the others are left out."""
        able, refused = list(engines), {}
        for query in queries:
            expected = answer(self.table(), query)
            for engine in list(able):
                try:
                    found = engine.run(path, query)
                    measure.compare(found, expected, f"{engine.name}, {query}", keeps_order=engine.keeps_order)
                except Exception as error:
                    if isinstance(engine, Pyparq):
                        raise
                    able.remove(engine)
                    refused[engine.name] = f"{type(error).__name__}: {error}"[:200]
        return able, refused


@dataclass(frozen=True, kw_only=True)
class Write(Line):
    """The same table, written by all engines."""

    table: Callable[[], pa.Table]
    job: WriteJob
    with_floor: bool = False

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        table, job, sizes = self.table(), self.job, inputs.sizes
        targets = {engine.name: inputs.scratch(engine.name) for engine in engines}
        able, refused, sources = [], {}, {}
        try:
            for engine in engines:
                try:
                    if job.bloom and not engine.writes_bloom:
                        raise NotOffered("no Bloom filters of these columns")
                    sources[engine.name] = engine.own_table(table)
                    engine.write(sources[engine.name], targets[engine.name], job)
                    written = pq.ParquetFile(targets[engine.name]).read()
                    measure.compare(written, table, f"file written by {engine.name}", keeps_order=engine.keeps_order)
                    able.append(engine)
                except Exception as error:
                    if isinstance(engine, Pyparq):
                        raise
                    refused[engine.name] = f"{type(error).__name__}: {error}"[:200]
            calls = {e.name: (lambda _, e=e: e.write(sources[e.name], targets[e.name], job)) for e in able}
            timings = measure.interleave(
                calls,
                sizes.runs,
                budget=2 * sizes.budget,
                before=lambda name: targets[name].unlink(missing_ok=True),
            )
            bytes_of = {e.name: targets[e.name].stat().st_size for e in able}
            timings = {
                name: replace(timing, file_bytes=bytes_of[name], bytes_read=None) for name, timing in timings.items()
            }
            more: dict[str, Any] = {}
            reference = targets.get("pyarrow")
            if self.with_floor and reference is not None:
                pages = floors.walk_pages(reference)
                floor = floors.write_floor(reference, pages, job.level or 3, inputs.scratch("floor"))
                more["floor_ms"] = round(floor * 1e3, 4)
        finally:
            for path in targets.values():
                path.unlink(missing_ok=True)
        peers = {e.name for e in able if e.writes_page_index and not isinstance(e, Pyparq)}
        smallest = min((size for name, size in bytes_of.items() if name != "pyparq"), default=None)
        if smallest and "pyparq" in bytes_of:
            more["size_ratio"] = round(bytes_of["pyparq"] / smallest, 3)
        return self.figures(timings, peers, refused, **more)


def answer(table: pa.Table, query: Query) -> pa.Table:
    """The right answer, from the table in memory."""
    if query.rows is not None:
        table = table.take(pa.array(query.rows))
    for term in query.where:
        column, kind = table[term.column], table.schema.field(term.column).type
        if term.op == "in":
            keep = pc.is_in(column, pa.array(term.value).cast(kind))
        elif term.op == "starts with":
            keep = pc.starts_with(column, term.value)
        elif term.op == "there":
            keep = pc.is_valid(column)
        else:
            keep = ARROW_OPERATORS[term.op](column, pa.scalar(term.value).cast(kind))
        table = table.filter(keep)
    if query.condition:
        table = table.filter(query.condition.pyarrow(pc.field))
    if query.count:
        return counted(table.num_rows)
    return table if query.columns is None else table.select(query.columns)


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
