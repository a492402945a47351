"""Small things that Spark does in a way of its own: case, collations, char, lists with nulls, frames without rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq import col
from pyparq.errors import UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_names_that_differ_by_case_are_one_column(usual: Any, ps: Any, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pyparq.write_table({"Id": [1, 2], "V": [1, 1]}, tmp_path / "t" / "a.parquet")
    pyparq.write_table({"id": [3], "v": [2]}, tmp_path / "t" / "b.parquet")
    own = usual.read.option("mergeSchema", "true").parquet(str(tmp_path / "t"))
    wanted = sorted(map(tuple, own.collect()))
    for many in ("2000", "0"):
        usual.conf.set("spark.pyparq.planInTasksAbove", many)
        ours = ps.read(usual, tmp_path / "t")
        assert (ours.columns, sorted(map(tuple, ours.collect()))) == (own.columns, wanted), many
        assert sorted(map(tuple, ps.read(usual, tmp_path / "t", small=0).collect())) == wanted
        assert ps.count(usual, tmp_path / "t", "ID >= 2") == 2
        assert ps.read(usual, tmp_path / "t", columns=["iD"], filters=col("V") == 2).collect() == [(3,)]
    ps.compact(usual, tmp_path / "t")
    assert sorted(map(tuple, usual.read.parquet(str(tmp_path / "t")).collect())) == wanted
    pyparq.write_table({"id": [3], "v": [2]}, tmp_path / "t" / "b.parquet")
    usual.conf.set("spark.sql.caseSensitive", "true")
    assert len(ps.read(usual, tmp_path / "t").columns) == 4


def test_collations(usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.sql("select 'A' c, 1 n union all select 'a', 2").selectExpr(
        "c collate utf8_lcase c", "array(named_struct('x', c collate unicode_ci)) l", "c plain", "n"
    ).write.parquet(str(tmp_path / "t"))
    own = usual.read.parquet(str(tmp_path / "t"))
    for small in (0, 1 << 20):
        ours = ps.read(usual, tmp_path / "t", small=small)
        assert ours.schema.simpleString() == own.schema.simpleString()
        assert ours.where("c = 'a'").count() == own.where("c = 'a'").count() == 2
    for condition in ("c = 'a'", "c in ('a', 'b')", "n = 1 and not c >= 'B'"):
        with pytest.raises(UnsupportedError, match="collation"):
            ps.read(usual, tmp_path / "t", filters=condition)
        with pytest.raises(UnsupportedError, match="collation"):
            ps.count(usual, tmp_path / "t", condition)
    assert ps.count(usual, tmp_path / "t", "plain = 'a' and c is not null") == 1
    ps.write(own, tmp_path / "copy")
    assert usual.read.parquet(str(tmp_path / "copy")).where("c = 'a'").count() == 2


def test_char_and_varchar(usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.sql(f"create table padded (c char(5), v varchar(3)) using parquet location '{tmp_path / 't'}'")
    try:
        usual.sql("insert into padded values ('a', 'b'), ('ccccc', null)")
        own = usual.read.parquet(str(tmp_path / "t"))
        assert sorted(map(str, ps.read(usual, tmp_path / "t").collect())) == sorted(map(str, own.collect()))
        for condition in ("c = 'a'", "c = 'a    '", "v = 'b'", "c > 'b'"):
            assert ps.count(usual, tmp_path / "t", condition) == own.where(condition).count(), condition
        ps.write(usual.table("padded"), tmp_path / "copy")
        copy = usual.read.parquet(str(tmp_path / "copy"))
        assert copy.schema.simpleString() == own.schema.simpleString()
        assert sorted(map(str, copy.collect())) == sorted(map(str, own.collect()))
    finally:
        usual.sql("drop table padded")
    usual.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    with pytest.raises(UnsupportedError, match=r"char\(3\)"):
        ps.write(usual.sql("select cast('a' as char(3)) c"), tmp_path / "u")


CONTAINS = [
    "array_contains(l, 2)", "not array_contains(l, 2)", "not array_contains(l, 1)",
    "not (array_contains(l, 1) or array_contains(l, 2))", "not (array_contains(l, 1) and id > 2)",
    "not not array_contains(l, 2)", "not (not array_contains(l, 2) and id > 0)", "not array_contains(l, 7) or id = 2",
]  # fmt: skip


def test_a_list_with_nulls_may_have_what_is_not_found(usual: Any, ps: Any, tmp_path: Path) -> None:
    lists = (
        "(1, array(1, 2)), (2, array(1, null)), (3, array(cast(null as int))), (4, null), (5, array()), "
        "(6, array(2, null))"
    )
    frame = usual.sql(f"select id, cast(l as array<int>) l from values {lists} as t(id, l)")
    frame.coalesce(1).write.parquet(str(tmp_path / "t"))
    own = usual.read.parquet(str(tmp_path / "t")).cache()
    for condition in CONTAINS:
        wanted = sorted(row.id for row in own.where(condition).collect())
        assert sorted(row.id for row in ps.read(usual, tmp_path / "t", filters=condition).collect()) == wanted, (
            condition
        )
    assert ps.count(usual, tmp_path / "t", ~col("l").contains(2)) == 1


def test_a_partitioned_frame_without_rows_leaves_no_partition(usual: Any, ps: Any, tmp_path: Path) -> None:
    none, some = usual.sql("select id, id % 2 g from range(0)"), usual.sql("select id, id % 2 g from range(4)")
    for folder, before in (("new", None), ("old", some)):
        if before is not None:
            ps.write(before, tmp_path / folder, partition_cols=["g"])
        assert ps.write(none, tmp_path / folder, mode="overwrite", partition_cols=["g"]).files == ()
        assert os.listdir(tmp_path / folder) == ["_SUCCESS"]
    ps.write(some, tmp_path / "old", mode="append", partition_cols=["g"])
    ps.write(none, tmp_path / "old", mode="overwrite_partitions", partition_cols=["g"])
    assert sorted(os.listdir(tmp_path / "old")) == ["_SUCCESS", "g=0", "g=1"]
    assert len(ps.write(none, tmp_path / "plain").files) == 1
