"""Systems without POSIX calls, such as Windows: pyparq has another way for each.

The calls are hidden in a process of its own, and files behave there as Windows has it: what is open can be neither
replaced nor removed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
CODE = """
import os, threading
import without_posix
pyparq = without_posix.hide()
from pyparq import col

def write(rows, path, **options):
    pyparq.write_table({"id": range(rows), "name": [f"n{k}" for k in range(rows)]}, path, **options)

def leftovers(folder="."):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.startswith("."))

# Writes, and reads: in one piece, by pages, by several threads of one file.
write(50_000, "a.parquet", row_group_size=5_000, max_rows_per_page=500, bloom_filters=["id"])
assert pyparq.read_table("a.parquet").num_rows == 50_000
assert pyparq.read_table("a.parquet", ["name"], col("id") == 4711).to_pylist() == [{"name": "n4711"}]
with pyparq.ParquetFile("a.parquet") as file:
    assert file.take([7, 49_999])["id"].to_pylist() == [7, 49_999]
    found = [None] * 8
    def ask(k):
        found[k] = [file.read(filters=col("id") == 997 * (k + n))["id"].to_pylist() for n in range(5)]
    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert found == [[[997 * (k + n)] for n in range(5)] for k in range(8)], found

# Replaces, with and without a flush to disk. A failed write leaves the old file.
write(10, "a.parquet")
write(11, "a.parquet", fsync=True)
assert pyparq.read_table("a.parquet").num_rows == 11
def breaks():
    yield {"id": [1]}
    raise ValueError("the caller's")
try:
    pyparq.write_table(breaks(), "a.parquet")
except ValueError:
    pass
assert pyparq.read_table("a.parquet").num_rows == 11 and leftovers() == [], leftovers()

# Files that exist.
assert pyparq.add_indexes("a.parquet", bloom_filters=["name"]) and pyparq.verify("a.parquet").ok
pyparq.merge(["a.parquet", "a.parquet"], "b.parquet")
pyparq.rewrite("b.parquet", "c.parquet", sort_by=["id"], compression="zstd")
assert pyparq.read_table("c.parquet")["id"].to_pylist() == sorted([*range(11), *range(11)])

# Folders: written, added to, replaced, listed, looked up.
rows = [{"day": f"d{k % 3}", "id": k} for k in range(3_000)]
pyparq.write_dataset(rows, "set/", partition_cols=["day"], bloom_filters=["id"])
pyparq.write_dataset(rows, "set/", partition_cols=["day"], mode="append")
data = pyparq.dataset("set/")
assert data.count() == 6_000 and data.count(col("day") == "d1") == 2_000
assert data.lookup("id", [7]).num_rows == 2
pyparq.write_dataset(rows[:3], "set/", partition_cols=["day"], mode="overwrite")
assert pyparq.dataset("set/").read().num_rows == 3
assert leftovers("set") == [], leftovers("set")
pyparq.recover_dataset("set/")
pyparq.release_unused()
print("done")
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks Linux which files are open")
def test_reads_and_writes_without_posix_calls(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SUPPORT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
