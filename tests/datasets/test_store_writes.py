"""Writes to a store that are cut short at any request: readers get the old rows or the new ones, never some of both."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from conftest import require
from fsspec.implementations.memory import MemoryFileSystem
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import TargetExistsError
from pyparq.datasets.unfinished_writes import MARKER, Marker
from pyparq.datasets.write.store_commit import StagedObjects, StoreCommitter
from pyparq.datasets.write.targets import StagedFile
from pyparq.errors import CorruptFileError, UnfinishedWriteWarning, WriteConflictError
from pyparq.io.folders import Changes, Folders

fsspec: Any = require("fsspec")

OLD, NEW = [0, 1], [100, 101]
URL = "cut://lake"


class CutStore(MemoryFileSystem):
    """A store in memory. From a certain request on it refuses everything, as when a key is withdrawn."""

    protocol = "cut"
    store: dict[str, Any] = {}  # noqa: RUF012  # as in the base class
    pseudo_dirs: list[str] = [""]  # noqa: RUF012
    asked = 0
    refuses_from = 1 << 30

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        found: str = super()._strip_protocol(path.removeprefix("cut://"))
        return found


def _counted(name: str) -> Any:
    def ask(self: CutStore, *args: Any, **options: Any) -> Any:
        CutStore.asked += 1
        if CutStore.asked >= CutStore.refuses_from:
            raise PermissionError("the key was withdrawn")
        return getattr(MemoryFileSystem, name)(self, *args, **options)

    return ask


for _name in ("pipe_file", "cat_file", "rm_file", "cp_file", "makedirs", "ls", "info", "mv", "_open"):
    setattr(CutStore, _name, _counted(_name))


@pytest.fixture(scope="module", autouse=True)
def known() -> None:
    fsspec.register_implementation("cut", CutStore, clobber=True)


def cut_from(request: int) -> None:
    CutStore.asked, CutStore.refuses_from = 0, request


@pytest.fixture
def lake() -> Iterator[str]:
    """Two files in two partitions."""
    cut_from(1 << 30)
    CutStore.store.clear()
    CutStore.pseudo_dirs[:] = [""]
    for k in OLD:
        pyparq.write_dataset({"id": [k], "p": [k % 2]}, URL, partition_cols=["p"], mode="append")
    yield URL
    cut_from(1 << 30)


def overwrite(url: str, mode: str = "overwrite", **options: Any) -> None:
    data = {"id": NEW, "p": [k % 2 for k in NEW]}
    pyparq.write_dataset(data, url, partition_cols=["p"], mode=mode, max_rows_per_file=1, **options)


def by_tasks(url: str, storage_options: Any = None) -> None:
    committer = StoreCommitter.start(url, "overwrite", storage_options)
    staged: list[StagedFile] = []
    for k in NEW:
        objects = StagedObjects(committer.staging, f"task{k}", storage_options)
        with pyparq.ParquetWriter(objects.sink(f"p={k % 2}/new-{k}.parquet", False), {"id": "int64"}) as writer:
            writer.write({"id": [k]})
        staged.append(objects.staged(f"p={k % 2}/new-{k}.parquet"))
    committer.commit(staged)


WRITES: dict[str, Any] = {
    "overwrite": overwrite,
    "partitions": lambda url: overwrite(url, "overwrite_partitions"),
    "summary": lambda url: overwrite(url, write_metadata=True),
    "own names": lambda url: overwrite(url, basename_template="part-{i}.parquet"),
    "by tasks": by_tasks,
}


def ids(url: str, **options: Any) -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWriteWarning)
        found = pyparq.dataset(url, **options)
        return sorted(found.read(["id"]).to_pydict()["id"]) if found.files else []


@pytest.mark.sweep(3)
@pytest.mark.filterwarnings("ignore:the write to:UserWarning")  # it is committed
@pytest.mark.parametrize("how", WRITES)
def test_cut_short_at_each_request(lake: str, how: str) -> None:
    files = dict(CutStore.store)
    cut_from(1 << 30)
    WRITES[how](lake)
    asked, states = CutStore.asked, []
    assert ids(lake) == NEW
    for request in range(1, asked + 1):
        CutStore.store.clear()
        CutStore.store.update(files)
        cut_from(request)
        with suppress(OSError):
            WRITES[how](lake)
        cut_from(1 << 30)
        found = ids(lake)
        assert found in (OLD, NEW), request
        assert ids(f"{lake}/*/*.parquet") == found
        assert [*ids(f"{lake}/p=0"), *ids(f"{lake}/p=1/*")] == sorted(found, key=lambda k: (k % 2, k))
        has_marker = any(MARKER in path for path in CutStore.store)
        assert pyparq.recover_dataset(lake) == has_marker
        assert not any(MARKER in path for path in CutStore.store)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sorted(pyparq.dataset(lake).read(["id"]).to_pydict()["id"]) == found
        states.append(found)
    assert OLD in states
    assert NEW in states


@pytest.mark.filterwarnings("ignore:the write to:UserWarning")
def test_a_first_write_that_is_cut_short(lake: str) -> None:
    url = "cut://fresh"
    cut_from(1 << 30)
    overwrite(url, "error")
    asked = CutStore.asked
    assert ids(url) == NEW
    for request in range(1, asked + 1):
        for path in [path for path in CutStore.store if path.startswith("/fresh")]:
            del CutStore.store[path]
        cut_from(request)
        with suppress(OSError):
            overwrite(url, "error")
        cut_from(1 << 30)
        found = ids(url) if any(path.startswith("/fresh/") for path in CutStore.store) else []
        assert found in ([], NEW), request
        pyparq.recover_dataset(url)
        files = [path for path in CutStore.store if path.startswith("/fresh/")]
        assert (ids(url) if files else []) == found


def test_readers_are_told(lake: str) -> None:
    place(lake)
    with pytest.warns(UnfinishedWriteWarning, match=r"of before it are read.*recover_dataset\('cut:///lake'\)"):
        assert pyparq.dataset(lake).count() == len(OLD)
    with pytest.raises(pyparq.ChangedFileError, match="has not ended"):
        pyparq.add_indexes(lake)
    with pytest.raises(WriteConflictError, match=r'mode="overwrite" began here at .*recover_dataset'):
        overwrite(lake)
    assert pyparq.recover_dataset(lake) == 1
    assert pyparq.recover_dataset(lake) == 0
    overwrite(lake)
    assert ids(lake) == NEW


def place(lake: str) -> None:
    """The marker of a write that does not count yet, with one of its files."""
    marker = '{"pyparq": 1, "id": "a", "mode": "overwrite", "begun": "today", "template": "n-{i}.parquet", ' \
        '"new": [], "kept": [], "old": null}'  # fmt: skip
    fs = CutStore()
    pyparq.write_table({"id": [100], "p": [0]}, f"{lake}/p=0/n-00000.parquet")
    fs.pipe_file(f"/lake/{MARKER}", marker.encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"pyparq": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_marker(lake: str, data: bytes) -> None:
    CutStore().pipe_file(f"/lake/{MARKER}", data)
    for ask in (pyparq.dataset, pyparq.recover_dataset, overwrite):
        with pytest.raises(CorruptFileError, match="cannot be told apart"):
            ask(lake)


def test_a_program_that_still_runs_notices_its_recovery(lake: str) -> None:
    def rows() -> Iterator[dict[str, list[int]]]:
        yield {"id": NEW[:1]}
        assert pyparq.recover_dataset(lake) == 1
        yield {"id": NEW[1:]}

    with pytest.raises(WriteConflictError, match="has ended this write"):
        pyparq.write_dataset(rows(), lake, mode="overwrite", max_rows_per_file=1)
    assert ids(lake) == OLD


# ---- two writers at once


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(autouse=True)
def right(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "s3" in request.fixturenames:
        running = request.getfixturevalue("s3")
        running.script, running.ignores_conditions = lambda method, path: "", False


def two_writers(s3: S3, url: str, mode: str) -> tuple[list[int], list[BaseException]]:
    """Both have seen the folder before one of them writes. Returns who has won, and the other's error."""
    meeting, won, errors = threading.Barrier(2), list[int](), list[BaseException]()

    def script(method: str, path: str) -> str:
        if method == "PUT" and MARKER in path and len(met) < 2:
            met.append(path)
            meeting.wait(20)
        return ""

    def write(number: int) -> None:
        try:
            pyparq.write_dataset({"id": [number] * 3}, url, mode=mode, max_rows_per_file=1, storage_options=s3.options)
            won.append(number)
        except BaseException as error:
            errors.append(error)

    met: list[str] = []
    s3.script = script
    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, errors


@pytest.mark.parametrize("mode", ["error", "overwrite"])
@pytest.mark.parametrize("ignores", [False, True], ids=["conditions", "no conditions"])
def test_of_two_writers_one_wins(s3: S3, mode: str, ignores: bool) -> None:
    s3.ignores_conditions = ignores
    url = f"s3://{BUCKET}/two-{mode}-{ignores}"
    won, errors = two_writers(s3, url, mode)
    assert {type(error) for error in errors} <= {WriteConflictError, TargetExistsError}
    assert len(won) + len(errors) == 2
    if ignores and not won:  # without conditions each may see the other and give up: then the next one wins
        s3.script = lambda method, path: ""
        pyparq.write_dataset({"id": [3] * 3}, url, mode=mode, storage_options=s3.options)
        won.append(3)
    assert len(won) == 1
    assert ids(url, storage_options=s3.options) == won * 3
    assert not any(MARKER in path for path in s3.fs().find(url))


def test_the_answer_to_the_claim_is_lost(s3: S3) -> None:
    """The second try finds the marker that the first one has put."""
    url, seen = f"s3://{BUCKET}/claim", list[str]()

    def script(method: str, path: str) -> str:
        if MARKER not in path or method not in ("PUT", "DELETE"):
            return ""
        seen.append(method)
        return "lost" if len(seen) % 2 else ""

    pyparq.write_table({"id": OLD}, f"{url}/old.parquet", storage_options=s3.options)
    s3.script = script
    pyparq.write_dataset({"id": NEW}, url, mode="overwrite", storage_options=s3.options)
    assert seen.count("DELETE") == 2
    assert ids(url, storage_options=s3.options) == NEW


def test_an_overwrite_on_s3_that_is_cut_short(s3: S3) -> None:
    url, placed = f"s3://{BUCKET}/cut", list[str]()
    pyparq.write_dataset({"id": OLD}, url, max_rows_per_file=1, storage_options=s3.options)

    def script(method: str, path: str) -> str:
        if method == "DELETE":
            placed.append(path)
        return "403" if len(placed) > 1 else ""

    s3.script = script
    with pytest.raises(PermissionError) as caught:
        pyparq.write_dataset({"id": NEW}, url, mode="overwrite", storage_options=s3.options)
    s3.script = lambda method, path: ""
    assert "recover_dataset" in str(caught.value.__notes__)
    with pytest.warns(UnfinishedWriteWarning, match="of after it"):
        assert sorted(pyparq.read_table(url, storage_options=s3.options).to_pydict()["id"]) == NEW
    assert len(s3.fs().find(url)) == len(OLD) - 1 + 1 + 1  # one was removed; one is new; and the marker
    assert pyparq.recover_dataset(url, storage_options=s3.options) == 1
    assert len(s3.fs().find(url)) == 1


def states_of_an_overwrite(lake: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The store when an overwrite has begun, before its first file, and when it has just begun to count."""
    before, begun, counts = dict(CutStore.store), {}, {}
    cut_from(1 << 30)
    overwrite(lake)
    for request in range(1, CutStore.asked + 1):
        CutStore.store.clear()
        CutStore.store.update(before)
        cut_from(request)
        with suppress(OSError):
            overwrite(lake)
        now = dict(CutStore.store)
        (path,) = [path for path in now if MARKER in path] or [None]
        if path is None:
            continue
        marker = Marker.parse(now[path].getvalue(), path)
        if marker.old is None and len(now) == len(before) + 1:
            begun = begun or now
        if marker.old is not None and len(now) == len(before) + len(NEW) + 1:
            counts = counts or now
    cut_from(1 << 30)
    assert begun
    assert counts
    return begun, counts


@pytest.mark.filterwarnings("ignore:the write to:UserWarning")  # it is committed
def test_a_listing_is_made_again_where_the_write_has_gone_on_meanwhile(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first listing lacks the new files, and the marker that is read after it leaves out the old ones."""
    begun, counts = states_of_an_overwrite(lake)

    def become(state: dict[str, Any]) -> None:
        CutStore.store.clear()
        CutStore.store.update(state)

    real, read = Folders.content, []

    def content(self: Folders, path: str) -> bytes | None:
        become(counts)
        read.append(path)
        return real(self, path)

    become(begun)
    monkeypatch.setattr(Folders, "content", content)
    assert ids(lake) == NEW
    assert len(read) == 2


@pytest.mark.parametrize("carried_out", [True, False])
def test_the_answer_to_the_request_that_lets_a_write_count_is_lost(
    lake: str, carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known whether the write counts, so its files stay, whatever the store can still do."""
    real = Changes.replace

    def replace(self: Changes, path: str, before: bytes, data: bytes, name: str) -> bool:
        if Marker.parse(data, name).old is not None:
            if carried_out:
                real(self, path, before, data, name)
            raise ConnectionError("the answer is lost")
        return real(self, path, before, data, name)

    with monkeypatch.context() as patch:
        patch.setattr(Changes, "replace", replace)
        with pytest.raises(ConnectionError):
            overwrite(lake)
    assert sum(path.endswith(".parquet") for path in CutStore.store) == len(OLD) + len(NEW)
    assert any(MARKER in path for path in CutStore.store)
    found = NEW if carried_out else OLD
    assert ids(lake) == found
    assert pyparq.recover_dataset(lake) == 1
    assert ids(lake) == found
    assert sum(path.endswith(".parquet") for path in CutStore.store) == 2
