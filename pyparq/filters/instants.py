"""Points in time with a zone, compared with a column that is stored without one and shown as UTC."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq.filters.expression import Compare, Contains, Expression, IsIn, with_literals
from pyparq.filters.temporal import timestamp_ns


def without_zone(test: Compare | Contains | IsIn) -> Expression:
    """The test with each literal that says its zone as what a clock in UTC shows then."""
    if isinstance(test, IsIn):
        return with_literals(test, tuple(map(_in_utc, test.values)))
    return with_literals(test, _in_utc(test.value))


def _in_utc(value: Any) -> Any:
    """A literal that is no point in time, or has no zone, stays as it is."""
    try:
        found = timestamp_ns(value)
    except ValueError:  # whoever binds it says what is wrong
        return value
    if found is None or not found[1]:
        return value
    own = getattr(value, "asm8", None)
    if own is not None:  # pandas'
        return own
    ns = found[0]
    if ns % 1000 == 0:  # all that Python's datetime holds
        return np.datetime64(int(ns // 1000), "us")
    whole = int(ns)
    return np.datetime64(whole, "ns") if whole == ns and -(1 << 63) < whole < 1 << 63 else value
