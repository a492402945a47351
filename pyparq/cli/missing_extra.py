"""What to do where the extra ``cli`` is not installed. This module needs none of its packages."""

from __future__ import annotations

from pyparq.runtime import install_hints

EXTRA = ("click", "rich", "sqlglot")


def missing_extra(error: ImportError) -> str | None:
    """What to do about a package of the extra that is not there; ``None`` for any other."""
    name = (error.name or "").partition(".")[0]
    return f"the command line needs {name}: pip install {requirement()}" if name in EXTRA else None


def requirement() -> str:
    """pyparq with the extra, from where it was installed."""
    return install_hints.requirement("cli", " ".join(EXTRA))
