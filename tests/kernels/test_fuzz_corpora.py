"""Inputs that fuzzing found, with the kernels that are installed: no crash, no untyped error, and the values of slow
decoders. ``tests/fuzz/run.py`` looks for more."""

from __future__ import annotations

import pytest
from replay import CORPORA, replay
from targets import TARGETS

from pyparq.format.thrift_codec import deserialize_column_index

SLOW = ("files", "geometry_columns")


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(TARGETS)]
)
def test_inputs_of_fuzzing(target: str) -> None:
    assert replay(target) > 0


def test_the_corpora_are_small() -> None:
    assert {path.stem for path in CORPORA.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPORA.iterdir()) < 5 << 20


def test_a_column_index_with_a_list_in_place_of_its_order() -> None:
    """Field 4 is a number. Of a list there, an item was once stored before the first of the lists that follow."""
    lists = b"\x19\x11\x02" + b"\x19\x18\x01a" + b"\x19\x18\x01b" + b"\x19\x16\x04"
    order = b"\x05\x08\x02"
    found = deserialize_column_index(lists + order + b"\x00", 0, 0)
    assert (found.lower, found.upper, found.order) == ([b"a"], [b"b"], 1)
    assert found.null_counts is found.nan_counts is None
    assert found.repetition_histograms is found.definition_histograms is None
