"""Questions to files in a store, each asked by a process of its own from its start to its end, imports and all.

``python benchmarks/remote_cold.py`` prints for each question the median seconds and the ratio by the best peer, then
the same for the second question of one process. What a library keeps from the first one is left as it is by default;
of DuckDB both caches are on. The store answers after 30 ms and sends 80 MB/s, as that of ``remote.py`` does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import remote
from catalog import options, served

import pyparq

DAYS = 20
PRESENT, OTHER, ABSENT = (k * remote.STEP % 10_000_019 for k in (500_000, 123_456, 1_500_000))
ONE, DAYS_OF = "s3://lake/one/events.parquet", "s3://lake/days"
PYPARQ = """import pyparq
from pyparq import col
keep = {{"storage_options": {stored}}}
one, days = "{one}", "{days}"
"""
POLARS = """import polars as pl
from polars import col
stored = {stored}
keep = {{"storage_options": {{"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_region": "us-east-1",
        "aws_endpoint_url": stored["endpoint_url"], "aws_allow_http": "true"}}}}
one, days = "{one}", "{days}"
"""
DUCKDB = """import duckdb, s3fs
connection = duckdb.connect()
connection.register_filesystem(s3fs.S3FileSystem(**{stored}))
connection.sql("SET enable_object_cache = true; SET enable_external_file_cache = true")
one, days = "{one}", "{days}"
def ask(text):
    return connection.sql(text).fetchall()
"""
BEFORE = {"pyparq": PYPARQ, "polars": POLARS, "duckdb": DUCKDB}
QUESTIONS: dict[str, dict[str, str]] = {
    "metadata": {
        "pyparq": "found = pyparq.ParquetFile(one, **keep).metadata.num_rows",
        "polars": "found = pl.scan_parquet(one, **keep).select(pl.len()).collect().item()",
        "duckdb": "found = ask(f\"SELECT count(*) FROM '{one}'\")[0][0]",
    },
    "absent key": {
        "pyparq": f"found = pyparq.read_table(one, columns=['id'], filters=col('key') == {ABSENT}, **keep).num_rows",
        "polars": f"found = pl.scan_parquet(one, **keep).filter(col('key') == {ABSENT}).select('id').collect().height",
        "duckdb": f"found = len(ask(f\"SELECT id FROM '{{one}}' WHERE key = {ABSENT}\"))",
    },
    "filtered count": {
        "pyparq": "found = pyparq.count(one, filters=col('part') == 7, **keep)",
        "polars": "found = pl.scan_parquet(one, **keep).filter(col('part') == 7).select(pl.len()).collect().item()",
        "duckdb": "found = ask(f\"SELECT count(*) FROM '{one}' WHERE part = 7\")[0][0]",
    },
    "first 10 rows": {
        "pyparq": "found = pyparq.ParquetFile(one, **keep).head(10).num_rows",
        "polars": "found = pl.scan_parquet(one, **keep).head(10).collect().height",
        "duckdb": "found = len(ask(f\"SELECT * FROM '{one}' LIMIT 10\"))",
    },
    "one day of a folder": {
        "pyparq": "found = pyparq.read_table(days, columns=['id'], filters=col('day') == 7, **keep).num_rows",
        "polars": "found = pl.scan_parquet(days + '/', **keep).filter(col('day') == 7).select('id').collect().height",
        "duckdb": "found = len(ask(f\"SELECT id FROM read_parquet('{days}/*/*.parquet', hive_partitioning=true) "
        'WHERE day = 7"))',
    },
}
SECOND = {
    "pyparq": "found = pyparq.read_table(one, columns=['id'], filters=col('key') == {key}, **keep).num_rows",
    "polars": "found = pl.scan_parquet(one, **keep).filter(col('key') == {key}).select('id').collect().height",
    "duckdb": "found = len(ask(f\"SELECT id FROM '{{one}}' WHERE key = {key}\"))",
}


def make_days(folder: Path) -> None:
    """A folder of days with two files each."""
    for day in range(DAYS):
        for part in range(2):
            place = folder / "days" / f"day={day}" / f"{part}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            pyparq.write_table({"id": np.arange(1_000) + part, "amount": np.arange(1_000) / 7}, place)


def whole_process(engine: str, code: str, url: str) -> tuple[float, str]:
    """Seconds of the process, and what it printed."""
    before = BEFORE[engine].format(stored=options(url), one=ONE, days=DAYS_OF)
    urllib.request.urlopen(f"{url}/?log").read()
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"{engine}: {done.stderr[-2000:]}")
    return seconds, done.stdout


def cold(url: str, rounds: int) -> list[str]:
    lines = ["| a process from its start to its end | pyparq | polars | duckdb | ratio |", "|---|---:|---:|---:|---:|"]
    for name, codes in QUESTIONS.items():
        seconds: dict[str, list[float]] = {engine: [] for engine in codes}
        cells, found = {}, set()
        for _ in range(rounds):
            for engine, code in codes.items():
                took, said = whole_process(engine, f"{code}\nprint(found)", url)
                seconds[engine].append(took)
                found.add(said)
                told = json.load(urllib.request.urlopen(f"{url}/?log"))
                cells[engine] = f": {told['requests']} / {told['trips']}, {told['bytes'] / 1e6:.2f}"
        assert len(found) == 1, (name, found)
        lines.append(line(name, {e: statistics.median(of) for e, of in seconds.items()}, cells))
    return lines


def again(url: str, rounds: int) -> list[str]:
    """A key after the same, and after another one, in one process."""
    lines = ["", "| the second question of a process | pyparq | polars | duckdb | ratio |", "|---|---:|---:|---:|---:|"]
    for name, first in (("the same key", PRESENT), ("another key", OTHER)):
        seconds: dict[str, list[float]] = {engine: [] for engine in SECOND}
        cells, answers = {}, set()
        for _ in range(rounds):
            for engine, code in SECOND.items():
                log = f"{url}/?log"
                text = (
                    f"{code.format(key=first)}\nimport json, time, urllib.request\n"
                    f"urllib.request.urlopen('{log}').read()\nbegun = time.perf_counter()\n{code.format(key=PRESENT)}\n"
                    "took = time.perf_counter() - begun\n"
                    f"print(json.dumps([took, found, json.load(urllib.request.urlopen('{log}'))]))"
                )
                took, found, told = json.loads(whole_process(engine, text, url)[1])
                seconds[engine].append(took)
                answers.add(found)
                cells[engine] = f": {told['requests']} / {told['trips']}, {told['bytes'] / 1e6:.2f}"
        assert answers == {1}, (name, answers)
        lines.append(line(name, {e: statistics.median(of) for e, of in seconds.items()}, cells))
    return lines


def line(name: str, seconds: dict[str, float], cells: dict[str, str]) -> str:
    parts = [f"{seconds[engine]:.3f}{cells[engine]}" for engine in seconds]
    best = min(took for engine, took in seconds.items() if engine != "pyparq")
    return f"| {name} | {' | '.join(parts)} | {seconds['pyparq'] / best:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        remote.make(Path(place))
        make_days(Path(place))
        with served(Path(place), 0.03, 80e6) as url:
            print("\n".join(cold(url, given.rounds)), flush=True)
            print("\n".join(again(url, given.rounds)))


if __name__ == "__main__":
    main()
