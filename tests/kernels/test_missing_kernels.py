"""A source folder without compiled kernels says what to do: in front of an installed pyparq, and alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "pyparq"


def said_by(folder: Path, *others: Path) -> str:
    """What ``python -m pyparq`` says in a folder with the sources alone."""
    shutil.copytree(SOURCE, folder / "pyparq", ignore=shutil.ignore_patterns("_native*.so", "__pycache__", "src"))
    path = os.pathsep.join(map(str, (*others, Path(np.__file__).parents[1])))
    # -S: no editable installation comes first.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "pyparq"], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_a_source_folder_in_front_of_the_installation(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    (installed / "pyparq" / "kernels").mkdir(parents=True)
    (installed / "pyparq" / "kernels" / "_native.abi3.so").touch()
    said = said_by(tmp_path / "clone", installed)
    assert f"before the installed pyparq in {installed / 'pyparq'}" in said
    assert "use the command `pyparq`" in said


def test_a_source_folder_alone(tmp_path: Path) -> None:
    if list(Path(np.__file__).parents[1].glob("pyparq/kernels/_native*")):
        pytest.skip("pyparq is installed beside numpy")
    assert "`pip install .` in the source folder builds them" in said_by(tmp_path / "clone")
