"""The arguments ``binary_type`` and ``list_type``: other Arrow types for the same values."""

from __future__ import annotations

from typing import Any


def asked_of(metadata: Any, binary_type: Any, list_type: Any, extensions: bool) -> tuple[Any, Any, bool]:
    """The types to ask a file for: none where its ``ARROW:schema`` says which types its columns have."""
    return (None, None, extensions) if b"ARROW:schema" in (metadata or {}) else (binary_type, list_type, extensions)


def with_types(table: Any, binary_type: Any, list_type: Any, extensions: bool = True) -> Any:
    """A table or batch of pyarrow's with other types: see :func:`with_asked_types`."""
    if binary_type is None and list_type is None and extensions:
        return table
    schema = table.schema
    wanted = with_asked_types(schema, binary_type, list_type, extensions)
    return table if wanted is schema else table.cast(wanted)


def with_asked_types(schema: Any, binary_type: Any, list_type: Any, extensions: bool = True) -> Any:
    """pyarrow's schema with other types for text, binary and lists; the same schema where nothing changes.

    ``binary_type``: pyarrow's type for binary columns without annotation, and the like of it for text.
    ``list_type``: pyarrow's class of list types, such as ``pyarrow.LargeListType``. ``extensions``: whether extension
    types stay, or become their storage types.
    """
    if binary_type is None and list_type is None and extensions:
        return schema
    import pyarrow as pa

    fields = [
        field.with_type(_changed(field.type if extensions else _storage(field.type), binary_type, list_type))
        for field in schema
    ]
    made = pa.schema(fields, schema.metadata)
    return schema if made.equals(schema) else made


def _storage(type_: Any) -> Any:
    import pyarrow as pa

    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


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
