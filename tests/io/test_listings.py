"""Listings of remote folders: all files, or an error that names the folder; never fewer files without a word."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from fsspec.asyn import AsyncFileSystem
from s3_server import BUCKET, S3, serve
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
from pyparq.errors import OptionError, TargetExistsError, UnsupportedError

require("fsspec")


class WalkingStore(AsyncStore):
    """It lists one folder at a time, as fsspec's base class does: sftp, HDFS and obstore's own, for example."""

    _find = AsyncFileSystem._find


STORES = {"looping": LoopingStore, "walking": WalkingStore, "at once": AsyncStore}
FOLDERS = ["y1", "y2", "y3/m1", "y3/m2"]


def file_bytes(k: int) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"id": [k]}, sink)
    return sink.getvalue()


FILES = {f"lake/{folder}/t.parquet": file_bytes(k) for k, folder in enumerate(FOLDERS)}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    made: Any = STORES[request.param](FILES)
    # URLs lead to this very store.
    monkeypatch.setattr(
        "pyparq.datasets.discovery.file_system", lambda url, *args: (made, url.removeprefix("slow://").rstrip("/"))
    )
    monkeypatch.setattr(
        "pyparq.io.source.file_system", lambda url, *args: (made, url.removeprefix("slow://").rstrip("/"))
    )
    monkeypatch.setattr(
        "pyparq.datasets.write.store_commit.file_system",
        lambda url, *args: (made, url.removeprefix("slow://").rstrip("/")),
    )
    return made


def fail_listings(store: Any, of: str, error: Exception, times: int = 1000) -> None:
    left = [times]

    def fail(request: Request) -> Exception | None:
        if request.kind == "list" and request.path.strip("/") == of and left[0] > 0:
            left[0] -= 1
            return error
        return None

    store.fail = fail


def ids(source: str, **options: Any) -> list[int]:
    found: list[int] = sorted(pyparq.dataset(source, retry_wait=0.001, **options).read(["id"]).to_pydict()["id"])
    return found


SOURCES = ["slow://lake", "slow://lake/*", "slow://lake/**/*.parquet", "slow://lake/y*/"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_listing_that_fails_for_the_moment(store: Any, source: str) -> None:
    assert ids(source) == [0, 1, 2, 3]
    for of in ("lake", "lake/y2", "lake/y3/m1"):
        fail_listings(store, of, ConnectionResetError("gone"), times=2)
        assert ids(source) == [0, 1, 2, 3]
        fail_listings(store, of, TimeoutError("no answer"), times=2)
        assert ids(source) == [0, 1, 2, 3]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "error", [ConnectionResetError("gone"), PermissionError("not yours"), OSError(5, "broken")], ids=repr
)
def test_a_listing_that_fails_for_good(store: Any, source: str, error: OSError) -> None:
    of = "lake" if isinstance(store, AsyncStore) and not isinstance(store, WalkingStore) else "lake/y3/m1"
    fail_listings(store, of, error)
    with pytest.raises(OSError, match=str(error.args[-1])) as caught:
        ids(source)
    assert "lake" in str(caught.value.filename)
    if of != "lake":
        assert str(caught.value.filename).endswith("lake/y3/m1")


@pytest.mark.parametrize("source", SOURCES[:3])
def test_options_say_how_often_a_listing_is_made_again(store: Any, source: str) -> None:
    fail_listings(store, "lake", ConnectionResetError("gone"))
    for retries in (0, 2):
        store.log.clear()
        with pytest.raises(ConnectionError):
            ids(source, retries=retries)
        assert len(store.log.of("list")) == retries + 1


def test_a_listing_takes_one_request_for_each_folder(store: Any) -> None:
    ids("slow://lake")
    most = 1 if isinstance(store, AsyncStore) and not isinstance(store, WalkingStore) else 6
    assert len(store.log.of("list")) == most
    store.log.clear()
    ids("slow://lake/y1/*.parquet")
    assert len(store.log.of("list")) == 1


@pytest.mark.parametrize("store", ["looping", "walking"], indirect=True)
def test_folders_that_a_pattern_rules_out_are_not_listed(store: Any) -> None:
    fail_listings(store, "lake/y2", PermissionError("not yours"))
    assert ids("slow://lake/y3/*/t.parquet") == [2, 3]
    assert ids("slow://lake/y[13]/*.parquet") == [0]
    assert [r.path for r in store.log.of("list")].count("lake/y2") == 0


@pytest.mark.parametrize("store", ["looping", "walking"], indirect=True)
@pytest.mark.parametrize("source", SOURCES[:3])
def test_a_folder_that_goes_while_it_is_listed(store: Any, source: str) -> None:
    """It has no files then. One that is still listed above it, and says that it is not there, is an error."""
    fail_listings(store, "lake/y2", FileNotFoundError("lake/y2"))
    with pytest.raises(FileNotFoundError) as caught:
        ids(source)
    assert str(caught.value.filename).endswith("lake/y2")

    def fail(request: Request) -> Exception | None:
        if request.kind == "list" and request.path.strip("/") == "lake/y2":
            store.files.pop("lake/y2/t.parquet", None)
            return FileNotFoundError(request.path)
        return None

    store.fail = fail
    assert ids(source) == [0, 2, 3]


@pytest.mark.parametrize("store", ["looping"], indirect=True)
def test_an_answer_that_hides_behind_a_missing_file(store: Any) -> None:
    """fsspec's HTTP, for example, raises ``FileNotFoundError`` for whatever the server answers."""

    class Answer(Exception):
        status = 503

    error = FileNotFoundError("lake/y2")
    error.__cause__ = Answer()
    fail_listings(store, "lake/y2", error)
    with pytest.raises(OSError, match="503") as caught:
        ids("slow://lake")
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("store", ["looping"], indirect=True)
def test_folders_without_end(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ls(path: str, detail: bool = True, **kwargs: Any) -> Any:
        return [{"name": f"{path}/a", "size": 0, "type": "directory"}]

    monkeypatch.setattr(store, "ls", ls)
    with pytest.raises(OptionError, match="levels"):
        ids("slow://lake")
    monkeypatch.setattr(store, "ls", lambda path, **kwargs: [{"name": "lake", "size": 0, "type": "directory"}])
    with pytest.raises(FileNotFoundError):
        ids("slow://lake")


def test_globs_pass_hidden_folders_over(store: Any) -> None:
    store.files["lake/_temporary/t.parquet"] = store.files["lake/.old/t.parquet"] = file_bytes(9)
    for source in SOURCES:
        assert ids(source) == [0, 1, 2, 3], source


# ---- writes


@pytest.mark.parametrize("mode", ["append", "overwrite", "error"])
def test_a_write_that_cannot_list_its_folder(store: Any, mode: str) -> None:
    """A listing that fails does not stand for an empty folder, to which anything may be written."""
    of = "lake" if isinstance(store, AsyncStore) and not isinstance(store, WalkingStore) else "lake/y2"
    fail_listings(store, of, OSError(5, "broken"))
    before = dict(store.files)
    with pytest.raises(OSError, match="broken"):
        pyparq.write_dataset({"id": [1]}, "slow://lake", mode=mode)
    assert store.files == before


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), TimeoutError("late")], ids=repr)
def test_a_managed_table_that_cannot_be_seen_for_the_moment(store: Any, error: Exception) -> None:
    store.files = {"lake/_delta_log/0.json": b"", "lake/part/t.parquet": file_bytes(1)}
    asked: list[str] = []

    def fail(request: Request) -> Exception | None:
        asked.append(request.path)
        return error if request.kind == "info" and asked.count(request.path) == 1 else None

    def info(path: str, **kwargs: Any) -> Any:
        found = fail(Request("info", path))
        if found is not None:
            raise found
        if any(name.startswith(path + "/") for name in store.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    store.info = info
    with pytest.raises(OptionError, match="Delta Lake"):
        pyparq.write_dataset({"id": [1]}, "slow://lake/part/new", mode="append")
    assert asked.count("lake/_delta_log") == 2


@pytest.mark.parametrize("store", ["looping"], indirect=True)
def test_a_managed_table_that_cannot_be_seen_at_all(store: Any) -> None:
    """A file system that does not say whether there is one is not written to; one that says no is."""
    for error, told in ((OSError(5, "broken"), "broken"), (PermissionError(13, "not yours"), None)):
        store.fail = lambda request, error=error: error if request.kind == "info" else None
        store.files = {"lake/part/t.parquet": file_bytes(1)}
        if told is not None:
            with pytest.raises(OSError, match=told) as caught:
                pyparq.write_dataset({"id": [1]}, "slow://lake/part", mode="append")
            assert "_delta_log" in str(caught.value.filename)
        else:
            with pytest.raises(UnsupportedError):  # which comes later: the mock cannot be written to
                pyparq.write_dataset({"id": [1]}, "slow://lake/part", mode="append")


# ---- S3


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        for name, data in FILES.items():
            running.fs().pipe_file(f"{BUCKET}/{name}", data)
        yield running


@pytest.fixture(autouse=True)
def no_refusals(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "s3" in request.fixturenames:
        request.getfixturevalue("s3").refuse = lambda method, path: False


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*/*.parquet", [0, 1]), ("y*/*.parquet", [0, 1]), ("**/*.parquet", [0, 1, 2, 3]), ("*", [0, 1, 2, 3])],
)
def test_an_s3_glob_with_a_folder_that_cannot_be_listed(s3: S3, pattern: str, expected: list[int]) -> None:
    source = f"s3://{BUCKET}/lake/{pattern}"
    whole = ids(source, storage_options=s3.options)
    assert whole == expected
    s3.refuse = lambda method, path: "y2" in path or ("**" in pattern and "list-type" in path)
    with pytest.raises(PermissionError):
        ids(source, storage_options=s3.options)


def test_s3_globs_ask_for_what_begins_as_they_do(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec")  # obstore lists whole folders
    s3.asked.clear()
    pyparq.dataset(f"s3://{BUCKET}/lake/y1*/*.parquet", storage_options=s3.options)
    lists = [path for _, path, _ in s3.asked if "list-type" in path]
    assert len(lists) == 2
    assert "y1" in lists[0]


def test_a_glob_sees_what_others_have_written_since(s3: S3) -> None:
    options = {name: value for name, value in s3.options.items() if name != "skip_instance_cache"}
    source = f"s3://{BUCKET}/growing/*/*.parquet"
    s3.fs().pipe_file(f"{BUCKET}/growing/a/1.parquet", file_bytes(1))
    assert ids(source, storage_options=options) == [1]
    s3.fs().pipe_file(f"{BUCKET}/growing/a/2.parquet", file_bytes(2))
    s3.fs().pipe_file(f"{BUCKET}/growing/b/3.parquet", file_bytes(3))
    assert ids(source, storage_options=options) == [1, 2, 3]


# ---- local files by another name


def test_local_urls_are_local_paths(tmp_path: Path) -> None:
    url = f"local://{tmp_path}/lake"
    pyparq.write_dataset({"id": [1, 2]}, url)
    pyparq.write_dataset({"id": [3]}, url, mode="append")
    os.symlink(tmp_path / "lake", tmp_path / "lake" / "again")
    assert ids(url) == [1, 2, 3]
    assert ids(f"{url}/*.parquet") == [1, 2, 3]
    with pytest.raises(TargetExistsError):
        pyparq.write_dataset({"id": [3]}, url, mode="error")
    pyparq.write_table({"id": [7]}, f"local://{tmp_path}/t.parquet")
    assert pyparq.read_table(f"local://{tmp_path}/t.parquet").to_pydict() == {"id": [7]}
