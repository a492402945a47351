"""obstore's threads, which serve all stores of a process.

They do not exist in a forked child of a process that has used them, and a request there would wait for ever.
"""

from __future__ import annotations

from pyparq.runtime import fork_safety

_used = False
"""Whether this process has used a store, or its parent had before the fork."""
_lost = False


@fork_safety.in_child
def _note_fork() -> None:
    global _lost
    _lost = _used


def are_lost() -> bool:
    """Whether no store can be used in this process."""
    return _lost


def note_use() -> None:
    """Note that this process uses a store."""
    global _used
    _used = True
