"""Geometries as WKB: their boxes, and columns of them with statistics."""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import numpy as np
from fuzz_input import Stream, check, own, refused, split

import pyparq
from pyparq import col
from pyparq.kernels import match_boxes

_MOST = 40

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


def columns(data: Any) -> None:
    """A column of geometries: it comes back, and a box keeps the same rows with statistics and without them."""
    head, stored = split(data)
    stream, values = Stream(bytes(stored)), []
    while stream.left and len(values) < _MOST:
        values.append(_value(stream))
    box = [float(number) for number in np.frombuffer(head[2:10], np.int8)[:4]]
    box[1], box[3] = min(box[1], box[3]), max(box[1], box[3])
    kept = [_kept(values, head, box, statistics) for statistics in (True, False)]
    if None not in kept:
        check(kept[0] == kept[1], f"statistics keep other rows of {box}")


def _kept(values: list[Any], head: bytes, box: list[float], statistics: bool) -> list[int] | None:
    """The rows; ``None`` where a value is refused."""
    out, kind = io.BytesIO(), "geography" if head[0] & 1 else "geometry"
    schema = pyparq.schema({"g": kind + "?", "k": "int64"})
    given = {"g": values, "k": list(range(len(values)))}
    try:
        pyparq.write_table(given, out, schema=schema, row_group_size=1 + head[1] % 8, write_statistics=statistics)
        check(pyparq.read_table(out.getvalue(), ["g"]).to_pydict()["g"] == values, "other values")
        near = pyparq.read_table(out.getvalue(), ["k"], filters=col("g").intersects_box(*box))
    except (pyparq.DataError, pyparq.FilterError):
        return None
    rows: list[int] = near.to_pydict()["k"]
    return rows


def _value(stream: Stream) -> bytes | None:
    """A geometry, at times with a byte of another value, or cut off."""
    choice = stream.next()
    if choice % 16 == 15:
        return None
    made = bytearray(_wkb(stream, 0))
    if choice & 16:
        made[stream.next() % len(made)] = stream.next()
    return bytes(made[: len(made) - (stream.next() % 9 if choice & 32 else 0)])


def _wkb(stream: Stream, depth: int) -> bytes:
    """A geometry of one of seven kinds, in any byte order and with any numbers for a place."""
    kind = 1 + stream.next() % (7 if depth < 3 else 3)
    choice = stream.next()
    order, more = "<>"[choice & 1], choice // 2 % 4
    numbers = (2, 3, 3, 4)[more]

    def places(count: int) -> bytes:
        return b"".join(struct.pack(order + "d", _number(stream)) for _ in range(count * numbers))

    def counted(count: int, part: Any) -> bytes:
        return struct.pack(order + "I", count) + b"".join(part() for _ in range(count))

    start = struct.pack(order + "BI", order == "<", kind + 1000 * more)
    if kind == 1:
        return start + places(1)
    few = choice // 8 % 4
    if kind == 2:
        return start + counted(few, lambda: places(1))
    if kind == 3:
        return start + counted(few, lambda: counted(stream.next() % 4, lambda: places(1)))
    return start + counted(few, lambda: _wkb(stream, depth + 1))


def _number(stream: Stream) -> float:
    choice = stream.next()
    if choice >= 248:
        return (math.nan, math.inf, -math.inf, -0.0, 1e300, -1e300, 180.0, -180.0)[choice - 248]
    return float(choice - 124) / (1 if choice & 1 else 4)
