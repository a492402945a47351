"""The few corners of the Arrow C data interface that nanoarrow's Python face leaves out.

Everything goes through nanoarrow's own structs: it allocated them and it releases them. Nothing here frees memory.
The layout of ``struct ArrowArray`` is fixed by the specification.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.later import load


class _ArrowArray(ctypes.Structure):
    """``struct ArrowArray`` of the C data interface."""


_Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ArrowArray))
_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]


class _Memory(ctypes.Array):  # type: ignore[type-arg]
    """Bytes that belong to an Arrow array: keeps it alive."""

    _type_ = ctypes.c_uint8
    _length_ = 0


def move_dictionary(array: Any, values: Any) -> None:
    """Make ``values`` (a nanoarrow CArray that nobody else holds; empty afterwards) the dictionary of ``array``.

    ``array`` is a fresh CArray of a schema with a dictionary: nanoarrow has put an empty array in its place. The move
    is what ArrowArrayMove does: the struct's bytes change place, and the old place is marked as released.
    """
    slot = array.dictionary
    if slot is None:
        raise ValueError("the array's type has no dictionary")
    _move(values, _ArrowArray.from_address(slot._addr()))


def _move(values: Any, target: _ArrowArray) -> None:
    source = _ArrowArray.from_address(values._addr())
    if target.release:
        target.release(ctypes.byref(target))
    ctypes.memmove(ctypes.byref(target), ctypes.byref(source), ctypes.sizeof(_ArrowArray))
    source.release = _Release()


def array_capsule(array: Any) -> Any:
    """An ``arrow_array`` capsule with what a nanoarrow CArray (that nobody else holds; empty afterwards) holds.

    ``CArray.__arrow_c_array__`` would hand out a copy of the struct, which nanoarrow 0.9 gets wrong for string views
    (memory corruption). The capsule itself is nanoarrow's, made for another array, which gives way.
    """
    nanoarrow = load("nanoarrow")
    capsule = nanoarrow.c_array([], nanoarrow.int32()).__arrow_c_array__()[1]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(capsule, b"arrow_array")
    _move(array, _ArrowArray.from_address(address))
    return capsule


def raw_buffer(array: Any, index: int, size: int) -> npt.NDArray[np.uint8]:
    """``size`` bytes of a buffer of a nanoarrow CArray, zero-copy, for layouts that nanoarrow cannot view.

    The caller knows how large the buffer must be by the specification; the producer is trusted to follow it.
    """
    found = _ArrowArray.from_address(array._addr())
    if not 0 <= index < found.n_buffers:
        raise ValueError(f"buffer {index} was asked for, but the array has {found.n_buffers} buffers")
    address = found.buffers[index]
    if not address or size <= 0:
        return np.empty(0, np.uint8)
    sized: Any = type("_Memory", (_Memory,), {"_length_": size, "_type_": ctypes.c_uint8})
    memory = sized.from_address(address)
    memory.owner = array
    return np.frombuffer(memory, np.uint8)
