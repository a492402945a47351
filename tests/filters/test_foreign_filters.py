"""Filters of other libraries: what pyarrow, polars and DuckDB find for an expression, pyparq finds for it too."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import pyparq
from pyparq import FilterError

TABLE = pa.table(
    {
        "n": range(6), "i": [1, 2, None, 4, 5, -1], "k": pa.array([4, None, 2, 1, 5, 0], pa.int32()),
        "f": [1.0, math.nan, 2.5, None, -0.0, math.inf], "s": ["abc", "abd", None, "Xbc", "", "a_c"],
        "b": [True, False, None, True, False, True],
        "t": pa.array([dt.datetime(2020, 1, 1), dt.datetime(2021, 6, 5, 4), None, None, dt.datetime(1969, 12, 31),
                       dt.datetime(2020, 12, 31, 23)], pa.timestamp("us")),
        "z": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 6, pa.timestamp("us", "Europe/Berlin")),
        "st": [{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}, {"x": 2}],
        "p": pa.array([1] * 6).cast(pa.decimal128(19)),
        "g": pa.array([0.5] * 6, pa.float32()),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("foreign") / "x.parquet"
    pyparq.write_table(TABLE, target, row_group_size=3)
    return target


def rows(path: Path, where: Any) -> list[int]:
    found: list[int] = pyparq.read_table(path, columns=["n"], filters=where).to_pydict()["n"]
    assert pyparq.dataset(path).read(columns=["n"], filters=where).to_pydict()["n"] == found
    return found


F = pc.field
ARROW = [
    F("i") > 2, (F("i") > 2) & (F("k") < 5), (F("i") > 2) | ~(F("k") == 1), F("f") > 1, ~(F("f") > 1), F("f") != 2.5,
    F("f") <= 2, F("i") > 2, F("s") == "abc", F("s").isin(["abc", None]), ~F("s").isin(["abc", None]),
    ~F("s").isin(["abc"]), F("i").isin([]), F("i").is_null(), F("f").is_null(nan_is_null=True), F("i").is_valid(),
    F("f").is_nan(), ~F("f").is_nan(), F("b"), ~F("b"), F("b") == True, F("i") == pa.scalar(None, pa.int64()),  # noqa: E712
    ~(F("i") == pa.scalar(None, pa.int64())), F("i") * 2 + 1 > 6, F("i") - F("k") < 0, pc.negate_checked(F("i")) > 0,
    F("i") < F("k"), F("f") == math.nan, ~(F("f") < math.nan), F("f") != math.nan,
    pc.year(F("t")) == 2020, pc.month(F("t")) > 6, pc.hour(F("t")) == 23, pc.utf8_length(F("s")) == 3,
    pc.starts_with(F("s"), "ab"), pc.ends_with(F("s"), "c"), pc.match_substring(F("s"), "b"),
    pc.match_like(F("s"), "a%c"), pc.match_like(F("s"), r"a\_c"), F("st", "x") > 1, F("t") > dt.datetime(2020, 6, 1),
    pc.scalar(True), ds.field("i") >= 4, ~(F("i") * F("k") == 4), F("t") < pa.scalar(1, pa.timestamp("ns")),
]  # fmt: skip


@pytest.mark.parametrize("where", ARROW, ids=str)
def test_pyarrow_expressions(path: Path, where: Any) -> None:
    assert rows(path, where) == TABLE.filter(where).column("n").to_pylist()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (F("i") / 2 > 1, "cuts quotients"), (pc.utf8_lower(F("s")) == "a", r"\.lower\(\)"),
        (pc.match_substring_regex(F("s"), "a"), "RE2"), (F("i").cast("int32") > 1, "cast"), (F("f") < F("i"), "NaN"),
        (F("f") + 1 > 1, "NaN"), (pc.year(F("z")) == 2020, "Europe/Berlin"),
        (pc.if_else(F("b"), F("i"), 1) > 1, "if_else"), (F("p") * 2 > 1, "rounded in another way"),
        (pc.match_like(F("s"), "A%", ignore_case=True), "ilike"), ((F("i") > 1) & (pc.sqrt(F("i")) > 1), "sqrt"),
    ],
    ids=str,
)  # fmt: skip
def test_pyarrow_expressions_that_are_refused(path: Path, where: Any, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        rows(path, where)


C = pl.col
POLARS = [
    C("i") > 2, (C("i") > 2) & (C("k") < 5), (C("i") > 2) | ~(C("k") == 1), C("f") > 1, ~(C("f") > 1), C("f") != 2.5,
    C("s").is_in(["abc", "x"]), C("s").str.starts_with("ab"), C("i").is_null(), C("i").is_between(2, 4), C("b"),
    C("st").struct.field("x") > 1, C("t") > dt.datetime(2020, 6, 1), C("f").is_nan(),
]  # fmt: skip


@pytest.mark.parametrize("where", POLARS, ids=str)
def test_polars_expressions(path: Path, where: Any) -> None:
    assert rows(path, where) == pl.DataFrame(TABLE).filter(where)["n"].to_list()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ((C("i") > 1) & (C("s").str.len_chars() == 1), "len_chars"), (C("i").cum_sum() > 3, "each row alone"),
        (C("nope") > 1, "nope"), (C("i").map_elements(bool, pl.Boolean), "translated"),
    ],
    ids=["function", "window", "no column", "python"],
)  # fmt: skip
def test_polars_expressions_that_are_refused(path: Path, where: Any, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        rows(path, where)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("s LIKE 'a%' AND i > 1", [1]), ("i < k", [0, 5]), ("year(t) = 2020", [0, 5]), ("NOT b", [1, 4]),
        ("s like '%c' or st.x = 4", [0, 3, 5]),
    ],
)  # fmt: skip
def test_sql_text(path: Path, where: str, found: list[int]) -> None:
    assert rows(path, where) == found


WAYS: dict[str, Callable[[Path, Any], int]] = {
    "scan": lambda path, where: pyparq.ParquetFile(path).scan(filters=where).count(),
    "batches": lambda path, where: sum(b.num_rows for b in pyparq.ParquetFile(path).scan(filters=where).iter_batches()),
    "plan": lambda path, where: pyparq.ParquetFile(path)
    .execute(pickle.loads(pickle.dumps(pyparq.ParquetFile(path).scan(filters=where).plan())))
    .num_rows,
    "dataset": lambda path, where: pyparq.dataset(path.parent).count(where),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", [F("i") > 2, C("i") > 2, "i > 2"], ids=["pyarrow", "polars", "sql"])
def test_wherever_filters_are_taken(path: Path, way: str, where: Any) -> None:
    assert WAYS[way](path, where) == 2


@pytest.mark.parametrize("where", [F("i") > 2, C("i") > 2, "i > 2"], ids=["pyarrow", "polars", "sql"])
def test_rewrite(path: Path, tmp_path: Path, where: Any) -> None:
    pyparq.rewrite(path, tmp_path / "y.parquet", filters=where)
    assert pyparq.read_table(tmp_path / "y.parquet").num_rows == 2
