"""Options: frozen, and checked when they are made. :mod:`pyparq.write.column_plans` applies them to a schema.

Each option is declared once: type, default, check and help. Everything else follows from that: ``help()``, the page
``docs/api.md`` and the types of keyword arguments (``pyparq/arguments.py``), and Spark's text (``is_list``).
"""

# ruff: noqa: RUF009  (``option`` makes a field)

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from pyparq import option_checks as checks
from pyparq.errors import OptionError
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.option_checks import GIB, check_given, choice, flag, methods_told, option, refuse_unknown, whole
from pyparq.option_values import (
    Bloom,
    Compression,
    DecimalStorage,
    Encoding,
    FloatOrder,
    Int96Unit,
    KeyValues,
    Shredding,
    SortOrder,
    check_sort_order,
)

if TYPE_CHECKING:
    from pyparq.column_names import Names, PerColumn
    from pyparq.encryption.properties import DecryptionProperties, EncryptionProperties

methods_told(Limits)  # it stands below this module


@methods_told
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options for writing a file. Sizes are in bytes.

    Options that differ by column take a dict. Its keys are columns: the path of a leaf column, dotted or as a tuple of
    names, or the path of a group, which means all leaf columns below it. Columns that are not named keep the default.

    Example::

        pyparq.write_table(
            {"id": [1, 2, 3], "name": ["a", "b", None]}, "some.parquet",
            compression={"name": "zstd"}, row_group_size=100_000, max_rows_per_page=5_000, bloom_filters={"id": 0.001},
        )
    """

    # fmt: off
    compression: Compression | PerColumn[Compression | None] | None = option("snappy", help="""
        Codec for all columns, or a dict by column: ``none``, ``snappy``, ``gzip``, ``zstd``, ``brotli`` or
        ``lz4_raw``.""")
    compression_level: int | PerColumn[int | None] | None = option(None, help="""
        Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or a dict by column. The defaults are 6 for gzip, 4
        for brotli and 3 for zstd.""")
    row_group_size: int = option(1 << 20, whole(1), help="Maximum number of rows per row group.")
    row_group_bytes: int = option(512 << 20, whole(1), help="""
        Maximum size of a row group in memory, in bytes. A larger single row still gets a row group.""")
    data_page_size: int = option(1 << 20, whole(1, GIB), help="""
        Maximum size of a data page before compression, in bytes. A larger single row still gets a page.""")
    max_rows_per_page: int = option(20_000, whole(1), help="Maximum number of rows per data page.")
    data_page_version: Literal["1.0", "2.0"] = option("1.0", choice("1.0", "2.0"), help="""
        Format of data pages: ``"1.0"`` or ``"2.0"``.""")
    use_dictionary: bool | Names | PerColumn[bool] = option(True, checks.switch, help="""
        Columns to try dictionary encoding on: all, the named ones, or a dict by column. The dictionary is kept
        where it makes the pages smaller.""")
    dictionary_pagesize_limit: int = option(1 << 20, whole(0, GIB), help="""
        Maximum size of a column chunk's dictionary, in bytes. When it is full, the remaining values are written in
        the encoding used without a dictionary.""")
    column_encoding: Encoding | PerColumn[Encoding | None] | None = option(None, help="""
        Encoding for all columns, or a dict by column. ``None`` and ``"auto"`` let pyparq choose: where no
        dictionary is kept, the values of a column's first page decide between PLAIN and the encodings that all
        common readers know (docs/encodings.md). ``RLE`` is for booleans. ``RLE_DICTIONARY`` keeps the dictionary
        even where it makes the file larger. When the dictionary is full, the remaining values are written as PLAIN.""")
    write_statistics: bool | Names = option(True, checks.switch_by_name, help="""
        Write statistics of column chunks, for all columns or the named ones. Columns without them have no bounds in
        the column index either.""")
    write_size_statistics: bool = option(True, flag, help="""
        Write size statistics for column chunks and pages: the bytes of their text and binary values, and counts of
        their levels. Readers use them to plan memory.""")
    write_page_index: bool = option(True, flag, help="""
        Write a ColumnIndex and an OffsetIndex for every column chunk. Readers use them to skip pages.""")
    column_index_truncate_length: int = option(64, whole(0), help="""
        Maximum bytes of a string or binary bound in a ColumnIndex. Longer bounds are truncated; 0 never truncates.""")
    statistics_truncate_length: int = option(64, whole(0), help="""
        Maximum bytes of a string or binary bound in the statistics of a column chunk; 0 never truncates.""")
    write_page_checksum: bool = option(True, flag, help="Write a CRC checksum of the page into every page header.")
    float_order: FloatOrder | PerColumn[FloatOrder] = option("TYPE_ORDER", help="""
        Sort order of the bounds of float columns. ``"IEEE_754_TOTAL_ORDER"`` tells -0.0 from 0.0 and one NaN from
        another, but many readers do not know it and then ignore the bounds.""")
    int96_timestamps: bool | Names | PerColumn[bool] = option(False, checks.switch, help="""
        Write timestamps as the deprecated INT96: all of them, the named ones, or a dict by column. pyarrow's name
        ``use_deprecated_int96_timestamps`` works too.""")
    decimal_storage: DecimalStorage | PerColumn[DecimalStorage] = option("smallest", help="""
        Physical type of decimals: ``"smallest"`` (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision needs),
        ``"fixed"`` (always FIXED_LEN_BYTE_ARRAY) or ``"binary"`` (BYTE_ARRAY). Spark 4.3 cannot read ``"binary"``
        decimals of up to 18 digits.""")
    write_time_adjusted_to_utc: bool | Names | PerColumn[bool] = option(False, checks.switch, help="""
        Mark times of day as adjusted to UTC: all of them, the named ones, or a dict by column. Arrow's time types
        do not record this.""")
    store_schema: bool | Literal["auto"] = option("auto", checks.flag_or_auto, help="""
        Store the Arrow schema of the data (``ARROW:schema``). Readers restore from it what Parquet types cannot
        express: time zones, durations, dictionaries, large and view types, extension types, field metadata.
        ``"auto"`` stores it only when the Parquet schema alone would lose something.""")
    format_version: Literal[1, 2] = option(1, whole(1, 2), help="""
        The version number in the footer. It changes nothing else. pyarrow writes 2.""")
    shredding: Shredding = option(None, checks.by_column_or_auto, help="""
        Parts of Variants to store in columns of their own, which queries can read and prune by: ``{"v": {"user":
        {"id": "int64"}, "tags": ["string"]}}``. A dict is an object with these fields, a list an array of such
        elements, ``None`` a value of any type; types are those of :func:`pyparq.schema`. A Variant in a struct,
        list or map is named by its path in the file: ``"s.v"``, ``"l.list.element"``, ``"m.key_value.value"``.
        ``"auto"``, for a Variant or for all, takes what most of the first 1000 values have. What does not fit a
        column stays in the Variant, and reading puts all together again. A whole number or decimal goes to a column
        of another such type where it has the same value.""")
    field_ids: PerColumn[int] = option(dict, checks.by_column, help="""
        Field ids by column (name or path). Field ids in field metadata (``PARQUET:field_id``) are written without
        this option.""")
    column_key_value_metadata: PerColumn[KeyValues] = option(dict, checks.by_column, help="""
        Key-value metadata of column chunks: ``{column: {key: value}}``.""")
    bloom_filters: bool | Names | PerColumn[Bloom] = option(False, checks.switch_or_values, is_list=True, help="""
        Columns to write Bloom filters for: ``True`` (every column that can use one), a list of names, or a dict of
        name to false-positive rate.""")
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None = option(None, checks.by_column_or_auto, help="""
        Options of the filters by column: a :class:`BloomOptions`, a dict of its fields, or ``"auto"``. ``"auto"``
        in place of the dict is for all columns.""")
    bloom_filter_layout: Literal["footer", "row_group"] = option("footer", choice("footer", "row_group"), help="""
        Where the filters go. ``"footer"``: all after the last row group. ``"row_group"``: directly after their row
        group.""")
    sort_by: SortOrder = option((), check_sort_order, is_list=True, help="""
        Sort the rows by a column or a list of columns. A column is a name or a tuple ``(name, "ascending" |
        "descending"[, nulls_first])``. A name may be a path, as a tuple: ``[("a", "b.c")]``, ``[(("a", "b.c"),
        "descending")]``.""")
    sort_scope: Literal["input", "row_group"] = option("input", choice("input", "row_group"), help="""
        ``"input"`` sorts all rows together, when the file is closed. ``"row_group"`` sorts each row group by
        itself.""")
    sort_memory: int = option(4 << 30, whole(1), help="""
        Memory for sorting the whole input, in bytes, approximately. Data larger than a quarter of it is sorted in
        parts that wait in temporary files.""")
    sorting_columns: SortOrder = option((), check_sort_order, help="""
        The order that the rows already have, in the form of ``sort_by``. It is checked and recorded in the file.""")
    key_value_metadata: KeyValues = option(dict, help="""
        Key-value metadata of the file. :meth:`pyparq.ParquetWriter.add_key_value_metadata` adds more.""")
    encryption: EncryptionProperties | None = option(None, help="""
        Encryption keys, and the columns they encrypt: :class:`pyparq.EncryptionProperties`.""")
    use_threads: bool = option(True, flag, help="Encode column chunks in parallel.")
    fsync: bool = option(False, flag, help="Flush a local file to disk before it gets its final name.")
    # fmt: on

    @classmethod
    def make(cls, options: Mapping[str, Any], hints: Mapping[str, str] = checks.NOT_FOR_WRITING) -> Self:
        """From keyword arguments; :class:`OptionError` names an unknown one and what it may have meant."""
        if not options:
            return cast(Self, _defaults(cls))  # type: ignore[arg-type]
        return cls(**refuse_unknown(options, cls.__dataclass_fields__, hints))

    def __post_init__(self) -> None:
        check_given(self)
        if self.sort_by and self.sorting_columns:
            raise OptionError("give either sort_by or sorting_columns, not both: sort_by records the order too")


@methods_told
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a file. Sizes are in bytes.

    Example::

        table = pyparq.read_table("flights.parquet", read_dictionary=["dest"], use_threads=False)
    """

    # fmt: off
    verify_checksums: bool = option(True, flag, help="""
        Check the CRC of pages that have one. Pages encrypted with AES_GCM_V1 are not checked: their authentication
        tag is stronger.""")
    tail_size: int | None = option(None, whole(8), help="""
        Size of the first read, at the end of the file. It is meant to contain the whole footer; a longer footer
        needs a second read. ``None`` reads 16 KiB of a local file (all of it up to 128 KiB), 128 KiB of a remote
        one, and 48 KiB of each remote file of a dataset.""")
    coalesce_gap: int | None = option(None, whole(0), help="""
        Byte ranges with at most this many bytes between them are read in one request. ``None`` means 4 KiB for
        local files and 1 MiB for remote ones.""")
    prefetch_bytes: int = option(64 << 20, whole(0), help="""
        Maximum number of bytes of a remote file that are requested before they are needed, while other bytes are
        decoded. 0 requests them when they are needed. Local files are not prefetched.""")
    max_requests: int | None = option(None, whole(1), help="""
        Maximum number of requests to a remote store that one read makes at the same time; of a dataset, the number
        of files that are read at the same time. ``None`` means 64 for HTTP and obstore (of a dataset 128 files),
        and 16 for others, whose requests take the client more time. :func:`pyparq.set_io_thread_count` bounds all
        reads of a process together.""")
    retries: int = option(4, whole(0), help="""
        How often a request to a remote store is repeated when it fails for the moment: the answers 408, 429, 500,
        502, 503 and 504, connections that fail or break, no answer in time, bodies shorter than promised. At most
        once for S3 and obstore, whose libraries do that themselves.""")
    retry_wait: float = option(0.1, checks.seconds, help="""
        Seconds before a request is repeated for the first time; then twice as long each time, and at most 20. A
        random part, up to half, is left out. ``Retry-After`` of the server counts if it is longer. After 60 seconds
        in all, nothing is repeated.""")
    use_statistics: bool = option(True, flag, help="""
        Skip row groups in which the statistics of a column chunk rule out a match with the filter.""")
    use_bloom_filters: bool = option(True, flag, help="""
        Skip row groups in which a Bloom filter rules out a match with the filter.""")
    use_dictionaries: bool = option(True, flag, help="""
        Skip row groups in which a dictionary page rules out a match with the filter.""")
    use_page_index: bool = option(True, flag, help="""
        Skip pages in which the ColumnIndex rules out a match with the filter, and find the others by the
        OffsetIndex.""")
    use_threads: bool = option(True, flag, help="Read and decode column chunks in parallel.")
    coerce_int96_timestamp_unit: Int96Unit | None = option(None, choice(*get_args(Int96Unit)), help="""
        Unit in which INT96 timestamps are read: ``s``, ``ms``, ``us`` or ``ns``. By default ``us`` for files that
        Spark wrote, as Spark has no finer unit, and ``ns`` for all others. Nanoseconds in 64 bits only cover the
        years 1677 to 2262. One outside of them is an error (``out_of_range``): ask for ``us``. ``auto`` means
        ``ns`` where all instants of the file or dataset fit, and ``us`` otherwise. Statistics answer that if they
        have the order of INT96, otherwise the values are read when the file or dataset is opened. ``bytes`` gives
        the 12 bytes as they are stored; tables that have them are written as INT96 again, byte by byte.""")
    int96_adjusted_to_utc: bool = option(False, flag, help="""
        Read INT96 timestamps as instants (timestamps in UTC), which is what Spark, Hive and Impala mean by them.
        Otherwise they have no time zone, as in pyarrow.""")
    out_of_range: Literal["raise", "null", "widen"] = option("raise", choice("raise", "null", "widen"), help="""
        What becomes of stored values that their type does not allow: decimals with more digits than their
        precision, integers of 8 and 16 bits stored as larger numbers, INT96 timestamps outside the years of
        ``coerce_int96_timestamp_unit``. ``"raise"``: reading one is an error. ``"null"``: they are nulls, also for
        filters. In a column that may not have nulls they are an error all the same. ``"widen"``: such columns have
        the type that holds all that is stored: decimals as many digits as their storage, such integers 32 bits.
        INT96 has no wider type: an error.""")
    read_dictionary: Names = option((), checks.check_names, help="""
        BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays instead of plain arrays.""")
    use_arrow_schema: bool = option(True, flag, help="""
        Restore Arrow types and metadata from a stored Arrow schema (``ARROW:schema``). Parts of it that do not fit
        the Parquet schema are ignored.""")
    variants: Literal["whole", "stored"] = option("whole", choice("whole", "stored"), help="""
        ``"whole"``: a shredded Variant, parts of which have columns of their own, is put together and read as any
        other Variant. ``"stored"``: it is read as the struct of its columns.""")
    binary_columns: Names = option((), checks.check_names, help="""
        Text columns to read as binary (dotted paths; the path of a group means all text columns below it). Their
        bytes are not checked to be UTF-8, and filters compare them with bytes.""")
    case_sensitive: bool = option(True, flag, help="""
        ``False`` finds columns without regard to case. Of a dataset, ``Id`` in one file and ``id`` in another are
        then one column, and so are folders ``M=1`` and ``m=2``; the first spelling is shown, or that of
        ``schema=``. A name that fits two columns of a file is an error where it is asked for; a tuple with the
        exact spelling tells them apart.""")
    limits: Limits = option(DEFAULT_LIMITS, checks.instance(Limits, "pyparq.Limits"), help="""
        Limits on the memory, nesting and counts that a file may demand: :class:`pyparq.Limits`.""")
    decryption: DecryptionProperties | None = option(None, help="""
        Keys to decrypt an encrypted file: :class:`pyparq.DecryptionProperties`.""")
    # fmt: on

    def __post_init__(self) -> None:
        check_given(self)

    @classmethod
    def make(cls, options: Mapping[str, Any]) -> Self:
        """From keyword arguments; :class:`OptionError` names an unknown one and what it may have meant."""
        if not options:
            return cast(Self, _defaults(cls))  # type: ignore[arg-type]
        return cls(**cls.check_known(options))

    @classmethod
    def check_known(cls, options: Mapping[str, Any], parameters: Sequence[str] = (), whose: str = "") -> dict[str, Any]:
        """The options by our names; :class:`OptionError` for a name that is no option. ``parameters`` of the function
        that was called may have been meant too."""
        hints = checks.NOT_FOR_READING
        return refuse_unknown(options, cls.__dataclass_fields__, hints, parameters, whose) if options else {}


@cache
def _defaults(options: Any) -> Any:
    """The options where all have their defaults, made once."""
    return options()


# ---- help()


def with_options(doc: str | None, options: Any) -> str | None:
    """A docstring and the options that go with it; ``None`` where Python leaves docstrings out."""
    return None if doc is None else f"{cleandoc(doc)}\n\nOptions, each with its default:\n\n{_listed(options)}"


@cache
def _listed(options: Any) -> str:
    """Each option with its default, and what it means in lines of 100 letters."""
    defaults = _defaults(options)
    found = [(f.name, getattr(defaults, f.name), f.metadata["help"]) for f in fields(options)]
    return "".join(f"{name} = {_shown(value)}\n{_in_lines(said)}" for name, value, said in found)


def _shown(value: Any) -> str:
    """A default as Python would write it."""
    if isinstance(value, Limits):
        return "Limits()"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value).replace("'", '"')


def _in_lines(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:pyparq\.)?([^`]+)`", r"\1", text).replace("`", "")
    return re.sub(r"(.{1,95})(?: |$)", r"    \1\n", plain)
