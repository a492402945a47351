"""Filters on durations: a file holds integers, the reader shows durations, and a filter means what is shown.

The oracle is Python's comparison of the values that the reader shows.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.polars import scan as polars_scan

UNITS = ("s", "ms", "us", "ns")
NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
VALUES = [dt.timedelta(seconds=n) for n in (-9, 0, 1, 6, 7, 6000, 7_000_000)] + [None]
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
LITERALS = [
    dt.timedelta(seconds=6), dt.timedelta(days=9999), dt.timedelta(days=-900_000), dt.timedelta(microseconds=6_000_001),
    np.timedelta64(6, "s"), np.timedelta64(6_000_000_000, "ns"), np.timedelta64(6_000_000_001, "ns"),
    np.timedelta64(1, "W"), np.timedelta64(6, "as"), pd.Timedelta(seconds=6000), pd.Timedelta(1, "ns"),
    pa.scalar(6000, pa.duration("ms")), pa.scalar(1, pa.duration("ns")),
]  # fmt: skip
IDS = [f"{type(v).__name__}-{k}" for k, v in enumerate(LITERALS)]


def exact(value: Any) -> int:
    """Attoseconds, as a whole number."""
    if isinstance(value, pa.Scalar):
        return int(value.value) * {"ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}[value.type.unit]
    if isinstance(value, pd.Timedelta):
        return int(value.value) * 10**9
    if isinstance(value, dt.timedelta):
        return (value // dt.timedelta(microseconds=1)) * 10**12
    unit = np.datetime_data(value.dtype)[0]
    steps = {"as": 1, "ns": 10**9, "s": 10**18, "W": 7 * 86_400 * 10**18}
    return int(value.astype(np.int64)) * steps[unit]


def durations(unit: str) -> pa.Array:
    return pa.array(VALUES, pa.duration("us")).cast(pa.duration("s")).cast(pa.duration(unit))


def wanted(op: str, literal: Any) -> list[dt.timedelta]:
    return [v for v in VALUES if v is not None and OPS[op](exact(v), exact(literal))]


def written(path: Path, unit: str, writer: str) -> None:
    rows = pa.table({"x": durations(unit), "k": np.arange(len(VALUES))})
    if writer == "pyarrow":
        pq.write_table(rows, path, row_group_size=3, write_page_index=True)
    else:
        pyparq.write_table(rows, path, row_group_size=3, bloom_filters=["x"], max_rows_per_page=2)


@pytest.fixture(scope="module", params=["pyarrow", "pyparq"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("durations")
    for unit in UNITS:
        written(found / f"{unit}.parquet", unit, request.param)
    return found


def same(found: Any, expected: list[dt.timedelta]) -> None:
    assert sorted(found) == sorted(expected)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("literal", LITERALS, ids=IDS)
@pytest.mark.parametrize("op", OPS)
def test_every_road_compares_what_is_shown(folder: Path, op: str, literal: Any) -> None:
    filters, expected = [("x", op, literal)], wanted(op, literal)
    for unit in UNITS:
        path = folder / f"{unit}.parquet"
        same(pyparq.read_table(path, ["x"], filters=filters).to_pydict()["x"], expected)
        with pyparq.ParquetFile(path) as file:
            assert file.scan(filters=filters).count() == len(expected)
    data = pyparq.dataset(folder)
    same(data.read(["x"], filters=filters).to_pydict()["x"], expected * 4)
    assert data.scan(filters=filters).count() == 4 * len(expected)
    streamed = [v for batch in data.scan(["x"], filters).iter_batches() for v in batch.to_pydict()["x"]]
    same(streamed, expected * 4)
    negated = [v for v in VALUES if v is not None and v not in expected]
    same(data.read(["x"], filters=~OPS[op](col("x"), literal)).to_pydict()["x"], negated * 4)


@pytest.mark.parametrize("literal", LITERALS, ids=IDS)
def test_membership_and_lookup(folder: Path, literal: Any) -> None:
    others = [dt.timedelta(seconds=-9), literal]
    expected = [v for v in VALUES if v is not None and exact(v) in {exact(o) for o in others}]
    data = pyparq.dataset(folder)
    same(data.read(["x"], filters=col("x").isin(others)).to_pydict()["x"], expected * 4)
    rest = [v for v in VALUES if v is not None and v not in expected]
    same(data.read(["x"], filters=~col("x").isin(others)).to_pydict()["x"], rest * 4)
    same(data.lookup("x", others).to_pydict()["x"], expected * 4)
    same(pyparq.dataset(folder / "ms.parquet").lookup("x", others).to_pydict()["x"], expected)


@pytest.mark.parametrize("number", [6, 6.5, np.int64(6), True, "6", [6] * 300], ids=repr)
def test_a_bare_number_is_refused_alike_for_a_file_and_a_folder(folder: Path, number: Any) -> None:
    filters = col("x").isin(number) if isinstance(number, list) else col("x") > number
    for read in (
        lambda: pyparq.read_table(folder / "us.parquet", filters=filters),
        lambda: pyparq.dataset(folder).read(filters=filters),
        lambda: pyparq.rewrite(folder / "us.parquet", folder.parent / "out.parquet", filters=filters),
    ):
        with pytest.raises(pyparq.FilterError, match=r"duration\[.*timedelta.*column x"):
            read()


def test_a_timedelta_on_a_number_is_refused_by_name(folder: Path) -> None:
    for literal in (dt.timedelta(1), np.timedelta64(1, "s")):
        with pytest.raises(pyparq.FilterError, match=r"int64 with timedelta.*give a number.*column k"):
            pyparq.read_table(folder / "s.parquet", filters=col("k") == literal)
    # Without the hint the integers are numbers, for the reader as for the filter.
    plain = pyparq.read_table(folder / "ms.parquet", ["x"], filters=col("x") == 6000, use_arrow_schema=False)
    assert plain.to_pydict()["x"] == [6000]


def test_a_schema_may_say_what_integers_are(tmp_path: Path) -> None:
    """Plain integers in the files, declared as durations."""
    for k in range(2):
        pq.write_table(pa.table({"x": [1, 5, 9]}), tmp_path / f"{k}.parquet")
    data = pyparq.dataset(tmp_path, schema=pa.schema({"x": pa.duration("ms")}))
    assert data.read(filters=col("x") > np.timedelta64(4_999_999, "ns")).to_pydict()["x"] == [
        dt.timedelta(milliseconds=n) for n in (5, 9, 5, 9)
    ]
    with pytest.raises(pyparq.FilterError, match=r"duration\[ms\].*timedelta"):
        data.read(filters=col("x") > 4)


def test_nested_durations_and_dictionaries_of_them(tmp_path: Path) -> None:
    seven = dt.timedelta(seconds=7)
    for unit in ("s", "us"):
        x = durations(unit)
        lists = pa.array([[v] for v in x.to_pylist()], pa.list_(x.type))
        codes = pa.DictionaryArray.from_arrays(pa.array(range(len(x)), pa.int32()), x)
        rows = pa.table({"st": pa.StructArray.from_arrays([x], ["x"]), "ls": lists, "di": codes})
        pyparq.write_table(rows, tmp_path / f"{unit}.parquet")
    data = pyparq.dataset(tmp_path)
    for filters, name in (
        (col("st.x") == seven, "st"),
        (col("di") == seven, "di"),
        (col("ls").contains(seven), "ls"),
    ):
        found = data.read([name], filters=filters).to_pydict()[name]
        assert found == [{"st": {"x": seven}, "di": seven, "ls": [seven]}[name]] * 2


def test_rewrite_and_polars(folder: Path, tmp_path: Path) -> None:
    limit = dt.timedelta(seconds=6)
    expected = wanted(">", limit)
    for unit in UNITS:
        pyparq.rewrite(folder / f"{unit}.parquet", tmp_path / "out.parquet", filters=col("x") > limit)
        assert pyparq.read_table(tmp_path / "out.parquet").to_pydict()["x"] == expected
        if unit != "s":  # polars has no seconds
            frame = polars_scan(folder / f"{unit}.parquet").filter(pl.col("x") > limit)
            assert frame.select("x").collect()["x"].to_list() == expected
