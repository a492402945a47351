"""``show_versions()``: what a bug report needs."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, NamedTuple, overload

from pyparq._version import __version__
from pyparq.kernels import library_report
from pyparq.option_checks import keywords

NEEDED = ("numpy", "thrift", "python-snappy", "zstandard", "xxhash", "cramjam", "nanoarrow", "cryptography")
OPTIONAL = (
    "click", "rich", "sqlglot", "pyspark", "pyarrow", "pandas", "polars", "duckdb", "fsspec", "s3fs", "aiohttp",
    "obstore",
)  # fmt: skip


class _Use(NamedTuple):
    library: str
    packages: str
    """The packages that do its work where the kernels do not have the library."""


_USES = {
    "GZIP": _Use("zlib", "Python's module zlib"),
    "ZSTD": _Use("zstd", "cramjam (reading), zstandard (writing)"),
    "BROTLI": _Use("brotli", "cramjam"),
    "AES": _Use("libcrypto", "cryptography"),
}
_OWN = {
    "SNAPPY": "pyparq's own kernels",
    "LZ4_RAW": "pyparq's own kernels (reading), cramjam (writing)",
    "LZ4": "pyparq's own kernels (reading)",
}
_SHOWN = {"libcrypto": "OpenSSL libcrypto"}
_ORIGINS = {"linked": "linked", "found": "found at run time"}


@overload
def show_versions(as_dict: Literal[False] = False) -> None: ...
@overload
def show_versions(as_dict: Literal[True]) -> dict[str, Any]: ...


@keywords
def show_versions(as_dict: bool = False) -> dict[str, Any] | None:
    """Print the versions of pyparq, Python and packages, and which library does each codec and AES.

    Of each library the text has the version, the file, and where it comes from: the build linked it, or pyparq found
    it at run time in an installed package. Where pyparq has no such library, Python packages do its work, more slowly.
    With ``as_dict=True`` nothing is printed. The result then has the keys ``pyparq``, ``python``, ``platform``,
    ``packages`` (name to version, ``None`` where not installed) and ``codecs`` (name to a dict with ``uses``,
    ``origin``, ``version``, ``file`` and ``note``).

    Example::

        pyparq.show_versions()
    """
    found = _versions()
    if as_dict:
        return found
    print(_text(found))
    return None


def _versions() -> dict[str, Any]:
    return {
        "pyparq": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        "platform": platform.platform(),
        "packages": {name: _version_of(name) for name in (*NEEDED, *OPTIONAL)},
        "codecs": _codecs(),
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _codecs() -> dict[str, dict[str, str | None]]:
    """Of each codec, and of AES: who does it, where that comes from, its version and file, and why not another."""
    report = {name: rest for name, *rest in library_report()}
    found: dict[str, dict[str, str | None]] = {
        name: {"uses": uses, "origin": "pyparq", "version": __version__, "file": None, "note": None}
        for name, uses in _OWN.items()
    }
    for name, use in _USES.items():
        state, number, file, reason = report[use.library]
        library = _SHOWN.get(use.library, use.library)
        if state in _ORIGINS:
            found[name] = {
                "uses": library, "origin": _ORIGINS[state], "version": number, "file": file or None, "note": None
            }  # fmt: skip
        else:
            note = f"{library}: {state}{f' ({reason})' if reason else ''}"
            found[name] = {
                "uses": use.packages, "origin": "Python packages", "version": None, "file": None, "note": note
            }  # fmt: skip
    return found


def _text(found: dict[str, Any]) -> str:
    rows = [(name, found[name]) for name in ("pyparq", "python", "platform")]
    rows += [("", "")]
    rows += [(name, number or "not installed") for name, number in found["packages"].items()]
    rows += [("", "")]
    for name, codec in found["codecs"].items():
        parts = [" ".join(filter(None, (codec["uses"], codec["version"] if codec["origin"] != "pyparq" else None)))]
        if codec["origin"] != "pyparq":
            parts.append(codec["origin"] + (f" in {codec['file']}" if codec["file"] else ""))
        rows.append((name, "; ".join(filter(None, (*parts, codec["note"])))))
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:{width}}{value}".rstrip() for name, value in rows)
