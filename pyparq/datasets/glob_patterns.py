"""Patterns of paths: ``*``, ``?`` and ``[...]``, and ``{a,b}`` as in Hadoop and shells."""

from __future__ import annotations

import re

from pyparq.errors import OptionError
from pyparq.io.folders import MAGIC

MOST = 10_000
"""Maximum number of patterns from one: several braces multiply."""

_INNERMOST = re.compile(r"\{([^{}]*,[^{}]*)\}")


def is_pattern(path: str) -> bool:
    return MAGIC.search(path) is not None or has_braces(path)


def fixed_part(pattern: str) -> str:
    """The folders of a pattern in front of the first name with a wildcard or braces."""
    parts, braces = pattern.split("/"), has_braces(pattern)
    first = next(k for k, part in enumerate(parts) if MAGIC.search(part) or (braces and "{" in part))
    return "/".join(parts[:first])


def has_braces(pattern: str) -> bool:
    """Whether the pattern has alternatives. Braces without a comma are ordinary letters."""
    return _INNERMOST.search(pattern) is not None


def alternatives(pattern: str) -> list[str]:
    """The patterns without alternatives, each once, in order. Raises :class:`pyparq.OptionError` for more than
    :data:`MOST`."""
    found = [pattern]
    while any(map(has_braces, found)):
        found = list(dict.fromkeys(spelled for one in found for spelled in _first_of(one)))
        if len(found) > MOST:
            raise OptionError(f"the pattern {pattern[:100]!r} stands for more than {MOST:,} paths")
    return found


def _first_of(pattern: str) -> list[str]:
    """The patterns for its first innermost braces."""
    braces = _INNERMOST.search(pattern)
    if braces is None:
        return [pattern]
    return [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]
