"""What a table, a batch and a column look like: sizes, names, types, first rows; whatever they hold."""

from __future__ import annotations

import datetime as dt
import html
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq.arrow import preview
from pyparq.arrow import preview as cell_text
from pyparq.arrow.column import Column
from pyparq.arrow.table import Batch, Table
from pyparq.format.types import DataType, Field, Schema
from pyparq.runtime.text import cut, visible, width


@pytest.fixture(autouse=True)
def eighty_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_first_rows_under_names_and_types() -> None:
    table = Table.from_pydict(
        {
            "id": list(range(1, 12)),
            "city": ["Lima", None, "京都市", "Zürich", "e\u0301", *["x"] * 6],
            "ok": [True, False, None, *[True] * 8],
            "price": [0.5, None, float("nan"), 1e300, *[2.0] * 7],
        }
    )
    lines = repr(table).splitlines()
    assert lines[:5] == [
        "pyparq.Table (11 rows, 4 columns)",
        "   id  city    ok       price",
        "int64  string  bool   float64",
        "-----  ------  -----  -------",
        "    1  Lima    true       0.5",
    ]
    assert lines[5:9] == [
        "    2  null    false     null",
        "    3  京都市  null       nan",
        "    4  Zürich  true    1e+300",
        "    5  e\u0301       true       2.0",
    ]
    assert lines[-1] == "… 1 more row"
    assert {width(line) for line in lines[1:-1]} == {29}


def test_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.from_pydict({f"column {k}": ["日本語" * 30] for k in range(30)})
    for cells_there in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(cells_there))
        lines = repr(table).splitlines()
        assert all(width(line) <= cells_there for line in lines)
        assert lines[-1].startswith("… ")
        assert "more columns: column" in lines[-1]
        assert lines[4].startswith("日本語日本語")
        assert "…" in lines[4]
    many = Table.from_pydict({f"c{k}": [k] for k in range(5000)})
    assert len(repr(many)) < 2000


def test_wide_and_narrow_letters_stand_in_line() -> None:
    table = Table.from_pydict({"s": ["a", "日本", "e\u0301", "\u200b", "ｱ"], "n": [1, 2, 3, 4, 5]})
    rows = repr(table).splitlines()[4:]
    assert [width(row) for row in rows] == [13] * 5
    assert [row[-1] for row in rows] == list("12345")


def cell(array: pa.Array, row: int = 0, room: int = 40) -> str:
    return cell_text.cell_text(Table.from_arrow(pa.table({"c": array})).batches[0].columns[0], row, room)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([2**64 - 1], pa.uint64()), str(2**64 - 1)),
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([b"\x00\xff"]), "0x00ff"),
        (pa.array([b"ab"], pa.binary(2)), "0x6162"),
        (pa.array([b"\x01" * 20], pa.binary_view()), "0x" + "01" * 18 + "0…"),
        (pa.array([Decimal("1.50")]), "1.50"),
        (pa.array([dt.date(2020, 1, 2)]), "2020-01-02"),
        (pa.array([10**7], pa.date32()), "29349-01-26"),
        (pa.array([dt.datetime(2020, 1, 2, 3, 4, 5)]), "2020-01-02 03:04:05"),
        (pa.array([0], pa.timestamp("us", "UTC")), "1970-01-01 00:00:00+00:00"),
        (pa.array([0], pa.timestamp("us", "Nowhere/Land")), "?"),
        (pa.array([1], pa.timestamp("ns")), "1970-01-01T00:00:00.000000001"),
        (pa.array([2**62], pa.timestamp("s")), None),
        (pa.array([-(2**63)], pa.duration("s")), None),
        (pa.array([1], pa.time64("ns")), "1 nanoseconds"),
        (pa.array([pa.MonthDayNano([1, 2, 3])]), "1 months 2 days 3 ns"),
        (pa.array(["a\nb\x1b[31m\u202e"]), "a\\nb\\x1b[31m\\u202e"),
        (pa.array(["x" * 30], pa.string_view()), "x" * 30),
        (pa.array(["long" * 100]), "long" * 9 + "lon…"),
        (pa.array(["a"]).dictionary_encode(), "a"),
        (pa.array([[1, None], None]), "[1, null]"),
        (pa.array([["a", "b"]], pa.list_view(pa.string())), '["a", "b"]'),
        (pa.array([list(range(1000))]), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …]"),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), "[1, 2]"),
        (pa.array([{"x": 1, "y": [{"z": "q"}]}]), '{x: 1, y: [{z: "q"}]}'),
        (pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int8())), '{"k": 1, "l": null}'),
        (pa.array([{}], pa.struct([])), "{}"),
        (pa.nulls(1), "null"),
        (pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["r"])), "r"),
    ],
    ids=lambda v: str(getattr(v, "type", "")),
)
def test_values(array: pa.Array, text: str | None) -> None:
    found = cell(array)
    assert width(found) <= 40
    if text is not None:
        assert found == text
    table = Table.from_arrow(pa.table({"c": array}))
    assert found in repr(table)
    assert html.escape(found) in table._repr_html_()
    assert "pyparq.ChunkedArray 'c'" in repr(table["c"])


@pytest.mark.parametrize("kind", ["list", "list view", "text", "struct", "dictionary"])
def test_no_more_is_looked_at_than_is_shown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preview of huge values makes few Python objects."""
    count = 200_000
    words = pa.array([str(k) for k in range(count)])
    made: dict[str, pa.Array] = {
        "list": pa.ListArray.from_arrays(pa.array([0, count]), words),
        "list view": pa.ListViewArray.from_arrays(pa.array([0]), pa.array([count]), words),
        "text": pa.array(["x" * 5_000_000]),
        "struct": pa.StructArray.from_arrays([words] * 50, names=[f"f{k}" for k in range(50)]),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array(range(count), pa.int32()), words),
    }
    table = Table.from_arrow(pa.table({"c": made[kind]}))
    asked: list[int] = []
    real = cell_text.slice_column  # once for each value
    monkeypatch.setattr(cell_text, "slice_column", lambda *given: asked.append(1) or real(*given))
    tracemalloc.start()
    shown = repr(table), repr(table["c"]), table._repr_html_()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(len(text) < 10_000 for text in shown)
    assert len(asked) < 1500
    assert peak < 1_000_000


def test_only_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(preview, "cell_text", lambda column, row, room: asked.append(row) or "x")
    table = Table.concat([Table.from_pydict({"a": [1] * 4})] * 1000)
    repr(table)
    assert asked == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


BROKEN = [
    Column(DataType("u"), 2, None, (np.array([0, 1, 2], np.int32), np.frombuffer(b"a\xff", np.uint8)), 0),
    Column(DataType("u"), 2, None, (np.array([0], np.int32), np.empty(0, np.uint8)), 0),
    Column(DataType("l"), 2, None, (), 0),
    Column(DataType("?!"), 2, None, (np.zeros(2, np.int8),), 0),
    Column(DataType("i", (), DataType("u")), 2, None, (np.array([5, 6], np.int32),), 0, (),
           Column(DataType("u"), 0, None, (np.zeros(1, np.int32), np.empty(0, np.uint8)), 0)),
    Column(DataType("+us:0,1", (Field("x", DataType("i")),)), 2, None, (np.zeros(2, np.int8),), 0),
    Column(DataType("+l", (Field("x", DataType("i")),)), 2, None, (np.array([0, 5, 9], np.int32),), 0),
]  # fmt: skip


@pytest.mark.parametrize("column", BROKEN, ids=lambda c: c.type.format)
def test_odd_columns_never_raise(column: Column) -> None:
    schema = Schema((Field("c", column.type),))
    table = Table(schema, [Batch([column], 2)])
    assert repr(table).startswith("pyparq.Table (2 rows, 1 column)")
    assert repr(table.batches[0]).startswith("pyparq.Batch (2 rows, 1 column)")
    assert "<tbody>" in table._repr_html_()
    assert repr(table["c"])


def test_half_built_objects_never_raise() -> None:
    for made in (Table.__new__(Table), Batch.__new__(Batch), pyparq.ChunkedArray.__new__(pyparq.ChunkedArray)):
        assert repr(made) == f"<pyparq.{type(made).__name__}>"
    assert Table.__new__(Table)._repr_html_() == "<pre>&lt;pyparq.Table&gt;</pre>"
    assert repr(Batch([], 2)) == "<pyparq.Batch: 2 rows, no schema>"
    assert "no schema" in Batch([], 2)._repr_html_()
    short = Table(Schema((Field("c", DataType("l")),)), [Batch([Column(DataType("l"), 0, None, (), 0)], 3)])
    assert repr(short)


def test_nothing_to_show() -> None:
    assert repr(Table(Schema(()), [])) == "pyparq.Table (0 rows, 0 columns)"
    lines = repr(Table.from_pydict({"a": []}, schema={"a": "int8"})).splitlines()
    assert lines == ["pyparq.Table (0 rows, 1 column)", "   a", "int8", "----"]
    assert repr(Table.from_pydict({"a": []})["a"]) == "pyparq.ChunkedArray 'a': null (0 values)\n[]"


def test_a_column_shows_its_first_values() -> None:
    column = Table.from_pydict({"s": ["a", None, "京"] + ["xyz"] * 1000})["s"]
    title, values = repr(column).splitlines()
    assert title == "pyparq.ChunkedArray 's': string (1,003 values)"
    assert values.startswith('["a", null, "京", "xyz"')
    assert values.endswith(", …]")
    assert width(values) <= 80


def test_html_is_escaped() -> None:
    table = Table.from_pydict({"<b>&": ["<script>alert('x')</script>", 'a"b'], "n": [1, 2]})
    text = table._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in text
    assert "<th>&lt;b&gt;&amp;</th>" in text
    assert text.count("<tr>") == 4
    assert "2 rows, 2 columns" in text
    many = Table.from_pydict({f"c{k}": [k] for k in range(200)})._repr_html_()
    assert "the first 50 shown" in many
    assert many.count("<th>") == 50


def test_text_on_a_terminal() -> None:
    assert [width(t) for t in ("abc", "日本", "e\u0301", "\u200b", "ｱ", "")] == [3, 4, 1, 0, 1, 0]
    assert cut("日本語です", 6) == "日本…"
    assert cut("abcdef", 6) == "abcdef"
    assert visible("a\tb\ud800") == "a\\tb\\ud800"


def test_whatever_is_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batch: Any = Batch.from_pydict({"a": [1, 2]})
    assert repr(batch).splitlines()[0] == "pyparq.Batch (2 rows, 1 column)"
    monkeypatch.setenv("COLUMNS", "1")
    assert repr(batch)
