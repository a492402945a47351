"""Files on file systems whose requests cannot be bound to a version: one that is replaced meanwhile is noticed by what
the file system says of it, and a file that is read at once is not asked about again.

``GoogleStore`` and ``AzureStore`` are mocks: they take and say what gcsfs and adlfs do, and reach no cloud.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import require
from slow_store import AsyncStore, LoopingStore

import pyparq
from pyparq import ChangedFileError, ParquetFile, col

require("fsspec")

ROWS = 30_000


@lru_cache
def table(version: int = 1) -> pa.Table:
    rng = np.random.default_rng(version)
    return pa.table({"id": rng.permutation(ROWS), "x": rng.random(ROWS), "y": rng.random(ROWS)})


@lru_cache
def data(version: int = 1) -> bytes:
    """Versions have the same size: only what a store says of them tells one from the other."""
    sink = io.BytesIO()
    pq.write_table(table(version), sink, row_group_size=10_000, compression="none", use_dictionary=False)
    return sink.getvalue()


class _Versions:
    """A store that says which version of a file it has."""

    version = 1
    log: Any
    files: dict[str, bytes]

    def replace(self, version: int = 2) -> None:
        self.version = version
        self.files["t"] = data(version)

    def says(self, listing: bool) -> dict[str, Any]:
        raise NotImplementedError

    def _details(self, path: str) -> dict[str, Any]:
        return super()._details(path) | self.says(False)  # type: ignore[misc]

    def _listed(self, path: str) -> dict[str, Any]:
        return {name: info | self.says(True) for name, info in super()._listed(path).items()}  # type: ignore[misc]


class GoogleStore(_Versions, AsyncStore):
    """A mock of gcsfs, whose reads can be bound to a generation."""

    kept: bool = False
    """Are old generations kept, as a bucket with versions does?"""

    def says(self, listing: bool) -> dict[str, Any]:
        return {"generation": str(1000 + self.version), "etag": f"{self.version}=", "updated": "2026-01-05T10:00:00Z"}

    def url(self, path: str, generation: str | None = None) -> str:
        return f"{path}?generation={generation}"

    async def _cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> bytes:
        generation = kwargs.get("generation")
        found = await super()._cat_file(path, start, end)
        if generation in (None, str(1000 + self.version)):
            return found
        if not self.kept:
            raise FileNotFoundError(path)
        return data(int(generation) - 1000)[start:end]


class AzureStore(_Versions, AsyncStore):
    """A mock of adlfs: tags are quoted in one kind of answer and not in the other."""

    def says(self, listing: bool) -> dict[str, Any]:
        tag = f"0x8D{self.version}"
        date = dt.datetime(2026, 1, 5, self.version, tzinfo=dt.UTC)
        return {"etag": tag if listing else f'"{tag}"', "last_modified": date}


class DatedStore(_Versions, LoopingStore):
    """As sftp and HDFS say it."""

    def says(self, listing: bool) -> dict[str, Any]:
        date = dt.datetime(2026, 1, 5, self.version, tzinfo=dt.UTC)
        return {"mtime": date if listing else date.timestamp() + 0.25}


class SilentStore(_Versions, LoopingStore):
    def says(self, listing: bool) -> dict[str, Any]:
        return {}


STORES: dict[str, Any] = {"google": GoogleStore, "azure": AzureStore, "dated": DatedStore}
READS: dict[str, Callable[[ParquetFile], Any]] = {
    "read": lambda file: file.read(),
    "batches": lambda file: list(file.scan().iter_batches()),
    "filter": lambda file: file.read(filters=col("id") == 7),
    "count": lambda file: file.scan(filters=col("x") > 0.5).count(),
    "take": lambda file: file.take([5, 25_000]),
    "row group": lambda file: file.read_row_group(1),
    "pages": lambda file: file.pages(0, "x"),
    "plan": lambda file: file.execute(file.scan(filters=col("id") >= 0).plan()),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Any:
    return STORES[request.param]({"t": data()})


@pytest.mark.parametrize("how", READS)
def test_a_file_that_is_held_and_replaced(store: Any, how: str) -> None:
    with ParquetFile(store.of("t"), tail_size=1000) as file:
        store.replace()
        with pytest.raises(ChangedFileError, match="open it again"):
            READS[how](file)
    with ParquetFile(store.of("t"), tail_size=1000) as file:
        assert file.read(["x"]).to_arrow() == table(2).select(["x"])
        store.replace(1)
        with pytest.raises(ChangedFileError, match="open it again"):
            READS[how](file)
    assert pyparq.read_table(store.of("t")).to_arrow() == table(1), "another reader takes it as it is then"


@pytest.mark.parametrize("after", range(1, 6))
def test_a_file_that_is_replaced_while_it_is_read(store: Any, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long reads ask now and then. Here each step takes longer than an answer holds."""
    monkeypatch.setattr("pyparq.io.file_versions.FRESH", 0.0)
    store.replace(1)
    seen = [0]

    def fail(request: Any) -> None:
        seen[0] += request.kind == "bytes"
        if seen[0] == after:
            store.replace(2)

    store.fail = fail
    try:
        found = pyparq.read_table(store.of("t"), tail_size=1000, prefetch_bytes=0, coalesce_gap=0).to_arrow()
    except ChangedFileError:
        return
    assert found in (table(1), table(2))


def test_a_read_at_once_asks_no_more(store: Any) -> None:
    silent = SilentStore({"t": data()}) if isinstance(store, LoopingStore) else AsyncStore({"t": data()})
    for each in (store, silent):
        each.log.clear()
        found = pyparq.read_table(each.of("t"), filters=col("id") > 50, tail_size=1000, prefetch_bytes=0)
        assert found.num_rows == ROWS - 51
    assert len(store.log.requests) == len(silent.log.requests)
    assert len(store.log.of("info")) == 1


def test_each_question_to_an_open_file_asks_once_more(store: Any) -> None:
    with ParquetFile(store.of("t"), tail_size=1000, prefetch_bytes=0) as file:
        for _ in range(3):
            store.log.clear()
            file.read()
            assert len(store.log.of("info")) == 1


def test_generations_are_stated() -> None:
    """A bucket that keeps old versions goes on to serve the one that was opened."""
    google = GoogleStore({"t": data()})
    google.kept = True
    google.replace(1)
    seen = [0]

    def fail(request: Any) -> None:
        seen[0] += request.kind == "bytes"
        if seen[0] == 2:
            google.replace(2)

    google.fail = fail
    assert pyparq.read_table(google.of("t"), tail_size=1000, coalesce_gap=0).to_arrow() == table(1)
    assert google.version == 2


def test_a_file_that_is_removed(store: Any) -> None:
    with ParquetFile(store.of("t"), tail_size=1000) as file:
        store.files.clear()
        with pytest.raises((FileNotFoundError, ChangedFileError)) as caught:
            file.read()
        assert "t" in str(caught.value)


def test_a_question_that_cannot_be_asked(store: Any) -> None:
    """Where nobody knows whether bytes are of the same file, they are not handed out."""
    with ParquetFile(store.of("t"), tail_size=1000, retry_wait=0.001, retries=2) as file:
        store.fail = lambda request: ConnectionResetError("gone") if request.kind == "info" else None
        store.log.clear()
        with pytest.raises(ConnectionError, match="tried 3 times"):
            file.read()
        asked = iter([ConnectionResetError("gone")])
        store.fail = lambda request: next(asked, None) if request.kind == "info" else None
        assert file.read().to_arrow() == table()


# ---- datasets


@pytest.fixture
def lake(store: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        "pyparq.datasets.discovery.file_system", lambda url, *args: (store, url.removeprefix("slow://"))
    )
    store.files["lake/t"] = store.files["t"]

    def replace(version: int = 2) -> None:
        store.version = version
        store.files["lake/t"] = data(version)

    store.replace = replace
    return "slow://lake/"


def test_a_dataset_that_is_held_and_replaced(store: Any, lake: str) -> None:
    dataset = pyparq.dataset(lake, tail_size=1000, prefetch_bytes=0)
    assert dataset.read(["x"]).to_arrow() == table().select(["x"])
    store.replace()
    with pytest.raises(ChangedFileError, match="make the dataset again"):
        dataset.read(["y"])
    assert pyparq.dataset(lake).read().to_arrow() == table(2)


def test_a_dataset_of_files_that_stay(store: Any, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What listings say is compared with what is said of one file, which has other words for it."""
    store.log.clear()
    dataset = pyparq.dataset(lake, tail_size=1000, prefetch_bytes=0)
    assert dataset.read().to_arrow() == table()
    assert store.log.of("info") == [] or isinstance(store, LoopingStore)
    monkeypatch.setattr("pyparq.io.file_versions.FRESH", 0.0)
    assert dataset.read().to_arrow() == table()
    assert len(store.log.of("info")) > 0


# ---- in memory, and open files


@pytest.fixture
def memory() -> Any:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/versions/t.parquet", data(1))
    yield fs
    fs.rm("/versions", recursive=True)


@pytest.mark.parametrize("how", READS)
def test_a_file_in_memory(memory: Any, how: str) -> None:
    """There an answer costs nothing."""
    with ParquetFile("memory://versions/t.parquet", tail_size=1000) as file:
        memory.pipe_file("/versions/t.parquet", data(2))
        with pytest.raises(ChangedFileError):
            READS[how](file)


def test_an_open_file(store: Any) -> None:
    from fsspec.spec import AbstractBufferedFile

    class Opened(AbstractBufferedFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            found: bytes = self.fs.cat_file(self.path, start, end)
            return found

    with Opened(store, "t", cache_type="none") as opened, ParquetFile(opened, tail_size=1000) as file:
        assert file.read(["x"]).to_arrow() == table().select(["x"])
        store.replace()
        with pytest.raises(ChangedFileError, match="open it again"):
            file.read(["y"])


def test_what_tells_versions_apart() -> None:
    from pyparq.io.file_versions import Stated

    def differs(one: dict[str, Any], other: dict[str, Any], is_listed: bool = False) -> bool:
        return Stated.of(one, is_listed=is_listed).differs(Stated.of(other))

    noon = dt.datetime(2026, 10, 25, 12, 0, 0, 250_000, tzinfo=dt.UTC)
    assert differs({"size": 1}, {"size": 2})
    assert not differs({"size": 1}, {"size": 1, "etag": "a"})
    assert differs({"etag": "a", "size": 1}, {"etag": '"b"', "size": 1})
    assert not differs({"etag": 'W/"a"'}, {"etag": "a"})
    assert not differs({"generation": 7, "etag": "a"}, {"generation": "7", "etag": "b"}), "its notes were changed"
    assert differs({"mtime": noon}, {"mtime": noon + dt.timedelta(milliseconds=1)})
    assert not differs({"mtime": noon}, {"mtime": noon.timestamp()})
    assert not differs({"mtime": noon.replace(microsecond=0)}, {"mtime": noon}, is_listed=True)
    assert differs({"mtime": noon}, {"mtime": noon + dt.timedelta(seconds=2)}, is_listed=True)
    assert not differs({"mtime": "Oct 25 12:00"}, {"mtime": noon}), "these cannot be compared"
    assert differs({"modify": "20261025120000"}, {"modify": "20261025120001"})
    assert not differs({"mtime": None}, {"mtime": noon})
