"""A column chunk that is read alone has its pages opened on two threads: same values, same errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import ParquetFile
from pyparq.errors import ChecksumError, CorruptFileError
from pyparq.read import ahead, columns

ROWS = 30_000
TABLE = pa.table(
    {
        "number": pa.array(np.random.default_rng(3).integers(0, 1 << 60, ROWS)),
        "holes": pa.array([None if 9_000 < n < 21_000 and n % 5 == 0 else n / 7 for n in range(ROWS)]),
        "few": pa.array([None if n % 7 == 0 else f"word {n % 50}" for n in range(ROWS)]),
        "many": [f"text {n * 7919 % 65537}" for n in range(ROWS)],
        "lists": [list(range(n % 4)) if n % 5 else None for n in range(ROWS)],
        "pairs": pa.array([{"a": n, "b": None if n % 3 else str(n)} for n in range(ROWS)]),
    }
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Thresholds low enough for small files, two CPUs wherever this runs; the windows that were shared out."""
    monkeypatch.setattr(columns, "THREADS_FROM", 1)
    monkeypatch.setattr(columns, "TASK_FROM", 0)
    monkeypatch.setattr(columns, "cpu_count", lambda: 2)
    monkeypatch.setattr(ahead, "WINDOW", 60_000)
    windows: list[int] = []
    shared_out = ahead._shared_out
    monkeypatch.setattr(ahead, "_shared_out", lambda w, *rest: windows.append(len(w)) or shared_out(w, *rest))
    return windows


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_column_alone(tmp_path: Path, codec: str, version: str, small_parts: list[int]) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(
        TABLE, path, compression=codec, data_page_version=version, data_page_size=9_000, use_dictionary=["few"],
        write_page_checksum=True, write_batch_size=500,
    )  # fmt: skip
    for name in TABLE.column_names[:-1]:
        small_parts.clear()
        assert pa.table(pyparq.read_table(path, columns=[name])).cast(TABLE.select([name]).schema) == TABLE.select(
            [name]
        )
        assert max(small_parts) > 1, "no window of several pages was shared out"
    assert pa.table(pyparq.read_table(path, columns=["pairs.b"]))["pairs"].combine_chunks().field("b").to_pylist() == [
        pair["b"] for pair in TABLE["pairs"].to_pylist()
    ]


def test_values_that_do_not_decode_are_told_with_their_page(tmp_path: Path) -> None:
    """In either half: a delta page cut short, its CRC made right."""
    path = tmp_path / "file.parquet"
    pyparq.write_table(
        TABLE.select(["number"]), path, data_page_size=9_000, row_group_size=ROWS, compression="none",
        column_encoding={"number": "DELTA_BINARY_PACKED"}, write_page_checksum=False,
    )  # fmt: skip
    whole = path.read_bytes()
    places = ParquetFile(path).page_locations(0, "number")
    assert places is not None
    for page in (1, len(places) - 2):
        damaged = bytearray(whole)
        end = int(places.offsets[page] + places.sizes[page])
        header = int(places.offsets[page]) + whole[int(places.offsets[page]) : end].index(b"\x80\x01\x04")
        damaged[header : header + 2] = b"\x01\x7f"  # blocks of one value, of 127 miniblocks
        with pytest.raises(CorruptFileError, match="DELTA_BINARY_PACKED") as caught:
            pyparq.read_table(bytes(damaged))
        assert (caught.value.row_group, caught.value.column, caught.value.page) == (0, "number", page)


def test_damage_is_told_with_its_page(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pyparq.write_table(TABLE.select(["number"]), path, data_page_size=9_000, row_group_size=ROWS)
    whole = path.read_bytes()
    places = ParquetFile(path).page_locations(0, "number")
    assert places is not None
    for page in (0, len(places) // 2, len(places) - 1):
        damaged = bytearray(whole)
        damaged[int(places.offsets[page] + places.sizes[page]) - 5] ^= 1
        with pytest.raises(ChecksumError) as caught:
            pyparq.read_table(bytes(damaged))
        assert (caught.value.row_group, caught.value.column, caught.value.page) == (0, "number", page)


def test_a_dictionary_that_ends_within_a_chunk(tmp_path: Path, small_parts: list[int]) -> None:
    """Pages that wait for each other have their slots before those that are decoded ahead."""
    path = tmp_path / "file.parquet"
    few = np.arange(60_000) * 7919 % 1000
    table = pa.table({"n": pa.array(np.concatenate((few, np.arange(60_000) + (1 << 40))))})
    pq.write_table(
        table, path, compression="none", data_page_size=9_000, dictionary_pagesize_limit=20_000, write_batch_size=500
    )
    found = ParquetFile(path).pages(0, "n")
    assert {page.encoding for page in found[1:]} == {"RLE_DICTIONARY", "PLAIN"}
    assert pyparq.read_table(path).to_arrow() == table
    assert len(small_parts) > 2
