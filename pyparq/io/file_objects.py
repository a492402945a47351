"""What a caller's file object takes, and whom a target belongs to.

A file object may take fewer bytes than it is given. Its ``write`` returns a number of bytes, as all of Python's own do;
the rest is written by further calls. Some file objects return nothing, and a raw file that must not block returns
``None`` for "nothing was taken". So:

- A number above the number of given bytes is an error: later offsets would be wrong.
- If ``write`` returns ``None`` or 0, ``tell()`` says how much was taken, if the object has that method.
- Without ``tell()``, 0 is an error. So is ``None`` from an ``io.RawIOBase``, or from an object whose descriptor
  does not block. From any other object, ``None`` means that all was taken.

An object that takes nothing is an error. It is not tried again.
"""

from __future__ import annotations

import errno
import io
import operator
import os
from collections.abc import Callable
from typing import Any

from pyparq.errors import DataError, OptionError
from pyparq.runtime import fork_safety


def check_opened(file: Any, name: str, *, to_read: bool) -> None:
    """Raise :class:`OptionError` for a file object in text mode, or opened for the other direction only.

    An object that does not tell how it was opened is tried. A user's own class often inherits ``readable()`` and
    ``writable()`` from :class:`io.RawIOBase`, which answer no.
    """
    advice = "open it with open(path, 'rb')" if to_read else "open it with open(path, 'wb')"
    if isinstance(file, io.TextIOBase):
        raise OptionError(f"the file object is in text mode: {advice}", file=name)
    mode = getattr(file, "mode", None)
    if isinstance(mode, str) and "+" not in mode and (mode[:1] in ("w", "a", "x") if to_read else mode[:1] == "r"):
        raise OptionError(
            f"the file object is open for {'writing' if to_read else 'reading'} only: {advice}", file=name
        )


class Appender:
    """Writes to a file object. ``name`` is for messages."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name
        self._counts = False
        """It has returned a number before."""
        self.position = 0
        """Bytes taken so far."""

    def write(self, view: memoryview) -> None:
        """Write all of it. Raises ``OSError`` if the object takes nothing, or reports an impossible number of bytes."""
        while len(view):
            taken = self._offer(view)
            self.position += taken
            view = view[taken:]

    def _offer(self, view: memoryview) -> int:
        before = None if self._counts else _tell(self._file)
        said = self._file.write(view)
        if said is not None:
            said = self._number(said)
            self._counts = said > 0
        taken = said or self._bytes_taken(before, len(view))
        if taken is None and said is None and not self._may_refuse():
            return len(view)
        if not taken:
            raise self._refusal(said, len(view))
        if not 0 < taken <= len(view):
            raise OSError(f"{self._name}: write() returned {taken} for {len(view)} bytes")
        return taken

    def _number(self, said: Any) -> int:
        try:
            return operator.index(said)
        except TypeError:
            raise OSError(f"{self._name}: write() returned {said!r} instead of a number of bytes") from None

    def _bytes_taken(self, before: int | None, size: int) -> int | None:
        """The bytes taken since ``tell()`` returned ``before``. ``None`` if it does not tell."""
        if before is None:
            return None
        after = _tell(self._file)
        if after is not None and after < before + size and hasattr(self._file, "flush"):
            self._file.flush()  # buffered bytes may not count
            after = _tell(self._file)
        return None if after is None else after - before

    def _may_refuse(self) -> bool:
        """Whether ``None`` means that nothing was taken."""
        if isinstance(self._file, io.RawIOBase):
            return True
        try:
            return not os.get_blocking(self._file.fileno())
        except Exception:  # no descriptor, like most of these objects
            return False

    def _refusal(self, said: int | None, size: int) -> OSError:
        if said is None and self._may_refuse():
            return BlockingIOError(
                errno.EAGAIN,
                "the file object is non-blocking and accepts no bytes now: make it blocking (os.set_blocking)",
                self._name,
            )
        return OSError(f"{self._name}: write() accepted none of the {size} bytes")


def _tell(file: Any) -> int | None:
    try:
        return operator.index(file.tell())
    except Exception:  # a pipe, or a file object without a position; objects report this in several ways
        return None


def not_its_own(name: str) -> DataError:
    """The error for a forked child that writes to a target of its parent."""
    return DataError(
        "the writer belongs to the process that opened it, and this is a forked child: open a new writer here",
        file=name,
    )


class ProcessOwned:
    """A target of this process, called ``name``. Dead in a forked child: it has its parent's open files, at their
    positions, and a copy of what waits to be written to them."""

    before_commit: Callable[[], None] | None = None
    """What must not fail before the target gets its name."""
    new_version: str | None = None
    """The name of the version that was committed, where the store keeps versions and tells it."""
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
