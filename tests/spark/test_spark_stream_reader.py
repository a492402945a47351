"""Streams from folders: ``readStream.format("pyparq")``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq import col

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any, ps: Any) -> None:
    ps.register(spark)


def run(
    spark: Any, folder: Path, name: str = "", into: list[list[int]] | None = None, **options: Any
) -> list[int]:  # fmt: skip
    """What has come since the last call, by a query that ends then. Rows of each batch, in one list of ids. ``into``
    takes the batches."""
    given: list[list[int]] = [] if into is None else into

    def keep(batch: Any, number: int) -> None:
        given.append(sorted(row.id for row in batch.collect()))

    stream = spark.readStream.format("pyparq").options(**options).load(str(folder / "in"))
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / f"check{name}"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [k for batch in given for k in batch]


def put(folder: Path, name: str, *ids: int, **more: Any) -> None:
    (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
    pyparq.write_table(pa.table({"id": list(ids), **more}), folder / "in" / name)


@pytest.mark.slow
def test_files_that_arrive_are_read_once(spark: Any, tmp_path: Path) -> None:
    put(tmp_path, "b.parquet", 1, 2)
    put(tmp_path, "a.parquet", 3)
    assert run(spark, tmp_path) == [1, 2, 3]
    assert run(spark, tmp_path) == []
    put(tmp_path, "0.parquet", 4)  # its name comes before the others
    put(tmp_path, "_hidden.parquet", 99)
    assert run(spark, tmp_path, maxFilesPerTrigger=1) == [4]
    put(tmp_path, "c.parquet", 5)
    put(tmp_path, "d.parquet", 6)
    # Spark died after the last batch was made, and before it wrote that down: the batch comes again.
    last = max(tmp_path.glob("check/commits/[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    assert run(spark, tmp_path, maxFilesPerTrigger=1) == [4, 5, 6]
    assert run(spark, tmp_path, "-other") == [1, 2, 3, 4, 5, 6]
    assert run(spark, tmp_path, "-filtered", filters="id > 4") == [5, 6]


@pytest.mark.slow
def test_files_that_come_late(spark: Any, tmp_path: Path) -> None:
    """With older times, in older partitions and older folders, and while the query was stopped: each is read once."""
    put(tmp_path, "day=5/a.parquet", 1)
    put(tmp_path, "day=7/b.parquet", 2)
    assert run(spark, tmp_path, maxFilesPerTrigger=1) == [1, 2]
    put(tmp_path, "day=1/late.parquet", 3)
    put(tmp_path, "day=5/old.parquet", 4)
    os.utime(tmp_path / "in" / "day=1", (1_000_000_000,) * 2)
    for name in ("day=1/late.parquet", "day=5/old.parquet"):
        os.utime(tmp_path / "in" / name, (1_000_000_000,) * 2)
    pyparq.write_table({"id": [5]}, tmp_path / "elsewhere.parquet")
    shutil.copy2(tmp_path / "in" / "day=1" / "late.parquet", tmp_path / "copy.parquet")
    os.utime(tmp_path / "elsewhere.parquet", (900_000_000,) * 2)
    os.link(tmp_path / "elsewhere.parquet", tmp_path / "in" / "day=7" / "0.parquet")
    batches = list[list[int]]()
    assert sorted(run(spark, tmp_path, into=batches, maxFilesPerTrigger=2)) == [3, 4, 5]
    assert [len(batch) for batch in batches] == [2, 1]
    (tmp_path / "copy.parquet").rename(tmp_path / "in" / "day=5" / "copy.parquet")  # the rows of another file again
    os.utime(tmp_path / "in" / "day=5" / "a.parquet", (1_500_000_000,) * 2)  # read long ago
    assert run(spark, tmp_path) == [3]
    assert run(spark, tmp_path) == []
    own = sorted(row.id for row in spark.read.parquet(str(tmp_path / "in")).collect())
    assert run(spark, tmp_path, "-again") == own == [1, 2, 3, 3, 4, 5]


@pytest.mark.slow
def test_partition_folders_and_a_stream_to_a_stream(spark: Any, tmp_path: Path) -> None:
    put(tmp_path, "day=7/a.parquet", 1)
    put(tmp_path, "day=x/b.parquet", 2)
    stream = spark.readStream.format("pyparq").load(str(tmp_path / "in"))
    assert stream.isStreaming
    assert stream.schema.simpleString() == "struct<id:bigint,day:string>"
    put(tmp_path, "day=8/c.parquet", 3)
    for _ in range(2):
        stream = spark.readStream.format("pyparq").load(str(tmp_path / "in"))
        writer = stream.writeStream.format("pyparq").option("checkpointLocation", str(tmp_path / "check"))
        writer.option("partition_cols", "day").trigger(availableNow=True).start(
            str(tmp_path / "out")
        ).awaitTermination()
    found = pyparq.dataset(tmp_path / "out").read().to_pylist()
    assert sorted((row["id"], row["day"]) for row in found) == [(1, "7"), (2, "x"), (3, "8")]
    assert pyparq.read_table(tmp_path / "out", filters=col("day") == "7")["id"].to_pylist() == [1]


@pytest.mark.slow
def test_what_a_stream_refuses(spark: Any, tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", 1)
    with pytest.raises(Exception, match="on_error"):
        run(spark, tmp_path, on_error="skip")
    put(tmp_path, "b.parquet", 2)
    assert run(spark, tmp_path, "2") == [1, 2]
    (tmp_path / "in" / "c.parquet").write_bytes(b"no Parquet file")
    with pytest.raises(Exception, match=r"c\.parquet"):
        run(spark, tmp_path, "2")
    put(tmp_path, "c.parquet", 3)
    assert run(spark, tmp_path, "2") == [3]
