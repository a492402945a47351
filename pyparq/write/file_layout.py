"""The layout of a file: row groups, Bloom filters, ColumnIndexes, OffsetIndexes, footer.

Everything about a chunk except its bytes is kept here until the file is closed. With the layout ``footer``, its Bloom
filter is kept too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyparq import _version
from pyparq.encryption.cipher import MAX_ORDINAL
from pyparq.encryption.writing import FileEncryption
from pyparq.errors import DataError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize, serialize_row_group
from pyparq.io.sink import Sink
from pyparq.runtime.tables import Cell, html_view, summed, viewable
from pyparq.runtime.text import printable
from pyparq.write.column_chunks import StoredChunks
from pyparq.write.column_plans import WritePlan

CREATED_BY = f"pyparq version {_version.__version__} (build {_version.__version__})"
"""``<application> version <version> (build <hash>)``, the form that readers parse; a release is its own build."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One new file."""

    path: str
    """As it can be opened: a path or a URL."""
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class WriteReport:
    """What :func:`pyparq.write_table`, :func:`pyparq.write_dataset` or :func:`pyparq.rewrite` has written.

    Example::

        report = pyparq.write_dataset({"id": [1, 2, 3]}, "ids")
        for file in report.files:
            print(file.path, file.num_rows)
    """

    path: str
    """The folder, or the file."""
    files: tuple[WrittenFile, ...]
    """The new files, in the order of their paths."""
    replaced: tuple[str, ...] = ()
    """Paths of the files that were removed."""

    num_rows = summed("num_rows", "Rows in all new files.")
    num_bytes = summed("num_bytes", "Bytes of all new files.")

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("rows", f"{self.num_rows:,}"),
            ("bytes", f"{self.num_bytes:,}"),
            ("replaced", f"{len(self.replaced):,}"),
        ]
        rows: list[list[Cell]] = [[file.path, file.num_rows, file.num_bytes] for file in self.files]
        return html_view(f"WriteReport {self.path}", facts, ["file", "rows", "bytes"], rows)

    @printable
    def __repr__(self) -> str:
        done = f"{len(self.files):,} files, {self.num_rows:,} rows, {self.num_bytes:,} bytes"
        return f"<WriteReport {self.path}: {done}, {len(self.replaced):,} files replaced>"


class StoredGroup(Protocol):
    """A row group whose column chunks are stored. The rest follows, part by part, in the order of these methods."""

    num_rows: int

    def store_filters(self, sink: Sink) -> None:
        """Its Bloom filters, unless they are stored already."""

    def store_column_indexes(self, sink: Sink) -> None: ...

    def store_offset_indexes(self, sink: Sink) -> None: ...

    def serialized(self) -> bytes:
        """The RowGroup for the footer."""


@dataclass(slots=True, eq=False)
class _EncodedGroup:
    """A row group of this writer's own."""

    num_rows: int
    _footer: tt.RowGroup
    """Without its column chunks."""
    _chunks: list[StoredChunks]
    _plan: WritePlan
    _encryption: FileEncryption

    def store_filters(self, sink: Sink) -> None:
        for some in self._chunks:
            for k, modules in some.filters:
                start = sink.position
                sink.write(modules)
                some.native.set_bloom(k, start, sink.position - start)
            some.filters = []

    def store_column_indexes(self, sink: Sink) -> None:
        for some in self._chunks if self._plan.options.write_page_index else ():
            sink.write([some.native.column_indexes(sink.position)])

    def store_offset_indexes(self, sink: Sink) -> None:
        for some in self._chunks if self._plan.options.write_page_index else ():
            sink.write([some.native.offset_indexes(sink.position)])

    def serialized(self) -> bytes:
        columns = [some.footer_entries(self._encryption) for some in self._chunks]
        return serialize_row_group(self._footer, columns, len(self._plan.columns))


class _EmptyGroup(_EncodedGroup):
    """A row group without rows: its column chunks have no page."""

    __slots__ = ()

    def serialized(self) -> bytes:
        nothing: Any = dict.fromkeys(("num_values", "total_uncompressed_size", "total_compressed_size"), 0)
        start = self._footer.file_offset or 0
        self._footer.columns = [
            tt.ColumnChunk(file_offset=0, meta_data=tt.ColumnMetaData(
                type=column.leaf.physical, encodings=[], path_in_schema=[*column.node.path], codec=column.codec,
                data_page_offset=start, **nothing,
            )) for column in self._plan.columns
        ]  # fmt: skip
        return serialize(self._footer)


class FileLayout:
    """Appends to a sink in the order of the format. Call :meth:`start`, :meth:`add_row_group` …, :meth:`finish`."""

    def __init__(self, sink: Sink, plan: WritePlan, encryption: FileEncryption, version: int) -> None:
        self.sink, self._version = sink, version
        self._plan = plan
        self._encryption = encryption
        self._groups: list[StoredGroup] = []
        self.num_rows = 0

    @property
    def num_row_groups(self) -> int:
        return len(self._groups)

    def start(self) -> None:
        self.sink.write([self._encryption.magic])

    def add_row_group(self, chunks: Iterable[StoredChunks], num_rows: int, plan: WritePlan) -> None:
        """Store the chunks in column order, as they are made. ``plan``: of this row group; those of one file differ in
        nothing but options."""
        start, ordinal = self.sink.position, len(self._groups)
        group = tt.RowGroup(columns=[], total_byte_size=0, num_rows=num_rows, file_offset=start)
        kept = list[StoredChunks]()
        for some in chunks:
            first = self.sink.position
            for parts in [some.native.take()] if some.task is None else some.parts():
                self.sink.write(parts)
            some.native.place(first)  # offsets of pages were counted from the first chunk until now
            group.total_byte_size += some.native.uncompressed
            if plan.options.write_page_index and self._encryption.encrypts:
                some.seal_offset_indexes(self._encryption)
            kept.append(some)
        group.total_compressed_size = self.sink.position - start
        if ordinal <= MAX_ORDINAL:  # an i16 in parquet.thrift: later row groups have none
            group.ordinal = ordinal
        if plan.sort is not None:
            group.sorting_columns = [
                tt.SortingColumn(column_idx=node.column, descending=key.descending, nulls_first=key.nulls_first)
                for node, key in plan.sort.keys
            ]
        self.add_stored(_EncodedGroup(num_rows, group, kept, plan, self._encryption), plan.options.bloom_filter_layout)

    def add_empty_group(self) -> None:
        group = tt.RowGroup(columns=[], total_byte_size=0, num_rows=0, file_offset=self.sink.position)
        self._groups.append(_EmptyGroup(0, group, [], self._plan, self._encryption))

    def add_stored(self, group: StoredGroup, bloom_filter_layout: str) -> None:
        """Add a row group whose column chunks are in the sink."""
        self._groups.append(group)
        self.num_rows += group.num_rows
        if bloom_filter_layout == "row_group":
            group.store_filters(self.sink)

    def finish(self, key_values: Mapping[str, str | bytes | None]) -> bytes:
        """Store filters (footer layout), indexes and the footer; returns the serialized FileMetaData."""
        for group in self._groups:
            group.store_filters(self.sink)
        # PageIndex.md: all ColumnIndexes stand together, and then all OffsetIndexes. One request gets either kind.
        for group in self._groups:
            group.store_column_indexes(self.sink)
        for group in self._groups:
            group.store_offset_indexes(self.sink)
        row_groups = [group.serialized() for group in self._groups]
        parts, in_the_clear = self._encryption.seal_footer(self._footer(key_values), row_groups)
        size = sum([memoryview(part).nbytes for part in parts])
        if size >= 1 << 32:
            raise DataError(f"the footer has {size} bytes, but its length must fit in 32 bits")
        self.sink.write([*parts, size.to_bytes(4, "little"), self._encryption.magic])
        return in_the_clear

    def _footer(self, key_values: Mapping[str, str | bytes | None]) -> tt.FileMetaData:
        """The footer without its row groups."""
        return tt.FileMetaData(
            version=self._version,
            schema=self._plan.elements,
            num_rows=self.num_rows,
            row_groups=[],
            key_value_metadata=[tt.KeyValue(key=k, value=v) for k, v in key_values.items()] or None,
            created_by=CREATED_BY,
            column_orders=self._plan.orders,
        )
