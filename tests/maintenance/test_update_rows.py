"""``pyparq.update``: what other readers see is what they would have computed, and nothing else changes."""

from __future__ import annotations

import datetime as dt
import os
import random
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
from pyparq.filters.sql_text import parse_set

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
        ({"small": col("small") / 7}, DataError, r"row 501: 1/7 is no whole number.*row group 1, column small"),
        ({"small": col("small") * 2}, DataError, r"row 564: 128 is not in the range.*row group 1, column small"),
        (
            {"id": col("small") + col("price") * 100 - col("price") * 100},
            DataError,
            r"row 503 would be null.*column id",
        ),
        ({"price": col("price") * 10**10}, DataError, r"row 500: .*more digits than the 12.*column price"),
        ({"day": "1999-02-30"}, OptionError, "day"),
        ({"at": "1999-02-03"}, ParquetError, "at"),
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


def test_text_and_numbers_as_constants(path: Path) -> None:
    values = {"day": "1999-12-31", "at": "2024-10-27 12:30:00+01:00", "weight": Decimal("0.5"), "small": Decimal(7),
              "price": Decimal("1.5")}  # fmt: skip
    pyparq.update(path, "id >= 1500 and id < 1600", values)
    moment = dt.datetime(2024, 10, 27, 11, 30, tzinfo=dt.UTC)
    assert pq.read_table(path).to_pylist() == changed(
        {"day": dt.date(1999, 12, 31), "at": moment, "weight": 0.5, "small": 7, "price": Decimal("1.50")}
    )


def hybrid(path: Path) -> None:
    """A file like those of Spark before 3.0, with days on both sides of the reform."""
    data = pa.table({
        "id": [1, 2, 3], "day": pa.array([-200_000, 0, 19_000], pa.int32()).cast(pa.date32()),
        "at": pa.array([-(10**17), 0, 10**15], pa.int64()).cast(pa.timestamp("us", "UTC")),
    })  # fmt: skip
    keys = {"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "Europe/Berlin"}
    pq.write_table(data.replace_schema_metadata(keys), path)


def test_the_calendar_of_old_spark(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    hybrid(path)
    before = pyparq.read_table(path).to_pylist()
    assert before[0]["day"] != pq.read_table(path)["day"][0].as_py()
    values = {"day": dt.date(1582, 10, 15), "at": dt.datetime(1900, 1, 3, tzinfo=dt.UTC)}
    pyparq.update(path, "id = 2", values)
    new = {"day": dt.date(2024, 1, 1), "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}
    pyparq.upsert(path, [{"id": 3, **new}, {"id": 4, **new}], "id")
    assert pyparq.read_table(path).to_pylist() == [before[0], {"id": 2, **values}, {"id": 3, **new}, {"id": 4, **new}]
    stored = path.read_bytes()
    for wrong in ({"day": dt.date(1582, 10, 14)}, {"at": dt.datetime(1890, 1, 1, tzinfo=dt.UTC)}):
        with pytest.raises(pyparq.UnsupportedError, match="calendar of old Spark"):
            pyparq.update(path, "id = 2", wrong)
        with pytest.raises(pyparq.UnsupportedError, match="calendar of old Spark"):
            pyparq.upsert(path, {key: [value] for key, value in {"id": 9, **new, **wrong}.items()}, "id")
    assert path.read_bytes() == stored


def random_value(chosen: random.Random, kind: str, depth: int = 2) -> str:
    """SQL text whose value a column of this kind holds exactly."""
    if kind == "text":
        return chosen.choice(["lower(t)", "upper(t)", "t", "u", "'it''s'", "null"])
    if depth == 0 or chosen.random() < 0.2:
        literals = {"int": str(chosen.randint(-50, 50)), "decimal": f"{chosen.randint(-999, 999) / 100:.2f}",
                    "double": f"{chosen.randint(-999, 999) / 8}"}  # fmt: skip
        columns = {"int": ["a", "b"], "decimal": ["d", "e"], "double": ["x", "a"]}
        return chosen.choice([literals[kind], *columns[kind]])
    left, right = (random_value(chosen, kind, depth - 1) for _ in range(2))
    if kind == "decimal" and chosen.random() < 0.4:
        return f"({left} * {chosen.randint(-9, 9)})"
    operator = chosen.choice(["+", "-"] if kind == "decimal" else ["+", "-", "*"])
    return f"({left} {operator} {right})"


def value_with_column(chosen: random.Random, kind: str) -> str:
    """The same, but what is computed has a column: pyparq computes nothing of constants alone."""
    while True:
        found = random_value(chosen, kind)
        if kind == "text" or "(" not in found or any(letter.isalpha() for letter in found):
            return found


@pytest.mark.slow
def test_random_updates_as_duckdb_makes_them(tmp_path: Path) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    numbers = range(200)
    chosen = random.Random(7)
    null = [chosen.random() < 0.1 for _ in numbers]
    data = pa.table({
        "id": numbers, "a": pa.array([None if null[k] else k % 17 - 8 for k in numbers], pa.int32()),
        "b": pa.array([k * 31 % 101 for k in numbers], pa.int64()),
        "d": pa.array([None if null[-k] else Decimal(k * 7 - 500) / 100 for k in numbers], pa.decimal128(12, 2)),
        "e": pa.array([Decimal(k) / 4 for k in numbers], pa.decimal128(9, 2)),
        "x": [None if k % 13 == 0 else k / 16 for k in numbers], "t": [f"Tä{k}" if k % 7 else None for k in numbers],
        "u": [f"u'{k}" for k in numbers],
    })  # fmt: skip
    kinds = {"a": "int", "b": "int", "d": "decimal", "e": "decimal", "x": "double", "t": "text", "u": "text"}
    path, refused = tmp_path / "a.parquet", 0
    with duckdb.connect() as db:
        for case in range(200):
            names = chosen.sample(sorted(kinds), chosen.randint(1, 3))
            sets = [f"{name} = {value_with_column(chosen, kinds[name])}" for name in names]
            where = chosen.choice(["a > 2", "b < 50 and x > 3", "t is null", "d + e > 1", "not a = 3", "u like '%1%'"])
            pq.write_table(data, path, row_group_size=64)
            db.register("old", data)
            db.execute("create or replace table t as select * from old")
            tree = pyparq.dataset(path).tree
            try:
                db.execute(f"update t set {', '.join(sets)} where {where}")
            except duckdb.Error:
                with pytest.raises(ParquetError):
                    pyparq.update(path, where, dict(parse_set(text, tree) for text in sets))
                refused += 1
                continue
            pyparq.update(path, where, dict(parse_set(text, tree) for text in sets))
            wanted = db.sql("select * from t order by id").to_arrow_table().to_pylist()
            assert pq.read_table(path).to_pylist() == wanted, (case, sets, where)
    assert refused < 60
