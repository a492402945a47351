"""The metadata of a file, with the names of ``pyarrow.parquet``: FileMetaData, its parts, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar, NamedTuple

from pyparq.format import ttypes as tt
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.lazy_footer import MAGIC
from pyparq.format.order import Order, order_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.io.sink import open_sink
from pyparq.options import ReadOptions
from pyparq.parquet.arguments import located
from pyparq.parquet.schema import ColumnSchema, Made, ParquetSchema
from pyparq.read.footers.metadata import ChunkStatistics
from pyparq.read.footers.schemas import FileFields, to_bytes
from pyparq.runtime.text import printable


class _Part(Made):
    """A part of the metadata that is equal to another one of equal contents."""

    _shown: ClassVar[tuple[str, ...]]
    """The attributes that :meth:`to_dict` has."""

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._shown}

    def equals(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            raise TypeError(
                f"Argument 'other' has incorrect type: expected {type(self).__name__}, got {type(other).__name__}"
            )
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    @printable
    def __repr__(self) -> str:
        lines = "".join(f"\n  {name}: {value}" for name, value in self.to_dict().items())
        return f"<pyparq.parquet.{type(self).__name__}>{lines}"


# ---- statistics


class Statistics(_Part, ChunkStatistics):
    """Statistics of one column chunk, as far as they can be trusted. What is not known is ``None``."""

    _shown = ("has_min_max", "min", "max", "null_count", "distinct_count", "num_values", "physical_type")

    def __init__(self, node: Node, meta: Any, order: Order, created_by: str | None) -> None:
        super().__init__(node.type, meta, order, created_by)
        self._schema = ColumnSchema(node)

    logical_type = property(lambda self: self._schema.logical_type)
    converted_type = property(lambda self: self._schema.converted_type)

    def equals(self, other: object) -> bool:
        return self == other

    __hash__ = None  # type: ignore[assignment]


class GeoStatistics:
    """Statistics of a column chunk of geometries. What is not known is ``None``.

    ``xmin`` above ``xmax`` is a box across the antimeridian. ``geospatial_types`` are ISO WKB codes: 1 is a point, 1001
    a point with z, 2001 with m, 3001 with both.
    """

    def __init__(self, stored: Any) -> None:
        self.geospatial_types = list(stored.geospatial_types or ()) or None
        for side in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax"):
            setattr(self, side, getattr(stored.bbox, side, None))

    def to_dict(self) -> dict[str, Any]:
        """All of them, by name."""
        return dict(vars(self))


# ---- column chunks and row groups


class SortingColumn(NamedTuple):
    """A column of the order that a row group declares."""

    column_index: int
    """The number of the leaf column."""
    descending: bool = False
    nulls_first: bool = False

    @property
    def name(self) -> int:
        return self.column_index

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_ordering(cls, schema: Any, sort_keys: Sequence[Any], null_placement: str = "at_end") -> tuple[Any, ...]:
        """The columns of an order as pyarrow's ``sort_by`` takes it: names, or ``(name, "ascending")``."""
        if null_placement not in ("at_start", "at_end"):
            raise ValueError(f"null_placement must be 'at_start' or 'at_end', not {null_placement!r}")
        made = []
        for key in sort_keys:
            name, direction = (key, "ascending") if isinstance(key, str) else key
            if direction not in ("ascending", "descending"):
                raise ValueError(f"the order must be 'ascending' or 'descending', not {direction!r}")
            made.append(cls(_leaf_names(schema).index(name), direction == "descending", null_placement == "at_start"))
        return tuple(made)

    @staticmethod
    def to_ordering(schema: Any, sorting_columns: Sequence[Any]) -> tuple[Any, str]:
        """``sort_keys`` and ``null_placement`` of these columns."""
        if len({column.nulls_first for column in sorting_columns}) > 1:
            raise ValueError("Sorting columns have inconsistent null placement, which one order of pyarrow cannot say")
        names = _leaf_names(schema)
        keys = tuple(
            (names[column.column_index], "descending" if column.descending else "ascending")
            for column in sorting_columns
        )
        first = bool(sorting_columns) and sorting_columns[0].nulls_first
        return keys, "at_start" if first else "at_end"


def _leaf_names(schema: Any) -> list[str]:
    """Dotted paths of the leaves of pyarrow's schema."""
    import pyarrow as pa

    def below(field: Any, prefix: str) -> list[str]:
        path = f"{prefix}{field.name}"
        if pa.types.is_struct(field.type):
            return [name for inner in field.type for name in below(inner, f"{path}.")]
        return [path]

    return [name for field in schema for name in below(field, "")]


class ColumnChunkMetaData(_Part):
    """The metadata of one column chunk."""

    _shown = (
        "file_offset", "file_path", "physical_type", "num_values", "path_in_schema", "is_stats_set", "compression",
        "encodings", "has_dictionary_page", "dictionary_page_offset", "data_page_offset", "total_compressed_size",
        "total_uncompressed_size", "bloom_filter_offset", "bloom_filter_length",
    )  # fmt: skip

    def __init__(self, parent: FileMetaData, chunk: Any, column: int) -> None:
        self._parent, self._chunk, self._meta = parent, chunk, chunk.meta_data
        self._node = parent._tree.leaves[column]

    file_offset = property(lambda self: int(self._chunk.file_offset))
    file_path = property(lambda self: self._chunk.file_path or "")
    physical_type = property(lambda self: self._node.type.physical.name)
    num_values = property(lambda self: int(self._meta.num_values))
    path_in_schema = property(lambda self: self._node.dotted)
    is_stats_set = property(lambda self: self._meta.statistics is not None)
    is_geo_stats_set = property(lambda self: self._meta.geospatial_statistics is not None)
    encodings = property(lambda self: tuple(encoding_name(number) for number in self._meta.encodings or ()))
    has_dictionary_page = property(lambda self: bool(self._meta.dictionary_page_offset))
    dictionary_page_offset = property(lambda self: self._meta.dictionary_page_offset or None)
    data_page_offset = property(lambda self: int(self._meta.data_page_offset))
    has_index_page = property(lambda self: self._meta.index_page_offset is not None)
    index_page_offset = property(lambda self: self._meta.index_page_offset)
    total_compressed_size = property(lambda self: int(self._meta.total_compressed_size))
    total_uncompressed_size = property(lambda self: int(self._meta.total_uncompressed_size))
    has_offset_index = property(lambda self: bool(self._chunk.offset_index_offset))
    has_column_index = property(lambda self: bool(self._chunk.column_index_offset))
    bloom_filter_offset = property(lambda self: self._meta.bloom_filter_offset or None)
    bloom_filter_length = property(lambda self: self._meta.bloom_filter_length or None)
    metadata = property(lambda self: _pairs(self._meta.key_value_metadata))

    @property
    def statistics(self) -> Statistics | None:
        """The statistics of the chunk. ``None`` if it has none."""
        if self._meta.statistics is None:
            return None
        parent = self._parent
        return Statistics(self._node, self._meta, parent._order(self._node), parent.created_by or None)

    @property
    def geo_statistics(self) -> GeoStatistics | None:
        """The geospatial statistics of the chunk. ``None`` if it has none."""
        found = self._meta.geospatial_statistics
        return None if found is None else GeoStatistics(found)

    @property
    def compression(self) -> str:
        name = codec_name(self._meta.codec)
        return "LZ4" if name == "LZ4_RAW" else name  # as pyarrow calls it

    def to_dict(self) -> dict[str, Any]:
        statistics, boxes = self.statistics, self.geo_statistics
        return {
            **super().to_dict(),
            "statistics": None if statistics is None else statistics.to_dict(),
            "geo_statistics": None if boxes is None else boxes.to_dict(),
        }


class RowGroupMetaData(_Part):
    """The metadata of one row group."""

    _shown = ("num_columns", "num_rows", "total_byte_size")

    def __init__(self, parent: FileMetaData, group: Any) -> None:
        self._parent, self._group = parent, group

    num_columns = property(lambda self: len(self._group.columns))
    num_rows = property(lambda self: int(self._group.num_rows))
    total_byte_size = property(lambda self: int(self._group.total_byte_size))

    @property
    def sorting_columns(self) -> tuple[SortingColumn, ...]:
        found = self._group.sorting_columns or ()
        return tuple(SortingColumn(c.column_idx, bool(c.descending), bool(c.nulls_first)) for c in found)

    def column(self, i: int) -> ColumnChunkMetaData:
        """The column chunk number ``i``. Raises :class:`IndexError` where there is none."""
        if not 0 <= i < self.num_columns:
            raise IndexError(f"there is no column {i}: the row group has {self.num_columns}")
        return ColumnChunkMetaData(self._parent, self._group.columns[i], i)

    def to_dict(self) -> dict[str, Any]:
        return {
            **super().to_dict(),
            "sorting_columns": [column.to_dict() for column in self.sorting_columns],
            "columns": [self.column(i).to_dict() for i in range(self.num_columns)],
        }


# ---- the file


class FileMetaData(_Part):
    """The metadata of a file. It is its own copy of the footer, which can be changed and written elsewhere."""

    _shown = ("created_by", "num_columns", "num_rows", "num_row_groups", "format_version", "serialized_size")

    def __init__(self, footer: tt.FileMetaData, size: int, options: ReadOptions | None = None) -> None:
        """``size``: of the footer, in bytes."""
        self._footer, self._size = footer, size
        self._options = options or ReadOptions()
        self._tree: SchemaTree = build_tree(footer.schema, self._options.limits.max_schema_depth)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (serialize(self._footer), self._size)

    def _order(self, node: Node) -> Order:
        orders = self._footer.column_orders
        stated = orders[node.column] if orders is not None and node.column < len(orders) else None
        return order_of(node.type, stated, node.element)

    @property
    def schema(self) -> ParquetSchema:
        pairs = self.metadata or {}
        return ParquetSchema(self._tree, pairs, FileFields(self._tree, pairs, self._options))

    serialized_size = property(lambda self: self._size)
    num_columns = property(lambda self: len(self._tree.leaves))
    num_rows = property(lambda self: int(self._footer.num_rows))
    num_row_groups = property(lambda self: len(self._footer.row_groups))
    format_version = property(lambda self: "1.0" if self._footer.version == 1 else "2.6")
    created_by = property(lambda self: str(self._footer.created_by or ""))
    metadata = property(lambda self: _pairs(self._footer.key_value_metadata))

    def row_group(self, i: int) -> RowGroupMetaData:
        """The row group number ``i``. Raises :class:`IndexError` where there is none."""
        if i not in range(self.num_row_groups):
            raise IndexError(f"{i!r} out of bounds: the file has {self.num_row_groups} row groups")
        return RowGroupMetaData(self, self._footer.row_groups[i])

    def set_file_path(self, path: str) -> None:
        """Say that all column chunks are in the file at ``path``, relative to the file that will have this metadata."""
        for group in self._footer.row_groups:
            for chunk in group.columns:
                chunk.file_path = path

    def append_row_groups(self, other: FileMetaData) -> None:
        """Append the row groups of another file. Raises :class:`RuntimeError` where its columns differ."""
        self._check_like(other)
        groups = [copy(group) for group in deepcopy(other._footer.row_groups)]
        for group in groups:
            group.ordinal = None
        self._footer.row_groups = [*self._footer.row_groups, *groups]
        self._footer.num_rows += other._footer.num_rows
        self._size = 0  # until it is written

    def _check_like(self, other: FileMetaData) -> None:
        own, theirs = self._tree.leaves, other._tree.leaves
        if len(own) != len(theirs):
            raise RuntimeError(
                f"AppendRowGroups requires equal schemas.\nThis schema has {len(own)} columns, other has {len(theirs)}"
            )
        for k, (a, b) in enumerate(zip(own, theirs, strict=True)):
            if (a.path, a.type, a.max_def, a.max_rep) != (b.path, b.type, b.max_def, b.max_rep):
                raise RuntimeError(
                    f"AppendRowGroups requires equal schemas.\nThe two columns with index {k} differ.\n"
                    f"{a.dotted}: {a.type}, and {b.dotted}: {b.type}"
                )

    def write_metadata_file(self, where: Any) -> None:
        """Write a file that has this metadata and no rows of its own."""
        data = serialize(self._footer)
        place, options = located(where, None)
        sink = open_sink(place, storage_options=options)
        try:
            sink.write([b"".join((MAGIC, data, len(data).to_bytes(4, "little"), MAGIC))])
            sink.commit()
        finally:
            sink.abort()

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "row_groups": [self.row_group(i).to_dict() for i in range(self.num_row_groups)]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileMetaData) and self._footer == other._footer

    def __hash__(self) -> int:
        return hash(serialize(self._footer))

    @printable
    def __repr__(self) -> str:
        lines = "".join(f"\n  {name}: {value}" for name, value in super().to_dict().items())
        return f"<pyparq.parquet.FileMetaData>{lines}"


def _unpickled(data: bytes, size: int) -> FileMetaData:
    return FileMetaData(deserialize(tt.FileMetaData, data)[0], size)


def _pairs(found: Any) -> dict[bytes, bytes] | None:
    made = {to_bytes(pair.key): to_bytes(pair.value) for pair in found or ()}
    return made or None
