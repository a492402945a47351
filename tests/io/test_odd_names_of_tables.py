"""Tables and folders whose names have letters that mean something in URLs and patterns: read right, by every road."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import col

require("s3fs")
require("obstore")
deltalake: Any = require("deltalake")
sql: Any = require("pyiceberg.catalog.sql")

NAMES = ["a#b", "q?z", "[x]", "a%25b", "a::b", "a//b", "{x,y}", "100%", "star*", "a%20b", "sub/a?b#c", "a b+c=d", "ü"]
ROWS = [{"id": 1, "p": "x"}, {"id": 2, "p": "y?#[%25"}, {"id": 3, "p": "x"}]
DATA = pa.Table.from_pylist(ROWS)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(params=["local", "obstore", "fsspec"])
def place(
    request: pytest.FixtureRequest, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The folder that tables are in, and storage options."""
    if request.param == "local":
        yield str(tmp_path), {}
        return
    monkeypatch.setenv("PYPARQ_FILESYSTEM", request.param)
    for name, value in (("ACCESS_KEY_ID", "some-key"), ("SECRET_ACCESS_KEY", "some-secret"), ("ENDPOINT_URL", s3.url)):
        monkeypatch.setenv(f"AWS_{name}", value)
    yield (
        f"s3://{BUCKET}/{request.param}-{request.node.name[:12]}",
        {name: value for name, value in s3.options.items() if "cache" not in name},
    )


def rows(source: Any, **options: Any) -> list[dict[str, Any]]:
    return sorted(pyparq.dataset(source, **options).read().to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.sweep(28)
@pytest.mark.parametrize("name", NAMES)
def test_folders(place: tuple[str, dict[str, Any]], name: str) -> None:
    root, options = f"{place[0]}/{name}", place[1]
    given: dict[str, Any] = {"storage_options": options} if options else {}
    pyparq.write_dataset(DATA, root, partition_cols=["p"], **given)
    assert rows(root, **given) == ROWS
    assert rows(f"{root}/", **given) == ROWS
    pyparq.write_dataset(DATA, root, partition_cols=["p"], mode="overwrite", **given)
    assert pyparq.dataset(root, **given).count(col("p") == "y?#[%25") == 1
    pyparq.add_indexes(root, bloom_filters=["id"], **given)
    pyparq.index_dataset(root, ["id"], **given)
    assert pyparq.dataset(root, **given).lookup("id", 2).num_rows == 1
    assert pyparq.delete(root, col("id") == 2, **given).rows_deleted == 1
    pyparq.upsert(root, [{"id": 2, "p": "y?#[%25"}, {"id": 4, "p": "new"}], "id", **given)
    assert rows(root, **given) == [*ROWS, {"id": 4, "p": "new"}]
    assert pyparq.verify(root, **given).ok


def delta_options(options: dict[str, Any]) -> dict[str, str] | None:
    if not options:
        return None
    return {"AWS_ENDPOINT_URL": options["endpoint_url"], "AWS_ACCESS_KEY_ID": "some-key",
            "AWS_SECRET_ACCESS_KEY": "some-secret", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_CONDITIONAL_PUT": "etag"}  # fmt: skip


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", NAMES)
def test_tables_of_delta_lake(place: tuple[str, dict[str, Any]], name: str) -> None:
    root, options = f"{place[0]}/{name}", delta_options(place[1])
    try:
        deltalake.write_deltalake(root, DATA, partition_by=["p"], storage_options=options)
        deltalake.DeltaTable(root, storage_options=options)
    except BaseException as error:  # it panics
        pytest.skip(f"deltalake does not know such names: {str(error)[:80]}")

    def table() -> Any:
        return deltalake.DeltaTable(root, storage_options=options)

    def theirs() -> Any:
        return sorted(table().to_pyarrow_table().to_pylist(), key=lambda row: row["id"])

    assert theirs() == ROWS
    assert rows(table()) == ROWS
    assert all(file.written for file in pyparq.add_indexes(table(), bloom_filters=["id"]).files)
    assert rows(table()) == theirs() == ROWS
    assert pyparq.delete(table(), col("id") == 2).rows_deleted == 1
    assert rows(table()) == theirs() == [ROWS[0], ROWS[2]]


@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", NAMES)
def test_tables_of_iceberg(place: tuple[str, dict[str, Any]], name: str, tmp_path: Path) -> None:
    root, options = f"{place[0]}/{name}", place[1]
    keys = {"s3.endpoint": options["endpoint_url"], "s3.access-key-id": "some-key",
            "s3.secret-access-key": "some-secret", "s3.region": "us-east-1"} if options else {}  # fmt: skip
    location = root if options else f"file://{root}"
    catalog = sql.SqlCatalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=location, **keys)
    catalog.create_namespace("ns")
    try:
        table = catalog.create_table("ns.t", DATA.schema, location=location)
        table.append(DATA)
        theirs = table.scan().to_arrow().to_pylist()
    except Exception as error:
        pytest.skip(f"pyiceberg does not know such names: {str(error)[:80]}")
    assert sorted(theirs, key=lambda row: row["id"]) == rows(table) == ROWS
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    table = catalog.load_table("ns.t")
    assert rows(table) == ROWS
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS
