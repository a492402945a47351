"""pyparq on Spark beside Spark's own reader and writer, and beside the floors of Spark's Python API.

    python benchmarks/spark.py [--rows N] [--files N] [--runs N]

Needs the extra "spark" and Java 17 or newer. All questions are asked in each round, in one warm session of two local
cores, and in another order each time (from a seed), as the cost of one depends on the one before. A time is the median
over the rounds. The floors: a data source that sends constant batches of the same number of rows,
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

FILES, GROUPS = 4, 2
SMALL_FILES, SORTED_FILES = 40, 2
BLOOM = {"parquet.bloom.filter.enabled#k": "true"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=2000, help="of 10,000 rows, for the questions about many files")
    parser.add_argument("--runs", type=int, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        indexed, bare, small = (Path(folder) / name for name in ("indexed", "bare", "small"))
        make(indexed, bare, given.rows)
        make_small(bare, small)
        spark = local_session(
            "pyparq benchmark", "local[2]", spark_driver_memory="4g", spark_sql_session_timeZone="UTC"
        )
        spark.sparkContext.setLogLevel("OFF")
        ps.register(spark)
        spark.dataSource.register(constant_source(given.rows))
        out = Path(folder) / "out"
        asked = questions(spark, indexed, bare, small, out, given.rows)
        show(measured(asked, given.runs, {"copy": bare, "small": small}, out), LINES)
        lake = Path(folder) / "lake"
        make_many(lake, given.files)
        print(f"\n{given.files:,} files of 10,000 rows")
        show(measured(many_questions(spark, lake), given.runs, {}, out), MANY_LINES)
        show_memory(spark, lake)
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
        "sum | read": lambda: ps.read(spark, source, columns=["k"]).agg({"k": "sum"}).collect(),
        "sum | Spark": lambda: own().agg({"k": "sum"}).collect(),
        "count | constant batches": lambda: spark.read.format("constant").load().count(),
        "count | data source": lambda: ours().count(),
        "count | read": lambda: ps.read(spark, source, columns=["k"]).count(),
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
MANY_LINES = [
    ("count | pyparq.spark.count", ["count | Spark"], 1.0),
    ("one key | read", ["one key | Spark"], 0.1),
    ("plan | read", [], None),
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


def make_many(folder: Path, files: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(1)
    for k in range(files):
        table = {"k": rng.permutation(10_000) * files + k, "x": rng.normal(size=10_000)}
        pyparq.write_table(table, folder / f"{k:05}.parquet", bloom_filters={"k": 0.01})


def many_questions(spark: Any, lake: Path) -> dict[str, Callable[[], Any]]:
    source = str(lake)
    return {
        "count | pyparq.spark.count": lambda: ps.count(spark, source),
        "count | Spark": lambda: spark.read.parquet(source).count(),
        "one key | read": lambda: ps.read(spark, source, filters=col("k") == 4_321).collect(),
        "one key | Spark": lambda: spark.read.parquet(source).where("k = 4321").collect(),
        # All pages: only the plan is timed. It is not carried out.
        "plan | read": lambda: ps.read(spark, source, small=0),
    }


def show_memory(spark: Any, lake: Path) -> None:
    """What planning leaves in the driver's Python: it must not grow from plan to plan."""
    held = []
    for _ in range(11):
        ps.read(spark, str(lake), small=0)
        held.append(resident())
    print(f"Resident memory of the driver's Python: {held[0]:.0f} MB after a plan, {held[-1]:.0f} MB after ten more")


def resident() -> float:
    """MB of this process's memory that are in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main()
