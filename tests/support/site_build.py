"""Makes the documentation site with the command that CONTRIBUTING gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import require

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """The site in ``folder``. Skips without Sphinx; a warning of Sphinx is an error."""
    for name in ("sphinx", "furo", "myst_parser"):
        require(name)
    line = next(line for line in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines() if "-m sphinx" in line)
    words = line.split("#")[0].split()[1:]
    command = [sys.executable, *[str(folder) if word == "build/site" else word for word in words], "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
