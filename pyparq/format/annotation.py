"""Types of leaves from SchemaElements, and back (LogicalTypes.md).

LogicalType wins over the older ConvertedType. An annotation that is unknown or does not fit its physical type is
ignored: the column then reads as its physical type.
"""

from __future__ import annotations

from typing import Any

from pyparq.errors import SchemaError
from pyparq.format import ttypes as tt
from pyparq.format.types import LeafType, Physical

_PLAIN_KINDS = {
    Physical.BOOLEAN: ("bool", 0),
    Physical.INT32: ("int", 32),
    Physical.INT64: ("int", 64),
    Physical.INT96: ("int96", 0),
    Physical.FLOAT: ("float", 0),
    Physical.DOUBLE: ("double", 0),
    Physical.BYTE_ARRAY: ("binary", 0),
    Physical.FIXED_LEN_BYTE_ARRAY: ("fixed", 0),
}
_PLAIN_LEAVES = {physical: LeafType(physical, kind, 0, bits) for physical, (kind, bits) in _PLAIN_KINDS.items()}

_BYTE_ARRAY_LOGICAL = {
    "STRING": "string", "ENUM": "enum", "JSON": "json", "BSON": "bson",
}  # fmt: skip

_BYTE_ARRAY_LEAVES = {name: LeafType(Physical.BYTE_ARRAY, kind) for name, kind in _BYTE_ARRAY_LOGICAL.items()}
_CT = tt.ConvertedType
_CONVERTED_INTS = {
    _CT.INT_8: ("int", 8), _CT.INT_16: ("int", 16), _CT.INT_32: ("int", 32), _CT.INT_64: ("int", 64),
    _CT.UINT_8: ("uint", 8), _CT.UINT_16: ("uint", 16), _CT.UINT_32: ("uint", 32), _CT.UINT_64: ("uint", 64),
}  # fmt: skip
_CONVERTED_BYTES = {_CT.UTF8: "string", _CT.ENUM: "enum", _CT.JSON: "json", _CT.BSON: "bson"}
_CONVERTED_TIMES = {
    _CT.TIME_MILLIS: ("time", "ms", Physical.INT32), _CT.TIME_MICROS: ("time", "us", Physical.INT64),
    _CT.TIMESTAMP_MILLIS: ("timestamp", "ms", Physical.INT64),
    _CT.TIMESTAMP_MICROS: ("timestamp", "us", Physical.INT64),
}  # fmt: skip


def leaf_type(element: Any) -> LeafType:
    """The :class:`LeafType` of a primitive SchemaElement.

    Raises :class:`SchemaError` for an unknown physical type, a bad FIXED_LEN_BYTE_ARRAY length, or a DECIMAL
    whose precision its storage cannot hold.
    """
    try:
        physical = Physical(element.type)
    except ValueError:
        raise SchemaError(f"unknown physical type {element.type}", column=str(element.name)) from None
    length = element.type_length or 0 if physical == Physical.FIXED_LEN_BYTE_ARRAY else 0
    if physical == Physical.FIXED_LEN_BYTE_ARRAY and not 0 < length < 1 << 30:
        raise SchemaError(
            f"FIXED_LEN_BYTE_ARRAY has the invalid length {element.type_length}", column=str(element.name)
        )
    found = None
    if element.logicalType is not None:
        found = _from_logical(element.logicalType, physical, length, element)
    if found is None and element.converted_type is not None:
        found = _from_converted(element, physical, length)
    if found is None:
        found = _PLAIN_LEAVES[physical] if not length else LeafType(physical, _PLAIN_KINDS[physical][0], length)
    return found


def _from_logical(logical: Any, physical: Physical, length: int, element: Any) -> LeafType | None:
    if physical == Physical.BYTE_ARRAY:
        for name, leaf in _BYTE_ARRAY_LEAVES.items():
            if getattr(logical, name, None) is not None:
                return leaf
        if logical.GEOMETRY is not None:
            return LeafType(physical, "geometry", crs=_text(logical.GEOMETRY.crs))
        if logical.GEOGRAPHY is not None:
            number = logical.GEOGRAPHY.algorithm or 0
            algorithm = tt.EdgeInterpolationAlgorithm._VALUES_TO_NAMES.get(number, f"algorithm {number}")
            return LeafType(physical, "geography", crs=_text(logical.GEOGRAPHY.crs), algorithm=algorithm.lower())
    if logical.INTEGER is not None and physical in (Physical.INT32, Physical.INT64):
        bits, signed = logical.INTEGER.bitWidth, logical.INTEGER.isSigned
        if bits in ((64,) if physical == Physical.INT64 else (8, 16, 32)):
            return LeafType(physical, "int" if signed else "uint", bits=bits)
    if logical.DECIMAL is not None:
        return _decimal(physical, length, logical.DECIMAL.precision, logical.DECIMAL.scale, element)
    if logical.DATE is not None and physical == Physical.INT32:
        return LeafType(physical, "date")
    if logical.TIME is not None:
        unit = _unit(logical.TIME.unit)
        if unit and physical == (Physical.INT32 if unit == "ms" else Physical.INT64):
            return LeafType(physical, "time", unit=unit, utc=bool(logical.TIME.isAdjustedToUTC))
    if logical.TIMESTAMP is not None and physical == Physical.INT64:
        unit = _unit(logical.TIMESTAMP.unit)
        if unit:
            return LeafType(physical, "timestamp", unit=unit, utc=bool(logical.TIMESTAMP.isAdjustedToUTC))
    if logical.UNKNOWN is not None and element.converted_type is None:
        # Ignored beside a ConvertedType: parquet-java writes UNKNOWN for types that only have one (INTERVAL).
        return LeafType(physical, "null", length)
    if physical == Physical.FIXED_LEN_BYTE_ARRAY:
        if logical.UUID is not None and length == 16:
            return LeafType(physical, "uuid", 16)
        if logical.FLOAT16 is not None and length == 2:
            return LeafType(physical, "float16", 2)
    return None


def _text(value: str | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _unit(unit: Any) -> str:
    if unit.MILLIS is not None:
        return "ms"
    if unit.MICROS is not None:
        return "us"
    return "ns" if unit.NANOS is not None else ""


def _from_converted(element: Any, physical: Physical, length: int) -> LeafType | None:
    converted = element.converted_type
    if converted in _CONVERTED_INTS:
        kind, bits = _CONVERTED_INTS[converted]
        if physical == (Physical.INT64 if bits == 64 else Physical.INT32):
            return LeafType(physical, kind, bits=bits)
    if converted in _CONVERTED_BYTES and physical == Physical.BYTE_ARRAY:
        return LeafType(physical, _CONVERTED_BYTES[converted])
    if converted == _CT.DECIMAL:
        return _decimal(physical, length, element.precision, element.scale or 0, element)
    if converted == _CT.DATE and physical == Physical.INT32:
        return LeafType(physical, "date")
    if converted in _CONVERTED_TIMES:
        kind, unit, needed = _CONVERTED_TIMES[converted]
        if physical == needed:
            # ConvertedType has no local times: these are in UTC by definition.
            return LeafType(physical, kind, unit=unit, utc=True)
    if converted == _CT.INTERVAL and physical == Physical.FIXED_LEN_BYTE_ARRAY and length == 12:
        return LeafType(physical, "interval", 12)
    return None


def decimal_capacity(physical: Physical, length: int) -> int:
    """Maximum number of decimal digits that the storage can hold (LogicalTypes.md, DECIMAL)."""
    if physical == Physical.INT32:
        return 9
    if physical == Physical.INT64:
        return 18
    if physical == Physical.FIXED_LEN_BYTE_ARRAY:
        return len(str((1 << (8 * min(length, 64) - 1)) - 1)) - 1
    return 76


def _decimal(
    physical: Physical, length: int, precision: int | None, scale: int | None, element: Any
) -> LeafType | None:
    if physical not in (Physical.INT32, Physical.INT64, Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY):
        return None
    precision, scale = precision or 0, scale or 0
    if precision < 1 or scale < 0 or scale > precision:
        raise SchemaError(f"DECIMAL has the invalid precision {precision} and scale {scale}", column=str(element.name))
    if precision > decimal_capacity(physical, length):
        raise SchemaError(
            f"DECIMAL precision {precision} does not fit {physical.name}" + (f"({length})" if length else ""),
            column=str(element.name),
        )
    if precision > 76:
        raise SchemaError(
            f"DECIMAL precision {precision} is not supported: the maximum is 76", column=str(element.name)
        )
    return LeafType(physical, "decimal", length, precision=precision, scale=scale)


_INT_CONVERTED = {value: key for key, value in _CONVERTED_INTS.items()}
_UNIT_STRUCTS = {
    "ms": ("MILLIS", tt.MilliSeconds),
    "us": ("MICROS", tt.MicroSeconds),
    "ns": ("NANOS", tt.NanoSeconds),
}


def restate(element: Any, leaf: LeafType) -> None:
    """Set physical type, length and annotation of ``element``, a leaf that is being written, to those of ``leaf``."""
    element.type = int(leaf.physical)
    element.type_length = leaf.length if leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY else None
    element.logicalType = element.converted_type = element.precision = element.scale = None
    annotate(element, leaf)


def annotate(element: Any, leaf: LeafType) -> None:
    """Set LogicalType on ``element``, and ConvertedType beside it where the format asks for both."""
    kind = leaf.kind
    logical = tt.LogicalType()
    converted = None
    if kind in ("int", "uint"):
        if kind == "int" and leaf.bits == (64 if leaf.physical == Physical.INT64 else 32):
            return  # the physical type is enough
        logical.INTEGER = tt.IntType(bitWidth=leaf.bits, isSigned=kind == "int")
        converted = _INT_CONVERTED[kind, leaf.bits]
    elif kind in ("string", "enum", "json", "bson"):
        struct = {"string": "STRING", "enum": "ENUM", "json": "JSON", "bson": "BSON"}[kind]
        cls = {"string": tt.StringType, "enum": tt.EnumType, "json": tt.JsonType, "bson": tt.BsonType}[kind]
        setattr(logical, struct, cls())
        converted = {v: k for k, v in _CONVERTED_BYTES.items()}[kind]
    elif kind == "decimal":
        logical.DECIMAL = tt.DecimalType(scale=leaf.scale, precision=leaf.precision)
        element.precision, element.scale = leaf.precision, leaf.scale
        converted = _CT.DECIMAL
    elif kind == "date":
        logical.DATE = tt.DateType()
        converted = _CT.DATE
    elif kind in ("time", "timestamp"):
        converted = _annotate_time(logical, leaf)
    elif kind == "uuid":
        logical.UUID = tt.UUIDType()
    elif kind == "float16":
        logical.FLOAT16 = tt.Float16Type()
    elif kind == "null":
        logical.UNKNOWN = tt.NullType()
    elif kind == "geometry":
        logical.GEOMETRY = tt.GeometryType(crs=leaf.crs or None)
    elif kind == "geography":
        number = tt.EdgeInterpolationAlgorithm._NAMES_TO_VALUES[(leaf.algorithm or "spherical").upper()]
        logical.GEOGRAPHY = tt.GeographyType(crs=leaf.crs or None, algorithm=number)
    elif kind == "interval":
        element.converted_type = _CT.INTERVAL
        return
    else:
        return
    element.logicalType = logical
    element.converted_type = converted


def _annotate_time(logical: Any, leaf: LeafType) -> int | None:
    name, cls = _UNIT_STRUCTS[leaf.unit]
    unit = tt.TimeUnit()
    setattr(unit, name, cls())
    if leaf.kind == "time":
        logical.TIME = tt.TimeType(isAdjustedToUTC=leaf.utc, unit=unit)
    else:
        logical.TIMESTAMP = tt.TimestampType(isAdjustedToUTC=leaf.utc, unit=unit)
    # ConvertedTypes mean UTC. LogicalTypes.md wants them for local times too: old readers take them as local.
    for number, (kind, converted_unit, _) in _CONVERTED_TIMES.items():
        if kind == leaf.kind and converted_unit == leaf.unit:
            return int(number)
    return None


_UNIT_NAMES = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}


def annotation_name(element: Any) -> str:
    """The logical type as LogicalTypes.md writes it (``TIMESTAMP(us, UTC)``), or the converted type of old files."""
    logical = element.logicalType
    if logical is not None:
        for name in logical.__slots__:
            value = getattr(logical, name)
            if value is not None:
                return str(name) + _parameters(value)
    if element.converted_type is None:
        return ""
    names = tt.ConvertedType._VALUES_TO_NAMES
    name = str(names.get(element.converted_type, f"converted type {element.converted_type}"))
    return f"DECIMAL({element.precision}, {element.scale or 0})" if name == "DECIMAL" else name


def _parameters(value: Any) -> str:
    """``(9, 2)``, ``(us, UTC)``, ``(8, unsigned)``: what an annotation carries."""
    name = type(value).__name__
    if name == "DecimalType":
        return f"({value.precision}, {value.scale})"
    if name in ("TimeType", "TimestampType"):
        unit = next(
            (u for letters, u in _UNIT_NAMES.items() if getattr(value.unit, letters) is not None), "unknown unit"
        )
        return f"({unit}, {'UTC' if value.isAdjustedToUTC else 'local'})"
    if name == "IntType":
        return f"({value.bitWidth}, {'signed' if value.isSigned else 'unsigned'})"
    parts = [str(part) for slot in getattr(value, "__slots__", ()) if (part := _named(value, slot)) is not None]
    return f"({', '.join(parts)})" if parts else ""


def _named(value: Any, slot: str) -> Any:
    found = getattr(value, slot)
    if slot == "algorithm" and found is not None:
        return tt.EdgeInterpolationAlgorithm._VALUES_TO_NAMES.get(found, found)
    return found
