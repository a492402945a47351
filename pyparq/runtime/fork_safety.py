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


class Prepared(Protocol):
    """An object that has to do something for a fork before it happens."""

    def _before_fork(self) -> None:
        """Runs in the parent. It must not raise, nor wait for anything that a child may have to do."""


_resets: list[Callable[[], None]] = []
_watched: set[weakref.ref[Forked]] = set()
_prepared: set[weakref.ref[Prepared]] = set()


def in_child(reset: Callable[[], None]) -> Callable[[], None]:
    """Have ``reset`` called in every child: for what a module holds. Can decorate it."""
    _resets.append(reset)
    return reset


def watch(thing: Forked) -> None:
    """Have ``thing._after_fork`` called in every child that inherits it, as long as it lives."""
    _watched.add(weakref.ref(thing, _watched.discard))


def prepare(thing: Prepared) -> None:
    """Have ``thing._before_fork`` called before every fork, as long as it lives."""
    _prepared.add(weakref.ref(thing, _prepared.discard))


def _before_fork() -> None:
    for known in list(_prepared):
        thing = known()
        if thing is not None:
            thing._before_fork()


def _after_fork() -> None:
    for reset in _resets:
        reset()
    # The sets are changed in single steps, so never found half changed. All things stay until all know: what one lets
    # go of may be another.
    things = [known() for known in list(_watched)]
    for thing in things:
        if thing is not None:
            thing._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
