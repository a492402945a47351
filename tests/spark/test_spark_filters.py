"""Filters of Spark: conditions in its SQL, Columns, what is left to Spark, and errors that are pyparq's own.

Compared with Spark's ``where`` in the session's zone, which has daylight saving."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from spark_filters import TABLE, Conditions

import pyparq
from pyparq import FilterError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from spark_session import ZONE

    path = tmp_path_factory.mktemp("filters") / "table"
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    session.sql(TABLE).coalesce(1).write.parquet(str(path))
    return path


def counts(own: Any, conditions: list[str]) -> list[int | None]:
    """What Spark counts, in one query; ``None`` where the condition is an error for it."""
    from pyspark.errors import PySparkException

    try:
        return list(own.selectExpr(*(f"count_if({c})" for c in conditions)).first())
    except PySparkException:
        half = len(conditions) // 2
        return [None] if half == 0 else counts(own, conditions[:half]) + counts(own, conditions[half:])


def differences(usual: Any, ps: Any, table: Path, seed: int, number: int) -> tuple[list[Any], int]:
    """Conditions where the counts differ, and how many were taken."""
    usual.conf.set("spark.sql.codegen.wholeStage", "false")  # compiling a query takes longer than running it
    own = usual.read.parquet(str(table)).cache()
    some, wrong, taken = Conditions(seed), [], 0
    for _ in range(0, number, 50):
        part = [some.one() for _ in range(50)]
        for where, count in zip(part, counts(own, part), strict=True):
            try:
                found = ps.count(usual, table, where)
            except FilterError as error:
                if "residual=True" not in str(error) and count is not None:
                    wrong.append((where, error, count))
                continue
            taken += 1
            if count is not None and found != count:
                wrong.append((where, found, count))
    own.unpersist()
    return wrong, taken


def test_random_conditions(usual: Any, ps: Any, table: Path) -> None:
    wrong, taken = differences(usual, ps, table, 2024, 300)
    assert not wrong
    assert taken > 240


@pytest.mark.slow
def test_random_conditions_without_ansi(usual: Any, ps: Any, table: Path) -> None:
    usual.conf.set("spark.sql.ansi.enabled", "false")
    usual.conf.set("spark.sql.session.timeZone", "Australia/Lord_Howe")
    wrong, taken = differences(usual, ps, table, 2025, 200)
    assert not wrong
    assert taken > 150


ONE_TYPE = [
    "l in (900719925474099, 1D)", "big in (9007199254740993, 1D)", "big in (9007199254740993, 2)",
    "big not in (1.5D, 9007199254740992)", "i in (2, 7.0, 3D)", "m in (1.75, 2D)", "i in ('2', 7)", "i in ('2')",
    "i in ('007', 7)", "t in (1, '3000000000')", "day in ('2024-03-10', timestamp '2024-03-10 05:00:00')",
    "day in ('2024-03-10 05:00:00', timestamp '2024-03-11 05:00:00')", "ts in ('2024-03-10')",
    "ts in ('2024-03-10 03:20:00', timestamp_ntz '2024-03-10 02:40:00')",
    "ntz in (timestamp '2024-03-10 02:40:00', '2024-03-10 03:20:00')", "ntz = timestamp '2024-03-10 02:40:00'",
    "ntz = timestamp '2024-03-10 03:20:00'", "ntz < timestamp '2024-03-10 03:20:00'",
    "ntz >= timestamp '2024-03-10 05:20:00'", "i = '2'", "t < '3000000000'", "t <=> '300'",
]  # fmt: skip


BY_RELATION = [where for where in ONE_TYPE if where.startswith("ntz") and " in " not in where]
"""Spark itself answers these otherwise for rows of a local table, as which it is given small answers: there it makes
instants of the column, and else a clock of the literal."""


@pytest.mark.sweep(2)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_of_different_types_have_one_common_type(usual: Any, ps: Any, table: Path, ansi: str) -> None:
    """Each condition keeps Spark's rows, or is refused by name and left to Spark where that is asked for."""
    usual.conf.set("spark.sql.ansi.enabled", ansi)
    own = usual.read.parquet(str(table)).selectExpr("*", "l + id * 99 as big")
    path = table.parent / f"one type {ansi}"
    own.coalesce(1).write.parquet(str(path))
    own = usual.read.parquet(str(path)).cache()
    refused = []
    for where, count in zip(ONE_TYPE, counts(own, ONE_TYPE), strict=True):
        if count is None:
            continue
        try:
            assert ps.count(usual, path, where) == count, where
        except FilterError as error:
            refused.append((where, str(error)))
        if where not in BY_RELATION:
            assert ps.count(usual, path, where, residual=True) == count, where
    own.unpersist()
    assert all("residual=True" in said for _, said in refused)
    assert len(refused) < (9 if ansi == "true" else 14), refused


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(5))
def test_many_random_conditions(usual: Any, ps: Any, table: Path, seed: int) -> None:
    wrong, taken = differences(usual, ps, table, seed, 1_000)
    assert not wrong
    assert taken > 800


def columns(F: Any) -> list[Any]:
    """Conditions as Columns that have an equal."""
    return [
        F.col("i") == 7, F.col("st.x") > 1, F.col("ST").getField("A b") == "v1", F.col("`bin col`") == b"1",
        ~F.col("i").isin(1, 2, None), F.col("s").like("a%"), F.col("s").startswith("b"), F.col("d").eqNullSafe(None),
        F.col("m") == Decimal("1.75"), F.col("d") >= 1.5, F.isnan("d") | F.col("t").isNull(), F.col("b"),
        -F.lit(1) == F.col("t"),
        F.col("ts") >= dt.datetime(2024, 3, 10, 6, tzinfo=dt.UTC), F.col("day") == dt.date(2024, 3, 10),
        F.to_date("ts") == dt.date(2024, 3, 10), F.year("day") == 2024, F.array_contains("a", 2), F.lit(True),
        F.expr("ts < '2024-03-10 03:00:00' and s is not null"), F.col("id").between(3, 9), F.col("i") != 7,
        F.coalesce("i", F.lit(0)) == 0, F.col("ts").cast("date") < "2024-03-11",
        F.col("i").isNotNull() & (F.col("l") > 2**40),
    ]  # fmt: skip


def test_columns(usual: Any, ps: Any, table: Path) -> None:
    from pyspark.sql import functions as F

    own = usual.read.parquet(str(table)).cache()
    made = [*columns(F), own["i"] == 3, own.ts > dt.datetime(2024, 3, 11)]
    wanted = own.agg(*(F.count_if(c).alias(str(k)) for k, c in enumerate(made))).first()
    for column, count in zip(made, wanted, strict=True):
        assert ps.count(usual, table, column) == count, column
    assert sorted(r.id for r in ps.read(usual, table, columns=["id"], filters=made[0]).collect()) == sorted(
        r.id for r in own.where(made[0]).collect()
    )
    for small in (0, 1 << 20):
        assert ps.read(usual, table, filters=made[1], small=small).count() == wanted[1]
    own.unpersist()


RESIDUAL = [
    "kv['k'] = 3", "kv['k'] <=> 3 and i > 2", "a[0] = 1", "s rlike '^a' and id < 200", "not (s like '_x%')",
    "s like 'a%1'", "i + 1 > 5 and id between 10 and 300", "i > 5 or upper(s) = 'AX1'", "i = l", "(i > 3) is true",
    "exists(a, x -> x > 1)", "case when b then i > 2 else false end", "kv['k'] is null",
]  # fmt: skip


@pytest.mark.slow
def test_what_is_left_to_spark(usual: Any, ps: Any, table: Path) -> None:
    from pyspark.sql import functions as F

    own = usual.read.parquet(str(table)).cache()
    wanted = own.selectExpr(*(f"count_if({c})" for c in RESIDUAL)).first()
    for where, count in zip(RESIDUAL, wanted, strict=True):
        with pytest.raises(FilterError, match="residual=True"):
            ps.count(usual, table, where)
        assert ps.count(usual, table, where, residual=True) == count, where
    found = ps.read(usual, table, columns=["ID", "s"], filters="s rlike '^d' and kv['k'] = 3", residual=True)
    assert [name.lower() for name in found.columns] == ["id", "s"]
    assert found.count() == own.where("s rlike '^d' and kv['k'] = 3").count() > 0
    assert ps.count(usual, table, F.col("kv")["k"] == 3, residual=True) == wanted[0]
    assert ps.read(usual, table, columns="id", filters=F.col("s").rlike("x"), residual=True).columns == ["id"]
    with pytest.raises(pyparq.OptionError, match="residual"):
        ps.read(usual, table, filters=[("i", "=", 1)], residual=True)
    with pytest.raises(FilterError, match=r"rlike\(s|s RLIKE.*rlike"):
        ps.rewrite(usual, table, str(table) + "-2", filters="s rlike '^a'")
    own.unpersist()


def test_rows_are_skipped_by_what_is_understood(usual: Any, ps: Any, tmp_path: Path) -> None:
    from pyparq.spark.question import Question, planned

    usual.range(10_000).selectExpr("id", "map('k', id) as kv").coalesce(1).write.parquet(str(tmp_path / "t"))
    files = pyparq.dataset(tmp_path / "t")
    pyparq.rewrite(files, tmp_path / "new", sort_by=["id"], row_group_size=1_000)

    def rows(where: str) -> int:
        asked = Question(
            str(tmp_path / "new"), ["id"], where, None, 1, 0, None, "raise", False, None, False, residual=True
        )
        return planned(asked)[0].num_rows

    assert rows("id < 100 and upper(id) = '7'") <= 1_000
    assert rows("upper(id) = '7'") == 10_000
    assert rows("id < 100 or upper(id) = '7'") == 10_000
    assert rows("not (id >= 100 or upper(id) = '7')") <= 1_000
    assert rows("kv['k'] = 4711") <= 1_000
    assert rows("kv['x'] = 4711") == 0


def test_errors_say_what_is_wrong(usual: Any, ps: Any, table: Path) -> None:
    for where, said in (
        ("s ===", "no SQL of Spark"), ("", "empty"), ("nowhere = 1", "no column 'nowhere'"),
        ("upper(s) = 'A'", r"(?i)upper\(s\)"), ("s = 5", "converts"), ("`no col` is null", "no col"),
    ):  # fmt: skip
        with pytest.raises(pyparq.ParquetError, match=said):
            ps.count(usual, table, where)


def test_errors_of_tasks_are_our_own(usual: Any, ps: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    pyparq.write_table({"id": list(range(1_000)), "x": [0.5] * 1_000}, bad / "a.parquet", compression="none")
    page = pyparq.read_metadata(bad / "a.parquet").row_group(0).column("id").data_page_offset
    raw = bytearray((bad / "a.parquet").read_bytes())
    raw[page : page + 20] = b"\xff" * 20
    (bad / "a.parquet").write_bytes(raw)
    with pytest.raises(pyparq.CorruptFileError, match=r"file .*a\.parquet.*column id"):
        ps.count(usual, bad, "id > 17", small=0, use_statistics=False)
    with pytest.raises(pyparq.CorruptFileError, match=r"a\.parquet"):
        ps.rewrite(usual, bad, tmp_path / "new")
    assert not list(tmp_path.glob("new/*"))


def test_wrong_columns_are_found_before_a_task_starts(usual: Any, ps: Any, table: Path, tmp_path: Path) -> None:
    frame = usual.range(10).selectExpr("id", "raise_error('a task ran') as x")
    for option in ({"bloom_filters": ["idd"]}, {"sort_by": ["idd"]}, {"bloom_filters": {"id": 0.01, "nope": 0.01}},
                   {"compression": {"idd": "zstd"}}):  # fmt: skip
        with pytest.raises(pyparq.ColumnNotFoundError, match=r"idd|nope"):
            ps.write(frame, tmp_path / "out", **option)
        with pytest.raises(pyparq.ColumnNotFoundError, match=r"idd|nope"):
            ps.rewrite(usual, table, tmp_path / "out", **option)
    assert not (tmp_path / "out").exists()
    with pytest.raises(pyparq.ColumnNotFoundError, match="idd"):
        ps.add_indexes(usual, table, bloom_filters=["idd"])
    from pyparq.spark.source import PyparqDataSource

    for kind in ("writer", "streamWriter"):
        source = PyparqDataSource({"path": str(tmp_path / "out"), "sort_by": "idd"})
        with pytest.raises(pyparq.ColumnNotFoundError, match="idd"):
            getattr(source, kind)(usual.range(3).schema, False)
    assert not (tmp_path / "out").exists()
