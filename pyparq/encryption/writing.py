"""Encryption of one file that is being written: a context through which footer, pages, indexes and Bloom filters pass.

The stages of a write use :class:`ChunkEncryption`, one per column chunk. For an unencrypted chunk it returns every
module unchanged, so that no stage asks whether a file is encrypted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pyparq.column_names import ColumnName
from pyparq.encryption.cipher import IS_PAGE, MAX_ORDINAL, ChunkAad, DataKey, Module, PageSeal, footer_aad
from pyparq.encryption.properties import AES_GCM_CTR_V1, EncryptionProperties, FileKeys, Find
from pyparq.errors import DataError, OptionError
from pyparq.format import ttypes as tt
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.thrift_codec import serialize, serialize_footer

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
FILE_ID = 8
"""Bytes of the identifier that tells files under one key apart."""


class ChunkEncryption(Protocol):
    """The modules of one column chunk. ``page`` counts data pages. Used by one thread at a time."""

    encrypted: bool
    """Whether the parts may change after :meth:`seal`: its result does not share their memory."""

    def seal(self, module: Module, parts: list[Any], page: int = -1) -> list[Any]:
        """The stored form of the bytes in ``parts``, one after another."""

    def page_seal(self) -> PageSeal:
        """The same for many pages, by the native writer."""


class MetadataForm(NamedTuple):
    """How the footer has the metadata of a column chunk."""

    crypto: bytes
    """Its serialized ColumnCryptoMetaData; nothing for a chunk in the clear."""
    sealed: bool
    """Whether the metadata are stored as a module of their own."""
    bare: bool
    """Whether the fields are stored too that a reader without the key needs to step over the chunk."""


CLEAR_FORM = MetadataForm(b"", sealed=False, bare=False)


class FileEncryption(Protocol):
    """What the writer asks of a file's encryption."""

    magic: bytes
    encrypts: bool
    """Whether anything is encrypted."""
    material: Mapping[str, str] | None
    """External key material to store beside the file."""
    behind_clear_footer: frozenset[int]
    """Encrypted columns of a file whose footer is not: it must not tell what is in them."""

    def chunk(self, row_group: int, column: int) -> ChunkEncryption:
        """The context of a column chunk."""

    def metadata_form(self, column: int) -> MetadataForm:
        """How the footer has the metadata of a column's chunks."""

    def seal_footer(self, footer: tt.FileMetaData, row_groups: Sequence[bytes]) -> tuple[list[Any], bytes]:
        """Everything between the last index and the footer's length, and the footer in the clear; ``row_groups`` are
        serialized."""


class _Clear:
    """A chunk in the clear."""

    encrypted = False

    def seal(self, module: Module, parts: list[Any], page: int = -1) -> list[Any]:
        return parts

    def page_seal(self) -> PageSeal:
        return self.seal


CLEAR = _Clear()


class _ClearFile:
    """A file without encryption."""

    magic = MAGIC
    encrypts = False
    material: Mapping[str, str] | None = None
    behind_clear_footer: frozenset[int] = frozenset()

    def chunk(self, row_group: int, column: int) -> ChunkEncryption:
        return CLEAR

    def metadata_form(self, column: int) -> MetadataForm:
        return CLEAR_FORM

    def seal_footer(self, footer: tt.FileMetaData, row_groups: Sequence[bytes]) -> tuple[list[Any], bytes]:
        data = serialize_footer(footer, row_groups)
        return [data], data


CLEAR_FILE = _ClearFile()


class EncryptedChunk:
    """A chunk under ``key``."""

    encrypted = True

    def __init__(self, key: DataKey, file_aad: bytes, ctr: bool, row_group: int, column: int) -> None:
        self._key = key
        self._aad = ChunkAad(file_aad, row_group, column)
        self._ctr = ctr

    def seal(self, module: Module, parts: list[Any], page: int = -1) -> list[Any]:
        aad = self._aad.of(module, page)  # under CTR too: it refuses ordinals that readers could not count
        if self._ctr and IS_PAGE[module]:
            return [self._key.seal_ctr(parts)]
        return [self._key.seal(parts, aad)]

    def page_seal(self) -> PageSeal:
        # Page after page empties the caches that the interpreter needs: Python here took nearly as long as AES.
        return self._key.sealer(self._ctr, self._aad.of_pages, self.seal)


class FileProperties(Protocol):
    """How a file is encrypted: :class:`EncryptionProperties`, or those of a file that is replaced."""

    @property
    def algorithm(self) -> str: ...

    @property
    def plaintext_footer(self) -> bool: ...

    @property
    def aad_prefix(self) -> bytes | None: ...

    @property
    def store_aad_prefix(self) -> bool: ...

    def keys_for(self, leaves: Sequence[ColumnName], file_name: str, find: Find | None = None) -> FileKeys: ...


class EncryptedFile:
    """A file under ``properties``. ``paths`` are the leaves' paths, in column order; ``find`` is what the names of
    columns stand for.

    Asks for the keys. Raises :class:`ColumnNotFoundError` for a key of a column that is not there,
    :class:`DataError` for an encrypted column that two bytes cannot count, and what a KMS has to say as
    :class:`EncryptionError`.
    """

    encrypts = True

    def __init__(
        self,
        properties: FileProperties,
        paths: Sequence[tuple[str, ...]],
        file_name: str,
        find: Find | None = None,
    ) -> None:
        keys = properties.keys_for(paths, file_name, find)
        self._paths = paths
        self._footer = keys.footer
        self._columns = [(path in keys.columns, keys.columns.get(path)) for path in paths]
        self._ctr = properties.algorithm == AES_GCM_CTR_V1
        self._plaintext_footer = properties.plaintext_footer
        self._unique = os.urandom(FILE_ID)
        prefix = properties.aad_prefix or b""
        self._file_aad = prefix + self._unique
        self._stored_prefix = prefix if prefix and properties.store_aad_prefix else None
        self._supply_prefix = True if prefix and not properties.store_aad_prefix else None
        self._forms = [self._form(column) for column in range(len(paths))]
        self.magic = MAGIC if self._plaintext_footer else ENCRYPTED_MAGIC
        self.material = keys.material
        hidden = (k for k, (encrypted, _) in enumerate(self._columns) if encrypted and self._plaintext_footer)
        self.behind_clear_footer: frozenset[int] = frozenset(hidden)
        if any(encrypted for encrypted, _ in self._columns[MAX_ORDINAL + 1 :]):
            raise DataError(f"an encrypted file can have at most {MAX_ORDINAL + 1} leaf columns")

    def chunk(self, row_group: int, column: int) -> ChunkEncryption:
        if not self._columns[column][0]:
            return CLEAR
        key = (self._columns[column][1] or self._footer).key
        return EncryptedChunk(key, self._file_aad, self._ctr, row_group, column)

    def metadata_form(self, column: int) -> MetadataForm:
        return self._forms[column]

    def _form(self, column: int) -> MetadataForm:
        encrypted, own = self._columns[column]
        if not encrypted:
            return CLEAR_FORM
        if own is not None:
            key = tt.EncryptionWithColumnKey(path_in_schema=list(self._paths[column]), key_metadata=own.metadata)
            crypto = serialize(tt.ColumnCryptoMetaData(ENCRYPTION_WITH_COLUMN_KEY=key))
            return MetadataForm(crypto, sealed=True, bare=self._plaintext_footer)
        # An encrypted footer protects what is under its own key.
        return MetadataForm(_WITH_FOOTER_KEY, sealed=self._plaintext_footer, bare=self._plaintext_footer)

    def _algorithm(self) -> tt.EncryptionAlgorithm:
        fields: dict[str, Any] = {
            "aad_prefix": self._stored_prefix,
            "aad_file_unique": self._unique,
            "supply_aad_prefix": self._supply_prefix,
        }
        if self._ctr:
            return tt.EncryptionAlgorithm(AES_GCM_CTR_V1=tt.AesGcmCtrV1(**fields))
        return tt.EncryptionAlgorithm(AES_GCM_V1=tt.AesGcmV1(**fields))

    def seal_footer(self, footer: tt.FileMetaData, row_groups: Sequence[bytes]) -> tuple[list[Any], bytes]:
        aad = footer_aad(self._file_aad)
        if self._plaintext_footer:
            footer.encryption_algorithm = self._algorithm()
            footer.footer_signing_key_metadata = self._footer.metadata
            data = serialize_footer(footer, row_groups)
            return [data, self._footer.key.sign(data, aad)], data
        crypto = tt.FileCryptoMetaData(encryption_algorithm=self._algorithm(), key_metadata=self._footer.metadata)
        data = serialize_footer(footer, row_groups)
        return [serialize(crypto), self._footer.key.seal([data], aad)], data


_WITH_FOOTER_KEY = serialize(tt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=tt.EncryptionWithFooterKey()))


def check_properties(given: Any) -> None:
    """Raises :class:`OptionError` unless the ``encryption`` option is one."""
    if given is not None and not isinstance(given, EncryptionProperties):
        raise OptionError(f"encryption must be pyparq.EncryptionProperties(key), not {type(given).__name__}")


def file_encryption(given: EncryptionProperties | None, tree: SchemaTree, file_name: str) -> FileEncryption:
    """The context of a new file."""
    if given is None:
        return CLEAR_FILE
    return EncryptedFile(given, [leaf.path for leaf in tree.leaves], file_name, tree.path_of)
