"""A lookup with a catalog in a store: its requests and serial trips do not depend on the number of files, and its rows
not on what the store does wrong."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import threading
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from conftest import require
from slow_store import AsyncStore, Request

import pyparq
from pyparq import col
from pyparq.errors import CatalogWarning

fsspec: Any = require("fsspec")

URL = "tagged://lake"
ROWS = 100


def file_bytes(k: int, rows: int = ROWS) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"id": [j * 7919 % 1_000_003 for j in range(k * rows, (k + 1) * rows)], "x": range(rows)}, sink)
    return sink.getvalue()


class TaggedStore(AsyncStore):
    """With entity tags, files that can be written, and delays."""

    protocol = "tagged"
    unlisted: frozenset[str] = frozenset()
    """Files that listings do not show yet."""
    writes_left = 1 << 30
    """Files that can be written before the credentials end."""
    holds: threading.Event | None = None
    """Requests are answered when it is set."""

    async def _answer(self, request: Request) -> None:
        while self.holds is not None and not self.holds.is_set():
            await asyncio.sleep(0.005)
        await super()._answer(request)

    def put(self, path: str, value: bytes) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise PermissionError("the credentials have ended")
        self.files[path] = value

    def _details(self, path: str) -> dict[str, Any]:
        info = super()._details(path.replace("tagged://", ""))
        return info | {"ETag": f'"{zlib.crc32(self.files[info["name"]]):x}"'}

    def _listed(self, path: str) -> dict[str, Any]:
        listed = super()._listed(path.replace("tagged://", ""))
        return {name: self._details(name) for name in listed if name not in self.unlisted}

    def _begin_bytes(self, path: str, start: int | None, end: int | None) -> tuple[Request, bytes]:
        return super()._begin_bytes(path.replace("tagged://", ""), start, end)

    async def _pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        self.put(path, value)

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        del self.files[path]

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    async def _cp_file(self, path: str, target: str, **kwargs: Any) -> None:
        self.files[target] = self.files[path]

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        store = self

        class Upload(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    data = self.getvalue()
                    super().close()
                    store.put(path, data)

        return Upload()


Make = Callable[[int], TaggedStore]


@pytest.fixture
def make() -> Make:
    """Makes a store with so many files and a catalog, reached by ``tagged://`` URLs."""

    def made(count: int) -> TaggedStore:
        store = TaggedStore({f"lake/part={k % 2}/f{k:04}.parquet": file_bytes(k) for k in range(count)})

        class Always(TaggedStore):
            def __new__(cls, *args: Any, **kwargs: Any) -> Any:
                return store

        fsspec.register_implementation("tagged", Always, clobber=True)
        pyparq.index_dataset(URL, "id")
        store.delay = 0.05  # so long that requests of one step run at the same time on a busy machine too
        store.log.clear()
        return store

    return made


@pytest.mark.parametrize("count", [40, 160])
@pytest.mark.parametrize(("mode", "present", "absent"), [("trust", 5, 3), ("check", 5, 4)])
def test_trips(make: Make, count: int, mode: str, present: int, absent: int) -> None:
    """Trusted: ``catalog.json``; the ends of two parts; a page of keys; a page of files; the end of the file. Otherwise
    the listing comes first, and all files with the ends of the parts."""
    store = make(count)
    key = 7919 * 50 % 1_000_003
    assert pyparq.dataset(URL, catalog=mode).lookup("id", key).num_rows == 1
    assert store.log.depth <= present
    assert len(store.log.requests) <= 14
    from pyparq.datasets.catalog import catalog

    catalog._forget()
    store.log.clear()
    assert pyparq.dataset(URL, catalog=mode).lookup("id", -1).num_rows == 0
    assert store.log.depth <= absent
    assert len(store.log.requests) <= 12
    assert not any("/f0" in request.path for request in store.log.requests)


def test_an_object_of_the_same_size_is_another(make: Make) -> None:
    store = make(6)
    name, other = "lake/part=0/f0000.parquet", file_bytes(77)
    size = len(store.files[name])
    for rows in range(ROWS - 3, ROWS + 4):  # find one of the same size
        other = file_bytes(77, rows)
        if len(other) == size:
            break
    store.files[name] = other
    key = pyparq.read_table(other)["id"].to_pylist()[0]
    assert pyparq.dataset(URL).lookup("id", key).num_rows == 1


def test_new_and_removed_objects(make: Make) -> None:
    store = make(6)
    store.files["lake/part=1/new.parquet"] = file_bytes(50)
    del store.files["lake/part=1/f0001.parquet"]
    for key in (7919 * 5_010 % 1_000_003, 7919 * 110 % 1_000_003):
        for question in (col("id") == key, (col("id") == key) & (col("part") == 1)):
            expected = pyparq.dataset(URL, catalog="off").read(filters=question)
            assert pyparq.dataset(URL).read(filters=question).to_pydict() == expected.to_pydict()
    assert pyparq.index_dataset(URL).files_read == 1


def test_a_store_that_fails_while_the_catalog_is_read(make: Make) -> None:
    """The rows come all the same."""
    store = make(6)
    key = 7919 * 110 % 1_000_003

    def fail(request: Request) -> Exception | None:
        return PermissionError("no") if "keys-" in request.path else None

    store.fail = fail
    with pytest.warns(CatalogWarning, match="is not used"):
        assert pyparq.dataset(URL).lookup("id", key).num_rows == 1


KEY = 7919 * 110 % 1_000_003
MODES = ["check", "trust"]


def forget() -> None:
    """As in another process: what is known of the catalog is asked for again."""
    from pyparq.datasets.catalog import catalog

    catalog._forget()


def rows_of(mode: str, **options: Any) -> list[int]:
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CatalogWarning)
        found: list[int] = pyparq.dataset(URL, catalog=mode, **options).lookup("id", KEY)["x"].to_pylist()
    return found


@pytest.mark.parametrize("mode", MODES)
def test_credentials_that_end_at_any_request(make: Make, mode: str) -> None:
    """The right rows, or an error that says so."""
    store = make(6)
    store.delay, expected = 0, rows_of("off")
    store.log.clear()
    assert rows_of(mode) == expected
    asked, answered, said = len(store.log.requests), 0, list[str]()
    for last in range(asked + 1):
        store.log.clear()
        store.fail = lambda request, last=last: (  # type: ignore[misc]
            PermissionError("the credentials have ended") if len(store.log.requests) > last else None
        )
        try:
            assert rows_of(mode) == expected, last
            answered += 1
        except PermissionError as error:
            said.append(str(error))
    assert all("credentials have ended" in text for text in said)
    assert 0 < answered < asked + 1


def test_credentials_that_end_while_it_is_updated(make: Make) -> None:
    """At any write: the catalog of before stays, and the next update completes it."""
    store = make(6)
    store.delay = 0
    store.files["lake/part=1/new.parquet"] = file_bytes(50)
    before, failed = dict(store.files), 0
    for left in range(12):
        store.files, store.writes_left = dict(before), left
        try:
            pyparq.index_dataset(URL)
            break
        except PermissionError:
            failed += 1
        store.writes_left = 1 << 30
        assert store.files["lake/_pyparq_catalog/catalog.json"] == before["lake/_pyparq_catalog/catalog.json"]
        assert rows_of("check") == rows_of("off")
        assert pyparq.index_dataset(URL).files_read == 1
    assert failed > 1
    assert rows_of("trust") == rows_of("off")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seconds", [5, 40, 500])  # up to 40: the last pause is 20 s long, and ends within the minute
def test_a_store_that_answers_503_for_a_while(
    make: Make, mode: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a minute it is asked again, if the caller wants that; beyond, the error says what the store answers."""
    store, clock = make(6), [0.0]
    store.delay, expected = 0, rows_of("off")

    def pause(pause: float) -> None:
        clock[0] += pause

    class Unavailable(Exception):
        status = 503

    monkeypatch.setattr("pyparq.io.retry.pause_for", pause)
    monkeypatch.setattr("pyparq.io.retry.time.monotonic", lambda: clock[0])
    store.fail = lambda request: Unavailable("slow down") if clock[0] < seconds else None
    if seconds > 60:
        with pytest.raises(OSError, match="503"):
            rows_of(mode, retries=20)
    else:
        assert rows_of(mode, retries=20) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_listing_that_lacks_a_new_file(make: Make, mode: str) -> None:
    store = make(6)
    store.delay = 0
    store.files["lake/part=1/new.parquet"] = file_bytes(50)
    pyparq.index_dataset(URL)
    store.unlisted = frozenset(["lake/part=1/new.parquet"])
    key = 7919 * 5_010 % 1_000_003
    forget()
    rows = pyparq.dataset(URL, catalog=mode).lookup("id", key).num_rows
    assert rows == (1 if mode == "trust" else pyparq.dataset(URL, catalog="off").lookup("id", key).num_rows)
    assert rows_of(mode) == rows_of("off")
    pyparq.index_dataset(URL)  # it forgets the file
    store.unlisted = frozenset()
    assert pyparq.dataset(URL).lookup("id", key).num_rows == 1


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_waits_for_no_answer(make: Make, mode: str) -> None:
    store = make(6)
    store.delay, store.holds = 0, threading.Event()

    def interrupt() -> None:
        store.log.wait_for(lambda requests: len(requests) > 0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    store.log.clear()
    try:
        with pytest.raises(KeyboardInterrupt):
            rows_of(mode)
        assert all(request.ended == 1 << 60 for request in store.log.requests)
    finally:
        store.holds.set()
    assert rows_of(mode) == rows_of("off")
