"""Folders, globs and lists as one table, judged by pyarrow, DuckDB and polars on the same files."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import (
    ChangedFileError,
    ColumnNotFoundError,
    CorruptFileError,
    DataError,
    FilterError,
    ManagedTableWarning,
    OptionError,
    SchemaError,
    SkippedFileWarning,
)

CITIES = ["Lima", "a/b", "x=y", "50 %", "été", "d:e'f\"g", "[h]", None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hive partitions as pyarrow writes them: two levels, odd names, nulls."""
    path = tmp_path_factory.mktemp("data")
    rows = 400
    table = pa.table({
        "id": np.arange(rows),
        "name": [None if k % 7 == 0 else f"n{k % 13}" for k in range(rows)],
        "year": pa.array([2020 + k % 3 for k in range(rows)], pa.int32()),
        "city": [CITIES[k % len(CITIES)] for k in range(rows)],
    })  # fmt: skip
    pa.dataset.write_dataset(
        table, path, format="parquet", partitioning=pa.dataset.partitioning(
            pa.schema([("year", pa.int32()), ("city", pa.string())]), flavor="hive"),
    )  # fmt: skip
    return path


def rows_of(table: Any, key: str = "id") -> list[dict[str, Any]]:
    rows = table.to_pylist()
    return sorted(rows, key=lambda row: (row[key] is None, row[key]))


def theirs(folder: Path, columns: list[str] | None = None, filters: Any = None) -> list[dict[str, Any]]:
    partitioning = pa.dataset.HivePartitioning(pa.schema([("year", pa.int32()), ("city", pa.string())]))
    return rows_of(pa.dataset.dataset(folder, partitioning=partitioning).to_table(columns, filters))


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


# ---- what belongs to it, and partitions ----------------------------------------------------------------------------


def test_values_are_pyarrows(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    assert ds.schema.names == ["id", "name", "year", "city"]
    assert [str(f.type) for f in ds.schema.fields[2:]] == ["int32", "string"]
    expected = theirs(folder)
    assert rows_of(ds.to_table()) == expected
    assert rows_of(pyparq.read_table(folder)) == expected
    assert rows_of(pyparq.read_table(str(folder / "**" / "*.parquet"))) == expected
    assert pyparq.read_schema(folder).names == ds.schema.names


PA = pa.compute.field
FILTERS = {
    "a partition": (col("year") == 2021, PA("year") == 2021),
    "two": ((col("year") > 2020) & (col("city") == "a/b"), (PA("year") > 2020) & (PA("city") == "a/b")),
    "with a column": ((col("year") == 2020) & (col("id") < 50), (PA("year") == 2020) & (PA("id") < 50)),
    "or": ((col("year") == 2020) | (col("id") < 50), (PA("year") == 2020) | (PA("id") < 50)),
    "null": (col("city").is_null(), PA("city").is_null()),
    "not null": (col("city").is_not_null() & (col("name") == "n3"), PA("city").is_valid() & (PA("name") == "n3")),
    "not": (~(col("city") == "Lima"), ~(PA("city") == "Lima")),
    "isin": (col("city").isin(["Lima", "x=y"]), PA("city").isin(["Lima", "x=y"])),
    "not or": (~((col("city") == "Lima") | (col("id") > 100)), ~((PA("city") == "Lima") | (PA("id") > 100))),
    "nothing": (col("year") == 1999, PA("year") == 1999),
    "between": (col("year").between(2021, 2022), (PA("year") >= 2021) & (PA("year") <= 2022)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_pyarrows(folder: Path, name: str) -> None:
    ours, other = FILTERS[name]
    ds = pyparq.dataset(folder)
    expected = theirs(folder, None, other)
    assert rows_of(ds.read(filters=ours)) == expected
    assert ds.count(ours) == len(expected)
    assert rows_of(pa.table(ds.scan(filters=ours))) == expected
    found = [row for batch in ds.iter_batches(7, filters=ours) for row in pa.record_batch(batch).to_pylist()]
    assert sorted(found, key=lambda row: row["id"]) == expected


def test_partitions_rule_out_files_before_they_are_opened(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "copied"))
    rows = (col("year") == 2021) & (col("city") == "Lima")
    expected = pyparq.dataset(copied).read(filters=rows)
    asked, none = pyparq.dataset(copied), pyparq.dataset(copied)
    for file in copied.rglob("*.parquet"):
        if "year=2021/city=Lima" not in str(file):
            file.unlink()
    assert asked.read(filters=rows).to_arrow() == expected.to_arrow()
    assert asked.count(rows) == expected.num_rows > 0
    with pytest.raises(FileNotFoundError):
        none.read(filters=col("year") == 2021)
    explained = pyparq.dataset(folder).explain(filters=col("year") == 2021)
    assert (explained.files, explained.files_opened) == (24, 8)
    assert "of which partitions rule out 16" in str(explained)


def test_types_of_partitions(tmp_path: Path) -> None:
    for text in ("007", "8"):
        write(tmp_path / "zip" / f"z={text}" / "f.parquet", x=[1])
    assert pyparq.dataset(tmp_path / "zip").read().to_pydict() == {"x": [1, 1], "z": ["007", "8"]}
    assert pyparq.dataset(tmp_path / "zip", partitioning={"z": "int16"}).read().to_pydict()["z"] == [7, 8]
    assert pyparq.dataset(tmp_path / "zip", partitioning=None).schema.names == ["x"]
    assert pyparq.dataset(tmp_path / "zip", partitioning=[("z", "string")]).read()["z"].to_pylist() == ["z=007", "z=8"]
    for text in ("1", str(2**40)):
        write(tmp_path / "wide" / f"w={text}" / "f.parquet", x=[1])
    assert str(pyparq.dataset(tmp_path / "wide").schema.field("w").type) == "int64"
    declared = {"d": "date32", "t": "timestamp[us, UTC]", "b": "bool", "f": "float64", "m": "decimal(5,2)"}
    inner = "d=2024-02-29/t=2024-01-01 10%3A00%3A00/b=true/f=1.5/m=1.25"
    write(tmp_path / "declared" / inner / "f.parquet", x=[1])
    (row,) = pyparq.dataset(tmp_path / "declared", partitioning=declared).read().to_pylist()
    time = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    assert list(row.values()) == [1, dt.date(2024, 2, 29), time, True, 1.5, Decimal("1.25")]
    with pytest.raises(DataError, match=r"a partition value is not a int32.*column d"):
        pyparq.dataset(tmp_path / "declared", partitioning={"d": "int32"})


def test_plain_folders(tmp_path: Path) -> None:
    for year in ("2020", "2021"):
        write(tmp_path / year / "Lima" / "f.parquet", x=[1])
    ds = pyparq.dataset(tmp_path, partitioning=["year", "city"])
    assert ds.read().to_pydict() == {"x": [1, 1], "year": [2020, 2021], "city": ["Lima", "Lima"]}
    with pytest.raises(OptionError, match="lies below 2 folders"):
        pyparq.dataset(tmp_path, partitioning=["a", "b", "c"])


def test_the_paths_value_wins(tmp_path: Path) -> None:
    write(tmp_path / "a=5" / "f.parquet", a=[1, 2], b=["x", "y"])
    assert pyparq.read_table(tmp_path).to_pydict() == {"b": ["x", "y"], "a": [5, 5]}
    assert pyparq.read_table(tmp_path, filters=col("a") == 1).num_rows == 0


def test_folders_that_disagree(tmp_path: Path) -> None:
    write(tmp_path / "a=1" / "f.parquet", x=[1])
    write(tmp_path / "f.parquet", x=[1])
    with pytest.raises(OptionError, match=r"different partition columns.*partitioning=None"):
        pyparq.dataset(tmp_path)
    assert pyparq.dataset(tmp_path, partitioning=None).count() == 2


def test_hidden_names_are_passed_over(tmp_path: Path) -> None:
    for name in ("a.parquet", "_b.parquet", ".c.parquet", "_temporary/d.parquet", ".e/f.parquet", "_k=1/g.parquet"):
        write(tmp_path / name, x=[1])
    (tmp_path / "_SUCCESS").touch()
    ds = pyparq.dataset(tmp_path, partitioning=None)
    assert [os.path.relpath(name, tmp_path) for name in ds.files] == ["_k=1/g.parquet", "a.parquet"]
    assert pyparq.dataset(tmp_path / "_b.parquet").count() == 1  # named: meant


def test_order_of_files_and_rows(tmp_path: Path) -> None:
    for k in (10, 2, 33):
        write(tmp_path / f"{k}.parquet", x=[k, k + 1])
    assert pyparq.read_table(tmp_path)["x"].to_pylist() == [10, 11, 2, 3, 33, 34]
    listed = [tmp_path / "33.parquet", tmp_path / "2.parquet", tmp_path / "2.parquet"]
    assert pyparq.read_table(listed)["x"].to_pylist() == [33, 34, 2, 3, 2, 3]
    assert pyparq.dataset(tmp_path).head(3)["x"].to_pylist() == [10, 11, 2]
    assert pyparq.dataset(tmp_path).scan(filters=col("x") > 10, limit=2).to_table()["x"].to_pylist() == [11, 33]


def test_a_limit_stops_opening_files(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1, 2])
    (tmp_path / "b.parquet").write_bytes(b"no Parquet file")
    schema = {"x": "int64?"}
    assert pyparq.dataset(tmp_path, schema=schema).head(2).to_pydict() == {"x": [1, 2]}


def test_links_that_lead_back_end(tmp_path: Path) -> None:
    write(tmp_path / "a" / "f.parquet", x=[1])
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert pyparq.dataset(tmp_path).count() == 2  # by a and by b


def test_links_that_make_many_paths_of_few_folders(tmp_path: Path) -> None:
    """Twelve folders with links to all of them have billions of paths."""
    write(tmp_path / "f.parquet", x=[1])
    for k in range(12):
        (tmp_path / f"d{k}").mkdir()
        for other in range(12):
            (tmp_path / f"d{k}" / f"l{other}").symlink_to(tmp_path / f"d{other}")
    for source in (tmp_path, str(tmp_path / "**" / "*.parquet")):
        with pytest.raises(pyparq.OptionError, match="by more than 64 paths"):
            pyparq.dataset(source)


def test_folders_deeper_than_python_recurses(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(1_200):
            os.mkdir("d")
            os.chdir("d")
        pq.write_table(pa.table({"x": [1]}), "f.parquet")
    finally:
        os.chdir(here)
    assert pyparq.dataset(tmp_path).count() == 1
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)  # Python's rmtree recurses


def test_globs_of_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("c.parquet", "s/a.parquet", "s/t/b.parquet", "s/t/u/a.parquet", "s/_h/a.parquet", "s/.h/a.parquet"):
        write(tmp_path / name, x=[1])
    (tmp_path / "s" / "loop").symlink_to(tmp_path / "s")  # Python's glob goes round 40 times
    visible = ["c.parquet", "s/a.parquet", "s/t/b.parquet", "s/t/u/a.parquet"]
    for pattern, wanted in {
        "**": visible, "**/*.parquet": visible, "**/**/*.parquet": visible, "**/a.parquet": [visible[1], visible[3]],
        "s/**/*.parquet": visible[1:], "s/**/u/*": visible[3:], "**/t/*": visible[2:3], "**/t/**": visible[2:],
        "*/**/[ab].parquet": visible[1:],
    }.items():  # fmt: skip
        assert pyparq.dataset(str(tmp_path / pattern)).files == [str(tmp_path / name) for name in wanted], pattern
        monkeypatch.chdir(tmp_path)
        assert pyparq.dataset(pattern).files == wanted, pattern
    with pytest.raises(FileNotFoundError, match="no file matches"):
        pyparq.dataset(str(tmp_path / "**" / "*.csv"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        pyparq.dataset(str(tmp_path / "nothing" / "**"))


def test_a_partition_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", x=[1])
    folder = os.fsencode(tmp_path) + b"/p=\xff"
    os.mkdir(folder)
    os.rename(tmp_path / "f.parquet", folder + b"/f.parquet")
    with pytest.raises(pyparq.OptionError, match=r"is not UTF-8.*give partitioning=None"):
        pyparq.dataset(tmp_path)
    assert pyparq.dataset(tmp_path, partitioning=None).count() == 1


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.parquet"
    pq.write_table(pa.table({"x": [1]}), tmp_path / "f")
    os.rename(tmp_path / "f", path)
    table = pyparq.dataset(tmp_path, filename=True).read()
    assert table["filename"].to_pylist() == [f"{tmp_path}/\\udcff.parquet"]


def test_filenames(folder: Path) -> None:
    ds = pyparq.dataset(folder, filename="file")
    assert ds.schema.names == ["id", "name", "year", "city", "file"]
    table = ds.read(["id", "file"], col("file") == ds.files[3])
    assert set(table["file"].to_pylist()) == {ds.files[3]}
    assert table.num_rows == pq.read_metadata(ds.files[3]).num_rows
    with pytest.raises(OptionError, match="a partition has this name"):
        pyparq.dataset(folder, filename="year")


@pytest.mark.parametrize("marker", ["_delta_log/00.json", "metadata/v1.metadata.json", ".hoodie/x"])
def test_managed_folders_warn(tmp_path: Path, marker: str) -> None:
    write(tmp_path / "data" / "a=1" / "f.parquet", x=[1])
    (tmp_path / marker).parent.mkdir(exist_ok=True)
    (tmp_path / marker).touch()
    sources = [tmp_path / "data", tmp_path / "data" / "a=1", str(tmp_path / "data" / "*" / "*.parquet")]
    for source in sources:
        with pytest.warns(ManagedTableWarning, match="deleted or replaced"):
            pyparq.dataset(source)


# ---- schemas that differ -------------------------------------------------------------------------------------------

TYPES = [
    (pa.int8(), pa.int32(), "int32"), (pa.uint8(), pa.int8(), "int16"), (pa.uint32(), pa.int32(), "int64"),
    (pa.uint64(), pa.int64(), None), (pa.float32(), pa.float64(), "float64"), (pa.int32(), pa.float64(), "float64"),
    (pa.int64(), pa.float64(), None), (pa.int16(), pa.float32(), "float32"),
    (pa.decimal128(5, 2), pa.decimal128(9, 4), "decimal(9, 4)"),
    (pa.decimal128(9, 0), pa.decimal128(9, 9), "decimal(18, 9)"),
    (pa.decimal128(38, 0), pa.decimal128(38, 38), "decimal256(76, 38)"),
    (pa.int32(), pa.decimal128(5, 2), "decimal(12, 2)"),
    (pa.timestamp("ms"), pa.timestamp("us"), "timestamp[us]"), (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
    (pa.date32(), pa.timestamp("us"), None), (pa.string(), pa.large_string(), "large_string"),
    (pa.string(), pa.binary(), None), (pa.string(), pa.int32(), None), (pa.binary(2), pa.binary(), "binary"),
    (pa.null(), pa.int32(), "int32"), (pa.bool_(), pa.int8(), None), (pa.time32("ms"), pa.time64("us"), "time64[us]"),
]  # fmt: skip


SAMPLES: dict[pa.DataType, Any] = {
    pa.string(): "a", pa.large_string(): "a", pa.binary(): b"ab", pa.binary(2): b"ab", pa.bool_(): True,
    pa.null(): None, pa.date32(): dt.date(2024, 1, 1), pa.time32("ms"): dt.time(1), pa.time64("us"): dt.time(2),
    pa.decimal128(9, 9): Decimal("0.5"), pa.decimal128(38, 38): Decimal("0.5"),
}  # fmt: skip


@pytest.mark.parametrize(("one", "other", "both"), TYPES, ids=str)
def test_two_types_of_a_column(tmp_path: Path, one: pa.DataType, other: pa.DataType, both: str | None) -> None:
    arrays = [pa.array([SAMPLES.get(t, 1), None], t) for t in (one, other)]
    for k, array in enumerate(arrays):
        inner = pa.array([{"x": value} for value in array.to_pylist()], pa.struct([("x", array.type)]))
        write(tmp_path / f"{k}.parquet", s=inner, x=array)
    ds = pyparq.dataset(tmp_path)
    if both is None:
        with pytest.raises(SchemaError, match=r"the column is .* in .*0\.parquet and .* here.*1\.parquet"):
            ds.to_table()
        return
    assert str(ds.schema.field("x").type) == both
    expected = [v for array in arrays for v in array.to_pylist()]
    for found in (ds.to_table(), pa.table(ds)):
        assert found.to_pydict()["x"] == expected
        assert [row["x"] for row in found.to_pydict()["s"]] == expected


def test_columns_added_missing_and_reordered(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1], b=["x"])
    write(tmp_path / "1.parquet", c=[1.5], a=[2])
    write(tmp_path / "2.parquet", b=["z"], a=[None])
    ds = pyparq.dataset(tmp_path)
    assert ds.read().to_pydict() == {"a": [1, 2, None], "b": ["x", None, "z"], "c": [None, 1.5, None]}
    assert ds.read(["c", "a"]).to_pydict() == {"c": [None, 1.5, None], "a": [1, 2, None]}
    assert ds.read(filters=col("b").is_null())["a"].to_pylist() == [2]
    assert ds.read(filters=~(col("b") == "x"))["a"].to_pylist() == [None]
    assert ds.count(col("c") > 1) == 1
    assert ds.count(~col("c").isin([])) == 3
    with pytest.raises(ColumnNotFoundError):
        ds.read(["d"])
    with pytest.raises(FilterError):
        ds.read(filters=col("c") == "text")


def test_nested_columns_that_differ(tmp_path: Path) -> None:
    small = pa.list_(pa.struct([("x", pa.int8())]))
    large = pa.list_(pa.struct([("y", pa.float64()), ("x", pa.int16())]))
    first = pa.array([{"a": 1, "l": [{"x": 1}]}, None], pa.struct([("a", pa.int32()), ("l", small)]))
    second = pa.array(
        [{"b": "q", "l": [{"y": 2.5, "x": 300}, None], "a": 2**40}],
        pa.struct([("b", pa.string()), ("l", large), ("a", pa.int64())]),
    )
    write(tmp_path / "0.parquet", s=first, m=pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())))
    write(tmp_path / "1.parquet", s=second, m=pa.array([[("k", 1000)]], pa.map_(pa.string(), pa.int64())))
    ds = pyparq.dataset(tmp_path)
    assert ds.read().to_pydict() == {
        "s": [
            {"a": 1, "l": [{"x": 1, "y": None}], "b": None},
            None,
            {"a": 2**40, "l": [{"x": 300, "y": 2.5}, None], "b": "q"},
        ],
        "m": [[("k", 1)], [], [("k", 1000)]],
    }  # fmt: skip
    assert ds.read(["s.b"]).to_pydict() == {"s": [{"b": None}, None, {"b": "q"}]}
    assert ds.count(col("s.b") == "q") == 1
    assert ds.count(col("s.b").is_null()) == 2
    assert ds.count(col("s.l.x").contains(300)) == 1
    assert ds.count(col("s.l.y").contains(2.5)) == 1


def test_int96_beside_int64(tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2024, 5, 6, 7, 8, 9, 10)], pa.timestamp("us"))
    pq.write_table(pa.table({"t": times}), tmp_path / "0.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"t": times.cast(pa.timestamp("us", "UTC"))}), tmp_path / "1.parquet")
    ds = pyparq.dataset(tmp_path)
    assert str(ds.schema.field("t").type) == "timestamp[us, tz=UTC]"
    assert ds.read()["t"].to_pylist() == [dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=dt.UTC)] * 2
    assert ds.count(col("t") == dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=dt.UTC)) == 2


def test_columns_by_field_id(tmp_path: Path) -> None:
    def field(name: str, number: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})

    pq.write_table(pa.table([[1], [2]], pa.schema([field("a", 1), field("b", 2)])), tmp_path / "0.parquet")
    pq.write_table(pa.table([[20], [10]], pa.schema([field("bb", 2), field("aa", 1)])), tmp_path / "1.parquet")
    ds = pyparq.dataset(tmp_path, by="field_id")
    assert ds.read().to_pydict() == {"a": [1, 10], "b": [2, 20]}
    assert ds.read(["b"], col("a") == 10).to_pydict() == {"b": [20]}


def test_a_declared_schema(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1], b=["x"])
    write(tmp_path / "1.parquet", a=[2.0], b=["y"])
    ds = pyparq.dataset(tmp_path, schema={"a": "int16?", "z": "string?"})
    assert ds.read().to_pydict() == {"a": [1, 2], "z": [None, None]}
    write(tmp_path / "2.parquet", a=[2.5], b=["y"])
    with pytest.raises(DataError, match=r"2\.5 is not a whole number.*2\.parquet.*column a"):
        pyparq.dataset(tmp_path, schema={"a": "int16?"}).read()


# ---- bad input -----------------------------------------------------------------------------------------------------


def test_a_damaged_file_in_the_middle(tmp_path: Path) -> None:
    for k in range(3):
        write(tmp_path / f"{k}.parquet", x=[k])
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no footer PAR1")
    with pytest.raises(CorruptFileError, match=r"1\.parquet"):
        pyparq.read_table(tmp_path)
    ds = pyparq.dataset(tmp_path, on_error="skip")
    with pytest.warns(SkippedFileWarning, match=r"left out.*1\.parquet"):
        assert ds.read()["x"].to_pylist() == [0, 2]
    ((name, error),) = ds.skipped
    assert name == str(tmp_path / "1.parquet")
    assert isinstance(error, CorruptFileError)
    assert ds.count() == 2


def test_a_damaged_page_leaves_its_file_out(tmp_path: Path) -> None:
    for k in range(3):
        pyparq.write_table({"x": np.random.default_rng(k).random(1000)}, tmp_path / f"{k}.parquet")
    data = bytearray((tmp_path / "1.parquet").read_bytes())
    at = len(data) // 3
    data[at : at + 20] = bytes(20)
    (tmp_path / "1.parquet").write_bytes(data)
    with pytest.raises(CorruptFileError, match=r"1\.parquet"):
        pyparq.read_table(tmp_path)
    with pytest.warns(SkippedFileWarning):
        assert pyparq.dataset(tmp_path, on_error="skip").read().num_rows == 2000


def test_files_that_change(tmp_path: Path) -> None:
    many = np.random.default_rng(0).random(20_000)  # more than the first read holds
    path = write(tmp_path / "f.parquet", x=[1])
    ds = pyparq.dataset(tmp_path)
    write(path, x=many)
    with pytest.raises(ChangedFileError, match=r"make the dataset again.*f\.parquet"):
        ds.read()
    ds = pyparq.dataset(tmp_path)
    assert ds.count() == 20_000
    write(path, x=many + 1)
    with pytest.raises(ChangedFileError):
        ds.read()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pyparq.dataset([path]).read()


def test_what_is_not_there(tmp_path: Path) -> None:
    assert pyparq.dataset(tmp_path).files == []
    assert pyparq.dataset(tmp_path).count() == 0
    assert pyparq.dataset(tmp_path).read().shape == (0, 0)
    assert pyparq.dataset(tmp_path, schema={"a": "int64"}).read().to_pydict() == {"a": []}
    with pytest.raises(FileNotFoundError, match="no file matches"):
        pyparq.dataset(str(tmp_path / "*.parquet"))
    with pytest.raises(FileNotFoundError):
        pyparq.dataset(tmp_path / "missing").read()
    with pytest.raises(OptionError, match="rows counts within one file"):
        pyparq.read_table(tmp_path, rows=[1])
    with pytest.raises(OptionError, match="on_error"):
        pyparq.dataset(tmp_path, on_error="ignore")
    with pytest.raises(OptionError, match=r"partitionning.*did you mean"):
        pyparq.dataset(tmp_path, partitionning="hive")  # type: ignore[call-arg]


def test_few_descriptors_for_many_files(tmp_path: Path) -> None:
    import resource

    for k in range(120):
        write(tmp_path / f"{k:03}.parquet", x=[k])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 20, hard))
    try:
        assert pyparq.read_table(tmp_path)["x"].to_pylist() == list(range(120))
        assert sum(b.num_rows for b in pyparq.dataset(tmp_path).iter_batches()) == 120
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_other_sources(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", x=[1])
    data = path.read_bytes()
    with path.open("rb") as file:
        assert pyparq.dataset([data, file, str(path), path]).read()["x"].to_pylist() == [1] * 4
    assert pyparq.dataset(path).read(["x"]).to_pydict() == {"x": [1]}
    assert pyparq.dataset(f"file://{tmp_path}").count() == 1


def test_remote_folders_and_globs(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.put(str(folder), "/remote/data", recursive=True)
    try:
        expected = theirs(folder)
        assert rows_of(pyparq.read_table("memory://remote/data")) == expected
        assert rows_of(pyparq.read_table("memory://remote/data/**/*.parquet")) == expected
        assert rows_of(pyparq.read_table("memory://remote/data/year=2021/*")) == rows_of(
            pyparq.read_table(folder, filters=pyparq.col("year") == 2021)
        )
        assert pyparq.dataset("memory://remote/data").count(col("year") == 2020) == 134
    finally:
        fs.rm("/remote", recursive=True)


def test_progress(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    ds = pyparq.dataset(folder, progress=lambda done, of: told.append((done, of)))
    ds.read(filters=col("year") == 2020)
    assert sorted(told) == [(k, 8) for k in range(1, 9)]


def test_streams(folder: Path) -> None:
    import duckdb
    import polars

    ds = pyparq.dataset(folder)
    expected = theirs(folder)
    assert rows_of(duckdb.sql("from ds").to_arrow_table()) == expected
    assert sorted(polars.DataFrame(ds).to_dicts(), key=lambda row: row["id"]) == expected
    assert rows_of(pa.RecordBatchReader.from_stream(ds).read_all()) == expected
    target = folder.parent / "one.parquet"
    pyparq.write_table(ds, target)
    assert rows_of(pq.read_table(target)) == expected


def test_no_columns(folder: Path) -> None:
    table = pyparq.dataset(folder).read([], col("year") == 2020)
    assert table.shape == (134, 0)
    assert pyparq.dataset(folder).read(["year"], col("id") < 3)["year"].to_pylist() == [2020, 2021, 2022]


def test_nothing_warns(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyparq.dataset(folder).read()


def test_scan_takes_a_file_or_a_folder(tmp_path: Path) -> None:
    for k in range(2):
        pq.write_table(pa.table({"a": [k, k + 10], "b": ["x", "y"]}), tmp_path / f"{k}.parquet")
    assert pyparq.scan(tmp_path / "1.parquet", ["a"]).to_table().to_pydict() == {"a": [1, 11]}
    scan = pyparq.scan(tmp_path, ["a", "from"], pyparq.col("a") >= 10, filename="from")
    assert pa.table(scan)["a"].to_pylist() == [10, 11]
    assert pyparq.scan(tmp_path, limit=3).to_table().num_rows == 3
    assert pyparq.scan(tmp_path, filters=pyparq.col("b") == "x").count() == 2


# ---- braces in patterns


def test_braces_are_alternatives(tmp_path: Path) -> None:
    for year in (2023, 2024, 2025):
        for name in ("a", "b"):
            (tmp_path / f"y={year}").mkdir(exist_ok=True)
            pyparq.write_table({"n": [year]}, tmp_path / f"y={year}" / f"{name}.parquet")
    (tmp_path / "{x,y}").mkdir()
    pyparq.write_table({"n": [7]}, tmp_path / "{x,y}" / "f.parquet")

    def years(pattern: str) -> list[int]:
        read = pyparq.dataset(f"{tmp_path}/{pattern}").read()
        return sorted(read["n"].to_pylist())

    assert years("y={2023,2025}") == [2023, 2023, 2025, 2025]
    assert years("y={2023,2025}/a.parquet") == [2023, 2025]
    assert years("y=202{3,4}/{a,b}.parquet") == [2023, 2023, 2024, 2024]
    assert years("{y=2023,y=2024/a.parquet,nothing}") == [2023, 2023, 2024]
    assert years("y={202{3,4},2025}/*.parquet") == [2023, 2023, 2024, 2024, 2025, 2025]
    assert years("y={2023,202*}/a.parquet") == [2023, 2024, 2025]  # each file once
    assert years("**/{a,c}.parquet") == [2023, 2024, 2025]
    assert years("{x,y}") == [7]  # what is there under this name comes first
    partitions = pyparq.read_table(f"{tmp_path}/y={{2023,2025}}/a.parquet")
    assert partitions.column_names == ["n", "y"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        years("y={1,2}/*.parquet")
    with pytest.raises(FileNotFoundError):
        years("{y}/a.parquet")  # no comma: letters
    with pytest.raises(OptionError, match="stands for more than 10,000 paths"):
        years("{a,b}" * 14)


def test_braces_in_a_store() -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    try:
        for name in ("y=1/a", "y=1/b", "y=2/a", "y=3/a"):
            with fs.open(f"/braces/{name}.parquet", "wb") as file:
                pyparq.write_table({"n": [name]}, file)
        for pattern, found in (
            ("y={1,3}/a.parquet", ["y=1/a", "y=3/a"]),
            ("y={1,3}/*.parquet", ["y=1/a", "y=1/b", "y=3/a"]),
            ("y={2,3}", ["y=2/a", "y=3/a"]),
            ("**/{b,c}.parquet", ["y=1/b"]),
        ):
            assert sorted(pyparq.dataset(f"memory://braces/{pattern}").read()["n"].to_pylist()) == found
        with pytest.raises(FileNotFoundError, match="no file matches"):
            pyparq.dataset("memory://braces/y={7,8}")
    finally:
        fs.rm("/braces", recursive=True)
