"""The same code over Spark Connect, and on workers in processes of their own. Run them by ``pytest -m cluster``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import absent, require

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

WORK = """
import os, sys
import pyparq
import pyparq.spark as ps
from pyparq import col

def compact(spark, folder):
    for k in range(3):
        frame = spark.range(k * 100, k * 100 + 100).selectExpr("id", "id % 2 g")
        ps.write(frame, folder, mode="append", partition_cols=["g"])
    joined = sorted(ps.compact(spark, folder).collect())
    assert [(r.partition, r.files_after, r.rows) for r in joined] == [("g=0", 1, 150), ("g=1", 1, 150)], joined
    assert all(r.files_before >= 3 for r in joined) and ps.compact(spark, folder).count() == 0
    for order in ({"sort_by": ["id"]}, {"zorder_by": ["id"]}):
        parted = ps.compact(spark, folder, target_size=joined[0].bytes_after // 3, **order).collect()
        assert all(r.files_after > 1 and r.rows == 150 for r in parted), parted
        assert sorted(r.id for r in ps.read(spark, folder, small=0).collect()) == list(range(300))

def change_rows(spark, where):
    from pyspark.sql import functions as F
    assert ps.delete(spark, where, "id < 10", dry_run=True).count() == ps.delete(spark, where, "id < 10").count() == 2
    assert sum(row.rows_deleted for row in ps.delete(spark, where, keys=spark.range(5, 40)).collect()) == 30
    assert sum(row.rows_updated for row in ps.update(spark, where, col("id") == 50, {"name": "other"}).collect()) == 1
    assert ps.count(spark, where) == 960 and ps.count(spark, where, col("name") == "other") == 1
    pairs = spark.createDataFrame([(60, "n60"), (61, "n0"), (62, None)], "id long, name string")
    assert sum(row.rows_deleted for row in ps.delete(spark, where, keys=pairs).collect()) == 1
    done = ps.update(spark, where, "id = 70", {"name": F.upper("name")}, expressions={"id": "id + 5000"}).collect()
    assert sum(row.rows_updated for row in done) == 1
    assert ps.count(spark, where, "id = 5070 and name = 'N70'") == 1
    news = spark.range(990, 1010).selectExpr("'new' as name", "id", "id % 2 = 1 as even")
    done = ps.upsert(spark, where, news, ["id"]).collect()
    assert sum(r.rows_added + r.rows_updated for r in done) == 20 and ps.count(spark, where) == 969, done
    assert sorted(r.id for r in ps.read(spark, where, filters="name = 'new'").collect()) == list(range(990, 1010))
    try:
        ps.upsert(spark, where, news.union(news), ["id"])
        raise SystemExit("the keys are there twice")
    except pyparq.DataError as error:
        assert "same key" in str(error), error


def everything(spark, source):
    frame = ps.read(spark, source, filters=col("id") < 10)
    assert sorted(row.id for row in frame.collect()) == list(range(10))
    frame = ps.read(spark, source, columns=["id", "name"], small=0)
    assert frame.count() == 1_000 and frame.where("id >= 990").count() == 10
    assert ps.read(spark, source, filters=col("id") < 0).count() == 0
    for engine in ("spark", "pyparq", "auto"):
        frame = ps.read(spark, source, engine=engine, filters=col("id") >= 990, columns=["name"])
        assert sorted(row.name for row in frame.collect()) == [f"n{k}" for k in range(990, 1_000)], engine
    assert len(ps.read(spark, source, engine="spark").inputFiles()) == 4
    assert ps.count(spark, source) == 1_000
    assert ps.count(spark, source, col("id") >= 600, small=0) == 400
    from pyspark.sql import functions as F
    for some in (F.col("id") < 7, F.expr("id < 7"), ~(F.col("`id`") >= F.lit(7)), F.col("id").isin(*range(7))):
        assert ps.count(spark, source, some) == 7, some
    assert ps.count(spark, source, F.col("id") + 1 < 8, residual=True) == 7
    rows = ps.add_indexes(spark, source, bloom_filters=["id"], progress=lambda done, total: None).collect()
    assert len(rows) == 4 and all(row.ok and "bloom_filter: id" in row.added for row in rows), rows
    assert all(row.ok for row in ps.verify(spark, source).collect())
    frame = ps.read(spark, source, small=0)
    report = ps.write(frame, WHERE + "/written", partition_cols=["even"], bloom_filters=["id"])
    assert report.num_rows == 1_000 and ps.count(spark, WHERE + "/written") == 1_000
    try:
        ps.write(spark.range(3), WHERE + "/written")
        raise SystemExit("the folder was not empty")
    except Exception as error:
        assert "not empty" in str(error), error
    assert ps.rewrite(spark, WHERE + "/written", WHERE + "/again", sort_by=["id"]).count() == 2
    change_rows(spark, WHERE + "/again")
    compact(spark, WHERE + "/small")
    ps.register(spark)
    loaded = spark.read.format("pyparq").option("filters", "id < 5").load(os.path.join(WHERE, "written"))
    assert loaded.count() == 5
    loaded.write.format("pyparq").mode("append").save(os.path.join(WHERE, "source"))
    assert ps.count(spark, WHERE + "/source") == 5
    catalog(spark, source)
    spark.conf.set("spark.pyparq.planInTasksAbove", "2")
    for small in (0, 8 << 20):
        frame = ps.read(spark, source, filters="ID < 10 or id >= 995", small=small)
        assert sorted(row.id for row in frame.collect()) == [*range(10), *range(995, 1_000)]
        assert ps.count(spark, source, col("id") < 3, small=small) == 3
    assert ps.read(spark, source, engine="spark", filters=col("id") >= 10).count() == 990
    assert ps.count(spark, source) == 1_000
    assert ps.read(spark, source, columns=["name"], small=0).count() == 1_000
    assert ps.rewrite(spark, source, WHERE + "/once", columns=["id"]).count() == 1
    try:
        ps.read(spark, source, columns=["nome"])
        raise SystemExit("there is no such column")
    except pyparq.ColumnNotFoundError as error:
        assert "name" in str(error), error
    try:
        ps.read(spark, source + "/nowhere")
        raise SystemExit("there is no such folder")
    except FileNotFoundError as error:
        assert "nowhere" in str(error), error
    print("all seen")

def catalog(spark, source):
    made = ps.index_dataset(spark, source, ["id", "name"])
    assert (made.files, made.files_read, made.entries) == (4, 4, 2_000), made
    assert ps.index_dataset(spark, source).files_read == 0
    asked = ((col("id") == 7, 1), (col("name") == "n7", 1), (col("id").isin([3, 999]), 2), (col("id") == -7, 0))
    for filters, rows in asked:
        assert ps.read(spark, source, filters=filters).count() == rows == ps.count(spark, source, filters), filters
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four files below a folder that only the workers know by its relative name."""
    folder = tmp_path / "worker" / "table"
    folder.mkdir(parents=True)
    for k in range(4):
        ids = list(range(k * 250, (k + 1) * 250))
        columns = {"id": ids, "name": [f"n{i}" for i in ids], "even": [i % 2 == 0 for i in ids]}
        pq.write_table(pa.table(columns), folder / f"{k}.parquet")
    return folder


def run(code: str, folder: Path, **environment: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WORK + code], capture_output=True, text=True, cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
    )  # fmt: skip
    assert "all seen" in ran.stdout, ran.stdout[-2000:] + ran.stderr[-4000:]


def needs_spark() -> None:
    require("pyspark")
    if shutil.which("java") is None:
        absent("needs Java 17 or later for Spark")


def test_connect_clients_that_do_not_see_the_files(table: Path) -> None:
    """The client hides the folder from itself, once the server runs."""
    needs_spark()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount over a folder in the client alone")
    if importlib.util.find_spec("grpc") is None or importlib.util.find_spec("grpc_status") is None:
        absent("needs grpcio and grpcio-status for Spark Connect")
    run(
        """
from pyspark.sql import SparkSession
import ctypes
WHERE = os.getcwd()
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.range(1).collect()
libc = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, RECURSIVE_PRIVATE = 0x20000, 0x4000 | 1 << 18
assert libc.unshare(NEW_NAMESPACE) == 0
assert libc.mount(b"none", b"/", None, RECURSIVE_PRIVATE, None) == 0
assert libc.mount(b"none", WHERE.encode(), b"tmpfs", 0, None) == 0
assert not os.path.exists(os.path.join(WHERE, "table"))
everything(spark, os.path.join(WHERE, "table"))
try:
    ps.count(spark, "table")
    raise SystemExit("relative paths mean nothing there")
except Exception as error:
    assert "must be absolute" in str(error), error
assert not os.listdir(WHERE)
import time
calls = []
slow = spark.range(0, 4, 1, 4).mapInPandas(lambda parts: (time.sleep(2) or part for part in parts), "id long")
ps.write(slow, os.path.join(WHERE, "slow"), progress=lambda done, total: calls.append((done, total)))
assert calls[0] == (0, 0) and len(calls) > 1 and calls[-1][1] >= 4, calls
spark.stop()
""",
        table.parent,
    )
    assert pyparq.dataset(table.parent / "written").count() == 1_000


def test_workers_in_processes_of_their_own(table: Path, tmp_path: Path) -> None:
    """Spark writes below its home: a copy of links has to do."""
    needs_spark()
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python", "sbin"):
        if (Path(pyspark.__file__).parent / name).exists():
            (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    run(
        """
from pyspark.sql import SparkSession
WHERE = os.getcwd()
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.config("spark.executor.memory", "512m").getOrCreate()
everything(spark, os.path.abspath("table"))
spark.stop()
""",
        table.parent,
        SPARK_HOME=str(home),
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert len(list((table.parent / "again").rglob("*.parquet"))) == 4  # two of them have the rows that an upsert adds


@pytest.mark.parametrize("how", ["raise RuntimeError('made to fail')", "os._exit(3)"])
def test_tasks_that_are_run_again(table: Path, tmp_path: Path, how: str) -> None:
    """The first attempt of a partition dies when its rows are written: the second one's count, once."""
    needs_spark()
    run(
        f"""
from pyspark.sql import SparkSession
def dies_once(batches):
    import os
    from pyspark import TaskContext
    yield from batches
    if TaskContext.get().partitionId() == 1 and TaskContext.get().attemptNumber() == 0:
        open({str(tmp_path / "died")!r}, "w").close()
        {how}
spark = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(0, 1_000, 1, 3).mapInArrow(dies_once, "id long")
report = ps.write(rows, os.path.abspath("again"), max_rows_per_file=100)
assert report.num_rows == 1_000, report
ps.register(spark)
os.unlink({str(tmp_path / "died")!r})
rows.write.format("pyparq").mode("append").save(os.path.abspath("source"))
print("all seen")
""",
        table.parent,
    )
    assert (tmp_path / "died").exists()
    for name in ("again", "source"):
        assert sorted(pyparq.read_table(table.parent / name)["id"].to_pylist()) == list(range(1_000))
        assert not list((table.parent / name).glob("_pyparq*"))


def test_workers_whose_python_has_no_pyparq(table: Path, tmp_path: Path) -> None:
    """The message says what to set."""
    needs_spark()
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class NoPyparq:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'pyparq':\n"
        '            raise ModuleNotFoundError(f"No module named {name!r}", name=name)\n'
        "sys.meta_path.insert(0, NoPyparq())\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    run(
        """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    ps.read(spark, "table", small=0).collect()
except Exception as error:
    assert "PYSPARK_PYTHON" in str(error) and "pyparq" in str(error), error
try:
    ps.verify(spark, "table")
    raise SystemExit("there is no pyparq there")
except pyparq.UnsupportedError as error:
    assert "has no module 'pyparq'" in str(error), error
ps.register(spark)
for call in (
    lambda: spark.read.format("pyparq").load(os.path.abspath("table")).count(),
    lambda: spark.range(3).write.format("pyparq").mode("append").save(os.path.abspath("new")),
):
    try:
        call()
        raise SystemExit("there is no pyparq there")
    except Exception as error:
        assert "has no module 'pyparq'" in str(error) and "PYSPARK_PYTHON" in str(error), error
print("all seen")
""",
        table.parent,
        PYSPARK_PYTHON=str(python),
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )


def test_no_java(tmp_path: Path) -> None:
    require("pyspark")
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "sh", "dirname", "readlink", "ls", "cat", "uname", "tr", "sed", "grep", "basename", "rm"):
        found = shutil.which(tool)
        if found:
            (tmp_path / "bin" / tool).symlink_to(found)
    code = """
from pyparq.errors import UnsupportedError
from pyparq.spark.session import local_session
try:
    local_session()
except UnsupportedError as error:
    assert "Java 17" in str(error), error
    print("all seen")
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": str(tmp_path / "bin")}, cwd=tmp_path
    )
    assert "all seen" in ran.stdout, ran.stdout + ran.stderr
