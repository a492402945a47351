"""Literals at and beyond the edges of what columns hold: exact against every index, and never passed over."""

from __future__ import annotations

import datetime as dt
import io
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from filter_oracle import BEYOND_FLOATS, BY_NAME, NAN, WIDE_FLOATS, Spec, evaluate

import pyparq
from pyparq import col
from pyparq.errors import FilterError

OPS: list[Any] = [operator.eq, operator.lt, operator.ge]
NUMBERS = [
    "int32", "int64", "uint64", "float16", "float", "double", "dec_i32", "dec_i64", "dec_fixed", "dec_binary",
    "dec_wide",
]  # fmt: skip


def write(spec: Spec, values: list[Any], dictionary: bool) -> pyparq.ParquetFile:
    """Row groups and pages of few rows, each with bounds, a Bloom filter and, where asked for, a dictionary."""
    sink = io.BytesIO()
    table = pa.table({spec.name: spec.to_arrow(values), "row": range(len(values))})
    pyparq.write_table(
        table, sink, row_group_size=4, max_rows_per_page=2, bloom_filters=True,
        column_encoding={spec.name: "RLE_DICTIONARY" if dictionary else "PLAIN"},
        decimal_storage={spec.name: "binary"} if spec.name == "dec_binary" else "smallest",
    )  # fmt: skip
    return pyparq.ParquetFile(sink.getvalue())


def in_order(spec: Spec) -> list[Any]:
    """The pool, sorted so that pages have narrow bounds, with nulls among them."""
    known = sorted((v for v in spec.pool if v == v), key=spec.rank)
    rest = [v for v in spec.pool if v != v]
    return [*known[:3], None, *known[3:], None, None, *rest]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize("name", NUMBERS)
def test_rows_are_exact_with_every_index(name: str, dictionary: bool) -> None:
    spec = BY_NAME[name]
    values = in_order(spec)
    with write(spec, values, dictionary) as file:
        for k, literal in enumerate(spec.literals):
            other = spec.literals[k - 1]
            ref = col(name)
            asked = [op(ref, literal) for op in OPS]
            asked += [ref.isin([literal, other]), ~ref.isin([literal, other])]
            for expression in asked:
                rows = [{name: v} for v in values]
                expected = [r for r, row in enumerate(rows) if evaluate(expression, {name: spec}, row)]
                assert file.read(["row"], filters=expression).to_pydict() == {"row": expected}, expression


def doubles(*values: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"x": np.array(values, np.float64)}, sink, bloom_filters=["x"])
    return sink.getvalue()


HUGE: list[Any] = [Decimal("1E+400"), Fraction(10) ** 400, 10**400, *([np.longdouble("1e400")] if WIDE_FLOATS else [])]


@pytest.mark.parametrize("literal", HUGE, ids=lambda value: type(value).__name__)
def test_a_finite_number_is_not_infinity(literal: Any) -> None:
    top = float(np.finfo(np.float64).max)
    data = doubles(1.0, top, np.inf, -np.inf)

    def rows(expression: Any) -> list[float]:
        found: list[float] = pyparq.read_table(data, filters=expression).to_pydict()["x"]
        return found

    assert rows(col("x") == literal) == rows(col("x").isin([literal, -literal])) == []
    assert rows(col("x") != literal) == [1.0, top, np.inf, -np.inf]
    assert rows(col("x") > literal) == rows(col("x") >= literal) == [np.inf]
    assert rows(col("x") < -literal) == [-np.inf]
    assert rows(col("x").between(-literal, literal)) == [1.0, top]
    assert rows([("x", "<", literal), ("x", ">", -literal)]) == [1.0, top]
    assert rows(col("x") == Decimal("Infinity")) == [np.inf]


def test_contains_takes_the_same_literals() -> None:
    sink = io.BytesIO()
    pyparq.write_table({"l": [[np.inf], [1.0], [2.0**53]], "k": [0, 1, 2]}, sink)

    def rows(literal: Any) -> list[int]:
        found: list[int] = pyparq.read_table(sink.getvalue(), ["k"], filters=col("l").contains(literal)).to_pydict()[
            "k"
        ]
        return found

    assert [rows(v) for v in BEYOND_FLOATS[:10]] == [[]] * 10
    assert rows(np.inf) == [0]
    assert rows(Decimal(1)) == [1]
    assert rows(2**53) == [2]
    assert rows(2**53 + 1) == []


WRONG: list[tuple[Any, Any]] = [
    ([1, 2], "one"), (["a"], 1), ([dt.date(2020, 1, 1)], 5), ([True], 1), ([b"a"], 1.5), ([Decimal("1.5")], "1.5"),
    ([dt.datetime(2020, 1, 1)], dt.datetime(2020, 1, 1, tzinfo=dt.UTC)), ([1.5], "x"), ([1], [1]), ([dt.time(1)], 1),
]  # fmt: skip


@pytest.mark.parametrize(("values", "literal"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_literal_is_noticed_beside_a_null(values: list[Any], literal: Any) -> None:
    sink = io.BytesIO()
    pyparq.write_table({"c": values}, sink)
    for null in (None, pd.NA, np.datetime64("NaT")):
        for expression in (
            col("c").isin([null, literal]), ~col("c").isin([null, literal]), ~col("c").isin([literal, null]),
            [("c", "in", [literal, null])], [("c", "not in", [null, literal])],
            ~(col("c").isin([values[0]]) | col("c").isin([None, literal])),
        ):  # fmt: skip
            with pytest.raises(FilterError, match="cannot compare"):
                pyparq.read_table(sink.getvalue(), filters=expression)


def test_narrow_floats_mean_the_same_one_by_one_and_in_lists() -> None:
    """A float32's own digits are what a decimal column is compared with: 9.99, not 9.98999977."""
    sink = io.BytesIO()
    pyparq.write_table({"p": [Decimal("9.99"), Decimal("1.50")]}, sink)
    for one in (np.float32(9.99), pa.scalar(9.99, pa.float32()), 9.99, np.longdouble("9.99")):
        assert pyparq.read_table(sink.getvalue(), filters=col("p") == one).num_rows == 1
    short = np.array([9.99, 7], np.float32)
    lists: list[Any] = [
        short, list(short), pa.array(short), pa.chunked_array([short]), pd.Series(short), pl.Series(short),
        pd.Series(short, dtype="Float32"), np.ma.masked_array(short, [False, False]), np.array([9.99], np.longdouble),
        pa.array([9.99], pa.float64()),
    ]  # fmt: skip
    for values in lists[:-2]:
        assert pyparq.read_table(sink.getvalue(), filters=col("p").isin(values)).num_rows == 1, type(values)
    hidden = np.ma.masked_array(short, [True, False])
    assert pyparq.read_table(sink.getvalue(), filters=col("p").isin(hidden)).num_rows == 0
    assert pyparq.read_table(sink.getvalue(), filters=~col("p").isin(hidden)).num_rows == 0
    assert pyparq.read_table(sink.getvalue(), filters=~col("p").isin(pa.array([1.5, None], pa.float32()))).num_rows == 0


def test_timestamps_of_pandas_beyond_pythons_years() -> None:
    far = np.array([10**12, 0], "M8[s]")
    sink = io.BytesIO()
    pyparq.write_table({"t": far}, sink)
    late = pd.Timestamp(far[0])
    assert pyparq.read_table(sink.getvalue(), filters=col("t") == late).num_rows == 1
    assert pyparq.read_table(sink.getvalue(), filters=col("t") < late).num_rows == 1
    assert pyparq.read_table(sink.getvalue(), filters=col("t") == pd.Timestamp(0)).num_rows == 1
    with pytest.raises(FilterError, match="local times"):
        pyparq.read_table(sink.getvalue(), filters=col("t") == late.tz_localize("UTC"))


def test_nan_among_the_literals() -> None:
    data = doubles(1.0, NAN)
    assert pyparq.read_table(data, filters=col("x") == Decimal("NaN")).num_rows == 1
    assert pyparq.read_table(data, filters=col("x").isin([np.longdouble("nan"), 1])).num_rows == 2
