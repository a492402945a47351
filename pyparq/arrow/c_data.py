"""The few corners of the Arrow C data interface that nanoarrow's Python face leaves out.

The structs are nanoarrow's own: it allocated them and it releases them. Nothing here frees memory.
The layout of ``struct ArrowArray`` is fixed by the specification.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt


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
