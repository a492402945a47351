"""The same calls of ``pyarrow.parquet`` and of ``pyparq.parquet``, with the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq.pandas
import pyparq.parquet

NAN = float("nan")


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    path = str(tmp_path / "numbers.parquet")
    floats = [1.0, NAN, None, 5.0, 0.0, -0.0]
    pq.write_table(pa.table({"k": range(6), "i": [None, 1, 2, 3, 4, 5], "f": floats}), path)
    return path


@pytest.mark.parametrize("test", [
    ("i", "not in", [1]), ("i", "in", [1, None]), ("i", "in", [None]), ("i", "not in", [None, 1]), ("i", "!=", None),
    ("i", "=", None), ("f", ">", 0), ("f", ">=", 5), ("f", "<", NAN), ("f", "!=", 5.0), ("f", "in", [0.0]),
    ("f", "in", [-0.0, 5.0]), ("f", "not in", [0.0]), ("f", "=", -0.0), ("f", "not in", [NAN]), ("i", "in", [1, 2.0]),
], ids=str)  # fmt: skip
def test_tuples_mean_what_they_mean_in_pyarrow(numbers: str, test: Any) -> None:
    right = pq.read_table(numbers).filter(pq.filters_to_expression([test]))["k"].to_pylist()
    assert pyparq.parquet.read_table(numbers, columns=["k"], filters=[test])["k"].to_pylist() == right
    assert pyparq.parquet.ParquetDataset(numbers, filters=[[test]]).read()["k"].to_pylist() == right
    assert pyparq.pandas.read_parquet(numbers, filters=[test])["k"].tolist() == right


def test_statistics_do_not_hide_nan(numbers: str, tmp_path: Path) -> None:
    """pyarrow leaves out row groups whose bounds are one value, though they hold NaN."""
    path = str(tmp_path / "nan.parquet")
    pq.write_table(pa.table({"k": [0, 1, 2], "f": [1.0, 1.0, NAN]}), path)
    for test in (("f", "!=", 1.0), ("f", "in", [NAN])):
        right = pq.read_table(path).filter(pq.filters_to_expression([test]))["k"].to_pylist()
        assert right == [2]
        assert pyparq.parquet.read_table(path, filters=[test])["k"].to_pylist() == right
