"""What changes to a folder in a store ask of it: requests, serial trips, bytes, and seconds at 30 ms a request.

``python benchmarks/store_changes.py`` makes the folders, serves them by ``s3_store.py``, and changes them by both roads
to the store, beside pyarrow where it has such a change. Requests and bytes do not depend on the machine. Seconds do,
and so do the trips of changes to many files, where a busy machine begins some of the requests late.
"""

from __future__ import annotations

import json
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from catalog import options, served
from pyarrow import fs

import pyparq
from pyparq import col

ROOT = "lake/warehouse/shop"
"""Two folders below the bucket, as many have it: a table format may manage any of them."""
ONE = {"key": np.array([1]), "x": np.array([0.5])}


def rows(k: int, count: int = 1000) -> dict[str, Any]:
    return {"key": np.arange(k * count, (k + 1) * count), "x": np.random.default_rng(k).random(count)}


def make(folder: Path) -> None:
    """Four files, twenty without indexes, and a hundred with Bloom filters."""
    for name, count in (("four", 4), ("twenty", 20), ("hundred", 100)):
        (folder / name).mkdir(parents=True)
        for k in range(count):
            place = folder / name / f"{k:03}.parquet"
            if name == "twenty":
                pq.write_table(pa.table(rows(k)), place)
            else:
                pyparq.write_table(rows(k), place, bloom_filters=["key"])


def changes(url: str, road: str) -> dict[str, Callable[[], Any]]:
    """Each changes what the one before has left."""
    given: dict[str, Any] = {"storage_options": options(url), "filesystem": road}
    place = f"s3://{ROOT}/"
    return {
        "a row to a new folder": lambda: pyparq.write_dataset(ONE, place + "new", **given),
        "a row appended": lambda: pyparq.write_dataset(ONE, place + "four", mode="append", **given),
        "a folder of 5 files overwritten": lambda: pyparq.write_dataset(ONE, place + "four", mode="overwrite", **given),
        "`add_indexes` of 20 files": lambda: pyparq.add_indexes(place + "twenty", bloom_filters=["key"], **given),
        "`edit_metadata` of 20 files": lambda: pyparq.edit_metadata(place + "twenty", update={"a": "b"}, **given),
        "`verify` of 100 files": lambda: pyparq.verify(place + "hundred", **given),
        "`delete` of a key in 100 files": lambda: pyparq.delete(place + "hundred", col("key") == 5, **given),
    }


def changes_of_pyarrow(url: str) -> dict[str, Callable[[], Any]]:
    store = fs.S3FileSystem(access_key="k", secret_key="s", endpoint_override=url, region="us-east-1")
    table = pa.table(ONE)

    def written(name: str, behaviour: str) -> None:
        pq.write_to_dataset(table, f"{ROOT}/{name}", filesystem=store, existing_data_behavior=behaviour)

    return {
        "a row to a new folder": lambda: written("new", "error"),
        "a row appended": lambda: written("four", "overwrite_or_ignore"),
        "a folder of 5 files overwritten": lambda: written("four", "delete_matching"),
    }


def measured(make_changes: Callable[[str], dict[str, Callable[[], Any]]]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / ROOT.partition("/")[2])
        with served(Path(folder), 0.03) as url:
            found = {}
            for name, change in make_changes(url).items():
                told(url)
                began = time.perf_counter()
                change()
                seconds, asked = time.perf_counter() - began, told(url)
                found[name] = f"{asked['requests']} / {asked['trips']}, {asked['bytes'] / 1000:.0f}: {seconds:.2f}"
            return found


def told(url: str) -> dict[str, int]:
    answer: dict[str, int] = json.load(urllib.request.urlopen(f"{url}/?log"))
    return answer


def main() -> None:
    found = {
        "pyparq": measured(lambda url: changes(url, "obstore")),
        "pyparq, fsspec": measured(lambda url: changes(url, "fsspec")),
        "pyarrow": measured(changes_of_pyarrow),
    }
    print(f"| requests / serial trips, kB read: seconds | {' | '.join(found)} |\n|---|{'---:|' * len(found)}")
    for name in found["pyparq"]:
        print(f"| {name} | {' | '.join(cells.get(name, '–') for cells in found.values())} |")


if __name__ == "__main__":
    main()
