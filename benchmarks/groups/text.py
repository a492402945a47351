"""Long log lines and string views."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from engines import Query, Term, WriteJob
from inputs import PLAIN, Inputs
from lines import Line, Read, Write


def lines(inputs: Inputs) -> Iterator[Line]:
    log, views = ("log", inputs.sizes.log_lines), ("views", inputs.sizes.rows)

    def read(name: str, writer: str, query: Query, *table: object) -> Read:
        return Read(
            group="text", name=name, writer=writer, target=0.95, with_floor=not query.where,
            path=partial(inputs.file, writer, PLAIN, *table), table=partial(inputs.table, *table),
            queries=lambda: [query],
        )  # fmt: skip

    for writer in ("pyarrow", "polars", "pyparq"):
        yield read("log lines, all", writer, Query(), *log)
    yield read("log lines of one level", "pyarrow", Query(None, (Term("level", "==", "WARNING"),)), *log)
    for codec in ("snappy", "zstd"):
        yield Write(
            group="text", name=f"log lines, write {codec}", target=1.0, table=partial(inputs.table, *log),
            job=WriteJob(codec, level=3 if codec == "zstd" else None), with_floor=True,
        )  # fmt: skip
    for writer in ("pyarrow", "polars", "datafusion"):
        yield read("ARROW:schema says string_view, all", writer, Query(), *views)
    for name, described in (("city", "short, repeated"), ("code", "short, distinct"), ("phrase", "longer, nulls")):
        yield read(f"string_view, {described}", "pyarrow", Query((name,)), *views)
    yield Write(
        group="text", name="string_view, write snappy", target=1.0, table=partial(inputs.table, *views),
        job=WriteJob("snappy"),
    )  # fmt: skip
