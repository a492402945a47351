"""Tables of every Arrow layout go out through the C data interface and stay alive there."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from pyparq.arrow.exchange import raw_buffer
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table

pa = pytest.importorskip("pyarrow")


def odd_layouts() -> Any:
    strings = pa.array(["x", "yy", None, "x"])
    return pa.table(
        {
            "plain": strings,
            "dictionary": strings.dictionary_encode(),
            "ordered": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["lo", "hi"], ordered=True),
            "numbers": pa.array([5, 6, 5, None]).dictionary_encode(),
            "in_struct": pa.array(
                [{"d": "q"}, None, {"d": None}, {"d": "z"}],
                pa.struct([("d", pa.dictionary(pa.int32(), pa.large_string()))]),
            ),
            "in_list": pa.array(
                [["q"], None, [None, "a"], []], pa.list_(pa.dictionary(pa.int32(), pa.string()))
            ),
            "views": pa.array(["a", None, "b" * 30, "c" * 13], pa.string_view()),
            "bytes_views": pa.array([b"a", None, b"b" * 30, b"c" * 13], pa.binary_view()),
            "short_views": pa.array(["a", None, "b", "c"], pa.string_view()),
            "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 4),
            "duration": pa.array([1, 2, 3, None], pa.duration("us")),
            "halves": pa.array([1.5, None, 2.0, -0.0], pa.float16()),
            "fixed": pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int32(), 2)),
            "large": pa.array([[1, 2], None, [], [5, None]], pa.large_list(pa.int32())),
        }
    )  # fmt: skip


def as_table(source: Any) -> Table:
    schema, batches = batches_from_arrow(source)
    return Table(schema, [Batch(*batch) for batch in batches])


@pytest.mark.parametrize("name", odd_layouts().column_names)
def test_a_column_of_any_layout_goes_out_as_it_came(name: str) -> None:
    source = odd_layouts().select([name])
    back = as_table(source).to_arrow()
    back.validate(full=True)
    assert back.schema.equals(source.schema)
    assert back.equals(source)
    part = as_table(source).slice(1, 2).to_arrow()
    part.validate(full=True)
    assert part.equals(source.slice(1, 2))


@pytest.mark.parametrize("name", odd_layouts().column_names)
def test_a_batch_goes_out_by_itself(name: str) -> None:
    source = odd_layouts().select([name]).to_batches()[0]
    schema, batches = batches_from_arrow(source)
    batch = Batch(*next(batches), schema)
    for _ in range(5):
        back = pa.record_batch(batch)
        back.validate(full=True)
        assert back.equals(source)
        unused = batch.__arrow_c_array__()
        del back, unused
        gc.collect()


def test_exported_arrays_outlive_the_table() -> None:
    source = odd_layouts()
    for _ in range(20):
        table = as_table(source)
        first, second = table.to_arrow(), table.to_arrow()
        del table, first
        gc.collect()
        rubbish = [bytearray(100) for _ in range(1000)]
        assert second.equals(source)
        del rubbish, second


def test_dictionaries_may_differ_from_batch_to_batch() -> None:
    source = pa.table(
        {"d": pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", None]).dictionary_encode()])}
    )
    assert as_table(source).to_arrow()["d"].to_pylist() == ["a", "b", "c", None]
    assert as_table(source).to_pydict() == {"d": ["a", "b", "c", None]}


def test_polars_and_duckdb_take_them() -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    t = as_table(odd_layouts().select(["dictionary", "ordered", "in_struct", "in_list", "views"]))
    frame = polars.DataFrame(t)
    assert frame["dictionary"].to_list() == ["x", "yy", None, "x"]
    assert frame["in_list"].to_list() == [["q"], None, [None, "a"], []]
    assert frame["views"].to_list() == ["a", None, "b" * 30, "c" * 13]
    rows = duckdb.sql("select dictionary, in_struct.d, in_list, views from t").fetchall()
    assert rows == [
        ("x", "q", ["q"], "a"),
        ("yy", None, None, None),
        (None, None, [None, "a"], "b" * 30),
        ("x", "z", [], "c" * 13),
    ]


@pytest.mark.parametrize("large", [False, True])
def test_list_views_come_in_with_their_own_buffers(large: bool) -> None:
    kind = pa.large_list_view if large else pa.list_view
    source = pa.table({"l": pa.array([[1], [2, 3], None, []], kind(pa.int64()))})
    (batch,) = batches_from_arrow(source.slice(1))[1]
    column = batch.columns[0]
    offsets, sizes = (b.view("i8" if large else "i4")[column.offset :].tolist() for b in column.buffers)
    assert (offsets[0], sizes[0]) == (1, 2)
    assert sizes[1:] == [0, 0]
    del source
    gc.collect()
    assert column.children[0].values().tolist() == [1, 2, 3]


def test_raw_buffers_are_checked_against_the_array() -> None:
    import nanoarrow

    array = nanoarrow.c_array([1, 2], nanoarrow.int32())
    assert raw_buffer(array, 1, 8).view("i4").tolist() == [1, 2]
    assert len(raw_buffer(array, 0, 8)) == 0
    with pytest.raises(ValueError, match="buffer 2"):
        raw_buffer(array, 2, 8)
