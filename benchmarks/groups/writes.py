"""Writing: events with and without Bloom filters, orders, lineitem, nested columns, flights, wide tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import events
from engines import WriteJob
from inputs import EVENTS_JOB, Inputs
from lines import Line, Write

ZSTD_LEVEL = 3


def lines(inputs: Inputs) -> Iterator[Line]:
    sizes = inputs.sizes

    def write(name: str, job: WriteJob, *table: object) -> Write:
        return Write(group="writes", name=name, target=1.0, table=partial(inputs.table, *table), job=job)

    rows = events.row_group_rows(sizes.events)
    for codec, level in (("snappy", None), ("zstd", ZSTD_LEVEL)):
        for bloom in ((), events.BLOOM_COLUMNS):
            job = replace(EVENTS_JOB, codec=codec, level=level, bloom=bloom, rows=rows)
            name = f"events, {codec}" + (" with Bloom filters" if bloom else "")
            yield replace(write(name, job, "events", sizes.events), with_floor=True)
    for codec, level in (("snappy", None), ("zstd", ZSTD_LEVEL)):
        yield write(f"orders, {codec}", WriteJob(codec, level), "orders", sizes.rows)
        yield write(f"lineitem, {codec}", WriteJob(codec, level), "lineitem", sizes.lineitem)
    for codec, level in (("gzip", 6), ("brotli", 4)):
        yield write(f"orders, {codec}", WriteJob(codec, level), "orders", sizes.rows // 10)
    yield write("log lines, gzip", WriteJob("gzip", 6), "log", sizes.log_lines // 10)
    yield write("nested, snappy", WriteJob("snappy"), "nested", sizes.nested)
    yield write("flights, snappy", WriteJob("snappy"), "flights", sizes.flights)
    for count in sizes.columns:
        line = write(
            f"{count:,} columns x {sizes.wide_rows:,} rows", WriteJob("snappy"), "wide", count, sizes.wide_rows
        )
        yield replace(line, counted=count >= 100, curve=("columns, written", count))
