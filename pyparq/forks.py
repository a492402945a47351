"""What has to know of a fork.

A forked child has a copy of its parent's memory, but none of its other threads: a lock that one of them held would stay
taken for ever, and what it was about to change may be half changed. And the child shares the files that its parent has
open, with their positions. Whoever holds such a thing says here what becomes of it in the child.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Protocol


class Forked(Protocol):
    """An object that a child inherits."""

    def _after_fork(self) -> None:
        """Be of use in the child, or say from now on that it is not. Runs there before anything else does; it must not
        wait for a lock that it has not made itself."""


_resets: list[Callable[[], None]] = []
_watched: set[weakref.ref[Forked]] = set()


def in_child(reset: Callable[[], None]) -> Callable[[], None]:
    """Have ``reset`` called in every child: for what a module holds. Can decorate it."""
    _resets.append(reset)
    return reset


def watch(thing: Forked) -> None:
    """Have ``thing._after_fork`` called in every child that inherits it, as long as it lives."""
    _watched.add(weakref.ref(thing, _watched.discard))


def _after_fork() -> None:
    for reset in _resets:
        reset()
    for known in list(_watched):  # added and removed in single steps: never half changed
        thing = known()
        if thing is not None:
            thing._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
