"""Pages sealed and opened by native code, and by Python's library: the same values, and the same errors."""

from __future__ import annotations

import io
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from encryption_by_hand import File

import pyparq
from pyparq import kernels
from pyparq.encryption import DecryptionProperties, EncryptionProperties, cipher
from pyparq.errors import EncryptionError, LimitError, ParquetError
from pyparq.options import Limits

KEYS = [b"k" * 16, b"k" * 24, b"k" * 32]
TABLE = pa.table(
    {
        "n": range(3_000),
        "word": [None if n % 7 == 0 else f"word {n % 40}" for n in range(3_000)],
        "text": [f"{n * 7919:030}" for n in range(3_000)],
        "list": [[n, None][: n % 3] for n in range(3_000)],
    }
)


def ours(key: bytes, algorithm: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    given = {"row_group_size": 1_700, "data_page_size": 4_000}
    pyparq.write_table(TABLE, sink, encryption=EncryptionProperties(key, algorithm=algorithm), **(given | options))
    return sink.getvalue()


def theirs(key: bytes, algorithm: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    properties = pe.create_encryption_properties(key, encryption_algorithm=algorithm)
    pq.write_table(TABLE, sink, encryption_properties=properties, row_group_size=1_700, data_page_size=4_000, **options)
    return sink.getvalue()


@pytest.fixture(params=[True, False], ids=["native", "Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(cipher, "aes_is_native", lambda: False)


def test_the_library_is_found_here() -> None:
    """It is part of the Pythons that tests run on; elsewhere Python's way is taken."""
    assert kernels.aes_is_native()


@pytest.mark.parametrize("key", KEYS, ids=len)
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("writer", [ours, theirs])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.usefixtures("way")
def test_all_and_some_rows(key: bytes, algorithm: str, writer: Any, version: str) -> None:
    data, decryption = writer(key, algorithm, data_page_version=version), DecryptionProperties(key)
    for threads in (True, False):
        assert pyparq.read_table(data, decryption=decryption, use_threads=threads).to_arrow().equals(TABLE)
    rows = [5, 1_699, 1_700, 2_999]
    found = pyparq.read_table(data, decryption=decryption, rows=rows).to_arrow()
    assert found.equals(TABLE.take(pa.array(rows)))


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_damage_is_told_alike(algorithm: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = KEYS[0]
    data, chance = ours(key, algorithm, data_page_version=version), random.Random(version + algorithm)
    for _ in range(60):
        damaged = bytearray(data)
        damaged[chance.randrange(4, len(data) // 2)] ^= 1 << chance.randrange(8)
        answers = []
        for native in (True, False):
            monkeypatch.setattr(cipher, "aes_is_native", lambda native=native: native)
            try:
                decryption = DecryptionProperties(key)
                answers.append(pyparq.read_table(bytes(damaged), decryption=decryption, use_threads=False).to_arrow())
            except ParquetError as error:
                answers.append(str(error))
        assert answers[0] == answers[1]


@pytest.mark.usefixtures("way")
def test_decrypted_pages_are_counted() -> None:
    table = pa.table({"x": pa.array([bytes([k % 251]) * 1_000 for k in range(4_000)])})
    sink = io.BytesIO()
    pyparq.write_table(
        table,
        sink,
        encryption=EncryptionProperties(KEYS[0]),
        use_dictionary=False,
        compression="none",
        data_page_size=4_100_000,
    )
    decryption = DecryptionProperties(KEYS[0])
    with pytest.raises(LimitError, match=r"limits\.max_memory"):
        pyparq.read_table(sink.getvalue(), decryption=decryption, limits=Limits(max_memory=7_000_000))
    found = pyparq.read_table(sink.getvalue(), decryption=decryption, limits=Limits(max_memory=11_000_000))
    assert found.to_arrow().equals(table)


# ---- writing

WIDE = pa.table(
    {
        "n": pa.array(np.random.default_rng(5).integers(0, 1 << 60, 400_000)),
        "nulls": pa.array(np.arange(400_000), mask=np.arange(400_000) % 3 == 0),
        "word": pa.array(np.arange(400_000) % 40).cast(pa.string()),
    }
)
"""Enough for the pages of a chunk to be shared out to threads."""
OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "small pages": {"max_rows_per_page": 3_000, "row_group_size": 150_000},
    "Python's codec": {"compression": "zstd", "compression_level": 19, "row_group_size": 100_000},
    "no codec": {"compression": "none", "data_page_version": "2.0"},
    "no checksums, no index": {"write_page_checksum": False, "write_page_index": False},
}


def written(algorithm: str, options: dict[str, Any], key: bytes = KEYS[2]) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(WIDE, sink, encryption=EncryptionProperties(key, algorithm=algorithm), **options)
    return sink.getvalue()


@pytest.mark.sweep(5)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.usefixtures("way")
def test_files_of_either_way(algorithm: str, options: dict[str, Any], threads: bool) -> None:
    data = written(algorithm, options | {"use_threads": threads})
    theirs = pe.create_decryption_properties(KEYS[2])
    assert pq.read_table(pa.BufferReader(data), decryption_properties=theirs).equals(WIDE)
    found = pyparq.read_table(data, decryption=DecryptionProperties(KEYS[2]))
    assert found.to_arrow().equals(WIDE)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_what_is_sealed_natively_opens_in_python(
    algorithm: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(algorithm, options)
    monkeypatch.setattr(cipher, "aes_is_native", lambda: False)
    found = pyparq.read_table(data, decryption=DecryptionProperties(KEYS[2]))
    assert found.to_arrow().equals(WIDE)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.usefixtures("way")
def test_no_nonce_twice(algorithm: str) -> None:
    """In one file whose chunks are made by several threads, and in all files under a key."""
    key, nonces, modules = os.urandom(16), set(), 0
    for _ in range(2):
        data = written(algorithm, OPTIONS["small pages"], key)
        file = File(data, {None: key})
        for group, column in itertools.product(range(len(file.footer[4])), range(WIDE.num_columns)):
            chunk = file.chunk(group, column)
            at, end = chunk.meta.get(11, chunk.meta[9]), chunk.meta.get(11, chunk.meta[9]) + chunk.meta[7]
            while at < end:
                nonces.add(data[at + 4 : at + 16])
                at += 4 + int.from_bytes(data[at : at + 4], "little")
                modules += 1
            assert at == end
    assert modules > 500
    assert len(nonces) == modules


@pytest.mark.parametrize("limit", [4, 400, 1_199])
@pytest.mark.usefixtures("way")
def test_a_key_that_was_used_up(limit: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cipher, "MAX_INVOCATIONS", limit)
    path = tmp_path / "f.parquet"
    encryption = EncryptionProperties(os.urandom(16))
    with pytest.raises(EncryptionError, match=rf"used for {limit} encryptions, which is the limit"):
        pyparq.write_table(WIDE, path, encryption=encryption, max_rows_per_page=2_000, row_group_size=400_000)
    assert not list(tmp_path.iterdir())


def test_encryptions_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invocations of a key are those of modules, whoever seals them."""
    counts = []
    for native in (True, False):
        monkeypatch.setattr(cipher, "aes_is_native", lambda native=native: native)
        key = os.urandom(16)
        properties = EncryptionProperties(key)
        pyparq.write_table(WIDE, io.BytesIO(), encryption=properties, max_rows_per_page=20_000)
        counts.append(cipher.DataKey(key).invocations)
    assert counts[0] == counts[1] > 100


FORKING = """
import io, os, sys
import numpy as np, pyparq
from pyparq.encryption import EncryptionProperties
from pyparq.write import column_chunks

forked = []

def fork():
    if not forked:
        forked.append(os.fork())

def stored(self, chunks, *given):
    encode(self, chunks, *given)
    name = "parent" if forked[0] else "child"
    with open(os.path.join(sys.argv[1], name), "wb") as out:
        out.write(b"".join(chunks.native.take()))
    if forked[0]:
        os.waitpid(forked[0], 0)
    os._exit(0)

column_chunks.check_stopped = fork  # called every 50 ms
encode, column_chunks.ChunkEncoder.encode = column_chunks.ChunkEncoder.encode, stored
numbers = np.random.default_rng(0).integers(0, 1 << 40, 3_000_000)
pyparq.write_table(
    {"n": numbers}, io.BytesIO(), encryption=EncryptionProperties(b"k" * 16), use_threads=False, compression="zstd",
    compression_level=5, max_rows_per_page=2_000, row_group_size=len(numbers), column_encoding="PLAIN",
)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_amid_a_chunk(tmp_path: Path) -> None:
    """Of the nonces that were drawn for all pages of a chunk, the child uses none that its parent may use."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path)], check=True, timeout=60)
    nonces = []
    for name in ("parent", "child"):
        data, at, found = (tmp_path / name).read_bytes(), 0, []
        while at < len(data):
            found.append(data[at + 4 : at + 16])
            at += 4 + int.from_bytes(data[at : at + 4], "little")
        nonces.append(found)
    parent, child = nonces
    assert len(parent) == len(child) == len(set(parent)) == len(set(child)) == 3_000
    together = sum(a == b for a, b in zip(parent, child, strict=True))  # what stood there before the fork
    assert parent[:together] == child[:together]
    assert not set(parent[together:]) & set(child[together:])
    assert together < 3_000


def test_keys_have_the_sizes_of_aes() -> None:
    for size in (0, 15, 17, 31, 33, 64):
        with pytest.raises(kernels.KernelError, match="16, 24 or 32"):
            kernels.AesKey(bytes(size))
