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
        advice = missing_extra(error)
        if advice is None:
            raise
        print(f"pyparq: error: {advice}", file=sys.stderr)
        return 2
    return run(list(sys.argv[1:] if argv is None else argv))


def missing_extra(error: ImportError) -> str | None:
    """What to do about a package of the extra that is not there; ``None`` for any other."""
    name = (error.name or "").partition(".")[0]
    return f"the command line needs {name}: pip install {_requirement()}" if name in EXTRA else None


def _requirement() -> str:
    """pyparq with the extra, from where it was installed: a clone's is not the registry's."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("pyparq").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):  # imported from a folder without being installed
        return " ".join(EXTRA)
    url = str(source.get("url", ""))
    if url.startswith("file:") and "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        return editable + shlex.quote(url2pathname(urlparse(url).path) + "[cli]")
    if "vcs_info" in source:
        return f"'pyparq[cli] @ {source['vcs_info'].get('vcs', 'git')}+{url}'"
    return "'pyparq[cli]'"
