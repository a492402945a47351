"""Geometries as WKB: their boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_input import check, own, refused, split

from pyparq.kernels import match_boxes

_WHOLE = np.array([-1e300, -1e300, 1e300, 1e300])


def boxes(data: Any) -> None:
    """One value. What intersects a part of the plane intersects all of it."""
    head, stored = split(data)
    offsets = np.array([0, len(stored)], np.int64 if head[0] & 1 else np.int32)
    part = np.frombuffer(head[2:10], np.int8)[:4].astype(np.float64)
    with refused:
        box = np.array([part[0], min(part[1], part[3]), part[2], max(part[1], part[3])])
        found = match_boxes(offsets, own(stored), box, bool(head[0] & 2), True)
        if not head[0] & 2 and box[0] <= box[2] and found[0] & 1:
            whole = match_boxes(offsets, own(stored), _WHOLE, False, True)
            check(bool(whole[0] & 1), "a part is more than all")
