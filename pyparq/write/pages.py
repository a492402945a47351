"""Pages as they are stored: header and body, version 1 or 2 (README.md of parquet-format, "Data Pages").

The two versions share everything but their envelope: where the levels stand, and what is compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq import compression, encodings
from pyparq.buffers import Scratch
from pyparq.encryption.aad import Module
from pyparq.encryption.writing import ChunkEncryption, Seal
from pyparq.errors import DataError
from pyparq.format import ttypes as tt
from pyparq.format.codec import serialize
from pyparq.schemas.types import LeafType
from pyparq.schemas.values import Values, count_of
from pyparq.threads import check_stopped


@dataclass(slots=True)
class PageWriter:
    """Gathers the pages of one column chunk: ``parts`` one after another are the chunk's bytes."""

    codec: int
    level: int | None
    version: int
    checksum: bool
    crypto: ChunkEncryption
    parts: list[Any] = field(default_factory=list)
    size: int = 0
    """Stored bytes so far."""
    uncompressed_size: int = 0
    """The same before compression; headers count as they are stored."""
    offsets: list[int] = field(default_factory=list)
    """Where each data page starts, counted from the start of the chunk."""
    sizes: list[int] = field(default_factory=list)
    """Stored bytes of each data page, header included."""
    _scratch: Scratch | None = None
    _seal: Seal = field(init=False)

    def __post_init__(self) -> None:
        self._seal = self.crypto.page_seal()
        if self.crypto.encrypted:
            self._scratch = Scratch()

    def add_dictionary(self, entries: Values, leaf: LeafType) -> None:
        """The dictionary page, which comes first."""
        body = encodings.encode(encodings.PLAIN, entries, leaf)
        header = tt.PageHeader(
            type=tt.PageType.DICTIONARY_PAGE,
            uncompressed_page_size=_size(body),
            dictionary_page_header=tt.DictionaryPageHeader(num_values=count_of(entries), encoding=encodings.PLAIN),
        )
        self._store(header, [self._compress(body)], -1)

    def add_data(
        self, encoding: int, rep_levels: Any, def_levels: Any, values: Any, *, slots: int, rows: int, nulls: int,
        has_levels: tuple[bool, bool],
    ) -> None:  # fmt: skip
        """A data page of already encoded levels (without length prefixes) and values.

        ``has_levels`` says whether the leaf has repetition and definition levels at all.
        """
        check_stopped()
        start = self.size
        build = self._version_1 if self.version == 1 else self._version_2
        header, parts = build(encoding, rep_levels, def_levels, values, slots, rows, nulls, has_levels)
        self._store(header, parts, len(self.offsets))
        self.offsets.append(start)
        self.sizes.append(self.size - start)

    def _version_1(
        self, encoding: int, rep_levels: Any, def_levels: Any, values: Any, slots: int, rows: int, nulls: int,
        has_levels: tuple[bool, bool],
    ) -> tuple[tt.PageHeader, list[Any]]:  # fmt: skip
        body: list[Any] = []
        for there, levels in zip(has_levels, (rep_levels, def_levels), strict=True):
            if there:
                body += [_size(levels).to_bytes(4, "little"), levels]
        body.append(values)
        header = tt.PageHeader(
            type=tt.PageType.DATA_PAGE,
            uncompressed_page_size=sum(map(_size, body)),
            data_page_header=tt.DataPageHeader(
                num_values=slots,
                encoding=encoding,
                definition_level_encoding=encodings.RLE,
                repetition_level_encoding=encodings.RLE,
            ),
        )
        return header, body if self.codec == compression.UNCOMPRESSED else [self._compress(_joined(body))]

    def _version_2(
        self, encoding: int, rep_levels: Any, def_levels: Any, values: Any, slots: int, rows: int, nulls: int,
        has_levels: tuple[bool, bool],
    ) -> tuple[tt.PageHeader, list[Any]]:  # fmt: skip
        stored = self._compress(values) if _size(values) else values
        # Values that do not shrink are stored as they are: the reader saves the work.
        compressed = self.codec != compression.UNCOMPRESSED and _size(stored) < _size(values)
        header = tt.PageHeader(
            type=tt.PageType.DATA_PAGE_V2,
            uncompressed_page_size=_size(rep_levels) + _size(def_levels) + _size(values),
            data_page_header_v2=tt.DataPageHeaderV2(
                num_values=slots,
                num_nulls=nulls,
                num_rows=rows,
                encoding=encoding,
                definition_levels_byte_length=_size(def_levels),
                repetition_levels_byte_length=_size(rep_levels),
                is_compressed=compressed,
            ),
        )
        return header, [rep_levels, def_levels, stored if compressed else values]

    def _compress(self, data: Any) -> Any:
        return compression.compress(self.codec, data, self.level, self._scratch)

    def _store(self, header: tt.PageHeader, body: list[Any], page: int) -> None:
        """Append a page; ``page`` is the ordinal of a data page, -1 for the dictionary page."""
        of_body, of_header = Module.DATA_PAGE, Module.DATA_PAGE_HEADER
        if page < 0:
            of_body, of_header = Module.DICTIONARY_PAGE, Module.DICTIONARY_PAGE_HEADER
        body = self._seal(of_body, body, page)
        header.compressed_page_size = stored = sum(map(_size, body))
        if max(stored, header.uncompressed_page_size) >= 1 << 31:
            raise DataError(
                "the page has 2 GiB or more; a page must be smaller", page=page if page >= 0 else "dictionary"
            )
        if self.checksum:
            header.crc = _crc(body)
        head = self._seal(of_header, [serialize(header)], page)
        head_size = sum(map(_size, head))
        self.parts += head + body
        self.size += head_size + stored
        self.uncompressed_size += head_size + header.uncompressed_page_size


def _crc(parts: Sequence[Any]) -> int:
    """CRC-32 over the parts one after another, as the signed number that Thrift takes."""
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc - (1 << 32) if crc >> 31 else crc


def _size(data: Any) -> int:
    return memoryview(data).nbytes


def _joined(parts: list[Any]) -> Any:
    filled = [part for part in parts if _size(part)]
    return filled[0] if len(filled) == 1 else b"".join(filled)
