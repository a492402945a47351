"""Columns of text that several threads decode in parts, which are joined behind the first part's bytes."""

from __future__ import annotations

import io
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

ROWS = 120_000


@cache
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
    elif which == "some null, the first ones not":
        values = [None if k % 7 == 0 and k > 20_000 else v for k, v in enumerate(values)]
    elif which == "some null, the last ones not":
        values = [None if k % 7 == 0 and k < 20_000 else v for k, v in enumerate(values)]
    elif which == "first ones long":
        values[:2_000] = [v * 40 for v in values[:2_000]]
    elif which == "first ones alike":  # a writer gives up its dictionary later on
        values[:3_000] = ["alike", "also"] * 1_500
    return values


@cache
def table_of(which: str) -> pa.Table:
    """The texts, in a column that may have nulls if they have some, and their numbers."""
    values = texts(which)
    schema = pa.schema([pa.field("x", pa.string(), nullable=None in values), ("n", pa.int64())])
    return pa.table({"x": values, "n": np.arange(len(values))}, schema)


KINDS = [
    "any", "first ones empty", "first ones null", "last ones empty", "some null", "some null, the first ones not",
    "some null, the last ones not", "first ones long", "first ones alike",
]  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("which", KINDS)
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


@pytest.mark.sweep(3)
@pytest.mark.parametrize("compression", ["none", "zstd", "gzip", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("which", ["any", "some null", "some null, the first ones not", "first ones alike"])
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", None])
def test_parts_of_every_encoding(encoding: str | None, which: str, version: str, compression: str) -> None:
    """``None``: a dictionary that its writer gives up after some pages."""
    table = table_of(which)
    out = io.BytesIO()
    level = 1 if compression in ("gzip", "brotli") else None  # by default they take pyarrow seconds
    pq.write_table(
        table, out, use_dictionary=encoding is None, column_encoding=encoding and {"x": encoding, "n": "PLAIN"},
        dictionary_pagesize_limit=20_000, data_page_size=100_000, data_page_version=version, compression=compression,
        compression_level=level,
    )  # fmt: skip
    found = pa.table(pyparq.read_table(io.BytesIO(out.getvalue())))
    found.validate(full=True)
    assert found.equals(table)


@pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is looked up in /proc")
def test_no_byte_of_text_is_in_memory_twice(tmp_path: Path) -> None:
    """Threads decode their parts of a column into one block."""
    line = "a line that a codec makes short " * 25
    table = pa.table({"x": [f"{k:09d} {line}" for k in range(250_000)]})
    pq.write_table(table, tmp_path / "text.parquet", use_dictionary=False)
    pq.write_table(table.slice(0, 3), tmp_path / "small.parquet")
    assert peak_of_reading(tmp_path) < table.nbytes + (64 << 20)


def peak_of_reading(folder: Path) -> int:
    """Bytes of memory that a process takes at most to read ``text.parquet``, beyond what it has after a small file."""
    code = """
import sys, pyparq
def memory(name):
    rows = open("/proc/self/status").read().splitlines()
    return next(int(row.split()[1]) << 10 for row in rows if row.startswith(name))
pyparq.read_table(sys.argv[1] + "/small.parquet")
before = memory("VmRSS")
table = pyparq.read_table(sys.argv[1] + "/text.parquet")
print(memory("VmHWM") - before)
"""
    command = [sys.executable, "-c", code, str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
