"""Converts columns from the hybrid calendar of old Spark to the Gregorian calendar."""

from __future__ import annotations

import numpy as np

from pyparq.arrow.column import Column
from pyparq.errors import DataError
from pyparq.format.hybrid_calendar import to_gregorian
from pyparq.format.nesting import Shape
from pyparq.format.types import LeafType
from pyparq.read.decode.memory_account import Account


def gregorian_column(column: Column, shape: Shape, account: Account) -> Column:
    """The column (flat or nested) with its leaves converted from the hybrid calendar.

    ``account`` counts the memory of converted values. Raises :class:`DataError` for a value that leaves its 64 bits,
    and :class:`UnsupportedError` for a time zone that this machine does not know.
    """
    if shape.kind == "leaf":
        return _moved(column, shape.node.type, account) if shape.node.type.hybrid else column
    if not any(leaf.node.type.hybrid for leaf in shape.leaves()):
        return column
    children: tuple[Column, ...]
    if shape.kind == "map":
        entries = column.children[0]
        pairs = zip(entries.children, shape.children, strict=True)
        children = (_holding(entries, tuple(gregorian_column(child, below, account) for child, below in pairs)),)
    else:
        pairs = zip(column.children, shape.children, strict=True)
        children = tuple(gregorian_column(child, below, account) for child, below in pairs)
    return _holding(column, children)


def _holding(column: Column, children: tuple[Column, ...]) -> Column:
    return Column(
        column.type, column.length, column.validity, column.buffers, column.null_count, children, column.dictionary,
        column.offset,
    )  # fmt: skip


def _moved(column: Column, leaf: LeafType, account: Account) -> Column:
    stored = column.buffers[0].view(column.type.numpy_dtype)
    moved = to_gregorian(stored, leaf)
    if moved is stored:
        return column
    account.take(moved.nbytes)
    wrapped = (moved > stored) != (moved.astype(np.int64) - stored > 0)
    if wrapped.any():
        at = int(np.argmax(wrapped))
        raise DataError(f"the value {stored[at]} leaves 64 bits in the Gregorian calendar")
    return Column(column.type, column.length, column.validity, (moved,), column.null_count, offset=column.offset)
