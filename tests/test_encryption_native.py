"""Pages that native code opens, and those that Python's library opens: the same values, and the same errors."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import pyparq
from pyparq import kernels
from pyparq.encryption import DecryptionProperties, EncryptionProperties, cipher
from pyparq.errors import LimitError, ParquetError
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


def test_keys_have_the_sizes_of_aes() -> None:
    for size in (0, 15, 17, 31, 33, 64):
        with pytest.raises(kernels.KernelError, match="16, 24 or 32"):
            kernels.AesKey(bytes(size))
