"""One column chunk of an open file."""

from __future__ import annotations

from copy import copy
from typing import Any

from pyparq.encryption.reading import CLEAR, ChunkDecryption
from pyparq.format.chunk_numbers import ALL_DICTIONARY, ChunkNumbers
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node


class Chunk:
    """One column chunk. Its place is checked against the file."""

    __slots__ = ("_footer", "_meta", "crypto", "node", "num_rows", "numbers", "row_group", "size", "start")

    node: Node
    row_group: int
    num_rows: int
    numbers: ChunkNumbers
    """What the footer says of it."""
    start: int
    """Offset of the first byte: the dictionary page, or the first data page."""
    size: int
    """Bytes of all pages with their headers."""
    crypto: ChunkDecryption
    """What its modules pass through on their way in."""

    def __init__(
        self, footer: LazyFileMetaData, node: Node, row_group: int, num_rows: int, numbers: ChunkNumbers, start: int,
        size: int, crypto: ChunkDecryption = CLEAR, meta: Any = None,
    ) -> None:  # fmt: skip
        """``meta``: the ColumnMetaData, if they are decoded already."""
        self._footer = footer
        self._meta = meta
        self.crypto = crypto
        self.node = node
        self.num_rows = num_rows
        self.numbers = numbers
        self.row_group = row_group
        self.size = size
        self.start = start

    @property
    def raw(self) -> Any:
        """ColumnChunk as in the footer."""
        return self._footer.column_chunk(self.row_group, self.node.column)

    @property
    def meta(self) -> Any:
        """The ColumnMetaData."""
        if self._meta is None:
            self._meta = self.raw.meta_data
        return self._meta

    @property
    def codec(self) -> int:
        """The CompressionCodec."""
        return self.numbers.codec  # type: ignore[no-any-return]

    @property
    def num_values(self) -> int:
        """Number of values, nulls included. For a flat column it is the number of rows."""
        return self.numbers.num_values  # type: ignore[no-any-return]

    @property
    def first_page(self) -> int | str:
        """Ordinal of the page that the chunk starts with: 0, or ``"dictionary"``."""
        return "dictionary" if self.numbers.dictionary_page_offset == self.start else 0

    @property
    def is_all_dictionary(self) -> bool:
        """Whether every data page is certainly dictionary-encoded."""
        return bool(self.numbers.flags & ALL_DICTIONARY)

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def name(self) -> str:
        return self.node.dotted

    def of_size(self, size: int) -> Chunk:
        """The same chunk with another size in bytes."""
        other = copy(self)
        other.size = size
        return other
