"""Targets that belong to the process that opened them. A forked child must neither write to them nor remove them."""

from __future__ import annotations

from pyparq.errors import DataError
from pyparq.runtime import fork_safety


def not_its_own(name: str) -> DataError:
    """The error for a forked child that writes to a target of its parent."""
    return DataError(
        "the writer belongs to the process that opened it, and this is a forked child: open a new writer here",
        file=name,
    )


class ProcessOwned:
    """A target of this process, called ``name``. Dead in a forked child: it has its parent's open files, at their
    positions, and a copy of what waits to be written to them."""

    in_staging = False
    """Whether it waits under another name for a commit."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._inherited = False
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._inherited = True
        self._let_go()

    def _let_go(self) -> None:
        """Drop the child's part of it, without a trace in the file."""

    def _check_process(self) -> None:
        """Raises :class:`DataError` in a forked child."""
        if self._inherited:
            raise not_its_own(self.name)
