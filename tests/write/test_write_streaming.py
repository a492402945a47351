"""Chunks are stored while they are encoded: the same files, whoever makes the pages; the old file where that fails."""

from __future__ import annotations

import io
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import kernels
from pyparq.encryption import DecryptionProperties, EncryptionProperties
from pyparq.errors import DataError
from pyparq.runtime import threads
from pyparq.runtime.threads import Task, within_task

CODECS = ["none", "snappy", "zstd"]


@pytest.fixture(autouse=True)
def _processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several, whatever this machine has."""
    monkeypatch.setattr("pyparq.write.row_groups.cpu_count", lambda: 4)
    monkeypatch.setattr("pyparq.write.column_chunks.cpu_count", lambda: 4)


def long_text(rows: int, size: int = 120) -> pa.Array:
    source = random.Random(5)
    words = [f"{source.getrandbits(32):08x}" for _ in range(4000)] + ["é", "\U0001f600", ""]
    return pa.array([" ".join(source.choices(words, k=size // 9)) for _ in range(rows)])


def tables() -> dict[str, pa.Table]:
    rows = 60_000
    text, source = long_text(rows), np.random.default_rng(3)
    nulls = pa.array(np.where(source.random(rows) < 0.3, None, text.to_numpy(zero_copy_only=False)), pa.string())
    return {
        "text": pa.table({"a": np.arange(rows), "text": text, "z": source.random(rows)}),
        "text with nulls": pa.table({"text": nulls}),
        "numbers": pa.table({"n": source.integers(0, 1 << 60, 1_500_000)}),
        "dictionary, then not": pa.table({"n": np.r_[np.arange(40_000) % 300, np.arange(900_000)]}),
        "lists": pa.table({"l": pa.ListArray.from_arrays(np.arange(0, rows * 4 + 1, 4), source.random(rows * 4))}),
        "one huge value": pa.table({"b": [b"x" * 9_000] * 700 + [os.urandom(5 << 20)] + [b"y" * 9_000] * 700}),
    }


TABLES = tables()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", TABLES)
def test_same_file_with_and_without_threads(name: str, codec: str, tmp_path: Path) -> None:
    table, found = TABLES[name], []
    for use_threads in (False, True):
        path = tmp_path / f"{use_threads}.parquet"
        pyparq.write_table(table, path, compression=codec, use_threads=use_threads)
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert pq.read_table(path).cast(table.schema).equals(table)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_several_row_groups(version: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyparq.write_table(TABLES["text"], path, row_group_size=7_000, data_page_version=version)
    assert pq.read_table(path).equals(TABLES["text"])
    assert pyparq.read_table(path).to_arrow().equals(TABLES["text"])


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_encrypted(algorithm: str, tmp_path: Path) -> None:
    path, key = tmp_path / "x.parquet", os.urandom(16)
    encryption = EncryptionProperties(key, algorithm=algorithm)
    pyparq.write_table(TABLES["text"], path, row_group_size=25_000, encryption=encryption)
    assert pyparq.read_table(path, decryption=DecryptionProperties(key)).to_arrow().equals(TABLES["text"])


class Writes(io.BytesIO):
    """Notes how much each call brings."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        return super().write(data)


def test_a_chunk_comes_in_parts() -> None:
    target = Writes()
    pyparq.write_table(TABLES["numbers"], target, compression="none", use_dictionary=False)
    assert sum(target.sizes) == len(target.getvalue())
    assert max(target.sizes) < len(target.getvalue()) / 4
    assert pq.read_table(io.BytesIO(target.getvalue())).equals(TABLES["numbers"])


def test_within_a_task_of_a_full_pool(tmp_path: Path) -> None:
    """Whoever writes within tasks makes what nobody else has time for."""

    def write(k: int) -> pa.Table:
        path = tmp_path / f"{k}.parquet"
        pyparq.write_table(TABLES["text"], path, row_group_size=20_000)
        return pq.read_table(path)

    for read in threads.map_tasks(write, range(6), True):
        assert read.equals(TABLES["text"])


# ---- text -----------------------------------------------------------------------------------------------------------


def raw_text(values: pa.Array, at: int, wrong: bytes) -> pa.Array:
    """The values, with the first bytes of number `at` replaced by what is no text."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    data = bytearray(values.buffers()[2])
    data[offsets[at] : offsets[at] + len(wrong)] = wrong
    return pa.StringArray.from_buffers(len(values), values.buffers()[1], pa.py_buffer(bytes(data)))


@pytest.mark.parametrize("at", [0, 19_999, 30_000, 59_999])
def test_what_is_no_text_is_found_anywhere(at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"old")
    text = raw_text(TABLES["text"]["text"].chunk(0), at, b"\xff\xfe")
    with pytest.raises(DataError, match="UTF-8") as caught:
        pyparq.write_table(pa.table({"a": np.arange(len(text)), "text": text}), path)
    assert caught.value.column == "text"
    assert path.read_bytes() == b"old"


def test_characters_across_values_are_no_text(tmp_path: Path) -> None:
    """The bytes are UTF-8 as a whole, but each value has to be."""
    count = 3_000_000
    offsets = np.arange(count + 1, dtype=np.int32)
    text = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer("é".encode() * (count // 2)))
    path = tmp_path / "x.parquet"
    for step in (1, 2):  # cut through each character, and through none
        some = pa.StringArray.from_buffers(count // step, pa.py_buffer(offsets[::step].copy()), text.buffers()[2])
        if step == 2:
            pyparq.write_table(pa.table({"text": some}), path)
            assert pq.read_table(path)["text"].chunk(0)[-1].as_py() == "é"
            continue
        with pytest.raises(DataError, match="UTF-8"):
            pyparq.write_table(pa.table({"text": some}), path)
        assert not path.exists()


# ---- files that are replaced ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fsync", [False, True])
def test_a_replaced_file_is_whole(fsync: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for _ in range(2):
        pyparq.write_table(TABLES["numbers"], path, row_group_size=200_000, fsync=fsync)
        assert pq.read_table(path).equals(TABLES["numbers"])
    assert os.listdir(tmp_path) == ["x.parquet"]


def test_the_old_file_stays_where_a_later_row_group_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"old")
    good = TABLES["text"]["text"].chunk(0)
    text = pa.chunked_array([good, good, raw_text(good, 100, b"\xff")])
    with pytest.raises(DataError, match="UTF-8") as caught:
        pyparq.write_table(pa.table({"text": text}), path, row_group_size=60_000)
    assert caught.value.row_group == 2
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.parquet"]


@pytest.mark.skipif(kernels.begin_writeback is None, reason="the system has no such call")
def test_hints_to_the_system_never_fail(tmp_path: Path) -> None:
    assert kernels.begin_writeback is not None
    with (tmp_path / "x").open("wb") as file:
        file.write(b"x" * 10_000)
        kernels.begin_writeback(file.fileno(), 0, 1 << 40)
        number = file.fileno()
    kernels.begin_writeback(number, 0, 10)
    with pytest.raises(kernels.KernelError):
        kernels.begin_writeback(number, -1, 10)


# ---- tasks ----------------------------------------------------------------------------------------------------------


def test_whether_a_task_has_ended() -> None:
    go, inside = threading.Event(), []

    def call() -> int:
        inside.append(within_task())
        go.wait(30)
        return 7

    task = Task(call)
    assert not task.ended(0)
    task.start()
    assert not task.ended(0.01)
    go.set()
    assert task.result() == 7
    assert task.ended(0)
    assert task.ended(0)  # asked again
    assert inside == [True]
    assert not within_task()
