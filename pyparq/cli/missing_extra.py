"""What to do where the extra ``cli``, or that of a command, is not installed. This module needs none of their
packages."""

from __future__ import annotations

from pyparq.runtime import install_hints

EXTRA = ("click", "rich", "sqlglot")
OTHERS = {
    "duckdb": ("reading CSV and JSON lines", "import"), "pyarrow": ("an Arrow or Feather file", "pyarrow"),
    "fsspec": ("a URL", "fsspec"),
}  # fmt: skip
"""Packages that some commands need: what for, and their extra."""


def missing_extra(error: ImportError) -> str | None:
    """What to do about a package of an extra that is not there; ``None`` for any other."""
    name = (error.name or "").partition(".")[0]
    if name in OTHERS:
        use, extra = OTHERS[name]
        return f"{use} needs {name}: pip install {requirement(extra)}"
    return f"the command line needs {name}: pip install {requirement()}" if name in EXTRA else None


def requirement(extra: str = "cli") -> str:
    """pyparq with an extra, from where it was installed."""
    packages = " ".join(EXTRA) if extra == "cli" else extra.replace("import", "duckdb")
    return install_hints.requirement(extra, packages)
