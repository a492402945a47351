"""Pages that the native loop opens, against the same opened one by one: other people's and damaged ones alike."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties
from pyparq.errors import ParquetError
from pyparq.read import many

ROWS = 3000
KEY = b"0123456789abcdef"
PLAIN: dict[str, Any] = {}
ENCRYPTED = {"decryption": DecryptionProperties(KEY)}


def table() -> pa.Table:
    rng = np.random.default_rng(4)
    gone = rng.random(ROWS) < 0.2
    return pa.table({
        "n": pa.array(rng.integers(0, 1 << 50, ROWS), mask=gone),
        "d": pa.array(rng.integers(0, 9, ROWS)),
        "t": pa.array([f"text {k % 97}" for k in range(ROWS)]),
        "l": pa.array([None if k % 7 == 0 else [k, None][: k % 3] for k in range(ROWS)]),
    })  # fmt: skip


TABLE = table()


def from_pyarrow(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, max_rows_per_page=400, use_dictionary=["d"], **options)
    return sink.getvalue()


def ours(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, max_rows_per_page=400, **options)
    return sink.getvalue()


FILES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "v1": (from_pyarrow(), PLAIN),
    "v1 with CRC": (from_pyarrow(write_page_checksum=True), PLAIN),
    "v2": (from_pyarrow(data_page_version="2.0", compression="zstd"), PLAIN),
    "not compressed": (from_pyarrow(compression="none"), PLAIN),
    "GCM": (ours(encryption=EncryptionProperties(KEY)), ENCRYPTED),
    "CTR": (ours(encryption=EncryptionProperties(KEY, algorithm="AES_GCM_CTR_V1")), ENCRYPTED),
    "GCM, v2": (ours(encryption=EncryptionProperties(KEY), data_page_version="2.0"), ENCRYPTED),
}


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(many.Together, "next", lambda self, walk, window: [])
    return monkeypatch


@pytest.mark.parametrize("name", FILES)
def test_the_loop_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options = FILES[name]
    opened = []
    found = many.Together.next

    def counted(self: many.Together, walk: Any, window: int) -> Any:
        pages = found(self, walk, window)
        opened.extend(pages)
        return pages

    monkeypatch.setattr(many.Together, "next", counted)
    assert pyparq.read_table(data, **options).to_arrow().equals(TABLE)
    if name != "GCM, v2":  # where the levels of those lie, two writers disagree
        assert len(opened) >= 4 * 8


@pytest.mark.parametrize("name", FILES)
def test_the_same_one_by_one(name: str, one_by_one: pytest.MonkeyPatch) -> None:
    data, options = FILES[name]
    assert pyparq.read_table(data, **options).to_arrow().equals(TABLE)


def outcome(data: bytes, options: dict[str, Any]) -> Any:
    try:
        return pyparq.read_table(data, **options).to_pydict()
    except ParquetError as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", FILES)
def test_damage_has_the_same_outcome(name: str) -> None:
    data, options = FILES[name]
    rng = random.Random(name)
    pairs = []
    for _ in range(60):
        damaged = bytearray(data)
        damaged[rng.randrange(4, len(data) * 9 // 10)] ^= 1 << rng.randrange(8)
        with pytest.MonkeyPatch.context() as patch:
            together = outcome(bytes(damaged), options)
            patch.setattr(many.Together, "next", lambda self, walk, window: [])
            pairs.append((together, outcome(bytes(damaged), options)))
    assert [a for a, _ in pairs] == [b for _, b in pairs]
    assert any(isinstance(a, tuple) for a, _ in pairs)
