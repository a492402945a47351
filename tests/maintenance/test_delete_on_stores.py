"""``pyparq.delete`` and its kin on stores: each object is replaced only as it was read, and 503 is no loss."""

from __future__ import annotations

import os
import shlex
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


@pytest.mark.sweep(2)
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


@pytest.mark.sweep(12)
@pytest.mark.parametrize("how", ["check", "trust", "off", "one object", "list", "glob"])
def test_a_catalog_goes_with_a_word(options: dict[str, Any], how: str) -> None:
    """Also one that was not used: it has hashes and bounds of the rows."""
    root = lake("cataloged", options)
    pyparq.index_dataset(root, ["id"], **options)
    assert any("_pyparq_catalog" in name for name in versions(root, options))
    url = f"{root}/g=0/part.parquet"
    source: Any = {"one object": url, "list": [url, f"{root}/g=1/part.parquet"], "glob": f"{root}/*/*.parquet"}.get(how)
    source = source or pyparq.dataset(root, catalog=how, **options)
    assert not pyparq.delete(source, keys={"id": [-1]}, **options).notes
    assert any("_pyparq_catalog" in name for name in versions(root, options))
    report = pyparq.delete(source, keys={"id": [5]}, **options)
    assert report.rows_deleted == 1
    assert [note for note in report.notes if "catalog" in note] == list(report.notes)
    assert len(report.notes) == 1
    assert not any("_pyparq_catalog" in name for name in versions(root, options))
    assert ids(root, options) == [k for k in range(3000) if k != 5]


def by_id(root: str, options: dict[str, Any]) -> list[tuple[int, str, int]]:
    rows = pyparq.dataset(root, **options).read(["id", "text", "g"]).to_pylist()
    return sorted((row["id"], row["text"], row["g"]) for row in rows)


UPSERT = {"id": [5, 1500, 7, 9000, 9001], "text": ["new"] * 5, "g": [0, 1, 2, 1, 7]}
"""Two rows in their places, one that moves, and two new ones, of which one makes a partition."""


def upserted() -> list[tuple[int, str, int]]:
    rows = {k: (k, f"t{k}", k // 1000) for k in range(3000)}
    return sorted({**rows, **{row[0]: row for row in zip(*UPSERT.values(), strict=True)}}.values())


@pytest.mark.slow
def test_an_upsert_into_a_folder(options: dict[str, Any]) -> None:
    root = lake(f"upsert-{os.environ['PYPARQ_FILESYSTEM']}", options)
    before = versions(root, options)
    dry = pyparq.upsert(root, UPSERT, "id", dry_run=True, **options)
    assert versions(root, options) == before
    report = pyparq.upsert(root, UPSERT, "id", **options)
    for found in (dry, report):
        assert (found.rows_updated, found.rows_deleted, found.rows_added) == (2, 1, 3)
    assert by_id(root, options) == upserted()
    after = versions(root, options)
    assert [after[name] == tag for name, tag in sorted(before.items())] == [False, False, True]
    assert len(after) == len(before) + 3
    report = pyparq.upsert(root, UPSERT, "id", **options)
    assert (report.rows_deleted, report.rows_added) == (0, 0)
    assert by_id(root, options) == upserted()
    assert pyparq.verify(root, **options).ok


@pytest.mark.sweep(12)
@pytest.mark.parametrize("nth", range(1, 7))
def test_an_upsert_that_fails_at_some_object(
    options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Whatever was written before: no row is lost, and the same call again ends the work."""
    root = lake(f"fails-{nth}-{os.environ['PYPARQ_FILESYSTEM']}", options)
    puts = list[str]()

    def refuse(method: str, path: str) -> bool:
        if method == "PUT":
            puts.append(path)
        return method == "PUT" and len(puts) >= nth

    monkeypatch.setattr(s3, "refuse", refuse)
    try:
        pyparq.upsert(root, UPSERT, "id", **options)
    except OSError:
        assert len(puts) >= nth
    monkeypatch.undo()
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "obstore")
    pyparq.recover_dataset(root, **options)
    there = {row[0] for row in by_id(root, options)}
    assert there.issuperset(range(3000))
    pyparq.upsert(root, UPSERT, "id", **options)
    assert by_id(root, options) == upserted()


@pytest.mark.sweep(2)
def test_objects_of_another_program_and_retries(options: dict[str, Any]) -> None:
    root = lake(f"retries-{os.environ['PYPARQ_FILESYSTEM']}", options)
    work = [
        lambda: pyparq.write_table(
            {"id": [9000, 9002], "text": ["theirs"] * 2}, f"{root}/g=2/theirs.parquet", **options
        )
    ]

    def progress(done: int, total: int) -> None:
        if work:
            work.pop()()

    report = pyparq.upsert(root, UPSERT, "id", retries=1, progress=progress, **options)
    assert not report.notes
    assert by_id(root, options) == sorted([*upserted(), (9002, "theirs", 2)])
    work.append(lambda: pyparq.write_table({"id": [-5, -6], "text": ["a", "b"]}, f"{root}/g=2/more.parquet", **options))
    assert pyparq.delete(root, "id in (-5, 6)", retries=1, progress=progress, **options).rows_deleted == 2
    assert {-5, 6}.isdisjoint(ids(root, options))


@pytest.mark.sweep(2)
def test_a_catalog_goes_before_the_rows(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a call that fails between the two would leave it: the next one finds no such rows."""
    root = lake("first", options)
    pyparq.index_dataset(root, ["id"], **options)
    monkeypatch.setattr(s3, "refuse", lambda method, path: method == "PUT" and "parquet" in path)
    with pytest.raises(PermissionError):
        pyparq.delete(root, keys={"id": [5]}, **options)
    monkeypatch.undo()
    assert not any("_pyparq_catalog" in name for name in versions(root, options))
    assert ids(root, options) == list(range(3000))


# ---- stores that keep versions ---------------------------------------------------------------------------------------


@pytest.fixture
def versioned(options: dict[str, Any], s3: S3) -> Iterator[Any]:
    """The file system of a bucket that keeps versions, for as long as the test runs."""
    fs: Any = require("s3fs").S3FileSystem(**options["storage_options"])  # type: ignore[attr-defined]
    fs.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    yield fs
    fs.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})


def kept_versions(fs: Any, name: str) -> dict[str, bytes]:
    """The bytes of all versions of an object, by their names."""
    found = fs.call_s3("list_object_versions", Bucket=BUCKET, Prefix=name).get("Versions", [])

    def content(version: str) -> bytes:
        import asyncio

        async def read() -> bytes:
            answer = await fs._call_s3("get_object", Bucket=BUCKET, Key=name, VersionId=version)
            async with answer["Body"] as body:
                return bytes(await body.read())

        return asyncio.run_coroutine_threadsafe(read(), fs.loop).result()

    return {one["VersionId"]: content(one["VersionId"]) for one in found}


def test_older_versions_are_named(options: dict[str, Any], versioned: Any) -> None:
    root = f"s3://{BUCKET}/versions-{len(versioned.ls(BUCKET))}"
    for k in range(3):
        texts = [f"person-{k}-{i}." for i in range(100)]
        data = {"id": range(100 * k, 100 * k + 100), "text": texts}
        pyparq.write_table(data, f"{root}/g={k}/part.parquet", compression="none", **options)
    names = [f"{root}/g={k}/part.parquet".removeprefix(f"s3://{BUCKET}/") for k in range(3)]
    before = [kept_versions(versioned, name) for name in names]
    dry = pyparq.delete(root, "id = 5 or g = 1", dry_run=True, **options)
    assert {file.old_version for file in dry.files} == {""}
    report = pyparq.delete(root, "id = 5 or g = 1", **options)
    assert [file.removed for file in report.files] == [False, True]
    named = report.to_pandas()["old_version"].tolist()
    assert [{name} for name in named] == [set(found) for found in before[:2]]
    assert report.to_dict()["files"][0]["old_version"] == named[0]
    assert b"person-0-5." in kept_versions(versioned, names[0])[named[0]], "an erased value stays"
    assert set(kept_versions(versioned, names[2])) == set(before[2])
    markers = versioned.call_s3("list_object_versions", Bucket=BUCKET, Prefix=names[1])["DeleteMarkers"]
    assert len(markers) == 1

    for file in report.files:
        (note,) = [note for note in file.notes if "version" in note]
        said = shlex.split(note.partition("remove it with ")[2])
        assert said[:3] == ["aws", "s3api", "delete-object"]
        given = dict(zip(said[3::2], said[4::2], strict=True))
        assert given.keys() == {"--bucket", "--key", "--version-id"}
        named_parts = {"Bucket": given["--bucket"], "Key": given["--key"], "VersionId": given["--version-id"]}
        versioned.call_s3("delete_object", **named_parts)
    left = b"".join(data for name in names[:2] for data in kept_versions(versioned, name).values())
    assert b"person-0-6." in left
    assert b"person-0-5." not in left
    assert not kept_versions(versioned, names[1])


@pytest.mark.parametrize("status", ["Enabled", "Suspended"])
def test_objects_from_before_versions_were_kept(options: dict[str, Any], versioned: Any, status: str) -> None:
    """Their version is called "null". A new object takes its place while versions are suspended."""
    versioned.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})
    url = f"s3://{BUCKET}/null-{status}.parquet"
    pyparq.write_table({"id": [1, 2, 3]}, url, **options)
    versioned.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": status})
    (file,) = pyparq.delete(url, "id = 2", **options).files
    assert len(kept_versions(versioned, f"null-{status}.parquet")) == (2 if status == "Enabled" else 1)
    assert file.old_version == ("null" if status == "Enabled" else "")


def test_stores_without_versions_name_none(options: dict[str, Any]) -> None:
    root = lake("plain", options)
    report = pyparq.delete(root, keys={"id": [5]}, **options)
    assert [file.old_version for file in report.files] == [""]
    assert not any("version" in note for file in report.files for note in file.notes)
