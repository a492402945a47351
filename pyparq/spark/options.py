"""Options of reads and writes as Spark has them: the data source's, which are text, the session's settings for a write
(docs/spark.md lists which ones are obeyed), and those of tables and views in Spark's catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, get_args

from pyparq.errors import OptionError
from pyparq.filters.given import parse_filters
from pyparq.option_values import Compression
from pyparq.options import ReadOptions, WriteOptions
from pyparq.spark.session import local
from pyparq.spark.stored import in_milliseconds, instants, with_field_ids

# ---- keys for Spark's workers: the name of a function that makes them, never the keys themselves


def check_factory(given: Any, option: str = "decryption") -> None:
    """Raise :class:`OptionError` unless ``given`` is ``None`` or a name such as ``"my_keys:for_reading"``."""
    if given is None or (isinstance(given, str) and all(given.partition(":"))):
        return
    raise OptionError(
        f'{option} must name a function that the workers can import, such as "my_keys:for_reading" (module:function), '
        "and that returns the properties. Keys themselves are not sent to Spark, where plans and options can be seen"
    )


def keys_of(factory: str | None, option: str = "decryption") -> Any:
    """What the function called ``factory`` returns; ``None`` for ``None``.

    Raises :class:`OptionError` where the process cannot import it.
    """
    if factory is None:
        return None
    module, _, name = factory.partition(":")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"{option}={factory!r} cannot be imported here ({error}). The module must be installed on every worker, or "
            "be sent to them (spark.submit.pyFiles)"
        ) from error
    return make()


def source_of(options: Mapping[str, Any]) -> Any:
    """``load(path)`` or ``load([paths])``."""
    given = {name.lower(): value for name, value in options.items()}
    if "paths" in given:
        return [local(path) for path in json.loads(given["paths"])]
    path = given.get("path")
    if path is None:
        raise OptionError('give a path: spark.read.format("pyparq").load("folder"), df.write.format("pyparq").save(…)')
    return local(path)


def as_value(text: Any) -> Any:
    """A value as JSON writes it; other text as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_write_option(name: str, text: Any) -> Any:
    """A write option: JSON, or plain text. Columns may be listed as ``'a, b'``."""
    value = as_value(text)
    option = WriteOptions.__dataclass_fields__.get(name)
    is_list = option is not None and option.metadata["is_list"]
    return as_list(value) if is_list and isinstance(value, str) else value


def as_list(text: Any) -> list[Any] | None:
    """``'["a", "b.c"]'`` or ``'a, b.c'``."""
    if text is None:
        return None
    value = as_value(text)
    return value if isinstance(value, list) else [name.strip() for name in str(text).split(",")]


def as_filters(text: Any) -> Any:
    """``'[["x", ">", 1]]'`` as pyarrow's lists, anything else as a condition in SQL."""
    if text is None:
        return None
    value = as_value(text)
    return parse_filters(_tuples(value)) if isinstance(value, list) else str(text)


def _tuples(value: list[Any]) -> Any:
    """JSON has lists where filters have tuples: ``[column, operator, value]`` is one."""
    if len(value) == 3 and all(isinstance(part, str) for part in value[:2]):
        return tuple(value)
    return [_tuples(part) if isinstance(part, list) else part for part in value]


def as_whole(given: Mapping[str, Any], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"the option {name} must be a whole number, not {text!r}") from None


_OF_WRITES = ("partition_cols", "force", "encryption", "max_rows_per_file", "max_bytes_per_file", "maxrecordsperfile",
              "partitionoverwritemode")  # fmt: skip


def is_of_writes(name: str) -> bool:
    """Whether an option is about writing alone. Tables and views have such options beside those for reading."""
    known, of_reads = WriteOptions.__dataclass_fields__, ReadOptions.__dataclass_fields__
    return name in _OF_WRITES or (name in known and name not in of_reads)


# ---- settings of a write ---------------------------------------------------------------------------------------------

_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
_MOST_ROWS = "spark.sql.files.maxRecordsPerFile"
_CODEC = "spark.sql.parquet.compression.codec"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_FIELD_IDS = "spark.sql.parquet.fieldId.write.enabled"
OBEYED = (_OVERWRITE, _MOST_ROWS, _CODEC, _TIMESTAMPS, _FIELD_IDS)

_CODECS = {name: name for name in get_args(Compression)} | {"lz4raw": "lz4_raw", "lz4": "lz4_raw"}
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


# ---- tables and views ------------------------------------------------------------------------------------------------
#
# Spark 4.3 hands the options of a table over when the table is made, and never again. So they are kept in the metadata
# of the table's first column, which a reader gets. A writer gets the columns of the rows. These may come from another
# table, so they do not say where to write to. The options of temporary views are always handed over.

_MARK = "pyparq.options"
"""Metadata of the first column of a table: the options that the table was made with."""

OF_TABLES = ("comment", "external", "is_managed_location", "location", "owner", "provider", "serialization.format")
"""Properties that Spark adds to the options of a table in its catalog."""


def with_options(schema: Any, options: Mapping[str, str]) -> Any:
    """The schema of a table for Spark's catalog, with the options that the table is made with."""
    from pyspark.sql.types import StructField, StructType

    kept = {name: text for name, text in options.items() if not name.startswith("option.") and name not in OF_TABLES}
    if "storage_options" in kept:
        raise OptionError(
            "storage_options would stand in the catalog: configure the file system on the workers instead"
        )
    first, *others = schema.fields
    metadata = {**first.metadata, _MARK: json.dumps(kept)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of(schema: Any) -> dict[str, Any]:
    """The options that :func:`with_options` put into the schema of a table.

    Raises :class:`OptionError` for a table that was made otherwise.
    """
    found = _marked(schema)
    if not found:
        raise OptionError(
            "Spark has not told pyparq where this table lies. Make it without columns (CREATE TABLE … USING pyparq "
            "OPTIONS (path '…')), or as a view (CREATE TEMPORARY VIEW … USING pyparq OPTIONS (path '…'))"
        )
    return found


def _marked(schema: Any) -> dict[str, Any]:
    text = next((field.metadata[_MARK] for field in schema.fields if _MARK in field.metadata), "{}")
    return dict(json.loads(text))


def unmarked(schema: Any) -> Any:
    """The schema without the options of a table that its columns come from."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(f.name, f.dataType, f.nullable, {k: v for k, v in f.metadata.items() if k != _MARK})
            for f in schema.fields
        ]
    )


def options_of_write(given: Mapping[str, str], schema: Any) -> dict[str, str]:
    """The options of a write: those that are given, and, where the columns belong to a table in the same folder, what
    the table says of its files.

    Raises :class:`OptionError` where no folder is given.
    """
    options = {name.lower(): value for name, value in given.items()}
    if "path" not in options and "paths" not in options:
        raise OptionError(
            "Spark does not tell pyparq which table is written to. Name its folder: INSERT INTO t WITH ('path' = '…') "
            '…, df.writeTo("t").option("path", "…").append(), df.write.format("pyparq").mode("append").save("…"). Or '
            "insert into a view: CREATE TEMPORARY VIEW … USING pyparq OPTIONS (path '…')"
        )
    table = _marked(schema)
    if _folder(table.get("path")) != _folder(options.get("path")):
        return options
    return {**{name: value for name, value in table.items() if is_of_writes(name)}, **options}


def _folder(path: str | None) -> str | None:
    return path if path is None else path.removeprefix("file:").rstrip("/")
