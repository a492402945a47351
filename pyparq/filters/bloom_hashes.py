"""What a Bloom filter can be asked for a test: the hashes to probe."""

from __future__ import annotations

import numpy as np

from pyparq.filters.predicate import Test
from pyparq.index.bloom_filter import can_prune, hash_literal

MOST_LITERALS = 4096
"""With more literals than this nearly every filter says "maybe" to one of them: asking is not worth the bytes."""


def probe_hashes(test: Test) -> list[list[int]] | None:
    """For each literal the XXH64 hashes it may have been inserted under; ``None`` when a filter cannot help.

    A row can pass only if for some literal some of its hashes is in the filter; so an empty list, or only
    empty lists inside, means that no row does. Only ``==`` and ``in`` can be answered. Zero has two hashes
    (0.0 and -0.0).
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
