"""Tables whose columns have a DEFAULT: Spark gives it for files without the column, and jobs that replace files keep
that so. The right answers are the table's rows before the job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import OptionError, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ADDED = "d int default 42, e date default date'2024-03-10', f string default 'it''s', g decimal(9,2) default 1.5"


@pytest.fixture
def table(usual: Any) -> Iterator[str]:
    """Two partitions; each has files without the added columns, files with all of them, and files of a time between."""
    usual.sql("create table evolved (id bigint, name string, p int) using parquet partitioned by (p)")
    for step, columns in enumerate(("", ADDED, "h boolean default true")):
        if columns:
            usual.sql(f"alter table evolved add columns ({columns})")
        names = {0: "id, name", 1: "id, name, d, e, f, g", 2: "id, name, d, e, f, g, h"}[step]
        values = {0: "", 1: ", int(id), null, 'own', default", 2: ", null, default, default, 2.5, null"}[step]
        for k in range(2):
            rows = ", ".join(
                f"({10 * (2 * step + k) + n}, 'n{n}'{values.replace('int(id)', str(n))}, {n % 2})" for n in range(6)
            )
            usual.sql(f"insert into evolved ({names}, p) values {rows}")
    yield usual.sql("describe formatted evolved").where("col_name = 'Location'").first()[1].removeprefix("file:")
    usual.sql("drop table evolved")


def shown(session: Any) -> list[str]:
    session.sql("refresh table evolved")
    return sorted(map(str, session.table("evolved").selectExpr("id", "name", "p", "d", "e", "f", "g", "h").collect()))


JOBS: dict[str, Callable[[Any, Any, str], Any]] = {
    "compact": lambda ps, s, at: ps.compact(s, at),
    "compact in order": lambda ps, s, at: ps.compact(s, at, sort_by=["f", "id"], target_size=2_000),
    "compact by an added column": lambda ps, s, at: ps.compact(s, at, zorder_by=["d", "id"], bloom_filters=["f"]),
    "rewrite": lambda ps, s, at: ps.rewrite(s, at),
    "rewrite in order": lambda ps, s, at: ps.rewrite(s, at, sort_by=["id", "d"], compression={"h": "zstd"}),
}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("job", JOBS)
def test_defaults_stay(usual: Any, ps: Any, table: str, job: str) -> None:
    before, files = shown(usual), len(list(Path(table).rglob("*.parquet")))
    by_path = usual.read.option("mergeSchema", True).parquet(table)
    rows = sorted(map(str, by_path.selectExpr("id", "d", "e", "f", "g", "h").collect()))
    JOBS[job](ps, usual, table)
    assert shown(usual) == before
    left = list(Path(table).rglob("*.parquet"))
    assert len(left) < files
    again = usual.read.option("mergeSchema", True).parquet(table)
    assert sorted(map(str, again.selectExpr("id", "d", "e", "f", "g", "h").collect())) == rows
    for file in left:  # Spark's own schema still describes the columns of the file
        described = json.loads(pq.read_metadata(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"])
        assert [field["name"] for field in described["fields"]] == pq.read_schema(file).names
    if job.startswith("compact"):
        assert JOBS[job](ps, usual, table).count() == 0  # a second run does nothing


def test_the_report_has_a_row_for_each_partition(usual: Any, ps: Any, table: str) -> None:
    rows = ps.compact(usual, table).orderBy("partition").collect()
    assert [(row.partition, row.files_before, row.files_after, row.rows) for row in rows] == [
        ("p=0", 12, 3, 18), ("p=1", 12, 3, 18),
    ]  # fmt: skip


def test_names_that_differ_by_case_are_one_column(usual: Any, ps: Any, tmp_path: Path) -> None:
    for k, name in enumerate(("Id", "ID", "id")):
        pyparq.write_dataset({name: [k]}, tmp_path / "lake", mode="append")
    assert [tuple(row)[:3] for row in ps.compact(usual, tmp_path / "lake").collect()] == [("", 3, 1)]
    assert sorted(usual.read.parquet(str(tmp_path / "lake")).toArrow()[0].to_pylist()) == [0, 1, 2]


def test_a_rewrite_without_spark_refuses_to_make_nulls_of_defaults(usual: Any, ps: Any, table: str) -> None:
    before = shown(usual)
    with pytest.raises(UnsupportedError, match=r"DEFAULT.*pyparq\.spark\.rewrite.*column [d-h]"):
        pyparq.rewrite(table, table, mode="overwrite")
    assert shown(usual) == before
    with pytest.raises(UnsupportedError, match=r"DEFAULT.*column d"):
        pyparq.rewrite(table, table, mode="overwrite", columns=["id", "name", "p"], filters=pyparq.col("d") > 0)
    with pytest.raises(UnsupportedError, match=r"DEFAULT.*column d"):
        ps.rewrite(usual, table, table, mode="overwrite", filters="d > 0")
    assert shown(usual) == before
    pyparq.rewrite(table, table, mode="overwrite", columns=["id", "name", "p"])
    assert len(usual.read.parquet(table).collect()) == 36


def test_an_unknown_sort_column_is_refused_before_any_file(usual: Any, ps: Any, table: str) -> None:
    before = shown(usual)
    with pytest.raises((OptionError, pyparq.ParquetError)):
        ps.compact(usual, table, sort_by=["nothing"])
    assert shown(usual) == before
