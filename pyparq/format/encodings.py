"""Encodings of pages (Encodings.md): their numbers in parquet.thrift, their names, and the types that they hold."""

from __future__ import annotations

from pyparq.format.types import Physical

PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED = 0, 2, 3, 4
DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 5, 6, 7
RLE_DICTIONARY, BYTE_STREAM_SPLIT, ALP = 8, 9, 10

ENCODING_NAMES = {
    PLAIN: "PLAIN", PLAIN_DICTIONARY: "PLAIN_DICTIONARY", RLE: "RLE", BIT_PACKED: "BIT_PACKED",
    DELTA_BINARY_PACKED: "DELTA_BINARY_PACKED", DELTA_LENGTH_BYTE_ARRAY: "DELTA_LENGTH_BYTE_ARRAY",
    DELTA_BYTE_ARRAY: "DELTA_BYTE_ARRAY", RLE_DICTIONARY: "RLE_DICTIONARY", BYTE_STREAM_SPLIT: "BYTE_STREAM_SPLIT",
    ALP: "ALP",
}  # fmt: skip

DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)

_ALL = frozenset(Physical)
_FIXED = _ALL - {Physical.BYTE_ARRAY, Physical.BOOLEAN, Physical.INT96}
_TYPES: dict[int, frozenset[Physical]] = {
    PLAIN: _ALL,
    PLAIN_DICTIONARY: _ALL - {Physical.BOOLEAN},
    RLE: frozenset([Physical.BOOLEAN]),
    DELTA_BINARY_PACKED: frozenset([Physical.INT32, Physical.INT64]),
    DELTA_LENGTH_BYTE_ARRAY: frozenset([Physical.BYTE_ARRAY]),
    DELTA_BYTE_ARRAY: frozenset([Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY]),
    RLE_DICTIONARY: _ALL - {Physical.BOOLEAN},
    BYTE_STREAM_SPLIT: _FIXED,
    ALP: frozenset([Physical.FLOAT, Physical.DOUBLE]),
}
"""BIT_PACKED is for levels alone."""

WRITABLE = tuple(sorted(_TYPES.keys() - {PLAIN_DICTIONARY}))
"""Encodings that values can be written in."""


def encoding_name(encoding: int) -> str:
    """The name in parquet.thrift, or the number of an encoding that is not known."""
    return ENCODING_NAMES.get(encoding, f"encoding {encoding}")


def holds(encoding: int, physical: Physical) -> bool:
    """Can pages of this encoding hold values of this physical type (Encodings.md)?"""
    return physical in _TYPES.get(encoding, ())
