"""The driver is killed within the commit of a write or a compaction, at each of its calls of the system.

Whatever the call, the folder has the old rows or the new ones once it is recovered, and the next write leaves
nothing of the crash. Rows are those that Spark's own reader gives.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

COMMITS = """
import os, pickle, signal, sys
from dataclasses import replace
from pyparq.datasets.write.targets import Sources
from pyparq.spark.writing import commit

CALLS = ("rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir", "fsync", "open", "write")

def dies_at(point):
    left = [point]
    def watched(real):
        def call(*arguments, **named):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)
        return call
    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))

def run(point):
    job, replies = pickle.load(open(sys.argv[1], "rb"))
    if job.sources is not None:  # the files are copies of those that the job has listed
        now = Sources.listed(job.staging.target)
        states = {path: now.states[path] for path in job.sources.states}
        job = replace(job, sources=replace(job.sources, states=states))
    dies_at(point)
    commit(job, replies)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(int(line))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else "ended" if status == 0 else "failed", flush=True)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Runs the commit of ``job`` in the working folder, in a process that dies at its n-th call."""
    command = [sys.executable, "-c", COMMITS, str(tmp_path / "job")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(point: int) -> str:
            print(point, file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        yield ask
        process.stdin.close()


def jobs(session: Any, ps: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    more = session.range(50, 90, 1, 2).selectExpr("id", "id % 3 g")
    return {
        "append": lambda: ps.write(more, folder, mode="append", partition_cols=["g"]),
        "overwrite": lambda: ps.write(more, folder, mode="overwrite", partition_cols=["g"]),
        "overwrite_partitions": lambda: ps.write(
            more.where("g = 1"), folder, mode="overwrite_partitions", partition_cols=["g"]
        ),
        "compact": lambda: ps.compact(session, folder, sort_by=["id"]),
        "compact, old files kept": lambda: ps.compact(session, folder, keep_old="1h"),
    }


def ids(session: Any, folder: Path) -> list[int]:
    found = sorted(row.id for row in session.read.parquet(str(folder)).collect())
    assert found == sorted(pyparq.read_table(folder)["id"].to_pylist())
    return found


def sweep(
    session: Any, ps: Any, tmp_path: Path, name: str, driver: Callable[[int], str], points: Iterable[int],
    monkeypatch: pytest.MonkeyPatch,
) -> int:  # fmt: skip
    """Kill the commit of a job at these of its calls. Returns how many of them were reached."""
    from pyparq.spark import writing

    folder, before = tmp_path / "t", tmp_path / "before"
    for k in range(2):
        ps.write(session.range(k * 25, k * 25 + 25).selectExpr("id", "id % 3 g"), folder, mode="append",
                 partition_cols=["g"])  # fmt: skip
    real = writing.commit

    def watched(job: Any, replies: Any) -> Any:
        given = list(replies)
        (tmp_path / "job").write_bytes(pickle.dumps((job, given)))
        shutil.copytree(folder, before)
        return real(job, given)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "commit", watched)
        old = ids(session, folder)
        jobs(session, ps, folder)[name]()
    new = ids(session, folder)
    reached = 0
    for point in points:
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        said = driver(point)
        assert said in ("killed", "ended"), (name, point)
        pyparq.recover_dataset(folder)
        found = ids(session, folder)
        assert found in (old, new), (name, point)
        assert said == "killed" or found == new
        pyparq.write_dataset({"id": [1000], "g": [0]}, folder, mode="append", partition_cols=["g"])
        assert ids(session, folder) == [*found, 1000], (name, point)
        left = [path.name for path in folder.glob("_pyparq*") if not path.name.startswith("_pyparq_replaced-")]
        assert not left, (name, point, left)
        if said == "ended":
            break
        reached += 1
    return reached


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append", "overwrite", "compact"])
def test_some_calls(
    usual: Any, ps: Any, tmp_path: Path, name: str, driver: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sweep(usual, ps, tmp_path, name, driver, (1, 4, 9, 14), monkeypatch) >= 3


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", ["append", "overwrite", "overwrite_partitions", "compact", "compact, old files kept"])
def test_every_call(
    usual: Any, ps: Any, tmp_path: Path, name: str, driver: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = sweep(usual, ps, tmp_path, name, driver, range(1, 1_000), monkeypatch)
    assert reached >= 10
    print(f"{name}: killed at each of {reached} calls")
