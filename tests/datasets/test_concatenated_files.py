"""Small files of a dataset that are read as if they were one: the same rows as file by file, and the same errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from one_by_one import read_one_by_one

import pyparq
from pyparq import col, kernels
from pyparq.kernels import KernelError

FILES = 24


def _table(k: int, rows: int) -> pa.Table:
    source = np.random.default_rng(k)
    n = np.arange(k * 1000, k * 1000 + rows)
    return pa.table(
        {
            "n": n,
            "s": pa.array([None if i % 7 == 0 else f"text {i % 13}" for i in n]),
            "x": source.random(rows),
            "l": pa.array([[int(i), None] if i % 3 else [] for i in n]),
            "d": pa.array([f"k{i % 5}" for i in n]).dictionary_encode(),
            "t": pa.array(n * 1000, pa.timestamp("us")),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in four partitions, of one to four row groups, one of them empty."""
    made = tmp_path_factory.mktemp("joined")
    for k in range(FILES):
        (made / f"p={k % 4}").mkdir(exist_ok=True)
        rows = 0 if k == 5 else 50 + 13 * k
        path = made / f"p={k % 4}" / f"{k:02d}.parquet"
        if k % 3 == 0:
            pyparq.write_table(_table(k, rows), path, row_group_size=100, bloom_filters=["n"])
        else:
            pq.write_table(_table(k, rows), path, row_group_size=120)
    return made


def _joined(scan: Any) -> int:
    """Files that a scan reads together with others."""
    return sum(len(part.numbers) for part in scan._reads.make_scans(scan._reads.numbers) if len(part.numbers) > 1)


FILTERS: list[Any] = [
    None, col("p") == 2, col("n") == 7010, col("n").isin([3, 7010, 9999, 20_100]),
    (col("x") > 0.5) & (col("s") == "text 3"),
    (col("p") == 1) | (col("n") < 2030), col("s").is_null(), col("n") < 0, col("d") == "k3", ~(col("n") >= 100),
]  # fmt: skip


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_the_same_rows_as_file_by_file(folder: Path, filters: Any) -> None:
    ds = pyparq.dataset(folder, filename=True)
    scan = ds.scan(filters=filters)
    found = scan.to_table()
    apart = read_one_by_one(ds.scan(filters=filters))
    assert found.schema == apart.schema
    assert found == apart
    assert ds.count(filters) == found.num_rows
    streamed = pa.table(ds.scan(filters=filters))
    assert pa.table(found).equals(streamed)


def test_files_are_joined(folder: Path) -> None:
    """All but a file that differs from the others in its footer."""
    ds = pyparq.dataset(folder)
    assert _joined(ds.scan()) >= FILES // 2
    assert _joined(ds.scan(["n"], col("x") > 0.5)) >= FILES // 2


def test_as_pyarrow_reads_them(folder: Path) -> None:
    theirs = pads.dataset(folder, partitioning="hive").to_table(["n", "s", "x", "p"]).sort_by("n")
    ours = pa.table(pyparq.read_table(folder, columns=["n", "s", "x", "p"])).sort_by("n")
    assert ours.equals(theirs)


@pytest.mark.parametrize("columns", [[], ["p"], ["l"], ["d", "p", "n"]])
def test_some_columns(folder: Path, columns: list[str]) -> None:
    ds = pyparq.dataset(folder)
    for filters in (None, col("n") > 5000):
        found = ds.read(columns, filters)
        assert found == read_one_by_one(ds.scan(columns, filters))
        assert found.num_rows == ds.count(filters)


def _copies(folder: Path, count: int = 6) -> list[Path]:
    made = []
    for k in range(count):
        made.append(folder / f"{k}.parquet")
        pq.write_table(pa.table({"n": np.arange(100) + 1000 * k, "s": [f"v{k}"] * 100}), made[-1])
        os.utime(made[-1], ns=(10**18, 10**18))
    return made


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """A page of one of the files is destroyed: its error is that of the file, and others can be read without it."""
    paths = _copies(tmp_path)
    data = bytearray(paths[3].read_bytes())
    at = pq.ParquetFile(paths[3]).metadata.row_group(0).column(1).dictionary_page_offset
    data[at : at + 8] = b"\xff" * 8
    paths[3].write_bytes(data)
    with pytest.raises(pyparq.CorruptFileError, match=r"3\.parquet"):
        pyparq.read_table(tmp_path)
    ds = pyparq.dataset(tmp_path, on_error="skip")
    with pytest.warns(pyparq.SkippedFileWarning, match=r"3\.parquet"):
        found = ds.read()
    assert found.num_rows == 500
    assert len(ds.skipped) == 1


def test_a_file_that_changes_is_named(tmp_path: Path) -> None:
    paths = _copies(tmp_path)
    ds = pyparq.dataset(tmp_path)
    assert ds.read().num_rows == 600
    pq.write_table(pa.table({"n": np.arange(70), "s": ["w"] * 70}), paths[2])
    with pytest.raises(pyparq.ChangedFileError, match=r"2\.parquet"):
        ds.read()


def test_other_schemas_between_them(tmp_path: Path) -> None:
    """The order of rows is that of the files, whichever are joined."""
    paths = _copies(tmp_path, 8)
    for k in (2, 5):
        pq.write_table(pa.table({"n": np.arange(40, dtype=np.int32) + 1000 * k, "extra": [1.5] * 40}), paths[k])
    ds = pyparq.dataset(tmp_path)
    scan = ds.scan()
    assert _joined(scan) == 6
    found = pa.table(scan.to_table())
    assert found["n"].to_pylist() == [1000 * k + i for k in range(8) for i in range(40 if k in (2, 5) else 100)]
    assert found["extra"].null_count == 600


def test_a_limit_of_memory_holds_for_each_file(tmp_path: Path) -> None:
    """Many files together may take more than a read of one may: they are then read one by one."""
    for k in range(20):
        pq.write_table(pa.table({"n": np.arange(20_000) + k}), tmp_path / f"{k:02d}.parquet", compression="none")
    limits = pyparq.Limits(max_memory=6 << 20)
    found = pyparq.read_table(tmp_path, limits=limits)
    assert found.num_rows == 400_000


@pytest.mark.skipif(kernels.read_many_ranges is None, reason="the system has no positioned reads")
def test_ranges_of_many_files(tmp_path: Path) -> None:
    assert kernels.read_many_ranges is not None
    paths, statuses = [], []
    for k in range(3):
        path = tmp_path / str(k)
        path.write_bytes(bytes([k]) * 10 + b"end")
        status = path.stat()
        paths.append(os.fsencode(path))
        statuses += [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]

    def ask(files: list[int], offsets: list[int], lengths: list[int], room: int) -> tuple[int, bytes]:
        out = bytearray(room)
        arrays = [np.array(values, np.int64) for values in (statuses, files, offsets, lengths)]
        assert kernels.read_many_ranges is not None
        return kernels.read_many_ranges(paths, *arrays, out), bytes(out)

    assert ask([0, 0, 2], [8, 0, 9], [5, 1, 2], 8) == (3, b"\0\0end\0\2e")
    assert ask([], [], [], 0) == (0, b"")
    assert ask([0, 1], [0, 10], [2, 4], 6)[0] == 1  # behind the end
    for files, offsets, lengths, room in (
        ([1, 0], [0, 0], [1, 1], 2), ([3], [0], [1], 1), ([-1], [0], [1], 1), ([0], [-1], [1], 1), ([0], [0], [-1], 1),
        ([0], [0], [2], 1), ([0], [0, 1], [1], 9),
    ):  # fmt: skip
        with pytest.raises(KernelError):
            ask(files, offsets, lengths, room)
    (tmp_path / "1").write_bytes(b"other")
    assert ask([0, 1, 2], [0, 0, 0], [1, 1, 1], 3)[0] == 1
    (tmp_path / "0").unlink()
    assert ask([0], [0], [1], 1)[0] == 0
