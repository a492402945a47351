"""The same calls of ``pyarrow.parquet`` and of ``pyparq.parquet``, with the same answers."""

from __future__ import annotations

import datetime as dt
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pyparq.pandas
import pyparq.parquet
from pyparq.datasets.staging import PREFIX
from pyparq.datasets.write import folder_commit

NAN = float("nan")


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    path = str(tmp_path / "numbers.parquet")
    floats = [1.0, NAN, None, 5.0, 0.0, -0.0]
    pq.write_table(pa.table({"k": range(6), "i": [None, 1, 2, 3, 4, 5], "f": floats}), path)
    return path


@pytest.mark.parametrize("test", [
    ("i", "not in", [1]), ("i", "in", [1, None]), ("i", "in", [None]), ("i", "not in", [None, 1]), ("i", "!=", None),
    ("i", "=", None), ("f", ">", 0), ("f", ">=", 5), ("f", "<", NAN), ("f", "!=", 5.0), ("f", "in", [0.0]),
    ("f", "in", [-0.0, 5.0]), ("f", "not in", [0.0]), ("f", "=", -0.0), ("f", "not in", [NAN]), ("i", "in", [1, 2.0]),
], ids=str)  # fmt: skip
def test_tuples_mean_what_they_mean_in_pyarrow(numbers: str, test: Any) -> None:
    right = pq.read_table(numbers).filter(pq.filters_to_expression([test]))["k"].to_pylist()
    assert pyparq.parquet.read_table(numbers, columns=["k"], filters=[test])["k"].to_pylist() == right
    assert pyparq.parquet.ParquetDataset(numbers, filters=[[test]]).read()["k"].to_pylist() == right
    assert pyparq.pandas.read_parquet(numbers, filters=[test])["k"].tolist() == right


def test_statistics_do_not_hide_nan(numbers: str, tmp_path: Path) -> None:
    """pyarrow leaves out row groups whose bounds are one value, though they hold NaN."""
    path = str(tmp_path / "nan.parquet")
    pq.write_table(pa.table({"k": [0, 1, 2], "f": [1.0, 1.0, NAN]}), path)
    for test in (("f", "!=", 1.0), ("f", "in", [NAN])):
        right = pq.read_table(path).filter(pq.filters_to_expression([test]))["k"].to_pylist()
        assert right == [2]
        assert pyparq.parquet.read_table(path, filters=[test])["k"].to_pylist() == right


# ---- folders


BOTH = pytest.mark.parametrize("module", [pq, pyparq.parquet], ids=["pyarrow", "pyparq"])
PARTITIONINGS = {
    "schema": lambda: pads.partitioning(pa.schema([("y", pa.int16()), ("m", pa.string())])),
    "names": lambda: ["y", "m"],
    "discovered": lambda: pads.DirectoryPartitioning.discover(["y", "m"]),
    "dictionaries": lambda: pads.DirectoryPartitioning.discover(["y", "m"], infer_dictionary=True),
    "file names": lambda: pads.FilenamePartitioning(pa.schema([("y", pa.int16())])),
    "none": lambda: None,
    "hive": lambda: "hive",
}  # fmt: skip
HIVE = {
    "text": lambda: pads.partitioning(pa.schema([("month", pa.string()), ("p", pa.string())]), flavor="hive"),
    "int8": lambda: pads.partitioning(pa.schema([("month", pa.int8())]), flavor="hive"),
    "found": lambda: pads.partitioning(flavor="hive"),
    "dictionaries": lambda: pads.HivePartitioning.discover(infer_dictionary=True),
    "default": lambda: "hive",
}


def answer(call: Any) -> Any:
    """The table that a call returns, with its types; or that it is refused."""
    try:
        table = call()
    except Exception:
        return "refused"
    return table.schema.remove_metadata(), sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("name", PARTITIONINGS)
def test_directories_are_partitions_as_in_pyarrow(name: str, tmp_path: Path) -> None:
    for year in (2020, 2021):
        for month in ("01", "02"):
            folder = tmp_path / str(year) / month
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"v": [year * 100 + int(month)]}), folder / f"{year}_f.parquet")
    one, other = (answer(lambda m=m: m.read_table(str(tmp_path), partitioning=PARTITIONINGS[name]()))
                  for m in (pq, pyparq.parquet))  # fmt: skip
    assert one == other


@pytest.mark.parametrize(
    "filters", [None, [("month", "=", 1)], [("month", "in", [1, 12])], [("p", "=", "a b")]], ids=str
)
@pytest.mark.parametrize("name", HIVE)
def test_hive_folders_are_partitions_as_in_pyarrow(name: str, filters: Any, tmp_path: Path) -> None:
    for month in ("01", "12", "__HIVE_DEFAULT_PARTITION__"):
        for p in ("a%20b", "1", "1099511627776"):
            folder = tmp_path / f"month={month}" / f"p={p}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"v": [1, 2]}), folder / "f.parquet")
    paths = sorted(str(path) for path in tmp_path.rglob("*.parquet"))
    for place in (str(tmp_path), paths):
        one, other = (answer(lambda m=m, place=place: m.read_table(place, partitioning=HIVE[name](), filters=filters))
                      for m in (pq, pyparq.parquet))  # fmt: skip
        assert one == other
    for module in (pq, pyparq.parquet):
        assert module.read_table(str(tmp_path), columns=[]).num_rows == 18


VALUES = {
    "ints": pa.array([1, 2, None]), "big": pa.array([1, 2**40]), "floats": pa.array([2024.0, 1e10, 0.1]),
    "flags": pa.array([True, False]), "dates": pa.array([dt.date(2026, 1, 1)]),
    "seconds": pa.array([dt.datetime(2026, 1, 1, 10)]), "instants": pa.array([1, 2], pa.timestamp("ns", "UTC")),
    "decimals": pa.array([Decimal("1.10")]), "texts": pa.array(["a b", "x/y", "ü", "a=b", "100%", "", ".", " ", None]),
    "codes": pa.array(["a", "b"]).dictionary_encode(), "times": pa.array([dt.time(1, 2)]),
    "durations": pa.array([5, None], pa.duration("s")), "bytes": pa.array([b"ab"]),
}  # fmt: skip


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


@pytest.mark.parametrize("kind", VALUES)
def test_folders_are_called_as_by_pyarrow(kind: str, tmp_path: Path) -> None:
    table = pa.table({"p": VALUES[kind], "v": range(len(VALUES[kind]))})
    for module, name in ((pq, "a"), (pyparq.parquet, "b")):
        for _ in range(2):
            module.write_to_dataset(table, tmp_path / name, partition_cols=["p"], basename_template="part-{i}.parquet")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert answer(lambda: pq.read_table(tmp_path / "a")) == answer(lambda: pyparq.parquet.read_table(tmp_path / "b"))
    for _ in range(2):
        pyparq.parquet.write_to_dataset(
            table, tmp_path / "a", partition_cols=["p"], existing_data_behavior="delete_matching"
        )
    assert pq.read_table(tmp_path / "a").num_rows == len(table)


def test_folders_without_names(tmp_path: Path) -> None:
    table = pa.table({"p": ["a", "b", "a"], "v": [1, 2, 3]})
    for module, name in ((pq, "a"), (pyparq.parquet, "b")):
        module.write_to_dataset(table, tmp_path / name, partitioning=["p"], basename_template="{i}.parquet")
    assert tree(tmp_path / "a") == tree(tmp_path / "b") == ["a/0.parquet", "b/0.parquet"]


def test_values_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """A value that names a folder is data of anyone's."""
    outside = tmp_path / "outside"
    table = pa.table({"p": [f"{outside}"], "v": [1]})
    for module, name in ((pq, "a"), (pyparq.parquet, "b")):
        module.write_to_dataset(table, tmp_path / name, partitioning=["p"], basename_template="{i}.parquet")
    assert tree(tmp_path / "a") == tree(tmp_path / "b") == [f"{outside}/0.parquet".lstrip("/")]
    store = f"memory://{tmp_path.name}"
    pyparq.parquet.write_to_dataset(table, f"{store}/c", partitioning=["p"], basename_template="{i}.parquet")
    assert fsspec.filesystem("memory").find(f"/{tmp_path.name}") == [f"/{tmp_path.name}/c{outside}/0.parquet"]
    for value in ("..", "../x", "a/../../x", "/../x"):
        for place in (tmp_path / "b", f"{store}/c"):
            with pytest.raises(pyparq.DataError, match="lead out of the folder"):
                pyparq.parquet.write_to_dataset(pa.table({"p": [value], "v": [1]}), place, partitioning=["p"])
    assert not outside.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


OLD = pa.table({"p": ["a", "b", "b/c", None, "z"], "v": range(5)})
SCHEMA = pads.partitioning(pa.schema([("p", pa.string())]))


@pytest.mark.parametrize("partitioning", [["p"], SCHEMA, None], ids=["names", "schema", "none"])
@pytest.mark.parametrize("values", [["a"], ["b"], ["b/c"], ["a", "z"], ["new"], [None], [""]], ids=str)
def test_matching_folders_are_replaced(values: list[str | None], partitioning: Any, tmp_path: Path) -> None:
    """And those below them, as with pyarrow. Without partitions, all files are."""
    table, store = pa.table({"p": pa.array(values, pa.string()), "v": range(len(values))}), f"memory://{tmp_path.name}"
    for module, place in ((pq, tmp_path / "a"), (pyparq.parquet, tmp_path / "b"), (pyparq.parquet, store)):
        module.write_to_dataset(OLD, place, partitioning=["p"], basename_template="old-{i}.parquet")
        module.write_to_dataset(
            table, place, partitioning=partitioning, basename_template="new-{i}.parquet",
            existing_data_behavior="delete_matching",
        )  # fmt: skip
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    inside = len(f"/{tmp_path.name}/")
    found = fsspec.filesystem("memory").find(f"/{tmp_path.name}")
    assert sorted(path[inside:] for path in found) == tree(tmp_path / "a")


@pytest.mark.parametrize("value", ["a//b", "a/./b", "./a", ".", "a/", "/"])
def test_a_value_that_is_no_plain_path(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is called as by pyarrow, and a write that has crashed is completed."""
    table = pa.table({"p": [value], "v": [1]})
    pq.write_to_dataset(table, tmp_path / "a", partitioning=["p"], basename_template="{i}.parquet")
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(folder_commit, "reached", lambda step: os._exit(7) if step == "recorded" else None)
        pyparq.parquet.write_to_dataset(table, tmp_path / "b", partitioning=["p"], basename_template="{i}.parquet")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert pyparq.recover_dataset(tmp_path / "b") == 1
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_values_that_become_one_folder(tmp_path: Path) -> None:
    """All of their rows are there. pyarrow writes two files of one name at once."""
    one = pa.table({"p": ["a", "a/", "/a", "a/."], "v": range(4)})
    two = pa.table({"p": ["b", "b/c"], "q": ["c/d", "d"], "v": range(2)})
    for name, store in (("l", tmp_path / "l"), ("s", f"memory://{tmp_path.name}")):
        for table, keys in ((one, ["p"]), (two, ["p", "q"])):
            place = f"{store}/{len(keys)}"
            pyparq.parquet.write_to_dataset(table, place, partitioning=keys, basename_template=name + "{i}.parquet")
            found = pyparq.parquet.read_table(place, partitioning=keys)
            assert found["v"].to_pylist() == table["v"].to_pylist()
            assert set(found["p"].to_pylist()) == {"a" if len(keys) == 1 else "b"}


@pytest.mark.parametrize("value", [None, "", ".", "/"])
def test_a_null_before_another_value(value: str | None, tmp_path: Path) -> None:
    table = pa.table({"p": pa.array([value, "u"]), "q": ["b", "v"], "n": [0, 1]})
    if value is None:
        with pytest.raises(pa.ArrowInvalid, match="No partition key for p"):
            pq.write_to_dataset(table, tmp_path / "a", partitioning=["p", "q"])
    for place in (tmp_path / "b", f"memory://{tmp_path.name}"):
        with pytest.raises(pyparq.DataError, match="before another one") as caught:
            pyparq.parquet.write_to_dataset(table, place, partitioning=["p", "q"])
        assert caught.value.column == "p"
    assert tree(tmp_path / "b") == []
    after = pa.table({"p": ["u"], "q": pa.array([None], pa.string()), "n": [0]})
    for module, name in ((pq, "c"), (pyparq.parquet, "d")):
        module.write_to_dataset(after, tmp_path / name, partitioning=["p", "q"], basename_template="{i}.parquet")
    assert tree(tmp_path / "c") == tree(tmp_path / "d") == ["u/0.parquet"]


def test_a_folder_is_not_called_as_one_of_a_write_that_is_under_way(tmp_path: Path) -> None:
    name = PREFIX + "x"
    for place in (tmp_path, f"memory://{tmp_path.name}"):
        for value in (name, f"/{name}", f"./{name}/a"):
            with pytest.raises(pyparq.DataError, match="under way"):
                pyparq.parquet.write_to_dataset(pa.table({"p": [value], "v": [1]}), place, partitioning=["p"])
        with pytest.raises(pyparq.DataError, match="under way"):
            pyparq.write_dataset({name: ["a"], "v": [1]}, place, partition_cols=[name], mode="append")
    assert tree(tmp_path) == []


def test_a_template_with_a_zero_byte(tmp_path: Path) -> None:
    with pytest.raises(pyparq.OptionError, match="basename_template"):
        pyparq.parquet.write_to_dataset(OLD, tmp_path, basename_template="a\0{i}.parquet")
    assert tree(tmp_path) == []


# ---- files


@BOTH
def test_no_compression(module: Any, tmp_path: Path) -> None:
    table = pa.table({"a": [1], "b": [2], "s": [{"x": 1}]})
    for given, codecs in ((None, ["UNCOMPRESSED"] * 3), ({"a": "zstd"}, ["ZSTD", "UNCOMPRESSED", "UNCOMPRESSED"]),
                          ({"s.x": "gzip", "b": None}, ["UNCOMPRESSED", "UNCOMPRESSED", "GZIP"])):  # fmt: skip
        if module is pq and isinstance(given, dict) and None in given.values():
            continue  # pyarrow refuses it
        module.write_table(table, tmp_path / "f", compression=given)
        group = pq.read_metadata(tmp_path / "f").row_group(0)
        assert [group.column(k).compression for k in range(3)] == codecs
    module.write_to_dataset(table, tmp_path / "d", compression={"b": "snappy"})
    group = pq.read_metadata(next((tmp_path / "d").glob("*.parquet"))).row_group(0)
    assert [group.column(k).compression for k in range(3)] == ["UNCOMPRESSED", "SNAPPY", "UNCOMPRESSED"]


@BOTH
def test_order_of_columns(module: Any, tmp_path: Path) -> None:
    table = pa.table({"a": [1], "s": [{"x": 1, "y": 2}], "b": [2]})
    pq.write_table(table, tmp_path / "f")
    file = module.ParquetFile(tmp_path / "f")
    for wanted, names in ((["b", "a"], ["b", "a"]), (["b", "s.y", "a", "s.x"], ["b", "s", "a"]), (["a", None], ["a"]),
                          (["b", "zz"], ["b"])):  # fmt: skip
        assert file.read(columns=wanted).column_names == names
        assert file.read_row_group(0, columns=wanted).column_names == names
        assert next(file.iter_batches(columns=wanted)).schema.names == names
    assert file.read(columns=["b", "s.y"]).schema.field("s").type == pa.struct([("y", pa.int64())])


@BOTH
def test_a_schema_with_types_of_the_caller(module: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2, 1], "y": ["a", None, "a"], "d": [1, 2, 3]}), tmp_path / "f")
    wanted = pa.schema([("y", pa.dictionary(pa.int32(), pa.string())), ("x", pa.int64()), ("d", pa.int32())])
    table = module.read_table(tmp_path / "f", schema=wanted)
    assert table.schema.equals(wanted)
    assert table.to_pydict() == {"y": ["a", None, "a"], "x": [1, 2, 1], "d": [1, 2, 3]}


TYPES = [
    pa.timestamp("s"), pa.timestamp("s", "America/St_Johns"), pa.time32("s"), pa.date64(), pa.duration("s"),
    pa.list_(pa.timestamp("s")), pa.struct({"x": pa.date64(), "y": pa.time32("s")}), pa.large_list(pa.date64()),
    pa.list_(pa.date64(), 2), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.int64()),
    pa.dictionary(pa.int8(), pa.timestamp("s")), pa.dictionary(pa.int8(), pa.bool_()),
    pa.dictionary(pa.uint8(), pa.binary()),
    pa.dictionary(pa.int8(), pa.decimal128(5, 2)), pa.list_(pa.dictionary(pa.int8(), pa.int32())),
    pa.struct({"d": pa.dictionary(pa.int8(), pa.string()), "e": pa.dictionary(pa.int16(), pa.int16())}), pa.null(),
    pa.dictionary(pa.int8(), pa.string(), ordered=True), pa.string_view(), pa.large_binary(), pa.float16(),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_come_back_as_in_pyarrow(kind: pa.DataType, tmp_path: Path) -> None:
    """Of files of both, whole, by row group and in batches."""
    for writer in (pq, pyparq.parquet):
        writer.write_table(pa.table({"c": pa.nulls(3, kind)}), tmp_path / "f")
        right = pq.read_table(tmp_path / "f").schema.types
        file = pyparq.parquet.ParquetFile(tmp_path / "f")
        for found in (
            file.read(),
            file.read_row_group(0),
            next(file.iter_batches()),
            pyparq.parquet.read_table(tmp_path / "f"),
        ):
            assert found.schema.types == right
        assert file.schema_arrow.types == pyparq.parquet.ParquetDataset(tmp_path).schema.types == right


def test_values_of_types_that_change(tmp_path: Path) -> None:
    when = [dt.datetime(1960, 1, 1, 1, 2, 3), None, dt.datetime(2026, 7, 1)]
    table = pa.table({
        "t": pa.array(when, pa.timestamp("s", "America/St_Johns")),
        "d": pa.array([one and one.date() for one in when], pa.date64()),
        "n": pa.array([7, None, 7]).dictionary_encode(), "c": pa.array(["x", None, "x"]).dictionary_encode(),
    })  # fmt: skip
    pyparq.parquet.write_table(table, tmp_path / "f")
    assert pyparq.parquet.read_table(tmp_path / "f").equals(pq.read_table(tmp_path / "f"))
    given = pa.schema([("t", table.schema.field("t").type), ("n", table.schema.field("n").type)])
    assert pyparq.parquet.read_table(tmp_path / "f", schema=given).schema.equals(given)
    pyparq.parquet.write_to_dataset(table, tmp_path / "d", partition_cols=["n"])
    one, other = (m.read_table(tmp_path / "d").schema.remove_metadata() for m in (pq, pyparq.parquet))
    assert one == other
    assert pa.types.is_dictionary(other.field("n").type)


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
def test_the_version_is_written(version: str, tmp_path: Path) -> None:
    for module in (pq, pyparq.parquet):
        module.write_table(pa.table({"a": [1]}), tmp_path / "f", version=version)
        module.write_to_dataset(pa.table({"a": [1]}), tmp_path / module.__name__, version=version)
        for path in (tmp_path / "f", next((tmp_path / module.__name__).iterdir())):
            right = "1.0" if version == "1.0" else "2.6"
            assert pq.read_metadata(path).format_version == pyparq.parquet.read_metadata(path).format_version == right


def test_the_same_names() -> None:
    """But for pyarrow's reader of C++ and its module. A program may have imported that of encryption."""
    theirs = {name for name in dir(pq) if not name.startswith("_")}
    assert theirs - set(dir(pyparq.parquet)) - {"encryption"} == {"ParquetReader", "core"}
    assert set(dir(pyparq.parquet)) <= theirs


def test_words_that_programs_look_for(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"x": [1]}], "b": [True]}), tmp_path / "f")
    (tmp_path / "empty").touch()
    for call, words in (
        (lambda m: m.read_table(tmp_path / "f", filters=[("q", "=", 1)]), r"No match for FieldRef.Name\(q\)"),
        (lambda m: m.read_table(tmp_path / "empty"), "size is 0 bytes"),
        (lambda m: m.read_table("nowhere://f"), "Unrecognized filesystem type in URI"),
        (lambda m: m.read_table(tmp_path / "f", schema_depth_limit=4), "Parquet schema too deeply nested"),
        (lambda m: m.write_table(pa.table({"b": [True]}), tmp_path / "g", use_dictionary=False,
                                 use_byte_stream_split=True), "BYTE_STREAM_SPLIT only supports"),
        (lambda m: m.write_table(pa.table({"b": [1.5]}), tmp_path / "g", use_dictionary=False,
                                 column_encoding={"b": "DELTA_BINARY_PACKED"}), "PACKED encoder only supports"),
    ):  # fmt: skip
        for module in (pq, pyparq.parquet):
            with pytest.raises((OSError, pa.ArrowInvalid), match=words):
                call(module)
    assert pyparq.parquet.read_table(tmp_path / "f", schema_depth_limit=5).num_rows == 1


def test_every_column_is_a_partition_column(tmp_path: Path) -> None:
    """pyarrow loses the rows when it writes such files. It reads ours."""
    pyparq.parquet.write_to_dataset(
        pa.table({"a": [1, 2, 1], "b": ["x", "y", "x"]}), tmp_path, partition_cols=["a", "b"]
    )
    for reader in (pq, pyparq.parquet):
        assert sorted(reader.read_table(tmp_path)["a"].to_pylist()) == [1, 1, 2]


@BOTH
def test_wrong_options(module: Any, tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    for wrong, options in (
        (TypeError, {"use_content_defined_chunking": None}), (TypeError, {"use_content_defined_chunking": 5}),
        (ValueError, {"use_content_defined_chunking": {"min_chunk_size": 5}}),
        (ValueError, {"use_content_defined_chunking": {"min_chunk_size": 5, "max_chunk_size": 9, "more": 1}}),
        (OSError, {"use_content_defined_chunking": {"min_chunk_size": 9, "max_chunk_size": 5}}),
        (TypeError, {"bloom_filter_options": True}), (TypeError, {"bloom_filter_options": {"a": {"ndv": "9"}}}),
        (ValueError, {"bloom_filter_options": {"a": {"ndv": -1}}}),
        (ValueError, {"bloom_filter_options": {"a": {"fpp": 2.0}}}),
    ):  # fmt: skip
        with pytest.raises(wrong):
            module.write_table(table, tmp_path / "f", **options)
    for name in ("Statistics", "FileMetaData", "RowGroupMetaData", "ColumnChunkMetaData", "ParquetLogicalType"):
        with pytest.raises(TypeError, match=f"Do not call {name}'s constructor directly"):
            getattr(module, name)()
    module.write_table(
        table, tmp_path / "f", use_content_defined_chunking={"min_chunk_size": 2048, "max_chunk_size": 9999}
    )
    assert module.ParquetFile(tmp_path / "f").reader.read_column(0).to_pylist() == [1]
    with pytest.raises((IndexError, ValueError)):
        module.ParquetFile(tmp_path / "f").reader.read_column(1)


@BOTH
def test_prefixes_that_are_ignored(module: Any, tmp_path: Path) -> None:
    for name in ("p=1/a.parquet", "p=2/tmp_b.parquet", "tmp_c/p=1/d.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / name)
    table = module.read_table(tmp_path, ignore_prefixes=["tmp_"])
    assert table.schema.names == ["x", "p"]
    assert table.to_pylist() == [{"x": 1, "p": 1}]


@BOTH
def test_what_programs_reach_for(module: Any, tmp_path: Path) -> None:
    table = pa.table({"d": [dt.date(2026, 1, 1), None], "s": ["a", "b"]})
    writer = module.ParquetWriter(tmp_path / "f", table.schema, flavor="spark")
    writer.write_table(table)
    writer.close()
    assert writer.flavor == "spark"
    assert writer.writer.metadata.num_rows == 2
    found = module.ParquetFile(tmp_path / "f").metadata.row_group(0).column(0)
    assert found.statistics.min == found.statistics.max == dt.date(2026, 1, 1)
    assert (str(found.statistics.logical_type), found.statistics.converted_type) == ("Date", "DATE")
    assert "geo_statistics" in found.to_dict()
    whole = module.ParquetDataset(tmp_path / "f", filters=[("s", "=", "b")])
    assert whole._dataset.to_table(columns=["s"]).num_rows == 2
    assert pickle.loads(pickle.dumps(whole)).read(columns=["s"]).to_pylist() == [{"s": "b"}]
    with pytest.raises(TypeError):
        module.write_table(table, tmp_path / "g", nonsense=1)


def test_a_table_without_rows_has_a_row_group(tmp_path: Path) -> None:
    """Others read it, and so do we: the file as a whole, its row group, and with a filter."""
    table = pa.table({"a": pa.array([], pa.int64()), "l": pa.array([], pa.list_(pa.string()))})
    path = tmp_path / "empty.parquet"
    with pyparq.parquet.ParquetWriter(path, table.schema) as writer:
        for rows in (table, pa.table({"a": [1], "l": [["x"]]}), table):
            writer.write_table(rows)
    for module in (pq, pyparq.parquet):
        file = module.ParquetFile(path)
        assert [file.metadata.row_group(k).num_rows for k in range(3)] == [0, 1, 0]
        assert file.read_row_group(0).equals(table)
        assert file.read().to_pylist() == [{"a": 1, "l": ["x"]}]
        assert module.read_table(path, filters=[("a", ">", 0)]).num_rows == 1
    assert pl.read_parquet(path).to_dicts() == [{"a": 1, "l": ["x"]}]
    assert duckdb.sql(f"from '{path}'").fetchall() == [(1, ["x"])]
    assert pyparq.verify(path).ok
    pyparq.add_indexes(path, bloom_filters=["a"])
    assert pyparq.count(path, pyparq.col("a") == 1) == 1
    assert pyparq.merge([path, path], tmp_path / "two.parquet").num_rows == 2


@BOTH
def test_the_first_file_decides_where_types_have_nothing_in_common(module: Any, tmp_path: Path) -> None:
    for k, values in enumerate(([1, 2], ["x"])):
        (tmp_path / f"k={k}").mkdir()
        pq.write_table(pa.table({"v": values}), tmp_path / f"k={k}" / "f.parquet")
    assert module.read_table(tmp_path, filters=[("k", "=", 0)])["v"].to_pylist() == [1, 2]
    with pytest.raises(pa.ArrowInvalid):
        module.read_table(tmp_path)
