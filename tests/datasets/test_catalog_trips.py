"""The requests of a lookup with a catalog: their number and their serial trips do not depend on the number of files."""

from __future__ import annotations

import io
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

    def _details(self, path: str) -> dict[str, Any]:
        info = super()._details(path.replace("tagged://", ""))
        return info | {"ETag": f'"{zlib.crc32(self.files[info["name"]]):x}"'}

    def _listed(self, path: str) -> dict[str, Any]:
        return {name: self._details(name) for name in super()._listed(path.replace("tagged://", ""))}

    def _begin_bytes(self, path: str, start: int | None, end: int | None) -> tuple[Request, bytes]:
        return super()._begin_bytes(path.replace("tagged://", ""), start, end)

    async def _pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        self.files[path] = value

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
                    store.files[path] = self.getvalue()
                super().close()

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
