"""Key-value metadata as the format stores it: text keys, values of text or (not UTF-8) bytes, or none."""

from __future__ import annotations

from typing import Any

from pyparq.errors import DataError


def text_key(key: Any) -> str:
    try:
        text = key.decode("utf-8") if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        text = None
    if not isinstance(text, str):
        raise DataError(f"metadata key {key!r} is not text")
    return text


def text_value(key: Any, value: Any) -> str | bytes | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise DataError(f"metadata {key!r} has a value of {type(value).__name__}; give text or bytes")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
