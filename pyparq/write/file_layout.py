"""The layout of a file: row groups, Bloom filters, ColumnIndexes, OffsetIndexes, footer.

Everything about a chunk except its bytes is kept here until the file is closed. With the layout ``footer``, its Bloom
filter is kept too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyparq import _version
from pyparq.encryption.cipher import MAX_ORDINAL
from pyparq.encryption.writing import FileEncryption
from pyparq.errors import DataError
from pyparq.format import ttypes as tt
from pyparq.format.order import Order
from pyparq.format.thrift_codec import serialize_row_group
from pyparq.io.sink import Sink
from pyparq.option_values import SortKey
from pyparq.write.column_chunks import StoredChunks
from pyparq.write.column_plans import WritePlan

CREATED_BY = f"pyparq version {_version.__version__} (build {_version.__version__})"
"""``<application> version <version> (build <hash>)``, the form that readers parse; a release is its own build."""


@dataclass(slots=True)
class _StoredGroup:
    """A row group that was stored, and its parts that were not stored yet."""

    footer: tt.RowGroup
    """Without its column chunks."""
    chunks: list[StoredChunks]


class FileLayout:
    """Appends to a sink in the order of the format. Call :meth:`start`, :meth:`add_row_group` …, :meth:`finish`."""

    def __init__(self, sink: Sink, plan: WritePlan, encryption: FileEncryption) -> None:
        self._sink = sink
        self._plan = plan
        self._encryption = encryption
        self._groups: list[_StoredGroup] = []

    @property
    def num_row_groups(self) -> int:
        return len(self._groups)

    def start(self) -> None:
        self._sink.write([self._encryption.magic])

    def add_row_group(self, chunks: Iterable[StoredChunks], num_rows: int) -> None:
        """Store the chunks in column order, as they are made."""
        ordinal = len(self._groups)
        start = self._sink.position
        group = tt.RowGroup(columns=[], total_byte_size=0, num_rows=num_rows, file_offset=start)
        stored = _StoredGroup(group, [])
        for some in chunks:
            first = self._sink.position
            for parts in some.parts():
                self._sink.write(parts)
            some.native.place(first)  # offsets of pages were counted from the first chunk until now
            group.total_byte_size += some.native.uncompressed
            if self._plan.options.write_page_index and self._encryption.encrypts:
                some.seal_offset_indexes(self._encryption)
            stored.chunks.append(some)
        group.total_compressed_size = self._sink.position - start
        if ordinal <= MAX_ORDINAL:  # an i16 in parquet.thrift: later row groups have none
            group.ordinal = ordinal
        if self._plan.sort is not None:
            group.sorting_columns = [_sorting_column(node.column, key) for node, key in self._plan.sort.keys]
        self._groups.append(stored)
        if self._plan.options.bloom_filter_layout == "row_group":
            self._store_filters(stored)

    def finish(self, key_values: Mapping[str, str | bytes | None]) -> bytes:
        """Store filters (footer layout), indexes and the footer; returns the serialized FileMetaData."""
        for group in self._groups:
            self._store_filters(group)
        if self._plan.options.write_page_index:
            # PageIndex.md: all ColumnIndexes stand together, and then all OffsetIndexes. One request gets either kind.
            every = [some.native for group in self._groups for some in group.chunks]
            for some in every:
                self._sink.write([some.column_indexes(self._sink.position)])
            for some in every:
                self._sink.write([some.offset_indexes(self._sink.position)])
        footer = tt.FileMetaData(
            version=1,  # parquet.thrift: version 1 is what every reader takes
            schema=self._plan.elements,
            num_rows=sum(group.footer.num_rows for group in self._groups),
            row_groups=[],
            key_value_metadata=[tt.KeyValue(key=k, value=v) for k, v in key_values.items()] or None,
            created_by=CREATED_BY,
            column_orders=_column_orders([column.order for column in self._plan.columns]),
        )
        row_groups = [self._serialized(group) for group in self._groups]
        parts, in_the_clear = self._encryption.seal_footer(footer, row_groups)
        size = sum(memoryview(part).nbytes for part in parts)
        if size >= 1 << 32:
            raise DataError(f"the footer has {size} bytes, but its length must fit in 32 bits")
        self._sink.write([*parts, size.to_bytes(4, "little"), self._encryption.magic])
        return in_the_clear

    def _serialized(self, group: _StoredGroup) -> bytes:
        columns = [some.footer_entries(self._encryption) for some in group.chunks]
        return serialize_row_group(group.footer, columns, len(self._plan.columns))

    def _store_filters(self, group: _StoredGroup) -> None:
        for some in group.chunks:
            for k, modules in some.filters:
                start = self._sink.position
                self._sink.write(modules)
                some.native.set_bloom(k, start, self._sink.position - start)
            some.filters = []


def _column_orders(orders: list[Order]) -> list[tt.ColumnOrder]:
    made = {order: _column_order(order) for order in set(orders)}
    return [made[order] for order in orders]


def _column_order(order: Order) -> tt.ColumnOrder:
    if order == Order.TOTAL:
        return tt.ColumnOrder(IEEE_754_TOTAL_ORDER=tt.IEEE754TotalOrder())
    if order == Order.INT96:
        return tt.ColumnOrder(INT96_TIMESTAMP_ORDER=tt.Int96TimestampOrder())
    return tt.ColumnOrder(TYPE_ORDER=tt.TypeDefinedOrder())


def _sorting_column(column: int, key: SortKey) -> tt.SortingColumn:
    return tt.SortingColumn(column_idx=column, descending=key.descending, nulls_first=key.nulls_first)
