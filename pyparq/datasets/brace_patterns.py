"""``{a,b}`` in patterns, as Hadoop and shells read it: one pattern for each of the alternatives."""

from __future__ import annotations

import re

from pyparq.errors import OptionError

MOST = 10_000
"""Patterns that one may stand for: braces beside braces multiply."""

_INNERMOST = re.compile(r"\{([^{}]*,[^{}]*)\}")


def has_braces(pattern: str) -> bool:
    """Whether there are alternatives in it. Braces without a comma are letters like any other."""
    return _INNERMOST.search(pattern) is not None


def alternatives(pattern: str) -> list[str]:
    """The patterns that it stands for, each once, in order.

    Raises :class:`pyparq.OptionError` where there are more than :data:`MOST`.
    """
    found = [pattern]
    while any(map(has_braces, found)):
        found = list(dict.fromkeys(spelled for one in found for spelled in _first_of(one)))
        if len(found) > MOST:
            raise OptionError(f"the pattern {pattern[:100]!r} stands for more than {MOST:,} paths")
    return found


def _first_of(pattern: str) -> list[str]:
    """Without its first innermost braces."""
    braces = _INNERMOST.search(pattern)
    if braces is None:
        return [pattern]
    return [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]
