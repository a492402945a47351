"""The seam where encryption joins the write path: one object per file, asked for every module that is stored.

The null version gives everything back as it is, so that nothing else has to ask whether a file is encrypted.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol


class Module(IntEnum):
    """Module types of the AAD suffix (Encryption.md, AAD suffix)."""

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


class Encryption(Protocol):
    """What the writer asks. ``row_group``, ``column`` and ``page`` are ordinals; ``page`` counts data pages."""

    enabled: bool

    def encrypt(self, module: Module, data: Any, row_group: int, column: int, page: int = -1) -> Any:
        """The stored form of a module's serialized bytes. Called from several threads."""


class NullEncryption:
    """Nothing is encrypted."""

    enabled = False

    def encrypt(self, module: Module, data: Any, row_group: int, column: int, page: int = -1) -> Any:
        return data


NO_ENCRYPTION = NullEncryption()
