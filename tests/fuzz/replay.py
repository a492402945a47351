"""Runs the targets on their corpora with the kernels that are installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

from targets import TARGETS

CORPORA = Path(__file__).resolve().parents[2] / "testdata" / "fuzz"


def replay(target: str) -> int:
    """Run all inputs of a target. Returns how many there are. What a target raises goes on."""
    with zipfile.ZipFile(CORPORA / f"{target}.zip") as inputs:
        names = inputs.namelist()
        for name in names:
            try:
                TARGETS[target].run(memoryview(inputs.read(name)))
            except Exception as error:
                error.add_note(f"input {name} of {target}")
                raise
    return len(names)
