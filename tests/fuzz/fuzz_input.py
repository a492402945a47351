"""Numbers and texts out of the bytes of an input."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from pyparq.kernels import KernelError

HEAD = 24
"""Bytes in front of an input that say how it is read."""

refused = suppress(KernelError, MemoryError)
"""Bad bytes may be refused."""


def split(data: Any) -> tuple[bytes, memoryview]:
    """The head, filled up with zeros, and the rest, which ends where the input does."""
    head = bytes(data[:HEAD])
    return head + bytes(HEAD - len(head)), data[HEAD:]


def number(head: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(head[at : at + size], "little")


def own(part: Any) -> np.ndarray[Any, Any]:
    """A copy with memory of its own, so that a sanitizer sees where it ends."""
    return np.frombuffer(part, np.uint8).copy() if len(part) else np.empty(0, np.uint8)


def check(is_true: bool, what: str) -> None:
    """A finding where it is not true."""
    if not is_true:
        raise AssertionError(what)


class Stream:
    """The bytes of an input, one after another. Behind their end there are zeros."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        return max(len(self.data) - self.at, 0)

    def next(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def bytes(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        self.at += size
        return found.ljust(size, b"\0")
