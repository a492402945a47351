"""Parts of a catalog as sources of bytes: every byte that is read has been compared with a checksum.

A catalog that is wrong would lose rows without a word. So nothing of it is believed that is not covered by the
checksums in ``catalog.json``: footers, page headers and indexes neither.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pyparq.datasets.catalog.layout import Part
from pyparq.errors import ChecksumError, CorruptFileError
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.sink import Sink

BLOCK = 64 << 10
"""Bytes that a checksum covers, at least."""
MOST_BLOCKS = 8192
"""Checksums of a part. Larger parts have larger blocks."""
KEPT = 64
"""Blocks that stay in memory, those used last."""


class CheckedSource:
    """A part of a catalog."""

    def __init__(self, opened: Callable[[], Source], part: Part, name: str, is_local: bool) -> None:
        """``opened``: opens the file, once for each read if it is local."""
        self.name = name
        self.is_local = is_local
        self.size = part.size
        self._part = part
        self._checks = np.frombuffer(part.checks, "<u4")
        self._opened = opened
        self._source: Source | None = None
        self._kept: OrderedDict[int, memoryview] = OrderedDict()
        if len(self._checks) != -(-part.size // part.block):
            raise CorruptFileError("the catalog is damaged: a part has too few checksums", file=name)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        size, block = self.size, self._part.block
        if any(start < 0 or start + length > size for start, length in ranges):
            raise CorruptFileError("the file ends within a range that is read", file=self.name)
        needed = {k for start, length in ranges for k in range(start // block, -(-(start + length) // block))}
        have = dict(self._kept.copy())
        missing = sorted(needed - have.keys())
        have |= self._read(missing) if missing else {}
        for k in missing[-KEPT:]:
            self._kept[k] = have[k]
        while len(self._kept) > KEPT:
            with suppress(KeyError):  # another thread has done it
                self._kept.popitem(last=False)
        return [self._cut(have, start, length) for start, length in ranges]

    def _cut(self, have: dict[int, memoryview], start: int, length: int) -> memoryview:
        block = self._part.block
        first, last = start // block, -(-(start + length) // block)
        data = have[first] if last - first == 1 else memoryview(b"".join(have[k] for k in range(first, last)))
        return data[start - first * block : start - first * block + length]

    def _read(self, numbers: list[int]) -> dict[int, memoryview]:
        """These blocks, whose checksums fit. Neighbours are one request."""
        runs: list[list[int]] = []
        for k in numbers:
            if runs and k == runs[-1][1]:
                runs[-1][1] = k + 1
            else:
                runs.append([k, k + 1])
        block, found = self._part.block, dict[int, memoryview]()
        ranges = [(first * block, min(last * block, self.size) - first * block) for first, last in runs]
        for (first, last), data in zip(runs, self._bytes(ranges), strict=True):
            for k in range(first, last):
                piece = data[(k - first) * block : (k + 1 - first) * block]
                if zlib.crc32(piece) != int(self._checks[k]):
                    raise ChecksumError(
                        "the catalog is damaged: make it anew with pyparq.index_dataset", file=self.name
                    )
                found[k] = piece
        return found

    def _bytes(self, ranges: list[Range]) -> list[memoryview]:
        if not self.is_local:
            self._source = self._source or self._opened()
            return self._source.read_ranges(ranges)
        source = self._opened()
        try:
            return source.read_ranges(ranges)
        finally:
            source.close()

    def close(self) -> None:
        """Nothing is open between two reads."""


class CheckingSink:
    """A sink that computes the checksums of what is written to it."""

    def __init__(self, sink: Sink, block: int = BLOCK) -> None:
        self.name = sink.name
        self._sink = sink
        self._block = block
        self._checks: list[int] = []
        self._crc, self._room = 0, block

    @property
    def position(self) -> int:
        return self._sink.position

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
            while len(view):
                taken, view = view[: self._room], view[self._room :]
                self._crc = zlib.crc32(taken, self._crc)
                self._room -= len(taken)
                if not self._room:
                    self._end_block()
        self._sink.write(parts)

    def _end_block(self) -> None:
        self._checks.append(self._crc)
        self._crc, self._room = 0, self._block

    def commit(self) -> None:
        self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()

    def part(self, name: str, rows: int, tail: int) -> Part:
        """What was written."""
        if self._room < self._block:
            self._end_block()
        checks = np.array(self._checks, "<u4").tobytes()
        return Part(name, self.position, rows, self._block, checks, tail)


def block_for(size: int) -> int:
    """The block size for a part of about ``size`` bytes."""
    block = BLOCK
    while size > block * MOST_BLOCKS:
        block *= 2
    return block
