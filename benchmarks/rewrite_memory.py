"""Peak memory of ``rewrite`` with a sort, for data of several times the memory that it may use.

    python benchmarks/rewrite_memory.py [MiB allowed] [times]

Runs the sort in a child and prints its peak RSS, and that of a child which only imports pyparq and reads one row group.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pyparq

ROW_BYTES = 8 + 8 + 4 + (4 + 24)
ROWS_PER_FILE = 1 << 20


def make(folder: Path, size: int) -> int:
    """Files with random rows of ``size`` bytes in memory; the number of rows."""
    rng = np.random.default_rng(1)
    rows = 0
    while rows * ROW_BYTES < size:
        key = rng.integers(0, 1 << 40, ROWS_PER_FILE)
        text = np.char.add("text that is long ", (key % 999_999 + 1_000_000).astype(str).astype("U6"))
        columns = {"key": key, "value": rng.random(ROWS_PER_FILE), "part": (key % 1000).astype("i4"), "text": text}
        pyparq.write_table(columns, folder / f"{rows}.parquet", row_group_size=1 << 17)
        rows += ROWS_PER_FILE
    return rows


def child(what: str, source: str, target: str, allowed: str) -> None:
    start = time.perf_counter()
    if what == "sort":
        pyparq.rewrite(source, target, sort_by="key", max_memory=int(allowed) << 20)
    else:
        pyparq.read_table(next(Path(source).iterdir()), row_groups=[0])
    # Not ru_maxrss: a child inherits its parent's.
    peak = int(next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x).split()[1]) / 1024
    print(f"{what}: peak RSS {peak:.0f} MiB, {time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    allowed, times = [*map(int, sys.argv[1:]), *(256, 10)[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out.parquet")
        source.mkdir()
        rows = make(source, times * allowed << 20)
        print(f"{rows:,} rows, {rows * ROW_BYTES >> 20:,} MiB in memory; allowed {allowed} MiB", flush=True)
        for what in ("base", "sort"):
            arguments = [sys.executable, __file__, "--child", what, str(source), str(target), str(allowed)]
            subprocess.run(arguments, check=True)
        key = pyparq.read_table(target, columns=["key"]).to_numpy("key")
        assert len(key) == rows
        assert bool((key[1:] >= key[:-1]).all())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
