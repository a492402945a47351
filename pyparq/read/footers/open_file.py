"""An open file: its footer and schema tree, and its column chunks on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pyparq.encryption.reading import FileDecryption
from pyparq.errors import CorruptFileError, EncryptionError, OptionError, ParquetError, UnsupportedError, located
from pyparq.format.lazy_footer import MAGIC, TRAILER, LazyFileMetaData
from pyparq.format.order import Int64Array, Order, order_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.thrift_codec import ThriftDecodeError
from pyparq.index.statistics import parse_created_by
from pyparq.io.fetch import Fetcher, IOCounts, gap_of
from pyparq.io.source import LocalFile, open_source, set_requests
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.footers.chunks import (
    Chunk,
    ChunkPlaces,
    ChunkTable,
    LeafSet,
    ModulePlaces,
    Neighbours,
    check_numbers,
    numbers_of,
    places_of,
)
from pyparq.read.footers.footer_read import read_footer
from pyparq.read.footers.schemas import FileSchema, schema_of

DICTIONARY_HEADER = 100
"""Bytes that surely hold the header of a dictionary page."""

WORTH_A_TABLE = 3
"""From this many chunks on, looking at all of them at once takes less time than one by one."""


@lru_cache(maxsize=16)
def omits_dictionary_header(created_by: str | None) -> bool:
    """parquet-mr before 1.2.9 left the dictionary page header out of total_compressed_size (PARQUET-816)."""
    name, version, _ = parse_created_by(created_by or "")
    return name == "parquet-mr" and (version or (0, 0, 0)) < (1, 2, 9)


def _of_rows(meta: Any, num_rows: int) -> Any:
    """The metadata of a chunk without lists, with the number of rows in place of a wrong number of values. The pages
    have to agree with the rows. The counts in its statistics are dropped too."""
    other = copy(meta)
    other.num_values, other.statistics = num_rows, None
    return other


class FileState(NamedTuple):
    """The state of a file: its size in bytes, and the CRC-32 of its footer."""

    size: int
    checksum: int

    def __str__(self) -> str:
        return f"{self.size:,} bytes, footer checksum {self.checksum:08x}"


class KeyValues(dict[bytes, bytes]):
    """Key-value metadata: bytes by keys that are bytes. A key that is text gives text."""

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self[key.encode()].decode()
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key.encode() if isinstance(key, str) else key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401  (it is this method)


class OpenFile:
    """An open file: the source of its bytes (``fetcher``) and their meaning (``footer``, ``tree``)."""

    def __init__(
        self,
        fetcher: Fetcher,
        footer: LazyFileMetaData,
        decryption: FileDecryption,
        options: ReadOptions,
        shared: FileSchema | None = None,
    ) -> None:
        """``shared``: everything derived from the schema, if it is known."""
        self.fetcher = fetcher
        self.footer = footer
        self.decryption = decryption
        self.options = options
        self._closed = [False]  # shared by all forks
        shared = schema_of(footer, options) if shared is None else shared
        self.tree: SchemaTree = shared.tree
        self.created_by: str | None = footer.meta.created_by
        self.key_values = KeyValues(shared.key_values)
        """Key-value metadata of the file."""
        self.fields = shared.fields
        self._chunks: dict[tuple[int, int], Chunk] = {}
        self._tables: dict[int, tuple[ChunkTable, int]] = {}
        """For each leaf, the table that was made last, and the position of the leaf in it."""
        self._latest: list[ChunkTable] = []
        """The table that was made last, until a leaf of it is asked for."""
        self._rows: dict[int, int] = {}
        self._all_have_rows: bool | None = None
        self._neighbours: Neighbours | None = None
        self._placed: ChunkPlaces | None = None
        """Where all column chunks begin. It is set when an operation on the whole file needs it."""
        self._modules: list[ModulePlaces] = []
        counts = fetcher.counts
        self.open_counts = IOCounts(counts.requests, counts.bytes, counts.ranges)
        """What opening the file cost."""

    @property
    def name(self) -> str:
        return self.fetcher.source.name

    @property
    def num_bytes(self) -> int:
        """The size of the file."""
        return self.fetcher.source.size

    @property
    def modules(self) -> ModulePlaces:
        """Which chunks own the indexes and Bloom filters. Made at the first use, once for all threads and forks."""
        if not self._modules:
            self._modules.append(ModulePlaces(self.fetcher.source.size))
        return self._modules[0]

    @property
    def num_row_groups(self) -> int:
        return self.footer.num_row_groups

    def column_order(self, node: Node) -> Order:
        """The order of a leaf by the footer's ColumnOrder."""
        orders = self.footer.meta.column_orders
        stated = orders[node.column] if orders is not None and node.column < len(orders) else None
        return order_of(node.type, stated, node.element)

    def num_rows_of(self, row_group: int) -> int:
        rows = self._rows.get(row_group)
        if rows is None:
            rows = self.footer.num_rows(row_group)
            if rows is None or rows < 0:
                raise CorruptFileError(f"the row group declares {rows} rows", file=self.name, row_group=row_group)
            if rows == 0:
                self._check_empty(row_group)
            self._rows[row_group] = rows
        return rows

    def _check_empty(self, row_group: int) -> None:
        """Check row groups without rows. No read looks into their column chunks, so nothing else would notice a
        fault."""
        for leaf in self.tree.leaves[:1]:
            meta = self.raw_chunk(row_group, leaf).meta_data
            if meta is not None and meta.num_values > 0:
                raise CorruptFileError(
                    f"the row group has 0 rows, but its column chunk declares {meta.num_values} values",
                    file=self.name, row_group=row_group, column=leaf.dotted,
                )  # fmt: skip

    def chunk(self, row_group: int, node: Node) -> Chunk:
        """The chunk of a leaf in a row group.

        Raises :class:`CorruptFileError` if its metadata contradict the schema or the file, :class:`UnsupportedError` if
        its data lies in another file, and :class:`EncryptionError` if its key is missing or wrong.
        """
        key = row_group, node.column
        chunk = self._chunks.get(key)
        if chunk is None:
            chunk = self._listed(row_group, node)
            if chunk is None:
                with located(file=self.name, row_group=row_group, column=node.dotted):
                    chunk = self._chunk(row_group, node)
            chunk = self._chunks[key] = self._bounded(chunk)
        return chunk

    def _listed(self, row_group: int, node: Node) -> Chunk | None:
        """The chunk from the table that has it. ``None`` if the chunk is unusual."""
        table, j = self._table_of(node)
        i = None if table is None else table.place(row_group)
        if table is None or i is None or table.odd[i, j]:
            return None
        start, size, num_rows = int(table.start[i, j]), int(table.size[i, j]), int(table.num_rows[i])
        return Chunk(self.footer, node, row_group, num_rows, table.numbers_at(i, j), start, size)

    def chunk_table(self, row_groups: Sequence[int] | Int64Array, nodes: Sequence[Node] | LeafSet) -> ChunkTable:
        """The chunks of some leaves in some row groups as arrays, looked up at once. Raises as :meth:`chunk` does, for
        the first chunk (row group by row group) with a fault."""
        leaves = nodes
        if not isinstance(leaves, LeafSet):
            leaves = self.fields.leaf_set(tuple([node.column for node in leaves]))
        table = self._chunks_at_once(np.asarray(row_groups, np.int64), leaves)
        for i, j in np.argwhere(table.odd).tolist() if table.odd.any() else ():
            chunk = self.chunk(int(table.row_groups[i]), leaves.nodes[j])
            table.put(i, j, chunk.start, chunk.size, chunk.numbers, chunk.crypto.encrypted)
        return table

    def look_up(self, row_groups: Sequence[int], nodes: Iterable[Node]) -> None:
        """Look up many chunks at once that :meth:`chunk` will be asked for. Raises no error about chunks with
        faults."""
        groups = np.asarray(row_groups, np.int64)
        missing = [node for node in dict.fromkeys(nodes) if not self._knows(groups, node)]
        if len(groups) * len(missing) >= WORTH_A_TABLE:
            self._chunks_at_once(groups, LeafSet(missing))

    def _knows(self, row_groups: Int64Array, node: Node) -> bool:
        table, _ = self._table_of(node)
        if table is None:
            return False
        return len(table.row_groups) == self.num_row_groups or bool(np.isin(row_groups, table.row_groups).all())

    def _chunks_at_once(self, row_groups: Int64Array, leaves: LeafSet) -> ChunkTable:
        """The table of some chunks. It marks the unusual ones; their numbers may not be used."""
        num_rows = self.rows_of(row_groups)
        columns = leaves.columns
        stack = self.footer.chunk_numbers(row_groups, columns, leaves.stored_paths, len(self.tree.leaves))
        start, size, odd = check_numbers(stack, leaves, num_rows, self.fetcher.source.size)
        if self.decryption.info is not None or omits_dictionary_header(self.created_by):
            odd[:] = True
        table = ChunkTable(row_groups, columns, num_rows, stack, start, size, odd)
        if self._latest:
            self._list_latest()
        self._latest.append(table)
        return table

    def _table_of(self, node: Node) -> tuple[ChunkTable | None, int]:
        """The newest table with this leaf, and the position of the leaf in it."""
        self._list_latest()
        return self._tables.get(node.column, (None, 0))

    def _list_latest(self) -> None:
        """Note the newest table for each of its leaves. This waits until a leaf is asked for: a read of a whole file
        asks for none, and may have thousands."""
        for table in list(self._latest):
            self._tables |= {column: (table, j) for j, column in enumerate(table.columns.tolist())}
            self._latest.clear()

    def rows_of(self, row_groups: Int64Array) -> Int64Array:
        """The number of rows of some row groups: see :meth:`num_rows_of`."""
        rows = self.footer.rows[row_groups]
        if self._all_have_rows is None:
            self._all_have_rows = bool((self.footer.rows > 0).all())
        if not self._all_have_rows:
            for row_group in row_groups.tolist():
                self.num_rows_of(row_group)
        return rows

    def raw_chunk(self, row_group: int, node: Node) -> Any:
        """The ColumnChunk of a leaf as stored in the footer, also for an encrypted column. Raises
        :class:`CorruptFileError` if it does not decode."""
        with located(file=self.name, row_group=row_group, column=node.dotted):
            return self._raw_chunk(row_group, node)

    def raw_row_group(self, row_group: int) -> Any:
        """The RowGroup as stored in the footer, without its column chunks. Raises :class:`CorruptFileError` if it does
        not decode."""
        try:
            return self.footer.row_group(row_group)
        except (ThriftDecodeError, KernelError) as error:
            raise CorruptFileError(f"bad row group metadata: {error}", file=self.name, row_group=row_group) from error

    def check_chunk_counts(self) -> None:
        """Raise :class:`CorruptFileError` for column chunks in a file whose schema has no column. No read asks for such
        a chunk, so nothing else would notice."""
        for row_group in range(0 if self.tree.leaves else self.num_row_groups):
            count = self.footer.num_columns(row_group)
            if count:
                raise CorruptFileError(
                    f"the row group has {count} columns, but the schema has 0", file=self.name, row_group=row_group
                )

    def _raw_chunk(self, row_group: int, node: Node) -> Any:
        if self.footer.num_columns(row_group) != len(self.tree.leaves):
            raise CorruptFileError(
                f"the row group has {self.footer.num_columns(row_group)} columns, but the schema has "
                f"{len(self.tree.leaves)}"
            )
        try:
            return self.footer.column_chunk(row_group, node.column)
        except (ThriftDecodeError, KernelError) as error:
            raise CorruptFileError(f"the column chunk metadata cannot be decoded: {error}") from error

    def _chunk(self, row_group: int, node: Node) -> Chunk:
        raw = self._raw_chunk(row_group, node)
        if raw.file_path:
            raise UnsupportedError(f"the column chunk is stored in another file, {raw.file_path!r}")
        meta, crypto = self.decryption.column(raw, self._ordinal(row_group), node, self.tree)
        if meta is None:
            raise CorruptFileError("the column chunk has no metadata")
        num_rows = self.num_rows_of(row_group)
        self._check(meta, node)
        if meta.path_in_schema != list(node.path):
            self._check_path(meta.path_in_schema or ())
        if node.max_rep == 0 and meta.num_values != num_rows:
            meta = _of_rows(meta, num_rows)
        starts = [o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset or 0) if o > 0]
        if not starts:
            if meta.num_values:
                raise CorruptFileError(f"the column chunk has the invalid data page offset {meta.data_page_offset}")
            # No page was ever written.
            return Chunk(self.footer, node, row_group, num_rows, numbers_of(raw, meta), len(MAGIC), 0, crypto, meta)
        start, size, end = min(starts), meta.total_compressed_size, self.fetcher.source.size - TRAILER
        if size < 0 or start < len(MAGIC) or start >= end:
            raise CorruptFileError(f"the column chunk of {size} bytes at offset {start} is outside the file")
        if omits_dictionary_header(self.created_by):
            size = min(size + DICTIONARY_HEADER, end - start)
        if start + size > end or (size == 0 and meta.num_values):
            size = self.room_at(row_group, start)
        return Chunk(self.footer, node, row_group, num_rows, numbers_of(raw, meta), start, size, crypto, meta)

    def room_at(self, row_group: int, start: int) -> int:
        """Bytes from ``start`` to the next known part of the file.

        The parts are the column chunks of this row group and the one behind it (of all row groups, after
        :meth:`place_chunks`), their indexes and Bloom filters, and the end of the file.
        """
        end = self._near().behind(row_group, start)
        following = None if self._placed is None else self._placed.behind(start)
        return (end if following is None else min(end, following)) - start

    def begins_at(self, row_group: int, place: int) -> bool:
        """Whether another column chunk, an index or a Bloom filter is known to begin at ``place``."""
        placed = self._placed is not None and self._placed.first_at(place) is not None
        return placed or self._near().has(row_group, place)

    def _near(self) -> Neighbours:
        if self._neighbours is None:
            self._neighbours = Neighbours(self.footer, self.fetcher.source.size)
        return self._neighbours

    def place_chunks(self) -> ChunkPlaces:
        """Find out where all column chunks begin, before an operation on the whole file.

        From then on, :meth:`chunk` ends each chunk where the next one begins, and refuses a chunk that begins where
        another does.
        """
        if self._placed is None:
            start_of = None if self.decryption.info is None else self._start_of
            placed = places_of(self.footer, self.tree.leaves, self.fetcher.source.size, start_of)
            self._chunks.clear()
            self._placed = placed
        return self._placed

    def _start_of(self, row_group: int, node: Node) -> int:
        """Where a column chunk begins; 0 for one without pages, and for one that cannot be opened."""
        try:
            chunk = self.chunk(row_group, node)
        except ParquetError:
            return 0
        return chunk.start if chunk.size else 0

    def check_places(self) -> None:
        """As :meth:`place_chunks`, but raises :class:`CorruptFileError` if two column chunks begin at one place."""
        shared = self.place_chunks().first_shared()
        if shared is not None:
            self.chunk(shared[0], self.tree.leaves[shared[1]])

    def _bounded(self, chunk: Chunk) -> Chunk:
        """The chunk, ended where the next one begins. Raises :class:`CorruptFileError` if an earlier chunk begins at
        the same place."""
        if self._placed is None or chunk.size == 0:
            return chunk
        if self._placed.is_shared(chunk.row_group, chunk.node.column):
            row_group, column = self._placed.first_at(chunk.start) or (0, 0)
            raise CorruptFileError(
                f"its pages begin at offset {chunk.start}, and so do those of column chunk {column} in row group "
                f"{row_group}: column chunks may not share their pages",
                file=self.name, row_group=chunk.row_group, column=chunk.name,
            )  # fmt: skip
        following = self._placed.behind(chunk.start)
        return chunk if following is None or chunk.end <= following else chunk.of_size(following - chunk.start)

    def _ordinal(self, row_group: int) -> int:
        """The row group number that encrypted modules are bound to."""
        if self.decryption.info is None:
            return row_group
        stated = self.raw_row_group(row_group).ordinal
        if stated not in (None, row_group):
            # An unsigned footer could exchange row groups together with their ordinals, so their position counts.
            raise EncryptionError(
                f"the row group declares a different ordinal, {stated}: row groups may have been exchanged"
            )
        return row_group

    @staticmethod
    def _check(meta: Any, node: Node) -> None:
        if meta.type is not None and meta.type != node.element.type:
            raise CorruptFileError(
                f"the column chunk has physical type {meta.type}, but the schema says {node.element.type}"
            )
        if meta.num_values < 0 and node.max_rep:
            raise CorruptFileError(f"the column chunk declares {meta.num_values} values")

    def _check_path(self, stated: Sequence[str]) -> None:
        """Check the path in a chunk's metadata. A path that no column has means nothing: columns were renamed in the
        schema only, and other readers go by position too. The path of another column means that chunks were
        exchanged."""
        if self.tree.has_leaf(stated):
            raise CorruptFileError(f"the column chunk declares that it belongs to column {'.'.join(stated)}")

    @property
    def identity(self) -> FileState:
        """A value that is the same for the same file, wherever the file lies."""
        return FileState(self.fetcher.source.size, self.footer.checksum)

    def fork(self) -> OpenFile:
        """The same file with its own I/O counts, so that the counts of two scans do not mix."""
        other = object.__new__(type(self))  # copy() takes ten times as long
        other.__dict__.update(self.__dict__)
        other.fetcher = self.fetcher.fork()
        return other

    def with_options(self, options: ReadOptions) -> OpenFile:
        """A fork with other options, and the keys that the file was opened with."""
        fetcher = self.fetcher.fork(gap_of(self.fetcher.source, options.coalesce_gap))
        other = OpenFile(fetcher, self.footer, self.decryption, options)
        other.open_counts, other._closed = self.open_counts, self._closed
        if other.tree is self.tree:
            other._chunks, other._rows, other._tables = self._chunks, self._rows, self._tables
            other._latest, other._placed = self._latest, self._placed
        return other

    def close(self) -> None:
        self._closed[0] = True
        self.fetcher.source.close()

    def check_open(self) -> None:
        """Raise :class:`OptionError` after :meth:`close`, even if the source could still be read."""
        if self._closed[0]:
            raise OptionError("the file is closed", file=self.name)


def open_file(
    where: Any, options: ReadOptions, storage_options: Mapping[str, Any] | None = None, *, lazily: bool = False
) -> OpenFile:
    """Open ``where`` (see :func:`pyparq.io.source.open_source`) and read its footer. ``lazily``: see
    :func:`pyparq.read.footers.footer_read.read_footer`.

    Raises :class:`CorruptFileError` if it is not a complete Parquet file, and :class:`EncryptionError` if its footer
    cannot be decrypted.
    """
    source = open_source(where, storage_options)
    if options.use_threads and isinstance(source, LocalFile):
        source.use_threads = True
    if not source.is_local:
        set_requests(source, options.retries, options.retry_wait, options.max_requests)
    fetcher = Fetcher(source, options.coalesce_gap)
    try:
        footer, decryption = read_footer(fetcher, options, lazily=lazily)
        return OpenFile(fetcher, footer, decryption, options)
    except BaseException as error:
        if source is not where:
            source.close()
        if isinstance(error, ParquetError):
            error.locate(file=source.name)
        if not isinstance(error, ParquetError) or fetcher.is_proven:
            raise
    return open_file(where, options, storage_options)  # the error may be about an older version
