"""What a read costs, seen from outside: explain() tells the truth, and indexes cost nothing where they cannot help."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counting import CountingFile
from pruning_oracle import FILES, expression, file_bytes, random_tree

import pyparq
from pyparq import col

ROWS = 60_000


@lru_cache
def table() -> pa.Table:
    """Sorted time, shuffled id, low cardinality, floats and strings; the last column is larger than any tail read."""
    rng = np.random.default_rng(3)
    order = rng.permutation(ROWS)
    return pa.table(
        {
            "time": pa.array(np.arange(ROWS, dtype=np.int64) * 5),
            "id": pa.array(order * 7),
            "country": pa.array(np.array(["de", "fr", "us", "vn"])[rng.integers(0, 4, ROWS)]),
            "amount": pa.array(rng.random(ROWS).round(3), mask=rng.random(ROWS) < 0.1),
            "url": pa.array([f"{n:016x}" for n in rng.integers(0, 1 << 62, ROWS)]),
        }
    )


BLOOM = {"id": {"ndv": 20_000, "fpp": 0.01}, "url": {"ndv": 20_000, "fpp": 0.01}}


def by_pyarrow(indexed: bool) -> bytes:
    sink = io.BytesIO()
    extra: dict[str, Any] = {"write_page_index": True, "bloom_filter_options": BLOOM} if indexed else {}
    pq.write_table(
        table(), sink, row_group_size=20_000, data_page_size=16 << 10, write_batch_size=1000,
        use_dictionary=["country"], **extra,
    )  # fmt: skip
    return sink.getvalue()


def by_us(layout: str | None) -> bytes:
    sink = io.BytesIO()
    extra: dict[str, Any] = {"write_page_index": False}
    if layout:
        extra = {"bloom_filters": ["id", "url"], "bloom_filter_layout": layout}
    pyparq.write_table(table(), sink, row_group_size=20_000, max_rows_per_page=2000, **extra)
    return sink.getvalue()


TWINS: dict[str, tuple[Callable[[], bytes], Callable[[], bytes]]] = {
    "pyarrow": (lambda: by_pyarrow(True), lambda: by_pyarrow(False)),
    "ours, filters in the footer": (lambda: by_us("footer"), lambda: by_us(None)),
    "ours, filters by row group": (lambda: by_us("row_group"), lambda: by_us(None)),
}


@lru_cache
def twin(name: str, which: int) -> bytes:
    return TWINS[name][which]()


def cost(data: bytes, columns: Any, filters: Any, **options: Any) -> tuple[int, int, pa.Table]:
    """Requests and bytes as the file object saw them, and the rows."""
    file = CountingFile(data)
    result = pyparq.read_table(file, columns=columns, filters=filters, **options).to_arrow()
    return file.requests, file.num_bytes, result


# ---- explain() against the file object


QUESTIONS: list[Any] = [
    None,
    col("id") == 7 * 41,
    col("id") == -1,
    col("url").isin(["no", "nor this"]),
    col("time").between(30_000, 30_500),
    (col("time") > 290_000) & (col("country") == "vn"),
    (col("time") < 100) | (col("id") == 14),
    col("amount") > 0.999,
    col("amount").is_null(),
    col("country") != "de",
    col("country") == "xx",
    ~(col("time") < 299_000),
    [("time", ">", 1000), ("time", "<", 2000), ("country", "in", ["fr", "us"])],
]


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("which", [0, 1], ids=["indexed", "unindexed"])
@pytest.mark.parametrize("options", [{}, {"coalesce_gap": 0, "tail_size": 8}, {"use_threads": False}], ids=str)
def test_explain_tells_the_truth(name: str, which: int, options: dict[str, Any]) -> None:
    data = twin(name, which)
    for filters in QUESTIONS:
        for columns in (None, ["amount"], []):
            outside = CountingFile(data)
            with pyparq.ParquetFile(outside, **options) as file:
                explained = file.scan(columns, filters).explain()
            assert (explained.requests, explained.bytes_fetched) == (outside.requests, outside.num_bytes), filters
            assert explained.file_bytes == len(data)
            stages = sum(s.bytes for s in explained.stages)
            assert stages <= explained.bytes_fetched


def test_each_scan_counts_for_itself() -> None:
    """Two scans of one open file: each pays for opening, and for its own bytes alone."""
    outside = CountingFile(twin("pyarrow", 0))
    with pyparq.ParquetFile(outside) as file:
        opened, opened_bytes = outside.requests, outside.num_bytes
        first = file.scan(["amount"], col("id") == 7).explain()
        between, between_bytes = outside.requests, outside.num_bytes
        second = file.scan(["url"], col("time") < 100).explain()
    assert (first.requests, first.bytes_fetched) == (between, between_bytes)
    assert second.requests == outside.requests - between + opened
    assert second.bytes_fetched == outside.num_bytes - between_bytes + opened_bytes


@pytest.mark.parametrize("name", FILES)
def test_explain_on_random_questions(name: str) -> None:
    data, rng = file_bytes(name), random.Random(9)
    for _ in range(40):
        filters = expression(random_tree(rng))
        outside = CountingFile(data)
        with pyparq.ParquetFile(outside, tail_size=8) as file:
            scan = file.scan(["row", "s"], filters)
            explained = scan.explain()
            assert explained.rows == scan.to_table().num_rows
        outside_first = CountingFile(data)
        with pyparq.ParquetFile(outside_first, tail_size=8) as file:
            file.scan(["row", "s"], filters).to_table()
        assert (explained.requests, explained.bytes_fetched) == (outside_first.requests, outside_first.num_bytes)


def test_explain_without_running() -> None:
    outside = CountingFile(twin("ours, filters in the footer", 0))
    with pyparq.ParquetFile(outside) as file:
        explained = file.scan(filters=col("time") < 100).explain(execute=False)
    assert explained.rows is None
    assert explained.pages_decoded == 0
    assert explained.bytes_fetched == outside.num_bytes
    assert explained.candidate_rows < 3000


def test_the_text_and_the_dictionary() -> None:
    with pyparq.ParquetFile(twin("ours, filters by row group", 0)) as file:
        explained = file.scan(["url"], col("id") == -5).explain()
    text = str(explained)
    assert "0 rows in 0 row groups" in text
    assert explained.to_dict()["rows"] == 0
    for stage in explained.stages:
        assert stage.name in text


# ---- no cost when not selective


TAIL = 16 << 10
NOT_SELECTIVE: list[Any] = [
    None,
    col("time") >= 0,
    col("time") > 5 * ROWS // 100,
    col("time").is_valid(),
    col("country") != "zz",
    col("country") <= "zz",
    (col("time") >= 0) & (col("id") >= 0),
    ~col("id").isin([-1, -2]),
    (col("id") > -10) | (col("url") == "no"),
    col("url") > "0",
    col("amount") >= 0.0,
]


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("columns", [None, ["url"]], ids=str)
def test_indexes_cost_nothing_when_they_cannot_help(name: str, columns: Any) -> None:
    """The same requests and the same bytes on indexed and unindexed twins, but for the tail: where it holds data and no
    indexes, these are not read again."""
    indexed, plain = twin(name, 0), twin(name, 1)
    assert len(indexed) > len(plain) + 10_000
    for filters in NOT_SELECTIVE:
        requests, size, rows = cost(indexed, columns, filters)
        plain_requests, plain_size, same = cost(plain, columns, filters)
        assert requests == plain_requests, filters
        if name == "pyarrow":  # it leaves statistics out of page headers where it writes an index: smaller pages
            assert plain_size - 10_000 < size <= plain_size + TAIL, filters
        else:
            assert plain_size <= size <= plain_size + TAIL, filters
        assert rows.equals(same)
        assert rows.num_rows == (ROWS if filters is None else rows.num_rows)
        assert rows.num_rows > ROWS * 0.85


@pytest.mark.parametrize("name", TWINS)
def test_indexes_pay_when_they_can(name: str) -> None:
    """The same rows from both twins, and far fewer bytes from the indexed one."""
    indexed, plain = twin(name, 0), twin(name, 1)
    for filters, share in ((col("id") == -1, 0.2), (col("time") == 5000, 0.2), (col("url") == "absent", 0.2)):
        _, few, rows = cost(indexed, None, filters)
        _, many, same = cost(plain, None, filters)
        assert rows.equals(same)
        assert few < max(many * share, 40_000), filters


def test_a_bloom_miss_reads_a_block() -> None:
    """Tail, header and one 32-byte block per row group: no more than a few requests."""
    for name in TWINS:
        with pyparq.ParquetFile(CountingFile(twin(name, 0))) as file:
            explained = file.scan(filters=col("id") == 3).explain()  # between the bounds, no multiple of seven
        assert explained.rows == 0
        assert explained.bytes_fetched < 64 << 10
        bloom = [s for s in explained.stages if s.name == "bloom filter"]
        assert len(bloom) == 1
        assert bloom[0].row_groups_after == 0
        assert bloom[0].bytes <= 3 * (64 + 32 + 16_384)


@pytest.mark.parametrize("rows", [1000, 3000, 10_000, 30_000])
def test_what_the_tail_holds_is_not_read_again(rows: int) -> None:
    """Chunks that begin before the tail and end in it, small files above all: no more bytes than the file has."""
    rng = np.random.default_rng(rows)
    names = [f"x{i % 50}" for i in range(rows)]
    table = pa.table({"a": rng.integers(0, 1 << 40, rows), "b": rng.normal(size=rows), "c": names})
    theirs, ours = io.BytesIO(), io.BytesIO()
    pq.write_table(table, theirs, row_group_size=rows // 3)
    pyparq.write_table(table, ours, row_group_size=rows // 3, bloom_filters=["a", "c"])
    for data in (theirs.getvalue(), ours.getvalue()):
        source = CountingFile(data)
        with pyparq.ParquetFile(source) as file:
            scan = file.scan()
            assert scan.to_table().to_arrow().equals(table)
            told = scan.explain()
            both = file.scan(filters=(col("c") == "x7") & (col("b") > 0)).explain()
        assert told.bytes_fetched == sum(size for _, size in source.reads[: told.requests]) <= len(data)
        assert "%" in str(told).split("bytes read")[1]
        # Dictionaries that a test asked for are read again with their chunks: told as that, not as 121 % of the file.
        again = both.bytes_fetched - len(data)
        assert (f"(all, and {again:,} bytes twice)" in str(both)) == (again > 0)
