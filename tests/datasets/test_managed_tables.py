"""Tables of Delta Lake, Iceberg and Hudi: plain writers leave them alone unless forced, and readers are warned."""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from conftest import require

import pyparq
import pyparq.pandas
import pyparq.parquet
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


# ---- functions that write one file ---------------------------------------------------------------------------------


def writers() -> dict[str, Callable[..., Any]]:
    import pyparq.parquet as ppq

    pa, pd = require("pyarrow"), require("pandas")
    import pyparq.pandas

    table, schema = pa.table({"x": [3]}), pyparq.schema({"x": "int64"})
    return {
        "write_table": lambda path, **more: pyparq.write_table({"x": [3]}, path, **more),
        "ParquetWriter": lambda path, **more: pyparq.ParquetWriter(path, schema, **more).close(),
        "URL": lambda path, **more: pyparq.write_table({"x": [3]}, Path(path).as_uri(), **more),
        "fsspec.open": lambda path, **more: pyparq.write_table(
            {"x": [3]}, require("fsspec").open(str(path), "wb"), **more
        ),
        "filesystem": lambda path, **more: pyparq.write_table(
            {"x": [3]}, str(path), filesystem=pa.fs.LocalFileSystem(), **more
        ),
        "parquet.write_table": lambda path, **more: ppq.write_table(table, path, **more),
        "parquet.ParquetWriter": lambda path, **more: ppq.ParquetWriter(path, table.schema, **more).close(),
        "pandas": lambda path, **more: pyparq.pandas.to_parquet(pd.DataFrame({"x": [3]}), path, **more),
    }


WRITERS = ("write_table", "ParquetWriter", "URL", "fsspec.open", "filesystem", "parquet.write_table",
           "parquet.ParquetWriter", "pandas")  # fmt: skip


@pytest.mark.parametrize("marker", [*MARKERS, "_spark_metadata/0"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_of_a_table_is_not_written(tmp_path: Path, marker: str, writer: str) -> None:
    require("pyarrow.fs")
    write = writers()[writer]
    table = make_table(tmp_path / "t", marker)
    (tmp_path / "link").symlink_to(table / "data" / "k=1" / "a.parquet")
    before = files_of(table)
    for path in ("t/data/k=1/a.parquet", "t/data/k=1/new.parquet", "t/new.parquet", "link"):
        with pytest.raises(Exception, match="force=True") as error:
            write(tmp_path / path)
        assert isinstance(error.value, OptionError)
    assert files_of(table) == before
    write(tmp_path / "beside.parquet")
    write(table / "data" / "k=1" / "new.parquet", force=True)
    assert len(files_of(table)) == len(before) + 1


def test_write_to_dataset_asks_too(tmp_path: Path) -> None:
    import pyparq.pandas
    import pyparq.parquet as ppq

    pa, pd = require("pyarrow"), require("pandas")
    table = make_table(tmp_path / "t")
    before = files_of(table)
    with pytest.raises(OptionError, match="force=True"):
        ppq.write_to_dataset(pa.table({"x": [3]}), table)
    with pytest.raises(OptionError, match="force=True"):
        pyparq.pandas.to_parquet(pd.DataFrame({"x": [3], "k": [1]}), table, partition_cols=["k"])
    assert files_of(table) == before
    ppq.write_to_dataset(pa.table({"x": [3]}), table, force=True)
    assert len(files_of(table)) == len(before) + 1


def test_a_folder_that_becomes_a_table(tmp_path: Path) -> None:
    """Also where it has been looked at just before, and where a link leads to another folder now."""
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for marker in ("a/_delta_log", "a/b/.hoodie", "a/b/c/_spark_metadata"):
        for wait in (0, 0.15):
            pyparq.write_table({"x": [1]}, folder / "f.parquet")
            time.sleep(wait)
            pyparq.write_table({"x": [1]}, folder / "f.parquet")
            (tmp_path / marker).mkdir()
            with pytest.raises(OptionError, match="force=True"):
                pyparq.write_table({"x": [1]}, folder / "f.parquet")
            (tmp_path / marker).rmdir()
    (tmp_path / "link").symlink_to(folder)
    time.sleep(0.15)
    for _ in range(2):
        pyparq.write_table({"x": [1]}, tmp_path / "link" / "f.parquet")
    (tmp_path / "a" / "_delta_log").mkdir()
    with pytest.raises(OptionError, match="force=True"):
        pyparq.write_table({"x": [1]}, tmp_path / "link" / "f.parquet")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    pyparq.write_table({"x": [1]}, tmp_path / "link" / "f.parquet")


@pytest.fixture
def quiet() -> Iterator[Path]:
    """A folder that is not below /tmp, where other tests make theirs: folders whose entries change are asked again."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        yield Path(folder)


def test_folders_above_are_asked_once(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = quiet / "a" / "b"
    folder.mkdir(parents=True)
    time.sleep(0.15)
    asked: list[str] = []
    look = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: (asked.append(path), look(path, mode))[1])
    for _ in range(3):
        pyparq.write_table({"x": [1]}, folder / "f.parquet")
    assert asked.count(str(folder / "_delta_log")) == 3
    assert asked.count(str(quiet / "_delta_log")) == 1


def test_a_store_is_asked_once_for_a_folder(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.io.folders import Folders

    for k in range(5):
        pyparq.write_table({"x": [k]}, f"memory://lake/in/t/{k}.parquet")
    asked: list[str] = []
    look = Folders.is_folder
    monkeypatch.setattr(Folders, "is_folder", lambda self, path: (asked.append(path), look(self, path))[1])
    pyparq.write_table({"x": [9]}, "memory://lake/in/t/9.parquet")
    assert asked == []
    assert len(pyparq.add_indexes("memory://lake/in/t", bloom_filters=["x"]).files) == 6
    assert len(asked) == len(set(asked)) == 9


# ---- folders that Spark writes -------------------------------------------------------------------------------------


def stream_log(folder: Path, batches: dict[str, list[str]], version: str = "v1") -> None:
    (folder / "_spark_metadata").mkdir(exist_ok=True)
    for name, paths in batches.items():
        entries = [
            {"path": f"file:///once/here/{path.removeprefix('-')}", "size": 1, "isDir": False,
             "action": "delete" if path.startswith("-") else "add"}
            for path in paths
        ]  # fmt: skip
        (folder / "_spark_metadata" / name).write_text("\n".join([version, *map(json.dumps, entries)]))
    (folder / "_spark_metadata" / ".9.crc").write_bytes(b"crc")


def test_the_log_of_a_stream_says_which_files_count(tmp_path: Path, memory: Any) -> None:
    """As Spark reads it (tests/spark/test_spark_lake.py asks it)."""
    folder = tmp_path / "s"
    (folder / "k=a b").mkdir(parents=True)
    for k, name in enumerate(["0", "1", "2", "3", "4", "k=a b/3"]):
        pyparq.write_table({"x": [k]}, folder / f"{name}.parquet", force=True)
    stream_log(folder, {"0": ["4.parquet"], "1.compact": ["0.parquet", "1.parquet"]})
    stream_log(folder, {"2": ["-1.parquet", "2.parquet", "gone.parquet"], "10": ["k=a%20b/3.parquet", "-gone.parquet"]})
    upload(memory, folder, "/lake/s")
    for place in (str(folder), f"{folder}/", "memory://lake/s", "memory://lake/s/"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sorted(pyparq.dataset(place, partitioning=None).read()["x"].to_pylist()) == [0, 2, 5]
    with pytest.raises(OptionError, match="structured streaming"):
        pyparq.add_indexes("memory://lake/s", bloom_filters=["x"])
    with pytest.warns(ManagedTableWarning, match="a batch that has failed"):
        assert pyparq.dataset(f"{folder}/*.parquet").count() == 5
    for change in (
        lambda: pyparq.write_dataset({"x": [1]}, folder, mode="append"),
        lambda: pyparq.write_dataset({"x": [1]}, "memory://lake/s", mode="overwrite"),
        lambda: pyparq.write_dataset({"x": [1]}, tmp_path, mode="overwrite"),
        lambda: pyparq.rewrite(pyparq.dataset(folder, partitioning=None), folder, mode="overwrite"),
        lambda: pyparq.add_indexes(folder, bloom_filters=["x"]),
        lambda: pyparq.edit_metadata(folder, update={"a": "b"}),
    ):
        with pytest.raises(OptionError, match=r"Spark's structured streaming.*force=True"):
            change()
    (folder / "2.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="names the file"):
        pyparq.dataset(folder)
    (folder / "_spark_metadata" / "11").write_text("v1\n{")
    with pytest.raises(pyparq.CorruptFileError, match="the log of Spark's stream"):
        pyparq.dataset(folder)
    stream_log(folder, {"11": []}, "v2")
    with pytest.raises(pyparq.UnsupportedError, match="version 'v2'"):
        pyparq.dataset(folder)


BUCKET_FILE = "part-00000-3f1c5be9-7a37-4d2b-9a6c-0b5f6f2b7a11_00002.c000.snappy.parquet"


@pytest.mark.parametrize("where", ["", "k=1/", "k=1/j=2/"])
def test_buckets_keep_their_names(tmp_path: Path, memory: Any, where: str) -> None:
    folder = tmp_path / "t"
    (folder / where).mkdir(parents=True)
    pyparq.write_table({"x": [1, 2, 3]}, folder / where / BUCKET_FILE)
    (folder / "_SUCCESS").write_bytes(b"")
    upload(memory, folder, "/lake/t")
    before = files_of(folder)
    places = [folder, folder / "k=2", "memory://lake/t"] if where else [folder, "memory://lake/t"]
    for place in places:
        for mode in ("append", "overwrite"):
            with pytest.raises(OptionError, match=r"bucketed table of Spark.*force=True"):
                pyparq.write_dataset({"x": [3]}, place, mode=mode)
    with pytest.raises(OptionError, match="bucketed table of Spark"):
        pyparq.rewrite(folder, folder, mode="overwrite", sort_by=["x"])
    for write in (pyparq.write_table, pyparq.parquet.write_table, pyparq.pandas.to_parquet):
        with pytest.raises(OptionError, match=r"bucketed table of Spark.*force=True"):
            write(
                pd.DataFrame({"x": [3]}) if write is pyparq.pandas.to_parquet else pa.table({"x": [3]}),
                folder / where / "n.parquet",
            )
    assert files_of(folder) == before
    assert pyparq.add_indexes(folder, bloom_filters=["x"]).files_written == 1  # the names and rows stay
    assert files_of(folder).keys() == before.keys()
    pyparq.write_dataset({"x": [3]}, folder, mode="append", force=True)
    pyparq.write_dataset({"x": [3]}, tmp_path / "u", mode="append")
