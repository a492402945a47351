"""Tests replace what modules offer, and nothing private of them: a private name may change with any line around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REPLACES = {"setattr", "delattr", "setitem", "delitem"}


def private_names_replaced(tree: ast.AST) -> Iterator[int]:
    """Lines of calls such as ``monkeypatch.setattr(module, "_name", ...)``, whichever way they name it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPLACES:
            named = [part.value if isinstance(part, ast.Constant) else ast.unparse(part) for part in node.args[:2]]
            if any(re.search(r"(^|\.)_[^_]", str(name)) for name in named):
                yield node.lineno


@pytest.mark.parametrize(
    ("code", "private"),
    [
        ("patch.setattr(module, '_name', 1)", True),
        ("patch.setattr('package.module._name', 1)", True),
        ("patch.setattr(module._Class, 'call', 1)", True),
        ("patch.delattr(module, '_name')", True),
        ("patch.setattr(module, 'name_of', 1)", False),
        ("patch.setattr(Class, '__init__', 1)", False),
    ],
)
def test_they_are_found(code: str, private: bool) -> None:
    assert bool(list(private_names_replaced(ast.parse(code)))) is private


def test_no_private_name_is_replaced() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in private_names_replaced(ast.parse(path.read_text()))
    ]
    assert not found
