"""Streams of files over Connect and on a standalone master: late files, small batches, and drivers that are killed.

Each file is read once, and written once: what comes out has the rows that Spark's own reader finds in what came in. By
``pytest -m "cluster and slow"``.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import absent, require
from spark_standalone import standalone
from test_spark_standalone import START

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

STREAM = """
WHERE = os.getcwd()
ps.register(spark)

def begun(most, **trigger):
    stream = spark.readStream.format("pyparq").option("maxFilesPerTrigger", most).load(f"{WHERE}/in")
    writer = stream.writeStream.format("pyparq").option("checkpointLocation", f"{WHERE}/check")
    return writer.option("partition_cols", "day").trigger(**trigger).start(f"{WHERE}/out")

def rows(folder):
    frame = spark.read.parquet(folder)
    assert sorted(frame.columns) == ["day", "id", "s"], frame.columns
    return sorted(tuple(row) for row in frame.select("id", "s", "day").collect())

def same():
    "What came out is what came in, row by row, by Spark's own reader."
    found = rows(f"{WHERE}/out")
    assert found == rows(f"{WHERE}/in"), len(found)
    return len(found)
"""

CONNECT = """
import os, sys
from pyspark.sql import SparkSession
import pyparq.spark as ps
spark = SparkSession.builder.remote("local[2]").getOrCreate()
"""

MASTER = """
spark = session()
"""

FOREVER = """
query = begun(1, processingTime="0.2 seconds")
print("runs", flush=True)
query.awaitTermination()
"""

TO_THE_END = """
query = begun({most}, availableNow=True)
query.awaitTermination()
print("rows", same())
print("all seen")
spark.stop()
"""


def started(code: str, folder: Path, master: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"MASTER": master} if master else {}  # Spark Connect refuses one, also one without a name
    return subprocess.Popen(
        [sys.executable, "-c", code], text=True, cwd=folder, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def ended(code: str, folder: Path, master: str = "") -> dict[str, int]:
    """The batches that a program has done, and the rows that it says at its end."""
    before = batches_done(folder)
    said, _ = started(code, folder, master).communicate()
    assert "all seen" in said, said[-4000:]
    (rows,) = (line.split()[1] for line in said.splitlines() if line.startswith("rows "))
    return {"batches": batches_done(folder) - before, "rows": int(rows)}


def put(folder: Path, name: str, first: int, seconds: float | None = None) -> None:
    """A file of ten rows. ``seconds``: the time of its last change, since 1970."""
    place = folder / "in" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    ids = list(range(first, first + 10))
    pyparq.write_table({"id": ids, "s": [f"{name} {k}" for k in ids]}, folder / "new.parquet")
    if seconds is not None:
        os.utime(folder / "new.parquet", (seconds, seconds))
    (folder / "new.parquet").rename(place)


def batches_done(folder: Path) -> int:
    return len(list((folder / "check" / "commits").glob("[0-9]*")))


def killed_after(process: subprocess.Popen[str], folder: Path, batches: int) -> None:
    """End a driver by ``kill -9`` once so many batches are done."""
    for _ in range(1_200):
        if batches_done(folder) >= batches or process.poll() is not None:
            break
        time.sleep(0.1)
    assert process.poll() is None, process.communicate()[0][-4000:]
    assert batches_done(folder) >= batches
    process.send_signal(signal.SIGKILL)
    process.communicate()


def stopped_and_started_again(folder: Path, program: str, master: str = "") -> None:
    """Ten files one by one, two drivers that are killed within, late files after each, and the rest to the end."""
    for k in range(10):
        put(folder, f"day={10 + k % 3}/{k}.parquet", k * 10)
    killed_after(started(program + STREAM + FOREVER, folder, master), folder, 3)
    put(folder, "day=1/late.parquet", 200, seconds=1_000_000_000)  # an older partition, an older time
    put(folder, "day=10/0-late.parquet", 210, seconds=1_000_000_000)
    killed_after(started(program + STREAM + FOREVER, folder, master), folder, 6)
    put(folder, "day=2/late.parquet", 220, seconds=900_000_000)
    before = batches_done(folder)
    said = ended(program + STREAM + TO_THE_END.format(most=3), folder, master)
    assert said["rows"] == 130
    # What was left, three files at a time; and before that the batch that the kill has cut off, of one file.
    assert said["batches"] <= 1 + -(-(13 - before) // 3), (said, before)
    for name, first in (("day=3/later.parquet", 300), ("day=12/later.parquet", 310)):
        put(folder, name, first, seconds=800_000_000)
    assert ended(program + STREAM + TO_THE_END.format(most=1), folder, master) == {"batches": 2, "rows": 150}
    assert ended(program + STREAM + TO_THE_END.format(most=1), folder, master) == {"batches": 0, "rows": 150}
    assert pyparq.verify(folder / "out").ok
    assert not list((folder / "out").glob("_pyparq_staging*"))


def test_over_connect(tmp_path: Path) -> None:
    require("pyspark")
    if importlib.util.find_spec("grpc") is None or importlib.util.find_spec("grpc_status") is None:
        absent("needs grpcio and grpcio-status for Spark Connect")
    stopped_and_started_again(tmp_path, CONNECT)


def test_on_a_standalone_master(tmp_path: Path) -> None:
    require("pyspark")
    place = tmp_path / "cluster"
    place.mkdir()
    with standalone(place) as cluster:
        stopped_and_started_again(tmp_path, START + MASTER, cluster.url)
