"""Files in stores that are replaced by what was made from them: only as they were read, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, ObjectFile, OptionError, col

stores: Any = require("obstore.store")
MINE, THEIRS = [3, 1, 2], [7, 8, 9]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(params=["s3fs", "URL", "obstore", "memory", "obstore in memory"])
def place(
    request: pytest.FixtureRequest, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> tuple[Callable[[], Any], dict[str, Any]]:
    """What makes the source, and the options with it."""
    if request.param in ("s3fs", "URL"):
        monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec" if request.param == "s3fs" else "obstore")
        return lambda: f"s3://{BUCKET}/mine.parquet", {"storage_options": s3.options}
    if request.param == "memory":
        return lambda: "memory://mine/mine.parquet", {}
    store = stores.MemoryStore()
    if request.param == "obstore":
        store = stores.S3Store(
            BUCKET, access_key_id="some-key", secret_access_key="some-secret", endpoint=s3.url, region="us-east-1",
            virtual_hosted_style_request=False, client_options={"allow_http": True},
        )  # fmt: skip
    return lambda: ObjectFile(store, "mine.parquet"), {}


CHANGES: dict[str, Callable[..., Any]] = {
    "add_indexes": lambda source, **options: pyparq.add_indexes(source, bloom_filters=["id"], **options),
    "edit_metadata": lambda source, **options: pyparq.edit_metadata(source, update={"a": "b"}, **options),
    "rewrite": lambda source, **options: pyparq.rewrite(source, source, sort_by=["id"], **options),
}


def ids(place: tuple[Callable[[], Any], dict[str, Any]]) -> list[int]:
    found: list[int] = pyparq.read_table(place[0](), **place[1])["id"].to_pylist()
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("how", CHANGES)
def test_a_file_is_replaced(place: Any, how: str) -> None:
    where, options = place
    pyparq.write_table({"id": MINE}, where(), **options)
    CHANGES[how](where(), **options)
    assert ids(place) == (sorted(MINE) if how == "rewrite" else MINE)
    with pyparq.ParquetFile(where(), **options) as file:
        assert (b"a" in (file.metadata.metadata or {})) == (how == "edit_metadata")
        assert file.scan(filters=col("id") == 2).count() == 1


@pytest.mark.sweep(3)
@pytest.mark.parametrize("when", ["before the last look", "after it"])
@pytest.mark.parametrize("how", CHANGES)
def test_the_file_of_another_program_stays(place: Any, how: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written while the new one is made, or right before the new one is put."""
    where, options = place
    if when == "after it" and where() == "memory://mine/mine.parquet":
        pytest.skip("it is compared, and then replaced")
    pyparq.write_table({"id": MINE}, where(), **options)
    others: list[int] = []

    def late(real: Any) -> Any:
        def act(*given: Any, **named: Any) -> Any:
            if not others:
                others.append(1)
                pyparq.write_table({"id": THEIRS}, where(), **options)
            return real(*given, **named)

        return act

    from pyparq.io import remote_sinks

    name = "commit" if when == "after it" else "write"
    for kind in (remote_sinks.ObjectSink, remote_sinks.FsspecSink):
        monkeypatch.setattr(kind, name, late(getattr(kind, name)))
    with pytest.raises(ChangedFileError):
        CHANGES[how](where(), **options)
    monkeypatch.undo()
    assert others
    assert ids(place) == THEIRS


def test_a_store_that_cannot_be_told_is_asked_before(tmp_path: Any) -> None:
    where = ObjectFile(stores.LocalStore(tmp_path), "mine.parquet")
    pyparq.write_table({"id": MINE}, where)
    assert pyparq.edit_metadata(where, update={"a": "b"}) == 1
    assert pyparq.read_table(str(tmp_path / "mine.parquet"))["id"].to_pylist() == MINE
    opened = ObjectFile(where.store, where.path)
    assert opened.size > 0
    pyparq.write_table({"id": THEIRS}, where)
    with pytest.raises(ChangedFileError):
        opened.put(open(tmp_path / "mine.parquet", "rb"), opened.version)  # noqa: SIM115
    assert pyparq.read_table(where)["id"].to_pylist() == THEIRS


@pytest.mark.parametrize("log", ["t/_delta_log/0.json", "t/metadata/v1.metadata.json"])
def test_files_of_tables_are_not_replaced(log: str) -> None:
    where = ObjectFile(stores.MemoryStore(), "t/part=1/mine.parquet")
    pyparq.write_table({"id": MINE}, where)
    where.store.put(log, b"{}")
    with pytest.raises(OptionError, match="belongs to a table of"):
        pyparq.edit_metadata(where, update={"a": "b"})
    assert pyparq.edit_metadata(where, update={"a": "b"}, force=True) == 1


def test_a_write_that_fails_leaves_the_old_object() -> None:
    where = ObjectFile(stores.MemoryStore(), "mine.parquet")
    pyparq.write_table({"id": MINE}, where)

    def rows() -> Iterator[dict[str, list[int]]]:
        yield {"id": THEIRS}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pyparq.write_table(rows(), where)
    assert pyparq.read_table(where)["id"].to_pylist() == MINE
