"""The command line. ``pyparq.cli.app`` lists its commands.

Needs the extra ``cli`` (click, rich, sqlglot). Nothing here is imported by the library itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyparq.runtime import install_hints

DOOR = ()
"""Modules of this package that other packages may use: none."""
EXTRA = ("click", "rich", "sqlglot")
OTHERS = {
    "duckdb": ("reading CSV and JSON lines", "import"), "pyarrow": ("an Arrow or Feather file", "pyarrow"),
    "fsspec": ("a URL", "fsspec"),
}  # fmt: skip
"""Packages that some commands need: what for, and their extra."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; ``argv`` defaults to the process's own. Returns the exit code: 0 done, 1 the file or its
    data, 2 what was asked."""
    try:
        from pyparq.cli.app import run
    except ImportError as error:
        advice = missing_extra(error)
        if advice is None:
            raise
        print(f"pyparq: error: {advice}", file=sys.stderr)
        return 2
    return run(list(sys.argv[1:] if argv is None else argv))


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
