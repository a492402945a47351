"""Shredding: levels and physical values, against plain Python and against pyarrow."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dremel import shred_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import pyparq
from pyparq.arrow.column import Column
from pyparq.arrow.ingest import ingest
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.schema.to_parquet import elements_from_schema
from pyparq.errors import DataError
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.schema_node import shapes
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import Schema
from pyparq.write.shred import LeafData, concat_leaf_data, shred_column


def shred_batch(batch: RecordBatch, tree: SchemaTree, first_row: int = 0) -> list[LeafData]:
    columns = zip(shapes(tree.root), batch.columns, strict=True)
    return [leaf for shape, column in columns for leaf in shred_column(column, shape, batch.num_rows, first_row)]


def shred(data: Any, schema: Schema | None = None) -> tuple[SchemaTree, list[LeafData]]:
    """All leaves of all batches."""
    found, batches = ingest(data, schema)
    tree = build_tree(elements_from_schema(found))
    parts = [shred_batch(batch, tree) for batch in batches]
    return tree, [concat_leaf_data(leaf) for leaf in zip(*parts, strict=True)]


def physical(leaf: LeafData) -> list[Any]:
    return leaf.values.tolist()


def only(data: Any, schema: Schema | None = None) -> LeafData:
    _, (leaf,) = shred(data, schema)
    return leaf


# ---- flat ----------------------------------------------------------------------------------------------------------

FLAT: list[tuple[pa.Array, list[Any]]] = [
    (pa.array([True, None, False]), [1, 0]),
    (pa.array([1, None, -3], pa.int8()), [1, -3]),
    (pa.array([1, None, 65535], pa.uint16()), [1, 65535]),
    (pa.array([1, None, 2**32 - 1], pa.uint32()), [1, -1]),
    (pa.array([1, None, 2**64 - 1], pa.uint64()), [1, -1]),
    (pa.array([1, None, -(2**63)], pa.int64()), [1, -(2**63)]),
    (pa.array([1.5, None, -0.0], pa.float32()), [1.5, -0.0]),
    (pa.array([1.5, None, 2.0], pa.float16()), [[0, 0x3E], [0, 0x40]]),
    (pa.array(["ä", None, ""]), ["ä".encode(), b""]),
    (pa.array(["ä", None, ""], pa.large_string()), ["ä".encode(), b""]),
    (pa.array(["ä", None, "x" * 20], pa.string_view()), ["ä".encode(), b"x" * 20]),
    (pa.array([b"a", None, b""], pa.binary()), [b"a", b""]),
    (pa.array([b"a", None, b""], pa.binary_view()), [b"a", b""]),
    (pa.array([b"ab", None, b"cd"], pa.binary(2)), [[97, 98], [99, 100]]),
    (pa.array([1, None, -1], pa.date32()), [1, -1]),
    (pa.array([86_400_000, None, -86_400_000], pa.date64()), [1, -1]),
    (pa.array([1, None, 2], pa.time32("s")), [1000, 2000]),
    (pa.array([1, None, 2], pa.time64("ns")), [1, 2]),
    (pa.array([1, None, -2], pa.timestamp("s")), [1000, -2000]),
    (pa.array([1, None, -2], pa.timestamp("us", "Europe/Paris")), [1, -2]),
    (pa.array([Decimal("1.5"), None, Decimal("-0.25")], pa.decimal32(5, 2)), [150, -25]),
    (pa.array([Decimal("1.5"), None, Decimal("-0.25")], pa.decimal64(12, 2)), [150, -25]),
    (pa.array([Decimal("1.5"), None, Decimal("-0.25")], pa.decimal128(9, 2)), [150, -25]),
    (pa.array([Decimal("1.5"), None, Decimal("-0.25")], pa.decimal128(18, 2)), [150, -25]),
    (pa.array([1, None, -1], pa.decimal128(20, 0)), [[0] * 8 + [1], [255] * 9]),
    (pa.array([1, None, -1], pa.decimal256(9, 0)), [1, -1]),
    (pa.array([258, None, -1], pa.decimal256(76, 0)), [[0] * 30 + [1, 2], [255] * 32]),
    (pa.array(["a", None, "a"]).dictionary_encode(), [b"a", b"a"]),
    (pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.uint8()), pa.array([7, None])), [7, 7]),
    (pa.nulls(3), []),
]


@pytest.mark.parametrize(("array", "expected"), FLAT, ids=[str(a.type) for a, _ in FLAT])
def test_flat_types(array: pa.Array, expected: list[Any]) -> None:
    valid = [v is not None for v in array.to_pylist()]
    leaf = only(pa.table({"c": array}))
    assert physical(leaf) == expected
    assert leaf.rep_levels is None
    assert leaf.def_levels is not None
    assert leaf.def_levels.tolist() == [int(v) for v in valid]
    assert (leaf.num_rows, leaf.num_slots) == (3, 3)
    # A slice sees its own rows only.
    part = only(pa.table({"c": array}).slice(1))
    assert physical(part) == expected[len(expected) - sum(valid[1:]) :]
    assert part.num_rows == 2
    # A slice without nulls has no levels to store.
    if valid[0]:
        assert only(pa.table({"c": array}).slice(0, 1)).def_levels is None


def test_required_values_share_memory() -> None:
    numbers = np.arange(1000)
    leaf = only({"a": numbers}, parse_schema({"a": "int64"}))
    assert leaf.def_levels is None
    assert isinstance(leaf.values, np.ndarray)
    assert np.shares_memory(leaf.values, numbers)
    strings = pa.array(["x", "yy"] * 10, pa.large_string())
    leaf = only(pa.table({"a": strings}))
    assert isinstance(leaf.values, BinaryValues)
    assert leaf.values.data.ctypes.data == strings.buffers()[2].address


def test_bytes_under_nulls_are_dropped() -> None:
    data, offsets = pa.py_buffer(b"abcdef"), pa.py_buffer(np.array([0, 2, 4, 6], np.int32))
    array = pa.StringArray.from_buffers(3, offsets, data, pa.py_buffer(b"\x05"), 1)
    assert physical(only(pa.table({"a": array}))) == [b"ab", b"ef"]


def test_null_in_a_required_column_names_column_and_row() -> None:
    with pytest.raises(DataError, match=r"row 2 is null.*column a"):
        shred({"a": [1, 2, None]}, parse_schema({"a": "int64"}))
    found, batches = ingest({"a": [1, 2, None]}, parse_schema({"a": "int64"}))
    with pytest.raises(DataError, match="row 102 is null"):
        shred_batch(next(batches), build_tree(elements_from_schema(found)), first_row=100)
    with pytest.raises(DataError, match=r"row 1 is null.*column a\.list\.element\.x"):
        shred({"a": [[{"x": 1}], [{"x": 2}, {"x": None}]]}, parse_schema({"a": "list<struct<x: int64>>"}))


def test_values_that_do_not_fit_name_the_row() -> None:
    with pytest.raises(DataError, match=r"row 2: 9223372036854776 seconds do not fit.*column a"):
        shred(pa.table({"a": pa.array([None, 9223372036854775, 9223372036854776], pa.timestamp("s"))}))
    with pytest.raises(DataError, match=r"row 1: .* 32-bit number of days"):
        shred(pa.table({"a": pa.array([0, 86_400_000 * 2**31], pa.int64()).cast(pa.date64())}))


def test_decimal_digits_are_checked() -> None:
    raw = pa.py_buffer((10**9).to_bytes(16, "little") * 2)
    array = pa.Array.from_buffers(pa.decimal128(9, 0), 2, [None, raw])
    with pytest.raises(DataError, match=r"row 0: the unscaled decimal 1000000000 has more than 9 digits"):
        shred(pa.table({"a": array}))
    big = -(10**38)
    raw = pa.py_buffer((5).to_bytes(16, "little") + big.to_bytes(16, "little", signed=True))
    array = pa.Array.from_buffers(pa.decimal128(38, 0), 2, [None, raw])
    with pytest.raises(DataError, match=r"row 1: .*more than 38 digits"):
        shred(pa.table({"a": array}))


def test_a_batch_that_is_not_of_the_schema_is_refused() -> None:
    _, batches = ingest({"a": np.arange(3, dtype=np.int32)})
    batch = next(batches)
    other = parse_schema({"a": "int64"})
    with pytest.raises(DataError, match="the data is int32"):
        shred_batch(batch, build_tree(elements_from_schema(other)))


# ---- nested --------------------------------------------------------------------------------------------------------


def _value(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return st.none() | st.lists(_value(type_.value_type), max_size=3)
    if pa.types.is_fixed_size_list(type_):
        return st.none() | st.lists(_value(type_.value_type), min_size=type_.list_size, max_size=type_.list_size)
    if pa.types.is_map(type_):
        key = st.sampled_from(["a", "b", "c"])
        return st.none() | st.lists(st.tuples(key, _value(type_.item_type)), max_size=3)
    if pa.types.is_struct(type_):
        return st.none() | st.fixed_dictionaries({f.name: _value(f.type) for f in type_})
    if pa.types.is_string(type_):
        return st.none() | st.sampled_from(["", "x", "yy"])
    return st.none() | (st.booleans() if pa.types.is_boolean(type_) else st.integers(-5, 5))


TYPES = st.recursive(
    st.sampled_from([pa.int32(), pa.string(), pa.bool_()]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda t: pa.list_(t, 2)),
        inner.map(lambda t: pa.map_(pa.string(), t)),
        st.lists(inner, min_size=1, max_size=3).map(lambda ts: pa.struct([(f"f{i}", t) for i, t in enumerate(ts)])),
    ),
    max_leaves=5,
)
TABLES = TYPES.flatmap(lambda t: st.lists(_value(t), max_size=8).map(lambda v: pa.table({"c": pa.array(v, t)})))


def levels(leaf: LeafData) -> list[tuple[int, int, Any]]:
    """The entries of a leaf, in the form of the reference."""
    count, node = leaf.num_slots, leaf.node
    defs = [node.max_def] * count if leaf.def_levels is None else leaf.def_levels.tolist()
    reps = [0] * count if leaf.rep_levels is None else leaf.rep_levels.tolist()
    values = iter(physical(leaf))
    out: list[tuple[int, int, Any]] = []
    for rep, level in zip(reps, defs, strict=True):
        value = next(values) if level == node.max_def else None
        if isinstance(value, bytes):
            value = value.decode()
        out.append((rep, level, bool(value) if node.type.kind == "bool" and value is not None else value))
    assert next(values, None) is None
    return out


@settings(max_examples=150)
@given(TABLES, st.integers(0, 3))
def test_nested_levels_are_the_reference_s(table: pa.Table, skip: int) -> None:
    table = table.slice(skip)
    tree, leaves = shred(table)
    expected = shred_rows(tree, table.to_pylist())
    if not leaves:  # pyarrow exports no batch of an empty table
        assert table.num_rows == 0
        return
    assert [levels(leaf) for leaf in leaves] == expected
    assert all(leaf.num_rows == table.num_rows for leaf in leaves)


@settings(max_examples=40)
@given(TABLES)
def test_pyarrow_reads_what_we_shred(table: pa.Table) -> None:
    buffer = io.BytesIO()
    pyparq.write_table(table, buffer)
    buffer.seek(0)
    assert pq.read_table(buffer).to_pylist() == table.to_pylist()


@given(st.lists(st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), max_size=4), min_size=1))
@settings(max_examples=30)
def test_batches_join(batches: list[list[Any]]) -> None:
    rows = [row for batch in batches for row in batch]
    type_ = pa.list_(pa.int64())
    parts = [only(pa.table({"c": pa.chunked_array([pa.array(b, type_)])})) for b in batches if b]
    if not rows:
        return
    joined = concat_leaf_data(parts)
    assert levels(joined) == levels(only(pa.table({"c": pa.array(rows, type_)})))
    assert joined.num_rows == len(rows)


def test_required_nested() -> None:
    schema = parse_schema({"l": "list<struct<a: int32, b: list<int32>>>", "m": "map<string, int32>"})
    data: dict[str, list[Any]] = {
        "l": [[{"a": 1, "b": [1, 2]}], [], [{"a": 2, "b": []}, {"a": 3, "b": [3]}]],
        "m": [{"x": 1}, {}, {"y": 2, "z": 3}],
    }
    tree, leaves = shred(data, schema)
    rows = [{"l": a, "m": list(b.items())} for a, b in zip(data["l"], data["m"], strict=True)]
    assert [levels(leaf) for leaf in leaves] == shred_rows(tree, rows)
    assert [leaf.node.max_def for leaf in leaves] == [1, 2, 1, 1]


def test_list_offsets_beyond_the_items_are_refused() -> None:
    found, batches = ingest(pa.table({"a": pa.array([[1, 2], [3]])}))
    (column,) = next(batches).columns
    tree = build_tree(elements_from_schema(found))
    for bad in ([0, 2, 9], [0, 2, 1], [-1, 2, 3]):
        lying = Column(column.type, 2, None, (np.array(bad, np.int32),), 0, column.children)
        with pytest.raises(DataError, match="list offsets"):
            shred_batch(RecordBatch([lying], 2), tree)


@pytest.mark.parametrize("offsets", [[0, 5, 2, 3], [0, 2, 1, 3]])
@pytest.mark.parametrize("large", [False, True])
def test_offsets_that_no_list_has(offsets: list[int], large: bool) -> None:
    """As a C data interface may hand them over: nobody has looked at them."""
    buffers = [None, pa.py_buffer(np.array(offsets, np.int64 if large else np.int32))]
    kind = pa.large_list(pa.int64()) if large else pa.list_(pa.int64())
    lists = pa.Array.from_buffers(kind, 3, buffers, children=[pa.array([1, 2, 3])])
    with pytest.raises(DataError, match=r"offsets decrease or point behind the items.*column l"):
        pyparq.write_table(pa.table({"l": lists}), io.BytesIO())
