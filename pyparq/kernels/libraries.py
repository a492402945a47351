"""Where the C libraries are that Python packages bring along: the kernels call some of their functions directly."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path


def files_of(package: str) -> list[str]:
    """Paths of libraries that may have the functions: the extension modules of a package, which is not imported for
    that, above all."""
    return [*_extensions(package), *_SYSTEM.get(package, ())]


_SYSTEM = {
    "zlib": ("libz.so.1", "libz.1.dylib"),
    "_hashlib": ("libcrypto.so.3", "libcrypto.3.dylib"),
}
"""Where a module may be a part of the interpreter: the system's library of that name, if it has one."""


def _extensions(package: str) -> list[str]:
    spec = find_spec(package)
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [spec.origin] if spec.origin is not None and _is_extension(spec.origin) else []
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    return [str(path) for folder in folders for path in sorted(folder.iterdir()) if _is_extension(path.name)]


def _is_extension(name: str) -> bool:
    return name.endswith(tuple(EXTENSION_SUFFIXES))
