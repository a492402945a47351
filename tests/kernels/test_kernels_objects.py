"""Kernels between columns and Python's objects: what they refuse, and that they keep no references."""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from pyparq import kernels
from pyparq.kernels import KernelError


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 64, 65])
def test_numbers_in_and_out(size: int) -> None:
    values = [None if k % 3 == 1 else k << 40 for k in range(size)]
    found = kernels.column_of_objects(values)
    if size == 0:
        assert found is None
        return
    assert found is not None
    format_, length, validity, nulls, (data,) = found
    assert (format_, length, nulls) == ("l", size, values.count(None))
    bits = np.ones(size, bool) if validity is None else np.unpackbits(validity, count=size, bitorder="little")
    assert kernels.objects_of_numbers(data, False, bits.astype(np.bool_)) == values


def test_what_is_left_to_python() -> None:
    class Number(int):
        pass

    for values in ([], [None], [1, 2.0], [Number(1)], [2**63], ["\ud800"], [True, 1], [b"a", "a"], [[1]]):
        assert kernels.column_of_objects(values) is None
    assert kernels.split_dicts([{1: 2}]) is None
    assert kernels.split_dicts([[]]) is None
    assert kernels.join_lists([[1], "a"]) is None
    assert kernels.objects_of_bytes(np.array([0, 1], np.int32), b"\xff", None, True) is None


OFFSETS = np.array([0, 1, 2], np.int32)
TWO = np.ones(2, bool)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kernels.objects_of_numbers(np.ones(3), False, TWO),
        lambda: kernels.objects_of_numbers(np.ones(3, np.float16), False, None),
        lambda: kernels.objects_of_bytes(OFFSETS, b"a", None, True),
        lambda: kernels.objects_of_bytes(OFFSETS[::-1].copy(), b"abc", None, True),
        lambda: kernels.objects_of_bytes(OFFSETS[:0], b"", None, False),
        lambda: kernels.objects_of_bytes(OFFSETS, b"abc", np.ones(3, bool), False),
        lambda: kernels.objects_at([1], np.array([1]), None),
        lambda: kernels.objects_at([1], np.array([-1]), None),
        lambda: kernels.cut_list([1], OFFSETS, None),
        lambda: kernels.dicts_of_lists(["a"], [], 1, None),
        lambda: kernels.dicts_of_lists(["a"], [[1]], 2, None),
        lambda: kernels.dicts_of_lists(["a"], [(1, 2)], 2, None),  # type: ignore[list-item]
        lambda: kernels.dicts_of_lists([1], [[1, 2]], 2, None),  # type: ignore[list-item]
        lambda: kernels.dicts_of_lists(["a"], [[1, 2]], 2, np.ones(1, bool)),
    ],
)
def test_refused(call: Any) -> None:
    with pytest.raises((KernelError, IndexError, TypeError)):
        call()


def test_references_are_counted() -> None:
    item = object()
    rows = [{"a": item} for _ in range(10)]
    before = sys.getrefcount(item)
    for _ in range(5):
        kernels.split_dicts(rows)
        kernels.join_lists([[item], (item,), None])
        kernels.dicts_of_lists(["a"], [[item] * 3], 3, None)
        kernels.cut_list([item, item], OFFSETS, None)
        kernels.objects_at([item], np.zeros(4, np.int64), None)
        kernels.column_of_objects([item])
    assert sys.getrefcount(item) == before


ZONE = dt.timezone(dt.timedelta(hours=-3))


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2024, 1, 1), dt.datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Paris")),
        dt.datetime(2024, 7, 1, tzinfo=ZONE), dt.date(2024, 1, 1), dt.time(1), dt.timedelta(1), uuid.UUID(int=5 << 90),
        Decimal("2.50"), Decimal("NaN"), "text", b"bytes", 5.5, 2**60,
    ],
    ids=lambda value: f"{type(value).__name__}",
)  # fmt: skip
def test_values_and_their_zones_are_not_kept(value: Any) -> None:
    zone = getattr(value, "tzinfo", None)
    before = sys.getrefcount(value), sys.getrefcount(zone), sys.getrefcount(type(value))
    for _ in range(1000):
        kernels.column_of_objects([value, None, value])
    after = sys.getrefcount(value), sys.getrefcount(zone), sys.getrefcount(type(value))
    assert all(b - a < 100 for a, b in zip(before, after, strict=True))


def test_a_zone_that_takes_the_values_away() -> None:
    class Taking(dt.tzinfo):
        def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
            values.clear()
            return dt.timedelta(0)

    values = [dt.datetime(2024, 1, 1, k, tzinfo=Taking()) for k in range(20)]
    assert kernels.column_of_objects(values) is None
