"""Shorter bounds that stay valid. PageIndex.md allows bounds that do not occur in the page.

Only types of which every prefix is a value may be cut: strings (UTF-8 stays valid), enum, JSON, BSON and plain binary.
A cut lower bound is smaller by itself. A cut upper bound must be incremented at its end.
"""

from __future__ import annotations

from pyparq import kernels
from pyparq.format.order import can_truncate, native_order
from pyparq.format.types import LeafType

__all__ = ["DEFAULT_TRUNCATE", "can_truncate", "truncate_max", "truncate_min"]

DEFAULT_TRUNCATE = 64
"""Bytes that a bound is cut to, as most writers do."""


def truncate_min(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """A lower bound of ``value`` with at most ``length`` bytes (``None``: the whole value)."""
    return kernels.shorter_min(native_order(leaf), value, -1 if length is None else length)


def truncate_max(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """An upper bound of ``value`` with at most ``length`` bytes. The whole value if there is none."""
    return kernels.shorter_max(native_order(leaf), value, -1 if length is None else length)
