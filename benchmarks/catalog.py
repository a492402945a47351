"""One key in many small files in a store behind a network, with a catalog and without, beside polars.

``python benchmarks/catalog.py --files 1000 10000 --delay 0.03`` makes the files (100 rows each, from a seed), serves
them by ``s3_store.py``, makes the catalog through the store, and looks up a key that is there and one that is not. Each
lookup is a process of its own. It prints requests, serial trips, bytes, seconds and processor seconds. Requests and
bytes do not depend on the machine, trips of few requests neither; seconds do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chart
import numpy as np

import pyparq

ROWS = 100
STEP = 7919
"""A prime: keys are spread over all files."""
URL = "s3://lake/lake/"
PRESENT, ABSENT = 17 + STEP * 500, -5

PYPARQ = """
import pyparq
begun, used = time.perf_counter(), time.process_time()
rows = pyparq.dataset({url!r}, catalog={mode!r}, storage_options=options).lookup("id", key).num_rows
"""
POLARS = """
import polars as pl
begun, used = time.perf_counter(), time.process_time()
given = {{"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint_url": options["endpoint_url"],
         "aws_region": "us-east-1", "aws_allow_http": "true"}}
frame = pl.scan_parquet({url!r} + "**/*.parquet", storage_options=given, hive_partitioning=True)
rows = frame.filter(pl.col("id") == key).collect().height
"""
DUCKDB = """
import duckdb, s3fs
begun, used = time.perf_counter(), time.process_time()
connection = duckdb.connect()
connection.register_filesystem(s3fs.S3FileSystem(**options))
rows = len(connection.sql("select * from read_parquet('{url}**/*.parquet') where id = " + str(key)).fetchall())
"""
COLOURS = {
    "pyparq, trust": "#d1495b", "pyparq, check": "#8d6a9f", "pyparq, off": "#7a9e7e", "polars": "#30638e",
    "duckdb": "#edae49",
}  # fmt: skip
AROUND = (
    "import json, sys, time\noptions, key = json.loads(sys.argv[1]), int(sys.argv[2])\n",
    "print(json.dumps([rows, time.perf_counter() - begun, time.process_time() - used]))\n",
)


def make(folder: Path, files: int) -> None:
    """The files, in fifty partitions."""
    draw = np.random.default_rng(0)
    for k in range(files):
        path = folder / "lake" / f"day={k % 50:02}" / f"f{k:06}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = (np.arange(k * ROWS, (k + 1) * ROWS) * STEP + 17) % 10_000_000
        table = {"id": ids, "user": draw.integers(0, 10**6, ROWS), "amount": draw.random(ROWS)}
        pyparq.write_table(table, path, compression="none", use_dictionary=False)


@contextmanager
def served(folder: Path, delay: float, rate: float = 0) -> Iterator[str]:
    """The address of a store with this folder. ``rate``: bytes a second of one answer; 0: as many as there may be."""
    script = Path(__file__).parent / "s3_store.py"
    command = [sys.executable, str(script), str(folder), "--delay", str(delay), "--rate", str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def options(url: str) -> dict[str, Any]:
    return {"key": "k", "secret": "s", "endpoint_url": url}


def ask(url: str, code: str, key: int, most: float) -> dict[str, Any] | str:
    """What a lookup in a process of its own takes, or why it did not end."""
    urllib.request.urlopen(f"{url}/?log").read()
    command = [sys.executable, "-c", AROUND[0] + code + AROUND[1], json.dumps(options(url)), str(key)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end in {most:.0f} s"
    told = json.load(urllib.request.urlopen(f"{url}/?log"))
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1]}"
    rows, seconds, used = json.loads(done.stdout.splitlines()[-1])  # DuckDB shows its progress before
    assert rows == (key >= 0)
    return {**{name: told[name] for name in ("trips", "requests", "bytes")}, "seconds": seconds, "used": used}


def shown(told: dict[str, Any] | str) -> str:
    if isinstance(told, str):
        return told
    return (
        f"{told['trips']:>6} trips {told['requests']:>7} requests {told['bytes']:>11,} bytes {told['seconds']:7.2f} s, "
        f"{told['used']:.2f} s of processor time"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, nargs="+", default=[1000])
    parser.add_argument("--delay", type=float, default=0.03)
    parser.add_argument("--most", type=float, default=120, help="seconds for a lookup")
    parser.add_argument("--all-up-to", type=int, default=10_000, help="more files are only looked up by the catalog")
    parser.add_argument("--chart", type=Path, help="where to draw the lookups of the key that is there")
    given = parser.parse_args()
    seen: list[dict[str, Any]] = []
    for files in given.files:
        with tempfile.TemporaryDirectory() as place:
            make(Path(place), files)
            with served(Path(place), 0) as url:
                print(pyparq.index_dataset(URL, "id", storage_options=options(url)), flush=True)
            with served(Path(place), given.delay) as url:
                codes = {f"pyparq, {mode}": PYPARQ.format(url=URL, mode=mode) for mode in ("trust", "check")}
                if files <= given.all_up_to:
                    codes["pyparq, off"] = PYPARQ.format(url=URL, mode="off")
                    codes |= {"polars": POLARS.format(url=URL), "duckdb": DUCKDB.format(url=URL)}
                for name, code in codes.items():
                    for what, key in (("present", PRESENT), ("absent", ABSENT)):
                        told = ask(url, code, key, given.most)
                        print(f"{files:>7} files  {name:<14} {what:<8}{shown(told)}", flush=True)
                        if what == "present" and isinstance(told, dict):
                            seen.append({"engine": name, "files": files, **told})
    if given.chart:
        given.chart.write_text(chart.lookups(seen, COLOURS))


if __name__ == "__main__":
    main()
