"""The additional authenticated data (AAD) that each module of an encrypted file is bound to (Encryption.md, 4.4)."""

from __future__ import annotations

from enum import IntEnum

from pyparq.errors import EncryptionError

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
OF_PAGES = tuple(Module)[2:6]
"""The modules that pages consist of."""
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
        """The AAD of :meth:`before`, for OF_PAGES."""
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
