"""Serialized Thrift structs that are changed in places and otherwise kept byte for byte, unknown fields included.

The generated classes drop fields that they do not know. Here a struct is a list of fields whose values stay the bytes
that they are, until one is opened or set. What was not touched comes out as it came in, also where a writer did not
choose the shortest form. Nothing has a meaning here but the wire (Thrift compact protocol).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Union

from pyparq.format.thrift_codec import ThriftDecodeError, ThriftTruncatedError
from pyparq.kernels import KernelError, ThriftTruncated, thrift_split_list, thrift_split_struct

__all__ = ["BINARY", "I16", "I32", "I64", "LIST", "STRUCT", "ThriftList", "ThriftStruct"]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
_INTEGERS = (I16, I32, I64)

Value = Union[bytes, memoryview, "ThriftStruct", "ThriftList"]


@dataclass(slots=True)
class ThriftField:
    """One field of a struct."""

    number: int
    wire: int
    """The type on the wire; a bool is its type alone."""
    value: Value
    head: bytes | memoryview
    """Its header as it was read; empty for a new one."""
    before: int
    """The field in front of it when it was read: its header counts from there."""


class ThriftStruct:
    """A struct. ``number`` is a field's id everywhere. Of fields that occur twice, the last counts."""

    __slots__ = ("fields",)

    def __init__(self, fields: list[ThriftField] | None = None) -> None:
        self.fields = [] if fields is None else fields

    @classmethod
    def parse(cls, data: bytes | memoryview, at: int = 0) -> tuple[ThriftStruct, int]:
        """The struct that starts at ``data[at]``, and where it ends.

        Raises :class:`ThriftTruncatedError` when the bytes end too early, :class:`ThriftDecodeError` for any other
        fault. Values are views of ``data``, which must not change.
        """
        view = memoryview(data).cast("B")
        try:
            end, found = thrift_split_struct(view, at)
        except ThriftTruncated as error:
            raise ThriftTruncatedError(str(error)) from None
        except KernelError as error:
            raise ThriftDecodeError(str(error)) from None
        numbers = found.tolist()
        fields, before = [], 0
        behind = [*numbers[6::4], end - 1]  # the next header, or the byte that ends the struct
        for k, stop in enumerate(behind if numbers else ()):
            number, wire, head, value = numbers[4 * k : 4 * k + 4]
            fields.append(ThriftField(number, wire, view[value:stop], view[head:value], before))
            before = number
        return cls(fields), end

    def serialize(self) -> bytes:
        """The bytes of the struct."""
        parts: list[bytes | memoryview] = []
        self._add_to(parts)
        return b"".join(parts)

    def _add_to(self, parts: list[bytes | memoryview]) -> None:
        before = 0
        for field in self.fields:
            kept = field.head and field.before == before
            parts.append(field.head if kept else _field_header(field.number, field.wire, before))
            before = field.number
            if isinstance(field.value, (ThriftStruct, ThriftList)):
                field.value._add_to(parts)
            else:
                parts.append(field.value)
        parts.append(b"\x00")

    # ---- looking

    def field(self, number: int) -> ThriftField | None:
        """The field, if it is there."""
        for field in reversed(self.fields):
            if field.number == number:
                return field
        return None

    def integer(self, number: int) -> int | None:
        """The value of an integer field; ``None`` where there is none."""
        field = self.field(number)
        if field is None:
            return None
        if field.wire not in _INTEGERS or not isinstance(field.value, (bytes, memoryview)):
            raise ThriftDecodeError(f"field {number} is not an integer")
        return _number(field.value)

    def binary(self, number: int) -> bytes | None:
        """The value of a binary or text field; ``None`` where there is none."""
        field = self.field(number)
        if field is None:
            return None
        if field.wire != BINARY or not isinstance(field.value, (bytes, memoryview)):
            raise ThriftDecodeError(f"field {number} is not binary")
        return _binary(field.value)

    def struct(self, number: int) -> ThriftStruct | None:
        """The struct in a field, opened: what is changed in it is changed in this struct."""
        field = self.field(number)
        if field is None:
            return None
        if isinstance(field.value, (bytes, memoryview)):
            if field.wire != STRUCT:
                raise ThriftDecodeError(f"field {number} is not a struct")
            field.value = ThriftStruct.parse(field.value)[0]
        if not isinstance(field.value, ThriftStruct):
            raise ThriftDecodeError(f"field {number} is not a struct")
        return field.value

    def list(self, number: int) -> ThriftList | None:
        """The list in a field, opened likewise."""
        field = self.field(number)
        if field is None:
            return None
        if isinstance(field.value, (bytes, memoryview)):
            if field.wire != LIST:
                raise ThriftDecodeError(f"field {number} is not a list")
            field.value = ThriftList.parse(field.value)
        if not isinstance(field.value, ThriftList):
            raise ThriftDecodeError(f"field {number} is not a list")
        return field.value

    # ---- changing

    def set_integer(self, number: int, wire: int, value: int) -> None:
        """Set a field of wire type ``I16``, ``I32`` or ``I64``."""
        self._set(number, wire, _varint(_zigzag(value)))

    def set_binary(self, number: int, value: bytes) -> None:
        """Set a binary or text field."""
        self._set(number, BINARY, _varint(len(value)) + value)

    def set_struct(self, number: int, value: ThriftStruct) -> None:
        """Set a field to a struct."""
        self._set(number, STRUCT, value)

    def set_list(self, number: int, value: ThriftList) -> None:
        """Set a field to a list."""
        self._set(number, LIST, value)

    def remove(self, number: int) -> None:
        """Remove a field, if it is there."""
        self.fields = [field for field in self.fields if field.number != number]

    def _set(self, number: int, wire: int, value: Value) -> None:
        field = self.field(number)
        if field is not None:
            if field.wire != wire:
                field.wire, field.head = wire, b""
            field.value = value
            return
        new = ThriftField(number, wire, value, b"", 0)
        place = next((k for k, f in enumerate(self.fields) if f.number > number), len(self.fields))
        self.fields.insert(place, new)


class ThriftList:
    """A list (or set) with elements of one wire type."""

    __slots__ = ("_count", "_head", "elements", "wire")

    def __init__(self, wire: int, elements: list[Value] | None = None) -> None:
        self.wire = wire
        self.elements: list[Value] = [] if elements is None else elements
        self._head: bytes | memoryview = b""
        self._count = -1

    @classmethod
    def parse(cls, data: bytes | memoryview) -> ThriftList:
        """The list that ``data`` starts with. Raises as :meth:`ThriftStruct.parse`."""
        view = memoryview(data).cast("B")
        try:
            wire, found = thrift_split_list(view, 0)
        except ThriftTruncated as error:
            raise ThriftTruncatedError(str(error)) from None
        except KernelError as error:
            raise ThriftDecodeError(str(error)) from None
        places = found.tolist()
        new = cls(wire, [view[a:b] for a, b in pairwise(places)])
        new._head, new._count = view[: places[0]], len(new.elements)
        return new

    def __len__(self) -> int:
        return len(self.elements)

    def struct(self, k: int) -> ThriftStruct:
        """Element ``k``, opened: what is changed in it is changed in this list. Raises :class:`ThriftDecodeError` when
        it is no struct, ``IndexError`` when it is not there."""
        element = self.elements[k] = self.look(k)
        return element

    def look(self, k: int) -> ThriftStruct:
        """Element ``k``, as :meth:`struct` returns it, but not kept open: what is changed in it may be lost."""
        element = self.elements[k]
        if isinstance(element, (bytes, memoryview)) and self.wire == STRUCT:
            element = ThriftStruct.parse(element)[0]
        if not isinstance(element, ThriftStruct):
            raise ThriftDecodeError("the elements of the list are not structs")
        return element

    def append(self, element: ThriftStruct) -> None:
        """Add a struct at the end."""
        if not self.elements:
            self.wire, self._head = STRUCT, b""
        if self.wire != STRUCT:
            raise ThriftDecodeError("the elements of the list are not structs")
        self.elements.append(element)

    def _add_to(self, parts: list[bytes | memoryview]) -> None:
        kept = self._head and self._count == len(self.elements)
        n = len(self.elements)
        head = bytes((n << 4 | self.wire,)) if n < 15 else bytes((0xF0 | self.wire,)) + _varint(n)
        parts.append(self._head if kept else head)
        for element in self.elements:
            if isinstance(element, (ThriftStruct, ThriftList)):
                element._add_to(parts)
            else:
                parts.append(element)


# ---- the wire ------------------------------------------------------------------------------------------------------


def _field_header(number: int, wire: int, before: int) -> bytes:
    step = number - before
    if 0 < step <= 15:
        return bytes((step << 4 | wire,))
    return bytes((wire,)) + _varint(_zigzag(number))


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _unsigned(data: bytes | memoryview) -> tuple[int, int]:
    """A varint that is known to be whole, and its bytes."""
    value = 0
    for k, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return value, k + 1
    raise ThriftTruncatedError("the bytes end inside an integer")


def _number(data: bytes | memoryview) -> int:
    value, _ = _unsigned(data)
    return value >> 1 ^ -(value & 1)


def _binary(data: bytes | memoryview) -> bytes:
    size, at = _unsigned(data)
    return bytes(data[at : at + size])
