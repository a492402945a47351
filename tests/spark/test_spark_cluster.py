"""The same code over Spark Connect, and on workers in processes of their own. Run them by ``pytest -m cluster``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import absent, require
from spark_standalone import standalone

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_800)]

SUPPORT = str(Path(__file__).parents[1] / "support")

WORK = """
import os, sys
import pyparq
import pyparq.spark as ps
import spark_functions
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four files below a folder that only the workers know by its relative name."""
    folder = tmp_path / "worker" / "table"
    folder.mkdir(parents=True)
    for k in range(4):
        pyparq.write_table({"id": list(range(k * 250, (k + 1) * 250))}, folder / f"{k}.parquet")
    return folder


def run(code: str, folder: Path, **environment: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WORK + code], capture_output=True, text=True, cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": SUPPORT, **environment},
    )  # fmt: skip
    assert "all seen" in ran.stdout, ran.stdout[-2000:] + ran.stderr[-4000:]


def needs_spark() -> None:
    require("pyspark")
    if shutil.which("java") is None:
        absent("needs Java 17 or later for Spark")


@pytest.mark.slow
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
spark_functions.run(spark, WHERE)
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
    assert pyparq.dataset(table.parent / "write" / "out").count() == 1_000


@pytest.mark.slow
def test_a_classic_session(table: Path) -> None:
    needs_spark()
    run(
        """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark_functions.run(spark, os.getcwd())
spark.stop()
""",
        table.parent,
    )


@pytest.mark.slow
def test_workers_in_processes_of_their_own(table: Path, tmp_path: Path) -> None:
    """A standalone master and two workers."""
    needs_spark()
    with standalone(tmp_path) as cluster:
        run(
            """
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(os.environ["MASTER"]).config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.config("spark.executor.memory", "512m").config("spark.executor.cores", "1").getOrCreate()
spark_functions.run(spark, os.getcwd())
assert len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) == 3  # and the driver
spark.stop()
""",
            table.parent,
            MASTER=cluster.url,
            SPARK_LOCAL_IP="127.0.0.1",
        )
    assert len(list((table.parent / "compact" / "t").rglob("*.parquet"))) > 3


@pytest.mark.slow
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


@pytest.mark.slow
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
