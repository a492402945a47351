"""The keys of a lookup as a filter."""

from __future__ import annotations

from typing import Any

from pyparq.errors import OptionError
from pyparq.filters.expression import Expression, IsIn, Path
from pyparq.filters.value_array import ValueArray, is_null_literal


def key_filter(column: Path, keys: Any) -> Expression:
    """True where ``column`` is one of ``keys``: one key, or a list or array of them. Null is no key. Raises
    :class:`OptionError` for values that cannot be keys."""
    if isinstance(keys, Expression):
        raise OptionError(
            f"keys must be values to look for, not the filter {keys!r}: give a filter to scan() or read()"
        )
    one = isinstance(keys, (str, bytes, bytearray, memoryview)) or hasattr(keys, "as_py") or not _many(keys)
    known = IsIn(column, (keys,) if one else keys).values
    if isinstance(known, ValueArray):
        return IsIn(column, known.without_null())
    return IsIn(column, tuple(key for key in known if not is_null_literal(key)))


def _many(keys: Any) -> bool:
    return getattr(keys, "shape", None) != () and (hasattr(keys, "__iter__") or hasattr(keys, "to_pylist"))
