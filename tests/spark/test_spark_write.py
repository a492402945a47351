"""pyparq.spark.write and the data source's writer: what Spark reads afterwards, and what failures leave."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import DataError, OptionError, TargetExistsError, UnsupportedError, WriteConflictError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark
KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """Every type of Spark's that Arrow carries, nested ones, odd values in the partition column."""
    schema = (
        "k int, tiny tinyint, small smallint, big bigint, f float, x double, flag boolean, s string, b binary, "
        "d decimal(20,3), day date, t timestamp, n timestamp_ntz, gap interval day to second, items array<string>, "
        "m map<string, int>, st struct<a: int, b: array<struct<c: date>>>, city string"
    )
    cities = ["Lima", "Köln", "a/b", "x=y", "50%", None, "A b"]
    rows = [
        (
            k, k % 100, k, k << 40, k / 3, float("nan") if k % 9 == 0 else -0.0, k % 2 == 0, f"s{k % 7}",
            b"\0" * (k % 3), decimal.Decimal(k) / 8, dt.date(1500 + k % 600, 1, 1), dt.datetime(2024, 3, 31, 1, k % 60),
            dt.datetime(2024, 3, 31, 2, k % 60), dt.timedelta(microseconds=k), None if k % 5 == 0 else ["a", None],
            {"q": k}, None if k % 4 == 0 else (k, [(dt.date(2020, 1, 1),)]), cities[k % 7],
        )
        for k in range(400)
    ]  # fmt: skip
    return spark.createDataFrame(rows, schema).repartition(3, "k").cache()


def rows(df: Any) -> list[str]:
    return sorted(repr(row) for row in df.collect())


def data_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.parquet"))


def test_spark_reads_every_type_back(spark: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    report = ps.write(frame, tmp_path / "t", bloom_filters=["k", "s"], compression="zstd")
    assert report.num_rows == 400
    assert [Path(file.path) for file in report.files] == data_files(tmp_path / "t")
    back = spark.read.parquet(str(tmp_path / "t"))
    assert [(f.name, f.dataType) for f in back.schema] == [(f.name, f.dataType) for f in frame.schema]
    assert rows(back.select(*frame.columns)) == rows(frame)
    assert rows(ps.read(spark, tmp_path / "t").select(*frame.columns)) == rows(frame)
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert not list((tmp_path / "t").glob("_pyparq*"))


def test_partitions_are_named_as_spark_names_them(spark: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    few = frame.select("k", "s", "city", "flag")
    ps.write(few, tmp_path / "ours", partition_cols=["city", "flag"])
    few.write.partitionBy("city", "flag").parquet(str(tmp_path / "theirs"))
    names = [{str(p.parent.relative_to(tmp_path / x)) for p in data_files(tmp_path / x)} for x in ("ours", "theirs")]
    assert names[0] == names[1]
    ours, theirs = (spark.read.parquet(str(tmp_path / x)) for x in ("ours", "theirs"))
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)


def test_modes(spark: Any, ps: Any, tmp_path: Path) -> None:
    target = tmp_path / "t"
    ten = spark.range(10)
    ps.write(ten, target)
    with pytest.raises(TargetExistsError):
        ps.write(ten, target)
    with pytest.raises(TargetExistsError):
        ps.write(ten, target, mode="errorifexists")
    assert ps.write(ten, target, mode="ignore").files == ()
    assert spark.read.parquet(str(target)).count() == 10
    ps.write(ten, target, mode="append")
    assert spark.read.parquet(str(target)).count() == 20
    assert len(ps.write(spark.range(3), target, mode="overwrite").replaced) >= 2
    assert rows(spark.read.parquet(str(target))) == rows(spark.range(3))
    with pytest.raises(OptionError, match="mode must be"):
        ps.write(ten, target, mode="replace")


def test_only_the_partitions_of_the_data_are_replaced(spark: Any, ps: Any, tmp_path: Path) -> None:
    target = tmp_path / "t"
    ps.write(spark.sql("select id, id % 3 g from range(30)"), target, partition_cols="g")
    with pytest.raises(OptionError, match="the partition columns of the files there are g"):
        ps.write(spark.range(3), target, mode="append")
    assert not list(target.glob("_pyparq*"))
    ps.write(spark.sql("select id, 1L g from range(5)"), target, mode="overwrite_partitions", partition_cols="g")
    counts = {row.g: row["count"] for row in spark.read.parquet(str(target)).groupBy("g").count().collect()}
    assert counts == {0: 10, 1: 5, 2: 10}


def test_overwriting_what_is_being_read(spark: Any, ps: Any, tmp_path: Path) -> None:
    target = tmp_path / "t"
    ps.write(spark.range(1_000), target)
    ps.write(spark.read.parquet(str(target)).where("id % 2 = 0"), target, mode="overwrite")
    ps.write(ps.read(spark, target, small=0).where("id < 100"), target, mode="overwrite")
    assert spark.read.parquet(str(target)).count() == 50


def test_no_rows_make_one_typed_file(spark: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    report = ps.write(frame.limit(0), tmp_path / "t")
    assert (len(report.files), report.num_rows) == (1, 0)
    back = spark.read.parquet(str(tmp_path / "t"))
    assert back.count() == 0
    assert [(f.name, f.dataType) for f in back.schema] == [(f.name, f.dataType) for f in frame.schema]


def test_a_global_order_is_a_repartition_by_range_away(spark: Any, ps: Any, tmp_path: Path) -> None:
    shuffled = spark.range(5_000).selectExpr("(id * 7919) % 5000 as id")
    ps.write(shuffled.repartitionByRange(4, "id"), tmp_path / "t", sort_by=["id"])
    assert pyparq.read_table(tmp_path / "t")["id"].to_pylist() == list(range(5_000))
    files = data_files(tmp_path / "t")
    assert len(files) == 4
    assert all(pq.ParquetFile(file).metadata.row_group(0).sorting_columns for file in files)


def test_spark_uses_the_bloom_filters_that_it_is_given(spark: Any, ps: Any, tmp_path: Path) -> None:
    from spark_tools import BLOOM, ask

    even = spark.range(20_000).selectExpr("id * 2 as id", "cast(id as string) s").coalesce(1)
    ps.write(even, tmp_path / "t", bloom_filters={"id": 0.001}, use_dictionary=False)
    (file,) = data_files(tmp_path / "t")
    assert ask(spark, file, "id = 20001").scanned == 0
    assert ask(spark, file, "id = 20001", off=(BLOOM,)).scanned > 0
    assert len(ask(spark, file, "id = 20002").rows) == 1


def test_encrypted(spark: Any, ps: Any, tmp_path: Path) -> None:
    module = tmp_path / "keys_for_writing.py"
    module.write_text(f"import pyparq\n\ndef make():\n    return pyparq.EncryptionProperties(footer_key={KEY!r})\n")
    spark.sparkContext.addPyFile(str(module))
    ps.write(spark.range(10), tmp_path / "t", encryption="keys_for_writing:make")
    with pytest.raises(pyparq.EncryptionError):
        pyparq.read_table(tmp_path / "t")
    keys = pyparq.DecryptionProperties(footer_key=KEY)
    assert pyparq.read_table(tmp_path / "t", decryption=keys).num_rows == 10
    with pytest.raises(OptionError, match="module:function"):
        ps.write(spark.range(10), tmp_path / "u", encryption=pyparq.EncryptionProperties(footer_key=KEY))


# ---- failures ------------------------------------------------------------------------------------------------------


def unchanged(target: Path, before: dict[str, bytes]) -> None:
    assert {p.name: p.read_bytes() for p in data_files(target)} == before
    assert not list(target.glob("_pyparq*"))


def fails_in(partition: int, how: str) -> Any:
    """A mapInArrow function that passes rows on, but dies in one partition."""

    def run(batches: Any) -> Any:
        import os as worker_os

        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().partitionId() == partition:
            if how == "exit":
                worker_os._exit(3)
            raise RuntimeError("this task was made to fail")

    return run


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_failed_task_leaves_the_old_files(spark: Any, ps: Any, tmp_path: Path, how: str) -> None:
    from pyspark.errors import PySparkException

    target = tmp_path / "t"
    ps.write(spark.range(10), target)
    before = {p.name: p.read_bytes() for p in data_files(target)}
    broken = spark.range(0, 100, 1, 2).mapInArrow(fails_in(1, how), "id long")
    with pytest.raises((PySparkException, Exception), match=r"made to fail|exited|crashed|aborted"):
        ps.write(broken, target, mode="overwrite")
    unchanged(target, before)
    new = tmp_path / "new"
    with pytest.raises((PySparkException, Exception), match=r"made to fail|exited|crashed|aborted"):
        ps.write(broken, new)
    assert not new.exists()


def test_a_partition_that_came_twice_or_not_at_all(tmp_path: Path, ps: Any) -> None:
    import pyarrow as pa

    from pyparq.spark.writing import TaskReply, WriteRequest, commit

    schema = pa.schema([("a", pa.int64())])
    for replies, said in (([TaskReply(0, ()), TaskReply(0, ())], "twice"), ([TaskReply(0, ()), None], "no answer")):
        job = WriteRequest(str(tmp_path / "t"), "error", schema, (), {}).begun()
        with pytest.raises(DataError, match=said):
            commit(job, replies)
        assert not (tmp_path / "t").exists()


def test_a_task_that_outlives_its_write_fails(tmp_path: Path, ps: Any) -> None:
    """Two attempts of one partition; and one that goes on after the abort."""
    import pyarrow as pa

    from pyparq.spark.writing import WriteRequest, abort, commit, write_task

    schema = pa.schema([("a", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3]}, schema)
    target = tmp_path / "t"
    job = WriteRequest(str(target), "error", schema, (), {}).begun()
    first = write_task([batch], job, 0, "task-1")
    write_task([batch], job, 0, "task-2")
    job = pickle.loads(pickle.dumps(job))
    commit(job, pickle.loads(pickle.dumps([first])))
    assert pyparq.read_table(target)["a"].to_pylist() == [1, 2, 3]
    with pytest.raises(WriteConflictError, match="gone"):
        write_task([batch], job, 0, "task-3")
    abort(job.staging)  # Spark calls it after a commit that failed
    assert len(data_files(target)) == 1

    job = WriteRequest(str(target), "overwrite", schema, (), {}).begun()
    abort(job.staging)
    with pytest.raises(WriteConflictError, match="gone"):
        write_task([batch], job, 0, "task-4")
    assert pyparq.read_table(target).num_rows == 3


def test_wrong_options_before_anything_is_begun(spark: Any, ps: Any, tmp_path: Path) -> None:
    for options, error, said in (
        ({"partition_cols": ["nope"]}, OptionError, "nope"),
        ({"compresion": "zstd"}, OptionError, "compression"),
        ({"bloom_filters": ["nope"]}, Exception, "nope"),
        ({"max_rows_per_file": 0}, OptionError, "max_rows_per_file"),
    ):
        with pytest.raises(error, match=said):
            ps.write(spark.range(3), tmp_path / "t", **options)
        assert not (tmp_path / "t").exists()
    with pytest.raises(UnsupportedError, match="memory://"):
        ps.write(spark.range(3), "memory://t")
    with pytest.raises(UnsupportedError, match="interval year"):
        ps.write(spark.sql("select interval 1 year y"), tmp_path / "t")


@pytest.mark.slow
def test_a_driver_that_is_killed_while_it_commits(spark: Any, ps: Any, tmp_path: Path) -> None:
    """The commit of another process, killed at a step. The next write finishes it, or takes it away."""
    code = """
import os, pickle, sys
from pyparq.datasets.write import commit as committing, folder_commit
from pyparq.spark.writing import commit
job, replies = pickle.load(open(sys.argv[1], "rb"))
def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), 9)
committing.reached = folder_commit.reached = reached
commit(job, replies)
"""
    import pyarrow as pa

    from pyparq.spark.writing import WriteRequest, write_task

    schema = pa.schema([("id", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"id": [7]}, schema)
    for step, counts in (("staged", {10}), ("recorded", {10, 1}), ("moved aside", {10, 1}), ("placed", {10, 1})):
        target = tmp_path / step.replace(" ", "")
        ps.write(spark.range(10).coalesce(1), target)
        job = WriteRequest(str(target), "overwrite", schema, (), {}).begun()
        replies = [write_task([batch], job, 0, "task-1")]
        (tmp_path / "job").write_bytes(pickle.dumps((job, replies)))
        ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "job"), step], capture_output=True)
        assert ran.returncode == -9, ran.stderr
        pyparq.recover_dataset(target)
        assert spark.read.parquet(str(target)).count() in counts
        assert step == "staged" or spark.read.parquet(str(target)).count() == 1


# ---- the data source -----------------------------------------------------------------------------------------------


def test_the_data_source_writes(spark: Any, ps: Any, frame: Any, tmp_path: Path) -> None:
    ps.register(spark)
    target = str(tmp_path / "t")
    some = frame.select("k", "s", "city")
    some.write.format("pyparq").mode("append").options(bloom_filters='["k"]', partition_cols="city").save(target)
    assert rows(spark.read.parquet(target).select("k", "s", "city")) == rows(some)
    file = data_files(tmp_path / "t")[0]
    assert pq.ParquetFile(file).metadata.row_group(0).num_columns == 2
    with pyparq.ParquetFile(file) as opened:
        assert opened.bloom_filter(0, "k") is not None
    some.limit(5).write.format("pyparq").mode("overwrite").save(target)
    assert spark.read.parquet(target).count() == 5
    assert (tmp_path / "t" / "_SUCCESS").exists()
    assert not list((tmp_path / "t").glob("_pyparq*"))


def test_a_failed_write_of_the_data_source(spark: Any, ps: Any, tmp_path: Path) -> None:
    ps.register(spark)
    target = tmp_path / "t"
    ps.write(spark.range(10), target)
    before = {p.name: p.read_bytes() for p in data_files(target)}
    broken = spark.range(0, 100, 1, 2).mapInArrow(fails_in(1, "raise"), "id long")
    with pytest.raises(Exception, match="made to fail"):
        broken.write.format("pyparq").mode("overwrite").save(str(target))
    unchanged(target, before)


def test_a_full_disk_in_a_task(spark: Any, ps: Any, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root to mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(small)], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        ps.write(spark.range(10).coalesce(1), small / "t")
        before = {p.name: p.read_bytes() for p in data_files(small / "t")}
        big = spark.range(300_000).selectExpr("id", "uuid() u")
        with pytest.raises(Exception, match=r"No space left|ENOSPC"):
            ps.write(big, small / "t", mode="overwrite")
        unchanged(small / "t", before)
        assert pyparq.read_table(small / "t", filters=col("id") < 3).num_rows == 3
    finally:
        subprocess.run(["umount", str(small)], check=False)


def test_names_that_pyspark_cannot_look_up(spark: Any, ps: Any, tmp_path: Path) -> None:
    """``DataFrame.mapInArrow`` takes ``x.y`` for a field of ``x``, and two columns ``Id`` and ``id`` for one."""
    frame = spark.createDataFrame([(1, 2, 3, 4)], "`x.y` long, `a``b` long, `Id` long, ` ` long")
    ps.write(frame, tmp_path / "t", partition_cols=["Id"])
    assert pyparq.read_table(tmp_path / "t").to_pylist() == [{"x.y": 1, "a`b": 2, " ": 4, "Id": 3}]
