"""What ``help()`` says of options. Made from ``pyparq/options.py`` by ``python tests/api_page.py``."""

from __future__ import annotations

from inspect import cleandoc


def with_options(doc: str | None, options: str) -> str | None:
    """A docstring and the options that go with it; ``None`` where Python leaves docstrings out."""
    return None if doc is None else f"{cleandoc(doc)}\n\n{options}"


READ = """\
Options, each with its default:

verify_checksums = True
    Check page CRCs where the file has them (but for pages under AES_GCM_V1, whose tag proves more).
tail_size = None
    The one speculative read at the end of the file, which holds most footers; None: 16 KiB on local
    files, where a second read costs microseconds, 48 KiB on remote ones.
coalesce_gap = None
    Ranges with at most this many bytes between them become one request; None: 4 KiB on local files,
    1 MiB on remote ones.
use_statistics = True
    Prune row groups by the statistics of their column chunks.
use_bloom_filters = True
    Prune row groups by Bloom filters.
use_dictionaries = True
    Prune row groups by dictionary pages.
use_page_index = True
    Prune pages by ColumnIndex, and read those that are left by OffsetIndex.
use_threads = True
    Read and decode column chunks side by side.
coerce_int96_timestamp_unit = "ns"
    Unit in which INT96 timestamps are read: s ms us ns. Nanoseconds in 64 bits reach from 1677 to
    2262 only; instants beyond wrap around.
read_dictionary = ()
    BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays, without spelling their
    values out.
use_arrow_schema = True
    Restore what ARROW:schema says beyond the file's own schema. It is a hint: what does not fit is
    ignored.
binary_columns = ()
    Text columns (dotted paths; a group's path for all text below it) to read as binary: their bytes
    are not checked to be UTF-8, and filters compare them with bytes.
limits = Limits()
    What a file may make the reader allocate, nest or count, at most: Limits.
decryption = None
    Keys of an encrypted file: DecryptionProperties.
"""

WRITE = """\
Options, each with its default:

compression = "snappy"
    none snappy gzip zstd brotli lz4_raw, or per column.
compression_level = None
    Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or per column; otherwise 6, 4 and 3.
row_group_size = 1_048_576
    Rows per row group, at most.
row_group_bytes = 536_870_912
    Bytes per row group as it is in memory, at most (one row is always written).
data_page_size = 1_048_576
    Bytes per data page before compression, at most (one row is always written).
max_rows_per_page = 20_000
    Rows per data page, at most.
data_page_version = "1.0"
    "1.0" or "2.0".
use_dictionary = True
    Try a dictionary on all columns, on those named, or per column. It is kept where it makes pages
    smaller.
dictionary_pagesize_limit = 1_048_576
    Bytes of a column chunk's dictionary; values after the one that would exceed it get the other
    encoding.
column_encoding = None
    An encoding in place of the choice, for all columns or per column; "auto" leaves the choice.
    Where no dictionary is kept, the values of a column's first page decide between PLAIN and the
    encodings that all common readers know (docs/encodings.md). RLE is for booleans. RLE_DICTIONARY
    keeps the dictionary also where it does not pay, and goes on in PLAIN where it is full.
write_statistics = True
    Statistics of column chunks, for all columns or those named (bounds in the column index go with
    them).
write_size_statistics = True
    Bytes of text and counts of levels, of chunks and pages: readers plan their memory by them.
write_page_index = True
    A ColumnIndex and an OffsetIndex for every column chunk: with them a reader skips pages.
column_index_truncate_length = 64
    Longest bound of a string or binary page in a ColumnIndex; 0 does not truncate.
statistics_truncate_length = 64
    The same for the statistics of a column chunk.
write_page_checksum = True
    A CRC in every page header.
float_order = "TYPE_ORDER"
    Order of the bounds of float columns: "TYPE_ORDER", or "IEEE_754_TOTAL_ORDER", which tells the
    zeros and NaNs apart but which many readers do not know (they then ignore the bounds).
int96_timestamps = False
    Write timestamps, all or those named, as the deprecated INT96 (pyarrow:
    use_deprecated_int96_timestamps).
decimal_storage = "smallest"
    Physical type of decimals: "smallest" (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision
    needs), "fixed" (always FIXED_LEN_BYTE_ARRAY) or "binary" (BYTE_ARRAY; Spark 4.3 fails on those
    up to 18 digits).
write_time_adjusted_to_utc = False
    Mark times of day, all or those named, as adjusted to UTC (Arrow's times do not say).
store_schema = "auto"
    Store the Arrow schema of the data (ARROW:schema), from which readers restore what Parquet
    cannot say: time zones, durations, dictionaries, large and view types, extension types, field
    metadata. "auto": when, and only when, the file's own schema would lose something of it.
field_ids = {}
    Field ids by column (name or path); those in field metadata (PARQUET:field_id) need no option.
column_key_value_metadata = {}
    Key-value metadata of column chunks, by column.
bloom_filters = False
    True (every column that can use one), names, or {name: rate}.
bloom_filter_options = None
    {name: {"fpp", "ndv", "bytes", "max_bytes", "power_of_two"} | "auto"}, or "auto" for all
    columns.
bloom_filter_layout = "footer"
    "footer": all filters after the last row group. "row_group": each row group's right after it.
sort_by = ()
    Sort the rows: a name or a list of names or (name, "ascending" | "descending"[, nulls_first]).
sort_scope = "input"
    "input" sorts all rows together (they are held in memory until close); "row_group" each row
    group.
sorting_columns = ()
    The order that the rows already have, in the form of sort_by: checked, then recorded.
key_value_metadata = {}
    Key-value metadata of the file; ParquetWriter.add_key_value_metadata adds to it.
encryption = None
    Keys and what to encrypt with them: EncryptionProperties.
use_threads = True
    Encode column chunks side by side.
fsync = False
    Force a local file to the disk before it takes its name.
"""
