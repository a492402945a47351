"""polars' notes on categories in a field's metadata: the values of an Enum, the name of Categories.

polars acts on them. It fails on a malformed note, and makes nulls of values that an Enum does not list. So notes are
passed on only as far as they are true for the column.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyparq.format.types import DataType

ENUM_VALUES = b"_PL_ENUM_VALUES2"
"""``length;value`` for each value, one after another."""
CATEGORIES = b"_PL_CATEGORICAL2"
"""``length;name``, ``length;namespace``, and the type of the indices with a ``;``."""
_MOST = 1 << 20
_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,7});")


def is_polars_note(key: bytes, value: bytes, type_: DataType) -> bool:
    """Whether this is a note that polars understands, on a column of the right type."""
    if type_.dictionary is None or type_.dictionary.kind != "string":
        return False
    if key == ENUM_VALUES:
        return enum_values(value) is not None
    return key == CATEGORIES and _is_categories(value)


@lru_cache(maxsize=64)
def enum_values(note: bytes) -> frozenset[bytes] | None:
    """The values that an Enum's note lists; ``None`` where it makes no sense."""
    values, rest = _parts(note)
    if rest or len(note) > _MOST or len(set(values)) < len(values) or not all(map(_is_text, values)):
        return None
    return frozenset(values)


def _is_categories(note: bytes) -> bool:
    values, rest = _parts(note[:_MOST], 2)
    return len(values) == 2 and rest in (b"u8;", b"u16;", b"u32;") and all(map(_is_text, values))


def most_categories(note: bytes) -> int:
    """The number of categories that the indices of a note can number, with one left for missing values."""
    return {b"u8;": 255, b"16;": 65_535}.get(note[-3:], (1 << 32) - 1)


def _parts(note: bytes, most: int = _MOST) -> tuple[list[bytes], bytes]:
    """The length-prefixed values, and the rest of the bytes."""
    found: list[bytes] = []
    at = 0
    while at < len(note) and len(found) < most:
        match = _LENGTH.match(note, at)
        if match is None or match.end() + int(match[1]) > len(note):
            break
        found.append(note[match.end() : match.end() + int(match[1])])
        at = match.end() + int(match[1])
    return found, note[at:]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
