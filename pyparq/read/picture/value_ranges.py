"""The ranges of values that the parts of a column have: as positions to draw, and how well they tell parts apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq.filters.literal import format_literal
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.types import LeafType
from pyparq.index.bounds import Bounds, Int64Array
from pyparq.runtime.terminal_text import cut, visible

STEPS = 1000
"""Positions of ranges are from 0 to this."""
LONGEST = 32
"""Characters of a bound."""
_ZERO_FRACTION = re.compile(r"(?<=:\d\d)\.0+(?=Z?$)")
_PREFIX = 6
"""Bytes of text that give its position. They fit a float exactly."""


@dataclass(slots=True)
class ValueRanges:
    """Lowest and highest position of each part, -1 for a part without bounds."""

    low: Int64Array
    high: Int64Array
    smallest: str
    largest: str
    touched: float
    """Of all parts, the share whose range holds a value: the mean over the middles of all ranges. A lookup of one value
    cannot skip these parts by their bounds."""


def value_ranges(parts: Sequence[Bounds | None], counts: Sequence[int]) -> ValueRanges | None:
    """The ranges of consecutive lists of parts of one column. ``counts``: the number of parts in each list, for those
    without bounds. ``None`` if no part has bounds, or if they cannot be compared."""
    valid = np.concatenate([
        np.zeros(count, np.bool_) if bounds is None else bounds.has_bounds
        for bounds, count in zip(parts, counts, strict=True)
    ])  # fmt: skip
    known = [bounds for bounds in parts if bounds is not None and bounds.has_bounds.any()]
    if not known:
        return None
    try:
        lows = np.concatenate([bounds.mins[bounds.has_bounds] for bounds in known])
        highs = np.concatenate([bounds.maxs[bounds.has_bounds] for bounds in known])
        values, ranks = np.unique(np.concatenate([lows, highs]), return_inverse=True)
    except (TypeError, ValueError):
        return None
    ranks = ranks.reshape(-1)
    places = _positions(values)
    low, high = np.full(len(valid), -1, np.int64), np.full(len(valid), -1, np.int64)
    low[valid] = places[ranks[: len(lows)]]
    high[valid] = places[ranks[len(lows) :]]
    leaf = known[0].leaf
    return ValueRanges(
        low, high, bound_text(leaf, values[0]), bound_text(leaf, values[-1]),
        _touched(ranks[: len(lows)], ranks[len(lows) :]),
    )  # fmt: skip


def _touched(low: Int64Array, high: Int64Array) -> float:
    probes = (low + high) / 2
    held = np.sort(low).searchsorted(probes, "right") - np.sort(high).searchsorted(probes, "left")
    return float(held.mean() / len(low))


def _positions(values: Any) -> Int64Array:
    """A position for each of these rising values: by their distance, or by their rank where they have none."""
    numbers = _as_numbers(values)
    with np.errstate(all="ignore"):
        span = numbers[-1] - numbers[0]
        shares = (numbers - numbers[0]) / span if span > 0 else np.zeros(len(numbers))
    if not np.isfinite(shares).all():
        shares = np.arange(len(numbers)) / max(len(numbers) - 1, 1)
    return np.rint(shares * STEPS).astype(np.int64)


def _as_numbers(values: Any) -> Any:
    first = values[0].item() if isinstance(values[0], np.generic) else values[0]
    if not isinstance(first, bytes):
        return values.astype(np.float64)
    texts = [bytes(value) for value in values]
    shared = 0  # bytes that the first and the last have in common, and all between them
    while shared < len(texts[0]) and texts[0][: shared + 1] == texts[-1][: shared + 1]:
        shared += 1
    cut_out = [text[shared : shared + _PREFIX].ljust(_PREFIX, b"\0") for text in texts]
    return np.array([int.from_bytes(part, "big") for part in cut_out], np.float64)


def bound_text(leaf: LeafType, value: Any) -> str:
    """A bound for people, cut where it is long."""
    value = value.item() if isinstance(value, np.generic) else value
    if leaf.kind in FLOAT_KINDS:
        return f"{value + 0.0:.7g}"  # writers store -0.0 for a minimum of zero
    if isinstance(value, bytes):
        value = value[: 4 * LONGEST]
        if not leaf.is_text and leaf.kind != "uuid":
            return cut("0x" + value.hex(), LONGEST)
        if leaf.is_text:
            return cut(visible(value.decode("utf-8", "replace")), LONGEST)
    return cut(visible(_ZERO_FRACTION.sub("", format_literal(leaf, value))), LONGEST)


def bound_texts(bounds: Bounds | None, count: int) -> tuple[list[str | None], list[str | None]]:
    """Smallest and largest value of each part, ``None`` where they are not known."""
    if bounds is None:
        return [None] * count, [None] * count
    has = bounds.has_bounds.tolist()
    low, high = (
        [bound_text(bounds.leaf, side[k]) if has[k] else None for k in range(len(has))]
        for side in (bounds.mins, bounds.maxs)
    )
    return low, high
