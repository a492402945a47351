"""``show_versions()`` tells which library does each codec."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyparq
from pyparq import kernels
from pyparq.cli.app import app
from pyparq.versions import NEEDED, OPTIONAL

ROOT = Path(__file__).parents[2]
CODECS = ["SNAPPY", "LZ4_RAW", "LZ4", "GZIP", "ZSTD", "BROTLI", "AES"]


def test_the_text_is_aligned_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert pyparq.show_versions() is None
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len({re.match(r"\S+ +", line).end() for line in lines}) == 1  # type: ignore[union-attr]
    rows = dict(line.split(maxsplit=1) for line in lines)
    assert rows["pyparq"] == pyparq.__version__
    assert rows["numpy"] == version("numpy")
    assert rows["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert [name for name in rows if name in CODECS] == CODECS


def test_the_dict_has_the_same() -> None:
    found = pyparq.show_versions(as_dict=True)
    assert list(found) == ["pyparq", "python", "platform", "packages", "codecs"]
    assert found["packages"]["pyarrow"] == version("pyarrow")
    assert list(found["codecs"]) == CODECS
    report = {name: rest for name, *rest in kernels.library_report()}
    for codec, library in [("GZIP", "zlib"), ("ZSTD", "zstd"), ("BROTLI", "brotli"), ("AES", "libcrypto")]:
        state, number, file, _ = report[library]
        if state in ("found", "linked"):
            assert found["codecs"][codec]["version"] == number
            assert found["codecs"][codec]["file"] == file
            assert Path(file).exists()


def test_without_libraries_and_packages() -> None:
    code = """
import sys
from importlib import metadata
known = metadata.version
def version(name):
    if name == "polars":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
import pyparq
pyparq.show_versions()
assert pyparq.show_versions(as_dict=True)["packages"]["polars"] is None
assert pyparq.show_versions(as_dict=True)["codecs"]["AES"]["origin"] == "Python packages"
assert not {"pyarrow", "polars", "cryptography", "zstandard"} & set(sys.modules)
"""
    environment = os.environ | {"PYPARQ_NO_LIBRARIES": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stderr == ""
    assert re.search(r"^polars +not installed$", done.stdout, re.M)
    assert re.search(
        r"^ZSTD +cramjam \(reading\), zstandard \(writing\); Python packages; zstd: switched off$", done.stdout, re.M
    )
    assert re.search(r"^AES +cryptography; Python packages; OpenSSL libcrypto: switched off$", done.stdout, re.M)


def test_on_the_command_line() -> None:
    done = CliRunner().invoke(app, ["--versions"])
    assert done.exit_code == 0
    assert done.stdout.startswith("pyparq ")
    assert "\nZSTD " in done.stdout


def test_the_packages_that_are_needed_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(NEEDED) == [re.match(r"[\w-]+", text)[0] for text in project["dependencies"]]  # type: ignore[index]
    extras = {re.match(r"[\w-]+", text)[0] for texts in project["optional-dependencies"].values() for text in texts}  # type: ignore[index]
    assert set(OPTIONAL) <= extras
