"""Partition values of files that are named one by one, or by a glob that fixes a folder."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import OptionError, col

DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`year` and `day`, with a folder between that is no partition."""
    for year in (2023, 2024):
        for k, day in enumerate(DAYS):
            path = tmp_path / "ds" / f"year={year}" / "data" / f"day={day}" / "f.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(pa.table({"x": [10 * year + k, 0]}), path)
    return tmp_path / "ds"


def rows(table: Any) -> list[dict[str, Any]]:
    return [row | {"day": str(row["day"])} for row in table.to_pylist()]


def test_a_list_of_files(folder: Path) -> None:
    """pyarrow, polars and DuckDB take the folders of the path."""
    files = [str(path) for path in sorted(folder.rglob("*.parquet"))][1:]
    due = rows(pq.read_table(files))
    assert due == rows(pl.scan_parquet(files, hive_partitioning=True).collect().to_arrow())
    assert due == rows(duckdb.sql(f"from read_parquet({files}, hive_partitioning=true)").to_arrow_table())
    ds = pyparq.dataset(files)
    assert rows(ds.read()) == due
    assert ds.partitions.names == ["year", "day"]
    assert ds.count(col("year") == 2024) == 4
    assert ds.count((col("year") == 2024) & (col("day") == DAYS[0])) == 2
    assert ds.count(col("year").is_null()) == 0
    declared = pyparq.dataset(files, partitioning={"year": "int16", "day": "date32"})
    assert [type(value) for value in declared.read(["day"])["day"].to_pylist()] == [dt.date] * 6
    assert rows(declared.read()) == due
    assert pyparq.dataset(files, partitioning=None).schema.names == ["x"]
    assert rows(pyparq.read_table(files)) == due
    assert [part for item in ds.plan().split(2) for part in rows(item.scan().to_table())] == due
    assert pyparq.dataset(files[:1]).schema.names == ["x", "year", "day"]
    assert pyparq.dataset(files[0]).schema.names == ["x"]  # one file is itself, as in pyarrow


@pytest.mark.parametrize("pattern", ["year=2024/data/*/*.parquet", "year=2024/**", "year=*/data/day=2024-01-02/*"])
def test_a_glob_that_fixes_folders(folder: Path, pattern: str) -> None:
    due = rows(duckdb.sql(f"from read_parquet('{folder}/{pattern}', hive_partitioning=true)").to_arrow_table()) \
        if not pattern.endswith("**") else rows(pyparq.dataset(folder).read(filters=col("year") == 2024))  # fmt: skip
    assert rows(pyparq.read_table(f"{folder}/{pattern}")) == due
    assert {row["year"] for row in due} <= {2023, 2024}


def test_stores(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.put(str(folder), "/named/ds", recursive=True)
    try:
        files = [f"memory://named/ds/{path.relative_to(folder)}" for path in sorted(folder.rglob("*.parquet"))]
        due = rows(pyparq.read_table(folder))
        assert rows(pyparq.read_table(files)) == due
        assert rows(pyparq.read_table("memory://named/ds/year=2024/**")) == due[4:]
    finally:
        fs.rm("/named", recursive=True)


def test_a_rewrite_of_a_list_keeps_the_values(folder: Path, tmp_path: Path) -> None:
    files = sorted(folder.rglob("*.parquet"))
    pyparq.rewrite(files, tmp_path / "one.parquet")
    assert rows(pq.read_table(tmp_path / "one.parquet")) == rows(pyparq.read_table(folder))
    pyparq.rewrite(files, tmp_path / "again")
    assert (tmp_path / "again" / "year=2023" / f"day={DAYS[0]}").is_dir()
    pyparq.rewrite([folder / "year=2023", folder / "year=2024"], tmp_path / "folders.parquet")
    assert rows(pq.read_table(tmp_path / "folders.parquet")) == rows(pyparq.read_table(folder))


def test_files_of_other_folders_are_told_apart(folder: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "plain.parquet")
    files = [tmp_path / "plain.parquet", next(iter(sorted(folder.rglob("*.parquet"))))]
    with pytest.raises(OptionError, match=r"different partition columns.*partitioning=None"):
        pyparq.dataset(files)
    assert pyparq.dataset(files, partitioning=None).count() == 3


def test_the_inner_folder_of_one_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "v=1" / "ds" / "v=2" / "f.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), path)
    assert pyparq.read_table([path]).to_pylist() == [{"x": 1, "v": 2}]
    assert pyparq.read_table(str(tmp_path / "v=1" / "ds" / "*" / "*.parquet")).to_pylist() == [{"x": 1, "v": 2}]
