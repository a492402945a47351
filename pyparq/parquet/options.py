"""pyarrow's arguments as pyparq's options."""

from __future__ import annotations

from typing import Any

from pyparq.errors import OptionError

TUNING_OF_READS = ("memory_map", "buffer_size", "pre_buffer", "thrift_string_size_limit",
                   "thrift_container_size_limit", "arrow_extensions_enabled", "metadata", "common_metadata",
                   "schema_depth_limit", "ignore_prefixes")  # fmt: skip
"""Arguments of reads that only tune pyarrow, or tell it what pyparq finds itself."""
_TUNING_OF_WRITES = ("write_batch_size", "writer_engine_version", "use_compliant_nested_type",
                     "use_content_defined_chunking", "version")  # fmt: skip
_MOST_ROWS = 64 << 20


def read_options(
    read_dictionary: Any = None,
    coerce_int96_timestamp_unit: str | None = None,
    decryption_properties: Any = None,
    page_checksum_verification: bool = False,
    use_threads: bool = True,
) -> dict[str, Any]:
    """Options of :class:`pyparq.ReadOptions`. Checksums are always verified: it costs little."""
    made: dict[str, Any] = {"use_threads": bool(use_threads)}
    if read_dictionary:
        made["read_dictionary"] = list(read_dictionary)
    if coerce_int96_timestamp_unit is not None:
        made["coerce_int96_timestamp_unit"] = coerce_int96_timestamp_unit
    if decryption_properties is not None:
        made["decryption"] = decryption_properties
    return made


def write_options(given: dict[str, Any]) -> dict[str, Any]:
    """Options of :class:`pyparq.WriteOptions` for pyarrow's arguments of a writer.

    Raises :class:`OptionError` for unknown ones.
    """
    left = dict(given)
    for name in _TUNING_OF_WRITES:
        left.pop(name, None)
    made: dict[str, Any] = {}
    left.pop("flavor", None)
    if left.pop("use_deprecated_int96_timestamps", None):
        made["int96_timestamps"] = True
    renamed = {"encryption_properties": "encryption", "column_encoding": "column_encoding"}
    for name, own in renamed.items():
        value = left.pop(name, None)
        if value is not None:
            made[own] = value
    streams = left.pop("use_byte_stream_split", False)
    if streams:
        made["use_byte_stream_split"] = streams
    as_integer = left.pop("store_decimal_as_integer", False)
    made["decimal_storage"] = "smallest" if as_integer else "fixed"
    statistics = left.pop("write_statistics", True)
    made["write_statistics"] = statistics
    for name in (
        "use_dictionary", "compression", "compression_level", "data_page_size", "data_page_version",
        "dictionary_pagesize_limit", "store_schema", "write_page_index", "write_page_checksum", "sorting_columns",
        "write_time_adjusted_to_utc", "max_rows_per_page", "bloom_filter_options",
    ):  # fmt: skip
        value = left.pop(name, None)
        if value is not None:
            made[name] = value
    left.pop("coerce_timestamps", None)
    left.pop("allow_truncated_timestamps", None)
    if left:
        raise OptionError(f"unexpected keyword argument {next(iter(left))!r}")
    return made
