"""``delete``, ``update`` and ``upsert`` of Spark where tasks run twice, and where processes are killed, the driver
within the commit among them. By ``pytest -m cluster``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import require
from spark_standalone import Cluster, standalone
from test_spark_standalone import START

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

SLOW_KEYS = """
import os, time
from pyspark import TaskContext

def some():
    "No keys; the first attempt of some tasks takes long to say so."
    context = TaskContext.get()
    if context is not None:
        name = f"{context.stageId()}-{context.partitionId()}-{context.taskAttemptId()}"
        open(os.path.join(os.environ["MARKS"], name), "w").close()
        if context.partitionId() % 3 == 1 and context.attemptNumber() == 0:
            time.sleep(float(os.environ["SLEEP"]))
"""

CHANGES = """
folder = os.getcwd() + "/t"
keys = {"decryption": "slow_keys:some"}

def change(k, wanted):
    "Three jobs, and the rows that there are after each."
    gone = spark.range(k * 31, k * 31 + 20)
    ps.delete(spark, folder, keys=gone, **keys)
    wanted = {i: v for i, v in wanted.items() if not k * 31 <= i < k * 31 + 20}
    yield wanted
    ps.update(spark, folder, f"id between {k * 10} and {k * 10 + 99}", expressions={"v": "v + 1"}, **keys)
    wanted = {i: v + (k * 10 <= i < k * 10 + 100) for i, v in wanted.items()}
    yield wanted
    news = spark.range(k * 31 + 10, 1000 + k * 5, 3).selectExpr("id", "id + 7 as v", "cast(id % 3 as int) g")
    ps.upsert(spark, folder, news, "id", **keys)
    yield wanted | {i: i + 7 for i in range(k * 31 + 10, 1000 + k * 5, 3)}

def rows_there():
    return {row.id: row.v for row in spark.read.parquet(folder).collect()}

if not os.path.exists(folder):
    start = spark.range(0, 900, 1, 4).selectExpr("id", "id as v", "cast(id % 3 as int) g")
    start.write.partitionBy("g").parquet(folder)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require("pyspark")
    with standalone(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def started(code: str, folder: Path, master: str, sleep: float = 0.0) -> subprocess.Popen[str]:
    (folder / "slow_keys.py").write_text(SLOW_KEYS)
    (folder / "marks").mkdir(exist_ok=True)
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "MASTER": master, "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(folder), "MARKS": str(folder / "marks"), "SLEEP": str(sleep),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", START + code], text=True, cwd=folder, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.slow
def test_tasks_that_run_twice_by_speculation(cluster: Cluster, tmp_path: Path) -> None:
    """Rows change once, and no file of a second attempt is left."""
    work = started("""
env = {f"spark_executorEnv_{name}": os.environ[name] for name in ("PYTHONPATH", "MARKS", "SLEEP")}
spark = session(spark_speculation="true", spark_speculation_interval="100ms", spark_speculation_multiplier="1.1",
                spark_speculation_quantile="0.3", **env)
""" + CHANGES + """
wanted = {i: i for i in range(900)}
for k in range(2):
    for wanted in change(k, wanted):
        found = rows_there()
        assert found == wanted, (k, len(found), len(wanted))
print("all seen")
spark.stop()
""", tmp_path, cluster.url, sleep=6.0)  # fmt: skip
    said, _ = work.communicate()
    assert "all seen" in said, said[-3000:]
    tries = [mark.name.rpartition("-")[0] for mark in (tmp_path / "marks").iterdir()]
    assert len(set(tries)) < len(tries), "no task ran twice"
    ids = pq.read_table(tmp_path / "t")["id"].to_pylist()
    assert len(ids) == len(set(ids))
    assert pyparq.verify(tmp_path / "t").ok
    assert not list((tmp_path / "t").rglob("_pyparq*"))


@pytest.mark.slow
def test_executors_that_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """A job ends with all of its changes, or with none."""
    work = started("""
env = {f"spark_executorEnv_{name}": os.environ[name] for name in ("PYTHONPATH", "MARKS", "SLEEP")}
spark = session(spark_task_maxFailures="8", spark_stage_maxConsecutiveAttempts="8", **env)
""" + CHANGES + """
wanted, failed = {i: i for i in range(900)}, 0
for k in range(40):
    jobs = change(k % 10, wanted)
    while True:
        try:
            new = next(jobs, None)
        except Exception as error:
            failed += 1
            print("failed job:", str(error)[:200])
            new = None
        if new is None:
            break
        wanted = new
    found = rows_there()
    assert found == wanted, (k, len(found), len(wanted))
    print("round", k, flush=True)
    if os.path.exists("enough"):
        break
print("jobs that failed", failed)
print("all seen")
spark.stop()
""", tmp_path, cluster.url, sleep=1.0)  # fmt: skip
    killed, ended = 0, threading.Event()

    def killer() -> None:
        nonlocal killed
        while killed < 10 and not ended.wait(1.0 + 0.37 * (killed % 5)):
            if (tmp_path / "t" / "_SUCCESS").exists():
                killed += cluster.kill_executor()
        (tmp_path / "enough").touch()

    thread = threading.Thread(target=killer)
    thread.start()
    said, _ = work.communicate()
    ended.set()
    thread.join()
    assert "all seen" in said, said[-3000:]
    assert killed == 10, said
    assert said.count("failed job") <= 5, said
    assert pyparq.verify(tmp_path / "t").ok
    assert not list((tmp_path / "t").rglob("_pyparq*"))


POINTS = 30
DELETES = """
import time
spark = session(spark_task_maxFailures="8", spark_stage_maxConsecutiveAttempts="8")
folder = os.getcwd() + "/t"
start = spark.range(0, 40_000, 1, 8).selectExpr("id", "id % 1000 as r", "cast(id % 4 as int) g")
start.write.partitionBy("g").parquet(folder)
wanted, tracker = set(range(40_000)), spark.sparkContext._jsc.sc().statusTracker()

def all_there():
    "The driver is one of those that are counted."
    for _ in range(600):
        if len(tracker.getExecutorInfos()) == 3:
            return
        time.sleep(0.1)
    raise SystemExit("an executor did not come back")

def delete(k):
    "By a condition, and by keys, in turn. Rows that go are in all files."
    if k % 2:
        ps.delete(spark, folder, f"r = {k}")
    else:
        ps.delete(spark, folder, keys=spark.range(k, 40_000, 1000))

def rows(frame):
    return sorted(map(tuple, frame.select("id", "r", "g").collect()))

for k in (901, 900, 903, 902):
    delete(k)
    wanted -= set(range(k, 40_000, 1000))
print("ready", flush=True)
for line in sys.stdin:
    k = int(line)
    all_there()
    began = time.perf_counter()
    delete(k + 500)  # of the same kind, and not killed: this is how long it takes now
    wanted -= set(range(k + 500, 40_000, 1000))
    print("begun", time.perf_counter() - began, flush=True)
    try:
        delete(k)
        said = "ended"
    except Exception as error:
        said = "failed: " + str(error)[:100].replace("\\n", " ")
    after = wanted - set(range(k, 40_000, 1000))
    was_within = os.path.exists(f"killed-{k}")
    while not os.path.exists(f"killed-{k}"):
        time.sleep(0.05)
    own = rows(spark.read.parquet(folder))
    assert own == rows(ps.read(spark, folder, small=0, engine="pyparq"))
    ids = {row[0] for row in own}
    assert len(ids) == len(own) and ids in (wanted, after), (k, len(ids), len(wanted), len(after))
    assert all(r == i % 1000 and g == i % 4 for i, r, g in own), k
    assert said != "ended" or ids == after, k
    wanted = ids
    print("within" if was_within else "late", said, flush=True)
print("all seen")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(3_000)
def test_a_delete_is_killed_at_thirty_points(cluster: Cluster, tmp_path: Path) -> None:
    """An executor ends by ``kill -9`` at each of them, from the beginning of the job to its end; then a process of
    Python at ten points, and a worker of Spark at four. All rows are there or all are gone that were to go."""
    work = started(DELETES, tmp_path, cluster.url)
    stdin, lines = work.stdin, list[str]()
    assert stdin is not None

    def heard(*words: str) -> str:
        """The next line that begins with one of the words."""
        assert work.stdout is not None
        for line in work.stdout:
            lines.append(line)
            if line.startswith(words):
                return line
        raise AssertionError("".join(lines[-40:]))

    heard("ready")
    numbers, said = iter(range(1, 400)), list[tuple[str, float, str]]()

    def killed_within(kill: Callable[[], bool], part: float) -> bool:
        """Whether a process was there to be killed after this part of the job's time, and the job still ran."""
        number = next(numbers)
        print(number, file=stdin, flush=True)
        time.sleep(float(heard("begun").split()[1]) * part)
        was_there = kill() or any(kill() or time.sleep(0.05) for _ in range(20))
        (tmp_path / f"killed-{number}").touch()
        line = heard("within", "late")
        said.append((kill.__name__, part, line))
        return was_there and line.startswith("within")

    for kill, points in [(cluster.kill_executor, POINTS), (cluster.kill_python, 10), (cluster.kill_worker, 4)]:
        # a job that was over is asked again, and killed earlier
        within = [
            any(killed_within(kill, point / points * 0.8**again) for again in range(5)) for point in range(points)
        ]
        tries = [line for name, _, line in said if name == kill.__name__]
        print(f"{kill.__name__}: {points} points, within the job {sum(within)}, tries {len(tries)}, "
              f"failed {sum('failed' in line for line in tries)}")  # fmt: skip
        assert sum(within) >= (points if kill == cluster.kill_executor else points // 2), said
    stdin.close()
    heard("all seen")
    work.wait()
    assert pyparq.verify(tmp_path / "t").ok
    assert not list((tmp_path / "t").rglob("_pyparq*"))


KILLED = (
    """
import os, signal
from pyparq.spark import row_changing

spark = session()
"""
    + CHANGES
    + """
left = int(os.environ["POINT"])
commit = row_changing.commit_changes

def watched(name):
    real = getattr(os, name)
    def call(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    setattr(os, name, call)

def commit_and_die(job, replies):
    for name in ("rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir", "fsync"):
        watched(name)
    return commit(job, replies)

row_changing.commit_changes = commit_and_die
news = spark.range(0, 1200, 7).selectExpr("id", "id + 7 as v", "cast(id % 4 as int) g")
ps.upsert(spark, folder, news, "id")
print("it ended, with calls left:", left)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("point", [1, 2, 4, 7, 11, 16, 22, 29, 37, 46])
def test_the_driver_is_killed_in_the_commit(tmp_path: Path, point: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are as before or all as after, and the next call leaves nothing behind."""
    require("pyspark")
    monkeypatch.setenv("POINT", str(point))
    work = started(KILLED, tmp_path, "local[2]")
    said, _ = work.communicate()
    assert work.returncode == -9 or "it ended" in said, said[-3000:]
    before = {k: k for k in range(900)}
    after = before | {k: k + 7 for k in range(0, 1200, 7)}

    def rows_there() -> dict[int, int]:
        table = pyparq.read_table(tmp_path / "t")
        assert len(set(table["id"].to_pylist())) == table.num_rows
        return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))

    pyparq.recover_dataset(tmp_path / "t")
    found = rows_there()
    assert found in (before, after)
    report = pyparq.delete(tmp_path / "t", pyparq.col("id") == 898)
    assert report.rows_deleted == 1
    assert rows_there() == {k: v for k, v in found.items() if k != 898}
    assert pyparq.verify(tmp_path / "t").ok
    assert not list((tmp_path / "t").rglob("_pyparq*"))
