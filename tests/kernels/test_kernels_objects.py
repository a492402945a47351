"""Kernels between columns and Python's objects: what they refuse, and that they keep no references."""

from __future__ import annotations

import sys
from typing import Any

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
