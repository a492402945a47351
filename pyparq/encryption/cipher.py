"""AES as the format uses it (Encryption.md, 4 and 5.1): modules in GCM and CTR, and the footer's signature.

A stored GCM module is length (4 bytes), nonce (12), ciphertext, tag (16); a CTR module is the same without the tag.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from time import perf_counter_ns
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pyparq.errors import EncryptionError, OptionError
from pyparq.kernels import AesKey, NativeSealer, Nonces, Sealer, aes_is_native
from pyparq.runtime import fork_safety
from pyparq.runtime.lazy_import import load
from pyparq.runtime.safe_repr import printable

LENGTH, NONCE, TAG = 4, 12, 16
GCM_OVERHEAD = LENGTH + NONCE + TAG
CTR_OVERHEAD = LENGTH + NONCE
SIGNATURE = NONCE + TAG
"""Bytes of a footer signature."""

MAX_INVOCATIONS = 1 << 32
"""Encryptions under one key (Encryption.md, 4.1.4)."""

_LENGTH = Struct("<I")
_FRAME = Struct("<I12s")
"""Length and nonce."""
_SMALL = 8 << 10
"""Plaintext up to this size is encrypted as bytes: preparing a buffer would take longer."""

_REFUSED = "authentication failed: the key or AAD is wrong, or the bytes were changed"

_CTR_START = b"\x00\x00\x00\x01"
_BLOCK = 16
_LARGE = 64 << 10
_ANY = 1 << 31
"""No body has more bytes."""

Buffer = npt.NDArray[np.uint8]
PageSeal = NativeSealer | Callable[[Any, list[Any], int], list[Any]]
"""What the native writer seals pages with: on its threads, or by calls of Python (module, parts, page)."""


_nonces: WeakValueDictionary[bytes, Nonces] = WeakValueDictionary()
"""By the hash of a key: what counts its encryptions in this process, by whichever objects hold it."""
_kept: set[Nonces] = set()
"""Those that outlive the objects that hold their keys."""
_nonces_lock = threading.Lock()


def _nonces_of(key: bytes) -> Nonces:
    import hashlib

    name = hashlib.sha256(key).digest()
    with _nonces_lock:
        nonces = _nonces.get(name)
        if nonces is None:
            nonces = _nonces[name] = Nonces(os.urandom)
        return nonces


@fork_safety.in_child
def _draw_anew() -> None:
    """A child must not use the nonces that its parent will."""
    global _nonces_lock
    _nonces_lock = threading.Lock()
    for known in _nonces.valuerefs():
        nonces = known()
        if nonces is not None:
            nonces.forget()


def check_key(key: Any, what: str) -> bytes:
    """``key`` as bytes. Raises :class:`OptionError` unless it is an AES key; the message does not show it."""
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise OptionError(f"{what} must be bytes, not {type(key).__name__}")
    data = bytes(key)
    if len(data) not in (16, 24, 32):
        raise OptionError(f"{what} has {len(data)} bytes, but an AES key has 16, 24 or 32")
    return data


class _Ciphers(threading.local):
    """What the library keeps for one key. Each thread has its own: two that share one wait for each other."""

    def __init__(self, key: bytes) -> None:
        cipher = load("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)
        self.encrypt = cipher.encrypt
        self.decrypt = cipher.decrypt
        self.encrypt_into: Any = getattr(cipher, "encrypt_into", None)  # since cryptography 47
        self.decrypt_into: Any = getattr(cipher, "decrypt_into", None)
        self.ctr: Any = None
        """A context of AES-CTR that can begin anew: making one costs more than a small page."""


class DataKey:
    """An AES key of 16, 24 or 32 bytes, ready for use from several threads. Never printed, never pickled."""

    __slots__ = ("_aes", "_ciphers", "_nonces", "native")

    native: AesKey | None
    """The same key for native code, where that has a library."""

    def __init__(self, key: bytes) -> None:
        # Takes 7 ms: not for those who never encrypt.
        algorithms = load("cryptography.hazmat.primitives.ciphers.algorithms")
        checked = check_key(key, "the key")
        _import_invalid_tag()
        self._ciphers = _Ciphers(checked)
        self._aes = algorithms.AES(checked)
        self._nonces = _nonces_of(checked)
        self.native = AesKey(checked) if aes_is_native() else None

    @printable
    def __repr__(self) -> str:
        return f"<AES key of {self._aes.key_size} bits>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an encryption key cannot be pickled")

    @property
    def invocations(self) -> int:
        """Encryptions made with this key in this process."""
        return self._nonces.used

    def count_on(self) -> None:
        """Keep counting in this process when the key is let go of and given again: not for keys of one file."""
        with _nonces_lock:
            _kept.add(self._nonces)

    def _nonce(self) -> bytes:
        """A nonce for one more encryption."""
        nonce = self._nonces.take(MAX_INVOCATIONS)
        if nonce is None:
            raise EncryptionError(
                f"the key was used for {self.invocations} encryptions, which is the limit. Use a new key"
            )
        return nonce

    # ---- GCM

    def seal(self, parts: Sequence[Any], aad: bytes) -> Buffer | bytes:
        """The stored GCM module of the bytes in ``parts``, one after another."""
        if len(parts) == 1 and type(parts[0]) is bytes and len(parts[0]) <= _SMALL:
            nonce, data = self._nonce(), parts[0]
            sealed: bytes = _FRAME.pack(len(data) + NONCE + TAG, nonce) + self._ciphers.encrypt(nonce, data, aad)
            return sealed
        out, into, nonce, body = self._framed(parts, GCM_OVERHEAD)
        if self._ciphers.encrypt_into is not None:
            self._ciphers.encrypt_into(nonce, body, aad, into)
        else:
            into[:] = self._ciphers.encrypt(nonce, body, aad)
        return out

    def open(self, stored: Any, aad: bytes) -> memoryview:
        """The plaintext of a whole stored GCM module.

        Raises :class:`EncryptionError` when it is damaged, was moved, or belongs to another key.
        """
        nonce, body = _unframed(stored, GCM_OVERHEAD)
        return self._opened(nonce, body, aad)

    def open_at(self, data: memoryview, at: int, aad: bytes) -> tuple[bytes, int]:
        """(plaintext, end) of the GCM module of a few hundred bytes that starts at ``data[at]``."""
        end = module_end(data, at)
        _, nonce = _FRAME.unpack_from(data, at)
        try:
            # What is too short for a tag is refused there like what has a wrong one.
            return self._ciphers.decrypt(nonce, data[at + _FRAME.size : end], aad), end
        except _invalid_tag:
            raise EncryptionError(_REFUSED) from None

    def _opened(self, nonce: bytes, body: Any, aad: bytes) -> memoryview:
        size = len(body) - TAG
        try:
            if self._ciphers.decrypt_into is None:
                return memoryview(self._ciphers.decrypt(nonce, body, aad))
            target = np.empty(size, np.uint8).data
            self._ciphers.decrypt_into(nonce, body, aad, target)
        except _invalid_tag:
            raise EncryptionError(_REFUSED) from None
        return target

    # ---- CTR

    def seal_ctr(self, parts: Sequence[Any]) -> Buffer:
        """The stored CTR module of the bytes in ``parts``: not authenticated."""
        out, into, nonce, body = self._framed(parts, CTR_OVERHEAD, TAG)
        self._run_ctr(nonce, body, into)
        return out[: len(out) - TAG]

    def open_ctr(self, stored: Any) -> memoryview:
        """The bytes of a whole stored CTR module."""
        nonce, body = _unframed(stored, CTR_OVERHEAD)
        size = len(body)
        target = np.empty(size + TAG, np.uint8).data
        self._run_ctr(nonce, body, target)
        return target[:size]

    def _run_ctr(self, nonce: bytes, data: memoryview, out: memoryview) -> None:
        """Encrypt or decrypt, which is the same. ``out`` has room for a tag more; what comes to stand there is none.

        GCM encrypts its plaintext by CTR too, with counters from 2 on, and its tag over nothing is the block of counter
        1 itself (NIST SP 800-38D, 7.1). OpenSSL runs it at twice the speed of CTR where the processor has wide AES, at
        half of it elsewhere; one more call makes that worth while for large pages only.
        """
        if len(data) < _LARGE or not self._large_by_gcm():
            self._run_context(nonce, data, out[: len(data)])
            return
        first = int.from_bytes(self._ciphers.encrypt(nonce, b"", None), "little")
        start = (int.from_bytes(data[:_BLOCK], "little") ^ first).to_bytes(_BLOCK, "little")
        self._ciphers.encrypt_into(nonce, data[_BLOCK:], None, out[_BLOCK:])
        out[:_BLOCK] = start

    def _large_by_gcm(self) -> bool:
        return self._ciphers.encrypt_into is not None and _gcm_is_quicker()

    def _run_context(self, nonce: bytes, data: memoryview, out: memoryview) -> None:
        """The same by a CTR context."""
        if not len(data):
            return
        context = self._ctr_at(nonce)
        try:
            context.update_into(data, out)
        except ValueError:  # older releases of cryptography want room for one block more
            out[:] = context.update(data)

    def _ctr_at(self, nonce: bytes) -> Any:
        """A context that begins with ``nonce``: this thread's, where the library can reset one."""
        ciphers = self._ciphers
        if ciphers.ctr is not None:
            ciphers.ctr.reset_nonce(nonce + _CTR_START)
            return ciphers.ctr
        context = self._new_ctr(nonce)
        if hasattr(context, "reset_nonce"):
            ciphers.ctr = context
        return context

    def _new_ctr(self, nonce: bytes) -> Any:
        ciphers = load("cryptography.hazmat.primitives.ciphers")
        return ciphers.Cipher(self._aes, ciphers.modes.CTR(nonce + _CTR_START)).encryptor()

    # ---- many pages

    def sealer(
        self, ctr: bool, aads: Sequence[bytes], otherwise: Callable[[Any, list[Any], int], list[Any]]
    ) -> PageSeal:
        """What seals the pages of a column chunk; ``aads`` and ``otherwise`` as it takes them."""
        if self.native is not None:
            return NativeSealer(self._nonces, MAX_INVOCATIONS, self.native, ctr, aads, otherwise)
        into = self._ciphers.encrypt_into
        reset, update, most = self._ctr_calls() if ctr else (None, None, _ANY)
        if into is None:
            most = -1
        return Sealer(self._nonces, MAX_INVOCATIONS, into, reset, update, aads, most, otherwise).seal

    def _ctr_calls(self) -> tuple[Any, Any, int]:
        """``reset_nonce`` and ``update_into`` of this thread's context, and for how many bytes they are used, or -1."""
        context = self._ctr_at(bytes(NONCE))
        if not hasattr(context, "reset_nonce"):
            return None, None, -1
        return context.reset_nonce, context.update_into, _LARGE if self._large_by_gcm() else _ANY

    # ---- the footer's signature (Encryption.md, 5.5), and keys wrapped by keys

    def sign(self, data: Any, aad: bytes) -> bytes:
        """Nonce and tag over ``data``: 28 bytes."""
        nonce = self._nonce()
        return bytes(nonce + self._ciphers.encrypt(nonce, bytes(data), aad)[-TAG:])

    def verify(self, data: Any, signature: Any, aad: bytes) -> bool:
        """Whether ``signature`` was made by this key over ``data``."""
        nonce, tag = bytes(signature[:NONCE]), bytes(signature[NONCE:])
        return hmac.compare_digest(self._ciphers.encrypt(nonce, bytes(data), aad)[-TAG:], tag)

    def wrap(self, secret: bytes, aad: bytes) -> bytes:
        """Nonce, ciphertext and tag of a short secret, as key tools keep it."""
        nonce = self._nonce()
        return bytes(nonce + self._ciphers.encrypt(nonce, secret, aad))

    def unwrap(self, wrapped: bytes, aad: bytes) -> bytes:
        """The secret in what :meth:`wrap` made; :class:`EncryptionError` for another key or damaged bytes."""
        if len(wrapped) < NONCE + TAG:
            raise EncryptionError(f"the wrapped key has {len(wrapped)} bytes, which is too few")
        return bytes(self._opened(wrapped[:NONCE], memoryview(wrapped)[NONCE:], aad))

    def _framed(
        self, parts: Sequence[Any], overhead: int, spare: int = 0
    ) -> tuple[Buffer, memoryview, bytes, memoryview]:
        """A module's buffer with length and nonce in place, its part behind them, the nonce, the bytes to encrypt.

        ``spare`` bytes stand at the end that are not the module's.
        """
        views = [memoryview(part).cast("B") for part in parts]
        size = len(views[0]) if len(views) == 1 else sum(map(len, views))
        length = size + overhead - LENGTH
        if length >= 1 << 31:
            raise EncryptionError(f"an encrypted module would have {size} bytes, but its length must fit in 31 bits")
        out, nonce = np.empty(size + overhead + spare, np.uint8), self._nonce()
        view = out.data
        _FRAME.pack_into(view, 0, length, nonce)
        into = view[_FRAME.size :]
        if len(views) == 1:
            return out, into, nonce, views[0]
        at = 0
        for part in views:
            into[at : at + len(part)] = part
            at += len(part)
        return out, into, nonce, into[:at]  # encrypted where they stand


@cache
def _gcm_is_quicker() -> bool:
    """Whether this processor runs GCM faster than CTR. Takes a third of a millisecond, once."""
    key = DataKey(os.urandom(16))
    nonce, data, out = bytes(NONCE), memoryview(bytes(_LARGE)), np.empty(_LARGE + TAG, np.uint8).data
    took: dict[bool, list[int]] = {True: [], False: []}
    for _ in range(4):
        for by_gcm, times in took.items():
            start = perf_counter_ns()
            if by_gcm:
                key._ciphers.encrypt_into(nonce, data, None, out)
            else:
                key._run_context(nonce, data, out[:_LARGE])
            times.append(perf_counter_ns() - start)
    return min(took[True]) < min(took[False])


_invalid_tag: type[Exception] = Exception


def _import_invalid_tag() -> None:
    global _invalid_tag
    _invalid_tag = load("cryptography.exceptions").InvalidTag


def _unframed(stored: Any, overhead: int) -> tuple[bytes, memoryview]:
    """(nonce, what follows it) of a whole stored module."""
    view = stored if type(stored) is memoryview and stored.format == "B" else memoryview(stored).cast("B")
    size = len(view)
    if size < overhead:
        raise EncryptionError(f"the encrypted module has {size} bytes, which is too few")
    length, nonce = _FRAME.unpack_from(view)
    if length != size - LENGTH:
        raise EncryptionError(f"the encrypted module has {size} bytes, but its length field says {length}")
    return nonce, view[_FRAME.size :]


def stated_length(data: memoryview, at: int) -> int:
    """Bytes of the module at ``data[at:]`` behind its length field; -1 when that field is cut off."""
    return int(_LENGTH.unpack_from(data, at)[0]) if len(data) - at >= LENGTH else -1


def module_end(data: memoryview, at: int) -> int:
    """Where the module at ``data[at]`` ends. Raises :class:`EncryptionError` when that is beyond ``data``."""
    length = stated_length(data, at)
    if length < NONCE or length > len(data) - at - LENGTH:
        raise EncryptionError(
            f"the encrypted module declares {length} bytes, but only {max(len(data) - at - LENGTH, 0)} are left"
        )
    return at + LENGTH + length
