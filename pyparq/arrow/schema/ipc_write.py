"""Write an Arrow schema as an IPC message, which is what ``ARROW:schema`` metadata holds (Schema.fbs, Message.fbs).

FlatBuffers want references to point forward: a table is laid down first, what it refers to behind it, and the places of
the references are filled in then. Member numbers are those of Arrow's schema files.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyparq.arrow.schema.extensions import LAYOUT
from pyparq.format.types import DataType, Field, Schema


class _Member(NamedTuple):
    """One member of a table: its number, and a scalar (a form of :mod:`struct`) or what writes the part referred to."""

    number: int
    form: str
    value: int = 0
    reference: Callable[[], int] | None = None


class _Buffer:
    """A growing FlatBuffer."""

    def __init__(self) -> None:
        self.data = bytearray(4)  # the place of the root table
        self._tables: list[tuple[int, bytes]] = []  # each with its layout, which tables share

    def _align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def _point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.data, place, target - place)

    def table(self, members: Sequence[_Member]) -> int:
        """Lay down a table and all it refers to; returns its position."""
        count = max((m.number + 1 for m in members), default=0)
        places = [0] * count
        size = widest = 4
        for member in members:  # each at its natural alignment, counted from the aligned table
            width = struct.calcsize(member.form)
            widest = max(widest, width)
            size += -size % width
            places[member.number] = size
            size += width
        layout = struct.pack(f"<HH{count}H", 4 + 2 * count, size, *places)
        self._align(widest)
        start = len(self.data)
        self._tables.append((start, layout))
        self.data += bytes(size)
        for member in members:
            if member.reference is None:
                struct.pack_into(member.form, self.data, start + places[member.number], member.value)
        for member in members:
            if member.reference is not None:
                place = start + places[member.number]
                self._point(place, member.reference())
        return start

    def text(self, value: bytes) -> int:
        self._align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(value)) + value + b"\0"
        return start

    def vector(self, parts: Sequence[Callable[[], int]]) -> int:
        """A vector of tables."""
        self._align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(parts)) + bytes(4 * len(parts))
        for k, part in enumerate(parts):
            self._point(start + 4 + 4 * k, part())
        return start

    def root(self, position: int) -> bytes:
        struct.pack_into("<I", self.data, 0, position)
        self._align(2)
        layouts = dict[bytes, int]()
        for start, layout in self._tables:
            if layout not in layouts:
                layouts[layout] = len(self.data)
                self.data += layout
            struct.pack_into("<i", self.data, start, start - layouts[layout])
        self._align(8)
        return bytes(self.data)


_INTS = {"c": (8, 1), "C": (8, 0), "s": (16, 1), "S": (16, 0), "i": (32, 1), "I": (32, 0), "l": (64, 1), "L": (64, 0),
         "_pli128": (128, 1), "_plu128": (128, 0)}  # fmt: skip
_SIMPLE = {"n": 1, "z": 4, "u": 5, "b": 6, "+l": 12, "+s": 13, "Z": 19, "U": 20, "+L": 21, "vz": 23, "vu": 24,
           "+vl": 25, "+vL": 26}  # fmt: skip
_KEPT_IN_DICTIONARIES = ("u", "U", "vu", "z", "Z", "vz")
_UNITS = "smun"


def _scalar(number: int, form: str, value: int) -> _Member:
    return _Member(number, form, value)


def _parameters(type_: DataType, out: _Buffer) -> tuple[int, list[_Member]]:
    """The number of a type in the union ``Type``, and the members of its table."""
    f = type_.format
    if f in _SIMPLE:
        return _SIMPLE[f], []
    if f in _INTS:
        bits, signed = _INTS[f]
        return 2, [_scalar(0, "<i", bits), _scalar(1, "<B", signed)]
    if f in "efg":
        return 3, [_scalar(0, "<h", "efg".index(f))]
    if f.startswith("d:"):
        return 7, [_scalar(k, "<i", n) for k, n in enumerate(type_.decimal)]
    if f.startswith("td"):
        return 8, [_scalar(0, "<h", int(f == "tdm"))]
    if f.startswith("tt"):
        return 9, [_scalar(0, "<h", _UNITS.index(f[2])), _scalar(1, "<i", 32 if f[2] in "sm" else 64)]
    if f.startswith("ts"):
        zone = [_Member(1, "<I", reference=lambda: out.text(f[4:].encode()))] if f[4:] else []
        return 10, [_scalar(0, "<h", _UNITS.index(f[2])), *zone]
    if f.startswith("ti"):
        return 11, [_scalar(0, "<h", "MDn".index(f[2]))]
    if f.startswith("w:"):
        return 15, [_scalar(0, "<i", int(f[2:]))]
    if f.startswith("+w:"):
        return 16, [_scalar(0, "<i", int(f[3:]))]
    if f == "+m":
        return 17, [_scalar(0, "<B", int(type_.ordered))]
    if f.startswith("tD"):
        return 18, [_scalar(0, "<h", _UNITS.index(f[2]))]
    if f == "+r":
        return 22, []
    raise ValueError(f"no Arrow IPC type for {f}")


def _pairs(out: _Buffer, metadata: Mapping[bytes, bytes]) -> int:
    def pair(key: bytes, value: bytes) -> int:
        return out.table(
            [_Member(0, "<I", reference=lambda: out.text(key)), _Member(1, "<I", reference=lambda: out.text(value))]
        )

    return out.vector([partial(pair, key, value) for key, value in metadata.items()])


class _Fields:
    """Writes fields, numbering the dictionaries among them."""

    def __init__(self, out: _Buffer) -> None:
        self.out = out
        self.dictionaries = 0

    def write(self, field: Field) -> int:
        out, type_ = self.out, field.type if field.type.dictionary is None else field.type.dictionary
        number, parameters = _parameters(type_, out)
        members = [
            _Member(0, "<I", reference=lambda: out.text(field.name.encode())),
            _scalar(1, "<B", int(field.nullable)),
            _scalar(2, "<B", number),
            _Member(3, "<I", reference=lambda: out.table(parameters)),
            _Member(5, "<I", reference=lambda: out.vector([partial(self.write, child) for child in type_.children])),
        ]
        if field.type.dictionary is not None:
            members.append(_Member(4, "<I", reference=lambda: self._encoding(field.type)))
        if field.metadata:
            members.append(_Member(6, "<I", reference=lambda: _pairs(out, field.metadata)))
        return out.table(members)

    def _encoding(self, type_: DataType) -> int:
        bits, signed = _INTS[type_.format]
        index = [_scalar(0, "<i", bits), _scalar(1, "<B", signed)]
        identity, self.dictionaries = self.dictionaries, self.dictionaries + 1
        return self.out.table(
            [
                _scalar(0, "<q", identity),
                _Member(1, "<I", reference=lambda: self.out.table(index)),
                _scalar(2, "<B", int(type_.ordered)),
            ]
        )


def schema_message(schema: Schema) -> bytes:
    """The schema as an encapsulated IPC message (metadata version 5).

    Raises ``ValueError`` for a type that has no number in the format (unions).
    """
    out = _Buffer()
    fields = _Fields(out)

    def header() -> int:
        parts = [partial(fields.write, field) for field in schema]
        members = [_Member(1, "<I", reference=lambda: out.vector(parts))]
        if schema.metadata:
            members.append(_Member(2, "<I", reference=lambda: _pairs(out, schema.metadata)))
        return out.table(members)

    root = out.table(
        [_scalar(0, "<h", 4), _scalar(1, "<B", 1), _Member(2, "<I", reference=header), _scalar(3, "<q", 0)]
    )
    data = out.root(root)
    return b"\xff\xff\xff\xff" + struct.pack("<i", len(data)) + data


def stored_schema(schema: Schema) -> str:
    """The value of ``ARROW:schema`` for data that are written by a schema.

    Columns of run ends, and dictionaries of anything but strings and binary, have the type of their values there, and
    date64 is date32, with a note: polars (2.1) opens no file that speaks of run ends, and takes date64 for timestamps;
    pyarrow (26) makes of a dictionary of durations integers, and of none but strings and binary a dictionary again.
    """
    plain = replace(schema, fields=tuple(_for_others(field) for field in schema))
    return binascii.b2a_base64(schema_message(plain), newline=False).decode()


def _for_others(field: Field) -> Field:
    type_ = field.type
    if type_.format == "+r" and len(type_.children) == 2:
        ends, values = (child.type for child in type_.children)
        return _for_others(_noted(field, values, f"run_end:{ends.format}"))
    if type_.dictionary is not None:
        if type_.dictionary.format in _KEPT_IN_DICTIONARIES:
            return field
        kind = "ordered" if type_.ordered else "dictionary"
        return _for_others(_noted(field, type_.dictionary, f"{kind}:{type_.format}"))
    if type_.format == "tdm":
        return _noted(field, DataType("tdD"), "date64")
    children = tuple(_for_others(child) for child in type_.children)
    return field if children == type_.children else replace(field, type=replace(type_, children=children))


def _noted(field: Field, type_: DataType, layout: str) -> Field:
    notes = [*field.metadata.get(LAYOUT, b"").split(), layout.encode()]
    return replace(field, type=type_, metadata={**field.metadata, LAYOUT: b" ".join(notes)})
