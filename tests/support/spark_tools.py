"""Ways to read and write by Spark, and to see what its Parquet reader (parquet-java) did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOOM = "parquet.filter.bloom.enabled"
COLUMN_INDEX = "parquet.filter.columnindex.enabled"
STATISTICS = "parquet.filter.stats.enabled"


def load(spark: Any, path: Path, options: Mapping[str, str] | None = None, schema: str | None = None) -> Any:
    """A DataFrame over one file, by Spark's own Parquet reader."""
    reader = spark.read.options(**dict(options or {}))
    return (reader.schema(schema) if schema else reader).parquet(str(path))


def put(frame: Any, folder: Path, options: Mapping[str, str] | None = None) -> Path:
    """Let Spark write a DataFrame as one file."""
    frame.coalesce(1).write.options(**dict(options or {})).parquet(str(folder))
    (path,) = folder.glob("part-*.parquet")
    return path


@dataclass(frozen=True)
class Answer:
    rows: list[tuple[Any, ...]]
    scanned: int
    """Rows that the scan handed on to the filter: what row groups and pages left."""


def ask(
    spark: Any, path: Path, where: str, columns: str = "*", off: tuple[str, ...] = (),
    options: Mapping[str, str] | None = None,
) -> Answer:  # fmt: skip
    """Columns of a file where a SQL condition holds, with the indexes named in ``off`` switched off."""
    frame = load(spark, path, {**dict.fromkeys(off, "false"), **(options or {})}).where(where).select(*columns.split())
    rows = [tuple(row) for row in frame.collect()]
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    assert leaves.size() == 1
    return Answer(rows, int(leaves.apply(0).metrics().get("numOutputRows").get().value()))


@dataclass(frozen=True)
class Left:
    """What parquet-java's file reader leaves of a file."""

    row_groups: int
    """After statistics, dictionaries and Bloom filters, as far as they are on."""
    rows: int
    filtered_rows: int
    """After the column index too."""


def java_left(spark: Any, path: Path, column: str, value: int, **use: bool) -> Left:
    """Open a file by parquet-java's ParquetFileReader with the filter ``column == value`` on an INT64 column.

    ``use``: ``stats``, ``dictionary``, ``bloom``, ``column_index``; those not named are off.
    """
    jvm = spark._jvm
    api = jvm.org.apache.parquet.filter2.predicate.FilterApi
    # A Python int would arrive as an Integer: the set is made of Longs over there.
    longs = jvm.java.util.HashSet(jvm.java.util.stream.LongStream.rangeClosed(value, value).boxed().toList())
    predicate = getattr(api, "in")(api.longColumn(column), longs)
    options = (
        jvm.org.apache.parquet.ParquetReadOptions.builder()
        .withRecordFilter(jvm.org.apache.parquet.filter2.compat.FilterCompat.get(predicate))
        .useStatsFilter(use.get("stats", False))
        .useDictionaryFilter(use.get("dictionary", False))
        .useBloomFilter(use.get("bloom", False))
        .useColumnIndexFilter(use.get("column_index", False))
        .build()
    )
    reader = _open(spark, path, options)
    try:
        return Left(reader.getRowGroups().size(), int(reader.getRecordCount()), int(reader.getFilteredRecordCount()))
    finally:
        reader.close()


def java_finds(spark: Any, path: Path, row_group: int, column: int, hashes: list[int]) -> list[bool] | None:
    """Whether parquet-java finds hashes in a chunk's Bloom filter; ``None`` when it sees no filter."""
    reader = _open(spark, path, spark._jvm.org.apache.parquet.ParquetReadOptions.builder().build())
    try:
        found = reader.readBloomFilter(reader.getRowGroups().get(row_group).getColumns().get(column))
        signed = [h - (1 << 64) if h >> 63 else h for h in hashes]
        # A small number would arrive as an int: XXH64 gives none that small but by a chance of 2^-32.
        return None if found is None else [bool(found.findHash(h)) for h in signed]
    finally:
        reader.close()


def _open(spark: Any, path: Path, options: Any) -> Any:
    jvm = spark._jvm
    where = jvm.org.apache.hadoop.fs.Path(str(path))
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(where, spark._jsc.hadoopConfiguration())
    return jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file, options)
