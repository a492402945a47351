"""The Parquet schema of a file, with the names of ``pyarrow.parquet.ParquetSchema``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyparq.format import ttypes as tt
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Physical
from pyparq.parquet.arrow import schema_of
from pyparq.runtime.text import printable


class Made:
    """What the metadata of a file makes, and nobody else."""

    def __new__(cls, *parts: Any, **more: Any) -> Any:
        if not parts:
            raise TypeError(f"Do not call {cls.__name__}'s constructor directly: read the metadata of a file")
        return super().__new__(cls)


class ParquetLogicalType(Made):
    """The logical type of a column, with its parameters."""

    def __init__(self, type: str, parameters: dict[str, Any]) -> None:
        self.type = type
        self._parameters = parameters

    def to_json(self) -> str:
        return json.dumps({"Type": self._name, **self._parameters})

    @property
    def _name(self) -> str:
        return self.type if self.type in _SHORT_NAMES else self.type.capitalize()

    @printable
    def __str__(self) -> str:
        if not self._parameters:
            return self._name
        values = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in self._parameters.items()}
        return f"{self._name}({', '.join(f'{name}={value}' for name, value in values.items())})"

    @printable
    def __repr__(self) -> str:
        return f"<pyparq.parquet.ParquetLogicalType>\n  {self}"


_SHORT_NAMES = ("UUID", "JSON", "BSON")
_SPELLED = {"INTEGER": "INT", "UNKNOWN": "NULL"}
_UNITS = {"MILLIS": "milliseconds", "MICROS": "microseconds", "NANOS": "nanoseconds"}
_CONVERTED = {"UTF8": "STRING", "INTERVAL": "INTERVAL", "MAP_KEY_VALUE": "MAP"}
"""Converted types without a logical type beside them that pyarrow shows as one."""


def _name_of(logical: Any) -> str | None:
    """Which member of the union is set."""
    names = [spec[2] for spec in tt.LogicalType.thrift_spec if spec is not None]
    return None if logical is None else next((name for name in names if getattr(logical, name) is not None), None)


def _logical_type(node: Node) -> ParquetLogicalType:
    logical = node.element.logicalType
    name = _name_of(logical)
    leaf = node.type
    if name is None:
        number = node.element.converted_type
        converted = None if number is None else tt.ConvertedType._VALUES_TO_NAMES.get(number)
        if leaf.kind == "decimal":
            name = "DECIMAL"
        elif leaf.kind in ("int", "uint") and converted is not None:
            name = "INTEGER"
        elif converted is not None and converted.startswith(("TIME_", "TIMESTAMP_")):
            return _converted_time(*converted.split("_"))
        else:
            return ParquetLogicalType(_CONVERTED.get(converted or "", converted or "NONE"), {})
    parameters: dict[str, Any] = {}
    if name == "DECIMAL":
        parameters = {"precision": leaf.precision, "scale": leaf.scale}
    elif name == "INTEGER":
        parameters = {"bitWidth": leaf.bits, "isSigned": leaf.kind == "int"}
    elif name in ("TIME", "TIMESTAMP"):
        value = getattr(logical, name)
        unit = next(unit for unit in _UNITS if getattr(value.unit, unit) is not None)
        parameters = {"isAdjustedToUTC": bool(value.isAdjustedToUTC), "timeUnit": _UNITS[unit]}
        if name == "TIMESTAMP":
            parameters |= {"is_from_converted_type": False, "force_set_converted_type": False}
    elif name in ("GEOMETRY", "GEOGRAPHY"):
        parameters = {"crs": getattr(logical, name).crs or ""}
        if name == "GEOGRAPHY":
            parameters["algorithm"] = leaf.algorithm
    return ParquetLogicalType(_SPELLED.get(name, name), parameters)


def _converted_time(name: str, unit: str) -> ParquetLogicalType:
    """Converted types of times are always adjusted to UTC (LogicalTypes.md)."""
    parameters = {"isAdjustedToUTC": True, "timeUnit": _UNITS[unit]}
    if name == "TIMESTAMP":
        parameters |= {"is_from_converted_type": True, "force_set_converted_type": False}
    return ParquetLogicalType(name, parameters)


class ColumnSchema:
    """One leaf column of a Parquet schema."""

    def __init__(self, node: Node) -> None:
        self._node = node

    name = property(lambda self: self._node.name)
    path = property(lambda self: self._node.dotted)
    max_definition_level = property(lambda self: self._node.max_def)
    max_repetition_level = property(lambda self: self._node.max_rep)
    physical_type = property(lambda self: self._node.type.physical.name)
    logical_type = property(lambda self: _logical_type(self._node))
    precision = property(lambda self: self._node.type.precision if self._node.type.kind == "decimal" else None)
    scale = property(lambda self: self._node.type.scale if self._node.type.kind == "decimal" else None)

    @property
    def converted_type(self) -> str:
        number = self._node.element.converted_type
        return "NONE" if number is None else str(tt.ConvertedType._VALUES_TO_NAMES.get(number, "UNDEFINED"))

    @property
    def length(self) -> int | None:
        is_fixed = self._node.type.physical == Physical.FIXED_LEN_BYTE_ARRAY
        return int(self._node.element.type_length) if is_fixed else None

    def _key(self) -> tuple[Any, ...]:
        return (self.path, self.physical_type, str(self.logical_type), self.length, self.precision, self.scale,
                self.max_definition_level, self.max_repetition_level)  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnSchema) and self._key() == other._key()

    equals = __eq__

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        shown = {
            "name": self.name, "path": self.path, "max_definition_level": self.max_definition_level,
            "max_repetition_level": self.max_repetition_level, "physical_type": self.physical_type,
            "logical_type": self.logical_type, "converted_type (legacy)": self.converted_type,
        }  # fmt: skip
        return "<ParquetColumnSchema>" + "".join(f"\n  {name}: {value}" for name, value in shown.items())


class ParquetSchema:
    """The Parquet schema of a file: its leaf columns in order."""

    def __init__(self, tree: SchemaTree, key_values: dict[bytes, bytes], fields: Any) -> None:
        self._tree, self._key_values, self._fields = tree, key_values, fields

    names = property(lambda self: [leaf.name for leaf in self._tree.leaves])

    def column(self, i: int) -> ColumnSchema:
        """The leaf column number ``i``. Raises :class:`IndexError` where there is none."""
        if not 0 <= i < len(self._tree.leaves):
            raise IndexError(f"there is no column {i}: the schema has {len(self._tree.leaves)}")
        return ColumnSchema(self._tree.leaves[i])

    def __len__(self) -> int:
        return len(self._tree.leaves)

    __getitem__ = column

    def __iter__(self) -> Iterator[ColumnSchema]:
        return (ColumnSchema(leaf) for leaf in self._tree.leaves)

    def to_arrow_schema(self) -> Any:
        return schema_of(self._fields.schema)

    @property
    def pandas_metadata(self) -> dict[str, Any] | None:
        """What pandas has stored about its frame. ``None`` if it has not."""
        found = self._key_values.get(b"pandas")
        return None if found is None else json.loads(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParquetSchema) and list(self) == list(other)

    equals = __eq__

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        return f"<pyparq.parquet.ParquetSchema>\n{_text(self._tree.root)}"


_REPETITIONS = ("required", "optional", "repeated")
_PHYSICAL = {Physical.BYTE_ARRAY: "binary", Physical.FIXED_LEN_BYTE_ARRAY: "fixed_len_byte_array"}


def _text(root: Node) -> str:
    """The schema as pyarrow prints it, which is close to the text of parquet-java."""
    lines: list[str] = []
    todo: list[tuple[Node | None, int]] = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        indent = "  " * depth
        if node is None:
            lines.append(f"{indent}}}")
        elif node.is_leaf:
            lines.append(f"{indent}{_head(node, _kind(node))}{_annotation(node)};")
        else:
            lines.append(f"{indent}{_head(node, 'group')}{_annotation(node)} {{")
            todo.append((None, depth))
            todo += [(child, depth + 1) for child in reversed(node.children)]
    return "\n".join(lines) + "\n"


def _head(node: Node, kind: str) -> str:
    number = -1 if node.element.field_id is None else node.element.field_id
    return f"{_REPETITIONS[node.repetition]} {kind} field_id={number} {node.name}"


def _kind(node: Node) -> str:
    physical = node.type.physical
    length = f"({node.element.type_length})" if physical == Physical.FIXED_LEN_BYTE_ARRAY else ""
    return _PHYSICAL.get(physical, physical.name.lower()) + length


def _annotation(node: Node) -> str:
    if node.is_leaf:
        text = str(_logical_type(node))
        return "" if text == "None" else f" ({text})"
    logical, converted = node.element.logicalType, node.element.converted_type
    name = _name_of(logical)
    if name is None and converted is not None:
        spelled = tt.ConvertedType._VALUES_TO_NAMES.get(converted, "undefined")
        name = _CONVERTED.get(spelled, spelled)
    version = f"({logical.VARIANT.specification_version or 1})" if name == "VARIANT" else ""
    return "" if name is None else f" ({name.capitalize()}{version})"
