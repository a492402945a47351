"""Each public function of ``pyparq.spark``, with what it must do in any session: classic, over Connect, on a cluster.

``run(spark, where)`` calls them all. What they leave is compared with Spark's own reader, row by row. Nothing here
looks at files: a Connect client may not see them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Any

import pytest
from pyspark.errors import AnalysisException

import pyparq
import pyparq.spark as ps
from pyparq import col

ROWS = 1_000


def made(spark: Any, place: str) -> str:
    """Four files by Spark, each with a range of ids."""
    frame = spark.range(0, ROWS, 1, 4).selectExpr("id", "concat('n', id) name", "id % 2 = 0 even")
    frame.write.parquet(place)
    return place


def unchanged(spark: Any, where: str) -> str:
    """The same for functions that leave their source as it is: one folder for all of them."""
    place = where.rpartition("/")[0] + "/unchanged"
    with suppress(AnalysisException):  # it is there
        made(spark, place)
    return place


def same(spark: Any, place: str, ids: Any = None) -> int:
    """Rows are those that Spark's own reader gives, with these ids. Returns their number."""
    frame = spark.read.parquet(place)
    own = sorted(map(str, frame.collect()))
    ours = ps.read(spark, place, engine="pyparq", small=0).select(*frame.columns).collect()
    assert sorted(map(str, ours)) == own, place
    assert ids is None or sorted(row.id for row in ours) == list(ids), place
    return len(own)


def raises(kind: Any, text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value), caught.value


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(spark: Any, where: str) -> None:
    source = unchanged(spark, where)
    assert same(spark, source, range(ROWS)) == ROWS
    for above in ("2000", "2"):
        spark.conf.set("spark.pyparq.planInTasksAbove", above)
        for small in (0, 8 << 20):
            frame = ps.read(spark, source, filters="ID < 10 or id >= 995", small=small)
            assert sorted(row.id for row in frame.collect()) == [*range(10), *range(995, ROWS)]
        assert ps.read(spark, source, filters=col("id") < 0).count() == 0
        for engine in ("spark", "pyparq", "auto"):
            frame = ps.read(spark, source, engine=engine, filters=col("id") >= 990, columns=["name"])
            assert sorted(row.name for row in frame.collect()) == [f"n{k}" for k in range(990, ROWS)], engine
        assert ps.read(spark, source, columns=["name"], small=0).where("name > 'n99'").count() == 10
        assert len(ps.read(spark, source, engine="spark").inputFiles()) == 4
        with redirect_stdout(io.StringIO()) as shown:
            ps.read(spark, source, engine="pyparq", small=0, filters="id < 300").explain()
        assert "where id < 300: 2 of 4 files left, 2 " in shown.getvalue(), shown.getvalue()
    spark.conf.unset("spark.pyparq.planInTasksAbove")
    raises(pyparq.ColumnNotFoundError, "name", lambda: ps.read(spark, source, columns=["nome"]))
    raises(FileNotFoundError, "nowhere", lambda: ps.read(spark, source + "/nowhere"))


def count(spark: Any, where: str) -> None:
    from pyspark.sql import functions as F

    source = unchanged(spark, where)
    for above in ("2000", "2"):
        spark.conf.set("spark.pyparq.planInTasksAbove", above)
        assert ps.count(spark, source) == ROWS
        assert ps.count(spark, source, col("id") >= 600, small=0) == 400
        assert ps.count(spark, source, col("id") < 3) == 3
    spark.conf.unset("spark.pyparq.planInTasksAbove")
    for some in (F.col("id") < 7, F.expr("id < 7"), ~(F.col("`id`") >= F.lit(7)), F.col("id").isin(*range(7))):
        assert ps.count(spark, source, some) == 7, some
    assert ps.count(spark, source, F.col("id") + 1 < 8, residual=True) == 7


def register(spark: Any, where: str) -> None:
    source = unchanged(spark, where)
    ps.register(spark)
    loaded = spark.read.format("pyparq").option("filters", "id < 5").load(source)
    assert sorted(row.id for row in loaded.collect()) == list(range(5))
    for _ in range(2):
        loaded.write.format("pyparq").mode("append").save(where + "/out")
    assert same(spark, where + "/out") == 10


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(spark: Any, where: str) -> None:
    frame = ps.read(spark, unchanged(spark, where), small=0)
    report = ps.write(frame, where + "/out", partition_cols=["even"], bloom_filters=["id"])
    assert report.num_rows == ROWS
    raises(Exception, "not empty", lambda: ps.write(spark.range(3), where + "/out"))
    ps.write(frame.where("id < 10"), where + "/out", mode="overwrite_partitions", partition_cols=["even"])
    assert ps.count(spark, where + "/out") == 10
    ps.write(frame.where("id >= 10"), where + "/out", mode="append", partition_cols=["even"])
    same(spark, where + "/out", range(ROWS))


def rewrite(spark: Any, where: str) -> None:
    source = unchanged(spark, where)
    assert ps.rewrite(spark, source, where + "/out", sort_by=["id"], partitions=2).count() == 2
    assert ps.rewrite(spark, source, where + "/one", columns=["id"], partitions=1).count() == 1
    ps.rewrite(spark, where + "/out", compression="zstd", bloom_filters=["name"])
    same(spark, where + "/out", range(ROWS))


def compact(spark: Any, where: str) -> None:
    folder = where + "/t"
    for k in range(3):
        frame = spark.range(k * 100, k * 100 + 100).selectExpr("id", "id % 2 g")
        ps.write(frame, folder, mode="append", partition_cols=["g"])
    joined = sorted(ps.compact(spark, folder).collect())
    assert [(r.partition, r.files_after, r.rows) for r in joined] == [("g=0", 1, 150), ("g=1", 1, 150)], joined
    assert all(r.files_before >= 3 for r in joined)
    assert ps.compact(spark, folder).count() == 0
    for order in ({"sort_by": ["id"]}, {"zorder_by": ["id"]}):
        parted = ps.compact(spark, folder, target_size=joined[0].bytes_after // 3, **order).collect()
        assert all(r.files_after > 1 and r.rows == 150 for r in parted), parted
    same(spark, folder, range(300))


# ---- files in place --------------------------------------------------------------------------------------------------


def add_indexes(spark: Any, where: str) -> None:
    source, calls = made(spark, where + "/t"), list[int]()
    rows = ps.add_indexes(
        spark, source, bloom_filters=["id"], progress=lambda done, total: calls.append(done)
    ).collect()
    assert len(rows) == 4
    assert all(row.ok and "bloom_filter: id" in row.added for row in rows), rows
    assert calls[-1] == 4
    assert all(not row.added for row in ps.add_indexes(spark, source, bloom_filters=["id"]).collect())
    same(spark, source, range(ROWS))


def verify(spark: Any, where: str) -> None:
    rows = ps.verify(spark, unchanged(spark, where)).collect()
    assert sum(row.rows for row in rows) == ROWS
    assert all(row.ok for row in rows)


def index_dataset(spark: Any, where: str) -> None:
    source = made(spark, where + "/t")
    found = ps.index_dataset(spark, source, ["id", "name"])
    assert (found.files, found.files_read, found.entries) == (4, 4, 2 * ROWS), found
    assert ps.index_dataset(spark, source).files_read == 0
    for filters, rows in (
        (col("id") == 7, 1),
        (col("name") == "n7", 1),
        (col("id").isin([3, 999]), 2),
        (col("id") < 0, 0),
    ):
        assert ps.read(spark, source, filters=filters).count() == rows == ps.count(spark, source, filters), filters


# ---- rows in place ---------------------------------------------------------------------------------------------------


def delete(spark: Any, where: str) -> None:
    source = made(spark, where + "/t")
    dry = ps.delete(spark, source, "id < 10", dry_run=True).collect()
    assert ps.count(spark, source) == ROWS
    done = ps.delete(spark, source, "id < 10").collect()
    assert sum(row.rows_deleted for row in dry) == sum(row.rows_deleted for row in done) == 10
    assert sum(row.rows_deleted for row in ps.delete(spark, source, keys=spark.range(5, 40)).collect()) == 30
    pairs = spark.createDataFrame([(60, "n60"), (61, "n0"), (62, None)], "id long, name string")
    assert sum(row.rows_deleted for row in ps.delete(spark, source, keys=pairs).collect()) == 1
    same(spark, source, [*range(40, 60), *range(61, ROWS)])


def update(spark: Any, where: str) -> None:
    from pyspark.sql import functions as F

    source = made(spark, where + "/t")
    done = ps.update(spark, source, col("id") == 50, {"name": "other"}).collect()
    assert sum(row.rows_updated for row in done) == 1
    assert ps.count(spark, source, col("name") == "other") == 1
    ps.update(spark, source, "id = 70", {"name": F.upper("name")}, expressions={"id": "id + 5000"})
    assert ps.count(spark, source, "id = 5070 and name = 'N70'") == 1
    same(spark, source, [*range(70), *range(71, ROWS), 5070])


def upsert(spark: Any, where: str) -> None:
    source = made(spark, where + "/t")
    news = spark.range(990, 1010).selectExpr("'new' as name", "id", "id % 2 = 1 as even")
    done = ps.upsert(spark, source, news, ["id"]).collect()
    assert sum(row.rows_added + row.rows_updated for row in done) == 20, done
    assert sorted(row.id for row in ps.read(spark, source, filters="name = 'new'").collect()) == list(range(990, 1010))
    raises(pyparq.DataError, "same key", lambda: ps.upsert(spark, source, news.union(news), ["id"]))
    same(spark, source, range(1010))


CASES: dict[str, Callable[[Any, str], None]] = {
    "add_indexes": add_indexes, "compact": compact, "count": count, "delete": delete, "index_dataset": index_dataset,
    "read": read, "register": register, "rewrite": rewrite, "update": update, "upsert": upsert, "verify": verify,
    "write": write,
}  # fmt: skip


def run(spark: Any, where: str) -> None:
    """Call all functions. Each has a folder of its own below ``where``."""
    assert sorted(CASES) == sorted(ps.__all__)
    for name, case in CASES.items():
        case(spark, f"{where}/{name}")
        print("seen:", name, flush=True)
    print("all seen")
