"""Estimates of what a test keeps: between 0 and 1, and the right way round for every kind of value."""

from __future__ import annotations

from typing import Any

import pytest
from filter_oracle import BY_NAME, Spec
from test_filter_bounds import bounds_of, single

from pyparq.filters.expression import col
from pyparq.read.plan.prune import UNKNOWN, kept_shares

OPS: dict[str, Any] = {
    "<": lambda column, value: column < value, "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value, ">=": lambda column, value: column >= value,
}  # fmt: skip


def share(spec: Spec, op: str, literal: Any, low: Any, high: Any) -> float:
    """The estimate for a part that holds values from ``low`` to ``high``."""
    test = single(OPS[op](col(spec.name), literal), spec)
    assert test is not None
    (found,) = kept_shares(test, bounds_of(spec, [[low, high]])).tolist()
    return float(found)


@pytest.mark.parametrize(
    ("kind", "low", "high", "steps"),
    [
        ("string", b"key100", b"key900", [b"key000", b"key150", b"key300", b"key500", b"key800", b"keys"]),
        ("string", b"a", b"z", [b"", b"b", b"m", b"y", b"zz"]),
        ("binary", b"\x07\x00", b"\x07\xff", [b"\x06", b"\x07\x10", b"\x07\x80", b"\x07\xf0", b"\x08"]),
        ("int32", -100, 100, [-1000, -50, 0, 50, 1000]),
        ("double", -1.0, 1.0, [-5.0, -0.5, 0.0, 0.5, 5.0]),
    ],
)
def test_a_larger_literal_keeps_more_below_it(kind: str, low: Any, high: Any, steps: list[Any]) -> None:
    spec = BY_NAME[kind]
    as_asked = [step.decode() if kind == "string" else step for step in steps]
    below = [share(spec, "<", literal, low, high) for literal in as_asked]
    above = [share(spec, ">=", literal, low, high) for literal in as_asked]
    assert below == sorted(below)
    assert below[0] == 0.0
    assert below[-1] == 1.0
    assert all(0 < part < 1 for part in below[1:-1])
    assert [a + b for a, b in zip(below, above, strict=True)] == pytest.approx([1.0] * len(steps))


def test_the_middle_of_text_is_a_half() -> None:
    assert share(BY_NAME["string"], "<", "n", b"a", b"z") == pytest.approx(0.5, abs=0.06)
    assert share(BY_NAME["string"], ">", "key850", b"key100", b"key900") < 0.2


def test_one_value_says_nothing_about_its_part() -> None:
    assert share(BY_NAME["string"], "<", "m", b"m", b"m") == UNKNOWN
