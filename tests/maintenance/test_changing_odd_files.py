"""Rows of unusual files deleted and changed: memory, many row groups, none at all, deep columns, names in Unicode."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import LimitError, OptionError, col

_PEAK = """
import sys, numpy as np, pyparq
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
path, groups, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keys = {"id": np.arange(groups) * rows + 5}
pyparq.delete(path, keys={"id": [-1]})
before = peak()
threads = sys.argv[5] == "True"
if sys.argv[4] == "delete":
    report = pyparq.delete(path, keys=keys, use_threads=threads)
else:
    report = pyparq.update(path, None, {"c1": pyparq.col("c2") * 2, "c3": None}, keys=keys, use_threads=threads)
assert report.files[0].row_groups_rewritten == groups
print(peak() - before)
"""
WIDE, WIDE_ROWS = 15, 80_000  # the footer takes about 4 KB a column chunk: few columns leave that out of the sum


def wide(path: Path, groups: int) -> Path:
    """Row groups of 10 MB each."""
    chosen = np.random.default_rng(groups)
    schema = pyparq.schema({"id": "int64", **{f"c{k}": "double?" for k in range(WIDE)}})
    with pyparq.ParquetWriter(path, schema, row_group_size=WIDE_ROWS, compression="none") as writer:
        for g in range(groups):
            columns = {f"c{k}": chosen.standard_normal(WIDE_ROWS) for k in range(WIDE)}
            writer.write({"id": np.arange(WIDE_ROWS) + g * WIDE_ROWS, **columns})
    return path


@pytest.mark.slow
@pytest.mark.parametrize("what", ["delete", "update"])
def test_memory_holds_one_row_group(tmp_path: Path, what: str) -> None:
    """However many there are. Threads add what they happen to work on at the same time, which is bounded by itself."""

    def peak(groups: int, threads: bool) -> int:
        path = wide(tmp_path / f"{groups}.parquet", groups)
        command = [sys.executable, "-c", _PEAK, str(path), str(groups), str(WIDE_ROWS), what, str(threads)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    group = WIDE * WIDE_ROWS * 8
    few = peak(3, threads=False)
    assert few < 4 * group
    assert peak(30, threads=False) < few + group
    assert peak(30, threads=True) < 6 * group


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", ["text", "fixed"])
def test_a_dictionary_that_stands_for_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    """A small file whose few entries are the values of many rows. Nothing of that is made, and the file stays."""
    rows, path = 20_000, tmp_path / "a.parquet"
    entries = pa.array(["z" * 60_000]) if kind == "text" else pa.array([b"z" * 60_000], pa.binary(60_000))
    codes = pa.array(np.zeros(rows, np.int32))
    table = pa.table({"id": range(rows), "s": pa.DictionaryArray.from_arrays(codes, entries)})
    pq.write_table(table, path, dictionary_pagesize_limit=1 << 30, write_statistics=False)
    before = path.read_bytes()
    for change in (
        pyparq.delete,
        lambda source, keys, **more: pyparq.update(source, None, {"s": None}, keys=keys, **more),
    ):
        with pytest.raises(LimitError, match=r"max_memory.*row group 0, column s"):
            change(path, keys={"id": [5]}, limits=pyparq.Limits(max_memory=1 << 30))
    assert path.read_bytes() == before


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


CHANGES: dict[str, Callable[..., Any]] = {
    "delete": lambda path: pyparq.delete(path, "id = 0", keep_empty=True),
    "update": lambda path: pyparq.update(path, "id = 0", {"x": "new"}),
    "upsert": lambda path: pyparq.upsert(path, {"id": [0, 5], "x": ["new", "five"]}, "id"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("as_folder", [False, True])
def test_files_of_one_row_and_of_none(tmp_path: Path, what: str, rows: int, as_folder: bool) -> None:
    path = tmp_path / "lake" / "a.parquet"
    path.parent.mkdir()
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())], metadata={"own": "key"})
    pq.write_table(pa.table({"id": range(rows), "x": ["old"] * rows}, schema), path)
    before = path.stat().st_mtime_ns
    report = CHANGES[what](path.parent if as_folder else path)
    wanted = {"delete": [], "update": ["new"] * rows, "upsert": ["new", "five"]}[what]
    found = pq.read_table(path.parent)
    assert sorted(found["x"].to_pylist(), reverse=True) == wanted
    assert found.schema.equals(schema)
    assert (pq.read_schema(path).metadata or {})[b"own"] == b"key"
    assert report.rows_deleted + report.rows_updated + report.rows_added == {"upsert": 2}.get(what, rows)
    if rows == 0 and what != "upsert":
        assert not report.files
        assert path.stat().st_mtime_ns == before
    assert all(pyparq.verify(one).ok for one in path.parent.glob("*.parquet"))


def test_files_without_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}).select([]), path)
    stored = path.read_bytes()
    with pytest.raises(pyparq.ColumnNotFoundError, match="id"):
        pyparq.delete(path, "id = 1")
    with pytest.raises(pyparq.ColumnNotFoundError, match="id"):
        pyparq.update(path, "id = 1", {"id": 2})
    with pytest.raises(OptionError, match="key must name"):
        pyparq.upsert(path, {"id": [1]}, "id")
    assert path.read_bytes() == stored


def test_all_rows_go(tmp_path: Path) -> None:
    for keep in (False, True):
        folder = tmp_path / str(keep)
        for k in range(3):
            (folder / f"g={k}").mkdir(parents=True)
            pq.write_table(pa.table({"id": range(100), "x": ["y"] * 100}), folder / f"g={k}" / "a.parquet")
        report = pyparq.delete(folder, col("id") >= 0, keep_empty=keep)
        assert report.rows_deleted == 300
        assert [file.removed for file in report.files] == [not keep] * 3
        left = sorted(path.name for path in folder.rglob("*"))
        assert left == (["a.parquet"] * 3 + ["g=0", "g=1", "g=2"] if keep else [])
        if keep:
            assert pq.read_table(folder).num_rows == 0
            assert pq.read_schema(folder / "g=0" / "a.parquet").names == ["id", "x"]
            assert not pyparq.delete(folder, col("id") >= 0).files


@pytest.mark.parametrize("name", ["Größe – 日本 😀", "a b%20c", "e\u0301", "x'y\"z"])
def test_names_in_unicode(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    (folder / f"g={name.replace('%', '%25')}").mkdir(parents=True)
    path = folder / f"g={name.replace('%', '%25')}" / f"{name}.parquet"
    pq.write_table(pa.table({"id": range(10), name: [name] * 10}), path)
    assert pyparq.delete(folder, col("id") == 3).rows_deleted == 1
    assert pyparq.update(path, col(name) == name, {name: f"{name}2"}).rows_updated == 9
    data = {"id": [4, 50], name: ["u"] * 2, "g": [name] * 2}
    assert pyparq.upsert(folder, data, "id").rows_added == 1
    found = pyparq.read_table(folder).to_pylist()
    assert sorted(row["id"] for row in found) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 50]
    assert {row["g"] for row in found} == {name}


def deep(level: int, k: int) -> Any:
    """A value ``level`` lists and structs deep."""
    if level == 0:
        return f"v{k}" if k % 3 else None
    inner = deep(level - 1, k)
    return {"a": inner, "b": k} if level % 2 else ([inner, None][: k % 4] if k % 5 else None)


def test_deep_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = pa.table({"id": range(300), "deep": [deep(12, k) for k in range(300)]})
    pq.write_table(data, path, row_group_size=100, compression="zstd")
    wanted = data.to_pylist()
    assert pyparq.delete(path, keys={"id": list(range(50, 150, 3))}).rows_deleted == 34
    wanted = [row for row in wanted if row["id"] not in range(50, 150, 3)]
    assert pq.read_table(path).to_pylist() == wanted
    pyparq.update(path, "id in (7, 201)", {"deep": deep(12, 11)})
    pyparq.upsert(path, [{"id": 8, "deep": deep(12, 13)}, {"id": 900, "deep": None}], "id")
    new = {7: deep(12, 11), 201: deep(12, 11), 8: deep(12, 13)}
    wanted = [{**row, "deep": new.get(row["id"], row["deep"])} for row in wanted] + [{"id": 900, "deep": None}]
    assert pq.read_table(path).to_pylist() == wanted
    assert pq.read_schema(path).equals(data.schema)
    assert pyparq.verify(path).ok


_MANY = """
import sys, time, pyparq
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
pyparq.delete(sys.argv[1], keys={"id": [-1]})
before, began = peak(), time.process_time()
report = pyparq.delete(sys.argv[1], keys={"id": [5, 1234]})
assert report.files[0].row_groups_rewritten == 2, report
print(peak() - before, time.process_time() - began)
"""


@pytest.mark.slow
def test_three_thousand_row_groups(tmp_path: Path) -> None:
    """Time and memory for a row group do not grow with their number."""
    spent = {}
    for groups in (300, 3000):
        path = tmp_path / f"{groups}.parquet"
        data = pa.table({"id": range(groups * 10), "x": [f"t{k}" for k in range(groups * 10)]})
        pyparq.write_table(data, path, row_group_size=10, bloom_filters=["id"], bloom_filter_layout="row_group")
        out = subprocess.run(
            [sys.executable, "-c", _MANY, str(path)], check=True, capture_output=True, text=True
        ).stdout
        spent[groups] = [float(number) for number in out.split()]
        assert pq.read_metadata(path).num_row_groups == groups
        assert pq.read_table(path)["id"].to_pylist() == [k for k in range(groups * 10) if k not in (5, 1234)]
    assert spent[3000][1] < 20 * spent[300][1] + 0.5
    assert spent[3000][0] < 3000 * 40_000, spent
