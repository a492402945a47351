"""Filters that keep between 1 and 99 % of the rows, in no order that an index could use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial

import numpy as np
from engines import Query, Term, WriteJob
from inputs import PLAIN, Inputs
from lines import Line, Read
from tables import ORDERS_OUT

HALF = (Term("pick", "<", 0.5),)
KINDS = {
    "prefix keeping a tenth": Term("city", "starts with", "city of 00"),
    "boolean": Term("paid", "==", True),
    "not null": Term("count", "there"),
    "small integer": Term("count", "<", 300),
    "doubles keeping half": HALF[0],
}
SHIPPED = (Term("l_shipdate", ">=", date(1994, 1, 1)), Term("l_shipdate", "<", date(1995, 1, 1)))
DISCOUNT = (Term("l_discount", ">=", Decimal("0.05")), Term("l_discount", "<=", Decimal("0.07")))
Q6 = Query(
    ("l_extendedprice", "l_discount"),
    (*SHIPPED, *DISCOUNT, Term("l_quantity", "<", Decimal("24.00"))),
)


def large_dictionary(inputs: Inputs) -> Iterator[Line]:
    """A prefix of names of which there are 40,000."""
    prefix = (Term("name", "starts with", "17-"),)
    for what, query in (
        ("three columns out", Query(("name", "spent", "visits"), prefix)),
        ("counted", Query(None, prefix, count=True)),
    ):
        for writer in ("pyarrow", "polars"):
            yield Read(
                group="filters", name=f"prefix in a large dictionary, {what}", writer=writer, target=0.9,
                path=partial(inputs.file, writer, PLAIN, "customers", inputs.sizes.rows),
                table=partial(inputs.table, "customers", inputs.sizes.rows), queries=lambda query=query: [query],
            )  # fmt: skip


def middling_row_groups(inputs: Inputs) -> Iterator[Line]:
    """Row groups of a few thousand rows each, as streams and small batches leave them."""
    rows = inputs.sizes.rows // 2
    terms = {"a tenth": Term("pick", "<", 0.1), "half": Term("pick", "<", 0.5)}
    counts = {"doubles": terms["a tenth"]} | {name: KINDS[name] for name in ("prefix keeping a tenth", "not null")}
    for size in (4_000, 16_000):
        read = partial(
            Read, group="filters", writer="pyarrow", target=0.9,
            path=partial(inputs.file, "pyarrow", WriteJob(rows=size, indexed=False), "orders", rows, 71),
            table=partial(inputs.table, "orders", rows, 71),
        )  # fmt: skip
        for what, term in terms.items():
            yield read(name=f"{what} of row groups of {size:,} rows", queries=lambda term=term: [Query(None, (term,))])
        for what, term in counts.items():
            counted = Query(None, (term,), count=True)
            yield read(name=f"{what} counted, row groups of {size:,} rows", queries=lambda query=counted: [query])


def lines(inputs: Inputs) -> Iterator[Line]:
    """Seven columns out, one column out, strings, other kinds of tests and their counts, two terms, ``isin``, TPC-H's
    Q6; the half by every writer."""
    rows = inputs.sizes.rows

    def orders(name: str, query: Query, writer: str = "pyarrow", job: WriteJob = PLAIN) -> Read:
        return Read(
            group="filters", name=name, writer=writer, target=0.9,
            path=partial(inputs.file, writer, job, "orders", rows),
            table=partial(inputs.table, "orders", rows), queries=lambda: [query],
        )  # fmt: skip

    for percent in (1, 10, 50, 90, 99):
        yield orders(f"keeps {percent} %, 7 columns out", Query(ORDERS_OUT, (Term("pick", "<", percent / 100),)))
    for writer in ("polars", "duckdb", "datafusion", "pyparq"):
        yield orders("keeps 50 %, 7 columns out", Query(ORDERS_OUT, HALF), writer)
    yield orders("string == keeping half", Query(ORDERS_OUT, (Term("side", "==", "buy"),)))
    yield orders("keeps 50 %, one other column out", Query(("price",), HALF))
    yield orders("two terms keeping 25 %", Query(ORDERS_OUT, (*HALF, Term("second", "<", 0.5))))
    for name, term in KINDS.items():
        yield orders(f"{name}, 7 columns out", Query(ORDERS_OUT, (term,)))
        yield orders(f"{name}, counted", Query(None, (term,), count=True))
    yield from large_dictionary(inputs)
    yield from middling_row_groups(inputs)
    for count in inputs.sizes.wanted:
        wanted = np.random.default_rng(count).permutation(rows * 2)[: min(count, rows)].astype(np.int64)
        line = orders(f"isin of {count:,} integers", Query(("key", "price"), (Term("key", "in", wanted),)))
        yield replace(line, counted=count >= 100, curve=("integers in isin", count))
    scale = inputs.sizes.lineitem
    for writer in ("pyarrow", "duckdb"):
        yield Read(
            group="filters", name="lineitem, Q6's filter", writer=writer, target=0.9,
            path=partial(inputs.file, writer, PLAIN, "lineitem", scale),
            table=partial(inputs.table, "lineitem", scale), queries=lambda: [Q6],
        )  # fmt: skip
    yield Read(
        group="filters", name="flights late by an hour", writer="pyparq", target=0.9,
        path=partial(inputs.file, "pyparq", WriteJob(), "flights", inputs.sizes.flights),
        table=partial(inputs.table, "flights", inputs.sizes.flights),
        queries=lambda: [Query(None, (Term("dep_delay", ">", 60),))],
    )  # fmt: skip
