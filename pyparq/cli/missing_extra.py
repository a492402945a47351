"""What to do where the extra ``cli`` is not installed. This module needs none of its packages."""

from __future__ import annotations

EXTRA = ("click", "rich", "sqlglot")


def missing_extra(error: ImportError) -> str | None:
    """What to do about a package of the extra that is not there; ``None`` for any other."""
    name = (error.name or "").partition(".")[0]
    return f"the command line needs {name}: pip install {requirement()}" if name in EXTRA else None


def requirement() -> str:
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
