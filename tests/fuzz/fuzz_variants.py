"""Variants: shredded columns put together, and whole ones taken apart."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
from fuzz_input import Stream, check, own, refused, split

from pyparq.arrow.variant_values import decode, encode
from pyparq.errors import DataError
from pyparq.kernels import variant_shred, variant_unshred

_FIXED = {1: 1, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 16, 9: 16, 10: 16, 11: 4, 12: 8, 14: 4, 17: 8, 18: 8, 20: 16}
_KINDS = (*_FIXED, 15, 16, 100, 101)
_METADATA = b"\x11\x03\x00\x01\x02\x03abc"


class _Made(Stream):
    """Columns of a shredded Variant, out of the bytes of an input."""

    def mask(self, slots: int) -> Any:
        chosen = self.next() % 4
        return None if chosen == 0 else own(bytes(b & 1 for b in self.bytes(slots)))

    def texts(self, slots: int) -> tuple[Any, Any]:
        lengths = [self.next() % 24 for _ in range(slots)]
        edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64 if self.next() % 2 else np.int32)
        return edges, own(self.bytes(sum(lengths)))

    def tree(self, slots: int, depth: int) -> tuple[Any, Any]:
        value = (*self.texts(slots), self.mask(slots)) if self.next() % 4 else None
        return value, self.typed(slots, depth) if self.next() % 4 else None

    def typed(self, slots: int, depth: int) -> tuple[Any, ...]:
        kind = _KINDS[self.next() % len(_KINDS)] if depth < 3 else 6
        scale, mask = self.next() % 40, self.mask(slots)
        if kind == 100:
            names = ("a", "b", "c", "a")[: self.next() % 5]
            return kind, 0, mask, names, tuple(self.tree(slots, depth + 1) for _ in names)
        if kind == 101:
            edges = np.concatenate(([0], np.cumsum([self.next() % 4 for _ in range(slots)]))).astype(np.int32)
            return kind, 0, mask, edges, self.tree(int(edges[-1]), depth + 1)
        if kind in (15, 16):
            return (kind, 0, mask, *self.texts(slots))
        return kind, scale, mask, own(self.bytes(_FIXED[kind] * slots))


def unshredded(data: Any) -> None:
    """Any columns: a refusal, or values that stand where the offsets say."""
    head, stored = split(data)
    slots = head[0] % 5
    made = _Made(bytes(stored))
    if head[1] & 1:
        metadata = made.texts(slots)
    else:
        edges = np.arange(slots + 1, dtype=np.int32) * len(_METADATA)
        metadata = edges, own(_METADATA * slots)
    with refused:
        offsets, values = variant_unshred(metadata, made.tree(slots, 0), made.mask(slots), slots)
        check(len(offsets) == slots + 1 and offsets[-1] == len(values), "offsets do not fit")
        if head[1] & 2:
            for k in range(slots):
                _decoded(bytes(metadata[1][metadata[0][k] : metadata[0][k + 1]]),
                         values[offsets[k] : offsets[k + 1]].tobytes())  # fmt: skip


def _decoded(metadata: bytes, value: bytes) -> None:
    if not value:
        return  # the row is null
    try:
        decode(metadata, value)
    except DataError:
        return


_INTEGER, _DECIMAL, _TEXT, _DOUBLE = (6, 0, 0), (8, 9, 2), (16, 0, 0), (7, 0, 0)
_SCHEMAS: tuple[Any, ...] = (
    None, _INTEGER, (3, 0, 0), _DECIMAL, (10, 38, 5), _TEXT, (1, 0, 0), (101, _INTEGER), (101, None),
    (100, ("a",), (_INTEGER,)), (100, ("a", "b"), (_TEXT, None)),
    (100, ("a", "b", "c"), (_DOUBLE, _DECIMAL, (11, 0, 0))),
    (100, ("c", "b"), ((100, ("a",), ((101, _TEXT),)), (15, 0, 0))), (101, (100, ("a", "c"), (_INTEGER, (101, None)))),
)  # fmt: skip


def shredded(data: Any) -> None:
    """What is taken apart is the same when it is put together: values that are made of the input, or its bytes."""
    head, stored = split(data)
    schema = _SCHEMAS[head[0] % len(_SCHEMAS)]
    if head[1] & 1:
        metadata, value = _METADATA, bytes(stored)
    else:
        metadata, value = encode(_value(_Made(bytes(stored)), 0))
    edges = (np.array([0, len(part)], np.int64) for part in (metadata, value))
    (names, places), (texts, values) = edges, (own(metadata), own(value))
    with refused:
        parts = variant_shred(names, texts, places, values, None, 1, schema)
        offsets, made = variant_unshred((names, texts), _tree(parts, schema), None, 1)
        check(offsets.tolist() == [0, len(made)], "offsets do not fit")
        before = _read(metadata, value)
        if before is not _INVALID:
            after = _read(metadata, made.tobytes())
            check(after == before or repr(after) == repr(before), f"{before!r} became {after!r}")


_INVALID = object()


def _read(metadata: bytes, value: bytes) -> Any:
    try:
        return decode(metadata, value)
    except DataError:
        return _INVALID


def _tree(parts: Any, schema: Any) -> Any:
    """What one kernel gives as the other takes it."""
    offsets, values, mask, typed = parts
    return (offsets, values, mask), None if typed is None else _typed(typed, schema)


def _typed(typed: Any, schema: Any) -> Any:
    kind = schema[0]
    if kind == 100:
        mask, children = typed
        return kind, 0, mask, schema[1], tuple(map(_tree, children, schema[2]))
    if kind == 101:
        mask, edges, items = typed
        return kind, 0, mask, edges, _tree(items, schema[1])
    mask, *columns = typed
    return (kind, schema[2], mask, *columns)


def _value(made: _Made, depth: int) -> Any:
    kind = made.next() % (11 if depth < 4 else 8)
    if kind == 10:
        return {("a", "b", "c", "d")[made.next() % 4]: _value(made, depth + 1) for _ in range(made.next() % 5)}
    if kind >= 8:
        return [_value(made, depth + 1) for _ in range(made.next() % 5)]
    number = int.from_bytes(made.bytes(made.next() % 9), "little", signed=True)
    return (
        None, bool(number & 1), number, Decimal(number).scaleb(-(made.next() % 20)), number / 7, "x" * (number % 100),
        bytes(number % 5), dt.date.fromordinal(1 + number % 3_000_000),
    )[kind]  # fmt: skip
