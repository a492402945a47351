"""The layout of a file: row groups, Bloom filters, ColumnIndexes, OffsetIndexes, footer.

Everything about a chunk but its bytes stays here until the file is closed: with the footer layout also its Bloom
filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyparq import _version
from pyparq.encryption.aad import MAX_ORDINAL, Module
from pyparq.encryption.writing import FileEncryption
from pyparq.errors import DataError
from pyparq.format import ttypes as tt
from pyparq.format.codec import serialize
from pyparq.io.sink import Sink
from pyparq.options import SortKey
from pyparq.schemas.order import Order
from pyparq.write.chunk import EncodedChunk
from pyparq.write.plan import WritePlan

CREATED_BY = f"pyparq version {_version.__version__} (build {_version.__version__})"
"""``<application> version <version> (build <hash>)``, the form that readers parse; a release is its own build."""


@dataclass(slots=True)
class _Pending:
    """What of a chunk is not in the file yet."""

    chunk: tt.ColumnChunk
    column_index: bytes | None
    offset_index: bytes | None
    bloom: list[Any] | None


class FileLayout:
    """Appends to a sink in the order of the format. Call :meth:`start`, :meth:`add_row_group` …, :meth:`finish`."""

    def __init__(self, sink: Sink, plan: WritePlan, encryption: FileEncryption) -> None:
        self._sink = sink
        self._plan = plan
        self._encryption = encryption
        self._row_groups: list[tt.RowGroup] = []
        self._pending: list[_Pending] = []

    @property
    def num_row_groups(self) -> int:
        return len(self._row_groups)

    def start(self) -> None:
        self._sink.write([self._encryption.magic])

    def add_row_group(self, chunks: Iterable[EncodedChunk], num_rows: int) -> None:
        """Store the chunks, in column order, as they come."""
        ordinal = len(self._row_groups)
        start = self._sink.position
        added: list[_Pending] = []
        group = tt.RowGroup(columns=[], total_byte_size=0, num_rows=num_rows, file_offset=start)
        for column, chunk in enumerate(chunks):
            added.append(self._store_chunk(chunk, ordinal, column))
            group.columns.append(added[-1].chunk)
            group.total_byte_size += chunk.meta.total_uncompressed_size
        group.total_compressed_size = self._sink.position - start
        if ordinal <= MAX_ORDINAL:
            group.ordinal = ordinal
        if self._plan.sort is not None:
            group.sorting_columns = [_sorting_column(node.column, key) for node, key in self._plan.sort.keys]
        self._row_groups.append(group)
        if self._plan.options.bloom_filter_layout == "row_group":
            self._store_filters(added)
        self._pending += added

    def _store_chunk(self, chunk: EncodedChunk, ordinal: int, column: int) -> _Pending:
        base = self._sink.position
        self._sink.write(chunk.parts)
        chunk.parts = []
        stored = tt.ColumnChunk(file_offset=0, meta_data=chunk.placed(base))
        offset_index = None
        if chunk.offset_index is not None:
            # As bytes from here on: small, and nothing for the garbage collector to walk.
            plain = serialize(chunk.offset_index.finish(base))
            offset_index = b"".join(self._encryption.chunk(ordinal, column).seal(Module.OFFSET_INDEX, [plain]))
        return _Pending(stored, chunk.column_index, offset_index, chunk.bloom)

    def finish(self, key_values: Mapping[str, str | bytes | None]) -> tt.FileMetaData:
        """Store filters (footer layout), indexes and the footer; returns what the footer says."""
        self._store_filters(self._pending)
        for item in self._pending:
            if item.column_index is not None:
                item.chunk.column_index_offset, item.chunk.column_index_length = self._store(item.column_index)
        for item in self._pending:
            if item.offset_index is not None:
                item.chunk.offset_index_offset, item.chunk.offset_index_length = self._store(item.offset_index)
        footer = tt.FileMetaData(
            version=1,  # parquet.thrift: 1 is what every reader takes
            schema=self._plan.elements,
            num_rows=sum(g.num_rows for g in self._row_groups),
            row_groups=self._row_groups,
            key_value_metadata=[tt.KeyValue(key=k, value=v) for k, v in key_values.items()] or None,
            created_by=CREATED_BY,
            column_orders=[_column_order(column.order) for column in self._plan.columns],
        )
        for ordinal, group in enumerate(self._row_groups):
            group.columns = [self._encryption.store_metadata(c, ordinal, k) for k, c in enumerate(group.columns)]
        parts = self._encryption.seal_footer(footer)
        size = sum(memoryview(part).nbytes for part in parts)
        if size >= 1 << 32:
            raise DataError(f"the footer has {size} bytes, but its length must fit in 32 bits")
        self._sink.write([*parts, size.to_bytes(4, "little"), self._encryption.magic])
        return footer

    def _store_filters(self, items: list[_Pending]) -> None:
        for item in items:
            if item.bloom is None:
                continue
            meta = item.chunk.meta_data
            assert meta is not None  # set in _store_chunk
            meta.bloom_filter_offset = self._sink.position
            self._sink.write(item.bloom)
            meta.bloom_filter_length = self._sink.position - meta.bloom_filter_offset
            item.bloom = None

    def _store(self, data: bytes) -> tuple[int, int]:
        """Append; returns (offset, length)."""
        start = self._sink.position
        self._sink.write([data])
        return start, len(data)


def _column_order(order: Order) -> tt.ColumnOrder:
    if order == Order.TOTAL:
        return tt.ColumnOrder(IEEE_754_TOTAL_ORDER=tt.IEEE754TotalOrder())
    if order == Order.INT96:
        return tt.ColumnOrder(INT96_TIMESTAMP_ORDER=tt.Int96TimestampOrder())
    return tt.ColumnOrder(TYPE_ORDER=tt.TypeDefinedOrder())


def _sorting_column(column: int, key: SortKey) -> tt.SortingColumn:
    return tt.SortingColumn(column_idx=column, descending=key.descending, nulls_first=key.nulls_first)
