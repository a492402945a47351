"""``filesystem=``: file systems of fsspec, pyarrow and obstore, wherever a path is taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq
import pyparq.parquet as pq
from pyparq import OptionError, col

fsspec: Any = require("fsspec")
stores: Any = require("obstore.store")
fs_of_pyarrow: Any = require("pyarrow.fs")
dirs: Any = require("fsspec.implementations.dirfs")
memories: Any = require("fsspec.implementations.memory")


class OwnMemory(memories.MemoryFileSystem):  # type: ignore[misc]
    """One that no URL leads to."""

    protocol = "nowhere"
    store: dict[str, Any] = {}  # noqa: RUF012  # as in the base class
    pseudo_dirs: list[str] = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("nowhere://")))


def _mocked(tmp_path: Path) -> Any:
    """A file system of pyarrow that it does not know to be local."""
    handler = fs_of_pyarrow.FSSpecHandler(fsspec.filesystem("memory"))
    return fs_of_pyarrow.SubTreeFileSystem(f"/{tmp_path.name}", fs_of_pyarrow.PyFileSystem(handler))


SYSTEMS: dict[str, Callable[[Path], Any]] = {
    "fsspec memory": lambda folder: dirs.DirFileSystem(f"/{folder.name}", fsspec.filesystem("memory")),
    "fsspec local": lambda folder: dirs.DirFileSystem(str(folder), fsspec.filesystem("file")),
    "fsspec without a URL": lambda folder: OwnMemory(skip_instance_cache=True),
    "obstore memory": lambda folder: stores.MemoryStore(),
    "obstore local": lambda folder: stores.LocalStore(str(folder)),
    "pyarrow local": lambda folder: fs_of_pyarrow.SubTreeFileSystem(str(folder), fs_of_pyarrow.LocalFileSystem()),
    "pyarrow behind fsspec": _mocked,
    "pyarrow in memory": lambda folder: fs_of_pyarrow._MockFileSystem(),
}


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return SYSTEMS[request.param](tmp_path)


def test_files(system: Any) -> None:
    data = {"id": list(range(1000)), "name": [f"n{k}" for k in range(1000)]}
    pyparq.write_table(data, "a #b.parquet", filesystem=system, bloom_filters=["id"])
    found = pyparq.read_table("a #b.parquet", ["name"], col("id") == 77, filesystem=system)
    assert found.to_pydict() == {"name": ["n77"]}
    assert pyparq.read_metadata("a #b.parquet", filesystem=system).num_rows == 1000
    assert pyparq.read_schema("a #b.parquet", filesystem=system).names == ["id", "name"]
    with pyparq.ParquetFile("a #b.parquet", filesystem=system) as file:
        assert file.read(["id"])["id"].to_pylist() == data["id"]
    with pyparq.ParquetWriter("b.parquet", {"id": "int64"}, filesystem=system) as writer:
        writer.write({"id": [1]})
    assert pyparq.read_table(["a #b.parquet", "b.parquet"], ["id"], filesystem=system).num_rows == 1001
    with pytest.raises(FileNotFoundError):
        pyparq.read_table("nothing.parquet", filesystem=system)


def test_datasets(system: Any) -> None:
    rows = {"year": [1, 1, 2], "id": [1, 2, 3]}
    pyparq.write_dataset(rows, "flights", partition_cols=["year"], filesystem=system)
    assert pyparq.dataset("flights", filesystem=system).read(["id"], col("year") == 1).to_pydict() == {"id": [1, 2]}
    assert pyparq.dataset("flights/year=2/*.parquet", filesystem=system).count() == 1
    assert pyparq.read_table("flights/", filesystem=system).num_rows == 3
    pyparq.write_dataset({"year": [2], "id": [9]}, "flights", mode="overwrite", filesystem=system)
    assert pyparq.dataset("flights", filesystem=system).count() == 1
    with pytest.raises(pyparq.TargetExistsError):
        pyparq.write_dataset(rows, "flights", filesystem=system)


def test_as_pyarrow_has_it(system: Any) -> None:
    pa: Any = require("pyarrow")
    table = pa.table({"id": [1, 2, 3], "year": [1, 1, 2]})
    pq.write_table(table, "t.parquet", filesystem=system)
    assert pq.read_table("t.parquet", filesystem=system).equals(table)
    assert pq.ParquetFile("t.parquet", filesystem=system).read().equals(table)
    assert pq.read_metadata("t.parquet", filesystem=system).num_rows == 3
    pq.write_to_dataset(table, "years", partition_cols=["year"], filesystem=system)
    assert pq.ParquetDataset("years", filesystem=system).read(columns=["id"]).num_rows == 3


def test_changes_of_files(system: Any) -> None:
    on: dict[str, Any] = {"filesystem": system}
    rows = {"id": [0, 10, 1, 11, 2, 12], "s": list("ababab")}
    pyparq.write_dataset(rows, "lake", max_rows_per_file=2, basename_template="f{i}.parquet", **on)
    assert len(pyparq.add_indexes("lake", "indexed", bloom_filters=["id"], **on).files) == 3
    pyparq.edit_metadata("indexed/f00000.parquet", "new.parquet", update={"owner": "me"}, **on)
    assert pyparq.read_metadata("new.parquet", **on).metadata[b"owner"] == b"me"
    assert pyparq.merge(["indexed/f00001.parquet", "new.parquet"], "merged.parquet", **on).num_rows == 4
    pyparq.rewrite("lake", "sorted.parquet", sort_by=["id"], **on)
    assert pyparq.read_table("sorted.parquet", ["id"], **on)["id"].to_pylist() == [0, 1, 2, 10, 11, 12]
    pyparq.rewrite(pyparq.dataset("lake", **on), "copied/", max_rows_per_file=4, **on)
    assert pyparq.dataset("copied", **on).count() == 6
    assert pyparq.verify("lake", **on).ok
    assert pyparq.recover_dataset("lake", **on) == 0


def test_a_catalog() -> None:
    on: dict[str, Any] = {"filesystem": stores.MemoryStore()}
    pyparq.write_dataset({"id": [1, 2, 3, 4]}, "lake", max_rows_per_file=2, **on)
    assert pyparq.index_dataset("lake", ["id"], **on).files_read == 2
    found = pyparq.dataset("lake", **on)
    assert found.lookup("id", 3).num_rows == 1
    assert found.explain(filters=col("id") == 3).catalog_rules_out == 1


def test_what_is_no_file_system(tmp_path: Path) -> None:
    for wrong in (7, object(), "s3", {"protocol": "s3"}):
        with pytest.raises(OptionError, match="filesystem must be"):
            pyparq.read_table("a.parquet", filesystem=wrong)
    with pytest.raises(OptionError, match="filesystem is for paths"):
        pyparq.read_table(b"PAR1", filesystem=stores.MemoryStore())
    path = str(tmp_path / "a.parquet")
    for road in ("obstore", "fsspec", None):
        pyparq.write_table({"id": [1]}, path, filesystem=road)
        assert pyparq.read_table(path, filesystem=road).num_rows == 1, "local paths need neither"
    pyparq.write_table({"id": [1]}, "memory://chosen.parquet", filesystem="fsspec")
    with pytest.raises(OptionError, match="a URL of memory"):
        pyparq.read_table("memory://chosen.parquet", filesystem="obstore")
    assert pyparq.read_table("chosen.parquet", filesystem="memory://").num_rows == 1


def test_pyarrow_is_not_imported() -> None:
    code = (
        "import sys, pyparq, fsspec\n"
        "fs = fsspec.filesystem('memory')\n"
        "pyparq.write_table({'id': [1]}, 'a.parquet', filesystem=fs)\n"
        "assert pyparq.read_table('a.parquet', filesystem=fs).num_rows == 1\n"
        "assert 'pyarrow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
