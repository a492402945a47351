"""``filter`` and ``cast`` of tables and batches in memory: the same rows and values as DuckDB and pyarrow have."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyparq
from pyparq import ColumnNotFoundError, DataError, FilterError, col

BERLIN = ZoneInfo("Europe/Berlin")


def rows(count: int, seed: int) -> pa.Table:
    draw = random.Random(seed)

    def some(values: list[Any]) -> list[Any]:
        return [draw.choice([*values, None]) for _ in range(count)]

    return pa.table({
        "i": pa.array(some([1, 2, 3, -4]), pa.int64()), "s": pa.array(some(["", "a", "bÄ", "c'd"]), pa.string()),
        "f": pa.array(some([0.5, float("nan"), -0.0, 3.0]), pa.float64()),
        "t": pa.array(some([dt.datetime(2024, 3, 10, 2, m, tzinfo=BERLIN) for m in range(3)]),
                       pa.timestamp("us", "Europe/Berlin")),
        "d": pa.array(some([Decimal("1.50"), Decimal("-2.00")]), pa.decimal128(9, 2)),
        "e": pa.array(some(["p", "q"]), pa.string()).dictionary_encode(),
        "v": pa.array(some(["x", "a long text of more than 12"]), pa.string_view()),
        "l": pa.array(some([[], [1, None], [2, 3]]), pa.list_(pa.int32())),
        "lv": pa.array(some([[], [4]]), pa.list_view(pa.int8())),
        "st": pa.array(some([{"q": 1}, {"q": None}]), pa.struct([("q", pa.int16())])),
        "m": pa.array(some([[("k", 1)], []]), pa.map_(pa.string(), pa.int32())), "n": pa.nulls(count),
        "r": pa.RunEndEncodedArray.from_arrays(list(range(2, 2 * count + 1, 2)), some([7, 8])).slice(1, count),
        "number": pa.array(range(count), pa.int64()),
    })  # fmt: skip


def table_of(count: int, seed: int) -> tuple[pa.Table, pyparq.Table]:
    """In pieces of several lengths, one of them a slice."""
    whole = rows(count, seed)
    ours = pyparq.Table.from_arrow(whole)
    middle = max(count // 2, 1)
    return whole, pyparq.Table.concat([ours[:1], ours[1:middle], ours[:0], ours[middle:]])


QUESTIONS = (
    "i > 1", "i = 2 or s = 'a'", "not (i > 1)", "s like '%Ä'", "s in ('', 'c''d')", "f >= 3", "i is null", "d = 1.5",
    "e = 'p' and v = 'x'", "st.q = 1", "length(s) > 1", "number % 3 = 1", "t >= timestamptz '2024-03-10 01:01:00+00'",
    "r = 7", "l is null", "i between 2 and 3", "number < 0", "number >= 0", "s = 'a' and i = 999",
)  # fmt: skip


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("text", QUESTIONS)
def test_the_rows_that_duckdb_keeps(text: str, count: int) -> None:
    whole, ours = table_of(count, count)
    plain = whole.set_column(12, "r", pc.run_end_decode(whole["r"].chunk(0)))
    asked = plain.drop_columns(["n", "lv"])
    with duckdb.connect() as base:
        base.execute("set timezone = 'Asia/Tokyo'")
        base.register("asked", asked)
        due = [
            number for (number,) in base.execute(f"select number from asked where {text} order by number").fetchall()
        ]
    found = ours.filter(text)
    assert found["number"].to_pylist() == due
    assert found.schema == ours.schema
    assert found == pyparq.Table.concat([ours[:0], *(ours[number : number + 1] for number in due)])
    assert [type(found), type(ours.batches[-1].filter(text))] == [pyparq.Table, pyparq.Batch]


def test_filters_of_every_form() -> None:
    whole, ours = table_of(60, 4)
    due = [row["number"] for row in whole.to_pylist() if row["i"] == 2]
    assert due
    for form in (col("i") == 2, "i = 2", [("i", "==", 2)], pc.field("i") == 2, pl.col("i") == 2):
        assert ours.filter(form)["number"].to_pylist() == due
    assert ours.filter(None) == ours
    assert ours.filter(col("l").contains(2))["number"].to_pylist() == [
        row["number"] for row in whole.to_pylist() if row["l"] and 2 in row["l"]
    ]
    assert ours[:0].filter(col("i") == 2).shape == (0, 14)
    twice = pyparq.Table.from_arrow(pa.table([pa.array([1, 2]), pa.array([3, 4])], ["a", "b"])).select(["a", "b", "b"])
    assert twice.filter(col("a") == 2).shape == (1, 3)
    with pytest.raises(ColumnNotFoundError, match="no column 'nix'") as gone:
        ours.filter("nix = 1")
    with pytest.raises(FilterError, match="give a number") as wrong:
        ours.filter(col("i") == "x")
    assert [gone.value.file, wrong.value.file] == [None, None]


CASTS = {
    "i": ("int8", pa.int8()), "number": ("uint16", pa.uint16()), "f": ("float32", pa.float32()),
    "d": ("decimal(20,4)", pa.decimal128(20, 4)), "e": ("string", pa.string()), "v": ("string", pa.string()),
    "t": ("timestamp[ms, Asia/Tokyo]", pa.timestamp("ms", "Asia/Tokyo")), "s": ("binary", pa.binary()),
}  # fmt: skip


@pytest.mark.parametrize("count", [1, 60])
def test_casts_are_pyarrows(count: int) -> None:
    whole, ours = table_of(count, count)
    found = ours.cast({name: text for name, (text, _) in CASTS.items()})
    for name in whole.column_names:
        due = whole[name].cast(CASTS[name][1]) if name in CASTS else whole[name]
        assert found[name].to_pylist() == pytest.approx(due.to_pylist(), nan_ok=True) if name == "f" else True
        assert name == "f" or found[name].to_pylist() == due.to_pylist()
        assert found.schema.field(name).nullable == ours.schema.field(name).nullable
        assert name in CASTS or found.schema.field(name) == ours.schema.field(name)
    assert found["f"].type.format == "f"
    assert ours.cast({}) == ours
    assert ours.batches[-1].cast({"i": "int16"})["i"].type == pyparq.schema({"i": "int16"}).field("i").type


def test_a_cast_changes_no_value() -> None:
    """But for float64 that is rounded, which the documentation says."""
    ours = pyparq.Table.from_pydict({"f": [1.1, 3e9], "s": ["1", "2"], "big": [2**40, 1]})
    assert ours.cast({"f": "float32"})["f"].to_pylist() == np.array([1.1, 3e9], np.float32).tolist()
    for types, match in (
        ({"f": "int64"}, "row 0: 1.1 is not a whole number"), ({"big": "int32"}, "row 0: 1099511627776 does not fit"),
        ({"s": "int64"}, "Convert it first"), ({"big": "float32"}, "may not be exact"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=match):
            ours.cast(types)
    with pytest.raises(ColumnNotFoundError, match="no column 'g'"):
        ours.cast({"g": "int8"})
