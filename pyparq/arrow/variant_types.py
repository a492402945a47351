"""The types of Variants in memory: whole ones, and columns that parts of them are shredded to (VariantShredding.md)."""

from __future__ import annotations

from pyparq.arrow.schema.extensions import EXTENSION_NAME, LOGICAL_TYPE, UUID
from pyparq.errors import UnsupportedError
from pyparq.format.types import DataType, Field

PARTS = ("metadata", "value")
WHOLE = DataType("+s", tuple(Field(name, DataType("z"), False) for name in PARTS))
"""The type of a Variant that is not shredded."""

OBJECT, LIST = 100, 101
"""What the kernels know objects and arrays by, beside the numbers of the primitive types."""
BYTE_ARRAYS = (15, 16)
"""Binary and string."""

_PRIMITIVES = {"b": 1, "c": 3, "s": 4, "i": 5, "l": 6, "g": 7, "tdD": 11, "f": 14, "z": 15, "Z": 15, "u": 16, "U": 16}
"""Numbers of the primitive types in VariantEncoding.md, by Arrow's formats."""
_TIMES = {("tsu:", True): 12, ("tsu:", False): 13, ("ttu", False): 17, ("tsn:", True): 18, ("tsn:", False): 19}
"""The same by unit, and by whether they are in UTC."""


def is_whole(type_: DataType) -> bool:
    """Whether this is the type of a Variant that is not shredded."""
    return type_.format == "+s" and tuple(child.name for child in type_.children) == PARTS


def primitive_kind(type_: DataType, field: Field) -> int:
    """The number of the primitive type in VariantEncoding.md that is shredded to columns of this type.

    Raises :class:`UnsupportedError` where there is none.
    """
    form, logical = type_.format, field.metadata.get(LOGICAL_TYPE)
    if form in _PRIMITIVES:
        return _PRIMITIVES[form]
    if form == "w:16" and field.metadata.get(EXTENSION_NAME) == UUID:
        return 20
    if type_.kind == "decimal" and type_.decimal[0] <= 38:
        digits = type_.decimal[0]
        return 8 if digits <= 9 else 9 if digits <= 18 else 10
    found = _TIMES.get(
        (form[:4] if form.startswith("ts") else form, bool(type_.kind == "timestamp" and type_.timezone))
    )
    if found is None or logical is not None:
        raise UnsupportedError(f"no Variant is shredded to columns of the type {type_}")
    return found
