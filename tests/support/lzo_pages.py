"""What the pages of ``testdata/lzo.parquet`` hold, and how Hadoop frames blocks."""

from __future__ import annotations

import random
from collections.abc import Callable

RNG = random.Random(7)
WORDS = ["pressure", "temperature", "mass flow", "humidity", "wind"]

NOISE = [RNG.randbytes(RNG.randint(0, 40)).hex() for _ in range(60)]
REPEATS = [RNG.choice(WORDS) + str(k % 17) for k in range(4000)]
FAR = ["".join(RNG.choices("abcdef", k=30)) for _ in range(700)] * 2
RUNS = ["x" * n for n in (0, 1, 3, 4, 18, 19, 270, 271, 1000, 40_000)]

PAGES: list[tuple[list[str], str, int]] = [
    (NOISE, "lzo1x_1_compress", 1 << 16),
    (REPEATS, "lzo1x_1_compress", 10_000),
    (REPEATS[::-1], "lzo1x_999_compress", 30_000),
    (FAR, "lzo1x_999_compress", 1 << 20),
    (RUNS, "lzo1x_1_15_compress", 1 << 16),
    (RUNS + FAR, "lzo1x_999_compress", 0),
    (["a"], "lzo1x_1_compress", 0),
]
"""Values, liblzo2's compressor, and the bytes of a block in Hadoop's frames. 0: one bare block."""


def plain(values: list[str]) -> bytes:
    return b"".join(len(v).to_bytes(4, "little") + v.encode() for v in values)


def framed(data: bytes, block: int, compress: Callable[[bytes], bytes]) -> bytes:
    """One frame: its size, and blocks behind the sizes that they are stored in."""
    parts = [compress(data[at : at + block]) for at in range(0, len(data), block)]
    return len(data).to_bytes(4, "big") + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
