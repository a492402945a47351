"""Sizes as people write them."""

from __future__ import annotations

from pyparq.errors import OptionError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(option: str, text: str) -> int:
    """Bytes, from ``1000000``, ``256M`` or ``1G``."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
    if not number.isdecimal() or unit not in _UNITS:
        raise OptionError(f"{option} must be a number of bytes such as 1000000, 256M or 1G, not {text!r}")
    return int(number) * _UNITS[unit]
