"""A key deleted in 100,000 files of a store that answers after 30 ms: the catalog leads to the three that have it.

``python benchmarks/remote_delete.py`` makes the three files and the catalog, serves them by ``s3_store.py``, and
deletes the key in a process of its own. It prints requests, serial trips, bytes and seconds, the opening of the
dataset with its catalog included. Only the three files are there. The catalog has entries of all files, 100 keys each:
it is made by what ``pyparq.index_dataset`` is made of, from keys that are drawn. With ``catalog="trust"`` nobody asks
for the other files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from catalog import options, served

import pyparq
from pyparq.datasets.catalog.building import ShareReader, entries_of
from pyparq.datasets.catalog.file_table import path_of, state_of
from pyparq.datasets.catalog.index_dataset import Build
from pyparq.datasets.catalog.layout import Place
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.discovery import discover
from pyparq.io.file_versions import Stated
from pyparq.options import ReadOptions

URL, KEY, KEYS = "s3://lake/lake/", -1, 100
"""Where the files are, the key that goes, and the number of keys in a file."""


def make(folder: Path, files: int) -> list[int]:
    """The files that have the key. Returns their numbers."""
    numbers = [7, files // 2, files - 3]
    draw = np.random.default_rng(1)
    for number in numbers:
        path = folder / _path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = draw.integers(0, 1 << 40, KEYS)
        ids[KEYS // 2] = KEY
        table = {"id": ids, "user": draw.integers(0, 10**6, KEYS), "amount": draw.random(KEYS)}
        pyparq.write_table(table, path, compression="none", use_dictionary=False)
    return numbers


def _path(number: int) -> str:
    return f"lake/day={number % 50:02}/f{number:06}.parquet"


def make_catalog(files: int, given: dict[str, Any]) -> None:
    """The catalog of all files. Those that are not there get keys that are drawn."""
    there = discover(URL, given)
    real = {file.where.removeprefix("s3://lake/"): file for file in there.files}
    fs = there.files[0].fs
    listed = [real.get(_path(k)) or _drawn(_path(k), fs) for k in range(files)]
    place = Place(URL, given, fs)
    build = Build(place, SourceFiles(URL, tuple(listed), False, given), [("id",)], None, {})
    place.begin()
    reader = ShareReader(place, build.names, ReadOptions(), given)
    reader.read([(number, file) for number, file in build.missing if file in real.values()])
    draw, result = np.random.default_rng(2), reader.result
    bounds = entries_of(there.files[0], [("id",)], ReadOptions(), given).statistics
    for number, file in build.missing:
        if file in real.values():
            continue  # it was read
        size, mtime, inode, version = state_of(file) or (0, 0, 0, "")
        result.files.append({
            "number": number, "path": path_of(file), "size": size, "mtime_ns": mtime, "inode": inode,
            "version": version, "kind": 0, "rows": KEYS, "row_groups": 1, "footer": 1000,
        })  # fmt: skip
        result.statistics.add(number, (KEYS,), bounds)
        hashes = np.sort(draw.integers(0, np.iinfo(np.uint64).max, KEYS, np.uint64))
        reader.runs[0].add(number, 0, hashes)
    build.take(result)
    print(build.finished(lambda column, rows, live: reader.runs[column].segments(rows, live)), file=sys.stderr)


def _drawn(path: str, fs: Any) -> DataFile:
    stated = Stated(3000, (("ETag", f"{hash(path) & 0xFFFFFFFF:08x}"),), (), True)
    url = f"s3://lake/{path}"
    return DataFile(url, url, (path.split("/")[1],), 3000, fs=fs, listed=stated)


def delete(given: dict[str, Any]) -> None:
    """In a process of its own: the seconds, and what was deleted."""
    import obstore.store  # noqa: F401
    from remote import load_pyparq

    load_pyparq()
    begun = time.perf_counter()
    report = pyparq.delete(pyparq.dataset(URL, catalog="trust", storage_options=given), keys={"id": [KEY]})
    print(json.dumps([time.perf_counter() - begun, report.rows_deleted, len(report.files), report.files_total]))


def measure(files: int, delay: float, rate: float) -> str:
    """What it took, in a line."""
    with tempfile.TemporaryDirectory() as place:
        make(Path(place), files)
        with served(Path(place), 0) as url:
            make_catalog(files, options(url))
        with served(Path(place), delay, rate) as url:
            urllib.request.urlopen(f"{url}/?log").read()
            command = [sys.executable, __file__, "--delete", url]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told = json.load(urllib.request.urlopen(f"{url}/?log"))
    seconds, rows, changed, total = json.loads(done.stdout.splitlines()[-1])
    assert (rows, changed, total) == (3, 3, files)
    return (
        f"One key deleted in {changed} of {total:,} files by the catalog: {seconds:.2f} s, {told['requests']} requests "
        f"in {told['trips']} serial trips, {told['bytes'] / 1e6:.1f} MB."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--delay", type=float, default=0.03)
    parser.add_argument("--rate", type=float, default=80e6, help="bytes a second of one answer")
    parser.add_argument("--delete", default="")
    given = parser.parse_args()
    if given.delete:
        return delete(options(given.delete))
    print(measure(given.files, given.delay, given.rate))


if __name__ == "__main__":
    main()
