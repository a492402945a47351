"""The footer as a user sees it: metadata of the file, its row groups and column chunks. Names are pyarrow's where the
meaning is the same. The statistics of a chunk are Python values (parquet.thrift, Statistics)."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.column_names import ColumnName
from pyparq.encryption.reading import ColumnEncryptionInfo, FileEncryptionInfo, column_encryption
from pyparq.errors import OptionError, OtherNames, by_each
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.leaf_values import from_plain_bytes
from pyparq.format.order import Order
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType, Physical, arrow_type
from pyparq.index.statistics import Bounds, bounds_of_chunks, gregorian
from pyparq.option_checks import methods_told
from pyparq.read.decode.arrow_columns import fixed_buffer
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import to_bytes
from pyparq.runtime.tables import Cell, html_view, viewable
from pyparq.runtime.text import printable

_EXACT = Context(prec=100)
_NUMBERS = {Physical.INT32: "<i4", Physical.INT64: "<i8", Physical.FLOAT: "<f4", Physical.DOUBLE: "<f8"}


class ChunkStatistics:
    """Statistics of one column chunk, as far as they can be trusted. What is not known is ``None``.

    ``min`` and ``max`` are Python values of the column's type: the ``min`` of dates is a ``datetime.date``. Text may be
    cut off, so that neither bound need occur (``is_min_exact``).
    """

    def __init__(self, leaf: LeafType, meta: Any, order: Order, created_by: str | None) -> None:
        """``meta``: the footer's ColumnMetaData, with ``statistics``."""
        self._leaf, self._raw = leaf, meta.statistics
        self.num_values = int(meta.num_values) - int(self._raw.null_count or 0)
        """Values that are not null."""
        self.has_min_max = bool(bounds_of_chunks(leaf, [meta], order, created_by).has_bounds[0])

    def _bound(self, which: str, convert: Any) -> Any:
        """The smallest or largest value, as a Python object by ``convert``."""
        if not self.has_min_max:
            return None
        stored = getattr(self._raw, f"{which}_value")
        return convert(getattr(self._raw, which) if stored is None else stored, self._leaf)

    has_null_count = property(lambda self: self._raw.null_count is not None)
    null_count = property(lambda self: self._raw.null_count)
    has_distinct_count = property(lambda self: self._raw.distinct_count is not None)
    distinct_count = property(lambda self: self._raw.distinct_count)
    min = property(lambda self: self._bound("min", _python_value))
    max = property(lambda self: self._bound("max", _python_value))
    min_raw = property(lambda self: self._bound("min", _physical_value))
    max_raw = property(lambda self: self._bound("max", _physical_value))
    is_min_exact = property(lambda self: self._raw.is_min_value_exact)
    is_max_exact = property(lambda self: self._raw.is_max_value_exact)
    physical_type = property(lambda self: self._leaf.physical.name)

    @printable
    def __repr__(self) -> str:
        return f"<ChunkStatistics: {self.min!r} to {self.max!r}, {self.null_count} nulls, {self.num_values} values>"


def _python_value(raw: bytes, leaf: LeafType) -> Any:
    """The Python object of one value in the PLAIN encoding, without a length before it."""
    if leaf.kind == "decimal" and leaf.physical in (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY):
        return _EXACT.scaleb(Decimal(int.from_bytes(raw, "big", signed=True)), -leaf.scale)
    if leaf.is_binary:
        return raw.decode("utf-8", "replace") if leaf.is_text else raw
    if leaf.physical == Physical.BOOLEAN:
        return bool(raw[0])
    if leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY and leaf.kind != "float":
        return raw
    values = from_plain_bytes(np.frombuffer(raw, np.uint8), 1, leaf)
    buffer, _ = fixed_buffer(values, leaf)
    return Column(arrow_type(leaf), 1, None, (np.asarray(buffer),), 0).to_pylist()[0]


def _physical_value(raw: bytes, leaf: LeafType) -> Any:
    """The value without its logical type: an int for INT32 and INT64, bytes for byte arrays."""
    if leaf.physical == Physical.BOOLEAN:
        return bool(raw[0])
    return np.frombuffer(raw, _NUMBERS[leaf.physical])[0].item() if leaf.physical in _NUMBERS else raw


_AS_PYARROW = by_each({"to_dict append_row_groups set_file_path": "pyparq.parquet.read_metadata(path), which has it"})


@methods_told
class FileMetaData(OtherNames):
    """Metadata of a whole file.

    Example::

        footer = pyparq.read_metadata("flights.parquet")
        for k in range(footer.num_row_groups):
            print(footer.row_group(k).num_rows)
    """

    _elsewhere = _AS_PYARROW | by_each({
        "schema": "schema or tree of the open file", "columns statistics row_groups": "row_group(k).column(n)",
        "size footer_size": "=serialized_size", "key_value_metadata": "=metadata", "version": "=format_version",
    })  # fmt: skip

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    @property
    def raw(self) -> Any:
        """The footer's own FileMetaData, with all row groups."""
        return self._file.footer.full()

    @property
    def serialized_size(self) -> int:
        """Bytes of the footer as it is stored."""
        return len(self._file.footer.stored)

    @property
    def num_rows(self) -> int:
        return sum(self._file.num_rows_of(k) for k in range(self.num_row_groups))

    @property
    def num_row_groups(self) -> int:
        return self._file.num_row_groups

    @property
    def num_columns(self) -> int:
        """Number of leaf columns in the schema."""
        return len(self._file.tree.leaves)

    @property
    def created_by(self) -> str | None:
        return self._file.created_by

    @property
    def format_version(self) -> int:
        return int(self._file.footer.meta.version)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Key-value metadata."""
        return self._file.key_values

    @property
    def encryption(self) -> FileEncryptionInfo | None:
        """How the file is encrypted; ``None`` when it is not."""
        return self._file.decryption.info

    def row_group(self, k: int) -> RowGroupMetaData:
        if k not in range(self.num_row_groups):
            raise OptionError(f"row group {k!r} does not exist: the file has {self.num_row_groups}, counted from 0")
        return RowGroupMetaData(self._file, k)

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("file", f"{self.num_rows:,} rows, {self.num_row_groups:,} row groups, {self.num_columns:,} columns"),
            ("created by", self.created_by or "(not stated)"),
            ("format version", str(self.format_version)),
        ]
        groups = [self.row_group(k) for k in range(self.num_row_groups)]
        rows: list[list[Cell]] = [
            [g.index, g.num_rows, g.total_byte_size, ", ".join(name for name, _, _ in g.sorting_columns)]
            for g in groups
        ]
        return html_view("FileMetaData", facts, ["row group", "rows", "bytes, uncompressed", "sorted by"], rows)

    @printable
    def __repr__(self) -> str:
        return (
            f"<FileMetaData {self.num_rows} rows, {self.num_row_groups} row groups, {self.num_columns} columns, "
            f"created by {self.created_by!r}>"
        )


@methods_told
class RowGroupMetaData(OtherNames):
    """Metadata of one row group."""

    _elsewhere = _AS_PYARROW

    def __init__(self, file: OpenFile, index: int) -> None:
        self._file = file
        self.index = index

    @printable
    def __repr__(self) -> str:
        return f"<RowGroupMetaData {self.index}: {self.num_rows} rows, {self.num_columns} columns>"

    @property
    def num_rows(self) -> int:
        return self._file.num_rows_of(self.index)

    @property
    def num_columns(self) -> int:
        return len(self._file.tree.leaves)

    @property
    def total_byte_size(self) -> int:
        """Uncompressed bytes of all columns."""
        return int(self._file.raw_row_group(self.index).total_byte_size)

    @property
    def sorting_columns(self) -> list[tuple[str, bool, bool]]:
        """(column, descending, nulls first), as the file declares them."""
        leaves = self._file.tree.leaves
        claimed = self._file.raw_row_group(self.index).sorting_columns or []
        return [
            (
                leaves[c.column_idx].dotted if 0 <= c.column_idx < len(leaves) else str(c.column_idx),
                c.descending,
                c.nulls_first,
            )
            for c in claimed
        ]

    def column(self, which: int | ColumnName) -> ColumnChunkMetaData:
        """A column chunk by leaf ordinal, name or path."""
        return ColumnChunkMetaData(self._file, self._file.chunk(self.index, find_leaf(self._file, which)))

    def column_encryption(self, which: int | ColumnName) -> ColumnEncryptionInfo | None:
        """How a column is encrypted, whether its key is known or not; ``None`` when it is in the clear."""
        return column_encryption(self._file.raw_chunk(self.index, find_leaf(self._file, which)))

    @property
    def columns(self) -> list[ColumnChunkMetaData]:
        return [self.column(k) for k in range(self.num_columns)]


class ColumnChunkMetaData(OtherNames):
    """Metadata of one column chunk. ``raw`` is the footer's ColumnChunk."""

    _elsewhere = _AS_PYARROW

    def __init__(self, file: OpenFile, chunk: Chunk) -> None:
        self._file = file
        self._chunk = chunk

    @property
    def raw(self) -> Any:
        return self._chunk.raw

    @property
    def path_in_schema(self) -> str:
        return self._chunk.name

    @property
    def physical_type(self) -> str:
        return self._chunk.node.type.physical.name

    @property
    def num_values(self) -> int:
        return int(self._chunk.meta.num_values)

    @property
    def compression(self) -> str:
        return codec_name(self._chunk.meta.codec)

    @property
    def encodings(self) -> tuple[str, ...]:
        return tuple(encoding_name(e) for e in self._chunk.meta.encodings or ())

    @property
    def file_offset(self) -> int:
        """Where the chunk's first page starts."""
        return self._chunk.start

    @property
    def total_compressed_size(self) -> int:
        return int(self._chunk.meta.total_compressed_size)

    @property
    def total_uncompressed_size(self) -> int:
        return int(self._chunk.meta.total_uncompressed_size)

    @property
    def has_dictionary_page(self) -> bool:
        return bool(self._chunk.meta.dictionary_page_offset)

    @property
    def dictionary_page_offset(self) -> int | None:
        return self._chunk.meta.dictionary_page_offset or None

    @property
    def data_page_offset(self) -> int:
        return int(self._chunk.meta.data_page_offset)

    @property
    def has_column_index(self) -> bool:
        return bool(self._chunk.raw.column_index_offset)

    @property
    def has_offset_index(self) -> bool:
        return bool(self._chunk.raw.offset_index_offset)

    @property
    def bloom_filter_offset(self) -> int | None:
        return self._chunk.meta.bloom_filter_offset or None

    @property
    def bloom_filter_length(self) -> int | None:
        return self._chunk.meta.bloom_filter_length or None

    @property
    def bounds(self) -> Bounds:
        """The statistics of the column chunk, as far as they can be trusted. One entry."""
        file, node = self._file, self._chunk.node
        return gregorian(bounds_of_chunks(node.type, [self._chunk.meta], file.column_order(node), file.created_by))

    @property
    def statistics(self) -> ChunkStatistics | None:
        """The same as Python values of the column's type. ``None`` for a chunk without statistics."""
        file, node, meta = self._file, self._chunk.node, self._chunk.meta
        if meta.statistics is None:
            return None
        return ChunkStatistics(node.type, meta, file.column_order(node), file.created_by)

    @property
    def key_value_metadata(self) -> dict[bytes, bytes]:
        return {to_bytes(kv.key): to_bytes(kv.value) for kv in self._chunk.meta.key_value_metadata or []}

    @printable
    def __repr__(self) -> str:
        return (
            f"<ColumnChunkMetaData {self.path_in_schema}: {self.physical_type}, {self.compression}, "
            f"{self.total_compressed_size} bytes>"
        )


def find_leaf(file: OpenFile, which: int | ColumnName) -> Node:
    """A leaf by ordinal, dotted path or tuple of names."""
    if isinstance(which, int):
        if not 0 <= which < len(file.tree.leaves):
            raise OptionError(
                f"column {which} does not exist: the file has {len(file.tree.leaves)} leaf columns, numbered from 0",
                file=file.name,
            )
        return file.tree.leaves[which]
    node = file.tree.find(which)
    if not node.is_leaf:
        inner = ", ".join(repr(leaf.dotted) for leaf in node.leaves())
        raise OptionError(f"{node.dotted!r} is a group; name one of its leaf columns: {inner}", file=file.name)
    return node
