"""A standalone master and two workers: speculation, and executors that are killed. By ``pytest -m cluster``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import require
from spark_standalone import Cluster, standalone

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

START = """
import os, sys, time
from pyspark.sql import SparkSession
import pyparq.spark as ps

def session(**settings):
    builder = SparkSession.builder.master(os.environ["MASTER"]).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.executor.memory", "512m").config("spark.executor.cores", "1")
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made

def same(spark, folder, wanted):
    own = sorted(tuple(row) for row in spark.read.parquet(folder).collect())
    ours = sorted(tuple(row) for row in ps.read(spark, folder, small=0).collect())
    assert own == ours == wanted, (len(own), len(ours), len(wanted))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require("pyspark")
    with standalone(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def started(cluster: Cluster, code: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "MASTER": cluster.url, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, "-c", START + code], text=True, cwd=folder, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.slow
def test_tasks_that_run_twice_by_speculation(cluster: Cluster, tmp_path: Path) -> None:
    """The first attempt of some tasks is slow, so that Spark starts a second one. Each row is there once."""
    work = started(cluster, """
spark = session(spark_speculation="true", spark_speculation_interval="100ms", spark_speculation_multiplier="1.1",
                spark_speculation_quantile="0.3")
marks = os.getcwd() + "/marks"
os.makedirs(marks, exist_ok=True)

def slow(batches):
    import os, time
    from pyspark import TaskContext
    context = TaskContext.get()
    open(f"{marks}/{context.partitionId()}-{context.taskAttemptId()}", "w").close()
    for batch in batches:
        yield batch
    if context.partitionId() % 4 == 3 and context.attemptNumber() == 0:
        time.sleep(6)

for k in range(3):
    rows = spark.range(k * 800, k * 800 + 800, 1, 8).mapInArrow(slow, "id long")
    ps.write(rows, os.getcwd() + "/t", mode="append", max_rows_per_file=30)
same(spark, os.getcwd() + "/t", [(k,) for k in range(2400)])
ps.compact(spark, os.getcwd() + "/t")
same(spark, os.getcwd() + "/t", [(k,) for k in range(2400)])
print("attempts", len(os.listdir(marks)))
print("all seen")
spark.stop()
""", tmp_path)  # fmt: skip
    said, _ = work.communicate()
    assert "all seen" in said, said[-3000:]
    assert len(list((tmp_path / "marks").iterdir())) > 24, "no task ran twice"
    assert sorted(pq.read_table(tmp_path / "t")["id"].to_pylist()) == list(range(2400))
    assert not list((tmp_path / "t").glob("_pyparq*"))


@pytest.mark.slow
def test_executors_that_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """Thirty of them, while writes, compactions and reads run: a job ends with all of its rows, or with none."""
    rounds = 12
    work = started(cluster, f"""
spark = session(spark_task_maxFailures="8", spark_stage_maxConsecutiveAttempts="8")
spark.sparkContext.setLogLevel("OFF")
folder, wanted, failed = os.getcwd() + "/t", [], 0
def slow(batches):
    import time
    for batch in batches:
        time.sleep(0.5)
        yield batch
for k in range({rounds}):
    rows = [(i,) for i in range(k * 400, k * 400 + 400)]
    try:
        ps.write(spark.range(k * 400, k * 400 + 400, 1, 4).mapInArrow(slow, "id long"), folder, mode="append")
        wanted += rows
    except Exception as error:
        failed += 1
        print("failed write:", str(error)[:200])
    try:
        if k % 3 == 2:
            ps.compact(spark, folder)
        ps.count(spark, folder, "id % 2 = 0", residual=True)
    except Exception as error:
        failed += 1
        print("failed job:", str(error)[:200])
    print("round", k, flush=True)
open("done", "w").close()
time.sleep(3)
same(spark, folder, wanted)
print("jobs that failed", failed)
print("all seen")
spark.stop()
""", tmp_path)  # fmt: skip
    killed, ended = 0, threading.Event()

    def killer() -> None:
        nonlocal killed
        while killed < 30 and not (tmp_path / "done").exists() and not ended.wait(1.0 + 0.37 * (killed % 5)):
            killed += cluster.kill_executor()

    thread = threading.Thread(target=killer)
    thread.start()
    said, _ = work.communicate()
    ended.set()
    thread.join()
    assert "all seen" in said, said[-3000:]
    assert killed >= 10, (killed, said)
    assert not list((tmp_path / "t").glob("_pyparq*"))
    print(f"{killed} executors killed", [line for line in said.splitlines() if line.startswith("jobs that")])
