"""Types of arguments, for type checkers and editors: what an option may be, and all options of an entry point by name.

Nothing here is loaded when a program runs. The classes at the end are made from :mod:`pyparq.options` by
``python tests/api_page.py``; a test says when they have to be made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

from pyparq.encryption.properties import DecryptionProperties, EncryptionProperties
from pyparq.limits import Limits
from pyparq.options import BloomOptions, SortKey

if TYPE_CHECKING:
    from pyparq.filters.expression import Expression

T = TypeVar("T")
Item = TypeVar("Item", covariant=True)


class ListOf(Protocol[Item]):
    """A list or tuple. Text is none: its ``in`` takes text alone. Nor is a dict: it is not indexed by numbers."""

    def __contains__(self, item: object, /) -> bool: ...
    def __getitem__(self, place: int, /) -> Item: ...
    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...


class NamedSortColumn(Protocol):
    """``pyarrow.parquet.SortingColumn``."""

    @property
    def column_index(self) -> int: ...
    @property
    def descending(self) -> bool: ...


Name: TypeAlias = str | tuple[str, ...]
"""A column: its name, its dotted path, or its path as a tuple."""
Names: TypeAlias = ListOf[Name] | Set[Name]
PerColumn: TypeAlias = Mapping[Any, T]
"""A value by column (:obj:`Name`); columns that are not named keep the default."""

Compression: TypeAlias = Literal[
    "none", "uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw", "lz4",
    "NONE", "UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW", "LZ4",
]  # fmt: skip
Encoding: TypeAlias = Literal[
    "auto", "PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT",
]  # fmt: skip
FloatOrder: TypeAlias = Literal["TYPE_ORDER", "IEEE_754_TOTAL_ORDER"]
DecimalStorage: TypeAlias = Literal["smallest", "fixed", "binary"]
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
KeyValues: TypeAlias = Mapping[Any, str | bytes | None]


class BloomValues(TypedDict, total=False):
    """The fields of :class:`pyparq.BloomOptions`."""

    fpp: float
    ndv: int | None
    bytes: int | None
    max_bytes: int
    power_of_two: bool
    auto: bool


Bloom: TypeAlias = bool | float | Literal["auto"] | BloomOptions | BloomValues | None
Direction: TypeAlias = Literal["ascending", "descending"]
Nulls: TypeAlias = bool | Literal["nulls_first", "nulls_last"]
SortColumn: TypeAlias = (
    str | SortKey | tuple[str, ...] | tuple[Name, Direction] | tuple[Name, Direction, Nulls] | NamedSortColumn
)
SortOrder: TypeAlias = str | SortKey | Sequence[SortColumn] | None

Test: TypeAlias = "tuple[Name, str, Any] | Expression"
Filters: TypeAlias = "Expression | tuple[Name, str, Any] | Sequence[Test | Sequence[Test]]"
"""An expression over :func:`pyparq.col`, or pyarrow's tuples: a list of them, or a list of lists (OR of ANDs)."""

# ---- made by tests/api_page.py: not to be edited here


class ReadArguments(TypedDict, total=False):
    """Keyword arguments of everything that opens a file for reading."""

    verify_checksums: bool
    """Check the CRC of pages that have one. Pages encrypted with AES_GCM_V1 are not checked: their authentication
    tag is stronger."""
    tail_size: int | None
    """Size of the first read, at the end of the file. It is meant to contain the whole footer; a longer footer
    needs a second read. ``None`` reads 16 KiB of a local file and 48 KiB of a remote one."""
    coalesce_gap: int | None
    """Byte ranges with at most this many bytes between them are read in one request. ``None`` means 4 KiB for local
    files and 1 MiB for remote ones."""
    use_statistics: bool
    """Skip row groups in which the statistics of a column chunk rule out a match with the filter."""
    use_bloom_filters: bool
    """Skip row groups in which a Bloom filter rules out a match with the filter."""
    use_dictionaries: bool
    """Skip row groups in which a dictionary page rules out a match with the filter."""
    use_page_index: bool
    """Skip pages in which the ColumnIndex rules out a match with the filter, and find the others by the
    OffsetIndex."""
    use_threads: bool
    """Read and decode column chunks in parallel."""
    coerce_int96_timestamp_unit: TimeUnit
    """Unit in which INT96 timestamps are read: ``s``, ``ms``, ``us`` or ``ns``. Nanoseconds in 64 bits only cover
    the years 1677 to 2262. Timestamps outside of them wrap around."""
    read_dictionary: Names
    """BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays instead of plain arrays."""
    use_arrow_schema: bool
    """Restore Arrow types and metadata from a stored Arrow schema (``ARROW:schema``). Parts of it that do not fit
    the Parquet schema are ignored."""
    binary_columns: Names
    """Text columns to read as binary (dotted paths; the path of a group means all text columns below it). Their
    bytes are not checked to be UTF-8, and filters compare them with bytes."""
    limits: Limits
    """Limits on the memory, nesting and counts that a file may demand: :class:`pyparq.Limits`."""
    decryption: DecryptionProperties | None
    """Keys to decrypt an encrypted file: :class:`pyparq.DecryptionProperties`."""


class WriteArguments(TypedDict, total=False):
    """Keyword arguments of everything that writes a file."""

    compression: Compression | PerColumn[Compression | None] | None
    """Codec for all columns, or a dict by column: ``none``, ``snappy``, ``gzip``, ``zstd``, ``brotli`` or
    ``lz4_raw``."""
    compression_level: int | PerColumn[int | None] | None
    """Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or a dict by column. The defaults are 6 for gzip, 4
    for brotli and 3 for zstd."""
    row_group_size: int
    """Maximum number of rows per row group."""
    row_group_bytes: int
    """Maximum size of a row group in memory, in bytes. A larger single row still gets a row group."""
    data_page_size: int
    """Maximum size of a data page before compression, in bytes. A larger single row still gets a page."""
    max_rows_per_page: int
    """Maximum number of rows per data page."""
    data_page_version: Literal["1.0", "2.0"]
    """Format of data pages: ``"1.0"`` or ``"2.0"``."""
    use_dictionary: bool | Names | PerColumn[bool]
    """Columns to try dictionary encoding on: all, the named ones, or a dict by column. The dictionary is kept where
    it makes the pages smaller."""
    dictionary_pagesize_limit: int
    """Maximum size of a column chunk's dictionary, in bytes. When it is full, the remaining values are written in
    the encoding used without a dictionary."""
    column_encoding: Encoding | PerColumn[Encoding | None] | None
    """Encoding for all columns, or a dict by column. ``None`` and ``"auto"`` let pyparq choose: where no dictionary
    is kept, the values of a column's first page decide between PLAIN and the encodings that all common readers know
    (docs/encodings.md). ``RLE`` is for booleans. ``RLE_DICTIONARY`` keeps the dictionary even where it makes the
    file larger. When the dictionary is full, the remaining values are written as PLAIN."""
    write_statistics: bool | Names
    """Write statistics of column chunks, for all columns or the named ones. Columns without them have no bounds in
    the column index either."""
    write_size_statistics: bool
    """Write size statistics for column chunks and pages: the bytes of their text and binary values, and counts of
    their levels. Readers use them to plan memory."""
    write_page_index: bool
    """Write a ColumnIndex and an OffsetIndex for every column chunk. Readers use them to skip pages."""
    column_index_truncate_length: int
    """Maximum bytes of a string or binary bound in a ColumnIndex. Longer bounds are truncated; 0 never
    truncates."""
    statistics_truncate_length: int
    """Maximum bytes of a string or binary bound in the statistics of a column chunk; 0 never truncates."""
    write_page_checksum: bool
    """Write a CRC checksum of the page into every page header."""
    float_order: FloatOrder | PerColumn[FloatOrder]
    """Sort order of the bounds of float columns. ``"IEEE_754_TOTAL_ORDER"`` tells -0.0 from 0.0 and one NaN from
    another, but many readers do not know it and then ignore the bounds."""
    int96_timestamps: bool | Names | PerColumn[bool]
    """Write timestamps as the deprecated INT96: all of them, the named ones, or a dict by column. pyarrow's name
    ``use_deprecated_int96_timestamps`` works too."""
    use_deprecated_int96_timestamps: bool | Names | PerColumn[bool]
    decimal_storage: DecimalStorage | PerColumn[DecimalStorage]
    """Physical type of decimals: ``"smallest"`` (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision needs),
    ``"fixed"`` (always FIXED_LEN_BYTE_ARRAY) or ``"binary"`` (BYTE_ARRAY). Spark 4.3 cannot read ``"binary"``
    decimals of up to 18 digits."""
    write_time_adjusted_to_utc: bool | Names | PerColumn[bool]
    """Mark times of day as adjusted to UTC: all of them, the named ones, or a dict by column. Arrow's time types do
    not record this."""
    store_schema: bool | Literal["auto"]
    """Store the Arrow schema of the data (``ARROW:schema``). Readers restore from it what Parquet types cannot
    express: time zones, durations, dictionaries, large and view types, extension types, field metadata. ``"auto"``
    stores it only when the Parquet schema alone would lose something."""
    field_ids: PerColumn[int]
    """Field ids by column (name or path). Field ids in field metadata (``PARQUET:field_id``) are written without
    this option."""
    column_key_value_metadata: PerColumn[KeyValues]
    """Key-value metadata of column chunks: ``{column: {key: value}}``."""
    bloom_filters: bool | Names | PerColumn[Bloom]
    """Columns to write Bloom filters for: ``True`` (every column that can use one), a list of names, or a dict of
    name to false-positive rate."""
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None
    """Options of the filters by column: a :class:`BloomOptions`, a dict of its fields, or ``"auto"``. ``"auto"`` in
    place of the dict is for all columns."""
    bloom_filter_layout: Literal["footer", "row_group"]
    """Where the filters go. ``"footer"``: all after the last row group. ``"row_group"``: directly after their row
    group."""
    sort_by: SortOrder
    """Sort the rows by a column or a list of columns. A column is a name or a tuple ``(name, "ascending" |
    "descending"[, nulls_first])``. A name may be a path, as a tuple: ``[("a", "b.c")]``, ``[(("a", "b.c"),
    "descending")]``."""
    sort_scope: Literal["input", "row_group"]
    """``"input"`` sorts all rows together and holds them in memory until the file is closed. ``"row_group"`` sorts
    each row group by itself."""
    sorting_columns: SortOrder
    """The order that the rows already have, in the form of ``sort_by``. It is checked and recorded in the file."""
    key_value_metadata: KeyValues
    """Key-value metadata of the file. :meth:`pyparq.ParquetWriter.add_key_value_metadata` adds more."""
    encryption: EncryptionProperties | None
    """Encryption keys, and the columns they encrypt: :class:`pyparq.EncryptionProperties`."""
    use_threads: bool
    """Encode column chunks in parallel."""
    fsync: bool
    """Flush a local file to disk before it gets its final name."""
