"""Spark, pyparq and an object store: datasets read from S3, and writes that are committed there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import col
from pyparq.errors import TargetExistsError, UnsupportedError, WriteConflictError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


def names(s3: S3, folder: str) -> list[str]:
    """What is in a folder, with names shortened to what is not random."""
    found = (path.removeprefix(f"{BUCKET}/{folder}/") for path in s3.fs().find(f"{BUCKET}/{folder}"))
    return sorted(re.sub("-[0-9a-f]{16}.parquet$", "", path) for path in found)


@pytest.mark.slow
def test_a_dataset_is_written_and_read(spark: Any, ps: Any, s3: S3) -> None:
    frame = spark.range(0, 1_000, 1, 2).selectExpr("id", "id % 2 g")
    url, where = f"s3a://{BUCKET}/t", {"storage_options": s3.options}
    report = ps.write(frame, url, partition_cols=["g"], bloom_filters=["id"], **where)
    assert report.num_rows == 1_000
    parts = ["part-00000-00000", "part-00000-00001", "part-00001-00000", "part-00001-00001"]
    assert sorted(name.split("/")[-1] for name in names(s3, "t")) == ["_SUCCESS", *parts]
    assert {name.split("/")[0] for name in names(s3, "t")} == {"_SUCCESS", "g=0", "g=1"}
    theirs = pads.dataset(f"{BUCKET}/t", filesystem=s3.fs(), format="parquet", partitioning="hive").to_table()
    assert sorted(theirs["id"].to_pylist()) == list(range(1_000))
    for small in (0, 8 << 20):
        ours = ps.read(spark, url, filters="ID in (17, 18, 5000) and g = 1", small=small, **where)
        assert [tuple(row) for row in ours.collect()] == [(17, 1)]
        assert ps.count(spark, url, col("id") >= 600, small=small, **where) == 400
    spark.conf.set("spark.pyparq.planInTasksAbove", "2")
    try:
        assert ps.read(spark, url, small=0, **where).where("id >= 990").count() == 10
        assert ps.count(spark, url, **where) == 1_000
    finally:
        spark.conf.unset("spark.pyparq.planInTasksAbove")
    with pytest.raises(TargetExistsError):
        ps.write(frame, url, **where)
    assert ps.write(frame, url, mode="ignore", **where).files == ()
    ps.write(frame.where("id < 10"), url, mode="overwrite_partitions", partition_cols="g", **where)
    assert ps.count(spark, url, **where) == 10
    ps.write(frame.where("id = 10"), url, mode="append", partition_cols="g", **where)
    again = ps.read(spark, url, small=0, **where)
    assert len(ps.write(again.where("id > 8"), url, mode="overwrite", partition_cols="g", **where).replaced) == 3
    assert sorted(row.id for row in ps.read(spark, url, **where).collect()) == [9, 10]
    ps.rewrite(spark, url, sort_by=["id"], **where)
    assert ps.count(spark, url, **where) == 2
    assert not [name for name in names(s3, "t") if "_pyparq" in name]
    ps.write(frame.limit(0), f"s3://{BUCKET}/empty", **where)
    assert pyparq.dataset(f"s3://{BUCKET}/empty", **where).schema.names == ["id", "g"]


def test_the_sessions_settings_of_the_store_are_used(spark: Any, ps: Any, s3: S3, tmp_path: Path) -> None:
    """Nothing but Spark's own settings: what ``spark.read.parquet`` needs for the same URL."""
    settings = {
        "spark.hadoop.fs.s3a.access.key": s3.options["key"], "spark.hadoop.fs.s3a.secret.key": s3.options["secret"],
        "fs.s3a.endpoint": s3.url.removeprefix("http://"), "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
    }  # fmt: skip
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        url = f"s3a://{BUCKET}/settings"
        ps.write(spark.range(100), url)
        assert ps.count(spark, url, "id < 7") == 7
        assert ps.read(spark, f"{url}/*.parquet", small=0).count() == 100
        assert ps.add_indexes(spark, url, f"{url}-indexed", bloom_filters=["id"]).where("not ok").count() == 0
        assert all(row.ok for row in ps.verify(spark, [url, f"{url}-indexed"]).collect())
        ps.rewrite(spark, url, str(tmp_path / "local"), sort_by=["id"])
        assert pyparq.dataset(tmp_path / "local").count() == 100
        nobody = {"endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "s"}
        with pytest.raises(OSError):  # options that are given come first
            ps.count(spark, url, storage_options=nobody, retries=0)
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.mark.slow
def test_small_files_are_joined(spark: Any, ps: Any, s3: S3) -> None:
    url, where = f"s3a://{BUCKET}/small", {"storage_options": s3.options}
    frame = spark.range(0, 600, 1, 3).selectExpr("id", "600 - id k", "id % 2 g")
    ps.write(frame, url, partition_cols=["g"], **where)
    report = sorted(ps.compact(spark, url, **where).collect())
    assert [(row.partition, row.files_before, row.files_after, row.rows) for row in report] == [
        ("g=0", 3, 1, 300), ("g=1", 3, 1, 300),
    ]  # fmt: skip
    before, size = names(s3, "small"), report[0].bytes_after // 3
    assert len(before) == 3  # and _SUCCESS
    assert ps.compact(spark, url, **where).count() == 0
    assert names(s3, "small") == before
    for order in ({"sort_by": ["k"]}, {"zorder_by": ["id", "k"]}):
        report = ps.compact(spark, url, target_size=size, **order, **where).collect()
        assert [row.rows for row in report] == [300, 300]
        assert all(row.files_after > 1 for row in report)
        theirs = pads.dataset(f"{BUCKET}/small", filesystem=s3.fs(), format="parquet", partitioning="hive").to_table()
        assert sorted(theirs["id"].to_pylist()) == list(range(600))
        assert not [name for name in names(s3, "small") if "_pyparq" in name]
    # The store refuses a copy: what was there stays, and the error is the store's.
    s3.refuse = lambda method, path: method == "PUT" and re.search("/small/g(=|%3D)1/", path) is not None
    try:
        with pytest.raises(PermissionError):
            ps.compact(spark, url, **where)
    finally:
        s3.refuse = lambda method, path: False
    assert sorted(row.id for row in ps.read(spark, url, **where).collect()) == list(range(600))


def test_the_data_source_writes_and_reads(spark: Any, ps: Any, s3: S3, tmp_path: Path) -> None:
    ps.register(spark)
    options = {"storage_options": json.dumps(s3.options)}
    url = f"s3://{BUCKET}/source"
    spark.range(20).write.format("pyparq").mode("append").options(**options).save(url)
    assert spark.read.format("pyparq").options(**options, filters="id > 14").load(url).count() == 5
    stream = spark.readStream.format("rate").load().writeStream.format("pyparq").options(**options)
    query = stream.option("checkpointLocation", str(tmp_path)).start(url)
    with pytest.raises(Exception, match="foreachBatch"):
        query.awaitTermination(200)


def test_a_task_that_fails_leaves_the_old_files(spark: Any, ps: Any, s3: S3) -> None:
    def failing(batches: Any) -> Any:
        yield from batches
        raise RuntimeError("this task was made to fail")

    url, where = f"s3://{BUCKET}/failing", {"storage_options": s3.options}
    ps.write(spark.range(10), url, **where)
    before = names(s3, "failing")
    with pytest.raises(Exception, match="made to fail"):
        ps.write(spark.range(99).mapInArrow(failing, "id long"), url, mode="overwrite", **where)
    assert names(s3, "failing") == before
    assert ps.count(spark, url, **where) == 10


def test_a_commit_that_is_refused(ps: Any, s3: S3) -> None:
    """The store refuses a copy: what was placed goes. It refuses a removal: what was placed stays."""
    import pyarrow as pa

    from pyparq.spark.writing import WriteRequest, abort, commit, write_task

    schema = pa.schema([("id", pa.int64())])
    url = f"s3://{BUCKET}/refused"

    def job(mode: str, *ids: int) -> tuple[Any, list[Any]]:
        made = WriteRequest(url, mode, schema, (), {}, s3.options).begun()
        batches = [pa.RecordBatch.from_pydict({"id": [i]}, schema) for i in ids]
        return made, [write_task([batch], made, k, f"task-{k}") for k, batch in enumerate(batches)]

    def ids() -> list[int]:
        return sorted(pyparq.read_table(url, storage_options=s3.options)["id"].to_pylist())

    commit(*job("error", 1, 2))
    assert ids() == [1, 2]
    made, replies = job("overwrite", 3, 4)
    s3.refuse = lambda method, path: method == "PUT" and "part-00001" in path
    try:
        with pytest.raises(PermissionError):
            commit(made, replies)
    finally:
        s3.refuse = lambda method, path: False
    assert ids() == [1, 2]
    made, replies = job("overwrite", 3, 4)
    s3.refuse = lambda method, path: method == "DELETE" and "part-00000" in path
    try:
        with pytest.raises(PermissionError):
            commit(made, replies)
    finally:
        s3.refuse = lambda method, path: False
    assert set(ids()) >= {3, 4}
    abort(made.staging, s3.options)
    with pytest.raises(WriteConflictError, match="gone"):
        write_task([pa.RecordBatch.from_pydict({"id": [5]}, schema)], made, 2, "task-9")
    with pytest.raises(WriteConflictError, match="gone"):
        commit(made, replies)


@pytest.mark.slow
def test_rows_are_changed_in_a_busy_store(spark: Any, ps: Any, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is answered by 503 at first. Then the store refuses what is new, and nothing has changed."""
    url, where = f"s3a://{BUCKET}/busy", {"storage_options": s3.options}
    frame = spark.range(0, 600, 1, 2).selectExpr("id", "id * 2 as v", "cast(id % 2 as int) g")
    ps.write(frame, url, partition_cols=["g"], **where)
    seen = set[tuple[str, str]]()

    def once(method: str, path: str) -> str:
        first = (method, path) not in seen
        seen.add((method, path))
        return "503" if first and "busy" in path and method in ("PUT", "GET", "HEAD") else ""

    monkeypatch.setattr(s3, "script", once)
    ps.delete(spark, url, keys=spark.range(0, 600, 3), **where)
    ps.update(spark, url, "id = 1", {"v": 0}, **where)
    news = spark.range(598, 604).selectExpr("id", "id * 3 as v", "cast(id % 2 as int) g")
    report = ps.upsert(spark, url, news, "id", **where).collect()
    assert any(method == "PUT" for method, _ in seen)
    monkeypatch.undo()
    wanted = {k: k * 2 for k in range(600) if k % 3} | {1: 0} | {k: k * 3 for k in range(598, 604)}
    assert sum(row.rows_added for row in report) == 4
    assert {row.id: row.v for row in ps.read(spark, url, **where).collect()} == wanted
    assert not [name for name in names(s3, "busy") if "_pyparq" in name]
    before = names(s3, "busy")
    monkeypatch.setattr(s3, "refuse", lambda method, path: method in ("PUT", "POST") and "busy" in path)
    with pytest.raises(Exception, match=r"(?i)denied|permission"):
        ps.delete(spark, url, "id < 100", **where)
    monkeypatch.undo()
    assert names(s3, "busy") == before
    assert ps.count(spark, url, **where) == len(wanted)


def test_targets_that_are_refused(spark: Any, ps: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="memory of its own"):
        ps.write(spark.range(3), "memory://t")
    ps.write(spark.range(3), tmp_path / "t", storage_options={"key": "k"})  # of no use for a local folder, and no harm
    assert ps.count(spark, tmp_path / "t", storage_options={"key": "k"}) == 3
