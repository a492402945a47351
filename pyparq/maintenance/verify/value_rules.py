"""Checks values against their types: UTF-8 in text, decimals within their precision, integers within their bits, times
within a day."""

from __future__ import annotations

import numpy as np

from pyparq import kernels
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import Order, decode_bounds, encode_bound, stored_dtype
from pyparq.format.types import LeafType
from pyparq.maintenance.verify.bounds import TrueBounds, beyond, shown
from pyparq.maintenance.verify.chunk_values import ChunkValues
from pyparq.maintenance.verify.findings import Findings

_DAYS = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def check_text(values: ChunkValues, findings: Findings) -> None:
    """Report the first value that is not UTF-8."""
    if not values.leaf.is_text:
        return
    if isinstance(values.entries, BinaryValues):
        code = kernels.utf8_validate(values.entries.offsets, values.entries.data)
        if code >= 0:
            is_used = code in values.used_codes
            page, row = values.place_of_code(code) if is_used else ("dictionary", None)
            _report_text(values.entries.value(code), page, row, findings)
            return
    if isinstance(values.values, BinaryValues):
        at = kernels.utf8_validate(values.values.offsets, values.values.data)
        if at >= 0:
            _report_text(values.values.value(at), *values.place_of_value(at), findings)


def _report_text(value: bytes, page: int | str, row: int | None, findings: Findings) -> None:
    text = repr(value[:24]) + ("..." if len(value) > 24 else "")
    findings.add("text", "data", f"a value is not UTF-8: {text}", page, row)


def limits_of(leaf: LeafType) -> tuple[int, int] | None:
    """The smallest and the largest physical value that the type allows. ``None`` if all are allowed."""
    if leaf.kind == "decimal" and leaf.precision > 0:
        most = 10**leaf.precision - 1
        return -most, most
    if leaf.kind == "int" and leaf.bits < 32:
        return -(1 << leaf.bits - 1), (1 << leaf.bits - 1) - 1
    if leaf.kind == "uint" and leaf.bits < 32:
        return 0, (1 << leaf.bits) - 1
    if leaf.kind == "time" and leaf.unit in _DAYS:
        return 0, _DAYS[leaf.unit]  # writers also store the end of a day
    return None


def check_range(bounds: TrueBounds, findings: Findings) -> None:
    """Report the first page with a value that the type does not allow. Only extreme values need to be checked."""
    leaf, values = bounds.leaf, bounds.values
    allowed = limits_of(leaf)
    if allowed is None:
        return
    for below, limit, raw in ((True, allowed[0], bounds.pages.mins), (False, allowed[1], bounds.pages.maxs)):
        found = decode_bounds(leaf, raw)[0]
        wrong = np.flatnonzero(np.asarray(found < limit if below else found > limit, bool) & bounds.has_values)
        if not len(wrong):
            continue
        page = int(wrong[0])
        place = _first(values.page_values(page), leaf, limit, below)
        text = f"{shown(leaf, raw[page])} is {'below' if below else 'above'} {limit}, the limit of {_said(leaf)}"
        findings.add("range", "data", text, page, values.row_of(page, place) if place >= 0 else None, len(wrong))


def _first(values: Values, leaf: LeafType, limit: int, below: bool) -> int:
    """The first value beyond the limit."""
    dtype = stored_dtype(leaf)
    if dtype is not None and isinstance(values, np.ndarray):
        numbers = values.reshape(-1).view(dtype)
        found = np.flatnonzero(numbers < limit if below else numbers > limit)
    else:
        try:
            found = np.flatnonzero(beyond(values, leaf, Order.TYPE, encode_bound(leaf, limit), below))
        except (ValueError, OverflowError):
            return -1
    return int(found[0]) if len(found) else -1


def _said(leaf: LeafType) -> str:
    if leaf.kind == "decimal":
        return f"a decimal of {leaf.precision} digits (unscaled)"
    return f"a time of day in {leaf.unit}" if leaf.kind == "time" else f"{leaf.kind}{leaf.bits}"
