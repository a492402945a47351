"""The numbers of rows in a sort order and in a Z-order, against numpy and by their definition. No Spark runs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import require

require("pyspark")

from pyparq.errors import UnsupportedError  # noqa: E402
from pyparq.option_values import SortKey  # noqa: E402
from pyparq.spark.ordering import Order  # noqa: E402

pytestmark = pytest.mark.spark

RNG = np.random.default_rng(7)
N = 4_000
INTS = RNG.integers(-(2**62), 2**62, N)
COLUMNS: dict[str, pa.Array] = {
    "int64": pa.array(INTS),
    "uint64": pa.array(RNG.integers(0, 2**64, N, dtype=np.uint64)),
    "int8": pa.array(RNG.integers(-128, 128, N), pa.int8()),
    "double": pa.array(np.where(INTS % 17 == 0, np.nan, RNG.normal(size=N)), from_pandas=False),
    "bool": pa.array(INTS % 2 == 0),
    "text": pa.array([f"{v % 10_000}é" for v in INTS]),
    "binary": pa.array([int(v % 65_536).to_bytes(2, "big") for v in INTS]),
    "date": pa.array([dt.date(1900, 1, 1) + dt.timedelta(days=int(v % 80_000)) for v in INTS]),
    "instant": pa.array(INTS // 2**8, pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal(int(v)).scaleb(-3) for v in INTS], pa.decimal128(30, 3)),
    "category": pa.array([f"{v % 97}" for v in INTS]).dictionary_encode(),
    "nulls": pa.array([None if v % 3 == 0 else int(v) for v in INTS]),
    "only nulls": pa.nulls(N, pa.int32()),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_numbers_follow_the_order(name: str, descending: bool, nulls_first: bool) -> None:
    """A row that comes before another never has a higher number."""
    column = COLUMNS[name].cast(pa.string()) if name == "category" else COLUMNS[name]
    table = pa.table({"a": COLUMNS[name]})
    order = Order.of_sample([SortKey("a", descending, nulls_first)], False, table.slice(0, 1_000))
    numbers = order.numbers(table)
    present = [(value, number) for value, number in zip(column.to_pylist(), numbers, strict=True) if value is not None]
    absent = [number for value, number in zip(column.to_pylist(), numbers, strict=True) if value is None]
    by_value = sorted(present, key=lambda pair: (pair[0] != pair[0], pair[0]), reverse=descending)  # NaN is the highest
    found = [int(number) for _, number in by_value]
    assert found == sorted(found)
    if absent and present:
        assert (max(absent) < min(found)) if nulls_first else (min(absent) > max(found))
    if name in ("int64", "uint64", "instant", "double"):
        assert len(set(found)) > 500  # as fine as the sample


def test_ranges_have_as_many_rows() -> None:
    table = pa.table({"a": COLUMNS["int64"], "b": COLUMNS["text"]})
    for interleaved in (False, True):
        order = Order.of_sample([SortKey("a"), SortKey("b")], interleaved, table)
        cuts = order.cuts(table, 8)
        sizes = np.bincount(np.searchsorted(cuts, order.numbers(table), side="right"))
        assert len(sizes) == 8
        assert sizes.min() > N / 8 * 0.8


def test_the_second_key_parts_what_the_first_leaves_together() -> None:
    table = pa.table({"a": pa.array([1] * 500 + [2] * 500), "b": pa.array(list(range(500)) * 2)})
    order = Order.of_sample([SortKey("a"), SortKey("b")], False, table)
    numbers = order.numbers(table)
    assert (np.diff(numbers) > 0).all()


def test_the_second_key_does_not_mix_what_the_first_tells_apart() -> None:
    values = {"a": RNG.integers(0, 3_000, N), "b": RNG.integers(0, 50, N)}
    table = pa.table({"a": pa.array(values["a"], mask=values["a"] % 7 == 0), "b": values["b"]})
    for keys in ([SortKey("a"), SortKey("b", True)], [SortKey("a", True, True), SortKey("b")]):
        order = Order.of_sample(keys, False, table.slice(0, 1_000))
        a = [(v is None) != keys[0].nulls_first for v in table["a"].to_pylist()]
        sign, other = (-1 if key.descending else 1 for key in keys)
        rows = zip(a, table["a"].to_pylist(), table["b"].to_pylist(), order.numbers(table), strict=True)
        in_order = sorted(rows, key=lambda row: (row[0], sign * (row[1] or 0), other * row[2]))
        found = [int(row[3]) for row in in_order]
        assert found == sorted(found)
        assert len(set(found)) > 800


def test_a_z_order_keeps_near_rows_together() -> None:
    """In a grid of 32 x 32, each aligned square of side 2**k is one run of numbers."""
    xs, ys = np.divmod(np.arange(1024), 32)
    table = pa.table({"x": xs, "y": ys})
    order = Order((SortKey("x"), SortKey("y")), True, (np.arange(1, 32) - 0.5, np.arange(1, 32) - 0.5))
    numbers = order.numbers(table)
    place = np.argsort(np.argsort(numbers))
    for side in (2, 4, 8, 16):
        squares: dict[tuple[int, int], list[int]] = {}
        for x, y, at in zip(xs, ys, place, strict=True):
            squares.setdefault((x // side, y // side), []).append(int(at))
        whole = [found for found in squares.values() if len(found) == side * side]
        assert whole
        assert all(max(found) - min(found) == side * side - 1 for found in whole)


@pytest.mark.parametrize("value", [{"a": 1}, [1]])
def test_columns_without_an_order(value: Any) -> None:
    with pytest.raises(UnsupportedError, match="in order"):
        Order.of_sample([SortKey("a")], False, pa.table({"a": [value]}))
