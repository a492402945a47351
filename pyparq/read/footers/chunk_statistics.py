"""The statistics of a column chunk as Python values (parquet.thrift, Statistics)."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.format.leaf_values import from_plain_bytes
from pyparq.format.order import Order
from pyparq.format.types import LeafType, Physical, arrow_type
from pyparq.index.statistics import bounds_from_statistics
from pyparq.read.decode.arrow_columns import fixed_buffer
from pyparq.runtime.text import printable

_EXACT = Context(prec=100)
_NUMBERS = {Physical.INT32: "<i4", Physical.INT64: "<i8", Physical.FLOAT: "<f4", Physical.DOUBLE: "<f8"}


class ChunkStatistics:
    """Statistics of one column chunk, as far as they can be trusted. What is not known is ``None``.

    ``min`` and ``max`` are Python values of the column's type: the ``min`` of dates is a ``datetime.date``. Text may be
    cut off, so that neither bound need occur (``is_min_exact``).
    """

    def __init__(self, leaf: LeafType, meta: Any, order: Order, created_by: str | None) -> None:
        """``meta``: the footer's ColumnMetaData, with ``statistics``."""
        self._leaf, self._raw = leaf, meta.statistics
        self.num_values = int(meta.num_values) - int(self._raw.null_count or 0)
        """Values that are not null."""
        self.has_min_max = bool(bounds_from_statistics(leaf, meta, order, created_by).has_bounds[0])

    def _bound(self, which: str, convert: Any) -> Any:
        """The smallest or largest value, as a Python object by ``convert``."""
        if not self.has_min_max:
            return None
        stored = getattr(self._raw, f"{which}_value")
        return convert(getattr(self._raw, which) if stored is None else stored, self._leaf)

    has_null_count = property(lambda self: self._raw.null_count is not None)
    null_count = property(lambda self: self._raw.null_count)
    has_distinct_count = property(lambda self: self._raw.distinct_count is not None)
    distinct_count = property(lambda self: self._raw.distinct_count)
    min = property(lambda self: self._bound("min", _python_value))
    max = property(lambda self: self._bound("max", _python_value))
    min_raw = property(lambda self: self._bound("min", _physical_value))
    max_raw = property(lambda self: self._bound("max", _physical_value))
    is_min_exact = property(lambda self: self._raw.is_min_value_exact)
    is_max_exact = property(lambda self: self._raw.is_max_value_exact)
    physical_type = property(lambda self: self._leaf.physical.name)

    @printable
    def __repr__(self) -> str:
        return f"<ChunkStatistics: {self.min!r} to {self.max!r}, {self.null_count} nulls, {self.num_values} values>"


def _python_value(raw: bytes, leaf: LeafType) -> Any:
    """The Python object of one value in the PLAIN encoding, without a length before it."""
    if leaf.kind == "decimal" and leaf.physical in (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY):
        return _EXACT.scaleb(Decimal(int.from_bytes(raw, "big", signed=True)), -leaf.scale)
    if leaf.is_binary:
        return raw.decode("utf-8", "replace") if leaf.is_text else raw
    if leaf.physical == Physical.BOOLEAN:
        return bool(raw[0])
    if leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY and leaf.kind != "float":
        return raw
    values = from_plain_bytes(np.frombuffer(raw, np.uint8), 1, leaf)
    buffer, _ = fixed_buffer(values, leaf)
    return Column(arrow_type(leaf), 1, None, (np.asarray(buffer),), 0).to_pylist()[0]


def _physical_value(raw: bytes, leaf: LeafType) -> Any:
    """The value without its logical type: an int for INT32 and INT64, bytes for byte arrays."""
    if leaf.physical == Physical.BOOLEAN:
        return bool(raw[0])
    return np.frombuffer(raw, _NUMBERS[leaf.physical])[0].item() if leaf.physical in _NUMBERS else raw
