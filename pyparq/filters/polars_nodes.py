"""Reads the form in which polars (from 1.31 on) serializes an expression: MessagePack.

Numbers in it are exact. polars' JSON has no NaN, and polars reads its own floats from JSON up to one digit off.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars

_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_BYTES, _TEXT, _ARRAY, _MAP = "bytes", "text", "array", "map"
_SIZED = {
    0xC4: (_BYTES, 1), 0xC5: (_BYTES, 2), 0xC6: (_BYTES, 4), 0xD9: (_TEXT, 1), 0xDA: (_TEXT, 2), 0xDB: (_TEXT, 4),
    0xDC: (_ARRAY, 2), 0xDD: (_ARRAY, 4), 0xDE: (_MAP, 2), 0xDF: (_MAP, 4),
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class Node(dict[str, Any]):
    """A part of an expression by the names of its parts."""

    __slots__ = ("_data", "_end", "_start")

    def __init__(self, items: list[Any], data: bytes, start: int, end: int) -> None:
        super().__init__(zip(items[::2], items[1::2], strict=True))
        self._data, self._start, self._end = data, start, end

    def expression(self) -> polars.Expr:
        """The part as an expression of polars. Raises polars' error for a part that is none."""
        import polars as pl

        return pl.Expr.deserialize(io.BytesIO(self._data[self._start : self._end]))


def read_nodes(data: bytes) -> Any:
    """The expression as nodes, lists and values. Raises :class:`ValueError` for another form (that of an older polars,
    say)."""
    try:
        return _read(data)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"its form is not that of polars 1.31 and later: {error}") from None


def _read(data: bytes) -> Any:
    # Not recursive: a chain of conditions is as deep as it is long.
    at = 0
    unfinished: list[tuple[list[Any], int, int]] = [([], 1, -1)]  # items, how many, where a map starts
    while True:
        items, count, start = unfinished[-1]
        if len(items) == count:
            unfinished.pop()
            if not unfinished:
                return items[0]
            unfinished[-1][0].append(items if start < 0 else Node(items, data, start, at))
            continue
        tag, start = data[at], at
        kind, size, at = _header(data, tag, at + 1)
        if kind in (_ARRAY, _MAP):
            unfinished.append(([], size, -1) if kind == _ARRAY else ([], 2 * size, start))
        elif kind in (_TEXT, _BYTES):
            raw = data[at : at + size]
            items.append(raw.decode() if kind == _TEXT else raw)
            at += size
        else:
            items.append(_number(data, tag, at))
            at += size


def _header(data: bytes, tag: int, at: int) -> tuple[str, int, int]:
    """What stands there, of which size, and where it begins."""
    if tag in _SIZED:
        kind, width = _SIZED[tag]
        return kind, int.from_bytes(data[at : at + width], "big"), at + width
    if 0x80 <= tag < 0xC0:
        if tag < 0xA0:
            return _MAP if tag < 0x90 else _ARRAY, tag & 15, at
        return _TEXT, tag & 31, at
    return "", struct.calcsize(_NUMBERS[tag]) if tag in _NUMBERS else 0, at


def _number(data: bytes, tag: int, at: int) -> Any:
    if tag in _NUMBERS:
        return struct.unpack_from(_NUMBERS[tag], data, at)[0]
    if tag in _CONSTANTS:
        return _CONSTANTS[tag]
    if 0x80 <= tag < 0xE0:
        raise ValueError(f"its form is not that of polars 1.31 and later: byte {tag:#x}")
    return tag if tag < 0x80 else tag - 256
