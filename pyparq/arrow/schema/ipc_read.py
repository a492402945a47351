"""Read Arrow schemas from IPC messages, field by field (Arrow's Schema.fbs and Message.fbs, in FlatBuffers).

For ``ARROW:schema`` metadata alone: bytes from outside. Every offset is checked against the buffer, nothing is built
but what is asked for, and whatever does not fit raises :class:`HintError`, which callers take as "no hint".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyparq.kernels import arrow_schema_field


class HintError(ValueError):
    """The bytes are not what they claim to be."""


# Members of Arrow's union ``Type``.
_NULL, _INT, _FLOAT, _BINARY, _UTF8, _BOOL, _DECIMAL, _DATE, _TIME, _TIMESTAMP, _INTERVAL, _LIST, _STRUCT = range(1, 14)
_FIXED_BINARY, _FIXED_LIST, _MAP, _DURATION, _LARGE_BINARY, _LARGE_UTF8, _LARGE_LIST = range(15, 22)
_BINARY_VIEW, _UTF8_VIEW, _LIST_VIEW, _LARGE_LIST_VIEW = range(23, 27)

_PLAIN = {
    _NULL: "n", _BINARY: "z", _UTF8: "u", _BOOL: "b", _LARGE_BINARY: "Z", _LARGE_UTF8: "U", _BINARY_VIEW: "vz",
    _UTF8_VIEW: "vu", _LIST: "+l", _LARGE_LIST: "+L", _LIST_VIEW: "+vl", _LARGE_LIST_VIEW: "+vL", _STRUCT: "+s",
    _MAP: "+m",
}  # fmt: skip
_INTS = {(8, True): "c", (8, False): "C", (16, True): "s", (16, False): "S", (32, True): "i", (32, False): "I",
         (64, True): "l", (64, False): "L", (128, True): "_pli128", (128, False): "_plu128"}  # fmt: skip
_UNITS = "smun"
_MOST_TEXT = 1 << 20


class _Table:
    """One FlatBuffers table: a position, and the places of its members."""

    __slots__ = ("_data", "_members", "_start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start
        at = start - _number(data, "<i", start)
        size = _number(data, "<H", at)
        if size < 4 or size % 2 or at + size > len(data):
            raise HintError("a vtable beyond the buffer")
        self._members = data[at + 4 : at + size]

    def _place(self, member: int) -> int:
        """Position of a member; 0 when it is absent."""
        if 2 * member + 2 > len(self._members):
            return 0
        offset = _number(self._members, "<H", 2 * member)
        return self._start + offset if offset else 0

    def number(self, member: int, form: str, default: int = 0) -> int:
        at = self._place(member)
        return _number(self._data, form, at) if at else default

    def table(self, member: int) -> _Table | None:
        at = self._place(member)
        return _Table(self._data, _target(self._data, at)) if at else None

    def text(self, member: int, most: int = _MOST_TEXT) -> bytes:
        at = self._place(member)
        if not at:
            return b""
        start = _target(self._data, at)
        size = _number(self._data, "<I", start)
        if size > most or start + 4 + size > len(self._data):
            raise HintError("a text beyond the buffer")
        return self._data[start + 4 : start + 4 + size]

    def vector(self, member: int) -> _Vector:
        at = self._place(member)
        return _Vector(self._data, _target(self._data, at) if at else 0)


class _Vector:
    """A FlatBuffers vector of tables."""

    __slots__ = ("_data", "count", "start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self.start = start
        self.count = _number(data, "<I", start) if start else 0
        if self.count > (len(data) - start) // 4:
            raise HintError("a vector beyond the buffer")

    def __getitem__(self, index: int) -> _Table:
        if not 0 <= index < self.count:
            raise HintError(f"entry {index} of {self.count}")
        return _Table(self._data, _target(self._data, self.start + 4 + 4 * index))

    def __iter__(self) -> Iterator[_Table]:
        return (self[k] for k in range(self.count))


def _number(data: bytes, form: str, at: int) -> int:
    if at < 0:
        raise HintError("an offset before the buffer")
    try:
        found: int = struct.unpack_from(form, data, at)[0]
    except struct.error:
        raise HintError("an offset beyond the buffer") from None
    return found


def _target(data: bytes, at: int) -> int:
    return at + _number(data, "<I", at)


class HintField:
    """One field of an Arrow schema. Each part is decoded when it is accessed."""

    __slots__ = ("_table",)

    def __init__(self, table: _Table) -> None:
        self._table = table

    @property
    def name(self) -> str:
        return self._table.text(0).decode("utf-8", "replace")

    @property
    def nullable(self) -> bool:
        return bool(self._table.number(1, "<B"))

    @property
    def num_children(self) -> int:
        return self._table.vector(5).count

    def child(self, index: int) -> HintField:
        return HintField(self._table.vector(5)[index])

    @property
    def is_dictionary(self) -> bool:
        """Is the field dictionary-encoded? Its type is that of the values then."""
        return self._table.table(4) is not None

    @property
    def index_format(self) -> str:
        """The format of a dictionary's indices (int32 unless it says otherwise)."""
        encoding = self._table.table(4)
        index = None if encoding is None else encoding.table(1)
        if index is None:
            return "i"
        return _INTS.get((index.number(0, "<i"), bool(index.number(1, "<B"))), "i")

    @property
    def is_ordered(self) -> bool:
        encoding = self._table.table(4)
        return encoding is not None and bool(encoding.number(2, "<B"))

    @property
    def keys_are_sorted(self) -> bool:
        """Does a map say so of its keys?"""
        table = self._table.table(3)
        return table is not None and bool(table.number(0, "<B"))

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Raises :class:`HintError` beyond 1 MiB or 256 entries (entries may share their bytes: not so the copies)."""
        pairs, left = self._table.vector(6), _MOST_TEXT
        if pairs.count > 256:
            raise HintError(f"{pairs.count} metadata entries of one field")
        found = {}
        for pair in pairs:
            key, value = pair.text(0), pair.text(1)
            left -= len(key) + len(value)
            if left < 0:
                raise HintError("more than 1 MiB of metadata for one field")
            found[key] = value
        return found

    @property
    def format(self) -> str:
        """The type's C data interface format; ``""`` for types that no hint is taken from."""
        kind, table = self._table.number(2, "<B"), self._table.table(3)
        if kind in _PLAIN:
            return _PLAIN[kind]
        if table is None:
            raise HintError("a type without its parameters")
        if kind == _INT:
            return _INTS.get((table.number(0, "<i"), bool(table.number(1, "<B"))), "")
        if kind == _FLOAT:
            return "efg"[_within(table.number(0, "<h"), 3)]
        if kind == _TIMESTAMP:
            return f"ts{_UNITS[_within(table.number(0, '<h'), 4)]}:{table.text(1).decode('utf-8', 'replace')}"
        if kind == _DURATION:
            return f"tD{_UNITS[_within(table.number(0, '<h', 1), 4)]}"
        if kind == _TIME:
            return f"tt{_UNITS[_within(table.number(0, '<h', 1), 4)]}"
        if kind == _DATE:
            return "tdm" if table.number(0, "<h", 1) else "tdD"
        if kind == _DECIMAL:
            precision, scale, bits = table.number(0, "<i"), table.number(1, "<i"), table.number(2, "<i", 128)
            return f"d:{precision},{scale}" + ("" if bits == 128 else f",{bits}")
        if kind == _INTERVAL:
            return f"ti{'MDn'[_within(table.number(0, '<h'), 3)]}"
        if kind == _FIXED_BINARY:
            return f"w:{table.number(0, '<i')}"
        return f"+w:{table.number(0, '<i')}" if kind == _FIXED_LIST else ""


class PlainHint(NamedTuple):
    """A field that has only a name and a type. It has the methods of a :class:`HintField`."""

    name: str
    format: str
    num_children: int = 0
    is_dictionary: bool = False
    index_format: str = "i"
    is_ordered: bool = False
    keys_are_sorted: bool = False
    metadata: Mapping[bytes, bytes] = MappingProxyType({})

    def child(self, index: int) -> HintField:
        raise HintError(f"entry {index} of 0")


def _within(number: int, count: int) -> int:
    if not 0 <= number < count:
        raise HintError(f"choice {number} of {count}")
    return number


class HintSchema:
    """The fields of an Arrow schema, each decoded when it is asked for."""

    def __init__(self, message: bytes) -> None:
        """``message``: an encapsulated IPC message (with its length in front) that holds a schema.

        Raises :class:`HintError`.
        """
        start = 8 if message[:4] == b"\xff\xff\xff\xff" else 4  # before Arrow 0.15 without the marker
        size = _number(message, "<i", start - 4)
        if not 0 < size <= len(message) - start:
            raise HintError("a message beyond the metadata")
        data = message[start : start + size]
        root = _Table(data, _number(data, "<I", 0))
        header = root.table(2)
        if root.number(1, "<B") != 1 or header is None:
            raise HintError("the message holds no schema")
        self._data = data
        self._header = header
        self._fields = header.vector(1)

    def __len__(self) -> int:
        return self._fields.count

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The metadata of the schema, in order; keys may repeat. Raises :class:`HintError` where they have more bytes
        than the message, as entries may share theirs."""
        found, left = [], len(self._data)
        for pair in self._header.vector(2):
            key, value = pair.text(0, left), pair.text(1, left)
            left -= len(key) + len(value)
            if left < 0:
                raise HintError("more metadata than the message has bytes")
            found.append((key, value))
        return found

    def plain(self, index: int) -> PlainHint | None:
        """A field that is nothing but a name and a type; ``None`` for others, and where it is damaged."""
        found = arrow_schema_field(self._data, self._fields.start, index)
        return None if found is None else PlainHint(*found)

    def field(self, index: int) -> HintField:
        return HintField(self._fields[index])
