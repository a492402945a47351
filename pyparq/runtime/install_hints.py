"""How to install an extra of pyparq, from where pyparq itself was installed: a clone's is not the registry's."""

from __future__ import annotations


def requirement(extra: str, packages: str = "") -> str:
    """What to give to ``pip install``. ``packages``: what the extra brings, for a pyparq that was never installed."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("pyparq").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):  # imported from a folder without being installed
        return packages or extra
    url = str(source.get("url", ""))
    if url.startswith("file:") and "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        return editable + shlex.quote(url2pathname(urlparse(url).path) + f"[{extra}]")
    if "vcs_info" in source:
        return f"'pyparq[{extra}] @ {source['vcs_info'].get('vcs', 'git')}+{url}'"
    return f"'pyparq[{extra}]'"
