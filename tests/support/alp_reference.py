"""ALP pages (AlpEncoding.md), slowly: bits as text, powers of ten from their decimal text.

Values are given and returned as their bits, so that NaN and -0.0 are told apart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Kind(NamedTuple):
    """What differs between FLOAT and DOUBLE."""

    width: int
    most_exponent: int
    number: Callable[[Any], Any]
    """To the type in which the format calculates."""
    bits: str


KINDS = {4: Kind(4, 10, np.float32, "<I"), 8: Kind(8, 18, np.float64, "<Q")}


def bits_of(value: Any, kind: Kind) -> int:
    return int.from_bytes(np.array(value, kind.number).tobytes(), "little")


def value_of(integer: int, exponent: int, factor: int, kind: Kind) -> Any:
    """``integer * 10^factor * 10^-exponent``, in the precision of the type."""
    with np.errstate(over="ignore"):
        return kind.number(integer) * kind.number(f"1e{factor}") * kind.number(f"1e-{exponent}")


def decode(page: bytes, width: int) -> list[int]:
    """The bits of all values of a page."""
    kind = KINDS[width]
    mode, integers, log, count = struct.unpack_from("<BBBi", page)
    assert (mode, integers) == (0, 0)
    body, found = page[7:], list[int]()
    size = 2**log
    for k in range(-(-count // size)):
        (start,) = struct.unpack_from("<I", body, 4 * k)
        found += _vector(body[start:], min(size, count - k * size), kind)
    return found


def _vector(data: bytes, count: int, kind: Kind) -> list[int]:
    exponent, factor, exceptions = struct.unpack_from("<BBH", data)
    base = int.from_bytes(data[4 : 4 + kind.width], "little", signed=True)
    bits = data[4 + kind.width]
    at = 5 + kind.width
    size = -(-count * bits // 8)
    packed = f"{int.from_bytes(data[at : at + size], 'little'):0{8 * size}b}"[::-1]  # the first bit first
    at += size
    half = 2 ** (8 * kind.width - 1)
    values = []
    for i in range(count):
        integer = base + int("0" + packed[i * bits : (i + 1) * bits][::-1], 2)
        integer = (integer + half) % (2 * half) - half  # wraps around
        values.append(bits_of(value_of(integer, exponent, factor, kind), kind))
    positions = struct.unpack_from(f"<{exceptions}H", data, at)
    for k, position in enumerate(positions):
        (values[position],) = struct.unpack_from(kind.bits, data, at + 2 * exceptions + k * kind.width)
    return values


def vector(
    integers: Sequence[int], exponent: int, factor: int, width: int, exceptions: Sequence[tuple[int, int]] = (),
    bits: int | None = None,
) -> bytes:  # fmt: skip
    """A vector from its integers, in as few bits as they need or in `bits`; exceptions are positions and bits."""
    base = min(integers)
    deltas = [integer - base for integer in integers]
    bits = max(deltas).bit_length() if bits is None else bits
    packed = int("".join(f"{delta:0{bits}b}" for delta in reversed(deltas)), 2) if bits else 0
    made = struct.pack("<BBH", exponent, factor, len(exceptions)) + base.to_bytes(width, "little", signed=True)
    made += bytes([bits]) + packed.to_bytes(-(-len(deltas) * bits // 8), "little")
    made += b"".join(struct.pack("<H", position) for position, _ in exceptions)
    return made + b"".join(struct.pack(KINDS[width].bits, value) for _, value in exceptions)


def page(vectors: Sequence[bytes], count: int, log: int) -> bytes:
    offsets, at = [], 4 * len(vectors)
    for made in vectors:
        offsets.append(at)
        at += len(made)
    return struct.pack("<BBBi", 0, 0, log, count) + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(vectors)


def encode(values: Sequence[Any], width: int, log: int, pairs: Sequence[tuple[int, int]]) -> bytes:
    """A page of vectors of ``2**log`` values, whose exponents and factors are the pairs in turn."""
    size = 2**log
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    made = [_encoded(part, *pairs[k % len(pairs)], KINDS[width]) for k, part in enumerate(parts)]
    return page(made, len(values), log)


def _encoded(values: Sequence[Any], exponent: int, factor: int, kind: Kind) -> bytes:
    integers: list[int | None] = []
    exceptions = []
    for i, value in enumerate(values):
        integer = _integer(value, exponent, factor, kind)
        integers.append(integer)
        if integer is None:
            exceptions.append((i, bits_of(value, kind)))
    filler = next((integer for integer in integers if integer is not None), 0)
    whole = [filler if integer is None else integer for integer in integers]
    return vector(whole, exponent, factor, kind.width, exceptions)


def _integer(value: Any, exponent: int, factor: int, kind: Kind) -> int | None:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = kind.number(value) * kind.number(f"1e{exponent}") * kind.number(f"1e-{factor}")
    if not np.isfinite(scaled):
        return None
    integer = round(float(scaled))
    fits = -(2 ** (8 * kind.width - 1)) <= integer < 2 ** (8 * kind.width - 1)
    same = fits and bits_of(value_of(integer, exponent, factor, kind), kind) == bits_of(value, kind)
    return integer if same else None
