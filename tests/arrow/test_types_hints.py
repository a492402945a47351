"""What ``ARROW:schema`` hints at is restored; what it lies about is ignored. Dictionaries on request."""

from __future__ import annotations

import base64
import datetime as dt
import io
import random
from decimal import Decimal
from typing import Any

import pytest

import pyparq
from pyparq import col
from pyparq.arrow.schema.ipc_read import HintError, HintSchema
from pyparq.arrow.schema.ipc_write import schema_message
from pyparq.arrow.to_pandas import frame_of
from pyparq.errors import LimitError, OptionError, ParquetError
from pyparq.format.types import DataType
from pyparq.read.hinted_types import restore

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def by_pyarrow(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


TZ = dt.timezone(dt.timedelta(hours=5, minutes=30))
WORDS = ["a", None, "b" * 30, "a", "", "é", "c" * 13, "b" * 30]


def narrow_dictionaries() -> dict[str, Any]:
    integers = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.uint32(), pa.int64(), pa.uint64()]
    return {f"{i}_dictionary": pa.array(WORDS, pa.dictionary(i, pa.string())) for i in integers}


def hinted() -> dict[str, Any]:
    """Columns whose Arrow type Parquet cannot say."""
    times = [dt.datetime(2020, 1, 1, tzinfo=TZ), None] * 4
    return {
        "berlin": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
        "offset": pa.array(times, pa.timestamp("ms", "+05:30")),
        "large_string": pa.array(WORDS, pa.large_string()),
        "large_binary": pa.array([w and w.encode() for w in WORDS], pa.large_binary()),
        "string_view": pa.array(WORDS, pa.string_view()),
        "binary_view": pa.array([w and w.encode() for w in WORDS], pa.binary_view()),
        "dictionary": pa.array(WORDS).dictionary_encode(),
        "binary_dictionary": pa.array([w and w.encode() for w in WORDS]).dictionary_encode(),
        "fixed_list": pa.array([[1, 2, 3], None] * 4, pa.list_(pa.int32(), 3)),
        "full_fixed_list": pa.array([[1.0, None]] * 8, pa.list_(pa.float32(), 2)),
        "large_list": pa.array([["x", None], None, [], ["y"]] * 2, pa.large_list(pa.large_string())),
        "duration": pa.array([1, None, -3, 4] * 2, pa.duration("ms")),
        "struct": pa.array(
            [{"d": "p", "t": times[0]}, None, {"d": None, "t": None}, {"d": "q", "t": times[0]}] * 2,
            pa.struct([("d", pa.dictionary(pa.int32(), pa.string())), ("t", pa.timestamp("us", "+05:30"))]),
        ),
        "list_of_dictionary": pa.array(
            [["a", None], None, [], ["b", "a"]] * 2,
            pa.list_(pa.field("element", pa.dictionary(pa.int32(), pa.string()))),
        ),
        "map": pa.array(
            [[("k", "v" * 20)], None, [], [("l", None)]] * 2, pa.map_(pa.large_string(), pa.string_view())
        ),
        **narrow_dictionaries(),
        "list_view": pa.array([[1, None], None, [], [3]] * 2, pa.list_view(pa.int16())),
        "large_list_view": pa.array([["x" * 20, None], None, [], ["y"]] * 2, pa.large_list_view(pa.string_view())),
        "nested_views": pa.array(
            [[{"v": [[1], None, []], "d": "p"}, None], None, [], [{"v": None, "d": None}]] * 2,
            pa.list_view(pa.struct([
                ("v", pa.list_(pa.list_view(pa.int8()))), ("d", pa.dictionary(pa.uint8(), pa.string()))
            ])),
        ),
        "map_of_views": pa.array(
            [[("k", [Decimal("1.5")])], None, [], [("l", None), ("m", [None])]] * 2,
            pa.map_(pa.string(), pa.list_view(pa.decimal128(4, 1))),
        ),
        "uuid": pa.array([b"0123456789abcdef", None] * 4, pa.uuid()),
        "json": pa.array(['{"a": 1}', None] * 4, pa.json_()),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 1] * 2, pa.int8())),
        "opaque": pa.ExtensionArray.from_storage(
            pa.opaque(pa.int32(), "thing", "someone"), pa.array([1, None] * 4, pa.int32())
        ),
        "tensor": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), (2, 2), dim_names=["x", "y"]),
            pa.array([[1, 2, 3, 4]] * 8, pa.list_(pa.int32(), 4)),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", hinted())
def test_a_hinted_type_is_restored(name: str) -> None:
    table = pa.table({name: hinted()[name], "n": pa.array(range(8))})
    file = by_pyarrow(table, row_group_size=4)
    found = pyparq.read_table(file)
    back = found.to_arrow()
    back.validate(full=True)
    theirs = pq.read_table(io.BytesIO(file))
    assert back.schema.field(name).type == theirs.schema.field(name).type
    assert back.equals(theirs)
    assert pa.schema(pyparq.read_schema(file)).equals(back.schema)
    rows = [6, 0]
    part = pyparq.read_table(file, columns=[name], filters=col("n").isin(rows)).to_arrow()
    part.validate(full=True)
    assert part[name].to_pylist() == [theirs[name].to_pylist()[k] for k in (0, 6)]
    with pyparq.ParquetFile(file) as opened:
        batches = [pa.record_batch(b) for b in opened.iter_batches(3)]
        assert pa.Table.from_batches(batches).equals(theirs)


@pytest.mark.parametrize("name", hinted())
def test_without_hints_a_file_says_what_its_own_schema_says(name: str) -> None:
    table = pa.table({name: hinted()[name]})
    plain = pyparq.read_table(by_pyarrow(table, store_schema=False))
    unhinted = pyparq.read_table(by_pyarrow(table), use_arrow_schema=False)
    assert plain.schema.fields == unhinted.schema.fields
    assert plain.to_pydict() == unhinted.to_pydict()


def test_field_metadata_comes_back_but_not_what_would_mislead() -> None:
    field = pa.field(
        "a", pa.int32(),
        metadata={"note": "kept", "_PL_ENUM_VALUES2": "1;x", "ARROW:extension:name": "arrow.py_extension_type"},
    )  # fmt: skip
    other = pa.field(
        "b", pa.int32(), metadata={"ARROW:extension:name": "vendor.thing", "ARROW:extension:metadata": "m"}
    )
    schema = pa.schema([field, other])
    file = by_pyarrow(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())}, schema=schema))
    found = pyparq.read_schema(file)
    assert found.field("a").metadata == {b"note": b"kept"}
    assert found.field("b").metadata == {b"ARROW:extension:name": b"vendor.thing", b"ARROW:extension:metadata": b"m"}


def test_table_metadata_is_the_file_s_without_the_arrow_schema() -> None:
    file = by_pyarrow(pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}))
    assert pyparq.read_table(file).schema.metadata == {b"k": b"v"}
    assert pyparq.read_schema(file).metadata == {b"k": b"v"}
    with pyparq.ParquetFile(file) as opened:
        assert set(opened.key_value_metadata) == {b"k", b"ARROW:schema"}


# ---- lies ----------------------------------------------------------------------------------------------------------


def lying(data: Any, claimed: Any) -> bytes:
    """A file of ``data`` whose ARROW:schema says ``claimed``."""
    message = claimed if isinstance(claimed, bytes) else base64.b64encode(claimed.serialize().to_pybytes())
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:
        writer.write(data)
        writer.add_key_value_metadata({"ARROW:schema": message})
    return sink.getvalue()


DATA = {
    "i": pa.array([1, None, 3]), "s": pa.array(["x", None, "y"]),
    "t": pa.array([1, None, 2], pa.timestamp("us", "UTC")),
    "l": pa.array([[1], None, [1, 2]]), "f": pa.array([b"0123", None, b"4567"], pa.binary(4)),
}  # fmt: skip
LIES = {
    "i": [pa.string(), pa.timestamp("us", "UTC"), pa.list_(pa.int64()), pa.dictionary(pa.int8(), pa.int64()),
          pa.int8()],
    "s": [pa.int64(), pa.binary(), pa.uuid(), pa.large_binary(), pa.struct([("x", pa.string())])],
    "t": [pa.timestamp("us", "Middle/Earth"), pa.timestamp("us", "../../etc/passwd"), pa.timestamp("ns"), pa.date32()],
    "l": [pa.list_(pa.int64(), 7), pa.map_(pa.int64(), pa.int64()), pa.int64(), pa.list_(pa.string()),
          pa.list_(pa.struct([("x", pa.int8())]))],
    "f": [pa.uuid(), pa.binary(5), pa.string(), pa.list_(pa.int8(), 4)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "claimed"), [(n, t) for n, types in LIES.items() for t in types], ids=str)
def test_types_that_lie_are_ignored(name: str, claimed: Any) -> None:
    table = pa.table(DATA)
    schema = table.schema.set(table.schema.get_field_index(name), pa.field(name, claimed))
    found = pyparq.read_table(lying(table, schema))
    assert found.to_arrow().equals(pyparq.read_table(lying(table, table.schema)).to_arrow())
    assert found.to_pydict() == pyparq.read_table(lying(table, schema), use_arrow_schema=False).to_pydict()


@pytest.mark.parametrize(
    "message",
    [b"", b"!!!!", b"AAAA", base64.b64encode(b"\xff\xff\xff\xff" + b"\xff" * 40), base64.b64encode(bytes(64)),
     base64.b64encode(pa.schema([("other", pa.int64())]).serialize().to_pybytes()), b"\xff\xfe"],
)  # fmt: skip
def test_metadata_that_is_no_schema_is_ignored(message: bytes) -> None:
    table = pa.table(DATA)
    assert pyparq.read_table(lying(table, message)).to_arrow().num_rows == 3


@pytest.mark.parametrize("name", hinted())
def test_hinted_types_as_python_objects(name: str) -> None:
    table = pa.table({name: hinted()[name]})
    found = pyparq.read_table(by_pyarrow(table, row_group_size=5))
    objects = table[name].to_pylist() if name != "uuid" else table[name].combine_chunks().storage.to_pylist()
    assert found.to_pydict()[name] == objects
    part = found.slice(3, 4)
    assert part.to_pydict()[name] == objects[3:7]
    assert found.to_numpy(name).tolist() == list(objects) or name in ("berlin", "offset", "duration")  # datetime64


NEW_TO_OTHERS = [
    *narrow_dictionaries(), "list_view", "large_list_view", "nested_views",
    "map_of_views",
]  # fmt: skip


@pytest.mark.parametrize("name", NEW_TO_OTHERS)
def test_hinted_types_in_pandas_and_polars(name: str) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    file = by_pyarrow(pa.table({name: hinted()[name]}), row_group_size=5)
    found = pyparq.read_table(file)
    plain = pyparq.read_table(file, use_arrow_schema=False)
    expected = plain.to_pydict()[name]
    assert listed(frame_of(found)[name]) == expected
    if name not in ("list_view", "nested_views"):  # pyarrow gives arrays; what it cannot convert comes as lists
        assert listed(found.to_pandas()[name]) == expected
    if name.endswith("dictionary"):
        pd.testing.assert_frame_equal(found.to_pandas(), frame_of(found))
        assert found.to_pandas()[name].cat.categories.tolist() == ["a", "b" * 30, "", "é", "c" * 13]
    assert found.to_polars()[name].to_list() == plain.to_polars()[name].to_list()
    assert found.slice(0, 0).to_polars().schema == found.to_polars().schema
    assert (found.to_polars().schema[name] == pl.Categorical) == name.endswith("dictionary")


def listed(series: Any) -> list[Any]:
    """A pandas column's objects, its marks for what is missing as ``None``."""
    return [v if isinstance(v, list) or v == v else None for v in series.tolist()]


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        ("int8_dictionary", col("int8_dictionary") > "a"),
        ("list_view", col("list_view").contains(3)), ("nested_views", col("nested_views.d").contains("p")),
        ("map_of_views", col("map_of_views.value").contains(Decimal("1.5"))),
    ],
)  # fmt: skip
def test_filters_on_hinted_types(name: str, filters: Any) -> None:
    file = by_pyarrow(pa.table({name: hinted()[name]}), row_group_size=4)
    found = pyparq.read_table(file, filters=filters)
    plain = pyparq.read_table(file, filters=filters, use_arrow_schema=False)
    assert 0 < found.num_rows < 8
    assert found.to_pydict() == plain.to_pydict()
    assert found.to_arrow().schema == pq.read_schema(io.BytesIO(file))


@pytest.mark.parametrize("type_", [pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal256(20, 2)])
def test_decimals_of_other_widths_go_out_in_128_bits(type_: pa.DataType) -> None:
    """But to pyarrow by ``to_arrow()``: polars (2.1) takes narrower ones in an Arrow stream for wide ones, and so shows
    other values without a word; wider ones it does not take."""
    pl = pytest.importorskip("polars")
    values = [Decimal("1.25"), None, Decimal("-9999.99"), Decimal(0)]
    table = pa.table({"x": pa.array(values, type_), "l": pa.array([values] * 4, pa.list_(type_))})
    found = pyparq.read_table(by_pyarrow(table))
    assert found.to_arrow().equals(table)
    assert found.slice(1, 2).to_arrow().equals(table.slice(1, 2))
    assert found.to_pydict() == {"x": values, "l": [values] * 4}
    usual = pa.table(found.slice(1, 3))
    assert usual.schema.field("x").type == pa.decimal128(type_.precision, type_.scale)
    assert usual.to_pydict() == {"x": values[1:], "l": [values] * 3}
    assert pa.schema(found) == usual.schema
    for batch in found.batches:
        batch.schema = found.schema
        assert pa.record_batch(batch).to_pydict() == {"x": values, "l": [values] * 4}
    assert found.to_pandas()["x"].tolist() == values
    assert pl.DataFrame(found).to_dict(as_series=False) == {"x": values, "l": [values] * 4}


# ---- types that are too narrow for the data -----------------------------------------------------------------------


MANY = [f"word {k}" for k in range(200)]
SHORT_LISTS = [MANY[k : k + 3] for k in range(0, 198, 3)]
INT8 = pa.dictionary(pa.int8(), pa.string())
INT32 = pa.dictionary(pa.int32(), pa.string())


def in_row_groups(claimed: Any, *parts: list[Any]) -> bytes:
    """One row group for each of the parts, of a type that ``claimed`` cannot always show."""
    plain = {INT8: pa.string(), pa.list_(INT8): pa.list_(pa.string())}[claimed]
    message = base64.b64encode(pa.schema([("w", claimed)]).serialize().to_pybytes())
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:
        for part in parts:
            writer.write(pa.table({"w": pa.array(part, plain)}))
            writer.flush()
        writer.add_key_value_metadata({"ARROW:schema": message})
    return sink.getvalue()


def streamed(file: bytes, batch_size: int | None = None) -> Any:
    with pyparq.ParquetFile(file) as opened:
        found = pa.Table.from_batches([pa.record_batch(b) for b in opened.iter_batches(batch_size)])
    found.validate(full=True)
    return found


@pytest.mark.parametrize(
    ("claimed", "kept", "values"), [(INT8, INT32, MANY), (pa.list_(INT8), pa.list_(INT32), SHORT_LISTS)], ids=str
)
def test_a_dictionary_too_large_for_its_hinted_index_keeps_int32(claimed: Any, kept: Any, values: Any) -> None:
    fits, small = values[: len(values) // 2], values[:5]
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        pq.read_table(io.BytesIO(in_row_groups(claimed, values, small)))
    for parts in ([values, small], [small, values], [values], [fits, small]):
        file = in_row_groups(claimed, *parts)
        found = pyparq.read_table(file).to_arrow()
        found.validate(full=True)
        same = found.schema.field("w").type.equals(kept if values in parts else claimed)
        assert same or claimed != INT8  # (the element's name differs)
        assert "int32" in str(found.schema) or values not in parts
        assert found["w"].to_pylist() == [v for part in parts for v in part]


@pytest.mark.parametrize(("claimed", "values"), [(INT8, MANY), (pa.list_(INT8), SHORT_LISTS)], ids=str)
def test_batches_with_too_large_dictionaries_are_cut(claimed: Any, values: Any) -> None:
    first, nulls = values[:30], [None, *values, None]
    found = streamed(in_row_groups(claimed, first, nulls, values))
    assert "int8" in str(found.schema)
    assert found["w"].to_pylist() == first + nulls + values
    assert found["w"].num_chunks > 3
    # The first row group decides.
    found = streamed(in_row_groups(claimed, values, first), 50)
    assert "int32" in str(found.schema)
    assert found["w"].to_pylist() == values + first


def test_a_row_with_more_words_than_its_indices_number() -> None:
    file = in_row_groups(pa.list_(INT8), [["a"]], [["b"], MANY])
    with pytest.raises(LimitError, match=r"single row.*to_table\(\)"):
        streamed(file)
    assert pyparq.read_table(file).to_pydict() == {"w": [["a"], ["b"], MANY]}


@pytest.mark.parametrize("claim", ["d:12,2,32", "d:9,3", "d:8,2,64", "d:9,2,40", "d:9,2,0"])
def test_decimals_of_other_digits_or_impossible_widths_are_ignored(claim: str) -> None:
    table = pa.table({"d": pa.array([Decimal("1.25"), None], pa.decimal128(12 if claim[2:4] == "12" else 9, 2))})
    message = base64.b64encode(schema_message(pyparq.schema({"d": DataType(claim)})))
    assert pyparq.read_table(lying(table, message)).to_arrow().equals(table)


def test_lists_of_another_size_than_hinted_come_as_lists() -> None:
    dictionary = pa.dictionary(pa.int32(), pa.string())
    table = pa.table({"l": pa.array([["x", "y"], None, ["z"]], pa.list_(pa.string()))})
    found = pyparq.read_table(lying(table, pa.schema([("l", pa.list_(dictionary, 2))]))).to_arrow()
    found.validate(full=True)
    assert found["l"].to_pylist() == [["x", "y"], None, ["z"]]
    # All null: nothing contradicts the size, but it must not cost memory either.
    table = pa.table({"l": pa.array([None, None], pa.list_(pa.int64()))})
    found = pyparq.read_table(lying(table, pa.schema([("l", pa.list_(pa.int64(), 2**30))]))).to_arrow()
    assert found["l"].to_pylist() == [None, None]
    assert found.nbytes < 1000


def fixed_lists_below_nulls() -> dict[str, Any]:
    pair, words = pa.list_(pa.int8(), 2), pa.dictionary(pa.int32(), pa.string())
    required = pa.struct([pa.field("p", pair, nullable=False)])
    return {
        "required in a struct": pa.array([None, {"p": [1, 2]}, None], required),
        "structs in structs": pa.array(
            [{"s": None}, None, {"s": {"p": [1, None]}}], pa.struct([pa.field("s", required), ("n", pa.int8())])
        ),
        "structs in a list": pa.array([[None, {"p": [1, 2]}], None, []], pa.list_(required)),
        "of structs": pa.array([[None], None, [{"p": [3, 4]}]], pa.list_(required, 1)),
        "of dictionaries without values": pa.array([None, None], pa.list_(words, 2)),
        "of structs without values": pa.array([None, None], pa.list_(pa.struct([("w", words)]), 2)),
    }


@pytest.mark.parametrize("name", fixed_lists_below_nulls())
def test_lists_of_a_fixed_size_below_nulls(name: str) -> None:
    """They have no items there, whatever their size. pyarrow 26 reads some of these not at all, so this compares with
    what went in."""
    table = pa.table({"c": fixed_lists_below_nulls()[name]})
    file = io.BytesIO()
    pyparq.write_table(table, file, store_schema=True, row_group_size=2)
    found = pyparq.read_table(file)
    again = io.BytesIO()
    pyparq.write_table(found, again, store_schema=True)
    for source in (file, again):
        back = pyparq.read_table(source).to_arrow()
        back.validate(full=True)
        assert back.schema == table.schema
        assert back.to_pylist() == table.to_pylist()
        with pyparq.ParquetFile(source) as opened:
            assert pa.Table.from_batches([pa.record_batch(b) for b in opened.iter_batches(1)]).equals(back)


def test_broken_messages_raise_hint_errors_only() -> None:
    message = pa.table(hinted()).schema.serialize().to_pybytes()
    random_bytes = random.Random(7)
    whole = by_pyarrow(pa.table(hinted()), compression="none")
    stored = base64.b64encode(message)
    assert stored in whole
    for _ in range(300):
        damaged = bytearray(message)
        for _ in range(random_bytes.randint(1, 8)):
            damaged[random_bytes.randrange(len(damaged))] = random_bytes.randrange(256)
        try:
            schema = HintSchema(bytes(damaged))
            fields = [schema.field(k) for k in range(min(len(schema), 30))]
            for field in fields:
                assert isinstance(field.name + field.format, str)
                assert len(field.metadata) <= 256
                assert field.num_children <= len(damaged)
        except HintError:
            pass
    for _ in range(60):
        damaged = bytearray(message)
        for _ in range(random_bytes.randint(1, 4)):
            damaged[random_bytes.randrange(8, len(damaged))] = random_bytes.randrange(256)
        file = whole.replace(stored, base64.b64encode(bytes(damaged)))
        table = pyparq.read_table(file)
        assert table.num_rows == 8
        assert table.to_arrow().num_rows == 8


# ---- dictionaries on request ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer_dictionary", [True, False])
def test_read_dictionary(writer_dictionary: bool) -> None:
    words = [None if k % 7 == 0 else f"word {k % 13}" for k in range(1000)]
    table = pa.table({"w": words, "n": range(1000), "l": [[w, "z"] if w else None for w in words]})
    file = by_pyarrow(table, store_schema=False, row_group_size=400, use_dictionary=writer_dictionary)
    found = pyparq.read_table(file, read_dictionary=["w", "l"])
    assert str(found.schema.field("w").type) == "dictionary<string>"
    back = found.to_arrow()
    back.validate(full=True)
    assert back["w"].type == pa.dictionary(pa.int32(), pa.string())
    assert back["w"].to_pylist() == words
    assert back["l"].to_pylist() == table["l"].to_pylist()
    assert found.to_numpy("w").tolist() == words
    assert found.to_pydict()["w"] == words
    part = pyparq.read_table(file, ["w"], (col("w") == "word 3") | col("w").is_null(), read_dictionary=["w"])
    assert part.to_pydict()["w"] == [w for w in words if w in (None, "word 3")]
    sink = io.BytesIO()
    pyparq.write_table(found, sink)  # and in again
    assert pyparq.read_table(sink.getvalue()).to_pydict() == table.to_pydict()


def test_read_dictionary_where_the_dictionary_was_given_up() -> None:
    words = [f"{k % 50:010d}" for k in range(500)] + [f"{k:010d}" for k in range(20_000)]
    words[3] = words[900] = None
    sink = io.BytesIO()
    options: dict[str, Any] = {"column_encoding": "RLE_DICTIONARY", "dictionary_pagesize_limit": 4000}
    pyparq.write_table({"w": words}, sink, max_rows_per_page=300, **options)
    with pyparq.ParquetFile(sink.getvalue(), read_dictionary=["w"]) as opened:
        assert len({page.encoding for page in opened.pages(0, "w")[1:]}) == 2
        table = opened.read()
        assert table.to_pydict()["w"] == words
        (column,) = table.chunks("w")
        assert column.dictionary is not None
        assert column.dictionary.length == len({w for w in words if w})
        assert opened.read(filters=col("w") >= "0000019990").to_pydict()["w"] == words[-10:]


def test_read_dictionary_names_its_columns() -> None:
    file = by_pyarrow(pa.table({"a": [1], "s": ["x"]}))
    with pytest.raises(OptionError, match="string and binary"):
        pyparq.read_table(file, read_dictionary=["a"])
    with pytest.raises(ParquetError, match="did you mean"):
        pyparq.read_table(file, read_dictionary=["ss"])
    assert pa.types.is_dictionary(pyparq.read_table(file, read_dictionary="s").to_arrow().schema.field("s").type)


def test_empty_tables_keep_restored_types() -> None:
    table = pa.table(hinted()).slice(0, 0)
    found = pyparq.read_table(by_pyarrow(table)).to_arrow()
    assert found.schema.equals(pq.read_table(io.BytesIO(by_pyarrow(table))).schema)
    assert found.num_rows == 0


@pytest.mark.parametrize("hinted", ["u", "z"])
def test_long_entries_of_a_hinted_dictionary_stay_long(hinted: str) -> None:
    """Entries whose offsets need 64 bits are decoded as large ones: a hint of 32 bits does not undo that."""
    text = pa.array(["a", "b"], pa.large_string() if hinted == "u" else pa.large_binary())
    indices = pa.array([1, 0, None], pa.int32())
    column = pyparq.Table.from_arrow(pa.table({"x": pa.DictionaryArray.from_arrays(indices, text)}))["x"].chunks[0]
    found = restore(column, DataType("i", (), DataType(hinted)), 1 << 20)
    assert found.type == DataType("i", (), DataType(hinted.upper()))
    assert found.dictionary is column.dictionary
    other = restore(column, DataType("i", (), DataType("vu" if hinted == "u" else "vz")), 1 << 20)
    assert other.type.dictionary == DataType("vu" if hinted == "u" else "vz")
