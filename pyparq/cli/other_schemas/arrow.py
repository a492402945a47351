"""Python code that makes the schema with pyarrow."""

from __future__ import annotations

from pyparq.cli.other_schemas.fields import entry_of, none_for
from pyparq.format.types import DataType, Field, Schema

_NAMES = {
    "n": "null", "b": "bool_", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "u": "string", "U": "large_string",
    "vu": "string_view", "z": "binary", "Z": "large_binary", "vz": "binary_view", "tdD": "date32", "tdm": "date64",
    "tin": "month_day_nano_interval",
}  # fmt: skip
_LISTS = {"+l": "list_", "+L": "large_list", "+vl": "list_view", "+vL": "large_list_view"}
_EXTENSIONS = {b"arrow.uuid": "pa.uuid()", b"arrow.json": "pa.json_()"}


def arrow_schema(schema: Schema) -> str:
    """Raises :class:`UnsupportedError`, which names the column, for a type that pyarrow has nothing for."""
    fields = "".join(f"    {_field(field, field.name)},\n" for field in schema.fields)
    return f"import pyarrow as pa\n\nschema = pa.schema([\n{fields}])"


def _field(field: Field, path: str) -> str:
    type_ = _EXTENSIONS.get(field.metadata.get(b"ARROW:extension:name", b"")) or _of(field.type, path)
    return f"pa.field({field.name!r}, {type_}{'' if field.nullable else ', nullable=False'})"


def _of(type_: DataType, path: str) -> str:
    if type_.dictionary is not None:
        index = DataType(type_.format)
        return f"pa.dictionary({_of(index, path)}, {_of(type_.dictionary, path)}, ordered={type_.ordered})"
    kind = type_.kind
    if kind == "struct":
        return f"pa.struct([{', '.join(_field(f, f'{path}.{f.name}') for f in type_.children)}])"
    if kind == "map":
        key, value = entry_of(type_)
        return f"pa.map_({_field(key, path)}, {_field(value, path)}{', keys_sorted=True' if type_.ordered else ''})"
    if type_.format in _LISTS:
        return f"pa.{_LISTS[type_.format]}({_field(type_.children[0], path)})"
    if type_.format.startswith("+w"):
        return f"pa.list_({_field(type_.children[0], path)}, {type_.format[3:]})"
    if kind == "run_end":
        return f"pa.run_end_encoded({', '.join(_of(f.type, path) for f in type_.children)})"
    if type_.format not in _NAMES:
        return _with_parameters(type_, path)
    return f"pa.{_NAMES[type_.format]}()"


def _with_parameters(type_: DataType, path: str) -> str:
    kind = type_.kind
    if kind == "decimal":
        precision, scale, bits = type_.decimal
        return f"pa.decimal{bits}({precision}, {scale})"
    if kind == "fixed":
        return f"pa.binary({type_.byte_width})"
    if kind == "timestamp":
        return f"pa.timestamp({type_.unit!r}{f', tz={type_.timezone!r}' if type_.timezone else ''})"
    if kind == "time":
        return f"pa.time{32 if type_.unit in ('s', 'ms') else 64}({type_.unit!r})"
    if kind == "duration":
        return f"pa.duration({type_.unit!r})"
    raise none_for("pyarrow", path, type_)
