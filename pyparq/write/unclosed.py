"""Writers that are never closed. Their data is lost, so a warning names the file."""

from __future__ import annotations

import atexit
import sys
import warnings
import weakref
from contextlib import suppress
from typing import Protocol


class Unclosed(Protocol):
    """A writer that may be left open."""

    def _abandon(self) -> str | None:
        """Discard the file. Returns its name if a warning is needed."""


_writers: set[weakref.ref[Unclosed]] = set()


def watch(writer: Unclosed) -> None:
    """Look after ``writer`` when the interpreter exits."""
    _writers.add(weakref.ref(writer, _writers.discard))


def dropped(writer: Unclosed) -> None:
    """Nothing refers to ``writer`` any more: a ``ResourceWarning`` where it was open, as files give."""
    name = writer._abandon()
    if name is None:
        return
    if sys.is_finalizing():
        _say(name)
    else:
        text = f"the writer of {name!r} was not closed: the file is incomplete, its rows are lost"
        warnings.warn(text, ResourceWarning, stacklevel=3, source=writer)


@atexit.register
def _at_exit() -> None:
    for known in list(_writers):
        writer = known()
        name = None if writer is None else writer._abandon()
        if name is not None:
            _say(name)


def _say(name: str) -> None:
    text = f"pyparq: the writer of {name!r} was still open at exit: the file is incomplete, its rows are lost"
    with suppress(Exception):  # there may be no stderr any more
        print(text, file=sys.stderr, flush=True)
