"""Filters mean what a result shows: one table of shown types x literals x operators x ways to ask.

Each cell is right by the oracle of tests/support/filter_meaning.py, or refused by a FilterError that names the column.
A column that is asked for by a file and by a folder of files is compared alike.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import pickle
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filter_meaning import passes, rank_literal, rank_shown

import pyparq
from pyparq import col
from pyparq.filters.sql_text import parse_where
from pyparq.polars import scan as polars_scan

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
BERLIN = "Europe/Berlin"
EAST = dt.timezone(dt.timedelta(hours=2))
NOON = dt.datetime(2024, 3, 31, 12)  # the day on which Berlin's clocks leap
NAN, INF = math.nan, math.inf

# ---- the types: for each the arrays that the files of one folder hold ----------------------------------------------

DATES = [
    dt.date(2024, 3, 30),
    dt.date(2024, 3, 31),
    None,
    dt.date(1969, 12, 31),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
]
TIMES = [dt.time(0), dt.time(1, 0, 5), None, dt.time(23, 59, 59), dt.time(12)]
STAMPS = [dt.datetime(2024, 3, 31), NOON, None, dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 10, 27, 1)]
SPANS = [dt.timedelta(0), dt.timedelta(seconds=1), None, dt.timedelta(hours=12), dt.timedelta(seconds=-5)]
WORDS = ["low", "high", None, "medium", "zebra", ""]
RAW = [b"abc", b"a", None, b"", b"\xff\xfe", bytes(15) + b"\1"]
IDS = [uuid.UUID(int=v).bytes for v in (0, 1, 2**64, 2**127)]
PRICES = [Decimal("1.10"), None, Decimal("-2.25"), Decimal("7.00")]
FLOATS = [0.0, -0.0, 1.5, None, NAN, INF, -INF, 0.1]


def array(values: list[Any], type_: Any) -> pa.Array:
    return pa.array(values, type_)


def units(values: list[Any], *types: pa.DataType) -> list[pa.Array]:
    return [pa.array(values, type_) for type_ in types]


def as_codes(values: list[Any], *types: pa.DataType) -> list[pa.Array]:
    return [pa.array(values, type_).dictionary_encode() for type_ in types]


def extended(type_: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))


def with_order(words: list[Any]) -> pa.Array:
    codes = pa.array([None if w is None else words.index(w) for w in words], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array([w or "?" for w in words]), ordered=True)


def in_runs(values: list[Any], type_: pa.DataType) -> pa.Array:
    ends = pa.array([2 * (k + 1) for k in range(len(values))], pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, type_))


class Celsius(pa.ExtensionType):
    """A type of a user's own."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


def types() -> dict[str, list[pa.Array]]:
    s, ms, us, ns = "s", "ms", "us", "ns"
    naive, zoned = [pa.timestamp(u) for u in (s, ms, us, ns)], [pa.timestamp(u, BERLIN) for u in (s, us, ns)]
    spans = [pa.duration(u) for u in (s, ms, us, ns)]
    clocks = [pa.time32(s), pa.time32(ms), pa.time64(us), pa.time64(ns)]
    return {
        "date": units(DATES, pa.date32(), pa.date64()),
        "date64": units(DATES, pa.date64()),
        "date64_codes": as_codes(DATES, pa.date64()),
        "time_s": units(TIMES, pa.time32(s)),
        "time": units(TIMES, *clocks),
        "time_codes": as_codes(TIMES, pa.time32(s)),
        "timestamp_s": units(STAMPS, pa.timestamp(s)),
        "timestamp": units(STAMPS, *naive),
        "timestamp_zoned": units(STAMPS, *zoned),
        "timestamp_codes": as_codes(STAMPS, pa.timestamp(s)),
        "timestamp_zoned_codes": as_codes(STAMPS, pa.timestamp(us, BERLIN)),
        "duration": units(SPANS, *spans),
        "duration_codes": as_codes(SPANS, pa.duration(ms)),
        "duration_runs": [in_runs(SPANS, pa.duration(s))],
        "words": [*as_codes(WORDS, pa.string(), pa.large_string()), pa.array(WORDS, pa.string_view())],
        "ordered": [with_order(WORDS)],
        "word_runs": [in_runs(WORDS, pa.string())],
        "bytes": units(RAW, pa.binary(), pa.large_binary(), pa.binary_view()),
        "fixed": units([b"abc", None, bytes(3), b"\xff" * 3], pa.binary(3)),
        "uuid": [extended(pa.uuid(), [*IDS, None])],
        "uuid_as_bytes": [array([*IDS, None], pa.binary(16)), extended(pa.uuid(), [*IDS, None])],
        "json": [extended(pa.json_(), ["{}", None, "low"])],
        "bool": [array([True, False, None], pa.bool_())],
        "bool8": [extended(pa.bool8(), [0, 1, 2, None, -1])],
        "opaque": [extended(pa.opaque(pa.int64(), "type", "vendor"), [1, None, 7])],
        "own": [extended(Celsius(), [1, None, 7])],
        "int": [*units([1, None, -5, 2**31 - 1], pa.int32(), pa.int64()), array([3, 2**32 - 1], pa.uint32())],
        "uint8": units([0, 1, 255, None], pa.uint8()),
        "uint64": units([0, 1, 2**64 - 1, 2**63, None], pa.uint64()),
        "int_codes": as_codes([3, 1, None, -7], pa.int64()),
        "int_runs": [in_runs([4, None, 9], pa.int32())],
        "half": [array([None if v is None else np.float16(v) for v in [*FLOATS, 65_504, 6e-8]], pa.float16())],
        "float": units(FLOATS, pa.float32(), pa.float64()),
        "float_codes": as_codes(FLOATS, pa.float64()),
        "decimal": units(
            PRICES, pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 4)
        ),
        "decimal_of_ints": [array(PRICES, pa.decimal128(21, 2)), array([7, 2**62 + 1, None], pa.int64())],
        "decimal_codes": as_codes(PRICES, pa.decimal128(9, 2)),
    }  # fmt: skip


TYPES = types()

LITERALS: list[Any] = [
    0, 1, -1, 2, 255, 256, 2**31, 2**63, 2**64, -(2**70), 1.5, 0.1, -0.0, NAN, INF, -INF, 65_504.0, 65_519.0, 65_520.0,
    3e-8, 4.611686018427388e18, Decimal("1.10"), Decimal("1.1000000001"), Decimal("NaN"), Decimal("Infinity"),
    Fraction(1, 3), np.int8(1), np.uint64(2**64 - 1), np.float16(0.1), np.float32(0.1), np.float64(1.5),
    np.longdouble(1.5), True, False, np.True_,
    "low", "high", "", "a", "2024-03-31", "2024-03-31T12:00:00", "2024-03-31 12:00:00+00:00", "12:00:00", "01:00:05",
    str(uuid.UUID(int=1)), "6", np.str_("low"), b"a", b"", b"abc", b"abcd", b"\xff", bytearray(b"a"), IDS[1],
    uuid.UUID(int=1), np.bytes_(b"a"),
    dt.date(2024, 3, 31), dt.date(1, 1, 1), NOON, NOON.replace(tzinfo=dt.UTC), NOON.replace(tzinfo=EAST),
    dt.datetime(1, 1, 1, tzinfo=EAST), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    dt.time(12), dt.time(1, 0, 5), dt.time(12, tzinfo=dt.UTC), dt.time(12, 0, 0, 5),
    dt.timedelta(seconds=1), dt.timedelta(hours=12), dt.timedelta(days=-999_999_999),
    np.datetime64("2024-03-31"), np.datetime64("2024-03-31T12:00:00.000000001"), np.datetime64("2024"),
    np.timedelta64(1, "s"), np.timedelta64(1, "ns"), pd.Timestamp(NOON), pd.Timestamp(NOON, tz=BERLIN),
    pd.Timestamp(NOON).as_unit("s"), pd.Timedelta(seconds=1),
    pa.scalar(1), pa.scalar("low"), pa.scalar(NOON, pa.timestamp("ns")), pa.scalar(1, pa.duration("s")),
    pa.scalar(43_200_000_000_001, pa.time64("ns")), pa.scalar(Decimal("1.10")),
]  # fmt: skip

NEVER: list[Any] = [
    1j, [1], (1,), {"a": 1}, {1}, object(), np.array([1, 2]), pa.array([1]), np.timedelta64(1, "Y"), np.timedelta64(5),
    pd.Period("2024-03"), pd.Interval(0, 1), pd.Series([1]), len, Decimal("sNaN"), "\ud800",
]  # fmt: skip
"""What no column can be compared with."""


def unwrapped(literal: Any) -> Any:
    """pyarrow's scalars but for those that Python has no exact value for."""
    exact = (pa.TimestampScalar, pa.DurationScalar, pa.Time64Scalar)
    return literal.as_py() if isinstance(literal, pa.Scalar) and not isinstance(literal, exact) else literal


class Answer:
    """What a source shows, and what filters on it should give."""

    def __init__(self, table: pyparq.Table) -> None:
        shown = table.to_arrow().column("x")
        self.type = shown.type
        self.ranks = [rank_shown(scalar, self.type) for chunk in shown.chunks for scalar in chunk]
        self.known = sum(rank is not None for rank in self.ranks)

    def expected(self, op: str, literal: Any) -> tuple[int, int] | None:
        """Rows for which the comparison is true, and for which its negation is; ``None``: refused."""
        rank = rank_literal(unwrapped(literal), self.type)
        ordered = pa.types.is_dictionary(self.type) and self.type.ordered
        if rank is None or (ordered and op not in ("==", "!=")):
            return None
        true = sum(passes(op, shown, rank) is True for shown in self.ranks)
        return true, self.known - true


Count = Callable[[Any], int]


def wrong_cells(count: Count, answer: Answer, ops: list[str], literals: list[Any]) -> list[str]:
    """The cells that are neither right nor refused as they should be, in words."""
    wrong = []
    for op in ops:
        for literal in literals:
            expected = answer.expected(op, literal)
            try:
                found = count([("x", op, literal)]), count(~OPS[op](col("x"), literal)) if op == "<" else None
            except pyparq.FilterError as error:
                if expected is not None or error.column is None:
                    wrong.append(f"{op} {literal!r}: {error}")
                continue
            if expected is None:
                wrong.append(f"{op} {literal!r}: not refused")
            elif found[0] != expected[0] or (found[1] is not None and found[1] != expected[1]):
                wrong.append(f"{op} {literal!r}: {found}, not {expected}")
    return wrong


def written(path: Path, x: pa.Array, **others: pa.Array) -> None:
    table = pa.table({"x": x, **others})
    pyparq.write_table(table, path, row_group_size=3, bloom_filters=True, max_rows_per_page=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, arrays in TYPES.items():
        found[name] = tmp_path_factory.mktemp(name)
        for k, x in enumerate(arrays):
            written(found[name] / f"{k}.parquet", x)
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", TYPES)
def test_a_file(folders: dict[str, Path], name: str) -> None:
    path = folders[name] / "0.parquet"
    answer = Answer(pyparq.read_table(path))
    with pyparq.ParquetFile(path) as file:
        assert not wrong_cells(lambda f: file.scan(filters=f).count(), answer, list(OPS), LITERALS), answer.type


@pytest.mark.parametrize("name", [name for name in TYPES if "runs" not in name])  # which pyarrow does not write
def test_a_file_of_pyarrow(tmp_path: Path, name: str) -> None:
    x = TYPES[name][-1]
    pq.write_table(pa.table({"x": x}), tmp_path / "a.parquet", row_group_size=3, write_page_index=True)
    answer = Answer(pyparq.read_table(tmp_path / "a.parquet"))
    with pyparq.ParquetFile(tmp_path / "a.parquet") as file:
        assert not wrong_cells(lambda f: file.scan(filters=f).count(), answer, ["<="], LITERALS)


@pytest.mark.parametrize("name", TYPES)
def test_a_folder(folders: dict[str, Path], name: str) -> None:
    """Of files that store the column in different ways."""
    data = pyparq.dataset(folders[name])
    answer = Answer(data.read())
    assert not wrong_cells(lambda f: data.scan(filters=f).count(), answer, ["==", "<"], LITERALS), answer.type


@pytest.mark.parametrize("name", TYPES)
def test_what_no_column_can_be_compared_with(folders: dict[str, Path], name: str) -> None:
    path, data = folders[name] / "0.parquet", pyparq.dataset(folders[name])
    with pyparq.ParquetFile(path) as file:
        for literal in NEVER:
            for scan, filters in ((file.scan, col("x") == literal), (data.scan, col("x").isin([literal]))):
                with pytest.raises(pyparq.FilterError, match=r"column x"):
                    scan(filters=filters)


@pytest.mark.parametrize("name", TYPES)
def test_membership_and_lookup(folders: dict[str, Path], name: str) -> None:
    data = pyparq.dataset(folders[name])
    answer = Answer(data.read())
    known = [literal for literal in LITERALS if answer.expected("==", literal) is not None][:9]
    for pair in zip(known, known[1:] + known[:1], strict=True):
        ranks = [rank_literal(unwrapped(literal), answer.type) for literal in pair]
        true = sum(any(passes("==", shown, rank) for rank in ranks) for shown in answer.ranks)
        assert data.scan(filters=col("x").isin(pair)).count() == true, pair
        assert data.scan(filters=[("x", "not in", pair)]).count() == answer.known - true, pair
        assert data.scan(filters=col("x").isin([*pair, None])).count() == true, pair
        assert data.scan(filters=~col("x").isin([*pair, None])).count() == 0, pair
        assert data.lookup("x", list(pair)).num_rows == true, pair


# ---- other ways to ask ---------------------------------------------------------------------------------------------


def of_each_kind(name: str, answer: Answer) -> list[Any]:
    """One literal of each kind that the column can be compared with."""
    literals = LITERALS if name != "uuid" else [literal for literal in LITERALS if not isinstance(literal, bytes)]
    known = [literal for literal in literals if answer.expected("<=", literal) is not None]
    return list({type(literal): literal for literal in known}.values())


@pytest.mark.parametrize("name", [name for name in TYPES if name != "ordered"])
def test_fields_of_structs_and_items_of_lists(tmp_path: Path, name: str) -> None:
    for k, x in enumerate(TYPES[name]):
        lists = pa.ListArray.from_arrays(pa.array(range(len(x) + 1), pa.int32()), x)
        table = pa.table({"x": x, "st": pa.StructArray.from_arrays([x], ["x"]), "ls": lists})
        pyparq.write_table(table, tmp_path / f"{k}.parquet", row_group_size=3)
    data = pyparq.dataset(tmp_path)
    answer = Answer(data.read(["x"]))
    for literal in of_each_kind(name, answer):
        expected = answer.expected("<=", literal)
        assert expected is not None
        assert data.scan(filters=col("st.x") <= literal).count() == expected[0], literal
        assert data.scan(filters=~(col("st.x") <= literal)).count() == expected[1], literal
        equal = answer.expected("==", literal)
        if name == "bool8" and isinstance(literal, (bool, np.bool_)) and literal:
            with pytest.raises(pyparq.FilterError, match=r"contains\(1\).*column ls"):
                data.scan(filters=col("ls").contains(literal))
        else:
            assert equal is not None
            assert data.scan(filters=col("ls").contains(literal)).count() == equal[0], literal


@pytest.mark.parametrize("name", [name for name in TYPES if name != "ordered"])
def test_rewrite_and_plans(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    data = pyparq.dataset(folders[name])
    answer = Answer(data.read())
    for literal in of_each_kind(name, answer)[:3]:
        expected = answer.expected("<=", literal)
        assert expected is not None
        plan = pickle.loads(pickle.dumps(data.plan(filters=col("x") <= literal)))
        assert plan.scan().count() == expected[0]
    pyparq.rewrite(folders[name], tmp_path / "out.parquet", filters=col("x") <= literal)
    kept = Answer(pyparq.read_table(tmp_path / "out.parquet"))
    rank = rank_literal(unwrapped(literal), answer.type)
    assert sorted(map(str, kept.ranks)) == sorted(str(r) for r in answer.ranks if passes("<=", r, rank))


SQL = {
    "date64": "DATE '2024-03-31'", "time_s": "TIME '01:00:05'", "timestamp_s": "TIMESTAMP '2024-03-31 12:00:00'",
    "timestamp_zoned": "TIMESTAMP '2024-03-31 12:00:00Z'", "words": "'low'", "json": "'low'", "bool8": "TRUE",
    "uuid": f"'{uuid.UUID(int=1)}'", "half": "1.5", "decimal": "1.10", "own": "1", "uint64": "18446744073709551615",
}  # fmt: skip
MEANT: dict[str, Any] = {
    "date64": dt.date(2024, 3, 31), "time_s": dt.time(1, 0, 5), "timestamp_s": NOON,
    "timestamp_zoned": NOON.replace(tzinfo=dt.UTC), "words": "low", "json": "low", "bool8": True,
    "uuid": uuid.UUID(int=1), "half": 1.5, "decimal": Decimal("1.10"), "own": 1, "uint64": 2**64 - 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SQL)
def test_sql(folders: dict[str, Path], name: str) -> None:
    data = pyparq.dataset(folders[name])
    answer = Answer(data.read())
    for op in ("==", "<=", ">"):
        text = f"x {'=' if op == '==' else op} {SQL[name]}"
        expected = answer.expected(op, MEANT[name])
        assert expected is not None
        assert data.scan(filters=parse_where(text, data.tree)).count() == expected[0], text
        assert data.scan(filters=parse_where(f"NOT ({text})", data.tree)).count() == expected[1], text


@pytest.mark.parametrize("name", ["date64", "timestamp", "timestamp_zoned", "words", "int", "float", "ordered"])
def test_polars(folders: dict[str, Path], name: str) -> None:
    """polars decides what its own types mean: the scan gives what polars finds in the whole table."""
    whole = pyparq.dataset(folders[name]).read().to_polars()
    for value in whole["x"].drop_nulls().unique().to_list():
        for test in (pl.col("x") == value, pl.col("x") <= value, ~(pl.col("x") < value)):
            assert polars_scan(folders[name]).filter(test).collect().height == whole.filter(test).height


# ---- single cells --------------------------------------------------------------------------------------------------


def test_categories_with_an_order(tmp_path: Path) -> None:
    """pandas, polars and DuckDB compare them by their order, which a file does not keep."""
    sizes = pd.Categorical(["small", "large", None], categories=["small", "large"], ordered=True)
    pyparq.write_table(pd.DataFrame({"x": sizes}), tmp_path / "pandas.parquet")
    pl.DataFrame({"x": pl.Series(["small", "large"], dtype=pl.Enum(["small", "large"]))}).write_parquet(
        tmp_path / "polars.parquet"
    )
    for name in ("pandas", "polars"):
        path = tmp_path / f"{name}.parquet"
        for read in (pyparq.read_table, lambda source, filters: pyparq.dataset(source).read(filters=filters)):
            for filters in (col("x") < "small", col("x").between("a", "z"), ~(col("x") >= "small")):
                with pytest.raises(pyparq.FilterError, match=r"order of their own.*isin.*column x"):
                    read(path, filters=filters)
            assert read(path, filters=col("x") == "small").num_rows == 1
            assert read(path, filters=~col("x").isin(["small"])).num_rows == 1
            assert read(path, filters=col("x").starts_with("s")).num_rows == 1


def test_text_of_files_of_which_some_order_their_categories(tmp_path: Path) -> None:
    written(tmp_path / "0.parquet", with_order(WORDS))
    written(tmp_path / "1.parquet", pa.array(WORDS).dictionary_encode())
    data = pyparq.dataset(tmp_path)
    answer = Answer(data.read())
    assert not answer.type.ordered if pa.types.is_dictionary(answer.type) else True
    expected = answer.expected("<", "low")
    assert expected is not None
    assert data.scan(filters=col("x") < "low").count() == expected[0]


def test_truth_values_that_are_bytes(folders: dict[str, Path]) -> None:
    path = folders["bool8"] / "0.parquet"  # 0, 1, 2, null, -1
    for filters, rows in (
        (col("x"), 3), (~col("x"), 1), (col("x").isin([True, False]), 4), (col("x").isin([False, 2]), 2),
        (~col("x").isin([True, None]), 0), (~col("x").isin([True]), 1), (col("x") == 2, 1), (col("x") >= False, 4),
        (col("x") > True, 0), (~(col("x") > True), 4),
    ):  # fmt: skip
        assert pyparq.read_table(path, filters=filters).num_rows == rows, filters
        assert pyparq.dataset(path).read(filters=filters).num_rows == rows, filters


def test_intervals_are_refused_by_name(tmp_path: Path) -> None:
    for k, type_ in enumerate((pa.month_day_nano_interval(), pa.month_day_nano_interval())):
        written(tmp_path / f"{k}.parquet", pa.array([(1, 2, 3_000_000), None], type_))
    data = pyparq.dataset(tmp_path)
    assert data.scan(filters=col("x").is_null()).count() == data.scan(filters=col("x").is_not_null()).count() == 2
    for literal in [*LITERALS, pa.MonthDayNano([1, 2, 3_000_000])]:
        for count in (data.scan, pyparq.ParquetFile(tmp_path / "0.parquet").scan):
            with pytest.raises(pyparq.FilterError, match=r"interval.*only is_null.*column x"):
                count(filters=col("x") == literal)


def test_int96_means_instants_in_a_folder_too(tmp_path: Path) -> None:
    for k in range(2):
        table = pa.table({"x": pa.array([NOON, None], pa.timestamp("us"))})
        pq.write_table(table, tmp_path / f"{k}.parquet", use_deprecated_int96_timestamps=True)
    data = pyparq.dataset(tmp_path)
    for literal in (NOON, NOON.replace(tzinfo=dt.UTC), "2024-03-31 14:00:00+02:00", pd.Timestamp(NOON, tz="UTC")):
        assert data.read(filters=col("x") == literal).num_rows == 2
        assert data.read(filters=col("x").isin([literal])).num_rows == 2
        assert data.lookup("x", literal).num_rows == 2
        assert pyparq.read_table(tmp_path / "0.parquet", filters=col("x") == literal).num_rows == 1


@pytest.mark.parametrize(("wide", "narrow"), [("float64", "float32"), ("float64", "float16"), ("float32", "float16")])
def test_floats_that_a_declared_schema_rounds(tmp_path: Path, wide: str, narrow: str) -> None:
    """The reader shows the rounded value, so that is what a filter compares."""
    of, small = np.dtype(wide).type, np.dtype(narrow).type
    values: list[Any] = [of(NAN), of(INF), of(-INF)]
    for seed in (0.0, 1.0, -1.0, 0.1, 2.5, float(np.finfo(small).tiny), float(np.finfo(small).smallest_subnormal)):
        near = small(seed)
        middle = (of(near) + of(np.nextafter(near, small(INF)))) / of(2)
        values += [of(near), middle, np.nextafter(middle, of(INF)), np.nextafter(middle, of(-INF))]
    written(tmp_path / "a.parquet", pa.array([*values, None], pa.from_numpy_dtype(wide)))
    data = pyparq.dataset(tmp_path, schema=pa.schema({"x": pa.from_numpy_dtype(narrow)}))
    answer = Answer(data.read())
    literals = [float(value) for value in values] + [1e300, -1e300]
    assert not wrong_cells(lambda f: data.scan(filters=f).count(), answer, list(OPS), literals)
    shown = [float(small(value)) for value in values]
    assert data.scan(filters=col("x").isin(shown)).count() == answer.known
    assert data.scan(filters=col("x").isin(shown[-3:])).count() == sum(v in shown[-3:] for v in shown)
    assert data.scan(filters=~col("x").isin([1.0, None])).count() == 0


DECLARED: list[tuple[pa.Array, pa.DataType]] = [
    (array([True, False, None], pa.bool_()), pa.int8()),
    (array(STAMPS, pa.timestamp("us")), pa.timestamp("us", BERLIN)),
    (array(STAMPS, pa.timestamp("us", BERLIN)), pa.timestamp("us")),
    (extended(pa.uuid(), [*IDS, None]), pa.binary()), (array([*IDS, None], pa.binary()), pa.uuid()),
    (array([2**62 + 1, None], pa.int64()), pa.decimal128(25, 2)),
    (array(PRICES, pa.decimal128(9, 2)), pa.decimal32(9, 2)),
    (array(DATES, pa.date32()), pa.date64()), (array([0, 1, None], pa.int8()), pa.bool8()),
    (array([True, False, None], pa.bool_()), pa.bool8()),
    (extended(pa.bool8(), [0, 1, None]), pa.int8()), (array(WORDS, pa.string()), pa.binary()),
    (array([1, None], pa.int32()), pa.float64()), (array([1.0, None], pa.float64()), pa.int32()),
    (array([1, None], pa.int64()), pa.duration("s")), (with_order(WORDS), pa.string()),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(DECLARED)))
def test_a_declared_schema_says_what_literals_mean(tmp_path: Path, k: int) -> None:
    stored, type_ = DECLARED[k]
    written(tmp_path / "a.parquet", stored)
    data = pyparq.dataset(tmp_path, schema=pa.schema({"x": type_}))
    answer = Answer(data.read())
    assert answer.type == type_
    wrong = wrong_cells(lambda f: data.scan(filters=f).count(), answer, ["==", "<"], LITERALS)
    assert not wrong, f"{stored.type} as {type_}"


@pytest.mark.parametrize("type_", [pa.timestamp("ns"), pa.timestamp("ns", BERLIN), pa.duration("ns"), pa.time64("ns")])
def test_values_of_other_libraries_keep_their_nanoseconds(tmp_path: Path, type_: pa.DataType) -> None:
    values = pa.array([0, 1, None, 1000], type_)
    written(tmp_path / "a.parquet", values)
    data, wanted = pyparq.dataset(tmp_path), values.slice(1, 2)
    series = pd.Series(wanted, dtype=pd.ArrowDtype(type_))
    for keys in (wanted, pa.chunked_array([wanted]), pl.from_arrow(wanted), series, [wanted[0], wanted[1]]):
        assert data.scan(filters=col("x").isin(keys)).count() == 1
        assert data.lookup("x", keys).num_rows == 1
        assert data.scan(filters=~col("x").isin(keys)).count() == 0  # a null is among them
    assert data.scan(filters=col("x") < wanted[0]).count() == 1
    with pytest.raises(pyparq.FilterError, match=r"is_null"):
        col("x") == wanted[1]  # noqa: B015
