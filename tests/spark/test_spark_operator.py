"""What an operator of Spark looks for: the options of Spark's readers, tables of the catalog, lines in the log."""

from __future__ import annotations

import errno
import logging
import os
import time
from pathlib import Path
from typing import Any

import failing_tasks
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import DataError, OptionError, PlanError, SkippedFileWarning, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu")
START = 1_700_000_000


def rows_of(frame: Any) -> Any:
    return [(f.name, f.dataType.simpleString()) for f in frame.schema], sorted(map(str, frame.collect()))


def three_ways(ps: Any, session: Any, folder: Path, schema: str | None = None, **options: str) -> list[Any]:
    """What Spark's reader, the data source and ``ps.read`` give."""
    ps.register(session)
    found = []
    for name in ("parquet", "pyparq"):
        reader = session.read.format(name).options(**options)
        reader = reader if schema is None else reader.schema(schema)
        own = {"time_zone": session.conf.get("spark.sql.session.timeZone")} if name == "pyparq" else {}
        found.append(rows_of(reader.options(**own).load(str(folder))))
    if schema is None:
        found.append(rows_of(ps.read(session, folder, **options)))
    return found


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """Three files, an hour between each and the next, in folders whose values are text only together."""
    folder = tmp_path / "dated"
    for k, name in enumerate(("n=1/a-1.parquet", "n=1/b-1.parquet", "n=x/b-2.parquet")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [k]}), folder / name)
        os.utime(folder / name, (START + 3600 * k,) * 2)
    return folder


@pytest.mark.sweep(6)
@pytest.mark.parametrize("glob", ["a-*", "b*", "*.{parquet,x}", "[ab]-1*", "a-?.parquet", "*-[!1].*", "*-[^1].*",
                                  "{a,b}-1.parquet"])  # fmt: skip
def test_path_glob_filter(usual: Any, ps: Any, dated: Path, glob: str) -> None:
    """Partition columns have the types that all folders give."""
    spark, *ours = three_ways(ps, usual, dated, pathGlobFilter=glob)
    assert ours == [spark, spark]


def test_files_of_a_time(usual: Any, ps: Any, dated: Path) -> None:
    """In UTC as Spark does. In other zones Spark 4.3 compares with the wrong time: here it is the session's clock."""
    usual.conf.set("spark.sql.session.timeZone", "UTC")
    clocks = ("2023-11-14T22:13:20", "2023-11-14T22:13:19", "2023-11-14T23:13:20", "2023-11-14 23:00:00", "2023-11-15")
    for clock in clocks:
        for option in ("modifiedAfter", "modifiedBefore"):
            spark, ours = three_ways(ps, usual, dated, "a bigint, n string", **{option: clock})
            assert ours == spark, (option, clock)
    for zone, clock in zip(ZONES, ("2023-11-14T18:00", "2023-11-15T00:00", "2023-11-15T10:00", "2023-11-15T04:45"),
                           strict=True):  # fmt: skip
        usual.conf.set("spark.sql.session.timeZone", zone)
        assert ps.count(usual, dated, modifiedBefore=clock) == 1, zone
        assert ps.count(usual, dated, modifiedAfter=clock) == 2, zone
        assert ps.count(usual, dated, modifiedAfter="2023-11-14T23:00Z", modifiedBefore="2023-11-14T23:30Z") == 1
    with pytest.raises(OptionError, match="modifiedAfter"):
        ps.count(usual, dated, modifiedAfter="yesterday")
    with pytest.raises(FileNotFoundError, match="no file is left by pathGlobFilter"):
        ps.read(usual, dated, modifiedAfter="2030-01-01")
    ps.register(usual)
    with pytest.raises(Exception, match="has no time zone"):
        usual.read.format("pyparq").option("modifiedAfter", "2023-11-14T23:00").load(str(dated)).count()


def test_recursive_file_lookup(usual: Any, ps: Any, dated: Path, tmp_path: Path) -> None:
    nested = tmp_path / "nested" / "sub" / "deep"
    nested.mkdir(parents=True)
    for k, folder in enumerate((nested.parent.parent, nested.parent, nested)):
        pq.write_table(pa.table({"a": [k]}), folder / f"{k}.parquet")
    for folder in (dated, tmp_path / "nested"):
        for value in ("true", "false"):
            spark, *ours = three_ways(ps, usual, folder, recursiveFileLookup=value)
            assert ours == [spark, spark], (folder, value)
    assert ps.count(usual, tmp_path / "nested") == 3  # without the option, all folders are read


def test_files_that_cannot_be_read(usual: Any, ps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "a.parquet")
    (folder / "b.parquet").write_bytes(b"PAR1rubbishPAR1")
    with pytest.warns(SkippedFileWarning):
        spark, *ours = three_ways(ps, usual, folder, ignoreCorruptFiles="true")
    assert ours == [spark, spark]
    with pytest.raises(pyparq.CorruptFileError):
        ps.read(usual, folder, ignoreMissingFiles=True)
    usual.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.warns(SkippedFileWarning):
        assert ps.count(usual, folder) == usual.read.parquet(str(folder)).count() == 1
    with pytest.raises(pyparq.CorruptFileError):
        ps.count(usual, folder, ignoreCorruptFiles="false")
    with pytest.raises(pyparq.CorruptFileError):
        ps.count(usual, folder, on_error="raise")
    with pytest.raises(OptionError, match="names of Spark's for on_error"):
        ps.count(usual, folder, on_error="skip", ignoreMissingFiles="true")


@pytest.mark.parametrize("how", ["option", "setting"])
def test_files_that_are_gone(usual: Any, ps: Any, tmp_path: Path, how: str) -> None:
    for k in range(2):
        (tmp_path / "t").mkdir(exist_ok=True)
        pq.write_table(pa.table({"a": [k]}), tmp_path / "t" / f"{k}.parquet")
    strict = ps.read(usual, tmp_path / "t", small=0)
    if how == "setting":
        usual.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    given = {"ignoreMissingFiles": "true"} if how == "option" else {}
    frame = ps.read(usual, tmp_path / "t", small=0, skipped_to=tmp_path / "notes", **given)
    (tmp_path / "t" / "1.parquet").unlink()
    assert [row.a for row in frame.collect()] == [0]
    notes = usual.read.schema("path string, error string").json(str(tmp_path / "notes")).collect()
    assert [Path(note.path).name for note in notes] == ["1.parquet"]
    with pytest.raises(Exception, match=r"PlanError: the file is gone since this DataFrame was made.*1\.parquet"):
        strict.collect()


def test_merge_schema(usual: Any, ps: Any, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in "ab":
        pq.write_table(pa.table({name: [1]}), tmp_path / "t" / f"{name}.parquet")
    spark, *ours = three_ways(ps, usual, tmp_path / "t", mergeSchema="true")
    assert ours == [spark, spark]
    assert ps.read(usual, tmp_path / "t", mergeSchema="false").columns == ["a", "b"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("option", ["basePath", "int96RebaseMode", "datetimeRebaseMode", "versionAsOf"])
def test_options_without_an_equal_say_what_to_use(usual: Any, ps: Any, dated: Path, option: str) -> None:
    with pytest.raises(OptionError, match=f"pyparq has no option {option}: "):
        ps.read(usual, dated, **{option: "x"})
    ps.register(usual)
    with pytest.raises(Exception, match="pyparq has no option"):
        usual.read.format("pyparq").option(option, "x").load(str(dated)).schema  # noqa: B018


DECLARED = [
    "i bigint", "I int", "i double", "f double", "i int, gone string", "s string, I bigint, absent array<int>",
    "i decimal(20,0)", "m decimal(18,2)", "sh int", "sh bigint", "st struct<x:bigint>", "st struct<x:int,y:string>",
    "st struct<Y:string>", "id bigint not null", "i smallint", "d timestamp_ntz, i int", "ld array<timestamp_ntz>",
    "sd struct<x:timestamp_ntz>", "md map<timestamp_ntz,timestamp_ntz>",
]  # fmt: skip


@pytest.fixture(scope="module")
def typed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed") / "t"
    spark.sql("""select id, if(id = 2, null, cast(id as int)) i, cast(id as float) f, cast(id as string) S,
        cast(id as smallint) sh, cast(id as decimal(9,2)) m, named_struct('x', cast(id as int)) st,
        if(id = 1, null, date_add(date'1899-12-31', cast(id * 40000 as int))) d, array(date'2024-03-10', null) ld,
        named_struct('x', date'0001-01-01') sd, map(date'2024-11-03', date'9999-12-31') md from range(4)""").coalesce(
        1
    ).write.parquet(str(folder))
    return folder


@pytest.mark.sweep(12)
@pytest.mark.parametrize("schema", DECLARED)
def test_a_declared_schema(usual: Any, ps: Any, typed: Path, schema: str) -> None:
    """The data source widens, does not tell case apart, and fills absent columns with null, as Spark's reader does."""
    spark, ours = three_ways(ps, usual, typed, schema)
    assert ours == spark


@pytest.mark.parametrize("condition", [
    "d > '1899-12-31 00:00:00.5'", "d = '2009-07-07'", "d = '2009-07-07 00:00:01'", "d <= '2009-07-07 23:59:59'",
    "d is null", "d in ('1899-12-31', '2009-07-07 12:00:00')", "not (d = '1899-12-31')",
])  # fmt: skip
def test_filters_of_days_that_are_declared_as_timestamps(usual: Any, ps: Any, typed: Path, condition: str) -> None:
    schema = "id bigint, d timestamp_ntz"
    own = usual.read.schema(schema).parquet(str(typed)).where(condition)
    frame = ps.read(usual, typed, schema=schema, filters=condition)
    assert rows_of(frame) == rows_of(own)
    assert ps.count(usual, typed, condition, schema=schema) == own.count()


def test_a_declared_schema_with_partitions(usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.range(6).selectExpr("id", "id % 2 g", "concat('k', id % 2) w").write.partitionBy("g").parquet(
        str(tmp_path / "t")
    )
    for schema in (
        "id bigint, w string, g string",
        "ID bigint, w string, g double",
        "w string, g int",
        "w string, g bigint",
    ):
        spark, ours = three_ways(ps, usual, tmp_path / "t", schema)
        assert ours == spark, schema


def test_a_column_called_not_null_that_has_nulls(usual: Any, ps: Any, typed: Path) -> None:
    ps.register(usual)
    with pytest.raises(Exception, match=r"the declared schema says NOT NULL, and there are nulls.*column i"):
        usual.read.format("pyparq").schema("i int not null").load(str(typed)).collect()
    with pytest.raises(Exception, match=r"the data is int32, but the schema says date32.*column i"):
        usual.read.format("pyparq").schema("i date").load(str(typed)).collect()
    assert rows_of(usual.read.format("pyparq").schema("id int").load(str(typed)))[0] == [("id", "int")]


def test_each_job_has_a_line_in_the_log(usual: Any, ps: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pyparq.spark")
    folder = tmp_path / "t"
    ps.write(usual.range(40).selectExpr("id", "id % 2 g").coalesce(1), folder, partition_cols="g", mode="append")
    ps.write(usual.range(40, 80).selectExpr("id", "id % 2 g").coalesce(1), folder, partition_cols="g", mode="append")
    ps.read(usual, folder, filters="id = 7")
    ps.read(usual, folder, filters="g = 1", small=0)
    ps.count(usual, folder)
    ps.count(usual, folder, "id > 70")
    ps.compact(usual, folder)
    ps.add_indexes(usual, folder, bloom_filters=["id"])
    ps.verify(usual, folder)
    lines = [record.getMessage() for record in caplog.records if record.name == "pyparq.spark"]
    said = [
        rf"write (append) {folder}: 2 files, 40 rows, ", f"write (append) {folder}: 2 files, 40 rows, ",
        f"read {folder} where id = 7: 2 of 4 files left, 2 of 2 row groups, at most 40 rows in pages of ",
        f"read {folder} where g = 1: 2 of 4 files left, 2 of 2 row groups, at most 40 rows in pages of ",
        f"count {folder}: footers alone answer; 80 rows, 0 tasks",
        f"count {folder} where id > 70: 2 of 4 files left, 2 of 2 row groups, ",
        f"write (overwrite) {folder}: 2 files, 80 rows, ", f"add_indexes (2 ok) {folder}: 2 files, 80 rows, ",
        f"verify (2 ok) {folder}: 2 files, 80 rows, ",
    ]  # fmt: skip
    assert [line[: len(text)] for line, text in zip(lines, said, strict=True)] == said
    assert lines[2].endswith("answered without a job")
    assert lines[3].endswith("tasks will read it")


def test_the_plan_says_what_is_read(
    usual: Any, ps: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line of the log, as the function's name. It is counted by hand here: six pages of each column are left."""
    caplog.set_level(logging.INFO, "pyparq.spark")
    folder = tmp_path / "ü t"
    ids = pa.table({"id": range(40_000), "s": [f"{k:06}" for k in range(40_000)]})
    folder.mkdir()
    for k in range(3):
        place = folder / f"{k}.parquet"
        pyparq.write_table(ids, place, row_group_size=10_000, max_rows_per_page=1_000, compression="none")
        ids = pa.table({"id": [i + 40_000 * (k + 1) for i in range(40_000)], "s": ids["s"]})
    frame = ps.read(usual, folder, filters="id between 52500 and 57499", small=0, engine="pyparq")
    frame.explain()
    size = sum(file.stat().st_size for file in folder.iterdir())
    plan = pyparq.dataset(folder).plan(["id", "s"], (pyparq.col("id") >= 52_500) & (pyparq.col("id") <= 57_499))
    said = (
        f"read {folder} where id between 52500 and 57499: 1 of 3 files left, 1 of 4 row groups, 12 pages of chunks "
        f"that are read in part, at most 6,000 rows in pages of {plan.num_bytes:,} bytes of {size:,} in all files; "
        'by pyparq, as engine="pyparq": 1 tasks will read it'
    )
    assert f"MapInArrow pyparq {said}(" in capsys.readouterr().out
    assert caplog.records[-1].getMessage() == said
    assert frame.count() == 5_000
    ui = usual._jsparkSession.sharedState().statusStore()  # what the UI shows; it is filled a moment later
    assert any(said in ui.executionsList().last().physicalPlanDescription() or time.sleep(0.1) for _ in range(100))
    ps.read(usual, folder, columns="id", engine="spark", filters="id >= 0").explain()
    assert "PushedFilters: [IsNotNull(id), GreaterThanOrEqual(id,0)]" in capsys.readouterr().out
    ps.read(usual, folder, filters=pyparq.col("id").isin([*range(9_000)]), small=0, engine="pyparq").explain()
    assert len(capsys.readouterr().out) < 2_000


def test_no_line_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    """The line of a read stands in Spark's plans and in its UI too."""
    from pyparq.spark.job_log import tell_job, tell_read

    caplog.set_level(logging.INFO, "pyparq.spark")
    url = "https://user:hidden@host/a.parquet?X-Amz-Signature=hidden"
    for source in (url, [url, "b"]):
        assert "https://host/a.parquet" in tell_read("read", source, None, None, "1 tasks will read it")
        tell_job("compact", source, 1, 2, 3)
    assert len(caplog.records) == 4
    assert "hidden" not in caplog.text


@pytest.mark.slow
def test_the_data_source_logs_on_its_worker(usual: Any, ps: Any, dated: Path) -> None:
    """Where Spark collects what its workers log."""
    ps.register(usual)
    usual.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    assert usual.read.format("pyparq").option("filters", "a >= 1").load(str(dated)).count() == 2
    logs = usual.tvf.python_worker_logs().where("logger = 'pyparq.spark' and level = 'INFO'").collect()
    said = [row.msg for row in logs if str(dated) in row.msg]
    assert len(said) == 1
    assert said[0].startswith(f"read {dated} where a >= 1: 2 of 3 files left, 2 of 2 row groups, at most 2 rows in ")
    assert said[0].endswith("1 tasks will read it")


def test_a_column_of_paths(usual: Any, ps: Any, dated: Path) -> None:
    """As ``_metadata.file_path`` of Spark's reader, which is a URL."""
    spark = usual.read.parquet(str(dated)).selectExpr("a", "_metadata.file_path as p").collect()
    wanted = sorted((row.a, row.p.removeprefix("file:").replace("///", "/")) for row in spark)
    ps.register(usual)
    for small in (0, 1 << 20):
        frame = ps.read(usual, dated, columns=["a", "p"], filename="p", small=small)
        assert sorted((row.a, row.p) for row in frame.collect()) == wanted
    loaded = usual.read.format("pyparq").options(filename="p").load(str(dated)).select("a", "p")
    assert sorted((row.a, row.p) for row in loaded.collect()) == wanted


def test_spark_tells_where_its_own_rows_come_from(usual: Any, ps: Any, tmp_path: Path) -> None:
    """``_metadata`` and ``input_file_name()`` of what Spark's reader reads, with the numbers of the rows."""
    dated = tmp_path / "t"
    usual.range(0, 40, 1, 2).selectExpr("id a", "id % 3 n").write.partitionBy("n").parquet(str(dated))
    more = ("a", "_metadata.file_path as p", "_metadata.row_index as r", "input_file_name() as f")
    wanted = sorted(map(str, usual.read.parquet(str(dated)).where("a % 2 = 1").selectExpr(*more).collect()))
    frame = ps.read(usual, dated, columns="a", engine="spark").where("a % 2 = 1").selectExpr(*more)
    assert sorted(map(str, frame.collect())) == wanted
    ours = ps.read(usual, dated, columns="a", engine="pyparq", small=0)
    assert [row.f for row in ours.selectExpr("input_file_name() f").distinct().collect()] == [""]
    with pytest.raises(Exception, match=r"`_metadata`\.`row_index` cannot be resolved"):
        ours.selectExpr("_metadata.row_index")


@pytest.fixture
def sales(usual: Any, ps: Any, tmp_path: Path) -> Any:
    """A partitioned table of the catalog, and its folder."""
    folder = tmp_path / "sales"
    ps.write(usual.range(10).selectExpr("id", "id % 2 g"), folder, partition_cols="g")
    usual.sql(f"create table operator_sales (id bigint, g bigint) using parquet partitioned by (g) location '{folder}'")
    yield folder
    usual.sql("drop table operator_sales")


@pytest.mark.slow
def test_the_catalog_learns_of_what_is_written(usual: Any, ps: Any, sales: Path) -> None:
    def found() -> tuple[int, list[str]]:
        table = usual.table("operator_sales")
        return table.count(), sorted(row[0] for row in usual.sql("show partitions operator_sales").collect())

    frame = usual.range(30).selectExpr("id", "id % 3 g")
    assert found() == (0, [])
    ps.write(frame, sales, mode="append", partition_cols="g")
    assert found() == (0, [])
    ps.write(frame, sales, mode="append", partition_cols="g", table="operator_sales")
    assert found() == (70, ["g=0", "g=1", "g=2"])
    ps.compact(usual, sales, table="default.operator_sales")
    assert found() == (70, ["g=0", "g=1", "g=2"])
    ps.rewrite(usual, sales, filters="g < 2", table="spark_catalog.default.operator_sales")
    assert found() == (50, ["g=0", "g=1"])
    ps.write(frame.where("g = 2"), sales, mode="overwrite", partition_cols="g", table="operator_sales")
    assert found() == (10, ["g=2"])
    ps.upsert(usual, sales, usual.createDataFrame([(100, 5)], "id bigint, g bigint"), "id")
    assert found() == (10, ["g=2"])
    ps.update(usual, sales, "id = 100", {"id": 101}, table="operator_sales")
    assert found() == (11, ["g=2", "g=5"])
    ps.delete(usual, sales, "g = 5", table="operator_sales", dry_run=True)
    ps.delete(usual, sales, "g = 5", table="operator_sales")
    assert found() == (10, ["g=2"])
    ps.upsert(usual, sales, usual.createDataFrame([(2, 7)], "id bigint, g bigint"), "id", table="operator_sales")
    assert found() == (10, ["g=2", "g=7"])
    assert usual.table("operator_sales").where("g = 7").first().id == 2
    own = sorted(map(str, usual.read.parquet(str(sales)).selectExpr("id", "cast(g as bigint) g").collect()))
    assert sorted(map(str, usual.table("operator_sales").collect())) == own


def test_tables_that_are_not_there(usual: Any, ps: Any, sales: Path, tmp_path: Path) -> None:
    frame = usual.range(3).selectExpr("id", "id g")
    for name, said in (("nope", "no table nope"), ("a b", "must be the name"), ("t; drop table t", "must be the name")):
        with pytest.raises(OptionError, match=said):
            ps.write(frame, tmp_path / "new", table=name)
    with pytest.raises(OptionError, match=r"lie in .*sales, not in .*new"):
        ps.write(frame, tmp_path / "new", table="operator_sales")
    assert not (tmp_path / "new").exists()
    with pytest.raises(OptionError, match="no table nope"):
        ps.compact(usual, sales, table="nope")
    with pytest.raises(OptionError, match="no table nope"):
        ps.rewrite(usual, sales, table="nope")
    with pytest.raises(OptionError, match="no table nope"):
        ps.delete(usual, sales, "id = 1", table="nope")
    assert not list(sales.glob("_pyparq*"))


def test_a_compaction_keeps_its_files_for_readers(usual: Any, ps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for k in range(4):
        ps.write(usual.range(k * 100, k * 100 + 100).coalesce(1), folder, mode="append")
    before = ps.read(usual, folder, small=0)
    ps.compact(usual, folder, keep_old="1h")
    assert sorted(row.id for row in before.collect()) == list(range(400))
    assert ps.count(usual, folder) == usual.read.parquet(str(folder)).count() == 400
    assert len(list(folder.glob("_pyparq_replaced-*/[0-3]"))) == 4
    ps.compact(usual, folder, keep_old=3600)
    assert len(list(folder.glob("_pyparq_replaced-*/[0-3]"))) == 4
    ps.write(usual.range(400, 410).coalesce(1), folder, mode="append")
    later = ps.read(usual, folder, small=0)
    ps.compact(usual, folder, keep_old="0.001s")
    time.sleep(0.1)
    ps.compact(usual, folder)
    assert len(list(folder.glob("_pyparq_replaced-*"))) == 1  # that of the first run
    with pytest.raises(Exception, match="PlanError: the file is gone since this DataFrame was made"):
        later.collect()
    for bad in ("soon", -1, True, "1y"):
        with pytest.raises(OptionError, match="keep_old must be"):
            ps.compact(usual, folder, keep_old=bad)
    with pytest.raises(OptionError, match="needs a file system"):
        ps.compact(usual, "s3://bucket/t", keep_old="1h", storage_options={"anon": True})


# ---- errors of tasks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("work", "kind", "said"), [
    (failing_tasks.full_disk, OSError, r"^\[Errno 28\] No space left on device: '/data/new.parquet'$"),
    (failing_tasks.lossy_cast, DataError, "^Casting from timestamp.* would lose data: 1$"),
    (failing_tasks.lossy_stream, DataError, "would lose data"),
    (failing_tasks.no_memory, pyparq.LimitError, "there is not enough memory"),
])  # fmt: skip
def test_errors_of_the_system_in_tasks(usual: Any, ps: Any, work: Any, kind: Any, said: str) -> None:
    from pyparq.spark.tasks import OF_WRITES, in_tasks, over_partitions

    with pytest.raises(kind, match=said):
        in_tasks(usual, work, [(1,)], errors=OF_WRITES)
    with pytest.raises(kind, match=said):
        over_partitions(usual.range(3), work, errors=OF_WRITES)


def test_errors_of_the_users_own_functions_stay_theirs(usual: Any, ps: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    def fails(batches: Any) -> Any:
        raise OSError(28, "the user's own")
        yield from batches

    with pytest.raises(PySparkException, match="the user's own"):
        ps.write(usual.range(3).mapInArrow(fails, "id long"), tmp_path / "t")
    assert not (tmp_path / "t").exists()


@pytest.mark.slow
def test_another_version_of_pyparq_on_the_workers(
    usual: Any, ps: Any, typed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver says another version: its workers have the one that is installed."""
    from pyparq.spark import tasks

    monkeypatch.setattr(tasks, "__version__", "9.9")
    said = "the driver has pyparq 9.9, and the Python of Spark's workers .* has 0.* install the same version"
    with pytest.raises(UnsupportedError, match=said):
        ps.write(usual.range(3), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UnsupportedError, match=said):
        ps.verify(usual, typed)
    with pytest.raises(Exception, match=said):
        ps.read(usual, typed, small=0).collect()
    ps.register(usual)
    with pytest.raises(Exception, match=said):
        usual.read.format("pyparq").load(str(typed)).collect()
    monkeypatch.undo()
    ps.register(usual)
    assert usual.read.format("pyparq").load(str(typed)).count() == 4


def test_a_disk_that_is_full_leaves_nothing(usual: Any, ps: Any, tmp_path: Path) -> None:
    """A real one, of one MiB, where it can be mounted."""
    import subprocess

    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs root to mount a small file system")
    try:
        ps.write(usual.range(100), place / "t")
        frame = usual.range(1_000_000).selectExpr("id", "uuid() u")
        with pytest.raises(OSError, match="No space left on device") as caught:
            ps.write(frame, place / "t", mode="overwrite")
        assert caught.value.errno == errno.ENOSPC
        assert sorted(row.id for row in ps.read(usual, place / "t").collect()) == list(range(100))
        assert not list((place / "t").glob("_pyparq*"))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_plan_error_is_not_a_task_error() -> None:
    from pyparq.spark.tasks import NOTE, of_task

    assert of_task("Traceback\nValueError: x") is None
    assert of_task(f"{NOTE}{{}}") is None
    assert of_task(f"{NOTE}{{cut off") is None
    assert of_task(f'a\n{NOTE}{{"kind": "Nobody", "message": "x"}}\n') is None
    assert isinstance(PlanError("x"), OptionError)
