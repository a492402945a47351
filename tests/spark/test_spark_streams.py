"""Streams: ``writeStream.format("pyparq")``, and batches that a function writes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq.errors import DataError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


def feed(spark: Any, folder: Path, *ranges: tuple[int, int]) -> None:
    """A file for each range of numbers: a batch each."""
    for first, last in ranges:
        spark.range(first, last).coalesce(1).write.mode("append").parquet(str(folder / "in"))


def run(
    spark: Any, folder: Path, change: Callable[[Any], Any] = lambda df: df, mode: str = "append", **options: str
) -> Any:
    """All that has come, a file at a time, from where the query stopped."""
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = change(stream).writeStream.format("pyparq").outputMode(mode).trigger(availableNow=True)
    given = {"checkpointLocation": str(folder / "check"), **options}
    query = writer.options(**given).start(str(folder / "out"))
    query.awaitTermination()
    return query


def ids(folder: Path) -> list[int]:
    return sorted(pyparq.read_table(folder / "out", ["id"])["id"].to_pylist())


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any, ps: Any) -> None:
    ps.register(spark)


def test_a_query_that_is_stopped_and_started_again(spark: Any, tmp_path: Path) -> None:
    feed(spark, tmp_path, (0, 10), (10, 20))
    options = {"partition_cols": "even", "bloom_filters": '["id"]'}
    query = run(spark, tmp_path, lambda df: df.selectExpr("id", "id % 2 = 0 even"), **options)
    assert ids(tmp_path) == list(range(20))
    files = sorted(tmp_path.glob("out/even=*/*.parquet"))
    assert [file.name.split("-part-")[0] for file in files] == ["batch-00000000", "batch-00000001"] * 2
    assert all(str(query.id) in file.name for file in files)
    with pyparq.ParquetFile(files[0]) as opened:
        assert opened.bloom_filter(0, "id") is not None
    feed(spark, tmp_path, (20, 30))
    run(spark, tmp_path, lambda df: df.selectExpr("id", "id % 2 = 0 even"), **options)
    assert ids(tmp_path) == list(range(30))
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()) == list(range(30))
    assert not list(tmp_path.glob("out/_pyparq_staging*"))


def test_a_batch_that_spark_repeats_is_not_written_again(spark: Any, tmp_path: Path) -> None:
    """Spark died after the commit of the last batch, and before it wrote that down."""
    feed(spark, tmp_path, (0, 10), (10, 20))
    query = run(spark, tmp_path)
    before = sorted(tmp_path.glob("out/*.parquet"))
    (tmp_path / "check" / "commits" / "1").unlink()
    (tmp_path / "check" / "commits" / ".1.crc").unlink(missing_ok=True)
    feed(spark, tmp_path, (20, 25))
    again = run(spark, tmp_path)
    assert again.id == query.id
    assert [progress["batchId"] for progress in again.recentProgress if progress["numInputRows"]] == [1, 2]
    assert ids(tmp_path) == list(range(25))
    assert set(before) < set(tmp_path.glob("out/*.parquet"))
    (record,) = tmp_path.glob("out/_pyparq_stream-*/2.json")
    assert [tmp_path / "out" / name for name in json.loads(record.read_text())["files"]] == sorted(
        set(tmp_path.glob("out/*.parquet")) - set(before)
    )


def test_a_batch_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    flag = tmp_path / "fail"

    def failing(batches: Any) -> Any:
        yield from batches
        if flag.exists():
            raise RuntimeError("this task was made to fail")

    feed(spark, tmp_path, (0, 10))
    run(spark, tmp_path, lambda df: df.mapInArrow(failing, "id long"))
    feed(spark, tmp_path, (10, 20))
    flag.touch()
    before = sorted(tmp_path.glob("out/**/*"))
    with pytest.raises(Exception, match="made to fail"):
        run(spark, tmp_path, lambda df: df.mapInArrow(failing, "id long"))
    assert sorted(tmp_path.glob("out/**/*")) == before
    flag.unlink()
    run(spark, tmp_path, lambda df: df.mapInArrow(failing, "id long"))
    assert ids(tmp_path) == list(range(20))


def test_what_a_crash_left_goes_with_the_next_batch(spark: Any, tmp_path: Path) -> None:
    """A process that died before the commit of its batch: nobody aborted it."""
    from pyspark.sql.types import StructType

    from pyparq.spark.source_writers import StreamWriter

    options = {"path": str(tmp_path / "out"), "checkpointLocation": str(tmp_path / "check")}
    schema = StructType.fromDDL("id long")
    pickle.dumps(StreamWriter(options, schema, False).__getstate__())
    other = StreamWriter({**options, "checkpointLocation": "elsewhere"}, schema, False)
    other.__getstate__()
    assert len(list(tmp_path.glob("out/_pyparq_staging*"))) == 2
    feed(spark, tmp_path, (0, 10))
    run(spark, tmp_path)
    assert len(list(tmp_path.glob("out/_pyparq_staging*"))) == 1  # of the other query, which may be at work
    other.abort([], 0)
    assert not list(tmp_path.glob("out/_pyparq_staging*"))
    assert ids(tmp_path) == list(range(10))


def test_each_batch_of_a_complete_result_replaces_the_last(spark: Any, tmp_path: Path) -> None:
    feed(spark, tmp_path, (0, 10), (10, 30))
    run(spark, tmp_path, lambda df: df.groupBy().count().toDF("id"), mode="complete")
    assert ids(tmp_path) == [30]


def test_committing_twice(tmp_path: Path, ps: Any) -> None:
    """With the messages of the same attempt, and with those of another one whose tasks cut the rows otherwise."""
    from pyparq.spark.source_writers import StreamReply, commit_batch
    from pyparq.spark.writing import WriteRequest, write_task

    schema = pa.schema([("id", pa.int64())])

    def replies(*parts: list[int]) -> list[StreamReply]:
        job = WriteRequest(str(tmp_path / "out"), "append", schema, (), {}).begun()
        assert job is not None
        batches = [pa.RecordBatch.from_pydict({"id": part}, schema) for part in parts]
        return [StreamReply("q", job, write_task([b], job, k, f"task-{k}")) for k, b in enumerate(batches)]

    first = replies([1, 2], [3])
    for _ in range(2):
        commit_batch(pickle.loads(pickle.dumps(first)), 7)
        assert ids(tmp_path) == [1, 2, 3]
    commit_batch(replies([1], [2], [3]), 7)
    assert ids(tmp_path) == [1, 2, 3]
    assert not list(tmp_path.glob("out/_pyparq_staging*"))
    commit_batch(replies([4]), 8)
    assert ids(tmp_path) == [1, 2, 3, 4]
    with pytest.raises(DataError, match="gave no answer"):
        commit_batch([*replies([5]), None], 9)
    commit_batch([], 10)
    assert ids(tmp_path) == [1, 2, 3, 4]


def test_wrong_options(spark: Any, tmp_path: Path) -> None:
    feed(spark, tmp_path, (0, 10))
    with pytest.raises(Exception, match="compresion"):
        run(spark, tmp_path, compresion="zstd")
    assert not (tmp_path / "out").exists()


def test_batches_written_by_a_function_of_the_user(spark: Any, ps: Any, tmp_path: Path) -> None:
    """As docs/spark.md writes it: a batch that is repeated replaces itself."""
    for k in range(3):
        spark.range(k * 10, k * 10 + 10).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))

    def save(batch: Any, batch_id: int) -> None:
        ps.write(batch, tmp_path / "out" / f"batch={batch_id}", mode="overwrite")

    def run() -> None:
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        options = {"checkpointLocation": str(tmp_path / "check")}
        stream.writeStream.foreachBatch(save).options(**options).trigger(availableNow=True).start().awaitTermination()

    run()
    assert sorted(pyparq.read_table(tmp_path / "out", ["id"])["id"].to_pylist()) == list(range(30))
    assert len(list((tmp_path / "out").iterdir())) == 3
    spark.range(30, 35).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    run()
    save(spark.range(30, 35), 3)  # as after a crash between the write and the stream's own record
    assert sorted(pyparq.read_table(tmp_path / "out", ["id"])["id"].to_pylist()) == list(range(35))
