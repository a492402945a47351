"""The schema of a dataset is that of all its files, whichever of them a filter leaves."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, CorruptFileError, DataError, OptionError, SchemaError

WIDENED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


def put(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each file has a column more than the one before, and a wider ``x``."""
    for k in range(4):
        columns = {"x": pa.array([k, k + 1], WIDENED[k])} | {f"c{j}": pa.array([j, k]) for j in range(k)}
        put(pa.table(columns), tmp_path / "in" / f"p={k}" / "a.parquet")
    return tmp_path / "in"


QUESTIONS = [col("p") == 0, col("p") == 3, col("p") == 99, (col("p") == 1) & (col("x") > 100), col("x") == 10**6]


@pytest.mark.parametrize("k", range(len(QUESTIONS)))
def test_every_way_to_read_has_the_schema_of_all_files(folder: Path, k: int, tmp_path: Path) -> None:
    question, whole = QUESTIONS[k], pyparq.dataset(folder).schema
    assert whole.names == ["x", "c0", "c1", "c2", "p"]
    ds = pyparq.dataset(folder)
    scan = ds.scan(filters=question)
    assert scan.schema == whole
    arrow = scan.to_table().to_arrow().schema
    assert arrow == pyparq.dataset(folder).read().to_arrow().schema
    assert all(batch.schema == whole for batch in ds.iter_batches(filters=question))
    assert pa.RecordBatchReader.from_stream(ds.scan(filters=question)).schema == arrow
    assert ds.head(3, filters=question).schema == ds.plan(filters=question).schema == whole
    assert all(part.scan().to_table().schema == whole for part in ds.plan(filters=question).split(3))
    assert ds.read(["c2"], question).schema.names == ["c2"]
    out = tmp_path / "out.parquet"
    pyparq.write_table(ds.scan(filters=question), out)
    assert pq.read_schema(out).names == list(whole.names)
    pyparq.write_dataset(ds.scan(filters=question), tmp_path / "out")
    if ds.count(question):
        assert pyparq.dataset(tmp_path / "out").schema.names == whole.names
    connection = duckdb.connect()
    connection.register("stream", pa.RecordBatchReader.from_stream(ds.scan(filters=question)))
    assert connection.sql("from stream").columns == list(whole.names)
    assert pl.DataFrame(ds.scan(filters=question)).columns == list(whole.names)
    assert list(ds.read(filters=question).to_pandas().columns) == list(whole.names)
    made = pa.concat_tables([ds.read(filters=question).to_arrow(), ds.read().to_arrow()])
    assert made.schema == arrow


def test_rewrite_of_no_row_keeps_all_columns(folder: Path, tmp_path: Path) -> None:
    pyparq.rewrite(folder, tmp_path / "none.parquet", filters=col("p") == 99)
    pyparq.rewrite(folder, tmp_path / "one.parquet", filters=col("p") == 3)
    whole = pyparq.dataset(folder).schema
    for name in ("none.parquet", "one.parquet"):
        assert pyparq.read_schema(tmp_path / name).names == whole.names


def test_lookup_of_no_key_has_all_columns(folder: Path) -> None:
    assert pyparq.dataset(folder).lookup("p", 99).schema == pyparq.dataset(folder).schema


def test_a_damaged_file_that_no_row_is_asked_of_is_passed_over(folder: Path) -> None:
    (folder / "p=2" / "a.parquet").write_bytes(b"PAR1 nonsense PAR1")
    assert pyparq.dataset(folder).read(filters=col("p") == 3).num_rows == 2
    with pytest.raises(CorruptFileError):
        pyparq.dataset(folder).read(filters=col("p") >= 2)
    ds = pyparq.dataset(folder)
    assert ds.read(filters=col("p") == 3).num_rows == 2
    with pytest.raises(CorruptFileError):  # also once the schema is known
        ds.read(filters=col("p") >= 2)


def random_table(rng: random.Random, rows: int) -> pa.Table:
    columns: dict[str, Any] = {}
    for name in rng.sample("abcdef", rng.randint(1, 5)):
        if name in "ab":
            columns[name] = pa.array([rng.randint(0, 9) for _ in range(rows)], rng.choice(WIDENED))
        elif name == "c":
            unit = rng.choice(["s", "ms", "us", "ns"])
            columns[name] = pa.array([rng.randint(0, 9) for _ in range(rows)], pa.timestamp(unit, "Europe/Berlin"))
        elif name == "d":
            fields = rng.sample("uvw", rng.randint(1, 3))
            columns[name] = pa.array([{field: rng.randint(0, 9) for field in fields} for _ in range(rows)])
        elif name == "e":
            type_ = rng.choice([pa.string(), pa.null()])
            columns[name] = pa.array(["t" if type_ == pa.string() else None] * rows, type_)
        else:
            values = pa.array([rng.random() for _ in range(rows)], rng.choice([pa.float32(), pa.float64()]))
            columns[name] = values
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(25))
def test_random_folders_have_one_schema_for_every_filter(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for k in range(rng.randint(2, 6)):
        put(random_table(rng, rng.randint(0, 5)), tmp_path / f"p={k}" / f"q={rng.choice('xy')}" / "a.parquet")
    whole = pyparq.dataset(tmp_path)
    everything = whole.read().to_arrow()
    schema = whole.schema
    tests: list[Any] = [col("p") == rng.randint(0, 7) for _ in range(3)]
    tests += [col("q") == rng.choice("xyz"), (col("p") < rng.randint(0, 6)) & (col("q") == "x")]
    tests += [col(name) > 4 for name in schema.names if name in "abf"]
    for test in tests:
        found = pyparq.dataset(tmp_path).read(filters=test)
        assert found.schema == schema
        assert found.to_arrow().schema == everything.schema
        for name in rng.sample(schema.names, 2):
            one = pyparq.dataset(tmp_path).read([name], filters=test)
            assert one.to_arrow().schema.field(0) == everything.schema.field(name)


def test_files_without_columns_have_rows(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        pyparq.write_table(pa.table({"a": range(k)}).select([]), tmp_path / "in" / f"{k}.parquet")
    ds = pyparq.dataset(tmp_path / "in")
    assert ds.read().shape == ds.scan().to_table().shape == ds.plan().scan().to_table().shape == (3, 0)
    assert ds.read().to_pandas().shape == (3, 0)
    assert ds.read().to_arrow().num_rows == pa.RecordBatchReader.from_stream(ds).read_all().num_rows == 3
    assert ds.count() == sum(batch.num_rows for batch in ds.iter_batches()) == 3
    assert ds.head(2).num_rows == 2
    assert "in" in str(ds.explain())
    pyparq.write_table(ds, tmp_path / "table.parquet")
    pyparq.write_dataset(ds, tmp_path / "set")
    pyparq.rewrite(tmp_path / "in", tmp_path / "rewritten.parquet")
    pyparq.merge(tmp_path / "in", tmp_path / "merged.parquet")
    for name in ("table.parquet", "set", "rewritten.parquet", "merged.parquet"):
        assert pyparq.read_table(tmp_path / name).shape == (3, 0)


def test_partitions_of_files_without_columns(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"p={k}").mkdir()
        pyparq.write_table(pa.table({"a": [0] * k}).select([]), tmp_path / f"p={k}" / "a.parquet")
    assert pyparq.read_table(tmp_path).to_pydict() == {"p": [1, 2, 2]}
    assert pyparq.read_table(tmp_path, filters=col("p") > 1).to_pydict() == {"p": [2, 2]}


@pytest.mark.parametrize("files", [1, 2])
def test_columns_of_one_name(tmp_path: Path, files: int) -> None:
    table = pa.table([pa.array([1, 2]), pa.array(["x", "y"]), pa.array([5, 6])], names=["a", "a", "b"])
    for k in range(files):
        put(table, tmp_path / "in" / f"{k}.parquet")
    ds, whole = pyparq.dataset(tmp_path / "in"), pa.concat_tables([table] * files)
    assert ds.schema.names == ["a", "a", "b"]
    assert ds.read().to_arrow().equals(whole)
    assert pyparq.scan(tmp_path / "in").to_table().to_arrow().equals(whole)
    assert pa.RecordBatchReader.from_stream(ds).read_all().equals(whole)
    assert ds.plan().scan().to_table().to_arrow().equals(whole)
    half = ds.read(filters=col("b") == 5).to_arrow()
    assert half.column_names == ["a", "a", "b"]
    assert half.columns[1].to_pylist() == ["x"] * files
    assert ds.count(col("b") == 5) == files
    assert ds.read(["b"]).to_pydict() == {"b": [5, 6] * files}
    with pytest.raises(ColumnNotFoundError, match="2 columns"):
        ds.read(["a"])


def same_names(first: int = 1) -> pa.Table:
    """Columns of one name, fields of one name, and a column that has a name of its own."""
    struct = pa.StructArray.from_arrays(
        [pa.array([first, 2]), pa.array(["u", None]), pa.array([5, 6])], ["u", "u", "v"]
    )
    small = pa.array([10 * first, 20], pa.int32())
    return pa.table([pa.array([first, 2]), pa.array(["x", "y"]), small, struct, struct], ["a", "a", "b", "s", "s"])


def test_a_folder_of_repeated_names_reads_as_its_file(tmp_path: Path) -> None:
    table = same_names()
    put(table, tmp_path / "in" / "0.parquet")
    file = pyparq.read_table(tmp_path / "in" / "0.parquet").to_arrow()
    assert file.equals(table)
    ds = pyparq.dataset(tmp_path / "in")
    assert ds.read().to_arrow().equals(file)
    assert ds.plan().scan().to_table().to_arrow().equals(file)
    assert ds.read(["b"]).to_arrow().equals(file.select([2]))
    assert ds.read(filters=col("b") == 20).to_arrow().equals(file.slice(1))
    assert ds.tree.names == ["a", "a", "b", "s", "s"]
    for name in ("a", "s", "s.u", "s.v"):
        with pytest.raises(ColumnNotFoundError, match=r"(2|4) columns"):
            ds.read([name])
        with pytest.raises(ColumnNotFoundError):
            ds.count(col(name).is_null())


def test_files_of_repeated_names_and_other_types(tmp_path: Path) -> None:
    """In another order, with wider types: the first of a name goes with the first."""
    first, other = same_names(), same_names(7)
    turned = [other.columns[2].cast(pa.int64()), other.columns[0], other.columns[3]]
    other = pa.table(turned, names=["b", "a", "s"])
    put(first, tmp_path / "0.parquet")
    put(other, tmp_path / "1.parquet")
    found = pyparq.read_table(tmp_path).to_arrow()
    assert found.column_names == ["a", "a", "b", "s", "s"]
    assert [column.to_pylist() for column in found.columns[:3]] == [
        [1, 2, 7, 2],
        ["x", "y", None, None],
        [10, 20, 70, 20],
    ]
    inner = found.columns[3].combine_chunks()
    assert [inner.field(k).to_pylist() for k in range(3)] == [[1, 2, 7, 2], ["u", None, "u", None], [5, 6, 5, 6]]
    assert found.columns[4].is_null().to_pylist() == [False, False, True, True]
    assert pyparq.dataset(tmp_path).read(filters=col("b") == 70).to_arrow().equals(found.slice(2, 1))


def test_repeated_names_are_written_as_pyarrow_does(tmp_path: Path) -> None:
    table = same_names()
    source = tmp_path / "in" / "0.parquet"
    put(table, source)
    pyparq.write_table(table, tmp_path / "table.parquet")
    pyparq.write_table(pyparq.read_table(source), tmp_path / "ours.parquet", schema=pyparq.read_schema(source))
    pyparq.rewrite(source, tmp_path / "one.parquet", sort_by=["b"])
    pyparq.rewrite(tmp_path / "in", tmp_path / "many", filters=col("b") > 0)
    pyparq.write_dataset(table, tmp_path / "set")
    pyparq.write_dataset(table, tmp_path / "parted", partition_cols=["b"])
    pyparq.rewrite(source, source, compression="zstd")
    for made in (tmp_path / "table.parquet", tmp_path / "ours.parquet", tmp_path / "one.parquet", source):
        assert pq.ParquetFile(made).read().equals(table)
        assert pyparq.read_table(made).to_arrow().equals(table)
        assert pyparq.verify(made).ok
    for folder in (tmp_path / "many", tmp_path / "set"):
        assert pyparq.read_table(folder).to_arrow().equals(table)
    assert pyparq.read_table(tmp_path / "parted").column_names == ["a", "a", "s", "s", "b"]
    with pyparq.ParquetWriter(tmp_path / "twice.parquet", table.schema) as writer:
        writer.write(table)
        writer.write(pyparq.read_table(source))
    assert pq.ParquetFile(tmp_path / "twice.parquet").read().equals(pa.concat_tables([table, table]))


def test_int96_of_repeated_names_is_rewritten(tmp_path: Path) -> None:
    """The bytes are kept, which needs no option by name; where a filter needs the times, only the values stay."""
    table = pa.table([pa.array([NOON], pa.timestamp("ns"))] * 3, names=["t", "t", "other"])
    pq.write_table(table, tmp_path / "0.parquet", use_deprecated_int96_timestamps=True)
    pyparq.rewrite(tmp_path / "0.parquet", tmp_path / "1.parquet")
    assert pq.ParquetFile(tmp_path / "1.parquet").read().equals(table)
    leaves = pyparq.ParquetFile(tmp_path / "1.parquet").tree.leaves
    assert [leaf.type.kind for leaf in leaves] == ["int96"] * 3
    pyparq.rewrite(tmp_path / "0.parquet", tmp_path / "2.parquet", filters=col("other") == NOON)
    assert pq.ParquetFile(tmp_path / "2.parquet").read().equals(table)
    leaves = pyparq.ParquetFile(tmp_path / "2.parquet").tree.leaves
    assert [leaf.type.kind for leaf in leaves] == ["timestamp", "timestamp", "int96"]


def test_options_for_repeated_names(tmp_path: Path) -> None:
    """A name that several columns have identifies none of them; everything else is as ever."""
    table = same_names()
    for options in ({"sort_by": ["a"]}, {"bloom_filters": ["a"]}, {"column_encoding": {"a": "PLAIN"}}):
        with pytest.raises(ColumnNotFoundError, match="2 columns have the name 'a'"):
            pyparq.write_table(table, tmp_path / "t.parquet", **options)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="2 columns have the name 'a'"):
        pyparq.write_dataset(table, tmp_path / "set", partition_cols=["a"])
    with pytest.raises(DataError, match="two columns have the name 'a'"):
        pyparq.write_table(table.select([0, 1]), tmp_path / "t.parquet", schema={"a": "int64"})
    assert not (tmp_path / "t.parquet").exists()
    pyparq.write_table(table, tmp_path / "t.parquet", bloom_filters=True, sort_by=["b"], store_schema=True)
    assert pq.ParquetFile(tmp_path / "t.parquet").read().equals(table)
    key = b"0123456789abcdef"
    sealed = pyparq.EncryptionProperties(footer_key=key)
    pyparq.write_table(table, tmp_path / "e.parquet", encryption=sealed)
    keys = pyparq.DecryptionProperties(footer_key=key)
    assert pyparq.read_table(tmp_path / "e.parquet", decryption=keys).to_arrow().equals(table)


NOON = dt.datetime(2024, 7, 1, 12)
MIXED = {
    "int64, float64": (pa.array([1, None]), pa.array([2.5, None]), [1.0, None, 2.5, None]),
    "float64, uint64": (pa.array([0.5]), pa.array([7], pa.uint64()), [0.5, 7.0]),
    "int64, uint64": (pa.array([-1]), pa.array([2**64 - 1], pa.uint64()), [-1, 2**64 - 1]),
    "float32, int64": (pa.array([0.5], pa.float32()), pa.array([2**53]), [0.5, 2.0**53]),
    "with and without zone": (
        pa.array([NOON], pa.timestamp("us")),
        pa.array([NOON], pa.timestamp("ms", "Europe/Rome")),
        [NOON.replace(tzinfo=dt.UTC)] * 2,
    ),
    "zone first": (
        pa.array([NOON], pa.timestamp("ns", "UTC")),
        pa.array([NOON, None], pa.timestamp("us")),
        [NOON.replace(tzinfo=dt.UTC)] * 2 + [None],
    ),
    "string, binary": (pa.array(["\u00fc"]), pa.array([b"\xff"]), ["\u00fc".encode(), b"\xff"]),
    "category, binary": (pa.array(["a"]).dictionary_encode(), pa.array([b"b"]), [b"a", b"b"]),
    "fixed, string": (pa.array([b"xy"], pa.binary(2)), pa.array(["z"]), [b"xy", b"z"]),
}


def pasted(message: str) -> Any:
    """What a user would paste: the argument at the end of the message."""
    return eval(message.split("schema=", 1)[1], {"pyparq": pyparq})


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", MIXED)
def test_a_refused_mixture_says_what_to_declare(tmp_path: Path, kind: str, nested: bool) -> None:
    *arrays, expected = MIXED[kind]
    for k, values in enumerate(arrays):
        held = pa.StructArray.from_arrays([values], names=["w"]) if nested else values
        put(
            pa.table({"id": [k] * len(values), "v": held, f"only{k}": [["x"]] * len(values)}), tmp_path / f"{k}.parquet"
        )
    with pytest.raises(SchemaError, match="no common type") as error:
        pyparq.read_table(tmp_path)
    assert error.value.column == ("v.w" if nested else "v")
    found = pyparq.dataset(tmp_path, schema=pasted(error.value.message)).read().to_arrow()
    assert found.column_names == ["id", "v", "only0", "only1"]
    values = found["v"].to_pylist()
    assert [row["w"] for row in values] == expected if nested else values == expected
    assert found["only1"].to_pylist()[-1] == ["x"]


def test_filters_on_a_pasted_schema(tmp_path: Path) -> None:
    """A point in time is the same in files with a zone and without one."""
    for k, type_ in enumerate([pa.timestamp("us"), pa.timestamp("ms", "Europe/Rome"), pa.timestamp("ns")]):
        moments = pa.array([NOON, NOON + dt.timedelta(days=1)], type_)
        put(pa.table({"id": [2 * k, 2 * k + 1], "v": moments, "l": [[m] for m in moments]}), tmp_path / f"{k}.parquet")
    with pytest.raises(SchemaError) as error:
        pyparq.read_table(tmp_path)
    ds = pyparq.dataset(tmp_path, schema=pasted(error.value.message))
    rome = NOON.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=2)))
    for value in (NOON, rome, pd.Timestamp(rome), rome.isoformat(), np.datetime64(NOON)):
        assert ds.read(["id"], col("v") == value).to_pydict() == {"id": [0, 2, 4]}
        assert ds.read(["id"], col("v") > value).to_pydict() == {"id": [1, 3, 5]}
        assert ds.count(col("v").isin([value])) == ds.count(col("l").contains(value)) == 3
        assert ds.lookup("v", value, columns=["id"]).num_rows == 3
    assert ds.count(col("v") > "2024-07-01T13:59:59.999999999+02:00") == 6
    assert ds.count(col("v") >= "2024-07-01T14:00:00.000000001+02:00") == 3


def test_a_mixture_that_no_type_holds(tmp_path: Path) -> None:
    put(pa.table({"id": [1], "v": [1]}), tmp_path / "0.parquet")
    put(pa.table({"v": ["one"], "id": [2], "s": [{"u": 1.5, "m": {"k": 1}}]}), tmp_path / "1.parquet")
    with pytest.raises(SchemaError, match="or read the other columns") as error:
        pyparq.read_table(tmp_path)
    found = pyparq.dataset(tmp_path, schema=pasted(error.value.message)).read()
    assert found.to_pydict() == {"id": [1, 2], "s": [None, {"u": 1.5, "m": {"k": 1}}]}


def test_values_that_the_declared_type_does_not_hold(tmp_path: Path) -> None:
    put(pa.table({"v": [2**53 + 1]}), tmp_path / "0.parquet")
    put(pa.table({"v": [0.5]}), tmp_path / "1.parquet")
    with pytest.raises(SchemaError) as error:
        pyparq.read_table(tmp_path)
    with pytest.raises(DataError):
        pyparq.dataset(tmp_path, schema=pasted(error.value.message)).read()


def test_advice_without_an_example(tmp_path: Path) -> None:
    """Where the columns are too many, or have no text."""
    many = {f"column_{k:04d}": [k] for k in range(500)}
    put(pa.table({"v": [1]} | many), tmp_path / "0.parquet")
    put(pa.table({"v": [0.5]}), tmp_path / "1.parquet")
    with pytest.raises(SchemaError, match="with the type to read, such as float64") as error:
        pyparq.read_table(tmp_path)
    assert len(error.value.message) < 1000
    ids = [pa.field("v", type_, metadata={"PARQUET:field_id": "1"}) for type_ in (pa.int64(), pa.float64())]
    for k, field in enumerate(ids):
        put(pa.table([pa.array([1], field.type)], schema=pa.schema([field])), tmp_path / f"{k}.parquet")
    with pytest.raises(SchemaError, match="with the type to read"):
        pyparq.dataset(tmp_path, by="field_id").read()


# ---- columns that clash, and those that schema= leaves out


@pytest.fixture
def clashing(tmp_path: Path) -> Path:
    """`id` and `zip` have no common type, `name` and `s` have one."""
    folder = tmp_path / "clashing"
    put(pa.table({"id": [1, 2], "name": ["a", "b"], "zip": [10, 20], "s": [{"u": 1}] * 2}), folder / "1.parquet")
    put(
        pa.table({"id": [1.5, 2.5], "name": ["c", "d"], "zip": ["030", "4"], "s": [{"u": 2}] * 2}), folder / "2.parquet"
    )
    return folder


@pytest.mark.parametrize("columns", [["name"], ["name", "s.u"], [("s", "u")], ["s"]], ids=str)
def test_only_wanted_columns_need_a_common_type(clashing: Path, columns: list[Any]) -> None:
    names = [name.partition(".")[0] if isinstance(name, str) else name[0] for name in columns]
    theirs = pq.read_table(clashing, columns=names).to_pylist()
    assert pyparq.read_table(clashing, columns=columns).to_pylist() == theirs
    ds = pyparq.dataset(clashing)
    assert ds.read(columns, col("name") > "b").num_rows == pl.scan_parquet(clashing / "*").select(
        pl.col("name") > "b").collect().sum().item()  # fmt: skip
    assert pyparq.read_table(clashing, columns=columns, filters="name = 'c' or s.u = 1").num_rows == 3
    assert ds.count(col("name") == "c") == 1
    assert ds.count() == 4


@pytest.mark.parametrize(
    "ask",
    [
        {"columns": ["zip"]}, {"columns": ["name"], "filters": col("zip") == 10},
        {"columns": [], "filters": "zip = 10"},
        {"columns": ["name"], "filters": [("zip", "==", 10)]}, {"columns": ["name", ("zip",)]},
    ],
    ids=str,
)  # fmt: skip
def test_a_wanted_column_that_clashes(clashing: Path, ask: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"int64 in .* and string here") as error:
        pyparq.read_table(clashing, **ask)
    assert error.value.column == "zip"
    with pytest.raises(ColumnNotFoundError, match="nothing"):
        pyparq.read_table(clashing, columns=["nothing"])


def test_all_clashing_columns_are_named(clashing: Path) -> None:
    with pytest.raises(SchemaError, match="without 'zip', which has no common type") as error:
        pyparq.read_table(clashing)
    assert error.value.column == "id"
    assert pasted(error.value.message).keys() == {"id", "name", "s"}


def test_a_partition_takes_the_place_of_columns_that_clash(tmp_path: Path) -> None:
    put(pa.table({"x": [1], "p": [1]}), tmp_path / "p=1" / "a.parquet")
    put(pa.table({"x": [2], "p": ["two"]}), tmp_path / "p=2" / "a.parquet")
    assert pyparq.read_table(tmp_path).to_pylist() == [{"x": 1, "p": 1}, {"x": 2, "p": 2}]


@pytest.mark.parametrize("schema", [{"id": "float64?", "name": "string?"}, {"s": "struct<v: int64?>?"}], ids=str)
def test_a_schema_that_leaves_out_columns_says_so(clashing: Path, schema: dict[str, str]) -> None:
    """polars refuses such a schema; pyarrow reads less."""
    ds = pyparq.dataset(clashing, schema=schema)
    with pytest.warns(pyparq.LeftOutColumnsWarning, match="zip.*1.parquet"):
        ds.read()
    before = {path.name: path.read_bytes() for path in clashing.iterdir()}
    with pytest.raises(OptionError, match=r"leaves out columns.*zip.*columns="):
        pyparq.rewrite(ds, clashing, mode="overwrite")
    with pytest.raises(OptionError, match="leaves out columns"):
        pyparq.rewrite(pyparq.dataset(clashing / "1.parquet", schema=schema), clashing / "1.parquet")
    assert {path.name: path.read_bytes() for path in clashing.iterdir()} == before
    pyparq.rewrite(ds, clashing, mode="overwrite", columns=list(schema))  # asked for
    assert pyparq.read_schema(clashing).names == list(schema)


def test_a_schema_with_all_columns_says_nothing(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    schema = {"x": "int64?", "c0": "int64?", "c1": "int64?", "c2": "int64?"}
    assert pyparq.dataset(folder, schema=schema).read().num_rows == 8
    pyparq.dataset(folder, schema={"x": "int64?"}).count()
    pyparq.dataset(folder, schema={"x": "int64?", "c0": "int64?"}).read(["x"])
    assert not [w for w in recwarn if issubclass(w.category, pyparq.LeftOutColumnsWarning)]
