"""Many row groups, pages and files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from engines import Query, Term, WriteJob
from inputs import Inputs
from lines import Line, Read

GROUP_ROWS = 100
PAGE_ROWS = 1_000
CURVES = {"all": "row groups", "a tenth of the rows": "row groups, filtered"}


def lines(inputs: Inputs) -> Iterator[Line]:
    yield from row_groups(inputs)
    yield from pages(inputs)
    yield from files(inputs)


def row_groups(inputs: Inputs) -> Iterator[Line]:
    """Row groups of 100 rows and ten columns."""

    def read(count: int, what: str, query: Query, writer: str = "pyarrow") -> Read:
        table = ("small_rows", count * GROUP_ROWS)
        return Read(
            group="many", name=f"{count:,} row groups of 100 rows, {what}", writer=writer, target=0.9,
            counted=count == asked, curve=(CURVES[what], count) if what in CURVES and writer == "pyarrow" else None,
            path=partial(inputs.file, writer, WriteJob(rows=GROUP_ROWS, indexed=False), *table),
            table=partial(inputs.table, *table), queries=lambda: [query],
        )  # fmt: skip

    counts = inputs.sizes.row_groups
    asked = 1_000 if 1_000 in counts else counts[-1]
    tenth = (Term("c1", "<", 0.1),)
    for count in counts:
        yield read(count, "all", Query())
        yield read(count, "a tenth of the rows", Query(None, tenth))
    yield read(asked, "a tenth counted", Query(None, tenth, count=True))
    yield read(asked, "one column", Query(("c1",)))
    yield read(asked, "point", Query(None, (Term("c0", "==", asked * GROUP_ROWS // 2 * 2),), small=True))
    for writer in ("pyparq", "datafusion", "polars"):
        yield read(asked, "all", Query(), writer)


def pages(inputs: Inputs) -> Iterator[Line]:
    """Pages of a thousand values, in ten columns."""
    for count in inputs.sizes.pages:
        rows = max(1, count // 10) * PAGE_ROWS
        asked = count == inputs.sizes.pages[-1]
        for writer in ("pyarrow", "pyparq", "datafusion") if asked else ("pyarrow",):
            yield Read(
                group="many", name=f"{count:,} pages of 1,000 values", writer=writer, target=0.9, counted=asked,
                curve=("pages", count) if writer == "pyarrow" else None,
                path=partial(
                    inputs.file, writer, WriteJob(rows=1 << 20, page_rows=PAGE_ROWS, indexed=True), "small_rows", rows
                ),
                table=partial(inputs.table, "small_rows", rows), queries=lambda: [Query()],
            )  # fmt: skip


def files(inputs: Inputs) -> Iterator[Line]:
    """One key in a folder of files without Bloom filters, and everything in it."""
    rows = inputs.sizes.file_rows
    for count in inputs.sizes.files:
        asked = count == inputs.sizes.files[-1]
        key = Query(None, (Term("key", "==", count * rows // 2 * 2),), small=True)
        for writer in ("pyarrow", "duckdb") if asked else ("pyarrow",):
            folder = partial(inputs.folder, writer, count, rows)
            table = partial(inputs.table, "orders", count * rows)
            yield Read(
                group="many", name=f"one key in {count:,} files", writer=writer, target=0.9, counted=asked,
                curve=("files, one key", count) if writer == "pyarrow" else None,
                path=folder, table=table, queries=lambda key=key: [key],
            )  # fmt: skip
            if asked:
                yield Read(
                    group="many", name=f"all of {count:,} files", writer=writer, target=0.9,
                    path=folder, table=table, queries=lambda: [Query()],
                )  # fmt: skip
                yield Read(
                    group="many", name=f"a tenth of {count:,} files", writer=writer, target=0.9,
                    path=folder, table=table, queries=lambda: [Query(None, (Term("pick", "<", 0.1),))],
                )  # fmt: skip
