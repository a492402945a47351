"""Filters on decoded rows: every type,
operator and literal against brute force; random predicates; DuckDB."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import filter_oracle as oracle
import numpy as np
import pyarrow as pa
import pytest
from filter_oracle import BY_NAME, SPECS, Spec
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq.errors import FilterError
from pyparq.filters.bind import bind
from pyparq.filters.bound import Constant
from pyparq.filters.compare import match_numbers
from pyparq.filters.expression import Expression, col
from pyparq.filters.predicate import evaluate_rows
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import LeafType, Physical

OPS = ("==", "!=", "<", "<=", ">", ">=")
TEXT = ("string", "binary", "fixed")


def compare(name: str, op: str, literal: Any) -> Expression:
    column = col(name)
    return {
        "==": column.__eq__, "!=": column.__ne__, "<": column.__lt__, "<=": column.__le__,
        ">": column.__gt__, ">=": column.__ge__,
    }[op](literal)  # fmt: skip


def check(expression: Expression, specs: list[Spec], rows: list[list[Any]], tree: SchemaTree) -> None:
    """Our mask is where brute force says True."""
    columns = oracle.columns_of([s.to_arrow(values) for s, values in zip(specs, rows)])
    by_name = {s.name: s for s in specs}
    predicate = bind(expression, tree)
    mask = evaluate_rows(predicate, columns, len(rows[0]))
    wanted = [oracle.evaluate(expression, by_name, dict(zip(by_name, row))) is True for row in zip(*rows, strict=True)]
    assert mask.dtype == bool
    assert mask.tolist() == wanted, f"{expression} bound as {predicate}"


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_every_operator_and_literal(spec: Spec) -> None:
    tree = oracle.tree_of([spec])
    values = [*spec.pool, None]
    columns = oracle.columns_of([spec.to_arrow(values)])
    ranks = [None if v is None else spec.rank(v) for v in values]
    for literal in spec.literals:
        theirs = oracle.rank_literal(spec.leaf, literal)
        for op in OPS:
            for negate in (False, True):
                expression = ~compare(spec.name, op, literal) if negate else compare(spec.name, op, literal)
                mask = evaluate_rows(bind(expression, tree), columns, len(values))
                plain = [None if ours is None else PYTHON[op](ours, theirs) for ours in ranks]
                wanted = [p is not None and p is not negate for p in plain]
                assert mask.tolist() == wanted, expression


PYTHON: dict[str, Any] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.name)
def test_isin_null_and_prefix(spec: Spec) -> None:
    tree = oracle.tree_of([spec])
    values = [*spec.pool, None, *spec.pool]
    column = col(spec.name)
    lists = [[], [None], spec.literals, [*spec.literals[:3], None], spec.literals[-1:], spec.literals[::2]]
    tests = [column.is_null(), column.is_not_null(), column.is_valid(), *map(column.isin, lists)]
    tests.append(column.between(spec.literals[0], spec.literals[1]))
    if spec.leaf.kind in TEXT:
        tests += [column.starts_with(p) for p in ("", "a", "ab", "é", "日", "abcdef", b"\xff", b"\0", b"z\0")]
    if spec.leaf.kind in ("float", "double", "float16"):
        tests.append(column.is_nan())
    for expression in tests:
        for filters in (expression, ~expression, ~~expression):
            check(filters, [spec], [values], tree)


def conditions(spec: Spec) -> st.SearchStrategy[Expression]:
    literal = st.sampled_from(spec.literals)
    column = col(spec.name)
    kinds = [
        st.builds(compare, st.just(spec.name), st.sampled_from(OPS), literal),
        st.lists(st.one_of(literal, st.none()), max_size=12).map(column.isin),
        st.just(column.is_null()),
        st.builds(column.between, literal, literal),
    ]
    if spec.leaf.kind in TEXT:
        kinds.append(st.sampled_from(["", "a", "é", b"\xff", b"\0", "abc"]).map(column.starts_with))
    if spec.leaf.kind in ("float", "double", "float16"):
        kinds.append(st.just(column.is_nan()))
    return st.one_of(kinds)


def predicates(specs: list[Spec]) -> st.SearchStrategy[Expression]:
    return st.recursive(
        st.one_of([conditions(s) for s in specs]),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda e: ~e)
        ),
        max_leaves=6,
    )  # fmt: skip


@settings(max_examples=150)
@given(st.data())
def test_random_predicates(data: st.DataObject) -> None:
    specs = data.draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=3, unique_by=lambda s: s.name))
    size = data.draw(st.integers(0, 20))
    rows = [data.draw(st.lists(st.sampled_from([*s.pool, None]), min_size=size, max_size=size)) for s in specs]
    check(data.draw(predicates(specs)), specs, rows, oracle.tree_of(specs))


def test_many_literals_take_every_lookup_path() -> None:
    rng = random.Random(5)
    for name, few, many in (
        ("int64", range(-20, 20), [rng.randrange(-(2**63), 2**63) for _ in range(300)]),
        ("uint64", range(40), [rng.randrange(2**64) for _ in range(300)]),
        ("double", [x / 2 for x in range(40)], [rng.random() for _ in range(300)]),
        ("dec_fixed", range(40), [Decimal(rng.randrange(-(10**30), 10**30)).scaleb(-10) for _ in range(300)]),
        ("string", [str(i) for i in range(40)], [f"{rng.random()}" for _ in range(300)]),
    ):
        spec = BY_NAME[name]
        for literals in (list(few), many):
            place = list(literals[::2])
            if name == "dec_fixed":
                values: list[Any] = [int(Decimal(v).scaleb(10)) for v in place]
            elif name == "string":
                values = [v.encode() for v in place] + [b"?"]
            else:
                values = [*place, *spec.pool]
            values.append(None)
            tree = oracle.tree_of([spec])
            check(col(name).isin(literals), [spec], [values], tree)
            check(~col(name).isin(literals), [spec], [values], tree)


def test_sliced_dictionary_and_large_columns() -> None:
    spec = BY_NAME["string"]
    values = ["ab", None, "b", "abc", "", None, "ab", "z"] * 3
    tree = oracle.tree_of([spec])
    plain = pa.array(values)
    shapes = {
        "large": plain.cast(pa.large_string()),
        "dictionary": plain.dictionary_encode(),
        "null in dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["ab",
        None, "b"])),
        "empty dictionary": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([],
        pa.string())),
        "slice": plain.slice(3, 11),
        "empty": plain.slice(0, 0),
    }  # fmt: skip
    for expression in (col("string") >= "ab", ~(col("string") == "ab"), col("string").is_null(),
                       col("string").is_not_null(), col("string").isin(["b", ""]),
                       ~col("string").starts_with("a")):  # fmt: skip
        for array in shapes.values():
            mask = evaluate_rows(bind(expression, tree), oracle.columns_of([array]))
            rows = [None if v is None else v.encode() for v in array.to_pylist()]
            wanted = [oracle.evaluate(expression, {"string": spec}, {"string": v}) is True for v in rows]
            assert mask.tolist() == wanted
    numbers = BY_NAME["int32"]
    array = pa.array([1, None, 3, 4, 5] * 5, pa.int32()).slice(3, 17)
    mask = evaluate_rows(bind(col("int32") > 3, oracle.tree_of([numbers])), oracle.columns_of([array]))
    assert mask.tolist() == [v is not None and v > 3 for v in array.to_pylist()]


def test_null_type_and_constants() -> None:
    tree = oracle.tree_of([Spec("n", LeafType(Physical.INT32, "null"), pa.null(), [])])
    columns = oracle.columns_of([pa.nulls(3)])
    for never in (col("n") == 1, ~(col("n") == 1), col("n").isin(["a"]), ~col("n").isin(["a"]), col("n") != 2,
                  col("n").starts_with("x"), ~col("n").is_nan(), col("n").is_not_null()):  # fmt: skip
        assert evaluate_rows(bind(never, tree), columns, 3).tolist() == [False] * 3
    assert evaluate_rows(bind(col("n").is_null(), tree), columns).all()
    assert evaluate_rows(Constant(True), {}, 2).tolist() == [True, True]
    with pytest.raises(ValueError, match="num_rows"):
        evaluate_rows(Constant(True), {})


def test_a_column_in_another_unit_is_refused() -> None:
    tree = oracle.tree_of([BY_NAME["ts_us_False"]])
    predicate = bind(col("ts_us_False") > "2024-01-01", tree)
    for array in (pa.array([1], pa.timestamp("ms")), pa.array([1], pa.int64()), pa.array([1], pa.time64("us"))):
        with pytest.raises(FilterError, match="ts_us_False"):
            evaluate_rows(predicate, oracle.columns_of([array]))


def test_inputs_are_not_modified() -> None:
    tree = oracle.tree_of([BY_NAME["int64"], BY_NAME["bool"]])
    columns = oracle.columns_of([pa.array([1, None, 3]), pa.array([True, None, False])])
    before = [(c.validity.copy(), c.buffers[0].copy()) for c in columns.values() if c.validity is not None]
    for expression in (
        col("int64").is_not_null() & (col("int64") > 2),
        col("bool") | (col("int64") == 1),
        ~col("bool"),
    ):
        evaluate_rows(bind(expression, tree), columns)
    after = [(c.validity, c.buffers[0]) for c in columns.values()]
    assert all(np.array_equal(a, b) for old, new in zip(before, after) for a, b in zip(old, new))


SQL = [
    ("f > 2", col("f") > 2),
    ("f <= 'NaN'::double", col("f") <= float("nan")),
    ("f = 'NaN'::double", col("f") == float("nan")),
    ("not (f < 1)", ~(col("f") < 1)),
    ("f = 0", col("f") == 0),
    ("f <> -0.0", col("f") != -0.0),
    ("isnan(f)", col("f").is_nan()),
    ("not isnan(f)", ~col("f").is_nan()),
    ("i in (1, 2, null)", col("i").isin([1, 2, None])),
    ("i not in (1, 2)", ~col("i").isin([1, 2])),
    ("i not in (1, null)", ~col("i").isin([1, None])),
    ("i > 1.5 or f is null", (col("i") > 1.5) | col("f").is_null()),
    ("not (i = 1 and s = 'a')", ~((col("i") == 1) & (col("s") == "a"))),
    ("not (i = 1 or s = 'a')", ~((col("i") == 1) | (col("s") == "a"))),
    ("i < 1099511627776", col("i") < 2**40),
    ("i between 1 and 3 and s >= 'ab'", col("i").between(1, 3) & (col("s") >= "ab")),
    ("starts_with(s, 'é')", col("s").starts_with("é")),
    ("not starts_with(s, 'a')", ~col("s").starts_with("a")),
    ("s is not null", col("s").is_not_null()),
    ("d = 2.50", col("d") == Decimal("2.5")),
    ("d < 0.015::decimal(10,3)", col("d") < Decimal("0.015")),
    ("t >= timestamptz '2023-11-15 00:43:20+02:30'", col("t") >= "2023-11-15T00:43:20+02:30"),
    ("b", col("b") == True),  # noqa: E712
    ("not b", ~col("b")),
]


@pytest.mark.parametrize(("sql", "expression"), SQL, ids=[s for s, _ in SQL])
def test_against_duckdb(sql: str, expression: Expression) -> None:
    duckdb = pytest.importorskip("duckdb")
    rng = random.Random(sql)
    names = {"f": "double", "i": "int32", "s": "string", "d": "dec_i32", "t": "ts_us_True", "b": "bool"}
    arrays = []
    for name in names.values():
        spec = BY_NAME[name]
        pool = [v for v in spec.pool if v != b"z\0"] + [None, None]
        arrays.append(spec.to_arrow([rng.choice(pool) for _ in range(300)]))
    table = pa.table([pa.array(range(300)), *arrays], names=["row_id", *names])
    connection = duckdb.connect()
    connection.register("rows", table)
    wanted = [r for (r,) in connection.sql(f"select row_id from rows where {sql} order by row_id").fetchall()]
    specs = [Spec(short, BY_NAME[name].leaf, BY_NAME[name].arrow, []) for short, name in names.items()]
    mask = evaluate_rows(bind(expression, oracle.tree_of(specs)), oracle.columns_of(arrays), 300)
    assert np.flatnonzero(mask).tolist() == wanted


@pytest.mark.parametrize("type_", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("count", [5, 40, 1000])
def test_many_numbers_far_apart(type_: str, count: int) -> None:
    """As numpy, whichever way of looking they are looked for by."""
    rng = np.random.default_rng(count)
    bounds = np.iinfo(type_)
    values = rng.integers(bounds.min, bounds.max, 20_000, type_, endpoint=True)
    ends = np.array([bounds.min, bounds.max], type_)
    literals = np.unique(np.concatenate([values[::97][:count], ends]))
    for part in (values, values[:10], values[:0], np.repeat(literals, 50)):
        for op in ("in", "not in"):
            found = match_numbers(op, literals.tolist(), part).bools()
            assert np.array_equal(found, np.isin(part, literals) == (op == "in"))
