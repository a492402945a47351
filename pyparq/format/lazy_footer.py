"""The footer, decoded piece by piece.

A footer of 20 row groups x 5,000 columns has 11.5 MB and takes most of a second to decode into objects. A query of one
column needs 20 of its 100,000 column chunks. The native index notes where every row group and column chunk starts. The
generated code decodes each piece when it is asked for, and the piece is kept.

Each piece is cut out so that it is a valid struct by itself: FileMetaData with empty lists of schema elements and row
groups, and RowGroup with an empty list of columns. (The compact protocol numbers fields by differences, so an empty
list must take the place of a full one.)
"""

from __future__ import annotations

import zlib
from copy import copy

import numpy as np

from pyparq.format.chunk_numbers import BoundPlaces, Int64Array
from pyparq.format.generated.ttypes import ColumnChunk, FileMetaData, RowGroup, SchemaElement
from pyparq.format.thrift_codec import Bytes, ThriftDecodeError, ThriftTruncatedError, column_chunk_numbers, deserialize
from pyparq.kernels import KernelError, ThriftTruncated, thrift_index_footer

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"

TRAILER = 8
"""Bytes behind the footer: its length, and the magic bytes."""

_EMPTY_LIST = b"\x0c"  # no elements, of type struct
_SCHEMA_ALONE = b"\x15\x00\x19", b"\x16\x00\x19\x0c\x00"
"""What stands around the list of schema elements in a FileMetaData of version 0 without rows and row groups."""


class LazyFileMetaData:
    """A serialized FileMetaData whose row groups and column chunks are decoded on demand.

    `data` starts with the struct. More bytes may follow (a footer signature, padding); `end` is the end of the struct.
    The data is kept, so it must not change. Every method raises `ThriftDecodeError` when the bytes it decodes are
    damaged, and `IndexError` for a row group or column that does not exist. Several threads may use it.
    """

    __slots__ = (
        "_chunk_starts", "_chunks", "_data", "_first_chunk", "_groups", "_row_groups", "end", "meta",
        "num_row_groups", "rows", "schema_bytes",
    )  # fmt: skip

    meta: FileMetaData
    """Everything except the row groups and the schema, whose lists are empty. It must not be changed."""
    schema_bytes: bytes
    """The list of schema elements as it is stored."""
    end: int
    """Position behind the struct in the bytes."""

    def __init__(self, data: Bytes, like: LazyFileMetaData | None = None) -> None:
        """``like``: the footer of another file that is known to be equal except for its rows and row groups. Its
        decoded parts are shared."""
        view = memoryview(data).cast("B")
        try:
            end, schema, row_groups, groups, first_chunk, chunk_starts = thrift_index_footer(view)
        except ThriftTruncated as error:
            raise ThriftTruncatedError(f"FileMetaData: {error}") from None
        except KernelError as error:
            raise ThriftDecodeError(f"FileMetaData: {error}") from None
        self._data = view
        self.end = end
        self._groups = groups.reshape(-1, 5)
        self.rows: Int64Array = self._groups[:, 4]
        """The number of rows that each row group states. It must not be changed."""
        self.num_row_groups = len(first_chunk) - 1
        self._first_chunk = first_chunk
        self._chunk_starts = chunk_starts
        self._row_groups: dict[int, RowGroup] = {}
        self._chunks: dict[tuple[int, int], ColumnChunk] = {}
        if like is not None:
            self.schema_bytes, self.meta = like.schema_bytes, copy(like.meta)
            self.meta.num_rows = int(self.rows.sum())
            return
        self.schema_bytes = bytes(view[schema[0] : schema[1]])
        (first, behind), (second, rest) = sorted((schema, row_groups))
        pieces = view[:first], _EMPTY_LIST, view[behind:second], _EMPTY_LIST, view[rest:end]
        self.meta, _ = deserialize(FileMetaData, b"".join(pieces))

    def schema(self) -> list[SchemaElement]:
        """The schema elements, decoded anew at every call."""
        before, after = _SCHEMA_ALONE
        found: list[SchemaElement] = deserialize(FileMetaData, before + self.schema_bytes + after)[0].schema
        return found

    def num_columns(self, row_group: int) -> int:
        """Number of column chunks that the row group lists."""
        self._require(row_group)
        return int(self._first_chunk[row_group + 1] - self._first_chunk[row_group]) - 1

    def num_rows(self, row_group: int) -> int:
        """The number of rows that the row group states. Nothing else of it is decoded."""
        self._require(row_group)
        return int(self._groups[row_group, 4])

    def chunk_numbers(self, row_groups: Int64Array, columns: Int64Array, paths: list[bytes], leaves: int) -> Int64Array:
        """The numbers of the chunks of these columns in these row groups. Nothing is kept.

        Returns an array of the shape (row groups, columns) for each field of
        :class:`pyparq.format.chunk_numbers.ChunkNumbers`. ``paths``: the encoded paths of the columns. ``leaves``: the
        number of columns of the schema. A chunk is marked as odd if it has another path, if it is damaged, or if its
        row group has another number of columns.
        """
        if len(row_groups) == self.num_row_groups == 1 and len(self._chunk_starts) == leaves + 1:
            found = column_chunk_numbers(self._data, self._chunk_starts[columns], paths)
            return found.reshape(len(found), 1, len(columns))
        first = self._first_chunk[row_groups]
        there = self._first_chunk[row_groups + 1] - first == leaves + 1
        if bool(there.all()):
            starts = self._chunk_starts[first[:, None] + columns]
        else:
            starts = np.full((len(row_groups), len(columns)), -1, np.int64)
            starts[there] = self._chunk_starts[first[there][:, None] + columns]
        found = column_chunk_numbers(self._data, starts.reshape(-1), paths)
        return found.reshape(len(found), *starts.shape)

    @property
    def places(self) -> BoundPlaces:
        """The bytes that the places of bounds in :meth:`chunk_numbers` refer to."""
        return BoundPlaces([self._data])

    def row_group(self, row_group: int) -> RowGroup:
        """The row group with an empty `columns`; see `column_chunk`. Not to be changed."""
        known = self._row_groups.get(row_group)
        if known is None:
            self._require(row_group)
            start, end, columns, columns_end = self._groups[row_group, :4].tolist()
            data = b"".join((self._data[start:columns], _EMPTY_LIST, self._data[columns_end:end]))
            known = self._row_groups.setdefault(row_group, deserialize(RowGroup, data)[0])
        return known

    def column_chunk(self, row_group: int, column: int) -> ColumnChunk:
        """Column chunk number `column` (leaf order) of a row group. Not to be changed."""
        known = self._chunks.get((row_group, column))
        if known is None:
            if not 0 <= column < self.num_columns(row_group):
                raise IndexError(f"row group {row_group} has no column {column}")
            at = int(self._first_chunk[row_group]) + column
            start, end = int(self._chunk_starts[at]), int(self._chunk_starts[at + 1])
            chunk, _ = deserialize(ColumnChunk, bytes(self._data[start:end]))
            known = self._chunks.setdefault((row_group, column), chunk)
        return known

    @property
    def stored(self) -> memoryview:
        """The serialized struct."""
        return self._data[: self.end]

    @property
    def checksum(self) -> int:
        """CRC-32 of the serialized struct."""
        return zlib.crc32(self._data[: self.end])

    def full(self) -> FileMetaData:
        """A complete FileMetaData, decoded anew at every call. The caller may change it."""
        return deserialize(FileMetaData, bytes(self._data[: self.end]))[0]

    def _require(self, row_group: int) -> None:
        if not 0 <= row_group < self.num_row_groups:
            raise IndexError(f"the file has no row group {row_group}")

    def __reduce__(self) -> tuple[type[LazyFileMetaData], tuple[bytes]]:
        return LazyFileMetaData, (bytes(self._data[: self.end]),)
