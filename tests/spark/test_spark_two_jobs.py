"""Two jobs of Spark in processes of their own that work on one folder. Run them by ``pytest -m cluster``.

Each batch of rows is there as a whole or not at all, and Spark's own reader gives the rows that ours gives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import require

import pyparq

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

ROUNDS, ROWS = 6, 500
START = f"""
import json, os, re, sys, time
from pyspark.sql import SparkSession
import pyparq, pyparq.spark as ps
ROUNDS, ROWS, folder = {ROUNDS}, {ROWS}, os.path.abspath("t")
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.sql.session.timeZone", "Europe/Berlin").config("spark.sql.ansi.enabled", "false")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
said = dict(done=0, conflicts=0, gone=0)
def rows(batch):
    return spark.range(batch * ROWS, batch * ROWS + ROWS, 1, 2).selectExpr("id", "id % 3 g")
spark.range(1).collect()
open(sys.argv[1], "w").close()
while not (os.path.exists("one") and os.path.exists("two")):
    time.sleep(0.05)
def retried(job):
    for _ in range(200):
        try:
            job()
            said["done"] += 1
            return
        except (pyparq.WriteConflictError, pyparq.ChangedFileError):
            said["conflicts"] += 1
            time.sleep(0.3)
    raise SystemExit("it never came to its turn")
"""
END = """
print(json.dumps(said))
spark.stop()
"""

APPEND = """
for k in range(ROUNDS):
    retried(lambda: ps.write(rows({first} + k), folder, mode="append", partition_cols="g"))
"""
OVERWRITE = """
for k in range(ROUNDS):
    retried(lambda: ps.write(rows({first} + k), folder, mode="overwrite", partition_cols="g"))
    time.sleep(0.5)
"""
COMPACT = """
for k in range(ROUNDS):
    retried(lambda: ps.compact(spark, folder, keep_old="1h", sort_by=["id"]))
"""
READ = r"""
def own_is_whole():
    # Java has two names for a file that is gone: before its footer is read, and between the footer and the pages.
    # For the moment of the renames some files, or all, are not there.
    gone = r"java\.io\.FileNotFoundException|java\.nio\.file\.NoSuchFileException|UNABLE_TO_INFER_SCHEMA"
    try:
        found = [row.id for row in spark.read.parquet(folder).collect()]
    except Exception as error:
        assert re.search(gone, str(error)), error
        return False
    assert len(set(found)) == len(found)
    return len(found) >= ROWS

for k in range(3 * ROUNDS):
    frame = ps.read(spark, folder, small=0)          # planned now, and read later
    time.sleep(0.2)
    found = sorted(row.id for row in frame.collect())
    assert found == list(range(found[-1] + 1)) and len(found) >= ROWS, (k, len(found))
    said["done"] += 1
    while not own_is_whole():                        # Spark's own reader has to list again
        said["gone"] += 1
        assert said["gone"] < 20 * ROUNDS
"""


def together(tmp_path: Path, one: str, two: str) -> list[dict[str, int]]:
    """Run both programs at the same time: what each says at its end."""
    require("pyspark")
    both = [
        subprocess.Popen(
            [sys.executable, "-c", START + code + END, name], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        for name, code in (("one", one), ("two", two))
    ]  # fmt: skip
    said = [process.communicate() for process in both]
    for process, (out, err) in zip(both, said, strict=True):
        assert process.returncode == 0, out + err[-3000:]
    found: list[dict[str, int]] = [json.loads(out.strip().splitlines()[-1]) for out, _ in said]
    print(found)
    return found


def batches_in(folder: Path) -> set[int]:
    """The batches in a folder, each of which has all of its rows once. Other readers and ours agree."""
    ids = sorted(pyparq.read_table(folder)["id"].to_pylist())
    assert ids == sorted(pq.read_table(folder)["id"].to_pylist())
    found = Counter(number // ROWS for number in ids)
    assert set(found.values()) <= {ROWS}
    assert len(set(ids)) == len(ids)
    assert not list(folder.glob("_pyparq_staging*"))
    return set(found)


@pytest.mark.slow
def test_two_that_append(tmp_path: Path) -> None:
    together(tmp_path, APPEND.format(first=0), APPEND.format(first=100))
    assert batches_in(tmp_path / "t") == {*range(ROUNDS), *range(100, 100 + ROUNDS)}


@pytest.mark.slow
def test_one_that_appends_and_one_that_overwrites(tmp_path: Path) -> None:
    together(tmp_path, APPEND.format(first=0), OVERWRITE.format(first=100))
    found = batches_in(tmp_path / "t")
    assert found & set(range(100, 200)) == {100 + ROUNDS - 1}
    assert found - {100 + ROUNDS - 1} <= set(range(ROUNDS))


def started(tmp_path: Path) -> Path:
    """A folder with the batch 0."""
    rows = [{"id": k, "g": k % 3} for k in range(ROWS)]
    for k in range(5):
        pyparq.write_dataset(rows[k * 100 : k * 100 + 100], tmp_path / "t", partition_cols=["g"], mode="append")
    return tmp_path / "t"


@pytest.mark.slow
def test_one_that_compacts_and_one_that_appends(tmp_path: Path) -> None:
    folder = started(tmp_path)
    together(tmp_path, COMPACT, APPEND.format(first=1))
    assert batches_in(folder) == set(range(ROUNDS + 1))


@pytest.mark.slow
def test_one_that_compacts_and_one_that_reads(tmp_path: Path) -> None:
    """Each read of ours has all rows, whatever was replaced since it was planned."""
    folder = started(tmp_path)
    more = COMPACT.replace(
        "    retried", "    ps.write(rows(1 + k), folder, mode='append', partition_cols='g')\n    retried"
    )
    said: Any = together(tmp_path, more, READ)
    assert said[0]["done"] == ROUNDS
    assert said[1]["done"] == 3 * ROUNDS
    assert batches_in(folder) == set(range(ROUNDS + 1))


DELETE = """
for k in range(5):
    retried(lambda: ps.delete(spark, folder, keys=spark.range(k * 40, k * 40 + 60)))
    time.sleep({pause})
"""


def left_of(folder: Path) -> None:
    """What is left of batch 0, of which both or one program have deleted the first rows."""
    ids = sorted(pyparq.read_table(folder)["id"].to_pylist())
    assert ids == sorted(pq.read_table(folder)["id"].to_pylist())
    assert [k for k in ids if k < ROWS] == list(range(220, ROWS))
    assert pyparq.verify(folder).ok
    assert not list(folder.rglob("_pyparq*"))


@pytest.mark.slow
def test_one_that_deletes_and_one_that_appends(tmp_path: Path) -> None:
    folder = started(tmp_path)
    together(tmp_path, DELETE.format(pause=0), APPEND.format(first=1))
    left_of(folder)
    ids = Counter(number // ROWS for number in pyparq.read_table(folder)["id"].to_pylist() if number >= ROWS)
    assert ids == dict.fromkeys(range(1, ROUNDS + 1), ROWS)


@pytest.mark.slow
def test_two_that_delete_the_same_rows(tmp_path: Path) -> None:
    folder = started(tmp_path)
    together(tmp_path, DELETE.format(pause=0), DELETE.format(pause=0.1))
    left_of(folder)


@pytest.mark.slow
def test_one_that_deletes_and_one_that_compacts(tmp_path: Path) -> None:
    """No deleted row comes back with a file that is made of older ones."""
    folder = started(tmp_path)
    more = COMPACT.replace(', keep_old="1h"', "").replace(
        "    retried", "    ps.write(rows(1 + k), folder, mode='append', partition_cols='g')\n    retried"
    )
    together(tmp_path, DELETE.format(pause=1), more)
    left_of(folder)
    ids = Counter(number // ROWS for number in pyparq.read_table(folder)["id"].to_pylist() if number >= ROWS)
    assert ids == dict.fromkeys(range(1, ROUNDS + 1), ROWS)
