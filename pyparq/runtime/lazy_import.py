"""Loads modules at their first use: completely, even if several threads need them at once or the process forks.

An import of ``a.b`` holds the lock of ``a.b`` while it waits for ``a``. If ``a`` imports ``b`` itself, another thread
waits the other way round. Python resolves that by handing out half a module: one of the two gets an ImportError.

A child that is forked in the middle of an import inherits half a module and its lock, which no thread will ever
release. So a fork waits while another thread loads a part of pyparq here, which takes some tenths of a second. It does
not wait for imports by anybody else: those may wait for the fork.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from pyparq.runtime.fork_safety import in_child

PATIENCE = 5.0
"""Seconds that a fork waits at most. A part of pyparq that takes longer waits for an import of another thread."""

loading = threading.RLock()
"""Held by the thread that loads a part of pyparq."""
_held: list[threading.RLock] = []
"""The lock, once for each fork that is going on and has it."""


@in_child
def _forget_lock() -> None:
    global loading
    loading = threading.RLock()
    _held.clear()


@cache
def load(name: str) -> Any:
    """The module called ``name``, imported after the packages around it, and by one thread at a time if it is ours.

    Raises the errors of the import.
    """
    with loading if name.startswith("pyparq.") else nullcontext():
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


def called(module: str, function: Callable[..., Any]) -> None:
    """Make the module a function too, for where a program calls it: ``pyparq.write(...)``."""
    sys.modules[module].__class__ = type("Module", (ModuleType,), {"__call__": staticmethod(function)})


class LazyModule:
    """A module that loads when one of its names is first asked for. From then on it has the module's own names."""

    __slots__ = ("__dict__", "_lazy_name")

    def __init__(self, name: str) -> None:
        self._lazy_name = name

    def __getattr__(self, name: str) -> Any:
        if name == "_lazy_name":  # of a copy that is being made
            raise AttributeError(name)
        module = sys.modules.get(self._lazy_name)
        if module is None or getattr(module.__spec__, "_initializing", True):  # otherwise no lock is needed
            module = load(self._lazy_name)
        self.__dict__ = module.__dict__
        return getattr(module, name)


def load_later(package: str, *modules: str) -> None:
    """Make ``from package import module`` give a :class:`LazyModule`: for modules that are heavy and not always needed.

    A package says so in its ``__init__``. Type checkers see ordinary imports.
    """
    for module in modules:
        setattr(sys.modules[package], module, LazyModule(f"{package}.{module}"))


def before_fork() -> None:
    """Wait until no other thread loads a part of pyparq, for :data:`PATIENCE` at most."""
    if loading.acquire(timeout=PATIENCE):
        _held.append(loading)


def _after_fork_in_parent() -> None:
    if _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=_after_fork_in_parent)
