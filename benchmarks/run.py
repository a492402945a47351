"""Compare pyparq with pyarrow, polars, duckdb and datafusion in one run; needs the extra ``bench``.

    python benchmarks/run.py                # 4,000,000 rows; saves results.json, README.md, chart.svg
    python benchmarks/run.py --quick        # 400,000 rows, few repetitions, prints only

Every engine answers the same questions on the same files, in turn within each round; before anything is timed
each answer is compared, value for value, with the table the files were made from.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import events
import floors
import measure
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import report
from engines import Engine, Pyparq, Query, WriteJob, available_engines

HERE = Path(__file__).parent
POINT_BYTES = 1_300_000  # a page and dictionary of every column, and indexes


@dataclass(frozen=True)
class Measurement:
    """One line of the table: some queries of one kind, what to hold against them, and their floor."""

    name: str
    queries: Sequence[Query]
    runs: int
    target: float  # pyparq's time against the best peer's, at most
    floor: Callable[[Path], tuple[float, str]]
    most_bytes: int | None = None


@dataclass(frozen=True)
class Settings:
    rows: int
    data_dir: Path
    absent: int
    runs: int
    write_runs: int
    fresh: bool
    only: str | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=None, help=f"default {events.ROWS:,}; 400,000 with --quick")
    parser.add_argument("--data-dir", type=Path, default=events.default_data_dir())
    parser.add_argument("--engines", nargs="+", help="only these engines")
    parser.add_argument("--only", help="only measurements whose name contains this")
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions; saves nothing")
    parser.add_argument("--fresh", action="store_true", help="write the cached files again")
    parser.add_argument("--output", type=Path, help="folder for the results; default: beside this script")
    arguments = parser.parse_args()
    quick = arguments.quick
    settings = Settings(
        rows=arguments.rows or (400_000 if quick else events.ROWS),
        data_dir=arguments.data_dir,
        absent=50 if quick else 1_000,
        runs=5 if quick else 21,
        write_runs=2 if quick else 7,
        fresh=arguments.fresh,
        only=arguments.only,
    )
    engines, missing = available_engines(arguments.engines)
    for name, reason in missing.items():
        print(f"skipping {name}: {reason}")
    results = run_all(engines, settings)
    results["missing"] = missing
    print(report.as_markdown(results))
    if arguments.output or not (quick or arguments.only or arguments.engines):
        report.save(results, arguments.output or HERE)


def run_all(engines: list[Engine], settings: Settings) -> dict[str, Any]:
    """Everything, as the plain data that goes into results.json."""
    table = events.make_events(settings.rows)
    ours = any(isinstance(engine, Pyparq) for engine in engines)
    files = events.events_files(settings.data_dir, settings.rows, ours=ours, fresh=settings.fresh)
    results = describe(engines, settings, files)
    for writer, path in files.items():
        pages = floors.walk_pages(path)
        for item in measurements(table, pages, settings):
            run_measurement(item, writer, path, table, engines, results)
    wide = events.wide_file(settings.data_dir, fresh=settings.fresh)
    run_measurement(wide_measurement(settings), "wide", wide, events.make_wide(), engines, results)
    for codec in ("snappy", "zstd"):
        for bloom in (False, True):
            run_write(
                WriteJob(codec, bloom, events.row_group_rows(settings.rows)),
                table,
                engines,
                settings,
                results,
            )
    if ours:
        results["import_ms"] = round(measure.import_seconds("pyparq") * 1e3, 1)
    return results


def describe(engines: list[Engine], settings: Settings, files: dict[str, Path]) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "load_at_start": round(os.getloadavg()[0], 2),
        "rows": settings.rows,
        "only": settings.only,
        "memory_bandwidth_gb_s": round(floors.memory_bandwidth() / 1e9, 1),
        "engines": {engine.name: {"version": engine.version, "how": engine.how} for engine in engines},
        "files": {name: path.stat().st_size for name, path in files.items()},
        "measurements": [],
    }


def measurements(table: pa.Table, pages: list[floors.Page], settings: Settings) -> list[Measurement]:
    """The questions about an events file. Values come from a seed; absent ids are odd, present ones even."""
    rng = np.random.default_rng(7)
    rows, group = table.num_rows, events.row_group_rows(table.num_rows)
    columns, ts, span = table.column_names, table["ts"], max(1, rows // 1000)
    found_rows = rng.choice(rows, settings.runs, replace=False).tolist()
    starts = rng.choice(rows - span, settings.runs, replace=False).tolist()
    absent = [Query(column="id", low=int(v) * 2 + 1) for v in rng.choice(rows, settings.absent, replace=False)]
    present = [Query(column="id", low=table["id"][r].as_py()) for r in found_rows]
    points = [Query(column="ts", low=ts[r].as_py()) for r in found_rows]
    ranges = [Query(column="ts", low=ts[s].as_py(), high=ts[s + span - 1].as_py()) for s in starts]
    groups = len({page.row_group for page in pages})

    def pages_floor(path: Path, first: int, last: int, whole: str | None) -> tuple[float, str]:
        chosen = floors.select(pages, columns, first % group, last % group, first // group)
        if whole:
            chosen += [p for p in pages if p.column == whole and p.row_group == first // group and p not in chosen]
        return floors.read_floor(path, chosen), f"fetch and decompress {sum(p.stored for p in chosen):,} B of pages"

    def scan_floor(path: Path, names: Sequence[str]) -> tuple[float, str]:
        chosen = [page for page in pages if page.column in names]
        note = f"fetch and decompress {sum(p.stored for p in chosen):,} B of pages"
        return floors.read_floor(path, chosen), note

    row = found_rows[0]
    start = group // 2 // span * span  # a range inside one row group

    def probes(path: Path) -> tuple[float, str]:
        return floors.probe_floor(path, groups), "open, footer, one Bloom block per row group"

    def one_row(path: Path, whole: str | None) -> tuple[float, str]:
        return pages_floor(path, row, row, whole)

    many = settings.runs * 3
    found = [
        Measurement("absent id", absent, settings.absent, 0.5, probes, 64 << 10),
        Measurement("present id", present, many, 0.8, partial(one_row, whole="id")),
        Measurement("point on sort column", points, many, 0.8, partial(one_row, whole=None), POINT_BYTES),
        Measurement(
            "0.1 % range on sort column",
            ranges,
            many,
            0.8,
            lambda path: pages_floor(path, start, start + span - 1, None),
        ),
        Measurement("full scan", [Query()], settings.runs, 1.5, partial(scan_floor, names=columns)),
    ]
    found += [
        Measurement(f"only {c}", [Query(columns=(c,))], settings.runs, 1.5, partial(scan_floor, names=[c]))
        for c in columns
    ]
    return [m for m in found if not settings.only or settings.only in m.name]


def wide_measurement(settings: Settings) -> Measurement:
    query = Query(columns=(events.WIDE_COLUMN,), small=True)
    floor = lambda path: (floors.footer_floor(path), f"read the footer of {floors.footer_bytes(path):,} B")  # noqa: E731
    return Measurement("one column of 5,000", [query], settings.runs, 0.6, floor)


def run_measurement(
    item: Measurement,
    writer: str,
    path: Path,
    table: pa.Table,
    engines: list[Engine],
    results: dict[str, Any],
) -> None:
    if results["only"] and results["only"] not in item.name:
        return
    print(f"{writer}: {item.name} …", flush=True)
    for engine in engines:
        for query in item.queries[:3]:
            measure.check(engine, path, query, answer(table, query))
    calls = {e.name: (lambda step, e=e: e.run(path, item.queries[step % len(item.queries)])) for e in engines}
    timings = measure.interleave(calls, item.runs)
    for engine in engines:
        if isinstance(engine, Pyparq):
            measure.count_ours(engine, path, item.queries, timings[engine.name])
    floor, meaning = item.floor(path)
    peers = {engine.name for engine in engines if not isinstance(engine, Pyparq)}
    results["measurements"].append(
        report.line(item.name, writer, timings, peers, item.target, floor, meaning, item.most_bytes)
    )


def answer(table: pa.Table, query: Query) -> pa.Table:
    """The right answer, from the table in memory."""
    if query.column is not None:
        column, kind = table[query.column], table.schema.field(query.column).type
        low = pa.scalar(query.low, kind)
        high = low if query.high is None else pa.scalar(query.high, kind)
        table = table.filter(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)))
    return table if query.columns is None else table.select(query.columns)


def run_write(
    job: WriteJob, table: pa.Table, engines: list[Engine], settings: Settings, results: dict[str, Any]
) -> None:
    name = f"write {job.codec}" + (" with Bloom filters" if job.bloom else "")
    if settings.only and settings.only not in name:
        return
    print(f"{name} …", flush=True)
    able = [engine for engine in engines if engine.writes_bloom or not job.bloom]
    targets = {engine.name: settings.data_dir / f"write-{os.getpid()}-{engine.name}.parquet" for engine in able}
    sources = {engine.name: engine.own_table(table) for engine in able}
    calls = {e.name: (lambda _, e=e: e.write(sources[e.name], targets[e.name], job)) for e in able}
    try:
        timings = measure.interleave(
            calls,
            settings.write_runs,
            at_least=3,
            before=lambda n: targets[n].unlink(missing_ok=True),
            budget=30,
        )
        for engine in able:
            path = targets[engine.name]
            timings[engine.name] = replace(timings[engine.name], file_bytes=path.stat().st_size, bytes_read=None)
            written = measure.canonical(pq.ParquetFile(path).read(), table.schema)
            measure.compare(written, table, f"file written by {engine.name}", keeps_order=engine.keeps_order)
        reference = targets.get("pyarrow", path)
        level = job.level or 0
        floor = floors.write_floor(reference, floors.walk_pages(reference), level, settings.data_dir / "floor.tmp")
    finally:
        for path in targets.values():
            path.unlink(missing_ok=True)
    peers = {e.name for e in able if e.writes_page_index and not isinstance(e, Pyparq)}
    meaning = f"compress the {reference.stem.split('-')[-1]} file's pages and hand them to the file system"
    results["measurements"].append(report.line(name, "", timings, peers, 1.2, floor, meaning, None))


if __name__ == "__main__":
    main()
