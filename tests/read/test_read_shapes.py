"""Odd shapes of files and results: batches, row groups, nothing at all, one row, all null, huge values, any name; and
what the errors of a question say."""

from __future__ import annotations

import gc
import io
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import stable_id
from hostile_files import sample_table

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, FilterError, OptionError, ParquetError


def to_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture(scope="module")
def data() -> bytes:
    return to_bytes(sample_table(1000), row_group_size=300, store_schema=False)


@pytest.fixture(scope="module")
def whole(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def text(table: pa.Table) -> str:
    """For comparisons where NaN equals itself."""
    return str(table.to_pylist())


# ---- batches and row groups


@pytest.mark.parametrize("size", [None, 1, 7, 299, 300, 301, 5000])
def test_batch_sizes(data: bytes, whole: pa.Table, size: int | None) -> None:
    with pyparq.ParquetFile(data) as file:
        batches = list(file.scan().iter_batches(size))
        assert sum(b.num_rows for b in batches) == 1000
        limit = 300 if size is None else min(size, 300)
        assert max(b.num_rows for b in batches) == limit
        assert text(pyparq.Table(file.schema_arrow, batches).to_arrow()) == text(whole)


def test_batches_speak_arrow(data: bytes, whole: pa.Table) -> None:
    with pyparq.ParquetFile(data) as file:
        batches = list(file.scan(["sorted", "word"]).iter_batches(400))
    assert [b.schema.names for b in batches if b.schema] == [["sorted", "word"]] * len(batches)
    got = pa.Table.from_batches([pa.record_batch(b) for b in batches])
    assert got.to_pylist() == whole.select(["sorted", "word"]).to_pylist()
    assert batches[0].to_table().to_pydict() == got.slice(0, batches[0].num_rows).to_pydict()
    with pytest.raises(pyparq.errors.SchemaError, match="schema"):
        pyparq.Batch([], 0).to_table()


@pytest.mark.parametrize("size", [0, -1])
def test_impossible_batch_sizes(data: bytes, size: int) -> None:
    with pyparq.ParquetFile(data) as file, pytest.raises(OptionError, match="batch_size"):
        list(file.iter_batches(size))


def test_batches_of_a_filter(data: bytes, whole: pa.Table) -> None:
    with pyparq.ParquetFile(data) as file:
        scan = file.scan(["sorted", "word"], col("sorted").between(800, 2000))
        batches = list(scan.iter_batches(50))
        got = pyparq.Table(scan.schema, batches).to_arrow()
    keep = [800 <= s <= 2000 for s in whole.column("sorted").to_pylist()]
    assert got.to_pylist() == whole.select(["sorted", "word"]).filter(pa.array(keep)).to_pylist()
    assert all(b.num_rows <= 50 for b in batches)
    assert scan.explain().rows == got.num_rows


def test_batches_hold_one_row_group() -> None:
    """Ten row groups of 1.6 MB each: streaming holds one (and what decodes it), whatever their number."""
    table = pa.table({c: np.random.default_rng(k).random(1_000_000) for k, c in enumerate("ab")})
    raw = to_bytes(table, row_group_size=100_000, use_dictionary=False, compression="none")

    def peak(groups: list[int]) -> int:
        gc.collect()
        pyparq.release_unused()  # what other tests left is not counted, and would be used first
        tracemalloc.start()
        with pyparq.ParquetFile(raw, use_threads=False) as file:
            rows = sum(b.num_rows for b in file.scan(row_groups=groups).iter_batches())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows == 100_000 * len(groups)
        return found

    one, ten = peak([0]), peak(list(range(10)))
    assert one >= 1_600_000
    assert ten < one * 1.4  # the caller still holds a batch, the last third of a row group, while the next is made


def test_batches_may_be_left(data: bytes) -> None:
    """A reader that stops early leaves nothing behind."""
    with pyparq.ParquetFile(data) as file:
        batches = file.iter_batches(10)
        assert next(batches).num_rows == 10
        del batches
        assert file.read(["sorted"]).num_rows == 1000


@pytest.mark.parametrize("groups", [[0], [3], [2, 0], [1, 2, 3], []])
def test_row_groups(data: bytes, whole: pa.Table, groups: list[int]) -> None:
    """In the order asked for."""
    got = pyparq.read_table(data, row_groups=groups).to_arrow()
    want = pa.concat_tables([whole.slice(300 * g, 300) for g in groups]) if groups else whole.slice(0, 0)
    assert text(got) == text(want)
    assert got.schema.equals(want.schema)


@pytest.mark.parametrize("groups", [[4], [-1], [0, 0]])
def test_impossible_row_groups(data: bytes, groups: list[int]) -> None:
    with pytest.raises(OptionError, match="row group"):
        pyparq.read_table(data, row_groups=groups)


# ---- few rows, few columns


def test_zero_rows() -> None:
    schema = sample_table(3).schema
    raw = to_bytes(schema.empty_table())
    got = pyparq.read_table(raw).to_arrow()
    assert got.num_rows == 0
    assert got.schema.equals(pq.read_table(io.BytesIO(raw)).schema)
    assert pyparq.read_table(raw, filters=col("sorted") > 3).num_rows == 0
    with pyparq.ParquetFile(raw) as file:
        assert list(file.iter_batches()) == []
        assert file.scan(filters=col("word") == "a").explain().rows == 0
        assert file.scan().count() == 0


def test_row_groups_without_rows() -> None:
    """Empty row groups between others, as some writers leave them."""
    sink = io.BytesIO()
    schema = pa.schema({"n": pa.int64()})
    with pq.ParquetWriter(sink, schema, write_page_index=True) as writer:
        for part in ([], [1, 2], [], [3], []):
            writer.write_table(pa.table({"n": pa.array(part, pa.int64())}), row_group_size=10)
    raw = sink.getvalue()
    with pyparq.ParquetFile(raw) as file:
        assert file.num_row_groups == 5
        assert file.read().to_pydict() == {"n": [1, 2, 3]}
        assert file.read(filters=col("n") >= 2).to_pydict() == {"n": [2, 3]}
        assert [b.num_rows for b in file.scan().iter_batches()] == [2, 1]
        assert file.pages(0, "n") is not None


def test_zero_columns(data: bytes) -> None:
    """Rows without columns are still rows."""
    for filters, rows in ((None, 1000), (col("sorted") < 300, 100)):
        got = pyparq.read_table(data, columns=[], filters=filters)
        assert (got.num_rows, got.num_columns) == (rows, 0)
        assert got.to_pylist() == [{}] * rows
        assert got.to_arrow().num_columns == 0
    with pyparq.ParquetFile(data) as file:
        explained = file.scan(columns=[]).explain()
        assert (explained.rows, explained.pages_decoded) == (1000, 0)
        assert file.scan(columns=[]).count() == 1000
        assert sum(b.num_rows for b in file.scan(columns=[]).iter_batches(64)) == 1000


def test_a_file_without_columns() -> None:
    raw = to_bytes(pa.table({"n": [1, 2]}).select([]))
    assert pyparq.read_table(raw).shape == pq.read_table(io.BytesIO(raw)).shape


def test_one_row() -> None:
    table = sample_table(40).slice(30, 1)
    for version in ("1.0", "2.0"):
        raw = to_bytes(table, data_page_version=version, store_schema=False)
        assert text(pyparq.read_table(raw).to_arrow()) == text(pq.read_table(io.BytesIO(raw)))


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0", "compression": "zstd"}]
)
def test_all_nulls(options: dict[str, Any]) -> None:
    schema = sample_table(3).schema
    table = pa.table({f.name: pa.nulls(500, f.type) for f in schema})
    raw = to_bytes(table, write_page_index=True, data_page_size=100, write_batch_size=50, store_schema=False, **options)
    got = pyparq.read_table(raw).to_arrow()
    assert got.equals(pq.read_table(io.BytesIO(raw)))
    assert all(c.null_count == 500 for c in got.columns)
    for name in schema.names:
        assert pyparq.read_table(raw, ["tiny"], col(name).is_null()).num_rows == 500
        assert pyparq.read_table(raw, ["tiny"], col(name).is_valid()).num_rows == 0
    with pyparq.ParquetFile(raw) as file:
        explained = file.scan(["tiny"], col("word") == "a").explain()
        assert (explained.rows, explained.pages_decoded) == (0, 0)


def test_no_nulls_in_optional_and_required() -> None:
    columns = {"a": pa.array([1, 2, 3]), "s": pa.array(["x", "", "z"])}
    optional = pa.table(columns)
    required = pa.table(columns, schema=pa.schema([pa.field(n, c.type, nullable=False) for n, c in columns.items()]))
    for table in (optional, required):
        got = pyparq.read_table(to_bytes(table)).to_arrow()
        assert got.equals(table)
        assert got.schema.equals(table.schema)
        assert pyparq.read_table(to_bytes(table), filters=col("s").is_null()).num_rows == 0


# ---- large values, any name


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_huge_strings(compression: str) -> None:
    """10 MB in one value, between small ones."""
    values = ["a", "é" * 5_000_000, "", None, "z" * 10_000_000, "b"]
    for use_dictionary in (True, False):
        raw = to_bytes(pa.table({"s": values, "k": range(6)}), compression=compression, use_dictionary=use_dictionary)
        assert pyparq.read_table(raw).to_arrow().column("s").to_pylist() == values
        assert pyparq.read_table(raw, filters=col("s") == values[1]).to_pydict()["k"] == [1]
        assert pyparq.read_table(raw, ["k"], filters=col("s") > "z").to_pydict()["k"] == [1, 4]


NAMES = [
    "Größe",
    "列",
    "🦀 crab",
    "a.b",
    "with space",
    "",
    'quote"d',
    "line\nbreak",
    "CASE",
    "case",
    "ı",
    "e\u0301",
    "é",
]


def test_any_name() -> None:
    table = pa.table({name: pa.array([k, k + 1]) for k, name in enumerate(NAMES)})
    raw = to_bytes(table)
    got = pyparq.read_table(raw).to_arrow()
    assert got.equals(table)
    for k, name in enumerate(NAMES):
        assert pyparq.read_table(raw, columns=[name]).to_arrow().equals(table.select([name]))
        assert pyparq.read_table(raw, [name], filters=[(name, "==", k + 1)]).to_pydict() == {name: [k + 1]}
    with pyparq.ParquetFile(raw) as file:
        assert file.schema_arrow.names == NAMES


def test_columns_in_any_order(data: bytes, whole: pa.Table) -> None:
    names = ["word", "sorted", "flag"]
    got = pyparq.read_table(data, columns=names, filters=col("word") == "bee").to_arrow()
    assert got.column_names == names
    assert got.num_rows == whole.column("word").to_pylist().count("bee")
    assert pyparq.read_table(data, columns=["flag", "flag"]).column_names == ["flag"]


# ---- questions that make no sense


def test_unknown_columns(data: bytes) -> None:
    """Near matches, in columns and in filters, as an expression and as tuples; the file is named."""
    for ask in (
        lambda: pyparq.read_table(data, columns=["wrod"]),
        lambda: pyparq.read_table(data, filters=col("wrod") == "a"),
        lambda: pyparq.read_table(data, filters=[("wrod", "==", "a")]),
        lambda: pyparq.read_table(data, filters=[[("sorted", ">", 1)], [("wrod", "in", ["a"])]]),
    ):
        with pytest.raises(ColumnNotFoundError, match=r"no column 'wrod'; did you mean 'word'.*\[file <bytes>"):
            ask()
    with pytest.raises(ColumnNotFoundError, match="the columns are 'sorted', 'small'"):
        pyparq.read_table(data, columns=["zzzzzz"])
    with pytest.raises(KeyError):
        pyparq.read_table(data, columns=["zzzzzz"])
    with pyparq.ParquetFile(data) as file:
        with pytest.raises(ColumnNotFoundError, match="did you mean 'price'"):
            file.column_index(0, "prize")
        with pytest.raises(OptionError, match="column 99 does not exist"):
            file.bloom_filter(0, 99)
        with pytest.raises(ParquetError):
            file.metadata.row_group(4)


def test_columns_as_a_string(data: bytes) -> None:
    """It is one column."""
    assert pyparq.read_table(data, columns="word").column_names == ["word"]


@pytest.mark.parametrize(
    ("filters", "says"),
    [
        (col("sorted") == "five", "int64.*str 'five'"),
        (col("word") == 5, "string.*int 5"),
        (col("flag") > "yes", "bool.*str"),
        (col("day") == 5, "date.*int 5"),
        (col("time") >= object(), "timestamp.*object"),
        (col("price") == [1], "decimal.*list"),
        ([("float", "==", None)], "is_null"),
        (col("sorted").isin(["a", 1]), "int64.*str 'a'"),
        (col("fixed") == 1.5, "fixed.*float"),
        ([("sorted", "~", 1)], "operator '~'"),
        ([("sorted", "==")], "tuple"),
        ("sorted >", "cannot be parsed"),
        (3, "expression"),
        ([], "empty"),
    ],
    ids=stable_id,
)
def test_wrong_literals(data: bytes, filters: Any, says: str) -> None:
    """The column, its type, and what was given; before anything is read."""
    with pytest.raises(FilterError, match=says):
        pyparq.read_table(data, filters=filters)


def test_python_operators_on_expressions() -> None:
    with pytest.raises(TypeError, match="&"):
        bool((col("a") > 1) and (col("b") < 2))
    with pytest.raises(TypeError):
        bool(1 < col("a") < 3)


def test_unknown_options(data: bytes) -> None:
    with pytest.raises(OptionError, match="did you mean 'use_threads'"):
        pyparq.read_table(data, use_thread=False)
    with pytest.raises(OptionError, match="tail_size"):
        pyparq.read_table(data, tail_size=0)
