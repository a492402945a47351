"""Values that the dataset's type cannot hold are refused by name: no unit or scale wraps around."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq


def beyond_its_precision() -> pa.Array:
    """decimal(10, 2) with an integer of 18 digits below it, as careless writers leave them."""
    limbs = np.array([[123, 0], [10**17, 0], [-1, -1]], np.int64)
    return pa.Array.from_buffers(pa.decimal128(10, 2), 3, [None, pa.py_buffer(limbs.tobytes())])


def test_a_decimal_beyond_its_precision_is_not_scaled_around(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": beyond_its_precision()}), tmp_path / "a.parquet", store_decimal_as_integer=True)
    data = pyparq.dataset(tmp_path, schema=pa.schema({"x": pa.decimal128(18, 6)}))
    with pytest.raises(pyparq.ParquetError, match="column x"):
        data.read()


@pytest.mark.parametrize("kind", [pa.timestamp, pa.duration])
def test_a_finer_unit_that_cannot_hold_a_value_is_an_error(tmp_path: Path, kind: type) -> None:
    pq.write_table(pa.table({"x": pa.array([10**15], kind("ms"))}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([1], kind("ns"))}), tmp_path / "b.parquet")
    with pytest.raises(pyparq.DataError, match="column x"):
        pyparq.dataset(tmp_path).read()


NESTED = {
    "flat": lambda array: array,
    "list": lambda array: pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array),
    "struct": lambda array: pa.StructArray.from_arrays([array], ["a"]),
    "dictionary": lambda array: array.dictionary_encode(),
}  # fmt: skip


@pytest.mark.parametrize("nest", NESTED)
def test_a_declared_precision_that_is_too_small(tmp_path: Path, nest: str) -> None:
    """pyarrow refuses it too."""
    fits = [Decimal("1.25"), None, Decimal("999.99")]
    narrow = NESTED[nest](pa.array(fits, pa.decimal128(5, 2)))
    schema = pa.schema({"x": narrow.type})

    def read(values: list[Decimal | None]) -> pa.Table:
        array = NESTED[nest](pa.array(values, pa.decimal128(9, 2)))
        pyparq.write_table(pa.table({"x": array}), tmp_path / "a.parquet")
        return pyparq.dataset(tmp_path, schema=schema).read().to_arrow()

    kind = pyparq.SchemaError if nest == "dictionary" else pyparq.DataError  # which values cannot become
    name = r"x\.a" if nest == "struct" else "x"
    with pytest.raises(kind, match=rf"decimal\(5, 2\).*column {name}\]"):
        read([*fits, Decimal("1000.00")])
    found = read(fits)
    found.validate(full=True)
    assert found["x"].combine_chunks().to_pylist() == narrow.to_pylist()
