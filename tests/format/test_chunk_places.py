"""Column chunks that share their bytes: refused, or read up to where the next one begins, by whoever works on a whole
file. What sound files declare a little wrong stays readable."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forged import Forged
from hostile_claims import chunks_in_turn, columns_on_one_chunk, groups_on_one_chunk, staggered_chunks
from written import written

import pyparq
from pyparq.errors import CorruptFileError
from pyparq.read.footers.chunks import ChunkPlaces

SHARED = "column chunks may not share their pages"

REWRITES: dict[str, Any] = {
    "add_indexes": lambda path, out: pyparq.add_indexes(path, out, bloom_filters=True, replace=True),
    "add_indexes in place": lambda path, out: pyparq.add_indexes(path),
    "edit_metadata": lambda path, out: pyparq.edit_metadata(path, out, update={"a": "b"}),
    "merge": lambda path, out: pyparq.merge([path, path], out),
}


@pytest.mark.parametrize("operation", REWRITES)
@pytest.mark.parametrize("made", [groups_on_one_chunk, columns_on_one_chunk])
def test_shared_chunks_are_refused_before_any_work(made: Any, operation: str, tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    path.write_bytes(made())
    before = path.read_bytes()
    with pytest.raises(CorruptFileError, match=SHARED) as caught:
        REWRITES[operation](path, out)
    error = caught.value
    assert (error.file, error.column is None, error.row_group is None) == (str(path), False, False)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.parquet"]


def test_verify_names_every_shared_chunk() -> None:
    report = pyparq.verify(groups_on_one_chunk(5))
    shared = [f for f in report.findings if SHARED in f.text]
    assert [(f.kind, f.row_group, f.column) for f in shared] == [("location", k, ("n",)) for k in range(1, 5)]
    assert report.files[0].columns[("n",)].pages == 1


@pytest.mark.parametrize("sizes", ["true", "of one page"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_no_page_is_looked_at_for_two_chunks(sizes: str, shuffled: bool, tmp_path: Path) -> None:
    """Row group k takes pages k to the last: verify looks at each page once, in whatever order the row groups come."""
    count = 60
    path = tmp_path / "f.parquet"
    path.write_bytes(staggered_chunks(count, sizes == "true", random.Random(3) if shuffled else None))
    report = pyparq.verify(path)
    assert report.files[0].columns[("n",)].pages == count
    assert not report.ok
    with pytest.raises(CorruptFileError, match="pages end after"):
        pyparq.add_indexes(path)


def test_declared_sizes_that_reach_into_the_next_chunk_are_tolerated(tmp_path: Path) -> None:
    """Each chunk states 40 bytes too many."""
    table = pa.table({"a": pa.array(range(500), pa.int64()), "b": [f"text {k}" for k in range(500)]})
    forged = Forged(written(table, row_group_size=100, compression="zstd"))
    for group in forged.meta.row_groups:
        for chunk in group.columns:
            chunk.meta_data.total_compressed_size += 40
    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    path.write_bytes(forged.data())
    assert pyparq.read_table(path).to_arrow().equals(table)
    assert {f.kind for f in pyparq.verify(path).findings} <= {"size", "layout"}
    pyparq.add_indexes(path, out, bloom_filters=True, replace=True)
    assert pyparq.read_table(out).to_arrow().equals(table)
    assert pyparq.read_table(out, filters=pyparq.col("a") == 321).to_pydict() == {"a": [321], "b": ["text 321"]}
    pyparq.merge([path, path], out)
    assert pyparq.read_table(out).to_arrow().equals(pa.concat_tables([table, table]))


def test_chunks_without_pages_share_nothing(tmp_path: Path) -> None:
    """Empty row groups of size 0 begin where the next row group does."""
    forged = Forged(written(pa.table({"n": [1, 2, 3]})))
    first = forged.meta.row_groups[0]
    for _ in range(3):
        empty = deepcopy(first)
        empty.num_rows = 0
        for chunk in empty.columns:
            chunk.meta_data.num_values = chunk.meta_data.total_compressed_size = 0
            chunk.meta_data.statistics = chunk.offset_index_offset = chunk.column_index_offset = None
        forged.meta.row_groups.insert(0, empty)
    path, out = tmp_path / "f.parquet", tmp_path / "out.parquet"
    path.write_bytes(forged.data())
    assert pyparq.read_table(path).to_pydict() == {"n": [1, 2, 3]}
    pyparq.merge([path, path], out)
    assert pyparq.read_table(out).to_pydict() == {"n": [1, 2, 3, 1, 2, 3]}


def test_places() -> None:
    found = ChunkPlaces(np.array([[40, 4], [0, 20], [20, 40]]))
    assert [found.first_at(k) for k in (4, 20, 40, 41, 0)] == [(0, 1), (1, 1), (0, 0), None, None]
    assert [found.behind(k) for k in (0, 4, 20, 39, 40)] == [4, 20, 40, 40, None]
    assert found.first_shared() == (2, 0)
    assert [found.is_shared(*divmod(k, 2)) for k in range(6)] == [False] * 4 + [True] * 2
    assert ChunkPlaces(np.zeros((0, 3), np.int64)).first_shared() is None


def test_sound_files_are_as_before(tmp_path: Path) -> None:
    """Chunks of many columns in any order of the file."""
    path = tmp_path / "f.parquet"
    path.write_bytes(chunks_in_turn(7))
    assert pyparq.read_table(path).to_pydict() == {"n": [k for k in range(7) for _ in range(10)]}
    assert not [f for f in pyparq.verify(path).findings if f.kind in ("location", "layout")]


# ---- streams, which read small row groups one after the other


STREAMS: dict[str, Any] = {
    "scan": lambda path: list(pyparq.scan(path).iter_batches()),
    "iter_batches": lambda path: list(pyparq.ParquetFile(path).iter_batches()),
    "dataset": lambda path: list(pyparq.dataset([path, path]).iter_batches()),
    "arrow stream": lambda path: pa.table(pyparq.scan(path)),
    "rewrite": lambda path: pyparq.rewrite(path, path.parent / "out.parquet"),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("groups", [2, 3])
def test_streams_refuse_shared_chunks(groups: int, stream: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(groups_on_one_chunk(groups))
    with pytest.raises((CorruptFileError, pa.ArrowInvalid), match=r"its pages .* overlap those of column chunk 0"):
        STREAMS[stream](path)
    assert [p.name for p in tmp_path.iterdir()] == ["f.parquet"]


def test_streams_refuse_chunks_that_are_shared_later(tmp_path: Path) -> None:
    """The last of four row groups is the third again."""
    forged = Forged(written(pa.table({"n": list(range(30)), "m": list(range(30))}), row_group_size=10))
    forged.meta.row_groups.append(deepcopy(forged.meta.row_groups[2]))
    forged.meta.num_rows = 40
    batches = pyparq.scan(forged.data()).iter_batches()
    assert [next(batches).num_rows for _ in range(3)] == [10, 10, 10]
    with pytest.raises(CorruptFileError, match="overlap those of column chunk 0 in row group 2"):
        next(batches)


def test_streams_of_sizes_that_reach_into_the_next_chunk() -> None:
    table = pa.table({"a": pa.array(range(500), pa.int64()), "b": [f"text {k}" for k in range(500)]})
    forged = Forged(written(table, row_group_size=100, compression="zstd"))
    for group in forged.meta.row_groups:
        for chunk in group.columns:
            chunk.meta_data.total_compressed_size += 40
    scan = pyparq.scan(forged.data())
    for _ in range(2):  # the same reader again
        assert pa.Table.from_batches([pa.record_batch(b) for b in scan.iter_batches()]).equals(table)
    assert scan.to_table().to_arrow().equals(table)
