"""Data in: every kind of input gives the values that were put in, or an error that says where and what to do."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import stable_id
from hypothesis import given, settings
from hypothesis import strategies as st

import pyparq
from pyparq.arrow.ingest import ingest
from pyparq.arrow.ingest.from_pandas import columns_from_pandas
from pyparq.arrow.table import Batch, Table
from pyparq.errors import DataError, ParquetError, UnsupportedError
from pyparq.format.types import Schema

D = Decimal
UTC = dt.UTC


def table(data: Any, schema: Any = None) -> Table:
    found, batches = ingest(data, None if schema is None else pyparq.schema(schema))
    return Table(found, [Batch(*batch) for batch in batches])


def values(data: Any, schema: Any = None) -> dict[str, list[Any]]:
    """What came in, as pyarrow sees it; the buffers are validated on the way."""
    out = pa.table(table(data, schema))
    out.validate(full=True)
    return out.to_pydict()


def types(data: Any) -> list[str]:
    return [str(f.type) for f in table(data).schema]


# ---- Python objects ------------------------------------------------------------------------------------------------

U5 = uuid.UUID(int=5)
US = dt.timedelta(microseconds=1)
ROME = dt.datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Rome"))
INFERRED: list[tuple[list[Any], str, list[Any]]] = [
    ([True, None, False], "bool", [True, None, False]),
    ([1, None, -(2**63)], "int64", [1, None, -(2**63)]),
    ([2**64 - 1, None, 0], "uint64", [2**64 - 1, None, 0]),
    ([1, True, None], "int64", [1, 1, None]),
    ([1, 2.5, None, True], "float64", [1.0, 2.5, None, 1.0]),
    ([np.int8(1), np.float32(0.5)], "float64", [1.0, 0.5]),
    (["a", None, "ü", "", "日本"], "string", ["a", None, "ü", "", "日本"]),
    ([np.str_("a"), "b"], "string", ["a", "b"]),
    ([b"a", None, bytearray(b"bc"), memoryview(b"d")], "binary", [b"a", None, b"bc", b"d"]),
    ([D("1.5"), None, D("-20.25")], "decimal(4, 2)", [D("1.50"), None, D("-20.25")]),
    ([D("1E+3"), 2], "decimal(4, 0)", [D(1000), D(2)]),
    ([D("0.001"), D(0)], "decimal(3, 3)", [D("0.001"), D("0.000")]),
    ([D(10) ** 50], "decimal256(51, 0)", [D(10) ** 50]),
    ([dt.date(2020, 1, 2), None, dt.date(1, 1, 1)], "date32", [dt.date(2020, 1, 2), None, dt.date(1, 1, 1)]),
    ([dt.datetime(2020, 1, 2, 3, 4, 5, 6), None], "timestamp[us]", [dt.datetime(2020, 1, 2, 3, 4, 5, 6), None]),
    (
        [dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), None, dt.datetime(9999, 1, 1, tzinfo=UTC)],
        "timestamp[us, tz=UTC]",
        [dt.datetime(2020, 1, 1, 22, tzinfo=UTC), None, dt.datetime(9999, 1, 1, tzinfo=UTC)],
    ),
    ([ROME, None, ROME], "timestamp[us, tz=Europe/Rome]", [ROME, None, ROME]),
    ([None, ROME, ROME.astimezone(ZoneInfo("Asia/Tokyo"))], "timestamp[us, tz=UTC]", [None, ROME, ROME]),
    ([ROME.astimezone(UTC), ROME], "timestamp[us, tz=UTC]", [ROME, ROME]),
    ([pd.Timestamp("2020-01-01 00:00:00.000001", tz="Europe/Rome")], "timestamp[us, tz=Europe/Rome]", [ROME + US]),
    (np.array([ROME], object), "timestamp[us, tz=Europe/Rome]", [ROME]),
    ([{"at": [ROME]}], "struct<at: list<element: timestamp[us, tz=Europe/Rome]>>", [{"at": [ROME]}]),
    (
        [pd.Timestamp("2020-01-01 00:00:00.000000001"), pd.NaT],
        "timestamp[ns]",
        [pd.Timestamp(1577836800000000001), None],
    ),
    ([pd.Timestamp("2020-01-01"), None], "timestamp[us]", [dt.datetime(2020, 1, 1), None]),
    ([dt.time(1, 2, 3, 4), None], "time64[us]", [dt.time(1, 2, 3, 4), None]),
    ([np.datetime64("2020-01-01"), None, np.datetime64("NaT")], "date32", [dt.date(2020, 1, 1), None, None]),
    ([np.datetime64(5, "ms"), None], "timestamp[ms]", [dt.datetime(1970, 1, 1, 0, 0, 0, 5000), None]),
    ([U5, None], "fixed_size_binary[16]", [U5.bytes, None]),
    ([None, None], "null", [None, None]),
    ([], "null", []),
    ([pd.NA, 1], "int64", [None, 1]),
    ([[1, None], None, []], "list<element: int64>", [[1, None], None, []]),
    ([(1,), [2.5]], "list<element: float64>", [[1.0], [2.5]]),
    ([np.array([1, 2], "i2"), None, np.array([], "i2")], "list<element: int16>", [[1, 2], None, []]),
    ([np.array([["a"], ["b"]])], "list<element: list<element: string>>", [[["a"], ["b"]]]),
    ([{"a": 1}, None, {"b": "x"}], "struct<a: int64, b: string>", [{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    ([[{"a": [None]}], []], "list<element: struct<a: list<element: null>>>", [[{"a": [None]}], []]),
]


@pytest.mark.parametrize(("given_", "type_", "expected"), INFERRED, ids=[str(i) for i in range(len(INFERRED))])
@pytest.mark.parametrize("form", ["list", "tuple", "array", "masked"])
def test_inference(given_: list[Any], type_: str, expected: list[Any], form: str) -> None:
    column: Any = given_ if form == "list" else tuple(given_)
    if form in ("array", "masked"):
        column = np.empty(len(given_), object)
        for i, value in enumerate(given_):
            column[i] = value
    if form == "masked":
        column = np.ma.masked_array(column, [True, *[False] * (len(given_) - 1)] if given_ else [])
        if given_ and sum(v is not None for v in given_[1:]) < 2:
            return  # what is left may have another type
        if given_:
            assert values({"c": column})["c"][0] is None
        return
    assert types({"c": column}) == [type_]
    assert values({"c": column}) == {"c": expected}
    (field,) = table({"c": column}).schema
    assert field.nullable


def test_objects_agree_with_pyarrow_s_inference() -> None:
    compared = 0
    for given_, _, expected in INFERRED:
        try:
            theirs = pa.array(given_)
        except (ValueError, TypeError, OverflowError):
            continue  # pyarrow is stricter about mixtures
        if not isinstance(theirs, pa.ExtensionArray):
            assert theirs.to_pylist() == expected
            compared += 1
    assert compared > 15


def test_pylists_of_many_strings() -> None:
    texts = [None if i % 7 == 0 else "aé日𝄞"[: i % 5] * (i % 3) for i in range(5000)]
    assert values({"c": texts}) == {"c": texts}


BAD_LISTS: list[tuple[list[Any], str]] = [
    (["a", None, 1], r"row 2: the value is a int, but the column starts with str"),
    ([1, "a"], r"row 1: the value is a str, but the column starts with int"),
    ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], "row 1: the value is a datetime"),
    (
        [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 1, tzinfo=UTC)],
        "row 2: the column mixes datetimes with and without",
    ),
    ([dt.time(1, tzinfo=UTC)], "row 0: a time with a time zone"),
    ([2**64], "row 0: 18446744073709551616 does not fit a 64-bit"),
    ([-1, 2**63], r"row \d: .* does not fit a 64-bit|row 1"),
    ([0.5, 2**53 + 1], "row 1: the column has floats, and the integer 9007199254740993"),
    ([D("NaN")], "row 0: NaN is not a finite"),
    ([D("1E+80")], "76 digits"),
    ([D(10) ** 75, D("0.001")], "79 digits"),
    (["ok", "\ud800"], "row 1: the string has a lone surrogate"),
    ([object()], "row 0: values of type object cannot be stored"),
    ([{1, 2}], "row 0: values of type set cannot"),
    ([1j], "row 0: values of type complex cannot"),
    ([{1: 2}], "row 0: the key 1 is not a string"),
    ([[1], ["a"]], "item 1: the value is a str, but the column starts with int"),
]


@pytest.mark.parametrize(("given_", "words"), BAD_LISTS, ids=[w[:30] for _, w in BAD_LISTS])
def test_bad_objects(given_: list[Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        table({"ok": [0] * len(given_), "c": given_})
    assert caught.value.column is not None
    assert caught.value.column.startswith("c")


@pytest.mark.parametrize(
    "column", [np.array([1j]), np.array([1], "g"), np.array([1], "m8"), np.array([1], "m8[M]")], ids=str
)
def test_unsupported_objects(column: Any) -> None:
    with pytest.raises(UnsupportedError, match="column c"):
        table({"c": column})


def test_deep_nesting_is_refused() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ParquetError, match="deep"):
        table({"c": [deep]})


# ---- numpy ---------------------------------------------------------------------------------------------------------

ARRAYS: list[tuple[Any, str, list[Any]]] = [
    (np.array([True, False]), "bool", [True, False]),
    *(
        (np.array([1, 2], f"{order}{kind}{width}"), f"{name}{8 * width}", [1, 2])
        for kind, name in (("i", "int"), ("u", "uint"))
        for width in (1, 2, 4, 8)
        for order in "<>"
    ),
    (np.array([1.5, np.nan], "f2"), "float16", [1.5, np.nan]),
    (np.array([1.5, np.nan], ">f4"), "float32", [1.5, np.nan]),
    (np.array([1.5, -0.0], "f8"), "float64", [1.5, -0.0]),
    (np.arange(10)[::3], "int64", [0, 3, 6, 9]),
    (np.array(["a", "", "bcd", "ü"]), "string", ["a", "", "bcd", "ü"]),
    (np.array(["a", "", "bcd"]), "string", ["a", "", "bcd"]),
    (np.array(["a", "bcd"], ">U5"), "string", ["a", "bcd"]),
    (np.array([], "U3"), "string", []),
    (np.array(["", ""], "U0"), "string", ["", ""]),
    (np.array([b"a", b"", b"b\0c"]), "binary", [b"a", b"", b"b\0c"]),
    (np.array([b"ab", b"cd"], "V2"), "fixed_size_binary[2]", [b"ab", b"cd"]),
    (np.array(["a", "ü" * 30], np.dtypes.StringDType()), "string", ["a", "ü" * 30]),
    (np.array(["a", None], np.dtypes.StringDType(na_object=None)), "string", ["a", None]),
    (np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)), "string", ["a", None]),
    (np.array([5, "NaT"], "M8[s]"), "timestamp[s]", [dt.datetime(1970, 1, 1, 0, 0, 5), None]),
    (np.array([5, "NaT"], "M8[ms]"), "timestamp[ms]", [dt.datetime(1970, 1, 1, 0, 0, 0, 5000), None]),
    (np.array([5, "NaT"], "M8[us]"), "timestamp[us]", [dt.datetime(1970, 1, 1, 0, 0, 0, 5), None]),
    (np.array([5000, "NaT"], "M8[ns]"), "timestamp[ns]", [pd.Timestamp(5000), None]),
    (np.array([5, "NaT"], "M8[D]"), "date32", [dt.date(1970, 1, 6), None]),
    (np.array(["2020-02", "NaT"], "M8[M]"), "date32", [dt.date(2020, 2, 1), None]),
    (np.array([5, "NaT"], "M8[h]"), "timestamp[s]", [dt.datetime(1970, 1, 1, 5), None]),
    (np.array([5], ">M8[10us]"), "timestamp[us]", [dt.datetime(1970, 1, 1, 0, 0, 0, 50)]),
    (np.ma.masked_array([1, 2, 3], [0, 1, 0]), "int64", [1, None, 3]),
    (np.ma.masked_array([1.0, np.nan, 3], [1, 0, 0]), "float64", [None, np.nan, 3.0]),
    (np.ma.masked_array(["a", "b"], [1, 0]), "string", [None, "b"]),
    (np.ma.masked_array(np.array([1, "NaT", 3], "M8[D]"), [1, 0, 0]), "date32", [None, None, dt.date(1970, 1, 4)]),
    (np.ma.masked_array([True, False], [1, 0]), "bool", [None, False]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "type_", "expected"), ARRAYS, ids=[f"{i}-{t}" for i, (_, t, _) in enumerate(ARRAYS)])
def test_numpy(array: Any, type_: str, expected: list[Any]) -> None:
    assert types({"c": array}) == [type_]
    assert str(values({"c": array})["c"]) == str(expected)  # str: NaN equals itself
    assert str(values({"c": array[1:]})["c"]) == str(expected[1:])


def test_numpy_shares_memory() -> None:
    numbers = np.arange(100)
    assert np.shares_memory(table({"c": numbers}).to_numpy("c"), numbers)


def test_bad_numpy() -> None:
    for array in (np.zeros((2, 0)), np.zeros((2, 0, 3)), np.array(5)):
        with pytest.raises(DataError, match="of shape"):
            table({"c": array})
    with pytest.raises(DataError, match="32-bit number of days"):
        table({"c": np.array([2**40], "M8[D]")})
    for unit in ("Y", "M", "W", "h", "m"):
        with pytest.raises(DataError, match=f"{unit}.* values do not fit"):
            table({"c": np.array([2**62], f"M8[{unit}]")})
    with pytest.raises(UnsupportedError, match="ps"):
        table({"c": np.array([1], "M8[ps]")})


# ---- Arrow producers -----------------------------------------------------------------------------------------------

TEXTS = ["a", None, "", "exactly 12 b", "a text that does not fit a view", "ü" * 10]


@pytest.mark.parametrize("rows", [slice(None), slice(1, 4), slice(4, 6), slice(0, 0), slice(0, 4)], ids=str)
def test_string_views(rows: slice) -> None:
    for type_ in (pa.string_view(), pa.binary_view()):
        texts = TEXTS if type_ == pa.string_view() else [None if t is None else t.encode() for t in TEXTS]
        data = pa.table({"c": pa.array(texts, type_)[rows]})
        assert values(data) == {"c": texts[rows]}
        assert types(data) == ["large_string" if type_ == pa.string_view() else "large_binary"]


@given(st.lists(st.none() | st.text(max_size=30)), st.data())
@settings(max_examples=60)
def test_polars_strings_in_any_order(texts: list[str | None], data: Any) -> None:
    """Gathering makes views point back and forth, and share bytes."""
    series = pl.Series("c", texts, dtype=pl.String)
    order = data.draw(st.lists(st.integers(0, len(texts) - 1)) if texts else st.just([]))
    frame = pl.DataFrame([series]).select(pl.col("c").gather(order) if order else pl.col("c"))
    if data.draw(st.booleans()):
        frame = frame.select(pl.col("c").str.slice(0, 14))
    assert values(frame) == {"c": frame["c"].to_list()}


def test_dictionaries() -> None:
    nulls_in_values = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array(["x", None]))
    assert values(pa.table({"c": nulls_in_values})) == {"c": ["x", None, None]}
    for inner in (
        pa.array([1, 2]),
        pa.array([True, False]),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array([D("1.5"), D(2)]),
    ):
        array = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1], pa.uint16()), inner)
        assert values(pa.table({"c": array})) == {"c": array.to_pylist()}
        assert values(pa.table({"c": array}).slice(1)) == {"c": array.to_pylist()[1:]}
    nested = pa.array([["x", None], None], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    assert values(pa.table({"c": nested})) == {"c": nested.to_pylist()}
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    assert values(pa.table({"c": empty})) == {"c": [None]}


def test_dictionary_indices_are_checked() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["x"]), safe=False)
    with pytest.raises(DataError, match=r"dictionary index .*column c"):
        table(pa.table({"c": array}))


def test_dictionary_indices_below_nulls_do_not_matter() -> None:
    """pyarrow's builders leave index 0 there, also where the dictionary is empty."""
    words = pa.dictionary(pa.int32(), pa.string())
    struct = pa.struct([pa.field("w", words)])
    for rows, type_ in (
        ([None, {"w": None}], struct),
        ([None, {"s": None}, {"s": {"w": None}}], pa.struct([pa.field("s", struct)])),
        ([[None, {"w": None}], None], pa.list_(struct, 2)),
        ([[None, {"w": None}], None, []], pa.list_(struct)),
    ):
        for first in range(len(rows)):
            array = pa.array(rows, type_)[first:]
            assert values(pa.table({"c": array})) == {"c": rows[first:]}
    outside = pa.DictionaryArray.from_arrays(pa.array([7, 0], pa.int8()), pa.array(["x"]), safe=False)
    below = pa.StructArray.from_arrays([outside], ["w"], mask=pa.array([True, False]))
    assert values(pa.table({"c": below})) == {"c": [None, {"w": "x"}]}
    with pytest.raises(DataError, match=r"dictionary index .*column c"):
        table(pa.table({"c": pa.StructArray.from_arrays([outside], ["w"])}))


def frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "i": [1, None, 3],
            "s": ["x", None, "a longer text than twelve"],
            "c": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
            "e": pl.Series(["u", "v", None], dtype=pl.Enum(["u", "v"])),
            "l": [["p"], None, ["q", "a longer text than twelve"]],
            "a": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int8, 2)),
            "d": pl.Series(["1.5", None, "2"]).cast(pl.Decimal(10, 2)),
            "t": pl.Series([dt.time(1), None, dt.time(2, 3, 4, 5)]),
            "z": pl.Series([dt.datetime(2020, 1, 1)] * 3).dt.replace_time_zone("Europe/Paris"),
            "b": [b"x", None, b"yy"],
            "n": pl.Series([None] * 3),
            "st": [{"x": 1}, None, {"x": 2}],
        }
    )


def test_polars() -> None:
    ours, theirs = values(frame()), frame().to_arrow().to_pydict()
    assert ours == theirs
    assert values(frame().lazy()) == theirs
    assert values(frame().lazy().filter(pl.lit(False)))["d"] == []


def test_duckdb() -> None:
    query = """select 1::tinyint a, 'x' s, null n, [1, null] l, {'a': 1} st, map{'k': 1} m, 1.5 d, date '2020-01-01' dd,
               'b'::enum('a','b') e, timestamp '2020-01-01' t, uuid() u, [1,2]::int[2] arr, 'b'::blob bl"""
    relation = duckdb.sql(query)
    got = values(relation)
    got.pop("u")
    row = {
        k: v
        for k, v in zip(relation.columns, relation.to_arrow_table().to_pylist()[0].values(), strict=True)
        if k != "u"
    }
    assert got == {k: [v] for k, v in row.items()}
    assert values(duckdb.sql("select interval '1 month 2 days 3 seconds' iv")) == {
        "iv": [b"".join(n.to_bytes(4, "little") for n in (1, 2, 3000))]
    }


def test_arrow_forms() -> None:
    batch = pa.record_batch({"a": [1, 2]})
    assert values(batch) == {"a": [1, 2]}
    assert values(pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])) == {"a": [1, 2, 1, 2]}
    assert values(batch.to_struct_array()) == {"a": [1, 2]}
    assert values(table(batch)) == {"a": [1, 2]}
    columns = {
        "a": pa.chunked_array([[1], [2, None]]),
        "b": pa.array(["x", None, "y"]),
        "c": pl.Series(["p", "q" * 20, None]),
        "d": pd.Series([1, 2, 3]),
    }
    assert values(columns) == {"a": [1, 2, None], "b": ["x", None, "y"], "c": ["p", "q" * 20, None], "d": [1, 2, 3]}
    empty = pa.table({"a": pa.array([], pa.int8())})
    assert table(empty).schema.names == ["a"]
    assert values({"a": pa.chunked_array([], pa.int8())}) == {"a": []}


def test_a_stream_stays_lazy() -> None:
    pulled: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(3):
            pulled.append(i)
            yield pa.record_batch({"a": [i]})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    _, stream = ingest(reader)
    assert pulled == []
    next(stream)
    assert len(pulled) < 3


def test_a_failing_stream_is_a_typed_error() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("out of tape")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(DataError, match="out of tape"):
        table(reader)


def test_extension_types_keep_their_meaning() -> None:
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([U5.bytes, None], pa.binary(16)))
    got = table(pa.table({"u": array}))
    assert got.schema.fields[0].metadata[b"ARROW:extension:name"] == b"arrow.uuid"
    assert pa.table(got)["u"].to_pylist() == [U5, None]


# ---- pandas --------------------------------------------------------------------------------------------------------


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "i": [1, 2, 3],
            "f": [1.5, np.nan, 3],
            "o": pd.Series(["x", None, np.nan], dtype=object),
            "s": ["x", None, "y"],
            "n": pd.array([1, None, 3], dtype="Int16"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "c": pd.Categorical(["u", None, "v"]),
            "t": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "z": pd.to_datetime(["2020-01-01", None, "2021-01-01"]).tz_localize("Europe/Paris"),
            "d": [D("1.5"), None, D(2)],
            "m": pd.Series([1, 2, None], dtype=object),
        }
    )


def test_pandas() -> None:
    got = values(pandas_frame())
    assert got == pa.Table.from_pandas(pandas_frame()).to_pydict()
    assert list(got) == list(pandas_frame().columns)


def test_pandas_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own rules give the values that pandas' conversion gives."""
    theirs = values(pandas_frame())
    monkeypatch.setattr("pyparq.arrow.ingest.from_pandas.stream_from_pandas", lambda frame: None)
    ours = values(pandas_frame())
    assert ours == theirs
    indexed = pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["p", None]))
    assert values(indexed) == {"a": [1, 2], "p": ["x", "y"], "__index_level_1__": [1, 2]}
    assert list(columns_from_pandas(pd.DataFrame({"a": [1, 2]}))) == ["a"]
    with pytest.raises(DataError, match="two columns"):
        values(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(UnsupportedError, match="period"):
        values(pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="D")}))
    assert values(pd.DataFrame({"p": pd.to_timedelta([1, None], unit="s")})) == {"p": [dt.timedelta(0, 1), None]}


DURATIONS: list[tuple[Any, str, list[Any]]] = [
    ([dt.timedelta(1, 2, 3), None], "tDu", [dt.timedelta(1, 2, 3), None]),
    ([dt.timedelta(100_000_000), dt.timedelta(-1)], "tDu", [dt.timedelta(100_000_000), dt.timedelta(-1)]),
    ([pd.Timedelta(1, "us"), pd.Timedelta(5, "ns"), pd.NaT], "tDn",
     [dt.timedelta(microseconds=1), np.timedelta64(5, "ns"), None]),
    ([np.timedelta64(3, "ms"), None, np.timedelta64("NaT")], "tDm", [dt.timedelta(milliseconds=3), None, None]),
    (np.array([1, "NaT", -2], "m8[h]"), "tDs", [dt.timedelta(0, 3600), None, dt.timedelta(0, -7200)]),
    (np.array([1, 2], ">m8[10us]"), "tDu", [dt.timedelta(microseconds=10), dt.timedelta(microseconds=20)]),
    (np.ma.masked_array(np.array([1, 2], "m8[ns]"), [True, False]), "tDn", [None, np.timedelta64(2, "ns")]),
    ([[dt.timedelta(1)], None, []], "+l", [[dt.timedelta(1)], None, []]),
    ([{"d": dt.timedelta(1)}], "+s", [{"d": dt.timedelta(1)}]),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "form", "expected"), DURATIONS, ids=lambda v: str(v)[:20])
def test_durations(given_: Any, form: str, expected: list[Any]) -> None:
    found = table({"c": given_})
    assert found.schema.field("c").type.format == form
    assert found.to_pydict()["c"] == expected


def test_durations_that_do_not_fit() -> None:
    assert values({"c": [dt.timedelta(0, 1)]}, {"c": "duration[s]"}) == {"c": [dt.timedelta(0, 1)]}
    with pytest.raises(DataError, match="finer"):
        values({"c": [dt.timedelta(0, 1, 5)]}, {"c": "duration[ms]"})
    with pytest.raises(DataError, match="do not fit"):
        values({"c": np.array([2**61], "m8[W]")})
    for column in ([dt.timedelta.max], [dt.timedelta(10**6), pd.Timedelta(1, "ns")]):
        with pytest.raises(DataError, match="64 bits"):
            values({"c": column})
    with pytest.raises(DataError, match=r"row 1.*numpy.timedelta64"):
        values({"c": [dt.timedelta(1), np.timedelta64(1, "s")]})
    with pytest.raises(DataError, match="the data is int64"):
        values({"c": [1]}, {"c": "duration[ms]"})


def test_arrays_of_string_views_that_are_no_streams() -> None:
    """nanoarrow would copy them wrongly on the way into a stream: memory corruption."""
    words = ["a" * 20, None, "b", "c" * 13]
    array = pa.array(words, pa.string_view())
    for _ in range(50):
        assert values({"c": array}) == {"c": words}
        assert values(pa.StructArray.from_arrays([array], ["c"])) == {"c": words}


def test_columns_of_arrow_arrays_keep_what_they_are() -> None:
    source: list[pyparq.Schema] = []
    given_ = {"u": pa.array([b"0" * 16], pa.uuid()), "d": pa.array(["x"]).dictionary_encode(), "n": [1]}
    schema, _ = ingest(given_, None, source)
    assert source[0].field("u").metadata[b"ARROW:extension:name"] == b"arrow.uuid"
    assert source[0].field("d").type.dictionary is not None
    assert schema.field("d").type.format == "U"
    with pytest.raises(UnsupportedError, match=r"union.*column c"):
        table({"c": pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])})


def test_pandas_index() -> None:
    assert values(pd.DataFrame({"a": [1, 2]}, index=["x", "y"])) == {"a": [1, 2], "__index_level_0__": ["x", "y"]}


def test_pandas_errors_are_typed() -> None:
    with pytest.raises(DataError, match="pandas cannot convert"):
        table(pd.DataFrame({"a": pd.Series([1, "x", b"y"], dtype=object)}))


# ---- dicts, rows, runs of batches -----------------------------------------------------------------------------------


def test_rows() -> None:
    assert values([{"a": 1}, {"b": "x", "a": None}, {}]) == {"a": [1, None, None], "b": [None, "x", None]}
    assert values([{"a": 1}, {}], {"a": "int8?", "b": "string?"}) == {"a": [1, None], "b": [None, None]}


def test_runs() -> None:
    parts = ({"a": np.array([i, i])} for i in range(3))
    assert values(parts) == {"a": [0, 0, 1, 1, 2, 2]}
    assert values([pa.record_batch({"a": [1]}), pa.table({"a": [2, 3]})]) == {"a": [1, 2, 3]}
    # Later parts are made to fit the first.
    assert values(iter([{"a": np.array([1, 2])}, {"a": np.array([3], "i1")}])) == {"a": [1, 2, 3]}
    assert values(iter([{"a": np.array([1, 2]), "b": ["x", "y"]}])) == {"a": [1, 2], "b": ["x", "y"]}
    with pytest.raises(DataError, match="not in the data"):
        values(iter([{"a": np.arange(1)}, {"b": np.arange(1)}]))
    with pytest.raises(DataError, match="no data and no schema"):
        values([])
    assert values([], {"a": "int8"}) == {"a": []}


def test_structured_arrays() -> None:
    array = np.array([(1, "x"), (2, "y")], [("a", "i2"), ("b", "U3")])
    assert values(array) == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize(
    "data",
    [5, "text", b"bytes", None, object(), np.zeros(3), [1, 2], [[1], [2]], pa.array([1]), iter([5])],
    ids=stable_id,
)
def test_not_a_table(data: Any) -> None:
    with pytest.raises(ParquetError):
        table(data)


def test_ragged_columns() -> None:
    with pytest.raises(DataError, match=r"different lengths: 'a' 2, 'b' 3"):
        table({"a": [1, 2], "b": np.arange(3)})
    with pytest.raises(DataError, match="column a"):
        table({"a": 5})
    with pytest.raises(DataError, match="column a"):
        table({"a": "text"})
    with pytest.raises(DataError, match="must be strings"):
        table({1: [1]})
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert table(twice).to_arrow().equals(twice)


# ---- schemas -------------------------------------------------------------------------------------------------------


def raw(type_: pa.DataType, *numbers: int) -> pa.Array:
    """64-bit values as they are, whatever pyarrow would make of them."""
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.array(numbers, np.int64).tobytes())])


CASTS: list[tuple[Any, str, list[Any]]] = [
    (np.array([1, 2]), "int8", [1, 2]),
    (np.array([1, 255], "u1"), "int16", [1, 255]),
    (np.array([1, 2], "i1"), "uint64", [1, 2]),
    ([1, 2], "float32", [1.0, 2.0]),
    (np.array([1.5, np.inf]), "float32", [1.5, np.inf]),
    ([0.1], "float32", [float(np.float32(0.1))]),
    (np.array([1.0, -(2.0**63)]), "int64", [1, -(2**63)]),
    ([True, False], "int8", [1, 0]),
    ([1, 2], "decimal(5, 2)", [D("1.00"), D("2.00")]),
    (np.array([1, 2]), "decimal(30, 2)", [D("1.00"), D("2.00")]),
    ([D("1.5"), 2], "decimal(12, 3)", [D("1.500"), D("2.000")]),
    (pa.array([D("1.50")], pa.decimal128(5, 2)), "decimal(3, 1)", [D("1.5")]),
    (pa.array([D("1.50")], pa.decimal128(5, 2)), "decimal256(50, 3)", [D("1.500")]),
    (["a", "ü"], "large_string", ["a", "ü"]),
    (pa.array(["a", "ü"], pa.large_string()), "string", ["a", "ü"]),
    (["a", "ü"], "binary", [b"a", "ü".encode()]),
    ([b"a", "ü".encode()], "string", ["a", "ü"]),
    ([b"ab", b"cd"], "fixed[2]", [b"ab", b"cd"]),
    (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
    ([dt.datetime(2020, 1, 1)], "timestamp[ms]", [dt.datetime(2020, 1, 1)]),
    ([dt.datetime(2020, 1, 1)], "timestamp[ns]", [dt.datetime(2020, 1, 1)]),
    (np.array([1], "M8[s]"), "timestamp[us]", [dt.datetime(1970, 1, 1, 0, 0, 1)]),
    (pa.array([1], pa.timestamp("us", "Asia/Tokyo")), "timestamp[us, UTC]", [dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)]),
    ([dt.time(1)], "time[ms]", [dt.time(1)]),
    ([dt.time(1)], "time[ns]", [dt.time(1)]),
    (pa.array([86_400_000], pa.date64()), "date", [dt.date(1970, 1, 2)]),
    ([dt.date(1970, 1, 2)], "date64", [dt.date(1970, 1, 2)]),
    (raw(pa.date64(), -719_162 * 86_400_000, 0), "date", [dt.date(1, 1, 1), dt.date(1970, 1, 1)]),
    (raw(pa.time64("us"), 86_399_000_000), "time[ms]", [dt.time(23, 59, 59)]),
    ([[1], []], "list<int8>", [[1], []]),
    (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "list<int8?>", [[1, 2]]),
    ([np.array([1.0])], "list<float32>", [[1.0]]),
    ([{"a": 1}, [("b", 2)]], "map<string, int8>", [[("a", 1)], [("b", 2)]]),
    (pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.int64())), "map<string, int8>", [[("a", 1)]]),
    ([{"b": 1}], "struct<a: string?, b: int8>", [{"a": None, "b": 1}]),
    (pa.array([{"b": 1, "a": "x"}]), "struct<a: large_string, b: int8>", [{"a": "x", "b": 1}]),
    ([1, 2], "int64", [1, 2]),
    (pa.array([[9, 9], [1, 2], [3, 4]])[1:], pa.list_(pa.field("e", pa.int8()), 2), [[1, 2], [3, 4]]),
    ([[1, 2], None], pa.list_(pa.field("e", pa.int8()), 2), [[1, 2], None]),
]


@pytest.mark.parametrize(("column", "type_", "expected"), CASTS, ids=[f"{i}-{c[1]}" for i, c in enumerate(CASTS)])
def test_casts(column: Any, type_: str, expected: list[Any]) -> None:
    schema = {"c": type_} if isinstance(type_, str) else pa.schema({"c": type_})
    got = table({"c": column}, schema)
    assert got.schema == pyparq.schema(schema)
    (made,) = got.batches[0].columns
    assert made.type == got.schema.fields[0].type
    assert values({"c": column}, schema) == {"c": expected}


@pytest.mark.parametrize(
    "type_",
    ["int8?", "string?", "decimal(50,2)?", "list<int8>?", "map<string,int8>?", "struct<a: int8>?", "bool?", "uuid?"],
)
def test_nulls_fit_every_type(type_: str) -> None:
    for data in ([None, None], pa.nulls(2)):
        assert values({"c": data}, {"c": type_}) == {"c": [None, None]}
    assert values({"c": []}, {"c": type_}) == {"c": []}


BAD_CASTS: list[tuple[Any, str, str]] = [
    (np.array([1, 128]), "int8", "row 1: 128 does not fit int8"),
    ([None, -1], "uint8?", "row 1: -1 does not fit"),
    ([2**63], "int64", "does not fit"),
    ([2**53 + 1], "float64", "may not be exact"),
    ([1e300], "float32", "row 0: 1e.300 is too large for"),
    ([1.5], "int64", "not a whole number"),
    ([float("nan")], "int64", "not a whole number"),
    ([2.0**63], "int64", "not a whole number"),
    ([D("1.55")], "decimal(5,1)", "row 0: 1.55 has more decimal places"),
    ([D(1000)], "decimal(3,0)", "row 0: .* does not fit"),
    (pa.array([D("1.55")]), "decimal(5,1)", "more decimal places"),
    (["a"], "int64", "the data is string, but the schema says int64"),
    ([b"\xff"], "string", "row 0 is not valid UTF-8"),
    ([b"ok", b"abc"], "fixed[2]", "row 0|row 1"),
    ([dt.datetime(2020, 1, 1)], "timestamp[us, UTC]", "without one"),
    ([dt.datetime(2020, 1, 1, tzinfo=UTC)], "timestamp[us]", "with a time zone"),
    ([dt.datetime(2020, 1, 1, 0, 0, 0, 1)], "timestamp[ms]", "row 0: .* finer unit than"),
    (np.array([2**60], "M8[s]"), "timestamp[ns]", "row 0: .* does not fit"),
    (raw(pa.date64(), 0, 2**35 * 86_400_000), "date", r"row 1: .* \(date64\) does not fit date32"),
    (raw(pa.date64(), -(2**31) * 86_400_000 - 86_400_000), "date", "row 0: .* does not fit date32"),
    (raw(pa.date64(), -(2**63)), "date", "row 0: .* is not midnight"),
    (raw(pa.date64(), 86_400_001), "date", "row 0: 86400001 .* is not midnight"),
    (raw(pa.date64(), 0, -1), "date", "row 1: -1 .* is not midnight"),
    (raw(pa.date64(), 1).dictionary_encode(), "date", "row 0: 1 .* is not midnight"),
    (pa.ListArray.from_arrays([0, 2], raw(pa.date64(), 0, 5)), "list<date>", "item 1: 5 .* is not midnight"),
    (raw(pa.time64("us"), 2**32 * 1000), "time[ms]", "row 0: .* does not fit time32"),
    (raw(pa.time64("ns"), 2**32 * 1_000_000), "time[ms]", "row 0: .* does not fit time32"),
    (raw(pa.timestamp("s"), -(2**63) // 1000), "timestamp[ms]", "row 0: .* does not fit"),
    ([[1000]], "list<int8>", "does not fit int8"),
    (pa.array([[], [1, 1000]]), "list<int8>", r"item 1: 1000 does not fit int8 \[column c.element\]"),
    (pa.array([[1, 2]]), "list<decimal(1,1)>", r"item 0: .* does not fit decimal.*c.element"),
    (pa.array([{"x": {"y": 1000}}]), "struct<x: struct<y: int8>>", r"row 0: 1000 does not fit int8 \[column c.x.y\]"),
    ([{"x": 1}], "struct<a: int8>", "no field 'x'"),
    (pa.array([{"x": 1}]), "struct<a: int8>", "no field 'x'"),
    ([5], "list<int8>", "row 0: int values cannot be converted"),
    ([5], "map<string,int8>", "row 0: int values"),
    ([[5]], "map<string,int8>", "row 0: a map value must be"),
    (pa.array([[1]]), "int64", "the data is list"),
]


@pytest.mark.parametrize(("column", "type_", "words"), BAD_CASTS, ids=[f"{i}-{c[1]}" for i, c in enumerate(BAD_CASTS)])
def test_bad_casts(column: Any, type_: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        table({"c": column}, {"c": type_})
    assert caught.value.column is not None
    assert caught.value.column.startswith("c")


def test_columns_are_matched_by_name() -> None:
    schema = {"b": "string?", "a": "int8?"}
    for data in (
        {"a": [1], "b": ["x"]},
        pa.table({"a": [1], "b": ["x"]}),
        pl.DataFrame({"a": [1], "b": ["x"]}),
        table({"a": [1], "b": ["x"]}),
    ):
        assert values(data, schema) == {"b": ["x"], "a": [1]}
        with pytest.raises(DataError, match="the schema's column 'bb' is not in the data; did you mean 'b'"):
            values(data, {"bb": "string?", "a": "int8?"})
        with pytest.raises(DataError, match="the data has a column 'a' that is not in the schema"):
            values(data, {"b": "string?"})


def test_batches_without_a_schema_need_one() -> None:
    assert values(table({"a": [1, 2]}).batches[0]) == {"a": [1, 2]}
    batch = Batch(table({"a": [1, 2]}).batches[0].columns, 2)
    assert values(batch, {"x": "int8"}) == {"x": [1, 2]}
    with pytest.raises(DataError, match="Give a schema"):
        table(batch)
    with pytest.raises(DataError, match="the batch has 1 columns, but the schema has 2"):
        table(batch, {"x": "int8", "y": "int8"})


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.sampled_from([pa.int16(), pa.string(), pa.list_(pa.float64()), pa.bool_(), pa.timestamp("us")]),
        min_size=1,
    )
)
@settings(max_examples=20)
def test_what_comes_in_without_a_schema_keeps_its_types(columns: dict[str, pa.DataType]) -> None:
    data = pa.table({name: pa.nulls(3, type_) for name, type_ in columns.items()})
    assert pa.table(table(data)) == data
    assert isinstance(table(data).schema, Schema)


@dataclass
class Place:
    lat: float
    lon: float
    named: ClassVar[int] = 3


@dataclass(slots=True)
class Visit:
    id: int
    at: dt.datetime
    place: Place | None
    tags: list[str]
    ways: list[Place] = field(default_factory=list)


class Pair(NamedTuple):
    id: int
    name: str | None


def visits(count: int) -> list[Visit]:
    return [
        Visit(
            k, dt.datetime(2024, 1, 1, k % 24), None if k % 3 == 0 else Place(k, k / 2), ["a"] * (k % 3), [Place(k, 0)]
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("count", [1, 7, 40_000])
def test_dataclasses_are_rows_and_structs(tmp_path: Path, count: int) -> None:
    """As polars has them."""
    rows = visits(count)
    expected = pl.DataFrame([asdict(row) for row in rows]).rows(named=True)
    for data in (rows, iter(rows)):
        pyparq.write_table(data, tmp_path / "rows.parquet")
        assert pyparq.read_table(tmp_path / "rows.parquet").to_pylist() == expected
    assert pl.DataFrame(rows[:7]).rows(named=True) == expected[:7]
    assert pyparq.Table.from_pylist(rows).to_pylist() == expected
    places = pyparq.table({"place": [row.place for row in rows[1:]] or [Place(0, 0)]}).to_pylist()
    assert places[:2] == ([{"place": row["place"]} for row in expected[1:3]] or [{"place": {"lat": 0, "lon": 0}}])


def test_named_tuples_are_rows(tmp_path: Path) -> None:
    pyparq.write_table([Pair(1, "x"), Pair(2, None)], tmp_path / "pairs.parquet")
    assert pyparq.read_table(tmp_path / "pairs.parquet").to_pylist() == [
        {"id": 1, "name": "x"},
        {"id": 2, "name": None},
    ]


def test_dataclasses_with_a_schema(tmp_path: Path) -> None:
    schema = {"id": "int32", "place": "struct<lat: float, lon: float>?", "tags": "list<string>"}
    rows = [{"id": row.id, "place": row.place, "tags": row.tags} for row in visits(9)]
    found = pyparq.table(rows, schema=schema)
    assert str(found.schema.field("id").type) == "int32"
    assert found.to_pylist()[1]["place"] == {"lat": 1.0, "lon": 0.5}
    with pytest.raises(DataError, match="values of type object cannot be stored"):
        pyparq.write_table({"p": [Place(1, 2), object()]}, tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="item 1 is a object"):
        pyparq.write_table([Pair(1, "x"), object()], tmp_path / "bad.parquet")
