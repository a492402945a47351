"""What is written comes back as it was: every type of pyarrow, polars and pandas, as ``docs/types.md`` says; and the
Arrow schema is stored when, and only when, the file's own schema would lose something."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import io
import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encryption_tools import FOOTER, OTHER
from hypothesis import given, settings
from hypothesis import strategies as st
from type_kinds import ARROW, arrow_array, arrow_forms, contents
from types_matrix import LIBRARIES, SAME, documented, line_of, metadata, row_of
from written import written

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties
from pyparq.arrow.to_pandas import frame_of

DOCUMENTED = documented()

REFUSED = (
    "struct without fields", "decimal128(5, -2)", "fixed_size_binary[0]", "dense_union", "Struct without fields",
    "Object", "complex128", "Sparse[int64]",
)  # fmt: skip
WRITTEN = [name for name in ARROW if name not in REFUSED]

OURS_DIFFER = {
    "dictionary<bool>",  # booleans have no dictionary pages: the entries come in the order of the values
    "dictionary<struct>",
    "string[python]",  # the metadata of pandas do not tell where strings were kept
    "category", "category, ordered", "category of int64",  # without rows there are no pages, and no entries
    "list<int64>[pyarrow]",  # what pandas calls the type, pandas does not understand
}  # fmt: skip
"""Types that do not come back through pyparq, and why. (Refused ones are not in it.)"""

THEIRS_DIFFER = OURS_DIFFER | {
    "date64", "time32[s]", "timestamp[s]", "timestamp[s, UTC]", "datetime64[s]", "datetime64[s, Asia/Tokyo]",
    "month_day_nano_interval", "run_end_encoded<string>", "run_end_encoded<int64>", "dictionary<large_string>",
    "run_end_encoded<date64>", "dictionary<date64>",
    "dictionary<int64>", "dictionary<double>", "dictionary<date32[day]>", "dictionary<decimal128(5, 1)>",
    "dictionary<timestamp[us, tz=Asia/Tokyo]>", "dictionary<duration[ms]>", "dictionary<fixed_size_binary[2]>",
    "dictionary<int32>, ordered",
}  # fmt: skip
"""What pyarrow makes something else of in its own files too."""


@pytest.mark.sweep(11)
@pytest.mark.parametrize(
    ("library", "k"), [(library, k) for library in LIBRARIES for k in range(len(library.kinds))],
    ids=lambda v: v.name if hasattr(v, "name") else str(v),
)  # fmt: skip
def test_a_type_comes_back_as_documented(library: Any, k: int) -> None:
    name = list(library.kinds)[k]
    row = row_of(library, name)
    assert line_of(row) == DOCUMENTED[library.name][k], "run tests/support/types_matrix.py"
    assert row.parquet.startswith("refused") == (name in REFUSED)
    if name not in REFUSED:
        assert row.ours == SAME or name in OURS_DIFFER
        assert row.theirs == SAME or name in THEIRS_DIFFER


def test_the_documented_tables_have_no_other_types() -> None:
    assert {name: len(lines) for name, lines in DOCUMENTED.items()} == {lib.name: len(lib.kinds) for lib in LIBRARIES}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_second_round_changes_nothing(name: str) -> None:
    """What pyparq read and writes again is the same file, but for where it was made."""
    rows = dict(contents(ARROW[name][1]))["nulls"]
    for _, array in arrow_forms(ARROW[name][0], rows):
        file = written(pa.table({"x": array}))
        again = written(pyparq.read_table(file))
        if name not in OURS_DIFFER:
            assert pyparq.read_table(again).to_arrow().equals(pyparq.read_table(file).to_arrow())
            assert (b"ARROW:schema" in metadata(again)) == (b"ARROW:schema" in metadata(file))


# ---- nested in any way -----------------------------------------------------------------------------------------------

LEAVES = [
    "int8", "string", "string_view", "large_binary", "timestamp[s]", "timestamp[us, Europe/Berlin]", "duration[ns]",
    "date64", "null", "bool8", "dictionary<string>", "dictionary<int64>", "dictionary<string>, ordered", "float16",
    "month_day_nano_interval", "run_end_encoded<string>", "decimal128(38, 3)", "uuid",
]  # fmt: skip


@st.composite
def nested(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    """An array of ``rows`` elements (or more)."""
    if depth == 0 or draw(st.booleans()):
        type_, values = ARROW[draw(st.sampled_from(LEAVES))]
        return arrow_array(type_, [*([None, *values] * rows)[:rows]])
    missing = pa.array([draw(st.booleans()) for _ in range(rows)], pa.bool_())
    kind = draw(st.sampled_from(["struct", "list", "large", "fixed", "view", "map"]))
    if kind == "struct":
        parts = [draw(nested(rows, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        fields = [pa.field(f"f{k}", part.type) for k, part in enumerate(parts)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)
    edges = np.cumsum([0, *(draw(st.integers(0, 2)) for _ in range(rows))])
    name = draw(st.sampled_from(["item", "element", "point"]))
    if kind == "fixed":
        items = draw(nested(rows * 2, depth - 1))
        return pa.FixedSizeListArray.from_arrays(items, type=pa.list_(pa.field(name, items.type), 2), mask=missing)
    items = draw(nested(int(edges[-1]), depth - 1))
    field = pa.field(name, items.type)
    if kind == "map":
        keys = pa.array([str(k) for k in range(len(items))], pa.large_string())
        return pa.MapArray.from_arrays(pa.array(edges, pa.int32()), keys, items, type=pa.map_(pa.large_string(), field))
    if kind == "view":
        sizes = pa.array(np.diff(edges), pa.int32())
        return pa.ListViewArray.from_arrays(pa.array(edges[:-1], pa.int32()), sizes, items, type=pa.list_view(field))
    made, width = (pa.LargeListArray, pa.int64()) if kind == "large" else (pa.ListArray, pa.int32())
    list_type = pa.large_list(field) if kind == "large" else pa.list_(field)
    return made.from_arrays(pa.array(edges, width), items, type=list_type)


def test_ordered_categories_within_list_views() -> None:
    """Items of list views are gathered: they still know the dictionary that they come from."""
    entries = pa.DictionaryArray.from_arrays(pa.array([None, 1, 0], pa.int8()), ["b", "a", "unused"], ordered=True)
    type_ = pa.list_view(pa.field("item", entries.type))
    views = pa.ListViewArray.from_arrays(
        pa.array([1, 0], pa.int32()), pa.array([2, 2], pa.int32()), entries, type=type_
    )
    table = pa.table({"x": views})
    found = pyparq.read_table(written(table)).to_arrow()
    assert found.schema.equals(table.schema)
    assert found.to_pylist() == table.to_pylist()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_types_within_types(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 6))
    table = pa.table({"x": data.draw(nested(rows, 3)), "n": pa.array(range(rows))})
    for row_group_size in (100, 2):
        found = pyparq.read_table(written(table, row_group_size=row_group_size)).to_arrow()
        found.validate(full=True)
        assert found.schema.equals(table.schema)
        assert found.to_pylist() == table.to_pylist()
    part = pyparq.read_table(written(table), filters=pyparq.col("n") >= 2).to_arrow()
    part.validate(full=True)
    assert part.to_pylist() == table.slice(2).to_pylist()


# ---- when, and only when ---------------------------------------------------------------------------------------------


def with_metadata(metadata: dict[str, str]) -> pa.Table:
    return pa.table([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), metadata=metadata)]))


LOSES_NOTHING = {
    "lists": {"i": [1, None], "f": [0.5, 1.5], "s": ["x", None], "b": [b"x", None], "t": [dt.time(1), None],
              "d": [dt.date(2020, 1, 1), None], "ts": [dt.datetime(2020, 1, 1), None], "l": [[1], None],
              "r": [{"a": 1}, None], "n": [decimal.Decimal("1.5"), None], "u": [uuid.uuid4(), None]},
    "numpy": {"i": np.arange(3, dtype=np.int8), "f": np.zeros(3, np.float16), "t": np.zeros(3, "M8[ns]"),
              "d": np.zeros(3, "M8[D]"), "s": np.array(["a", "b", "c"]), "v": np.zeros(3, "V4")},
    "field ids": with_metadata({"PARQUET:field_id": "7"}),
    "metadata of the table": pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}),
    "required": pa.table([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])),
}  # fmt: skip
LOSES = {
    "a numpy duration": {"d": np.zeros(3, "m8[s]")},
    "a Python duration": {"d": [dt.timedelta(1)]},
    "seconds of numpy": {"t": np.zeros(3, "M8[s]")},
    "nothing but nulls": {"n": [None]},
    "one column of many": {"i": [1], "c": pa.array(["x"]).dictionary_encode()},
    "a Series": {"s": pl.Series(["x"])},
    "metadata of a field": with_metadata({"k": "v"}),
    "metadata deep down": pa.table(
        [pa.array([{"s": {"a": 1}}], pa.struct([("s", pa.struct([pa.field("a", pa.int64(), metadata={"k": "v"})]))]))],
        names=["x"],
    ),
    "an extension type": with_metadata({"ARROW:extension:name": "vendor.thing", "ARROW:extension:metadata": ""}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSES_NOTHING)
def test_nothing_is_stored_where_nothing_is_lost(name: str) -> None:
    file = written(LOSES_NOTHING[name])
    assert b"ARROW:schema" not in metadata(file)
    assert b"ARROW:schema" not in metadata(written(pyparq.read_table(file)))


@pytest.mark.parametrize("name", LOSES)
def test_the_schema_is_stored_where_something_is_lost(name: str) -> None:
    file = written(LOSES[name])
    assert b"ARROW:schema" in metadata(file)
    assert b"ARROW:schema" in metadata(written(pyparq.read_table(file)))
    if isinstance(LOSES[name], pa.Table):
        assert pyparq.read_table(file).to_arrow().schema.equals(LOSES[name].schema, check_metadata=True)


def test_a_declared_schema_decides() -> None:
    table = pa.table({"x": pa.array(["a", "b"]).dictionary_encode()})
    for declared, stored in ((pa.schema([("x", pa.string())]), False), (table.schema, True),
                             (pa.schema([("x", pa.large_string())]), True)):  # fmt: skip
        for data in (table, {"x": ["a", "b"]}):
            sink = io.BytesIO()
            with pyparq.ParquetWriter(sink, declared) as writer:
                writer.write(data)
                writer.write(data)
            assert (b"ARROW:schema" in metadata(sink.getvalue())) == stored
            assert pyparq.read_table(sink).to_arrow().schema.equals(declared)
            assert pq.read_schema(sink).equals(declared)
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:  # the first data decide
        writer.write({"x": ["a"]})
        writer.write(table)
    assert b"ARROW:schema" not in metadata(sink.getvalue())


def test_a_schema_that_the_caller_stores_is_left_alone() -> None:
    mine = base64.b64encode(pa.schema([("x", pa.large_string())]).serialize().to_pybytes())
    file = written(pa.table({"x": pa.array(["a"], pa.string_view())}), key_value_metadata={"ARROW:schema": mine})
    assert metadata(file)[b"ARROW:schema"] == mine


# ---- dictionaries ----------------------------------------------------------------------------------------------------


def dictionary(words: list[str | None], entries: list[str], ordered: bool = False) -> pa.Array:
    indices = pa.array([None if w is None else entries.index(w) for w in words], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=ordered)


def test_unused_entries_are_no_values() -> None:
    """They stand in the dictionary page: neither in statistics nor in Bloom filters."""
    array = dictionary(["m", None, "m", "n"] * 100, ["z", "n", "a", "m"], ordered=True)
    file = written(pa.table({"x": array}), bloom_filters=["x"])
    with pyparq.ParquetFile(file) as opened:
        bounds = opened.metadata.row_group(0).column(0).bounds
        assert (bounds.mins[0], bounds.maxs[0]) == (b"m", b"n")
        assert opened._file.chunk(0, opened.tree.leaves[0]).meta.statistics.distinct_count == 2
        assert opened.scan(filters=pyparq.col("x") == "b").to_table().num_rows == 0
    assert pyparq.read_table(file, filters=pyparq.col("x") == "n").num_rows == 100
    assert pyparq.read_table(file).to_arrow().equals(pa.table({"x": array}))


def test_an_order_that_not_all_row_groups_share_is_no_order() -> None:
    first, second = dictionary(["a", "b"], ["b", "a"], True), dictionary(["c", "a"], ["a", "c"], True)
    table = pa.table({"x": pa.chunked_array([first, second])})
    for options in ({}, {"row_group_size": 2}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 3}):
        found = pyparq.read_table(written(table, **options)).to_arrow()
        assert found["x"].to_pylist() == ["a", "b", "c", "a"]
        assert not found["x"].type.ordered
        assert not pq.read_table(io.BytesIO(written(table, **options)))["x"].type.ordered
    kept = pyparq.read_table(written(pa.table({"x": first}), use_dictionary=False)).to_arrow()["x"].type
    assert not kept.ordered
    assert pyparq.read_table(written(pa.table({"x": pa.chunked_array([first, first])}))).to_arrow()["x"].type.ordered


def test_a_dictionary_larger_than_a_page_may_be_is_not_kept() -> None:
    entries = [f"word {k}" for k in range(1000)]
    array = pa.DictionaryArray.from_arrays(pa.array([5, 3], pa.int32()), entries)
    small = written(pa.table({"x": array}), dictionary_pagesize_limit=100)
    assert len(small) < 1000
    assert pyparq.read_table(small).to_pydict() == {"x": ["word 5", "word 3"]}
    assert len(pyparq.read_table(written(pa.table({"x": array}))).to_arrow()["x"].chunk(0).dictionary) == 1000


@pytest.mark.parametrize(
    ("values", "note", "kept"),
    [
        (["lo", "hi"], b"2;hi2;lo3;mid", True), (["lo", "other"], b"2;hi2;lo3;mid", False),
        (["lo", "hi"], b"9;hi2;lo", False), (["lo"], b"2;lo2;lo", False), (["lo"], b"2;l", False),
        ([None], b"", True), (["lo"], b"2;lo1;\xff", False), (["lo"], b"x", False),
    ],
)  # fmt: skip
def test_an_enum_is_one_only_where_all_values_are_its_own(values: list[str | None], note: bytes, kept: bool) -> None:
    """polars would make nulls of others without a word, and panics at what is malformed."""
    field = pa.field("x", pa.dictionary(pa.uint8(), pa.string()), metadata={b"_PL_ENUM_VALUES2": note})
    file = written(
        pa.table([pa.array(values).cast(pa.string()).dictionary_encode().cast(field.type)], schema=pa.schema([field]))
    )
    frame = pl.DataFrame(pyparq.read_table(file))
    assert frame["x"].to_list() == values
    assert isinstance(frame.schema["x"], pl.Enum) == kept
    with pyparq.ParquetFile(file) as opened:
        (batch,) = opened.iter_batches()
        assert pl.DataFrame(batch)["x"].to_list() == values


# ---- those that know no hints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN)
def test_duckdb_reads_the_same_with_and_without_a_hint(name: str, tmp_path: Path) -> None:
    rows = dict(contents(ARROW[name][1]))["nulls"]
    table = pa.table({"x": arrow_array(ARROW[name][0], rows)})
    found = []
    for option in ("auto", False):
        path = tmp_path / f"{option}.parquet"
        pyparq.write_table(table, path, store_schema=option)
        found.append(duckdb.sql(f"select cast(x as varchar) from '{path}'").fetchall())
    assert found[0] == found[1]
    assert sum(x is None for (x,) in found[0]) == len(rows) - sum(v is not None for v in rows)


# ---- encryption ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_hint_tells_no_more_of_an_encrypted_column_than_its_schema(plaintext_footer: bool) -> None:
    frame = pl.DataFrame({
        "secret": pl.Series(["low"], dtype=pl.Enum(["low", "classified"])),
        "open": pl.Series(["low"], dtype=pl.Enum(["low", "public"])),
        "deep": pl.Series([{"e": "low"}], dtype=pl.Struct({"e": pl.Enum(["low", "hidden"])})),
    })  # fmt: skip
    keys = EncryptionProperties(FOOTER, {"secret": OTHER, "deep.e": OTHER}, plaintext_footer=plaintext_footer)
    file = written(frame, encryption=keys)
    read = pyparq.read_table(file, decryption=DecryptionProperties(FOOTER, {"secret": OTHER, "deep.e": OTHER}))
    found = read.to_polars()
    assert found.rows() == frame.rows()
    if not plaintext_footer:
        assert found.schema == frame.schema
        return
    stored = base64.b64decode(metadata(file)[b"ARROW:schema"])
    assert b"public" in stored
    assert b"classified" not in stored
    assert b"hidden" not in stored
    assert found.schema["secret"] == pl.Categorical
    assert found.schema["open"] == frame.schema["open"]


# ---- pandas without pyarrow ------------------------------------------------------------------------------------------

MIXED = pd.DataFrame(
    {
        "Int8": pd.array([1, None, 3], "Int8"), "boolean": pd.array([True, None, False], "boolean"),
        "Float32": pd.array([0.5, None, 1.5], "Float32"), "string": pd.array(["a", None, "c"], "string"),
        "str": ["a", None, "c"], "category": pd.Categorical(["b", None, "a"], ["b", "a", "z"], ordered=True),
        "numbers": pd.Categorical([3, 1, None], [3, 1, 2]),
        "days": pd.Categorical(pd.to_datetime(["2020-01-01", None, "2019-01-01"])),
        "zone": pd.to_datetime(["2020-01-01", None, "2019-01-01"]).tz_localize("Europe/Berlin"),
        "offset": pd.to_datetime(["2020-01-01", None, "2019-01-01"]).tz_localize("+05:30"),
        "seconds": pd.to_datetime(["2020-01-01", None, "2019-01-01"]).as_unit("s"),
        "delta": pd.to_timedelta([1, None, 3], "ms"), "float": [0.5, np.nan, 1.5], "bool": [True, False, True],
        "bytes": [b"x", None, b""],
    },
    index=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["x", None]),
)  # fmt: skip


@pytest.mark.parametrize("row_group_size", [100, 2])
def test_pandas_without_pyarrow_both_ways(row_group_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by our own rules and read by them, and by pandas with pyarrow; and pandas' own files by our rules."""
    theirs = written(MIXED, row_group_size=row_group_size)
    monkeypatch.setattr("pyparq.arrow.ingest.from_pandas.stream_from_pandas", lambda frame: None)
    ours = written(MIXED, row_group_size=row_group_size)
    for file in (theirs, ours):
        pd.testing.assert_frame_equal(frame_of(pyparq.read_table(file)), MIXED)
        pd.testing.assert_frame_equal(pyparq.read_table(file).to_pandas(), MIXED)
    known_by_pyarrow = [name for name in MIXED if name not in ("numbers", "days", "seconds")]
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(ours))[known_by_pyarrow], MIXED[known_by_pyarrow])


@pytest.mark.parametrize(
    "described",
    ['{"columns": [{"field_name": "x", "numpy_type": "Int8"}]}', '{"columns": [{"field_name": "x", "numpy_type": 5}]}',
     '{"columns": [{"field_name": "x", "numpy_type": "boolean"}]}', '{"columns": 5}', '{"columns": [{}]}',
     '{"column_indexes": [{"name": "x", "numpy_type": "int64", "pandas_type": "int64"}]}', '{"column_indexes": 7}',
     '{"column_indexes": [{"name": null}, {"name": null}]}',
     '{"column_indexes": [{"name": [], "numpy_type": "int8"}]}'],
)  # fmt: skip
def test_types_that_pandas_metadata_lie_about(described: str) -> None:
    file = written({"x": np.array([1, 2, 3])}, key_value_metadata={"pandas": described})
    frame = frame_of(pyparq.read_table(file))
    assert frame.iloc[:, 0].tolist() == [1, 2, 3]
    assert frame.dtypes.iloc[0] == np.int64


def test_a_label_that_takes_apart_to_nothing_sensible_is_kept() -> None:
    levels = '{"column_indexes": [{"name": "a", "numpy_type": "str", "pandas_type": "unicode"}, {"name": "b"}]}'
    for name in ("('a', '1')", "(1,)", "__import__('os')", "(" * 500, "x" * 20_000, "9" * 5000):
        file = written({name: [1]}, key_value_metadata={"pandas": levels})
        assert frame_of(pyparq.read_table(file)).iloc[0, 0] == 1
