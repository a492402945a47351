"""The beginning of a Snappy block, without inflating the rest: what few rows of a page need.

A block states its size and goes on with elements that look back only: its beginning does not depend on its end. The
library has no call for that, but it refuses a block of more bytes than are stated at the element where this shows, and
says how many of them were still missing: what stands before these is the beginning.
"""

from __future__ import annotations

import re
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt

from pyparq.buffers import Scratch
from pyparq.kernels import snappy_head

Bytes = npt.NDArray[np.uint8]

PAYS_FROM = 16 << 10
"""Bytes of a block below which inflating all of it is as quick."""

_COPY = 64
"""The longest element that looks back; one that does not fit is not written in part."""
_MISSING = re.compile(r"remaining dst: (\d+)\)")


def inflate_start(block: Any, size: int, wanted: int, out: Bytes, spare: Scratch) -> Bytes | None:
    """The first ``wanted`` bytes or more of the ``size`` that ``block`` inflates to, in ``out``; ``None`` where they
    cannot be had for less than all of them. ``spare`` has room for a part of the block."""
    limit = wanted + _COPY
    stored = len(block)
    if size < PAYS_FROM or limit > size // 16 * 15 or stored > size // 32 * 31:
        return None  # of bytes that hardly shrink, long pieces are stored as they are: to inflate them is to copy them
    # No compressor stores its input in more than this (snappy.cc, MaxCompressedLength); where one did, all is inflated.
    enough = limit + limit // 6 + 64
    part = spare.take(enough)
    length = snappy_head(block, size, limit, part[:enough])
    if length == 0:
        return None
    try:
        cramjam.snappy.decompress_raw_into(part[:length], out[:limit])
    except cramjam.DecompressionError as error:
        missing = _MISSING.search(str(error))
        if missing is None or limit - int(missing[1]) < wanted:
            return None
        return out[: limit - int(missing[1])]
    return out[:limit]
