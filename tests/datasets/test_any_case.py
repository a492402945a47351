"""``case_sensitive=False``: columns are found without regard to case, in a file and across the files of a folder."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import ok, refused

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, OptionError, ParquetError, SchemaError

ITEM = pa.struct([("Name", pa.string()), ("size", pa.int32())])
NESTED = pa.struct([("Lat", pa.float64()), ("Where", pa.struct([("City", pa.string())]))])


def table(first: int = 0) -> pa.Table:
    return pa.table(
        {
            "Id": pa.array([first, first + 1, first + 2], pa.int64()),
            "Place": pa.array([{"Lat": 1.5, "Where": {"City": "Lima"}}, None, {"Lat": 2.5, "Where": None}], NESTED),
            "Items": pa.array([[{"Name": "x", "size": 1}], [], None], pa.list_(ITEM)),
            "Tags": pa.array([[("K", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        }
    )


def put(data: pa.Table, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)
    return path


def any_case(source: Any, columns: Any = None, filters: Any = None, **options: Any) -> pa.Table:
    return pyparq.read_table(source, columns, filters, case_sensitive=False, **options).to_arrow()


# ---- one file


@pytest.mark.parametrize("make", [lambda path: path, lambda path: path.parent], ids=["file", "folder"])
def test_names_in_any_case(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    source, data = make(put(table(), tmp_path / "in" / "a.parquet")), table()
    assert any_case(source, ["ID"]).equals(data.select(["Id"]))
    assert any_case(source, ["PLACE", "id"]).equals(data.select(["Place", "Id"]))
    city = any_case(source, ["place.where.CITY"]).schema
    assert city == pq.ParquetFile(tmp_path / "in" / "a.parquet").read(["Place.Where.City"]).schema
    assert any_case(source, [("place", "LAT")])["Place"].to_pylist()[0] == {"Lat": 1.5}
    assert any_case(source, ["id"], col("ID") == 1)["Id"].to_pylist() == [1]
    assert any_case(source, ["id"], [("ID", ">", 0), ("iD", "<", 2)])["Id"].to_pylist() == [1]
    assert any_case(source, ["id"], col("place.WHERE.city") == "Lima")["Id"].to_pylist() == [0]
    assert any_case(source, ["id"], col("place", "lat") > 2)["Id"].to_pylist() == [2]
    assert any_case(source, ["id"], col("ITEMS.name").contains("x"))["Id"].to_pylist() == [0]
    assert any_case(source, ["id"], col("tags.KEY").contains("K"))["Id"].to_pylist() == [0]
    assert any_case(source, ["id"], col("place").is_null())["Id"].to_pylist() == [1]
    assert any_case(source, ["items.NAME"]).schema.field("Items").type.value_type.names == ["Name"]
    with pytest.raises(ColumnNotFoundError, match="'Idd'"):
        any_case(source, ["Idd"])
    with pytest.raises(ColumnNotFoundError, match="'ID'"):
        pyparq.read_table(source, ["ID"])
    with pytest.raises(ColumnNotFoundError):
        pyparq.read_table(source, filters=col("ID") == 1)


def test_other_options_name_columns_too(tmp_path: Path) -> None:
    path = put(pa.table({"Text": ["a", "a"], "n": [1, 2]}), tmp_path / "a.parquet")
    assert pa.types.is_dictionary(any_case(path, read_dictionary=["TEXT"]).schema.field("Text").type)
    assert any_case(path, binary_columns=["tEXT"]).schema.field("Text").type == pa.binary()
    with pyparq.ParquetFile(path, case_sensitive=False) as file:
        assert file.read(["TEXT"]).column_names == ["Text"]
        assert file.column_index(0, "TEXT") is None
        assert file.scan(["N"], col("N") == 2).count() == 1


@pytest.mark.parametrize("make", [lambda path: path, lambda path: path.parent], ids=["file", "folder"])
def test_two_columns_that_differ_by_case(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    inner = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["u", "U"])
    data = pa.table({"a": [1, 2], "A": ["x", "y"], "b": [5, 6], "s": inner})
    source = make(put(data, tmp_path / "in" / "a.parquet"))
    assert any_case(source).equals(data)
    assert any_case(source, ["B"]).equals(data.select(["b"]))
    assert any_case(source, ["S"], col("B") == 6).equals(data.select(["s"]).slice(1))
    for name in ("a", "A", "s.u", "S.U"):
        with pytest.raises(ColumnNotFoundError, match="matches 2 columns"):
            any_case(source, [name])
        with pytest.raises(ColumnNotFoundError, match="matches 2 columns"):
            any_case(source, filters=col(name) == 1)
    assert any_case(source, [("A",)]).equals(data.select(["A"]))
    assert any_case(source, [("b",)], col(("A",)) == "y")["b"].to_pylist() == [6]
    assert any_case(source, [("b",)], col("s", "U") == 3)["b"].to_pylist() == [5]
    assert any_case(source, [("s", "U")])["s"].to_pylist() == [{"U": 3}, {"U": 4}]


# ---- many files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Names in three spellings, wider types, other orders."""
    put(pa.table({"Id": pa.array([1, 2], pa.int32()), "s": [{"Lat": 1.0, "Note": "n"}] * 2}), tmp_path / "in/0.parquet")
    put(pa.table({"s": [{"lat": 2.5}] * 2, "ID": pa.array([3, 4])}), tmp_path / "in/1.parquet")
    put(pa.table({"id": pa.array([5, 6], pa.int16()), "Extra": ["e", "f"]}), tmp_path / "in/2.parquet")
    return tmp_path / "in"


def test_files_that_spell_a_column_differently(folder: Path) -> None:
    ds = pyparq.dataset(folder, case_sensitive=False)
    assert ds.schema.names == ["Id", "s", "Extra"]
    whole = ds.read().to_arrow()
    assert whole["Id"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert whole["Id"].type == pa.int64()
    assert [None if row is None else row["Lat"] for row in whole["s"].to_pylist()] == [1, 1, 2.5, 2.5, None, None]
    assert whole["s"].to_pylist()[2] == {"Lat": 2.5, "Note": None}
    assert whole["Extra"].to_pylist() == [None] * 4 + ["e", "f"]
    assert ds.read(["EXTRA", "iD"], col("ID") > 4).to_pydict() == {"Extra": ["e", "f"], "Id": [5, 6]}
    assert ds.read(["id"], col("S.lat") > 2).to_pydict() == {"Id": [3, 4]}
    assert ds.read(["id"], (col("EXTRA") == "e") | (col("s.NOTE") == "n")).to_pydict() == {"Id": [1, 2, 5]}
    assert ds.count(col("id").isin([1, 3, 5])) == 3
    assert ds.lookup("ID", [2, 3], columns=["Id"]).to_pydict() == {"Id": [2, 3]}
    assert ds.head(5, ["id"]).num_rows == 5
    assert pyparq.scan(folder, ["id"], col("ID") == 6, case_sensitive=False).to_table().to_pydict() == {"Id": [6]}
    assert [batch.num_rows for batch in ds.iter_batches(columns=["ID"])] == [2, 2, 2]
    assert pyparq.read_schema(folder, case_sensitive=False) == ds.schema
    as_duckdb = duckdb.sql(f"select id from read_parquet('{folder}/*.parquet', union_by_name=true) order by id")
    assert [row[0] for row in as_duckdb.fetchall()] == whole["Id"].to_pylist()


def test_a_declared_schema_in_its_spelling(folder: Path) -> None:
    ds = pyparq.dataset(folder, schema={"ID": "int64", "S": "struct<LAT: double?>?"}, case_sensitive=False)
    found = ds.read(filters=col("id") >= 2).to_arrow()
    assert found.column_names == ["ID", "S"]
    assert found["S"].to_pylist() == [{"LAT": 1.0}, {"LAT": 2.5}, {"LAT": 2.5}, None, None]
    assert found["ID"].to_pylist() == [2, 3, 4, 5, 6]


def test_plans_keep_the_option(folder: Path) -> None:
    ds = pyparq.dataset(folder, case_sensitive=False)
    plan = pickle.loads(pickle.dumps(ds.plan(["EXTRA", "iD"], col("ID") > 3)))
    parts = [pickle.loads(pickle.dumps(part)).scan().to_table() for part in plan.split(3)]
    assert plan.join(parts).to_pydict() == {"Extra": [None, "e", "f"], "Id": [4, 5, 6]}
    with pyparq.ParquetFile(folder / "0.parquet", case_sensitive=False) as file:
        single = pickle.loads(pickle.dumps(file.scan(["ID"], col("iD") == 2).plan()))
    with pyparq.ParquetFile(folder / "0.parquet") as file:
        assert file.execute(single).to_pydict() == {"Id": [2]}


def test_a_name_that_one_file_has_twice(tmp_path: Path) -> None:
    """Both spellings stay columns, in every file."""
    inner = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["u", "U"])
    put(pa.table({"a": [1], "A": [2], "b": [3], "s": inner}), tmp_path / "in/0.parquet")
    turned = pa.StructArray.from_arrays([pa.array([20]), pa.array([10])], names=["U", "u"])
    put(pa.table({"s": turned, "B": [30], "A": [20], "a": [10]}), tmp_path / "in/1.parquet")
    put(pa.table({"A": [200], "S": [{"U": 200, "v": 1}]}), tmp_path / "in/2.parquet")
    ds = pyparq.dataset(tmp_path / "in", case_sensitive=False)
    found = ds.read().to_arrow()
    assert found.column_names == ["a", "A", "b", "s"]
    assert found["a"].to_pylist() == [1, 10, None]
    assert found["A"].to_pylist() == [2, 20, 200]
    assert found["b"].to_pylist() == [3, 30, None]
    assert found["s"].to_pylist() == [
        {"u": 1, "U": 2, "v": None}, {"u": 10, "U": 20, "v": None}, {"u": None, "U": 200, "v": 1},
    ]  # fmt: skip
    assert ds.read([("A",)]).to_pydict() == {"A": [2, 20, 200]}
    assert ds.read(["b"], col(("A",)) == 20).to_pydict() == {"b": [30]}
    assert ds.count(col(("a",)).is_null()) == 1
    assert ds.count(col("s", "U") == 200) == 1
    assert ds.count(col("s", "u") == 200) == 0
    plan = pickle.loads(pickle.dumps(ds.plan([("A",)], col(("A",)) > 2)))
    assert plan.scan().to_table().to_pydict() == {"A": [20, 200]}
    for name in ("a", "S.U"):
        with pytest.raises(ColumnNotFoundError, match="matches 2 columns"):
            ds.read([name])
    with pytest.raises(SchemaError, match="differ only by case: 'a', 'A'"):
        pyparq.dataset(tmp_path / "in", schema={"a": "int64"}, case_sensitive=False).read()
    both = pyparq.dataset(tmp_path / "in", schema={"A": "int64?", "a": "int64?"}, case_sensitive=False).read()
    assert both.to_pydict() == {"A": [2, 20, 200], "a": [1, 10, None]}


def test_field_ids_come_first(tmp_path: Path) -> None:
    def numbered(name: str, number: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})

    put(
        pa.table([[1], [2]], schema=pa.schema([numbered("a", 1), pa.field("Rest", pa.int64())])), tmp_path / "0.parquet"
    )
    put(
        pa.table([[3], [4]], schema=pa.schema([numbered("b", 1), pa.field("rest", pa.int64())])), tmp_path / "1.parquet"
    )
    ds = pyparq.dataset(tmp_path, by="field_id", case_sensitive=False)
    assert ds.read().to_pydict()["a"] == [1, 3]
    assert ds.count(col("A") > 1) == 1


# ---- folders


@pytest.fixture
def months(tmp_path: Path) -> Path:
    put(pa.table({"x": [1], "M": [77]}), tmp_path / "in/M=1/a.parquet")
    put(pa.table({"X": [2]}), tmp_path / "in/m=2/a.parquet")
    return tmp_path / "in"


def test_folders_that_spell_a_partition_differently(months: Path) -> None:
    ds = pyparq.dataset(months, case_sensitive=False)
    assert ds.read().to_pydict() == {"x": [1, 2], "M": [1, 2]}
    assert ds.read(filters=col("m") == 2).to_pydict() == {"x": [2], "M": [2]}
    assert ds.read(["m"]).to_pydict() == {"M": [1, 2]}
    assert ds.partitions.names == ["M"]
    assert ds.plan(filters=col("m") == 2).num_rows == 1
    assert pickle.loads(pickle.dumps(ds.plan(filters=col("m") == 2))).scan().to_table().to_pydict() == {
        "x": [2], "M": [2],
    }  # fmt: skip
    declared = pyparq.dataset(months, partitioning={"m": "int64"}, case_sensitive=False)
    assert declared.read().to_pydict() == {"x": [1, 2], "m": [1, 2]}
    shown = pyparq.dataset(months, schema={"X": "int64", "m": "int32"}, case_sensitive=False)
    assert shown.read().to_pydict() == {"X": [1, 2], "m": [1, 2]}
    with pytest.raises(OptionError, match="file names"):
        pyparq.dataset(months, filename="m", case_sensitive=False)


def test_folders_are_told_apart_by_default(months: Path) -> None:
    """Neither a null nor a crash: an error that says what to do."""
    with pytest.raises(OptionError, match="case_sensitive=False"):
        pyparq.read_table(months)
    with pytest.raises(OptionError, match=r"the folder is called M=: give\s+case_sensitive=False"):
        pyparq.dataset(months, partitioning={"m": "int32"})


def test_a_partition_that_one_path_has_twice(tmp_path: Path) -> None:
    put(pa.table({"x": [1]}), tmp_path / "m=1/M=2/a.parquet")
    assert pyparq.read_table(tmp_path).to_pydict() == {"x": [1], "m": [1], "M": [2]}
    with pytest.raises(OptionError, match="m="):
        pyparq.read_table(tmp_path, case_sensitive=False)
    put(pa.table({"x": [1]}), tmp_path / "twice/m=1/m=2/a.parquet")
    with pytest.raises(OptionError, match="called m="):
        pyparq.read_table(tmp_path / "twice")


# ---- elsewhere


def test_the_filename_column(folder: Path) -> None:
    ds = pyparq.dataset(folder, filename=True, case_sensitive=False)
    assert ds.count(col("FileName").starts_with("nowhere")) == 0
    assert ds.lookup("ID", 1, columns=["id"], filename="ID_of").column_names == ["Id", "ID_of"]
    with pytest.raises(OptionError, match="already a column"):
        pyparq.dataset(folder, case_sensitive=False).lookup("id", 1, filename="iD")


def test_the_option_is_checked(folder: Path) -> None:
    with pytest.raises(OptionError, match="case_sensitive must be True or False"):
        pyparq.dataset(folder, case_sensitive="no")  # type: ignore[arg-type]


def test_rewriting_a_dataset(folder: Path, tmp_path: Path) -> None:
    ds = pyparq.dataset(folder, case_sensitive=False)
    pyparq.rewrite(ds, tmp_path / "out.parquet", columns=["ID"], filters=col("iD") > 2)
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"Id": [3, 4, 5, 6]}


def test_command_line(folder: Path) -> None:
    def run(*words: str) -> Any:
        return [json.loads(line) for line in ok(*words).splitlines()]

    source = str(folder)
    rows = run("query", source, "--ignore-case", "-w", "ID > 4", "-c", "EXTRA,id", "--json")
    assert rows == [{"Extra": "e", "Id": 5}, {"Extra": "f", "Id": 6}]
    assert run("head", source, "--ignore-case", "-c", "iD", "-n", "1", "--json") == [{"Id": 1}]
    assert run("lookup", source, "iD", "3", "--ignore-case", "-c", "ID", "--json") == [{"Id": 3}]
    assert "Note" in ok("schema", source, "--ignore-case", "-c", "S")
    assert "Id" in refused(2, "query", str(folder / "0.parquet"), "-w", "ID > 4")


def test_errors_are_ours(tmp_path: Path) -> None:
    put(pa.table({"a": [1]}), tmp_path / "0.parquet")
    put(pa.table({"A": ["x"]}), tmp_path / "1.parquet")
    with pytest.raises(ParquetError, match="no common type") as error:
        pyparq.read_table(tmp_path, case_sensitive=False)
    assert "column a" in str(error.value)
    assert pyparq.dataset(tmp_path).schema.names == ["a", "A"]


# ---- against the same files with names in lower case


def turned(rng: random.Random, name: str) -> str:
    return "".join(rng.choice([letter.lower(), letter.upper()]) for letter in name)


def lowered(array: pa.Array) -> pa.Array:
    """The same values with all names in lower case."""
    if pa.types.is_struct(array.type):
        names = [field.name.lower() for field in array.type]
        return pa.StructArray.from_arrays(
            [lowered(array.field(k)) for k in range(len(names))], names, mask=array.is_null()
        )
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, lowered(array.values), mask=array.is_null())
    return array


def in_lower_case(table: pa.Table) -> pa.Table:
    arrays = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in table.columns
    ]
    return pa.table([*map(lowered, arrays)], names=[name.lower() for name in table.column_names])


def random_columns(rng: random.Random, rows: int) -> dict[str, Any]:
    def whole() -> pa.Array:
        return pa.array([rng.choice([None, 0, 1, 2, 3]) for _ in range(rows)], rng.choice([pa.int16(), pa.int64()]))

    made: dict[str, Any] = {"id": whole()}
    for name in rng.sample(["ab", "cd", "ef"], rng.randint(0, 3)):
        made[name] = whole()
    if rng.random() < 0.8:
        inner = rng.sample(["uv", "wx", "yz"], rng.randint(1, 3))
        made["st"] = pa.StructArray.from_arrays([whole() for _ in inner], [turned(rng, name) for name in inner])
    if rng.random() < 0.6:
        items = pa.StructArray.from_arrays([whole(), whole()], [turned(rng, "uv"), turned(rng, "wx")])
        made["ls"] = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), items)
    names = rng.sample(sorted(made), len(made))
    return {turned(rng, name): made[name] for name in names}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_folders_read_as_in_lower_case(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for k in range(rng.randint(2, 6)):
        data = pa.table(random_columns(rng, rng.randint(1, 8)))
        put(data, tmp_path / "mixed" / f"{turned(rng, 'part')}={k % 3}" / f"{k}.parquet")
        put(in_lower_case(data), tmp_path / "lower" / f"part={k % 3}" / f"{k}.parquet")
    mixed = pyparq.dataset(tmp_path / "mixed", case_sensitive=False)
    lower = pyparq.dataset(tmp_path / "lower")
    expected = sorted(lower.read().to_arrow().to_pylist(), key=str)
    names = [name.lower() for name in mixed.schema.names]
    assert sorted(names) == sorted(lower.schema.names)

    def rows(dataset: Any, filters: Any = None) -> list[Any]:
        columns = None if dataset is lower else [turned(rng, name) for name in lower.schema.names]
        table = in_lower_case(pickle.loads(pickle.dumps(dataset.plan(columns, filters))).scan().to_table().to_arrow())
        assert table.equals(in_lower_case(dataset.read(columns, filters).to_arrow()))
        return sorted((dict(sorted(row.items())) for row in table.to_pylist()), key=str)

    def sorted_fields(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: sorted_fields(value[name]) for name in sorted(value)}
        return [sorted_fields(item) for item in value] if isinstance(value, list) else value

    assert sorted(map(str, map(sorted_fields, rows(mixed)))) == sorted(map(str, map(sorted_fields, expected)))
    paths = [name for name in ("id", "ab", "cd", "part", "st.uv", "st.wx") if _has(lower, name)]
    for path in paths:
        value = rng.randint(0, 3)
        for test in (
            lambda p, value=value: col(p) == value,
            lambda p, value=value: ~(col(p) > value),
            lambda p: col(p).is_null(),
            lambda p, value=value: col(p).isin([value, 1]) | (col(p.split(".")[0]).is_null()),
        ):
            found = sorted(str(sorted_fields(row)) for row in rows(mixed, test(turned(rng, path))))
            assert found == sorted(str(sorted_fields(row)) for row in rows(lower, test(path)))


def _has(dataset: Any, path: str) -> bool:
    try:
        dataset.tree.find(path)
    except ColumnNotFoundError:
        return False
    return True
