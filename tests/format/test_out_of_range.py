"""Stored values that their type does not allow: refused with their place, or null with ``out_of_range="null"``.

What others do was measured with the versions that the tests run with, in :func:`test_what_others_do`.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from relabelled import relabel

import pyparq
from pyparq import DataError, col

ROWS, GROUP = 6_000, 2_500
BAD = (2_600, 2_601, 5_999)  # rows; in the row groups 1 and 2
NULL = 7
"""Every so many rows are null."""


def numbers_of(stored: str, type_: pa.DataType) -> list[int | None]:
    """Values that fit, but for those in BAD."""
    draw = random.Random(1)
    if pa.types.is_decimal(type_):
        most, beyond = 10**type_.precision - 1, [10**type_.precision, -(10**type_.precision), 10**type_.precision + 5]
    else:
        signed = pa.types.is_signed_integer(type_)
        most = 2 ** (type_.bit_width - signed) - 1
        beyond = [most + 1, -2 if not signed else -most - 2, 10**9]
    common = [draw.randint(-most if pa.types.is_decimal(type_) else 0, most) for _ in range(40)] + [most]
    found: list[int | None] = [None if k % NULL == 0 else draw.choice(common) for k in range(ROWS)]
    for row, value in zip(BAD, beyond, strict=True):
        found[row] = value
    return found


def stored_array(stored: str, numbers: list[int | None]) -> pa.Array:
    if stored in ("int32", "int64"):
        return pa.array(numbers, pa.type_for_alias(stored))
    if stored == "binary":
        shortest = [None if v is None else v.to_bytes((v.bit_length() + 8) // 8, "big", signed=True) for v in numbers]
        return pa.array(shortest, pa.binary())
    width = int(stored.removeprefix("fixed"))
    fixed = [None if v is None else v.to_bytes(width, "big", signed=True) for v in numbers]
    return pa.array(fixed, pa.binary(width))


CASES = {
    "int32 decimal(5, 2)": ("int32", pa.decimal128(5, 2)),
    "int64 decimal(9, 0)": ("int64", pa.decimal128(9, 0)),
    "int64 decimal(18, 3)": ("int64", pa.decimal128(18, 3)),
    "fixed5 decimal(10, 2)": ("fixed5", pa.decimal128(10, 2)),
    "fixed8 decimal(18, 2)": ("fixed8", pa.decimal128(18, 2)),
    "fixed9 decimal(20, 2)": ("fixed9", pa.decimal128(20, 2)),
    "fixed16 decimal(38, 2)": ("fixed16", pa.decimal128(38, 2)),
    "fixed20 decimal(30, 2)": ("fixed20", pa.decimal128(30, 2)),
    "fixed24 decimal(50, 2)": ("fixed24", pa.decimal256(50, 2)),
    "fixed32 decimal(76, 2)": ("fixed32", pa.decimal256(76, 2)),
    "fixed40 decimal(60, 2)": ("fixed40", pa.decimal256(60, 2)),
    "binary decimal(12, 2)": ("binary", pa.decimal128(12, 2)),
    "binary decimal(40, 2)": ("binary", pa.decimal256(40, 2)),
    "int32 int8": ("int32", pa.int8()),
    "int32 int16": ("int32", pa.int16()),
    "int32 uint8": ("int32", pa.uint8()),
    "int32 uint16": ("int32", pa.uint16()),
}  # fmt: skip


def made(
    path: Path, case: str, nest: Callable[[pa.Array], pa.Array] | None = None, required: bool = False, **given: Any
) -> list[Any]:
    """Write a file, and return its values as they should come out with ``out_of_range="null"``."""
    stored, type_ = CASES[case]
    numbers = numbers_of(stored, type_)
    if required:
        numbers = [v or 0 for v in numbers]
    array = stored_array(stored, numbers)
    array = array if nest is None else nest(array)
    schema = pa.schema([pa.field("x", array.type, not required), pa.field("row", pa.int64())])
    table = pa.Table.from_arrays([array, pa.array(range(ROWS))], schema=schema)
    # Bounds of binary columns would not be those of decimals.
    statistics = ["row", "x"] if stored.startswith("int") else ["row"]
    usual = {"row_group_size": GROUP, "data_page_size": 4096, "write_batch_size": 500, "write_statistics": statistics,
             "store_schema": False, "write_page_index": True}  # fmt: skip
    pq.write_table(table, path, **(usual | given))
    leaf = "x" if nest is None else "element" if pa.types.is_list(array.type) else "v"
    relabel(path, {leaf: type_})
    scale = type_.scale if pa.types.is_decimal(type_) else None
    return [shown(None if k in BAD else v, scale) for k, v in enumerate(numbers)]


def shown(value: int | None, scale: int | None) -> Any:
    if value is None or scale is None:
        return value
    return Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -scale))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "dictionary"])
@pytest.mark.parametrize("case", CASES)
def test_a_value_beyond_its_type(case: str, plain: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    due = made(path, case, use_dictionary=not plain)
    with pytest.raises(DataError, match=r"out_of_range=.null.*") as caught:
        pyparq.read_table(path)
    assert (caught.value.file, caught.value.row_group, caught.value.column) == (str(path), 1, "x")
    assert caught.value.page == (None if case.startswith("binary") else 0)
    table = pyparq.read_table(path, out_of_range="null")
    table.to_arrow().validate(full=True)
    assert table["x"].to_pylist() == due
    # Rows elsewhere are read as ever.
    assert pyparq.read_table(path, filters=col("row") < GROUP)["x"].to_pylist() == due[:GROUP]
    rows = [2_599, 2_602, 2_603]
    with pyparq.ParquetFile(path) as file:
        assert file.take(rows)["x"].to_pylist() == [due[k] for k in rows]
        with pytest.raises(DataError, match="row group 1, column x"):
            file.take([2_600])


def matches(op: str, value: Any, literal: Any) -> bool:
    if op == "is_null":
        return value is None
    if value is None:
        return False
    return bool(
        {
            "is_not_null": lambda: True, "==": lambda: value == literal, "!=": lambda: value != literal,
            "<": lambda: value < literal, ">=": lambda: value >= literal, "isin": lambda: value in (literal, 0),
            "not in": lambda: value not in (literal, 0), "not <": lambda: value >= literal,
        }[op]()
    )  # fmt: skip


def filter_of(op: str, literal: Any) -> Any:
    x = col("x")
    return {
        "is_null": lambda: x.is_null(), "is_not_null": lambda: ~x.is_null(), "==": lambda: x == literal,
        "!=": lambda: x != literal, "<": lambda: x < literal, ">=": lambda: x >= literal,
        "isin": lambda: x.isin([literal, 0]), "not in": lambda: ~x.isin([literal, 0]), "not <": lambda: ~(x < literal),
    }[op]()  # fmt: skip


OPS = ["is_null", "is_not_null", "==", "!=", "<", ">=", "isin", "not in", "not <"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "dictionary"])
@pytest.mark.parametrize(
    "case", ["int32 decimal(5, 2)", "fixed9 decimal(20, 2)", "binary decimal(12, 2)", "int32 int8"]
)
def test_filters_see_nulls(case: str, plain: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    due = made(path, case, use_dictionary=not plain)
    there = sorted({v for v in due if v is not None})
    beyond = there[-1] * 10  # the values that do not fit lie near there
    for literal in (there[3], beyond):
        for op in OPS:
            rows = [k for k, v in enumerate(due) if matches(op, v, literal)]
            for columns in (["row"], ["row", "x"]):
                found = pyparq.read_table(path, columns=columns, filters=filter_of(op, literal), out_of_range="null")
                assert found["row"].to_pylist() == rows, (op, literal)
                if "x" in columns:
                    assert found["x"].to_pylist() == [due[k] for k in rows]
            with pyparq.ParquetFile(path, out_of_range="null") as file:
                assert file.scan(filters=filter_of(op, literal)).count() == len(rows)


def test_filters_refuse_what_they_look_at(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    made(path, "int32 decimal(5, 2)")
    with pytest.raises(DataError, match="row group 1, column x"):
        pyparq.read_table(path, columns=["row"], filters=col("x") != 0)
    assert pyparq.read_table(path, columns=["row"], filters=(col("x") != 0) & (col("row") < GROUP)).num_rows > 0


def struct_of(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], ["v"], mask=pa.array([k % 11 == 3 for k in range(len(array))]))


def lists_of(array: pa.Array) -> pa.Array:
    """Two items each; ROWS of them are written as half as many rows."""
    return pa.ListArray.from_arrays(pa.array(range(0, len(array) + 1, 1), pa.int32()), array)


@pytest.mark.parametrize(
    "case", ["int32 decimal(5, 2)", "fixed9 decimal(20, 2)", "binary decimal(12, 2)", "int32 int8"]
)
def test_nested(case: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    due = made(path, case, struct_of)
    with pytest.raises(DataError, match=r"row group 1, column x\.v"):
        pyparq.read_table(path)
    expected = [None if k % 11 == 3 else {"v": v} for k, v in enumerate(due)]
    table = pyparq.read_table(path, out_of_range="null")
    table.to_arrow().validate(full=True)
    assert table["x"].to_pylist() == expected
    for filters, rows in [
        (col("x.v").is_null(), [k for k, v in enumerate(expected) if v is None or v["v"] is None]),
        (~col("x.v").is_null(), [k for k, v in enumerate(expected) if v is not None and v["v"] is not None]),
        (col("x").is_null(), [k for k, v in enumerate(expected) if v is None]),
    ]:
        found = pyparq.read_table(path, filters=filters, out_of_range="null")
        assert found["row"].to_pylist() == rows
        assert found["x"].to_pylist() == [expected[k] for k in rows]
    due = made(path, case, lists_of)
    with pytest.raises(DataError, match=r"row group 1, column x\.list\.element"):
        pyparq.read_table(path)
    table = pyparq.read_table(path, out_of_range="null")
    table.to_arrow().validate(full=True)
    assert table["x"].to_pylist() == [[v] for v in due]
    found = pyparq.read_table(path, filters=col("x").contains(None), out_of_range="null")
    assert found["row"].to_pylist() == [k for k, v in enumerate(due) if v is None]
    one = next(v for v in due if v is not None)
    found = pyparq.read_table(path, filters=~col("x").contains(one), out_of_range="null")
    assert found["row"].to_pylist() == [k for k, v in enumerate(due) if v != one]


@pytest.mark.parametrize(
    "case", ["int32 decimal(5, 2)", "fixed9 decimal(20, 2)", "binary decimal(12, 2)", "int32 int8"]
)
def test_a_column_without_nulls_is_refused_in_either_case(case: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    made(path, case, required=True)
    for what in ("raise", "null"):
        with pytest.raises(DataError, match="row group 1, column x"):
            pyparq.read_table(path, out_of_range=what)


def every_way(path: Path, **options: Any) -> dict[str, Callable[[], list[Any]]]:
    """The values of x, read in every way there is."""

    def opened(read: Callable[[pyparq.ParquetFile], list[Any]]) -> Callable[[], list[Any]]:
        def call() -> list[Any]:
            with pyparq.ParquetFile(path, **options) as file:
                return read(file)

        return call

    def rewritten() -> list[Any]:
        to = path.with_name("rewritten") / "a.parquet"
        to.parent.mkdir(exist_ok=True)
        pyparq.rewrite(pyparq.dataset(path, **options), to)
        return pyparq.read_table(to)["x"].to_pylist()

    def pandas() -> list[Any]:
        return [None if v is None or v != v else v for v in pyparq.read_table(path, **options).to_pandas()["x"]]

    whole = pyparq.dataset(path, **options)
    return {
        "table": lambda: pyparq.read_table(path, **options)["x"].to_pylist(),
        "arrow": lambda: pyparq.read_table(path, **options).to_arrow()["x"].to_pylist(),
        "polars": lambda: pyparq.read_table(path, **options).to_polars()["x"].to_list(),
        "pandas": pandas,
        "batches": opened(lambda file: [v for batch in file.scan().iter_batches(700) for v in batch["x"].to_pylist()]),
        "arrow stream": opened(lambda file: pa.table(file.scan())["x"].to_pylist()),
        "plan": opened(lambda file: file.execute(pickle.loads(pickle.dumps(file.scan().plan())))["x"].to_pylist()),
        "dataset": lambda: whole.read()["x"].to_pylist(),
        "lookup": lambda: whole.lookup("row", list(range(ROWS)))["x"].to_pylist(),
        "rewrite": rewritten,
    }


@pytest.mark.parametrize(
    "case", ["int32 decimal(5, 2)", "fixed9 decimal(20, 2)", "binary decimal(12, 2)", "int32 int8"]
)
@pytest.mark.parametrize("group", [GROUP, 100], ids=["large", "small"])
def test_every_way_to_read(case: str, group: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    due = made(path, case, row_group_size=group)
    for name, read in every_way(path).items():
        with pytest.raises(Exception, match=f"row group {2600 // group}, column x") as caught:
            read()
        if name not in ("arrow stream", "polars"):  # pyarrow has errors of its own
            assert isinstance(caught.value, DataError), name
    for name, read in every_way(path, out_of_range="null").items():
        assert read() == due, name


def test_a_dictionary_column(tmp_path: Path) -> None:
    """``ARROW:schema`` of the file asks for a dictionary: entries that do not fit are not among its own."""
    path = tmp_path / "a.parquet"
    kept = [Decimal("1.25"), None, Decimal("2.50")]
    type_ = pa.decimal128(9, 2)
    table = pa.table({"x": pa.array([*kept, Decimal("99.99")] * 5, type_).dictionary_encode()})
    pyparq.write_table(table, path)
    data = path.read_bytes()
    beyond = (10**9 + 7).to_bytes(4, "little")
    assert data.count((9999).to_bytes(4, "little")) >= 1
    path.write_bytes(data.replace((9999).to_bytes(4, "little"), beyond))
    with pytest.raises(DataError, match="row group 0, column x"):
        pyparq.read_table(path, verify_checksums=False)
    found = pyparq.read_table(path, verify_checksums=False, out_of_range="null")
    arrow = found.to_arrow()
    arrow.validate(full=True)
    assert pa.types.is_dictionary(arrow["x"].type)
    assert arrow["x"].to_pylist() == [*kept, None] * 5
    assert found.to_pandas()["x"].isna().sum() == 10
    # Nobody uses the entry in these rows.
    with pyparq.ParquetFile(path, verify_checksums=False) as file:
        assert file.take([0, 1, 2])["x"].to_pylist() == kept


def test_int96(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = [datetime(2020, 1, 1), None, datetime(9999, 1, 1), datetime(2020, 1, 2)]
    table = pa.table({"x": pa.array(times, pa.timestamp("us"))})
    pyparq.write_table(table, path, int96_timestamps=True)
    with pytest.raises(DataError, match="out_of_range"):
        pyparq.read_table(path)
    found = pyparq.read_table(path, out_of_range="null")
    assert found["x"].to_pylist() == [times[0], None, None, times[3]]
    found = pyparq.read_table(path, filters=col("x").is_null(), out_of_range="null")
    assert found.num_rows == 2
    assert pyparq.read_table(path, filters=col("x") > times[0], out_of_range="null").num_rows == 1


def test_the_option() -> None:
    with pytest.raises(pyparq.OptionError, match="out_of_range must be 'raise' or 'null'"):
        pyparq.ReadOptions(out_of_range="wrap")  # type: ignore[arg-type]


def test_values_that_just_fit(tmp_path: Path) -> None:
    """The largest and smallest of each type are no errors."""
    for number, (stored, type_) in enumerate(CASES.values()):
        if pa.types.is_decimal(type_):
            most = 10**type_.precision - 1
            numbers = [most, -most, 0, None]
        else:
            signed = pa.types.is_signed_integer(type_)
            most = 2 ** (type_.bit_width - signed) - 1
            numbers = [most, -most - 1 if signed else 0, 0, None]
        for dictionary in (True, False):
            path = tmp_path / f"{number}.parquet"
            table = pa.table({"x": stored_array(stored, numbers * 100)})
            pq.write_table(table, path, store_schema=False, use_dictionary=dictionary)
            relabel(path, {"x": type_})
            found = pyparq.read_table(path)
            found.to_arrow().validate(full=True)
            scale = type_.scale if pa.types.is_decimal(type_) else None
            assert found["x"].to_pylist() == [shown(v, scale) for v in numbers] * 100, (stored, type_)


def test_what_others_do(tmp_path: Path) -> None:
    """pyarrow, DuckDB and polars read such decimals as they are, which pyarrow's own check then refuses, and cut
    integers to their low bits."""
    decimals, integers = tmp_path / "a.parquet", tmp_path / "b.parquet"
    made(decimals, "int32 decimal(5, 2)")
    made(integers, "int32 int8")
    found = pq.read_table(decimals)["x"].combine_chunks()
    assert found[2600].as_py() == Decimal("1000.00")
    with pytest.raises(pa.ArrowInvalid, match="precision"):
        found.validate(full=True)
    assert pq.read_table(integers)["x"][2600].as_py() == -128
    for read in (
        lambda path: duckdb.sql(f"select x from '{path}' where row = 2600").fetchall()[0][0],
        lambda path: pl.read_parquet(path)["x"][2600],
    ):
        assert (read(decimals), read(integers)) == (Decimal("1000.00"), -128)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "dictionary"])
@pytest.mark.parametrize("case", [case for case in CASES if "decimal" in case])
def test_decimals_that_are_wider_than_declared(case: str, plain: bool, tmp_path: Path) -> None:
    """As old parquet-cpp, flow-php and Gluten write them. pyarrow reads what 128 bits hold."""
    path = tmp_path / "a.parquet"
    stored, type_ = CASES[case]
    made(path, case, use_dictionary=not plain)
    due = [shown(v, type_.scale) for v in numbers_of(stored, type_)]
    if case in ("fixed16 decimal(38, 2)", "fixed32 decimal(76, 2)"):
        with pytest.raises(DataError, match="more digits than the column's precision"):  # no type has more
            pyparq.read_table(path, out_of_range="widen")
        return
    table = pyparq.read_table(path, out_of_range="widen")
    table.to_arrow().validate(full=True)
    assert table["x"].to_pylist() == due
    assert table.schema.field("x").type.decimal[0] >= type_.precision
    if stored.startswith(("int", "fixed")) and type_.precision <= 38 and stored != "fixed20":
        assert pq.read_table(path)["x"].to_pylist() == due
    for row in (*BAD, 3):
        asked = pyparq.read_table(path, filters=col("x") == due[row], out_of_range="widen")
        assert asked["row"].to_pylist() == [k for k, value in enumerate(due) if value == due[row]]
    pyparq.write_table(table, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet")["x"].to_pylist() == due


@pytest.mark.parametrize("case", ["int32 int8", "int32 int16", "int32 uint16"])
def test_integers_that_are_wider_than_declared(case: str, tmp_path: Path) -> None:
    made(tmp_path / "a.parquet", case)
    stored, type_ = CASES[case]
    due = [v if v is None or v >= 0 or "uint" not in case else v + (1 << 32) for v in numbers_of(stored, type_)]
    assert pyparq.read_table(tmp_path / "a.parquet", out_of_range="widen")["x"].to_pylist() == due
