"""Options: frozen, and checked when they are made. What depends on a schema is resolved in :mod:`pyparq.write.plan`."""

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
"""A column as a user names it, dotted where it is nested; a tuple is its exact path, whatever dots its names have."""


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """How the Bloom filters of one column are made."""

    fpp: float = 0.01
    """False-positive rate to meet for the distinct values of each row group (counted when it closes)."""
    ndv: int | None = None
    """Distinct values to meet the rate for, in place of the count."""
    bytes: int | None = None
    """Size of the bitset, outright."""
    max_bytes: int = 128 << 20
    """Cap on the size of the bitset: the rate is then higher than asked."""
    power_of_two: bool = True
    """``False`` takes the exact number of 32-byte blocks, which is smaller but which Arrow C++ refuses to read."""
    auto: bool = False
    """Leave the filter out where a complete dictionary already answers."""

    def __post_init__(self) -> None:
        if not (_is_number(self.fpp) and 0 < self.fpp < 1):
            raise OptionError(f"a Bloom filter's fpp must lie between 0 and 1, not {self.fpp!r}")
        if self.ndv is not None and not (_is_int(self.ndv) and self.ndv >= 0):
            raise OptionError(f"a Bloom filter's ndv must be a count of distinct values, not {self.ndv!r}")
        for name, size in (("bytes", self.bytes), ("max_bytes", self.max_bytes)):
            if size is not None and not (_is_int(size) and 32 <= size <= 128 << 20):
                raise OptionError(f"a Bloom filter's {name} must be between 32 and 128 MiB, not {size!r}")
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
    """The column: its name or path, or its ordinal among the leaves."""
    descending: bool = False
    """Largest first."""
    nulls_first: bool = False
    """Nulls before all values; otherwise behind them, in either direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Everything that shapes a file. Sizes are bytes; ``{…}`` options are keyed by column: a leaf's path, dotted or
    as a tuple of names, or a group's for all leaves below it. Columns that are not named keep the default.
    """

    compression: Compression | PerColumn[Compression | None] | None = "snappy"
    """``none snappy gzip zstd brotli lz4_raw``, or per column."""
    compression_level: int | PerColumn[int | None] | None = None
    """Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or per column; otherwise 6, 4 and 3."""

    row_group_size: int = 1 << 20
    """Rows per row group, at most."""
    row_group_bytes: int = 512 << 20
    """Bytes per row group as it is in memory, at most (one row is always written)."""
    data_page_size: int = 1 << 20
    """Bytes per data page before compression, at most (one row is always written)."""
    max_rows_per_page: int = 20_000
    """Rows per data page, at most."""
    data_page_version: Literal["1.0", "2.0"] = "1.0"
    """``"1.0"`` or ``"2.0"``."""

    use_dictionary: bool | Names | PerColumn[bool] = True
    """Try a dictionary on all columns, on those named, or per column. It is kept where it makes pages smaller."""
    dictionary_pagesize_limit: int = 1 << 20
    """Bytes of a column chunk's dictionary; values after the one that would exceed it get the other encoding."""
    column_encoding: Encoding | PerColumn[Encoding | None] | None = None
    """An encoding in place of the choice, for all columns or per column; ``"auto"`` leaves the choice. Where no
    dictionary is kept, the values of a column's first page decide between PLAIN and the encodings that all common
    readers know (docs/encodings.md). ``RLE`` is for booleans. ``RLE_DICTIONARY`` keeps the dictionary also where it
    does not pay, and goes on in PLAIN where it is full."""

    write_statistics: bool | Names = True
    """Statistics of column chunks, for all columns or those named (bounds in the column index go with them)."""
    write_size_statistics: bool = True
    """Bytes of text and counts of levels, of chunks and pages: readers plan their memory by them."""
    write_page_index: bool = True
    """A ColumnIndex and an OffsetIndex for every column chunk: with them a reader skips pages."""
    column_index_truncate_length: int = 64
    """Longest bound of a string or binary page in a ColumnIndex; 0 does not truncate."""
    statistics_truncate_length: int = 64
    """The same for the statistics of a column chunk."""
    write_page_checksum: bool = True
    """A CRC in every page header."""

    float_order: FloatOrder | PerColumn[FloatOrder] = "TYPE_ORDER"
    """Order of the bounds of float columns: ``"TYPE_ORDER"``, or ``"IEEE_754_TOTAL_ORDER"``, which tells the zeros and
    NaNs apart but which many readers do not know (they then ignore the bounds)."""

    int96_timestamps: bool | Names | PerColumn[bool] = False
    """Write timestamps, all or those named, as the deprecated INT96 (pyarrow: ``use_deprecated_int96_timestamps``)."""
    decimal_storage: DecimalStorage | PerColumn[DecimalStorage] = "smallest"
    """Physical type of decimals: ``"smallest"`` (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision needs),
    ``"fixed"`` (always FIXED_LEN_BYTE_ARRAY) or ``"binary"`` (BYTE_ARRAY; Spark 4.3 fails on those up to 18 digits)."""
    write_time_adjusted_to_utc: bool | Names | PerColumn[bool] = False
    """Mark times of day, all or those named, as adjusted to UTC (Arrow's times do not say)."""
    store_schema: bool | Literal["auto"] = "auto"
    """Store the Arrow schema of the data (``ARROW:schema``), from which readers restore what Parquet cannot say: time
    zones, durations, dictionaries, large and view types, extension types, field metadata. ``"auto"``: when, and only
    when, the file's own schema would lose something of it."""
    field_ids: PerColumn[int] = field(default_factory=dict)
    """Field ids by column (name or path); those in field metadata (``PARQUET:field_id``) need no option."""
    column_key_value_metadata: PerColumn[KeyValues] = field(default_factory=dict)
    """Key-value metadata of column chunks, by column."""

    bloom_filters: bool | Names | PerColumn[Bloom] = False
    """``True`` (every column that can use one), names, or ``{name: rate}``."""
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None = None
    """``{name: {"fpp", "ndv", "bytes", "max_bytes", "power_of_two"} | "auto"}``, or ``"auto"`` for all columns."""
    bloom_filter_layout: Literal["footer", "row_group"] = "footer"
    """``"footer"``: all filters after the last row group. ``"row_group"``: each row group's right after it."""

    sort_by: SortOrder = ()
    """Sort the rows: a name or a list of names or ``(name, "ascending" | "descending"[, nulls_first])``. A path in the
    place of a name is a tuple: ``[("a", "b.c")]``, ``[(("a", "b.c"), "descending")]``."""
    sort_scope: Literal["input", "row_group"] = "input"
    """``"input"`` sorts all rows together (they are held in memory until close); ``"row_group"`` each row group."""
    sorting_columns: SortOrder = ()
    """The order that the rows already have, in the form of ``sort_by``: checked, then recorded."""

    key_value_metadata: KeyValues = field(default_factory=dict)
    """Key-value metadata of the file; :meth:`pyparq.ParquetWriter.add_key_value_metadata` adds to it."""
    encryption: EncryptionProperties | None = None
    """Keys and what to encrypt with them: :class:`pyparq.EncryptionProperties`."""
    use_threads: bool = True
    """Encode column chunks side by side."""
    fsync: bool = False
    """Force a local file to the disk before it takes its name."""

    @classmethod
    def make(cls, options: Mapping[str, Any]) -> Self:
        """From keyword arguments; :class:`OptionError` names an unknown one and what it may have meant."""
        given: dict[str, Any] = {}
        _check_known(
            "write",
            options,
            [*(f.name for f in fields(cls)), *_ALIASES],
            ("schema", "storage_options"),
            _NOT_FOR_WRITING,
        )
        for name, value in options.items():
            real = _ALIASES.get(name, name)
            if real in given:
                raise OptionError(f"{name!r} and {real!r} are the same option; give one of them")
            given[real] = value
        return cls(**given)

    def __post_init__(self) -> None:
        for name in ("row_group_size", "row_group_bytes", "data_page_size", "max_rows_per_page"):
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
                raise OptionError(f"{name} must be a dict by column, not {getattr(self, name)!r}")
        if not isinstance(self.bloom_filter_options, (Mapping, str, type(None))):
            raise OptionError(
                f"bloom_filter_options must be a dict by column or 'auto', not {self.bloom_filter_options!r}"
            )
        if sort_keys(self.sort_by) and sort_keys(self.sorting_columns):
            raise OptionError("give sort_by (which records the order) or sorting_columns, not both")
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
    "use_arrow_schema",
)  # fmt: skip
_NO_DATASETS = (
    "folders of many files are not written yet: split the rows and call write_table for each part, with a path such as "
    "'city=Lima/part-0.parquet'"
)
_NOT_FOR_WRITING = {
    "allow_truncated_timestamps": "nothing is ever truncated: leave it out",
    "basename_template": _NO_DATASETS,
    "coerce_timestamps": "give a schema with the unit, timestamp[us] say",
    "columns": "every column of the data is written: select them before, or name them in schema",
    "encryption_properties": "keys go into encryption=pyparq.EncryptionProperties(...)",
    "filesystem": "give a URL or an open file as the target",
    "engine": "pyparq is the engine: leave it out",
    "existing_data_behavior": _NO_DATASETS,
    "flavor": "names are kept as they are: leave it out",
    "mode": "a file that is there is replaced when the new one is complete: leave it out",
    "partition_by": _NO_DATASETS,
    "partition_cols": _NO_DATASETS,
    "partitioning": _NO_DATASETS,
    "use_byte_stream_split": "name columns in column_encoding={'x': 'BYTE_STREAM_SPLIT'}",
    "use_compliant_nested_type": "lists always have the standard form: leave it out",
    "version": "every type is written as it is: leave it out",
    "write_batch_size": "pages are cut by data_page_size and max_rows_per_page",
}
_OF_A_SCAN = "it is not for opening a file: give it to read() or scan() of the open file, or to read_table()"
_NOT_FOR_READING = {
    "buffer_size": "only the bytes that are needed are read: leave it out",
    "columns": _OF_A_SCAN,
    "decryption_properties": "keys go into decryption=pyparq.DecryptionProperties(...)",
    "engine": "pyparq is the engine: leave it out",
    "filesystem": "give a URL or an open file as the source",
    "filters": _OF_A_SCAN,
    "limit": _OF_A_SCAN,
    "memory_map": "only the bytes that are needed are read: leave it out",
    "page_checksum_verification": "it is called verify_checksums, and on by default",
    "partitioning": "a source is one file: read each file of a folder by itself",
    "pre_buffer": "near ranges are always read together: leave it out",
    "row_groups": _OF_A_SCAN,
    "rows": _OF_A_SCAN,
    "schema": "columns come in the file's own types: leave it out",
    "thrift_container_size_limit": "caps are given in limits=pyparq.Limits(...)",
    "thrift_string_size_limit": "caps are given in limits=pyparq.Limits(...)",
    "use_pandas_metadata": "to_pandas() heeds it always: leave it out",
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
        raise OptionError(f"a sort order is a list of names or (name, direction) tuples, not {given!r}")
    keys = tuple(_sort_key(item) for item in given)
    names = [key.name for key in keys]
    if len(set(names)) != len(names):
        raise OptionError(f"a column stands twice in the sort order {names}")
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
        f"sort key {item!r}: give a name, (name, 'ascending' | 'descending'), or with 'nulls_first' as a third"
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
    raise OptionError(f"a Bloom filter is asked for by True, a rate, 'auto' or a dict of options, not {given!r}")


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
    more = " or a dict of booleans" if per_column else ""
    raise OptionError(f"{name} must be True, False, a list of names{more}, not {value!r}")


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
    """Everything that shapes a read. Sizes are bytes."""

    verify_checksums: bool = True
    """Check page CRCs where the file has them (but for pages under AES_GCM_V1, whose tag proves more)."""
    tail_size: int | None = None
    """The one speculative read at the end of the file, which holds most footers; ``None``: 16 KiB on local files, where
    a second read costs microseconds, 48 KiB on remote ones."""
    coalesce_gap: int | None = None
    """Ranges with at most this many bytes between them become one request; ``None``: 4 KiB on local files, 1 MiB on
    remote ones."""
    use_statistics: bool = True
    """Prune row groups by the statistics of their column chunks."""
    use_bloom_filters: bool = True
    """Prune row groups by Bloom filters."""
    use_dictionaries: bool = True
    """Prune row groups by dictionary pages."""
    use_page_index: bool = True
    """Prune pages by ColumnIndex, and read those that are left by OffsetIndex."""
    use_threads: bool = True
    """Read and decode column chunks side by side."""
    coerce_int96_timestamp_unit: TimeUnit = "ns"
    """Unit in which INT96 timestamps are read: ``s ms us ns``. Nanoseconds in 64 bits reach from 1677 to 2262 only;
    instants beyond wrap around."""
    read_dictionary: Names = ()
    """BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays, without spelling their values out."""
    use_arrow_schema: bool = True
    """Restore what ``ARROW:schema`` says beyond the file's own schema. It is a hint: what does not fit is ignored."""
    binary_columns: Names = ()
    """Text columns (dotted paths; a group's path for all text below it) to read as binary: their bytes are not
    checked to be UTF-8, and filters compare them with bytes."""
    limits: Limits = DEFAULT_LIMITS
    """What a file may make the reader allocate, nest or count, at most: :class:`pyparq.Limits`."""
    decryption: DecryptionProperties | None = None
    """Keys of an encrypted file: :class:`pyparq.DecryptionProperties`."""

    def __post_init__(self) -> None:
        if self.tail_size is not None:
            _check_int("tail_size", self.tail_size, 8)
        if self.coalesce_gap is not None:
            _check_int("coalesce_gap", self.coalesce_gap, 0)
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
