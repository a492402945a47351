"""Folders of files written by ``write_dataset``: what other readers find there, in every mode and for odd values."""

from __future__ import annotations

import datetime as dt
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import DataError, EncryptionError, OptionError, SchemaError, TargetExistsError, UnsupportedError

pytest_plugins = ("spark_session",)

CITIES = ["Lima", "a/b", "x=y", "50 %", "été", "d:e'f\"g", "[h]", None, "日本", "a\\b"]


def table(rows: int = 200, start: int = 0) -> pa.Table:
    ids = np.arange(start, start + rows)
    return pa.table({
        "id": ids,
        "name": [None if k % 7 == 0 else f"n{k % 13}" for k in range(rows)],
        "year": pa.array([2020 + k % 3 for k in range(rows)], pa.int32()),
        "city": [CITIES[k % len(CITIES)] for k in range(rows)],
    })  # fmt: skip


def ids(folder: Path | str) -> list[int]:
    return sorted(pyparq.dataset(folder).read(["id"]).to_pydict()["id"])


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# ---- values and names ----------------------------------------------------------------------------------------------


def test_everybody_reads_the_same_rows(tmp_path: Path) -> None:
    data = table()
    report = pyparq.write_dataset(data, tmp_path, partition_cols=["year", "city"])
    expected = data.to_pylist()
    assert by_id(pyparq.dataset(tmp_path).read().to_pylist()) == expected
    flavor = pa.dataset.partitioning(pa.schema([("year", pa.int32()), ("city", pa.string())]), flavor="hive")
    assert by_id(pa.dataset.dataset(tmp_path, partitioning=flavor).to_table().to_pylist()) == expected
    pattern = str(tmp_path / "**" / "*.parquet")
    found = duckdb.sql(f"from read_parquet('{pattern}', hive_partitioning=true) order by id").to_arrow_table()
    assert found.select(data.column_names).cast(data.schema).to_pylist() == expected
    frame = pl.scan_parquet(pattern, hive_partitioning=True, hive_schema={"year": pl.Int32, "city": pl.String})
    assert frame.sort("id").collect().to_arrow().select(data.column_names).to_pylist() == expected
    assert (report.num_rows, len(report.files), report.replaced) == (200, 30, ())
    assert report.num_bytes == sum(os.path.getsize(file.path) for file in report.files)
    assert [file.num_rows for file in report.files] == [pq.read_metadata(f.path).num_rows for f in report.files]
    assert pq.read_schema(report.files[0].path).names == ["id", "name"]
    assert pyparq.dataset(tmp_path).count((col("year") == 2021) & (col("city") == "été")) == 7


TYPED = {
    "int8": pa.array([1, -2, None], pa.int8()),
    "uint64": pa.array([2**63, 0, None], pa.uint64()),
    "bool": pa.array([True, False, None]),
    "date": pa.array([dt.date(2024, 2, 29), dt.date(1969, 1, 1), None]),
    "timestamp": pa.array([dt.datetime(2024, 1, 1, 10, 0, 0, 500), dt.datetime(1969, 1, 1), None], pa.timestamp("us")),
    "double": pa.array([1e10, 1.5, None]),
    "float": pa.array([1.1, 1e-5, None], pa.float32()),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(9, 2)),
    "string": pa.array(["007", "é%", None]),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "view": pa.array(["a long text that is not inlined", "b", None], pa.string_view()),
}


DECLARED = {
    "date": "date32", "timestamp": "timestamp[us]", "double": "float64", "float": "float32", "decimal": "decimal(9,2)",
    "dictionary": "string", "view": "string",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_types_of_partition_columns(tmp_path: Path, name: str) -> None:
    """The values come back under the column's type, by pyparq and by pyarrow."""
    values = TYPED[name]
    pyparq.write_dataset(pa.table({"x": [1, 2, 3], "p": values}), tmp_path, partition_cols="p")
    expected = dict(zip([1, 2, 3], values.to_pylist(), strict=True))
    found = pyparq.dataset(tmp_path, partitioning={"p": DECLARED.get(name, name)}).read().to_pydict()
    assert dict(zip(found["x"], found["p"], strict=True)) == expected
    if name == "decimal":
        return  # pyarrow makes no decimals from text
    type_ = pa.string() if name in ("dictionary", "view") else values.type
    flavor = pa.dataset.partitioning(pa.schema([("p", type_)]), flavor="hive")
    theirs = pa.dataset.dataset(tmp_path, partitioning=flavor).to_table().to_pydict()
    assert dict(zip(theirs["x"], theirs["p"], strict=True)) == expected


def test_special_floats_have_folders(tmp_path: Path) -> None:
    data = {"x": [1, 2, 3, 4], "p": [float("nan"), float("inf"), -0.0, 123456789.0]}
    pyparq.write_dataset(data, tmp_path, partition_cols="p")
    assert sorted(os.listdir(tmp_path)) == ["p=-0.0", "p=1.23456789E8", "p=Infinity", "p=NaN"]


def test_the_empty_string_becomes_null(tmp_path: Path) -> None:
    pyparq.write_dataset({"x": [1, 2, 3], "p": ["", None, "a"]}, tmp_path, partition_cols="p")
    assert sorted(os.listdir(tmp_path)) == ["p=__HIVE_DEFAULT_PARTITION__", "p=a"]
    assert pyparq.dataset(tmp_path).read().to_pydict() == {"x": [1, 2, 3], "p": [None, None, "a"]}


@pytest.mark.parametrize(
    ("data", "names", "kind", "told"),
    [
        ({"x": [1], "p": [[1]]}, ["p"], UnsupportedError, "type list"),
        ({"x": [1], "p": [dt.time(1)]}, ["p"], UnsupportedError, "Cast it to a string"),
        ({"x": [1], "p": ["y" * 300]}, ["p"], DataError, "a folder name of 302 bytes"),
        ({"x": [1], "p": ["a\0b"]}, ["p"], DataError, "zero byte"),
        ({"x": [1], "p": ["__HIVE_DEFAULT_PARTITION__"]}, ["p"], DataError, "read back as null"),
        ({"x": [1], "p": [b"\xff"]}, ["p"], DataError, "not UTF-8"),
        ({"x": [1]}, ["x"], DataError, "every column is a partition column"),
        ({"x": [1], "city": [1]}, ["cty"], OptionError, "did you mean 'city'"),
        ({"x": [1]}, ["x", "x"], OptionError, "twice"),
    ],
)
def test_what_cannot_be_a_partition(
    tmp_path: Path, data: Any, names: list[str], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        pyparq.write_dataset(data, tmp_path / "new", partition_cols=names)
    assert list(tmp_path.iterdir()) == []


def test_names_that_need_escapes(tmp_path: Path) -> None:
    pyparq.write_dataset({"x": [1, 2], "a/b": ["c", "d"]}, tmp_path, partition_cols=["a/b"])
    assert sorted(os.listdir(tmp_path)) == ["a%2Fb=c", "a%2Fb=d"]
    assert pyparq.dataset(tmp_path).read().to_pydict() == {"x": [1, 2], "a/b": ["c", "d"]}


@pytest.mark.slow
def test_folders_are_named_as_spark_names_them(tmp_path: Path, spark: Any) -> None:
    data = pa.table({
        "id": [1, 2, 3, 4],
        "s": ["a/b: ü[é]{x}^y", "50 %'\"#*?", "", None],
        "i": pa.array([1, -2, None, 4], pa.int32()),
        "f": [1.5, 1e10, 1e-4, float("nan")],
        "g": pa.array([1.1, 1e7, 123456.7, float("-inf")], pa.float32()),
        "b": [True, False, None, True],
        "d": [dt.date(2024, 2, 29), dt.date(1900, 1, 1), None, dt.date(2024, 1, 1)],
        "t": pa.array([dt.datetime(2024, 1, 1, 10), dt.datetime(2024, 1, 1, 0, 0, 0, 120000), None,
                       dt.datetime(1969, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal("0.00")], pa.decimal128(9, 2)),
    })  # fmt: skip
    names = data.column_names[1:]
    pq.write_table(data, tmp_path / "in.parquet")
    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    frame.write.partitionBy(*names).parquet(str(tmp_path / "theirs"))
    pyparq.write_dataset(data, tmp_path / "ours", partition_cols=names)

    def folders(path: Path) -> set[str]:
        return {str(p.parent.relative_to(path)) for p in path.rglob("*.parquet")}

    assert folders(tmp_path / "ours") == folders(tmp_path / "theirs")
    schema = frame.schema
    read = spark.read.schema(schema).parquet(str(tmp_path / "ours")).orderBy("id").collect()
    expected = spark.read.schema(schema).parquet(str(tmp_path / "theirs")).orderBy("id").collect()
    assert str(read) == str(expected)
    assert [row.id for row in read] == [1, 2, 3, 4]


# ---- modes ---------------------------------------------------------------------------------------------------------


def test_error_takes_only_new_and_empty_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty"):
        pyparq.write_dataset(table(10), tmp_path / name)
        assert ids(tmp_path / name) == list(range(10))
        with pytest.raises(TargetExistsError, match='Give mode="append"'):
            pyparq.write_dataset(table(10), tmp_path / name)
        with pytest.raises(FileExistsError):
            pyparq.write_dataset(table(10), tmp_path / name)
        assert ids(tmp_path / name) == list(range(10))
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        pyparq.write_dataset(table(10), tmp_path / "file")


def test_append(tmp_path: Path) -> None:
    for start in (0, 10, 20):
        pyparq.write_dataset(table(10, start), tmp_path, partition_cols="year", mode="append")
    assert ids(tmp_path) == list(range(30))


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
@pytest.mark.parametrize("remote", [False, True])
def test_files_that_stay_have_the_same_partition_columns(tmp_path: Path, remote: bool, mode: str) -> None:
    """Nobody could read the folder otherwise."""
    top = f"memory://{tmp_path.name}" if remote else str(tmp_path)
    layouts: list[list[str]] = [[], ["year"], ["city"], ["year", "city"]]
    for there in layouts:
        folder = f"{top}/{'-'.join(there)}.d"
        pyparq.write_dataset(table(20), folder, partition_cols=there)
        for names in layouts:
            if names == there or (not names and mode != "append"):
                continue
            with pytest.raises(OptionError, match=re.escape(f"give partition_cols={there}, or another folder")):
                pyparq.write_dataset(table(10, 20), folder, partition_cols=names, mode=mode)
            assert ids(folder) == list(range(20))
        if there or mode == "append":
            pyparq.write_dataset(table(10, 20), folder, partition_cols=there[::-1], mode=mode)
            assert set(ids(folder)) >= set(range(20, 30))
        pyparq.write_dataset(table(10), folder, partition_cols=["city"], mode="overwrite")
        assert ids(folder) == list(range(10))


def test_overwrite_replaces_data_files_and_nothing_else(tmp_path: Path) -> None:
    pq.write_to_dataset(table(50), tmp_path, partition_cols=["year", "city"])
    kept = {"notes.txt": "x", "_SUCCESS": "", "year=2020/.hidden": "y", "year=1999/other.bin": "z"}
    for name, text in kept.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    report = pyparq.write_dataset(table(5, 100), tmp_path, mode="overwrite")
    assert files_in(tmp_path) == sorted([*kept, *(os.path.relpath(f.path, tmp_path) for f in report.files)])
    assert {name: (tmp_path / name).read_text() for name in kept} == kept
    assert len(report.replaced) == 30
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["notes.txt", "_SUCCESS", "year=2020", "year=1999", os.path.basename(report.files[0].path)]
    )  # folders that became empty are gone


def test_overwrite_partitions(tmp_path: Path) -> None:
    pq.write_to_dataset(table(60), tmp_path, partition_cols=["year", "city"])  # é is %C3%A9 there
    old = by_id(pyparq.dataset(tmp_path).read().to_pylist())
    new = pa.table({"id": [900, 901], "name": ["a", "b"], "year": pa.array([2021, 2020], pa.int32()),
                    "city": ["été", None]})  # fmt: skip
    report = pyparq.write_dataset(new, tmp_path, partition_cols=["year", "city"], mode="overwrite_partitions")
    replaced = {(2021, "été"), (2020, None)}
    expected = [row for row in old if (row["year"], row["city"]) not in replaced] + new.to_pylist()
    assert by_id(pyparq.dataset(tmp_path).read().to_pylist()) == expected
    assert len(report.replaced) == 2
    with pytest.raises(OptionError, match="needs partition_cols"):
        pyparq.write_dataset(new, tmp_path, mode="overwrite_partitions")


def test_the_folder_that_is_read_can_be_overwritten(tmp_path: Path) -> None:
    pyparq.write_dataset(table(100), tmp_path, partition_cols="year", max_rows_per_file=7)
    before = by_id(pyparq.dataset(tmp_path).read().to_pylist())
    report = pyparq.write_dataset(pyparq.dataset(tmp_path), tmp_path, partition_cols="year", mode="overwrite")
    assert (len(report.files), len(report.replaced)) == (3, 15)
    assert by_id(pyparq.dataset(tmp_path).read().to_pylist()) == before


def test_data_without_rows(tmp_path: Path) -> None:
    empty = table(0)
    pyparq.write_dataset(empty, tmp_path / "plain")
    assert pyparq.dataset(tmp_path / "plain").read().to_pydict() == {n: [] for n in empty.column_names}
    pyparq.write_dataset(empty, tmp_path / "parts", partition_cols=["year", "city"])
    assert pyparq.dataset(tmp_path / "parts").schema.names == ["id", "name", "year", "city"]
    flavor = pa.dataset.partitioning(empty.schema.empty_table().select(["year", "city"]).schema, flavor="hive")
    assert pa.dataset.dataset(tmp_path / "parts", partitioning=flavor).to_table().schema.names == empty.column_names
    pyparq.write_dataset(table(30), tmp_path / "parts", partition_cols=["year", "city"], mode="append")
    for mode in ("append", "overwrite_partitions"):
        report = pyparq.write_dataset(empty, tmp_path / "parts", partition_cols=["year", "city"], mode=mode)
        assert (report.files, report.replaced) == ((), ())
    assert ids(tmp_path / "parts") == list(range(30))
    report = pyparq.write_dataset(empty, tmp_path / "parts", partition_cols=["year", "city"], mode="overwrite")
    assert (len(report.files), pyparq.dataset(tmp_path / "parts").count()) == (1, 0)
    with pytest.raises(DataError, match="no data and no schema"):
        pyparq.write_dataset(iter([]), tmp_path / "none")
    pyparq.write_dataset(iter([]), tmp_path / "none", schema={"a": "int32"})
    assert str(pyparq.read_schema(tmp_path / "none").field("a").type) == "int32"


@pytest.mark.parametrize("name", ["_delta_log", ".hoodie"])
def test_folders_of_table_formats_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(OptionError, match=r"is a table of .* or give force=True"):
        pyparq.write_dataset(table(5), tmp_path / "year=1", mode="append")
    pyparq.write_dataset(table(5), tmp_path, mode="append", force=True)
    assert len(list(tmp_path.glob("*.parquet"))) == 1


def test_a_link_to_another_folder_is_not_emptied(tmp_path: Path) -> None:
    pyparq.write_dataset(table(5), tmp_path / "other")
    pyparq.write_dataset(table(5), tmp_path / "here")
    (tmp_path / "here" / "linked").symlink_to(tmp_path / "other")
    before = files_in(tmp_path)
    with pytest.raises(OptionError, match="is a link to another folder"):
        pyparq.write_dataset(table(5), tmp_path / "here", mode="overwrite")
    assert files_in(tmp_path) == before


def test_stale_checksums_of_hadoop_go(tmp_path: Path) -> None:
    pyparq.write_dataset(table(5), tmp_path, basename_template="a-{i}.parquet")
    (tmp_path / ".a-00000.parquet.crc").write_bytes(b"crc")
    pyparq.write_dataset(table(5), tmp_path, mode="overwrite", basename_template="a-{i}.parquet")
    assert files_in(tmp_path) == ["a-00000.parquet"]
    with pytest.raises(TargetExistsError, match="a file of this name"):
        pyparq.write_dataset(table(5), tmp_path, mode="append", basename_template="a-{i}.parquet")
    assert ids(tmp_path) == list(range(5))


# ---- sizes, streams, options ---------------------------------------------------------------------------------------


def test_files_end_at_their_limits(tmp_path: Path) -> None:
    report = pyparq.write_dataset(table(100), tmp_path / "rows", max_rows_per_file=30, row_group_size=20)
    assert sorted(file.num_rows for file in report.files) == [10, 30, 30, 30]
    groups = [pq.read_metadata(file.path) for file in report.files]
    assert [[g.row_group(k).num_rows for k in range(g.num_row_groups)] for g in groups[:2]] == [[20, 10], [20, 10]]
    data = {"x": np.random.default_rng(0).integers(0, 1 << 60, 300_000)}
    report = pyparq.write_dataset(data, tmp_path / "bytes", max_bytes_per_file=500_000)
    assert len(report.files) in (5, 6)
    assert all(file.num_bytes < 550_000 for file in report.files)
    assert sum(file.num_rows for file in report.files) == 300_000


def test_a_thousand_partitions_with_few_open_files(tmp_path: Path) -> None:
    rows = np.arange(20_000)
    pieces = [{"id": part, "p": part % 1000} for part in np.split(rows, 10)]
    report = pyparq.write_dataset(iter(pieces), tmp_path, partition_cols="p", max_open_files=8)
    assert len(report.files) == 1000
    assert ids(tmp_path) == rows.tolist()


def test_little_memory_writes_several_row_groups_or_files(tmp_path: Path) -> None:
    pieces = ({"id": part, "p": part % 10} for part in np.split(np.arange(100_000), 20))
    report = pyparq.write_dataset(pieces, tmp_path, partition_cols="p", max_open_files=3, max_memory=200_000)
    assert 10 < len(report.files) < 60
    assert ids(tmp_path) == list(range(100_000))


@pytest.mark.parametrize("options", [{}, {"sort_by": ["id"], "row_group_size": 4}], ids=["as they come", "sorted"])
def test_a_generator_may_use_its_arrays_again(tmp_path: Path, options: dict[str, Any]) -> None:
    """Also where rows that are to be sorted wait in a file that is open already."""

    def pieces() -> Any:
        array = np.zeros(10, np.int64)
        for start in range(0, 100, 10):
            array[:] = np.arange(start, start + 10)
            yield {"id": array}

    pyparq.write_dataset(pieces(), tmp_path, **options)
    assert ids(tmp_path) == list(range(100))


def test_options_reach_the_files(tmp_path: Path) -> None:
    report = pyparq.write_dataset(
        table(),
        tmp_path,
        partition_cols="year",
        compression="zstd",
        bloom_filters=["id"],
        sort_by=[("id", "descending")],
    )
    for file in report.files:
        with pyparq.ParquetFile(file.path) as opened:
            assert opened.metadata.row_group(0).column(0).compression == "ZSTD"
            found = opened.read().to_pydict()["id"]
            assert found == sorted(found, reverse=True)
    data = pa.table({"t": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns", "Europe/Berlin")), "p": [1],
                     "d": pa.array(["a"]).dictionary_encode()})  # fmt: skip
    report = pyparq.write_dataset(data, tmp_path / "types", partition_cols="p")
    assert pq.read_schema(report.files[0].path).field("t").type == data.schema.field("t").type
    assert pq.read_schema(report.files[0].path).field("d").type == data.schema.field("d").type


def test_options_of_others_are_answered(tmp_path: Path) -> None:
    for name in ("existing_data_behavior", "partitioning", "metadata_collector"):
        with pytest.raises(OptionError, match=rf"^write_dataset\(\) has no option '{name}'; "):
            pyparq.write_dataset(table(5), tmp_path / "x", **{name: 1})
    wrong = [{"mode": "ignore"}, {"max_open_files": 0}, {"max_rows_per_file": 0}, {"basename_template": "x.parquet"},
             {"basename_template": "a/{i}"}, {"basename_template": "_{i}"}, {"compression": "no"}]  # fmt: skip
    for options in wrong:
        with pytest.raises(OptionError):
            pyparq.write_dataset(table(5), tmp_path / "x", **options)
    with pytest.raises(OptionError, match="takes the data first"):
        pyparq.write_dataset(str(tmp_path), table(5))
    assert list(tmp_path.iterdir()) == []


def test_encrypted_files(tmp_path: Path) -> None:
    keys = pyparq.EncryptionProperties(footer_key=b"0123456789abcdef")
    pyparq.write_dataset(table(20), tmp_path, partition_cols="year", encryption=keys)
    decryption = pyparq.DecryptionProperties(footer_key=b"0123456789abcdef")
    assert pyparq.dataset(tmp_path, decryption=decryption).count() == 20
    with pytest.raises(EncryptionError):
        pyparq.dataset(tmp_path).read()
    with pytest.raises(OptionError, match="in the clear"):
        pyparq.write_dataset(table(20), tmp_path / "x", encryption=keys, write_metadata=True)


# ---- summaries -----------------------------------------------------------------------------------------------------


def test_summaries(tmp_path: Path) -> None:
    for start, mode in ((0, "error"), (100, "append"), (50, "overwrite_partitions")):
        data = table(30 if start < 100 else 60, start)
        data = data if mode != "overwrite_partitions" else data.filter(pa.compute.equal(data["year"], 2021))
        pyparq.write_dataset(data, tmp_path, partition_cols="year", mode=mode, write_metadata=True)
        summary = pq.read_metadata(tmp_path / "_metadata")
        assert summary.num_rows == pyparq.dataset(tmp_path).count()
        paths = {summary.row_group(k).column(0).file_path for k in range(summary.num_row_groups)}
        assert paths == {os.path.relpath(f, tmp_path) for f in pyparq.dataset(tmp_path).files}
        read = pa.dataset.parquet_dataset(tmp_path / "_metadata", partitioning="hive").to_table()
        assert sorted(read["id"].to_pylist()) == ids(tmp_path)
        assert pq.read_schema(tmp_path / "_common_metadata").names == ["id", "name", "city"]
    pyparq.write_dataset(table(5, 500), tmp_path, partition_cols="year", mode="append")
    assert not (tmp_path / "_metadata").exists()  # it would not know of the new files
    assert not (tmp_path / "_common_metadata").exists()
    with pytest.raises(SchemaError, match="_metadata needs files of one schema"):
        pyparq.write_dataset({"other": [1], "year": [1]}, tmp_path, partition_cols="year", mode="append",
                             write_metadata=True)  # fmt: skip
    assert len(ids(tmp_path)) > 0


# ---- URLs ----------------------------------------------------------------------------------------------------------


def test_urls(tmp_path: Path) -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    url = f"memory://{tmp_path.name}/data"
    pyparq.write_dataset(table(30), url, partition_cols="year")
    with pytest.raises(TargetExistsError):
        pyparq.write_dataset(table(30), url, partition_cols="year")
    pyparq.write_dataset(table(30, 30), url, partition_cols="year", mode="append", write_metadata=True)
    assert sorted(pyparq.dataset(url + "/").read().to_pydict()["id"]) == list(range(60))
    assert pq.read_metadata(fs.open(f"{url}/_metadata")).num_rows == 60
    one = table(30, 100).filter(pa.compute.equal(table(30)["year"], 2021))
    report = pyparq.write_dataset(one, url, partition_cols="year", mode="overwrite_partitions")
    assert (len(report.files), len(report.replaced)) == (1, 2)
    assert pyparq.dataset(url + "/").count() == 50
    assert not fs.exists(f"{url}/_metadata")
    before = sorted(fs.find(url))

    def fails() -> Any:
        yield {"id": np.arange(10), "year": np.arange(10)}
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        pyparq.write_dataset(
            fails(), url, partition_cols="year", mode="overwrite", row_group_size=1, max_rows_per_file=1
        )
    assert sorted(fs.find(url)) == before
    report = pyparq.write_dataset(table(5), url, mode="overwrite")
    assert len(fs.find(url)) == 1
    assert len(report.replaced) == 5


def test_an_s3_server(tmp_path: Path) -> None:
    from s3_server import BUCKET, serve

    with serve() as server:
        url = f"s3://{BUCKET}/data"
        where: dict[str, Any] = {"storage_options": server.options, "partition_cols": ["year", "city"]}
        pyparq.write_dataset(table(60), url, **where)
        with pytest.raises(TargetExistsError):
            pyparq.write_dataset(table(60), url, **where)
        assert (
            by_id(pyparq.dataset(url + "/", storage_options=server.options).read().to_pylist()) == table(60).to_pylist()
        )
        before = set(server.fs().find(f"{BUCKET}/data"))
        new = table(30, 100)
        report = pyparq.write_dataset(new, url, mode="overwrite", **where)
        after = set(server.fs().find(f"{BUCKET}/data"))
        assert not before & after
        assert (len(report.files), len(report.replaced)) == (len(after), len(before))
        assert by_id(pyparq.dataset(url + "/", storage_options=server.options).read().to_pylist()) == new.to_pylist()
        server.refuse = lambda method, path: method in ("PUT", "POST") and "Lima" in path
        with pytest.raises(PermissionError, match=r"403|AccessDenied"):
            pyparq.write_dataset(table(60), url, mode="overwrite", **where)
        assert set(server.fs().find(f"{BUCKET}/data")) == after
