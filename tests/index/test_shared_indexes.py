"""Page indexes and Bloom filters that several column chunks name: a small file could make anybody read a large one
again and again. Readers pass over them with a warning, ``verify`` reports them, ``merge`` refuses them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forged import Forged
from hostile_claims import shared_filter, shared_indexes
from written import written

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, CorruptIndexWarning
from pyparq.read.footers.chunks import ModulePlaces
from pyparq.read.plan import page_indexes


def test_who_has_a_place() -> None:
    places = ModulePlaces(100)
    assert places.belongs(40, 60, 0, 0)
    assert not places.belongs(40, 60, 1, 0)
    assert places.belongs(40, 60, 0, 0)
    assert places.belongs(50, 40, 0, 1), "the length of one may be wrong"
    assert not places.belongs(60, 40, 1, 1), "more bytes than the file has"
    assert places.belongs(70, None, 2, 2)
    assert places.belongs(71, -5, 2, 2)
    assert not places.belongs(72, 5, 2, 2)


def test_a_reader_decodes_a_shared_page_index_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    decoded: list[int] = []
    parse = page_indexes.parse_offset_index

    def counted(data: Any, *rest: Any) -> Any:
        decoded.append(len(data))
        return parse(data, *rest)

    monkeypatch.setattr(page_indexes, "parse_offset_index", counted)
    path = tmp_path / "f.parquet"
    path.write_bytes(shared_indexes(50))
    with pyparq.ParquetFile(path) as file:
        with pytest.warns(CorruptIndexWarning, match="do not fit|outside"):
            assert file.page_locations(0, "n") is None
        for k in range(1, 50):
            with pytest.warns(CorruptIndexWarning, match="another column chunk"):
                assert file.page_locations(k, "n") is None
    assert len(decoded) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptIndexWarning)
        filters = (col("n") > 7) & (col("n") != 30)
        found = pyparq.read_table(path, filters=filters, use_statistics=False)
        assert found.to_pydict() == {"n": [k for k in range(50) if k > 7 and k != 30]}
    assert len(decoded) <= 2


def test_page_indexes_that_overlap_all_the_way() -> None:
    """Each begins a byte behind another: no two have one place, but together they are longer than the file."""
    forged = Forged(shared_indexes(50))
    for k, group in enumerate(forged.meta.row_groups):
        group.columns[0].offset_index_offset += k
        group.columns[0].offset_index_length -= k
    size = len(forged.data())
    report = pyparq.verify(forged.data())
    own = [k for k in range(50) if not any(f.row_group == k and f.kind == "layout" for f in report.findings)]
    assert len(own) * 24_000 < size


def test_verify_names_shared_indexes_and_filters() -> None:
    for data, structures in (
        (shared_indexes(20), ("ColumnIndex", "OffsetIndex")),
        (shared_filter(20), ("BloomFilter",)),
    ):
        report = pyparq.verify(data)
        shared = [f for f in report.findings if "another column chunk" in f.text]
        assert {(f.kind, f.structure) for f in shared} == {("layout", what) for what in structures}
        assert [f.row_group for f in shared if f.structure == structures[0]] == list(range(1, 20))


def test_merge_refuses_shared_indexes(tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    path.write_bytes(shared_indexes(20))
    with pytest.raises(CorruptFileError, match=r"OffsetIndex .*another column chunk.*row group 1, column n"):
        pyparq.merge([path, path], out)
    assert not out.exists()
    pyparq.add_indexes(path)
    assert pyparq.verify(path).ok
    assert pyparq.merge([path, path], out).num_rows == 40


def test_sound_indexes_are_all_used() -> None:
    table = pa.table({"a": pa.array(range(1000), pa.int64()), "b": [f"{k:04}" for k in range(1000)]})
    data = written(table, row_group_size=100, max_rows_per_page=10, compression="none")
    with warnings.catch_warnings(), pyparq.ParquetFile(data) as file:
        warnings.simplefilter("error")
        for k in range(10):
            for name in ("a", "b"):
                locations = file.page_locations(k, name)
                assert locations is not None
                assert len(locations) == 10
                assert file.column_index(k, name) is not None
