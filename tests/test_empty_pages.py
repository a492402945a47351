"""Data pages that hold no value: one rule for reader, index builder and verification (pyparq/index/page_index.py)."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forged import Forged
from hostile_files import nested_table
from written import written

import pyparq
from pyparq import col
from pyparq.index.row_ranges import RowRanges, read_along

VERSIONS = ["1.0", "2.0"]


def stored(version: str, indexes: bool) -> bytes:
    """Tiny batches make pyarrow end pages that hold nothing."""
    target = io.BytesIO()
    pq.write_table(
        nested_table(), target, data_page_version=version, write_page_index=indexes, row_group_size=240,
        data_page_size=1, write_batch_size=7,
    )  # fmt: skip
    return target.getvalue()


def num_empty(data: bytes) -> int:
    with pyparq.ParquetFile(data) as file:
        places = [(g, c) for g in range(file.num_row_groups) for c in range(len(file.schema.leaves))]
        return sum(page.num_values == 0 for g, c in places for page in file.pages(g, c))


def check_reads(data: Any) -> None:
    """Filtered reads give the rows that they should, by the page index and without a warning."""
    whole = nested_table()
    for start in range(0, whole.num_rows, 37):
        wanted = (col("sorted") >= 3 * start) & (col("sorted") < 3 * (start + 5))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = pyparq.read_table(data, filters=wanted)
        assert found.to_arrow().to_pylist() == whole.slice(start, 5).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_index_that_lists_pages_without_values_is_used(version: str) -> None:
    data = stored(version, True)
    assert num_empty(data) > 0
    check_reads(data)
    wanted = col("list").contains(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pyparq.read_table(data, filters=wanted)
    rows = [row for row in nested_table().to_pylist() if 7 in (row["list"] or ())]
    assert found.to_arrow().to_pylist() == rows
    assert not pyparq.verify(data).findings


@pytest.mark.parametrize("version", VERSIONS)
def test_indexes_added_over_pages_without_values_are_right(version: str, tmp_path: Path) -> None:
    data = stored(version, False)
    assert num_empty(data) > 0
    path = tmp_path / "indexed.parquet"
    pyparq.add_indexes(data, path)
    assert not pyparq.verify(path).findings
    check_reads(path)
    whole = nested_table()
    expected = whole.slice(100, 12)
    ours = pq.read_table(path, filters=[("sorted", ">=", 300), ("sorted", "<", 336)])
    assert ours.to_pylist() == expected.to_pylist()
    query = f'select * from \'{path}\' where "sorted" >= 300 and "sorted" < 336'
    assert duckdb.sql(query).to_arrow_table()["list"].to_pylist() == expected["list"].to_pylist()
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    batches = context.sql('select * from t where "sorted" >= 300 and "sorted" < 336').collect()
    there = pa.Table.from_batches(batches)
    assert there["deep"].to_pylist() == expected["deep"].to_pylist()
    assert there["things"].to_pylist() == expected["things"].to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_files_made_of_them_are_right(version: str, tmp_path: Path) -> None:
    path, twice, again = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    path.write_bytes(stored(version, True))
    pyparq.merge([path, path], twice)
    assert not pyparq.verify(twice).findings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pyparq.read_table(twice, filters=col("sorted") == 333).num_rows == 2
        assert pyparq.dataset([path, twice]).scan(filters=col("sorted") == 333).to_table().num_rows == 3
    pyparq.rewrite(path, again)
    assert not pyparq.verify(again).findings
    check_reads(again)


def test_an_index_that_lists_some_of_them_is_wrong() -> None:
    forged = Forged(stored("1.0", True))
    pages = next(k for k, page in enumerate(_things(forged)) if page.num_values == 0)

    def lose(index: Any) -> None:
        del index.page_locations[pages + 1]

    forged.offset_index("things", lose)
    assert any(f.structure in ("OffsetIndex", "ColumnIndex") for f in pyparq.verify(forged.data()).findings)


def _things(forged: Forged) -> list[Any]:
    return [header.data_page_header for _, _, header in forged.pages("things") if header.data_page_header]


def test_a_page_that_is_said_to_hold_no_rows_is_looked_at() -> None:
    """Its rows must not get lost without a word."""
    data = written(
        pa.table({"n": pa.array(range(300)), "l": pa.array([[k, k] for k in range(300)])}),
        row_group_size=300, max_rows_per_page=50,
    )  # fmt: skip
    forged = Forged(data)

    def lie(index: Any) -> None:
        index.page_locations[2].first_row_index = index.page_locations[3].first_row_index

    forged.offset_index("l", lie)
    with pytest.warns(pyparq.errors.CorruptIndexWarning):
        found = pyparq.read_table(forged.data(), filters=(col("n") >= 60) & (col("n") < 90))
    assert found.to_arrow()["l"].to_pylist() == [[k, k] for k in range(60, 90)]


def test_pages_without_rows_come_with_the_page_before_them() -> None:
    first_rows = np.array([0, 0, 10, 10, 10, 25, 30, 30])
    counts = np.diff(first_rows, append=30)
    assert RowRanges.of([(3, 5)], 30).pages(first_rows).tolist() == [1, 2, 3]
    assert RowRanges.of([(12, 14)], 30).pages(first_rows).tolist() == [4]
    assert RowRanges.of([(0, 1), (29, 30)], 30).pages(first_rows).tolist() == [1, 2, 3, 5, 6, 7]
    assert read_along(np.array([1, 4]), counts).tolist() == [1, 2, 3, 4]
