"""Loads modules at their first use: completely, even if several threads need them at once or the process forks.

An import of ``a.b`` holds the lock of ``a.b`` while it waits for ``a``. If ``a`` imports ``b`` itself, another thread
waits the other way round. Python resolves that by handing out half a module: one of the two gets an ImportError.

A child that is forked in the middle of an import inherits half a module and its lock, which no thread will ever
release. So a fork waits until the imports of other threads are done.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from importlib import import_module
from time import monotonic
from typing import Any

from pyparq.runtime.fork_safety import in_child

PATIENCE = 20.0
"""Seconds that a fork waits at most, in all. An import that takes longer waits for something else."""

_ROOTS = frozenset(
    [
        "pyparq",
        "numpy",
        "nanoarrow",
        "cryptography",
        "pandas",
        "polars",
        "pyarrow",
        "fsspec",
        "s3fs",
        "obstore",
        "thrift",
        "zstandard",
        "snappy",
        "xxhash",
        "rich",
        "asyncio",
        "concurrent",
        "ctypes",
        "decimal",
        "zoneinfo",
    ]
)
"""Packages that pyparq's functions import when they are called."""

loading = threading.RLock()
"""Held by the thread that imports."""
_held: list[threading.RLock] = []
"""The lock, once for each fork that is going on and has it."""


@in_child
def _forget_lock() -> None:
    global loading
    loading = threading.RLock()
    _held.clear()


@cache
def load(name: str) -> Any:
    """The module called ``name``, imported by one thread at a time and after the packages around it.

    Raises the errors of the import.
    """
    with loading:
        parts = name.split(".")
        for length in range(1, len(parts)):
            import_module(".".join(parts[:length]))
        return import_module(name)


_provided: dict[str, str] = {}


def provide(what: str, module: str) -> None:
    """Say which module does ``what`` for modules that it stands on, which therefore cannot import it.

    A package says so in its ``__init__``: Python runs that before any module of the package."""
    _provided[what] = module


def provided(what: str) -> Any:
    """The module that does ``what``. It loads with its first use."""
    return load(_provided[what])


class Later:
    """A module that loads when one of its names is first asked for.

    For a heavy module that the importing module stands on, but rarely needs. Type checkers, and the test of the order
    of imports, see an ordinary import beside it (``if TYPE_CHECKING:``).
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(load(self._name), name)


def before_fork() -> None:
    """Wait for the imports of other threads, for :data:`PATIENCE` at most."""
    if threading.active_count() < 2:
        return
    until = monotonic() + PATIENCE
    if loading.acquire(timeout=PATIENCE):
        _held.append(loading)
    # Another thread checks, because waiting for an import has no time limit.
    waiting = threading.Thread(target=_wait_for_imports, name="pyparq: waits for imports", daemon=True)
    try:
        waiting.start()
    except RuntimeError:  # no thread can be started any more: the process ends
        return
    waiting.join(max(0.0, until - monotonic()))


def _wait_for_imports() -> None:
    """Import modules again that other threads are importing: that waits for the end of their import. A loaded module
    costs next to nothing."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _ROOTS:
            try:
                import_module(name)
            except Exception:  # code that needs the module raises the error
                continue


def _after_fork_in_parent() -> None:
    if _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=_after_fork_in_parent)
