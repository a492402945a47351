"""A file object that notes every read made of it: the outside view of what a scan costs."""

from __future__ import annotations

import io
from typing import Any


class CountingFile(io.RawIOBase):
    """Seekable bytes; ``reads`` lists (offset, length) of each read, in order."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)
        self.reads: list[tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def read(self, size: int = -1) -> bytes:
        at = self._inner.tell()
        data = self._inner.read(size)
        self.reads.append((at, len(data)))
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @property
    def requests(self) -> int:
        return len(self.reads)

    @property
    def num_bytes(self) -> int:
        return sum(length for _, length in self.reads)

    def covers(self, offset: int, length: int) -> bool:
        """Whether one read held the whole range."""
        return any(at <= offset and offset + length <= at + size for at, size in self.reads)
