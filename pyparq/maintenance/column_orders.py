"""Decides whether column orders may be added to a file that has none.

Without them, ``min_value`` and ``max_value`` of chunk statistics mean nothing (parquet.thrift, ColumnOrder), and
readers ignore them. With them, readers believe these bounds. So orders are added only if the bounds are true, which the
pages tell.
"""

from __future__ import annotations

from typing import Any

from pyparq.format.order import decode_bounds, has_order
from pyparq.format.types import LeafType
from pyparq.read.page_statistics import Survey


def contradiction(leaf: LeafType, statistics: Any, survey: Survey) -> str:
    """The fault in the bounds of a chunk's statistics under TYPE_ORDER. Empty if they are true.

    Bounds that no reader can use (NaN, a wrong length) are no fault.
    """
    if not has_order(leaf):
        return f"{leaf.kind} values have no order"
    for stored, name, found in (
        (statistics.min_value, "min_value", [page.minimum for page in survey.pages]),
        (statistics.max_value, "max_value", [page.maximum for page in survey.pages]),
    ):
        there = [bound for bound in found if bound is not None]
        if stored is None or not there:
            continue
        values, usable = decode_bounds(leaf, [stored, *there])
        if not usable[0]:
            continue
        beyond = values[1:] < values[0] if name == "min_value" else values[1:] > values[0]
        if bool(beyond.any()):
            return f"{name} is not a bound of the values"
    return ""
