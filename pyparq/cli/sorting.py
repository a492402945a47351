"""``--sort-by``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyparq.cli.names import one_name


def sort_order(given: Sequence[str]) -> list[Any]:
    """``name`` or ``name:desc``."""
    found = []
    for text in given:
        name, colon, direction = text.rpartition(":")
        if colon and direction in ("asc", "desc"):
            found.append((one_name(name), "descending" if direction == "desc" else "ascending"))
        else:
            found.append((one_name(text), "ascending"))
    return found
