"""A lookup in a table with a catalog of keys, in a store: its requests do not depend on the number of files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from s3_server import BUCKET, S3, serve
from support.lake_tables import commit_of, field_of, metadata_of, protocol_of
from test_catalog_trips import TaggedStore, file_bytes

import pyparq
from pyparq import col

deltalake = require("deltalake")
require("pyiceberg")
pa: Any = require("pyarrow")
fsspec: Any = require("fsspec")

ROWS = 10
LOOKED_FOR = 618_034 * 50 % 1_000_003


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


def some(start: int) -> Any:
    return pa.table({"id": [k * 618_034 % 1_000_003 for k in range(start, start + ROWS)], "x": [1.5] * ROWS})


def delta_on(s3: S3, name: str, files: int) -> tuple[Any, dict[str, str]]:
    given = {"aws_endpoint_url": s3.url, "aws_allow_http": "true", "aws_region": "us-east-1",
             "aws_access_key_id": "some-key", "aws_secret_access_key": "some-secret"}  # fmt: skip
    uri = f"s3://{BUCKET}/{name}"
    for k in range(files):
        deltalake.write_deltalake(uri, some(k * ROWS), mode="append", storage_options=given)
    return deltalake.DeltaTable(uri, storage_options=given), given


def iceberg_on(s3: S3, name: str, files: int) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    given = {"s3.endpoint": s3.url, "s3.region": "us-east-1", "s3.access-key-id": "some-key",
             "s3.secret-access-key": "some-secret"}  # fmt: skip
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"s3://{BUCKET}/{name}", **given)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=some(0).schema)
    for k in range(files):
        table.append(some(k * ROWS))
    return table


def asked(s3: S3, ds: Any, key: int) -> tuple[int, list[str]]:
    """The rows of a key, and the requests that this takes once the table's own library has read the log."""
    s3.asked.clear()
    rows = ds.lookup("id", key).num_rows
    return rows, [f"{method} {path.rpartition('/')[2]}" for method, path, _ in s3.asked]


def data_files(requests: list[str]) -> int:
    """The data files that were asked. The process has their footers, and asks whether they are still the same."""
    return len({name for name in requests if name.endswith(".parquet")})


def test_delta_on_a_store(s3: S3) -> None:
    table, given = delta_on(s3, "delta", 8)
    rows, requests = asked(s3, pyparq.dataset(table, catalog="off"), LOOKED_FOR)
    assert rows == 1
    assert data_files(requests) >= 5
    before = asked(s3, pyparq.dataset(table), LOOKED_FOR)[1]
    assert "GET catalog.json" in before  # a table that has none is asked for it once
    assert pyparq.index_dataset(table, "id").files == 8
    ds = pyparq.dataset(deltalake.DeltaTable(table.table_uri, storage_options=given))
    assert ds.explain(filters=col("id") == LOOKED_FOR).catalog_rules_out >= 4
    from pyparq.datasets.catalog import catalog

    catalog._forget()
    rows, requests = asked(s3, pyparq.dataset(table), LOOKED_FOR)
    assert rows == 1
    assert len(requests) <= 7, requests
    assert data_files(requests) == 1
    deltalake.write_deltalake(table.table_uri, some(50), mode="append", storage_options=given)
    table = deltalake.DeltaTable(table.table_uri, storage_options=given)
    rows, requests = asked(s3, pyparq.dataset(table), LOOKED_FOR)
    assert (rows, data_files(requests)) == (2, 2)
    assert (pyparq.index_dataset(table).files_read, pyparq.verify(table).ok) == (1, True)


def test_iceberg_on_a_store(s3: S3) -> None:
    table = iceberg_on(s3, "ice", 8)
    report = pyparq.index_dataset(table, "id")
    assert (report.files, report.left_out) == (8, ())
    rows, requests = asked(s3, pyparq.dataset(table), LOOKED_FOR)
    assert rows == 1
    assert len(requests) <= 7, requests
    assert data_files(requests) == 1
    table.append(some(50))
    rows, requests = asked(s3, pyparq.dataset(table), LOOKED_FOR)
    assert (rows, data_files(requests)) == (2, 2)
    assert (pyparq.index_dataset(table).files_read, pyparq.verify(table).ok) == (1, True)
    for source in (table, table.scan()):
        assert pyparq.dataset(source).lookup("id", LOOKED_FOR).num_rows == 2


def test_a_store_that_hides_what_is_missing(s3: S3) -> None:
    """Without the right to list a bucket, S3 answers that a missing file is forbidden: there is no catalog then."""
    table, _ = delta_on(s3, "hidden", 3)
    s3.refuse = lambda method, path: "_pyparq_catalog" in path
    try:
        assert pyparq.dataset(table).lookup("id", LOOKED_FOR).num_rows == 0
    finally:
        s3.refuse = lambda method, path: False


# ---- many files ------------------------------------------------------------------------------------------------------


class Elsewhere(deltalake.DeltaTable):  # type: ignore[misc, valid-type]
    """A table whose log is on the disk, and whose files are in a store of tests."""

    table_uri = "tagged://lake"


def table_of(folder: Path, count: int) -> tuple[TaggedStore, Any]:
    """A table with a log that is written by hand: so many files, with statistics that rule out none."""
    data = {f"lake/f{k:06}.parquet": file_bytes(k, ROWS) for k in range(count)}
    store = TaggedStore(data)

    class Always(TaggedStore):
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return store

    fsspec.register_implementation("tagged", Always, clobber=True)
    stats = {"numRecords": ROWS, "minValues": {"id": 0}, "maxValues": {"id": 1_000_003}, "nullCount": {"id": 0}}
    adds = [
        {"add": {"path": name.removeprefix("lake/"), "partitionValues": {}, "size": len(bytes_), "dataChange": True,
                 "modificationTime": zlib.crc32(name.encode()), "stats": json.dumps(stats)}}
        for name, bytes_ in data.items()
    ]  # fmt: skip
    about = metadata_of([field_of("id", "long"), field_of("x", "long")])
    commit_of(folder, 0, protocol_of(1, 2), about, *adds)
    return store, Elsewhere(folder)


@pytest.mark.parametrize("count", [50, pytest.param(1_000, marks=pytest.mark.slow)])
def test_trips(tmp_path: Path, count: int) -> None:
    """``catalog.json``; the list of files and the end of the key table; a page of keys; the file."""
    store, table = table_of(tmp_path, count)
    report = pyparq.index_dataset(table, "id")
    assert (report.files, report.left_out, report.entries) == (count, (), count * ROWS)
    from pyparq.datasets.catalog import catalog

    store.delay = 0.05
    for key, rows, trips in ((7919 * 55 % 1_000_003, 1, 4), (-1, 0, 3), (3, 0, 3)):
        catalog._forget()
        store.log.clear()
        ds = pyparq.dataset(table)
        assert ds.lookup("id", key).num_rows == rows
        assert store.log.depth <= trips
        assert len(store.log.requests) <= 6
    told = pyparq.dataset(table).explain(filters=col("id").isin([7919 * 55 % 1_000_003, 3]))
    assert (told.catalog_knows, told.catalog_rules_out) == (count, count - 1)
