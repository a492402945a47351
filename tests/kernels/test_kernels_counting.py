"""About how many hashes differ, against the exact number."""

from __future__ import annotations

import numpy as np
import pytest

from pyparq import kernels


@pytest.mark.parametrize("count", [0, 1, 100, 65_536, 400_000])
@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
def test_estimates_of_distinct_hashes(count: int, share: float) -> None:
    rng = np.random.default_rng(count)
    distinct = rng.integers(0, 2**63, max(int(count * share), min(count, 1)), np.uint64)
    hashes = np.concatenate([distinct, rng.choice(distinct, count - len(distinct))]) if count else distinct
    about, exact = kernels.estimate_distinct_u64(hashes), kernels.count_distinct_u64(hashes)
    assert about == pytest.approx(exact, rel=0.02 if count >= 65_536 else 0.2, abs=0.5)
