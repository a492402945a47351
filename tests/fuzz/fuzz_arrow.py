"""Arrow from outside: schemas in FlatBuffers, and C structs that say what the protocol lets them say."""

from __future__ import annotations

import ctypes as ct
from contextlib import suppress
from typing import Any

import numpy as np
from fuzz_input import check, number, refused, split

from pyparq.arrow.schema.ipc_read import HintError, HintField, HintSchema
from pyparq.kernels import ArrowImport, arrow_schema_field

_LIBRARY = ct.pythonapi
_LIBRARY.PyCapsule_New.restype = ct.py_object
_LIBRARY.PyCapsule_New.argtypes = [ct.c_void_p, ct.c_char_p, ct.c_void_p]


def schema(data: Any) -> None:
    """One field by the kernel, and the whole schema."""
    head, stored = split(data)
    with refused:
        arrow_schema_field(stored, number(head, 0) % (len(stored) + 8), head[2] % 4)
    if head[3] & 3 == 0:
        with suppress(HintError, UnicodeDecodeError):
            found = HintSchema(bytes(stored))
            found.pairs()
            for index in range(min(len(found), 4)):
                found.plain(index)
                _walk(found.field(index), 0)


def _walk(field: HintField, depth: int) -> None:
    """All that is asked of a field and of those below it."""
    check(isinstance(field.format + field.name + field.index_format, str), "no text")
    check(len(field.metadata) <= 256, "too many pairs")
    for index in range(min(field.num_children, 3) if depth < 5 else 0):
        _walk(field.child(index), depth + 1)


class _Schema(ct.Structure):
    pass


class _Array(ct.Structure):
    pass


_RELEASE_SCHEMA = ct.CFUNCTYPE(None, ct.POINTER(_Schema))
_RELEASE_ARRAY = ct.CFUNCTYPE(None, ct.POINTER(_Array))
_Schema._fields_ = [
    ("format", ct.c_char_p), ("name", ct.c_char_p), ("metadata", ct.c_char_p), ("flags", ct.c_int64),
    ("n_children", ct.c_int64), ("children", ct.POINTER(ct.POINTER(_Schema))), ("dictionary", ct.POINTER(_Schema)),
    ("release", _RELEASE_SCHEMA), ("private_data", ct.c_void_p),
]  # fmt: skip
_Array._fields_ = [
    ("length", ct.c_int64), ("null_count", ct.c_int64), ("offset", ct.c_int64), ("n_buffers", ct.c_int64),
    ("n_children", ct.c_int64), ("buffers", ct.POINTER(ct.c_void_p)), ("children", ct.POINTER(ct.POINTER(_Array))),
    ("dictionary", ct.POINTER(_Array)), ("release", _RELEASE_ARRAY), ("private_data", ct.c_void_p),
]  # fmt: skip


@_RELEASE_SCHEMA
def _let_go_of_schema(schema: Any) -> None:
    schema.contents.release = _RELEASE_SCHEMA(0)


@_RELEASE_ARRAY
def _let_go_of_array(array: Any) -> None:
    array.contents.release = _RELEASE_ARRAY(0)


_FIXED = {
    b"b": 0, b"c": 1, b"S": 2, b"i": 4, b"l": 8, b"g": 8, b"tdD": 4, b"tsu:UTC": 8, b"w:3": 3, b"w:0": 0, b"d:10,2": 16,
    b"d:40,2,256": 32, b"tin": 16, b"n": 0,
}  # fmt: skip
_FORMATS = (
    *_FIXED,
    b"u",
    b"Z",
    b"vu",
    b"+l",
    b"+L",
    b"+s",
    b"+w:2",
    b"+vl",
    b"dictionary",
    b"+m",
    b"?",
    b"w:x",
    b"d:1",
)


class _Made:
    """A schema and an array whose buffers are as long as their claims, filled from the input."""

    def __init__(self, head: bytes, data: bytes) -> None:
        self.data, self.at = data, 0
        self.kept: list[Any] = []
        self.length, self.offset = head[0] % 40, head[1] % 9
        self.schema, self.array = self._pair(0)

    def _next(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def _bytes(self, size: int) -> Any:
        """A buffer of exactly that many bytes."""
        raw = np.zeros(size, np.uint8)
        taken = self.data[self.at : self.at + size]
        raw[: len(taken)] = np.frombuffer(taken, np.uint8)
        self.at += len(taken)
        return raw

    def _offsets(self, count: int, dtype: Any, limit: int) -> Any:
        """Mostly rising numbers up to ``limit``; at times some fall, or are negative."""
        raw = self._bytes(count).astype(np.int64)
        made = np.minimum(np.cumsum(raw % 4), limit) if self._next() % 8 else raw.astype(np.int8).astype(np.int64)
        return np.minimum(made, limit).astype(dtype)

    def _pair(self, depth: int) -> tuple[_Schema, _Array]:
        format = _FORMATS[self._next() % len(_FORMATS)] if depth < 3 else b"i"
        length, offset = self.length + self._next() % 3, self.offset
        slots = length + offset
        children: list[tuple[_Schema, _Array]] = []
        dictionary = None
        buffers: list[Any] = [self._bytes((slots + 7) // 8) if self._next() % 2 else None]
        if format == b"dictionary":
            format, dictionary = b"i", self._pair(depth + 1)
            buffers.append(self._bytes(4 * slots))
        elif format in _FIXED:
            width = _FIXED[format]
            buffers.append(self._bytes((slots + 7) // 8 if format == b"b" else slots * width))
            if format == b"n":
                buffers = []
        elif format in (b"u", b"Z"):
            data = self._bytes(self._next() % 64)
            buffers += [self._offsets(slots + 1, np.int32 if format == b"u" else np.int64, len(data)), data]
        elif format == b"vu":
            data = self._bytes(16)
            buffers += [self._bytes(16 * slots), data, np.array([len(data)], np.int64)]
        elif format in (b"+l", b"+L", b"+m", b"+vl"):
            children = [self._pair(depth + 1)]
            dtype = np.int64 if format == b"+L" else np.int32
            buffers.append(self._offsets(slots + 1, dtype, children[0][1].length))
            if format == b"+vl":
                buffers.append(self._offsets(slots, dtype, 4))
        elif format in (b"+s", b"+w:2"):
            children = [self._pair(depth + 1) for _ in range(self._next() % 3 if format == b"+s" else 1)]
        return self._structs(format, length, offset, buffers, children, dictionary)

    def _structs(self, format: bytes, length: int, offset: int, buffers: list[Any], children: Any, dictionary: Any,
                 ) -> tuple[_Schema, _Array]:  # fmt: skip
        schema, array = _Schema(), _Array()
        schema.format, schema.name, schema.flags = format, b"x", self._next()
        array.length, array.offset, array.null_count = length, offset, -1 if self._next() % 2 else 0
        if self._next() == 255:
            array.length = -1
        places = (ct.c_void_p * max(len(buffers), 1))(*[None if b is None else b.ctypes.data for b in buffers])
        array.n_buffers, array.buffers = len(buffers), places
        self.kept += [schema, array, places, *buffers]
        for struct, inside in ((schema, [c[0] for c in children]), (array, [c[1] for c in children])):
            pointers = (ct.POINTER(type(struct)) * max(len(inside), 1))(*map(ct.pointer, inside))
            struct.n_children, struct.children = len(inside), pointers
            self.kept.append(pointers)
        if dictionary is not None:
            schema.dictionary, array.dictionary = map(ct.pointer, dictionary)
        schema.release, array.release = _let_go_of_schema, _let_go_of_array
        return schema, array


def imported(data: Any) -> None:
    """What is taken over can be read to its last byte."""
    head, stored = split(data)
    made = _Made(head, bytes(stored))
    capsules = [
        _LIBRARY.PyCapsule_New(ct.addressof(struct), name, None)
        for struct, name in ((made.schema, b"arrow_schema"), (made.array, b"arrow_array"))
    ]
    with refused:
        taken = ArrowImport(*capsules)
        if taken.schema() is None:
            return
        _touch(taken.next())


def _touch(array: Any) -> None:
    if isinstance(array, tuple):
        _, _, _, validity, buffers, children, dictionary = array
        for child in (*children, *([] if dictionary is None else [dictionary])):
            _touch(child)
    else:
        check(array.num_bytes >= 0, "a negative size")
        validity, buffers = array.validity, array.buffers
    for buffer in (*buffers, *([] if validity is None else [validity])):
        np.frombuffer(buffer, np.uint8).sum()
