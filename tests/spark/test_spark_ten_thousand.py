"""A folder of 10,000 files: rows counted, a key found, a part compacted and a part deleted, beside Spark's own reader.

By ``pytest -m slow``. Each step prints its seconds, and the memory of the driver's Python.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_800)]

PARTS, FILES, ROWS = 100, 100, 20


@contextmanager
def step(name: str) -> Iterator[None]:
    began, cpu = time.perf_counter(), time.process_time()
    yield
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{name}: {time.perf_counter() - began:.1f} s, Python of the driver {time.process_time() - cpu:.1f} s, "
          f"{most} MB at most so far")  # fmt: skip


def rows_by_spark(session: Any, folder: Path) -> np.ndarray[Any, Any]:
    table = session.read.parquet(str(folder)).selectExpr("id", "v", "cast(p as bigint) p").toArrow()
    found = np.stack([table[name].to_numpy() for name in ("id", "v", "p")], axis=1)
    return found[np.argsort(found[:, 0])]


def test_parts_of_many_files(usual: Any, ps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    with step("10,000 files made"):
        for number in range(PARTS * FILES):
            place = folder / f"p={number // FILES}" / f"{number}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            ids = np.arange(number * ROWS, number * ROWS + ROWS)
            pyparq.write_table(pa.table({"id": ids, "v": ids * 3, "r": ids % 3}), place, bloom_filters=["id"])
    ids = np.arange(PARTS * FILES * ROWS)
    wanted = np.stack([ids, ids * 3, ids // (FILES * ROWS)], axis=1)
    with step("counted"):
        assert ps.count(usual, folder) == len(ids)
    with step("a key found"):
        assert [row.v for row in ps.read(usual, folder, filters="id = 123456").collect()] == [370368]
    with step("a part deleted"):
        done = ps.delete(usual, folder, "p = 7 and r = 0").collect()
    gone = (wanted[:, 2] == 7) & (ids % 3 == 0)
    assert sum(row.rows_deleted for row in done) == gone.sum()
    assert len(done) == FILES
    with step("keys of five files deleted"):
        keys = usual.createDataFrame([(k * 7919,) for k in range(5)], "id bigint")
        assert sum(row.rows_deleted for row in ps.delete(usual, folder, keys=keys).collect()) == 5
    wanted = wanted[~gone & ~np.isin(ids, np.arange(5) * 7919)]
    with step("a part compacted"):
        (joined,) = ps.compact(usual, folder / "p=8").collect()
    assert (joined.files_before, joined.files_after) == (FILES, 1)
    with step("read by Spark"):
        assert np.array_equal(rows_by_spark(usual, folder), wanted)
    with step("all parts compacted"):
        joined_parts = ps.compact(usual, folder).collect()
    assert len(joined_parts) == PARTS - 1
    assert len(list(folder.rglob("*.parquet"))) == PARTS
    with step("read by Spark"):
        assert np.array_equal(rows_by_spark(usual, folder), wanted)
    assert sorted(map(tuple, ps.read(usual, folder, columns=["id", "v", "p"], engine="pyparq").collect())) == sorted(
        map(tuple, wanted.tolist())
    )
    assert not list(folder.rglob("_pyparq*"))
