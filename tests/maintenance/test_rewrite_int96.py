"""A rewrite keeps INT96 timestamps byte by byte, whatever they are: far years, and nanoseconds beyond a day.

pyarrow has no way to: it reads them in nanoseconds, where those beyond 1677 to 2262 wrap around.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from relabelled import INT96, relabel

import pyparq
from pyparq import col

JULIAN_1970, DAY_NS = 2_440_588, 86_400_000_000_000


def stored(days: int, nanos: int) -> bytes:
    """Days from 1970, and nanoseconds of the day."""
    return nanos.to_bytes(8, "little", signed=True) + (days + JULIAN_1970).to_bytes(4, "little", signed=True)


VALUES = [
    stored(18_262, 1), None, stored(2_932_896, 86_399_999_999_999), stored(-JULIAN_1970, 0), stored(0, 3 * DAY_NS),
    stored(0, -1), stored(2**31 - 1 - JULIAN_1970, 5), stored(-(2**31) - JULIAN_1970, 7), stored(18_262, 1),
]  # fmt: skip
RAW = pa.binary(12)


def table() -> pa.Table:
    return pa.table(
        {
            "id": list(range(len(VALUES))),
            "day": ["a", "b", "a"] * 3,
            "x": pa.array(VALUES, RAW),
            "s": pa.array([{"y": v} for v in VALUES], pa.struct([("y", RAW)])),
            "l": pa.array([[v, v] for v in VALUES], pa.list_(pa.field("element", RAW))),
            "m": pa.array([[("k", v)] for v in VALUES], pa.map_(pa.string(), RAW)),
        }
    )


def write(path: Path, **options: Any) -> Path:
    pq.write_table(table(), path, write_statistics=["id"], store_schema=False, **options)
    relabel(path, {"x": INT96, "y": INT96, "element": INT96, "value": INT96})
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    """With INT96 as its bytes, read by the generic way; ordered by ``id``."""
    found = pyparq.read_table(path, coerce_int96_timestamp_unit="bytes").to_pylist()
    return sorted(found, key=lambda row: row["id"])


def types(path: Path) -> list[str]:
    schema = pq.ParquetFile(path).schema
    return [schema.column(k).physical_type for k in range(len(schema))]


DUE = [{**row, "l": list(row["l"])} for row in table().to_pylist()]


def test_read_as_bytes(tmp_path: Path) -> None:
    """``coerce_int96_timestamp_unit="bytes"``."""
    path = write(tmp_path / "a.parquet")
    assert rows(path) == DUE
    found = pyparq.read_table(path, coerce_int96_timestamp_unit="bytes")
    assert found.to_arrow()["x"].type == RAW
    pyparq.write_table(found, tmp_path / "b.parquet")
    assert types(tmp_path / "b.parquet") == types(path)
    assert rows(tmp_path / "b.parquet") == DUE
    assert found["x"].to_pylist() == VALUES
    with pytest.raises(pyparq.FilterError, match="column x"):
        pyparq.read_table(path, filters=col("x") > dt.datetime(2020, 1, 1), coerce_int96_timestamp_unit="bytes")
    nulls = pyparq.read_table(path, filters=col("x").is_null(), coerce_int96_timestamp_unit="bytes")
    assert nulls["id"].to_pylist() == [1]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "dictionary"])
@pytest.mark.parametrize("options", [{}, {"sort_by": ["x"]}, {"sort_by": ["id"], "compression": "zstd"}], ids=str)
def test_a_file(plain: bool, options: dict[str, Any], tmp_path: Path) -> None:
    path, new = write(tmp_path / "a.parquet", use_dictionary=not plain), tmp_path / "b.parquet"
    pyparq.rewrite(path, new, **options)
    assert rows(new) == DUE
    assert types(new) == types(path)
    assert not pyparq.verify(new).findings
    assert b"ARROW:schema" not in (pq.read_metadata(new).metadata or {})
    if options.get("sort_by") == ["x"]:
        found = pyparq.read_table(new, coerce_int96_timestamp_unit="bytes")["x"].to_pylist()
        order = [(int.from_bytes(v[8:], "little", signed=True), int.from_bytes(v[:8], "little")) for v in found if v]
        assert order == sorted(order)


def test_onto_itself_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.parquet")
    write(folder / "b.parquet", row_group_size=2)
    pyparq.rewrite(folder, tmp_path / "out", partition_cols=["day"])
    found = [row for path in sorted((tmp_path / "out").rglob("*.parquet")) for row in rows(path)]
    due = [{k: v for k, v in row.items() if k != "day"} for row in DUE for _ in range(2)]
    assert sorted(found, key=lambda row: row["id"]) == due
    pyparq.rewrite(folder / "a.parquet", folder / "a.parquet")
    assert rows(folder / "a.parquet") == DUE


def test_rows_and_columns(tmp_path: Path) -> None:
    path, new = write(tmp_path / "a.parquet"), tmp_path / "b.parquet"
    pyparq.rewrite(path, new, columns=["id", "x"], filters=col("id") >= 2)
    assert rows(new) == [{"id": row["id"], "x": row["x"]} for row in DUE if row["id"] >= 2]


def test_filters_on_them_look_at_instants(tmp_path: Path) -> None:
    """As before: in nanoseconds, and refused where they do not fit."""
    path, new = write(tmp_path / "a.parquet"), tmp_path / "b.parquet"
    with pytest.raises(pyparq.DataError, match="INT96"):
        pyparq.rewrite(path, new, filters=col("x") > dt.datetime(2020, 1, 1))
    times = [dt.datetime(2024, 1, 1), dt.datetime(2020, 1, 1), None]
    pq.write_table(pa.table({"x": pa.array(times, pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True)
    pyparq.rewrite(path, new, filters=col("x") > dt.datetime(2021, 1, 1))
    assert pq.read_table(new)["x"].to_pylist() == times[:1]
    assert types(new) == ["INT96"]


def test_asked_to_be_something_else(tmp_path: Path) -> None:
    """As INT64 they have to fit nanoseconds."""
    path, new = write(tmp_path / "a.parquet"), tmp_path / "b.parquet"
    with pytest.raises(pyparq.DataError, match="INT96"):
        pyparq.rewrite(path, new, int96_timestamps=False)


def test_no_marks_of_ours_in_the_new_file(tmp_path: Path) -> None:
    path, new = tmp_path / "a.parquet", tmp_path / "b.parquet"
    array = pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us", "America/New_York"))
    pq.write_table(pa.table({"x": array}), path, use_deprecated_int96_timestamps=True)
    for options in ({}, {"filters": col("x") > dt.datetime(2021, 1, 1)}, {"sort_by": ["x"]}):
        pyparq.rewrite(path, new, **options)
        assert pq.read_schema(new) == pq.read_schema(path).remove_metadata()
        assert not pq.read_schema(new).field("x").metadata
