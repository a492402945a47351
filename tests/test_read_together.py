"""Pages that the native loop opens, against the same opened one by one: other people's and damaged ones alike."""

from __future__ import annotations

import io
import random
from typing import Any

import handmade
import hostile_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties
from pyparq.encryption import cipher
from pyparq.errors import ParquetError
from pyparq.read import decode, many

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


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pages the loop opens at a time."""
    opened: list[int] = []
    found = many.Together.next

    def counted(self: many.Together, walk: Any, window: int) -> Any:
        pages = found(self, walk, window)
        opened.append(len(pages))
        return pages

    monkeypatch.setattr(many.Together, "next", counted)
    return opened


@pytest.mark.parametrize("name", FILES)
def test_the_loop_is_used(name: str, windows: list[int]) -> None:
    data, options = FILES[name]
    assert pyparq.read_table(data, **options).to_arrow().equals(TABLE)
    if name != "GCM, v2":  # where the levels of those lie, two writers disagree
        assert sum(windows) >= 4 * 8


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


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_damaged_levels_have_the_same_outcome(version: str) -> None:
    data = from_pyarrow(compression="none", data_page_version=version, write_page_checksum=True)
    rng = random.Random(version)
    pairs = []
    for start, _ in hostile_files.regions(data)["body"]:
        for at in rng.sample(range(start, start + 16), 4):  # levels, and in version 1 their lengths
            damaged = bytearray(data)
            damaged[at] ^= 1 << rng.randrange(8)
            with pytest.MonkeyPatch.context() as patch:
                together = outcome(bytes(damaged), {"verify_checksums": False})
                patch.setattr(many.Together, "next", lambda self, walk, window: [])
                pairs.append((together, outcome(bytes(damaged), {"verify_checksums": False})))
    assert [a for a, _ in pairs] == [b for _, b in pairs]
    assert any(isinstance(a, tuple) and "levels" in a[1] for a, _ in pairs)


def test_levels_of_tiny_pages_take_room_too(windows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    nulls = 1 << 16
    page = handmade.Page(nulls, b"", definition=b"\x80\x80\x08\0")  # one run
    file = handmade.make(
        [handmade.group("root", None, 1), handmade.leaf("x", handmade.OPTIONAL)],
        [handmade.Column([page] * 20, max_def=1)], 20 * nulls,
    )  # fmt: skip
    monkeypatch.setattr(decode, "WAITING", 100_000)
    assert pyparq.read_table(file).to_arrow()["x"].null_count == 20 * nulls
    assert (sum(windows), max(windows)) == (20, 2)


@pytest.mark.parametrize("empty", [0, 20_000])
def test_tiny_pages_take_room_themselves(empty: int, windows: list[int]) -> None:
    pages = [handmade.Page(0, b"")] * empty + [handmade.Page(1, k.to_bytes(4, "little")) for k in range(5_000)]
    file = handmade.make(
        [handmade.group("root", None, 1), handmade.leaf("x", handmade.REQUIRED)], [handmade.Column(pages)], 5_000
    )
    assert pyparq.read_table(file).to_pydict() == {"x": list(range(5_000))}
    assert max(windows) <= decode.WAITING // 512
    assert empty or sum(windows) == 5_000


SOME = [3, 4, 5, 401, 1_999, 2_000, 2_999]


def taken(data: bytes, options: dict[str, Any]) -> Any:
    try:
        with pyparq.ParquetFile(data, **options) as file:
            return file.take(SOME).to_pydict()
    except ParquetError as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", FILES)
def test_few_rows_of_the_pages_of_a_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options = FILES[name]
    opened = []
    found = many.Together.planned

    def counted(self: many.Together, *arguments: Any) -> Any:
        pages = found(self, *arguments)
        opened.extend(pages)
        return pages

    monkeypatch.setattr(many.Together, "planned", counted)
    with_index = pyparq.ParquetFile(data, **options).page_locations(0, "n") is not None
    assert taken(data, options) == TABLE.take(pa.array(SOME)).to_pydict()
    # Those of a list are opened one by one, and so are all where nothing says where they lie.
    assert len(opened) == (0 if not with_index or name == "GCM, v2" else 3 * 5)


@pytest.mark.parametrize("name", ["CTR", "GCM", "indexed"])
def test_damage_of_planned_pages_has_the_same_outcome(name: str) -> None:
    data, options = FILES.get(name) or (ours(), PLAIN)
    rng = random.Random(name)
    pairs = []
    for _ in range(80):
        damaged = bytearray(data)
        damaged[rng.randrange(4, len(data) * 8 // 10)] ^= 1 << rng.randrange(8)
        with pytest.MonkeyPatch.context() as patch:
            together = taken(bytes(damaged), options)
            patch.setattr(many.Together, "planned", lambda self, *arguments: [])
            pairs.append((together, taken(bytes(damaged), options)))
    assert [a for a, _ in pairs] == [b for _, b in pairs]
    assert any(isinstance(a, tuple) for a, _ in pairs)


@pytest.mark.parametrize("name", ["CTR", "GCM"])
@pytest.mark.parametrize("age", ["no decrypt_into", "no reset_nonce", "GCM is quicker"])
def test_other_ways_to_open_a_body(name: str, age: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with older releases of ``cryptography``, and on processors that run GCM quicker than CTR."""
    data, options = FILES[name]

    class Older(cipher._Ciphers):
        def __init__(self, key: bytes) -> None:
            super().__init__(key)
            self.decrypt_into = None

    class NoReset:
        def __init__(self, context: Any) -> None:
            self.update, self.update_into = context.update, context.update_into

    new = cipher.DataKey._new_ctr
    if age == "no decrypt_into":
        monkeypatch.setattr(cipher, "_Ciphers", Older)
    elif age == "no reset_nonce":
        monkeypatch.setattr(cipher.DataKey, "_new_ctr", lambda self, nonce: NoReset(new(self, nonce)))
    else:
        monkeypatch.setattr(cipher, "_gcm_is_quicker", lambda: True)
        monkeypatch.setattr(cipher, "_LARGE", 500)
    assert pyparq.read_table(data, **options).to_arrow().equals(TABLE)
    assert taken(data, options) == TABLE.take(pa.array(SOME)).to_pydict()
