"""The register of everything that must be repaired in a forked child.

A forked child has a copy of its parent's memory, but none of its other threads. A lock that such a thread held would
stay taken for ever, and data that it was changing may be half changed. The child also shares the open files of its
parent, with their positions. Code that holds such a thing registers here what has to happen to it in the child.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Protocol


class Forked(Protocol):
    """An object that a child inherits."""

    def _after_fork(self) -> None:
        """Make the object usable in the child, or make its methods raise from now on. This runs before anything else in
        the child. It must not wait for a lock that it has not made itself."""


class Prepared(Protocol):
    """An object that must do something before a fork."""

    def _before_fork(self) -> None:
        """Runs in the parent. It must not raise, and must not wait for anything that a child may have to do."""


_resets: list[Callable[[], None]] = []
_watched: set[weakref.ref[Forked]] = set()
_prepared: set[weakref.ref[Prepared]] = set()


def in_child(reset: Callable[[], None]) -> Callable[[], None]:
    """Call ``reset`` in every child, for state of a module. It can be used as a decorator."""
    _resets.append(reset)
    return reset


def watch(thing: Forked) -> None:
    """Call ``thing._after_fork`` in every child that inherits it, as long as it lives."""
    _watched.add(weakref.ref(thing, _watched.discard))


def prepare(thing: Prepared) -> None:
    """Call ``thing._before_fork`` before every fork, as long as it lives."""
    _prepared.add(weakref.ref(thing, _prepared.discard))


def _before_fork() -> None:
    for known in list(_prepared):
        thing = known()
        if thing is not None:
            thing._before_fork()


def _after_fork() -> None:
    for reset in _resets:
        reset()
    # The sets are changed in single steps, so a fork never finds them half changed. All objects are kept alive until
    # all calls are done, because one call may drop the last reference to another object.
    things = [known() for known in list(_watched)]
    for thing in things:
        if thing is not None:
            thing._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
