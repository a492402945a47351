"""A rewrite keeps how each column is stored: INT96 and the storage of decimals, at any depth."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq

TIMES = [dt.datetime(2024, 7, 1, 12), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 7, 1, 11)]
DAYS = pa.timestamp("ns")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    price = pa.decimal128(9, 2)
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "ts": pa.array(TIMES, DAYS),
            "price": pa.array([Decimal("1.25"), Decimal("-7.00"), None, Decimal("0.01")], price),
            "s": pa.array([{"ts": t} for t in TIMES], pa.struct([("ts", DAYS)])),
            "l": pa.array([[t] for t in TIMES], pa.list_(DAYS)),
            "m": pa.array([[("k", t)] for t in TIMES], pa.map_(pa.string(), DAYS)),
        }
    )
    path = tmp_path / "source.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_decimal_as_integer=False)
    return path


def stored(path: Path) -> list[tuple[Any, ...]]:
    schema = pq.ParquetFile(path).schema
    return [(c.path, c.physical_type, c.length) for c in map(schema.column, range(len(schema)))]


@pytest.mark.parametrize("options", [{}, {"sort_by": ["ts"]}, {"sort_by": ["price"]}])
def test_storage_stays(source: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    assert any(physical == "INT96" for _, physical, _ in stored(source))
    pyparq.rewrite(source, tmp_path / "new.parquet", **options)
    assert stored(tmp_path / "new.parquet") == stored(source)
    old, new = pq.read_table(source), pq.read_table(tmp_path / "new.parquet")
    assert new.sort_by("id").equals(old.sort_by("id"))
    if options.get("sort_by") == ["ts"]:
        times = [t for t in new["ts"].to_pylist() if t is not None]
        assert times == sorted(times)


def test_options_change_it(source: Path, tmp_path: Path) -> None:
    pyparq.rewrite(source, tmp_path / "new.parquet", int96_timestamps=False, decimal_storage="smallest")
    types = {path: physical for path, physical, _ in stored(tmp_path / "new.parquet")}
    assert (types["ts"], types["s.ts"], types["price"]) == ("INT64", "INT64", "INT32")


def test_files_that_differ_have_the_usual_storage(source: Path, tmp_path: Path) -> None:
    pq.write_table(pq.read_table(source), tmp_path / "other.parquet", store_decimal_as_integer=True)
    pyparq.rewrite([source, tmp_path / "other.parquet"], tmp_path / "new.parquet")
    types = {path: physical for path, physical, _ in stored(tmp_path / "new.parquet")}
    assert (types["ts"], types["price"]) == ("INT64", "INT32")


def test_columns_left_out_and_folders(source: Path, tmp_path: Path) -> None:
    pyparq.rewrite(source, tmp_path / "folder", columns=["ts", "price", "id"], partition_cols=["price"])
    for path in (tmp_path / "folder").rglob("*.parquet"):
        assert stored(path) == [("ts", "INT96", 0), ("id", "INT64", 0)]
