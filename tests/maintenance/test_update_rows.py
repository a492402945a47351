"""``pyparq.update``: what other readers see is what they would have computed, and nothing else changes."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DataError, OptionError, ParquetError, col

ROWS, GROUP = 4000, 1000


def table() -> pa.Table:
    numbers = range(ROWS)
    schema = pa.schema([
        pa.field("id", pa.int64(), nullable=False), ("small", pa.int8()), ("text", pa.string()),
        ("price", pa.decimal128(12, 2)), ("weight", pa.float32()), ("amount", pa.float64()),
        ("at", pa.timestamp("us", "Europe/Berlin")), ("day", pa.date32()), ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())), ("place", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
    ])  # fmt: skip
    return pa.table({
        "id": numbers, "small": [k % 100 for k in numbers], "text": [f"t{k}" if k % 5 else None for k in numbers],
        "price": [Decimal(k) / 100 if k % 9 else None for k in numbers], "weight": [k / 8 for k in numbers],
        "amount": [k / 3 for k in numbers], "at": [dt.datetime(2020, 3, 29) + dt.timedelta(hours=k) for k in numbers],
        "day": [dt.date(2020, 1, 1) + dt.timedelta(k) for k in numbers], "flag": [k % 3 == 0 for k in numbers],
        "tags": [[str(k)] * (k % 3) for k in numbers], "place": [{"a": k, "b": str(k)} for k in numbers],
        "kind": pa.array([f"c{k % 10}" for k in numbers]).dictionary_encode(),
    }, schema)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.parquet"
    pq.write_table(table(), found, row_group_size=GROUP, write_page_index=True)
    return found


def changed(values: dict[str, Any], low: int = 1500, high: int = 1600) -> list[dict[str, Any]]:
    """The rows as Python computes them."""
    rows = table().to_pylist()
    for row in rows[low:high]:
        row.update({name: value(row) if callable(value) else value for name, value in values.items()})
    return rows


def test_constants_of_all_types(path: Path) -> None:
    values = {
        "small": -7, "text": "new", "price": Decimal("9.5"), "weight": 0.5, "amount": 1.25,
        "at": dt.datetime(2024, 10, 27, 12, 30, tzinfo=dt.UTC), "day": dt.date(1999, 1, 1), "flag": False,
        "tags": ["x", "y"], "place": {"a": 1, "b": None}, "kind": "c99",
    }  # fmt: skip
    report = pyparq.update(path, (col("id") >= 1500) & (col("id") < 1600), values)
    assert (report.rows_updated, report.rows_deleted) == (100, 0)
    assert (report.files[0].row_groups_copied, report.files[0].row_groups_rewritten) == (3, 1)
    assert pq.read_table(path).to_pylist() == changed(values)
    assert pq.read_schema(path).equals(table().schema)
    assert pyparq.verify(path).ok


def test_nulls(path: Path) -> None:
    values = dict.fromkeys([name for name in table().column_names if name != "id"])
    pyparq.update(path, "id >= 1500 and id < 1600", values)
    assert pq.read_table(path).to_pylist() == changed(values)
    assert pyparq.verify(path).ok


def test_expressions_see_the_row_as_it_was(path: Path) -> None:
    values: dict[str, Any] = {
        "price": col("price") * 2, "amount": col("amount") * 1.5 + 1, "small": col("small") - 100,
        "id": col("id") * 10, "text": col("text").lower(), "weight": col("id") + 1,
    }  # fmt: skip
    pyparq.update(path, "id >= 1500 and id < 1600", values)
    wanted = changed({
        "price": lambda row: None if row["price"] is None else row["price"] * 2,
        "amount": lambda row: row["amount"] * 1.5 + 1, "small": lambda row: row["small"] - 100,
        "weight": lambda row: float(np.float32(row["id"] + 1)),
    })  # fmt: skip
    for row in wanted[1500:1600]:
        row["id"] *= 10
    assert pq.read_table(path).to_pylist() == wanted


def test_pandas_agrees(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(1000), "b": np.linspace(0, 1, 1000), "c": ["x", None] * 500})
    frame.to_parquet(tmp_path / "a.parquet")
    pyparq.update(tmp_path / "a.parquet", "c = 'x' and a > 500", {"b": col("b") * 2 - col("a"), "c": "y"})
    where = (frame["c"] == "x") & (frame["a"] > 500)
    frame.loc[where, "b"] = frame["b"] * 2 - frame["a"]
    frame.loc[where, "c"] = "y"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), frame)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"id": None}, DataError, "id"),
        ({"small": 300}, ParquetError, "small"),
        ({"small": 1.5}, ParquetError, "small"),
        ({"small": col("small") / 7}, ParquetError, "whole number"),
        ({"small": col("id")}, ParquetError, "small"),
        ({"price": Decimal("1.234")}, ParquetError, "price"),
        ({"price": col("price") / 3}, ParquetError, "behind the point"),
        ({"text": 5}, ParquetError, "text"),
        ({"nobody": 5}, pyparq.ColumnNotFoundError, "nobody"),
        ({"small": col("nobody")}, pyparq.ColumnNotFoundError, "nobody"),
        ({"small": col("id") > 5}, OptionError, "condition"),
        ({"place.a": 5}, OptionError, "part of another"),
        ({}, OptionError, "values must be"),
    ],
)
def test_values_that_do_not_fit_change_nothing(path: Path, values: Any, error: Any, message: str) -> None:
    stored = path.read_bytes()
    with pytest.raises(error, match=message):
        pyparq.update(path, "id >= 1500", values)
    assert path.read_bytes() == stored
    assert os.listdir(path.parent) == ["a.parquet"]


def test_a_sorted_row_group_is_sorted_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table({"id": range(3000), "x": range(3000)}, path, row_group_size=1000, sort_by=["id"])
    pyparq.update(path, "id in (1005, 1500)", {"id": col("id") - 5000})
    meta = pq.read_metadata(path)
    assert all(meta.row_group(k).sorting_columns for k in range(3))
    assert pyparq.verify(path).ok
    found = pq.read_table(path)
    assert found["id"][1000:1003].to_pylist() == [-3995, -3500, 1000]
    assert found["x"][1000:1003].to_pylist() == [1005, 1500, 1000]


def test_folders(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    pq.write_to_dataset(pa.table({"g": [0, 1, 2] * 100, "id": range(300)}), folder, partition_cols=["g"])
    report = pyparq.update(folder, keys={"id": [3, 4, 7]}, filters=None, values={"id": col("id") + 1000})
    assert (report.rows_updated, len(report.files)) == (3, 2)
    found = sorted(pq.read_table(folder)["id"].to_pylist())
    assert found == sorted([k + 1000 if k in (3, 4, 7) else k for k in range(300)])
    with pytest.raises(OptionError, match="names of folders"):
        pyparq.update(folder, "id = 5", {"g": 5})


def test_int96_and_encrypted_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table().select(["id", "at"]), path, use_deprecated_int96_timestamps=True)
    before = pq.read_table(path)["at"].to_pylist()
    when = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    pyparq.update(path, "id = 7", {"at": when.replace(tzinfo=None)})
    assert pq.read_metadata(path).schema.column(1).physical_type == "INT96"
    assert pq.read_table(path)["at"].to_pylist() == [*before[:7], pd.Timestamp(when.replace(tzinfo=None)), *before[8:]]
    pyparq.write_table(table(), path, encryption=pyparq.EncryptionProperties(b"k" * 16))
    keys = pyparq.DecryptionProperties(b"k" * 16)
    pyparq.update(path, "id = 1500", {"text": "new"}, decryption=keys)
    assert pyparq.read_table(path, decryption=keys)["text"].to_pylist()[1499:1502] == ["t1499", "new", "t1501"]
