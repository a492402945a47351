"""Nonces, and pages that are sealed natively, opened again by hand."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from encryption_by_hand import open_ctr, open_gcm

from pyparq.encryption.cipher import ChunkAad, Module
from pyparq.kernels import AesKey, KernelError, NativeSealer, Nonces, Sealer, aes_is_native

KEY = bytes(range(16))
AAD = ChunkAad(b"file", 2, 3)
OF_PAGES = tuple(Module)[2:6]
"""The modules that pages consist of."""
BODIES = (Module.DATA_PAGE, Module.DICTIONARY_PAGE)
TEXT = bytes(range(256)) * 20
PARTS: dict[str, list[Any]] = {
    "nothing": [],
    "no bytes": [b""],
    "bytes": [TEXT],
    "a view": [memoryview(TEXT)[7:]],
    "an array": [np.frombuffer(TEXT, np.uint8)],
    "numbers": [np.arange(50.0)],
    "several": [b"\x05\0\0\0", b"", memoryview(TEXT), np.arange(3, dtype=np.int64)],
    "a lot": [bytes(1 << 20)],
}


def nowhere(module: int, parts: list[Any], page: int) -> list[Any]:
    raise AssertionError("a module that the kernel can seal itself")


def sealer(
    ctr: bool, otherwise: Any = nowhere, most: int = 1 << 31, nonces: Any = None, limit: int = 1 << 32
) -> Sealer:
    context = Cipher(AES(KEY), CTR(bytes(16))).encryptor()
    calls = (context.reset_nonce, context.update_into) if ctr else (None, None)
    nonces = nonces or Nonces(os.urandom)
    aads = [AAD.before(module) for module in OF_PAGES]
    return Sealer(nonces, limit, AESGCM(KEY).encrypt_into, *calls, aads, most, otherwise)


def native_sealer(
    ctr: bool, otherwise: Any = nowhere, nonces: Any = None, limit: int = 1 << 32, key: bytes = KEY
) -> NativeSealer:
    aads = [AAD.before(module) for module in OF_PAGES]
    return NativeSealer(nonces or Nonces(os.urandom), limit, AesKey(key), ctr, aads, otherwise)


native = pytest.mark.skipif(not aes_is_native(), reason="libcrypto is not found")
KINDS = [pytest.param(native_sealer, id="native", marks=native), pytest.param(sealer, id="Python's")]


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("page", [0, 255, 256, 32_767])
@pytest.mark.parametrize("ctr", [False, True], ids=["gcm", "ctr"])
@pytest.mark.parametrize("kind", KINDS)
def test_modules_open_by_hand(kind: Any, ctr: bool, page: int, parts: list[Any]) -> None:
    seal = kind(ctr).seal
    text = b"".join(bytes(part) for part in parts)
    for module in OF_PAGES:
        of = page if module in (Module.DATA_PAGE, Module.DATA_PAGE_HEADER) else -1
        (sealed,) = seal(module, parts, of)
        if ctr and module in BODIES:
            assert open_ctr(KEY, bytes(sealed)) == text
        else:
            assert open_gcm(KEY, bytes(sealed), AAD.of(module, of)) == text
    assert b"".join(bytes(part) for part in parts) == text  # left as they are


@native
@pytest.mark.parametrize("ctr", [False, True], ids=["gcm", "ctr"])
@pytest.mark.parametrize("key", [bytes(range(size)) for size in (16, 24, 32)], ids=len)
def test_keys_of_all_sizes(key: bytes, ctr: bool) -> None:
    seal = native_sealer(ctr, key=key).seal
    for size in (*range(66), 4_095, 4_096, 4_097, 70_000):
        text = os.urandom(size)
        (sealed,) = seal(Module.DATA_PAGE, [text[:17], text[17:]], 7)
        opened = open_ctr(key, sealed) if ctr else open_gcm(key, sealed, AAD.of(Module.DATA_PAGE, 7))
        assert opened == text


@native
@pytest.mark.parametrize(
    ("module", "parts", "page"),
    [
        (Module.DATA_PAGE, [b"a"], -1), (Module.DATA_PAGE, [b"a"], 32_768), (Module.DATA_PAGE_HEADER, [b"a"], 1 << 40),
        (Module.FOOTER, [b"a"], -1), (Module.COLUMN_INDEX, [b"a"], -1), (-1, [b"a"], 0), (99, [b"a"], 0),
        ((1 << 32) + 2, [b"a"], 0), (Module.DATA_PAGE, ["a"], 0), (Module.DATA_PAGE, [b"a", None], 0),
    ],
)  # fmt: skip
def test_what_is_not_usual_is_not_sealed_natively(module: Any, parts: list[Any], page: int) -> None:
    seal = native_sealer(False, lambda *asked: [asked]).seal
    assert seal(module, parts, page) == [(module, parts, page)]


@pytest.mark.parametrize("ctr", [False, True], ids=["gcm", "ctr"])
@pytest.mark.parametrize(
    ("module", "parts", "page"),
    [
        (Module.DATA_PAGE, [b"a"], -1), (Module.DATA_PAGE, [b"a"], 32_768), (Module.DATA_PAGE_HEADER, [b"a"], 1 << 40),
        (Module.FOOTER, [b"a"], -1), (Module.COLUMN_INDEX, [b"a"], -1), (-1, [b"a"], 0), (99, [b"a"], 0),
        (Module.DATA_PAGE, [b"a" * 101], 0), (Module.DATA_PAGE, [b"a" * 50, b"b" * 51], 0),
        (Module.DATA_PAGE, ["a"], 0),
    ],
)  # fmt: skip
def test_what_is_not_usual_goes_elsewhere(ctr: bool, module: Any, parts: list[Any], page: int) -> None:
    nonces = Nonces(os.urandom)
    seal = sealer(ctr, lambda *asked: [asked], 100, nonces).seal
    assert seal(module, parts, page) == [(module, parts, page)]
    assert nonces.used == 0
    assert len(seal(Module.DATA_PAGE, [b"a" * 100], 32_767)[0]) == (116 if ctr else 132)


def test_a_library_that_refuses() -> None:
    def refuse(*given: Any) -> None:
        raise ValueError

    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    aads = [b""] * 4
    for calls in ((refuse, None, None), (refuse, refuse, print), (refuse, print, refuse)):
        seal = Sealer(Nonces(os.urandom), 9, *calls, aads, 100, lambda *asked: ["elsewhere"]).seal
        assert seal(Module.DATA_PAGE, [b"a"], 0) == ["elsewhere"]
    for calls in ((interrupt, None, None), (None, interrupt, None), (None, print, interrupt)):
        with pytest.raises(KeyboardInterrupt):
            Sealer(Nonces(os.urandom), 9, *calls, aads, 100, nowhere).seal(Module.DATA_PAGE, [b"a"], 0)
    with pytest.raises(ZeroDivisionError):
        sealer(False, lambda *asked: 1 / 0).seal(Module.FOOTER, [b"a"], 0)


@pytest.mark.parametrize("aads", [[], [b""] * 3, [b""] * 5])
def test_other_numbers_of_aads(aads: list[bytes]) -> None:
    with pytest.raises(KernelError, match="four modules"):
        Sealer(Nonces(os.urandom), 9, None, None, None, aads, 100, nowhere)


# ---- nonces


def test_each_nonce_is_given_once() -> None:
    nonces = Nonces(os.urandom)
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: nonces.take(1 << 32), range(5_000)))
    assert len(set(given)) == nonces.used == 5_000
    assert {len(nonce or b"") for nonce in given} == {12}


def test_those_that_are_drawn_can_be_forgotten() -> None:
    """As a forked process must: its parent has the same ones."""
    drawn = iter(range(256))
    nonces = Nonces(lambda size: bytes([next(drawn)]) * size)
    assert nonces.take(10) == nonces.take(10) == bytes(12)
    nonces.forget()
    assert nonces.take(10) == bytes([1]) * 12
    assert nonces.used == 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit(kind: Any) -> None:
    nonces = Nonces(os.urandom)
    seal = kind(False, lambda *asked: ["elsewhere"], nonces=nonces, limit=3).seal
    found = [seal(Module.DATA_PAGE, [b"a"], 0) for _ in range(5)]
    assert found[3:] == [["elsewhere"]] * 2
    assert len({bytes(sealed)[4:16] for (sealed,) in found[:3]}) == nonces.used == 3
    assert nonces.take(3) is None
    assert nonces.take(4) is not None
    assert nonces.used == 4


def test_a_fork_while_they_are_drawn() -> None:
    """A handler of a signal forks, say: what was drawn before belongs to the parent."""
    drawn: list[bytes] = []

    def draw(size: int) -> bytes:
        if not drawn:
            nonces.forget()
        drawn.append(os.urandom(size))
        return drawn[-1]

    nonces = Nonces(draw)
    assert nonces.take(10) == drawn[1][-12:]


@pytest.mark.parametrize("given", [b"", bytes(11), bytes(769), "text", None, 7])
def test_bytes_that_are_none(given: Any) -> None:
    nonces = Nonces(lambda size: given)
    for _ in range(3):
        with pytest.raises(KernelError, match="random bytes"):
            nonces.take(10)


def test_a_system_without_random_bytes() -> None:
    def none(size: int) -> bytes:
        raise NotImplementedError

    for kind in [sealer, native_sealer][: 1 + aes_is_native()]:
        with pytest.raises(NotImplementedError):
            kind(False, nonces=Nonces(none)).seal(Module.DATA_PAGE, [b"a"], 0)


# ---- what Python asks of a key


@native
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 5_000, 100_000])
@pytest.mark.parametrize("key", [KEY, KEY + KEY[:8], KEY * 2], ids=len)
@pytest.mark.parametrize("aad", [None, b"", b"some AAD"])
def test_a_key_does_what_the_package_does(key: bytes, size: int, aad: bytes | None) -> None:
    ours, theirs, nonce, text = AesKey(key), AESGCM(key), os.urandom(12), os.urandom(size)
    sealed = theirs.encrypt(nonce, text, aad)
    assert ours.encrypt(nonce, text, aad) == sealed
    assert ours.decrypt(nonce, memoryview(sealed), aad) == text
    room = bytearray(size + 16)
    ours.encrypt_into(nonce, text, aad, room)
    assert room == sealed
    room[:size] = text
    ours.encrypt_into(nonce, memoryview(room)[:size], aad, room)  # where it stands
    assert room == sealed
    ours.decrypt_into(nonce, sealed, aad, memoryview(room)[:size])
    assert room[:size] == text
    ours.run_ctr(nonce, text, memoryview(room)[:size])
    assert room[:size] == Cipher(AES(key), CTR(nonce + b"\0\0\0\1")).encryptor().update(text)


@native
def test_a_key_refuses_what_was_changed() -> None:
    key, nonce, text = AesKey(KEY), os.urandom(12), b"text " * 10
    sealed = key.encrypt(nonce, text, b"aad")
    for changed in (sealed[:-1], sealed[:15], b"", sealed + b"!", bytes([sealed[0] ^ 1]) + sealed[1:]):
        with pytest.raises(KernelError, match="authentication failed"):
            key.decrypt(nonce, changed, b"aad")
    for others in ((os.urandom(12), b"aad"), (nonce, b"other"), (nonce, None)):
        with pytest.raises(KernelError, match="authentication failed"):
            key.decrypt_into(others[0], sealed, others[1], bytearray(len(text)))


@native
def test_arguments_of_a_key_that_do_not_fit() -> None:
    """Not a KernelError, which a caller takes for a wrong key."""
    key, nonce = AesKey(KEY), bytes(12)
    calls: list[tuple[Any, str]] = [
        (lambda: key.encrypt(b"short", b"text", None), "12 bytes"),
        (lambda: key.decrypt(bytes(13), bytes(20), None), "12 bytes"),
        (lambda: key.encrypt(nonce, b"text", 5), "AAD"),
        (lambda: key.encrypt_into(nonce, b"text", None, bytearray(19)), "room"),
        (lambda: key.decrypt_into(nonce, bytes(20), None, bytearray(5)), "room"),
        (lambda: key.run_ctr(nonce, b"text", bytearray(5)), "room"),
    ]
    for call, said in calls:
        with pytest.raises(ValueError, match=said) as caught:
            call()
        assert not isinstance(caught.value, KernelError)
