"""Datasets on object stores: one listing, no request per file but those for its bytes, many files at a time."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
import pyparq.parquet
from pyparq import ChangedFileError, OptionError, SchemaError, col
from pyparq.datasets.dataset import files_of

fsspec: Any = require("fsspec")

FILES, ROWS = 24, 2000
TAIL = 900
"""Bytes that surely hold a footer here, and no data."""


@lru_cache
def file_bytes(k: int) -> bytes:
    sink = io.BytesIO()
    ids = np.arange(k * ROWS, (k + 1) * ROWS)
    pyparq.write_table({"id": ids, "x": np.random.default_rng(k).random(ROWS)}, sink, write_page_index=False)
    assert len(sink.getvalue()) > 10_000
    return sink.getvalue()


def names() -> list[str]:
    return [f"data/year={2000 + k // 8}/part-{k:02}.parquet" for k in range(FILES)]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        running.fs().pipe({f"{BUCKET}/{name}": file_bytes(k) for k, name in enumerate(names())})
        yield running


@pytest.fixture(params=[AsyncStore, LoopingStore], ids=["async", "looping"])
def slow(request: pytest.FixtureRequest) -> AsyncStore | LoopingStore:
    """A store that is reached by ``slow://`` URLs."""
    store: AsyncStore | LoopingStore = request.param({name: file_bytes(k) for k, name in enumerate(names())})

    class Always(request.param):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return store

    fsspec.register_implementation("slow", Always, clobber=True)
    return store


# ---- S3


def test_the_listing_is_one_request_and_no_file_is_asked_for_its_size(s3: S3) -> None:
    s3.asked.clear()
    dataset = pyparq.dataset(f"s3://{BUCKET}/data", storage_options=s3.options)
    assert len(dataset.files) == FILES
    assert len(s3.asked) == 1
    found = dataset.read()
    assert found.num_rows == FILES * ROWS
    theirs = ds.dataset(f"{BUCKET}/data", filesystem=s3.fs(), partitioning="hive").to_table()
    assert found.to_arrow().select(["id", "x"]) == theirs.select(["id", "x"])
    asked = s3.asked[1 : FILES + 1]
    assert {method for method, _, _ in asked} == {"GET"}
    assert {part for _, _, part in asked} == {"bytes=-49152"}
    assert {path for _, path, _ in asked} == {f"/{BUCKET}/{name}" for name in names()}


def test_files_that_partitions_rule_out_are_not_asked_for(s3: S3) -> None:
    dataset = pyparq.dataset(f"s3://{BUCKET}/data/", storage_options=s3.options)
    s3.asked.clear()
    assert dataset.read(filters=col("year") == 2001).num_rows == 8 * ROWS
    ends = {names()[0], names()[-1]}  # which speak for the schema
    left = {name for name in names() if "2001" in name}
    assert {path for _, path, _ in s3.asked} == {f"/{BUCKET}/{name}" for name in left | ends}


def test_the_schema_of_many_remote_files_does_not_depend_on_the_filter() -> None:
    fs = fsspec.filesystem("memory")
    for k in range(24):
        data = io.BytesIO()
        extra = {"late": [k]} if k > 20 else {"middle": [k]} if k == 10 else {}
        pyparq.write_table({"id": [k], **extra}, data)
        fs.pipe_file(f"/many/p={k + 100}/a.parquet", data.getvalue())
    url = "memory://many"
    assert pyparq.dataset(url).schema.names == ["id", "middle", "late", "p"]
    for k in (100, 105, 122, 999):
        assert pyparq.read_table(url, filters=col("p") == k).schema.names == ["id", "late", "p"]
    assert pyparq.read_table(url, ["middle"], filters=col("p") == 105).to_pydict() == {"middle": [None]}
    assert pyparq.read_table(url, ["middle"], filters=col("p") == 110).to_pydict() == {"middle": [10]}
    assert pyparq.read_table(url, ["id"], filters=col("p") == 110).to_pydict() == {"id": [10]}
    with pytest.raises(SchemaError, match=r"Call \.schema of the dataset before"):
        pyparq.read_table(url, filters=col("p") == 110)
    ds = pyparq.dataset(url)
    assert "middle" in ds.schema.names
    assert ds.scan(filters=col("p") == 110).schema == ds.schema
    assert ds.read(filters=col("p") == 110).to_pydict() == {"id": [10], "middle": [10], "late": [None], "p": [110]}


def test_a_url_without_a_suffix_that_names_a_file(s3: S3) -> None:
    s3.fs().pipe_file(f"{BUCKET}/one", file_bytes(3))
    assert pyparq.read_table(f"s3://{BUCKET}/one", storage_options=s3.options).num_rows == ROWS
    with pytest.raises(FileNotFoundError):
        pyparq.read_table(f"s3://{BUCKET}/none", storage_options=s3.options)


@pytest.mark.parametrize("name", ["out.parquet", "lake.v2", "year=2.5", "plain"])
def test_a_folder_whose_name_looks_like_a_file(s3: S3, name: str) -> None:
    """As Spark writes them. A path with a slash at its end is the same folder."""
    url = f"s3://{BUCKET}/folders/{name}"
    pyparq.write_dataset({"id": [1, 2], "v": ["a", "b"]}, url, max_rows_per_file=1, storage_options=s3.options)
    for asked in (url, f"{url}/"):
        given: dict[str, Any] = {"source": asked, "storage_options": s3.options}
        assert pyparq.read_table(**given, columns=["id"]).to_pydict() == {"id": [1, 2]}
        assert (pyparq.count(**given), pyparq.count(**given, filters=pyparq.col("id") == 2)) == (2, 1)
        assert pyparq.read_schema(**given).names[:2] == ["id", "v"]
        assert len(pyparq.dataset(**given).files) == 2
        with pytest.raises(OptionError, match="row_groups counts within one file"):
            pyparq.read_table(**given, row_groups=[0])
    path = url.removeprefix("s3://")
    for library in (pa.parquet, pyparq.parquet):
        assert library.read_table(path, filesystem=s3.fs()).column("id").to_pylist() == [1, 2]


def test_a_file_where_nothing_may_be_listed(s3: S3) -> None:
    """A key may read files alone."""
    url = f"s3://{BUCKET}/one-file.parquet"
    s3.fs().pipe_file(url, file_bytes(3))
    s3.refuse = lambda method, path: "list-type" in path
    try:
        assert pyparq.dataset(url, storage_options=s3.options).count() == ROWS
        assert pyparq.read_table(url, storage_options=s3.options).num_rows == ROWS
        with pytest.raises(PermissionError):
            pyparq.dataset(f"s3://{BUCKET}/one-file", storage_options=s3.options)
    finally:
        s3.refuse = lambda method, path: False


def test_a_file_that_was_replaced_after_the_listing(s3: S3) -> None:
    fs = s3.fs()
    fs.pipe({f"{BUCKET}/changing/{k}.parquet": file_bytes(k) for k in range(3)})
    dataset = pyparq.dataset(f"s3://{BUCKET}/changing", storage_options=s3.options)
    small = io.BytesIO()
    pyparq.write_table({"id": [1], "x": [0.5]}, small)
    fs.pipe_file(f"{BUCKET}/changing/1.parquet", small.getvalue())
    with pytest.raises(ChangedFileError, match="make the dataset again") as caught:
        dataset.read()
    assert caught.value.file == f"s3://{BUCKET}/changing/1.parquet"


def test_credentials_do_not_travel(s3: S3) -> None:
    dataset = pyparq.dataset(f"s3://{BUCKET}/data", storage_options=s3.options)
    assert b"some-secret" not in pickle.dumps(dataset.plan())
    assert b"some-secret" not in pickle.dumps(files_of(dataset).found.files)
    assert "some-secret" not in repr(files_of(dataset).found.files)


# ---- any store


def test_sizes_come_from_the_listing(slow: AsyncStore | LoopingStore) -> None:
    dataset = pyparq.dataset("slow://data")
    listed = len(slow.log.requests)
    assert dataset.count() == FILES * ROWS
    later = slow.log.requests[listed:]
    assert len(later) == FILES
    assert {r.kind for r in later} == {"bytes"}


@pytest.mark.parametrize("slow", [LoopingStore], indirect=True)
def test_many_files_are_asked_for_at_a_time(slow: LoopingStore) -> None:
    """More than there are processors: each request of a footer waits for others."""
    dataset = pyparq.dataset("slow://data", tail_size=TAIL)
    meeting = threading.Barrier(12)
    slow.before = lambda request: meeting.wait(20) and None
    assert dataset.count() == FILES * ROWS
    slow.log.clear()
    assert dataset.read().num_rows == FILES * ROWS
    assert len(slow.log.requests) == FILES


def test_the_next_files_are_begun_while_one_is_used(slow: AsyncStore | LoopingStore) -> None:
    dataset = pyparq.dataset("slow://data", tail_size=TAIL)
    assert dataset.schema.names == ["id", "x", "year"]
    slow.log.clear()
    batches = dataset.iter_batches()
    next(batches)

    def paths(requests: list[Request]) -> set[str]:
        return {r.path.removeprefix("slow://") for r in requests}

    assert slow.log.wait_for(lambda requests: paths(requests) == set(names()[:9]))
    batches.close()
    assert not slow.log.wait_for(lambda requests: len(paths(requests)) > 9, seconds=0.05)


@pytest.mark.parametrize("question", [None, col("x") < 0.1, (col("id") > 30_000) & (col("x") > 0.5)], ids=str)
def test_the_rows_come_in_order(slow: AsyncStore | LoopingStore, question: Any) -> None:
    dataset = pyparq.dataset("slow://data", tail_size=TAIL)
    whole = pyparq.dataset([io.BytesIO(file_bytes(k)) for k in range(FILES)]).read(["id"], question)
    for options in ({}, {"prefetch_bytes": 0}, {"prefetch_bytes": 30_000}, {"use_threads": False}):
        dataset = pyparq.dataset("slow://data", tail_size=TAIL, **options)
        found = [
            n for batch in dataset.iter_batches(columns=["id"], filters=question) for n in batch.columns[0].to_pylist()
        ]
        assert found == whole.to_pydict()["id"]
        assert dataset.read(["id"], question).to_pydict() == whole.to_pydict()
    assert sum(b.num_rows for b in dataset.scan(filters=question, limit=2500).iter_batches()) == 2500


@pytest.mark.parametrize("slow", [AsyncStore], indirect=True)
def test_a_listing_that_fails_for_the_moment(slow: AsyncStore | LoopingStore) -> None:
    failed: list[Request] = []

    def fail(request: Request) -> Exception | None:
        if request.kind != "list" or failed:
            return None
        failed.append(request)
        return ConnectionResetError("gone")

    slow.fail = fail
    assert pyparq.dataset("slow://data").count() == FILES * ROWS
    assert failed


def test_an_error_comes_with_its_file(slow: AsyncStore | LoopingStore) -> None:
    dataset = pyparq.dataset("slow://data", tail_size=TAIL)
    assert dataset.count() == FILES * ROWS
    slow.fail = lambda r: ConnectionResetError("gone") if r.path.endswith("part-05.parquet") else None
    batches = dataset.iter_batches()
    assert sum(next(batches).num_rows for _ in range(5)) == 5 * ROWS
    with pytest.raises(ConnectionError) as caught:
        next(batches)
    assert str(caught.value.filename).endswith("part-05.parquet")
    slow.fail = lambda request: None
    assert dataset.read().num_rows == FILES * ROWS


def test_files_that_fail_are_left_out_when_asked(slow: AsyncStore | LoopingStore) -> None:
    dataset = pyparq.dataset("slow://data", tail_size=TAIL, on_error="skip")
    slow.fail = lambda r: PermissionError("no") if r.path.endswith("part-05.parquet") else None
    with pytest.warns(pyparq.SkippedFileWarning):
        assert sum(b.num_rows for b in dataset.iter_batches()) == (FILES - 1) * ROWS
    assert [name for name, _ in dataset.skipped] == [f"slow://{names()[5]}"]
