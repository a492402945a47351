"""The command line. ``pyparq.cli.app`` lists its commands.

Needs the extra ``cli`` (click, rich, sqlglot). Nothing here is imported by the library itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyparq.cli.missing_extra import missing_extra
from pyparq.runtime.lazy_import import load_later

load_later(__name__, "saving")

DOOR = ()
"""Modules of this package that other packages may use: none."""


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
