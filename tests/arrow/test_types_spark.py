"""Spark knows no ``ARROW:schema``: it reads files that have one as those that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from spark_tools import load
from type_kinds import ARROW, POLARS, arrow_array, contents

import pyparq

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

NOT_SPARKS = (
    "struct without fields", "decimal128(5, -2)", "fixed_size_binary[0]", "dense_union", "decimal256(76, 3)",
    "month_day_nano_interval", "null",
)  # fmt: skip
"""Refused by us, or by Spark whatever is stored (UNKNOWN it reads as int32, which it is)."""


def data() -> dict[str, Any]:
    """Every type by itself in one table, as far as Spark reads what it is stored as."""
    found = {}
    for name, (type_, values) in ARROW.items():
        if name not in NOT_SPARKS and not any(word in name for word in ("time32", "time64", "[ns", "float16")):
            found[f"arrow {name}"] = arrow_array(type_, dict(contents(values))["nulls"])
    for name in ("Categorical", "Enum", "Duration(us)", "Datetime(ms, Asia/Tokyo)"):
        dtype, values = POLARS[name]
        found[f"polars {name}"] = pl.Series(dict(contents(values))["nulls"][:9], dtype=dtype)
    most = max(len(column) for column in found.values())
    return {
        name.translate(str.maketrans(" ,;{}()=<>[]", "____________")): c for name, c in found.items() if len(c) == most
    }


@pytest.mark.slow
def test_spark_reads_the_same_with_and_without_a_hint(spark: Any, tmp_path: Path) -> None:
    columns = data()
    assert len(columns) > 20
    assert any(pa.types.is_duration(c.type) for c in columns.values() if isinstance(c, pa.Array))
    rows = []
    for option in ("auto", False):
        path = tmp_path / f"{option}.parquet"
        pyparq.write_table(columns, path, store_schema=option)
        rows.append([row.asDict(recursive=True) for row in load(spark, path).collect()])
    assert rows[0] == rows[1]
    name = "arrow_duration_us_"
    assert [row[name] for row in rows[0]] == columns[name].cast(pa.int64()).to_pylist()
    assert [row["polars_Enum"] for row in rows[0]] == columns["polars_Enum"].to_list()
