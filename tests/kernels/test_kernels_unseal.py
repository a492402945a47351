"""Arenas, and modules of encrypted pages that the native loop opens, against modules sealed by hand."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from pyparq import kernels
from pyparq.encryption.aad import ChunkAad, Module
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize
from pyparq.kernels import Arena, KernelError

KEY = bytes(range(16))
AAD = ChunkAad(b"file", 2, 3)
TERMS = (0, 0, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1)
VALUES = np.arange(50, dtype=np.int32).tobytes()


def gcm(text: bytes, module: Module, page: int) -> bytes:
    nonce = os.urandom(12)
    sealed = nonce + AESGCM(KEY).encrypt(nonce, text, AAD.of(module, page))
    return len(sealed).to_bytes(4, "little") + sealed


def ctr(text: bytes, module: Module, page: int) -> bytes:
    nonce = os.urandom(12)
    sealed = nonce + Cipher(AES(KEY), CTR(nonce + b"\0\0\0\1")).encryptor().update(text)
    return len(sealed).to_bytes(4, "little") + sealed


def header(stored: int) -> bytes:
    inner = tt.DataPageHeader(num_values=50, encoding=0, definition_level_encoding=3, repetition_level_encoding=3)
    return serialize(
        tt.PageHeader(type=0, uncompressed_page_size=200, compressed_page_size=stored, data_page_header=inner)
    )


def page(number: int, seal: Any, sealed_as: int | None = None) -> bytes:
    body = seal(VALUES, Module.DATA_PAGE, number if sealed_as is None else sealed_as)
    return gcm(header(len(body)), Module.DATA_PAGE_HEADER, number) + body


def nowhere(stored: Any, number: int) -> bytes:
    raise AssertionError("a body that the loop can open itself")


def unsealer(seal: Any, most: int = 1 << 31, otherwise: Any = nowhere) -> kernels.Unsealer:
    cipher, context = AESGCM(KEY), Cipher(AES(KEY), CTR(bytes(16))).encryptor()
    calls = (cipher.decrypt_into, None, None) if seal is gcm else (None, context.reset_nonce, context.update_into)
    aads = AAD.before(Module.DATA_PAGE_HEADER), AAD.before(Module.DATA_PAGE)
    return kernels.Unsealer(cipher.decrypt, *calls, *aads, Arena(fresh), most, otherwise)


def run(data: bytes, first: int, opener: kernels.Unsealer) -> tuple[list[bytes], int]:
    inflater = kernels.Inflater(None, False, Arena(fresh), opener)
    found, end, _ = kernels.open_run(data, 0, first, 1_000, TERMS, 1 << 20, 1 << 40, inflater, None)
    return [bytes(values) for *_, values in found], end


def fresh(size: int) -> Any:
    return np.empty(size, np.uint8)


@pytest.mark.parametrize("seal", [gcm, ctr])
def test_pages_sealed_by_hand(seal: Any) -> None:
    pages = [page(k, seal) for k in (7, 8, 9)]
    data = b"".join(pages)
    assert run(data, 7, unsealer(seal)) == ([VALUES] * 3, len(data))


@pytest.mark.parametrize("seal", [gcm, ctr])
def test_pages_in_another_place(seal: Any) -> None:
    """Their headers are bound to their number, and so are GCM bodies."""
    good = page(7, seal)
    assert run(good, 8, unsealer(seal)) == ([], 0)
    assert run(good + good, 7, unsealer(seal)) == ([VALUES], len(good))
    assert run(page(7, seal, sealed_as=6), 7, unsealer(seal))[0] == ([VALUES] if seal is ctr else [])
    for number in (-1, 1 << 15, 1 << 40):
        assert run(good, number, unsealer(seal)) == ([], 0)


@pytest.mark.parametrize("seal", [gcm, ctr])
def test_damaged_modules(seal: Any) -> None:
    good = page(0, seal)
    body = len(good) - len(seal(VALUES, Module.DATA_PAGE, 0))
    for at in range(len(good)):
        damaged = bytearray(good)
        damaged[at] ^= 0x11
        found, _ = run(bytes(damaged), 0, unsealer(seal))
        if at < body + 4 or seal is gcm:
            assert found == []
        else:
            assert [len(values) for values in found] == [len(VALUES)]  # nothing vouches for these
    for size in range(len(good)):
        assert run(good[:size], 0, unsealer(seal)) == ([], 0)


def test_large_bodies_go_elsewhere() -> None:
    asked = []

    def otherwise(stored: Any, number: int) -> bytes:
        asked.append((len(stored), number))
        return VALUES

    assert run(page(3, ctr), 3, unsealer(ctr, 200, otherwise))[0] == [VALUES]
    assert asked == [(216, 3)]
    assert run(page(3, ctr), 3, unsealer(ctr, 216, otherwise))[0] == [VALUES]
    assert len(asked) == 1

    def refuse(stored: Any, number: int) -> bytes:
        raise InvalidTag

    with pytest.raises(InvalidTag):
        run(page(3, ctr), 3, unsealer(ctr, -1, refuse))


def test_arenas_give_out_each_byte_once() -> None:
    arena = Arena(fresh)
    taken = [arena.take(size) for size in (1, 64, 0, 100_000, 7, 3_000_000, 70_000)]
    for k, view in enumerate(taken):
        view[:] = bytes([k + 1]) * len(view)
    assert [len(view) for view in taken] == [1, 64, 0, 100_000, 7, 3_000_000, 70_000]
    assert all(bytes(view) == bytes([k + 1]) * len(view) for k, view in enumerate(taken))
    arena.clear()
    again = arena.take(10)
    again[:] = b"0123456789"
    assert bytes(taken[6][:10]) == b"0123456789"  # from the beginning of the last and largest buffer


def test_arenas_give_out_nothing_first() -> None:
    assert bytes(Arena(fresh).take(0)) == b""


def test_arenas_keep_what_is_looked_at() -> None:
    class Kept(np.ndarray[Any, Any]):
        pass

    buffers = []

    def more(size: int) -> Any:
        buffer = np.empty(size, np.uint8).view(Kept)
        buffers.append(weakref.ref(buffer))
        return buffer

    arena = Arena(more)
    view = arena.take(10)
    arena.take(1 << 20)  # another buffer
    gc.collect()
    assert buffers[0]() is not None
    del view
    gc.collect()
    assert buffers[0]() is None
    assert buffers[1]() is not None
    del arena
    gc.collect()
    assert buffers[1]() is None


@pytest.mark.parametrize("given", [np.empty(10, np.uint8), bytes(1 << 17), np.empty(1 << 17, np.int64), "text", None])
def test_buffers_that_are_none(given: Any) -> None:
    with pytest.raises((KernelError, TypeError)):
        Arena(lambda size: given).take(5)


def test_sizes_that_are_none() -> None:
    with pytest.raises(KernelError, match="negative"):
        Arena(fresh).take(-1)
    with pytest.raises(MemoryError):
        Arena(fresh).take(1 << 60)
