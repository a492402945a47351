"""Indexes added to every file of apache/parquet-testing: pages stay, values stay, and filters find the same rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import corpus_path
from rewritten import footer_of, key_values, page_hashes, without_indexes
from test_corpus_flat import DAMAGED, HUGE, OTHERWISE, READ, assert_identical, is_filterable, literals

import pyparq
from pyparq import col

CORPUS = corpus_path() or Path("/nowhere")
DATA = CORPUS / "data"

pytestmark = pytest.mark.usefixtures("corpus")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("name", [*READ, *OTHERWISE])
def test_every_file(name: str, layout: Any, tmp_path: Path) -> None:
    source, target = DATA / f"{name}.parquet", tmp_path / "indexed.parquet"
    anew = layout == "row_group"
    report = pyparq.add_indexes(source, target, bloom_filters=True, bloom_filter_layout=layout, replace=anew)
    before, after = source.read_bytes(), target.read_bytes()
    assert page_hashes(after) == page_hashes(before)
    assert without_indexes(after) == without_indexes(before)
    kept = key_values(after)
    kept.pop("pyparq.indexes", None)
    assert kept == {k: v for k, v in key_values(before).items() if k != "pyparq.indexes"}
    ours = pyparq.read_table(target).to_arrow()
    assert_identical(ours, pyparq.read_table(source).to_arrow())
    if "geo" not in name and name != "int96_from_spark":
        check_filters(source, target, ours)
    assert findings(target) <= findings(source)
    again = pyparq.add_indexes(target, bloom_filters=True, bloom_filter_layout=layout)
    assert again.files_written == 0
    assert target.read_bytes() == after
    assert {c.name for c in report.columns if c.bloom_filter.get("removed")} == set()


def findings(path: Path) -> set[tuple[Any, ...]]:
    """What ``verify`` has against a file."""
    return {(f.row_group, f.column, f.kind, f.text) for f in pyparq.verify(path).findings}


def check_filters(source: Path, target: Path, table: Any) -> None:
    """The rows that a filter finds do not depend on the indexes."""
    with (
        pyparq.ParquetFile(target) as indexed,
        pyparq.ParquetFile(source, use_page_index=False, use_bloom_filters=False) as plain,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", pyparq.CorruptIndexWarning)  # damaged ones that were there are built anew
        for k, name in enumerate(table.column_names):
            if table.column_names.count(name) > 1 or not is_filterable(table.schema.field(k).type):
                continue
            for value in literals(table.column(k).to_pylist())[:1]:
                for test in (col(name) == value, col(name) < value):
                    found = indexed.read([name], test).to_arrow()
                    assert_identical(found, plain.read([name], test).to_arrow())


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_pages_are_named(name: str, tmp_path: Path) -> None:
    target = tmp_path / "indexed.parquet"
    with pytest.raises(pyparq.ChecksumError) as caught:
        pyparq.add_indexes(DATA / f"{name}.parquet", target, replace=True)
    assert caught.value.column is not None
    assert caught.value.page is not None
    assert not target.exists()


def test_no_column_orders_where_statistics_would_lie() -> None:
    """Column orders come with ColumnIndexes alone, and only to files that have none."""
    seen = set()
    for path in sorted(DATA.rglob("*.parquet")):
        name = str(path.relative_to(DATA)).removesuffix(".parquet")
        data = path.read_bytes()
        if data[-4:] == b"PAR1" and name in READ and name not in HUGE:
            seen.add(footer_of(data).column_orders is None)
    assert seen == {True, False}
