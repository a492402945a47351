"""Encrypted files taken apart with nothing but ``cryptography`` and the specification: no code of pyparq.

Thrift structs come out as ``{field id: value}``; the ids are those of parquet.thrift.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def value_of(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """One value of the compact protocol."""
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return int.from_bytes(data[at : at + 1], "little", signed=True), at + 1
    if kind in (4, 5, 6):
        return zigzag(data, at)
    if kind == 7:
        return data[at : at + 8], at + 8
    if kind == 8:
        size, at = varint(data, at)
        return data[at : at + size], at + size
    if kind in (9, 10):
        head = data[at]
        at += 1
        count = head >> 4
        if count == 15:
            count, at = varint(data, at)
        items = []
        for _ in range(count):
            if head & 15 in (1, 2):  # in lists a boolean takes a byte
                item, at = data[at] == 1, at + 1
            else:
                item, at = value_of(data, at, head & 15)
            items.append(item)
        return items, at
    assert kind == 12, kind
    return struct_at(data, at)


def struct_at(data: bytes, at: int = 0) -> tuple[dict[int, Any], int]:
    """A struct of the compact protocol, and where it ends."""
    fields: dict[int, Any] = {}
    last = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        if head >> 4:
            last += head >> 4
        else:
            last, at = zigzag(data, at)
        fields[last], at = value_of(data, at, head & 15)


def open_gcm(key: bytes, stored: bytes, aad: bytes) -> bytes:
    """length (4) | nonce (12) | ciphertext | tag (16)"""
    assert int.from_bytes(stored[:4], "little") == len(stored) - 4
    return AESGCM(key).decrypt(stored[4:16], stored[16:], aad)


def open_ctr(key: bytes, stored: bytes) -> bytes:
    """length (4) | nonce (12) | ciphertext; the IV is the nonce and a counter that starts at 1"""
    assert int.from_bytes(stored[:4], "little") == len(stored) - 4
    decryptor = Cipher(AES(key), CTR(stored[4:16] + b"\x00\x00\x00\x01")).decryptor()
    return decryptor.update(stored[16:]) + decryptor.finalize()


def module_at(data: bytes, at: int) -> bytes:
    return data[at : at + 4 + int.from_bytes(data[at : at + 4], "little")]


class File:
    """An encrypted file, its footer open. ``keys`` by dotted leaf path, ``None`` for the footer key; or a function of
    key metadata."""

    def __init__(
        self, data: bytes, keys: dict[str | None, bytes] | Callable[[bytes], bytes], prefix: bytes | None = None
    ) -> None:
        self.data = data
        self.keys = keys
        size = int.from_bytes(data[-8:-4], "little")
        tail = data[-8 - size : -8]
        self.plaintext_footer = data[-4:] == b"PAR1"
        assert data[:4] == data[-4:]
        if self.plaintext_footer:
            self.footer, end = struct_at(tail)
            self.footer_bytes = tail[:end]
            self.signature = tail[-28:]
            self.key_metadata = self.footer.get(9)
            algorithm = self.footer[8]
        else:
            crypto, end = struct_at(tail)
            self.key_metadata = crypto.get(2)
            algorithm = crypto[1]
        self.ctr = 2 in algorithm
        details = algorithm[2 if self.ctr else 1]
        self.prefix = details.get(1, prefix or b"")
        self.supply_prefix = details.get(3, False)
        self.aad = self.prefix + details[2]
        if not self.plaintext_footer:
            self.footer_bytes = open_gcm(self.key(None, self.key_metadata), module_at(tail, end), self.aad + b"\x00")
            self.footer, _ = struct_at(self.footer_bytes)

    def key(self, name: str | None, metadata: bytes | None) -> bytes:
        if isinstance(self.keys, dict):
            return self.keys[name]
        assert metadata is not None
        return self.keys(metadata)

    def chunk(self, row_group: int, column: int) -> Chunk:
        return Chunk(self, row_group, column)


class Chunk:
    """A column chunk: ``meta`` is its ColumnMetaData."""

    def __init__(self, file: File, row_group: int, column: int) -> None:
        self.file = file
        self.raw = file.footer[4][row_group][1][column]
        self.ordinals = row_group.to_bytes(2, "little") + column.to_bytes(2, "little")
        crypto = self.raw.get(8)
        self.encrypted = crypto is not None
        if crypto is None:
            self.meta = self.raw[3]
            return
        if 1 in crypto:
            self.key = file.key(None, file.key_metadata)
        else:
            self.key = file.key(b".".join(crypto[2][1]).decode(), crypto[2].get(2))
        if 9 in self.raw:
            self.meta, _ = struct_at(self.open(1, self.raw[9]))
        else:
            self.meta = self.raw[3]

    def open(self, module: int, stored: bytes, page: int | None = None) -> bytes:
        """AAD: file | module type | row group | column | page, the last for data pages (2) and their headers (4)"""
        assert (page is not None) == (module in (2, 4))
        if self.file.ctr and module in (2, 3):
            return open_ctr(self.key, stored)
        ordinal = b"" if page is None else page.to_bytes(2, "little")
        return open_gcm(self.key, stored, self.file.aad + bytes([module]) + self.ordinals + ordinal)

    def seal(self, module: int, text: bytes) -> bytes:
        """A GCM module without page ordinal."""
        nonce = os.urandom(12)
        sealed = nonce + AESGCM(self.key).encrypt(nonce, text, self.file.aad + bytes([module]) + self.ordinals)
        return len(sealed).to_bytes(4, "little") + sealed

    def pages(self) -> list[tuple[dict[int, Any], bytes, bytes]]:
        """(header, stored body, decrypted body) of every page, dictionary page first."""
        at = min(o for o in (self.meta.get(11, 0), self.meta[9]) if o)
        end = at + self.meta[7]
        found: list[tuple[dict[int, Any], bytes, bytes]] = []
        has_dictionary = bool(self.meta.get(11))
        while at < end:
            page = len(found) - has_dictionary
            dictionary = page < 0
            header_module = module_at(self.file.data, at)
            at += len(header_module)
            header, _ = struct_at(self.open(5, header_module) if dictionary else self.open(4, header_module, page))
            body = self.file.data[at : at + header[3]]
            at += header[3]
            found.append((header, body, self.open(3, body) if dictionary else self.open(2, body, page)))
        assert at == end
        return found

    def offset_index(self) -> dict[int, Any]:
        return struct_at(self.open(7, self.file.data[self.raw[4] : self.raw[4] + self.raw[5]]))[0]

    def column_index(self) -> dict[int, Any]:
        return struct_at(self.open(6, self.file.data[self.raw[6] : self.raw[6] + self.raw[7]]))[0]

    def bloom_filter(self) -> tuple[dict[int, Any], bytes]:
        """(header, bitset)."""
        start = self.meta[14]
        header_module = module_at(self.file.data, start)
        bitset_module = module_at(self.file.data, start + len(header_module))
        if 15 in self.meta:
            assert self.meta[15] == len(header_module) + len(bitset_module)
        return struct_at(self.open(8, header_module))[0], self.open(9, bitset_module)
