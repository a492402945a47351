"""Open a file: the footer, the schema tree; then column chunks on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyparq.encryption.reading import ChunkDecryption, FileDecryption
from pyparq.errors import CorruptFileError, EncryptionError, UnsupportedError, located
from pyparq.format.codec import ThriftDecodeError
from pyparq.format.footer import LazyFileMetaData
from pyparq.index.statistics import parse_created_by
from pyparq.io.fetch import Fetcher, IOCounts
from pyparq.io.source import open_source
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.footer import MAGIC, read_footer
from pyparq.read.schemas import schema_of
from pyparq.schemas.order import Order, order_of
from pyparq.schemas.tree import Node, SchemaTree

DICTIONARY_HEADER = 100
"""Bytes that surely hold the header of a dictionary page."""


@lru_cache(maxsize=16)
def omits_dictionary_header(created_by: str | None) -> bool:
    """parquet-mr before 1.2.9 left the dictionary page header out of total_compressed_size (PARQUET-816)."""
    name, version, _ = parse_created_by(created_by or "")
    return name == "parquet-mr" and (version or (0, 0, 0)) < (1, 2, 9)


@dataclass(slots=True)
class Chunk:
    """One column chunk, its place checked against the file."""

    node: Node
    row_group: int
    num_rows: int
    raw: Any
    """ColumnChunk as in the footer."""
    meta: Any
    """ColumnMetaData."""
    start: int
    """Offset of the first byte: the dictionary page, or the first data page."""
    size: int
    """Bytes of all pages with their headers."""
    crypto: ChunkDecryption
    """What its modules pass through on their way in."""

    @property
    def first_page(self) -> int | str:
        """Ordinal of the page that the chunk starts with: 0, or ``"dictionary"``."""
        return "dictionary" if (self.meta.dictionary_page_offset or 0) == self.start else 0

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def name(self) -> str:
        return self.node.dotted


class OpenFile:
    """An open file: where bytes come from (``fetcher``), what they mean (``footer``, ``tree``)."""

    def __init__(
        self, fetcher: Fetcher, footer: LazyFileMetaData, decryption: FileDecryption, options: ReadOptions
    ) -> None:
        self.fetcher = fetcher
        self.footer = footer
        self.decryption = decryption
        self.options = options
        shared = schema_of(footer, options)
        self.tree: SchemaTree = shared.tree
        self.key_values = dict(shared.key_values)
        """Key-value metadata of the file."""
        self.fields = shared.fields
        self._chunks: dict[tuple[int, int], Chunk] = {}
        self._rows: dict[int, int] = {}
        counts = fetcher.counts
        self.open_counts = IOCounts(counts.requests, counts.bytes, counts.ranges)
        """What opening the file cost."""

    @property
    def name(self) -> str:
        return self.fetcher.source.name

    @property
    def num_row_groups(self) -> int:
        return self.footer.num_row_groups

    @property
    def created_by(self) -> str | None:
        value = self.footer.meta.created_by
        return None if value is None else str(value)

    def column_order(self, node: Node) -> Order:
        """The order that the footer gives a leaf (ColumnOrder)."""
        orders = self.footer.meta.column_orders
        stated = orders[node.column] if orders is not None and node.column < len(orders) else None
        return order_of(node.type, stated, node.element)

    def num_rows_of(self, row_group: int) -> int:
        rows = self._rows.get(row_group)
        if rows is None:
            rows = self.footer.num_rows(row_group)
            if rows is None or rows < 0:
                raise CorruptFileError(f"a row group of {rows} rows", file=self.name, row_group=row_group)
            self._rows[row_group] = rows
        return rows

    def chunk(self, row_group: int, node: Node) -> Chunk:
        """The chunk of a leaf in a row group.

        Raises :class:`CorruptFileError` when its metadata contradicts the schema or the file,
        :class:`UnsupportedError` when its data lies in another file, :class:`EncryptionError` when its key is missing
        or wrong.
        """
        key = row_group, node.column
        chunk = self._chunks.get(key)
        if chunk is None:
            with located(file=self.name, row_group=row_group, column=node.dotted):
                chunk = self._chunk(row_group, node)
            self._chunks[key] = chunk
        return chunk

    def raw_chunk(self, row_group: int, node: Node) -> Any:
        """The ColumnChunk of a leaf as the footer has it, of an encrypted column too.

        Raises :class:`CorruptFileError` when it does not decode.
        """
        with located(file=self.name, row_group=row_group, column=node.dotted):
            return self._raw_chunk(row_group, node)

    def _raw_chunk(self, row_group: int, node: Node) -> Any:
        if self.footer.num_columns(row_group) != len(self.tree.leaves):
            raise CorruptFileError(
                f"a row group of {self.footer.num_columns(row_group)} columns, the schema has {len(self.tree.leaves)}"
            )
        try:
            return self.footer.column_chunk(row_group, node.column)
        except (ThriftDecodeError, KernelError) as error:
            raise CorruptFileError(f"bad column chunk metadata: {error}") from error

    def _chunk(self, row_group: int, node: Node) -> Chunk:
        raw = self._raw_chunk(row_group, node)
        if raw.file_path is not None:
            raise UnsupportedError(f"the column chunk lies in another file, {raw.file_path!r}: not followed")
        meta, crypto = self.decryption.column(raw, self._ordinal(row_group), node.column, node.dotted)
        if meta is None:
            raise CorruptFileError("a column chunk without metadata")
        num_rows = self.num_rows_of(row_group)
        self._check(meta, node, num_rows)
        if meta.path_in_schema != list(node.path):
            self._check_path(meta.path_in_schema)
        if meta.num_values == 0 and meta.data_page_offset <= 0:
            return Chunk(node, row_group, num_rows, raw, meta, len(MAGIC), 0, crypto)  # no page was ever written
        start = min(o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset) if o > 0)
        size, end = meta.total_compressed_size, self.fetcher.source.size - 8
        if size < 0 or start < len(MAGIC) or start + size > end:
            raise CorruptFileError(f"the column chunk of {size} bytes at offset {start} is outside the file")
        if omits_dictionary_header(self.created_by):
            size = min(size + DICTIONARY_HEADER, end - start)
        return Chunk(node, row_group, num_rows, raw, meta, start, size, crypto)

    def _ordinal(self, row_group: int) -> int:
        """The number that encrypted modules of a row group are bound to."""
        if self.decryption.info is None:
            return row_group
        stated = self.footer.row_group(row_group).ordinal
        if stated not in (None, row_group):
            # In a footer that nobody vouches for, row groups could otherwise change places with their numbers.
            raise EncryptionError(f"the row group in this place says that it is number {stated}")
        return row_group

    @staticmethod
    def _check(meta: Any, node: Node, num_rows: int) -> None:
        if meta.type != node.element.type:
            raise CorruptFileError(f"the column chunk has physical type {meta.type}, the schema {node.element.type}")
        if meta.data_page_offset <= 0 and meta.num_values != 0:
            raise CorruptFileError(f"data page offset {meta.data_page_offset}")
        if meta.num_values < 0 or (node.max_rep == 0 and meta.num_values != num_rows):
            raise CorruptFileError(f"{meta.num_values} values in a row group of {num_rows} rows")
        if meta.total_uncompressed_size < 0:
            raise CorruptFileError(f"total uncompressed size {meta.total_uncompressed_size}")

    def _check_path(self, stated: Sequence[str]) -> None:
        """A path that no column has tells nothing (columns renamed in the schema alone: others read them by their
        place too); that of another column means that chunks were exchanged."""
        if any(leaf.path == tuple(stated) for leaf in self.tree.leaves):
            raise CorruptFileError(f"the column chunk in this place says that it is of column {'.'.join(stated)}")

    @property
    def identity(self) -> tuple[int, int]:
        """Size and footer checksum: the same for the same file, wherever it lies."""
        return self.fetcher.source.size, self.footer.checksum

    def fork(self) -> OpenFile:
        """The same file, with I/O counts of its own: one scan's do not show in another's."""
        other = copy(self)
        other.fetcher = self.fetcher.fork()
        return other

    def close(self) -> None:
        self.fetcher.source.close()


def open_file(where: Any, options: ReadOptions, storage_options: Mapping[str, Any] | None = None) -> OpenFile:
    """Open ``where`` (see :func:`pyparq.io.source.open_source`) and read its footer.

    Raises :class:`CorruptFileError` when it is not a whole Parquet file, :class:`EncryptionError` when its footer
    cannot be decrypted.
    """
    source = open_source(where, storage_options)
    fetcher = Fetcher(source, options.coalesce_gap)
    try:
        with located(file=source.name):
            footer, decryption = read_footer(fetcher, options)
            return OpenFile(fetcher, footer, decryption, options)
    except BaseException:
        if source is not where:
            source.close()
        raise
