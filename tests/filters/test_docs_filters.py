"""The table of docs/filters.md is true: what it says to give is taken, and what it calls refused is refused."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq import col
from pyparq.filters.computed import Computed
from pyparq.filters.sql_text import parse_where

WHOLE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text()
TEXT, COMPUTED = WHOLE.split("## Other forms")[0].split("## Computed values")
ROWS = {cells[0]: cells[1:] for cells in (row.split(" | ") for row in re.findall(r"^\| (.*) \|$", TEXT, re.MULTILINE))}
NAMES = {"dt": dt, "np": np, "uuid": uuid, "Decimal": Decimal}

TYPES: dict[str, list[pa.DataType]] = {
    "integers, floats, half floats": [pa.int8(), pa.uint64(), pa.float16(), pa.opaque(pa.int32(), "type", "vendor")],
    "decimals": [pa.decimal32(9, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)],
    "booleans": [pa.bool_()],
    "`bool8`": [pa.bool8()],
    "strings, JSON, enums": [pa.string(), pa.string_view(), pa.json_(), pa.dictionary(pa.int8(), pa.large_string())],
    "binary, fixed-size binary": [pa.binary(), pa.binary_view(), pa.binary(3)],
    "`uuid`": [pa.uuid()],
    "dates (date32, date64)": [pa.date32(), pa.date64()],
    "timestamps with a zone": [pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ns", "UTC")],
    "timestamps without a zone": [pa.timestamp("s"), pa.timestamp("us")],
    "times of day": [pa.time32("s"), pa.time64("ns")],
    "durations": [pa.duration("s"), pa.duration("ns")],
    "categories with an order": [pa.dictionary(pa.int8(), pa.string(), ordered=True)],
    "intervals, VARIANT, geometry": [pa.month_day_nano_interval()],
    "lists, maps, fixed-shape tensors": [pa.list_(pa.int64())],
}  # fmt: skip
SQL = re.compile(r"(DATE|TIME|TIMESTAMP|INTERVAL) '")
WORDS = {"contains()", "is_null()", "is_not_null()", "isin", "starts_with", "between", "==", "!=", "<", "<=", ">", ">="}
"""What stands in the table as code and is no value."""


def values(cell: str) -> list[str]:
    return [code for code in re.findall(r"`([^`]+)`", cell) if code not in WORDS]


def columns(tmp_path: Path, row: str) -> list[pyparq.Dataset]:
    found = []
    for k, type_ in enumerate(TYPES[row]):
        pyparq.write_table(pa.table({"x": pa.nulls(2, type_)}), tmp_path / f"{k}.parquet")
        found.append(pyparq.dataset(tmp_path / f"{k}.parquet"))
    return found


def ask(data: pyparq.Dataset, code: str) -> int:
    if SQL.match(code):
        return data.scan(filters=parse_where(f"x <= {code}", data.tree)).count()
    value: Any = eval(code, dict(NAMES))
    return data.scan(filters=col("x") <= value).count() + data.scan(filters=col("x").isin([value])).count()


def test_every_row_is_looked_at() -> None:
    assert set(ROWS) - {"The result shows"} == set(TYPES)
    assert sum(len(values(give)) for give, _ in ROWS.values()) > 30


@pytest.mark.parametrize("row", TYPES)
def test_what_is_given_and_what_is_refused(tmp_path: Path, row: str) -> None:
    give, refused = ROWS[row]
    for data in columns(tmp_path, row):
        for code in values(give):
            assert ask(data, code) == 0
        for code in values(refused):
            with pytest.raises(pyparq.FilterError, match="column x"):
                ask(data, code)


def test_rows_that_are_about_operators(tmp_path: Path) -> None:
    (ordered,) = columns(tmp_path, "categories with an order")
    for fine in (col("x") == "a", col("x") != "a", col("x").isin(["a"]), col("x").starts_with("a")):
        assert ordered.scan(filters=fine).count() == 0
    for wrong in (col("x") < "a", col("x") <= "a", col("x") > "a", col("x") >= "a", col("x").between("a", "b")):
        with pytest.raises(pyparq.FilterError, match="isin"):
            ordered.scan(filters=wrong)
    (interval,) = columns(tmp_path, "intervals, VARIANT, geometry")
    assert interval.scan(filters=col("x").is_null()).count() == 2
    (lists,) = columns(tmp_path, "lists, maps, fixed-shape tensors")
    assert lists.scan(filters=col("x").contains(1)).count() == 0
    with pytest.raises(pyparq.FilterError, match="contains"):
        lists.scan(filters=col("x") == 1)


COMPUTED_ROWS = re.findall(r"^\| `(.*?)` \| (.*) \|$", COMPUTED.replace("\\|", "|"), re.MULTILINE)


@pytest.mark.parametrize(("code", "asked"), COMPUTED_ROWS)
def test_computed_values(tmp_path: Path, code: str, asked: str) -> None:
    rows: dict[str, list[Any]] = {
        "a": [9, -3, 1, None], "b": [-1, 3, 2, 0], "f": [0.25, 0.5, None, 1.0], "s": ["abcd", "ABc", "z", None],
        "d": [dt.date(2024, 1, 31), dt.date(2023, 1, 1), None, None], "t": [dt.datetime(2024, 1, 31, 12)] + 3 * [None],
    }  # fmt: skip
    pyparq.write_table(pa.table(rows), tmp_path / "x.parquet")
    with pyparq.ParquetFile(tmp_path / "x.parquet") as file:
        scan = file.scan(filters=eval(code, {"col": col, "dt": dt}))
        shown, test = str(scan.predicate), scan.predicate
        assert 0 < scan.count() < 4
        if asked.startswith("`"):
            assert shown.startswith(asked.strip("`"))
        else:
            assert all(isinstance(part, Computed) for part in test.tests())
            (found,) = {len(part.nodes) for part in test.tests()}
            assert (found == 2) == (asked.startswith("the bounds of both") or "/" in code)


def test_the_table_of_computed_values_is_whole() -> None:
    assert len(COMPUTED_ROWS) == 18
