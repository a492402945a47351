"""Objects in obstore's stores as sources, against a local S3 server and a store in memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, ObjectFile, ParquetFile, col
from pyparq.errors import CorruptFileError, OptionError

obstore: Any = require("obstore")
stores: Any = require("obstore.store")
require("s3fs")

ROWS = 50_000


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table({"id": rng.permutation(ROWS), "x": rng.random(ROWS), "s": [f"{n % 999:020}" for n in range(ROWS)]})


@lru_cache
def data() -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(table(), sink, row_group_size=10_000, bloom_filters=["id"], max_rows_per_page=2000)
    return sink.getvalue()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        running.fs().pipe_file(f"{BUCKET}/folder/t.parquet", data())
        yield running


def s3_store(s3: S3, **options: Any) -> Any:
    return stores.S3Store(
        BUCKET, access_key_id="some-key", secret_access_key="some-secret", endpoint=s3.url, region="us-east-1",
        client_options={"allow_http": True}, virtual_hosted_style_request=False,
        retry_config={"max_retries": 0}, **options,
    )  # fmt: skip


def in_memory(whole: bytes) -> Any:
    store = stores.MemoryStore()
    obstore.put(store, "a/t.parquet", whole)
    return store


def test_the_same_values(s3: S3) -> None:
    for file in (
        ObjectFile(s3_store(s3), "folder/t.parquet"),
        ObjectFile(s3_store(s3, prefix="folder"), "t.parquet"),
        ObjectFile(in_memory(data()), "a/t.parquet"),
    ):
        assert pyparq.read_table(file).to_arrow() == table()
        found = pyparq.read_table(file, ["s"], col("id") == 7, coalesce_gap=0, tail_size=1000)
        assert found.to_arrow() == table().filter(pa.compute.field("id") == 7).select(["s"])
        with ParquetFile(file) as opened:
            assert sum(b.num_rows for b in opened.scan().iter_batches()) == ROWS
        assert pyparq.read_metadata(file).num_rows == ROWS


def test_what_it_is_called(s3: S3) -> None:
    assert ObjectFile(s3_store(s3, prefix="folder/"), "t.parquet").name == f"s3://{BUCKET}/folder/t.parquet"
    assert ObjectFile(stores.MemoryStore(), "t.parquet").name == "<MemoryStore>/t.parquet"
    assert repr(ObjectFile(s3_store(s3), "t")) == f"<ObjectFile s3://{BUCKET}/t>"


def test_the_first_request_tells_the_size(s3: S3) -> None:
    s3.asked.clear()
    assert pyparq.read_metadata(ObjectFile(s3_store(s3), "folder/t.parquet")).num_rows == ROWS
    assert s3.asked == [("GET", f"/{BUCKET}/folder/t.parquet", "bytes=-131072")]


def test_many_objects_as_a_dataset(s3: S3) -> None:
    store = s3_store(s3)
    for k in range(3):
        obstore.put(store, f"many/{k}.parquet", data())
    files = [ObjectFile(store, info["path"]) for part in obstore.list(store, "many") for info in part]
    dataset = pyparq.dataset(files, filename=True)
    assert dataset.count() == 3 * ROWS
    found = dataset.read(["id", "filename"], col("id") == 7).to_pydict()
    assert found == {"id": [7] * 3, "filename": [f"s3://{BUCKET}/many/{k}.parquet" for k in range(3)]}


@pytest.mark.parametrize("size", [0, 1, 11])
def test_objects_that_are_no_files(s3: S3, size: int) -> None:
    for store in (in_memory(bytes(size)), s3_store(s3)):
        obstore.put(store, "a/t.parquet", bytes(size))
        with pytest.raises(CorruptFileError, match="not a Parquet file"):
            pyparq.read_table(ObjectFile(store, "a/t.parquet"))


def test_an_object_that_is_not_there(s3: S3) -> None:
    for store in (s3_store(s3), stores.MemoryStore()):
        file = ObjectFile(store, "absent.parquet")
        with pytest.raises(FileNotFoundError) as caught:
            pyparq.read_table(file)
        assert caught.value.filename == file.name


def test_access_is_refused(s3: S3) -> None:
    s3.refuse = lambda method, path: True
    try:
        with pytest.raises(PermissionError) as caught:
            pyparq.read_table(ObjectFile(s3_store(s3), "folder/t.parquet"))
        assert caught.value.filename == f"s3://{BUCKET}/folder/t.parquet"
    finally:
        s3.refuse = lambda method, path: False


def test_no_server() -> None:
    store = stores.S3Store(
        "b", access_key_id="some-key", secret_access_key="some-secret", endpoint="http://127.0.0.1:1",
        region="us-east-1", client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )  # fmt: skip
    with pytest.raises(ConnectionError) as caught:
        pyparq.read_table(ObjectFile(store, "t.parquet"))
    assert caught.value.filename == "s3://b/t.parquet"
    assert "some-" not in str(caught.value)


def test_an_object_that_is_replaced_while_it_is_read(s3: S3) -> None:
    for store in (s3_store(s3), in_memory(b"")):
        obstore.put(store, "changing", data())
        file = ObjectFile(store, "changing")
        with ParquetFile(file, tail_size=1000) as opened:
            assert opened.read(["x"]).num_rows == ROWS
            obstore.put(store, "changing", data())
            obstore.put(store, "changing", data()[:-1] + b"2")
            with pytest.raises(ChangedFileError, match="open it again") as caught:
                opened.read(["id", "s"])
            assert caught.value.file == file.name
        obstore.put(store, "changing", data())
        assert pyparq.read_table(file).to_arrow() == table(), "another reader takes it as it is then"


def test_what_is_no_store() -> None:
    for store, path in ((None, "a"), ("s3://bucket", "a"), (stores.MemoryStore(), b"a")):
        with pytest.raises(OptionError, match="ObjectFile takes a store"):
            ObjectFile(store, path)  # type: ignore[arg-type]
    with ParquetFile(ObjectFile(in_memory(data()), "a/t.parquet")) as opened:
        pass
    with pytest.raises(OptionError, match="closed"):
        opened.read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_instead_of_waiting_for_ever(s3: S3) -> None:
    file = ObjectFile(s3_store(s3), "folder/t.parquet")
    with ParquetFile(file) as opened:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for read in (opened.read, lambda: pyparq.read_table(file)):
                    with pytest.raises(OptionError, match="forked child"):
                        read()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_obstore_behind_fsspec(s3: S3) -> None:
    """Its own file system for fsspec, which refuses ranges from the end."""
    behind: Any = require("obstore.fsspec")
    fs = behind.FsspecStore(
        "s3", config={"access_key_id": "some-key", "secret_access_key": "some-secret", "endpoint": s3.url,
        "region": "us-east-1", "virtual_hosted_style_request": "false"}, client_options={"allow_http": True},
    )  # fmt: skip
    fsspec: Any = require("fsspec")
    found = pyparq.read_table(fsspec.core.OpenFile(fs, f"{BUCKET}/folder/t.parquet"))
    assert found.to_arrow() == table()
