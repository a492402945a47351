"""The command line: ``pyparq schema | meta | pages | index | bloom | head | query | explain``.

Needs the extra ``cli`` (click, rich, sqlglot). Nothing here is imported by the library itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

EXTRA = ("click", "rich", "sqlglot")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; ``argv`` defaults to the process's own. Returns the exit code: 0 done, 1 the file or its
    data, 2 what was asked."""
    try:
        from pyparq.cli.app import run
    except ImportError as error:
        if error.name not in EXTRA:
            raise
        print(f"pyparq: the command line needs {error.name}: pip install 'pyparq[cli]'", file=sys.stderr)
        return 2
    return run(list(sys.argv[1:] if argv is None else argv))
