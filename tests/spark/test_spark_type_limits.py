"""``truncate=True`` cuts nanoseconds off for Spark, and nothing else: what Spark's microseconds cannot hold is refused.

No session is needed.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import pyparq

pytest.importorskip("pyspark")

from pyparq.spark.types import SparkTypes

MOST = 2**63 - 1


def of_numbers(type_: pa.DataType, *numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int64()).view(type_)


def cast(array: pa.Array, truncate: bool) -> pa.Array:
    table = pyparq.Table.from_arrow(pa.table({"x": array}))
    return next(SparkTypes(table.schema, truncate=truncate).cast(table)).column(0)


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize(
    "array",
    [
        of_numbers(pa.timestamp("s"), MOST // 10**6 + 1),
        of_numbers(pa.timestamp("ms", "UTC"), -MOST),
        of_numbers(pa.duration("s"), 2**62),
        of_numbers(pa.duration("ms"), MOST),
        pa.ListArray.from_arrays([0, 1], of_numbers(pa.timestamp("ms"), MOST)),
        pa.StructArray.from_arrays([of_numbers(pa.duration("s"), -(2**62))], ["a"]),
    ],
    ids=lambda array: str(array.type),
)
def test_values_that_spark_cannot_hold(array: pa.Array, truncate: bool) -> None:
    with pytest.raises(pyparq.DataError, match="column x"):
        cast(array, truncate)


def test_nanoseconds_are_cut_off() -> None:
    for type_ in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")):
        array = of_numbers(type_, 1_999, None, 0, 86_399_999_999_999)
        with pytest.raises(pyparq.DataError, match="column x"):
            cast(array, False)
        found = cast(array, True)
        per = 1 if found.type == pa.time64("ns") else 1000
        due = [1_000, None, 0, 86_399_999_999_000]
        assert found.view(pa.int64()).to_pylist() == [None if v is None else v // per for v in due]
