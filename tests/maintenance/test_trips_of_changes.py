"""Changes to many files in a store take few serial trips, however many files there are.

Where several files are changed at a time, a busy machine may begin some late: the bounds leave room for that."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq

require("s3fs")
require("obstore")

FILES, ROWS = 12, 100
DELAY = 0.15
"""Seconds, so long that requests of one step run at the same time on a busy machine too."""
FOLDER = f"s3://{BUCKET}/shop/lake/events"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as server:
        kept = server.fs()
        server.fs = lambda: kept  # type: ignore[method-assign]  # a new one takes seconds
        yield server


@pytest.fixture(params=["obstore", "fsspec"])
def road(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def filled(s3: S3, files: int = FILES, indexed: bool = False) -> None:
    """The folder with so many files."""
    fs = s3.fs()
    fs.invalidate_cache()
    if fs.exists(FOLDER):
        fs.rm(FOLDER, recursive=True)
    for k in range(files):
        data = io.BytesIO()
        pyparq.write_table(
            {"id": range(k * ROWS, (k + 1) * ROWS)}, data, write_page_index=indexed, bloom_filters=["id"]
        )
        fs.pipe_file(f"{FOLDER}/{k:03}.parquet", data.getvalue())


def asked(s3: S3, job: Callable[[], Any]) -> tuple[Any, list[str], int]:
    """The result of a job, what it asked the store for, and its serial trips."""
    s3.asked.clear()
    s3.spans.clear()
    s3.delay = DELAY
    try:
        result = job()
    finally:
        s3.delay = 0.0
    return result, [f"{method} {path}" for method, path, _ in s3.asked], s3.trips


def ids(s3: S3) -> list[int]:
    fs = s3.fs()
    fs.invalidate_cache()
    tables = [pq.read_table(io.BytesIO(fs.cat_file(path))) for path in sorted(fs.find(FOLDER))]
    return sorted(n for table in tables for n in table.column("id").to_pylist())


def test_a_row_appended(s3: S3, road: str) -> None:
    filled(s3)
    given = {"storage_options": s3.options, "filesystem": road}
    _, requests, trips = asked(s3, lambda: pyparq.write_dataset({"id": [-1]}, FOLDER, mode="append", **given))
    assert trips <= 4, requests
    assert sum(request.startswith("PUT") for request in requests) == 1
    assert len(requests) <= 13, requests  # the folder, three names in each of the three above it, the file
    assert ids(s3) == [-1, *range(FILES * ROWS)]


def test_a_folder_overwritten(s3: S3, road: str) -> None:
    filled(s3)
    given = {"storage_options": s3.options, "filesystem": road}
    _, requests, trips = asked(s3, lambda: pyparq.write_dataset({"id": [1]}, FOLDER, mode="overwrite", **given))
    assert trips <= (12 if road == "obstore" else 14), requests  # one after the other: 23 for twelve files
    assert sum(request.startswith("DELETE") for request in requests) == FILES + 1  # and the marker
    assert ids(s3) == [1]


@pytest.mark.sweep(2)
def test_indexes_added(s3: S3, road: str) -> None:
    filled(s3)
    done: list[tuple[int, int]] = []
    report, requests, trips = asked(
        s3,
        lambda: pyparq.add_indexes(
            FOLDER, storage_options=s3.options, filesystem=road, progress=lambda n, all_: done.append((n, all_))
        ),
    )
    assert trips < FILES, requests
    assert len(requests) - sum("list-type" in request for request in requests) <= 4 * FILES, requests
    assert [file.written for file in report.files] == [True] * FILES
    assert [file.source.rpartition("/")[2] for file in report.files] == [f"{k:03}.parquet" for k in range(FILES)]
    assert done[-1] == (FILES, FILES)
    assert ids(s3) == list(range(FILES * ROWS))
    assert pyparq.verify(FOLDER, storage_options=s3.options, filesystem=road).ok


@pytest.mark.sweep(2)
def test_metadata_edited(s3: S3, road: str) -> None:
    filled(s3)
    given = {"storage_options": s3.options, "filesystem": road}
    written, requests, trips = asked(s3, lambda: pyparq.edit_metadata(FOLDER, update={"owner": "data team"}, **given))
    assert written == FILES
    assert trips < FILES, requests


def test_files_verified(s3: S3, road: str) -> None:
    filled(s3, indexed=True)
    fs, damaged = s3.fs(), f"{FOLDER}/007.parquet"
    whole = fs.cat_file(damaged)
    fs.pipe_file(damaged, whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    bytes_done: list[tuple[int, int]] = []
    report, requests, trips = asked(
        s3,
        lambda: pyparq.verify(
            FOLDER, storage_options=s3.options, filesystem=road, progress=lambda n, all_: bytes_done.append((n, all_))
        ),
    )
    assert trips < FILES, requests
    assert {finding.file.rpartition("/")[2] for finding in report.findings} == {"007.parquet"}
    assert [file.name.rpartition("/")[2] for file in report.files] == [f"{k:03}.parquet" for k in range(FILES)]
    assert bytes_done[-1][0] == bytes_done[-1][1] == sum(info["size"] for info in fs.find(FOLDER, detail=True).values())


@pytest.mark.sweep(2)
def test_one_bad_file_among_many(s3: S3, road: str) -> None:
    """The other files get their indexes, or the error names the file."""
    filled(s3)
    s3.fs().pipe_file(f"{FOLDER}/003.parquet", b"PAR1 no Parquet PAR1")
    given: dict[str, Any] = {"storage_options": s3.options, "filesystem": road}
    report = pyparq.add_indexes(FOLDER, on_error="skip", **given)
    assert [file.error is None for file in report.files] == [k != 3 for k in range(FILES)]
    with pytest.raises(pyparq.ParquetError, match=r"003\.parquet"):
        pyparq.add_indexes(FOLDER, replace=True, **given)


def test_a_table_in_a_folder_above(s3: S3, road: str) -> None:
    """It is asked for once, before any file changes."""
    filled(s3, 3)
    fs = s3.fs()
    fs.pipe_file(f"{BUCKET}/shop/_delta_log/00000000000000000000.json", b"{}")
    given: dict[str, Any] = {"storage_options": s3.options, "filesystem": road}
    try:
        for change in (
            lambda: pyparq.add_indexes(FOLDER, **given),
            lambda: pyparq.write_dataset({"id": [1]}, FOLDER, mode="append", **given),
            lambda: pyparq.write_dataset({"id": [1]}, FOLDER, mode="overwrite", **given),
        ):
            s3.asked.clear()
            with pytest.raises(pyparq.OptionError, match="Delta Lake"):
                change()
            assert not [method for method, *_ in s3.asked if method in ("PUT", "DELETE", "POST")]
    finally:
        fs.rm(f"{BUCKET}/shop/_delta_log", recursive=True)
