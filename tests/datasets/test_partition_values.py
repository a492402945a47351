"""Values of partition columns come back from the names of folders as they were, or as an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq

MOST = 2**63 - 1


def of_numbers(type_: pa.DataType, *numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)


VALUES = [
    of_numbers(pa.timestamp("ns"), 1, 0, -1, MOST, -MOST, 1_700_000_000_123_456_789, None),
    of_numbers(pa.timestamp("ns", "UTC"), 1, MOST),
    of_numbers(pa.timestamp("us"), 1, 0, -1, MOST, -MOST, 253_402_300_799_999_999, 253_402_300_800_000_000),
    of_numbers(pa.timestamp("us", "America/New_York"), -62_135_596_800_000_000, 253_402_300_799_999_999, 5),
    of_numbers(pa.timestamp("ms"), MOST, -MOST, 1),
    of_numbers(pa.timestamp("s"), -62_135_596_801, 0, 253_402_300_800),
    of_numbers(pa.date32(), 2**31 - 1, -(2**31), 0, None, -719_163),
    pa.array([1e300, 5e-324, float("inf"), -float("inf"), -0.0, 0.1]),
    pa.array([np.float32(0.1), np.float32(3.4e38)]),
    pa.array([2**64 - 1, 2**63], pa.uint64()),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda v: str(v.type))
def test_written_and_read(values: pa.Array, tmp_path: Path) -> None:
    table = pa.table({"k": values, "x": list(range(len(values)))})
    pyparq.write_dataset(table, tmp_path / "d", partition_cols=["k"])
    found = pyparq.dataset(tmp_path / "d", partitioning=pa.schema({"k": values.type})).read().to_arrow()
    found = found.sort_by("x")
    assert found["k"].type == values.type
    assert found["k"].combine_chunks().equals(values)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("double", "1e400"), ("double", "-1e400"), ("float", "1e39"), ("timestamp[us]", "2020-01-01 00:00:00.0000001"),
        ("timestamp[s]", "2020-01-01 00:00:00.5"), ("timestamp[ns]", "9999-01-01"), ("timestamp[ns]", "294247-01-01"),
        ("timestamp[us]", "300000-01-01"), ("timestamp[us]", "99999999999999999999-01-01"), ("date", "5881581-01-01"),
        ("timestamp[us]", "2020-02-30"), ("timestamp[us]", "10000-02-30"), ("date", "10000-13-01"), ("int8", "300"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(type_: str, text: str, tmp_path: Path) -> None:
    (tmp_path / f"k={text}").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / f"k={text}" / "a.parquet")
    with pytest.raises(pyparq.DataError, match="column k"):
        pyparq.dataset(tmp_path, partitioning=pyparq.schema({"k": type_})).read()
