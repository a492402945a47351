"""``_metadata`` files of folders are no data files, and nothing of them is believed: the files' own footers count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

URL = "memory://summary"


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    yield fs
    if fs.exists("/summary"):
        fs.rm("/summary", recursive=True)


def write(memory: Any, folder: Path) -> list[str]:
    """Six files in two partitions and their summary, by pyarrow."""
    collected: list[Any] = []
    table = pa.table({"id": range(60), "s": [f"s{k}" for k in range(60)]})
    for k in range(6):
        path = folder / f"part={k // 3}" / f"f{k}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.slice(10 * k, 10), path, metadata_collector=collected)
        collected[-1].set_file_path(str(path.relative_to(folder)))
    pq.write_metadata(table.schema, folder / "_metadata", metadata_collector=collected)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
    for name in [*names, "_metadata"]:
        memory.pipe(f"/summary/{name}", (folder / name).read_bytes())
    return names


@pytest.mark.parametrize("kind", ["as written", "more files", "fewer files", "other rows", "damaged"])
def test_rows_and_schema_come_from_the_files(memory: Any, tmp_path: Path, kind: str) -> None:
    names, expected = write(memory, tmp_path), 60
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(3), "s": ["x"] * 3}), other)
    if kind == "more files":
        memory.pipe("/summary/part=1/zz.parquet", other.getvalue().to_pybytes())
        expected = 63
    elif kind == "fewer files":
        memory.rm(f"/summary/{names[0]}")
        expected = 50
    elif kind == "other rows":
        memory.pipe(f"/summary/{names[2]}", other.getvalue().to_pybytes())
        expected = 53
    elif kind == "damaged":
        memory.pipe("/summary/_metadata", b"not even Parquet")
    ds = pyparq.dataset(URL)
    assert ds.schema.names == ["id", "s", "part"]
    assert ds.count() == ds.read(["id"]).num_rows == expected
    assert ds.count(col("part") == 0) == (20 if kind == "fewer files" else 23 if kind == "other rows" else 30)
    assert ds.lookup("id", 37).num_rows == 1


def test_local_folders_do_without(tmp_path: Path) -> None:
    for k in range(3):
        pq.write_table(pa.table({"id": [k]}), tmp_path / f"{k}.parquet")
    (tmp_path / "_metadata").write_bytes(b"not even Parquet")
    assert pyparq.dataset(tmp_path).count() == 3
