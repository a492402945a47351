"""What ``pyparq.verify`` takes beside a full read of the same file.

    python benchmarks/verifying.py [--rows 2000000] [--rounds 15] [--data-dir /tmp/pyparq-bench]

The events file by pyparq, with and without Bloom filters, and by pyarrow. Each round reads and verifies, each of them
first in every other round; one round before does not count. The figures are medians over the rounds, of wall time and
of processor time of all threads, and the median of the ratios of a round. Every file must come out without findings.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from events import default_data_dir, events_files, make_events, row_group_rows

import pyparq

Times = tuple[float, float]
"""Seconds of wall time, and of the processor."""


def timed(call: Callable[[], object]) -> Times:
    wall, used = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - used


def files(data_dir: Path, rows: int) -> dict[str, Path]:
    """The events file as three writers make it."""
    found = events_files(data_dir, rows, ours=True)
    plain = data_dir / f"events-{rows}-no-filters.parquet"
    pyparq.write_table(make_events(rows), plain, row_group_size=row_group_rows(rows))
    return {"pyparq": plain, "pyparq, Bloom filters": found["pyparq/footer"], "pyarrow": found["pyarrow"]}


def verify(path: Path) -> None:
    report = pyparq.verify(path)
    if not report.ok:
        raise SystemExit(str(report))


def measure(path: Path, rounds: int) -> tuple[list[Times], list[Times]]:
    """Times of reading and of verifying."""
    calls: list[Callable[[], object]] = [lambda: pyparq.read_table(path), lambda: verify(path)]
    found: tuple[list[Times], list[Times]] = ([], [])
    for number in range(rounds + 1):
        for k in (0, 1) if number % 2 else (1, 0):
            took = timed(calls[k])
            if number:
                found[k].append(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    given = parser.parse_args()
    print(f"{given.rows:,} rows, medians of {given.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"{'file':<24}{'read':>10}{'verify':>10}{'ratio':>8}{'read CPU':>12}{'verify CPU':>12}{'ratio':>8}")
    for name, path in files(given.data_dir, given.rows).items():
        read, verified = measure(path, given.rounds)
        cells = ""
        for k, width in ((0, 10), (1, 12)):
            one, other = [times[k] for times in read], [times[k] for times in verified]
            ratio = statistics.median(b / a for a, b in zip(one, other, strict=True))
            for seconds in (statistics.median(one), statistics.median(other)):
                cells += f"{1000 * seconds:>{width - 3}.0f} ms"
            cells += f"{ratio:>8.2f}"
        print(f"{name:<24}{cells}")


if __name__ == "__main__":
    main()
