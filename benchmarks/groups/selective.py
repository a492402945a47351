"""Few rows: keys that are there or not, points and ranges on the sort column, rows by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import events
import numpy as np
import pyarrow as pa
from engines import Query, Term
from inputs import EVENTS_JOB, Inputs
from lines import Line, Read

QUESTIONS = 45  # different keys, so that no engine answers the same one twice


def lines(inputs: Inputs) -> Iterator[Line]:
    """On the events file, which has Bloom filters on `id` and `url` by every writer that can."""
    rows = inputs.sizes.events
    table = partial(inputs.table, "events", rows)
    job = replace(EVENTS_JOB, rows=events.row_group_rows(rows))
    kinds = {
        "absent key": (0.25, absent),
        "present key": (0.6, present),
        "string key": (0.6, string_key),
        "point on the sort column": (0.65, point),
        "0.1 % range on the sort column": (0.65, ranges),
        "take of 100 rows": (0.4, taken),
    }
    for writer in ("pyarrow", "datafusion", "pyparq"):
        for name, (target, ask) in kinds.items():
            yield Read(
                group="selective", name=name, writer=writer, target=target, counts_bytes=ask is not taken,
                path=partial(inputs.file, writer, job, "events", rows), table=table,
                queries=lambda ask=ask: ask(table()),
            )  # fmt: skip


def absent(table: pa.Table) -> Sequence[Query]:
    """Odd ids: inside the bounds, never there."""
    found = some_rows(table)
    return [Query(None, (Term("id", "==", table["id"][row].as_py() + 1),), small=True) for row in found]


def present(table: pa.Table) -> Sequence[Query]:
    return [Query(None, (Term("id", "==", table["id"][row].as_py()),), small=True) for row in some_rows(table)]


def string_key(table: pa.Table) -> Sequence[Query]:
    return [Query(None, (Term("url", "==", table["url"][row].as_py()),), small=True) for row in some_rows(table)]


def point(table: pa.Table) -> Sequence[Query]:
    return [Query(None, (Term("ts", "==", table["ts"][row].as_py()),), small=True) for row in some_rows(table)]


def ranges(table: pa.Table) -> Sequence[Query]:
    ts, span = table["ts"], max(1, table.num_rows // 1000)
    starts = [min(row, table.num_rows - span) for row in some_rows(table)]
    return [
        Query(None, (Term("ts", ">=", ts[row].as_py()), Term("ts", "<=", ts[row + span - 1].as_py())), small=True)
        for row in starts
    ]


def taken(table: pa.Table) -> Sequence[Query]:
    rng = np.random.default_rng(3)
    return [
        Query(rows=tuple(sorted(rng.choice(table.num_rows, 100, replace=False).tolist()))) for _ in range(QUESTIONS)
    ]


def some_rows(table: pa.Table) -> list[int]:
    chosen: list[int] = np.random.default_rng(7).choice(table.num_rows, QUESTIONS, replace=False).tolist()
    return chosen
