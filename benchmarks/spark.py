"""pyparq on Spark beside Spark's own reader and writer, and beside the floors of Spark's Python API.

    python benchmarks/spark.py [--rows N] [--files N] [--runs N] [--only PART ...]

Needs the extra "spark" and Java 17 or newer. All questions are asked in each round, in one warm session of two local
cores, and in another order each time (from a seed), as the cost of one depends on the one before. A time is the median
over the rounds. The floors: a data source and a mapInArrow that send constant batches of the same number of rows,
and a mapInArrow that reads by Spark and discards its input. A line's ratio is that of the medians; a write is compared
with the slower of Spark's own and the discarding mapInArrow, which no Python writer can beat. A compaction joins and
sorts small files, and gives them Bloom filters; Spark reads, sorts and writes the same rows into as many files.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import pyparq
import pyparq.spark as ps
from pyparq import col
from pyparq.spark.session import local_session

FILES, GROUPS = 20, 1
SMALL_FILES, SORTED_FILES = 40, 2
PARTS = ("scans", "jobs", "many", "many-jobs", "memory", "deletes")
BLOOM = {"parquet.bloom.filter.enabled#k": "true"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=2000, help="of 10,000 rows, for the questions about many files")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        indexed, bare, small, wide, nested = (
            Path(folder) / name for name in ("indexed", "bare", "small", "wide", "nested")
        )
        make(indexed, bare, given.rows)
        spark = local_session(
            "pyparq benchmark", "local[2]", spark_driver_memory="4g", spark_sql_session_timeZone="UTC"
        )
        spark.sparkContext.setLogLevel("OFF")
        ps.register(spark)
        spark.dataSource.register(constant_source(given.rows))
        out = Path(folder) / "out"
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rows:,} rows in {FILES} files")
        if "scans" in given.only:
            make_wide(wide, given.rows // 100)
            make_nested(nested, given.rows // 5)
            asked = scans(spark, indexed, given.rows) | shapes(spark, wide, nested)
            show(measured(asked, given.runs, {}, out), SCAN_LINES)
        if "jobs" in given.only:
            make_small(bare, small)
            asked = questions(spark, indexed, bare, small, out, given.rows)
            show(measured(asked, given.runs, {"copy": bare, "small": small}, out), LINES)
        if "many" in given.only:
            lake = Path(folder) / "lake"
            make_many(lake, given.files)
            print(f"\n{given.files:,} files of 10,000 rows")
            make_wide(wide := Path(folder) / "wide-lake", 4 * given.files, given.files)
            show(measured(many_questions(spark, lake, wide), given.runs, {}, out), MANY_LINES)
        if "many-jobs" in given.only:
            thin = Path(folder) / "thin"
            make_many(thin, given.files, 1_000)
            print(f"\n{given.files:,} files of 1,000 rows, written and joined")
            asked = many_jobs(spark, out, given.files)
            show(measured(asked, given.runs, {"thin": thin}, out), MANY_JOB_LINES)
        if "memory" in given.only:
            many = Path(folder) / "memory"
            make_many(many, 10_000, 20)
            show_memory(spark, many)
        if "deletes" in given.only:
            lake = Path(folder) / "to-delete"
            make_many(lake, given.files)
            print(f"\n10^5 keys deleted in {given.files:,} files of 10,000 rows")
            asked = delete_questions(spark, out, given.files)
            copies = {
                f"{name} {whose}": lake for name in ("in 100 files", "in all files") for whose in ("ours", "theirs")
            }
            show(measured(asked, given.runs, copies, out), DELETE_LINES)
        spark.stop()


def make(folder: Path, bare: Path, rows: int) -> None:
    """Files with Bloom filters and page indexes by pyparq, and the same without any by pyarrow."""
    rng = np.random.default_rng(0)
    ids, times = rng.permutation(rows) * 2, np.sort(rng.integers(0, 10**9, rows))
    each = rows // FILES
    for place in (folder, bare):
        place.mkdir()
    for k in range(FILES):
        part = slice(k * each, (k + 1) * each)
        table = pa.table(
            {
                "k": ids[part],
                "ts": pa.array(times[part] * 1000, pa.timestamp("us", "UTC")),
                "x": rng.normal(size=each),
                "c": [f"c{n}" for n in rng.integers(0, 1000, each)],
                "u": rng.integers(0, 1 << 60, each),
            }
        )
        size = -(-each // GROUPS)
        options: dict[str, Any] = {"row_group_size": size, "use_dictionary": ["c"]}
        pyparq.write_table(table, folder / f"{k}.parquet", bloom_filters={"k": 0.01}, **options)
        pq.write_table(table, bare / f"{k}.parquet", **options)


def make_small(bare: Path, small: Path) -> None:
    """The rows of ``bare`` in many files, in no order."""
    small.mkdir()
    table = pq.read_table(bare)
    each = -(-table.num_rows // SMALL_FILES)
    for k in range(SMALL_FILES):
        pq.write_table(table.slice(k * each, each), small / f"{k:03}.parquet", use_dictionary=["c"])


def constant_source(rows: int) -> type:
    """A data source that decodes nothing: what Spark's Python API takes at least."""

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(k) for k in range(2)]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import numpy
            import pyarrow

            batch, left = pyarrow.RecordBatch.from_pydict({"k": numpy.arange(65_536)}), rows // 2
            while left > 0:
                yield batch.slice(0, min(left, 65_536))
                left -= 65_536

    class Constant(DataSource):
        @classmethod
        def name(cls) -> str:
            return "constant"

        def schema(self) -> str:
            return "k bigint"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Constant


def questions(spark: Any, folder: Path, bare: Path, small: Path, out: Path, rows: int) -> dict[str, Callable[[], Any]]:
    """Each question with the name of who answers it, after a bar."""
    source, absent = str(folder), rows + 1 | 1
    low, high = (np.datetime64(n * 1000, "us") for n in (500_000_000, 501_000_000))
    hours = (col("ts") >= low) & (col("ts") < high)
    size = sum(file.stat().st_size for file in small.iterdir())
    text = f"ts >= timestamp'{low}Z' and ts < timestamp'{high}Z'".replace("T", " ")

    def own() -> Any:
        return spark.read.parquet(source)

    def ours(**options: str) -> Any:
        reader = spark.read.format("pyparq").options(**options)
        return (reader if "filters" in options else reader.schema("k bigint")).load(source)

    return {
        "sum | constant batches": lambda: spark.read.format("constant").load().agg({"k": "sum"}).collect(),
        "sum | data source": lambda: ours().agg({"k": "sum"}).collect(),
        "sum | read": lambda: ps.read(spark, source, columns=["k"], engine="pyparq").agg({"k": "sum"}).collect(),
        "sum | Spark": lambda: own().agg({"k": "sum"}).collect(),
        "count | constant batches": lambda: spark.read.format("constant").load().count(),
        "count | data source": lambda: ours().count(),
        "count | read": lambda: ps.read(spark, source, columns=["k"], engine="pyparq").count(),
        "absent key | read": lambda: ps.read(spark, source, filters=col("k") == absent).collect(),
        "absent key | data source": lambda: ours(filters=f"k = {absent}").collect(),
        "absent key | Spark": lambda: own().where(f"k = {absent}").collect(),
        "0.1 % range | read": lambda: ps.read(spark, source, filters=hours).toArrow(),
        "0.1 % range | data source": lambda: ours(filters=text).toArrow(),
        "0.1 % range | Spark": lambda: own().where(text).toArrow(),
        "write | pyparq": lambda: ps.write(own(), out / "ours", bloom_filters={"k": 0.01}),
        "write | Spark": lambda: own().write.options(**BLOOM).parquet(str(out / "theirs")),
        "write | discarding mapInArrow": lambda: own().mapInArrow(discard, "n long").collect(),
        "index | add_indexes": lambda: ps.add_indexes(spark, str(out / "copy"), bloom_filters={"k": 0.01}).collect(),
        "index | Spark, all written anew": lambda: (
            spark.read.parquet(str(bare)).write.options(**BLOOM).parquet(str(out / "anew"))
        ),
        "compact | pyparq": lambda: ps.compact(
            spark, str(out / "small"), target_size=size // SORTED_FILES, sort_by="k", bloom_filters={"k": 0.01}
        ).collect(),
        "compact | Spark, all written anew": lambda: (
            spark.read.parquet(str(small))
            .repartitionByRange(SORTED_FILES, "k")
            .sortWithinPartitions("k")
            .write.options(**BLOOM)
            .parquet(str(out / "sorted"))
        ),
    }


def scans(spark: Any, folder: Path, rows: int) -> dict[str, Callable[[], Any]]:
    """Questions that want much of what the files hold, by `read` as it is, by pyparq alone, and by Spark's reader; and
    what it takes to hand as many constant rows of one column to Spark."""
    source = str(folder)

    def asked(name: str, read: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
        return {
            f"full scan | {name}": lambda: into_nothing(read(None)),
            f"sum | {name}": lambda: read(["k"]).agg({"k": "sum"}).collect(),
            f"group by | {name}": lambda: read(["k", "c"]).groupBy("c").agg({"k": "sum"}).collect(),
            f"filter 30 % | {name}": lambda: into_nothing(read(None, "x > 0.5244")),
            f"limit 10 | {name}": lambda: read(None).limit(10).collect(),
            f"take 10 | {name}": lambda: read(None).take(10),
            f"tail 10 | {name}": lambda: read(None).tail(10),
            f"max of ts | {name}": lambda: read(["ts"]).agg({"ts": "max"}).collect(),
        }

    def own(columns: Any, condition: str | None = None) -> Any:
        frame = spark.read.parquet(source)
        return frame if condition is None else frame.where(condition)

    def by(engine: str) -> Callable[..., Any]:
        return lambda columns, condition=None: ps.read(spark, source, columns=columns, filters=condition, engine=engine)

    def constant(_: Iterator[Any]) -> Iterator[Any]:
        batch, left = pa.RecordBatch.from_pydict({"k": np.arange(65_536)}), rows // 2
        while left > 0:
            yield batch.slice(0, min(left, 65_536))
            left -= 65_536

    def floor() -> Any:
        return spark.range(2, numPartitions=2).mapInArrow(constant, "k long")

    return {
        **asked("read", by("auto")), **asked("pyparq", by("pyparq")), **asked("Spark", own),
        "sum | constant mapInArrow": lambda: floor().agg({"k": "sum"}).collect(),
        "limit 10 | constant mapInArrow": lambda: floor().limit(10).collect(),
    }  # fmt: skip


def into_nothing(frame: Any) -> None:
    """Every value of every row, without a place to put them."""
    frame.write.format("noop").mode("overwrite").save()


def shapes(spark: Any, wide: Path, nested: Path) -> dict[str, Callable[[], Any]]:
    """Five of a thousand columns, and lists and structs."""
    five = [f"c{k}" for k in (0, 250, 500, 750, 999)]
    asked: dict[str, Callable[[], Any]] = {}
    for name, engine in (("read", "auto"), ("pyparq", "pyparq")):
        asked[f"wide | {name}"] = lambda e=engine: into_nothing(ps.read(spark, str(wide), columns=five, engine=e))
        asked[f"nested | {name}"] = lambda e=engine: into_nothing(ps.read(spark, str(nested), engine=e))
    asked["wide | Spark"] = lambda: into_nothing(spark.read.parquet(str(wide)).select(*five))
    asked["nested | Spark"] = lambda: into_nothing(spark.read.parquet(str(nested)))
    return asked


def make_wide(folder: Path, rows: int, files: int = 4) -> None:
    folder.mkdir()
    rng = np.random.default_rng(2)
    table = pa.table({f"c{k}": rng.integers(0, 1 << 40, rows) for k in range(1000)})
    for k in range(files):
        pyparq.write_table(table.slice(k * rows // files, rows // files), folder / f"{k}.parquet")


def make_nested(folder: Path, rows: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, rows))]).astype(np.int32)
    items = pa.array(rng.integers(0, 1 << 40, int(offsets[-1])))
    struct = pa.StructArray.from_arrays(
        [pa.array(rng.normal(size=rows)), pa.array([f"n{n}" for n in rng.integers(0, 5000, rows)])], ["x", "s"]
    )
    table = pa.table({"list": pa.ListArray.from_arrays(offsets, items), "struct": struct})
    for k in range(4):
        pyparq.write_table(table.slice(k * rows // 4, rows // 4), folder / f"{k}.parquet", use_dictionary=["struct.s"])


def discard(batches: Iterator[Any]) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"n": pa.array([rows], pa.int64())})


def measured(asked: dict[str, Callable[[], Any]], runs: int, copies: dict[str, Path], out: Path) -> dict[str, float]:
    """Median milliseconds; the first round warms everything up.

    Each round finds copies of these folders in ``out``, by name. What it leaves there is deleted after it."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    for round_ in range(runs + 1):
        out.mkdir()
        for name, folder in copies.items():
            shutil.copytree(folder, out / name)
        for name, ask in random.Random(round_).sample(list(asked.items()), len(asked)):
            began = time.perf_counter()
            ask()
            if round_:
                times[name].append(1000 * (time.perf_counter() - began))
        shutil.rmtree(out)
        print(f"round {round_} of {runs}", file=sys.stderr)
    return {name: statistics.median(values) for name, values in times.items()}


# What is compared with what, and the highest ratio that we want.
LINES = [
    ("sum | data source", ["sum | constant batches"], 1.15),
    ("sum | read", ["sum | constant batches"], 0.85),
    ("count | data source", ["count | constant batches"], 1.15),
    ("count | read", ["count | constant batches"], 0.85),
    ("absent key | read", ["absent key | Spark"], 0.35),
    ("0.1 % range | read", ["0.1 % range | Spark"], 0.5),
    ("absent key | data source", ["absent key | Spark"], 1.0),
    ("0.1 % range | data source", ["0.1 % range | Spark"], 1.0),
    ("write | pyparq", ["write | Spark", "write | discarding mapInArrow"], 1.1),
    ("index | add_indexes", ["index | Spark, all written anew"], 0.33),
    ("compact | pyparq", ["compact | Spark, all written anew"], 0.6),
]
SCAN_LINES = [
    (f"{question} | {who}", [f"{question} | Spark"], most if who == "read" else None)
    for question, most in (
        ("full scan", 1.1), ("sum", 1.1), ("group by", 1.1), ("filter 30 %", 1.1), ("limit 10", 1.5),
        ("take 10", 1.5), ("tail 10", 1.5), ("max of ts", 1.1), ("wide", 1.0), ("nested", 1.0),
    )
    for who in ("read", "pyparq")
]  # fmt: skip
MANY_LINES = [
    ("full scan | read", ["full scan | Spark"], 1.1),
    ("sum | read", ["sum | Spark"], 1.1),
    ("group by | read", ["group by | Spark"], 1.1),
    ("filter 30 % | read", ["filter 30 % | Spark"], 1.1),
    ("limit 10 | read", ["limit 10 | Spark"], 1.5),
    ("take 10 | read", ["take 10 | Spark"], 1.5),
    ("tail 10 | read", ["tail 10 | Spark"], 1.5),
    ("wide | read", ["wide | Spark"], 1.0),
    ("nested | read", ["nested | Spark"], 1.0),
    ("0.1 % range | read", ["0.1 % range | Spark"], 0.5),
    ("count | pyparq.spark.count", ["count | Spark"], 1.0),
    ("one key | read", ["one key | Spark"], 0.1),
    ("plan | read", [], None),
]
MANY_JOB_LINES = [
    ("write | pyparq", ["write | Spark", "write | discarding mapInArrow"], 1.1),
    ("compact | pyparq", ["compact | Spark, all written anew"], 0.6),
]


def show(medians: dict[str, float], lines: list[tuple[str, list[str], float | None]]) -> None:
    print(f"{'':<30}{'ms':>8}  {'beside':<34}{'ms':>8}{'ratio':>7}  at most")
    for name, others, most in lines:
        text = f"{name:<30}{medians[name]:8.0f}"
        if others:
            beside = max(others, key=lambda other: medians[other])
            text += f"  {beside:<34}{medians[beside]:8.0f}{medians[name] / medians[beside]:7.2f}"
        print(text + (f"  {most}" if most else ""))
    compared = {name for line in lines for name in (line[0], *line[1])}
    print("Also:", ", ".join(f"{name} {medians[name]:.0f} ms" for name in medians if name not in compared) or "-")


def make_many(folder: Path, files: int, rows: int = 10_000) -> None:
    """Keys in no order, a time that each file has a range of, text, lists and structs."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    names = pa.array([f"c{n}" for n in range(1000)])
    offsets = np.arange(0, 2 * rows + 1, 2, dtype=np.int32)
    for k in range(files):
        x = pa.array(rng.normal(size=rows))
        table = {
            "k": rng.permutation(rows) * files + k, "x": x, "ts": np.arange(k * rows, (k + 1) * rows),
            "c": names.take(pa.array(rng.integers(0, 1000, rows))),
            "list": pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 1 << 20, 2 * rows))),
            "struct": pa.StructArray.from_arrays([x], ["x"]),
        }  # fmt: skip
        pyparq.write_table(pa.table(table), folder / f"{k:05}.parquet", bloom_filters={"k": 0.01})


def many_questions(spark: Any, lake: Path, wide: Path) -> dict[str, Callable[[], Any]]:
    source, first = str(lake), 10_000 * len(list(lake.iterdir())) // 2
    five = [f"c{k}" for k in (0, 250, 500, 750, 999)]
    hours = (col("ts") >= first) & (col("ts") < first + first // 500)
    text = f"ts >= {first} and ts < {first + first // 500}"
    readers: dict[str, Callable[..., Any]] = {
        "read": lambda place=source, **asked: ps.read(spark, place, **asked),
        "Spark": lambda place=source, columns="*", filters="true": (
            spark.read.parquet(place).select(columns).where(filters)
        ),
    }
    asked: dict[str, Callable[[], Any]] = {}
    for name, read in readers.items():
        asked |= {
            f"full scan | {name}": lambda r=read: into_nothing(r(columns=["k", "x"])),
            f"sum | {name}": lambda r=read: r(columns=["k"]).agg({"k": "sum"}).collect(),
            f"group by | {name}": lambda r=read: r(columns=["k", "c"]).groupBy("c").agg({"k": "sum"}).collect(),
            f"filter 30 % | {name}": lambda r=read: into_nothing(r(columns=["k", "x"], filters="x > 0.5244")),
            f"limit 10 | {name}": lambda r=read: r().limit(10).collect(),
            f"take 10 | {name}": lambda r=read: r().take(10),
            f"tail 10 | {name}": lambda r=read: r().tail(10),
            f"wide | {name}": lambda r=read: into_nothing(r(str(wide), columns=five)),
            f"nested | {name}": lambda r=read: into_nothing(r(columns=["list", "struct"])),
        }
    return asked | {
        "count | pyparq.spark.count": lambda: ps.count(spark, source),
        "count | Spark": lambda: spark.read.parquet(source).count(),
        "one key | read": lambda: ps.read(spark, source, filters=col("k") == 4_321).collect(),
        "one key | Spark": lambda: spark.read.parquet(source).where("k = 4321").collect(),
        "0.1 % range | read": lambda: ps.read(spark, source, filters=hours).toArrow(),
        "0.1 % range | Spark": lambda: spark.read.parquet(source).where(text).toArrow(),
        # All pages: only the plan is timed. It is not carried out.
        "plan | read": lambda: ps.read(spark, source, small=0, engine="pyparq"),
    }


def many_jobs(spark: Any, out: Path, files: int) -> dict[str, Callable[[], Any]]:
    """As many files written as there are tasks, and small files joined into two, in order."""
    rows = spark.range(0, 1_000 * files, 1, files).selectExpr("id k", "id * 0.5D x")

    def half() -> int:
        return 1 + sum(path.stat().st_size for path in (out / "thin").glob("*.parquet")) // SORTED_FILES

    return {
        "write | pyparq": lambda: ps.write(rows, out / "ours"),
        "write | Spark": lambda: rows.write.parquet(str(out / "theirs")),
        "write | discarding mapInArrow": lambda: rows.mapInArrow(discard, "n long").collect(),
        "compact | pyparq": lambda: ps.compact(spark, str(out / "thin"), target_size=half(), sort_by="k").collect(),
        "compact | Spark, all written anew": lambda: (
            spark.read.parquet(str(out / "thin"))
            .repartitionByRange(SORTED_FILES, "k")
            .sortWithinPartitions("k")
            .write.parquet(str(out / "sorted"))
        ),
    }


KEYS = 100_000
DELETE_LINES = [
    ("in 100 files | delete", ["in 100 files | Spark"], 0.2),
    ("in all files | delete", ["in all files | Spark"], None),
]
"""Spark: an anti-join, and an overwrite of the folder. A file with such rows has to be written anew by both."""


def delete_questions(spark: Any, out: Path, files: int) -> dict[str, Callable[[], Any]]:
    """Both leave the same number of rows, which is checked. Each question has a copy of the folder."""
    step = 10_000 * files // KEYS
    keys = {
        "in 100 files": spark.range(KEYS).selectExpr(f"(id div 100) * {files} + id % 100 as k"),
        "in all files": spark.range(KEYS).selectExpr(f"id * {step} + (id div 10) % {step} as k"),
    }

    def ours(name: str) -> None:
        done = ps.delete(spark, str(out / f"{name} ours"), keys=keys[name]).agg({"rows_deleted": "sum"}).collect()
        assert done[0][0] == KEYS, done

    def theirs(name: str) -> None:
        folder, anew = str(out / f"{name} theirs"), str(out / f"{name} anew")
        spark.read.parquet(folder).join(keys[name], "k", "left_anti").write.mode("overwrite").parquet(anew)
        shutil.rmtree(folder)
        os.rename(anew, folder)

    asked: dict[str, Callable[[], Any]] = {}
    for name in keys:
        asked[f"{name} | delete"] = partial(ours, name)
        asked[f"{name} | Spark"] = partial(theirs, name)
    return asked


def show_memory(spark: Any, lake: Path) -> None:
    """What planning leaves in the driver's Python: it must not grow from plan to plan."""
    before, files = resident(), len(list(lake.iterdir()))
    for engine in ("auto", "pyparq"):
        held = []
        for _ in range(11):
            ps.read(spark, str(lake), small=0, engine=engine)
            held.append(resident())
        print(f"{files:,} files, engine {engine!r}: the driver's Python holds {before:.0f} MB before, "
              f"{held[0]:.0f} MB after a plan, {held[-1]:.0f} MB after ten more")  # fmt: skip


def resident() -> float:
    """MB of this process's memory that are in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main()
