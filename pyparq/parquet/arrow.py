"""Results as pyarrow's objects where pyarrow is installed, in the types that its users ask for, and errors that they
catch; data as its writer would store it."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyparq.arrow.table import table as own_table
from pyparq.errors import EncryptionError, OptionError, ParquetError, UnsupportedError


@functools.cache
def has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def table_of(table: Any) -> Any:
    """A table of pyparq's as pyarrow's."""
    return table.to_arrow() if has_pyarrow() else table


def as_table(data: Any) -> Any:
    """Data of any kind as a table: pyarrow's, where it is installed."""
    is_theirs = type(data).__module__.startswith("pyarrow.") and hasattr(data, "to_batches")
    return data if is_theirs else table_of(own_table(data))


def even_batches(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """The rows of pyarrow's batches in batches of ``size`` rows; the last one may have fewer."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= size:
            held.append(batch.slice(0, size - count))
            batch, count = batch.slice(held[-1].num_rows), 0
            yield held[0] if len(held) == 1 else _joined(pa.Table.from_batches(held))
            held = []
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield held[0] if len(held) == 1 else _joined(pa.Table.from_batches(held))


def _joined(table: Any) -> Any:
    return table.combine_chunks().to_batches()[0]


def schema_of(schema: Any) -> Any:
    """A schema of pyparq's as pyarrow's."""
    if not has_pyarrow():
        return schema
    import pyarrow as pa

    return pa.schema(schema)


@functools.cache
def _named(kind: type[ParquetError]) -> type[ParquetError]:
    """A class of errors that pyarrow's class catches too."""
    import pyarrow as pa

    other = pa.ArrowNotImplementedError if issubclass(kind, UnsupportedError) else pa.ArrowInvalid
    # pyarrow raises ArrowInvalid for some faults of a file and OSError for others: both are caught.
    made: type[ParquetError] = type(kind.__name__, (kind, other, OSError), {"__module__": kind.__module__})
    return made


_THEIR_WORDS = (
    (r"no column '(.*?)'", r"No match for FieldRef.Name(\1)"),
    (r"it has only (\d+) bytes", r"size is \1 bytes"),
    (r"the schema nests too deeply", "Parquet schema too deeply nested"),
    (r"unknown encoding '(.*?)'", r"Unsupported column encoding: '\1'"),
    (r"encoding (RLE_DICTIONARY) cannot hold", r"'\1' is already used by default"),
    (r"encoding (DELTA_\w+) cannot hold", r"\1 encoder only supports others"),
    (r"encoding (\w+) cannot hold", r"\1 only supports others"),
    (r"Protocol not known", "Unrecognized filesystem type in URI"),
    (r"the footer is encrypted and its key is not known", "encrypted metadata, and no decryption"),
)
"""Our messages, and words of pyarrow's that programs look for."""


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Errors of pyparq that ``except pyarrow.ArrowInvalid`` (or ``ArrowNotImplementedError``) catches. A context, and a
    decorator. What a KMS client raised is raised itself."""
    try:
        yield
    except ParquetError as error:
        cause = error.__cause__
        if isinstance(error, EncryptionError) and cause is not None and not isinstance(cause, ParquetError):
            cause.add_note(str(error))
            raise cause from None
        if not has_pyarrow() or not isinstance(error, (ValueError, NotImplementedError)):
            raise
        kind: Any = type(error)
        words = [found.expand(theirs) for ours, theirs in _THEIR_WORDS if (found := re.search(ours, error.message))]
        said = error.message if not words or words[0] in error.message else f"{error.message} ({words[0]})"
        made = _named(kind)(said)
        made.__dict__.update({**error.__dict__, "message": said})
        raise made from error


def index_columns(metadata: Mapping[bytes, bytes] | None) -> list[str]:
    """Names of the columns that hold the index. A range index has none."""
    try:
        described = json.loads((metadata or {}).get(b"pandas", b"{}"))
        columns = described.get("index_columns", []) if isinstance(described, dict) else []
    except ValueError:
        return []
    return [name for name in columns if isinstance(name, str)]


# ---- the types that are asked for


class Asked(NamedTuple):
    """``binary_type``: pyarrow's type for binary columns without annotation, and the like of it for text.
    ``list_type``: pyarrow's class of list types, such as ``pyarrow.LargeListType``. ``extensions``: whether extension
    types stay, or become their storage types. ``seconds``: whether instants in seconds stay. ``kept``: columns whose
    types the caller has given, or that folders have."""

    binary_type: Any = None
    list_type: Any = None
    extensions: bool = True
    seconds: bool = False
    kept: Collection[str] = ()

    def of(self, metadata: Any) -> Asked:
        """For a file: its ``ARROW:schema``, if it has one, says which types its columns have."""
        return self._replace(binary_type=None, list_type=None) if b"ARROW:schema" in (metadata or {}) else self


def with_types(table: Any, asked: Asked) -> Any:
    """A table or batch of pyarrow's with other types: see :func:`schema_with_types`."""
    if not has_pyarrow():
        return table
    wanted = schema_with_types(table.schema, asked)
    return table if wanted is table.schema or wanted.equals(table.schema) else table.cast(wanted)


def schema_with_types(schema: Any, asked: Asked) -> Any:
    """pyarrow's schema with the types that pyarrow's reader gives; the same schema where nothing changes. Parquet has
    no seconds, no dates in milliseconds, and pyarrow reads only text and bytes as dictionaries."""
    if not has_pyarrow():
        return schema
    import pyarrow as pa

    fields = [
        field if field.name in asked.kept else field.with_type(_changed(_storage(field.type, asked.extensions), asked))
        for field in schema
    ]
    made = pa.schema(fields, schema.metadata)
    return schema if made.equals(schema) else made


def _storage(type_: Any, extensions: bool) -> Any:
    import pyarrow as pa

    return type_.storage_type if not extensions and isinstance(type_, pa.BaseExtensionType) else type_


def _changed(type_: Any, asked: Asked) -> Any:
    import pyarrow as pa

    binary_type, list_type = asked.binary_type, asked.list_type
    if pa.types.is_binary(type_) and binary_type is not None:
        return binary_type
    if pa.types.is_string(type_) and binary_type is not None:
        texts = {pa.large_binary(): pa.large_string(), pa.binary_view(): pa.string_view()}
        return texts.get(binary_type, type_)
    if pa.types.is_dictionary(type_) and not pa.types.is_null(type_.value_type):
        values = _changed(type_.value_type, asked)
        is_text = pa.types.is_string(values) or pa.types.is_binary(values) or pa.types.is_large_string(values)
        return type_ if is_text or pa.types.is_large_binary(values) else values
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_changed(f.type, asked)) for f in type_])
    if pa.types.is_map(type_):
        fields = (f.with_type(_changed(f.type, asked)) for f in (type_.key_field, type_.item_field))
        return pa.map_(*fields, type_.keys_sorted)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        inner = type_.value_field.with_type(_changed(type_.value_type, asked))
        if pa.types.is_fixed_size_list(type_):
            return pa.list_(inner, type_.list_size)
        is_large = list_type is pa.LargeListType or pa.types.is_large_list(type_)
        return pa.large_list(inner) if is_large else pa.list_(inner)
    if pa.types.is_timestamp(type_) and type_.unit == "s" and not asked.seconds:
        return pa.timestamp("ms", type_.tz)
    return {pa.date64(): pa.date32(), pa.time32("s"): pa.time32("ms")}.get(type_, type_)


def without_dictionaries(schema: Any) -> Any:
    """pyarrow's schema with the types of values in place of dictionaries; any other schema as it is."""
    if not has_pyarrow():
        return schema
    import pyarrow as pa

    if not isinstance(schema, pa.Schema) or not any(map(pa.types.is_dictionary, schema.types)):
        return schema
    values = [field.with_type(getattr(field.type, "value_type", field.type)) if pa.types.is_dictionary(field.type)
              else field for field in schema]  # fmt: skip
    return pa.schema(values, schema.metadata)


def with_dictionaries(table: Any, schema: Any) -> Any:
    """The table with the dictionaries of ``schema``, which was read without them."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        type_ = schema.field(name).type
        if pa.types.is_dictionary(type_) and not pa.types.is_dictionary(table.column(place).type):
            column = table.column(place).dictionary_encode().cast(type_)
            table = table.set_column(place, table.schema.field(place).with_type(type_), column)
    return table


# ---- data as pyarrow stores it

_UNFIT = re.compile(r"[ ,;{}()\n\t=]")


def written_schema(schema: Any, version: str, flavor: Any, coerce_timestamps: str | None, int96: bool) -> Any:
    """pyarrow's schema with the types that are written; the schema itself where nothing changes.

    Raises :class:`OptionError` for unknown versions and units.
    """
    if version not in ("1.0", "2.4", "2.6", "2.0"):
        raise OptionError(f"Unsupported Parquet format version: {version}")
    if coerce_timestamps not in (None, "ms", "us"):
        raise OptionError(f"Invalid value for coerce_timestamps: {coerce_timestamps}")
    unit = coerce_timestamps
    if unit is None and version in ("1.0", "2.4", "2.0") and not int96:
        unit = "us for ns"
    import pyarrow as pa

    fields = []
    for field in schema:
        type_ = field.type if int96 else _with_unit(field.type, unit)
        if version == "1.0" and type_ == pa.uint32():
            type_ = pa.int64()
        name = _UNFIT.sub("_", field.name) if flavor and "spark" in flavor else field.name
        fields.append(field.with_type(type_).with_name(name))
    made = pa.schema(fields, schema.metadata)
    return schema if made.equals(schema, check_metadata=True) else made


def _with_unit(type_: Any, unit: str | None) -> Any:
    """Timestamps in another unit, at any depth."""
    import pyarrow as pa

    if unit is None:
        return type_
    if pa.types.is_timestamp(type_):
        if unit == "us for ns":
            return pa.timestamp("us", type_.tz) if type_.unit == "ns" else type_
        return pa.timestamp(unit, type_.tz)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_with_unit(field.type, unit)) for field in type_])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.list_ if pa.types.is_list(type_) else pa.large_list
        return make(type_.value_field.with_type(_with_unit(type_.value_type, unit)))
    return type_


def converted(table: Any, schema: Any, allow_truncated: bool) -> Any:
    """The table with the types of ``schema``. Raises pyarrow's ``ArrowInvalid`` where a time would lose digits."""
    if table.schema.equals(schema):
        return table
    renamed = table.rename_columns(schema.names)
    return renamed.cast(schema, safe=not allow_truncated)
