"""Where the kernels look for zlib, zstd, Brotli and libcrypto, unless the build linked them.

A default build needs no library but brings none either. At run time it looks up C functions in the extension modules
of installed Python packages, and checks each library before it uses it (``src/codecs/library_checks.cpp``). Python
packages do the work of a library that is missing. Only the kernels call what is here, once for each library.

The first read of a process waits for this module, so it imports little (no pathlib).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import NamedTuple

SWITCH = "PYPARQ_NO_LIBRARIES"
"""The environment variable that switches libraries off: ``1`` or ``all`` for all of them, or some of their names with
commas between them. Then Python packages do their work, as where the libraries are missing."""


class Library(NamedTuple):
    modules: tuple[str, ...]
    """Python packages or modules that bring the library, or are linked to it. They are not imported for that."""
    files: tuple[str, ...]
    """What the system calls the library, for where the modules are part of the interpreter or do not help."""
    slower: str
    """What takes longer without the library."""
    install: str
    """What to install."""


LIBRARIES = {
    "zlib": Library(
        ("zlib",),
        ("libz.so.1", "libz.1.dylib"),
        "GZIP pages and page checksums go through Python's module zlib",
        "your system's zlib (Debian: zlib1g)",
    ),
    "zstd": Library(
        ("zstandard", "_zstd"),
        ("libzstd.so.1", "libzstd.1.dylib"),
        "ZSTD pages go through the packages cramjam and zstandard",
        "zstandard from a wheel (pip install --force-reinstall --only-binary :all: zstandard) or your system's libzstd "
        "(Debian: libzstd1)",
    ),
    "brotli": Library(
        ("_brotli", "cramjam"),  # the package brotli is the C library, cramjam's is another and somewhat slower
        (),
        "BROTLI pages go through the package cramjam",
        "cramjam from a wheel (pip install --force-reinstall --only-binary :all: cramjam)",
    ),
    "libcrypto": Library(
        ("_hashlib",),
        ("libcrypto.so.3", "libcrypto.3.dylib"),
        "encrypted pages go through the package cryptography",
        "your system's OpenSSL 3 (Debian: libssl3)",
    ),
}


def is_switched_off(name: str) -> bool:
    """Whether the environment forbids the kernels to use a library."""
    words = [word.strip().lower() for word in os.environ.get(SWITCH, "").split(",")]
    if unknown := [word for word in words if word not in ("", "0", "1", "all", *LIBRARIES)]:
        known = ", ".join(LIBRARIES)
        warnings.warn(f"{SWITCH} names {unknown[0]!r}, but the libraries are {known}", RuntimeWarning, stacklevel=2)
    return name in words or "1" in words or "all" in words


def files_of(name: str) -> list[str]:
    """Paths and names of shared libraries that may have the functions, in the order in which to try them."""
    library = LIBRARIES[name]
    return [*(path for module in library.modules for path in _extensions(module)), *library.files]


def files_of_libdeflate() -> list[str]:
    """The same for libdeflate. It does part of zlib's work where it is there, and nobody is told where it is not."""
    return [*_extensions("deflate"), "libdeflate.so.0", "libdeflate.0.dylib"]


def warn_missing(name: str, reason: str) -> None:
    """Tell the user what is slower without the library, and what to do. ``reason``: why candidates were refused."""
    library = LIBRARIES[name]
    warnings.warn(
        f"pyparq did not find a {name} that it can use{f' ({reason})' if reason else ''}. Results are the same, but "
        f"{library.slower}, which is slower. Install {library.install}, or build pyparq with "
        f"-C cmake.define.PYPARQ_SYSTEM_LIBS=ON. {SWITCH}={name} turns this warning off. "
        "pyparq.show_versions() shows all libraries.",
        RuntimeWarning,
        stacklevel=2,
    )


def _extensions(module: str) -> Iterator[str]:
    """Paths of a module's shared library, or of all that lie in the folder of a package."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # ValueError: a module that was made by hand
        return
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin is not None and _is_extension(spec.origin):
            yield spec.origin
        return
    for folder in spec.submodule_search_locations:
        if os.path.isdir(folder):  # a package may lie in an archive
            yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if _is_extension(name))


def _is_extension(name: str) -> bool:
    return name.endswith(tuple(EXTENSION_SUFFIXES))
