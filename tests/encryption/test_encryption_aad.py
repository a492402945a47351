"""AAD bytes and cipher modules against bytes written down from the specification, and against ``cryptography``."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from encryption_by_hand import open_ctr, open_gcm

from pyparq.encryption import EncryptionProperties, cipher, package_ciphers
from pyparq.encryption.cipher import ChunkAad, DataKey, Module, footer_aad
from pyparq.errors import EncryptionError, OptionError

FILE = b"prefix" + bytes.fromhex("0102030405060708")
KEYS = [b"k" * 16, b"k" * 24, b"k" * 32]

# Row group 1, column 0x0203, page 0x0405 (Encryption.md 4.4.2: type, then ordinals in two bytes, little-endian).
BY_HAND = {
    Module.COLUMN_METADATA: "01 0100 0302",
    Module.DATA_PAGE: "02 0100 0302 0504",
    Module.DICTIONARY_PAGE: "03 0100 0302",
    Module.DATA_PAGE_HEADER: "04 0100 0302 0504",
    Module.DICTIONARY_PAGE_HEADER: "05 0100 0302",
    Module.COLUMN_INDEX: "06 0100 0302",
    Module.OFFSET_INDEX: "07 0100 0302",
    Module.BLOOM_FILTER_HEADER: "08 0100 0302",
    Module.BLOOM_FILTER_BITSET: "09 0100 0302",
}


def test_every_module_type_is_here() -> None:
    assert set(BY_HAND) | {Module.FOOTER} == set(Module)
    assert [int(m) for m in Module] == list(range(10))


@pytest.mark.parametrize("module", BY_HAND)
def test_aad_of_chunk_modules(module: Module) -> None:
    assert ChunkAad(FILE, 1, 0x0203).of(module, 0x0405) == FILE + bytes.fromhex(BY_HAND[module])


def test_aad_of_the_footer() -> None:
    assert footer_aad(FILE) == FILE + b"\x00"


@pytest.mark.parametrize("place", [(32_767, 0, 0), (0, 32_767, 0), (0, 0, 32_767)])
def test_last_ordinals(place: tuple[int, int, int]) -> None:
    row_group, column, page = place
    assert ChunkAad(b"", row_group, column).of(Module.DATA_PAGE, page)[1:] == b"".join(
        n.to_bytes(2, "little") for n in place
    )


@pytest.mark.parametrize(
    ("place", "what"), [((32_768, 0, 0), "row group 32768"), ((0, 32_768, 0), "column 32768"), ((0, 0, 32_768), "page")]
)
def test_ordinals_beyond(place: tuple[int, int, int], what: str) -> None:
    row_group, column, page = place
    with pytest.raises(EncryptionError, match=what):
        ChunkAad(b"", row_group, column).of(Module.DATA_PAGE, page)


def test_a_data_page_needs_its_ordinal() -> None:
    with pytest.raises(EncryptionError, match="page -1"):
        ChunkAad(b"", 0, 0).of(Module.DATA_PAGE)


# ---- modules


@pytest.mark.parametrize("raw", KEYS, ids=len)
@pytest.mark.parametrize("parts", [[b""], [b"x"], [b"one", b"", b"two" * 50], [b"a" * 100_000]], ids=[0, 1, 2, 3])
def test_modules_open_by_hand(raw: bytes, parts: list[bytes]) -> None:
    key = DataKey(raw)
    sealed = bytes(key.seal(parts, b"aad"))
    assert len(sealed) == 32 + len(b"".join(parts))
    assert open_gcm(raw, sealed, b"aad") == b"".join(parts)
    assert bytes(key.open(sealed, b"aad")) == b"".join(parts)
    sealed = bytes(key.seal_ctr(parts))
    assert len(sealed) == 16 + len(b"".join(parts))
    assert open_ctr(raw, sealed) == b"".join(parts)
    assert bytes(key.open_ctr(sealed)) == b"".join(parts)


@pytest.mark.parametrize(
    "size", [0, 1, 15, 16, 17, 31, 32, 33, 1000, package_ciphers.LARGE_BODY - 1, package_ciphers.LARGE_BODY, 100_001]
)
def test_ctr_by_either_way(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through GCM's counters, and through a CTR context as where ``cryptography`` cannot write into a buffer."""
    text, raw = bytes(range(256)) * 400, b"sixteen byte key"
    monkeypatch.setattr(package_ciphers, "gcm_is_quicker", lambda: True)  # which depends on the processor
    if size < 2000:
        monkeypatch.setattr(package_ciphers, "LARGE_BODY", 17)
    native = DataKey(raw)
    monkeypatch.setattr(cipher, "aes_is_native", lambda: False)
    key, older = DataKey(raw), DataKey(raw)
    older._ciphers.into = None
    for writer, reader in ((key, older), (older, key), (native, key), (older, native)):
        for parts in ([text[:size]], [text[: size // 3], text[size // 3 : size]]):
            sealed = bytes(writer.seal_ctr(parts))
            assert open_ctr(raw, sealed) == text[:size] == bytes(reader.open_ctr(sealed))


def test_the_way_that_is_measured_as_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cipher, "aes_is_native", lambda: False)
    key = DataKey(bytes(16))
    page = bytes(range(256)) * (package_ciphers.LARGE_BODY // 256)
    assert open_ctr(bytes(16), bytes(key.seal_ctr([page]))) == page


def test_nist_vector() -> None:
    """AES-GCM, test case 4 of the GCM specification's appendix, in a module's frame."""
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308")
    nonce = bytes.fromhex("cafebabefacedbaddecaf888")
    aad = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    text = bytes.fromhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    )
    sealed = bytes.fromhex(
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
        "5bc94fbc3221a5db94fae95ae7121a47"
    )
    framed = (12 + len(sealed)).to_bytes(4, "little") + nonce + sealed
    assert bytes(DataKey(key).open(framed, aad)) == text


@pytest.mark.parametrize("damage", ["length", "nonce", "text", "tag", "aad", "key", "short", "long"])
def test_damaged_modules(damage: str) -> None:
    sealed = bytearray(DataKey(KEYS[0]).seal([b"some plaintext"], b"aad"))
    aad, key = b"aad", KEYS[0]
    at = {"length": 0, "nonce": 5, "text": 20, "tag": -1}.get(damage)
    if at is not None:
        sealed[at] ^= 1
    elif damage == "aad":
        aad = b"AAD"
    elif damage == "key":
        key = b"K" * 16
    elif damage == "short":
        del sealed[-1]
    else:
        sealed.append(0)
    with pytest.raises(EncryptionError):
        DataKey(key).open(sealed, aad)


@pytest.mark.parametrize("size", range(32))
def test_no_module_is_so_short(size: int) -> None:
    data = max(size - 4, 0).to_bytes(4, "little")[:size].ljust(size, b"\0")
    with pytest.raises(EncryptionError):
        DataKey(KEYS[0]).open(data, b"")


def test_nonces_differ() -> None:
    key = DataKey(KEYS[0])
    nonces = {bytes(key.seal([b"same"], b""))[4:16] for _ in range(1_000)}
    nonces |= {bytes(key.seal_ctr([b"same"]))[4:16] for _ in range(1_000)}
    assert len(nonces) == 2_000


def test_signature() -> None:
    key = DataKey(KEYS[1])
    signature = key.sign(b"footer", b"aad")
    assert len(signature) == 28
    assert AESGCM(KEYS[1]).encrypt(signature[:12], b"footer", b"aad")[-16:] == signature[12:]
    assert key.verify(b"footer", signature, b"aad")
    assert not key.verify(b"Footer", signature, b"aad")
    assert not key.verify(b"footer", signature, b"AAD")
    assert not key.verify(b"footer", signature[:-1] + bytes([signature[-1] ^ 1]), b"aad")
    assert not DataKey(KEYS[2]).verify(b"footer", signature, b"aad")


def test_from_many_threads() -> None:
    key = DataKey(KEYS[2])

    def turn(k: int) -> bool:
        text = bytes([k % 256]) * (k * 37 % 5_000)
        return bytes(key.open_ctr(key.seal_ctr([text]))) == text == bytes(key.open(key.seal([text], b"a"), b"a"))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(400)))


# ---- counting


def test_invocations_are_counted_per_key() -> None:
    raw = bytes(range(16))
    one, two, other = DataKey(raw), DataKey(raw), DataKey(bytes(16))
    before = one.invocations
    one.seal([b"a"], b"")
    two.seal_ctr([b"a"])
    two.sign(b"a", b"")
    assert one.invocations == two.invocations == before + 3
    other.seal([b"b"], b"")
    assert one.invocations == before + 3


def test_counts_outlive_what_holds_a_key() -> None:
    """Properties made anew for each file do not start at 0; keys that serve one file are let go of."""
    raw = b"given once a file"[:16]
    for _ in range(3):
        held = EncryptionProperties(raw, {"a": raw[::-1]}).keys_for(["a"], "f")
        assert held.columns["a"] is not None
        for key in (held.footer.key, held.columns["a"].key):
            key.seal([b"a"], b"")
        del held, key
        gc.collect()
    assert DataKey(raw).invocations == DataKey(raw[::-1]).invocations == 3
    before = len(cipher._nonces)
    DataKey(os.urandom(16)).seal([b"a"], b"")
    gc.collect()
    assert len(cipher._nonces) == before


def test_invocation_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cipher.MAX_INVOCATIONS == 2**32
    key = DataKey(b"limited to three")
    monkeypatch.setattr(cipher, "MAX_INVOCATIONS", 3)
    sealed = [key.seal([b"a"], b"") for _ in range(3)]
    for refused in (
        lambda: key.seal([b"a"], b""), lambda: key.seal_ctr([b"a"]), lambda: key.sign(b"a", b""),
        lambda: key.wrap(b"a", b""),
    ):  # fmt: skip
        with pytest.raises(EncryptionError, match="Use a new key"):
            refused()
    assert bytes(key.open(sealed[0], b"")) == b"a"  # decrypting has no limit


# ---- keys do not show


@pytest.mark.parametrize("size", [0, 1, 15, 17, 31, 33])
def test_key_lengths(size: int) -> None:
    with pytest.raises(OptionError, match=f"{size} bytes, but an AES key has 16, 24 or 32"):
        DataKey(b"k" * size)


def test_keys_do_not_show() -> None:
    key = DataKey(b"do not print me!")
    assert "print me" not in repr(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.copy(key)


FORKING = """
import os
from pyparq.encryption.cipher import DataKey

key = DataKey(bytes(16))

def nonces():
    return [bytes(key.seal([b""], b""))[4:16] for _ in range(150)]

drawn = nonces()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"".join(nonces()))
    os._exit(0)
drawn += nonces()
child = os.read(reading, 150 * 12)
drawn += [child[at : at + 12] for at in range(0, len(child), 12)]
print(len(drawn), len(set(drawn)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_no_nonce_twice_and_none_of_a_parent_in_its_child() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["450", "450"]
