"""The types of the kernels that type checkers see are those of the bindings."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("some kernels are only on Linux", allow_module_level=True)
pytest.importorskip("nanobind.stubgen")

import native_stub


def test_the_stub_is_that_of_the_bindings() -> None:
    assert native_stub.difference() == "", "run python tests/support/native_stub.py"


def test_each_name_of_the_kernels_has_a_type() -> None:
    text = native_stub.TARGET.read_text("utf-8")
    assert "-> object" not in text
    assert "-> tuple:" not in text
    assert "-> list:" not in text
