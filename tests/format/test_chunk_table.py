"""The numbers of many column chunks, read natively, against the chunks decoded one by one by the generated code."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import CorruptFileError, ParquetError
from pyparq.format.chunk_numbers import HAS_STATISTICS, ODD, ChunkNumbers, stored_path
from pyparq.format.generated import ttypes as tt
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import (
    ThriftDecodeError,
    column_chunk_numbers,
    column_chunks_of_footers,
    deserialize,
    serialize,
)
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.footers.chunks import numbers_of
from pyparq.read.footers.open_file import OpenFile, open_file

ROWS = 1000
DATA = {
    "n": np.arange(ROWS),
    "x": np.linspace(-1, 1, ROWS),
    "s": [f"v{k % 7}" if k % 5 else None for k in range(ROWS)],
    "l": [[k, None] if k % 3 else [] for k in range(ROWS)],
    "b": [k % 2 == 0 for k in range(ROWS)],
}


def _written(folder: Path) -> list[Path]:
    """Files by several writers, in row groups of 300 rows."""
    table = pa.table(DATA)
    made = [folder / f"{name}.parquet" for name in ("pyarrow", "indexed", "polars", "ours")]
    pq.write_table(table, made[0], row_group_size=300, compression="zstd", use_dictionary=["s"])
    pq.write_table(table, made[1], row_group_size=300, write_page_index=True, data_page_size=500)
    pl.from_arrow(table).write_parquet(made[2], row_group_size=300)  # type: ignore[union-attr]
    pyparq.write_table(table, made[3], row_group_size=300, bloom_filters={"n": 0.01})
    return made


def _opened(path: Path) -> OpenFile:
    return open_file(str(path), ReadOptions())


def _bytes(file: OpenFile, numbers: ChunkNumbers) -> list[bytes | None]:
    places = (numbers.min_value, numbers.max_value, numbers.min, numbers.max)
    sizes = (numbers.min_value_size, numbers.max_value_size, numbers.min_size, numbers.max_size)
    return file.footer.places.bytes_at(np.array(places, np.int64), np.array(sizes, np.int64))


def _assert_same(file: OpenFile) -> int:
    """Every chunk of the table says what the decoded chunk says; how many of them were compared natively."""
    leaves = file.tree.leaves
    table = file.chunk_table(range(file.num_row_groups), leaves)
    compared = 0
    for i in range(file.num_row_groups):
        for j, leaf in enumerate(leaves):
            raw = file.footer.column_chunk(i, j)
            alone = OpenFile.chunk(open_again(file), i, leaf)
            found = table.numbers_at(i, j)
            assert (table.start[i, j], table.size[i, j]) == (alone.start, alone.size)
            assert (table.numbers.num_values[i, j], table.numbers.codec[i, j]) == (
                alone.meta.num_values,
                alone.meta.codec,
            )
            assert table.has_dictionary_first[i, j] == (alone.first_page == "dictionary")
            if table.odd[i, j]:
                continue
            compared += 1
            expected = numbers_of(raw, raw.meta_data)
            assert found[:19] == expected[:19]
            statistics = raw.meta_data.statistics
            assert bool(found.flags & HAS_STATISTICS) == (statistics is not None)
            if statistics is not None:
                stored = [statistics.min_value, statistics.max_value, statistics.min, statistics.max]
                assert _bytes(file, found) == stored
    return compared


def _chunk_by_chunk(file: OpenFile) -> None:
    for i in range(file.num_row_groups):
        for leaf in file.tree.leaves:
            open_again(file).chunk(i, leaf)


def open_again(file: OpenFile) -> OpenFile:
    """The same file, of which no chunk is known yet."""
    return OpenFile(file.fetcher, file.footer, file.decryption, file.options)


@pytest.mark.parametrize("k", range(4), ids=["pyarrow", "indexed", "polars", "ours"])
def test_a_table_says_what_the_chunks_say(tmp_path: Path, k: int) -> None:
    with pyparq.ParquetFile(_written(tmp_path)[k]) as parquet:
        file = parquet._file
        assert _assert_same(file) == file.num_row_groups * len(file.tree.leaves)


def test_files_of_the_corpus(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "data").glob("*.parquet")):
        try:
            file = _opened(path)
        except ParquetError:
            continue
        try:
            compared += _assert_same(file)
        except (ParquetError, ThriftDecodeError):  # a chunk that cannot be read: the table says so as well
            with pytest.raises(ParquetError):
                _chunk_by_chunk(file)
        finally:
            file.close()
    assert compared > 300


def test_some_columns_of_some_row_groups(tmp_path: Path) -> None:
    with pyparq.ParquetFile(_written(tmp_path)[0]) as parquet:
        file = parquet._file
        nodes = [file.tree.leaves[3], file.tree.leaves[0]]
        table = file.chunk_table([1, 3], nodes)
        assert table.start.tolist() == [[file.chunk(k, node).start for node in nodes] for k in (1, 3)]
        assert table.num_rows.tolist() == [300, 100]
        assert (table.place(1), table.place(3), table.place(0)) == (0, 1, None)
        assert file.chunk(1, nodes[0]).numbers == table.numbers_at(0, 0)
        assert file.chunk(1, nodes[0]).meta.path_in_schema == list(nodes[0].path)


def test_many_footers_in_one_call(tmp_path: Path) -> None:
    """The numbers of two columns in the footers of several files, one of them cut off."""
    table = pa.table({"a": range(100), "b": ["x"] * 100, "c": np.arange(100.0)})
    footers, files = [], []
    for k, size in enumerate((100, 30, 50)):
        pq.write_table(table, tmp_path / f"{k}.parquet", row_group_size=size)
        files.append(_opened(tmp_path / f"{k}.parquet"))
        footers.append(bytes(files[-1].footer.stored))
    given = [*footers[:2], footers[2][:-40], footers[2]]
    columns = np.array([0, 2], np.int64)
    first, rows, numbers = column_chunks_of_footers(given, columns, [stored_path(["a"]), stored_path(["c"])], 3)
    assert first.tolist() == [0, 1, 5, 6, 8]
    assert rows.tolist() == [100, 30, 30, 30, 10, -1, 50, 50]
    shaped = numbers
    assert (shaped[0, 5] & ODD).all()
    for k, at in ((0, 0), (1, 1), (2, 6)):
        file = files[k]
        alone = file.chunk_table(range(file.num_row_groups), [file.tree.leaves[0], file.tree.leaves[2]])
        assert np.array_equal(np.stack(alone.numbers), shaped[:, at : at + file.num_row_groups])


def test_row_groups_with_other_columns_are_odd(tmp_path: Path) -> None:
    footer = LazyFileMetaData(bytes(_opened(_written(tmp_path)[0]).footer.stored))
    count = footer.num_columns(0)
    for columns, odd in ((count, False), (count + 1, True), (count - 1, True)):
        numbers = footer.chunk_numbers(np.arange(4), np.array([0]), [stored_path(("n",))], columns)
        assert ((numbers[0] & ODD) != 0).tolist() == [[odd]] * 4


def test_changed_bytes(tmp_path: Path) -> None:
    """Whatever is in a chunk's bytes: what is not odd decodes, and says the same."""
    source = random.Random(7)
    file = _opened(_written(tmp_path)[1])
    footer, paths = file.footer, [stored_path(leaf.path) for leaf in file.tree.leaves]
    accepted = refused = 0
    for _ in range(4000):
        j = source.randrange(len(paths))
        raw = footer.column_chunk(1, j)
        at = int(footer._first_chunk[1]) + j
        start, end = footer._chunk_starts[at : at + 2].tolist()
        data = bytearray(footer.stored[start:end])
        for _ in range(source.randrange(1, 3)):
            data[source.randrange(len(data))] = source.randrange(256)
        stored = bytes(data[: source.randrange(len(data) // 2, len(data) + 1)] if source.random() < 0.2 else data)
        found = ChunkNumbers(*column_chunk_numbers(stored, np.zeros(1, np.int64), [paths[j]])[:, 0].tolist())
        try:
            raw, _ = deserialize(tt.ColumnChunk, stored)
        except (ThriftDecodeError, CorruptFileError):
            assert found.flags & ODD
            refused += 1
            continue
        if found.flags & ODD:
            continue
        accepted += 1
        assert raw.meta_data.path_in_schema == list(file.tree.leaves[j].path)
        assert not raw.file_path
        assert raw.crypto_metadata is None
        assert found[:19] == numbers_of(raw, raw.meta_data)[:19]
        statistics = raw.meta_data.statistics
        if statistics is not None and statistics.max_value is not None:
            assert stored[found.max_value : found.max_value + found.max_value_size] == statistics.max_value
    assert accepted > 500
    assert refused > 500


def test_starts_outside_of_the_footer_are_refused() -> None:
    path = stored_path(["a"])
    with pytest.raises(KernelError):
        column_chunk_numbers(b"\x00", np.array([2], np.int64), [path])
    with pytest.raises(KernelError, match="no paths"):
        column_chunk_numbers(b"\x00", np.array([0], np.int64), [])
    absent = column_chunk_numbers(b"\x00", np.array([-1], np.int64), [path])
    assert absent[0, 0] == ODD


def test_long_paths_are_compared_as_they_are_stored() -> None:
    for path in (["a"], ["x" * 200], ["é", "b"], [str(k) for k in range(20)]):
        meta = tt.ColumnMetaData(
            type=1, encodings=[0], path_in_schema=path, codec=0, num_values=1, total_uncompressed_size=5,
            total_compressed_size=5, data_page_offset=4,
        )  # fmt: skip
        data = serialize(tt.ColumnChunk(file_offset=0, meta_data=meta))
        found = column_chunk_numbers(data, np.zeros(2, np.int64), [stored_path(path), stored_path([*path, "c"])])
        assert (found[0] & ODD).tolist() == [0, ODD]
