"""Timing, byte counting and value checks for the benchmark."""

from __future__ import annotations

import gc
import io
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from engines import Pyparq, Query


@dataclass
class Timing:
    """What one engine did for one line; `bytes_read` is what read calls returned (median)."""

    median_ms: float
    min_ms: float
    cpu_ms: float  # processor time of all threads, the least
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
    budget: float,
    at_least: int = 3,
    before: Callable[[str], None] | None = None,
) -> dict[str, Timing]:
    """Time every call, one after the other within each round, so that noise on the machine hits them all; in another
    order in each round, so that each follows all others.

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
    wall_of: dict[str, list[float]] = {name: [] for name in calls}
    cpu_of: dict[str, list[float]] = {name: [] for name in calls}
    bytes_of: dict[str, list[int]] = {name: [] for name in calls}
    names, shuffled = list(calls), random.Random(runs)
    for step in range(runs):
        shuffled.shuffle(names)  # what a call costs depends on the one before it
        for name in names:
            if (step + 1) * wanted[name] // runs == step * wanted[name] // runs:
                continue
            if before:
                before(name)
            read = bytes_read_so_far()
            cpu, start = time.process_time(), time.perf_counter()
            result = calls[name](step)
            wall_of[name].append(time.perf_counter() - start)
            cpu_of[name].append(time.process_time() - cpu)
            bytes_of[name].append(bytes_read_so_far() - read)
            del result  # freeing counts for no engine
        gc.collect(0)
    return {
        name: Timing(
            round(statistics.median(wall) * 1e3, 4),
            round(min(wall) * 1e3, 4),
            round(min(cpu_of[name]) * 1e3, 4),
            len(wall),
            int(statistics.median(bytes_of[name])),
        )
        for name, wall in wall_of.items()
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


def compare(found: pa.Table, expected: pa.Table, what: str, *, keeps_order: bool) -> None:
    """Compare every value, rows in order unless `keeps_order` is false; AssertionError says what differs."""
    expected = canonical(expected, expected.schema)
    found = canonical(found, expected.schema)
    if found.num_rows != expected.num_rows:
        raise AssertionError(f"{what}: {found.num_rows} rows, expected {expected.num_rows}")
    if not keeps_order:
        keys = [(name, "ascending") for name in sort_keys(expected)]
        found, expected = found.sort_by(keys), expected.sort_by(keys)
    for name in expected.column_names:
        if not found[name].equals(expected[name]):
            raise AssertionError(f"{what}: column {name} differs")


def sort_keys(table: pa.Table) -> list[str]:
    """Columns that put the rows into one order: the first one without repeats, or all that can be sorted by."""
    flat = [f.name for f in table.schema if not pa.types.is_nested(f.type)]
    for name in flat[:4]:
        if pc.count_distinct(table[name]).as_py() == table.num_rows:
            return [name]
    return flat


def canonical(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same values in the types of `schema`, without views: those and large types are an engine's own choice."""
    if set(table.column_names) != set(schema.names):
        raise AssertionError(f"columns {table.column_names[:10]}, expected {schema.names[:10]}")
    columns = [as_type(table[name], comparable(schema.field(name).type)) for name in schema.names]
    return pa.Table.from_arrays(columns, names=schema.names)


def comparable(kind: pa.DataType) -> pa.DataType:
    """A type of the same values that pyarrow can sort and count."""
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def as_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type) and values.type != kind:
        unlike = (values.type.tz is None) != (kind.tz is None)
        if unlike or (kind.tz is not None and values.type.unit != kind.unit):
            raise AssertionError(f"an instant came back as {values.type}, expected {kind}")
    return values if values.type == kind else values.cast(kind)
