"""pyarrow's arguments as pyparq's options."""

from __future__ import annotations

from typing import Any

from pyparq.errors import OptionError
from pyparq.limits import Limits

TUNING_OF_READS = ("memory_map", "buffer_size", "pre_buffer", "thrift_string_size_limit",
                   "thrift_container_size_limit", "metadata", "common_metadata",
                   "ignore_prefixes")  # fmt: skip
"""Arguments of reads that only tune pyarrow, or tell it what pyparq finds itself."""
_TUNING_OF_WRITES = ("write_batch_size", "writer_engine_version", "use_compliant_nested_type",
                     "use_content_defined_chunking", "version")  # fmt: skip


def read_options(
    read_dictionary: Any = None,
    coerce_int96_timestamp_unit: str | None = None,
    decryption_properties: Any = None,
    page_checksum_verification: bool = False,
    schema_depth_limit: int | None = None,
) -> dict[str, Any]:
    """Options of :class:`pyparq.ReadOptions`. Checksums are always verified: it costs little."""
    made: dict[str, Any] = {"coerce_int96_timestamp_unit": coerce_int96_timestamp_unit or "ns"}
    if read_dictionary:
        made["read_dictionary"] = list(read_dictionary)
    if decryption_properties is not None:
        made["decryption"] = decryption_properties
    if schema_depth_limit is not None:
        made["limits"] = Limits(max_schema_depth=schema_depth_limit)
    return made


def write_options(given: dict[str, Any]) -> dict[str, Any]:
    """Options of :class:`pyparq.WriteOptions` for pyarrow's arguments of a writer.

    Raises :class:`OptionError` for unknown ones.
    """
    left = dict(given)
    page_version = left.get("data_page_version", "1.0")
    if page_version not in ("1.0", "2.0"):
        raise OptionError(f"Unsupported Parquet data page version: {page_version}")
    for name in ("dictionary_pagesize_limit", "data_page_size", "max_rows_per_page"):
        if not isinstance(left.get(name), (int, type(None))):
            raise TypeError(f"{name} must be a number, not {left[name]!r}")
    if str(left.get("compression", "")).lower().startswith("lz4"):
        left.pop("compression_level", None)  # pyarrow takes it
    if (
        str(left.get("compression", "")).lower() in ("none", "uncompressed")
        and left.get("compression_level") is not None
    ):
        raise OptionError("uncompressed data has no compression level")
    left["store_schema"] = left.get("store_schema", True)
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
