"""Equal values are equal whatever their chunks, offsets and layout; anything else is not."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyparq
from pyparq.arrow import equality
from pyparq.arrow.table import Table
from pyparq.errors import OptionError

NAN = float("nan")
D = Decimal


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows are compared in several steps."""
    monkeypatch.setattr(equality, "STEP", 3)


ARRAYS = {
    "null": pa.nulls(7),
    "bool": pa.array([True, None, False, True, True, None, False] * 3),
    "int8": pa.array([1, None, -3, 4, 5, 6, 7], pa.int8()),
    "uint64": pa.array([1, None, 2**64 - 1, 4, 5, 6, 7], pa.uint64()),
    "float16": pa.array(np.array([1.5, 2, NAN, 3, 4, 5, 6], np.float16)),
    "float32": pa.array([1.5, None, NAN, -0.0, 2, 3, 4], pa.float32()),
    "float64": pa.array([1.5, None, NAN, -0.0, 2, 3, 4]),
    "string": pa.array(["ä", None, "", "x" * 30, "b", "c", "d"]),
    "large string": pa.array(["ä", None, "", "x" * 30, "b", "c", "d"], pa.large_string()),
    "string view": pa.array(["ä", None, "", "x" * 30, "b" * 13, "c", "d"], pa.string_view()),
    "binary": pa.array([b"\xff", None, b"", b"x", b"y", b"z", b"0"]),
    "binary view": pa.array([b"\xff" * 20, None, b"", b"x", b"y" * 15, b"z", b"0"], pa.binary_view()),
    "fixed": pa.array([b"ab", None, b"cd", b"ef", b"gh", b"ij", b"kl"], pa.binary(2)),
    "decimal": pa.array([D("1.50"), None, D("-2.25"), D(0), D(1), D(2), D(3)], pa.decimal128(38, 2)),
    "decimal256": pa.array([D("1.50"), None, D("-2.25"), D(0), D(1), D(2), D(3)], pa.decimal256(60, 2)),
    "date": pa.array([1, None, -700_000, 0, 3, 4, 5], pa.date32()),
    "time": pa.array([1, None, 86_399, 0, 3, 4, 5], pa.time32("s")),
    "timestamp": pa.array([1, None, -5, 10**9, 3, 4, 5], pa.timestamp("ms", "Europe/Paris")),
    "duration": pa.array([1, None, -5, 10**9, 3, 4, 5], pa.duration("us")),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None, *([pa.MonthDayNano([0, 0, 1])] * 5)]),
    "dictionary": pa.array(["a", None, "b", "a", "c", "b", "a"]).dictionary_encode(),
    "list": pa.array([[1, None], None, [], [2], [3, 4], [], [5]], pa.list_(pa.int16())),
    "floats": pa.array([[NAN, None], None, [], [0.0], [NAN], [], [5]], pa.list_(pa.float64())),
    "large list": pa.array([["a"], None, [], [None, "b"], ["c"], ["d"], []], pa.large_list(pa.string())),
    "list view": pa.array([["a"], None, [], [None, "b"], ["c"], ["d"], []], pa.list_view(pa.string_view())),
    "fixed list": pa.array([[1, 2], None, [3, None], [4, 5], None, [6, 7], [8, 9]], pa.list_(pa.int32(), 2)),
    "map": pa.array([[("a", 1)], None, [], [("b", None), ("c", 2)], [], [], [("d", 4)]],
                    pa.map_(pa.string(), pa.int8())),
    "struct": pa.array([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}, *[{"x": 2, "y": [None]}] * 4]),
    "deep": pa.array([[{"d": "p", "m": [("k", NAN)]}], None, [], [None], [{"d": None, "m": []}], [], []],
                     pa.list_(pa.struct([("d", pa.dictionary(pa.int8(), pa.string())),
                                         ("m", pa.map_(pa.string(), pa.float64()))]))),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], pa.int32()), pa.array([1, None, 5])),
}  # fmt: skip


def cut(array: pa.Array, sizes: list[int]) -> pa.ChunkedArray:
    """The array in chunks that are slices, the last one what is left."""
    chunks, at = [], 0
    for size in sizes:
        chunks.append(array.slice(at, size))
        at += size
    return pa.chunked_array([*chunks, array.slice(at)], array.type)


def column(array: Any) -> pyparq.ChunkedArray:
    return Table.from_arrow(pa.table({"c": array}))["c"]


@pytest.mark.parametrize("name", ARRAYS)
def test_chunks_and_offsets_do_not_matter(name: str) -> None:
    array = ARRAYS[name]
    whole = column(array)
    assert whole == whole
    for sizes in ([1], [2, 3], [0, 5], [3, 0, 1]):
        assert column(cut(array, sizes)) == whole
        assert column(cut(array, sizes)).slice(1, 4) == whole.slice(1, 4)
    longer = pa.concat_arrays([array.slice(2, 3), array]) if name != "runs" else array
    assert column(longer).slice(len(longer) - len(array)) == whole


@pytest.mark.parametrize("name", [n for n in ARRAYS if n != "null"])
def test_another_value_is_noticed_wherever_it_is(name: str) -> None:
    array = ARRAYS[name]
    plain = array.to_pylist() if name != "runs" else [1, 1, None, 5, 5, 5, 5]
    whole = column(array)
    for row, value in enumerate(plain):
        other = next(v for v in plain if not same(v, value))
        changed = [*plain[:row], other, *plain[row + 1 :]]
        if name == "runs":
            ends = pa.array(range(1, 8), pa.int32())
            made = pa.RunEndEncodedArray.from_arrays(ends, pa.array(changed, pa.int64()))
        else:
            made = pa.array(changed, array.type)
        assert whole != column(made), row
        assert (whole == column(made)) is False


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


VALUES: dict[str, tuple[Any, Any]] = {
    "floats": (pa.float64(), st.sampled_from([NAN, 0.0, -0.0, 1.0, None])),
    "texts": (pa.string(), st.sampled_from(["", "a", "ab", None])),
    "lists": (pa.list_(pa.string()), st.none() | st.lists(st.sampled_from(["", "a", None]), max_size=2)),
    "structs": (
        pa.struct([("x", pa.float32()), ("y", pa.list_(pa.int8()))]),
        st.none() | st.fixed_dictionaries({"x": st.sampled_from([NAN, 1.0, None]), "y": st.none() | st.just([1])}),
    ),
    "maps": (
        pa.map_(pa.string(), pa.int8()),
        st.none() | st.lists(st.tuples(st.just("k"), st.integers(0, 1)), max_size=2),
    ),
}


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_as_python_objects_compare(name: str, data: st.DataObject) -> None:
    type_, strategy = VALUES[name]
    rows = st.lists(strategy, min_size=4, max_size=4)
    a, b = data.draw(rows), data.draw(rows)
    one, other = pa.array(a, type_), pa.array(b, type_)
    first, second = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    assert (column(cut(one, [first])) == column(cut(other, [second]))) is same(a, b)


def test_what_stands_below_a_null_does_not_matter() -> None:
    for width in (0, 2):
        items = [pa.array([1, 2, 3, 4], pa.int8()), pa.array([1, 2, 9, 9], pa.int8())]
        mask = pa.array([False, True])
        made = [
            pa.FixedSizeListArray.from_arrays(i, 2, mask=mask)
            if width
            else pa.ListArray.from_arrays(pa.array([0, 2, 4]), i, mask=mask)
            for i in items
        ]
        assert column(made[0]) == column(made[1])
    structs = [pa.StructArray.from_arrays([i], names=["x"], mask=pa.array([False, False, True, True])) for i in items]
    assert column(structs[0]) == column(structs[1])


def test_dictionaries_are_compared_by_value() -> None:
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int32()), ["a", "b"])
    other = pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 3], pa.int32()), ["z", "b", "a", "a"])
    assert column(one) == column(other)
    assert column(one) != column(one.dictionary_decode())
    null_entry = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int32()), ["a", "b", None])
    assert column(one) == column(null_entry)
    assert column(null_entry).null_count == 1


def test_types_must_agree() -> None:
    made = [column(pa.array([1, 2], t)) for t in (pa.int32(), pa.int64(), pa.float64(), pa.timestamp("us"))]
    made += [column(pa.array([1, 2], pa.timestamp("us", "UTC"))), column(pa.array(["1", "2"]))]
    made += [column(pa.array(["1", "2"], pa.large_string()))]
    for k, one in enumerate(made):
        assert [one == other for other in made] == [k == n for n in range(len(made))]


def test_items_of_lists_may_be_called_anything() -> None:
    """As in pyarrow: files call them "element", pyarrow "item"."""
    types = [pa.list_(pa.field(n, pa.int64())) for n in ("item", "element")]
    assert types[0] == types[1]
    tables = [Table.from_arrow(pa.table({"c": pa.array([[1], None], t)})) for t in types]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[1], check_metadata=True)
    structs = [pa.array([{n: 1}]) for n in ("x", "y")]
    assert column(structs[0]) != column(structs[1])


def test_tables_as_pyarrow_has_it() -> None:
    """Names, order, nullability and types count; metadata only where it is asked for."""
    base = pa.table({"a": [1, 2], "b": ["x", None]})
    others = {
        "same": pa.table({"a": [1, 2], "b": ["x", None]}),
        "order": base.select(["b", "a"]),
        "name": base.rename_columns(["a", "c"]),
        "type": base.cast(pa.schema([("a", pa.int32()), ("b", pa.string())])),
        "nullable": base.cast(pa.schema([pa.field("a", pa.int64(), False), ("b", pa.string())])),
        "value": pa.table({"a": [1, 3], "b": ["x", None]}),
        "rows": base.slice(1),
        "fewer": base.select(["a"]),
        "metadata": base.replace_schema_metadata({"k": "v"}),
        "field metadata": base.cast(pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"}), ("b", pa.string())])),
    }
    mine = Table.from_arrow(base)
    for name, other in others.items():
        theirs = Table.from_arrow(other)
        for check in (False, True):
            assert mine.equals(theirs, check_metadata=check) is base.equals(other, check_metadata=check), name
        assert (mine == theirs) is base.equals(other)
        assert (mine != theirs) is not base.equals(other)
        batches = [Table.from_arrow(t).to_batches()[0] for t in (base, other)]
        assert batches[0].equals(batches[1]) is base.equals(other)


def test_extension_types_are_types_of_their_own() -> None:
    ids = pa.array([b"0" * 16], pa.binary(16))
    plain = pa.table({"c": ids})
    extended = pa.table({"c": pa.ExtensionArray.from_storage(pa.uuid(), ids)})
    assert not Table.from_arrow(plain).equals(Table.from_arrow(extended))
    assert Table.from_arrow(extended).equals(Table.from_arrow(extended))


def test_only_like_is_compared_with_like() -> None:
    table = Table.from_pydict({"a": [1]})
    batch = table.to_batches()[0]
    for one, other in ((table, batch), (batch, table), (table, 5), (table["a"], [1]), (table, object())):
        assert (one == other) is False
        assert one != other
        with pytest.raises(OptionError, match="takes another"):
            one.equals(other)
    for one in (table, batch, table["a"]):
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)


def test_rows_without_columns() -> None:
    assert pyparq.Batch([], 2, pyparq.schema({})) == pyparq.Batch([], 2, pyparq.schema({}))
    assert pyparq.Batch([], 2, pyparq.schema({})) != pyparq.Batch([], 3, pyparq.schema({}))


def test_a_table_equals_its_file() -> None:
    frame = pl.DataFrame(
        {"a": [1.0, NAN, None], "s": ["x", None, "long enough to be elsewhere"], "t": [[dt.date(2020, 1, 1)], None, []]}
    )
    sink = io.BytesIO()
    pyparq.write_table(frame, sink)
    read = pyparq.read_table(sink.getvalue())
    assert read == pyparq.read_table(sink.getvalue())
    assert read.column("a") == Table.from_polars(frame).column("a")
