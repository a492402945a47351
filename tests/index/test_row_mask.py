"""Bitmaps of rows against row ranges and Python's sets; which form rows take; leaves kept by them."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyparq
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import keep
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.index.row_ranges import MOST_RANGES, NEAR, RowMask, RowRanges, as_mask, rows_of

ROWS = 150
SETS = st.sets(st.integers(0, ROWS - 1)) | st.builds(
    lambda a, b: set(range(min(a, b), max(a, b))), st.integers(0, ROWS), st.integers(0, ROWS)
)


def ranges(rows: set[int]) -> RowRanges:
    return RowRanges.from_rows(np.array(sorted(rows), np.int64), ROWS)


def mask(rows: set[int]) -> RowMask:
    return RowMask.of_bools(np.isin(np.arange(ROWS), sorted(rows)))


def rows(found: RowMask) -> set[int]:
    """The rows, after checking that all ways of asking agree."""
    listed = found.rows().tolist()
    assert len(found.bits) % 8 == 0
    assert found.count == len(listed)
    assert bool(found) == bool(listed)
    assert found.is_all == (len(listed) == found.num_rows)
    assert np.flatnonzero(found.bools()).tolist() == listed
    assert found.ranges.rows().tolist() == listed
    assert found.num_runs() == len(found.ranges)
    assert RowMask.of_ranges(found.ranges) == found
    assert as_mask(found.ranges) == found
    return set(listed)


@given(a=SETS, b=SETS, count=st.integers(0, ROWS))
def test_sets(a: set[int], b: set[int], count: int) -> None:
    assert rows(mask(a)) == a
    assert rows(mask(a) & mask(b)) == a & b
    assert rows(mask(a) | mask(b)) == a | b
    assert rows(~mask(a)) == set(range(ROWS)) - a
    assert (mask(a) == mask(b)) == (a == b)
    assert rows(mask(a).head(count)) == set(sorted(a)[:count])
    inside = mask(a).within(ranges(b))
    assert rows(inside) == {k for k, row in enumerate(sorted(b)) if row in a}
    assert rows(inside.spread(ranges(b))) == a & b


@given(a=SETS)
def test_cover(a: set[int]) -> None:
    cover = mask(a).cover
    held = set(cover.rows().tolist())
    assert a <= held
    assert all(any(abs(row - other) <= NEAR for other in a) for row in held - a)
    starts, ends = cover.starts.tolist(), cover.ends.tolist()
    assert {*starts, *(end - 1 for end in ends)} <= a
    assert all(start - end > NEAR for end, start in zip(ends, starts[1:], strict=False))


def test_all_and_none() -> None:
    for n in (0, 1, 63, 64, 65, 1000):
        assert RowMask.all(n).count == n
        assert RowMask.all(n).is_all
        assert RowMask.none(n).count == 0
        assert ~RowMask.all(n) == RowMask.none(n)
        assert ~RowMask.none(n) == RowMask.all(n)
        assert rows_of(RowMask.all(n)) == RowRanges.all(n)


def test_few_runs_are_ranges_many_are_bits() -> None:
    bits = np.zeros(10 * MOST_RANGES, bool)
    bits[: 10 * MOST_RANGES : 10] = True
    assert isinstance(rows_of(RowMask.of_bools(bits)), RowRanges)
    bits[5] = True
    found = rows_of(RowMask.of_bools(bits))
    assert isinstance(found, RowMask)
    assert found.ranges == RowRanges.from_rows(np.flatnonzero(bits), len(bits))


# ---- columns -------------------------------------------------------------------------------------------------------

RNG = random.Random(3)
N = 500


def arrays() -> dict[str, pa.Array]:
    def some(values: list[Any]) -> list[Any]:
        return [None if RNG.random() < 0.2 else value for value in values]

    texts = ["", "a", "twelve bytes", "more than twelve bytes of text", "é" * 20]
    strings = [RNG.choice(texts) for _ in range(N)]
    numbers = [RNG.randrange(100) for _ in range(N)]
    made = {
        "int8": pa.array(numbers, "int8"),
        "int16": pa.array(some(numbers), "int16"),
        "int32": pa.array(some(numbers), "int32"),
        "double": pa.array([x / 3 for x in numbers]),
        "decimal": pa.array(some(numbers), pa.decimal128(9, 0)),
        "wide": pa.array(some(numbers), pa.decimal256(50, 0)),
        "bool": pa.array(some([x > 50 for x in numbers])),
        "fixed": pa.array(some([bytes([x] * 5) for x in numbers]), pa.binary(5)),
        "string": pa.array(some(strings)),
        "large": pa.array(strings, pa.large_string()),
        "view": pa.array(some(strings), pa.string_view()),
        "dictionary": pa.array(some(strings)).dictionary_encode(),
        "null": pa.nulls(N),
        "list": pa.array(some([[x] * (x % 4) for x in numbers])),
        "struct": pa.array(some([{"a": x, "b": str(x)} for x in numbers])),
        "months": pa.array(some([(x, 1, 2) for x in numbers]), pa.month_day_nano_interval()),
    }
    return made


ARRAYS = arrays()


def to_column(array: pa.Array) -> Column:
    _, batches = batches_from_arrow(pa.table({"a": array}))
    return next(iter(batches)).columns[0]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("density", [0.0, 0.03, 0.5, 0.95, 1.0])
def test_columns_of_every_layout_are_kept(name: str, density: float) -> None:
    for array in (ARRAYS[name], ARRAYS[name].slice(13, 300), ARRAYS[name].slice(490, 1)):
        chosen = np.array([RNG.random() < density for _ in range(len(array))], bool)
        rows_kept = RowMask.of_bools(chosen)
        found = pa.array(keep(to_column(array), rows_kept.words, rows_kept.count))
        found.validate(full=True)
        assert found.to_pylist() == [value for value, bit in zip(array.to_pylist(), chosen, strict=True) if bit]


# ---- files ---------------------------------------------------------------------------------------------------------

BIG = 40_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = np.random.default_rng(5)
    texts = np.array(["red", "green", "", "blue, and a longer text"])
    k = numbers.integers(0, 1000, BIG)
    gaps = numbers.random(BIG) < 0.3
    lists = [None if x % 17 == 0 else [int(x)] * int(x % 4) for x in k]
    return pa.table(
        {
            "k": k,
            "n": pa.array(numbers.integers(0, 1000, BIG), mask=gaps),
            "s": pa.array(texts[numbers.integers(0, 4, BIG)], mask=numbers.random(BIG) < 0.1),
            "text": [f"row {x}" for x in range(BIG)],
            "flag": pa.array(numbers.random(BIG) < 0.5, mask=gaps),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "struct": pa.array([None if x % 13 == 0 else {"a": int(x), "b": str(x)} for x in k]),
            "structs": pa.array([None if v is None else [{"x": i, "y": None} for i in v] for v in lists]),
        }
    )


@pytest.fixture(
    scope="module",
    params=["plain", "dictionary", "small pages", "row groups"],
)
def file(request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("masks") / "f.parquet"
    options: dict[str, Any] = {
        "plain": {"use_dictionary": False},
        "dictionary": {"write_page_index": True},
        "small pages": {"write_page_index": True, "max_rows_per_page": 500},
        "row groups": {"row_group_size": 15_000, "data_page_version": "2.0"},
    }[request.param]
    pq.write_table(table, path, **options)
    return path


@pytest.mark.parametrize("percent", [0, 1, 10, 50, 90, 99, 100])
def test_rows_kept_are_those_that_pyarrow_keeps(file: Any, table: pa.Table, percent: int) -> None:
    wanted = table.filter(pc.field("k") < 10 * percent)
    found = pyparq.read_table(file, filters=pyparq.col("k") < 10 * percent).to_arrow()
    assert found.equals(wanted)
    without = pyparq.read_table(file, filters=pyparq.col("k") < 10 * percent, columns=["structs", "text", "n"])
    assert without.to_arrow().equals(wanted.select(["structs", "text", "n"]))


TERMS = {
    "two": ((pyparq.col("k") < 500) & (pyparq.col("s") == "red"), (pc.field("k") < 500) & (pc.field("s") == "red")),
    "text": (pyparq.col("s") == "red", pc.field("s") == "red"),
    "gaps": (pyparq.col("n") >= 300, pc.field("n") >= 300),
    "null": (pyparq.col("n").is_null(), pc.field("n").is_null()),
    "flag": (pyparq.col("flag") == True, pc.field("flag") == True),  # noqa: E712
    "or": ((pyparq.col("k") < 100) | (pyparq.col("s") == ""), (pc.field("k") < 100) | (pc.field("s") == "")),
    "field": (pyparq.col("struct.a") < 500, pc.field("struct", "a") < 500),
}


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("count", [None, 1, 3_000])
def test_other_predicates_and_limits(file: Any, table: pa.Table, name: str, count: int | None) -> None:
    ours, theirs = TERMS[name]
    wanted = table.filter(theirs)
    wanted = wanted if count is None else wanted.slice(0, count)
    with pyparq.ParquetFile(file) as opened:
        found = opened.scan(filters=ours, limit=count)
        assert found.to_table().to_arrow().equals(wanted)
        assert opened.scan(["text"], ours, limit=count).count() == len(wanted)
        batches = [pa.record_batch(b) for b in opened.scan(["text", "list"], ours, limit=count).iter_batches(999)]
        streamed = pa.Table.from_batches(batches, wanted.select(["text", "list"]).schema)
        assert streamed.equals(wanted.select(["text", "list"]))


def test_an_item_of_a_list(file: Any, table: pa.Table) -> None:
    found = pyparq.read_table(file, filters=~pyparq.col("list").contains(7), columns=["k", "list"])
    wanted = [r for r in table.select(["k", "list"]).to_pylist() if r["list"] is not None and 7 not in r["list"]]
    assert found.to_arrow().to_pylist() == wanted


def test_rows_asked_for_and_plans(file: Any, table: pa.Table) -> None:
    wanted = table.slice(1_001, 30_000).filter(pc.field("k") < 500)
    with pyparq.ParquetFile(file) as opened:
        scan = opened.scan(filters=pyparq.col("k") < 500, rows=slice(1_001, 31_001))
        plan = pickle.loads(pickle.dumps(scan.plan()))
        assert scan.to_table().to_arrow().equals(wanted)
        assert opened.scan_of(plan).to_table().to_arrow().equals(wanted)


TEXT_TERMS = [
    (pyparq.col("s") == "red", pc.field("s") == "red"),
    (pyparq.col("s") != "red", pc.field("s") != "red"),
    (pyparq.col("s") > "c", pc.field("s") > "c"),
    (pyparq.col("s").isin(["", "green"]), pc.field("s").isin(["", "green"])),
    (pyparq.col("s").is_null(), pc.field("s").is_null()),
    (~pyparq.col("s").starts_with("blue"), ~pc.starts_with(pc.field("s"), "blue")),
    (pyparq.col("struct.b") <= "5", pc.field("struct", "b") <= "5"),
    (
        (pyparq.col("s") == "red") | (pyparq.col("text") < "row 2"),
        (pc.field("s") == "red") | (pc.field("text") < "row 2"),
    ),
]


@pytest.mark.parametrize("k", range(len(TEXT_TERMS)))
def test_text_that_is_only_compared(file: Any, table: pa.Table, k: int) -> None:
    """Then only the entries of a dictionary are, and the rows by their indices."""
    ours, theirs = TEXT_TERMS[k]
    wanted = table.filter(theirs).select(["k", "list"])
    assert pyparq.read_table(file, columns=["k", "list"], filters=ours).to_arrow().equals(wanted)
    with pyparq.ParquetFile(file) as opened:
        assert opened.scan(["k"], ours).count() == len(wanted)


def test_text_compared_item_by_item(tmp_path: Any) -> None:
    words = [None if x % 7 == 0 else [f"w{x % 5}", None, f"w{x % 3}"][: x % 4] for x in range(20_000)]
    table = pa.table({"words": words, "k": range(20_000)})
    pq.write_table(table, tmp_path / "f.parquet", data_page_size=10_000)
    found = pyparq.read_table(tmp_path / "f.parquet", columns=["k"], filters=pyparq.col("words").contains("w4"))
    assert found["k"].to_pylist() == [k for k, w in enumerate(words) if w is not None and "w4" in w]
