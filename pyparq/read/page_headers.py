"""Page headers of a column chunk without its page bodies: a window moves along the chunk and steps over the bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyparq.encryption.cipher import LENGTH, Module, stated_length
from pyparq.errors import CorruptFileError, LimitError, located
from pyparq.format import ttypes as tt
from pyparq.format.compression import encoding_name
from pyparq.format.thrift_codec import ThriftDecodeError, ThriftTruncatedError
from pyparq.kernels import KernelError

WINDOW = 16 << 10
"""Bytes read at once: a header takes under 100 mostly, and small pages come several to a window."""
WHOLE = 1 << 20
"""Chunks up to this size are read in one go."""
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 1, 2, 3
_TYPES = {DATA_PAGE: "data v1", INDEX_PAGE: "index", DICTIONARY_PAGE: "dictionary", DATA_PAGE_V2: "data v2"}


@dataclass(frozen=True, slots=True)
class PageFacts:
    """One page as its header describes it. Sizes are bytes; ``None`` where the header does not say."""

    ordinal: int | None
    """Data pages count from 0."""
    type: str
    encoding: str | None
    values: int | None
    """Nulls included; entries, of a dictionary."""
    nulls: int | None
    rows: int | None
    offset: int
    """Of the header."""
    header_size: int
    compressed_size: int
    uncompressed_size: int
    crc: int | None


class _Window:
    """Bytes of a chunk at any position, read ahead."""

    def __init__(self, fetcher: Any, start: int, end: int) -> None:
        self._fetcher = fetcher
        self._end = end
        self._at = start
        self._data = memoryview(b"")
        self._step = end - start if end - start <= WHOLE else WINDOW

    def at(self, position: int, least: int) -> memoryview:
        """At least ``least`` bytes from ``position`` on, or all there are to the end of the chunk."""
        least = min(least, self._end - position)
        if not self._at <= position or position + least > self._at + len(self._data):
            size = min(max(least, self._step), self._end - position)
            (self._data,) = self._fetcher.fetch([(position, size)])
            self._at = position
        return self._data[position - self._at :]


def walk_headers(file: Any, chunk: Any) -> Iterator[PageFacts]:
    """Every page of a chunk in file order. Raises :class:`CorruptFileError` where the headers make no sense."""
    window = _Window(file.fetcher, chunk.start, chunk.end)
    at, ordinal, seen = chunk.start, 0, 0
    while at < chunk.end:
        done = seen >= chunk.meta.num_values and at > chunk.start
        with located(file=file.name, row_group=chunk.row_group, column=chunk.name, page=ordinal):
            try:
                module = Module.DATA_PAGE_HEADER
                if at == chunk.start and chunk.first_page == "dictionary":
                    module = Module.DICTIONARY_PAGE_HEADER
                header, size = _header(window, at, chunk, module, ordinal, file.options.limits)
                stored = header.compressed_page_size
                if stored < 0 or header.uncompressed_page_size < 0 or at + size + stored > chunk.end:
                    left = chunk.end - at - size
                    raise CorruptFileError(
                        f"the column chunk ends in the middle of the page: the page header declares {stored} bytes, "
                        f"{left} are left"
                    )
            except CorruptFileError:
                if done:  # what follows the last page is padding
                    return
                raise
        is_data = header.type in (DATA_PAGE, DATA_PAGE_V2)
        facts = _facts(header, at, size, ordinal if is_data else None, chunk.node)
        yield facts
        at += size + stored
        if is_data:
            ordinal += 1
            seen += max(facts.values or 0, 0)


def _header(window: _Window, at: int, chunk: Any, module: Module, page: int, limits: Any) -> tuple[Any, int]:
    """The header at ``at`` and its stored bytes."""
    least = 256
    if chunk.crypto.encrypted:
        length = stated_length(window.at(at, LENGTH), 0)
        if length > limits.max_page_header:
            raise LimitError(f"the page header is larger than Limits.max_page_header ({limits.max_page_header} bytes)")
        least = max(length + LENGTH, least)
    while True:
        data = window.at(at, least)
        try:
            found: tuple[Any, int] = chunk.crypto.struct(tt.PageHeader, data, 0, module, page)
            return found
        except ThriftTruncatedError as error:
            if len(data) >= chunk.end - at:
                raise CorruptFileError(f"bad page header: {error}") from error
            if len(data) > limits.max_page_header:
                raise LimitError(
                    f"the page header is larger than Limits.max_page_header ({limits.max_page_header} bytes)"
                ) from error
            least = 2 * len(data)
        except (ThriftDecodeError, KernelError) as error:
            raise CorruptFileError(f"bad page header: {error}") from error


def _facts(header: Any, at: int, size: int, ordinal: int | None, node: Any) -> PageFacts:
    inner = (header.data_page_header, None, header.dictionary_page_header, header.data_page_header_v2)
    details = inner[header.type] if 0 <= header.type < 4 else None
    values = None if details is None else details.num_values
    rows = nulls = None
    if header.type == DATA_PAGE_V2 and details is not None:
        rows, nulls = details.num_rows, details.num_nulls
    elif header.type == DATA_PAGE and node.max_rep == 0:
        rows = values
    if nulls is None and ordinal is not None and node.max_def == 0:
        nulls = 0
    return PageFacts(
        ordinal, _TYPES.get(header.type, f"type {header.type}"),
        None if details is None else encoding_name(details.encoding), values, nulls, rows, at, size,
        header.compressed_page_size, header.uncompressed_page_size,
        None if header.crc is None else header.crc & 0xFFFFFFFF,
    )  # fmt: skip
