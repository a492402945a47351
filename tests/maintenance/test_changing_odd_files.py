"""Rows of unusual files deleted and changed: memory, many row groups, none at all, deep columns, names in Unicode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyparq
from pyparq import LimitError

_PEAK = """
import sys, numpy as np, pyparq
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
path, groups, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keys = {"id": np.arange(groups) * rows + 5}
pyparq.delete(path, keys={"id": [-1]})
before = peak()
if sys.argv[4] == "delete":
    report = pyparq.delete(path, keys=keys)
else:
    report = pyparq.update(path, None, {"c1": pyparq.col("c2") * 2, "c3": None}, keys=keys)
assert report.files[0].row_groups_rewritten == groups
print(peak() - before)
"""
WIDE, WIDE_ROWS = 60, 20_000


def wide(path: Path, groups: int) -> Path:
    """Row groups of 10 MB each."""
    chosen = np.random.default_rng(groups)
    schema = pyparq.schema({"id": "int64", **{f"c{k}": "double?" for k in range(WIDE)}})
    with pyparq.ParquetWriter(path, schema, row_group_size=WIDE_ROWS, compression="none") as writer:
        for g in range(groups):
            columns = {f"c{k}": chosen.standard_normal(WIDE_ROWS) for k in range(WIDE)}
            writer.write({"id": np.arange(WIDE_ROWS) + g * WIDE_ROWS, **columns})
    return path


@pytest.mark.parametrize("what", ["delete", "update"])
def test_memory_holds_one_row_group(tmp_path: Path, what: str) -> None:
    peaks = []
    for groups in (3, 30):
        path = wide(tmp_path / f"{groups}.parquet", groups)
        command = [sys.executable, "-c", _PEAK, str(path), str(groups), str(WIDE_ROWS), what]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    group = WIDE * WIDE_ROWS * 8
    assert peaks[0] < 8 * group
    assert peaks[1] < peaks[0] + group


def test_a_row_group_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = wide(tmp_path / "a.parquet", 1)
    stored = path.read_bytes()
    for change in (
        pyparq.delete,
        lambda source, keys, **more: pyparq.update(source, None, {"c1": 0}, keys=keys, **more),
    ):
        with pytest.raises(LimitError, match=r"max_memory.*a.parquet|a.parquet.*max_memory"):
            change(path, keys={"id": [5]}, limits=pyparq.Limits(max_memory=1 << 20))
        assert path.read_bytes() == stored
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.parquet"]
