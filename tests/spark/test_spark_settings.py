"""Spark's own settings (``spark.sql.parquet.*`` and their like): what ``pyparq.spark`` makes of each.

docs/spark.md has the table. Spark's own writer, under the same settings, says what is right.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import OptionError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

TYPES = (
    "id long, t timestamp, n timestamp_ntz, s struct<a: array<struct<t: timestamp>>>, m map<string, timestamp>, "
    "d decimal(9,2), b binary"
)
BEFORE = dt.datetime(1960, 1, 1, 0, 0, 0, 1)
"""A point in time whose milliseconds are rounded downwards."""


@pytest.fixture
def frame(usual: Any) -> Any:
    """Points in time at all depths, and a field id."""
    rows = [
        (1, BEFORE, BEFORE, ([(BEFORE,), (None,)],), {"k": BEFORE}, Decimal("1.25"), b"x"),
        (2, None, None, None, None, None, None),
        (3, BEFORE, BEFORE, ([],), {}, Decimal(2), b""),
    ]
    made = usual.createDataFrame(rows, TYPES).coalesce(1)
    return made.withMetadata("id", {"parquet.field.id": 7})


def stored(folder: Path) -> set[tuple[Any, ...]]:
    """How the columns are stored, in each kind of file, and their codec."""
    found = set()
    for path in folder.rglob("*.parquet"):
        file = pq.ParquetFile(path)
        codecs = {file.metadata.row_group(0).column(k).compression for k in range(file.metadata.num_columns)}
        found.add((str(file.schema).partition("schema {")[2], tuple(sorted(codecs))))
    return found


WRITER_SETTINGS = [
    {},
    {"outputTimestampType": "INT96"},
    {"outputTimestampType": "TIMESTAMP_MILLIS", "compression.codec": "zstd"},
    {
        "outputTimestampType": "TIMESTAMP_MICROS",
        "compression.codec": "gzip",
        "fieldId.write.enabled": "false",
        "fieldId.read.ignoreMissing": "true",
    },  # else Spark refuses a schema that has ids
    {"outputTimestampType": "TIMESTAMP_MICROS", "compression.codec": "none"},
]


def test_files_are_stored_as_the_session_says(usual: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    for k, settings in enumerate(WRITER_SETTINGS):
        for name, value in settings.items():
            usual.conf.set(f"spark.sql.parquet.{name}", value)
        ours, theirs = tmp_path / f"ours{k}", tmp_path / f"theirs{k}"
        ps.write(frame, ours)
        if not settings:  # INT96 is Spark's default, but it counts only where it is set
            usual.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        frame.write.parquet(str(theirs))
        assert stored(ours) == stored(theirs), settings
        assert usual.read.parquet(str(ours)).collect() == usual.read.parquet(str(theirs)).collect(), settings
        for name in (*settings, "outputTimestampType"):
            usual.conf.unset(f"spark.sql.parquet.{name}")


def test_a_call_says_more_than_the_session(usual: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    usual.conf.set("spark.sql.parquet.compression.codec", "gzip")
    usual.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    ps.write(frame, tmp_path / "a", compression="ZSTD", int96_timestamps=False)
    ((types, codecs),) = stored(tmp_path / "a")
    assert (codecs, "int96" in types) == (("ZSTD",), False)
    usual.conf.set("spark.sql.parquet.compression.codec", "lzo")
    with pytest.raises(OptionError, match=r"compression\.codec"):
        ps.write(frame, tmp_path / "b")
    usual.conf.set("spark.sql.parquet.compression.codec", "lz4")
    ps.write(frame, tmp_path / "c")
    assert {codecs for _, codecs in stored(tmp_path / "c")} == {("LZ4",)}  # pyarrow's name of both
    assert usual.read.parquet(str(tmp_path / "c")).count() == 3


@pytest.mark.slow
def test_a_file_has_as_many_rows_as_the_session_says(usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.conf.set("spark.sql.files.maxRecordsPerFile", "40")
    hundred = usual.range(0, 100, 1, 1)
    assert [file.num_rows for file in ps.write(hundred, tmp_path / "a").files] == [40, 40, 20]
    assert len(ps.write(hundred, tmp_path / "b", maxRecordsPerFile=50).files) == 2
    assert len(ps.write(hundred, tmp_path / "c", max_rows_per_file=50).files) == 2
    assert len(ps.write(hundred, tmp_path / "d", maxRecordsPerFile=0).files) == 1
    assert ps.rewrite(usual, tmp_path / "d", tmp_path / "e").count() == 3
    ps.register(usual)
    hundred.write.format("pyparq").mode("append").option("maxRecordsPerFile", "30").save(str(tmp_path / "f"))
    assert len(list((tmp_path / "f").glob("*.parquet"))) == 4
    with pytest.raises(OptionError, match="two names of one option"):
        ps.write(hundred, tmp_path / "g", maxRecordsPerFile=50, max_rows_per_file=50)


@pytest.mark.slow
def test_an_overwrite_is_dynamic_where_the_session_says_so(usual: Any, ps: Any, tmp_path: Path) -> None:
    old = usual.createDataFrame([(k, k % 3) for k in range(30)], "id long, g long")
    new = usual.sql("select id, 1L g from range(5)")

    def left(folder: str, write: Any) -> dict[int, int]:
        ps.write(old, tmp_path / folder, partition_cols=["g"])
        write(tmp_path / folder)
        return {
            row.g: row["count"] for row in usual.read.parquet(str(tmp_path / folder)).groupBy("g").count().collect()
        }

    def ours(**options: Any) -> Any:
        return lambda path: ps.write(new, path, mode="overwrite", partition_cols=["g"], **options)

    def source(path: Path) -> None:
        writer = new.write.format("pyparq").mode("overwrite").option("partition_cols", "g")
        writer.option("partitionOverwriteMode", "dynamic").save(str(path))

    ps.register(usual)
    some, all_ = {0: 10, 1: 5, 2: 10}, {1: 5}
    assert left("a", ours()) == all_
    assert left("b", ours(partitionOverwriteMode="dynamic")) == some
    assert left("c", source) == some
    usual.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    assert left("d", ours()) == some
    assert left("e", lambda path: new.write.partitionBy("g").mode("overwrite").parquet(str(path))) == some
    assert left("f", ours(partitionOverwriteMode="STATIC")) == all_
    assert left("g", lambda path: ps.rewrite(usual, path, filters="g = 1")) == {1: 10}  # what it read is replaced
    ps.write(new, tmp_path / "h", mode="overwrite")
    ps.write(usual.range(2), tmp_path / "h", mode="overwrite")  # no partitions: all is replaced
    assert usual.read.parquet(str(tmp_path / "h")).count() == 2
    with pytest.raises(OptionError, match="static or dynamic"):
        ps.write(new, tmp_path / "h", mode="overwrite", partitionOverwriteMode="some")


# ---- the table in docs/spark.md --------------------------------------------------------------------------------------

OTHER_VALUES = {
    "spark.sql.parquet.columnarReaderBatchSize": "7",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.files.maxRecordsPerFile": "1",
}


def table() -> dict[str, str]:
    """The settings in the documentation's table, and whether they are obeyed."""
    rows = re.findall(r"^\| `(spark\.sql\.[\w.]+)` \| (\w+) \|", (ROOT / "docs" / "spark.md").read_text(), re.MULTILINE)
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def test_the_table_has_every_setting(usual: Any) -> None:
    shown = {row[0] for row in usual.sql("set -v").collect()}
    wanted = {name for name in shown if name.startswith("spark.sql.parquet.")}
    assert wanted <= set(table())
    assert set(table().values()) == {"obeyed", "ignored"}


@pytest.mark.slow
def test_settings_that_are_ignored_change_nothing(usual: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    from pyparq.spark.file_choice import CORRUPT, MISSING
    from pyparq.spark.options import OBEYED

    assert {name for name, said in table().items() if said == "obeyed"} == {*OBEYED, CORRUPT, MISSING}
    frame.write.parquet(str(tmp_path / "theirs"))

    def outcome(folder: str) -> Any:
        ps.write(frame, tmp_path / folder)
        read = ps.read(usual, str(tmp_path / "theirs"))
        return stored(tmp_path / folder), read.schema, read.collect(), ps.count(usual, tmp_path / "theirs", "b = x''")

    usual_outcome = outcome("plain")
    for k, name in enumerate(name for name, said in table().items() if said == "ignored"):
        before = usual.conf.get(name)
        usual.conf.set(name, OTHER_VALUES.get(name) or {"true": "false", "false": "true"}[before])
        assert outcome(f"ignored{k}") == usual_outcome, name
        usual.conf.unset(name)


def test_a_write_asks_for_no_more_than_it_needs(tmp_path: Path) -> None:
    """The options in Spark's spelling are those of Spark writes alone."""
    with pytest.raises(OptionError, match="maxRecordsPerFile"):
        pyparq.write_dataset({"x": [1]}, tmp_path / "a", maxRecordsPerFile=1)  # type: ignore[call-arg]
