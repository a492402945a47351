"""Spark's settings for a write: those of the session, and options in Spark's spelling. docs/spark.md lists which ones
are obeyed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.errors import OptionError
from pyparq.spark.stored import in_milliseconds, instants, with_field_ids

_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
_MOST_ROWS = "spark.sql.files.maxRecordsPerFile"
_CODEC = "spark.sql.parquet.compression.codec"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_FIELD_IDS = "spark.sql.parquet.fieldId.write.enabled"
OBEYED = (_OVERWRITE, _MOST_ROWS, _CODEC, _TIMESTAMPS, _FIELD_IDS)

_CODECS = {
    "none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "brotli": "brotli",
    "lz4_raw": "lz4_raw", "lz4raw": "lz4_raw", "lz4": "lz4_raw",
}  # fmt: skip
"""Spark's names of codecs. Its ``lz4`` has Hadoop's frames, which other readers misread. pyparq writes LZ4_RAW
instead, which Spark reads."""

Settings = Mapping[str, str]
"""Settings of a session that were set: by the session, its builder or a file, not by Spark's defaults."""


def of_session(spark: Any) -> dict[str, str]:
    """The settings that a write of the session obeys, as far as they are set."""
    return {name: value for name, value in spark.conf.getAll.items() if name in OBEYED}


def obeyed(mode: str, partition_cols: Sequence[str], options: Mapping[str, Any], session: Settings) -> tuple[str, Any]:
    """The mode, and the options of :func:`pyparq.spark.write` in their own names, with what the session says where the
    call says nothing.

    Raises :class:`OptionError` for a value that Spark would not take either.
    """
    spelled = {name.lower(): value for name, value in options.items() if name.lower() in _SPELLED}
    found = {name: value for name, value in options.items() if name.lower() not in _SPELLED}
    replaced = spelled.get("partitionoverwritemode", session.get(_OVERWRITE, "static"))
    if str(replaced).lower() not in ("static", "dynamic"):
        raise OptionError(f"{_OVERWRITE} must be static or dynamic, not {replaced!r}")
    if mode == "overwrite" and partition_cols and str(replaced).lower() == "dynamic":
        mode = "overwrite_partitions"
    if "maxrecordsperfile" in spelled and "max_rows_per_file" in found:
        raise OptionError("maxRecordsPerFile and max_rows_per_file are two names of one option. Give only one of them")
    rows = _whole(spelled.get("maxrecordsperfile", session.get(_MOST_ROWS, 0)))
    if rows > 0:
        found.setdefault("max_rows_per_file", rows)
    codec = found.get("compression", session.get(_CODEC))
    if isinstance(codec, str):
        found["compression"] = _codec(codec, "compression" in found)
    return mode, found


_SPELLED = ("partitionoverwritemode", "maxrecordsperfile")


def _whole(given: Any) -> int:
    try:
        return int(given)
    except (TypeError, ValueError):
        raise OptionError(f"maxRecordsPerFile must be a whole number of rows, not {given!r}") from None


def _codec(name: str, is_option: bool) -> str:
    found = _CODECS.get(name.lower())
    if found is None and not is_option:
        raise OptionError(f'pyparq writes no {name} ({_CODEC}): give compression="zstd" or another codec')
    return found or name


def stored_as_set(schema: Any, own: Any, partition_cols: Sequence[str], options: Any, session: Settings) -> Any:
    """The schema of the rows, as pyarrow has it, and the options, with what the session says of timestamps and field
    ids. ``own``: Spark's schema of the rows.

    INT96, which is Spark's default, counts only if it was set explicitly: readers cannot skip by its statistics.
    """
    if session.get(_FIELD_IDS, "true").lower() == "true":
        schema = with_field_ids(schema, own)
    unit = session.get(_TIMESTAMPS, "TIMESTAMP_MICROS").upper()
    if not {"int96_timestamps", "use_deprecated_int96_timestamps"}.isdisjoint(options):
        return schema, options
    if unit == "INT96":
        paths = instants(schema, partition_cols)
        options = {**options, "int96_timestamps": dict.fromkeys(paths, True)} if paths else options
    elif unit == "TIMESTAMP_MILLIS":
        schema = in_milliseconds(schema, partition_cols)
    return schema, options
