"""``isin`` of many numbers, which stay one array: against Python's sets and the same numbers given one by one."""

from __future__ import annotations

import io
import pickle
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import filter_oracle as oracle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filter_oracle import BY_NAME, Spec

import pyparq
from pyparq.errors import FilterError
from pyparq.filters.bind import bind
from pyparq.filters.expression import IsIn, col
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import evaluate_rows
from pyparq.filters.value_array import MANY, ValueArray
from pyparq.read.row_group_reads import MATCHED_FROM

RNG = random.Random(11)
LEAVES = [
    BY_NAME[name]
    for name in BY_NAME
    if BY_NAME[name].leaf.kind in ("int", "uint", "float16", "float", "double", "decimal", "int96")
    and BY_NAME[name].leaf.kind != "int96"
]
DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


def numbers(dtype: str) -> Any:
    """Ends of all types, powers of two and their neighbours, as far as the dtype holds them."""
    kind = np.dtype(dtype)
    edges = [x for k in (0, 3, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for x in (2**k - 1, 2**k, 2**k + 1)]
    pool: list[Any] = [*range(-20, 20), *edges, *(-x for x in edges)]
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return np.array([*map(float, pool), 0.5, -0.0, 1e-7, 1e300, np.inf, -np.inf, np.nan] * 3, kind)
    info = np.iinfo(kind)
    kept = [x for x in pool if info.min <= x <= info.max]
    return np.array(kept * (MANY // len(kept) + 1), kind)


def one_by_one(values: Any) -> Any:
    """The same values as an iterator, which nobody can see to be many."""
    return iter(values)


def rank(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return value if value != value or value in (np.inf, -np.inf) else Fraction(value)
    return Fraction(int(value))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", LEAVES, ids=lambda s: s.name)
def test_as_given_one_by_one(spec: Spec, dtype: str) -> None:
    given = numbers(dtype)
    tree = oracle.tree_of([spec])
    values = [*spec.pool, None, *spec.pool]
    columns = oracle.columns_of([spec.to_arrow(values)])
    many, few = col(spec.name).isin(given), col(spec.name).isin(one_by_one(given))
    assert isinstance(many, IsIn)
    assert isinstance(many.values, ValueArray)
    assert isinstance(few, IsIn)
    assert isinstance(few.values, tuple)
    for ours, theirs in ((many, few), (~many, ~few)):
        found, wanted = bind(ours, tree), bind(theirs, tree)
        assert (
            evaluate_rows(found, columns, len(values)).tolist() == evaluate_rows(wanted, columns, len(values)).tolist()
        )
        assert [t.op for t in found.tests()] == [t.op for t in wanted.tests()]
        for test, other in zip(found.tests(), wanted.tests(), strict=True):
            assert list(test.literals) == list(other.literals)
    if spec.leaf.kind != "decimal":
        members = {rank(v) for v in given if v == v}
        nan = any(v != v for v in given)
        held = [v is not None and (nan if v != v else rank(v) in members) for v in values]
        assert evaluate_rows(bind(many, tree), columns, len(values)).tolist() == held


def arrays(kind: str) -> dict[str, Any]:
    """The numbers 0, 3, 6, ... in every shape that a user may have them in."""
    plain = list(range(0, 3 * MANY, 3)) if kind == "int" else [x / 2 for x in range(0, 3 * MANY, 3)]
    return {
        "list": plain,
        "tuple": tuple(plain),
        "set": set(plain),
        "numpy": np.array(plain),
        "reversed": np.array(plain)[::-1],
        "foreign byte order": np.array(plain).astype(np.array(plain).dtype.newbyteorder(">")),
        "pyarrow": pa.array(plain),
        "slice": pa.array([7, 7, *plain]).slice(2),
        "chunked": pa.chunked_array([plain[:100], [], plain[100:]]),
        "pandas": pd.Series(plain),
        "index": pd.Index(plain),
        "pandas nullable": pd.Series(plain, dtype="Int64" if kind == "int" else "Float64"),
        "polars": pl.Series(plain),
        "pyparq": pyparq.Table.from_pydict({"a": plain})["a"]
        if hasattr(pyparq.Table, "from_pydict")
        else pa.array(plain),
        "masked": np.ma.array(plain),
    }


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("shape", list(arrays("int")))
def test_any_collection(kind: str, shape: str) -> None:
    values = arrays(kind)[shape]
    column = pa.array([0, 1, 3, 4, None, 765, 766, 3 * MANY])
    tree = oracle.tree_of([BY_NAME["int64"]])
    mask = evaluate_rows(bind(col("int64").isin(values), tree), oracle.columns_of([column]))
    known = {Fraction(float(v)) for v in values} if kind == "float" else {Fraction(int(v)) for v in values}
    assert mask.tolist() == [v is not None and Fraction(v) in known for v in column.to_pylist()]


@pytest.mark.parametrize("shape", ["list", "pyarrow", "polars", "masked", "pandas nullable"])
def test_a_null_among_them(shape: str) -> None:
    plain = [*range(MANY), None]
    values = {
        "list": plain,
        "pyarrow": pa.array(plain),
        "polars": pl.Series(plain),
        "masked": np.ma.masked_equal(np.arange(MANY + 1), MANY),
        "pandas nullable": pd.Series(plain, dtype="Int64"),
    }[shape]
    column = oracle.columns_of([pa.array([0, 5, None, MANY])])
    tree = oracle.tree_of([BY_NAME["int64"]])
    expression = col("int64").isin(values)
    assert evaluate_rows(bind(expression, tree), column, 4).tolist() == [True, True, False, False]
    assert evaluate_rows(bind(~expression, tree), column, 4).tolist() == [False] * 4


def test_values_that_do_not_compare_are_refused_as_ever() -> None:
    tree = oracle.tree_of([BY_NAME["int64"], BY_NAME["string"], BY_NAME["bool"], BY_NAME["date"]])
    for name, values in (
        ("string", np.arange(MANY)), ("bool", np.arange(MANY)), ("date", np.arange(MANY)),
        ("int64", [*range(MANY), True]), ("int64", [*range(MANY), "x"]), ("int64", [str(x) for x in range(MANY)]),
        ("int64", np.arange(MANY) > 3), ("int64", np.arange(2 * MANY).reshape(MANY, 2)),
    ):  # fmt: skip
        with pytest.raises(FilterError):
            bind(col(name).isin(values), tree)


def test_decimals_keep_the_digits_of_narrow_floats() -> None:
    spec = next(s for s in LEAVES if s.leaf.kind == "decimal" and s.leaf.scale == 2)
    values = np.arange(MANY, dtype=np.float32) / np.float32(10)
    test = bind(col(spec.name).isin(values), oracle.tree_of([spec]))
    assert isinstance(test, Test)
    assert list(test.literals) == [int(Decimal(str(v)) * 100) for v in values]


def test_it_travels_and_can_be_shown() -> None:
    values = np.arange(0, 4 * MANY, 2)
    expression = col("int64").isin(values)
    again = pickle.loads(pickle.dumps(expression))
    assert list(again.values) == values.tolist()
    assert repr(col("a").isin([1, 2])) == "col('a').isin([1, 2])"
    assert repr(again).startswith("col('int64').isin([0, 2, 4, ")
    test = bind(again, oracle.tree_of([BY_NAME["int64"]]))
    assert isinstance(test, Test)
    assert str(test) == f"int64 in (0, 2, 4, 6, 8, … {2 * MANY} values)"
    assert str(pickle.loads(pickle.dumps(test))) == str(test)
    values[0] = 77  # what the user does with his array afterwards is his
    assert next(iter(expression.values)) == 0


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_files_and_their_indexes(tmp_path: Any, size: int) -> None:
    rng = np.random.default_rng(size)
    rows = 60_000
    table = pa.table(
        {
            "sorted": np.sort(rng.integers(0, 10**6, rows)),
            "few": rng.integers(0, 50, rows).astype("int32") * 1000,
            "f": pa.array(rng.integers(0, 1000, rows) / 8, mask=rng.random(rows) < 0.1),
        }
    )
    path = tmp_path / "f.parquet"
    pyparq.write_table(table, path, row_group_size=20_000, bloom_filters={"sorted": 0.01})
    theirs = tmp_path / "theirs.parquet"
    pq.write_table(table, theirs, row_group_size=20_000, write_page_index=True)
    for name, values in (
        ("sorted", rng.integers(0, 10**6, size)),
        ("sorted", rng.integers(2 * 10**6, 3 * 10**6, size)),
        ("few", rng.integers(0, 50_000, size)),
        ("f", rng.integers(0, 2000, size) / 16),
    ):
        wanted = table.filter(pa.compute.is_in(table[name], pa.array(values).cast(table.schema.field(name).type)))
        for file in (path, theirs):
            assert pyparq.read_table(file, filters=col(name).isin(values)).to_arrow().equals(wanted), name
            plan = pyparq.ParquetFile(file).scan(filters=col(name).isin(values)).plan()
            with pyparq.ParquetFile(file) as opened:
                assert opened.scan_of(pickle.loads(pickle.dumps(plan))).to_table().to_arrow().equals(wanted)


def test_large_row_groups_side_by_side() -> None:
    """Row groups of so many values are matched on threads."""
    rng = np.random.default_rng(11)
    count = MATCHED_FROM + 1000
    table = pa.table({"k": rng.integers(0, 2**62, 2 * count), "n": rng.integers(0, 2**40, 2 * count)})
    wanted = table["k"].to_numpy()[::100_000]
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=count, use_dictionary=False, compression=None)
    k, n = table["k"].to_numpy(), table["n"].to_numpy()
    questions = {
        col("k").isin(wanted): np.isin(k, wanted),
        (col("k") < 2**61) & (col("n") >= 2**39): (k < 2**61) & (n >= 2**39),
    }
    for filters, rows in questions.items():
        for threads in (True, False):
            found = pa.table(pyparq.read_table(sink.getvalue(), filters=filters, use_threads=threads))
            assert found.equals(table.filter(pa.array(rows)))


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"])
@pytest.mark.parametrize("with_null", [False, True])
def test_many_keys_of_arrow_are_those_of_a_list(kind: str, with_null: bool) -> None:
    """Texts and bytes of every layout, in chunks and slices, twice and in no order."""
    text = "string" in kind
    names: list[Any] = [f"größe {k}" if text else f"größe {k}".encode() for k in range(600)]
    keys: list[Any] = names[500:100:-1] + names[90:200] + ["", "größe"] * text + [None] * with_null
    type_ = getattr(pa, kind)()
    given = pa.chunked_array([pa.array(keys[:7], type_), pa.array(["x" if text else b"x", *keys[7:]], type_)[1:]])
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"n": range(602), "name": pa.array([*names, None, None])}), sink, row_group_size=100)
    for where in (lambda keys: pyparq.col("name").isin(keys), lambda keys: ~pyparq.col("name").isin(keys)):
        found = pyparq.read_table(sink, ["n"], where(given)).to_pydict()
        assert found == pyparq.read_table(sink, ["n"], where(keys)).to_pydict()
        again = pickle.loads(pickle.dumps(where(given)))
        assert found == pyparq.read_table(sink, ["n"], again).to_pydict()
    wanted = [n for n, name in enumerate(names) if name in set(keys)]
    assert pyparq.read_table(sink, ["n"], pyparq.col("name").isin(given)).to_pydict()["n"] == wanted


def test_many_keys_that_cannot_be_values_are_refused() -> None:
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"n": [1]}), sink)
    with pytest.raises(pyparq.FilterError):
        pyparq.read_table(sink, filters=pyparq.col("n").isin(pa.array([f"{k}" for k in range(300)])))
