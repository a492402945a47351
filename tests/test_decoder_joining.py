"""Columns of text that several threads decode in parts, which are joined behind the first part's bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

ROWS = 120_000


def texts(which: str) -> list[Any]:
    """About five megabytes, so that each of two threads has more than half a megabyte to decode."""
    rng = np.random.default_rng(8)
    numbers = rng.integers(0, 1 << 40, ROWS).tolist()
    lengths = rng.integers(1, 6, ROWS).tolist()
    values: list[Any] = [f"{n:013d}" * k for n, k in zip(numbers, lengths, strict=True)]
    if which == "first ones empty":
        values[: ROWS * 3 // 4] = [""] * (ROWS * 3 // 4)
    elif which == "first ones null":
        values[: ROWS * 3 // 4] = [None] * (ROWS * 3 // 4)
    elif which == "last ones empty":
        values[ROWS // 4 :] = [""] * (ROWS - ROWS // 4)
    elif which == "some null":
        values = [None if k % 7 == 0 else v for k, v in enumerate(values)]
    elif which == "first ones long":
        values[:2_000] = [v * 40 for v in values[:2_000]]
    return values


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize(
    "which", ["any", "first ones empty", "first ones null", "last ones empty", "some null", "first ones long"]
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.list_(pa.string())], ids=str)
def test_parts_are_joined(kind: pa.DataType, which: str, dictionary: bool) -> None:
    values: list[Any] = texts(which)
    if pa.types.is_list(kind):
        values = [values[k : k + 3] for k in range(0, ROWS, 3)]
    elif kind == pa.large_binary():
        values = [None if v is None else v.encode() for v in values]
    table = pa.table({"x": pa.array(values, kind), "n": np.arange(len(values))})
    out = io.BytesIO()
    pq.write_table(table, out, use_dictionary=dictionary, data_page_size=100_000, compression="snappy")
    for threads in (True, False):
        found = pa.table(pyparq.read_table(io.BytesIO(out.getvalue()), use_threads=threads))
        found.validate(full=True)
        assert found.equals(table)
    some = pa.table(pyparq.read_table(io.BytesIO(out.getvalue()), filters=col("n") >= 9))
    assert some.equals(table.slice(9))
