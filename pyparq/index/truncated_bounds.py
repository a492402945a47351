"""Shorter bounds that stay valid (PageIndex.md: bounds need not occur in the page).

Only types whose every prefix is a value of the type may be cut: strings (UTF-8 stays valid), enum, JSON, BSON
and plain binary. A cut lower bound is smaller by itself; a cut upper bound must grow at its end.
"""

from __future__ import annotations

from pyparq import kernels
from pyparq.format.order import can_truncate, native_order
from pyparq.format.types import LeafType

__all__ = ["DEFAULT_TRUNCATE", "can_truncate", "truncate_max", "truncate_min"]

DEFAULT_TRUNCATE = 64
"""Bytes that a bound is cut to, as most writers do."""


def truncate_min(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """A lower bound of ``value`` of at most ``length`` bytes (``None``: whole)."""
    return kernels.shorter_min(native_order(leaf), value, -1 if length is None else length)


def truncate_max(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """An upper bound of ``value`` of at most ``length`` bytes; the whole value when there is none."""
    return kernels.shorter_max(native_order(leaf), value, -1 if length is None else length)
