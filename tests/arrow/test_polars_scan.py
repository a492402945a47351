"""``pyparq.polars.scan``: the rows that polars itself finds, and no more bytes read than the query needs."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from counting import CountingFile
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

import pyparq
from pyparq.filters.polars_expressions import as_filters

pl = pytest.importorskip("polars")
col = pl.col

DAY = dt.datetime(2020, 1, 1)


def frame() -> Any:
    """Every type that has literals, with nulls, NaN, both zeros and extreme integers; names with dots."""
    words = ["a", "b", "", "zebra", None, "\u00e9"]
    floats = [0.1, -0.0, 0.0, float("nan"), None, 1e300]
    return pl.DataFrame(
        {
            "i": pl.Series([1, -2, 3, 2**53 + 1, None, 2**63 - 1], dtype=pl.Int64),
            "small": pl.Series([1, 2, -128, 127, None, 0], dtype=pl.Int8),
            "u": pl.Series([1, 2, 255, 2**64 - 1, None, 0], dtype=pl.UInt64),
            "f": pl.Series([0.1, -0.0, 0.0, float("nan"), None, 3.5], dtype=pl.Float32),
            "g": floats,
            "s": words,
            "b": [True, False, None, True, False, None],
            "d": [dt.date(2020, 1, k) for k in range(1, 7)],
            "ns": pl.Series(np.arange(6) + 1_577_836_800_000_000_000).cast(pl.Datetime("ns")),
            "tz": pl.Series([DAY + dt.timedelta(hours=k) for k in range(6)]).dt.replace_time_zone("Asia/Tokyo"),
            "tm": [dt.time(1, 2, 3, k) for k in range(6)],
            "dec": pl.Series([Decimal("1.20"), Decimal("-3.00"), None, Decimal("0.00")] + [Decimal("1.25")] * 2,
                             dtype=pl.Decimal(9, 2)),
            "bin": [b"a", b"", None, b"\xff", b"b", b"a"],
            "cat": pl.Series(["b", "a", None, "b", "c", "a"], dtype=pl.Categorical),
            "st": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, {"x": 3, "y": None}] * 2,
            "li": [[1, 2], [], None, [3], [None], [1]],
            "a.b": [1, 2, 3, 4, 5, 6],
        }
    )  # fmt: skip


FRAME = frame()
STORED = written(FRAME, row_group_size=2)

PUSHED = {
    "ints": col("i") > 2,
    "an int turned": pl.lit(2) <= col("i"),
    "ints and a float": col("i") > 2.5,
    "an int of another width": col("small") == pl.lit(1, dtype=pl.Int64),
    "float32": col("f") <= 0.1,
    "NaN": col("g").is_nan(),
    "no NaN": col("g").is_not_nan(),
    "above NaN": col("g") > 1.0,
    "zero": col("g") == 0.0,
    "text": col("s") == "zebra",
    "not that text": col("s") != "zebra",
    "beginning": col("s").str.starts_with("ze"),
    "bool": col("b"),
    "not bool": ~col("b"),
    "dates": col("d") >= dt.date(2020, 1, 3),
    "nanoseconds": col("ns") > np.datetime64(1_577_836_800_000_000_003, "ns"),
    "zones": col("tz") < dt.datetime(2020, 1, 1, 3, tzinfo=ZoneInfo("Asia/Tokyo")),
    "times": col("tm") > dt.time(1, 2, 3, 2),
    "decimals": col("dec") >= Decimal("1.20"),
    "decimals and an int": col("dec") > 1,
    "bytes": col("bin") == b"a",
    "a category": col("cat") == "a",
    "a field": col("st").struct.field("x") == 3,
    "null": col("i").is_null(),
    "a null field": col("st").struct.field("y").is_null(),
    "not null": col("s").is_not_null(),
    "in": col("i").is_in([1, 3, 99]),
    "in with null": col("s").is_in(["a", None]),
    "not in": ~col("s").is_in(["a", "b"]),
    "between": col("i").is_between(1, 3, closed="left"),
    "and": (col("i") > 0) & (col("s") == "a"),
    "or": (col("i") == 1) | col("g").is_nan(),
    "and with what is not known": (col("i") > 0) & (col("s").str.len_chars() == 1),
    "not or": ~((col("i") == 1) | (col("s") == "b")),
    "constants": col("i") > pl.lit(1) + 1,
    "missing": col("i").eq_missing(3),
    "missing null": col("i").eq_missing(None),  # polars asks for null then
    "a dotted name": col("a.b") == 2,
    "not in with null": ~col("s").is_in(["a", None]),
    "not missing": ~col("i").eq_missing(3),
    "a date and a time": col("d") > dt.datetime(2020, 1, 2, 3),
    "equal NaN": col("g") == float("nan"),
    "in NaN": col("g").is_in([float("nan"), 0.1]),
    "below infinity": col("g") < float("inf"),
    "not in nothing": ~col("i").is_in([]),
    "an unsigned int above a negative one": col("u") > -1,
}
LEFT_TO_POLARS = {
    "two columns": col("i") == col("a.b"),
    "arithmetic": (col("i") // 2) > 0,
    "or with what is not known": (col("i") > 0) | (col("s").str.len_chars() == 1),
    "not and with what is not known": ~((col("i") > 0) & (col("s").str.len_chars() == 1)),
    "categories in order": col("cat") > "a",
    "a list": col("li").list.len() > 1,
    "a null list": col("li").is_null(),
    "a large float": col("i") > 1e18,
    "a function": col("i").map_elements(lambda v: v == 3, return_dtype=pl.Boolean),
    "ends": col("s").str.ends_with("a"),
}


def both(predicate: Any) -> tuple[Any, Any]:
    return pyparq.polars.scan(STORED).filter(predicate).collect(), FRAME.filter(predicate)


@pytest.mark.parametrize("name", PUSHED | LEFT_TO_POLARS)
def test_the_rows_are_those_that_polars_finds(name: str) -> None:
    found, expected = both((PUSHED | LEFT_TO_POLARS)[name])
    assert found.equals(expected)
    assert found.schema == expected.schema


class Handed:
    """What polars hands to an IO source for a query."""

    def __init__(self) -> None:
        self.predicate: Any = None

    def __call__(self, columns: Any, predicate: Any, num_rows: Any, batch_size: Any) -> Any:
        self.predicate = predicate
        yield FRAME if predicate is None else FRAME.filter(predicate)


def handed_over(predicate: Any) -> Any:
    from polars.io.plugins import register_io_source

    source = Handed()
    register_io_source(source, schema=FRAME.schema).filter(predicate).collect()
    return source.predicate


@pytest.mark.parametrize("name", PUSHED | LEFT_TO_POLARS)
def test_what_is_pushed_down(name: str) -> None:
    predicate = handed_over((PUSHED | LEFT_TO_POLARS)[name])
    pushed = None if predicate is None else as_filters(predicate, FRAME.schema)
    assert (pushed is not None) == (name in PUSHED), predicate
    if pushed is not None:  # it lets no row through too few
        found = pyparq.read_table(STORED, filters=pushed, columns=["a.b"])["a.b"].to_pylist()
        assert set(FRAME.filter(predicate)["a.b"]) <= set(found)


CONDITIONS = st.sampled_from([*PUSHED.values(), *LEFT_TO_POLARS.values()])
ANY = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] & p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        inner.map(lambda p: ~p),
    ),
    max_leaves=5,
)


@settings(max_examples=150)
@given(predicate=ANY, rows=st.none() | st.integers(0, 7))
def test_any_predicate(predicate: Any, rows: int | None) -> None:
    ours, theirs = pyparq.polars.scan(STORED), FRAME.lazy()
    if rows is not None:
        ours, theirs = ours.head(rows), theirs.head(rows)
    assert ours.filter(predicate).collect().equals(theirs.filter(predicate).collect())


# ---- bytes

ROWS = 40_000


@pytest.fixture(scope="module")
def large() -> bytes:
    rng = np.random.default_rng(1)
    return written(
        {"id": np.arange(ROWS), "key": rng.permutation(ROWS), "x": rng.random(ROWS),
         "text": [f"{k:08}" * 4 for k in range(ROWS)]},
        row_group_size=10_000, max_rows_per_page=500, compression="none", bloom_filters=["key"], use_dictionary=False,
    )  # fmt: skip


def cost(data: bytes, query: Any, **options: Any) -> tuple[Any, int]:
    """The result of a query, and the bytes that it read beside the footer."""
    file = CountingFile(data)
    scan = pyparq.polars.scan(file)
    scan.collect_schema()
    file.reads.clear()
    return query(scan).collect(**options), file.num_bytes


def test_columns_that_are_not_needed_are_not_read(large: bytes) -> None:
    found, read = cost(large, lambda lf: lf.select(col("x").sum()))
    assert 8 * ROWS <= read < 8 * ROWS + 4_000
    assert found.item() == pytest.approx(pyparq.read_table(large)["x"].to_numpy().sum())
    found, read = cost(large, lambda lf: lf.select(pl.len()))
    assert found.item() == ROWS
    assert read <= 8 * ROWS + 4_000
    found, read = cost(large, lambda lf: lf.with_row_index().select("index"))
    assert found["index"].to_list() == list(range(ROWS))
    assert read == 0


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_that_cannot_match_are_not_read(large: bytes, engine: str) -> None:
    def by_range(lf: Any) -> Any:
        return lf.filter(col("id").is_between(20_100, 20_200)).select("text")

    found, read = cost(large, by_range, engine=engine)
    assert found.height == 101
    assert read < 60_000  # a page of 500 texts, and page indexes
    key = int(pyparq.read_table(large)["key"][12_345])
    found, read = cost(large, lambda lf: lf.filter(col("key") == key).select("x"), engine=engine)
    assert found.height == 1
    assert read < 250_000
    _, read = cost(large, lambda lf: lf.filter(col("key") == ROWS + 5), engine=engine)
    assert read < 1_000


def test_a_limit_reads_the_first_pages(large: bytes) -> None:
    found, read = cost(large, lambda lf: lf.head(3))
    assert found["id"].to_list() == [0, 1, 2]
    assert read < 40_000
    found, read = cost(large, lambda lf: lf.head(3).filter(col("id") > 1))
    assert found["id"].to_list() == [2]
    assert read < 40_000


# ---- sources


def test_folders_globs_and_datasets(tmp_path: Path) -> None:
    for year in (2024, 2025):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        for part in range(2):
            rows = {"n": list(range(part * 10, part * 10 + 10)), "s": [f"{year}-{k}" for k in range(10)]}
            pyparq.write_table(rows, folder / f"{part}.parquet")
    query = (col("year") == 2025) & (col("n") >= 18)
    expected = {"n": [18, 19], "s": ["2025-8", "2025-9"], "year": [2025, 2025]}
    sources = tmp_path, str(tmp_path / "year=*"), pyparq.dataset(tmp_path)
    for source in sources:
        assert pyparq.polars.scan(source).filter(query).collect().to_dict(as_series=False) == expected
    files = sorted(str(path) for path in tmp_path.rglob("*.parquet"))
    assert pyparq.polars.scan(files).select(pl.len()).collect().item() == 40
    named = pyparq.polars.scan(tmp_path, filename=True).filter(query).collect()
    assert named["filename"].to_list() == [files[3]] * 2
    with pytest.raises(pyparq.OptionError, match="belongs to the dataset"):
        pyparq.polars.scan(pyparq.dataset(tmp_path), filename=True)
    with pytest.raises(FileNotFoundError):
        pyparq.polars.scan(tmp_path / "nothing")


def test_errors_of_files_reach_the_user(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(STORED[: len(STORED) // 2])
    with pytest.raises(pyparq.CorruptFileError, match="not a Parquet file"):
        pyparq.polars.scan(path)
    spoiled = bytearray(written({"n": list(range(100))}, compression="none", use_dictionary=False))
    spoiled[200] ^= 1
    with pytest.raises(pyparq.ChecksumError, match="the page does not match its CRC"):
        pyparq.polars.scan(bytes(spoiled)).collect()


def test_queries_can_be_run_again_and_together() -> None:
    lf = pyparq.polars.scan(STORED)
    assert lf.collect().equals(FRAME)
    joined = lf.join(lf.select("i", pl.col("s").alias("t")), on="i").collect()
    assert joined.height == 5
    one, other = pl.collect_all([lf.filter(col("i") > 1), lf.select("s")])
    assert one.equals(FRAME.filter(col("i") > 1))
    assert other.equals(FRAME.select("s"))


def test_no_rows() -> None:
    data = written(FRAME.head(0))
    assert pyparq.polars.scan(data).collect().equals(FRAME.head(0))
    assert pyparq.polars.scan(STORED).filter(col("i") == 77).select("s").collect().shape == (0, 1)


def test_a_file_of_polars(tmp_path: Path) -> None:
    sink = io.BytesIO()
    FRAME.write_parquet(sink)
    assert pyparq.polars.scan(sink.getvalue()).collect().equals(FRAME)


# ---- other tools over a scan


def test_duckdb_reads_a_scan_and_pushes_nothing_down(large: bytes) -> None:
    """docs/tools.md: give the filter and the columns to the scan."""
    duckdb = pytest.importorskip("duckdb")
    file = CountingFile(large)
    with pyparq.ParquetFile(file) as parquet:
        file.reads.clear()
        scan = parquet.scan()
        assert duckdb.sql("select count(*) from scan where id = 77").fetchall() == [(1,)]
        everything = file.num_bytes
        file.reads.clear()
        scan = parquet.scan(["id", "x"], pyparq.col("id") == 77)  # noqa: F841
        assert duckdb.sql("select count(x) from scan").fetchall() == [(1,)]
    assert everything > 0.9 * len(large)
    assert file.num_bytes < 20_000


def test_pandas_in_two_lines(large: bytes) -> None:
    pytest.importorskip("pandas")
    found = pyparq.read_table(large, columns=["id", "x"], filters=pyparq.col("id") < 3).to_pandas()
    assert list(found["id"]) == [0, 1, 2]
    with pyparq.ParquetFile(large) as file:
        parts = [batch.to_pandas() for batch in file.scan(["id"], pyparq.col("id") < 30_000).iter_batches()]
    assert sum(len(part) for part in parts) == 30_000
