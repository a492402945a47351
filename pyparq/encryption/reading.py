"""Decryption of one open file: a context through which footer, pages, indexes and Bloom filters pass.

The stages of a read use :class:`ChunkDecryption`, one per column chunk. For an unencrypted chunk it returns every
module unchanged, so that no stage asks whether a file is encrypted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyparq.column_names import ColumnName
from pyparq.encryption import cipher, material
from pyparq.encryption import properties as keys
from pyparq.errors import CorruptFileError, EncryptionError, MissingKeyError, UnverifiedFooterWarning, located
from pyparq.format import ttypes as tt
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.thrift_codec import deserialize
from pyparq.kernels import PageCipher
from pyparq.runtime import fork_safety
from pyparq.runtime.messages import warn_caller

if TYPE_CHECKING:
    from pyparq.encryption.cipher import DataKey, Module
    from pyparq.encryption.properties import DecryptionProperties, FileKeys, Find, HeldKey

T = TypeVar("T")


class ChunkDecryption(Protocol):
    """The modules of one column chunk. ``page`` counts data pages."""

    encrypted: bool
    overhead: int
    """Bytes that a module other than a page takes beside its plaintext."""

    def open(self, module: Module, stored: Any, page: int = -1) -> memoryview:
        """Plaintext of a whole stored module."""

    def struct(self, cls: type[T], data: memoryview, at: int, module: Module, page: int = -1) -> tuple[T, int]:
        """The Thrift struct stored at ``data[at]``, and where its stored bytes end."""

    def of_pages(self) -> PageCipher | None:
        """Decrypts pages for the native decoder. ``None``: they are in the clear."""

    def module_at(self, data: memoryview, at: int, module: int, page: int = -1) -> tuple[Any, int]:
        """The plaintext of a page header that is stored at ``data[at]``, and where its stored bytes end."""

    def open_page_v2(self, stored: memoryview, levels: int, page: int) -> tuple[memoryview, memoryview]:
        """(levels, values) of a v2 data page with so many bytes of levels."""

    def seal(self, module: Module, parts: list[Any]) -> list[Any]:
        """The stored form of a module that is no page, under the same key: for a file with the same pages and more
        indexes."""


class _Clear:
    """A chunk in the clear."""

    encrypted = False
    overhead = 0

    def open(self, module: Module, stored: Any, page: int = -1) -> memoryview:
        return memoryview(stored)

    def struct(self, cls: type[T], data: memoryview, at: int, module: Module, page: int = -1) -> tuple[T, int]:
        return deserialize(cls, data, at)

    def of_pages(self) -> None:
        return None

    def module_at(self, data: memoryview, at: int, module: int, page: int = -1) -> tuple[Any, int]:
        raise AssertionError("a chunk in the clear has no modules")

    def open_page_v2(self, stored: memoryview, levels: int, page: int) -> tuple[memoryview, memoryview]:
        return stored[:levels], stored[levels:]

    def seal(self, module: Module, parts: list[Any]) -> list[Any]:
        return parts


CLEAR = _Clear()


class _Encrypted:
    """A chunk under ``key``. May be used from several threads."""

    encrypted = True

    def __init__(self, key: DataKey, file_aad: bytes, ctr: bool, row_group: int, column: int) -> None:
        self._key = key
        self.overhead = cipher.GCM_OVERHEAD
        self._aad = cipher.ChunkAad(file_aad, row_group, column)
        self._ctr = ctr

    def open(self, module: Module, stored: Any, page: int = -1) -> memoryview:
        try:
            if self._ctr and cipher.IS_PAGE[module]:
                return self._key.open_ctr(stored)
            return self._key.open(stored, self._aad.of(module, page))
        except EncryptionError as error:
            raise _explained(error, module) from None

    def struct(self, cls: type[T], data: memoryview, at: int, module: Module, page: int = -1) -> tuple[T, int]:
        plain, end = self.module_at(data, at, module, page)
        # parquet-java leaves bytes behind the struct: they are not looked at.
        return deserialize(cls, plain)[0], end

    def of_pages(self) -> PageCipher:
        return PageCipher(self, self._key.native, self._aad.of_pages, self._ctr)

    def module_at(self, data: memoryview, at: int, module: int, page: int = -1) -> tuple[Any, int]:
        try:
            return self._key.open_at(data, at, self._aad.of(cipher.Module(module), page))
        except EncryptionError as error:
            raise _explained(error, module) from None

    def open_page_v2(self, stored: memoryview, levels: int, page: int) -> tuple[memoryview, memoryview]:
        # The specification encrypts the whole body, as Arrow C++ does; parquet-java leaves the levels in the clear.
        if cipher.stated_length(stored, 0) == len(stored) - cipher.LENGTH:
            try:
                body = self.open(cipher.Module.DATA_PAGE, stored, page)
                return body[:levels], body[levels:]
            except EncryptionError:
                if not levels or cipher.stated_length(stored, levels) != len(stored) - levels - cipher.LENGTH:
                    raise
        if levels > len(stored):
            raise CorruptFileError(
                f"the page header declares {levels} bytes of levels, but the page has {len(stored)} bytes"
            )
        return stored[:levels], self.open(cipher.Module.DATA_PAGE, stored[levels:], page)

    def seal(self, module: Module, parts: list[Any]) -> list[Any]:
        return [self._key.seal(parts, self._aad.of(module))]


def _explained(error: EncryptionError, module: int) -> EncryptionError:
    return EncryptionError(f"the {cipher.Module(module).label} cannot be decrypted: {error.message}")


@dataclass(frozen=True, slots=True)
class FileEncryptionInfo:
    """How a file is encrypted, as it says itself."""

    algorithm: str
    plaintext_footer: bool
    """The footer is signed rather than encrypted."""
    key_metadata: bytes | None
    """Of the footer key."""
    footer_verified: bool
    """The footer was decrypted, or its signature checked."""

    @property
    def key(self) -> str:
        """The footer key for a person to read."""
        return material.describe(self.key_metadata)


@dataclass(frozen=True, slots=True)
class ColumnEncryptionInfo:
    """How a column chunk is encrypted."""

    footer_key: bool
    """With the footer key rather than one of its own."""
    key_metadata: bytes | None
    """Of its own key."""

    @property
    def key(self) -> str:
        """The key for a person to read."""
        return "footer key" if self.footer_key else material.describe(self.key_metadata)


def column_encryption(raw: Any) -> ColumnEncryptionInfo | None:
    """How the chunk of a ColumnChunk is encrypted; ``None`` when it is clear."""
    crypto = raw.crypto_metadata
    if crypto is None:
        return None
    own = crypto.ENCRYPTION_WITH_COLUMN_KEY
    return ColumnEncryptionInfo(own is None, None if own is None else own.key_metadata)


class FileDecryption(Protocol):
    """The encryption of one file, as far as its reader has the keys."""

    @property
    def info(self) -> FileEncryptionInfo | None:
        """``None`` for a file that is not encrypted."""

    def column(self, raw: Any, row_group: int, leaf: Node, tree: SchemaTree) -> tuple[Any, ChunkDecryption]:
        """ColumnMetaData (``None`` where the chunk has none) and context of a column chunk.

        ``raw`` is the ColumnChunk of ``leaf`` in the row group of an ordinal.
        Raises :class:`EncryptionError` when its key is missing or wrong.
        """

    def seal_footer(self, footer: bytes) -> list[Any]:
        """A changed FileMetaData as a file stores it: in the clear, signed, or as an encrypted module.

        Raises :class:`MissingKeyError` without the footer key.
        """

    def same_keys(self, chunks: Sequence[tuple[Any, Node]], tree: SchemaTree) -> SameKeys | None:
        """What a file needs that takes the place of this one. ``chunks``: a ColumnChunk of each leaf. ``None`` for a
        file that is not encrypted.

        Raises :class:`MissingKeyError` without one of the keys.
        """


@dataclass(frozen=True, slots=True)
class SameKeys:
    """Keys, algorithm and layout of a file, for the one that takes its place
    (:class:`pyparq.encryption.writing.FileProperties`)."""

    keys: FileKeys
    algorithm: str
    plaintext_footer: bool
    aad_prefix: bytes
    store_aad_prefix: bool

    def keys_for(self, leaves: Sequence[ColumnName], file_name: str, find: Find | None = None) -> FileKeys:
        return self.keys


class _ClearFile:
    """A file without encryption."""

    info: FileEncryptionInfo | None = None

    def column(self, raw: Any, row_group: int, leaf: Node, tree: SchemaTree) -> tuple[Any, ChunkDecryption]:
        if raw.crypto_metadata is not None:
            raise EncryptionError("the column is encrypted, but the footer does not name the encryption")
        return raw.meta_data, CLEAR

    def seal_footer(self, footer: bytes) -> list[Any]:
        return [footer]

    def same_keys(self, chunks: Sequence[tuple[Any, Node]], tree: SchemaTree) -> SameKeys | None:
        return None


CLEAR_FILE = _ClearFile()


class EncryptedFile:
    """A file with an encrypted footer or a signed one. ``properties`` is ``None`` for a reader without any keys."""

    def __init__(
        self,
        properties: DecryptionProperties | None,
        algorithm: Any,
        key_metadata: bytes | None,
        *,
        plaintext_footer: bool,
    ) -> None:
        self._properties = properties
        self.plaintext_footer = plaintext_footer
        self.algorithm, stored = _algorithm(algorithm)
        wanted = None if properties is None else properties.algorithm
        if wanted not in (None, self.algorithm):
            raise EncryptionError(f"the file is encrypted with {self.algorithm}, but {wanted} is required")
        self.key_metadata = key_metadata
        prefix = _aad_prefix(properties, stored)
        self._prefix = prefix, bool(stored.aad_prefix)
        self._file_aad = prefix + (stored.aad_file_unique or b"")
        self._footer_keys: list[DataKey | None] = []
        """One, once it was asked for."""
        self._given: dict[tuple[str, ...], DataKey] | None = None
        self._retrieved: dict[tuple[str, bytes | None], DataKey | None] = {}
        self._verified = False
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # a key may be in a file

    @property
    def info(self) -> FileEncryptionInfo | None:
        return FileEncryptionInfo(self.algorithm, self.plaintext_footer, self.key_metadata, self._verified)

    @property
    def _footer_key(self) -> DataKey | None:
        # Asked for only when it is needed: a reader may have the keys of columns, but not that of the footer.
        with self._lock:
            if not self._footer_keys:
                known = None if self._properties is None else self._properties.footer_key(self.key_metadata)
                self._footer_keys.append(known)
            return self._footer_keys[0]

    # ---- the footer

    def open_footer(self, stored: memoryview) -> memoryview:
        """The FileMetaData of an encrypted footer (``stored``: the module, maybe with bytes behind it)."""
        if self._footer_key is None:
            raise MissingKeyError(
                f"the footer is encrypted and its key is not known ({material.describe(self.key_metadata)}). "
                f"Give it as DecryptionProperties(footer_key=...), or on the command line with --keys"
            )
        try:
            end = cipher.module_end(stored, 0)
            plain = self._footer_key.open(stored[:end], cipher.footer_aad(self._file_aad))
        except EncryptionError as error:
            raise EncryptionError(
                f"the footer cannot be decrypted: {error.message} (footer key: {material.describe(self.key_metadata)})"
            ) from None
        self._verified = True
        return plain

    def check_signature(self, signed: memoryview) -> None:
        """Check a plaintext footer, given with its signature at the end. Without the footer key, warn or refuse."""
        wanted = None if self._properties is None else self._properties.check_footer_integrity
        if wanted is False:
            return
        if self._footer_key is None:
            message = f"the footer's signature was not checked: no footer key ({material.describe(self.key_metadata)})"
            if wanted:
                raise EncryptionError(message)
            warn_caller(message, UnverifiedFooterWarning)
            return
        footer, signature = signed[: -cipher.SIGNATURE], signed[-cipher.SIGNATURE :]
        aad = cipher.footer_aad(self._file_aad)
        if len(signed) <= cipher.SIGNATURE or not self._footer_key.verify(footer, signature, aad):
            raise EncryptionError(
                "the footer does not match its signature: the key or AAD is wrong, or the footer was changed"
            )
        self._verified = True

    def seal_footer(self, footer: bytes) -> list[Any]:
        if self._footer_key is None:
            raise MissingKeyError(
                f"the footer changes and has to be signed again, but its key is not known "
                f"({material.describe(self.key_metadata)}). Give it as DecryptionProperties(footer_key=...)"
            )
        aad = cipher.footer_aad(self._file_aad)
        if self.plaintext_footer:
            return [footer, self._footer_key.sign(footer, aad)]
        return [self._footer_key.seal([footer], aad)]

    def same_keys(self, chunks: Sequence[tuple[Any, Node]], tree: SchemaTree) -> SameKeys | None:
        if self._footer_key is None:
            raise MissingKeyError(
                f"the file is written anew, but the key of its footer is not known "
                f"({material.describe(self.key_metadata)}). "
                f"Give it as DecryptionProperties(footer_key=...)"
            )
        columns: dict[ColumnName, HeldKey | None] = {}
        for raw, leaf in chunks:
            if raw.crypto_metadata is not None:
                own = raw.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
                with located(column=leaf.dotted):
                    key = self._key(leaf, own, tree)
                columns[leaf.path] = None if own is None else keys.HeldKey(key, own.key_metadata)
        footer = keys.HeldKey(self._footer_key, self.key_metadata)
        return SameKeys(keys.FileKeys(footer, columns), self.algorithm, self.plaintext_footer, *self._prefix)

    # ---- columns

    def column(self, raw: Any, row_group: int, leaf: Node, tree: SchemaTree) -> tuple[Any, ChunkDecryption]:
        crypto = raw.crypto_metadata
        if crypto is None:
            return raw.meta_data, CLEAR
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None and crypto.ENCRYPTION_WITH_FOOTER_KEY is None:
            raise EncryptionError("the column is encrypted in an unknown way")
        key = self._key(leaf, own, tree)
        context = _Encrypted(key, self._file_aad, self.algorithm == keys.AES_GCM_CTR_V1, row_group, leaf.column)
        stored = raw.encrypted_column_metadata
        if stored is None:
            if self.plaintext_footer and not self._verified:
                raise EncryptionError(
                    "the column has no encrypted metadata, and the signature of the footer was not checked"
                )
            return raw.meta_data, context
        try:
            return context.struct(tt.ColumnMetaData, memoryview(stored), 0, cipher.Module.COLUMN_METADATA)[0], context
        except EncryptionError as error:
            which = "the footer key" if own is None else material.describe(own.key_metadata)
            raise EncryptionError(f"{error.message} (key: {which})") from None

    def _key(self, leaf: Node, own: Any, tree: SchemaTree) -> DataKey:
        if own is None:
            if self._footer_key is None:
                raise MissingKeyError(
                    "the column is encrypted with the footer key, which is not known "
                    f"({material.describe(self.key_metadata)})"
                )
            return self._footer_key
        if ".".join(own.path_in_schema) != leaf.dotted:
            raise CorruptFileError(
                "the encryption metadata of the column is for another column, "
                f"{material.short('.'.join(own.path_in_schema))}"
            )
        key = None if self._properties is None else self._own_key(self._properties, leaf, own.key_metadata, tree)
        if key is None:
            raise MissingKeyError(
                f"the column is encrypted with its own key, which is not known "
                f"({material.describe(own.key_metadata)}). "
                f"Give it as DecryptionProperties(column_keys=...), or on the command line with --keys"
            )
        return key

    def _own_key(
        self, properties: DecryptionProperties, leaf: Node, metadata: bytes | None, tree: SchemaTree
    ) -> DataKey | None:
        """The key of a leaf that has one of its own, as it was given or is retrieved, once."""
        with self._lock:
            if self._given is None:
                self._given = properties.column_keys(tree.path_of)
            key = keys.nearest(leaf.path, self._given)
            if key is not None:
                return key
            place = leaf.dotted, metadata
            if place not in self._retrieved:
                self._retrieved[place] = properties.column_key(*place)
            return self._retrieved[place]


def _algorithm(union: Any) -> tuple[str, Any]:
    """(name, AesGcmV1 or AesGcmCtrV1)."""
    if union is not None and union.AES_GCM_V1 is not None:
        return keys.AES_GCM_V1, union.AES_GCM_V1
    if union is not None and union.AES_GCM_CTR_V1 is not None:
        return keys.AES_GCM_CTR_V1, union.AES_GCM_CTR_V1
    raise EncryptionError("the file is encrypted with an unknown algorithm")


def _aad_prefix(properties: DecryptionProperties | None, stored: Any) -> bytes:
    given = None if properties is None else properties.aad_prefix
    in_file: bytes | None = stored.aad_prefix or None
    if in_file is not None:
        if given not in (None, in_file):
            raise EncryptionError(
                f"the file has the AAD prefix {material.short(in_file)}, but {given!r} was given. "
                "This may be the wrong file"
            )
        return in_file
    if stored.supply_aad_prefix:
        if given is None and properties is not None:
            raise EncryptionError("the file needs an AAD prefix and does not store it. Give aad_prefix")
        return given or b""
    if given is not None:
        raise EncryptionError(
            f"the AAD prefix {given!r} was given, but the file was written without one. This may be the wrong file"
        )
    return b""
