"""The codecs LZ4 and LZ4_RAW, read by cramjam: what the kernels are judged by."""

from __future__ import annotations

from typing import Any

import cramjam


def lz4_raw_into(data: Any, out: Any) -> int:
    return int(cramjam.lz4.decompress_block_into(data, out, output_len=len(out)))


def lz4_into(data: Any, out: Any) -> int:
    """Codec LZ4 is deprecated and ambiguous: the data are either Hadoop's frames or one raw block."""
    view = memoryview(data)
    try:
        written = hadoop_lz4_into(view, out)
    except Exception:
        written = -1
    return written if written == len(out) else lz4_raw_into(view, out)


def hadoop_lz4_into(view: memoryview, out: Any) -> int:
    """Hadoop's frames: a big-endian uncompressed size, then LZ4 blocks until that many bytes are reached, each behind
    its big-endian stored size. Hadoop cuts data that exceeds its buffer, so one frame of a large page has several
    blocks."""
    at, written = 0, 0
    while at < len(view):
        frame_end = written + int.from_bytes(view[at : at + 4], "big")
        at += 4
        if frame_end > len(out):
            return -1
        while written < frame_end:
            stored = int.from_bytes(view[at : at + 4], "big")
            at += 4
            if not 0 < stored <= len(view) - at:
                return -1
            rest = out[written:frame_end]
            written += int(cramjam.lz4.decompress_block_into(view[at : at + stored], rest, output_len=len(rest)))
            at += stored
    return written
