"""Nested scan, nested write and rows by number, beside the other engines.

    python benchmarks/nested.py [--rows 500000] [--events 4000000] [--runs 9] [--cpu]

The nested table has a list of integers, a list of structs and a struct, nulls in all of them, in row groups of a
quarter. Everybody scans pyarrow's file and hands over an Arrow table, which is compared with the table it was made
from; everybody writes the whole table with its defaults (snappy). ``take`` asks 100 random rows of the events file:
engines that have no row numbers filter by them. All engines in turn within each round, medians; ``--cpu`` takes
processor time of all threads instead of wall time, for machines that others use too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from events import default_data_dir, events_files
from measure import CountingFile

import pyparq

Calls = dict[str, Callable[[], Any]]


def make_nested(rows: int, seed: int = 7) -> pa.Table:
    """``l: list<int64>``, ``ls: list<struct<x: double, y: string>>``, ``s: struct<a: int64, b: double, c: string>``."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(0, 6, rows)))).astype(np.int32)
    items = int(offsets[-1])
    tags = pa.array([f"tag{k}" for k in range(1000)]).take(pa.array(rng.integers(0, 1000, items)))
    names = pa.array([f"name{k}" for k in range(5000)]).take(pa.array(rng.integers(0, 5000, rows)))
    numbers = pa.array(rng.integers(0, 100_000, items), mask=rng.random(items) < 0.05)
    edges = pa.array(offsets, mask=np.append(rng.random(rows) < 0.05, False))
    return pa.table({
        "l": pa.ListArray.from_arrays(edges, numbers),
        "ls": pa.ListArray.from_arrays(
            pa.array(offsets), pa.StructArray.from_arrays([pa.array(rng.random(items)), tags], ["x", "y"])
        ),
        "s": pa.StructArray.from_arrays(
            [pa.array(rng.integers(0, 1 << 40, rows)), pa.array(rng.random(rows)), names],
            ["a", "b", "c"], mask=pa.array(rng.random(rows) < 0.1),
        ),
    })  # fmt: skip


def scans(path: Path, columns: list[str] | None) -> Calls:
    shown = ", ".join(columns) if columns else "*"
    return {
        "pyparq": lambda: pyparq.read_table(path, columns).to_arrow(),
        "pyarrow": lambda: pq.read_table(path, columns=columns),
        "polars": lambda: pl.read_parquet(path, columns=columns).to_arrow(),
        "duckdb": lambda: duckdb.sql(f"select {shown} from '{path}'").to_arrow_table(),
    }


def writes(table: pa.Table, folder: Path) -> Calls:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    target = {name: folder / f"written-{name}.parquet" for name in ("pyparq", "pyarrow", "polars", "duckdb")}
    copy = f"copy (from table_to_write) to '{target['duckdb']}' (format parquet)"
    connection = duckdb.connect()
    connection.register("table_to_write", table)
    return {
        "pyparq": lambda: pyparq.write_table(table, target["pyparq"]),
        "pyarrow": lambda: pq.write_table(table, target["pyarrow"], write_page_index=True),
        "polars": lambda: frame.write_parquet(target["polars"], compression="snappy"),
        "duckdb": lambda: connection.execute(copy),
    }


def takes(path: Path, rows: np.ndarray[Any, Any]) -> Calls:
    chosen = pa.array(rows)
    listed = ", ".join(map(str, rows.tolist()))
    lazy = pl.scan_parquet(path).with_row_index("row_number")
    query = f"select * from read_parquet('{path}', file_row_number=true) where file_row_number in ({listed})"
    return {
        "pyparq": lambda: pyparq.ParquetFile(path).take(rows).to_arrow(),
        "pyarrow": lambda: pq.read_table(path).take(chosen),
        "polars": lambda: lazy.filter(pl.col("row_number").is_in(rows.tolist())).collect().to_arrow(),
        "duckdb": lambda: duckdb.sql(query).to_arrow_table(),
    }


def show(title: str, calls: Calls, runs: int, clock: Callable[[], float]) -> None:
    """Time the calls in turn, and print medians and the ratio to the best of the others."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for step in range(runs + 1):
        for name, call in calls.items():
            start = clock()
            result = call()
            if step:  # the first round warms up
                seconds[name].append(clock() - start)
            del result
    medians = {name: statistics.median(times) * 1e3 for name, times in seconds.items()}
    best = min(value for name, value in medians.items() if name != "pyparq")
    figures = "  ".join(f"{name} {value:6.1f}" for name, value in medians.items())
    print(f"{title:22}{figures}   ratio {medians['pyparq'] / best:.2f}")


def check_take(path: Path, rows: np.ndarray[Any, Any]) -> None:
    """The values are right, and the bytes those of the touched pages, dictionaries and OffsetIndexes."""
    expected = pq.read_table(path).take(pa.array(rows))
    with CountingFile(path) as counting, pyparq.ParquetFile(counting, coalesce_gap=0) as file:
        opened = counting.bytes
        found = file.take(rows).to_arrow()
        spent = counting.bytes - opened
        most, first = 0, 0
        for k in range(file.num_row_groups):
            count = file.metadata.row_group(k).num_rows
            inside = rows[(rows >= first) & (rows < first + count)] - first
            first += count
            for chunk in file.metadata.row_group(k).columns if len(inside) else []:
                places = file.page_locations(k, chunk.path_in_schema)
                assert places is not None
                touched = np.unique(np.searchsorted(places.first_rows, inside, side="right") - 1)
                most += int(places.sizes[touched].sum() + places.offsets[0]) - chunk.file_offset
                most += chunk.raw.offset_index_length
    assert found.cast(expected.schema).equals(expected)
    assert spent <= most
    print(f"take of {len(rows)} rows: {spent:,} bytes; touched pages, dictionaries, OffsetIndexes: {most:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    given = parser.parse_args()
    clock = time.process_time if given.cpu else time.perf_counter
    print(f"milliseconds of {'processor' if given.cpu else 'wall'} time, medians of {given.runs}")
    with tempfile.TemporaryDirectory() as name:
        folder, table = Path(name), make_nested(given.rows)
        path = folder / "nested.parquet"
        pq.write_table(table, path, row_group_size=max(given.rows // 4, 1), write_page_index=True)
        assert pyparq.read_table(path).to_arrow().equals(pq.read_table(path))
        for columns in (None, ["l"], ["ls"], ["s"]):
            show(f"scan {columns[0] if columns else 'all'}", scans(path, columns), given.runs, clock)
        show("write", writes(table, folder), given.runs, clock)
        assert pq.read_table(folder / "written-pyparq.parquet").equals(table)
    events = events_files(given.data_dir, given.events, ours=False)["pyarrow"]
    rows = np.random.default_rng(3).integers(0, given.events, 100)
    check_take(events, rows)
    show("take of 100 rows", takes(events, rows), given.runs, clock)


if __name__ == "__main__":
    main()
