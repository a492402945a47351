"""What bounds, dictionaries and Bloom filters may prove: sound on any data, sharp on exact bounds."""

from __future__ import annotations

import math
import random
from typing import Any

import filter_oracle as oracle
import numpy as np
import pytest
from filter_oracle import BY_NAME, NAN, SPECS, Spec
from hypothesis import given, settings
from hypothesis import strategies as st
from test_filter_rows import conditions

from pyparq.filters.bind import bind
from pyparq.filters.expression import Expression, col
from pyparq.filters.leaf_tests import Test, domain_array
from pyparq.filters.predicate import And, Or
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import bound_dtype, encode_bound, has_order
from pyparq.format.types import LeafType, Physical
from pyparq.index.bloom_filter import BloomFilter, hash_values
from pyparq.index.statistics import Bounds

ORDERED = [s for s in SPECS if has_order(s.leaf)]


def bounds_of(spec: Spec, pages: list[list[Any]], forget: random.Random | None = None) -> Bounds:
    """Exact bounds of pages of domain values; with ``forget``,
    wider ones in which counts and bounds are missing."""
    mins, maxs, has, nulls, nans = [], [], [], [], []
    for page in pages:
        present = [v for v in page if v is not None]
        numbers = [v for v in present if v == v]
        has.append(bool(numbers))
        mins.append(min(numbers, default=spec.pool[0]))
        maxs.append(max(numbers, default=spec.pool[0]))
        nulls.append(len(page) - len(present))
        nans.append(len(present) - len(numbers))
    counts = [len(p) for p in pages]
    all_null = [n == c for n, c in zip(nulls, counts)]
    if forget is not None:
        smallest, largest = min(v for v in spec.pool if v == v), max(v for v in spec.pool if v == v)
        for k in range(len(pages)):
            if forget.random() < 0.3:
                mins[k], maxs[k] = smallest, largest
            has[k] = has[k] and forget.random() < 0.7
            nulls[k] = nulls[k] if forget.random() < 0.7 else -1
            counts[k] = counts[k] if forget.random() < 0.7 else -1
            if spec.leaf.kind in ("float", "double", "float16") and forget.random() < 0.5:
                nans[k] = -1
    dtype = bound_dtype(spec.leaf)
    low, high = domain_array(spec.leaf, mins), domain_array(spec.leaf, maxs)
    assert low.dtype == dtype
    as_int = [np.array(x, np.int64) for x in (nulls, nans, counts)]
    return Bounds(spec.leaf, low, high, np.array(has, bool), *as_int, all_null=np.array(all_null, bool))


def single(expression: Expression, spec: Spec, nullable: bool = True) -> Test | None:
    predicate = bind(expression, oracle.tree_of([spec], nullable))
    return predicate if isinstance(predicate, Test) else None


def passes(expression: Expression, spec: Spec, value: Any) -> bool:
    return oracle.evaluate(expression, {spec.name: spec}, {spec.name: value}) is True


def drawn(data: st.DataObject) -> tuple[Spec, list[list[Any]], Expression]:
    """A column, the values of its pages, and a condition on it."""
    spec = data.draw(st.sampled_from(ORDERED))
    value = st.sampled_from([*spec.pool, None])
    pages = data.draw(st.lists(st.lists(value, min_size=1, max_size=4), min_size=1, max_size=6))
    return spec, pages, data.draw(conditions(spec))


@settings(max_examples=400)
@given(st.data())
def test_verdicts_are_sound(data: st.DataObject) -> None:
    spec, pages, expression = drawn(data)
    expression = ~expression if data.draw(st.booleans()) else expression
    predicate = bind(expression, oracle.tree_of([spec]))
    bounds = bounds_of(spec, pages, data.draw(st.one_of(st.none(), st.randoms())))
    for test in predicate.tests():
        verdict = test.verdict(bounds)
        assert verdict.some.dtype == bool
        assert len(verdict.some) == len(pages)
        assert len(verdict.all) == len(pages)
    if isinstance(predicate, And | Or):
        parts = [t.verdict(bounds) for t in predicate.tests()]
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        some = join.reduce([p.some for p in parts])
        every = join.reduce([p.all for p in parts])
    elif isinstance(predicate, Test):
        some, every = predicate.verdict(bounds)
    else:
        return
    for k, page in enumerate(pages):
        truth = [passes(expression, spec, v) for v in page]
        assert some[k] or not any(truth), (expression, page)
        assert not every[k] or all(truth), (expression, page)


@settings(max_examples=400)
@given(st.data())
def test_where_a_bound_passes_some_value_does(data: st.DataObject) -> None:
    spec, pages, expression = drawn(data)
    test = single(expression, spec)
    if test is None:
        return
    for found, page in zip(test.found_at_bounds(bounds_of(spec, pages)), pages, strict=True):
        truth = [passes(expression, spec, v) for v in page]
        assert not found or any(truth), (expression, page)
        if test.op in ("<", "<=", ">", ">=") and not isinstance(spec.pool[0], bytes):
            assert found or not any(t and v == v for t, v in zip(truth, page, strict=True))


def between(spec: Spec, low: Any, high: Any, literals: list[Any]) -> list[Any]:
    """Values within the bounds that decide what any test on the given literals can say of them."""
    leaf = spec.leaf
    if isinstance(low, int):
        near = {v + d for v in (low, high, *literals) for d in (-1, 0, 1)}
    elif isinstance(low, float):
        narrow = {"float": np.float32, "float16": np.float16}.get(leaf.kind, np.float64)
        with np.errstate(over="ignore"):
            near = {
                float(np.nextafter(narrow(v), narrow(to)))
                for v in (low, high, *literals)
                for to in (-math.inf, v, math.inf)
            }
    elif leaf.length:
        numbers = [int.from_bytes(v, "big") for v in (low, high)] + [
            int.from_bytes(v.ljust(leaf.length, b"\0"), "big") for v in literals
        ]
        top = 256**leaf.length
        near = {(v + d).to_bytes(leaf.length, "big") for v in numbers for d in (-1, 0, 1) if 0 <= v + d < top}
    else:
        tails = (b"", b"\0", b"\xff")
        near = {v + t for v in (low, high, *literals) for t in tails} | {v[:-1] for v in literals if v}
    return [v for v in near if low <= v <= high]


@settings(max_examples=400)
@given(st.data())
def test_verdicts_are_sharp_on_exact_bounds(data: st.DataObject) -> None:
    """``some`` is false, ``all`` true,
    exactly where no (every) page with these bounds could say otherwise."""
    spec = data.draw(st.sampled_from(ORDERED))
    expression = data.draw(conditions(spec))
    expression = ~expression if data.draw(st.booleans()) else expression
    test = single(expression, spec)
    if test is None:
        return
    page = data.draw(st.lists(st.sampled_from([*spec.pool, None]), min_size=1, max_size=3))
    some, every = test.verdict(bounds_of(spec, [page]))
    numbers = [v for v in page if v is not None and v == v]
    possible = [v for v in page if v is None or v != v]
    if numbers:
        possible += between(spec, min(numbers), max(numbers), list(test.literals))
    truth = [passes(expression, spec, v) for v in possible]
    if test.op in ("in", "not in") and not isinstance(test.literals[0], int) and len(set(numbers)) > 1:
        # That literals cover neighbouring floats or byte strings one by one is not looked for.
        if test.op == "in":
            assert some[0] == any(truth)
            assert every[0] <= all(truth)
        else:
            assert some[0] >= any(truth)
            assert every[0] == all(truth)
        return
    assert some[0] == any(truth), (expression, page, possible)
    assert every[0] == all(truth), (expression, page, possible)


def test_unknown_nan_counts_keep_pages_that_a_nan_would_pass() -> None:
    spec = BY_NAME["double"]
    bounds = bounds_of(spec, [[1.0, 5.0]])
    above, below = single(col("double") > 9, spec), single(col("double") <= 9, spec)
    assert above is not None
    assert below is not None
    assert [x.tolist() for x in above.verdict(bounds)] == [[False], [False]]
    assert [x.tolist() for x in below.verdict(bounds)] == [[True], [True]]
    bounds.nan_counts[:] = -1
    assert [x.tolist() for x in above.verdict(bounds)] == [[True], [False]]
    assert [x.tolist() for x in below.verdict(bounds)] == [[True], [False]]


def test_required_columns_have_no_nulls_whatever_the_counts_say() -> None:
    spec = BY_NAME["int32"]
    test = single(col("int32") <= 9, spec, nullable=False)
    assert test is not None
    bounds = bounds_of(spec, [[1, 5]])
    bounds.null_counts[:] = -1
    bounds.all_null[:] = True
    assert [x.tolist() for x in test.verdict(bounds)] == [[True], [True]]


def test_full_range_of_int64_does_not_overflow() -> None:
    spec = BY_NAME["int64"]
    test = single(col("int64").isin([0, 1, 2]), spec)
    assert test is not None
    verdict = test.verdict(bounds_of(spec, [[-(2**63), 2**63 - 1], [0, 2], [0, 1], [1, 3]]))
    assert verdict.some.tolist() == [True] * 4
    assert verdict.all.tolist() == [False, True, True, False]


# ---- dictionaries


def physical_values(spec: Spec, values: list[Any]) -> Values:
    leaf = spec.leaf
    raw = [encode_bound(leaf, v) for v in values]
    if leaf.is_binary:
        edges = np.concatenate(([0], np.cumsum([len(r) for r in raw]))).astype(np.int64)
        return BinaryValues(edges, np.frombuffer(b"".join(raw), np.uint8))
    data = np.frombuffer(b"".join(raw), np.uint8)
    dtype = {Physical.INT32: "<i4", Physical.INT64: "<i8", Physical.FLOAT: "<f4", Physical.DOUBLE: "<f8"}
    if leaf.physical in dtype:
        return data.view(dtype[leaf.physical])
    return data.reshape(len(values), leaf.width)


@pytest.mark.parametrize("spec", ORDERED, ids=lambda s: s.name)
def test_dictionary(spec: Spec) -> None:
    values = physical_values(spec, spec.pool)
    column = col(spec.name)
    expressions = [column.isin(spec.literals), ~column.isin(spec.literals[:3]), column == spec.literals[0]]
    for literal in spec.literals:
        expressions += [column == literal, column != literal, column < literal, column <= literal]
        expressions += [column > literal, column >= literal]
    if spec.leaf.kind in ("string", "binary", "fixed"):
        expressions += [column.starts_with("a"), ~column.starts_with("a")]
    tried = 0
    for expression in expressions:
        test = single(expression, spec)
        if test is None:
            continue
        tried += 1
        wanted = [passes(expression, spec, v) for v in spec.pool]
        mask = test.entries(values, spec.leaf)
        assert mask is not None
        assert mask.bools().tolist() == wanted, expression
        assert test.may_be_among(values, spec.leaf) == any(wanted)
    assert tried > 3


def test_dictionary_proves_nothing_about_nulls_and_int96() -> None:
    spec = BY_NAME["int32"]
    none = physical_values(spec, [])
    is_null, valid = single(col("int32").is_null(), spec), single(col("int32").is_not_null(), spec)
    assert is_null is not None
    assert valid is not None
    assert is_null.may_be_among(none, spec.leaf)
    assert not valid.may_be_among(none, spec.leaf)
    int96 = Spec("t", LeafType(Physical.INT96, "int96"), BY_NAME["ts_ns_False"].arrow, [0])
    test = single(col("t") == "2024-01-01", int96)
    assert test is not None
    assert test.may_be_among(np.zeros((1, 12), np.uint8), int96.leaf)


# ---- Bloom filters


@pytest.mark.parametrize("spec", ORDERED, ids=lambda s: s.name)
def test_bloom_hashes_find_every_value(spec: Spec) -> None:
    """What is in the filter is found by ``==`` and by ``in``; what is not (nearly always) is not."""
    values = [v for v in spec.pool if v == v]
    half, rest = values[::2], [v for v in values[1::2] if v not in values[::2]]
    literals = [*spec.literals, *values]
    if spec.leaf.kind in ("bool",) or spec.name == "dec_binary":
        test = Test(oracle.tree_of([spec]).leaves[0], "==", (spec.pool[0],))
        assert test.hashes() is None
        return
    bloom = BloomFilter.empty(1024)
    bloom.insert_hashes(hash_values(physical_values(spec, half), spec.leaf))
    node = oracle.tree_of([spec]).leaves[0]
    for value in values:
        probes = Test(node, "==", (value,)).hashes()
        assert probes is not None
        found = [any(bloom.check_hash(h) for h in hashes) for hashes in probes]
        assert found == [value in half]
    everything = Test(node, "in", tuple(sorted(set(values)))).hashes()
    assert everything is not None
    assert sum(any(bloom.check_hash(h) for h in hashes) for hashes in everything) == len(set(half))
    assert rest or len(values) < 3
    for expression in (col(spec.name) != literals[0], col(spec.name) < literals[0], col(spec.name).is_null()):
        test_ = single(expression, spec)
        assert test_ is None or test_.hashes() is None


def test_bloom_zero_has_two_hashes() -> None:
    spec = BY_NAME["double"]
    for zero in (0.0, -0.0, 0):
        test = single(col("double") == zero, spec)
        assert test is not None
        probes = test.hashes()
        assert probes is not None
        assert len(set(probes[0])) == 2
    nan = single(col("double") == NAN, spec)
    assert nan is not None
    assert nan.hashes() is None
