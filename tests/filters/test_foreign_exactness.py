"""Filters of other libraries keep every part and every digit, or are refused by name."""

from __future__ import annotations

import datetime as dt
import io
import math
import operator
import random
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyparq
import pyparq.polars
from pyparq import FilterError, UnsupportedError, col

DAYS = [dt.date(2024, 1, 1), dt.date(2024, 6, 1), dt.date(2025, 1, 1)]
FRAME = pl.DataFrame(
    {
        "n": [1, 2, 3], "s": ["1", "7", "9"], "d": DAYS, "i": [1, 300, -5], "f": [0.1, 0.2, 0.3],
        "g": pl.Series([0.1, 0.2, 0.25], dtype=pl.Float32), "u": pl.Series([0, 5, 255], dtype=pl.UInt8),
        "e": pl.Series(["a", "b", "ab"], dtype=pl.Enum(["a", "b", "ab"])),
        "x": [dt.timedelta(hours=k) for k in range(3)], "nul": [None] * 3,
    }
)  # fmt: skip
C, F = pl.col, pc.field


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exact") / "x.parquet"
    pyparq.write_table(FRAME, target)
    return target


def rows(path: Path, where: Any) -> list[int]:
    found: list[int] = pyparq.read_table(path, columns=["n"], filters=where)["n"].to_pylist()
    return found


MAY_FAIL = [
    C("s").cast(pl.Int64) > 5, C("s").str.strptime(pl.Date, "%d").is_null(), C("e").cast(pl.String) == "ab",
    C("d") >= dt.datetime(2024, 3, 1), C("d").is_between(dt.datetime(2024, 3, 1), dt.datetime(2024, 12, 31)),
    C("i").cast(pl.Int8) == 1, C("i").cast(pl.Int8, strict=False) == 1, C("s").str.to_integer() > 5,
]  # fmt: skip


@pytest.mark.parametrize("part", MAY_FAIL, ids=str)
def test_a_part_that_may_fail_is_not_lost(path: Path, tmp_path: Path, part: pl.Expr) -> None:
    where = (C("n") > 0) & part
    if "String" not in str(part) and "d" not in part.meta.root_names():
        for use in (rows, lambda path, where: pyparq.dataset(path).count(where)):
            with pytest.raises(FilterError, match="cannot be translated"):
                use(path, where)
        with pytest.raises(FilterError, match="cannot be translated"):
            pyparq.rewrite(path, tmp_path / "y.parquet", filters=where)
        return
    found = rows(path, where)
    right = FRAME.filter(where)["n"].to_list()
    assert found == right
    assert pyparq.dataset(path).count(where) == len(found)
    pyparq.rewrite(path, tmp_path / "y.parquet", filters=where)
    assert rows(tmp_path / "y.parquet", None) == right


@pytest.mark.parametrize(
    "where",
    [
        C("d") >= dt.datetime(2024, 3, 1), C("e").cast(pl.String) == "ab", C("x") > dt.timedelta(minutes=90),
        C("x").is_in([dt.timedelta(hours=1)]), C("u") > -1, C("u") <= 255.5, ~(C("u") > 300), C("i").is_in([]),
        ~C("i").is_in([]), C("f").is_in([math.nan, 0.1]), C("f") < math.inf, C("f") != math.nan, pl.lit(True),
        ~C("i").is_in([1, None]), C("i").is_in([1, None], nulls_equal=True), C("i").eq_missing(300), C("g") > 0.1,
        C("i").ne_missing(300), C("u").cast(pl.Int64) == 5, pl.any_horizontal(pl.col("n", "i") > 2),
        (C("n") > 1) | pl.lit(None),
    ],
    ids=str,
)  # fmt: skip
def test_what_polars_finds(path: Path, where: pl.Expr) -> None:
    assert rows(path, where) == FRAME.filter(where)["n"].to_list()


@pytest.mark.parametrize(
    "make",
    [lambda x: C("f") == x, lambda x: C("f").is_in([x]), lambda x: C("f").is_between(x, x)],
    ids=["equal", "in", "between"],
)
def test_every_float_finds_itself(make: Callable[[float], pl.Expr]) -> None:
    rng = random.Random(5)
    values = [rng.gauss(0, 1000) for _ in range(60)]
    sink = io.BytesIO()
    pyparq.write_table({"f": values}, sink)
    for value in values:
        found = pyparq.read_table(sink.getvalue(), filters=make(value))["f"].to_pylist()
        assert found == [value] == pyparq.polars.scan(sink.getvalue()).filter(make(value)).collect()["f"].to_list()


ODD = {
    "interval": pa.array([None, None], pa.month_day_nano_interval()),
    "decimal": pa.array([Decimal(1), None], pa.decimal256(50, 2)),
    "in a struct": pa.array([{"a": Decimal(1)}, None], pa.struct([("a", pa.decimal256(50, 2))])),
    "list view": pa.array([[1], None], pa.list_view(pa.int64())),
}


@pytest.mark.parametrize("name", ODD)
def test_other_columns_are_of_no_matter_to_a_filter(name: str) -> None:
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"n": [1, 2], "odd": ODD[name]}), sink)
    assert pyparq.read_table(sink.getvalue(), columns=["n"], filters=C("n") == 2)["n"].to_pylist() == [2]
    some = pl.any_horizontal(pl.col("^n.*$") > 1)
    assert pyparq.read_table(sink.getvalue(), columns=["n"], filters=some)["n"].to_pylist() == [2]
    if name in ("decimal", "in a struct"):
        with pytest.raises(FilterError, match="polars has no type for"):
            pyparq.read_table(sink.getvalue(), filters=C("odd").is_null())
        with pytest.raises(UnsupportedError, match="polars has no type for"):
            pyparq.read_table(sink.getvalue()).to_polars()
        with pytest.raises(UnsupportedError, match="polars has no type for"):
            pyparq.polars.scan(sink.getvalue())


def test_two_columns_of_one_name() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "a", "n"]), sink)
    table = pyparq.read_table(sink.getvalue(), filters=C("n") == 6)
    assert table.num_rows == 1
    with pytest.raises(UnsupportedError, match="two columns of one name"):
        table.to_polars()
    with pytest.raises(UnsupportedError, match="two columns of one name"):
        pyparq.polars.scan(sink.getvalue())
    with pytest.raises(pyparq.ColumnNotFoundError):
        pyparq.read_table(sink.getvalue(), filters=C("a") == 1)


COLUMNS: dict[str, Callable[[str], Any]] = {"col": col, "pyarrow": F, "polars": C}


@pytest.mark.parametrize("name", COLUMNS)
def test_chains_may_be_long_and_nestings_are_refused(path: Path, name: str) -> None:
    n, i = COLUMNS[name]("n"), COLUMNS[name]("i")
    terms = [(n if k % 2 else i) == k for k in range(400)]
    assert rows(path, reduce(operator.or_, terms)) == [1, 2, 3]
    assert rows(path, reduce(lambda found, term: term | found, terms)) == [1, 2, 3]
    with pytest.raises(FilterError):
        rows(path, reduce(lambda found, k: (found | (n == k)) & (i != -k), range(400), n == 1))


@pytest.mark.parametrize("name", ["col", "pyarrow"])
def test_computations_that_nest_too_deeply(path: Path, name: str) -> None:
    assert rows(path, reduce(operator.add, [1] * 200, COLUMNS[name]("n")) > 201) == [2, 3]
    with pytest.raises(FilterError, match="more than 200 computations"):
        rows(path, reduce(operator.add, [1] * 1000, COLUMNS[name]("n")) > 201)


ARROW = pa.table({"n": [1, 2, 3, 4], "i": [1, -5, None, 0], "f": [0.1, math.nan, None, math.inf],
                  "g": pa.array([0.1, 1.5, None, math.inf], pa.float32()), "d": [*DAYS, None]})  # fmt: skip


@pytest.mark.parametrize(
    "where",
    [
        *(op(F(name), math.nan) for name in ("i", "f") for op in (operator.lt, operator.ge, operator.eq, operator.ne)),
        F("i") * 2 < math.nan, F("i") * 2 != math.nan, F("f") == Decimal("0.1"), F("g") == Decimal("0.1"),
        F("g").isin([0.1]), F("g").isin([1e300]), F("f").isin([Decimal("0.1")]), F("i").isin([-5, 0.0]),
    ],
    ids=str,
)  # fmt: skip
def test_what_pyarrow_finds(where: pc.Expression) -> None:
    sink = io.BytesIO()
    pyparq.write_table(ARROW, sink)
    found = pyparq.read_table(sink.getvalue(), columns=["n"], filters=where)["n"].to_pylist()
    assert found == ARROW.filter(where)["n"].to_pylist()


@pytest.mark.parametrize(
    ("where", "says"),
    [(F("d").isin([dt.datetime(2024, 1, 1, 5)]), "cuts points in time"), (F("i") + Decimal("0.1") == 1.1, "decimals")],
    ids=["dates", "decimals"],
)  # fmt: skip
def test_what_pyarrow_rounds_is_refused(path: Path, where: pc.Expression, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        rows(path, where)


@pytest.mark.parametrize(
    "where",
    [
        "f = 0.1", "f * 1 = 0.1", "f + 0 = 0.1", "f * 2 = 0.2", "-f = -0.1", "f + f = 0.2", "g = 0.1", "g * 1 = 0.1",
        "f * 1 in (0.1, 0.3)", "f * 1 between 0.1 and 0.2", "f + 0 >= 0.3", "n * 0.1 = 0.3", "n / 10 = 0.1",
        "0.1 = f * 1", "f * 1 = 1e-1", "g <> 0.1", "f * 1 < 1e300", "not (f * 1 in (0.2))",
    ],
)  # fmt: skip
def test_numbers_of_sql_text(path: Path, where: str) -> None:
    right = duckdb.sql(f"select n from '{path}' where {where} order by n").fetchall()
    assert rows(path, where) == [n for (n,) in right]


def test_numbers_of_sql_text_in_variants_and_lists() -> None:
    sink = io.BytesIO()
    schema = pyparq.schema({"n": "int64", "v": "variant?", "l": "list<double?>?"})
    pyparq.write_table([{"n": k, "v": {"x": k / 10}, "l": [k / 10]} for k in range(4)], sink, schema=schema)
    for where in ("v.x = 0.3", "v.x * 1 = 0.3", "v.x in (0.3, 0.5)", "v.x between 0.3 and 0.3", "0.3 = any(l)"):
        assert pyparq.read_table(sink.getvalue(), filters=where)["n"].to_pylist() == [3], where


def test_a_negative_number_of_sql_text_keeps_its_digits() -> None:
    digits = "1.2345678901234567890123456789012345"
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"p": pa.array([Decimal("-" + digits)], pa.decimal128(38, 34))}), sink)
    assert pyparq.read_table(sink.getvalue(), filters=f"p = -{digits}").num_rows == 1


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (col("f") * 1 > 10**400, []), (col("f") * 1 < 10**400, [1, 2, 3]), (col("i") * 10**400 > 5, [1, 2]),
        (col("i") * 10**400 + col("f") > 5, [1, 2]), (col("i") * 1 > Decimal("1e-99999999"), [1, 2]),
        (col("nul") + 1 > 2, []), (col("nul").lower() == "a", []),
        ((col("nul") + 1).is_null(), [1, 2, 3]), (~(col("nul") * col("f") > 2), []),
        (col("f") * 1 == Decimal("1e400"), []), ((col("f") * 1e308) * 1e308 > 0, [1, 2, 3]),
    ],
    ids=lambda case: str(case)[:60],
)  # fmt: skip
def test_numbers_beyond_doubles(path: Path, where: Any, found: list[int]) -> None:
    assert rows(path, where) == found


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (col("f") + 10**400 > 5, "beyond doubles"), (col("f") * 10**400 > 5, "beyond doubles"),
        ("f + 1e400 > 5", "beyond doubles"), (col("i") * Decimal("1e-99999999") > 0, "no finite number"),
        (col("i") * 1 > Decimal("sNaN"), "a number is needed"),
    ],
    ids=lambda case: str(case)[:60],
)  # fmt: skip
def test_numbers_that_are_refused(path: Path, where: Any, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        rows(path, where)
