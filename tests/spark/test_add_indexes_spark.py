"""Spark's files with indexes added, and Spark reading others' files with them: it skips where it did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rewritten import key_values, page_hashes, without_indexes
from spark_tools import BLOOM, COLUMN_INDEX, ask, load, put

import pyparq

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

ROWS, GROUP = 20_000, 10_000
EVEN = np.random.default_rng(3).permutation(ROWS) * 2
ABSENT = 10_001


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file by pyarrow without page indexes and filters."""
    path = tmp_path_factory.mktemp("plain") / "plain.parquet"
    table = pa.table(
        {"k": np.arange(ROWS), "id": EVEN, "text": [f"{v:08x}" for v in EVEN], "list": [[int(v)] for v in EVEN]}
    )
    pq.write_table(table, path, row_group_size=GROUP, data_page_size=8_000, use_dictionary=False)
    return path


@pytest.mark.sweep(2)
@pytest.mark.parametrize("layout", ["footer", "row_group"])
def test_it_skips_where_it_did_not(spark: Any, plain: Path, layout: Any, tmp_path: Path) -> None:
    path = tmp_path / "indexed.parquet"
    pyparq.add_indexes(plain, path, bloom_filters=["id", "text"], bloom_filter_layout=layout)
    for where in (f"id = {ABSENT}", f"text = '{ABSENT:08x}'"):
        assert ask(spark, plain, where, "id text").scanned == ROWS
        assert ask(spark, path, where, "id text").scanned == 0
        assert ask(spark, path, where, "id text", off=(BLOOM, COLUMN_INDEX)).scanned == ROWS
    where = "k between 12500 and 12599"
    assert ask(spark, plain, where, "k id text").scanned == GROUP
    found = ask(spark, path, where, "k id text")
    assert found.scanned < GROUP / 2
    assert [row[1] for row in found.rows] == EVEN[12_500:12_600].tolist()
    assert load(spark, path).exceptAll(load(spark, plain)).count() == 0
    assert load(spark, path).count() == ROWS


def test_its_own_files(spark: Any, tmp_path: Path) -> None:
    """They have page indexes, which are kept, and get filters; its checksum goes, so that it reads them."""
    frame = spark.range(0, ROWS, 1, 1).selectExpr(
        "id * 2 as id", "array(id, null) as list", "current_timestamp() as at"
    )
    path = put(frame, tmp_path / "theirs")
    crc = path.with_name(f".{path.name}.crc")
    assert crc.exists()
    wanted = {row[0] for row in load(spark, path).select("id").collect()}
    before = path.read_bytes()
    report = pyparq.add_indexes(path, bloom_filters=["id", "list.list.element"])
    after = path.read_bytes()
    assert not crc.exists()
    columns = {c.name: c for c in report.columns}
    assert columns["id"].bloom_filter == {"added": 1}
    assert columns["id"].column_index == {"kept": 1}
    assert columns["at"].column_index == {"left": 1}  # INT96 has no order
    assert page_hashes(after) == page_hashes(before)
    assert without_indexes(after) == without_indexes(before)
    assert set(key_values(before)) < set(key_values(after))
    assert {row[0] for row in load(spark, path).select("id").collect()} == wanted
    assert ask(spark, path, f"id = {ABSENT}", "id").scanned == 0


def test_page_indexes_that_are_missing(spark: Any, tmp_path: Path) -> None:
    """Row groups are read by statistics alone until every column has its OffsetIndex."""
    pyparq.write_table(
        {"k": np.arange(ROWS), "v": np.arange(ROWS) * 2}, tmp_path / "a.parquet", max_rows_per_page=1_000,
        write_page_index=False,
    )  # fmt: skip
    assert ask(spark, tmp_path / "a.parquet", "k = 5000").scanned == ROWS
    pyparq.add_indexes(tmp_path / "a.parquet", page_index=["k"])
    assert ask(spark, tmp_path / "a.parquet", "k = 5000").scanned == 1_000
