"""``pyparq.spark.compact``: which files it makes anew, what rows they have, and what it does to skipping.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_spark_defaults import stored

import pyparq
from pyparq import col
from pyparq.errors import ChangedFileError, ColumnNotFoundError, OptionError, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ROWS = 3_000


def batch(seed: int, rows: int = ROWS) -> pa.Table:
    """Rows in no order, with nulls, of types that Spark does not have too."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 100_000, rows), rng.integers(-50_000, 50_000, rows)
    return pa.table(
        {
            "id": np.arange(seed * rows, (seed + 1) * rows),
            "x": pa.array([None if v % 50 == 0 else int(v) for v in x], pa.int32()),
            "y": pa.array(y, pa.int64()),
            "u": pa.array(rng.integers(0, 2**63, rows).astype(np.uint64) * np.uint64(2)),
            "key.text": [f"key {v:06d}" for v in x],
            "t": pa.array(
                [dt.datetime(1900, 1, 1) + dt.timedelta(minutes=int(v)) for v in x], pa.timestamp("us", "UTC")
            ),
            "d": pa.array([Decimal(int(v)).scaleb(-2) for v in y], pa.decimal128(9, 2)),
            "q": pa.array([uuid.UUID(int=int(v)).bytes for v in x], pa.uuid()),
            "nested": [{"a": [int(v)]} for v in x],
        }
    )


OPTIONS: dict[str, Any] = {
    "compression": "zstd", "bloom_filters": [("key.text",)], "int96_timestamps": ["t"], "decimal_storage": "binary",
}  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Partition 1: six small files. Partition 2: one."""
    for seed in range(6):
        pyparq.write_dataset(batch(seed), tmp_path / "lake" / "g=01", mode="append", **OPTIONS)
    pyparq.write_dataset(batch(6), tmp_path / "lake" / "g=2", **OPTIONS)
    return tmp_path / "lake"


def files(lake: Path) -> dict[str, int]:
    return {str(path.relative_to(lake)): path.stat().st_mtime_ns for path in sorted(lake.rglob("*.parquet"))}


def rows(lake: Path) -> pa.Table:
    return pyparq.read_table(lake).to_arrow().sort_by("id")


def test_small_files_are_joined(usual: Any, ps: Any, lake: Path) -> None:
    before, old, types = rows(lake), files(lake), stored(lake / "g=01")
    seen: list[tuple[int, int]] = []
    (row,) = ps.compact(usual, lake, progress=lambda done, total: seen.append((done, total))).collect()
    assert seen[0] == (0, 0)
    assert (row.partition, row.files_before, row.files_after, row.rows) == ("g=01", 6, 1, 6 * ROWS)
    assert row.bytes_after == sum(path.stat().st_size for path in (lake / "g=01").glob("*.parquet"))
    assert rows(lake).equals(before)
    new = files(lake)
    assert {name: new.get(name) for name in old if name.startswith("g=2")} == {
        name: time for name, time in old.items() if name.startswith("g=2")
    }
    assert stored(lake / "g=01") == types  # INT96, decimals in byte arrays and all others
    (path,) = (lake / "g=01").glob("*.parquet")
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert chunk.compression == "ZSTD"
    with pyparq.ParquetFile(path) as file:
        assert file.metadata.row_group(0).column(("key.text",)).bloom_filter_offset is not None
        assert file.metadata.row_group(0).column("id").bloom_filter_offset is None
    # Once more: there is nothing to do. A file that comes later is joined with those that are small.
    assert ps.compact(usual, lake).collect() == []
    assert files(lake) == new
    pyparq.write_dataset(batch(7), lake / "g=01", mode="append", **OPTIONS)
    (row,) = ps.compact(usual, lake, target_size="1GB").collect()
    assert (row.files_before, row.files_after) == (2, 1)
    assert not list(lake.rglob("_pyparq*"))


def test_rows_are_put_in_order_over_files(usual: Any, ps: Any, lake: Path) -> None:
    before = rows(lake)
    size = sum(path.stat().st_size for path in (lake / "g=01").glob("*.parquet")) // 4
    report = ps.compact(usual, lake, target_size=size, sort_by=[("x", "descending", "nulls_first"), "y"]).collect()
    assert [(row.partition, row.files_before) for row in report] == [("g=01", 6), ("g=2", 1)]
    assert report[0].files_after > 3
    assert rows(lake).equals(before)
    inside = pyparq.read_table(sorted((lake / "g=01").glob("*.parquet")), columns=["x", "y"]).to_arrow()
    order = [("x", "descending"), ("y", "ascending")]
    assert inside.equals(inside.take(pa.compute.sort_indices(inside, order, null_placement="at_start")))
    assert ps.compact(usual, lake, target_size=size, sort_by=[("x", "descending", "nulls_first"), "y"]).count() == 0
    # Larger files are wanted now: those of the last run are joined.
    joined = ps.compact(usual, lake).collect()
    assert [(row.partition, row.files_after) for row in joined] == [("g=01", 1)]
    assert ps.compact(usual, lake).count() == 0
    assert rows(lake).equals(before)
    ps.compact(usual, lake, target_size=size, sort_by=[("x", "descending", "nulls_first"), "y"])
    # A small file that comes later, in no order, is put in order. The large files stay.
    old, least = files(lake), min(path.stat().st_size for path in lake.rglob("*.parquet"))
    pyparq.write_dataset(batch(7, 10), lake / "g=01", mode="append", **OPTIONS)
    ps.compact(usual, lake, target_size=least, sort_by=[("x", "descending", "nulls_first"), "y"])
    assert {name: files(lake).get(name) for name in old} == old
    assert len(files(lake)) == len(old) + 1


def left(lake: Path, condition: Any) -> tuple[int, int]:
    """Files and bytes that a search reads."""
    plan = pyparq.dataset(lake).plan(columns=["id"], filters=condition)
    return len(plan.files), plan.num_bytes


SEARCHES = [col("x").between(70_000, 73_000), col("y").between(10_000, 12_000), col("y") > 48_000]


def test_a_z_order_lets_each_column_skip(usual: Any, ps: Any, lake: Path) -> None:
    before, wide = rows(lake), [left(lake / "g=01", search) for search in SEARCHES]
    size = sum(path.stat().st_size for path in (lake / "g=01").glob("*.parquet")) // 8
    assert ps.compact(usual, lake, target_size=size, zorder_by=["x", "y"], max_rows_per_page=200).count() == 2
    assert rows(lake).equals(before)
    made = len(list((lake / "g=01").glob("*.parquet")))
    assert made >= 7
    for search, (found, size_before) in zip(SEARCHES, wide, strict=True):
        some, size_after = left(lake / "g=01", search)
        assert found == 6
        assert some <= made * 0.7, search
        assert size_after < size_before / 2, search
    assert "page" in str(pyparq.dataset(lake / "g=01").explain(filters=SEARCHES[0]))
    # No second time, unless another order is asked for.
    assert ps.compact(usual, lake, target_size=size, zorder_by=["x", "y"]).count() == 0
    assert ps.compact(usual, lake, target_size="1GB", zorder_by=["id", "d"]).count() == 2
    assert rows(lake).equals(before)
    assert len(files(lake)) == 2


def test_what_spark_has_written(usual: Any, ps: Any, tmp_path: Path) -> None:
    frame = usual.sql(
        "select id, id % 2 g, timestamp '1500-01-01 00:00:00' + make_dt_interval(id) t, cast(id as decimal(9, 2)) d, "
        "array(named_struct('n', id)) l, map('k', string(id)) m, date '2024-03-10' day from range(0, 1000, 1, 5)"
    )
    frame.write.partitionBy("g").parquet(str(tmp_path / "t"))
    own = usual.read.parquet(str(tmp_path / "t"))
    before, schema = sorted(own.selectExpr("string(struct(*))").collect()), own.schema
    types = {name: stored(tmp_path / "t" / name) for name in ("g=0", "g=1")}
    assert ps.compact(usual, tmp_path / "t", zorder_by=["t", "d"], bloom_filters=["id"]).count() == 2
    again = usual.read.parquet(str(tmp_path / "t"))
    assert again.schema == schema
    assert sorted(again.selectExpr("string(struct(*))").collect()) == before
    assert {name: stored(tmp_path / "t" / name) for name in ("g=0", "g=1")} == types


@pytest.mark.parametrize("how", ["added", "changed"])
def test_another_program_at_work(usual: Any, ps: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    import pyparq.spark.compacting as module

    real, old = module.planned, files(lake)

    def meanwhile(*arguments: Any) -> Any:
        plan = real(*arguments)
        if how == "added":
            pyparq.write_dataset(batch(8), lake / "g=01", mode="append", **OPTIONS)
        else:
            pyparq.add_indexes(sorted((lake / "g=01").glob("*.parquet"))[0], bloom_filters=["x"])
        return plan

    monkeypatch.setattr(module, "planned", meanwhile)
    if how == "added":
        ps.compact(usual, lake)
        assert rows(lake).num_rows == 8 * ROWS
        assert len(list((lake / "g=01").glob("*.parquet"))) == 2
    else:
        with pytest.raises(ChangedFileError):
            ps.compact(usual, lake)
        assert set(files(lake)) == set(old)
        assert rows(lake).num_rows == 7 * ROWS


def test_what_is_refused_before_any_task(usual: Any, ps: Any, lake: Path) -> None:
    old = files(lake)
    refused: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"target_size": "big"}, OptionError),
        ({"target_size": 0}, OptionError),
        ({"sort_by": ["x"], "zorder_by": ["y"]}, OptionError),
        ({"zorder_by": ["x", "x"]}, OptionError),
        ({"zorder_by": ["no"]}, ColumnNotFoundError),
        ({"sort_by": ["no"]}, ColumnNotFoundError),
        ({"bloom_filters": ["no"]}, ColumnNotFoundError),
        ({"zorder_by": ["nested"]}, UnsupportedError),
        ({"compresion": "zstd"}, OptionError),
    ]
    for options, error in refused:
        with pytest.raises(error):
            ps.compact(usual, lake, **options)
    with pytest.raises(OptionError, match="one folder"):
        ps.compact(usual, [str(lake)])
    assert files(lake) == old
    assert not list(lake.glob("_pyparq*"))
