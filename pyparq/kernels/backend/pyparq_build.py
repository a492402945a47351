"""What pip calls to build pyparq (PEP 517): scikit-build-core, and a C++ compiler from PyPI where the machine has none.

``ziglang`` holds a whole C++20 compiler with its standard library. It is asked for only where no compiler works: it is
a download of 100 MB and takes about three times as long.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scikit_build_core import build as scikit
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, list[str] | str] | None

COMPILERS = ("c++", "g++", "clang++")
PROBE = "#include <bit>\n#include <span>\nint main() { return std::popcount(0u); }\n"
"""A program that only a C++20 compiler with its standard library takes."""
ADVICE = (
    "pyparq: the kernels were not built. They need a C++20 compiler: "
    "install one (Debian: apt-get install g++; macOS: xcode-select --install), then run the same command again."
)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_wheel(config_settings), *compiler_requirement()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_editable(config_settings), *compiler_requirement()]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    with compiler(), advice():
        return str(scikit.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    with compiler(), advice():
        return str(scikit.build_editable(wheel_directory, config_settings, metadata_directory))


def compiler_requirement() -> list[str]:
    """``ziglang`` where it can help: CMake finds the compiler of Windows by itself, and one that is named is used."""
    return ["ziglang>=0.13"] if os.name == "posix" and not has_compiler() else []


def has_compiler() -> bool:
    """Whether ``CXX`` names a compiler, or one that is installed takes C++20."""
    return bool(os.environ.get("CXX")) or any(compiles(found) for name in COMPILERS if (found := shutil.which(name)))


def compiles(command: str) -> bool:
    """Whether a compiler makes a C++20 program: an old one does not, nor one without the standard library."""
    with tempfile.TemporaryDirectory() as folder:
        words = [command, "-std=c++20", "-x", "c++", "-", "-o", str(Path(folder, "probe"))]
        try:
            return subprocess.run(words, input=PROBE, text=True, capture_output=True, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


@contextmanager
def compiler() -> Iterator[None]:
    """``CXX`` and the tools beside it are those of ``ziglang`` within, where it was asked for."""
    if not compiler_requirement():
        yield
        return
    try:
        import ziglang
    except ImportError:  # pip was told to install nothing (--no-build-isolation): CMake says what it misses
        yield
        return
    zig = Path(ziglang.__file__).parent / "zig"
    print(f"pyparq: no C++20 compiler found; building with ziglang ({zig})", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        # baseline: the package may run on another machine than this one. Zig checks for undefined behaviour by default.
        tools = {"c++": "c++ -mcpu=baseline -fno-sanitize=undefined", "ar": "ar", "ranlib": "ranlib"}
        for name, words in tools.items():
            tool = Path(folder, f"zig-{name}")
            tool.write_text(f'#!/bin/sh\nexec "{zig}" {words} "$@"\n')
            tool.chmod(0o755)
        arguments = [f"-DCMAKE_AR={folder}/zig-ar", f"-DCMAKE_RANLIB={folder}/zig-ranlib"]
        with environment(CXX=f"{folder}/zig-c++", CMAKE_ARGS=" ".join([os.environ.get("CMAKE_ARGS", ""), *arguments])):
            yield


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def advice() -> Iterator[None]:
    """The last line of a failed build says what to do."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            print(ADVICE, file=sys.stderr)
        raise
