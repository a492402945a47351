"""A nested table whose values drift with the row, as plain Python rows and in files of several makes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyparq
from pyparq.write import chunk

Row = dict[str, Any]

STRUCT = pa.struct([("a", pa.int32()), ("t", pa.string()), ("in", pa.struct([("b", pa.float64())]))])
SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    ("s", STRUCT),
    ("l", pa.list_(pa.int32())),
    ("ll", pa.list_(pa.list_(pa.string()))),
    ("ls", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.list_(pa.int32()))]))),
    ("m", pa.map_(pa.string(), pa.int32())),
    pa.field("r", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
    ("sl", pa.struct([("v", pa.list_(pa.float64()))])),
])  # fmt: skip


def maybe(rng: random.Random, make: Callable[[], Any], share: float = 0.15) -> Any:
    return None if rng.random() < share else make()


def items(rng: random.Random, make: Callable[[], Any], most: int = 4) -> list[Any]:
    return [make() for _ in range(rng.randrange(most))]


def make_row(k: int, rng: random.Random) -> Row:
    # Values drift with the row, so that pages differ in their bounds; whole stretches are null or empty.
    number = lambda: maybe(rng, lambda: k // 40 + rng.randrange(12))  # noqa: E731
    word = lambda: maybe(rng, lambda: f"w{k // 50 + rng.randrange(6):03d}")  # noqa: E731
    floats = lambda: maybe(rng, lambda: rng.choice([float("nan"), 0.0, -0.0, float(k // 100)]))  # noqa: E731
    nothing = 300 <= k < 500
    struct = lambda: {"a": number(), "t": word(), "in": maybe(rng, lambda: {"b": floats()})}  # noqa: E731
    inner = lambda: {"x": number(), "y": word(), "z": maybe(rng, lambda: items(rng, number))}  # noqa: E731
    return {
        "id": k,
        "s": None if nothing else maybe(rng, struct),
        "l": None if nothing else maybe(rng, lambda: items(rng, number)),
        "ll": maybe(rng, lambda: items(rng, lambda: maybe(rng, lambda: items(rng, word)))),
        "ls": [] if nothing else maybe(rng, lambda: items(rng, lambda: maybe(rng, inner))),
        "m": maybe(rng, lambda: {f"k{k // 100 + j}": number() for j in range(rng.randrange(3))}),
        "r": items(rng, lambda: k // 60 + rng.randrange(5)),
        "sl": maybe(rng, lambda: {"v": maybe(rng, lambda: items(rng, floats))}),
    }  # fmt: skip


def rows_of(count: int = 1200) -> list[Row]:
    rng = random.Random(11)
    return [make_row(k, rng) for k in range(count)]


ROWS = rows_of()
TABLE = pa.Table.from_pylist([{**r, "m": None if r["m"] is None else list(r["m"].items())} for r in ROWS], SCHEMA)


def by_pyarrow(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=700, **options)
    return sink.getvalue()


def by_us(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, row_group_size=700, **options)
    return sink.getvalue()


def within_rows(**options: Any) -> bytes:
    """Pages that begin within rows, as old writers made them. Such pages may have no index; with ``write_page_index``
    they get one all the same, which lies."""
    real = chunk._paginate

    def paginate(data: Any, *args: Any) -> Any:
        dictionary, pages, sections = real(data, *args)
        if data.rep_levels is None:
            return dictionary, pages, sections
        slots = pages.slots.copy()
        for k, slot in enumerate(slots[1:-1].tolist(), start=1):
            inside = np.flatnonzero(data.rep_levels[slot : slots[k + 1]])
            slots[k] += inside[0] if len(inside) else 0
        levels = data.def_levels
        present = np.ones(data.num_slots, bool) if levels is None else levels == data.node.max_def
        values = np.concatenate(([0], np.cumsum(present)))[slots]
        return dictionary, replace(pages, slots=slots, values=values), sections

    with mock.patch.object(chunk, "_paginate", paginate):
        return by_us(max_rows_per_page=60, use_threads=False, **options)


FILES: dict[str, Callable[[], bytes]] = {
    "ours": lambda: by_us(max_rows_per_page=50),
    "ours v2 bloom": lambda: by_us(max_rows_per_page=70, data_page_version="2.0", bloom_filters=True),
    "ours plain": lambda: by_us(use_dictionary=False, write_page_index=False, write_size_statistics=False),
    "pyarrow": lambda: by_pyarrow(write_page_index=True, max_rows_per_page=60),
    "pyarrow v2": lambda: by_pyarrow(
        write_page_index=True, data_page_version="2.0", data_page_size=400, write_batch_size=16
    ),
    "within rows": lambda: within_rows(write_page_index=False),
    "within rows, plain": lambda: within_rows(write_page_index=False, use_dictionary=False),
}  # fmt: skip
