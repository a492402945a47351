"""The statistics of a column chunk, with the names of ``pyarrow.parquet.Statistics``."""

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


def python_value(raw: bytes, leaf: LeafType) -> Any:
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


class Statistics:
    """Statistics of one column chunk, as far as they can be trusted."""

    def __init__(self, leaf: LeafType, meta: Any, order: Order, created_by: str | None) -> None:
        """``meta``: the footer's ColumnMetaData, with ``statistics``."""
        self._leaf, self._raw = leaf, meta.statistics
        self.num_values = int(meta.num_values) - int(self._raw.null_count or 0)
        bounds = bounds_from_statistics(leaf, meta, order, created_by)
        self.has_min_max = bool(bounds.has_bounds[0])
        self._min: bytes | None = self._stored("min") if self.has_min_max else None
        self._max: bytes | None = self._stored("max") if self.has_min_max else None

    def _stored(self, which: str) -> Any:
        found = getattr(self._raw, f"{which}_value")
        return getattr(self._raw, which) if found is None else found

    @property
    def has_null_count(self) -> bool:
        return self._raw.null_count is not None

    @property
    def null_count(self) -> int | None:
        return None if self._raw.null_count is None else int(self._raw.null_count)

    @property
    def has_distinct_count(self) -> bool:
        return self._raw.distinct_count is not None

    @property
    def distinct_count(self) -> int | None:
        return None if self._raw.distinct_count is None else int(self._raw.distinct_count)

    @property
    def min(self) -> Any:
        """The smallest value as a Python object. ``None`` if it is not known."""
        return None if self._min is None else python_value(self._min, self._leaf)

    @property
    def max(self) -> Any:
        """The largest value as a Python object. ``None`` if it is not known."""
        return None if self._max is None else python_value(self._max, self._leaf)

    @property
    def min_raw(self) -> Any:
        return None if self._min is None else _physical_value(self._min, self._leaf)

    @property
    def max_raw(self) -> Any:
        return None if self._max is None else _physical_value(self._max, self._leaf)

    @property
    def is_min_exact(self) -> bool | None:
        found: bool | None = self._raw.is_min_value_exact
        return found

    @property
    def is_max_exact(self) -> bool | None:
        found: bool | None = self._raw.is_max_value_exact
        return found

    @property
    def physical_type(self) -> str:
        return self._leaf.physical.name

    def to_dict(self) -> dict[str, Any]:
        names = ("has_min_max", "min", "max", "null_count", "distinct_count", "num_values", "physical_type")
        return {name: getattr(self, name) for name in names}

    def equals(self, other: object) -> bool:
        return isinstance(other, Statistics) and self.to_dict() == other.to_dict()

    def __eq__(self, other: object) -> bool:
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        lines = "".join(f"\n  {name}: {value}" for name, value in self.to_dict().items())
        return f"<pyparq.parquet.Statistics>{lines}"


def _physical_value(raw: bytes, leaf: LeafType) -> Any:
    """The value without its logical type: an int for INT32 and INT64, bytes for byte arrays."""
    numbers = {Physical.INT32: "<i4", Physical.INT64: "<i8", Physical.FLOAT: "<f4", Physical.DOUBLE: "<f8"}
    if leaf.physical == Physical.BOOLEAN:
        return bool(raw[0])
    if leaf.physical not in numbers:
        return raw
    return np.frombuffer(raw, numbers[leaf.physical])[0].item()
