"""Encodings, one module each with ``decode`` and ``encode``; this is their registry.

``decode(data, count, leaf, out) -> Values`` takes the value bytes of one page; ``encode(values, leaf)`` gives them.
Dictionary encodings stand apart (they need the dictionary): see :mod:`pyparq.format.encodings.dictionary`.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from pyparq.errors import CorruptFileError, UnsupportedError
from pyparq.format.encodings import (
    byte_stream_split,
    delta_binary_packed,
    delta_byte_array,
    delta_length_byte_array,
    dictionary,
    plain,
    rle,
)
from pyparq.format.leaf_values import Values
from pyparq.format.types import LeafType, Physical
from pyparq.kernels import KernelError

PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED = 0, 2, 3, 4
DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT = (
    5,
    6,
    7,
    8,
    9,
)

ENCODING_NAMES = {
    PLAIN: "PLAIN", PLAIN_DICTIONARY: "PLAIN_DICTIONARY", RLE: "RLE", BIT_PACKED: "BIT_PACKED",
    DELTA_BINARY_PACKED: "DELTA_BINARY_PACKED", DELTA_LENGTH_BYTE_ARRAY: "DELTA_LENGTH_BYTE_ARRAY",
    DELTA_BYTE_ARRAY: "DELTA_BYTE_ARRAY", RLE_DICTIONARY: "RLE_DICTIONARY", BYTE_STREAM_SPLIT: "BYTE_STREAM_SPLIT",
}  # fmt: skip

DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)

_MODULES: dict[int, Any] = {
    PLAIN: plain,
    RLE: rle,
    DELTA_BINARY_PACKED: delta_binary_packed,
    DELTA_LENGTH_BYTE_ARRAY: delta_length_byte_array,
    DELTA_BYTE_ARRAY: delta_byte_array,
    BYTE_STREAM_SPLIT: byte_stream_split,
}


def encoding_name(encoding: int) -> str:
    return ENCODING_NAMES.get(encoding, f"encoding {encoding}")


WRITABLE = tuple(sorted((*_MODULES, RLE_DICTIONARY)))
"""Encodings that values can be written in."""


def holds(encoding: int, physical: Physical) -> bool:
    """Can pages of this encoding hold values of this physical type (Encodings.md)?"""
    module = dictionary if encoding in DICTIONARY_ENCODINGS else _MODULES.get(encoding)
    return module is not None and physical in module.TYPES


def decode(encoding: int, data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    """Decode the value bytes of a page that is not dictionary-encoded.

    Values of fixed width go to ``out`` where it is given: an array of ``count`` of them, which is returned then.
    Raises :class:`CorruptFileError` for bytes that do not decode, :class:`UnsupportedError` for an unknown encoding.
    """
    module = _MODULES.get(encoding)
    if module is None:
        raise UnsupportedError(f"{encoding_name(encoding)} is not supported; a newer pyparq may read it")
    try:
        values: Values = module.decode(data, count, leaf, out)
    except KernelError as error:
        raise CorruptFileError(f"bad {encoding_name(encoding)} data: {error}") from error
    return values


def encode(encoding: int, values: Values, leaf: LeafType) -> Any:
    """The value bytes of a page, as a bytes-like object (not for dictionary encodings)."""
    return _MODULES[encoding].encode(values, leaf)
