"""What the shell offers after TAB: files, and the columns of the file that is named already."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes names of files by itself."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes names of folders by itself."""
    return [CompletionItem(incomplete, type="dir")]


def columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The columns of the source on the command line, also behind the last comma of a list."""
    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in _names(ctx) if name.startswith(begun)]


def _names(ctx: click.Context) -> list[str]:
    """Names and dotted paths; nothing where the source cannot be read: an error would be in the way of typing."""
    source = _source(ctx)
    if source is None or "://" in source:
        return []
    from pyparq.datasets.dataset import Dataset

    try:
        root = Dataset(source).tree.root
    except Exception:
        return []
    paths = (path for node in root.children for path in (node.path, *(leaf.path for leaf in node.leaves())))
    return list(dict.fromkeys(map(_typed, paths)))


def _typed(path: Any) -> str:
    """A path as :mod:`pyparq.cli.names` reads it: names with dots, commas or quotes in quotes."""
    return ".".join('"' + n.replace('"', '""') + '"' if any(c in n for c in '.,"') else n for n in path)


def _source(ctx: click.Context) -> str | None:
    """The first source that is typed. Behind ``-c``, click has not sorted the words into arguments yet."""
    given = ctx.params
    sources = given.get("sources") or (given.get("file"), *ctx.args)
    return next((str(source) for source in sources if source and source != "-"), None)
