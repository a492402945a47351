"""``pyparq.delete`` and its kin on stores: each object is replaced only as it was read, and 503 is no loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, col

require("obstore")
require("s3fs")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(params=["s3fs", "obstore"])
def options(request: pytest.FixtureRequest, s3: S3, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec" if request.param == "s3fs" else "obstore")
    return {"storage_options": s3.options}


def lake(name: str, options: dict[str, Any]) -> str:
    root = f"s3://{BUCKET}/{name}"
    for k in range(3):
        ids = range(1000 * k, 1000 * k + 1000)
        data = pa.table({"id": ids, "text": [f"t{i}" for i in ids]})
        pyparq.write_table(data, f"{root}/g={k}/part.parquet", row_group_size=100, bloom_filters=["id"], **options)
    return root


def ids(root: str, options: dict[str, Any]) -> list[int]:
    return sorted(pyparq.dataset(root, **options).read(["id"])["id"].to_pylist())


def versions(root: str, options: dict[str, Any]) -> dict[str, Any]:
    fs: Any = require("s3fs").S3FileSystem(**options["storage_options"])  # type: ignore[attr-defined]
    found = fs.find(root.removeprefix("s3://"), detail=True)
    return {name: info["ETag"] for name, info in found.items()}


def test_objects_without_such_rows_stay(options: dict[str, Any]) -> None:
    root = lake("stay", options)
    before = versions(root, options)
    dry = pyparq.delete(root, keys={"id": [5, 1500]}, dry_run=True, **options)
    assert versions(root, options) == before
    report = pyparq.delete(root, keys={"id": [5, 1500]}, **options)
    assert (dry.rows_deleted, report.rows_deleted) == (2, 2)
    after = versions(root, options)
    assert [after[name] == tag for name, tag in sorted(before.items())] == [False, False, True]
    assert ids(root, options) == [k for k in range(3000) if k not in (5, 1500)]
    assert not pyparq.delete(root, keys={"id": [5, 1500]}, **options).files
    assert pyparq.verify(root, **options).ok


def test_an_empty_object_goes(options: dict[str, Any]) -> None:
    root = lake("empty", options)
    report = pyparq.delete(root, "g = 1", **options)
    assert report.files[0].removed
    assert len(versions(root, options)) == 2
    assert ids(root, options) == [k for k in range(3000) if k // 1000 != 1]


def test_update_and_upsert_of_one_object(options: dict[str, Any]) -> None:
    root = lake("one", options)
    url = f"{root}/g=0/part.parquet"
    pyparq.update(url, col("id") == 7, {"text": "new"}, **options)
    pyparq.upsert(url, {"id": [8, 5000], "text": ["a", "b"]}, "id", **options)
    rows = pyparq.read_table(url, **options).to_pydict()
    found = dict(zip(rows["id"], rows["text"], strict=True))
    assert (found[7], found[8], found[5000], found[9], len(found)) == ("new", "a", "b", "t9", 1001)


def test_the_object_of_another_program_stays(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.maintenance.row_changes.changed_file import ChangedFile

    root = lake("theirs", options)
    url, write = f"{root}/g=0/part.parquet", ChangedFile.write

    def late(self: Any, sink: Any) -> None:
        write(self, sink)
        pyparq.write_table({"id": [-1], "text": ["theirs"]}, url, **options)

    monkeypatch.setattr(ChangedFile, "write", late)
    with pytest.raises(ChangedFileError):
        pyparq.delete(url, col("id") == 5, **options)
    assert pyparq.read_table(url, **options)["id"].to_pylist() == [-1]


def test_a_store_that_is_busy(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lake("busy", options)
    seen = set[tuple[str, str]]()

    def once(method: str, path: str) -> str:
        first = (method, path) not in seen
        seen.add((method, path))
        return "503" if first and "busy" in path and method in ("PUT", "GET", "HEAD") else ""

    monkeypatch.setattr(s3, "script", once)
    assert pyparq.delete(root, keys={"id": [5, 1500]}, **options).rows_deleted == 2
    assert any(method == "PUT" for method, _ in seen)
    monkeypatch.undo()
    assert ids(root, options) == [k for k in range(3000) if k not in (5, 1500)]


def test_a_store_that_takes_nothing(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lake("closed", options)
    before = versions(root, options)
    monkeypatch.setattr(s3, "refuse", lambda method, path: method in ("PUT", "POST"))
    with pytest.raises(OSError):
        pyparq.delete(root, keys={"id": [5, 1500]}, **options)
    monkeypatch.undo()
    assert versions(root, options) == before


def test_a_catalog_goes_with_a_word(options: dict[str, Any]) -> None:
    root = lake("cataloged", options)
    pyparq.index_dataset(root, ["id"], **options)
    assert any("_pyparq_catalog" in name for name in versions(root, options))
    report = pyparq.delete(root, keys={"id": [5]}, **options)
    assert any("catalog" in note for note in report.notes)
    assert not any("_pyparq_catalog" in name for name in versions(root, options))
