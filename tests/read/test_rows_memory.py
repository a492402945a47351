"""Streaming holds one row group in memory, however many the file has; footers of very many columns are quick to use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

ROWS = 250_000  # of a row group: about 28 MB in memory

CODE = """
import json, sys, tracemalloc
import pyparq
from pyparq import col

def resident():  # getrusage would also tell what the parent took before it started us
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

path, way = sys.argv[1:]
filters = col("n") >= 0 if way == "filtered" else None
traced = way in ("traced", "loop")  # one thread: what two hold at once is a matter of luck
with pyparq.ParquetFile(path, use_threads=not traced) as file:
    before, rows = resident(), 0
    if traced:
        tracemalloc.start()
    batch_size = {"loop": 65_536, "slices": 60_000}.get(way)
    for batch in file.scan(None, filters).iter_batches(batch_size):
        rows += batch.num_rows
        if way != "loop":  # there, it lives until the next has come
            del batch
print(json.dumps([rows, tracemalloc.get_traced_memory()[1] if traced else resident() - before]))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    rng = np.random.default_rng(1)
    offsets = pa.array(np.arange(ROWS + 1, dtype=np.int32) * 3)
    table = pa.table({
        "n": rng.integers(0, 1 << 60, ROWS),
        "s": pa.array([f"{k:032d}" for k in range(ROWS)]),
        "l": pa.ListArray.from_arrays(offsets, pa.array(rng.random(ROWS * 3))),
        "w": pa.array([f"word {k % 100}" for k in range(ROWS)]),
    })  # fmt: skip
    found = {}
    for groups in (1, 10):
        found[groups] = tmp_path_factory.mktemp("memory") / f"{groups}.parquet"
        with pq.ParquetWriter(found[groups], table.schema, compression="snappy") as writer:
            for _ in range(groups):
                writer.write_table(table, row_group_size=ROWS)
    return found


@pytest.mark.sweep(5)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("way", ["traced", "loop", "plain", "slices", "filtered"])
def test_memory_of_batches_is_that_of_one_row_group(files: dict[int, Path], way: str) -> None:
    peaks = {}
    for groups, path in files.items():
        done = subprocess.run([sys.executable, "-c", CODE, str(path), way], capture_output=True, text=True, check=True)
        rows, peaks[groups] = json.loads(done.stdout)
        assert rows == groups * ROWS
    assert peaks[1] > 15 << 20
    # What is freed on one thread is not at once used again by another: the process as a whole may take some more.
    assert peaks[10] < peaks[1] * {"traced": 1.15, "loop": 1.3}.get(way, 2.5)


def test_ten_thousand_columns(tmp_path: Path) -> None:
    """One column of many: only its metadata is decoded."""
    path, count = tmp_path / "wide.parquet", 10_000
    table = pa.table({f"column {k}": pa.array([k, None, k + 1], pa.int32()) for k in range(count)})
    pq.write_table(table, path, row_group_size=2, write_page_index=True)
    with pyparq.ParquetFile(path) as file:
        assert len(file.tree.leaves) == count
        name = f"column {count - 3}"
        assert file.take([2, 0], [name]).to_pydict() == {name: [count - 2, count - 3]}
        assert len(file._file._chunks) == 2  # one per row group
        found = file.read(["column 7"], filters=col("column 9999") == 10_000)
        assert found.to_pydict() == {"column 7": [8]}
        assert file.schema_arrow.names == table.column_names
    assert pyparq.read_table(path, row_groups=[1]).to_arrow().equals(table.slice(2))


def test_ten_thousand_columns_written(tmp_path: Path) -> None:
    path, count = tmp_path / "wide.parquet", 10_000
    pyparq.write_table({f"c{k}": np.arange(k, k + 3) for k in range(count)}, path)
    assert pq.read_schema(path).names == [f"c{k}" for k in range(count)]
    assert pq.read_table(path, columns=["c0", "c9999"]).to_pydict() == {"c0": [0, 1, 2], "c9999": [9999, 10000, 10001]}
