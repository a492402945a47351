"""What ``help()`` says of options. Made from the classes of options by ``tests/support/api_page.py``."""

from __future__ import annotations

from inspect import cleandoc


def with_options(doc: str | None, options: str) -> str | None:
    """A docstring and the options that go with it; ``None`` where Python leaves docstrings out."""
    return None if doc is None else f"{cleandoc(doc)}\n\n{options}"


READ = """\
Options, each with its default:

verify_checksums = True
    Check the CRC of pages that have one. Pages encrypted with AES_GCM_V1 are not checked: their
    authentication tag is stronger.
tail_size = None
    Size of the first read, at the end of the file. It is meant to contain the whole footer; a
    longer footer needs a second read. None reads 16 KiB of a local file (all of one that has no
    more than 128 KiB), 128 KiB of a remote one, and 48 KiB of each remote file of a dataset.
coalesce_gap = None
    Byte ranges with at most this many bytes between them are read in one request. None means 4 KiB
    for local files and 1 MiB for remote ones.
prefetch_bytes = 67_108_864
    Maximum number of bytes of a remote file that are requested before they are needed, while other
    bytes are decoded. 0 requests them when they are needed. Local files are not prefetched.
max_requests = None
    Maximum number of requests to a remote store that one read makes at the same time; of a dataset,
    the number of files that are asked at the same time. None means 64 for HTTP and obstore (of a
    dataset 128 files), and 16 for others, whose requests take the client more time.
    set_io_thread_count bounds all reads of a process together.
retries = 4
    How often a request to a remote store is made again when it fails for the moment: the answers
    408, 429, 500, 502, 503 and 504, connections that fail or break, no answer in time, bodies
    shorter than promised. At most once for S3 and obstore, whose libraries do that themselves. 0
    makes none again.
retry_wait = 0.1
    Seconds before a request is made again for the first time; then twice as long each time, and at
    most 20. Chance takes up to half of it away. Retry-After of the server counts if it is longer.
    After 60 seconds in all, nothing is made again.
use_statistics = True
    Skip row groups in which the statistics of a column chunk rule out a match with the filter.
use_bloom_filters = True
    Skip row groups in which a Bloom filter rules out a match with the filter.
use_dictionaries = True
    Skip row groups in which a dictionary page rules out a match with the filter.
use_page_index = True
    Skip pages in which the ColumnIndex rules out a match with the filter, and find the others by
    the OffsetIndex.
use_threads = True
    Read and decode column chunks in parallel.
coerce_int96_timestamp_unit = None
    Unit in which INT96 timestamps are read: s, ms, us or ns. By default us for files that Spark
    wrote, as Spark has no finer unit, and ns for all others. Nanoseconds in 64 bits only cover the
    years 1677 to 2262. One outside of them is an error (out_of_range): ask for us. auto means ns
    where all instants of the file or dataset fit, and us otherwise. Statistics answer that if they
    have the order of INT96, otherwise the values are read when the file or dataset is opened. bytes
    gives the 12 bytes as they are stored; tables that have them are written as INT96 again, byte by
    byte.
int96_adjusted_to_utc = False
    Read INT96 timestamps as instants (timestamps in UTC), which is what Spark, Hive and Impala mean
    by them. Otherwise they have no time zone, as in pyarrow.
out_of_range = "raise"
    What becomes of stored values that their type does not allow: decimals with more digits than
    their precision, integers of 8 and 16 bits stored as larger numbers, INT96 timestamps outside
    the years of coerce_int96_timestamp_unit. "raise": reading one is an error. "null": they are
    nulls, also for filters. In a column that may not have nulls they are an error all the same.
    "widen": such columns have the type that holds all that is stored: decimals as many digits as
    their storage, such integers 32 bits. INT96 has no wider type: an error.
read_dictionary = ()
    BYTE_ARRAY columns (dotted paths) to return as Arrow dictionary arrays instead of plain arrays.
use_arrow_schema = True
    Restore Arrow types and metadata from a stored Arrow schema (ARROW:schema). Parts of it that do
    not fit the Parquet schema are ignored.
variants = "whole"
    "whole": a shredded Variant, parts of which have columns of their own, is put together and read
    as any other Variant. "stored": it is read as the struct of its columns.
binary_columns = ()
    Text columns to read as binary (dotted paths; the path of a group means all text columns below
    it). Their bytes are not checked to be UTF-8, and filters compare them with bytes.
case_sensitive = True
    False finds columns without regard to case. Of a dataset, Id in one file and id in another are
    then one column, and so are folders M=1 and m=2; the first spelling is shown, or that of
    schema=. A name that fits two columns of a file is an error where it is asked for; a tuple with
    the exact spelling tells them apart.
limits = Limits()
    Limits on the memory, nesting and counts that a file may demand: Limits.
decryption = None
    Keys to decrypt an encrypted file: DecryptionProperties.
"""

WRITE = """\
Options, each with its default:

compression = "snappy"
    Codec for all columns, or a dict by column: none, snappy, gzip, zstd, brotli or lz4_raw.
compression_level = None
    Level of gzip (0-9), brotli (0-11) or zstd (up to 22), or a dict by column. The defaults are 6
    for gzip, 4 for brotli and 3 for zstd.
row_group_size = 1_048_576
    Maximum number of rows per row group.
row_group_bytes = 536_870_912
    Maximum size of a row group in memory, in bytes. A larger single row still gets a row group.
data_page_size = 1_048_576
    Maximum size of a data page before compression, in bytes. A larger single row still gets a page.
max_rows_per_page = 20_000
    Maximum number of rows per data page.
data_page_version = "1.0"
    Format of data pages: "1.0" or "2.0".
use_dictionary = True
    Columns to try dictionary encoding on: all, the named ones, or a dict by column. The dictionary
    is kept where it makes the pages smaller.
dictionary_pagesize_limit = 1_048_576
    Maximum size of a column chunk's dictionary, in bytes. When it is full, the remaining values are
    written in the encoding used without a dictionary.
column_encoding = None
    Encoding for all columns, or a dict by column. None and "auto" let pyparq choose: where no
    dictionary is kept, the values of a column's first page decide between PLAIN and the encodings
    that all common readers know (docs/encodings.md). RLE is for booleans. RLE_DICTIONARY keeps the
    dictionary even where it makes the file larger. When the dictionary is full, the remaining
    values are written as PLAIN.
write_statistics = True
    Write statistics of column chunks, for all columns or the named ones. Columns without them have
    no bounds in the column index either.
write_size_statistics = True
    Write size statistics for column chunks and pages: the bytes of their text and binary values,
    and counts of their levels. Readers use them to plan memory.
write_page_index = True
    Write a ColumnIndex and an OffsetIndex for every column chunk. Readers use them to skip pages.
column_index_truncate_length = 64
    Maximum bytes of a string or binary bound in a ColumnIndex. Longer bounds are truncated; 0 never
    truncates.
statistics_truncate_length = 64
    Maximum bytes of a string or binary bound in the statistics of a column chunk; 0 never
    truncates.
write_page_checksum = True
    Write a CRC checksum of the page into every page header.
float_order = "TYPE_ORDER"
    Sort order of the bounds of float columns. "IEEE_754_TOTAL_ORDER" tells -0.0 from 0.0 and one
    NaN from another, but many readers do not know it and then ignore the bounds.
int96_timestamps = False
    Write timestamps as the deprecated INT96: all of them, the named ones, or a dict by column.
    pyarrow's name use_deprecated_int96_timestamps works too.
decimal_storage = "smallest"
    Physical type of decimals: "smallest" (INT32, INT64 or FIXED_LEN_BYTE_ARRAY, as the precision
    needs), "fixed" (always FIXED_LEN_BYTE_ARRAY) or "binary" (BYTE_ARRAY). Spark 4.3 cannot read
    "binary" decimals of up to 18 digits.
write_time_adjusted_to_utc = False
    Mark times of day as adjusted to UTC: all of them, the named ones, or a dict by column. Arrow's
    time types do not record this.
store_schema = "auto"
    Store the Arrow schema of the data (ARROW:schema). Readers restore from it what Parquet types
    cannot express: time zones, durations, dictionaries, large and view types, extension types,
    field metadata. "auto" stores it only when the Parquet schema alone would lose something.
shredding = None
    Parts of Variants to store in columns of their own, which queries can read and prune by: {"v":
    {"user": {"id": "int64"}, "tags": ["string"]}}. A dict is an object with these fields, a list an
    array of such elements, None a value of any type; types are those of schema. A Variant in a
    struct, list or map is named by its path in the file: "s.v", "l.list.element",
    "m.key_value.value". "auto", for a Variant or for all, takes what most of the first 1000 values
    have. What does not fit a column stays in the Variant, and reading puts all together again. A
    whole number or decimal goes to a column of another such type where it has the same value.
field_ids = {}
    Field ids by column (name or path). Field ids in field metadata (PARQUET:field_id) are written
    without this option.
column_key_value_metadata = {}
    Key-value metadata of column chunks: {column: {key: value}}.
bloom_filters = False
    Columns to write Bloom filters for: True (every column that can use one), a list of names, or a
    dict of name to false-positive rate.
bloom_filter_options = None
    Options of the filters by column: a BloomOptions, a dict of its fields, or "auto". "auto" in
    place of the dict is for all columns.
bloom_filter_layout = "footer"
    Where the filters go. "footer": all after the last row group. "row_group": directly after their
    row group.
sort_by = ()
    Sort the rows by a column or a list of columns. A column is a name or a tuple (name, "ascending"
    | "descending"[, nulls_first]). A name may be a path, as a tuple: [("a", "b.c")], [(("a",
    "b.c"), "descending")].
sort_scope = "input"
    "input" sorts all rows together, when the file is closed. "row_group" sorts each row group by
    itself.
sort_memory = 4_294_967_296
    Memory for sorting the whole input, in bytes, approximately. Data larger than a quarter of it is
    sorted in parts that wait in temporary files.
sorting_columns = ()
    The order that the rows already have, in the form of sort_by. It is checked and recorded in the
    file.
key_value_metadata = {}
    Key-value metadata of the file. ParquetWriter.add_key_value_metadata adds more.
encryption = None
    Encryption keys, and the columns they encrypt: EncryptionProperties.
use_threads = True
    Encode column chunks in parallel.
fsync = False
    Flush a local file to disk before it gets its final name.
"""
