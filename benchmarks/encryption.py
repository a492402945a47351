"""What encryption adds: milliseconds of reading and writing the events file, and bytes of a point lookup.

    python benchmarks/encryption.py [--rows 4000000] [--runs 9] [--cpu]

The same table, options and machine for pyparq and pyarrow (uniform encryption with one explicit key, which is all that
pyarrow takes without a KMS); each engine reads its own file. The figure is the median of a round's encrypted time minus
its plain time, all cases in turn within each round, so that noise on the machine hits both. ``--cpu`` takes processor
time of all threads instead of wall time: for machines that others use too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from events import BLOOM_COLUMNS, BLOOM_RATE, DICTIONARY_COLUMNS, make_events, row_group_rows
from measure import CountingFile

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties, col

KEY = b"a key for bench."
CASES: dict[str, str | None] = {"plain": None, "GCM": "AES_GCM_V1", "CTR": "AES_GCM_CTR_V1"}


def ours_write(table: pa.Table, path: Path, algorithm: str | None, threads: bool) -> None:
    encryption = None if algorithm is None else EncryptionProperties(KEY, algorithm=algorithm)
    pyparq.write_table(
        table, path, encryption=encryption, use_threads=threads, row_group_size=row_group_rows(table.num_rows)
    )


def ours_read(path: Path, algorithm: str | None, threads: bool) -> Any:
    decryption = None if algorithm is None else DecryptionProperties(KEY)
    return pyparq.read_table(path, decryption=decryption, use_threads=threads)


def arrow_write(table: pa.Table, path: Path, algorithm: str | None, threads: bool) -> None:
    properties = None
    if algorithm is not None:
        properties = pe.create_encryption_properties(KEY, encryption_algorithm=algorithm)
    pq.write_table(
        table, path, encryption_properties=properties, use_dictionary=list(DICTIONARY_COLUMNS),
        row_group_size=row_group_rows(table.num_rows), write_page_index=True, max_rows_per_page=20_000,
    )  # fmt: skip


def arrow_read(path: Path, algorithm: str | None, threads: bool) -> Any:
    properties = None if algorithm is None else pe.create_decryption_properties(KEY)
    with pq.ParquetFile(path, decryption_properties=properties, pre_buffer=True) as file:
        return file.read(use_threads=threads)


def added(calls: dict[str, Callable[[], Any]], runs: int, clock: Callable[[], float]) -> dict[str, tuple[float, float]]:
    """(median ms, median ms more than "plain" in the same round) of each call."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for step in range(-1, runs):
        for name in names[step % len(names) :] + names[: step % len(names)]:
            start = clock()
            result = calls[name]()
            taken = clock() - start
            del result  # freeing is nobody's figure
            if step >= 0:
                seconds[name].append(taken * 1e3)
    plain = seconds["plain"]
    return {
        name: (statistics.median(own), statistics.median(a - b for a, b in zip(own, plain, strict=True)))
        for name, own in seconds.items()
    }


def measure(table: pa.Table, folder: Path, runs: int, clock: Callable[[], float]) -> None:
    print(f"{'':28}{'plain ms':>10}{'GCM adds':>10}{'CTR adds':>10}")
    for engine, write, read in (("pyparq", ours_write, ours_read), ("pyarrow", arrow_write, arrow_read)):
        for what, threads in (("write", False), ("write", True), ("read", False), ("read", True)):
            if engine == "pyarrow" and what == "write" and threads:
                continue  # it writes on one thread
            calls = {}
            for name, algorithm in CASES.items():
                path = folder / f"{engine}-{name}.parquet"
                if what == "write":
                    calls[name] = lambda p=path, a=algorithm, w=write, t=threads: w(table, p, a, t)
                else:
                    calls[name] = lambda p=path, a=algorithm, r=read, t=threads: r(p, a, t)
            found = added(calls, runs, clock)
            case = f"{engine} {what}, {'threads' if threads else 'one thread'}"
            print(f"{case:28}{found['plain'][0]:10.1f}{found['GCM'][1]:+10.1f}{found['CTR'][1]:+10.1f}", flush=True)


def lookup(table: pa.Table, folder: Path) -> None:
    """Bytes that one point lookup reads, plain and encrypted."""
    value = table["id"][table.num_rows // 3].as_py()
    for name, algorithm in CASES.items():
        path = folder / f"lookup-{name}.parquet"
        encryption = None if algorithm is None else EncryptionProperties(KEY, algorithm=algorithm)
        decryption = None if algorithm is None else DecryptionProperties(KEY)
        pyparq.write_table(
            table, path, encryption=encryption, row_group_size=row_group_rows(table.num_rows),
            bloom_filters=dict.fromkeys(BLOOM_COLUMNS, BLOOM_RATE),
        )  # fmt: skip
        with CountingFile(path) as file, pyparq.ParquetFile(file, decryption=decryption) as source:
            scan = source.scan(filters=col("id") == value)
            rows = scan.to_table().num_rows
            metadata = source.metadata
            bitsets = [metadata.row_group(k).column("id").bloom_filter_length for k in range(metadata.num_row_groups)]
            print(f"lookup {name}: {rows} row, {file.bytes:,} bytes in {file.requests} requests; filters {bitsets}")
            for stage in scan.explain().stages:
                print(f"    {stage.name}: {stage.row_groups_after} row groups, {stage.bytes:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--cpu", action="store_true")
    arguments = parser.parse_args()
    table = make_events(arguments.rows)
    with tempfile.TemporaryDirectory() as name:
        lookup(table, Path(name))
        measure(table, Path(name), arguments.runs, time.process_time if arguments.cpu else time.perf_counter)


if __name__ == "__main__":
    main()
