"""What to do where the extra ``cli``, or that of a command, is not installed. This module needs none of their
packages."""

from __future__ import annotations

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
    """pyparq with an extra, from where it was installed: a clone's is not the registry's."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("pyparq").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):  # imported from a folder without being installed
        return " ".join(EXTRA) if extra == "cli" else extra.replace("import", "duckdb")
    url = str(source.get("url", ""))
    if url.startswith("file:") and "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        return editable + shlex.quote(url2pathname(urlparse(url).path) + f"[{extra}]")
    if "vcs_info" in source:
        return f"'pyparq[{extra}] @ {source['vcs_info'].get('vcs', 'git')}+{url}'"
    return f"'pyparq[{extra}]'"
