"""Few rows of columns with large dictionaries: of a dictionary no more is unpacked than these rows look at."""

from __future__ import annotations

import decimal
import io
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import CorruptFileError, LimitError
from pyparq.limits import Limits

ROWS = 40_000


@lru_cache
def table() -> pa.Table:
    """Values by first use, so that early rows look at early entries; most dictionaries have more than 32 KiB."""
    rng = np.random.default_rng(7)
    number = np.minimum(rng.zipf(1.15, ROWS), 30_000) + np.arange(ROWS) // 7
    gone = rng.random(ROWS) < 0.2
    late = np.arange(ROWS) < 30_000
    return pa.table(
        {
            "i64": pa.array(number),
            "i32": pa.array(number.astype(np.int32), mask=gone),
            "i16": pa.array((number % 30_000).astype(np.int16)),
            "f64": pa.array(number / 8, mask=gone),
            "text": pa.array([f"{n:x}" * (n % 7) + "é" for n in number.tolist()], mask=gone),
            "skewed": pa.array(["x" * (1 if k < 20_000 else 300) + str(n) for k, n in enumerate(number.tolist())]),
            "fixed": pa.array([n.to_bytes(9, "big") for n in number.tolist()], pa.binary(9)),
            "decimal": pa.array([decimal.Decimal(int(n)) / 100 for n in number], pa.decimal128(20, 2)),
            "late": pa.array(number, mask=late),
            "struct": pa.StructArray.from_arrays([pa.array(number), pa.array(number % 9)], ["a", "b"]),
            "list": pa.array([[n, n + 1] for n in number.tolist()]),
        }
    )


@lru_cache
def data(codec: str, version: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, compression=codec, row_group_size=ROWS, max_rows_per_page=5000, write_page_index=True,
        data_page_version=version, dictionary_pagesize_limit=8 << 20,
    )  # fmt: skip
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_few_rows_as_pyarrow_has_them(codec: str, version: str) -> None:
    source, rng = data(codec, version), np.random.default_rng(3)
    chosen = [[k] for k in rng.integers(0, ROWS, 16).tolist()]
    chosen += [[0], [ROWS - 1], [4999, 5000], sorted(rng.choice(ROWS, 3, replace=False).tolist())]
    chosen += [sorted(rng.choice(5000, count, replace=False).tolist()) for count in (63, 64, 65, 200)]
    with pyparq.ParquetFile(source) as file:
        for rows in chosen:
            assert pa.table(file.take(rows)).to_pylist() == table().take(rows).to_pylist()


def test_what_is_counted_stays_the_same() -> None:
    """One dictionary and one page for each column with a dictionary, however little of it is unpacked."""
    with pyparq.ParquetFile(data("snappy", "1.0")) as file:
        scan = file.scan(["i64", "text", "late"], rows=[17])
        scan.to_table()
        explained = scan.explain()
    assert (explained.pages_decoded, explained.dictionaries_decoded) == (3, 3)


def test_read_dictionary_has_all_entries() -> None:
    with pyparq.ParquetFile(data("snappy", "1.0"), read_dictionary=["text"]) as file:
        found = pa.table(file.take([3], ["text"]))["text"].chunk(0)
    assert found.dictionary_decode().to_pylist() == table()["text"].take([3]).to_pylist()
    assert len(found.dictionary) > 1000


@pytest.mark.filterwarnings("ignore::pyparq.errors.CorruptIndexWarning")
@pytest.mark.parametrize("column", ["i64", "text", "fixed", "skewed"])
def test_a_damaged_dictionary(column: str) -> None:
    """No wrong value: few rows come out as they do where the file is read whole, if that can be read."""
    source = data("snappy", "1.0")
    meta = pq.ParquetFile(io.BytesIO(source)).metadata.row_group(0)
    chunk = next(meta.column(k) for k in range(meta.num_columns) if meta.column(k).path_in_schema == column)
    start, end = chunk.dictionary_page_offset, chunk.data_page_offset
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(60):
        damaged = bytearray(source)
        damaged[int(rng.integers(start, end))] ^= 1 << int(rng.integers(8))
        row = int(rng.integers(ROWS))
        whole = _outcome(bytes(damaged), column, slice(0, ROWS))
        few = _outcome(bytes(damaged), column, [row])
        if isinstance(whole, str):
            continue  # the row may not look at what is damaged
        compared += 1
        assert few == [whole[row]]
    assert compared > 10


def _outcome(source: bytes, column: str, rows: Any) -> Any:
    try:
        with pyparq.ParquetFile(source) as file:
            return file.scan([column], rows=rows).to_table().to_pydict()[column]
    except (CorruptFileError, LimitError) as error:
        return type(error).__name__


def test_memory_is_counted() -> None:
    source = data("snappy", "1.0")
    with pytest.raises(LimitError):
        pyparq.ParquetFile(source, limits=Limits(max_memory=64 << 10)).take([3], ["skewed"])
    found = pyparq.ParquetFile(source, limits=Limits(max_memory=32 << 20)).take([3], ["skewed"])
    assert found.to_pydict() == {"skewed": table()["skewed"].take([3]).to_pylist()}
