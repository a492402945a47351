"""A column that is all null in one file of a dataset, and has a type in another."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

DAY = dt.datetime(2024, 1, 2)
COLUMNS: dict[str, Any] = {
    "numbers": pa.array([1, 2, None]),
    "text": pa.array(["ab", "ba", None]),
    "dates": pa.array([DAY, DAY + dt.timedelta(400), None]),
    "days": pa.array([DAY.date(), None, DAY.date() + dt.timedelta(400)]),
    "lists": pa.array([[1, 2], [], None]),
    "texts": pa.array([["ab"], ["ba", None], None]),
    "structs": pa.array([{"a": 1, "b": "ab"}, {"a": None, "b": "ba"}, None]),
    "categories": pa.array(["ab", "ba", None]).dictionary_encode(),
    "flags": pa.array([True, False, None]),
}
FILTERS: dict[str, list[tuple[Any, str]]] = {
    "numbers": [(col("v") + 1 > 2, "v + 1 > 2"), (-col("v") == -1, "-v = -1"), (col("v") == 1, "v = 1"),
                (~(col("v") + 1 > 2), "not (v + 1 > 2)"), ((col("v") * 2).is_null(), "v * 2 is null")],
    "text": [(col("v").like("a%"), "v like 'a%'"), (col("v").ilike("%B"), "v ilike '%B'"),
             (col("v").lower() == "ab", "lower(v) = 'ab'"), (col("v").contains("b"), "contains(v, 'b')"),
             (~col("v").contains("ab"), "not contains(v, 'ab')"), (col("v").length() == 2, "length(v) = 2")],
    "dates": [(col("v").year() == 2024, "year(v) = 2024"), (~(col("v").year() == 2024), "year(v) != 2024")],
    "days": [(col("v").year() == 2024, "year(v) = 2024"), (col("v").is_null(), "v is null")],
    "lists": [(col("v").contains(1), "list_contains(v, 1)"), (~col("v").contains(1), "not list_contains(v, 1)"),
              (col("v").is_null(), "v is null")],
    "texts": [(col("v").contains("ab"), "list_contains(v, 'ab')")],
    "structs": [(col("v.a") + 1 == 2, "v.a + 1 = 2"), (col("v.b").like("a%"), "v.b like 'a%'"),
                (col("v.b").lower() == "ba", "lower(v.b) = 'ba'"), (col("v.a").is_null(), "v.a is null")],
    "categories": [(col("v").like("a%"), "v like 'a%'"), (col("v") == "ab", "v = 'ab'")],
    "flags": [(col("v") == True, "v = true"), (col("v").is_null(), "v is null")],  # noqa: E712
}  # fmt: skip


@pytest.mark.parametrize("first", [True, False], ids=["nulls first", "nulls last"])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_file_of_nulls_alone(tmp_path: Path, name: str, first: bool) -> None:
    """Read as pyarrow reads it, and filtered as DuckDB filters the whole table."""
    nulls = pa.table({"v": pa.nulls(2), "k": [10, 11]})
    typed = pa.table({"v": COLUMNS[name], "k": [0, 1, 2]})
    for k, table in enumerate([nulls, typed] if first else [typed, nulls]):
        pq.write_table(table, tmp_path / f"{k}.parquet")
    whole = pa.concat_tables([nulls.cast(typed.schema), typed] if first else [typed, nulls.cast(typed.schema)])
    assert pyparq.read_table(tmp_path).to_pylist() == whole.to_pylist()
    plain = whole if name != "categories" else whole.set_column(0, "v", whole["v"].cast(pa.string()))
    for expression, sql in FILTERS[name]:
        due = duckdb.sql(f"select k from plain where {sql}").fetchall()
        found = pyparq.read_table(tmp_path, columns=["k"], filters=expression)["k"].to_pylist()
        assert found == [k for (k,) in due], sql
    assert plain.num_rows == 5


@pytest.mark.parametrize("dtype", [pl.Enum(["b", "a"]), pl.Categorical], ids=["enum", "categorical"])
def test_categories_of_polars(tmp_path: Path, dtype: Any) -> None:
    typed = pl.DataFrame({"v": pl.Series(["a", "b"], dtype=dtype)})
    typed.write_parquet(tmp_path / "0.parquet")
    pl.DataFrame({"v": [None]}).write_parquet(tmp_path / "1.parquet")
    found = pyparq.read_table(tmp_path).to_polars()
    assert found.schema == typed.schema
    assert found["v"].to_list() == ["a", "b", None]


def test_categories_of_pandas(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"v": pd.Categorical(["x"], ["y", "x"], ordered=True)}), pd.DataFrame({"v": [None]})]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    found = pyparq.read_table(tmp_path).to_pandas()["v"]
    assert found.dtype == frames[0]["v"].dtype
    assert found.isna().tolist() == [False, True]


@pytest.mark.parametrize(
    "expression",
    [
        col("v") + 1 > 1, -col("v") == -1, col("v").like("a%"), col("v").ilike("a"), col("v").lower() == "a",
        col("v").contains("b"), col("v").contains(1), col("v").year() == 2024, ~(col("v") + 1 > 1), "v + 1 > 1",
        ~col("v").contains("b"),
    ],
    ids=str,
)  # fmt: skip
def test_no_file_has_a_type(tmp_path: Path, expression: Any) -> None:
    """What is computed from null is null."""
    pq.write_table(pa.table({"v": pa.nulls(2)}), tmp_path / "n.parquet")
    assert pyparq.read_table(tmp_path / "n.parquet", filters=expression).num_rows == 0
    assert pyparq.dataset(tmp_path).count(expression) == 0
    assert pyparq.dataset(tmp_path).count((col("v") + 1).is_null()) == 2
