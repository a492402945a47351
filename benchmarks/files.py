"""Indexes for a file that exists: added by pyparq, or the file written again by pyarrow.

    python benchmarks/files.py --rows 4000000 --runs 7 [--data-dir DIR] [--profile]

The file is the events table (``events.py``) as pyarrow writes it, without page indexes and Bloom filters. Both sides
end with the same indexes: Bloom filters on ``id`` and ``url`` at 1 % and page indexes on every column. Both write to a
new file beside the old one; rounds are interleaved, and the ratio is that of the medians. CPU time is shown too: it
says more than wall time on a machine where others work.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from events import BLOOM_COLUMNS, BLOOM_RATE, DICTIONARY_COLUMNS, default_data_dir, digest, make_events, row_group_rows

import pyparq


def source_file(folder: Path, rows: int) -> Path:
    """The events as pyarrow writes them without indexes; kept from one run to the next."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"unindexed-{rows}-{digest()}-pyarrow{pa.__version__}.parquet"
    if not path.exists():
        pq.write_table(
            make_events(rows), path, row_group_size=row_group_rows(rows), compression="snappy",
            use_dictionary=list(DICTIONARY_COLUMNS),
        )  # fmt: skip
    return path


def by_pyparq(source: Path, target: Path) -> Any:
    return pyparq.add_indexes(source, target, bloom_filters=dict.fromkeys(BLOOM_COLUMNS, BLOOM_RATE))


def by_pyarrow(source: Path, target: Path) -> None:
    """Row group by row group: all at once takes longer, and four times the memory."""
    with pq.ParquetFile(source) as file:
        group = row_group_rows(file.metadata.num_rows)
        bloom = {name: {"ndv": group, "fpp": BLOOM_RATE} for name in BLOOM_COLUMNS}
        with pq.ParquetWriter(
            target, file.schema_arrow, compression="snappy", use_dictionary=list(DICTIONARY_COLUMNS),
            write_page_index=True, bloom_filter_options=bloom,
        ) as writer:  # fmt: skip
            for k in range(file.num_row_groups):
                writer.write_table(file.read_row_group(k), row_group_size=group)


def by_pyarrow_at_once(source: Path, target: Path) -> None:
    table = pq.read_table(source)
    group = row_group_rows(table.num_rows)
    bloom = {name: {"ndv": group, "fpp": BLOOM_RATE} for name in BLOOM_COLUMNS}
    pq.write_table(
        table, target, row_group_size=group, compression="snappy", use_dictionary=list(DICTIONARY_COLUMNS),
        write_page_index=True, bloom_filter_options=bloom,
    )  # fmt: skip


def seconds_of(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, tuple[list[float], list[float]]]:
    """(wall, CPU) seconds of every call in every round, after one round that does not count."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in calls}
    names = list(calls)
    for step in range(runs + 1):
        turn = step % len(names)
        for name in names[turn:] + names[:turn]:
            wall, cpu = time.perf_counter(), _cpu()
            calls[name]()
            if step:
                found[name][0].append(time.perf_counter() - wall)
                found[name][1].append(_cpu() - cpu)
    return found


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--profile", action="store_true", help="show where pyparq's time goes, and time nothing")
    options = parser.parse_args()
    source = source_file(options.data_dir, options.rows)
    target = options.data_dir / "indexed.parquet"
    if options.profile:
        import cProfile

        cProfile.runctx("by_pyparq(source, target)", globals(), locals(), sort="tottime")
        return
    report = by_pyparq(source, target)
    size = source.stat().st_size
    print(f"{options.rows:,} rows, {size:,} bytes")
    print(
        f"pyparq: {report.bytes_decoded:,} bytes decoded, {report.bytes_copied:,} copied, "
        f"{report.bytes_written:,} written"
    )
    timings = seconds_of(
        {
            "pyparq add_indexes": lambda: by_pyparq(source, target),
            "pyarrow, by row group": lambda: by_pyarrow(source, target),
            "pyarrow, at once": lambda: by_pyarrow_at_once(source, target),
        },
        options.runs,
    )
    medians = {name: (statistics.median(wall), statistics.median(cpu)) for name, (wall, cpu) in timings.items()}
    for name, (wall, cpu) in medians.items():
        print(f"{name:24} {wall * 1e3:8.0f} ms wall {cpu * 1e3:8.0f} ms CPU (medians of {options.runs})")
    ours, theirs = medians["pyparq add_indexes"], min(list(medians.values())[1:])
    print(json.dumps({"wall_ratio": round(ours[0] / theirs[0], 3), "cpu_ratio": round(ours[1] / theirs[1], 3)}))
    target.unlink()


if __name__ == "__main__":
    main()
