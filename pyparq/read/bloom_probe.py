"""Ask Bloom filters with as few bytes as possible: one 32-byte block per literal, all row groups at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyparq.errors import CorruptIndexWarning, ParquetError
from pyparq.index import bloom
from pyparq.io.fetch import Fetcher
from pyparq.io.source import Range
from pyparq.limits import Limits
from pyparq.read.open import Chunk

BLOCK = 32
HEADER = 64
"""Bytes read for a header whose length is not known; standard ones are under 32."""

WHOLE_FROM = 64
"""From this many blocks on, or when the blocks would be a large part of it, the bitset is read whole."""


@dataclass(slots=True)
class Probe:
    """Is any of the literals in the filter of ``chunk``? Each literal is a list of alternative hashes."""

    chunk: Chunk
    hashes: list[list[int]]
    answer: bool = True
    """``False``: certainly none of them."""


def run_probes(probes: Sequence[Probe], fetcher: Fetcher, limits: Limits) -> None:
    """Set ``answer`` of every probe. A damaged filter is ignored with a :class:`CorruptIndexWarning`.

    Headers of unknown length take a first round of requests; then all blocks of all row groups go out together.
    """
    places = [_Place(p, fetcher.source.size, limits) for p in probes]
    _read_headers([p for p in places if p.usable and not p.header_size], fetcher)
    ready = [p for p in places if p.usable]
    ranges = [r for place in ready for r in place.ranges()]
    parts = iter(_fetch(fetcher, ranges))
    for place in ready:
        place.take([next(parts) for _ in place.ranges()])


def _fetch(fetcher: Fetcher, ranges: list[Range]) -> list[memoryview]:
    return fetcher.fetch(ranges) if ranges else []


def _read_headers(places: list[_Place], fetcher: Fetcher) -> None:
    ranges = [(p.offset, min(HEADER, fetcher.source.size - p.offset)) for p in places]
    for place, data in zip(places, _fetch(fetcher, ranges), strict=True):
        place.read_header(data)


class _Place:
    """Where one filter lies, as far as that is known."""

    def __init__(self, probe: Probe, file_size: int, limits: Limits) -> None:
        self.probe = probe
        self.limits = limits
        self.file_size = file_size
        self.offset: int = probe.chunk.meta.bloom_filter_offset
        length = probe.chunk.meta.bloom_filter_length or 0
        # A standard header is under 32 bytes, so the exact length tells where the bitset starts.
        self.bitset_size = bloom.bitset_bytes(length)
        self.header_size = length - self.bitset_size
        self.usable = True
        if not 0 < self.offset < file_size - 8 or length < 0 or self.offset + length > file_size - 8:
            self._damaged(f"a Bloom filter of {length} bytes at offset {self.offset} is outside the file")
        elif self.header_size < 8 or self.bitset_size == 0:
            self.header_size = 0  # not known: the header itself has to say

    def _damaged(self, why: str) -> None:
        self.usable = False
        chunk = self.probe.chunk
        warnings.warn(
            f"Bloom filter ignored: {why} [row group {chunk.row_group}, column {chunk.name}]",
            CorruptIndexWarning,
            stacklevel=6,
        )

    def read_header(self, data: memoryview) -> None:
        try:
            size, header_size = bloom.parse_header(data, self.limits)
        except ParquetError as error:
            self._damaged(error.message)
            return
        if self.offset + header_size + size > self.file_size - 8:
            self._damaged(f"its bitset of {size} bytes goes beyond the file")
            return
        self.bitset_size, self.header_size = size, header_size

    @property
    def _whole(self) -> bool:
        count = sum(len(h) for h in self.probe.hashes)
        return count >= WHOLE_FROM or count * BLOCK * 4 >= self.bitset_size

    def _blocks(self) -> list[int]:
        blocks = self.bitset_size // BLOCK
        return [bloom.block_index(h, blocks) for alternatives in self.probe.hashes for h in alternatives]

    def ranges(self) -> list[Range]:
        """The header, then the whole bitset or one block per hash."""
        start = self.offset + self.header_size
        header = (self.offset, self.header_size)
        if self._whole:
            return [header, (start, self.bitset_size)]
        return [header, *((start + BLOCK * b, BLOCK) for b in self._blocks())]

    def take(self, parts: list[memoryview]) -> None:
        """Check the header that the place was computed from, then the blocks."""
        try:
            size, header_size = bloom.parse_header(parts[0], self.limits)
        except ParquetError as error:
            self._damaged(error.message)
            return
        if (size, header_size) != (self.bitset_size, self.header_size):
            self._damaged(f"its header says {size} bytes, its length leaves {self.bitset_size}")
            return
        blocks = self._block_bytes(parts[1:])
        self.probe.answer = any(
            any([bloom.check_block(next(blocks), h) for h in alternatives])  # noqa: C419 (take every block)
            for alternatives in self.probe.hashes
        )

    def _block_bytes(self, parts: list[memoryview]) -> Iterator[memoryview]:
        if not self._whole:
            return iter(parts)
        return (parts[0][BLOCK * b : BLOCK * (b + 1)] for b in self._blocks())
