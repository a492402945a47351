"""What encryption adds: milliseconds of reading and writing the events file, and bytes of a point lookup.

    python benchmarks/encryption.py [--rows 4000000] [--rounds 30] [--cpu] [--only write] [--folder /dev/shm]

The same table, options and machine for pyparq and pyarrow (uniform encryption with one explicit key, which is all that
pyarrow takes without a KMS); each engine reads its own file. A round runs each case plain, GCM, CTR, CTR, GCM, plain,
every other round from the inside out, so that what drifts on the machine hits all alike; the figure is the median over
the rounds, with its 95 % interval. ``--cpu`` takes processor time of all threads instead of wall time. A hundred rounds
take 20 minutes for writing, 12 for reading; on a machine that others use too, fewer say little.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
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


def in_rounds(
    cases: dict[str, Callable[[str], Any]], rounds: int, clock: Callable[[], float]
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of each case and algorithm, the mean of two runs a round. Each case is called once before."""

    def timed(call: Callable[[str], Any], name: str) -> float:
        start = clock()
        result = call(name)
        taken = clock() - start
        del result  # freeing counts for no engine
        return taken * 1e3

    found: dict[str, dict[str, list[float]]] = {case: {name: [] for name in CASES} for case in cases}
    inwards = [*CASES, *reversed(CASES)]
    outwards = [*reversed(CASES), *CASES]
    for case, call in cases.items():
        for name in CASES:
            timed(call, name)
        print(f"{case} is ready", file=sys.stderr, flush=True)
    for step in range(rounds):
        for case in random.sample(list(cases), len(cases)):
            taken: dict[str, list[float]] = {name: [] for name in CASES}
            for name in outwards if step % 2 else inwards:
                taken[name].append(timed(cases[case], name))
            for name, pair in taken.items():
                found[case][name].append(statistics.mean(pair))
        print(f"\rround {step + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def interval(values: list[float], draws: int = 2_000) -> tuple[float, float]:
    """Where the median lies at 95 %, by drawing again."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws // 40], medians[-1 - draws // 40]


def measure(table: pa.Table, folder: Path, only: str | None, rounds: int, clock: Callable[[], float]) -> None:
    cases: dict[str, Callable[[str], Any]] = {}
    for engine, write, read in (("pyparq", ours_write, ours_read), ("pyarrow", arrow_write, arrow_read)):
        if only != "write":
            for name, algorithm in CASES.items():
                write(table, folder / f"{engine}-{name}.parquet", algorithm, True)
        for threads in (False, True):
            label = "two threads" if threads else "one thread"
            # pyarrow writes on one thread.
            if only != "read" and (engine == "pyparq" or not threads):
                cases[f"{engine} write, {label}"] = lambda name, w=write, t=threads: w(
                    table, folder / "written.parquet", CASES[name], t
                )
            if only != "write":
                cases[f"{engine} read, {label}"] = lambda name, r=read, e=engine, t=threads: r(
                    folder / f"{e}-{name}.parquet", CASES[name], t
                )
    found = in_rounds(cases, rounds, clock)
    print(f"{'':28}{'plain ms':>10}{'GCM adds':>26}{'CTR adds':>26}")
    for case, taken in found.items():
        line = f"{case:28}{statistics.median(taken['plain']):10.1f}"
        for name in ("GCM", "CTR"):
            more = [a - b for a, b in zip(taken[name], taken["plain"], strict=True)]
            low, high = interval(more)
            line += f"{f'{statistics.median(more):+.1f} [{low:+.1f}, {high:+.1f}]':>26}"
        print(line)


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
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", choices=("read", "write"))
    parser.add_argument("--folder", help="where the files go (default: the system's temporary folder)")
    arguments = parser.parse_args()
    table = make_events(arguments.rows)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        if arguments.only is None:
            lookup(table, folder)
        clock = time.process_time if arguments.cpu else time.perf_counter
        measure(table, folder, arguments.only, arguments.rounds, clock)


if __name__ == "__main__":
    main()
