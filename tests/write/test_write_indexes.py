"""Statistics, size statistics and page indexes of written files, against counting by hand over what pyarrow reads."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written import Written, write

D = decimal.Decimal
ROWS, PAGE, GROUP = 1_000, 60, 400
RNG = np.random.default_rng(11)


def sometimes(values: list[Any], every: int = 6) -> list[Any]:
    return [None if k % every == 0 else v for k, v in enumerate(values)]


def fixed_decimal(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def unpack(code: str) -> Callable[[bytes], Any]:
    return lambda raw: struct.unpack(code, raw)[0]


EPOCH = dt.date(1970, 1, 1)
NUMBERS = RNG.integers(-1000, 1000, ROWS).tolist()
CENTS = [D(n).scaleb(-2) for n in NUMBERS]
# name -> (Arrow array, value of a stored bound, the same domain for a value that was read)
CASES: dict[str, tuple[pa.Array, Callable[[bytes], Any], Callable[[Any], Any]]] = {
    "int64": (pa.array(sometimes(NUMBERS)), unpack("<q"), int),
    "int8": (pa.array([n // 10 for n in NUMBERS], pa.int8()), unpack("<i"), int),
    "uint32": (pa.array([n % 2**32 for n in NUMBERS], pa.uint32()), unpack("<I"), int),
    "uint64": (pa.array([n % 2**64 for n in NUMBERS], pa.uint64()), unpack("<Q"), int),
    "sorted": (pa.array(range(ROWS)), unpack("<q"), int),
    "falling": (pa.array(sometimes(list(range(ROWS, 0, -1)))), unpack("<q"), int),
    "double": (pa.array(sometimes([n / 8 for n in NUMBERS])), unpack("<d"), float),
    "float": (pa.array([n / 8 for n in NUMBERS], pa.float32()), unpack("<f"), float),
    "bool": (pa.array([n > 990 for n in NUMBERS]), lambda raw: raw[0], int),
    "date": (pa.array([EPOCH + dt.timedelta(n) for n in NUMBERS]), unpack("<i"), lambda v: (v - EPOCH).days),
    "string": (pa.array(sometimes([f"é{n}" for n in NUMBERS])), bytes, lambda v: v.encode()),
    "binary": (pa.array([struct.pack(">i", n) for n in NUMBERS]), bytes, bytes),
    "fixed": (pa.array([struct.pack(">i", n) for n in NUMBERS], pa.binary(4)), bytes, bytes),
    "decimal9": (pa.array(CENTS, pa.decimal128(9, 2)), unpack("<i"), lambda v: int(v * 100)),
    "decimal30": (pa.array(CENTS, pa.decimal128(30, 2)), fixed_decimal, lambda v: int(v * 100)),
    "blocks": (pa.array([None if k // 100 % 2 else k for k in range(ROWS)]), unpack("<q"), int),
    "null": (pa.nulls(ROWS, pa.int64()), unpack("<q"), int),
}  # fmt: skip


@pytest.fixture(scope="module", params=["1.0", "2.0"])
def file(request: pytest.FixtureRequest) -> Written:
    table = pa.table({name: array for name, (array, _, _) in CASES.items()})
    return write(table, max_rows_per_page=PAGE, row_group_size=GROUP, data_page_version=request.param)


def groups(array: pa.Array) -> list[list[Any]]:
    values = array.to_pylist()
    return [values[k : k + GROUP] for k in range(0, ROWS, GROUP)]


@pytest.mark.parametrize("name", CASES)
def test_bounds_of_pages_and_chunks(file: Written, name: str) -> None:
    array, stored, domain = CASES[name]
    column = list(CASES).index(name)
    for g, values in enumerate(groups(array)):
        index, places = file.column_index(g, column), file.offset_index(g, column).page_locations
        starts = [p.first_row_index for p in places]
        assert starts == list(range(0, len(values), PAGE))
        mins, maxs = [], []
        for k, start in enumerate(starts):
            page = values[start : start + PAGE]
            there = [domain(v) for v in page if v is not None]
            assert index.null_counts[k] == len(page) - len(there)
            assert index.null_pages[k] == (not there)
            if there:
                assert stored(index.min_values[k]) == min(there)
                assert stored(index.max_values[k]) == max(there)
                mins.append(min(there))
                maxs.append(max(there))
            else:
                assert (index.min_values[k], index.max_values[k]) == (b"", b"")
        rising = mins == sorted(mins) and maxs == sorted(maxs)
        falling = mins == sorted(mins, reverse=True) and maxs == sorted(maxs, reverse=True)
        assert index.boundary_order == (1 if rising else 2 if falling else 0)
        check_chunk(file.chunk(g, column).meta_data.statistics, values, stored, domain)


def check_chunk(stats: Any, values: list[Any], stored: Callable[[bytes], Any], domain: Callable[[Any], Any]) -> None:
    there = [domain(v) for v in values if v is not None]
    assert stats.null_count == len(values) - len(there)
    assert (stats.min, stats.max) == (None, None)
    if not there:
        assert (stats.min_value, stats.max_value, stats.is_min_value_exact) == (None, None, None)
        return
    assert (stored(stats.min_value), stored(stats.max_value)) == (min(there), max(there))
    zero = 0 in (min(there), max(there)) and isinstance(min(there), float)
    assert (stats.is_min_value_exact, stats.is_max_value_exact) == (True, True) or zero
    if stats.distinct_count is not None:
        assert stats.distinct_count == len(set(there))


def test_orders_are_recognised(file: Written) -> None:
    names = list(CASES)
    assert [file.column_index(0, names.index(n)).boundary_order for n in ("sorted", "falling", "int64")] == [1, 2, 0]


def test_peers_read_the_same_statistics(file: Written) -> None:
    metadata = pq.ParquetFile(io.BytesIO(file.data)).metadata
    for name in ("int64", "uint32", "string", "decimal9", "date"):
        values = [v for v in groups(CASES[name][0])[1] if v is not None]
        stats = metadata.row_group(1).column(list(CASES).index(name)).statistics
        assert (stats.min, stats.max) == (min(values), max(values))


def test_floats() -> None:
    nan, inf = math.nan, math.inf
    pages = [[1.0, nan, -2.0], [0.0, 3.0, nan], [-0.0, -1.0, -0.0], [inf, -inf, nan], [None, 5.0, None]]
    for kind, code in ((pa.float64(), "<d"), (pa.float32(), "<f"), (pa.float16(), "<e")):
        array = pa.array(np.array([[0 if v is None else v for v in p] for p in pages]).reshape(-1), pa.float64())
        mask = np.array([v is None for p in pages for v in p])
        array = pa.array(array.to_numpy().astype(kind.to_pandas_dtype()), kind, mask=mask)
        file = write(pa.table({"x": array}), max_rows_per_page=3)
        index, stats = file.column_index(0, 0), file.chunk(0, 0).meta_data.statistics
        assert index.nan_counts == [1, 1, 0, 1, 0]
        assert [unpack(code)(m) for m in index.min_values] == [-2.0, 0.0, -1.0, -inf, 5.0]
        assert [unpack(code)(m) for m in index.max_values] == [1.0, 3.0, 0.0, inf, 5.0]
        # A zero minimum is -0.0, a zero maximum +0.0, whatever occurred.
        assert math.copysign(1, unpack(code)(index.min_values[1])) == -1
        assert math.copysign(1, unpack(code)(index.max_values[2])) == 1
        assert (stats.nan_count, unpack(code)(stats.min_value), unpack(code)(stats.max_value)) == (3, -inf, inf)


def test_a_page_of_nan_has_no_column_index() -> None:
    file = write({"x": np.array([1.0, 2.0, math.nan, math.nan])}, max_rows_per_page=2)
    assert file.column_index(0, 0) is None
    assert len(file.offset_index(0, 0).page_locations) == 2
    stats = file.chunk(0, 0).meta_data.statistics
    assert (stats.nan_count, stats.min_value, stats.max_value) == (2, struct.pack("<d", 1.0), struct.pack("<d", 2.0))


@pytest.mark.parametrize("length", [64, 10, 0])
def test_long_bounds_are_cut(length: int) -> None:
    low, high = "a" * 200, "zé" * 100
    options = {"column_index_truncate_length": length, "statistics_truncate_length": length}
    file = write({"x": [low, high, "m"]}, **options)
    index, stats = file.column_index(0, 0), file.chunk(0, 0).meta_data.statistics
    for smallest, largest in ((index.min_values[0], index.max_values[0]), (stats.min_value, stats.max_value)):
        assert len(smallest) <= (length or 200)
        assert smallest <= low.encode()
        assert largest >= high.encode()
        assert len(largest) <= (length or 300)
        largest.decode()
    exact = length == 0
    assert (stats.is_min_value_exact, stats.is_max_value_exact) == (exact, exact)
    short = write({"x": ["b", "a", "c"]}, **options).chunk(0, 0).meta_data.statistics
    assert (short.min_value, short.max_value) == (b"a", b"c")
    assert (short.is_min_value_exact, short.is_max_value_exact) == (True, True)


def test_index_of_long_shared_prefixes_stays_small() -> None:
    prefix = "https://example.org/" + "path/" * 100
    rows = 20_000
    file = write({"url": [f"{prefix}{k:08d}" for k in range(rows)]}, max_rows_per_page=100, use_dictionary=False)
    chunk = file.chunk(0, 0)
    pages = rows // 100
    assert len(file.offset_index(0, 0).page_locations) == pages
    assert chunk.column_index_length <= pages * (2 * 64 + 24)
    assert chunk.offset_index_length <= pages * 24


def test_size_statistics() -> None:
    texts = sometimes([f"{k}" * (k % 5) for k in range(ROWS)])
    lists = [None if k % 5 == 0 else [None if j == 1 else j for j in range(k % 4)] for k in range(ROWS)]
    table = pa.table({"s": texts, "l": pa.array(lists, pa.list_(pa.int64())), "r": range(ROWS)})
    file = write(table, max_rows_per_page=PAGE, row_group_size=GROUP)
    for g in range(3):
        part = texts[g * GROUP : (g + 1) * GROUP]
        size = file.chunk(g, 0).meta_data.size_statistics
        lengths = [len(t.encode()) if t is not None else 0 for t in part]
        assert size.unencoded_byte_array_data_bytes == sum(lengths)
        assert size.definition_level_histogram == [part.count(None), len(part) - part.count(None)]
        pages = file.offset_index(g, 0).unencoded_byte_array_data_bytes
        assert pages == [sum(lengths[k : k + PAGE]) for k in range(0, len(part), PAGE)]
        check_levels(file, g, lists[g * GROUP : (g + 1) * GROUP])
    assert file.chunk(0, 2).meta_data.size_statistics.unencoded_byte_array_data_bytes is None
    assert file.offset_index(0, 2).unencoded_byte_array_data_bytes is None


def check_levels(file: Written, g: int, rows: list[Any]) -> None:
    """Levels of an optional list of optional items, by hand: 0 null, 1 empty, 2 null item, 3 item."""
    definition, repetition = [], []
    for start in range(0, len(rows), PAGE):
        d, r = [0] * 4, [0] * 2
        for row in rows[start : start + PAGE]:
            for k, item in enumerate(row or [0]):
                d[0 if row is None else 1 if not row else 2 if item is None else 3] += 1
                r[min(k, 1)] += 1
        definition.append(d)
        repetition.append(r)
    index, size = file.column_index(g, 1), file.chunk(g, 1).meta_data.size_statistics
    assert index.definition_level_histograms == [n for d in definition for n in d]
    assert index.repetition_level_histograms == [n for r in repetition for n in r]
    assert size.definition_level_histogram == [sum(n) for n in zip(*definition, strict=True)]
    assert size.repetition_level_histogram == [sum(n) for n in zip(*repetition, strict=True)]
    # A leaf's nulls are null ancestors and empty lists too.
    assert index.null_counts == [sum(d[:3]) for d in definition]
