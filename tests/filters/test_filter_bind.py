"""The expression API, the list-of-tuples form, what binding makes of literals, and the errors users see."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import Any

import filter_oracle as oracle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import stable_id
from filter_oracle import BY_NAME, SPECS, Spec

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters.bind import bind
from pyparq.filters.bound import Constant
from pyparq.filters.expression import col
from pyparq.filters.given import parse_filters
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import And, Or
from pyparq.format import ttypes as tt
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import LeafType, Physical

TREE = oracle.tree_of(SPECS)
REQUIRED = oracle.tree_of(SPECS, nullable=False)


def text(filters: Any, tree: SchemaTree = TREE) -> str:
    return str(bind(filters, tree))


BOUND = [
    (col("int32") == 3, "int32 == 3"),
    (col("int32") == 3.0, "int32 == 3"),
    (col("int32") == 3.5, "false"),
    (col("int32") != 3.5, "int32 is not null"),
    (col("int32") < 3.5, "int32 <= 3"),
    (col("int32") > Decimal("3.5"), "int32 >= 4"),
    (~(col("int32") > 3.5), "int32 <= 3"),
    (col("int32") < 2**40, "int32 is not null"),
    (col("int32") > 2**40, "false"),
    (col("int32") >= -(2**40), "int32 is not null"),
    (col("uint8") > -1, "uint8 is not null"),
    (col("uint8").isin([-1, 300, 2.5]), "false"),
    (~col("uint8").isin([-1, 300, 2.5]), "uint8 is not null"),
    (col("uint8").isin([3, 1, 3.0, np.int64(1)]), "uint8 in (1, 3)"),
    (col("uint8").isin([3, None]), "uint8 == 3"),
    (~col("uint8").isin([3, None]), "false"),
    (~col("uint8").isin([]), "true"),
    (col("uint8").isin(range(9)), "uint8 in (0, 1, 2, 3, 4, … 9 values)"),
    (col("int64") == float("nan"), "false"),
    (col("int64") < float("nan"), "int64 is not null"),
    (col("int64") == 2**53 + 1.0, "int64 == 9007199254740992"),
    (col("double") == 2**53 + 1, "false"),
    (col("double") < 2**53 + 1, "double <= 9007199254740992.0"),
    (col("double") >= float("nan"), "double is nan"),
    (col("double") < float("nan"), "double is not nan"),
    (col("double") <= float("nan"), "double is not null"),
    (col("double") > float("nan"), "false"),
    (col("double").isin([1, float("nan")]), "double == 1.0 or double is nan"),
    (~col("double").isin([1, float("nan")]), "double != 1.0 and double is not nan"),
    (col("float") == 0.1, "false"),
    (col("float") == np.float32(0.1), "float == 0.10000000149011612"),
    (col("float") < 0.1, "float <= 0.09999999403953552"),
    (col("float") > 1e39, "float >= inf"),
    (col("float16") < 65_519, "float16 <= 65504.0"),
    (col("dec_i32") == 9.99, "dec_i32 == 9.99"),
    (col("dec_i32") == Decimal("9.990"), "dec_i32 == 9.99"),
    (col("dec_i32") > Decimal("9.995"), "dec_i32 >= 10.00"),
    (col("dec_i32") >= -1, "dec_i32 >= -1.00"),
    (col("date") == "2024-02-29", "date == 2024-02-29"),
    (col("date") > dt.datetime(2024, 2, 29, 1), "date >= 2024-03-01"),
    (col("ts_ms_False") == "2024-02-29 12:00:00.5", "ts_ms_False == 2024-02-29T12:00:00.500"),
    (col("ts_ms_False") == np.datetime64("2024-02-29T12:00:00.0000001"), "false"),
    (col("ts_us_True") >= dt.datetime(2024, 1, 1), "ts_us_True >= 2024-01-01T00:00:00.000000Z"),
    (
        col("ts_us_True") < dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        "ts_us_True < 2023-12-31T23:00:00.000000Z",
    ),
    (col("ts_ns_True") == "2024-01-01T00:00:00.123456789-0130",
    "ts_ns_True == 2024-01-01T01:30:00.123456789Z"),
    (
        col("ts_ns_False") == pd.Timestamp("2024-01-01 00:00:00.123456789"),
        "ts_ns_False == 2024-01-01T00:00:00.123456789",
    ),
    (
        col("ts_ns_True") == pd.Timestamp("2024-01-01 00:00:00.123456789", tz="Europe/Zurich"),
        "ts_ns_True == 2023-12-31T23:00:00.123456789Z",
    ),
    (col("ts_us_True") == pa.scalar(5, pa.timestamp("us", "UTC")),
    "ts_us_True == 1970-01-01T00:00:00.000005Z"),
    (col("time_us") < dt.time(12, 30), "time_us < 12:30:00"),
    (col("time_ms") >= "12:30:00.0005", "time_ms >= 12:30:00.001"),
    (col("time_ns") == pd.Timedelta(1, "ns"), "time_ns == 00:00:00.000000001"),
    (col("bool"), "bool == true"),
    (~col("bool"), "bool != true"),
    (col("bool") & (col("int8") == 1), "bool == true and int8 == 1"),
    (col("string") == "日本", "string == '日本'"),
    (col("string").starts_with("é"), "string starts with 'é'"),
    (~col("string").starts_with("é"), "string not starts with 'é'"),
    (col("string").starts_with(""), "string is not null"),
    (col("fixed") == b"abc", "false"),
    (col("fixed") < b"abc", r"fixed <= b'abb\xff'"),
    (col("fixed") > b"abcde", "fixed >= b'abce'"),
    (col("fixed").starts_with(b"abcde"), "false"),
    (col("uuid") == uuid.UUID(int=7), "uuid == 00000000-0000-0000-0000-000000000007"),
    (col("uuid") == str(uuid.UUID(int=7)), "uuid == 00000000-0000-0000-0000-000000000007"),
    (col("int8").between(3, 1), "false"),
    ((col("int8") > 3) & (col("int8") < 4), "false"),
    ((col("double") > 3) & (col("double") < 4), "double > 3.0 and double < 4.0"),
    ((col("double") > 3) & (col("double") <= 3), "false"),
    ((col("int8") == 3) & (col("int8") == 4) | (col("int8") == 5), "int8 == 5"),
    ((col("int8") == 1) | ((col("int16") == 2) & ~(col("int8") != 3)),
    "int8 == 1 or (int16 == 2 and int8 == 3)"),
    (~((col("int8") == 1) | col("int16").is_null()), "int8 != 1 and int16 is not null"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "wanted"), BOUND, ids=[w for _, w in BOUND])
def test_binding(expression: Any, wanted: str) -> None:
    assert text(expression) == wanted


def test_required_columns_have_constant_null_tests() -> None:
    assert text(col("int32").is_null(), REQUIRED) == "false"
    assert text(~col("int32").is_null(), REQUIRED) == "true"
    assert text(col("int32") < 2**40, REQUIRED) == "true"
    assert text((col("int32") < 2**40) & (col("int8") == 1), REQUIRED) == "int8 == 1"


def test_columns_and_shape_of_predicates() -> None:
    predicate = bind((col("int8") == 1) & ((col("int16") == 2) | col("int8").is_null()), TREE)
    assert isinstance(predicate, And)
    assert isinstance(predicate.children[1], Or)
    ordinals = {TREE.find("int8").column, TREE.find("int16").column}
    assert predicate.columns() == ordinals
    assert [t.op for t in predicate.tests()] == ["==", "==", "is_null"]
    assert text(None) == "true"
    assert Constant(True).columns() == set()


def test_long_chains_stay_flat() -> None:
    chain = col("int32") == 0
    for i in range(1, 3000):
        chain = chain | (col("int32") == i) | (col("int64") > i)
    predicate = bind(pickle.loads(pickle.dumps(chain)), TREE)
    assert isinstance(predicate, Or)
    assert len(predicate.children) == 3000  # the equalities are one of them
    deep: Any = col("bool")
    for _ in range(500):
        deep = ~deep
    with pytest.raises(FilterError, match="nests more than"):
        bind(deep, TREE)


def test_equalities_of_one_column_are_looked_up_together() -> None:
    a, b = col("int32"), col("string")
    for expression, wanted in (
        ((a == 3) | (a == 1) | (a == 3), "int32 in (1, 3)"),
        ((a == 1) | (a == 1), "int32 == 1"),
        (a.isin([5, 2]) | (b == "x") | (a == 1) | (b == "w"), "int32 in (1, 2, 5) or string in ('w', 'x')"),
        ((a != 1) & (a > 0) & ~a.isin([2, 3]), "int32 not in (1, 2, 3) and int32 > 0"),
        (~((a == 1) | (a == 2)), "int32 not in (1, 2)"),
        ((a == 1) | a.is_null() | (a == 2), "int32 in (1, 2) or int32 is null"),
        (a.isin(range(300)) | (a == 1000), "int32 in (0, 1, 2, 3, 4, … 301 values)"),
    ):
        assert str(bind(expression, TREE)) == wanted


# ---- the two forms


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([("int8", "=", 1)], "int8 == 1"),
        (("int8", "==", 1), "int8 == 1"),
        ([("int8", ">", 1), ("int16", "!=", 2)], "int8 > 1 and int16 != 2"),
        ([[("int8", ">=", 1), ("int16", "<", 2)], [("int8", "<=", 0)]], "(int8 >= 1 and int16 < 2) or int8 <= 0"),
        ([("int8", "in", {1, 2})], "int8 in (1, 2)"),
        ([("int8", "not in", (1, 2))], "int8 not in (1, 2)"),
        ([("int8", "not in", [1, None])], "false"),
        ([(("int8",), "in", np.array([2, 1]))], "int8 in (1, 2)"),
        ([("int8", "in", pa.array([1, None]))], "int8 == 1"),
        ([("date", "in", np.array(["2024-01-01", "NaT"], "M8[D]"))], "date == 2024-01-01"),
    ],
)
def test_tuples(filters: Any, wanted: str) -> None:
    assert text(filters) == wanted


@pytest.mark.parametrize(
    "filters",
    [
        [], [[]], [("a", "=")], [("a", "~", 1)], "a = 1", 5, [(1, "=", 1)], [[("a", "=", 1)], []], [("a",
        "in", 3)],
        {"a": 1}, True, [("a", "in", "xyz")], [((), "=", 1)], [1, 2, 3],
    ],
    ids=repr,
)  # fmt: skip
def test_malformed_filters(filters: Any) -> None:
    with pytest.raises(FilterError):
        parse_filters(filters)


def test_repr_and_pickle() -> None:
    expression = ((col("a") == 1) & ~col("b.c").isin(["x"])) | col("d", "e").is_null() | col("f").starts_with("p")
    shown = repr(expression)
    assert shown == (
        "(((col('a') == 1) & ~col('b.c').isin(['x'])) | col('d', 'e').is_null() | col('f').starts_with('p'))"
    )
    assert repr(eval(shown)) == shown  # what is shown can be typed
    again = pickle.loads(pickle.dumps(expression))
    assert repr(again) == shown
    predicate = bind((col("int8") == 1) | col("string").isin(["a", "b"]), TREE)
    assert str(pickle.loads(pickle.dumps(predicate))) == str(predicate)


# ---- misuse


def test_truth_value_and_precedence() -> None:
    with pytest.raises(TypeError, match="between"):
        _ = 1 < col("a") < 5
    with pytest.raises(TypeError, match="combine expressions with"):
        _ = (col("a") == 1) and (col("b") == 2)
    with pytest.raises(TypeError, match="parentheses"):
        _ = col("a") == 1 & col("b") == 2  # type: ignore[operator]
    with pytest.raises(TypeError, match="parentheses"):
        _ = (col("a") == 1) | 5
    with pytest.raises(FilterError, match="column names"):
        col()
    with pytest.raises(FilterError, match="column names"):
        col(3)  # type: ignore[arg-type]


def test_literals_on_the_left() -> None:
    assert text(3 < col("int8")) == "int8 > 3"  # noqa: SIM300
    assert text(np.int64(3) <= col("int8")) == "int8 >= 3"
    assert text(np.float64(3) == col("int8")) == "int8 == 3"
    assert text(np.datetime64("2024-01-01") != col("date")) == "date != 2024-01-01"


@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT")], ids=repr)
def test_comparison_with_null_is_refused(null: Any) -> None:
    with pytest.raises(FilterError, match="is_null") as caught:
        _ = col("x") == null
    assert caught.value.column == "x"
    with pytest.raises(FilterError, match="is_null"):
        parse_filters([("x", ">=", null)])


def test_a_condition_is_no_value_to_compare_with() -> None:
    with pytest.raises(FilterError, match="is a condition"):
        _ = col("a") < (col("b") == 1)


WRONG = [
    ("int32", "5"), ("int32", True), ("int32", dt.date(2024, 1, 1)), ("int32", b"5"), ("int32", [1]),
    ("int32", 1j),
    ("double", "x"), ("double", False), ("bool", 1), ("bool", "true"), ("string", 5), ("string",
    dt.date(2024, 1, 1)),
    ("string", "\ud800"), ("binary", 5), ("date", 5), ("date", "yesterday"), ("date", "2024-13-01"),
    ("date", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)), ("date", dt.time(1)), ("ts_us_True", 5),
    ("ts_us_True", "12:00"),
    ("ts_us_True", "2024-01-01T12:00:00x"), ("ts_us_False", dt.datetime(2024, 1, 1,
    tzinfo=dt.UTC)),
    ("ts_us_False", "2024-01-01T00:00:00Z"), ("ts_us_False", 1.5), ("time_us", dt.time(1, tzinfo=dt.UTC)),
    ("time_us", "noon"), ("time_us", "12:00:00Z"), ("time_us", 5), ("time_us", dt.datetime(2024, 1, 1)),
    ("dec_i32", "1.5"), ("dec_i32", True), ("dec_i32", b"1"), ("uuid", "not-a-uuid"), ("uuid", 5),
    ("fixed", 5),
    ("dec_i32", Decimal("sNaN")), ("int32", object()), ("date", np.datetime64(1 << 62, "M")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "literal"), WRONG, ids=[f"{n}-{stable_id(repr(v))}" for n, v in WRONG])
def test_literal_of_the_wrong_kind(name: str, literal: Any) -> None:
    for filters in (col(name) == literal, col(name).isin([literal]), ~(col(name) >= literal)):
        with pytest.raises(FilterError, match=f"cannot compare .*{type(literal).__name__}") as caught:
            bind(filters, TREE)
        assert caught.value.column == name
        assert ": " in caught.value.message


def test_tests_that_do_not_fit_the_column() -> None:
    with pytest.raises(FilterError, match=r"is_nan\(\) needs"):
        bind(col("int32").is_nan(), TREE)
    with pytest.raises(FilterError, match=r"starts_with\(\) needs"):
        bind(col("int32").starts_with("1"), TREE)
    with pytest.raises(FilterError, match=r"starts_with\(\) takes"):
        col("string").starts_with(1)  # type: ignore[arg-type]
    with pytest.raises(FilterError, match=r"isin\(\) takes"):
        col("string").isin("abc")
    with pytest.raises(FilterError, match="bool"):
        bind(~col("int32"), TREE)
    interval = Spec("iv", LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "interval", 12), pa.binary(12), [])
    tree = oracle.tree_of([interval])
    assert text(col("iv").is_null(), tree) == "iv is null"
    with pytest.raises(FilterError, match="only is_null"):
        bind(col("iv") == b"x" * 12, tree)


def nested_tree() -> SchemaTree:
    """s: struct<x: int32?, "y.z": int32>, "s.x": int64, l: list of int32."""
    element = tt.SchemaElement
    return build_tree([
        element(name="root", num_children=3),
        element(name="s", num_children=2, repetition_type=1),
        element(name="x", type=1, repetition_type=1),
        element(name="y.z", type=1, repetition_type=0),
        element(name="s.x", type=2, repetition_type=0),
        element(name="l", type=1, repetition_type=2),
    ])  # fmt: skip


def test_nested_paths() -> None:
    tree = nested_tree()
    assert bind(col("s", "x") == 1, tree).columns() == {0}
    assert bind(col("s.x") == 1, tree).columns() == {2}  # a column of exactly that name comes first
    assert bind(col("s", "y.z") == 1, tree).columns() == {1}
    assert isinstance(bind(col("s", "y.z").is_null(), tree), Test)  # null where the struct is
    group = bind(col("s").is_null(), tree)  # answered by the levels of a leaf below it
    assert isinstance(group, Test)
    assert group.asks_levels
    assert str(group) == "s is null"
    with pytest.raises(FilterError, match="nested fields"):
        bind(col("s") == 1, tree)
    with pytest.raises(FilterError, match="contains"):
        bind(col("l") == 1, tree)


def test_unknown_columns_name_near_ones() -> None:
    with pytest.raises(ColumnNotFoundError, match="did you mean 'string'"):
        bind(col("strng") == "a", TREE)
    with pytest.raises(ColumnNotFoundError, match=r"s\.x"):
        bind(col("s", "xx") == 1, nested_tree())
    with pytest.raises(ColumnNotFoundError):  # nothing is decided before every name is known
        bind((col("int8") == 2.5) & (col("nope") == 1), TREE)


def test_int96_takes_both_kinds_of_datetime() -> None:
    spec = Spec("t", LeafType(Physical.INT96, "int96"), BY_NAME["ts_ns_False"].arrow, [])
    tree = oracle.tree_of([spec])
    wanted = "t == 2024-01-01T00:00:00.000000000"
    assert text(col("t") == dt.datetime(2024, 1, 1), tree) == wanted
    assert text(col("t") == dt.datetime(2024, 1, 1, tzinfo=dt.UTC), tree) == wanted


def test_import_stays_light() -> None:
    heavy = ("pandas", "pyarrow", "polars", "duckdb", "pyspark", "nanoarrow", "cryptography")
    code = f"import sys, pyparq.filters; print([m for m in {heavy!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
