"""Results as pyarrow's objects where pyarrow is installed, in the types that its users ask for, and errors that they
catch; data as its writer would store it."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyparq.errors import EncryptionError, OptionError, ParquetError, UnsupportedError


@functools.cache
def has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def table_of(table: Any) -> Any:
    """A table of pyparq's as pyarrow's."""
    return table.to_arrow() if has_pyarrow() else table


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
        made = _named(kind)(error.message)
        made.__dict__.update(error.__dict__)
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


def types_for(metadata: Any, binary_type: Any, list_type: Any, extensions: bool) -> tuple[Any, Any, bool]:
    """The types to ask a file for: none where its ``ARROW:schema`` says which types its columns have."""
    return (None, None, extensions) if b"ARROW:schema" in (metadata or {}) else (binary_type, list_type, extensions)


def with_types(table: Any, binary_type: Any, list_type: Any, extensions: bool = True) -> Any:
    """A table or batch of pyarrow's with other types: see :func:`schema_with_types`."""
    if binary_type is None and list_type is None and extensions:
        return table
    schema = table.schema
    wanted = schema_with_types(schema, binary_type, list_type, extensions)
    return table if wanted is schema else table.cast(wanted)


def schema_with_types(schema: Any, binary_type: Any, list_type: Any, extensions: bool = True) -> Any:
    """pyarrow's schema with other types for text, binary and lists; the same schema where nothing changes.

    ``binary_type``: pyarrow's type for binary columns without annotation, and the like of it for text.
    ``list_type``: pyarrow's class of list types, such as ``pyarrow.LargeListType``. ``extensions``: whether extension
    types stay, or become their storage types.
    """
    if binary_type is None and list_type is None and extensions:
        return schema
    import pyarrow as pa

    fields = [field.with_type(_changed(_storage(field.type, extensions), binary_type, list_type)) for field in schema]
    made = pa.schema(fields, schema.metadata)
    return schema if made.equals(schema) else made


def _storage(type_: Any, extensions: bool) -> Any:
    import pyarrow as pa

    return type_.storage_type if not extensions and isinstance(type_, pa.BaseExtensionType) else type_


def _changed(type_: Any, binary_type: Any, list_type: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_binary(type_) and binary_type is not None:
        return binary_type
    if pa.types.is_string(type_) and binary_type is not None:
        texts = {pa.large_binary(): pa.large_string(), pa.binary_view(): pa.string_view()}
        return texts.get(binary_type, type_)
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_changed(f.type, binary_type, list_type)) for f in type_])
    if pa.types.is_list(type_):
        inner = type_.value_field.with_type(_changed(type_.value_type, binary_type, list_type))
        makers = {pa.LargeListType: pa.large_list}
        return makers.get(list_type, pa.list_)(inner)
    return type_


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
