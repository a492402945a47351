"""Conditions in SQL text, asked of DuckDB too: remainders, times and durations, casts, numbers in quotes, nulls."""

from __future__ import annotations

import datetime as dt
import math
import random
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyparq
from pyparq import FilterError, col

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

ROWS = 600


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(3)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    day = dt.date(2024, 1, 1)
    rows = [
        {
            "n": k,
            "i": some(rng.randrange(-40, 40)),
            "big": some(rng.choice([-(2**63), 2**63 - 1, rng.randrange(-9, 9)])),
            "small": some(rng.randrange(-20, 20)),
            "f": some(rng.choice([0.0, -1.5, 2.25, rng.uniform(-5, 5)])),
            "dec": some(Decimal(rng.randrange(-5000, 5000)) / 100),
            "b": some(rng.random() < 0.5),
            "s": some(rng.choice(["7", "x", "abc", ""])),
            "d": some(day + dt.timedelta(days=rng.randrange(-400, 400))),
            "e": some(day + dt.timedelta(days=rng.randrange(-400, 400))),
            "ts": some(dt.datetime(2024, 1, 1) + dt.timedelta(seconds=rng.randrange(-(10**7), 10**7))),
        }
        for k in range(ROWS)
    ]
    schema = pyparq.schema({
        "n": "int64", "i": "int64?", "big": "int64?", "small": "int16?", "f": "double?", "dec": "decimal(9, 2)?",
        "b": "bool?", "s": "string?", "d": "date?", "e": "date?", "ts": "timestamp[us]?",
    })  # fmt: skip
    path = tmp_path_factory.mktemp("sql") / "rows.parquet"
    pyparq.write_table(rows, path, schema=schema, row_group_size=90, max_rows_per_page=20, bloom_filters=["i"])
    return path


def ours(path: Path, condition: Any) -> list[int]:
    return pyparq.read_table(path, columns=["n"], filters=condition).to_pydict()["n"]


def theirs(path: Path, condition: str) -> list[int]:
    with duckdb.connect() as connection:
        with suppress(duckdb.Error):  # of DuckDB before 1.6, where a division by zero is always null
            connection.execute("set error_on_division_by_zero = false")
        found = connection.execute(f"select n from '{path}' where {condition} order by n").fetchall()
    return [n for (n,) in found]


def _condition(rng: random.Random) -> str:
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    number, divisor = rng.randrange(-8, 9), rng.choice([-7, -3, -2, -1, 0, 1, 2, 3, 7])
    day = dt.date(2024, 1, 1) + dt.timedelta(days=rng.randrange(-400, 400))
    moment = dt.datetime(2024, 1, 1) + dt.timedelta(seconds=rng.randrange(-(10**7), 10**7))
    span = rng.choice(["INTERVAL 1 DAY", "INTERVAL '36 hours'", "INTERVAL 90 MINUTE", "INTERVAL '10 seconds'"])
    whole, plus = rng.choice(["i", "small", "big"]), rng.choice("+-")
    return rng.choice([
        f"{whole} % {divisor} {sign} {number}",
        f"i % small {sign} {number}",
        f"(i + {number}) % {divisor} {sign} 1",
        f"dec % {divisor} {sign} {number / 4}",
        f"f % {divisor or 4} {sign} {number / 4}",  # of floats DuckDB says NaN for a division by zero, and not null
        f"i IS NOT DISTINCT FROM {number}",
        f"i IS DISTINCT FROM {rng.choice(['NULL', number])}",
        "i IS NOT DISTINCT FROM small",
        f"NOT (d IS DISTINCT FROM DATE '{day}')",
        f"d {plus} {span} {sign} TIMESTAMP '{moment}'",
        f"ts {plus} {span} {sign} TIMESTAMP '{moment}'",
        f"d {plus} {number} {sign} DATE '{day}'",
        f"d {sign} e {plus} {number}",
        f"ts {sign} d {plus} {span}",
        f"ts::DATE {sign} DATE '{day}'",
        f"CAST(d AS TIMESTAMP) {sign} TIMESTAMP '{moment}'",
        f"{rng.choice(['i', 'dec'])}::DECIMAL(18, 2) {sign} {number}.25",
        f"f::DECIMAL(18, {rng.choice([0, 1, 2])}) {sign} {number / 4}",
        f"f::DECIMAL(9, 1) {rng.choice(['BETWEEN', 'NOT BETWEEN'])} {number / 4} AND 2.25",
        f"f::DECIMAL(9, 1) {rng.choice(['IN', 'NOT IN'])} ({number / 4}, {rng.choice(['2.2', 'NULL'])}, -1.5)",
        f"ts::DATE {rng.choice(['IN', 'NOT IN'])} (DATE '{day}', DATE '2024-01-02')",
        f"ts::DATE BETWEEN DATE '{day}' AND DATE '2024-01-02'",
        f"small::BIGINT {sign} {number}",
        f"dec {sign} 12.345::DECIMAL(18, 2)",
        f"i {sign} '{number}'", f"dec {sign} '{number}.5'", f"f {sign} '{number / 4}'",
        f"i IN ('{number}', '3')", f"i BETWEEN '{number}' AND '20'",
        f"b = {rng.choice(['0', '1', chr(39) + 'true' + chr(39)])}",
    ])  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", range(8))
def test_random_conditions(source: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        condition = _condition(rng)
        if rng.random() < 0.3:
            condition = f"({condition}) {rng.choice(['AND', 'OR', 'AND NOT'])} ({_condition(rng)})"
        assert ours(source, condition) == theirs(source, condition), condition


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", range(4))
def test_floats_rounded_to_decimals(tmp_path: Path, seed: int) -> None:
    """Halves, negative numbers, NaN, infinities, and what does not fit, which is null as for DuckDB's TRY_CAST."""
    rng = random.Random(seed)
    unfit = [math.nan, math.inf, -math.inf, 1e16, -1e16, math.nextafter(1e16, 0), 1e20, 1e38, None]
    rows = [rng.choice(unfit) for _ in range(60)]
    rows += [(rng.randrange(-300, 300) + 0.5) / 100 for _ in range(300)]
    rows += [rng.uniform(-12, 12) * 10.0 ** rng.randrange(-3, 3) for _ in range(300)]
    rng.shuffle(rows)
    rows += sorted(rng.uniform(-3, 3) for _ in range(400))
    path, types = tmp_path / "floats.parquet", {"n": "int64", "x": "double?", "f": "float?"}
    data = {"n": range(len(rows)), "x": rows, "f": [None if x is None else float(np.float32(x)) for x in rows]}
    pyparq.write_table(data, path, schema=pyparq.schema(types), row_group_size=100, max_rows_per_page=25)
    forms = [
        "{} = {}",
        "{} <> {}",
        "{} < {}",
        "{} >= {}",
        "NOT ({} > {})",
        "{} NOT IN ({}, 1.25)",
        "{} BETWEEN -1 AND {}",
    ]
    for _ in range(60):
        name, number = rng.choice("xf"), rng.choice([rng.randrange(-300, 300) / 100, rng.randrange(-3, 4), 10**17])
        size = rng.choice(["18, 2", "18, 2", "9, 2", "4, 2", "3, 2", "5, 0", "38, 10", "38, 2"])
        form = rng.choice(forms)
        wanted = theirs(path, form.format(f"TRY_CAST({name} AS DECIMAL({size}))", number))
        assert ours(path, form.format(f"{name}::DECIMAL({size})", number)) == wanted, (form, name, size, number)
    report = pyparq.ParquetFile(path).scan(filters="x::DECIMAL(18, 2) = 2.5").explain()
    assert report.pages_decoded < 0.8 * report.file_pages


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("i = 'x'", "'x' is not a number"),
        ("i = '2.5'", "whole numbers"),
        ("b = 2", "TRUE and FALSE"),
        ("f::INTEGER = 2", "may change values"),
        ("f::DECIMAL(18, 2) = i", "a value is needed"),
        ("f::DECIMAL(18, 2) = 'x'", "compared with numbers"),
        ("f::DECIMAL(18, 2) < 1e999999999", "compared with numbers"),
        ("f::DECIMAL(18, 2) > 1e-999999999", "compared with numbers"),
        ("f::DECIMAL(2, 5) = 2", "may change values"),
        ("dec::DECIMAL(5, 1) = 2", "may change values"),
        ("i = 1000::DECIMAL(4, 2)", "does not fit"),
        ("d + f = DATE '2024-01-01'", "needs numbers"),
        ("d + e = DATE '2024-01-01'", "needs numbers"),
        ("d + INTERVAL '1 month' = DATE '2024-01-01'", "month"),
    ],
)
def test_what_has_no_equal_is_refused_by_name(source: Path, condition: str, said: str) -> None:
    with pytest.raises(FilterError, match=said):
        ours(source, condition)


def test_the_remainder_of_expressions_is_that_of_python(source: Path) -> None:
    rows = pyparq.read_table(source).to_pylist()
    for divisor in (-7, -3, 1, 2, 5):
        for name in ("i", "big", "small", "dec"):
            wanted = [row["n"] for row in rows if row[name] is not None and _floor(row[name], divisor) == divisor // 2]
            assert ours(source, col(name) % divisor == divisor // 2) == wanted
    wanted = [row["n"] for row in rows if row["i"] and 100 % row["i"] == 1]
    assert ours(source, 100 % col("i") == 1) == wanted
    nothing = col("i") % 0
    assert ours(source, nothing == 0) == []
    assert len(ours(source, nothing.is_null())) == ROWS


def _floor(value: Any, divisor: int) -> Any:
    return value - divisor * (value / divisor).__floor__() if isinstance(value, Decimal) else value % divisor


def test_times_and_durations_of_expressions(source: Path) -> None:
    rows = pyparq.read_table(source).to_pylist()
    span, moment = dt.timedelta(hours=36), dt.datetime(2024, 2, 1)
    wanted = [row["n"] for row in rows if row["ts"] is not None and row["ts"] + span >= moment]
    assert ours(source, col("ts") + span >= moment) == wanted
    week = dt.timedelta(days=7)
    wanted = [row["n"] for row in rows if None not in (row["d"], row["e"]) and row["d"] - row["e"] < week]
    assert ours(source, col("d") - col("e") < week) == wanted
    assert "ts >=" in str(pyparq.ParquetFile(source).scan(filters=col("ts") + span >= moment).explain())


def test_the_remainder_of_polars(source: Path) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.read_parquet(source)
    for divisor in (-7, -2, 1, 3):
        for name in ("i", "small", "big"):
            condition = pl.col(name) % divisor == divisor // 2
            assert ours(source, condition) == frame.filter(condition)["n"].to_list()
    with pytest.raises(FilterError, match="cannot be translated"):
        ours(source, pl.col("i") % 0 == 0)
    with pytest.raises(FilterError, match="cannot be translated"):
        ours(source, pl.col("f") % 2 == 0)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64"])
def test_integers_that_a_decimal_does_not_hold(tmp_path: Path, kind: str) -> None:
    """They are null, as by ``TRY_CAST``: too many digits before the point."""
    draw, path, limits = random.Random(kind), tmp_path / "n.parquet", np.iinfo(kind)
    numbers = [0, 1, 5, 50, 99, 100, limits.max, limits.max - 1, limits.min, limits.min + 1, None]
    numbers += [draw.randint(int(limits.min), int(limits.max)) >> draw.randint(0, limits.bits) for _ in range(200)]
    data = {"n": range(len(numbers)), "x": numbers}
    pyparq.write_table(data, path, schema={"n": "int64", "x": f"{kind}?"}, row_group_size=50)
    for _ in range(60):
        precision = draw.randint(1, 30)
        size = f"{precision}, {draw.randint(0, precision)}"
        value = draw.choice(["7", "50", "50.5", "99.9", "-99.95", "0", "1e3", "9999999999999999", str(limits.max)])
        form = draw.choice([
            f"{{}} {draw.choice(['=', '<', '<=', '>', '>=', '<>'])} {value}", f"{{}} NOT IN ({value}, 5)",
            f"{{}} IN ({value}, 5)", f"{{}} BETWEEN {value} AND 9999", f"NOT ({{}} < {value})",
        ])  # fmt: skip
        try:
            wanted = theirs(path, form.format(f"TRY_CAST(x AS DECIMAL({size}))"))
        except duckdb.Error:  # a constant that DuckDB cannot cast
            continue
        assert ours(path, form.format(f"x::DECIMAL({size})")) == wanted, (form, size)
