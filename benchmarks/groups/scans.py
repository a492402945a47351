"""Everything, or some columns of it: events, lineitem, nested columns, the real flights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import events
from engines import Query, WriteJob
from inputs import EVENTS_JOB, PLAIN, Inputs
from lines import Line, Read

EVENTS_COLUMNS = ("ts", "id", "user", "url", "country", "amount", "note")
FOUR = ("l_quantity", "l_extendedprice", "l_shipdate", "l_returnflag")


def rewrite_with_datafusion(source: Path, target: Path) -> None:
    """Read and written by DataFusion, whose strings are views. By one task: several would mix the rows."""
    from datafusion import SessionConfig, SessionContext

    SessionContext(SessionConfig().with_target_partitions(1)).read_parquet(source).write_parquet(target)


def lines(inputs: Inputs) -> Iterator[Line]:
    sizes = inputs.sizes

    def scan(name: str, writer: str, columns: tuple[str, ...] | None, job: WriteJob, *table: object) -> Read:
        return Read(
            group="scans", name=name, writer=writer, target=0.95, with_floor=True,
            path=partial(inputs.file, writer, job, *table), table=partial(inputs.table, *table),
            queries=lambda: [Query(columns)],
        )  # fmt: skip

    job = replace(EVENTS_JOB, rows=events.row_group_rows(sizes.events))
    for writer in ("pyarrow", "pyparq"):
        yield scan("events, all", writer, None, job, "events", sizes.events)
        for name in EVENTS_COLUMNS:
            yield scan(f"events, only {name}", writer, (name,), job, "events", sizes.events)
    lineitem = ("lineitem", sizes.lineitem)
    for writer in ("pyarrow", "polars", "duckdb", "pyparq"):
        yield scan("lineitem, all", writer, None, PLAIN, *lineitem)
    yield scan("lineitem, four columns", "pyarrow", FOUR, PLAIN, *lineitem)
    source = partial(inputs.file, "pyarrow", PLAIN, *lineitem)
    for name, columns in (("lineitem, all", None), ("lineitem, four columns", FOUR)):
        yield Read(
            group="scans", name=name, writer="datafusion", target=0.95, with_floor=True,
            path=lambda: inputs.derived("datafusion", source(), rewrite_with_datafusion),
            table=partial(inputs.table, *lineitem), queries=lambda columns=columns: [Query(columns)],
        )  # fmt: skip
    nested = ("nested", sizes.nested)
    yield scan("nested, all", "pyarrow", None, PLAIN, *nested)
    for name, described in (("l", "lists of integers"), ("ls", "lists of structs"), ("s", "structs")):
        yield scan(f"nested, {described}", "pyarrow", ("n", name), PLAIN, *nested)
    yield scan("nested, all", "pyparq", None, PLAIN, *nested)
    for codec in ("gzip", "brotli"):
        job = WriteJob(codec, indexed=False)
        yield replace(scan(f"orders, {codec}", "pyarrow", None, job, "orders", sizes.rows // 5), with_floor=False)
    for writer in ("pyarrow", "duckdb", "polars"):
        yield scan("flights, all", writer, None, PLAIN, "flights", sizes.flights)
