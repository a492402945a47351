"""``_metadata`` files of remote folders: believed where they cannot be wrong, passed over everywhere else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ChangedFileError, CorruptFileError, SkippedFileWarning
from pyparq.format.generated.ttypes import FileMetaData
from pyparq.format.thrift_codec import deserialize, serialize

URL = "memory://summary"


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    yield fs
    if fs.exists("/summary"):
        fs.rm("/summary", recursive=True)


def write(memory: Any, folder: Path) -> list[str]:
    """Six files in two partitions and their summary, by pyarrow; each file is written a second after the one before."""
    collected: list[Any] = []
    table = pa.table({"id": range(60), "s": [f"s{k}" for k in range(60)]})
    for k in range(6):
        path = folder / f"part={k // 3}" / f"f{k}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.slice(10 * k, 10), path, metadata_collector=collected)
        collected[-1].set_file_path(str(path.relative_to(folder)))
    pq.write_metadata(table.schema, folder / "_metadata", metadata_collector=collected)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
    for k, name in enumerate([*names, "_metadata"]):
        put(memory, name, (folder / name).read_bytes(), k)
    return names


def put(memory: Any, name: str, data: bytes, seconds: float) -> None:
    path = f"/summary/{name}"
    memory.pipe(path, data)
    memory.store[path].created = dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)


class Opened:
    """Paths that were read from the memory file system."""

    def __init__(self, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: set[str] = set()
        original = type(memory).cat_file

        def cat_file(fs: Any, path: str, *args: Any, **kwargs: Any) -> Any:
            self.paths.add(path.removeprefix("/summary/"))
            return original(fs, path, *args, **kwargs)

        monkeypatch.setattr(type(memory), "cat_file", cat_file)


@pytest.fixture
def opened(memory: Any, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(memory, monkeypatch)


def test_rows_and_schema_come_from_the_summary(memory: Any, opened: Opened, tmp_path: Path) -> None:
    write(memory, tmp_path)
    ds = pyparq.dataset(URL)
    assert ds.count() == 60
    assert ds.count(col("part") == 1) == 30
    assert ds.schema.names == ["id", "s", "part"]
    assert opened.paths == {"_metadata"}
    found = ds.read(filters=col("id").between(27, 32)).to_arrow()
    assert found.to_pylist() == [{"id": k, "s": f"s{k}", "part": k // 30} for k in range(27, 33)]
    assert ds.lookup("id", 7).num_rows == 1


def as_parquet_mr(data: bytes) -> bytes:
    """As parquet-mr writes it: the path stands in every column chunk of a merged footer, which names another writer."""
    size = int.from_bytes(data[-8:-4], "little")
    meta, _ = deserialize(FileMetaData, data[-8 - size : -8])
    meta.created_by = "parquet-mr version 1.13.1 (build abc)"
    meta.key_value_metadata = None
    for group in meta.row_groups:
        group.file_offset = 4
        for chunk in group.columns:
            assert chunk.file_path
    footer = serialize(meta)
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_summary_as_parquet_mr_writes_it(memory: Any, opened: Opened, tmp_path: Path) -> None:
    write(memory, tmp_path)
    put(memory, "_metadata", as_parquet_mr((tmp_path / "_metadata").read_bytes()), 100)
    assert pyparq.dataset(URL).count() == 60
    assert opened.paths == {"_metadata"}


def test_our_own_summary(memory: Any, opened: Opened, tmp_path: Path) -> None:
    pyparq.write_dataset({"id": list(range(50))}, tmp_path / "d", max_rows_per_file=10, write_metadata=True)
    files = sorted(path for path in (tmp_path / "d").rglob("*") if path.is_file())
    for k, path in enumerate(sorted(files, key=lambda path: path.name == "_metadata")):
        put(memory, str(path.relative_to(tmp_path / "d")), path.read_bytes(), k)
    assert pyparq.dataset(URL).count() == 50
    assert opened.paths == {"_metadata"}


@pytest.mark.parametrize(
    "kind", ["older", "same time", "more files", "fewer files", "renamed", "damaged", "shorter file"]
)
def test_summaries_that_may_be_wrong_are_passed_over(memory: Any, opened: Opened, tmp_path: Path, kind: str) -> None:
    names = write(memory, tmp_path)
    expected = 60
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(3), "s": ["x"] * 3}), other)
    if kind in ("older", "same time"):
        put(memory, names[2], other.getvalue().to_pybytes(), 6 if kind == "same time" else 7)
        expected = 53
    elif kind == "more files":
        put(memory, "part=1/zz.parquet", other.getvalue().to_pybytes(), 3)
        expected = 63
    elif kind == "fewer files":
        memory.rm(f"/summary/{names[0]}")
        expected = 50
    elif kind == "renamed":
        memory.mv(f"/summary/{names[0]}", "/summary/part=0/another.parquet")
    elif kind == "damaged":
        data = (tmp_path / "_metadata").read_bytes()
        put(memory, "_metadata", data[:-30] + b"\xff" * 22 + data[-8:], 100)
    else:
        data = (tmp_path / names[0]).read_bytes()
        put(memory, names[5], data[: len(data) // 4], 3)
        with pytest.raises(CorruptFileError, match=names[5]):
            pyparq.dataset(URL).count()
        return
    ds = pyparq.dataset(URL)
    assert ds.count() == expected
    assert ds.read(["id"]).num_rows == expected
    assert len(opened.paths) > 4


def test_a_file_that_the_summary_is_wrong_about(memory: Any, tmp_path: Path) -> None:
    """Larger, and put in place with an old time, which no store does: noticed as soon as the file is opened."""
    names = write(memory, tmp_path)
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(999), "s": ["x"] * 999}), other)
    put(memory, names[3], other.getvalue().to_pybytes(), 0)
    with pytest.raises(ChangedFileError, match="remove the summary"):
        pyparq.dataset(URL).read()
    with pytest.warns(SkippedFileWarning):
        assert pyparq.dataset(URL, on_error="skip").read().num_rows == 50


def test_a_summary_that_is_gone(memory: Any, tmp_path: Path) -> None:
    write(memory, tmp_path)
    ds = pyparq.dataset(URL)
    memory.rm("/summary/_metadata")
    assert ds.count() == 60


def test_local_folders_do_without(tmp_path: Path) -> None:
    for k in range(3):
        pq.write_table(pa.table({"id": [k]}), tmp_path / f"{k}.parquet")
    (tmp_path / "_metadata").write_bytes(b"not even Parquet")
    assert pyparq.dataset(tmp_path).count() == 3


def test_encrypted_files_are_read_themselves(memory: Any, opened: Opened, tmp_path: Path) -> None:
    write(memory, tmp_path)
    keys = pyparq.DecryptionProperties(footer_key=bytes(16), allow_plaintext_files=True)
    assert pyparq.dataset(URL, decryption=keys).count() == 60
    assert len(opened.paths) == 6
