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
    str | SortKey | tuple[str] | tuple[str, Direction] | tuple[str, Direction, Nulls] | NamedSortColumn
)
SortOrder: TypeAlias = str | SortKey | Sequence[SortColumn] | None

Test: TypeAlias = "tuple[Name, str, Any] | Expression"
Filters: TypeAlias = "Expression | tuple[Name, str, Any] | Sequence[Test | Sequence[Test]]"
"""An expression over :func:`pyparq.col`, or pyarrow's tuples: a list of them, or a list of lists (OR of ANDs)."""

# ---- made by tests/api_page.py: not to be edited here


class ReadArguments(TypedDict, total=False):
    """Keyword arguments of everything that opens a file for reading."""

    verify_checksums: bool
    """Check page CRCs where the file has them (but for pages under AES_GCM_V1, whose tag proves more)."""
    tail_size: int | None
    """The one speculative read at the end of the file, which holds most footers; ``None``: 16 KiB on local files,
    where a second read costs microseconds, 48 KiB on remote ones."""
    coalesce_gap: int | None
    """Ranges with at most this many bytes between them become one request; ``None``: 4 KiB on local files, 1 MiB on
    remote ones."""
    use_statistics: bool
    """Prune row groups by the statistics of their column chunks."""
    use_bloom_filters: bool
    """Prune row groups by Bloom filters."""
    use_dictionaries: bool
    """Prune row groups by dictionary pages."""
    use_page_index: bool
    """Prune pages by ColumnIndex, and read those that are left by OffsetIndex."""
    use_threads: bool
    """Read and decode column chunks side by side."""
    coerce_int96_timestamp_unit: TimeUnit
    """Unit in which INT96 timestamps are read: ``s ms us ns``. Nanoseconds in 64 bits reach from 1677 to 2262 only;
    instants beyond wrap around."""
    read_dictionary: Names
    """BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays, without spelling their values out."""
    use_arrow_schema: bool
    """Restore what ``ARROW:schema`` says beyond the file's own schema. It is a hint: what does not fit is
    ignored."""
    binary_columns: Names
    """Text columns (dotted paths; a group's path for all text below it) to read as binary: their bytes are not
    checked to be UTF-8, and filters compare them with bytes."""
    limits: Limits
    """What a file may make the reader allocate, nest or count, at most: :class:`pyparq.Limits`."""
    decryption: DecryptionProperties | None
    """Keys of an encrypted file: :class:`pyparq.DecryptionProperties`."""


class WriteArguments(TypedDict, total=False):
    """Keyword arguments of everything that writes a file."""

    compression: Compression | PerColumn[Compression | None] | None
    """``none snappy gzip zstd brotli lz4_raw``, or per column."""
    compression_level: int | PerColumn[int | None] | None
    """Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or per column; otherwise 6, 4 and 3."""
    row_group_size: int
    """Rows per row group, at most."""
    row_group_bytes: int
    """Bytes per row group as it is in memory, at most (one row is always written)."""
    data_page_size: int
    """Bytes per data page before compression, at most (one row is always written)."""
    max_rows_per_page: int
    """Rows per data page, at most."""
    data_page_version: Literal["1.0", "2.0"]
    """``"1.0"`` or ``"2.0"``."""
    use_dictionary: bool | Names | PerColumn[bool]
    """Try a dictionary on all columns, on those named, or per column. It is kept where it makes pages smaller."""
    dictionary_pagesize_limit: int
    """Bytes of a column chunk's dictionary; values after the one that would exceed it get the other encoding."""
    column_encoding: Encoding | PerColumn[Encoding | None] | None
    """An encoding in place of the choice, for all columns or per column; ``"auto"`` leaves the choice. Where no
    dictionary is kept, the values of a column's first page decide between PLAIN and the encodings that all common
    readers know (docs/encodings.md). ``RLE`` is for booleans. ``RLE_DICTIONARY`` keeps the dictionary also where it
    does not pay, and goes on in PLAIN where it is full."""
    write_statistics: bool | Names
    """Statistics of column chunks, for all columns or those named (bounds in the column index go with them)."""
    write_size_statistics: bool
    """Bytes of text and counts of levels, of chunks and pages: readers plan their memory by them."""
    write_page_index: bool
    """A ColumnIndex and an OffsetIndex for every column chunk: with them a reader skips pages."""
    column_index_truncate_length: int
    """Longest bound of a string or binary page in a ColumnIndex; 0 does not truncate."""
    statistics_truncate_length: int
    """The same for the statistics of a column chunk."""
    write_page_checksum: bool
    """A CRC in every page header."""
    float_order: FloatOrder | PerColumn[FloatOrder]
    """Order of the bounds of float columns: ``"TYPE_ORDER"``, or ``"IEEE_754_TOTAL_ORDER"``, which tells the zeros
    and NaNs apart but which many readers do not know (they then ignore the bounds)."""
    int96_timestamps: bool | Names | PerColumn[bool]
    """Write timestamps, all or those named, as the deprecated INT96 (pyarrow:
    ``use_deprecated_int96_timestamps``)."""
    use_deprecated_int96_timestamps: bool | Names | PerColumn[bool]
    decimal_storage: DecimalStorage | PerColumn[DecimalStorage]
    """Physical type of decimals: ``"smallest"`` (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision needs),
    ``"fixed"`` (always FIXED_LEN_BYTE_ARRAY) or ``"binary"`` (BYTE_ARRAY; Spark 4.3 fails on those up to 18
    digits)."""
    write_time_adjusted_to_utc: bool | Names | PerColumn[bool]
    """Mark times of day, all or those named, as adjusted to UTC (Arrow's times do not say)."""
    store_schema: bool | Literal["auto"]
    """Store the Arrow schema of the data (``ARROW:schema``), from which readers restore what Parquet cannot say:
    time zones, durations, dictionaries, large and view types, extension types, field metadata. ``"auto"``: when,
    and only when, the file's own schema would lose something of it."""
    field_ids: PerColumn[int]
    """Field ids by column (name or path); those in field metadata (``PARQUET:field_id``) need no option."""
    column_key_value_metadata: PerColumn[KeyValues]
    """Key-value metadata of column chunks, by column."""
    bloom_filters: bool | Names | PerColumn[Bloom]
    """``True`` (every column that can use one), names, or ``{name: rate}``."""
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None
    """``{name: {"fpp", "ndv", "bytes", "max_bytes", "power_of_two"} | "auto"}``, or ``"auto"`` for all columns."""
    bloom_filter_layout: Literal["footer", "row_group"]
    """``"footer"``: all filters after the last row group. ``"row_group"``: each row group's right after it."""
    sort_by: SortOrder
    """Sort the rows: a name or a list of names or ``(name, "ascending" | "descending"[, nulls_first])``."""
    sort_scope: Literal["input", "row_group"]
    """``"input"`` sorts all rows together (they are held in memory until close); ``"row_group"`` each row group."""
    sorting_columns: SortOrder
    """The order that the rows already have, in the form of ``sort_by``: checked, then recorded."""
    key_value_metadata: KeyValues
    """Key-value metadata of the file; :meth:`pyparq.ParquetWriter.add_key_value_metadata` adds to it."""
    encryption: EncryptionProperties | None
    """Keys and what to encrypt with them: :class:`pyparq.EncryptionProperties`."""
    use_threads: bool
    """Encode column chunks side by side."""
    fsync: bool
    """Force a local file to the disk before it takes its name."""
