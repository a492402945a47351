"""Rows deleted in large objects on S3: what stays is copied within the store, or goes through little memory."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, col
from pyparq.io import s3_copying
from pyparq.maintenance.row_changes.changed_file import ChangedFile

require("obstore")
require("s3fs")
ROWS, GROUPS = 24_000, 8
"""About 3 MB for a row group, 24 MB for a file."""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(params=["s3fs", "obstore"])
def options(request: pytest.FixtureRequest, s3: S3, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec" if request.param == "s3fs" else "obstore")
    monkeypatch.setattr(s3_copying, "WORTH_LOADING", 0)
    return {"storage_options": s3.options}


def large(name: str, options: dict[str, Any], rows: int = ROWS) -> str:
    url, blob = f"s3://{BUCKET}/{name}.parquet", 1000
    data = pa.py_buffer(np.random.default_rng(5).bytes(rows * blob))
    blobs = pa.Array.from_buffers(pa.binary(blob), rows, [None, data])
    table = pa.table({"id": np.arange(rows), "blob": blobs})
    pyparq.write_table(
        table, url, row_group_size=rows // GROUPS, bloom_filters=["id"], compression="none", **options
    )  # fmt: skip
    return url


def uploads(s3: S3) -> list[Any]:
    """Uploads that have not ended."""
    found: list[Any] = s3.fs().call_s3("list_multipart_uploads", Bucket=BUCKET).get("Uploads", [])
    return found


@pytest.mark.sweep(4)
@pytest.mark.parametrize("row", [5, ROWS - 1])
def test_the_store_copies_what_stays(options: dict[str, Any], s3: S3, row: int) -> None:
    url = large(f"copied-{row}", options)
    before = pyparq.read_table(url, **options)
    s3.asked.clear()
    report = pyparq.delete(url, keys={"id": [row]}, **options)
    (file,) = report.files
    assert (report.rows_deleted, file.row_groups_copied) == (1, GROUPS - 1)
    assert report.bytes_copied > file.bytes_copied_in_store > 0.6 * report.bytes_copied
    assert f"{file.bytes_copied_in_store:,} by the store" in str(report)
    assert report.to_pandas()["bytes_copied_in_store"].tolist() == [file.bytes_copied_in_store]
    ranges = [asked[2].removeprefix("bytes=").split("-") for asked in s3.asked if asked[2] and "copied" in asked[1]]
    assert sum(int(last) - int(first) for first, last in ranges if first) < 0.6 * report.bytes_copied
    after = pyparq.read_table(url, **options)
    kept = np.arange(ROWS) != row
    assert pa.table(after).equals(pa.table(before).filter(kept))
    assert pyparq.verify(url, **options).ok
    assert not uploads(s3)


@pytest.mark.sweep(2)
def test_the_older_version_is_named(options: dict[str, Any], s3: S3) -> None:
    fs = s3.fs()
    fs.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    url = large("versioned", options)
    found = fs.call_s3("list_object_versions", Bucket=BUCKET, Prefix="versioned")["Versions"]
    (old,) = [one for one in found if one["IsLatest"]]
    (file,) = pyparq.delete(url, keys={"id": [5]}, **options).files
    fs.call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})
    assert file.bytes_copied_in_store
    assert file.old_version == old["VersionId"]


def test_other_changes_in_place_copy_too(options: dict[str, Any], s3: S3) -> None:
    url = large("edited", options)
    s3.asked.clear()
    assert pyparq.edit_metadata(url, update={"a": "b"}, **options)
    assert any(method == "PUT" and "partNumber=" in path for method, path, _ in s3.asked)
    assert pyparq.read_metadata(url, **options).metadata[b"a"] == b"b"
    assert pyparq.dataset(url, **options).count() == ROWS


@pytest.mark.sweep(4)
@pytest.mark.parametrize("when", ["before parts are copied", "before the end"])
def test_the_object_of_another_program_stays(
    options: dict[str, Any], s3: S3, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = large("theirs", options)
    if when == "before the end":
        complete = s3_copying.S3CopySink.put

        def late(self: Any) -> None:
            pyparq.write_table({"id": [-1]}, url, **options)
            complete(self)

        monkeypatch.setattr(s3_copying.S3CopySink, "put", late)
    else:
        write = ChangedFile.write

        def early(self: Any, sink: Any) -> None:
            with monkeypatch.context() as undone:
                undone.setattr(s3_copying, "copying_system", lambda source: None)
                pyparq.write_table({"id": [-1]}, url, **options)
            write(self, sink)

        monkeypatch.setattr(ChangedFile, "write", early)
    with pytest.raises(ChangedFileError):
        pyparq.delete(url, col("id") == ROWS // 2, **options)
    assert pyparq.read_table(url, **options)["id"].to_pylist() == [-1]
    assert not uploads(s3)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_error_leaves_no_parts(
    options: dict[str, Any], s3: S3, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = large("broken", options)
    begun = list[Any]()

    def fails(self: Any) -> None:
        begun.extend(uploads(s3))
        raise error

    monkeypatch.setattr(s3_copying.S3CopySink, "put", fails)
    with pytest.raises(error):
        pyparq.delete(url, col("id") == ROWS // 2, **options)
    assert begun
    assert not uploads(s3)
    assert pyparq.dataset(url, **options).count() == ROWS


@pytest.mark.sweep(2)
def test_a_store_that_is_busy(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = large("busy", options)
    seen = set[tuple[str, str]]()

    def once(method: str, path: str) -> str:
        first = (method, path) not in seen
        seen.add((method, path))
        return "503" if first and "busy" in path and method in ("PUT", "POST") else ""

    monkeypatch.setattr(s3, "script", once)
    report = pyparq.delete(url, keys={"id": [ROWS // 2]}, **options)
    monkeypatch.undo()
    assert report.bytes_copied_in_store
    assert pyparq.dataset(url, **options).count() == ROWS - 1
    assert not uploads(s3)


def test_a_store_that_refuses_the_last_part(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = large("refused", options)
    monkeypatch.setattr(s3, "refuse", lambda method, path: method == "PUT" and "partNumber=4" in path)
    with pytest.raises(PermissionError):
        pyparq.delete(url, keys={"id": [ROWS // 2]}, **options)
    monkeypatch.undo()
    assert pyparq.dataset(url, **options).count() == ROWS
    assert not uploads(s3)


@pytest.mark.sweep(2)
def test_a_store_that_cannot_copy(options: dict[str, Any], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = large("uncopied", options)
    asked = list[str]()

    def unknown(part: str) -> str:
        asked.append(part)
        return "501"

    monkeypatch.setattr(s3, "copies", unknown)
    report = pyparq.delete(url, keys={"id": [ROWS // 2]}, **options)
    assert asked
    assert (report.bytes_copied_in_store, report.rows_deleted) == (0, 1)
    assert pyparq.dataset(url, **options).count() == ROWS - 1
    assert not uploads(s3)


# ---- parts -----------------------------------------------------------------------------------------------------------


class _Store:
    """What a sink needs of s3fs, in memory."""

    def __init__(self, old: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.old, self.loop = old, loop
        self.parts = dict[int, bytes]()
        self.whole: bytes | None = None

    def split_path(self, path: str) -> tuple[str, str, None]:
        return "bucket", path, None

    def invalidate_cache(self, path: str) -> None:
        return None

    async def _call_s3(self, method: str, **given: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if method == "put_object":
            self.whole = given["Body"]
        elif method == "upload_part":
            self.parts[given["PartNumber"]] = given["Body"]
        elif method == "upload_part_copy":
            first, last = map(int, given["CopySourceRange"].removeprefix("bytes=").split("-"))
            self.parts[given["PartNumber"]] = self.old[first : last + 1]
            return {"CopyPartResult": {"ETag": "x"}}
        elif method == "complete_multipart_upload":
            numbers = [part["PartNumber"] for part in given["MultipartUpload"]["Parts"]]
            assert numbers == list(range(1, len(self.parts) + 1))
            self.whole = b"".join(self.parts[number] for number in numbers)
        return {"UploadId": "u", "ETag": "x"}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    found = asyncio.new_event_loop()
    thread = threading.Thread(target=found.run_forever)
    thread.start()
    yield found
    found.call_soon_threadsafe(found.stop)
    thread.join()
    found.close()


def test_parts_have_sizes_that_s3_takes(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"LEAST": 50, "MOST": 500, "UPLOADED": 70, "COPIED": 300}.items():
        monkeypatch.setattr(s3_copying, name, size)
    chosen, copied = random.Random(7), 0
    for _ in range(300):
        old = chosen.randbytes(3000)
        store = _Store(old, loop)
        source: Any = SimpleNamespace(
            name="x", path="x", tag='"t"', size=len(old),
            read_ranges=lambda ranges, old=old: [memoryview(old)[at : at + n] for at, n in ranges],
        )  # fmt: skip
        sink, wanted, at = s3_copying.S3CopySink(store, source), b"", 0
        while at < len(old) and chosen.random() < 0.9:
            new = chosen.randbytes(chosen.choice([0, 1, 30, 200]))
            end = min(at + chosen.choice([1, 20, 49, 50, 99, 100, 1200]), len(old))
            middle = chosen.randint(at, end)
            sink.write([new])
            sink.take_range(at, middle)
            sink.take_range(middle, end)
            wanted += new + old[at:end]
            assert sink.position == len(wanted)
            at = end + chosen.choice([0, 3, 100])
        sink.commit()
        assert store.whole == wanted
        sizes = [len(store.parts[number]) for number in sorted(store.parts)]
        assert all(50 <= size <= 500 for size in sizes[:-1])
        copied += sink.num_copied
    assert copied > 100_000


# ---- memory ----------------------------------------------------------------------------------------------------------

_DELETES = """
import json, sys, threading, time
import pyparq
from pyparq.io import s3_copying
url, small, options, way = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
if way == "obstore alone":
    s3_copying.copying_system = lambda source: None

def now():
    said = dict(line.split(":") for line in open("/proc/self/status"))
    return int(said["RssAnon"].split()[0]) << 10

def deleted(url):
    return pyparq.delete(url, keys={"id": [5]}, storage_options=options)

deleted(small)
before, most, ended = now(), [0], threading.Event()
def watch():
    while not ended.is_set():
        most[0] = max(most[0], now())
        time.sleep(0.002)
watching = threading.Thread(target=watch)
watching.start()
report = deleted(url)
ended.set()
watching.join()
print(json.dumps([most[0] - before, report.bytes_copied, report.bytes_copied_in_store]))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("way", ["the store copies", "the store cannot copy", "obstore alone"])
def test_memory_is_bounded(s3: S3, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """312 MB, of which a row group has 39."""
    import json

    options = {"storage_options": s3.options}
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec")
    url, small = large("large", options, 13 * ROWS), large("small", options, 1000)
    size = s3.fs().info(url)["size"]
    assert size > 300e6
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "obstore" if way == "obstore alone" else "fsspec")
    if way == "the store cannot copy":
        monkeypatch.setattr(s3, "copies", lambda part: "501")
    command = [sys.executable, "-c", _DELETES, url, small, json.dumps(s3.options), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    grown, copied, by_store = json.loads(done.stdout)
    print(f"{way}: {size / 1e6:.0f} MB, {grown / 1e6:.0f} MB more memory, {by_store / 1e6:.0f} MB copied by the store")
    group = size // GROUPS
    assert grown < 2 * (32 << 20) + 3 * group  # a row group as stored, its values, and its new pages
    assert copied > 0.8 * size
    assert (by_store > 0.7 * size) == (way == "the store copies")
