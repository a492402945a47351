"""Rows that a few bytes declare: right data or one typed error, within the memory that limits allow."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forged import Forged
from hostile_claims import by_hand, no_columns, null_pages, nulls
from hostile_pages import OPTIONAL_INT, data_page, run_of, with_size
from written import written

import pyparq
from pyparq.errors import CorruptFileError, LimitError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize
from pyparq.limits import Limits
from pyparq.maintenance.verify import chunk_check
from pyparq.read import page_statistics

MEMORY = 96 << 20
"""Less than a byte for each of 2**27 levels. A builder takes 64 MiB at once."""


def at_most(size: int) -> Any:
    """Context in which Python and numpy may allocate so many bytes at a time."""

    class Bound:
        def __enter__(self) -> None:
            pyparq.verify(nulls(8, 8))  # modules that are loaded count too
            tracemalloc.start()

        def __exit__(self, *_: object) -> None:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < size

    return Bound()


def test_verify_keeps_no_levels_of_pages_of_nulls() -> None:
    data = nulls(1 << 27, 1 << 22)
    with at_most(MEMORY):
        report = pyparq.verify(data)
    assert report.ok
    column = report.files[0].columns[("n",)]
    assert (column.num_values, column.num_nulls) == (1 << 27, 1 << 27)


def test_indexes_of_pages_of_nulls_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(nulls(1 << 27, 1 << 22))
    with at_most(MEMORY):
        pyparq.add_indexes(path, bloom_filters=True)
    assert pyparq.verify(path).ok
    index = pyparq.ParquetFile(path).column_index(0, "n")
    assert index is not None
    assert index.null_counts.tolist() == [1 << 22] * 32


def test_levels_count_for_the_memory_of_a_verification() -> None:
    """Pages of one value and nulls: their levels are kept, a byte each."""
    count = 1 << 22
    body = with_size(run_of(1, 1, 1) + run_of(count - 1, 0, 1)) + bytes(8)
    page = serialize(data_page(count, 0, len(body))) + body
    data = by_hand([(4, len(page) * 32, count * 32)], b"PAR1" + page * 32, OPTIONAL_INT)
    assert pyparq.verify(data).ok
    (finding,) = pyparq.verify(data, limits=Limits(max_memory=64 << 20)).findings
    assert "limits.max_memory" in finding.text


def test_memory_that_is_not_there_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who has less memory than the limit gets a typed error all the same."""

    def none_left(*_: Any, **__: Any) -> Any:
        raise MemoryError("Unable to allocate 16.0 GiB")

    path = tmp_path / "f.parquet"
    pyparq.write_table({"n": [1, 2, 3]}, path)
    monkeypatch.setattr(chunk_check, "ChunkValues", none_left)
    (finding,) = pyparq.verify(path).findings
    assert "there is not enough memory" in finding.text
    assert finding.column == ("n",)
    monkeypatch.setattr(page_statistics, "PageValues", none_left)
    with pytest.raises(LimitError, match=r"there is not enough memory.*row group 0, column n"):
        pyparq.add_indexes(path, replace=True)
    assert pyparq.read_table(path).to_pydict() == {"n": [1, 2, 3]}


def test_the_order_of_rows_is_not_checked_without_memory_for_it() -> None:
    forged = Forged(nulls(1 << 22, 1 << 20))
    forged.meta.row_groups[0].sorting_columns = [tt.SortingColumn(0, False, True)]
    assert pyparq.verify(forged.data()).ok
    report = pyparq.verify(forged.data(), limits=Limits(max_memory=64 << 20))
    (left,) = report.files[0].columns[("n",)].not_checked
    assert "order" in left
    assert "limits.max_memory" in left


# ---- files without columns


def test_batches_of_rows_that_nothing_shows() -> None:
    """A table of them is a number. Batches would have no end."""
    data = no_columns(1 << 40)
    assert pyparq.read_table(data).num_rows == 1 << 40
    assert pyparq.scan(data).count() == 1 << 40
    assert pyparq.ParquetFile(data).head(7).num_rows == 7
    with pytest.raises(LimitError, match=r"max_values_per_byte"):
        next(pyparq.scan(data).iter_batches())
    with pytest.raises(pa.ArrowInvalid, match=r"max_values_per_byte"):
        pa.table(pyparq.scan(data))
    raised = pyparq.scan(data, limits=Limits(max_values_per_byte=1 << 40))
    assert next(raised.iter_batches()).num_rows == 65536
    few = no_columns(100_000)
    assert [b.num_rows for b in pyparq.scan(few).iter_batches()] == [65536, 34464]
    assert pa.table(pyparq.scan(few)).num_rows == 100_000


def test_batches_of_no_columns_of_a_file_with_some() -> None:
    pages, places = null_pages(1, 1 << 20)
    sound = by_hand([(4, places[-1] - 4, 1 << 20)], pages, OPTIONAL_INT)
    assert sum(b.num_rows for b in pyparq.scan(sound, columns=[]).iter_batches()) == 1 << 20
    lying = by_hand([(4, places[-1] - 4, 1 << 40)], pages, OPTIONAL_INT)
    with pytest.raises(LimitError, match=r"max_values_per_byte"):
        next(pyparq.scan(lying, columns=[]).iter_batches())


def test_rewriting_rows_that_nothing_shows(tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    path.write_bytes(no_columns(1 << 62))
    with pytest.raises(LimitError, match=r"max_values_per_byte"):
        pyparq.rewrite(path, out)
    with pytest.raises(UnsupportedError, match="more than a Parquet file can count"):
        pyparq.merge([path, path], out)
    assert not out.exists()


def test_more_rows_than_can_be_counted() -> None:
    """The sum of all row groups has 64 bits."""
    for rows, groups in ((1 << 62, 2), ((1 << 63) - 1, 2), (1 << 61, 5)):
        with pytest.raises(CorruptFileError, match=r"more than 2\*\*63 - 1 rows"):
            pyparq.ParquetFile(no_columns(rows, groups))
    assert pyparq.ParquetFile(no_columns((1 << 63) - 1)).metadata.num_rows == (1 << 63) - 1
    forged = Forged(written(pa.table({"n": [1, 2]}), row_group_size=1))
    for group in forged.meta.row_groups:
        group.num_rows = 1 << 62
    with pytest.raises(CorruptFileError, match=r"more than 2\*\*63 - 1 rows"):
        pyparq.dataset(forged.data()).count()


def test_sorting_without_memory_is_a_typed_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A megabyte may unfold to a gigabyte of text, whose keys are copied."""

    def none_left(*_: Any, **__: Any) -> Any:
        raise MemoryError("std::bad_alloc")

    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    pyparq.write_table({"s": ["b", "a"]}, path)
    monkeypatch.setattr("pyparq.write.sort.row_keys", none_left)
    with pytest.raises(LimitError, match="there is not enough memory"):
        pyparq.rewrite(path, out, sort_by=["s"])
    assert [p.name for p in tmp_path.iterdir()] == ["f.parquet"]
