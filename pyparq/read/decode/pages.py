"""From stored bytes to page parts: header, CRC, decompression, levels split from values.

V1 and v2 pages differ only in their envelope (what is compressed, where the levels lie): after :func:`open_page` they
are the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.encryption.aad import Module
from pyparq.errors import ChecksumError, CorruptFileError, LimitError, UnsupportedError, located
from pyparq.format.compression import UNCOMPRESSED, decompress, most_output
from pyparq.format.encodings import BIT_PACKED, DICTIONARY_ENCODINGS, PLAIN, RLE, encoding_name, rle
from pyparq.format.page_header import DataPageHeader, DataPageHeaderV2, PageHeader
from pyparq.format.schema_node import Node
from pyparq.format.thrift_codec import ThriftDecodeError
from pyparq.kernels import KernelError
from pyparq.kernels.buffers import new_arena
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import Chunk

Levels = npt.NDArray[np.uint8]
DataHeader = DataPageHeader | DataPageHeaderV2

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 1, 2, 3


@dataclass(slots=True)
class StoredPage:
    """A page as it lies in the file: decoded header, stored body."""

    header: PageHeader
    body: memoryview
    ordinal: int | str
    """Data pages count from 0; ``"dictionary"`` for the dictionary page."""


class PageBody(NamedTuple):
    """A data page inflated: levels and values told apart, still encoded."""

    num_levels: int
    rep_levels: Any
    """Their bytes without a length, ``None`` when nothing repeats."""
    rep_encoding: int
    def_levels: Any
    """As ``rep_levels``; ``None`` when nothing can be null."""
    def_encoding: int
    encoding: int
    data: memoryview


@dataclass(slots=True)
class PageParts:
    """A data page opened: levels decoded, values still encoded."""

    num_levels: int
    rep_levels: Levels | None
    """``None`` when nothing repeats."""
    def_levels: Levels | None
    """``None`` when every value is present."""
    num_values: int
    """Values present (not null)."""
    encoding: int
    data: Any


class PageBuffers:
    """The buffers of one task: pages are decrypted into the one and decompressed into the other, and stay there until
    they are cleared."""

    def __init__(self) -> None:
        self.decrypted = new_arena()
        self.decompressed = new_arena()

    def clear(self) -> None:
        """Nothing looks at the opened pages any more."""
        self.decrypted.clear()
        self.decompressed.clear()


def read_header(
    data: memoryview, at: int, chunk: Chunk, options: ReadOptions, ordinal: int | str
) -> tuple[PageHeader, memoryview, int]:
    """Header at ``data[at:]``, the stored body behind it, and where the body ends.

    ``ordinal`` is that of the page which must be there, as in :class:`StoredPage`: encrypted pages are bound to it.

    The declared sizes are checked against the bytes there are, the chunk and the limits before anybody allocates.
    """
    try:
        if isinstance(ordinal, int):
            header, start = chunk.crypto.page_header(data, at, Module.DATA_PAGE_HEADER, ordinal)
        else:
            header, start = chunk.crypto.page_header(data, at, Module.DICTIONARY_PAGE_HEADER)
    except (ThriftDecodeError, KernelError) as error:
        raise CorruptFileError(f"bad page header: {error}") from error
    stored, size = header.compressed_page_size, header.uncompressed_page_size
    if stored < 0 or stored > len(data) - start:
        raise CorruptFileError(
            f"the page header declares {stored} bytes, but the column chunk has only {len(data) - start} left"
        )
    limits = options.limits
    if size < 0:
        raise CorruptFileError(f"the page header declares {size} uncompressed bytes")
    if size > limits.max_page:
        raise LimitError(
            f"the page of {stored} bytes decompresses to {size}: more than limits.max_page ({limits.max_page})"
        )
    if size > limits.expansion_floor and size > stored * limits.max_expansion:
        raise LimitError(
            f"the page of {stored} bytes decompresses to {size}: more than limits.max_expansion "
            f"({limits.max_expansion}) allows"
        )
    if size > most_output(chunk.meta.codec, stored):
        raise CorruptFileError(f"the page of {stored} bytes cannot decompress to {size} bytes")
    return header, data[start : start + stored], start + stored


def read_page(data: memoryview, at: int, chunk: Chunk, options: ReadOptions, ordinal: int | str) -> StoredPage:
    """The page at ``data[at:]``, as :func:`read_header` has it."""
    header, body, _ = read_header(data, at, chunk, options, ordinal)
    return StoredPage(header, body, ordinal)


def walk_pages(data: memoryview, chunk: Chunk, options: ReadOptions) -> Iterator[StoredPage]:
    """All pages of a whole column chunk in order, dictionary page included."""
    return iter(PageWalk(data, chunk, options))


class PageWalk:
    """Walks the pages of a whole column chunk in order, dictionary page included."""

    def __init__(self, data: memoryview, chunk: Chunk, options: ReadOptions) -> None:
        self.data = data
        self.chunk = chunk
        self.at = 0
        """Where the next page starts."""
        self.page_at = 0
        """Where the page starts that came last."""
        self.ordinal = 0
        """Of the next data page."""
        self._options = options
        self._seen = 0
        self._has_dictionary = False

    def __iter__(self) -> Iterator[StoredPage]:
        while (page := self.next_page()) is not None:
            yield page

    @property
    def left(self) -> int:
        """Values that are still to come."""
        declared: int = self.chunk.meta.num_values
        return declared - self._seen

    def next_page(self) -> StoredPage | None:
        """The next page; ``None`` behind the last. Index pages, and kinds from the future, are passed over as the
        format asks."""
        while self.left > 0:
            if self.at >= len(self.data):
                declared = self.chunk.meta.num_values
                raise CorruptFileError(
                    f"the column chunk declares {declared} values, but its pages end after {self._seen}"
                )
            with located(page=self.ordinal):
                number = self.ordinal if self.at else self.chunk.first_page
                self.page_at = self.at
                header, body, self.at = read_header(self.data, self.at, self.chunk, self._options, number)
                if header.type == DICTIONARY_PAGE:
                    if self._seen or self._has_dictionary:
                        raise CorruptFileError("the dictionary page is not the first page of its column chunk")
                    self._has_dictionary = True
                    return StoredPage(header, body, "dictionary")
                if header.type not in (DATA_PAGE, DATA_PAGE_V2):
                    continue
                page = StoredPage(header, body, self.ordinal)
                self.passed(num_levels_of(page), 1)
                return page
        if self.left < 0:
            declared = self.chunk.meta.num_values
            raise CorruptFileError(f"the column chunk declares {declared} values, but its pages hold {self._seen}")
        return None

    def passed(self, values: int, pages: int) -> None:
        """So many values and data pages have come by."""
        self._seen += values
        self.ordinal += pages


def _data_header(page: StoredPage) -> DataHeader:
    header = page.header
    inner = header.data_page_header_v2 if header.type == DATA_PAGE_V2 else header.data_page_header
    if inner is None:
        raise CorruptFileError("the data page has no data page header")
    return inner


def room_of(page: StoredPage, node: Node) -> int:
    """Bytes that a data page takes when it is opened, its levels spelled out."""
    return page.header.uncompressed_page_size + num_levels_of(page) * ((node.max_def > 0) + (node.max_rep > 0))


def num_levels_of(page: StoredPage) -> int:
    """Values that a data page declares, nulls included."""
    count = _data_header(page).num_values
    if count < 0:
        raise CorruptFileError(f"the page header declares {count} values")
    return count


def check_crc(page: StoredPage, chunk: Chunk, options: ReadOptions) -> None:
    """Compare the stored body with its CRC, when it has one and checking is on.

    Where a tag is about to prove more over the same bytes, the CRC is not computed. That of a v2 page may leave the
    levels out: parquet-java stores them in the clear.
    """
    crc = page.header.crc
    if crc is None or not options.verify_checksums:
        return
    if chunk.crypto.authenticates_pages and page.header.type != DATA_PAGE_V2:
        return
    if zlib.crc32(page.body) != crc & 0xFFFFFFFF:
        raise ChecksumError(f"the page does not match its CRC (stored {crc & 0xFFFFFFFF:#010x})")


def open_dictionary(page: StoredPage, chunk: Chunk, options: ReadOptions) -> tuple[Any, int]:
    """(PLAIN bytes, number of entries) of a dictionary page."""
    check_crc(page, chunk, options)
    header = page.header.dictionary_page_header
    if header is None:
        raise CorruptFileError("the dictionary page has no dictionary page header")
    if header.encoding != PLAIN and header.encoding not in DICTIONARY_ENCODINGS:  # all mean the same here
        raise UnsupportedError(
            f"the dictionary page has encoding {encoding_name(header.encoding)}, which is not supported"
        )
    if header.num_values < 0:
        raise CorruptFileError(f"the dictionary page declares {header.num_values} entries")
    body = chunk.crypto.open(Module.DICTIONARY_PAGE, page.body)
    return decompress(chunk.meta.codec, body, page.header.uncompressed_page_size), header.num_values


def open_page(page: StoredPage, chunk: Chunk, options: ReadOptions, buffers: PageBuffers) -> PageParts:
    """CRC, decompression and levels of a data page."""
    header = check_page(page, chunk, options)
    inflated = inflate_page(page, header, chunk, buffers)
    return decode_levels(split_page(header, chunk.node, inflated), chunk.node)


def decode_levels(body: PageBody, node: Node) -> PageParts:
    """The levels of a page spelled out."""
    count, rep, rep_encoding, defs, def_encoding, encoding, data = body
    present = count
    rep_levels, def_levels = None, None
    try:
        if rep is not None:
            rep_levels, _ = read_levels(rep, rep_encoding, count, node.max_rep, True)
        if defs is not None:
            def_levels, present = read_levels(defs, def_encoding, count, node.max_def, False)
    except KernelError as error:
        raise CorruptFileError(f"bad levels: {error}") from error
    if present == count and rep is None:
        def_levels = None
    return PageParts(count, rep_levels, def_levels, present, encoding, data)


def check_page(page: StoredPage, chunk: Chunk, options: ReadOptions) -> DataHeader:
    """What the header says of the data, held against the stored bytes and the limits before anything is allocated."""
    check_crc(page, chunk, options)
    header, size = _data_header(page), page.header.uncompressed_page_size
    count = header.num_values
    if count < 0:
        raise CorruptFileError(f"the page header declares {count} values")
    # Runs hold any number of values, but a page that claims this many lies.
    if count > (size + 64) * options.limits.max_values_per_byte:
        raise LimitError(
            f"the page declares {count} values in {size} bytes: more than limits.max_values_per_byte allows"
        )
    if isinstance(header, DataPageHeaderV2):
        rep_size, def_size = header.repetition_levels_byte_length, header.definition_levels_byte_length
        if rep_size < 0 or def_size < 0 or rep_size + def_size > min(len(page.body), size):
            raise CorruptFileError(
                f"the levels declare {rep_size} + {def_size} bytes, but the page has {len(page.body)}"
            )
    return header


Inflated = tuple[Any, Any]
"""The levels of a v2 page, and its values; ``None`` and all the bytes of a v1 page."""


def inflate_page(page: StoredPage, header: DataHeader, chunk: Chunk, buffers: PageBuffers) -> Inflated:
    """Decrypt and decompress a page that has been checked."""
    codec, size = chunk.meta.codec, page.header.uncompressed_page_size
    levels, number = None, page.ordinal if isinstance(page.ordinal, int) else -1
    if isinstance(header, DataPageHeaderV2):
        end = header.repetition_levels_byte_length + header.definition_levels_byte_length
        levels, stored = chunk.crypto.open_page_v2(page.body, end, number, buffers.decrypted)
        size -= end
        if header.is_compressed is False or (len(stored) == 0 and size == 0):  # writers leave empty payloads alone
            codec = UNCOMPRESSED
    else:
        stored = chunk.crypto.open(Module.DATA_PAGE, page.body, number, buffers.decrypted)
    if codec == UNCOMPRESSED:
        return levels, decompress(codec, stored, size)
    return levels, decompress(codec, stored, size, buffers.decompressed.take(size))


def split_page(header: DataHeader, node: Node, inflated: Inflated) -> PageBody:
    """Levels and values told apart."""
    levels, values = inflated
    data = memoryview(values)
    rep, defs = None, None
    if isinstance(header, DataPageHeaderV2):
        rep_size = header.repetition_levels_byte_length
        if node.max_rep:
            rep = levels[:rep_size]
        if node.max_def:
            defs = levels[rep_size : rep_size + header.definition_levels_byte_length]
        return PageBody(header.num_values, rep, RLE, defs, RLE, header.encoding, data)
    count, encoding, def_encoding, rep_encoding, _ = header
    at = 0
    if node.max_rep:
        rep, at = _stored_levels_v1(data, at, count, node.max_rep, rep_encoding)
    if node.max_def:
        defs, at = _stored_levels_v1(data, at, count, node.max_def, def_encoding)
    return PageBody(count, rep, rep_encoding, defs, def_encoding, encoding, data[at:])


def _stored_levels_v1(data: memoryview, at: int, count: int, maximum: int, encoding: int) -> tuple[memoryview, int]:
    """(the levels' bytes, where they end)."""
    if encoding == BIT_PACKED:
        size = (count * rle.bit_width(maximum) + 7) // 8
    else:
        if len(data) - at < 4:
            raise CorruptFileError("the page ends before its levels")
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
    if size > len(data) - at:
        raise CorruptFileError(f"the levels declare {size} bytes, but the page has only {len(data) - at} left")
    return data[at : at + size], at + size


def read_levels(stored: Any, encoding: int, count: int, maximum: int, always: bool) -> tuple[Levels | None, int]:
    """The levels and how many of them are the maximum, as :func:`pyparq.kernels.read_levels` has it."""
    if encoding != BIT_PACKED:
        return kernels.read_levels(stored, count, maximum, always)
    levels = np.empty(count, np.uint8)
    kernels.bit_packed_decode_u8(stored, rle.bit_width(maximum), count, levels)
    if count and levels.max() > maximum:
        raise CorruptFileError(f"the page has a level of {levels.max()}, but the maximum is {maximum}")
    return levels, int(np.count_nonzero(levels == maximum))
