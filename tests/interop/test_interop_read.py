"""Files that pyarrow, DuckDB, polars and DataFusion write, read by pyparq: the same values, and the same rows when
their statistics, page indexes and Bloom filters are used to skip."""

from __future__ import annotations

import math
import operator
import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interop_peers import OPTIONS, WRITERS, compare, with_encodings, with_pyparq
from interop_tables import FLAT, canonical, encodings, is_read_as, nested_tables, spread, tables
from test_interop_write import FEW

import pyparq
from pyparq import col

CANNOT_WRITE: dict[str, set[str]] = {
    "pyarrow": set(),
    "duckdb": {"float16"},
    "polars": {"date64"},  # becomes a timestamp
    "datafusion": {"date64", "time_s", "ts_s", "ts_s_utc"},  # become plain integers
}
NAMES = {writer: sorted(set(FLAT) - without) for writer, without in CANNOT_WRITE.items()}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("theirs") / "theirs.parquet"


def write(writer: str, table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    path.unlink(missing_ok=True)
    WRITERS[writer](table, path, options)


def write_and_check(writer: str, table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    write(writer, table, path, options)
    ours = with_pyparq(path)
    compare(ours, table, "pyparq")
    stated = pq.ParquetFile(path).schema_arrow
    assert [f.nullable for f in ours.schema] == [f.nullable for f in stated]
    for field, said in zip(ours.schema, stated, strict=True):
        assert is_read_as(field.type, said.type), field.name


@pytest.mark.sweep(4)
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=40, **FEW)
@given(data=st.data())
def test_flat_columns(path: Path, writer: str, data: st.DataObject) -> None:
    write_and_check(writer, data.draw(tables(NAMES[writer])), path, data.draw(OPTIONS[writer]))


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb", "datafusion"])
@settings(max_examples=40, **FEW)
@given(data=st.data())
def test_every_encoding(path: Path, writer: str, data: st.DataObject) -> None:
    table = data.draw(tables(NAMES[writer]))
    options = with_encodings(writer, data.draw(OPTIONS[writer]), data.draw(encodings(table)))
    write_and_check(writer, table, path, options)


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=30, **FEW)
@given(data=st.data())
def test_nested_columns(path: Path, writer: str, data: st.DataObject) -> None:
    write_and_check(writer, data.draw(nested_tables()), path, data.draw(OPTIONS[writer]))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=600, **{**FEW, "derandomize": False})
@given(data=st.data())
def test_many_columns(path: Path, writer: str, data: st.DataObject) -> None:
    table = data.draw(st.one_of(tables(NAMES[writer]), nested_tables()))
    write_and_check(writer, table, path, data.draw(OPTIONS[writer]))


@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=6, **FEW)
@given(data=st.data())
def test_many_rows(path: Path, writer: str, data: st.DataObject) -> None:
    table = spread(data.draw(tables(NAMES[writer])), data.draw(st.integers(1_000, 4_000)))
    write_and_check(writer, table, path, data.draw(OPTIONS[writer]))


# ---- skipping by their indexes ---------------------------------------------------------------------------------------

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Truth = list[bool | None]


def rank(value: Any) -> Any:
    """Where a canonical value stands among others of its column: NaN above all, the zeros equal."""
    if value == "nan":
        return (1, 0.0)
    return value.encode() if isinstance(value, str) else value


def ranks(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if pa.types.is_floating(column.type):
        numbers = [None if v is None else float(v) for v in column.to_pylist()]
        return [None if v is None else (1, 0.0) if math.isnan(v) else (0, v) for v in numbers]
    return [None if v is None else rank(v) for v in canonical(column)]


def unknown_or(truth: bool, value: Any) -> bool | None:
    return None if value is None else truth


@st.composite
def comparisons(draw: st.DrawFn, table: pa.Table) -> tuple[Any, Truth]:
    """An expression on one column, with a literal that may or may not occur, and what it is for each row."""
    name = draw(st.sampled_from(table.column_names))
    kind, values = FLAT[name], ranks(table[name])
    which = draw(st.sampled_from([*COMPARE, "isin", "is_null", "is_valid"]))
    if which in ("is_null", "is_valid") or name == "null":
        absent = which != "is_valid"
        return col(name).is_null() if absent else col(name).is_valid(), [(v is None) == absent for v in values]
    there = [row for row, value in enumerate(values) if value is not None]
    literals = [kind.array([draw(kind.any)])]
    literals += [table[name].slice(draw(st.sampled_from(there)), 1)] if there else []
    if which == "isin":
        wanted = [ranks(part)[0] for part in literals]
        return col(name).isin([literal(part) for part in literals]), [unknown_or(v in wanted, v) for v in values]
    picked = draw(st.sampled_from(literals))
    bound, compare_ = ranks(picked)[0], COMPARE[which]
    expression = compare_(col(name), literal(picked))
    return expression, [None if v is None else compare_(v, bound) for v in values]


def literal(part: pa.Array | pa.ChunkedArray) -> Any:
    """The one value as a user writes it."""
    (value,) = part.to_pylist()
    return (
        value.bytes if isinstance(value, uuid.UUID) else value
    )  # bytes fit a column that lost its UUID annotation too


@st.composite
def predicates(draw: st.DrawFn, table: pa.Table) -> tuple[Any, Truth]:
    expression, truth = draw(comparisons(table))
    for step in draw(st.lists(st.sampled_from(["and", "or", "not"]), max_size=2)):
        if step == "not":
            expression, truth = ~expression, [None if t is None else not t for t in truth]
            continue
        other, others = draw(comparisons(table))
        decisive = step == "or"
        expression = expression | other if decisive else expression & other
        pairs = zip(truth, others, strict=True)
        truth = [decisive if decisive in p else None if None in p else not decisive for p in pairs]
    return expression, truth


ASKED = {writer: [n for n in names if n != "time_ns"] for writer, names in NAMES.items()}
"""Python's times have no nanoseconds to ask for."""
INDEXED: dict[str, dict[str, Any]] = {
    "pyarrow": {"write_page_index": True, "write_statistics": True},
    "duckdb": {},
    "polars": {"statistics": "full"},
    "datafusion": {"statistics_enabled": "page", "bloom_filter_on_write": True},
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=50, **FEW)
@given(data=st.data())
def test_filters(path: Path, writer: str, data: st.DataObject) -> None:
    """The rows that a filter selects, by their statistics, page indexes and Bloom filters."""
    table = data.draw(tables(ASKED[writer]))
    options = {**data.draw(OPTIONS[writer]), **INDEXED[writer]}
    if writer == "pyarrow":
        names = [f.name for f in table.schema if f.name not in ("bool", "null")]
        options["bloom_filter_options"] = {name: {"ndv": 50, "fpp": 0.01} for name in names}
    write(writer, table, path, options)
    for _ in range(4):
        expression, truth = data.draw(predicates(table))
        found = pyparq.read_table(path, filters=expression).to_arrow()
        compare(found, table, f"pyparq where {expression}", [row for row, true in enumerate(truth) if true])


@pytest.mark.parametrize("writer", ["pyarrow", "datafusion"])
@settings(max_examples=30, **FEW)
@given(data=st.data())
def test_bloom_filters_have_the_same_bits(path: Path, writer: str, data: st.DataObject) -> None:
    """Filters of the same values and size, by them and by us: what is hashed for a type is one thing to all."""
    table = data.draw(tables([n for n in NAMES[writer] if n not in ("bool", "null")]))
    options: dict[str, Any] = {"bloom_filter_on_write": True, "bloom_filter_ndv": 500}
    if writer == "pyarrow":
        filters = {name: {"ndv": 500} for name in table.column_names}
        options = {"bloom_filter_options": filters, "store_decimal_as_integer": True}
    write(writer, table, path, options)
    theirs = bitsets(path)
    stored = [c.physical_type for c in pq.ParquetFile(path).schema]
    if table.num_rows == 0:
        return
    with pyparq.ParquetFile(path) as file:
        sizes = {name: {"bytes": file.bloom_filter(0, name).num_bytes} for name in theirs}  # type: ignore[union-attr]
    pyparq.write_table(table, path, bloom_filter_options=sizes)
    ours = bitsets(path)
    assert set(ours) == set(theirs) == set(table.column_names)
    for name, before, now in zip(ours, stored, pq.ParquetFile(path).schema, strict=True):
        if before != now.physical_type:
            assert (name, before) == ("decimal1_0", "INT64")  # DataFusion's way
        elif name.startswith("float"):  # both zeros and the usual NaN are in ours
            assert ours[name] & theirs[name] == theirs[name]
            assert (ours[name] ^ theirs[name]).bit_count() <= 16
        else:
            assert ours[name] == theirs[name], name


def bitsets(path: Path) -> dict[str, int]:
    with pyparq.ParquetFile(path) as file:
        names = [".".join(leaf.path) for leaf in file.tree.leaves]
        found = {name: file.bloom_filter(0, name) for name in names} if file.num_row_groups else {}
    return {name: int.from_bytes(f.bitset.tobytes(), "little") for name, f in found.items() if f is not None}


ROWS = 40_000
SHUFFLED = [k * 7919 % 5_003 * 2 for k in range(ROWS)]
USED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "pyarrow": (
        {
            "write_page_index": True, "row_group_size": 10_000, "max_rows_per_page": 1_000, "use_dictionary": ["few"],
            "bloom_filter_options": {"id": {"ndv": 10_000}, "text": {"ndv": 10_000}},
        },
        {"bloom", "pages", "dictionary"},
    ),
    "duckdb": ({"row_group_size": 10_240, "dictionary_size_limit": 9_000}, {"bloom", "dictionary"}),
    # polars does not say what its pages are encoded as.
    "polars": ({"row_group_size": 10_000, "data_page_size": 8_000}, {"pages"}),
    "datafusion": (
        {
            "max_row_group_size": 10_000, "data_page_row_count_limit": 1_000, "write_batch_size": 1_000,
            "dictionary_enabled": False, "bloom_filter_on_write": True,
        },
        {"bloom", "pages"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_their_indexes_are_used(path: Path, writer: str) -> None:
    """Fewer rows are looked at, by each kind of index that the writer makes, and the right ones are found."""
    table = pa.table({
        "row": range(ROWS), "id": SHUFFLED, "text": [f"{k:08d}" for k in SHUFFLED],
        "few": [k % 50 * 2 for k in range(ROWS)],
    })  # fmt: skip
    options, has = USED[writer]
    write(writer, table, path, options)

    def ask(filters: Any, **how: Any) -> tuple[list[int], int]:
        """The rows found, and how many rows could not be excluded before reading."""
        with pyparq.ParquetFile(path, **how) as file:
            scan = file.scan(["row"], filters)
            left = sum(stop - start for g in scan.plan().row_groups for start, stop in g.maybe)
            return scan.to_table().to_pydict()["row"], left

    none = {"use_statistics": False, "use_bloom_filters": False, "use_dictionaries": False, "use_page_index": False}
    assert ask(col("row") == 25_500, **none) == ([25_500], ROWS)
    assert ask(col("row") == 25_500, **{**none, "use_statistics": True})[1] <= 10_240
    found, left = ask(col("row").between(25_500, 25_509), **{**none, "use_page_index": True})
    assert found == list(range(25_500, 25_510))
    assert (left <= 4_000) == ("pages" in has)
    for name, absent, there in (("id", 17, SHUFFLED[123]), ("text", "00000017", f"{SHUFFLED[123]:08d}")):
        found, left = ask(col(name) == absent, **{**none, "use_bloom_filters": True})
        assert (found, left < ROWS) == ([], "bloom" in has)
        found, _ = ask(col(name) == there, **{**none, "use_bloom_filters": True})
        assert found == [row for row, value in enumerate(SHUFFLED) if value == SHUFFLED[123]]
    found, left = ask(col("few") == 33, **{**none, "use_dictionaries": True})
    assert (found, left) == ([], 0 if "dictionary" in has else ROWS)


# ---- forms of one writer ---------------------------------------------------------------------------------------------

MOMENTS = pa.array([0, None, -1, 2**62, -(2**62), 86_400 * 10**9 - 1], pa.timestamp("ns"))


def test_int96_timestamps(path: Path) -> None:
    """The old form: nanoseconds, no zone, and no bounds to be believed."""
    table = pa.table({"t": MOMENTS, "k": range(6)})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    compare(with_pyparq(path), table, "pyparq")
    found = pyparq.read_table(path, filters=col("t") < np.datetime64("1970-01-01T00:00:00"))
    assert found.to_pydict()["k"] == [2, 4]


def test_lists_of_old_writers(path: Path) -> None:
    """The element called "item", maps by pyarrow 1 rules."""
    table = pa.table(
        {"l": [[1, None], None, []], "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8()))}
    )
    pq.write_table(table, path, use_compliant_nested_type=False)
    compare(with_pyparq(path), table, "pyparq")


ARRAYS = {
    "numbers": "[[1, 2]::int[2], null, [3, 4], [null, 5], null]",
    "arrays": "[[[1, 2], [3, null]]::int[2][2], null, [null, [5, 6]], [null, null]]",
    "structs": "[[{'p': 1, 'q': 'x'}, null]::struct(p int, q varchar)[2], null, [{'p': null, 'q': 'y'}, null]]",
    "in lists": "[[[1, 2], null]::int[2][], null, [], [null], [[3, null]]]",
    "of lists": "[[[1, 2], null]::int[][2], null, [[], [3]], null, [null, []]]",
    "in structs": "[{'k': [1, 2], 'n': 1}::struct(k int[2], n int), null, {'k': null, 'n': 2}, {'k': null, 'n': null}]",
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_duckdb(path: Path, name: str, version: str) -> None:
    """It pads null lists of a fixed size with entries that are no items (pyarrow refuses them)."""
    rows = f"select unnest({ARRAYS[name]}) as x, generate_subscripts({ARRAYS[name]}, 1) as r"
    duckdb.sql(f"copy ({rows}) to '{path}' (format parquet, parquet_version '{version}')")
    expected = [(as_lists(x), r) for x, r in duckdb.sql(f"from '{path}'").fetchall()]
    with pyparq.ParquetFile(path) as file:
        found = file.read().to_pydict()
        assert list(zip(found["x"], found["r"], strict=True)) == expected
        nulls = file.read(["r"], col("x").is_null()).to_pydict()["r"]
        assert nulls == [r for x, r in expected if x is None]
        assert file.take([2, 1]).to_pydict()["x"] == [expected[2][0], expected[1][0]]


def as_lists(value: Any) -> Any:
    """DuckDB gives arrays as tuples."""
    if isinstance(value, dict):
        return {name: as_lists(member) for name, member in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_small_integers_without_annotations(path: Path) -> None:
    """What pyarrow writes for format version 1.0: uint32 as int64."""
    table = pa.table({"u": pa.array([2**32 - 1, None, 0], pa.uint32())})
    pq.write_table(table, path, version="1.0", store_schema=False)
    assert pyparq.read_table(path).to_pydict() == {"u": [2**32 - 1, None, 0]}


def test_many_batches_in_a_row_group(path: Path) -> None:
    """Pages of different sizes, a dictionary that stops in the middle, growing and shrinking."""
    parts = [pa.table({"s": [f"{k * j} {'x' * (k % 60)}" for j in range(k % 900)]}) for k in range(0, 4_000, 150)]
    parts = [part.cast(pa.schema([("s", pa.string())])) for part in parts]
    with pq.ParquetWriter(path, parts[0].schema, dictionary_pagesize_limit=20_000, data_page_size=9_000) as writer:
        for part in parts:
            for batch in part.to_batches():
                writer.write_batch(batch)
    compare(with_pyparq(path), pa.concat_tables(parts), "pyparq")


@pytest.mark.parametrize("writer", WRITERS)
def test_long_values(path: Path, writer: str) -> None:
    long = "é" * 500_000
    table = pa.table({"s": [long, None, long + "x", "", long], "b": [b"\xff" * 2_000_000, b"", None, b"x", b""]})
    write_and_check(writer, table, path, {})


@pytest.mark.parametrize("writer", WRITERS)
def test_names(path: Path, writer: str) -> None:
    names = ["a.b", "a", "a b", "ü", "\U0001f600", "a`b", "x" * 300, "line\nbreak", "a.b.c", "select"]
    write_and_check(writer, pa.table({name: [k, None] for k, name in enumerate(names)}), path, {})


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
def test_wide_differences_of_duckdb(path: Path, kind: pa.DataType) -> None:
    """It packs differences of INT32 in more than 32 bits, which pyarrow and DataFusion cannot read."""
    low = 0 if "u" in str(kind) else -(1 << kind.bit_width - 1)
    high = low + (1 << kind.bit_width) - 1
    table = pa.table({"x": pa.array([None if k % 7 == 0 else (low, high, k)[k % 3] for k in range(1_000)], kind)})
    write_and_check("duckdb", table, path, {"parquet_version": "v2", "dictionary_size_limit": 1})
    assert "DELTA_BINARY_PACKED" in pq.read_metadata(path).row_group(0).column(0).encodings


def test_null_pages_of_lists_by_arrow_rs(path: Path) -> None:
    """It calls a page of lists null when it has as many nulls as rows, whatever else it holds: no row may be lost."""
    lists = [[None, 5], [1, 2], [None, 7], None, [3], [None], []]
    table = pa.table({"l": pa.array(lists, pa.list_(pa.int64()))})
    write("datafusion", table, path, {"data_page_row_count_limit": 1, "write_batch_size": 1})
    with pyparq.ParquetFile(path) as file:
        index = file.column_index(0, 0)
    assert index is not None
    assert index.all_null.tolist() == [False, False, False, True, False, True, True]
    for value in (1, 2, 3, 5, 7, 8):
        found = pyparq.read_table(path, filters=col("l").contains(value))["l"].to_pylist()
        assert found == [items for items in lists if items and value in items], value
