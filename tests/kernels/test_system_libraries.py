"""A build that is linked to the system's zlib, zstd, Brotli and libcrypto (-DPYPARQ_SYSTEM_LIBS=ON)."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sanitize

HEADERS = ["zlib.h", "zstd.h", "brotli/decode.h", "brotli/encode.h", "openssl/evp.h"]
OLDEST = (3, 26)
"""CMake that the kernels are built with; pip fetches a newer one where the system's is older."""


def new_cmake() -> str | None:
    for found in (sanitize.tool("cmake"), shutil.which("cmake")):
        if found is not None:
            said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
            if (match := re.search(r"(\d+)\.(\d+)", said)) and tuple(map(int, match.groups())) >= OLDEST:
                return found
    return None


cmake = new_cmake()
pytestmark = pytest.mark.skipif(
    cmake is None or importlib.util.find_spec("nanobind") is None,
    reason="needs CMake 3.26 and nanobind: pip install '.[dev]'",
)


def has_headers(*headers: str) -> bool:
    compiler = shutil.which("c++")
    program = "".join(f"#include <{header}>\n" for header in headers)
    if compiler is None:
        return False
    words = [compiler, "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(words, input=program, text=True, capture_output=True).returncode == 0


def configure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(cmake),
        "-S",
        str(sanitize.ROOT / "pyparq" / "kernels"),
        "-B",
        str(folder),
        "-DPYPARQ_SYSTEM_LIBS=ON",
    ]
    command += [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release", *options]
    if ninja := sanitize.tool("ninja"):
        command += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    return subprocess.run(command, capture_output=True, text=True)


def test_missing_headers_are_named(tmp_path: Path) -> None:
    """All at once, with the packages that have them: a packager asks for a linked build and gets no other."""
    nowhere = [f"-D{name}=NOTFOUND" for name in ("ZSTD_LIBRARY", "BROTLI_ENCODER")]
    off = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("ZLIB", "OpenSSL")]
    paths = ["-DCMAKE_SYSTEM_LIBRARY_PATH=/nowhere", "-DCMAKE_SYSTEM_PREFIX_PATH=/nowhere"]
    done = configure(tmp_path, *nowhere, *off, *paths)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "PYPARQ_SYSTEM_LIBS is ON, but headers or libraries are missing: zlib (Debian: zlib1g-dev)" in said
    assert "OpenSSL (Debian: libssl-dev)" in said


CODE = """
import sys
import pyparq
from pyparq import kernels
from pyparq.kernels import libraries

def search(name):
    raise AssertionError("a linked build looks for nothing")

libraries.files_of = search
for name, state, version, file, reason in kernels.library_report():
    print(name, state, version, sep="|")
assert "cramjam" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not has_headers(*HEADERS), reason=f"needs a C++ compiler and the headers {', '.join(HEADERS)}")
def test_a_linked_build(tmp_path: Path) -> None:
    """It searches no Python package, and codecs and encryption pass the tests of the default build.

    ``PYPARQ_LINKED_BUILD`` names a folder that keeps the build for the next run."""
    build, overlaid = Path(os.environ.get("PYPARQ_LINKED_BUILD", tmp_path / "build")), tmp_path / "overlay"
    done = configure(build)
    assert done.returncode == 0, done.stderr
    subprocess.run([str(cmake), "--build", str(build)], check=True, stdout=subprocess.DEVNULL)
    sanitize.overlay(overlaid, next(build.glob("_native.*so")), whole=True)
    environment = os.environ | {
        "PYTHONSAFEPATH": "1",  # processes that a test starts find the overlay, too, and not the source folder
        "PYTHONPATH": os.pathsep.join(
            [str(overlaid), *(path for path in sys.path if path not in ("", str(sanitize.ROOT)))]
        ),
    }
    python = [sys.executable, "-S", "-P"]
    told = subprocess.run([*python, "-c", CODE], env=environment, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    names = ["zlib", "zstd", "brotli", "libcrypto"]
    lines = [line.split("|") for line in told.stdout.splitlines()]
    assert [line[:2] for line in lines] == [[name, "linked"] for name in names]
    assert ("libdeflate" in lines[0][2]) == has_headers("libdeflate.h")
    tests = ["test_kernels_codecs.py", "test_kernels_crc.py", "test_kernels_seal.py", "test_encryption_aad.py"]
    tests += ["test_encryption_native.py", "test_versions.py", "test_codec_libraries.py"]
    options = ["-q", "-p", "no:cacheprovider", "-k", "not damaged"]
    paths = [str(next(Path(__file__).parents[1].rglob(name))) for name in tests]
    assert (
        subprocess.run([*python, "-m", "pytest", *options, *paths], env=environment, cwd=sanitize.ROOT).returncode == 0
    )
