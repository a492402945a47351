"""Timing, byte counting and value checks for the benchmark."""

from __future__ import annotations

import gc
import io
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from engines import Engine, Pyparq, Query

BUDGET = 6.0  # seconds an engine may spend on one measurement before it gets fewer repetitions


@dataclass
class Timing:
    """What one engine did on one measurement; `bytes_read` is what read calls returned (median)."""

    median_ms: float
    min_ms: float
    runs: int
    bytes_read: int | None = None
    explained_bytes: int | None = None
    counted_bytes: int | None = None
    requests: int | None = None
    file_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def interleave(
    calls: Mapping[str, Callable[[int], Any]],
    runs: int,
    *,
    at_least: int = 7,
    before: Callable[[str], None] | None = None,
    budget: float = BUDGET,
) -> dict[str, Timing]:
    """Time every call, one after the other within each round, so that noise on the machine hits them all.

    A call is ``call(round)``. One that would exceed `budget` seconds over `runs` rounds sits out
    evenly spread rounds, but runs `at_least` times. The first call of each is a warm-up outside the figures.
    """
    wanted: dict[str, int] = {}
    for name, call in calls.items():
        if before:
            before(name)
        start = time.perf_counter()
        call(0)
        seconds = time.perf_counter() - start
        wanted[name] = min(runs, max(at_least, int(budget / max(seconds, 1e-6))))
    seconds_of: dict[str, list[float]] = {name: [] for name in calls}
    bytes_of: dict[str, list[int]] = {name: [] for name in calls}
    names = list(calls)
    for step in range(runs):
        turn = step % len(names)
        for name in names[turn:] + names[:turn]:
            if (step + 1) * wanted[name] // runs == step * wanted[name] // runs:
                continue
            if before:
                before(name)
            read = bytes_read_so_far()
            start = time.perf_counter()
            result = calls[name](step)
            seconds_of[name].append(time.perf_counter() - start)
            bytes_of[name].append(bytes_read_so_far() - read)
            del result  # freeing is nobody's figure
        gc.collect(0)
    return {
        name: Timing(
            round(statistics.median(seconds) * 1e3, 4),
            round(min(seconds) * 1e3, 4),
            len(seconds),
            int(statistics.median(bytes_of[name])),
        )
        for name, seconds in seconds_of.items()
    }


def bytes_read_so_far() -> int:
    """Bytes that read calls have returned to this process (Linux): pages touched through mmap do not show."""
    try:
        text = Path("/proc/self/io").read_text()
    except OSError:
        return 0
    return int(text.split(None, 2)[1])


class CountingFile(io.RawIOBase):
    """A read-only file object that counts requests and bytes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.requests = 0
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self.requests += 1
        self.bytes += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def count_ours(engine: Pyparq, path: Path, queries: Sequence[Query], timing: Timing, at_most: int = 21) -> None:
    """Add to `timing` what pyparq read (medians); AssertionError if `explain` and a file object disagree."""
    counted, explained, requests = [], [], []
    for query in queries[:at_most]:
        with CountingFile(path) as file, engine.pyparq.ParquetFile(file) as source:
            scan = engine.scan(source, query)
            scan.to_table()
            counted.append(file.bytes)
            requests.append(file.requests)
            explained.append(scan.explain().bytes_fetched)
        if explained[-1] != counted[-1]:
            raise AssertionError(f"{query}: explain() says {explained[-1]} bytes, the file saw {counted[-1]}")
    timing.counted_bytes = int(statistics.median(counted))
    timing.requests = int(statistics.median(requests))
    timing.explained_bytes = int(statistics.median(explained))


def check(engine: Engine, path: Path, query: Query, expected: pa.Table) -> None:
    """Run `query` and compare every value with `expected`; AssertionError says what differs."""
    found = canonical(engine.run(path, query), expected.schema)
    compare(found, expected, f"{engine.name}, {query}", keeps_order=engine.keeps_order)


def compare(found: pa.Table, expected: pa.Table, what: str, *, keeps_order: bool) -> None:
    """Compare every value, rows in order unless `keeps_order` is false."""
    if not keeps_order:  # ts is unique; a column without it is compared as a bag of values
        key = "ts" if "ts" in expected.column_names else expected.column_names[0]
        found, expected = found.sort_by(key), expected.sort_by(key)
    if found.num_rows != expected.num_rows:
        raise AssertionError(f"{what}: {found.num_rows} rows, expected {expected.num_rows}")
    for name in expected.column_names:
        if not found[name].equals(expected[name]):
            raise AssertionError(f"{what}: column {name} differs")


def canonical(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same values in the types of `schema`: views and large types are an engine's own choice."""
    if set(table.column_names) != set(schema.names):
        raise AssertionError(f"columns {table.column_names}, expected {schema.names}")
    return pa.table({name: as_type(table[name], schema.field(name).type) for name in schema.names})


def as_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if (
        pa.types.is_timestamp(kind)
        and pa.types.is_timestamp(values.type)
        and (values.type.tz is None or values.type.unit != kind.unit)
    ):
        raise AssertionError(f"an instant came back as {values.type}")
    return values if values.type == kind else values.cast(kind)


def import_seconds(module: str, runs: int = 15) -> float:
    """Median seconds that ``import module`` takes in a fresh interpreter that already has numpy."""
    code = f"import numpy, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    # From an empty folder: in a checkout, `-c` would import the sources instead of what is installed.
    with tempfile.TemporaryDirectory() as empty:
        seconds = [
            float(subprocess.run(command, cwd=empty, capture_output=True, text=True, check=True).stdout)
            for _ in range(runs)
        ]
    return statistics.median(seconds)
