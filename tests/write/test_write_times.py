"""Times of day outside of a day are not written: ``verify`` would report them, and other readers misread them.

pyarrow writes them, and shows 25:00 as 01:00. DuckDB writes 24:00, which is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq

DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
TYPES = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]


def times(type_: pa.DataType, *numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)


NESTED: dict[str, Callable[[pa.Array], pa.Array]] = {
    "flat": lambda array: array,
    "dictionary": lambda array: array.dictionary_encode(),
    "list": lambda array: pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array),
    "struct": lambda array: pa.StructArray.from_arrays([array], ["a"]),
}


@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_times_beyond_a_day(type_: pa.DataType, nest: str, tmp_path: Path) -> None:
    path, day = tmp_path / "a.parquet", DAY[type_.unit]
    for bad in (-1, day + 1):
        array = NESTED[nest](times(type_, 0, None, bad))
        with pytest.raises(pyparq.DataError, match=r"row 2: .*day.*column x"):
            pyparq.write_table(pa.table({"x": array}), path)
        assert not path.exists()
    array = NESTED[nest](times(type_, 0, None, day))
    pyparq.write_table(pa.table({"x": array}), path)
    assert not pyparq.verify(path).findings
    plain = array.dictionary_decode() if nest == "dictionary" else array
    assert pq.read_table(path)["x"].combine_chunks().cast(plain.type).equals(plain)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_what_lies_under_nulls_means_nothing(type_: pa.DataType, tmp_path: Path) -> None:
    array = times(type_, 5, -1, 7)
    masked = pa.Array.from_buffers(type_, 3, [pa.py_buffer(b"\x05"), array.buffers()[1]])
    pyparq.write_table(pa.table({"x": masked}), tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["x"].cast(type_).to_pylist() == masked.to_pylist()
