"""Computed conditions on every kind of number and date, against DuckDB: values at the ends of their types."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

ROWS = 900


@cache
def table() -> pa.Table:
    draw = random.Random(5)

    def nulls(values: list[Any]) -> list[Any]:
        return [None if draw.random() < 0.1 else value for value in values]

    def some(*edges: Any, low: int = -50, high: int = 50) -> list[Any]:
        return nulls([draw.choice(edges) if draw.random() < 0.2 else draw.randrange(low, high) for _ in range(ROWS)])

    floats = (math.nan, -0.0, 0.0, math.inf, -math.inf, 2.0**53, -(2.0**63), 1e-300)
    return pa.table({
        "row": range(ROWS),
        "i": pa.array(some(2**63 - 1, -(2**63), 2**53 + 1), pa.int64()),
        "k": pa.array(some(2**63 - 1, -(2**63), 0), pa.int64()),
        "s": pa.array(some(127, -128), pa.int8()),
        "u": pa.array(some(2**64 - 1, 2**63, low=0), pa.uint64()),
        "p": pa.array([x and Decimal(x).scaleb(-2) for x in some(10**17, -(10**17), 0)], pa.decimal128(18, 2)),
        "q": pa.array([x and Decimal(x).scaleb(-3) for x in some(10**29, 0)], pa.decimal128(30, 3)),
        "f": pa.array(nulls([draw.choice([*floats, *draw.choices(range(-9, 9), k=12)]) / 1.0 for _ in range(ROWS)])),
        "g": pa.array(nulls([draw.choice([*floats, draw.uniform(-9, 9), 0.25]) for _ in range(ROWS)])),
        "d": pa.array(nulls([dt.date(1, 1, 1) + dt.timedelta(draw.randrange(3_600_000)) for _ in range(ROWS)])),
        "t": pa.array(nulls([draw.randrange(-(10**16), 10**16) for _ in range(ROWS)]), pa.timestamp("us")),
    })  # fmt: skip


@pytest.fixture(scope="module", params=["dictionaries", "plain"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = tmp_path_factory.mktemp("computed") / f"{request.param}.parquet"
    pq.write_table(table(), name, use_dictionary=request.param == "dictionaries", row_group_size=500)
    return name


WHOLE = ("i", "k", "s", "u")
"""DuckDB's own integers overflow: there they are compared as HUGEINT."""


def number(draw: random.Random, depth: int = 2) -> tuple[str, Any]:
    """In SQL, and in pyparq."""
    if depth == 0 or draw.random() < 0.2:
        name = draw.choice(WHOLE)
        return f"{name}::HUGEINT", col(name)
    left, mine = number(draw, depth - 1)
    op = draw.choice("+-*%") if depth == 1 else draw.choice("+-")
    if draw.random() < 0.3:
        value = draw.randrange(1, 40)
        right, other = f"{value}::HUGEINT", value
    else:
        right, other = ("s::HUGEINT", col("s")) if op == "*" else number(draw, 0)  # DuckDB has 128 bits too
    if op == "%":  # DuckDB's remainder has the sign of the dividend
        by = f"nullif({right}, 0)"
        return f"((({left}) % {by}) + {by}) % {by}", mine % other
    return f"({left}) {op} ({right})", {"+": mine + other, "-": mine - other, "*": mine * other}[op]


OPS = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


def same(path: Path, sql: str, where: Any) -> None:
    wanted = duckdb.sql(f"SELECT row FROM '{path}' WHERE {sql} ORDER BY row").fetchall()
    found = pyparq.read_table(path, ["row"], where).to_pydict()["row"]
    assert found == [row for (row,) in wanted], (sql, where)
    assert pyparq.count(path, filters=where) == len(wanted), (sql, where)


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers(path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        (sql, mine), (other_sql, other), op = number(draw), number(draw, 1), draw.choice(list(OPS))
        same(path, f"({sql}) {op} ({other_sql})", getattr(mine, OPS[op])(other))


@pytest.mark.parametrize("op", OPS)
def test_floats(path: Path, op: str) -> None:
    compare = OPS[op]
    for sql, mine in (
        (f"f {op} g", getattr(col("f"), compare)(col("g"))),
        (f"f * g {op} 0.5::DOUBLE", getattr(col("f") * col("g"), compare)(0.5)),
        (f"f + g {op} f - g", getattr(col("f") + col("g"), compare)(col("f") - col("g"))),
        (f"-f {op} s::DOUBLE", getattr(-col("f"), compare)(col("s"))),
        (f"f * 2 {op} k::DOUBLE * g", getattr(col("f") * 2, compare)(col("k") * col("g"))),
    ):
        same(path, sql, mine)


def test_decimals(path: Path) -> None:
    for sql, mine in (
        ("p::DECIMAL(38,2) + q > 0", col("p") + col("q") > 0), ("p::DECIMAL(30,3) = q", col("p") == col("q")),
        ("p - 0.25::DECIMAL(38,3) <= q", col("p") - Decimal("0.25") <= col("q")),
        ("p::DECIMAL(38,2) * 3 < i", col("p") * 3 < col("i")),
        ("p::DECIMAL(35,2) * s >= q", col("p") * col("s") >= col("q")),
    ):  # fmt: skip
        same(path, sql, mine)


@pytest.mark.parametrize("part", ["year", "quarter", "month", "day", "hour", "minute", "second"])
def test_parts_of_dates(path: Path, part: str) -> None:
    for name in ("t", "d") if part in ("year", "quarter", "month", "day") else ("t",):
        mine: Any = getattr(col(name), part)()
        for value in (1, 2, 7, 12, 1969, 1970):
            same(path, f'{part}("{name}") = {value}', mine == value)
            same(path, f'{part}("{name}") < {value}', mine < value)
        same(path, f'{part}("{name}") * 2 > s', mine * 2 > col("s"))


def test_division(path: Path) -> None:
    """Exact, and null for a divisor of zero: against Python, as DuckDB divides in doubles."""
    rows = table().to_pydict()
    pairs = [(a, b) if a is not None and b else None for a, b in zip(rows["s"], rows["k"], strict=True)]
    wanted = [n for n, pair in enumerate(pairs) if pair and Fraction(*pair) < Fraction(3, 2)]
    assert pyparq.read_table(path, ["row"], col("s") / col("k") < Decimal("1.5")).to_pydict()["row"] == wanted
    missing = [n for n, pair in enumerate(pairs) if pair is None]
    assert pyparq.read_table(path, ["row"], (col("s") / col("k")).is_null()).to_pydict()["row"] == missing
    there = pyparq.read_table(path, ["row"], (col("s") / col("k")).is_not_null()).to_pydict()["row"]
    assert there == [n for n in range(ROWS) if n not in set(missing)]
