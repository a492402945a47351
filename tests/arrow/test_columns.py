"""Gathering, joining and slicing columns, against pyarrow's take, concat and slice."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import concat, null_column, slice_column, take, trimmed
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.to_python import column_to_pylist
from pyparq.errors import DataError
from pyparq.format.types import DataType

ARRAYS = [
    pa.array([1, None, 3, 4, 5], pa.int16()),
    pa.array([True, False, None, True, True]),
    pa.array(["a", None, "", "dd", "ü"]),
    pa.array(["a", None, "", "dd", "ü"], pa.large_string()),
    pa.array([b"ab", None, b"cd", b"ef", b"gh"], pa.binary(2)),
    pa.array([Decimal(1), None, Decimal(-3), Decimal(4), Decimal(5)], pa.decimal128(30, 2)),
    pa.nulls(5),
    pa.array(["a", None, "b", "a", "b"]).dictionary_encode(),
    pa.array(["a", None, "just twelve!", "more than twelve", "ü"], pa.string_view()),
    pa.array([b"none of these is short", None, b"or of one length", b"", b"thirteen bytes"], pa.binary_view()),
    pa.array([[1, None], None, [], [2], [3, 4, 5]], pa.list_(pa.int8())),
    pa.array([["x" * 13], None, [], [None], ["y", "z" * 20]], pa.list_(pa.string_view())),
    pa.array([["x"], None, [], [None], ["y", "z"]], pa.large_list(pa.string())),
    pa.array([[1, 2], None, [3, 4], [None, 5], [6, 7]], pa.list_(pa.int8(), 2)),
    pa.array([[("a", 1)], None, [], [("b", None), ("c", 2)], [("d", 3)]], pa.map_(pa.string(), pa.int8())),
    pa.array(["a", None, "long enough to be elsewhere", "dd", "another that is long"], pa.string_view()),
    pa.array([[1, None], None, [], [2], [3, 4, 5]], pa.list_view(pa.int8())),
    pa.array([["x"], None, [], [None], ["y", "z"]], pa.large_list_view(pa.string())),
    pa.array([{"x": 1, "y": ["p"]}, None, {"x": None, "y": None}, {"x": 2, "y": []}, {"x": 3, "y": [None]}]),
]
IDS = [str(a.type)[:40] for a in ARRAYS]


def column(array: pa.Array) -> Column:
    _, batches = batches_from_arrow(pa.record_batch({"c": array}))
    return next(batches).columns[0]


def checked(made: Column, like: pa.Array) -> list[Any]:
    """The values, after pyarrow has validated the buffers."""
    if made.type.dictionary is None:
        schema = schema_from_arrow(pa.table({"c": like}).schema)
        pa.table(Table(schema, [Batch([made], len(made))])).validate(full=True)
    return column_to_pylist(made)


@pytest.mark.parametrize("array", ARRAYS, ids=IDS)
@pytest.mark.parametrize("rows", [[], [0], [4, 3, 2, 1, 0], [1, 1, 1], [2, 4, 2], [0, 1, 2, 3, 4]], ids=str)
@pytest.mark.parametrize("first", [0, 1])
def test_take(array: pa.Array, rows: list[int], first: int) -> None:
    part, wanted = array[first:], [row for row in rows if row < 5 - first]
    got = take(column(part), np.array(wanted, np.int64))
    assert checked(got, part) == [part.to_pylist()[row] for row in wanted]


@pytest.mark.parametrize(
    "array", [a for a in ARRAYS if not isinstance(a, pa.DictionaryArray)], ids=lambda a: str(a.type)[:40]
)
def test_concat(array: pa.Array) -> None:
    parts = [array[0:2], array[3:3], array[2:5], array[0:1]]
    empty = slice_column(column(array), 3, 3)  # pyarrow exports no batch without rows
    joined = concat([column(p) if len(p) else empty for p in parts])
    assert checked(joined, array) == [v for p in parts for v in p.to_pylist()]
    # Without any null there is no validity.
    assert concat([column(array[0:1]), column(array[0:1])]).null_count in (0, 2 if array.type == pa.null() else 0)


def test_concat_of_both_offset_widths() -> None:
    small, large = column(pa.array(["a", None])), column(pa.array(["b"], pa.large_string()))
    for parts in ([small, large], [large, small]):
        joined = concat(parts)
        assert joined.type == DataType("U")
        assert sorted(map(str, column_to_pylist(joined))) == ["None", "a", "b"]


@pytest.mark.parametrize("array", ARRAYS, ids=IDS)
def test_slice_and_null_columns(array: pa.Array) -> None:
    part = slice_column(slice_column(column(array), 1, 5), 1, 3)
    assert column_to_pylist(part) == array.to_pylist()[2:4]
    if not isinstance(array, pa.DictionaryArray):
        type_ = column(array).type
        for length in (0, 3):
            assert checked(null_column(type_, length), array) == [None] * length


@pytest.mark.parametrize("array", ARRAYS, ids=IDS)
@pytest.mark.parametrize("part", [slice(0, 5), slice(1, 4), slice(2, 3), slice(3, 3)], ids=str)
def test_trimmed_slices_are_the_same(array: pa.Array, part: slice) -> None:
    got = trimmed(slice_column(column(array), part.start, part.stop))
    assert checked(got, array) == array[part].to_pylist()
    assert got.length == len(array[part])


def test_rows_are_checked() -> None:
    for rows in ([5], [-1]):
        with pytest.raises(DataError, match="but the column has 5 rows"):
            take(column(ARRAYS[0]), np.array(rows))
    with pytest.raises(DataError, match="no columns"):
        concat([])


@pytest.mark.parametrize("type_", ["int8", "timestamp[us, UTC]", "decimal(9,2)", "fixed[3]", "bool", "string", "uuid"])
def test_columns_of_nothing_but_nulls_are_written(type_: str, tmp_path: Path) -> None:
    """A null column's buffers are flat like any other's (they were rows of bytes once)."""
    target = tmp_path / "nulls.parquet"
    pyparq.write_table({"a": [None] * 3}, target, schema=pyparq.schema({"a": f"{type_}?"}))
    assert pq.read_table(target)["a"].to_pylist() == [None] * 3
