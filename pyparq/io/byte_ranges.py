"""What every source of bytes offers: ranges of one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Range = tuple[int, int]
"""(offset, length) in bytes."""


class Source(Protocol):
    """Random access to the bytes of one file."""

    name: str
    is_local: bool
    """Requests cost microseconds, not milliseconds."""

    @property
    def size(self) -> int:
        """Bytes of the file. A remote file may have to ask for it."""

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range; :class:`CorruptFileError` where the file ends before a range does."""

    def close(self) -> None: ...
