"""What a user does with a Table, a Batch and their columns, beside what pyarrow makes of the same."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from written import written

import pyparq
from pyparq.arrow.column import Column
from pyparq.arrow.table import Batch, Table
from pyparq.errors import ColumnNotFoundError, DataError, OptionError, SchemaError

NAMES = {"id": [1, 2, 3, 4, 5], "city": ["Lima", None, "Kyoto", "", "Berlin"], "price": [0.5, None, 1.5, 2.5, 3.5]}


def small(sizes: tuple[int, ...] = (2, 3)) -> Table:
    """Five rows in batches of these sizes."""
    whole, parts, at = pa.table(NAMES), [], 0
    for size in sizes:
        parts.append(whole.slice(at, size).combine_chunks())
        at += size
    return Table.from_arrow(pa.concat_tables(parts))


def both() -> list[Any]:
    """The rows as a table of two batches, and as one batch."""
    return [small(), Batch.from_arrow(small())]


BOTH = pytest.mark.parametrize("data", both(), ids=["table", "batch"])


# ---- columns -------------------------------------------------------------------------------------------------------


@BOTH
def test_columns_by_name_and_number(data: Any) -> None:
    assert data["city"].to_pylist() == NAMES["city"]
    assert data[1] == data["city"] == data[-2] == data[np.int64(1)] == data.column("city")
    assert [column.name for column in data] == list(NAMES)
    assert [column.to_pylist() for column in data] == list(NAMES.values())
    assert data.column_names == list(NAMES)
    assert (data.num_rows, data.num_columns, data.shape, len(data)) == (5, 3, (5, 3), 5)
    assert "city" in data
    assert "town" not in data
    assert 0 not in data
    assert data.nbytes > 5 * 16


@BOTH
def test_columns_that_are_not_there(data: Any) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"no column 'town'; the columns are 'id', 'city', 'price'"):
        data["town"]
    with pytest.raises(KeyError, match="did you mean 'price'"):
        data["Prise"]
    for k in (3, -4):
        with pytest.raises(ColumnNotFoundError, match=f"no column {k}: the table has 3 columns"):
            data[k]
    for wrong in (None, 1.5, True, ["id"], b"id"):
        with pytest.raises(OptionError, match=r"given by name or number.*Use select\(\) for several"):
            data[wrong]


def test_a_name_that_several_columns_have() -> None:
    table = Table.from_arrow(pa.table([[1], [2]], names=["a", "a"]))
    for ask in (lambda: table["a"], lambda: table.select(["a"]), lambda: table.rename({"a": "b"})):
        with pytest.raises(ColumnNotFoundError, match="2 columns have the name 'a'"):
            ask()
    assert [c.to_pylist() for c in table] == [[1], [2]]
    assert table[1].to_pylist() == [2]
    assert table.select([1]).to_pydict() == {"a": [2]}
    assert table.rename(["a", "b"]).to_pydict() == {"a": [1], "b": [2]}


@BOTH
def test_a_column_speaks_arrow(data: Any) -> None:
    column, expected = data["price"], pa.chunked_array([NAMES["price"]])
    assert pa.chunked_array(column).combine_chunks() == expected.combine_chunks()
    assert pa.array(column).to_pylist() == NAMES["price"]
    assert pa.array(column, pa.float32()).type == pa.float32()
    assert pl.Series(column).to_list() == NAMES["price"]
    assert pl.Series(column).name == "price"
    assert pa.field(column) == pa.field("price", pa.float64())
    assert pa.array(data["city"]).to_pylist() == NAMES["city"]
    none = Table.from_batches([], schema={"id": "int16"})["id"]
    assert pa.chunked_array(none).type == pa.int16()
    assert (none.to_pylist(), none.to_numpy().dtype, len(none), none.null_count) == ([], np.int16, 0, 0)


@BOTH
def test_a_column_as_values(data: Any) -> None:
    column = data["price"]
    assert (column.name, str(column.type), column.nullable) == ("price", "float64", True)
    assert (len(column), column.null_count, column.nbytes > 40) == (5, 1, True)
    assert list(column) == column.to_pylist() == NAMES["price"]
    assert [column[0], column[1], column[-1], column[np.int8(2)]] == [0.5, None, 3.5, 1.5]
    assert column.slice(1, 2).to_pylist() == column[1:3].to_pylist() == [None, 1.5]
    assert column.slice(4).to_pylist() == column[-1:].to_pylist() == [3.5]
    assert column[3:1].to_pylist() == []
    assert column[1:3].null_count == 1
    masked = column.to_numpy()
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked.tolist() == NAMES["price"]
    for row in (5, -6):
        with pytest.raises(IndexError, match=f"no row {row}: the column has 5 rows"):
            column[row]
    with pytest.raises(OptionError, match="must have step 1, not 2"):
        column[::2]
    for call in (lambda: column.slice(-1), lambda: column.slice(0, -1), lambda: column["x"]):
        with pytest.raises(OptionError):
            call()


def test_numpy_takes_a_column() -> None:
    when = pa.array([0, None], pa.timestamp("s"))
    table = Table.from_arrow(
        pa.table({"i": [1, None], "f": [0.5, None], "b": [True, None], "t": when, "s": ["x", None]})
    )
    found = {column.name: np.asarray(column) for column in table}
    assert [found[n].dtype.str for n in "ifbts"] == ["<f8", "<f8", "|O", "<M8[s]", "|O"]
    assert [str(found[n][1]) for n in "ifbts"] == ["nan", "nan", "None", "NaT", "None"]
    assert [found[n][0] for n in "ifbs"] == [1, 0.5, True, "x"]
    whole = Table.from_pydict({"i": np.arange(4)})["i"]
    assert np.asarray(whole, np.float32).tolist() == [0, 1, 2, 3]
    assert np.shares_memory(np.asarray(whole), whole.to_numpy())
    assert not np.shares_memory(np.array(whole), whole.to_numpy())


def test_null_counts_of_slices_and_dictionaries() -> None:
    values = pa.array([None, "a", None, "b"]).dictionary_encode()
    table = Table.from_arrow(pa.table({"d": values, "n": pa.nulls(4), "s": ["x", None, None, "y"]}))
    for start in range(4):
        part = table.slice(start)
        assert [c.null_count for c in part] == [sum(v is None for v in c.to_pylist()) for c in part]


# ---- parts ---------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("offset", "length"), [(0, 5), (0, 2), (1, 3), (2, 0), (4, None), (3, 9), (7, 1), (5, None)])
def test_slices(data: Any, offset: int, length: int | None) -> None:
    part = data.slice(offset, length)
    assert type(part) is type(data)
    expected = pa.table(NAMES).slice(offset, length)
    assert part.to_pydict() == expected.to_pydict()
    assert part == type(data).from_arrow(expected)
    pa.table(part).validate(full=True)
    assert data.slice(length=1).num_rows == 1


@BOTH
def test_rows_in_pythons_notation(data: Any) -> None:
    ids = NAMES["id"]
    for key in (slice(1, 3), slice(None), slice(-2, None), slice(3, 1), slice(0, 99), slice(None, -1)):
        assert data[key].to_pydict()["id"] == ids[key]
    for wrong in (slice(0, 4, 2), slice(None, None, -1), slice("a", None)):
        with pytest.raises(OptionError, match="slice"):
            data[wrong]
    assert data.head().num_rows == 5
    assert data.head(2).to_pydict()["id"] == [1, 2]
    for start, length in ((-1, None), (0, -1), (1.5, 1), (0, "a")):
        with pytest.raises(OptionError, match="slice"):
            data.slice(start, length)


def test_slices_and_selections_share_memory() -> None:
    numbers = np.arange(100)
    table = Table.from_pydict({"a": numbers, "b": numbers * 2})
    for part in (table.slice(10, 5), table[10:15], table.select(["a"])[10:15], table.rename({"a": "x"})[10:15]):
        assert np.shares_memory(part[0].to_numpy(), numbers)
        assert part[0].to_pylist() == [10, 11, 12, 13, 14]
    assert np.shares_memory(Table.concat([table, table]).batches[1].columns[0].buffers[0], numbers)
    assert np.shares_memory(pa.table(table)["a"].chunk(0).to_numpy(), numbers)


@BOTH
def test_select(data: Any) -> None:
    for wanted in (["price", "id"], [2, 0], (-1, "id"), iter(["price", 0]), pd.Index(["price", "id"])):
        part = data.select(wanted)
        assert part.column_names == ["price", "id"]
        assert type(part) is type(data)
        assert part.to_pydict() == {"price": NAMES["price"], "id": NAMES["id"]}
    assert data.select([]).shape == (5, 0)
    assert data.select([]).to_pylist() == [{}] * 5
    assert data.select("id").column_names == ["id"]
    for wrong in (0, None):
        with pytest.raises(OptionError, match=r"select\(\) takes names or numbers"):
            data.select(wrong)
    with pytest.raises(OptionError, match="given by name or number"):
        data.select([None])
    with pytest.raises(ColumnNotFoundError, match="did you mean 'city'"):
        data.select(["cty"])


@BOTH
def test_rename(data: Any) -> None:
    renamed = data.rename({"id": "key", "price": "id"})
    assert type(renamed) is type(data)
    assert renamed.column_names == ["key", "city", "id"]
    assert renamed["id"].to_pylist() == NAMES["price"]
    assert data.rename(["a", "b", "c"]) == data.rename_columns(["a", "b", "c"])
    assert data.rename({"id": "id"}) == data == data.rename({})
    assert data.column_names == list(NAMES)
    assert data.rename({0: "key"}).column_names[0] == "key"
    with pytest.raises(ColumnNotFoundError, match="no column 'x'"):
        data.rename({"x": "y"})
    with pytest.raises(ColumnNotFoundError, match="no column 7"):
        data.rename({7: "y"})
    with pytest.raises(SchemaError, match="two columns would have the name 'city'"):
        data.rename({"id": "city"})
    with pytest.raises(SchemaError, match="two columns would have the name 'a'"):
        data.rename(["a", "a", "b"])
    with pytest.raises(SchemaError, match="2 names for 3 columns"):
        data.rename(["a", "b"])
    for wrong in ("abc", 5, {"id": 5}):
        with pytest.raises(OptionError):
            data.rename(wrong)


@BOTH
def test_batches_of_a_size(data: Any) -> None:
    sizes = [b.num_rows for b in data.to_batches()]
    assert sizes == ([2, 3] if isinstance(data, Table) else [5])
    parts = data.to_batches(2)
    assert [b.num_rows for b in parts] == [2, 2, 1]
    assert all(isinstance(b, Batch) and b.schema == data.schema for b in parts)
    assert Table.from_batches(parts) == small()
    assert Batch.from_batches(parts) == Batch.from_arrow(small())
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(OptionError, match="max_chunksize"):
            data.to_batches(wrong)


# ---- joining -------------------------------------------------------------------------------------------------------


def test_concat() -> None:
    table = small()
    twice = Table.concat([table, table.to_batches()[0], table])
    assert twice.to_pydict() == {k: v + v[:2] + v for k, v in NAMES.items()}
    assert [b.num_rows for b in twice.batches] == [2, 3, 2, 2, 3]
    assert Batch.concat([table, table]).to_pydict() == Table.concat([table, table]).to_pydict()
    assert Table.concat(t for t in [table]) == table
    for wrong in (table, 5):
        with pytest.raises(OptionError, match="a list of tables"):
            Table.concat(wrong)
    with pytest.raises(OptionError, match=r"not a dict\. Use from_arrow\(\)"):
        Table.concat([{"a": [1]}])
    with pytest.raises(DataError, match="no tables or batches to join"):
        Table.concat([])


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"id": [1], "town": ["x"]}, "table 1 has column 'town' where the first has column 'city'"),
        ({"city": ["x"], "id": [1]}, "table 1 has column 'city' where the first has column 'id'"),
        ({"id": [1.5], "city": ["x"]}, "column 'id' is float64 in table 1 and int64 in the first"),
        ({"id": [1]}, "table 1 has no column 'city', which the first has"),
        ({"id": [1], "city": ["x"], "more": [1]}, "table 1 has a column 'more', which the first does not have"),
    ],
)
def test_concat_names_the_column_that_differs(other: dict[str, Any], told: str) -> None:
    first = Table.from_pydict({"id": [1], "city": ["x"]})
    with pytest.raises(SchemaError, match=told):
        Table.concat([first, Table.from_pydict(other)])


def test_concat_of_what_readers_make_different() -> None:
    """Text beyond 2 GiB comes with wide offsets; of two files, one may allow nulls."""
    types = [pa.string(), pa.large_string()]
    tables = [
        Table.from_arrow(pa.table([pa.array(["x", "y"], t)], schema=pa.schema([pa.field("c", t, k == 1)])))
        for k, t in enumerate(types)
    ]
    joined = Table.concat(tables)
    assert (str(joined["c"].type), joined["c"].nullable) == ("large_string", True)
    assert joined.to_pydict() == {"c": ["x", "y", "x", "y"]}
    pa.table(joined).validate(full=True)


JOINED = {
    "string view": pa.array(["a", None, "long enough to be elsewhere", "b", "another that is long"], pa.string_view()),
    "list view": pa.array([["a"], None, [], [None, "b"], ["c"]], pa.list_view(pa.string())),
    "large list view": pa.array([[1], None, [], [None, 2], [3]], pa.large_list_view(pa.int8())),
    "dictionary": pa.array(["a", None, "b", "a", "c"]).dictionary_encode(),
    "numbers in a dictionary": pa.array([5, None, 7, 5, 6]).dictionary_encode(),
    "narrow dictionary": pa.array(["a", None, "b", "a", "c"]).cast(pa.dictionary(pa.int8(), pa.string())),
    "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 0], pa.int8()), ["a", None, "b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_one_batch_of_several(name: str) -> None:
    array = JOINED[name]
    parts = [pa.table({"c": array.slice(k, n)}) for k, n in ((1, 3), (0, 5), (3, 2))]
    if isinstance(array, pa.DictionaryArray):  # one of its own
        entries = pa.array([9 if name.startswith("numbers") else "z"], array.type.value_type)
        other = pa.DictionaryArray.from_arrays(pa.array([0, 0], array.type.index_type), entries)
        parts.append(pa.table({"c": other}))
    else:  # in buffers of its own
        own = ["what another buffer holds", "short"] if name == "string view" else [[], array[4].as_py() * 3]
        parts.insert(0, pa.table({"c": pa.array([None, *own], array.type)}))
    joined = Batch.concat([Table.from_arrow(p) for p in parts])
    expected = [v for p in parts for v in p["c"].to_pylist()]
    assert joined["c"].to_pylist() == expected
    out = pa.record_batch(joined)
    out.validate(full=True)
    assert out["c"].to_pylist() == expected
    assert out["c"].type == array.type


@pytest.mark.parametrize("name", JOINED)
def test_no_batches_at_all(name: str) -> None:
    for rows in (0, 3):
        arrow = pa.table({"c": pa.nulls(rows, JOINED[name].type)})
        made = Batch.from_batches([], schema=arrow.schema) if rows == 0 else Batch.from_arrow(arrow)
        assert made["c"].to_pylist() == [None] * rows
        out = pa.record_batch(made)
        out.validate(full=True)
        assert out.schema == arrow.schema


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_binary(), pa.list_(pa.int8()), pa.map_(pa.string(), pa.int8())], ids=str
)
def test_empty_arrays_go_out_with_an_offset(type_: pa.DataType) -> None:
    """They may come without any, and what others read in its place is not theirs."""
    column = Batch.from_batches([], schema=pa.schema([("c", type_)])).columns[0]
    for k in range(100):
        kept = np.full(1 + k % 16, 255, np.uint8)  # memory that is used again has something in it
        del kept
        column.buffers = tuple(np.empty(0, np.uint8) for _ in column.buffers)
        pa.array(column).validate(full=True)


def test_more_entries_than_indices_can_number() -> None:
    type_ = pa.dictionary(pa.int8(), pa.string())
    arrays = [pa.array([f"{k}{n}" for k in range(100)]).cast(type_) for n in "ab"]
    parts = [Table.from_arrow(pa.table({"c": array})) for array in arrays]
    assert Table.concat(parts).to_pydict()["c"][100] == "0b"
    with pytest.raises(DataError, match="200 entries"):
        Batch.concat(parts)


# ---- in and out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_", [Table, Batch])
def test_made_of_what_others_have(class_: Any) -> None:
    arrow = pa.table({"a": [1, 2], "b": ["x", None]})
    made = [
        class_.from_arrow(arrow),
        class_.from_arrow(arrow.to_batches()[0]),
        class_.from_arrow(arrow.to_reader()),
        class_.from_arrow(duckdb.arrow(arrow).arrow()),
        class_.from_pydict({"a": [1, 2], "b": ["x", None]}),
        class_.from_pydict({"a": np.array([1, 2]), "b": pa.array(["x", None])}),
        class_.from_pylist([{"a": 1, "b": "x"}, {"a": 2}]),
        class_.from_batches(arrow.to_batches(max_chunksize=1)),
        class_.from_arrow(class_.from_arrow(arrow)),
    ]
    for one in made:
        assert type(one) is class_
        assert one.to_pydict() == arrow.to_pydict()
        assert one == made[0]
    pandas = class_.from_pandas(pd.DataFrame({"a": [1, 2], "b": ["x", None]}))
    assert pandas.to_pydict() == arrow.to_pydict()
    pd.testing.assert_frame_equal(pandas.to_pandas(), pd.DataFrame({"a": [1, 2], "b": ["x", None]}))
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert class_.from_polars(frame).to_polars().equals(frame)
    assert class_.from_arrow(arrow).to_arrow().to_pydict() == arrow.to_pydict()


@pytest.mark.parametrize("class_", [Table, Batch])
def test_made_under_a_schema(class_: Any) -> None:
    schema = {"b": "string?", "a": "int8?"}
    for one in (
        class_.from_arrow(pa.table({"a": [1], "b": ["x"]}), schema=schema),
        class_.from_pydict({"a": [1], "b": ["x"]}, schema=pyparq.schema(schema)),
        class_.from_pylist([{"a": 1, "b": "x"}], schema=pa.schema([("b", pa.string()), ("a", pa.int8())])),
        class_.from_pandas(pd.DataFrame({"a": [1], "b": ["x"]}), schema=schema),
    ):
        assert [str(f) for f in one.schema] == ["b: string", "a: int8"]
        assert one.to_pydict() == {"b": ["x"], "a": [1]}
    assert class_.from_pylist([], schema=schema).shape == (0, 2)
    assert class_.from_pydict({"a": []}, schema={"a": "int8"}).shape == (0, 1)
    assert class_.from_batches([], schema=schema).shape == (0, 2)
    with pytest.raises(DataError, match=r"300.*int8|int8.*300"):
        class_.from_pydict({"a": [300]}, schema={"a": "int8"})
    with pytest.raises(DataError, match=r"has 1 nulls, but the schema says that it is not nullable \[column a\]"):
        class_.from_pydict({"a": [1, None]}, schema={"a": "int8"})
    with pytest.raises(SchemaError, match="batch 0 has column 'a' where the schema has column 'b'"):
        class_.from_batches([pa.record_batch({"a": [1]})], schema=schema)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Table.from_arrow(5),
        lambda: Table.from_arrow({"a": [1]}),
        lambda: Table.from_arrow(pa.array([1])),
        lambda: Table.from_pandas({"a": [1]}),
        lambda: Table.from_polars(pl.DataFrame({"a": [1]}).lazy().collect),
        lambda: Table.from_pydict([1]),
        lambda: Table.from_pydict({"a": 5}),
        lambda: Table.from_pylist({"a": [1]}),
        lambda: Table.from_pylist("abc"),
        lambda: Table.from_pylist(5),
        lambda: np.asarray(small()),
        lambda: pd.DataFrame(small()),
        lambda: Table(small().schema, [pa.record_batch({"a": [1]})]),
        lambda: Table.from_pylist([1]),
        lambda: Table.from_batches([]),
        lambda: Table.from_batches([{"a": [1]}]),
        lambda: Table(pyparq.schema({"a": "int8"}), [Batch([], 0)]),
    ],
)
def test_made_of_the_wrong_thing(call: Callable[[], Any]) -> None:
    with pytest.raises(pyparq.ParquetError):
        call()


def test_arrow_types_stay() -> None:
    arrow = pa.table({
        "d": pa.array(["a", "b"]).dictionary_encode(),
        "v": pa.array(["a", "b"], pa.string_view()),
        "l": pa.array([[1], None], pa.list_view(pa.int8())),
    })  # fmt: skip
    assert pa.table(Table.from_arrow(arrow)).schema == arrow.schema
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y"])}, index=[5, 6])
    pd.testing.assert_frame_equal(Table.from_pandas(frame).to_pandas(), frame)


def test_a_batch_has_what_a_table_has() -> None:
    public = {name for name in dir(Table) if not name.startswith("_")}
    assert public - set(dir(Batch)) == {"batches", "chunks"}


def test_a_batch_of_a_scan_is_whole() -> None:
    data = written({"a": np.arange(10), "b": ["x"] * 10}, row_group_size=5)
    with pyparq.ParquetFile(data) as file:
        batches = list(file.iter_batches(3))
    assert [b.column_names for b in batches] == [["a", "b"]] * 4
    assert batches[1]["a"].to_pylist() == [3, 4]
    assert pyparq.read_table(written(iter(batches))).to_pydict()["a"] == list(range(10))
    batch = batches[0]  # noqa: F841 (DuckDB finds it by its name)
    assert duckdb.sql("select sum(a) from batch").fetchall() == [(3,)]
    assert pl.DataFrame(batches[0]).shape == (3, 2)
    assert batches[0].to_pandas().shape == (3, 2)
    assert pa.table(batches[0]).num_rows == 3
    assert isinstance(batches[0].to_arrow(), pa.RecordBatch)
    with pyparq.ParquetFile(data) as file:
        batches = file.read().batches  # small row groups are joined
        assert sum(b.num_rows for b in batches) == 10
        assert all(b.schema == file.schema_arrow for b in batches)


def test_a_batch_without_columns_keeps_its_rows() -> None:
    batch = Batch.from_pylist([{}, {}, {}])
    assert batch.shape == (3, 0)
    assert batch.slice(1).num_rows == 2
    assert Table.concat([batch, batch]).num_rows == 6
    assert pickle.loads(pickle.dumps(batch)).num_rows == 3
    assert "3 rows, 0 columns" in repr(batch)


# ---- copies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOINED)
def test_pickled_and_copied(name: str) -> None:
    arrow = pa.table({"c": JOINED[name], "n": range(5)}, metadata={"k": "v"})
    for table in (Table.from_arrow(arrow), Table.from_arrow(arrow).slice(1, 3)):
        for one in (table, table.to_batches()[0], table["c"]):
            for made in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
                assert made == one
                assert type(made) is type(one)
        assert pickle.loads(pickle.dumps(table)).schema.metadata == {b"k": b"v"}


def test_a_pickled_slice_is_small() -> None:
    count = 100_000
    table = Table.from_pydict(
        {"n": np.arange(count), "s": ["text"] * count, "b": np.arange(count) % 2 == 0, "l": [[1, 2]] * count,
         "o": [None, 1] * (count // 2), "t": [{"x": 1}] * count}
    )  # fmt: skip
    part = table.slice(50_001, 10)
    assert len(pickle.dumps(part)) < 5_000
    assert pickle.loads(pickle.dumps(part)) == part
    pa.table(pickle.loads(pickle.dumps(part))).validate(full=True)


def test_a_table_that_was_read_can_be_pickled() -> None:
    sink = io.BytesIO()
    pyparq.write_table({"a": np.arange(10), "s": ["x", None] * 5}, sink)
    table = pyparq.read_table(sink.getvalue(), read_dictionary=["s"])
    assert pickle.loads(pickle.dumps(table)) == table


def test_columns_show_what_they_are() -> None:
    column = Table.from_pydict({"a": [1]}).batches[0].columns[0]
    assert isinstance(column, Column)
    assert repr(column) == "<Column: 1 values of int64>"
    assert pa.array(column).to_pylist() == column.to_pylist() == column.to_numpy().tolist() == [1]
