"""Options: frozen, and checked when they are made. :mod:`pyparq.write.column_plans` applies them to a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pyparq.errors import OptionError, near, near_matches
from pyparq.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from pyparq.arguments import (
        Bloom,
        Compression,
        DecimalStorage,
        Encoding,
        FloatOrder,
        KeyValues,
        Names,
        PerColumn,
        SortOrder,
        TimeUnit,
    )
    from pyparq.encryption.properties import DecryptionProperties, EncryptionProperties

ColumnName = str | tuple[str, ...]
"""A column as a user names it: a string, with dots for nested columns, or a tuple of names, which is the exact
path even where the names contain dots."""


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """Options for the Bloom filters of one column."""

    fpp: float = 0.01
    """Target false-positive rate. The filter is sized for the distinct values of each row group, which are counted when
    the row group is complete."""
    ndv: int | None = None
    """Number of distinct values per row group to size the filter for. ``None`` counts them."""
    bytes: int | None = None
    """Exact size of the bitset, in bytes."""
    max_bytes: int = 128 << 20
    """Maximum size of the bitset, in bytes. A filter that reaches it has a higher false-positive rate than ``fpp``."""
    power_of_two: bool = True
    """Round the size of the bitset to a power of two. ``False`` uses the exact number of 32-byte blocks. That is
    smaller, but Arrow C++ refuses to read it."""
    auto: bool = False
    """Write no filter for a column chunk that is completely dictionary-encoded: readers can test its dictionary."""

    def __post_init__(self) -> None:
        if not (_is_number(self.fpp) and 0 < self.fpp < 1):
            raise OptionError(f"a Bloom filter's fpp must be between 0 and 1 (exclusive), not {self.fpp!r}")
        if self.ndv is not None and not (_is_int(self.ndv) and self.ndv >= 0):
            raise OptionError(f"a Bloom filter's ndv must be a whole number of at least 0, not {self.ndv!r}")
        for name, size in (("bytes", self.bytes), ("max_bytes", self.max_bytes)):
            if size is not None and not (_is_int(size) and 32 <= size <= 128 << 20):
                raise OptionError(f"a Bloom filter's {name} must be between 32 bytes and 128 MiB, not {size!r}")
        if self.bytes is not None and self.bytes % 32:
            raise OptionError(f"a Bloom filter's bytes must be a multiple of 32, not {self.bytes}")
        if self.bytes is not None and self.power_of_two and self.bytes & (self.bytes - 1):
            raise OptionError(
                f"a Bloom filter's bytes must be a power of two, not {self.bytes}, unless power_of_two=False"
            )


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort order."""

    name: ColumnName | int
    """The column: its name, its path, or its number among the leaf columns, counted from 0."""
    descending: bool = False
    """Sort from the largest value to the smallest."""
    nulls_first: bool = False
    """Put nulls before all values. By default they come after all values, in either direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options for writing a file. Sizes are in bytes.

    Options that differ by column take a dict. Its keys are columns: the path of a leaf column, dotted or as a tuple of
    names, or the path of a group, which means all leaf columns below it. Columns that are not named keep the default.
    """

    compression: Compression | PerColumn[Compression | None] | None = "snappy"
    """Codec for all columns, or a dict by column: ``none``, ``snappy``, ``gzip``, ``zstd``, ``brotli`` or
    ``lz4_raw``."""
    compression_level: int | PerColumn[int | None] | None = None
    """Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or a dict by column. The defaults are 6 for gzip, 4 for
    brotli and 3 for zstd."""

    row_group_size: int = 1 << 20
    """Maximum number of rows per row group."""
    row_group_bytes: int = 512 << 20
    """Maximum size of a row group in memory, in bytes. A larger single row still gets a row group."""
    data_page_size: int = 1 << 20
    """Maximum size of a data page before compression, in bytes. A larger single row still gets a page."""
    max_rows_per_page: int = 20_000
    """Maximum number of rows per data page."""
    data_page_version: Literal["1.0", "2.0"] = "1.0"
    """Format of data pages: ``"1.0"`` or ``"2.0"``."""

    use_dictionary: bool | Names | PerColumn[bool] = True
    """Columns to try dictionary encoding on: all, the named ones, or a dict by column. The dictionary is kept where it
    makes the pages smaller."""
    dictionary_pagesize_limit: int = 1 << 20
    """Maximum size of a column chunk's dictionary, in bytes. When it is full, the remaining values are written in the
    encoding used without a dictionary."""
    column_encoding: Encoding | PerColumn[Encoding | None] | None = None
    """Encoding for all columns, or a dict by column. ``None`` and ``"auto"`` let pyparq choose: where no dictionary is
    kept, the values of a column's first page decide between PLAIN and the encodings that all common readers know
    (docs/encodings.md). ``RLE`` is for booleans. ``RLE_DICTIONARY`` keeps the dictionary even where it makes the file
    larger. When the dictionary is full, the remaining values are written as PLAIN."""

    write_statistics: bool | Names = True
    """Write statistics of column chunks, for all columns or the named ones. Columns without them have no bounds in the
    column index either."""
    write_size_statistics: bool = True
    """Write size statistics for column chunks and pages: the bytes of their text and binary values, and counts of their
    levels. Readers use them to plan memory."""
    write_page_index: bool = True
    """Write a ColumnIndex and an OffsetIndex for every column chunk. Readers use them to skip pages."""
    column_index_truncate_length: int = 64
    """Maximum bytes of a string or binary bound in a ColumnIndex. Longer bounds are truncated; 0 never truncates."""
    statistics_truncate_length: int = 64
    """Maximum bytes of a string or binary bound in the statistics of a column chunk; 0 never truncates."""
    write_page_checksum: bool = True
    """Write a CRC checksum of the page into every page header."""

    float_order: FloatOrder | PerColumn[FloatOrder] = "TYPE_ORDER"
    """Sort order of the bounds of float columns. ``"IEEE_754_TOTAL_ORDER"`` tells -0.0 from 0.0 and one NaN from
    another, but many readers do not know it and then ignore the bounds."""

    int96_timestamps: bool | Names | PerColumn[bool] = False
    """Write timestamps as the deprecated INT96: all of them, the named ones, or a dict by column. pyarrow's name
    ``use_deprecated_int96_timestamps`` works too."""
    decimal_storage: DecimalStorage | PerColumn[DecimalStorage] = "smallest"
    """Physical type of decimals: ``"smallest"`` (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision needs),
    ``"fixed"`` (always FIXED_LEN_BYTE_ARRAY) or ``"binary"`` (BYTE_ARRAY). Spark 4.3 cannot read ``"binary"`` decimals
    of up to 18 digits."""
    write_time_adjusted_to_utc: bool | Names | PerColumn[bool] = False
    """Mark times of day as adjusted to UTC: all of them, the named ones, or a dict by column. Arrow's time types do not
    record this."""
    store_schema: bool | Literal["auto"] = "auto"
    """Store the Arrow schema of the data (``ARROW:schema``). Readers restore from it what Parquet types cannot express:
    time zones, durations, dictionaries, large and view types, extension types, field metadata. ``"auto"`` stores it
    only when the Parquet schema alone would lose something."""
    field_ids: PerColumn[int] = field(default_factory=dict)
    """Field ids by column (name or path). Field ids in field metadata (``PARQUET:field_id``) are written without this
    option."""
    column_key_value_metadata: PerColumn[KeyValues] = field(default_factory=dict)
    """Key-value metadata of column chunks: ``{column: {key: value}}``."""

    bloom_filters: bool | Names | PerColumn[Bloom] = False
    """Columns to write Bloom filters for: ``True`` (every column that can use one), a list of names, or a dict of name
    to false-positive rate."""
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None = None
    """Options of the filters by column: a :class:`BloomOptions`, a dict of its fields, or ``"auto"``. ``"auto"`` in
    place of the dict is for all columns."""
    bloom_filter_layout: Literal["footer", "row_group"] = "footer"
    """Where the filters go. ``"footer"``: all after the last row group. ``"row_group"``: directly after their row
    group."""

    sort_by: SortOrder = ()
    """Sort the rows by a column or a list of columns. A column is a name or a tuple
    ``(name, "ascending" | "descending"[, nulls_first])``. A name may be a path, as a tuple: ``[("a", "b.c")]``,
    ``[(("a", "b.c"), "descending")]``."""
    sort_scope: Literal["input", "row_group"] = "input"
    """``"input"`` sorts all rows together, when the file is closed. ``"row_group"`` sorts each row group by itself."""
    sort_memory: int = 4 << 30
    """Memory for sorting the whole input, in bytes, approximately. Data larger than a quarter of it is sorted in parts
    that wait in temporary files."""
    sorting_columns: SortOrder = ()
    """The order that the rows already have, in the form of ``sort_by``. It is checked and recorded in the file."""

    key_value_metadata: KeyValues = field(default_factory=dict)
    """Key-value metadata of the file. :meth:`pyparq.ParquetWriter.add_key_value_metadata` adds more."""
    encryption: EncryptionProperties | None = None
    """Encryption keys, and the columns they encrypt: :class:`pyparq.EncryptionProperties`."""
    use_threads: bool = True
    """Encode column chunks in parallel."""
    fsync: bool = False
    """Flush a local file to disk before it gets its final name."""

    @classmethod
    def make(cls, options: Mapping[str, Any]) -> Self:
        """From keyword arguments; :class:`OptionError` names an unknown one and what it may have meant."""
        given: dict[str, Any] = {}
        if options:
            known = [*(f.name for f in fields(cls)), *_ALIASES]
            _check_known("write", options, known, ("schema", "storage_options"), _NOT_FOR_WRITING)
        for name, value in options.items():
            real = _ALIASES.get(name, name)
            if real in given:
                raise OptionError(f"{name!r} and {real!r} are two names of the same option. Give only one of them")
            given[real] = value
        return cls(**given)

    def __post_init__(self) -> None:
        for name in ("row_group_size", "row_group_bytes", "data_page_size", "max_rows_per_page", "sort_memory"):
            _check_int(name, getattr(self, name), 1)
        if self.data_page_size > 1 << 30:
            raise OptionError(f"data_page_size must be at most 1 GiB, not {self.data_page_size}")
        for name in ("dictionary_pagesize_limit", "column_index_truncate_length", "statistics_truncate_length"):
            _check_int(name, getattr(self, name), 0)
        if self.dictionary_pagesize_limit > 1 << 30:
            raise OptionError("dictionary_pagesize_limit must be at most 1 GiB")
        if str(self.data_page_version) not in ("1.0", "2.0"):
            raise OptionError(f"data_page_version must be '1.0' or '2.0', not {self.data_page_version!r}")
        _check_choice("bloom_filter_layout", self.bloom_filter_layout, ("footer", "row_group"))
        _check_choice("sort_scope", self.sort_scope, ("input", "row_group"))
        for name in _SWITCHES:
            _check_switch(name, getattr(self, name), per_column=name != "write_statistics")
        for name in ("field_ids", "column_key_value_metadata"):
            if not isinstance(getattr(self, name), Mapping):
                raise OptionError(f"{name} must be a dict with columns as keys, not {getattr(self, name)!r}")
        if not isinstance(self.bloom_filter_options, (Mapping, str, type(None))):
            raise OptionError(
                f"bloom_filter_options must be a dict with columns as keys or 'auto', not {self.bloom_filter_options!r}"
            )
        if sort_keys(self.sort_by) and sort_keys(self.sorting_columns):
            raise OptionError("give either sort_by or sorting_columns, not both: sort_by records the order too")
        for name in ("int96_timestamps", "write_time_adjusted_to_utc"):
            if isinstance(getattr(self, name), str):
                raise OptionError(f"{name} must be True, False or a list of names")
        if not isinstance(self.store_schema, bool) and self.store_schema != "auto":
            raise OptionError(f"store_schema must be True, False or 'auto', not {self.store_schema!r}")
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False, not {getattr(self, name)!r}")


_ALIASES = {"use_deprecated_int96_timestamps": "int96_timestamps"}
"""pyarrow's names where ours differ."""
_SWITCHES = ("use_dictionary", "write_statistics", "int96_timestamps", "write_time_adjusted_to_utc")
_READ_FLAGS = (
    "verify_checksums", "use_statistics", "use_bloom_filters", "use_dictionaries", "use_page_index", "use_threads",
    "use_arrow_schema", "int96_adjusted_to_utc", "case_sensitive",
)  # fmt: skip
_NO_DATASETS = (
    "this writes a single file. Use pyparq.write_dataset(data, folder, partition_cols=[...]) for a folder of many files"
)
_NOT_FOR_WRITING = {
    "allow_truncated_timestamps": "pyparq never truncates timestamps, so leave it out",
    "basename_template": _NO_DATASETS,
    "coerce_timestamps": "give a schema with the unit, such as timestamp[us]",
    "columns": "every column of the data is written. Select columns before writing",
    "encryption_properties": "give encryption=pyparq.EncryptionProperties(...)",
    "filesystem": "give a URL or an open file as the target",
    "engine": "pyparq is the engine, so leave it out",
    "existing_data_behavior": _NO_DATASETS,
    "flavor": "names are kept as they are, so leave it out",
    "mode": "an existing file is replaced when the new one is complete, so leave it out",
    "partition_by": _NO_DATASETS,
    "partition_cols": _NO_DATASETS,
    "partitioning": _NO_DATASETS,
    "use_byte_stream_split": "give column_encoding={'x': 'BYTE_STREAM_SPLIT'}",
    "use_compliant_nested_type": "lists always have the standard structure, so leave it out",
    "version": "every type is written as it is, so leave it out",
    "write_batch_size": "give data_page_size or max_rows_per_page",
}
_OF_A_SCAN = "it is not an option for opening a file. Give it to read() or scan() of the open file, or to read_table()"
_NOT_FOR_READING = {
    "buffer_size": "only the needed bytes are read, so leave it out",
    "columns": _OF_A_SCAN,
    "decryption_properties": "give decryption=pyparq.DecryptionProperties(...)",
    "engine": "pyparq is the engine, so leave it out",
    "filesystem": "give a URL or an open file as the source",
    "filters": _OF_A_SCAN,
    "limit": _OF_A_SCAN,
    "memory_map": "only the needed bytes are read, so leave it out",
    "page_checksum_verification": "here it is called verify_checksums, and it is on by default",
    "partitioning": "a source is a single file. Read the files of a folder one by one",
    "pre_buffer": "nearby byte ranges are always read together, so leave it out",
    "row_groups": _OF_A_SCAN,
    "rows": _OF_A_SCAN,
    "schema": "columns have the types of the file, so leave it out",
    "thrift_container_size_limit": "give limits=pyparq.Limits(...)",
    "thrift_string_size_limit": "give limits=pyparq.Limits(...)",
    "use_pandas_metadata": "to_pandas() always uses the pandas metadata, so leave it out",
}
"""Options of pyarrow that have no counterpart, and what to do without."""


def _check_known(
    kind: str, given: Mapping[str, Any], known: Sequence[str], parameters: Sequence[str], hints: Mapping[str, str]
) -> None:
    for name in given:
        if name not in known:
            raise OptionError(f"unknown {kind} option {name!r}{_meant(name, known, parameters, hints)}")


def _meant(name: str, known: Sequence[str], parameters: Sequence[str], hints: Mapping[str, str]) -> str:
    """What to write in place of ``name``: options, parameters and the names of others are searched together."""
    if name in hints:
        return f"; {hints[name]}"
    found = near(name, [*known, *parameters, *hints])
    if found and found[0] in hints and found[0] not in parameters:
        return f"; did you mean {found[0]!r}? {hints[found[0]]}"
    return near_matches(name, [*known, *parameters], "options")


_FLAGS = ("write_size_statistics", "write_page_index", "write_page_checksum", "use_threads", "fsync")


def sort_keys(given: Any) -> tuple[SortKey, ...]:
    """The keys of ``sort_by`` or ``sorting_columns``: names, tuples, or :class:`SortKey`."""
    if given is None:
        return ()
    if isinstance(given, (str, SortKey)):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise OptionError(f"a sort order must be a list of names or (name, direction) tuples, not {given!r}")
    keys = tuple(_sort_key(item) for item in given)
    names = [key.name for key in keys]
    if len(set(names)) != len(names):
        raise OptionError(f"the sort order names a column twice: {names}")
    return keys


_DIRECTIONS = ("ascending", "descending", "asc", "desc")
"""What stands for a direction, or was meant to, and not for the second name of a path."""


def _sort_key(item: Any) -> SortKey:
    if isinstance(item, SortKey):
        return item
    if isinstance(item, str):
        return SortKey(item)
    if hasattr(item, "column_index") and hasattr(item, "descending"):  # pyarrow.parquet.SortingColumn
        return SortKey(item.column_index, bool(item.descending), bool(getattr(item, "nulls_first", False)))
    if is_name(item) and len(item) > 1 and item[1].lower() not in _DIRECTIONS:
        return SortKey(item)
    if isinstance(item, tuple) and 1 <= len(item) <= 3 and is_name(item[0]):
        direction = item[1] if len(item) > 1 else "ascending"
        nulls = item[2] if len(item) > 2 else False
        if direction in ("ascending", "descending") and nulls in (True, False, "nulls_first", "nulls_last"):
            return SortKey(item[0], direction == "descending", nulls in (True, "nulls_first"))
    raise OptionError(
        f"{item!r} is not a sort key. Give a name, (name, 'ascending' | 'descending'), or "
        "(name, 'ascending' | 'descending', 'nulls_first' | 'nulls_last')"
    )


def bloom_options(given: Any, base: BloomOptions | None = None) -> BloomOptions | None:
    """One column's value in ``bloom_filters`` or ``bloom_filter_options``; ``None`` when it says no filter."""
    base = base or BloomOptions()
    if given is None or given is False:
        return None
    if given is True:
        return base
    if isinstance(given, BloomOptions):
        return given
    if isinstance(given, str) and given == "auto":
        return BloomOptions(**{**_as_dict(base), "auto": True})
    if _is_number(given):
        return BloomOptions(**{**_as_dict(base), "fpp": given})
    if isinstance(given, Mapping):
        known = [f.name for f in fields(BloomOptions)]
        for name in given:
            if name not in known:
                raise OptionError(f"unknown Bloom filter option {name!r}{near_matches(str(name), known, 'options')}")
        return BloomOptions(**{**_as_dict(base), **given})
    raise OptionError(f"a Bloom filter takes True, a false-positive rate, 'auto' or a dict of options, not {given!r}")


def _as_dict(options: BloomOptions) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for f in fields(options)}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_int(name: str, value: Any, least: int) -> None:
    if not _is_int(value) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")


def _check_switch(name: str, value: Any, per_column: bool) -> None:
    """``True``, ``False``, or the columns it is on for, as names or (``per_column``) as a dict of booleans."""
    if isinstance(value, bool):
        return
    if isinstance(value, Mapping) and per_column and all(isinstance(v, bool) for v in value.values()):
        return
    if isinstance(value, (list, tuple, set, frozenset)) and all(is_name(v) for v in value):
        return
    more = ", or a dict of names to booleans" if per_column else ""
    raise OptionError(f"{name} must be True, False or a list of names{more}, not {value!r}")


def is_name(value: Any) -> bool:
    """Can it be a :data:`ColumnName`?"""
    if isinstance(value, tuple):
        return len(value) > 0 and all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def _check_names(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise OptionError(f"{name} must be a list of names; did you mean [{value!r}]?")
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(is_name(v) for v in value):
        raise OptionError(f"{name} must be a list of names, not {value!r}")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a file. Sizes are in bytes."""

    verify_checksums: bool = True
    """Check the CRC of pages that have one. Pages encrypted with AES_GCM_V1 are not checked: their authentication tag
    is stronger."""
    tail_size: int | None = None
    """Size of the first read, at the end of the file. It is meant to contain the whole footer; a longer footer needs a
    second read. ``None`` reads 16 KiB of a local file (all of one that has no more than 128 KiB), 128 KiB of a remote
    one, and 48 KiB of each remote file of a dataset."""
    coalesce_gap: int | None = None
    """Byte ranges with at most this many bytes between them are read in one request. ``None`` means 4 KiB for local
    files and 1 MiB for remote ones."""
    prefetch_bytes: int = 64 << 20
    """Maximum number of bytes of a remote file that are requested before they are needed, while other bytes are
    decoded. 0 requests them when they are needed. Local files are not prefetched."""
    retries: int = 4
    """How often a request to a remote store is made again when it fails for the moment: the answers 408, 429, 500, 502,
    503 and 504, connections that fail or break, no answer in time, bodies shorter than promised. At most once for S3
    and obstore, whose libraries do that themselves. 0 makes none again."""
    retry_wait: float = 0.1
    """Seconds before a request is made again for the first time; then twice as long each time, and at most 20. Chance
    takes up to half of it away. ``Retry-After`` of the server counts if it is longer. After 60 seconds in all, nothing
    is made again."""
    use_statistics: bool = True
    """Skip row groups in which the statistics of a column chunk rule out a match with the filter."""
    use_bloom_filters: bool = True
    """Skip row groups in which a Bloom filter rules out a match with the filter."""
    use_dictionaries: bool = True
    """Skip row groups in which a dictionary page rules out a match with the filter."""
    use_page_index: bool = True
    """Skip pages in which the ColumnIndex rules out a match with the filter, and find the others by the OffsetIndex."""
    use_threads: bool = True
    """Read and decode column chunks in parallel."""
    coerce_int96_timestamp_unit: TimeUnit = "ns"
    """Unit in which INT96 timestamps are read: ``s``, ``ms``, ``us`` or ``ns``. Nanoseconds in 64 bits only cover the
    years 1677 to 2262. One outside of them is an error: ask for ``us``."""
    int96_adjusted_to_utc: bool = False
    """Read INT96 timestamps as instants (timestamps in UTC), which is what Spark, Hive and Impala mean by them.
    Otherwise they have no time zone, as in pyarrow."""
    read_dictionary: Names = ()
    """BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays instead of plain arrays."""
    use_arrow_schema: bool = True
    """Restore Arrow types and metadata from a stored Arrow schema (``ARROW:schema``). Parts of it that do not fit the
    Parquet schema are ignored."""
    binary_columns: Names = ()
    """Text columns to read as binary (dotted paths; the path of a group means all text columns below it). Their bytes
    are not checked to be UTF-8, and filters compare them with bytes."""
    case_sensitive: bool = True
    """``False`` finds columns without regard to case. Of a dataset, ``Id`` in one file and ``id`` in another are then
    one column, and so are folders ``M=1`` and ``m=2``; the first spelling is shown, or that of ``schema=``. A name that
    fits two columns of a file is an error where it is asked for; a tuple with the exact spelling tells them apart."""
    limits: Limits = DEFAULT_LIMITS
    """Limits on the memory, nesting and counts that a file may demand: :class:`pyparq.Limits`."""
    decryption: DecryptionProperties | None = None
    """Keys to decrypt an encrypted file: :class:`pyparq.DecryptionProperties`."""

    def __post_init__(self) -> None:
        if self.tail_size is not None:
            _check_int("tail_size", self.tail_size, 8)
        if self.coalesce_gap is not None:
            _check_int("coalesce_gap", self.coalesce_gap, 0)
        _check_int("prefetch_bytes", self.prefetch_bytes, 0)
        _check_int("retries", self.retries, 0)
        if isinstance(self.retry_wait, bool) or not isinstance(self.retry_wait, (int, float)) or self.retry_wait < 0:
            raise OptionError(f"retry_wait must be a number of seconds, not {self.retry_wait!r}")
        if self.coerce_int96_timestamp_unit not in ("s", "ms", "us", "ns"):
            raise OptionError(
                f"coerce_int96_timestamp_unit must be s, ms, us or ns, not {self.coerce_int96_timestamp_unit!r}"
            )
        for name in ("read_dictionary", "binary_columns"):
            _check_names(name, getattr(self, name))
        for name in _READ_FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not isinstance(self.limits, Limits):
            raise OptionError(f"limits must be pyparq.Limits, not {self.limits!r}")

    @classmethod
    def make(cls, options: Mapping[str, Any]) -> Self:
        """From keyword arguments; :class:`OptionError` names an unknown one and what it may have meant."""
        if not options:
            return cast(Self, _defaults())
        cls.check_known(options)
        return cls(**options)

    @classmethod
    def check_known(cls, options: Mapping[str, Any], parameters: Sequence[str] = ()) -> None:
        """Raise :class:`OptionError` for a name that is no option. ``parameters`` of the function that was called may
        have been meant too."""
        if options:
            _check_known("read", options, [f.name for f in fields(cls)], parameters, _NOT_FOR_READING)


@cache
def _defaults() -> ReadOptions:
    """The options that nothing was said about, checked once."""
    return ReadOptions()
