"""AES of one key by the package cryptography, for machines where the kernels have no libcrypto.

cryptography brings an OpenSSL of its own. It is imported only here, so AES runs on one OpenSSL in each process: the
kernels' libcrypto where they have it, else that of cryptography.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from time import perf_counter_ns
from typing import Any

import numpy as np

from pyparq.runtime.lazy_import import load

_NONCE, _TAG, _BLOCK = 12, 16, 16
_CTR_START = b"\x00\x00\x00\x01"
LARGE_BODY = 64 << 10
"""Bytes from which GCM may run CTR."""
_ANY = 1 << 31
"""No body has more bytes."""


class PackageCiphers(threading.local):
    """What the package keeps for one key. Each thread has its own: two threads that share one wait for each other."""

    native = None
    """The key for native code, which cannot use this package."""

    def __init__(self, key: bytes) -> None:
        # These imports take 7 ms: not for programs that never encrypt.
        cipher = load("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)
        self.encrypt = cipher.encrypt
        self.decrypt = cipher.decrypt
        self.into: Any = getattr(cipher, "encrypt_into", None)  # since cryptography 47
        self.decrypt_from: Any = getattr(cipher, "decrypt_into", None)
        self.refused: type[Exception] = load("cryptography.exceptions").InvalidTag
        """What is raised where a tag is wrong."""
        self._aes = load("cryptography.hazmat.primitives.ciphers.algorithms").AES(key)
        self._ctr: Any = None
        """A context of AES-CTR that can begin anew: making one costs more than a small page."""

    # ---- GCM

    def encrypt_into(self, nonce: bytes, data: Any, aad: bytes | None, out: memoryview) -> None:
        """``out`` has room for ``data`` and a tag."""
        if self.into is not None:
            self.into(nonce, data, aad, out)
        else:
            out[:] = self.encrypt(nonce, data, aad)

    def decrypt_into(self, nonce: bytes, sealed: Any, aad: bytes | None, out: memoryview) -> None:
        """``out`` has room for the text."""
        if self.decrypt_from is not None:
            self.decrypt_from(nonce, sealed, aad, out)
        else:
            out[:] = self.decrypt(nonce, sealed, aad)

    # ---- CTR

    def run_ctr(self, nonce: bytes, data: memoryview, out: memoryview) -> None:
        """Encrypt or decrypt, which is the same. ``out`` has room for a tag more; what comes to stand there is none.

        GCM encrypts its plaintext by CTR too, with counters from 2 on, and its tag over nothing is the block of counter
        1 itself (NIST SP 800-38D, 7.1). OpenSSL runs it at twice the speed of CTR where the processor has wide AES, at
        half of it elsewhere; one more call makes that worth while for large pages only.
        """
        if len(data) < LARGE_BODY or not self._large_by_gcm():
            self.run_context(nonce, data, out[: len(data)])
            return
        first = int.from_bytes(self.encrypt(nonce, b"", None), "little")
        start = (int.from_bytes(data[:_BLOCK], "little") ^ first).to_bytes(_BLOCK, "little")
        self.into(nonce, data[_BLOCK:], None, out[_BLOCK:])
        out[:_BLOCK] = start

    def _large_by_gcm(self) -> bool:
        return self.into is not None and gcm_is_quicker()

    def run_context(self, nonce: bytes, data: memoryview, out: memoryview) -> None:
        """The same by a CTR context."""
        if not len(data):
            return
        context = self._ctr_at(nonce)
        try:
            context.update_into(data, out)
        except ValueError:  # older releases of cryptography want room for one block more
            out[:] = context.update(data)

    def _ctr_at(self, nonce: bytes) -> Any:
        """A context that begins with ``nonce``: this thread's, where the package can reset one."""
        if self._ctr is not None:
            self._ctr.reset_nonce(nonce + _CTR_START)
            return self._ctr
        ciphers = load("cryptography.hazmat.primitives.ciphers")
        context = ciphers.Cipher(self._aes, ciphers.modes.CTR(nonce + _CTR_START)).encryptor()
        if hasattr(context, "reset_nonce"):
            self._ctr = context
        return context

    # ---- many pages

    def sealing_calls(self, ctr: bool) -> tuple[Any, Any, Any, int]:
        """``encrypt_into``, ``reset_nonce`` and ``update_into`` as :class:`pyparq.kernels.Sealer` takes them, and the
        bytes of a body up to which these are used; -1 where the package is too old for them."""
        reset, update, most = self._ctr_calls() if ctr else (None, None, _ANY)
        return self.into, reset, update, most if self.into is not None else -1

    def _ctr_calls(self) -> tuple[Any, Any, int]:
        context = self._ctr_at(bytes(_NONCE))
        if not hasattr(context, "reset_nonce"):
            return None, None, -1
        return context.reset_nonce, context.update_into, LARGE_BODY if self._large_by_gcm() else _ANY


@cache
def gcm_is_quicker() -> bool:
    """Whether this processor runs GCM faster than CTR. Takes a third of a millisecond, once."""
    ciphers = PackageCiphers(os.urandom(16))
    nonce, data, out = bytes(_NONCE), memoryview(bytes(LARGE_BODY)), np.empty(LARGE_BODY + _TAG, np.uint8).data
    took: dict[bool, list[int]] = {True: [], False: []}
    for _ in range(4):
        for by_gcm, times in took.items():
            start = perf_counter_ns()
            if by_gcm:
                ciphers.into(nonce, data, None, out)
            else:
                ciphers.run_context(nonce, data, out[:LARGE_BODY])
            times.append(perf_counter_ns() - start)
    return min(took[True]) < min(took[False])
