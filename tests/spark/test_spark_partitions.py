"""Partition columns have the types that Spark gives them, in reading, filters and writing; Spark is the oracle."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.spark.types import SparkFolders

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

VALUES = [
    ["1"], ["01", "7"], ["+5"], ["-0"], ["1", "3000000000"], ["99999999999999999999"], ["1", "99999999999999999999"],
    ["3000000000", "99999999999999999999"], ["1.5"], ["1", "1.5"], ["3000000000", "1.5"],
    ["1.5", "99999999999999999999"],
    ["NaN"], ["1e5"], ["1E400"], ["1.5d"], ["2024-01-05"], ["2024-1-5"], ["2024-02-30"], ["2024-01-05", "1"],
    ["2024-07-01 12%3A00%3A00"], ["2024-07-01 12%3A00%3A00.123456"], ["2024-07-01 12%3A00%3A00.1"],
    ["2024-07-01T12%3A00%3A00"], ["2024-03-10 02%3A30%3A00"], ["2024-11-03 01%3A30%3A00"],
    ["2024-01-05", "2024-07-01 12%3A00%3A00"], ["true"], ["__HIVE_DEFAULT_PARTITION__", "1"], ["1 "], ["1_000"],
    ["12345678901234567890123456789012345678901"], ["0001-01-01"], ["1.50", "1.5"], ["Infinity"], ["1."], ["-"],
    ["0001-01-01 00%3A00%3A00"], ["123%2F4"], ["2024-01-05", "1.5"], ["1", "1e5"],
]  # fmt: skip


def lake(folder: Path, values: list[str], name: str = "p") -> Path:
    for k, value in enumerate(values):
        (folder / f"{name}={value}").mkdir(parents=True)
        pyparq.write_table({"x": [k]}, folder / f"{name}={value}" / "f.parquet")
    return folder


@pytest.mark.slow
def test_types_of_folders(usual: Any, ps: Any, tmp_path: Path) -> None:
    for k, values in enumerate(VALUES):
        folder = lake(tmp_path / str(k), values)
        own, ours = usual.read.parquet(str(folder)), ps.read(usual, folder)
        assert ours.schema["p"].dataType == own.schema["p"].dataType, values
        if k % 4 == 0 or "-" in values[0]:  # a job each: some will do
            shown = [sorted(map(str, f.selectExpr("x", "string(p)").collect())) for f in (ours, own)]
            assert shown[0] == shown[1], values
    usual.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    for k in (0, 8, 16, 20):
        assert ps.read(usual, tmp_path / str(k)).schema["p"].dataType.simpleString() == "string", VALUES[k]


def test_filters_on_folders(usual: Any, ps: Any, tmp_path: Path) -> None:
    days = lake(tmp_path / "days", ["2024-01-05", "2024-03-10", "__HIVE_DEFAULT_PARTITION__"], "day")
    times = lake(tmp_path / "times", ["2024-07-01 12%3A00%3A00", "2024-03-10 02%3A30%3A00", "2024-11-03 01%3A30%3A00"])
    numbers = lake(tmp_path / "numbers", ["01", "2", "30"])
    for folder, conditions in (
        (days, ["day = '2024-01-05'", "day > date '2024-01-05'", "day is null", "year(day) = 2024", "day <=> null"]),
        (times, ["p = '2024-07-01 12:00:00'", "p > '2024-07-01 11:00:00'", "p = timestamp '2024-07-01 16:00:00Z'",
                 "p = '2024-03-10 03:30:00'", "date(p) = '2024-11-03'"]),
        (numbers, ["p = 1", "p > 1.5", "p in (2, 30)", "p = '2'"]),
    ):  # fmt: skip
        own = usual.read.parquet(str(folder))
        wanted = own.selectExpr(*(f"count_if({c})" for c in conditions)).first()
        assert [ps.count(usual, folder, c) for c in conditions] == list(wanted), conditions
    assert ps.count(usual, days, pyparq.col("day") == dt.date(2024, 3, 10)) == 1
    usual.conf.set("spark.pyparq.planInTasksAbove", "0")
    assert ps.count(usual, times, "p = '2024-07-01 12:00:00'") == 1


def test_what_is_written_is_read(usual: Any, ps: Any, tmp_path: Path) -> None:
    frame = usual.sql(
        "select * from values (1, timestamp '2024-07-01 12:00:00.5', date '2024-01-05', 1.5D, 'a/b é:%=', true),"
        "(2, timestamp '2024-11-03 01:30:00', date '1500-01-01', 1e10D, '', false),"
        "(3, timestamp '2024-12-01 00:00:00', null, double('NaN'), null, null) as t(x, ts, d, f, s, b)"
    ).coalesce(1)
    for column in ("ts", "d", "f", "s", "b"):
        ps.write(frame.select("x", column), tmp_path / f"ours-{column}", partition_cols=[column])
        frame.select("x", column).write.partitionBy(column).parquet(str(tmp_path / f"own-{column}"))
        folders = [sorted(p.name for p in (tmp_path / f"{who}-{column}").glob("*=*")) for who in ("ours", "own")]
        assert folders[0] == folders[1]
    columns = ["x", "string(ts)", "d"]
    ps.write(frame.select("x", "ts", "d"), tmp_path / "both", partition_cols=["ts", "d"])
    read = [f.selectExpr(*columns).collect() for f in (ps.read(usual, tmp_path / "both"), frame)]
    assert sorted(map(str, read[0])) == sorted(map(str, read[1]))
    assert dict(ps.read(usual, tmp_path / "both").dtypes)["d"] == "date"

    before = sorted(p.name for p in (tmp_path / "both").glob("*=*"))
    ps.rewrite(usual, tmp_path / "both", sort_by=["x"])
    assert sorted(p.name for p in (tmp_path / "both").glob("*=*")) == before
    ps.rewrite(usual, tmp_path / "both", tmp_path / "july", filters="ts < '2024-08-01' and d = date '2024-01-05'")
    assert [row.x for row in usual.read.parquet(str(tmp_path / "july")).collect()] == [1]


def test_without_a_zone_timestamps_are_text(tmp_path: Path) -> None:
    folder = lake(tmp_path / "t", ["2024-07-01 12%3A00%3A00", "2024-01-05"])
    assert pyparq.dataset(folder, partitioning=SparkFolders()).schema.field("p").type.kind == "string"
    found = pyparq.dataset(folder, partitioning=SparkFolders("America/New_York"))
    assert str(found.schema.field("p").type) == "timestamp[us, tz=UTC]"
    assert found.read()["p"].to_pylist() == [
        dt.datetime(2024, 1, 5, 5, tzinfo=dt.UTC), dt.datetime(2024, 7, 1, 16, tzinfo=dt.UTC)
    ]  # fmt: skip
    known = pyparq.dataset(lake(tmp_path / "d", ["2024-01-05"]), partitioning=SparkFolders("UTC", instants=("p",)))
    assert known.schema.field("p").type.kind == "timestamp"


@pytest.mark.parametrize("values", VALUES)
def test_types_are_worked_out_without_spark(values: list[str]) -> None:
    """Some of what the JVM said, so that a change shows without one."""
    said = {"01": "int32", "1.5": "double", "1e5": "decimal", "2024-01-05": "date32", "2024-1-5": "string",
            "1 ": "double", "99999999999999999999": "decimal", "true": "string"}  # fmt: skip
    if values[0] in said and len(values) == 1:
        found = SparkFolders("UTC").column("p", values)
        assert str(found.type).startswith(said[values[0]].replace("double", "float64"))
    else:
        assert len(SparkFolders("UTC").column("p", [v.replace("%3A", ":") for v in values])) == len(values)


EXTREMES = {
    "date": ["date'-0001-03-01'", "date'0000-02-29'", "date'9999-12-31'", "date'+10000-01-01'", "date'+99999-12-31'"],
    "timestamp": ["timestamp'-0001-03-01 01:02:03'", "timestamp'+10000-01-01 00:00:00.5'",
                  "timestamp'1883-11-18 12:00:00'"],
    "timestamp_ntz": ["timestamp_ntz'0000-02-29 01:02:03'", "timestamp_ntz'+10000-01-01 00:00:00.5'"],
    "double": ["double('4.9E-324')", "double('2.2250738585072014E-308')", "1e7D", "-0.0D"],
    "float": ["float('1.4E-45')", "float('2.8E-45')", "float('3.4028235E38')"],
}  # fmt: skip


@pytest.mark.parametrize("kind", EXTREMES)
def test_folders_of_extreme_values(usual: Any, ps: Any, tmp_path: Path, kind: str) -> None:
    """Both write the same folders, and read them as the same values of the same type."""
    values = ", ".join(f"({k}L, cast({value} as {kind}))" for k, value in enumerate(EXTREMES[kind]))
    frame = usual.sql(f"select * from values {values} as t(id, p)").coalesce(1)
    frame.write.partitionBy("p").parquet(str(tmp_path / "theirs"))
    ps.write(frame, tmp_path / "ours", partition_cols=["p"])
    folders = sorted(path.name for path in (tmp_path / "theirs").glob("p=*"))
    assert sorted(path.name for path in (tmp_path / "ours").glob("p=*")) == folders
    for source in [tmp_path / "theirs", tmp_path / "ours"]:
        own, ours = usual.read.parquet(str(source)), ps.read(usual, source)
        assert ours.schema["p"].dataType == own.schema["p"].dataType
        shown = [sorted(map(str, f.selectExpr("id", "string(p)").collect())) for f in (ours, own)]
        assert shown[0] == shown[1]
    if kind == "date":
        assert ps.count(usual, tmp_path / "theirs", "p > date'9999-12-31'") == 2
