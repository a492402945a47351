"""Shorter bounds that stay valid (PageIndex.md: bounds need not occur in the page).

Only types whose every prefix is a value of the type may be cut: strings (UTF-8 stays valid), enum, JSON, BSON
and plain binary. A cut lower bound is smaller by itself; a cut upper bound must grow at its end.
"""

from __future__ import annotations

from pyparq.schemas.types import LeafType, Physical

DEFAULT_TRUNCATE = 64
"""Bytes that a bound is cut to, as most writers do."""

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_CUTTABLE = frozenset({"string", "enum", "json", "bson", "binary"})


def can_truncate(leaf: LeafType) -> bool:
    """Whether bounds of this leaf may be cut."""
    return leaf.physical == Physical.BYTE_ARRAY and leaf.kind in _CUTTABLE


def truncate_min(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """A lower bound of ``value`` of at most ``length`` bytes (``None``: whole)."""
    if length is None or len(value) <= length or not can_truncate(leaf):
        return value
    return value[: _character_edge(value, length)] if leaf.is_text else value[:length]


def truncate_max(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """An upper bound of ``value`` of at most ``length`` bytes; the whole value when there is none."""
    if length is None or len(value) <= length or not can_truncate(leaf):
        return value
    shorter = None
    if leaf.is_text:
        shorter = _next_text(value[: _character_edge(value, length)], length)
    else:
        shorter = _next_bytes(value[:length])
    return value if shorter is None else shorter


def _character_edge(value: bytes, length: int) -> int:
    """The last place at or before ``length`` where a UTF-8 character starts."""
    # Four continuation bytes in a row are no UTF-8: such a value is cut where asked.
    for edge in range(length, max(length - 4, -1), -1):
        if value[edge] & 0xC0 != 0x80:
            return edge
    return length


def _next_bytes(prefix: bytes) -> bytes | None:
    """The smallest byte string above everything that starts with ``prefix``, if there is one."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(prefix: bytes, length: int) -> bytes | None:
    """As :func:`_next_bytes`, valid UTF-8 and not longer than ``length``."""
    try:
        text = prefix.decode("utf-8")
    except UnicodeDecodeError:
        return _next_bytes(prefix)
    while text:
        code = ord(text[-1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        text = text[:-1]
        if code <= _MAX_CODE_POINT:
            grown = (text + chr(code)).encode("utf-8")
            if len(grown) <= length:
                return grown
    return None
