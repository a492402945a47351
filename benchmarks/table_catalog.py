"""A catalog of keys for a table of Delta Lake and of Iceberg: what a lookup in a store asks, and what it costs.

``python benchmarks/table_catalog.py --files 100000`` makes a table of small files (10 rows each), writes its log by
hand, serves it by ``s3_store.py``, makes the catalog through the store, and looks up a key that is there and one that
is not, each in a process of its own. What the table's own library asks to load the table is told apart.
``--keys 10000000`` makes a table of so many keys on a disk instead, in files of 100,000 rows, and tells the time and
the size of its catalog.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from catalog import served

import pyparq

ROWS, STEP, MOST = 10, 6_180_339, 10_000_019
BUCKET = "lake"

LOOKUP = """
import json, os, sys, time, urllib.request
import pyparq
from table_catalog import opened
kind, url, folder, key = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
begun = time.process_time()
table = opened(kind, url, folder)
ds = pyparq.dataset(table)
loaded, load = time.process_time() - begun, json.load(urllib.request.urlopen(url + "/?log"))
begun = time.process_time()
rows = ds.lookup("id", key).num_rows
used, asked = time.process_time() - begun, json.load(urllib.request.urlopen(url + "/?log"))
print(json.dumps([rows, load, loaded, asked, used]))
"""


def ids(k: int, rows: int) -> Any:
    return np.arange(k * rows, (k + 1) * rows) * STEP % MOST


def opened(kind: str, url: str, folder: str) -> Any:
    """The table as its own library opens it."""
    if kind == "delta":
        from deltalake import DeltaTable

        given = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint_url": url,
                 "aws_region": "us-east-1", "aws_allow_http": "true"}  # fmt: skip
        return DeltaTable(f"s3://{BUCKET}/delta", storage_options=given)
    return catalog_of(url, folder).load_table("n.t")


def catalog_of(url: str, folder: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    given = {
        "s3.endpoint": url,
        "s3.region": "us-east-1",
        "s3.access-key-id": "k",
        "s3.secret-access-key": "s",
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
    }
    return SqlCatalog("c", uri=f"sqlite:///{folder}.db", warehouse=f"s3://{BUCKET}/ice", **given)


def make_files(folder: Path, files: int) -> dict[str, int]:
    """Names and sizes."""
    folder.mkdir(parents=True)
    found = {}
    for k in range(files):
        path = folder / f"part-{k:06}-{np.random.default_rng(k).bytes(16).hex()}.parquet"
        data = {"id": ids(k, ROWS), "x": np.full(ROWS, k)}
        ids_of = {"id": 1, "x": 2}
        pyparq.write_table(data, path, compression="none", use_dictionary=False, field_ids=ids_of, force=True)
        found[path.name] = path.stat().st_size
    return found


def write_delta(folder: Path, sizes: dict[str, int]) -> None:
    stats = json.dumps({"numRecords": ROWS, "minValues": {"id": 0}, "maxValues": {"id": MOST}, "nullCount": {"id": 0}})
    schema = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "x")]
    about = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
             "schemaString": json.dumps({"type": "struct", "fields": schema}), "createdTime": 0}  # fmt: skip
    lines: list[Any] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}]
    lines += [
        {"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1_700_000_000_000 + 17 * k,
                 "dataChange": True, "stats": stats}}
        for k, (name, size) in enumerate(sizes.items())
    ]  # fmt: skip
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))


def write_iceberg(url: str, folder: str, sizes: dict[str, int]) -> None:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    catalog = catalog_of(url, folder)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=pa.schema([("id", pa.int64()), ("x", pa.int64())]))
    low, high = ({1: to_bytes(LongType(), value)} for value in (0, MOST))
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        for name, size in sizes.items():
            file = DataFile.from_args(
                content=DataFileContent.DATA, file_path=f"s3://{BUCKET}/ice/n/t/data/{name}",
                file_format=FileFormat.PARQUET, partition=Record(), record_count=ROWS, file_size_in_bytes=size,
                column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={}, lower_bounds=low,
                upper_bounds=high, key_metadata=None, split_offsets=None, equality_ids=None, sort_order_id=None,
            )  # fmt: skip
            file.spec_id = 0
            snapshot.append_data_file(file)


def lookups(kind: str, files: int, delay: float) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "store")
        target = Path(folder, "delta" if kind == "delta" else "ice/n/t/data")
        sizes = make_files(target, files)
        if kind == "delta":
            write_delta(target, sizes)
        with served(Path(folder), 0) as url:
            if kind == "iceberg":
                write_iceberg(url, os.path.join(place, "tables"), sizes)
            begun = time.process_time()
            print(kind, pyparq.index_dataset(opened(kind, url, os.path.join(place, "tables")), "id"))
            print(f"{time.process_time() - begun:.1f} s of processor time", flush=True)
        key = int(ids(files // 2, ROWS)[3])
        with served(Path(folder), delay) as url:
            for what, asked in (("present", key), ("absent", int(ids(files, ROWS)[0]))):
                urllib.request.urlopen(f"{url}/?log").read()
                command = [sys.executable, "-c", LOOKUP, kind, url, os.path.join(place, "tables"), str(asked)]
                around = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[1]}:{Path(__file__).parent}"}
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=around)
                rows, load, loaded, told, used = json.loads(done.stdout.splitlines()[-1])
                print(f"{kind} {files:,} files, {what} ({rows} rows): {told}, {used:.2f} s of processor time; to load "
                      f"the table {load}, {loaded:.2f} s", flush=True)  # fmt: skip


def cost(kind: str, keys: int) -> None:
    """Of a table of so many keys, each in one row, on a disk."""
    with tempfile.TemporaryDirectory() as place:
        rows, draw = 100_000, np.random.default_rng(0).permutation(keys)
        tables = (pa.table({"id": draw[k : k + rows], "x": np.zeros(rows, np.int64)}) for k in range(0, keys, rows))
        if kind == "delta":
            from deltalake import DeltaTable, write_deltalake

            for one in tables:
                write_deltalake(place, one, mode="append")
            table: Any = DeltaTable(place)
        else:
            from pyiceberg.catalog.sql import SqlCatalog

            catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{place}")
            catalog.create_namespace("n")
            table = catalog.create_table("n.t", schema=pa.schema([("id", pa.int64()), ("x", pa.int64())]))
            for one in tables:
                table.append(one)
        begun, used = time.perf_counter(), time.process_time()
        report = pyparq.index_dataset(table, "id")
        took, used = time.perf_counter() - begun, time.process_time() - used
        print(f"{kind} {keys:,} keys: {report}; {report.bytes / keys:.2f} bytes a key, {took:.1f} s, {used:.1f} s of "
              "processor time", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, nargs="*", default=[])
    parser.add_argument("--keys", type=int, nargs="*", default=[])
    parser.add_argument("--kinds", nargs="+", default=["delta", "iceberg"])
    parser.add_argument("--delay", type=float, default=0.03)
    given = parser.parse_args()
    for kind in given.kinds:
        for files in given.files:
            lookups(kind, files, given.delay)
        for keys in given.keys:
            cost(kind, keys)


if __name__ == "__main__":
    main()
