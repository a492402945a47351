"""AES as the format uses it (Encryption.md, 4 and 5.1): modules in GCM and CTR, and the footer's signature.

A stored GCM module is length (4 bytes), nonce (12), ciphertext, tag (16); a CTR module is the same without the tag.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pyparq.encryption.package_ciphers import PackageCiphers
from pyparq.errors import EncryptionError, OptionError
from pyparq.kernels import AesKey, KernelError, NativeSealer, Nonces, Sealer, aes_is_native
from pyparq.runtime import fork_safety
from pyparq.runtime.text import printable

MAX_ORDINAL = (1 << 15) - 1
"""Row groups, columns and pages are counted in two bytes, signed."""


class Module(IntEnum):
    """Module types of the AAD suffix (Encryption.md, 4.4.2)."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

    @property
    def label(self) -> str:
        """The name of the module in error messages."""
        return self.name.lower().replace("_", " ")


# By number: hashing a member of an enum takes longer than encrypting a header.
IS_PAGE = [module in (Module.DATA_PAGE, Module.DICTIONARY_PAGE) for module in Module]
"""Whether AES_GCM_CTR_V1 leaves a module without authentication."""
_NUMBERS = [bytes((module,)) for module in Module]
_COUNTS_PAGES = [module in (Module.DATA_PAGE, Module.DATA_PAGE_HEADER) for module in Module]


class ChunkAad:
    """AADs of the modules of one column chunk.

    ``file_aad`` is the AAD prefix followed by the file's own identifier. Raises :class:`EncryptionError` for an ordinal
    that two bytes cannot hold.
    """

    __slots__ = ("_file", "_ordinals")

    def __init__(self, file_aad: bytes, row_group: int, column: int) -> None:
        self._file = file_aad
        self._ordinals = _ordinal("row group", row_group) + _ordinal("column", column)

    def before(self, module: Module) -> bytes:
        """The AAD of :meth:`of`, without the page number."""
        return self._file + _NUMBERS[module] + self._ordinals

    @property
    def of_pages(self) -> list[bytes]:
        """The AAD of :meth:`before`, for the four modules that pages consist of."""
        before, ordinals = self._file, self._ordinals
        return [before + number + ordinals for number in _NUMBERS[2:6]]

    def of(self, module: Module, page: int = -1) -> bytes:
        """The AAD of a module. ``page`` (data pages counted from 0) is part of it only for data pages and their
        headers."""
        aad = self.before(module)
        if not _COUNTS_PAGES[module]:
            return aad
        return aad + (page.to_bytes(2, "little") if 0 <= page <= MAX_ORDINAL else _ordinal("page", page))


def footer_aad(file_aad: bytes) -> bytes:
    """AAD of the footer, encrypted or signed."""
    return file_aad + bytes((Module.FOOTER,))


def _ordinal(what: str, number: int) -> bytes:
    if not 0 <= number <= MAX_ORDINAL:
        raise EncryptionError(f"{what} {number} cannot be encrypted: at most {MAX_ORDINAL + 1} {what}s are possible")
    return number.to_bytes(2, "little")


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

Buffer = npt.NDArray[np.uint8]
PageSeal = NativeSealer | Callable[[Any, list[Any], int], list[Any]]
"""What the native writer seals pages with: on its threads, or by calls of Python (module, parts, page)."""

_nonces: WeakValueDictionary[bytes, Nonces] = WeakValueDictionary()
"""By the hash of a key: the counter of its encryptions in this process, by all objects that hold it."""
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


class KernelCiphers:
    """AES of one key by the kernels' libcrypto. Threads may share it. The methods are those of
    :class:`~pyparq.encryption.package_ciphers.PackageCiphers`."""

    __slots__ = ("decrypt", "decrypt_into", "encrypt", "encrypt_into", "native")

    refused = KernelError

    def __init__(self, key: bytes) -> None:
        self.native = native = AesKey(key)
        self.encrypt, self.encrypt_into = native.encrypt, native.encrypt_into
        self.decrypt, self.decrypt_into = native.decrypt, native.decrypt_into

    def run_ctr(self, nonce: bytes, data: memoryview, out: memoryview) -> None:
        self.native.run_ctr(nonce, data, out[: len(data)])


class DataKey:
    """An AES key of 16, 24 or 32 bytes, ready for use from several threads. Never printed, never pickled."""

    __slots__ = ("_bits", "_ciphers", "_nonces")

    def __init__(self, key: bytes) -> None:
        checked = check_key(key, "the key")
        self._bits = len(checked) * 8
        # All of AES stands on one OpenSSL: the kernels' libcrypto, or where they have none that of cryptography.
        self._ciphers: KernelCiphers | PackageCiphers = (
            KernelCiphers(checked) if aes_is_native() else PackageCiphers(checked)
        )
        self._nonces = _nonces_of(checked)

    @property
    def native(self) -> AesKey | None:
        """The same key for native code, where that has libcrypto."""
        return self._ciphers.native

    @printable
    def __repr__(self) -> str:
        return f"<AES key of {self._bits} bits>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an encryption key cannot be pickled")

    @property
    def invocations(self) -> int:
        """Encryptions made with this key in this process."""
        return self._nonces.used

    def count_on(self) -> None:
        """Count the uses of the key for the whole life of this process. Not needed for keys of one file."""
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
        self._ciphers.encrypt_into(nonce, body, aad, into)
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
            # Bytes that are too short for a tag are refused like bytes with a wrong tag.
            return self._ciphers.decrypt(nonce, data[at + _FRAME.size : end], aad), end
        except self._ciphers.refused:
            raise EncryptionError(_REFUSED) from None

    def _opened(self, nonce: bytes, body: Any, aad: bytes) -> memoryview:
        size = len(body) - TAG
        try:
            target = np.empty(size, np.uint8).data
            self._ciphers.decrypt_into(nonce, body, aad, target)
        except self._ciphers.refused:
            raise EncryptionError(_REFUSED) from None
        return target

    # ---- CTR

    def seal_ctr(self, parts: Sequence[Any]) -> Buffer:
        """The stored CTR module of the bytes in ``parts``: not authenticated."""
        out, into, nonce, body = self._framed(parts, CTR_OVERHEAD, TAG)
        self._ciphers.run_ctr(nonce, body, into)
        return out[: len(out) - TAG]

    def open_ctr(self, stored: Any) -> memoryview:
        """The bytes of a whole stored CTR module."""
        nonce, body = _unframed(stored, CTR_OVERHEAD)
        size = len(body)
        target = np.empty(size + TAG, np.uint8).data
        self._ciphers.run_ctr(nonce, body, target)
        return target[:size]

    # ---- many pages

    def sealer(
        self, ctr: bool, aads: Sequence[bytes], otherwise: Callable[[Any, list[Any], int], list[Any]]
    ) -> PageSeal:
        """What seals the pages of a column chunk; ``aads`` and ``otherwise`` as it takes them."""
        ciphers = self._ciphers
        if isinstance(ciphers, KernelCiphers):
            return NativeSealer(self._nonces, MAX_INVOCATIONS, ciphers.native, ctr, aads, otherwise)
        into, reset, update, most = ciphers.sealing_calls(ctr)
        return Sealer(self._nonces, MAX_INVOCATIONS, into, reset, update, aads, most, otherwise).seal

    # ---- the footer's signature (Encryption.md, 5.5), and keys wrapped by keys

    def sign(self, data: Any, aad: bytes) -> bytes:
        """Nonce and tag over ``data``: 28 bytes."""
        nonce = self._nonce()
        return bytes(nonce + self._ciphers.encrypt(nonce, bytes(data), aad)[-TAG:])

    def verify(self, data: Any, signature: Any, aad: bytes) -> bool:
        """Whether ``signature`` was made by this key over ``data``."""
        nonce, tag = bytes(signature[:NONCE]), bytes(signature[NONCE:])
        import hmac  # (and hashlib above) as OpenSSL takes a while to load

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
