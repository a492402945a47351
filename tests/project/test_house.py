"""The size of the house and the turns of its roads: bounds that only go down."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from test_architecture import NAMES, imports_of, modules

SCRIPT = Path(__file__).parents[1] / "support" / "call_counts.py"

MOST = {
    "read": (122, 26, 57),
    "filtered read": (292, 40, 143),
    "four files, filtered": (557, 55, 250),
    "write": (174, 28, 86),
    "folder of four written": (781, 41, 400),
}
"""Calls, files, and changes from one file to another."""


@cache
def counts() -> dict[str, list[int]]:
    out = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[int]] = json.loads(out)
    return found


@pytest.mark.parametrize("job", MOST)
def test_small_jobs_take_few_calls(job: str) -> None:
    assert all(found <= most for found, most in zip(counts()[job], MOST[job], strict=True)), counts()[job]


def test_the_house_does_not_grow() -> None:
    """Lines, modules, folders, modules with one importer, and the longest chain of imports."""
    lines = sum(len(path.read_text().splitlines()) for path in modules())
    edges = {name: {i.module for i in imports_of(path) if i.module in NAMES} - {name} for name, path in NAMES.items()}
    del edges["pyparq"]  # the public names, from anywhere
    importers = Counter(module for found in edges.values() for module in found)
    single = [name for name, path in NAMES.items() if path.name != "__init__.py" and importers[name] == 1]

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in edges.get(name, ()) if other != "pyparq"), default=0)

    found = {
        "lines": lines,
        "modules": sum(path.name != "__init__.py" for path in modules()),
        "folders": len({path.parent for path in modules()}),
        "with one importer": len(single),
        "longest chain": max(map(depth, edges)),
    }
    most = {"lines": 84_920, "modules": 305, "folders": 26, "with one importer": 40, "longest chain": 34}
    assert {name: found[name] for name in most if found[name] > most[name]} == {}


def test_modules_say_what_they_are() -> None:
    """Each has a docstring, and most hold more than a fragment of an idea."""
    assert [
        str(path) for path in modules() if path.read_text() and not ast.get_docstring(ast.parse(path.read_text()))
    ] == []
