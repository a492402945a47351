"""The kernels' own tests once more, on builds that abort at the first bad read, write or overflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "sanitize.py"


@pytest.mark.slow
@pytest.mark.sanitize
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("flavour", [[], ["--portable"], ["--own-maps"], ["--threads"]],
                         ids=["simd", "portable", "own maps", "threads"])  # fmt: skip
def test_kernels_under_sanitizers(flavour: list[str], request: pytest.FixtureRequest) -> None:
    if "sanitize" not in request.config.getoption("-m"):
        pytest.skip("builds the kernels anew: run with -m sanitize")
    done = subprocess.run([sys.executable, str(SCRIPT), *flavour], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
