"""Proof that other engines use the indexes and Bloom filters that pyparq writes.

By DataFusion's own metrics, and by mutation: falsify an index in a copy, and an engine that trusts it loses the row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from written import Written

import pyparq
from pyparq.format.thrift_codec import serialize

ROWS, GROUP, PAGE = 100_000, 25_000, 1_000
RNG = np.random.default_rng(20261120)
IDS = RNG.permutation(ROWS) * 2
TABLE = pa.table({"ts": np.arange(ROWS), "id": IDS, "key": [f"{k:012x}" for k in RNG.integers(0, 1 << 48, ROWS)]})
LAYOUTS = ("footer", "row_group")


@pytest.fixture(scope="module", params=LAYOUTS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp(request.param) / "t.parquet"
    pyparq.write_table(
        TABLE, target, row_group_size=GROUP, max_rows_per_page=PAGE, bloom_filters=["id", "key"],
        bloom_filter_layout=request.param, sorting_columns=["ts"],
    )  # fmt: skip
    return target


def metric(path: Path, where: str, name: str) -> tuple[int, int]:
    """(total, matched) of a pruning metric of DataFusion's scan."""
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    plan = "\n".join(
        text
        for b in context.sql(f"explain analyze select * from t where {where}").collect()
        for text in b[1].to_pylist()
    )
    found = re.search(rf"{name}=([\d.]+)( K)? total → ([\d.]+)( K)? matched", plan)
    assert found is not None, plan
    numbers = [round(float(found[k]) * (1000 if found[k + 1] else 1)) for k in (1, 3)]
    return numbers[0], numbers[1]


def rows_of(path: Path, where: str, engine: str) -> int:
    if engine == "duckdb":
        return len(duckdb.sql(f"select * from '{path}' where {where}").fetchall())
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    return int(context.sql(f"select * from t where {where}").to_arrow_table().num_rows)


def test_datafusion_reads_one_page_of_a_sorted_column(path: Path) -> None:
    assert metric(path, "ts = 55555", "row_groups_pruned_statistics") == (4, 1)
    assert metric(path, "ts = 55555", "page_index_rows_pruned") == (GROUP, PAGE)
    assert rows_of(path, "ts = 55555", "datafusion") == 1


def test_datafusion_drops_row_groups_by_filter(path: Path) -> None:
    present = int(IDS[70_123])
    assert metric(path, f"id = {present}", "row_groups_pruned_bloom_filter") == (4, 1)
    assert metric(path, f"id = {present + 1}", "row_groups_pruned_bloom_filter") == (4, 0)
    key = TABLE["key"][99_000].as_py()
    assert metric(path, f"key = '{key}'", "row_groups_pruned_bloom_filter") == (4, 1)
    for where in (f"id = {present}", f"key = '{key}'"):
        assert rows_of(path, where, "datafusion") == rows_of(path, where, "duckdb") == 1


def falsified(path: Path, start: int, data: bytes, target: Path) -> Path:
    whole = bytearray(path.read_bytes())
    whole[start : start + len(data)] = data
    target.write_bytes(bytes(whole))
    return target


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
@pytest.mark.parametrize("column", [1, 2])
def test_an_emptied_filter_hides_the_row(path: Path, tmp_path: Path, engine: str, column: int) -> None:
    file = Written(path.read_bytes())
    row = 30_000  # in the second row group
    value = TABLE.column(column)[row].as_py()
    where = f"{TABLE.column_names[column]} = {value!r}"
    meta = file.chunk(row // GROUP, column).meta_data
    bitset = file.bitset(row // GROUP, column)
    assert bitset is not None
    start = meta.bloom_filter_offset + meta.bloom_filter_length - len(bitset)
    copy = falsified(path, start, bytes(len(bitset)), tmp_path / "copy.parquet")
    assert rows_of(path, where, engine) == 1
    assert rows_of(copy, where, engine) == 0


def test_a_false_column_index_hides_the_row(path: Path, tmp_path: Path) -> None:
    file = Written(path.read_bytes())
    chunk: Any = file.chunk(0, 0)
    index = file.column_index(0, 0)
    # Page 7 holds ts 7000 to 7999; say that it holds what page 8 does. Same length, so that it fits its place.
    index.min_values[7], index.max_values[7] = index.min_values[8], index.max_values[8]
    data = serialize(index)
    assert len(data) == chunk.column_index_length
    copy = falsified(path, chunk.column_index_offset, data, tmp_path / "copy.parquet")
    assert rows_of(path, "ts = 7500", "datafusion") == 1
    assert rows_of(copy, "ts = 7500", "datafusion") == 0


def test_a_false_offset_index_gives_other_rows(path: Path, tmp_path: Path) -> None:
    file = Written(path.read_bytes())
    chunk: Any = file.chunk(0, 1)
    index = file.offset_index(0, 1)
    places = index.page_locations
    keep = [(p.offset, p.compressed_page_size) for p in places]
    (places[7].offset, places[7].compressed_page_size) = keep[8]
    (places[8].offset, places[8].compressed_page_size) = keep[7]
    data = serialize(index)
    assert len(data) == chunk.offset_index_length
    copy = falsified(path, chunk.offset_index_offset, data, tmp_path / "copy.parquet")

    def id_of(path: Path) -> int:
        context = datafusion.SessionContext(
            datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
        )
        context.register_parquet("t", str(path))
        return int(context.sql("select id from t where ts = 7500").to_arrow_table()["id"][0].as_py())

    assert id_of(path) == IDS[7500]
    assert id_of(copy) == IDS[8500]
