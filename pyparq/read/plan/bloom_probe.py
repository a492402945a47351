"""Asks Bloom filters with as few bytes as possible: one 32-byte block per literal, all row groups at once.

An encrypted bitset is one module, so it is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.encryption.cipher import GCM_OVERHEAD, Module, module_end
from pyparq.errors import CorruptFileError, CorruptIndexWarning, EncryptionError, ParquetError
from pyparq.index import bloom_filter
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.fetch import Fetcher
from pyparq.io.source import LocalFile
from pyparq.limits import Limits
from pyparq.read.footers.chunks import Chunk
from pyparq.read.plan.ahead import TRIP
from pyparq.runtime.messages import warn_caller

T = TypeVar("T")
Bytes = bytes | memoryview
Int64Array = npt.NDArray[np.int64]

ABSENT, UNUSABLE = 0, 2
"""Answers of :func:`pyparq.kernels.probe_open_filters`."""

BLOCK = 32
HEADER = 64
"""Bytes to read for a header of unknown length. A standard header is shorter than 32 bytes."""

UNKNOWN = 256 << 10
"""Bytes to read of a filter of unknown length. This saves a separate request for its header."""

WHOLE_FROM = 64
"""From this many blocks on, or when the blocks are a large part of the bitset, the bitset is read whole."""


@dataclass(slots=True)
class Probe:
    """The question whether any of the literals is in the filter of ``chunk``. Each literal is a list of alternative
    hashes."""

    chunk: Chunk
    hashes: list[list[int]]
    answer: bool = True
    """``False``: certainly none of them."""


class Probing:
    """All probes of a stage, run together. A damaged filter is ignored with a :class:`CorruptIndexWarning`."""

    def __init__(self, probes: Sequence[Probe], fetcher: Fetcher, limits: Limits) -> None:
        self._fetcher = fetcher
        self._places = [_place(p, fetcher.source, limits) for p in probes]
        if fetcher.is_reopened and sum(place.bitset_size for place in self._places) <= TRIP:
            blocks = [r for place in self._places if place.located for r in place.ranges()]
            if fetcher.missing_bytes([blocks]):
                for place in self._places:  # they are kept for the next questions
                    place.reads_all = True

    def ranges(self, room: Callable[[Chunk, int], int]) -> list[Range]:
        """The ranges that :meth:`run` will read, as far as they are known.

        ``room``: gives the bytes from a place to the next known part of the file. If that is not much, a filter of
        unknown length is read with all of it.
        """
        found: list[Range] = []
        for place in self._places:
            if place.located:
                found += place.ranges()
            elif place.usable:
                found.append((place.offset, min(room(place.probe.chunk, place.offset), UNKNOWN)))
        return found

    def run(self) -> None:
        """Set ``answer`` of every probe. Raises :class:`EncryptionError` for an encrypted filter that fails its
        authentication.

        Headers of unknown length take a first round of requests; then all blocks of all row groups go out together.
        """
        size = self._fetcher.source.size
        unknown = [p for p in self._places if p.usable and not p.located]
        heads = [(p.offset, min(p.head, size - p.offset)) for p in unknown]
        for place, data in zip(unknown, _fetch(self._fetcher, heads), strict=True):
            place.read(place.locate, data)
        ready = [p for p in self._places if p.usable]
        ranges = [r for place in ready for r in place.ranges()]
        parts = iter(_fetch(self._fetcher, ranges))
        for place in ready:
            place.read(place.take, [next(parts) for _ in place.ranges()])


def probe_local(
    fetcher: Fetcher, offsets: Int64Array, lengths: Int64Array, hashes: list[list[int]], limits: Limits
) -> npt.NDArray[np.uint8] | None:
    """The answers of unencrypted filters, asked in one call: :data:`ABSENT`, :data:`UNUSABLE` (:class:`Probing` then
    reports why), or perhaps. ``None`` if the file is not an open local file."""
    if kernels.probe_open_filters is None or not isinstance(fetcher.source, LocalFile):
        return None
    flat = np.array([h for alternatives in hashes for h in alternatives], np.uint64)
    source = fetcher.source
    answers, requests, size = kernels.probe_open_filters(
        source.fileno(), source.size, fetcher.tail, offsets, lengths, flat, limits.max_bloom_filter
    )
    fetcher.note(requests, size)
    return answers


def _fetch(fetcher: Fetcher, ranges: list[Range]) -> list[memoryview]:
    return fetcher.fetch_indexes(ranges) if ranges else []


def _place(probe: Probe, source: Source, limits: Limits) -> _Place:
    return (_EncryptedPlace if probe.chunk.crypto.encrypted else _ClearPlace)(probe, source, limits)


class _Place:
    """The place of one filter, as far as it is known."""

    head = HEADER
    """Bytes to read for a header whose length is not known."""
    bitset_size = 0
    reads_all = False
    """Whether the whole filter is read, though few blocks are asked for."""

    def __init__(self, probe: Probe, source: Source, limits: Limits) -> None:
        self.probe = probe
        self.file = source.name
        self.limits = limits
        self.offset: int = probe.chunk.numbers.bloom_filter_offset
        self.available = source.size - 8 - self.offset
        self.usable = True
        length = probe.chunk.numbers.bloom_filter_length
        if self.offset <= 0 or self.available <= 0 or not 0 <= length <= self.available:
            self._damaged(f"the Bloom filter of {length} bytes at offset {self.offset} is outside the file")
        self.located = self.usable and self._locate_by_length(length)

    def _locate_by_length(self, length: int) -> bool:
        """Compute the place of the bitset from the length in the footer. Returns whether that was possible."""
        raise NotImplementedError

    def locate(self, head: memoryview) -> None:
        """Compute the place of the bitset from the filter's header."""
        raise NotImplementedError

    def ranges(self) -> list[Range]:
        raise NotImplementedError

    def take(self, parts: list[memoryview]) -> None:
        """Answer the probe from the bytes of :meth:`ranges`."""
        raise NotImplementedError

    def read(self, step: Callable[[T], None], data: T) -> None:
        """Run :meth:`locate` or :meth:`take`. A filter that turns out damaged becomes unusable."""
        try:
            step(data)
        except EncryptionError as error:
            raise error.locate(row_group=self.probe.chunk.row_group, column=self.probe.chunk.name) from None
        except ParquetError as error:
            self._damaged(error.message)

    def _damaged(self, why: str) -> None:
        self.usable = False
        chunk = self.probe.chunk
        said = CorruptFileError(
            f"Bloom filter ignored: {why}", file=self.file, row_group=chunk.row_group, column=chunk.name
        )
        warn_caller(str(said), CorruptIndexWarning)

    def _answer(self, blocks: Iterator[Bytes]) -> None:
        """The answer of a probe. ``blocks``: the block of each hash, in order."""
        self.probe.answer = any(
            any([bloom_filter.check_block(next(blocks), h) for h in alternatives])  # noqa: C419 (take every block)
            for alternatives in self.probe.hashes
        )

    def _block_numbers(self, bitset_size: int) -> list[int]:
        count = bitset_size // BLOCK
        return [bloom_filter.block_index(h, count) for alternatives in self.probe.hashes for h in alternatives]


class _ClearPlace(_Place):
    """An unencrypted filter, of which single blocks can be read."""

    header_size = 0

    def _locate_by_length(self, length: int) -> bool:
        # A standard header is under 32 bytes, so the exact length tells where the bitset starts.
        self.bitset_size = bloom_filter.bitset_bytes(length)
        self.header_size = length - self.bitset_size
        return self.header_size >= 8 and self.bitset_size > 0

    def locate(self, head: memoryview) -> None:
        self.bitset_size, self.header_size = bloom_filter.parse_header(head, self.limits, self.available)

    @property
    def _whole(self) -> bool:
        count = sum(len(h) for h in self.probe.hashes)
        return self.reads_all or count >= WHOLE_FROM or count * BLOCK * 4 >= self.bitset_size

    def ranges(self) -> list[Range]:
        """The header, then the whole bitset or one block per hash."""
        start = self.offset + self.header_size
        header = (self.offset, self.header_size)
        if self._whole:
            return [header, (start, self.bitset_size)]
        return [header, *((start + BLOCK * b, BLOCK) for b in self._block_numbers(self.bitset_size))]

    def take(self, parts: list[memoryview]) -> None:
        """Check the header that the place was computed from, then the blocks."""
        size, header_size = bloom_filter.parse_header(parts[0], self.limits)
        if (size, header_size) != (self.bitset_size, self.header_size):
            raise CorruptFileError(
                f"the Bloom filter header declares {size} bytes, but the length in the footer leaves {self.bitset_size}"
            )
        if not self._whole:
            self._answer(iter(parts[1:]))
        else:
            self._answer(parts[1][BLOCK * b : BLOCK * (b + 1)] for b in self._block_numbers(size))


class _EncryptedPlace(_Place):
    """Two modules, read and decrypted whole."""

    head = HEADER + GCM_OVERHEAD
    size = 0

    def _locate_by_length(self, length: int) -> bool:
        self.size = length
        return length > 2 * GCM_OVERHEAD

    def locate(self, head: memoryview) -> None:
        end = module_end(head, 0)
        size, _ = bloom_filter.parse_header(_open_header(self.probe.chunk, head[:end]), self.limits)
        self.size = end + size + GCM_OVERHEAD
        if self.size > self.available:
            raise CorruptFileError(f"the Bloom filter bitset of {size} bytes extends past the end of the file")

    def ranges(self) -> list[Range]:
        return [(self.offset, self.size)]

    def take(self, parts: list[memoryview]) -> None:
        bitset = open_encrypted(self.probe.chunk, parts[0], self.limits)
        self._answer(bitset[BLOCK * b : BLOCK * (b + 1)] for b in self._block_numbers(len(bitset)))


def _open_header(chunk: Chunk, stored: memoryview) -> memoryview:
    return chunk.crypto.open(Module.BLOOM_FILTER_HEADER, stored)


def open_encrypted(chunk: Chunk, data: memoryview, limits: Limits) -> memoryview:
    """The bitset of an encrypted filter from its two modules."""
    end = module_end(data, 0)
    size, _ = bloom_filter.parse_header(_open_header(chunk, data[:end]), limits)
    if size + GCM_OVERHEAD != len(data) - end:
        raise CorruptFileError(
            f"the Bloom filter header declares {size} bytes, but the filter has {len(data) - end - GCM_OVERHEAD}"
        )
    return chunk.crypto.open(Module.BLOOM_FILTER_BITSET, data[end:])


def read_filter(chunk: Chunk, fetcher: Fetcher, limits: Limits) -> bloom_filter.BloomFilter | None:
    """The whole filter of a chunk; ``None`` where it has none."""
    offset = chunk.numbers.bloom_filter_offset
    if not offset:
        return None
    left = fetcher.source.size - 8 - offset
    if chunk.crypto.encrypted:
        place = _EncryptedPlace(Probe(chunk, []), fetcher.source, limits)
        if not place.located:
            place.locate(fetcher.fetch([(offset, min(place.head, left))])[0])
        (data,) = fetcher.fetch(place.ranges())
        return bloom_filter.BloomFilter(np.frombuffer(open_encrypted(chunk, data, limits), np.uint8), chunk.node.type)
    (head,) = fetcher.fetch([(offset, min(HEADER, left))])
    size, header_size = bloom_filter.parse_header(head, limits, available=left)
    (data,) = fetcher.fetch([(offset, header_size + size)])
    return bloom_filter.parse_filter(data, chunk.node.type, limits)
