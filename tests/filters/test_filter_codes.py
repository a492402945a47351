"""Filters on dictionary-encoded columns: each entry is tested once, rows by their codes; against pyarrow."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from forged import Forged

import pyparq
from pyparq import col
from pyparq.errors import LimitError
from pyparq.limits import Limits

ROWS = 20_000
DISTINCT = 40


def entries(type_: pa.DataType) -> list[Any]:
    """Distinct values, ascending."""
    days = [dt.date(1990, 1, 1) + dt.timedelta(days=17 * k) for k in range(DISTINCT)]
    if pa.types.is_decimal(type_):
        return [Decimal(13 * k - 250).scaleb(-2) for k in range(DISTINCT)]
    if pa.types.is_date(type_):
        return days
    if pa.types.is_timestamp(type_):
        return [dt.datetime.combine(day, dt.time(3, 4, 5)) for day in days]
    if pa.types.is_time(type_):
        return [dt.time(k // 2, 30 * (k % 2), 7) for k in range(DISTINCT)]
    if pa.types.is_floating(type_):
        return [k / 4 - 3 for k in range(DISTINCT)]
    if pa.types.is_integer(type_):
        return [3 * k + 1 for k in range(DISTINCT)]
    texts = [f"{k:05d}" if pa.types.is_fixed_size_binary(type_) else f"{k:03d}" * (k % 7 + 1) for k in range(DISTINCT)]
    return texts if pa.types.is_string(type_) else [text.encode() for text in texts]


TYPES = [
    pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.float16(), pa.date32(),
    pa.timestamp("us"), pa.timestamp("ns"), pa.time32("ms"), pa.time64("us"), pa.string(), pa.binary(), pa.binary(5),
    pa.decimal128(7, 2), pa.decimal128(15, 2), pa.decimal128(30, 2), pa.decimal256(50, 2),
]  # fmt: skip


def table_of(type_: pa.DataType, nulls: float, seed: int = 1) -> pa.Table:
    values = pa.array(entries(type_), type_)
    rng = np.random.default_rng(seed)
    codes = pa.array(rng.integers(0, DISTINCT, ROWS), mask=rng.random(ROWS) < nulls)
    return pa.table({"x": values.take(codes), "other": np.arange(ROWS), "wide": pa.array(rng.random(ROWS))})


def stored(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=9_000, **options)
    return out.getvalue()


def chunk_of_x(data: bytes) -> Any:
    return pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)


def questions(type_: pa.DataType) -> list[tuple[Any, Any]]:
    """A filter of ours, and the same of pyarrow's."""
    known = entries(type_)
    low, high, one = known[8], known[23], known[15]
    x, y = col("x"), pc.field("x")

    def lit(value: Any) -> Any:
        return pa.scalar(value, type_)

    return [
        (x == one, y == lit(one)),
        (x != one, y != lit(one)),
        ((x >= low) & (x < high), (y >= lit(low)) & (y < lit(high))),
        ((x > low) & (x <= high) & (x != one), (y > lit(low)) & (y <= lit(high)) & (y != lit(one))),
        ((x < low) | (x > high), (y < lit(low)) | (y > lit(high))),
        (x.isin([low, one, high]), (y == lit(low)) | (y == lit(one)) | (y == lit(high))),
        ((x >= low) & (col("wide") < 0.5) & (x < high), (y >= lit(low)) & (y < lit(high)) & (pc.field("wide") < 0.5)),
        ((x < low) | (col("wide") < 0.5) | (x == high), (y < lit(low)) | (pc.field("wide") < 0.5) | (y == lit(high))),
        (x.is_null() | (x == one), y.is_null() | (y == lit(one))),
        (x.is_not_null() & (x != one), ~y.is_null() & (y != lit(one))),
        ((x >= low) & ~((x == one) | (x > high)), (y >= lit(low)) & ~((y == lit(one)) | (y > lit(high)))),
    ]


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_against_pyarrow(type_: pa.DataType, nulls: float) -> None:
    table = table_of(type_, nulls)
    if pa.types.is_floating(type_) and type_.bit_width == 16:
        data, cast = stored(table), table.set_column(0, "x", table["x"].cast(pa.float32()))
        wanted = [
            (ours, theirs) for (ours, _), (_, theirs) in zip(questions(type_), questions(pa.float32()), strict=True)
        ]
        expected = [cast.filter(theirs) for _, theirs in wanted]
        expected = [t.set_column(0, "x", t["x"].cast(type_)) for t in expected]
    else:
        data, wanted = stored(table), questions(type_)
        expected = [table.filter(theirs) for _, theirs in wanted]
    for (ours, _), answer in zip(wanted, expected, strict=True):
        for columns in (["x", "other"], ["other"]):
            found = pa.table(pyparq.read_table(io.BytesIO(data), columns=columns, filters=ours))
            found.validate(full=True)
            assert found.equals(answer.select(columns)), str(ours)


def test_pages_beside_the_dictionary() -> None:
    """A dictionary that grew too large: later pages hold values."""
    table = pa.table({"x": pa.array([f"{k % 5_000:050d}" for k in range(ROWS)]), "other": np.arange(ROWS)})
    data = stored(table, dictionary_pagesize_limit=50_000, data_page_size=20_000)
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(chunk_of_x(data).encodings)
    wanted = (pc.field("x") > f"{1_000:050d}") & (pc.field("x") < f"{4_800:050d}")
    found = pyparq.read_table(io.BytesIO(data), filters=(col("x") > f"{1_000:050d}") & (col("x") < f"{4_800:050d}"))
    assert pa.table(found).equals(table.filter(wanted))


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.decimal128(15, 2)], ids=str)
def test_a_footer_that_keeps_quiet_about_pages_beside_the_dictionary(type_: pa.DataType) -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 3_000, ROWS)
    x = (
        pa.array([f"{v:050d}" for v in values])
        if type_ == pa.string()
        else pa.array(values.astype(np.int32)).cast(type_)
    )
    table = pa.table({"x": x, "other": np.arange(ROWS)})
    data = stored(table, dictionary_pagesize_limit=4_000, data_page_size=4_000)
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(chunk_of_x(data).encodings)
    forged = Forged(data)
    for group in forged.meta.row_groups:
        meta = group.columns[0].meta_data
        meta.encoding_stats = [s for s in meta.encoding_stats if s.page_type == 2 or s.encoding == 8]
        assert len(meta.encoding_stats) == 2
    one = x[77].as_py()
    expected = table.filter(pc.field("x") >= pa.scalar(one, type_))
    for columns in (["x", "other"], ["other"]):
        found = pyparq.read_table(io.BytesIO(forged.data()), columns=columns, filters=col("x") >= one)
        assert pa.table(found).equals(expected.select(columns))


def test_items_of_lists() -> None:
    rng = np.random.default_rng(3)
    lists = [None if k % 11 == 0 else rng.integers(0, 30, k % 4).tolist() for k in range(ROWS)]
    table = pa.table({"x": pa.array(lists, pa.list_(pa.decimal128(12, 1))), "other": np.arange(ROWS)})
    one = Decimal("7.0")
    expected = table.filter(pa.array([row is not None and 7 in row for row in lists]))
    for columns in (["x", "other"], ["other"]):
        found = pyparq.read_table(io.BytesIO(stored(table)), columns=columns, filters=col("x").contains(one))
        assert pa.table(found).equals(expected.select(columns))


def test_members_of_structs() -> None:
    rng = np.random.default_rng(4)
    rows = [None if k % 9 == 0 else {"a": None if k % 5 == 0 else Decimal(int(v))} for k, v in
            enumerate(rng.integers(0, 30, ROWS))]  # fmt: skip
    table = pa.table({"x": pa.array(rows, pa.struct([("a", pa.decimal128(20, 0))])), "other": np.arange(ROWS)})
    expected = table.filter(pc.field("x", "a") > Decimal(12))
    for columns in (["x", "other"], ["other"]):
        found = pyparq.read_table(io.BytesIO(stored(table)), columns=columns, filters=col("x", "a") > 12)
        assert pa.table(found).equals(expected.select(columns))


def test_a_column_that_stays_a_dictionary() -> None:
    table = table_of(pa.string(), 0.2)
    data = stored(table.set_column(0, "x", table["x"].dictionary_encode()))
    found = pa.table(pyparq.read_table(io.BytesIO(data), filters=col("x") > "010"))
    expected = table.filter(pc.field("x") > "010")
    assert pa.types.is_dictionary(found.schema.field("x").type)
    assert found["x"].cast(pa.string()).equals(expected["x"])


def test_batches_and_limits_on_rows() -> None:
    table = table_of(pa.decimal128(15, 2), 0.1)
    file = pyparq.ParquetFile(io.BytesIO(stored(table)))
    expected = table.filter(pc.field("x") > Decimal("0.5"))
    parts = [pa.record_batch(batch) for batch in file.scan(filters=col("x") > Decimal("0.5")).iter_batches(1_000)]
    assert pa.Table.from_batches(parts).equals(expected)
    first = pa.table(file.scan(filters=col("x") > Decimal("0.5"), limit=5_001).to_table())
    assert first.equals(expected.slice(0, 5_001))


@pytest.mark.parametrize("type_", [pa.string(), pa.decimal128(15, 2)], ids=str)
def test_values_are_counted_before_they_are_spelled_out(type_: pa.DataType) -> None:
    long = ["x" * 5_000 + str(k) for k in range(3)] if type_ == pa.string() else [Decimal(k) for k in range(3)]
    table = pa.table({"x": pa.array(long, type_).take(pa.array(np.arange(ROWS) % 3))})
    data = stored(table)
    question = {"columns": ["x"], "filters": col("x") >= long[1]}
    size = (5_001 if type_ == pa.string() else 16) * 6_000
    with pytest.raises(LimitError, match=r"limits\.max_column"):
        pyparq.read_table(io.BytesIO(data), **question, limits=Limits(max_column=size - 1_000))
    with pytest.raises(LimitError, match=r"limits\.max_memory"):
        pyparq.read_table(io.BytesIO(data), **question, limits=Limits(max_memory=size + 30_000))
    assert pyparq.read_table(io.BytesIO(data), **question).num_rows == 13_333
