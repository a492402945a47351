"""Sorting by runs on disk gives exactly what sorting in memory gives: order of nulls, NaN and zeros, and stability."""

from __future__ import annotations

import datetime as dt
import errno
import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.ingest import ingest
from pyparq.arrow.table import Batch, Table
from pyparq.options import WriteOptions
from pyparq.write import external_sort
from pyparq.write.column_plans import make_plan
from pyparq.write.external_sort import ExternalSorter


def table(rows: int = 6000) -> pa.Table:
    rng = np.random.default_rng(5)
    floats = rng.choice([np.nan, -np.inf, np.inf, -0.0, 0.0, 1.5, -2.5, 1e300], rows)
    words = ["", "a", "ab", "abcdefgh", "abcdefgh\0", "abcdefghi", "é", "日本", None]
    return pa.table({
        "row": np.arange(rows),
        "few": pa.array(rng.integers(0, 7, rows), mask=rng.random(rows) < 0.2),
        "big": pa.array(rng.integers(0, 2**64, rows, dtype=np.uint64)),
        "float": pa.array(floats, mask=rng.random(rows) < 0.1),
        "word": [words[k] for k in rng.integers(0, len(words), rows)],
        "text": [f"text number {k % 997}" for k in rng.integers(0, 1 << 30, rows)],
        "price": pa.array([Decimal(int(k)) / 100 for k in rng.integers(-500, 500, rows)], pa.decimal128(30, 2)),
        "time": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(hours=int(k)) for k in rng.integers(-9, 9, rows)]),
        "flag": pa.array(rng.random(rows) < 0.5),
        "list": [[k] * (k % 3) if k % 5 else None for k in range(rows)],
        "inner": [{"x": int(k), "y": str(k)} for k in rng.integers(0, 50, rows)],
        "sorted": np.arange(rows) // 10,
    })  # fmt: skip


ORDERS: list[Any] = [
    ["few", "float"],
    [("float", "descending"), ("few", "ascending", "nulls_first")],
    [("word", "descending", "nulls_first"), "big"],
    ["word"],
    [("text", "descending")],
    ["price", ("time", "descending")],
    ["flag"],
    [("inner", "x"), "word"],
    ["sorted"],
    [("sorted", "descending")],
]


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return table()


def by_runs(data: pa.Table, keys: Any, memory: int, **options: Any) -> pa.Table:
    schema, _ = ingest(data.slice(0, 0))
    sorter = ExternalSorter(make_plan(schema, WriteOptions(sort_by=keys)), memory, **options)
    try:
        for batch in ingest(pa.Table.from_batches(data.to_batches(max_chunksize=777)))[1]:
            sorter.add(batch)
        runs = len(sorter._runs)
        made = pa.table(Table(schema, [Batch(*batch) for batch in sorter.batches()]))
    finally:
        sorter.close()
    assert runs > 1 or memory > 1 << 26
    return made


def in_memory(data: pa.Table, keys: Any, folder: Path) -> pa.Table:
    pyparq.write_table(data, folder / "sorted.parquet", sort_by=keys)
    return pq.read_table(folder / "sorted.parquet")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("keys", ORDERS, ids=str)
@pytest.mark.parametrize("fan_in", [64, 2])
def test_it_is_the_order_of_sorting_in_memory(
    tmp_path: Path, data: pa.Table, keys: Any, fan_in: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_sort, "FAN_IN", fan_in)  # few runs at once: several rounds
    monkeypatch.setattr(external_sort, "MIN_BLOCK", 16 << 10)
    found = by_runs(data, keys, 800_000, secret=fan_in == 2)
    expected = in_memory(data, keys, tmp_path)
    assert found["row"].equals(expected["row"])
    for name in data.column_names:
        assert (
            found[name].to_pylist() == pytest.approx(expected[name].to_pylist(), nan_ok=True)
            if name == "float"
            else (found[name].to_pylist() == expected[name].to_pylist())
        )


def test_little_data_stays_in_memory(tmp_path: Path, data: pa.Table) -> None:
    assert by_runs(data, ["few"], 1 << 30)["row"].equals(in_memory(data, ["few"], tmp_path)["row"])
    pyparq.write_table(data.slice(0, 0), tmp_path / "empty", sort_by="few", sort_memory=1)
    assert pq.read_table(tmp_path / "empty").num_rows == 0


def test_a_writer_sorts_more_than_its_memory(tmp_path: Path, data: pa.Table) -> None:
    """The same rows in the same row groups, whatever the memory."""
    options: dict[str, Any] = {"sort_by": [("word", "descending"), "few"], "row_group_size": 1000}
    pyparq.write_table(data, tmp_path / "memory", **options)
    pyparq.write_table(data.to_batches(max_chunksize=500), tmp_path / "disk", sort_memory=800_000, **options)
    memory, disk = pq.ParquetFile(tmp_path / "memory"), pq.ParquetFile(tmp_path / "disk")
    assert memory.num_row_groups == disk.num_row_groups == 6
    assert disk.metadata.row_group(0).sorting_columns == memory.metadata.row_group(0).sorting_columns
    for k in range(6):
        assert disk.read_row_group(k)["row"].equals(memory.read_row_group(k)["row"])
    with pyparq.ParquetWriter(tmp_path / "pieces", sort_memory=800_000, **options) as writer:
        for start in range(0, data.num_rows, 1500):
            writer.write(data.slice(start, 1500))
            writer.flush()
    assert pq.read_table(tmp_path / "pieces")["row"].equals(pq.read_table(tmp_path / "memory")["row"])


def test_arrays_that_change_between_pieces(tmp_path: Path) -> None:
    def pieces() -> Any:
        array = np.zeros(1000, np.int64)
        for start in range(100):
            array[:] = np.arange(start, 100_000, 100)[::-1]
            yield {"x": array}

    pyparq.write_table(pieces(), tmp_path / "f", sort_by="x", sort_memory=200_000)
    assert pq.read_table(tmp_path / "f")["x"].to_pylist() == list(range(100_000))


def test_temporary_files_have_no_names_and_go(tmp_path: Path, data: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    pyparq.write_table(data, tmp_path / "f", sort_by="row", sort_memory=800_000)
    assert os.listdir(tmp_path / "temp") == []
    writer = pyparq.ParquetWriter(tmp_path / "g", sort_by="row", sort_memory=800_000)
    writer.write(data)
    assert os.listdir(tmp_path / "temp") == []
    writer.abort()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert not (tmp_path / "g").exists()


def test_a_full_disk_while_sorting_leaves_the_target(tmp_path: Path, data: pa.Table) -> None:
    target = tmp_path / "f"
    target.write_bytes(b"old")
    pid = os.fork()
    if pid == 0:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            pyparq.write_table(data, target, sort_by="big", sort_memory=800_000)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EFBIG
    assert target.read_bytes() == b"old"
