"""Tables of Delta Lake, Iceberg and Hudi: plain writers leave them alone unless forced, and readers are warned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq
from pyparq.errors import ManagedTableWarning, OptionError

MARKERS = ("_delta_log/0.json", "metadata/v1.metadata.json", "metadata/v1.metadata.json.gz", ".hoodie/props")


def make_table(folder: Path, marker: str = MARKERS[0]) -> Path:
    """A folder that looks like a table of a format, with one file in a partition folder."""
    (folder / marker).parent.mkdir(parents=True)
    (folder / marker).write_text("{}")
    (folder / "data" / "k=1").mkdir(parents=True)
    pyparq.write_table({"x": [1, 2]}, folder / "data" / "k=1" / "a.parquet", force=True)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system of fsspec's in memory, empty."""
    system = require("fsspec").filesystem("memory")
    for entry in system.ls("/", detail=False):
        system.rm(entry, recursive=True)
    yield system
    for entry in system.ls("/", detail=False):
        system.rm(entry, recursive=True)


def upload(system: Any, folder: Path, to: str) -> None:
    for name, data in files_of(folder).items():
        system.pipe_file(f"{to}/{name}", data)


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("inner", ["", "data", "data/k=1", "data/k=2"])
def test_a_write_into_a_table_is_refused(tmp_path: Path, marker: str, mode: str, inner: str) -> None:
    table = make_table(tmp_path / "t", marker)
    before = files_of(table)
    with pytest.raises(OptionError, match="force=True"):
        pyparq.write_dataset({"x": [3]}, table / inner, mode=mode)
    assert files_of(table) == before
    assert not (table / "data/k=2").exists()
    pyparq.write_dataset({"x": [3]}, table / inner, mode=mode, force=True)
    assert files_of(table) != before


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("inner", ["", "/data/k=1"])
def test_a_write_into_a_remote_table_is_refused(
    tmp_path: Path, memory: Any, marker: str, mode: str, inner: str
) -> None:
    upload(memory, make_table(tmp_path / "t", marker), "/lake/t")
    before = sorted(memory.find("/lake"))
    with pytest.raises(OptionError, match="force=True"):
        pyparq.write_dataset({"x": [3]}, f"memory://lake/t{inner}", mode=mode)
    assert sorted(memory.find("/lake")) == before
    pyparq.write_dataset({"x": [3]}, f"memory://lake/t{inner}", mode=mode, force=True)
    assert sorted(memory.find("/lake")) != before


def test_an_overwrite_of_a_folder_that_holds_a_table_is_refused(tmp_path: Path, memory: Any) -> None:
    """It would remove the table's files. Files beside the table harm nothing."""
    table = make_table(tmp_path / "lake" / "t")
    before = files_of(table)
    with pytest.raises(OptionError, match="force=True"):
        pyparq.write_dataset({"x": [3]}, tmp_path / "lake", mode="overwrite")
    assert files_of(tmp_path / "lake") == {f"t/{name}": data for name, data in before.items()}
    pyparq.write_dataset({"x": [3]}, tmp_path / "lake", mode="append")
    upload(memory, table, "/lake/t")
    with pytest.raises(OptionError, match="force=True"):
        pyparq.write_dataset({"x": [3]}, "memory://lake", mode="overwrite")
    assert len(memory.find("/lake")) == len(before)


def test_a_link_into_a_table_is_seen_from_both_sides(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    (tmp_path / "link").symlink_to(table / "data")
    (tmp_path / "elsewhere").mkdir()
    (table / "out").symlink_to(tmp_path / "elsewhere")
    for target in (tmp_path / "link", table / "out"):
        with pytest.raises(OptionError, match="force=True"):
            pyparq.write_dataset({"x": [3]}, target, mode="append")


def rows_or_error(reader: Callable[[str], Any], place: str) -> Any:
    """Iceberg's metadata lies among what counts as data: reading all of its table is an error."""
    try:
        return reader(place)
    except pyparq.ParquetError:
        return "error"


READERS: dict[str, Callable[[str], Any]] = {
    "dataset": lambda path: pyparq.dataset(path).count(),
    "read_table": lambda path: pyparq.read_table(path).num_rows,
}


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("reader", READERS)
def test_readers_of_a_table_are_warned(tmp_path: Path, memory: Any, marker: str, reader: str) -> None:
    table = make_table(tmp_path / "t", marker)
    upload(memory, table / "data", "/lake/t/data")
    memory.pipe_file(f"/lake/t/{marker}", b"{}")
    for place in (str(table), str(table / "data"), "memory://lake/t"):
        with pytest.warns(ManagedTableWarning, match="deleted or replaced.*to read the table as it is now"):
            found = rows_or_error(READERS[reader], place)
        assert found == ("error" if "metadata" in marker and not place.endswith("/data") else 2)


def test_each_table_of_a_list_is_named(tmp_path: Path) -> None:
    """Also where a table's name begins with that of another folder."""
    plain = tmp_path / "t"
    pyparq.write_dataset({"x": [1]}, plain)
    tables = [make_table(tmp_path / name) for name in ("t1", "t10")]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert pyparq.dataset([str(plain), *map(str, tables)], partitioning=None).count() == 5
    said = [str(w.message) for w in heard if w.category is ManagedTableWarning]
    assert [any(text.startswith(f"{table} ") for text in said) for table in tables] == [True, True]
