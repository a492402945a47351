"""Tables and views USING pyparq: reading, INSERT, ``insertInto``, ``writeTo``, and what Spark 4.3 has no way for.

Spark tells a source in Python the options of a table only when the table is made. So what is written to is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

SCHEMA = '{"id": "int64?", "name": "string?"}'


@pytest.fixture
def session(usual: Any, ps: Any) -> Iterator[Any]:
    usual.createDataFrame([(1,)], "x long")  # Spark looks for sources in the session that is active
    ps.register(usual)
    yield usual
    for name in ("one", "two", "declared", "made"):
        usual.sql(f"drop table if exists {name}")


def rows(session: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(f"select * from {name}").collect())


@pytest.mark.slow
def test_rows_are_inserted_into_a_view(session: Any, tmp_path: Path) -> None:
    """The options of a view reach the writer, so all of SQL's inserts work."""
    place = tmp_path / "t"
    session.sql(
        "create temporary view sales (id bigint, name string, g int) using pyparq "
        f"options (path '{place}', partition_cols 'g', bloom_filters 'id', compression 'zstd')"
    )
    session.sql("insert into sales values (1L, 'a', 1), (2L, 'b', 2)")
    session.sql("insert into sales (g, id) values (1, 3L)")
    session.sql("select 4L id, 'd' name, 2 g").write.insertInto("sales")
    assert rows(session, "sales") == [(1, "a", 1), (2, "b", 2), (3, None, 1), (4, "d", 2)]
    assert {path.parent.name for path in place.rglob("*.parquet")} == {"g=1", "g=2"}
    chunks = [pq.ParquetFile(path).metadata.row_group(0).column(0) for path in place.rglob("*.parquet")]
    assert {chunk.compression for chunk in chunks} == {"ZSTD"}
    with pyparq.ParquetFile(next(place.rglob("*.parquet"))) as file:
        assert file.metadata.row_group(0).column(0).bloom_filter_offset is not None
    session.sql("insert overwrite sales select * from sales where g = 2")  # what is being read
    assert session.read.parquet(str(place)).count() == 2
    session.range(1).selectExpr("9L id", "'z' name", "3 g").write.insertInto("sales", overwrite=True)
    assert [tuple(row) for row in session.read.parquet(str(place)).collect()] == [(9, "z", 3)]
    # A view reads the files that its first query has found.
    with pytest.raises(Exception, match="is gone since this DataFrame was made"):
        rows(session, "sales")


@pytest.mark.slow
def test_a_write_to_a_table_names_its_folder(session: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    one, two = tmp_path / "one", tmp_path / "two"
    for name, place in (("one", one), ("two", two)):
        session.sql(f"create table {name} using pyparq options (path '{place}', schema '{SCHEMA}', compression 'gzip')")
    session.sql(f"insert into one with ('path' = '{one}') values (1L, 'a')")
    session.sql("select 2L id, 'b' name").writeTo("one").option("path", str(one)).append()
    assert rows(session, "one") == [(1, "a"), (2, "b")]
    first = min(one.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert pq.ParquetFile(first).metadata.row_group(0).column(0).compression == "GZIP"  # as the table says
    assert "pyparq.options" not in str(pq.ParquetFile(first).metadata.metadata)
    # The columns come from the table "one": they must not say that the rows go there.
    for insert in (
        lambda: session.sql("insert into two select * from one"),
        lambda: session.sql("insert overwrite two values (7L, 'x')"),
        lambda: session.table("one").write.insertInto("two"),
        lambda: session.table("one").writeTo("two").append(),
    ):
        with pytest.raises(Exception, match="Name its folder"):
            insert()
    assert rows(session, "one") == [(1, "a"), (2, "b")]
    session.sql(f"insert into two with ('path' = '{two}') select * from one")
    session.sql("select 8L id, 'y' name").writeTo("one").option("path", str(one)).overwrite(F.lit(True))
    assert rows(session, "one") == [(8, "y")]
    assert rows(session, "two") == [(1, "a"), (2, "b")]


def test_what_spark_has_no_way_for(session: Any, tmp_path: Path) -> None:
    """Each is an error before anything is written."""
    ten = session.range(10)
    session.sql(f"create table declared (id bigint) using pyparq options (path '{tmp_path / 't'}')")
    refused = {
        "has not told pyparq where this table lies": lambda: session.table("declared").collect(),
        "Name its folder": lambda: session.sql(
            f"create table made using pyparq options (path '{tmp_path / 't'}') as select * from range(3)"
        ),
        "does not support dynamic overwrite": lambda: ten.writeTo("declared").overwritePartitions(),
        "does not support overwrite by filter": lambda: session.sql(
            "insert into declared replace where id = 1 values (1)"
        ),
        "PARTITION clause": lambda: session.sql("insert overwrite declared partition (id = 1) values (2)"),
        "partitioning": lambda: ten.write.format("pyparq").mode("append").partitionBy("id").save(str(tmp_path / "t")),
        "Unsupported data source type for direct query": lambda: session.sql(f"select * from pyparq.`{tmp_path}`"),
    }
    for said, call in refused.items():
        with pytest.raises(Exception, match=said):
            call()
    assert not (tmp_path / "t").exists()
    assert not session.catalog.tableExists("made")
