"""Filters as SQL text and as expressions of ``pyarrow.compute``: the same rows as those libraries leave."""

from __future__ import annotations

import datetime as dt
import operator
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyparq
from pyparq import FilterError, col
from pyparq.runtime.messages import requirement

NAN = float("nan")
TABLE = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "n": pa.array([None if i % 7 == 0 else i % 10 for i in range(60)], pa.int32()),
        "f": pa.array([None if i % 9 == 0 else NAN if i % 5 == 0 else i / 4 for i in range(60)]),
        "s": pa.array([None if i % 8 == 0 else f"{'ab' if i % 2 else 'é'}{i % 6}" for i in range(60)]),
        "b": pa.array([None if i % 6 == 0 else i % 4 == 0 for i in range(60)]),
        "d": pa.array([dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(60)]),
        "t": pa.array([dt.datetime(2024, 3, 10, i % 24) for i in range(60)], pa.timestamp("us")),
        "m": pa.array([Decimal(i) / 4 for i in range(60)], pa.decimal128(9, 2)),
        "p": pa.array([None if i % 10 == 0 else {"a": i % 5, "b": None} for i in range(60)],
                      pa.struct([("a", pa.int64()), ("b", pa.int64())])),
        "a b": pa.array(range(60), pa.int8()),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forms") / "t.parquet"
    pyparq.write_table(TABLE, made, row_group_size=13, max_rows_per_page=4, bloom_filters=["n", "s"])
    return made


def ids(path: Any, filters: Any) -> list[int]:
    return pyparq.read_table(path, columns=["id"], filters=filters)["id"].to_pylist()


# ---- expressions of pyarrow


VALUES: dict[str, list[Any]] = {
    "n": [3, 0, 2.5, 100], "f": [2.25, NAN, 0, -1.0, float("inf")], "s": ["ab1", "é4", ""], "id": [17],
    "d": [dt.date(2024, 1, 20)], "t": [dt.datetime(2024, 3, 10, 5)], "m": [Decimal("2.50")], "a b": [7],
}  # fmt: skip
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def random_expression(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.randrange(9)
    if depth and kind < 3:
        left, right = random_expression(rng, depth - 1), random_expression(rng, depth - 1)
        return ~left if kind == 0 else left & right if kind == 1 else left | right
    name = rng.choice([*VALUES, "b"])
    field = pc.field(name)
    if kind == 3:
        return rng.choice([field.is_null(), field.is_valid(), pc.field("f").is_nan(), field.is_null(nan_is_null=True)])
    if kind == 4:
        known = [v for v in VALUES.get(name, [True]) if v == v]
        return field.isin(rng.sample(known, rng.randrange(1, len(known) + 1)))
    if kind == 5:
        return rng.choice([pc.starts_with(pc.field("s"), "ab"), pc.field("p", "a") > 2, pc.field("b"), pc.scalar(True)])
    if name == "b":
        return field == rng.choice([True, False])
    value = pa.scalar(rng.choice(VALUES[name]), None if name in ("n", "f") else TABLE.schema.field(name).type)
    compare = rng.choice(COMPARE)
    return compare(field, value) if rng.random() < 0.7 else compare(pc.scalar(value), field)


def test_random_expressions_leave_the_rows_that_pyarrow_leaves(path: Path) -> None:
    rng, counts = random.Random(11), set[int]()
    for _ in range(400):
        expression = random_expression(rng)
        expected = TABLE.filter(expression)["id"].to_pylist()
        assert ids(path, expression) == expected, str(expression)
        counts.add(len(expected))
    assert len(counts) > 30


def test_expressions_skip_and_travel(path: Path, tmp_path: Path) -> None:
    with pyparq.ParquetFile(path) as file:
        scan = file.scan(["id"], pc.field("id") == 17)
        plan = pickle.loads(pickle.dumps(scan.plan()))
        assert file.execute(plan)["id"].to_pylist() == [17]
        assert len(plan.row_groups) == 1
        assert scan.count() == 1
    pyparq.write_dataset(TABLE, tmp_path / "d", partition_cols=["n"])
    folder = pyparq.dataset(tmp_path / "d")
    assert sorted(folder.read(["id"], (pc.field("n") == 3) & (pc.field("id") > 20))["id"].to_pylist()) == [
        i for i in range(21, 60) if i % 7 and i % 10 == 3
    ]
    assert folder.count(pc.field("n") == 3) == folder.count("n = 3") == folder.count(col("n") == 3)
    plan = pickle.loads(pickle.dumps(folder.plan(["id"], "n = 3 and id < 30")))
    assert sorted(plan.scan().to_table()["id"].to_pylist()) == [3, 13, 23]
    pyparq.rewrite(path, tmp_path / "some.parquet", filters=pc.field("id") < 5)
    assert pyparq.read_table(tmp_path / "some.parquet").num_rows == 5


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (pc.field("n") / 2 > 3, "cuts quotients"), (pc.field("f") < pc.field("id"), "NaN"),
        (pc.match_substring_regex(pc.field("s"), "b"), "RE2"), (pc.field("f").isin([1.0, NAN]), "is_nan"),
        (pc.starts_with(pc.field("s"), "AB", ignore_case=True), "ilike"), (pc.scalar(3), "no condition"),
        (pc.field("n").cast("string") == "3", "cast"),
        (pa.array([True]), "give an expression"), (pl.col("n").cum_sum() > 3, "each row alone"),
    ],
    ids=range(9),
)  # fmt: skip
def test_what_cannot_be_translated_is_named(expression: Any, told: str, path: Path) -> None:
    with pytest.raises(FilterError, match=told):
        ids(path, expression)


def test_unknown_columns(path: Path) -> None:
    for filters in (pc.field("nothing") > 3, "nothing > 3"):
        with pytest.raises(pyparq.ColumnNotFoundError, match="nothing"):
            ids(path, filters)


# ---- SQL


@pytest.mark.parametrize(
    "text",
    [
        "n > 3", "n > 3 and s like 'ab%'", "n in (1, 2) or s is null", "not (n = 3)", "d >= '2024-02-01'", "m = 2.5",
        "n between 2 and 5 and b", '"a b" < 7', "p.a = 2", "t < timestamp '2024-03-10 05:00:00'", "s = 'é4'",
        "n is not null and not b", "id = 17",
    ],
)  # fmt: skip
def test_sql_leaves_the_rows_that_duckdb_leaves(text: str, path: Path) -> None:
    expected = [row for (row,) in duckdb.sql(f"select id from '{path}' where {text} order by id").fetchall()]
    assert ids(path, text) == ids([path], text) == expected
    with pyparq.ParquetFile(path) as file:
        assert file.scan(filters=text).count() == len(expected)


@pytest.mark.parametrize(("text", "told"), [("n >", "cannot be parsed"), ("trim(s) = 'A'", "trim|TRIM"), ("", "pars")])
def test_sql_that_is_refused(text: str, told: str, path: Path) -> None:
    with pytest.raises(FilterError, match=told):
        ids(path, text)


def test_without_sqlglot(path: Path) -> None:
    code = (
        "import sys; sys.modules['sqlglot'] = None\nimport pyparq\n"
        f"try: pyparq.read_table({str(path)!r}, filters='n > 3')\nexcept pyparq.FilterError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"pip install {requirement('cli', 'sqlglot')}" in ran.stdout, ran.stderr


def test_the_columns_of_a_filter() -> None:
    """Also below AND, OR and NOT: they are asked what a missing column means."""
    from pyparq.filters.expression import top_names

    text = (col("a") == 1) | ((col("b.c") + col("d") > 3) & ~(col(("e", "f")).is_null() | col("g").isin([1, 2])))
    assert top_names(text) == {"a", "b", "b.c", "d", "e", "g"}
