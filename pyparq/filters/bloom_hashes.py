"""The hashes to look up in a Bloom filter for a test."""

from __future__ import annotations

import numpy as np

from pyparq.filters.predicate import Test
from pyparq.index.bloom_filter import can_prune, hash_literal

MOST_LITERALS = 4096
"""With more literals, nearly every filter answers "maybe" to one of them, so asking is not worth the bytes."""


def probe_hashes(test: Test) -> list[list[int]] | None:
    """For each literal, the XXH64 hashes under which it may have been inserted. ``None`` if a filter cannot help.

    A row can pass only if the filter contains some hash of some literal. So an empty list, or a list of empty lists,
    means that no row passes. Only ``==`` and ``in`` can be answered. Zero has two hashes (0.0 and -0.0).
    """
    if test.none or test.op not in ("==", "in") or not can_prune(test.leaf):
        return None
    if len(test.literals) > MOST_LITERALS:
        return None
    probes = []
    literals = test.literals.tolist() if isinstance(test.literals, np.ndarray) else test.literals
    for literal in literals:
        hashes = hash_literal(literal, test.leaf)
        if hashes is None:
            return None
        probes.append(hashes)
    return probes
