"""Many columns: read; ``writes`` has their writing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import events
import pyarrow as pa
from engines import Query, WriteJob
from inputs import PLAIN, Inputs
from lines import Line, Read

EDGES = ("column_0000", "column_2500", "column_4999")


def lines(inputs: Inputs) -> Iterator[Line]:
    rows = inputs.sizes.wide_rows

    def read(name: str, writer: str, count: int, columns: tuple[str, ...] | None, job: WriteJob = PLAIN) -> Read:
        whole = columns is None and writer == "pyarrow"
        return Read(
            group="columns", name=name, writer=writer, target=0.95,
            counted=count >= 100, curve=("columns", count) if whole else None,
            path=partial(inputs.file, writer, job, "wide", count, rows),
            table=partial(inputs.table, "wide", count, rows), queries=lambda: [Query(columns)],
        )  # fmt: skip

    counts = inputs.sizes.columns
    for count in counts:
        yield read(f"{count:,} columns x {rows:,} rows", "pyarrow", count, None)
    for writer in ("polars", "duckdb", "datafusion", "pyparq"):
        middle = next((count for count in counts if count >= 1_000), counts[-1])
        yield read(f"{middle:,} columns x {rows:,} rows", writer, middle, None)
    yield read(f"one column of {counts[-1]:,}", "pyarrow", counts[-1], (f"c{counts[-1] // 2:05d}",))
    if len(counts) > 2:
        yield Read(
            group="columns", name="one column of 5,000 in 20 row groups", writer="pyarrow", target=0.95,
            path=lambda: events.wide_file(inputs.data_dir), table=some_columns,
            queries=lambda: [Query(EDGES[1:2], small=True)],
        )  # fmt: skip


def some_columns() -> pa.Table:
    return events.make_wide().select(EDGES)
