"""The pages of a column chunk as their headers describe them, found by walking from header to header."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyparq.encryption.aad import Module
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.format import ttypes as tt
from pyparq.format.encodings import encoding_name
from pyparq.options import ReadOptions
from pyparq.read.decode.pages import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, StoredPage, num_levels_of, read_header
from pyparq.read.footers.column_chunk import Chunk


class DataPage(NamedTuple):
    """What the header of a data page says, and where it stands. Sizes are bytes."""

    offset: int
    """Of its header in the file."""
    size: int
    """Stored, with the header."""
    num_values: int
    """Nulls included."""
    encoding: int
    num_nulls: int | None
    """Of a page of version 2."""
    num_rows: int | None
    has_crc: bool
    has_statistics: bool

    @property
    def version(self) -> int:
        return 1 if self.num_rows is None else 2


class DictionaryPage(NamedTuple):
    offset: int
    num_values: int
    encoding: int
    is_sorted: bool
    has_crc: bool


@dataclass(slots=True)
class StoredPages:
    """All pages of a chunk. ``size`` and ``uncompressed`` are the bytes of the pages with their headers."""

    pages: list[DataPage] = field(default_factory=list)
    dictionary: DictionaryPage | None = None
    size: int = 0
    uncompressed: int = 0
    num_values: int = 0
    fault: ParquetError | None = None
    """Why the walk ended early."""

    @property
    def num_crcs(self) -> int:
        """Pages that have a CRC."""
        return sum(page.has_crc for page in self.pages) + (self.dictionary is not None and self.dictionary.has_crc)


def walk_headers(data: memoryview, chunk: Chunk, options: ReadOptions, expected: int, to_the_end: bool) -> StoredPages:
    """The pages in ``data``, which starts with the first.

    ``expected``: values that should be there; what cannot be a page behind that many is left alone. ``to_the_end``: go
    on to the end of ``data`` even where that many have come.
    """
    found = StoredPages()
    while found.size < len(data) and (to_the_end or found.num_values < expected):
        ordinal: int | str = len(found.pages) if found.size else chunk.first_page
        try:
            with located(page=ordinal):
                header, body, end = read_header(data, found.size, chunk, options, ordinal)
                _take(found, StoredPage(header, body, ordinal), chunk.start + found.size, end - found.size)
        except ParquetError as error:
            if found.num_values < expected or not found.pages:
                found.fault = error
            break
        found.uncompressed += end - found.size - len(body) + header.uncompressed_page_size
        found.size = end
    return found


def _take(found: StoredPages, page: StoredPage, offset: int, size: int) -> None:
    header = page.header
    if header.type == DICTIONARY_PAGE:
        inner = header.dictionary_page_header
        if inner is None:
            raise CorruptFileError("the dictionary page has no dictionary page header")
        if found.pages or found.dictionary is not None:
            raise CorruptFileError("the dictionary page is not the first page of its column chunk")
        found.dictionary = DictionaryPage(
            offset, inner.num_values, inner.encoding, bool(inner.is_sorted), header.crc is not None
        )
    elif header.type in (DATA_PAGE, DATA_PAGE_V2):
        found.num_values += num_levels_of(page)
        v1, v2 = header.data_page_header, header.data_page_header_v2
        crc = header.crc is not None
        if header.type == DATA_PAGE_V2 and v2 is not None:
            nulls, rows, statistics = v2.num_nulls, v2.num_rows, v2.statistics is not None
            found.pages.append(DataPage(offset, size, v2.num_values, v2.encoding, nulls, rows, crc, statistics))
        elif v1 is not None:
            statistics = v1.statistics is not None
            found.pages.append(DataPage(offset, size, v1.num_values, v1.encoding, None, None, crc, statistics))


def header_statistics(page: DataPage, ordinal: int, chunk: Chunk, data: memoryview) -> tt.Statistics | None:
    """The statistics in a page's header. Raises :class:`ParquetError` where they do not decode."""
    header, _ = chunk.crypto.struct(tt.PageHeader, data, page.offset - chunk.start, Module.DATA_PAGE_HEADER, ordinal)
    inner: Any = header.data_page_header if header.data_page_header is not None else header.data_page_header_v2
    return None if inner is None else inner.statistics


def encodings_shown(encodings: set[int]) -> str:
    return ", ".join(sorted(map(encoding_name, encodings)))
