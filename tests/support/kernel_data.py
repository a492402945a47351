"""Byte arrays as the kernels take them, for the kernel tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

OFFSET_TYPES = [np.int32, np.int64]


def binary(values: Sequence[bytes], dtype: Any = np.int64, lead: bytes = b"") -> tuple[Any, Any]:
    """Offsets and data; `lead` puts bytes that belong to no value in front."""
    offsets = np.zeros(len(values) + 1, dtype)
    np.cumsum([len(v) for v in values], out=offsets[1:])
    return offsets + dtype(len(lead)), np.frombuffer(lead + b"".join(values), np.uint8)


def values_of(offsets: Any, data: Any) -> list[bytes]:
    raw = bytes(data)
    return [raw[a:b] for a, b in zip(offsets.tolist(), offsets.tolist()[1:])]


def words(rng: random.Random, n: int, alphabet: bytes = b"ab\xff", longest: int = 20) -> list[bytes]:
    return [bytes(rng.choices(alphabet, k=rng.choice([0, 1, 2, 7, 8, 9, 15, 16, 17, longest]))) for _ in range(n)]
