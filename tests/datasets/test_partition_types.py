"""Partition columns of declared types that no file holds as they are: shown as declared, and filtered as shown."""

from __future__ import annotations

import datetime as dt
import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq import col

DAYS = ["2024-03-30", "2024-03-31", "__HIVE_DEFAULT_PARTITION__", "1969-12-31"]
WORDS = ["low", "high", "__HIVE_DEFAULT_PARTITION__", "medium"]
NUMBERS = ["3", "-1", "__HIVE_DEFAULT_PARTITION__", "7"]
CASES: dict[str, tuple[pa.DataType, list[str], Any]] = {
    "seconds": (pa.timestamp("s"), DAYS, dt.datetime(2024, 3, 31)),
    "zoned": (pa.timestamp("s", "Europe/Berlin"), DAYS, dt.datetime(2024, 3, 31, tzinfo=dt.UTC)),
    "date64": (pa.date64(), DAYS, dt.date(2024, 3, 31)),
    "codes": (pa.dictionary(pa.int8(), pa.string()), WORDS, "low"),
    "number_codes": (pa.dictionary(pa.int32(), pa.int64()), NUMBERS, 3),
    "day_codes": (pa.dictionary(pa.int8(), pa.date64()), DAYS, dt.date(2024, 3, 31)),
    "views": (pa.string_view(), WORDS, "low"),
    "binary_views": (pa.binary_view(), WORDS, b"low"),
}
OPS: list[Any] = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def folder(root: Path, texts: list[str]) -> Path:
    for k, text in enumerate(texts):
        place = root / f"k={text}" / f"z={k % 2}"
        place.mkdir(parents=True)
        pyparq.write_table(pa.table({"x": [k, k]}), place / "0.parquet")
    return root


@pytest.mark.parametrize("name", CASES)
def test_partition_columns_are_shown_and_filtered_as_declared(tmp_path: Path, name: str) -> None:
    type_, texts, literal = CASES[name]
    schema = pa.schema({"k": type_, "z": pa.int32()})
    data = pyparq.dataset(folder(tmp_path, texts), partitioning=schema)
    table = data.read(["k", "x"]).to_arrow()
    table.validate(full=True)
    assert table.schema.field("k").type == type_
    shown = [value for value in table.column("k").to_pylist() if value is not None]
    assert len(shown) == 6
    for passes in OPS:
        expected = sum(passes(value, literal) for value in shown)
        filters = passes(col("k"), literal)
        assert data.scan(filters=filters).count() == data.read(filters=filters).num_rows == expected, filters
        assert data.scan(filters=~filters).count() == 6 - expected
    assert data.scan(filters=col("k").isin([literal])).count() == 2
    assert data.scan(filters=col("k").is_null()).count() == 2
    streamed = pa.RecordBatchReader.from_stream(data.scan(["k"])).read_all()
    assert streamed.column("k").to_pylist() == table.column("k").to_pylist()


def test_partitions_with_an_order_of_their_own(tmp_path: Path) -> None:
    type_ = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    data = pyparq.dataset(folder(tmp_path, WORDS), partitioning=pa.schema({"k": type_}))
    assert data.scan(filters=col("k") == "low").count() == 2
    with pytest.raises(pyparq.FilterError, match=r"order of their own.*column k"):
        data.scan(filters=col("k") < "low")


def test_more_values_than_the_indices_of_a_dictionary_number(tmp_path: Path) -> None:
    root = folder(tmp_path, [str(k) for k in range(129)])
    for index, fits in ((pa.int8(), False), (pa.int16(), True)):
        partitioning = pa.schema({"k": pa.dictionary(index, pa.string()), "z": pa.int32()})
        if fits:
            assert pyparq.dataset(root, partitioning=partitioning).read(["k"]).num_rows == 258
        else:
            with pytest.raises(pyparq.DataError, match=r"129 partition values are too many.*column k"):
                pyparq.dataset(root, partitioning=partitioning)
