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
import pyarrow.parquet.encryption as pe
import pytest
from forged import Forged
from handmade import OPTIONAL, REPEATED, Column, Page, group, int32, leaf, make
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
        places = [(g, c) for g in range(file.num_row_groups) for c in range(len(file.tree.leaves))]
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


# ---- encrypted files, whose pages are counted, and pages made by hand


KEY = b"0123456789012345"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("indexes", [True, False])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_encrypted_pages_without_values(algorithm: str, indexes: bool, version: str, tmp_path: Path) -> None:
    """Each page is sealed with its number, so an index lists all of them, those without values too."""
    path, made = tmp_path / "f.parquet", tmp_path / "made.parquet"
    pq.write_table(
        nested_table(), path, data_page_version=version, write_page_index=indexes, row_group_size=240,
        data_page_size=1, write_batch_size=7,
        encryption_properties=pe.create_encryption_properties(KEY, encryption_algorithm=algorithm),
    )  # fmt: skip
    keys = pyparq.DecryptionProperties(KEY)
    with pyparq.ParquetFile(path, decryption=keys) as file:
        assert 0 in {page.num_values for k in range(2) for c in range(9) for page in file.pages(k, c)}
    report = pyparq.add_indexes(path, made, decryption=keys, replace=True)
    what = "replaced" if indexes else "added"
    columns = report.files[0].columns
    assert {(*c.offset_index.items(), *c.column_index.items()) for c in columns} == {((what, 2), (what, 2))}
    whole = nested_table()
    theirs = pq.read_table(made, decryption_properties=pe.create_decryption_properties(KEY))
    assert theirs.to_pylist() == whole.to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in (path, made):
            assert not pyparq.verify(found, decryption=keys).findings
            for start in range(0, whole.num_rows, 67):
                wanted = (col("sorted") >= 3 * start) & (col("sorted") < 3 * (start + 5))
                read = pyparq.read_table(found, filters=wanted, decryption=keys)
                assert read.to_arrow().to_pylist() == whole.slice(start, 5).to_pylist()
            with pyparq.ParquetFile(found, decryption=keys) as file:
                assert (
                    file.take([5, 239, 240, 470]).to_arrow().to_pylist() == whole.take([5, 239, 240, 470]).to_pylist()
                )


FLAT = [group("root", None, 1), leaf("x", OPTIONAL)]
LISTS = [
    group("root", None, 1),
    group("x", OPTIONAL, 1, converted_type=3),
    group("list", REPEATED, 1),
    leaf("element", 1),
]


def flat_page(*values: int | None) -> Page:
    present = [value for value in values if value is not None]
    return Page(len(values), int32(*present), definition=[int(value is not None) for value in values])


def list_page(*rows: list[int]) -> Page:
    slots = [(int(k > 0), value) for row in rows for k, value in enumerate(row)]
    return Page(len(slots), int32(*(v for _, v in slots)), rep=[r for r, _ in slots], definition=[3] * len(slots))


def handmade_file(nested: bool, places: str) -> bytes:
    """Two pages of two rows, with pages without values where ``places`` has an ``e``."""
    full = [list_page([1, 2], [3]), list_page([4], [5, 6])] if nested else [flat_page(1, None), flat_page(3, 4)]
    empty = list_page() if nested else flat_page()
    pages = [full.pop(0) if what == "v" else empty for what in places]
    path = ("x", "list", "element") if nested else ("x",)
    column = Column(pages, max_rep=int(nested), max_def=3 if nested else 1, path=path)
    return make(LISTS if nested else FLAT, [column], 4)


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "list"])
@pytest.mark.parametrize("places", ["evv", "vev", "vve", "eevv", "veev", "evevee", "vveee", "vv"])
def test_pages_without_values_anywhere(places: str, nested: bool, tmp_path: Path) -> None:
    """Behind others they are not listed; the first page is."""
    path = tmp_path / "f.parquet"
    path.write_bytes(handmade_file(nested, places))
    rows: list[Any] = [[1, 2], [3], [4], [5, 6]] if nested else [1, None, 3, 4]
    assert pyparq.read_table(path).to_pydict() == {"x": rows}
    pyparq.add_indexes(path, bloom_filters=True)
    assert not pyparq.verify(path).findings
    with warnings.catch_warnings(), pyparq.ParquetFile(path) as file:
        warnings.simplefilter("error")
        leaf_path = ("x", "list", "element") if nested else "x"
        locations = file.page_locations(0, leaf_path)
        assert locations is not None
        assert locations.first_rows.tolist() == ([0, 0, 2] if places[0] == "e" else [0, 2])
        for value, row in ((1, 0), (3, 1 if nested else 2), (4, 2 if nested else 3)):
            wanted = col("x").contains(value) if nested else col("x") == value
            assert pyparq.read_table(path, filters=wanted).to_pydict() == {"x": [rows[row]]}
        assert pyparq.read_table(path, filters=col("x").is_null()).num_rows == (0 if nested else 1)
        for k in range(4):
            assert file.take([k]).to_pydict() == {"x": [rows[k]]}
    if "e" not in places.rstrip("e"):  # (pyarrow takes a page without values for the end of the chunk)
        assert pq.read_table(path).to_pydict() == {"x": rows}
    where = "list_contains(x, 4)" if nested else "x = 4"
    assert duckdb.sql(f"select x from '{path}' where {where}").fetchall() == [(rows[2 if nested else 3],)]
