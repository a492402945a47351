"""Pruning is exact: the rows that the ColumnIndex leaves are those of just the pages that could hold a match, the
pages decoded are just those needed, and the rows returned are just those that match. See :mod:`pruning_oracle`."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from counting import CountingFile
from pruning_oracle import (
    FILES,
    GROUP,
    PAGE,
    ROWS,
    Node,
    all_pages,
    expression,
    file_bytes,
    needed_pages,
    random_tree,
    row_sets,
    sql,
    true_rows,
)

import pyparq
from pyparq import col
from pyparq.errors import CorruptIndexWarning
from pyparq.filters.bind import bind
from pyparq.filters.bound import Constant

INDEX_ONLY = {"use_statistics": False, "use_bloom_filters": False, "use_dictionaries": False}


@pytest.fixture(scope="module", params=FILES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def indexed(name: str) -> Iterator[pyparq.ParquetFile]:
    with pyparq.ParquetFile(file_bytes(name), **INDEX_ONLY) as file:
        yield file


def predicates(count: int, seed: int) -> Iterator[Node]:
    rng = random.Random(seed)
    for _ in range(count):
        yield random_tree(rng)


def mask_of(ranges: Any, size: int = GROUP) -> np.ndarray[Any, Any]:
    mask = np.zeros(size, bool)
    for start, end in ranges:
        mask[start:end] = True
    return mask


def test_the_pages_are_many(indexed: pyparq.ParquetFile) -> None:
    """The files are worth pruning: pages of 25 rows, an index nearly everywhere."""
    for group in range(3):
        assert len(indexed.page_locations(group, "i") or ()) == GROUP // PAGE
    assert sum(indexed.column_index(g, c) is not None for g in range(3) for c in range(12)) >= 34


@pytest.mark.sweep(3)
def test_pages_kept_are_those_that_must_be(indexed: pyparq.ParquetFile, name: str) -> None:
    kept = dropped = 0
    for node in predicates(110, seed=1):
        filters = expression(node)
        if isinstance(bind(filters, indexed.tree), Constant):
            continue
        plan = indexed.scan(["row"], filters).plan()
        groups = {g.row_group: g for g in plan.row_groups}
        for group in range(3):
            maybe, sure = row_sets(node, indexed, group)
            got = groups.get(group)
            got_maybe = np.zeros(GROUP, bool) if got is None else mask_of(got.maybe)
            assert (got_maybe == maybe).all(), (filters, group, np.flatnonzero(got_maybe != maybe))
            if got is not None:
                assert (mask_of(got.sure) == sure).all(), (filters, group)
            kept, dropped = kept + int(maybe.sum()), dropped + int((~maybe).sum())
    assert kept > 5_000
    assert dropped > 5_000


@pytest.mark.sweep(3)
def test_rows_are_those_that_match(name: str) -> None:
    """Through all indexes, by way of every kind of file."""
    with pyparq.ParquetFile(file_bytes(name)) as file:
        some = 0
        for node in predicates(160, seed=2):
            got = file.scan(["row"], expression(node)).to_table().to_numpy("row")
            want = np.flatnonzero(true_rows(node))
            assert got.tolist() == want.tolist(), expression(node)
            some += 0 < len(want) < ROWS
        assert some > 60


def test_rows_as_duckdb_finds_them() -> None:
    """The oracle's own semantics, and whole rows, against DuckDB on the same file."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".parquet") as target:
        target.write(file_bytes("pyarrow"))
        target.flush()
        connection = duckdb.connect()
        connection.execute(f"create table t as from read_parquet('{target.name}')")
        with pyparq.ParquetFile(target.name) as file:
            for node in predicates(100, seed=3):
                ours = file.read(["row"], expression(node)).to_numpy("row").tolist()
                theirs = connection.execute(f"select row from t where {sql(node)} order by row").fetchall()
                assert ours == [r for (r,) in theirs], sql(node)


def test_pages_decoded_are_those_needed(name: str) -> None:
    """Filter columns: the pages in question. Other columns: the pages with rows that survive. Seen from outside, too:
    without merging, every page decoded was read, and no other."""
    data = file_bytes(name)
    options = {**INDEX_ONLY, "coalesce_gap": 0, "tail_size": 8, "use_threads": False}
    outputs = ["row", "s", "f"]
    with pyparq.ParquetFile(data, **INDEX_ONLY) as oracle:
        for node in predicates(30, seed=4):
            filters = expression(node)
            if isinstance(bind(filters, oracle.tree), Constant):
                continue
            outside = CountingFile(data)
            with pyparq.ParquetFile(outside, **options) as file:
                explained = file.scan(outputs, filters).explain()
            needed = needed_pages(node, oracle, outputs)
            assert explained.pages_decoded == len(needed), filters
            read = {p for p in all_pages(oracle) if outside.covers(p[2], p[3])}
            assert read == needed, filters


def test_two_tests_on_one_dictionary_column() -> None:
    """Each test asks for the dictionary; the columns behind must not get each other's."""
    count = 3000
    words = pa.table({c: [f"{c}{k % 50:03d}" * 5 for k in range(count)] for c in "ab"})
    sink = io.BytesIO()
    pq.write_table(words, sink, row_group_size=1000)
    filters = ((col("a") == "a007" * 5) | (col("a") == "a009" * 5)) & (col("b") == "b007" * 5)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        scan = file.scan(filters=filters)
        assert scan.to_table().num_rows == 60
        assert scan.explain().dictionaries_decoded == 6


@pytest.mark.parametrize(
    ("filters", "asked"),
    [
        ([("n", ">", 40)], 0), ([("n", "<=", 98)], 0), ([("n", "==", 51)], 3), ([("n", "in", [1, 53])], 3),
        ([("t", ">=", "t30")], 3), ([("n", ">=", 4), ("n", "<=", 6)], 0), ([("x", ">", 45.0)], 0),
        ([("x", ">", 97.0), ("n", "==", 5)], 3), ([("nan", "<", 1.0)], 0),
        ([("d", "<", Decimal(7))], 0), ([("u", "!=", 4)], 0),
    ],
)  # fmt: skip
def test_dictionaries_are_asked_where_bounds_do_not_pass(filters: Any, asked: int) -> None:
    """Where a bound passes, some value does: the dictionary cannot rule a row group out."""
    even = [2 * (k % 50) for k in range(3000)]
    table = pa.table(
        {
            "n": even,
            "t": [f"t{k:02d}" for k in even], "x": [float(k) for k in even], "u": pa.array(even, pa.uint32()),
            "nan": [math.nan if k == 4 else float(k) for k in even],
            "d": pa.array([Decimal(k) for k in even], pa.decimal128(20, 2)),
        }
    )  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1000)
    with pyparq.ParquetFile(sink.getvalue(), use_page_index=False) as file:
        scan = file.scan(filters=filters)
        found = pa.table(scan.to_table())
        assert sum(stage.asked for stage in scan.explain().stages if stage.name == "dictionary") == asked
    expected = pq.read_table(sink, filters=filters)
    assert found.drop("nan").equals(expected.drop("nan"))


@pytest.mark.filterwarnings("error")
def test_no_index_is_damaged(indexed: pyparq.ParquetFile) -> None:
    """Neither pyarrow's indexes nor ours are taken for damaged."""
    for group in range(3):
        for leaf in indexed.tree.leaves:
            indexed.column_index(group, leaf.name)
    assert issubclass(CorruptIndexWarning, UserWarning)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_ranges_of_floats_prune_on_both_sides(kind: str, tmp_path: Path) -> None:
    """No bound tells whether NaN is there, and NaN is above every number. But it is below none, and equal to none."""
    path, values = tmp_path / "f.parquet", np.arange(100).astype(kind) / 4
    values[[5, 77]] = np.nan
    pq.write_table(pa.table({"x": values, "row": np.arange(100)}), path, row_group_size=10)
    x = pyparq.col("x")
    for question, groups in (
        ((x > 5) & (x < 6), 1), ((x >= 5.0) & (x <= 5.1), 1), (x.between(12, 12.1), 1), ("x BETWEEN 3 AND 3.5", 1),
        (pc.field("x") > 20, 2), ((x > 22) & ~x.is_nan(), 2), ((x > 3) & ((x < 4) | (x == 50)), 2),
        ((x != 3) & (x <= 3), 2), (((x > 5) & (x < 6)) | ((x > 20) & (x <= 20.25)), 2), (x > 22, 10),
        ((x > 5) & (pyparq.col("row") < 50), 5), ((x > 2) & x.isin([1.0, 2.5, math.nan]), 10),
    ):  # fmt: skip
        file = pyparq.ParquetFile(path, use_dictionaries=False)
        right = pyparq.ParquetFile(path, use_statistics=False, use_dictionaries=False).read(filters=question)
        assert file.read(filters=question)["row"].to_pylist() == right["row"].to_pylist(), str(question)
        assert len(file.plan(filters=question).row_groups) == groups, str(question)


def test_bounds_of_floats_that_duckdb_writes(tmp_path: Path) -> None:
    """DuckDB writes no bounds where NaN is, so its bounds prune above as well. parquet-mr: tests/spark."""
    draw, path = random.Random(11), tmp_path / "f.parquet"
    pruned = 0
    for _ in range(12):
        values = sorted(draw.uniform(-9, 9) for _ in range(10_000))
        for k in draw.sample(range(len(values)), draw.choice([0, 1, 3])):
            values[k] = math.nan
        duckdb.from_arrow(
            pa.table({"x": values, "y": pa.array(values, pa.float32()), "row": range(len(values))})
        ).query("t", f"copy t to '{path}' (format parquet, row_group_size 2048)")
        for name in ("x", "y"):
            question = pyparq.col(name) > draw.uniform(-8, 9)
            right = pyparq.ParquetFile(path, use_statistics=False).read(filters=question)["row"].to_pylist()
            file = pyparq.ParquetFile(path)
            assert file.read(filters=question)["row"].to_pylist() == right
            assert file.count(filters=question) == len(right)
            pruned += file.num_row_groups - len(file.plan(filters=question).row_groups)
    assert pruned > 20
