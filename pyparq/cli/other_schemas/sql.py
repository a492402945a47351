"""A CREATE TABLE statement with DuckDB's types, most of which are those of the SQL standard."""

from __future__ import annotations

from pyparq.cli.other_schemas.fields import entry_of, none_for, stored
from pyparq.format.types import DataType, Field, Schema

_NAMES = {
    "b": "BOOLEAN", "c": "TINYINT", "s": "SMALLINT", "i": "INTEGER", "l": "BIGINT", "C": "UTINYINT", "S": "USMALLINT",
    "I": "UINTEGER", "L": "UBIGINT", "e": "FLOAT", "f": "FLOAT", "g": "DOUBLE", "n": "INTEGER",
}  # fmt: skip
_KINDS = {
    "string": "VARCHAR", "binary": "BLOB", "fixed": "BLOB", "date": "DATE", "duration": "INTERVAL",
    "interval": "INTERVAL",
}  # fmt: skip
MOST_DIGITS = 38


def sql_schema(schema: Schema, table: str) -> str:
    """Raises :class:`UnsupportedError`, which names the column, for a type that DuckDB has nothing for."""
    columns = [f"  {_quoted(f.name)} {_type(f, f.name)}{'' if f.nullable else ' NOT NULL'}" for f in schema.fields]
    return f"CREATE TABLE {_quoted(table)} (\n" + ",\n".join(columns) + "\n);"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(field: Field, path: str) -> str:
    if field.metadata.get(b"ARROW:extension:name") == b"arrow.uuid":
        return "UUID"
    return _of(stored(field.type), path)


def _of(type_: DataType, path: str) -> str:
    if type_.kind == "struct":
        inner = ", ".join(f"{_quoted(f.name)} {_type(f, f'{path}.{f.name}')}" for f in type_.children)
        return f"STRUCT({inner})"
    if type_.kind in ("list", "list_view"):
        length = type_.format[3:] if type_.format.startswith("+w") else ""
        return f"{_type(type_.children[0], f'{path}.element')}[{length}]"
    if type_.kind == "map":
        key, value = entry_of(type_)
        return f"MAP({_type(key, f'{path}.key')}, {_type(value, f'{path}.value')})"
    if type_.kind == "decimal":
        precision, scale, _ = type_.decimal
        return f"DECIMAL({precision}, {scale})" if precision <= MOST_DIGITS else "DOUBLE"
    if type_.kind == "timestamp":
        if type_.timezone:
            return "TIMESTAMP WITH TIME ZONE"
        return "TIMESTAMP_NS" if type_.unit == "ns" else "TIMESTAMP"
    if type_.kind == "time":
        return "TIME_NS" if type_.unit == "ns" else "TIME"
    found = _NAMES.get(type_.format) or _KINDS.get(type_.kind)
    if found is None:
        raise none_for("DuckDB", path, type_)
    return found
