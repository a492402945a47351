"""Modules that load with their first use: whole, whichever threads ask for them at once.

An import of ``a.b`` holds the lock of ``a.b`` while it waits for ``a``; where ``a`` imports ``b`` itself, another
thread waits the other way round. Python resolves that by handing out half a module: one of the two gets an ImportError.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from importlib import import_module
from typing import Any

_lock = threading.RLock()


def _forget_lock() -> None:
    """In a forked child: nobody is left to give up what was held."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


@cache
def load(name: str) -> Any:
    """The module called ``name``, imported by one thread at a time and after the packages that it stands in.

    Raises what the import raises."""
    with _lock:
        parts = name.split(".")
        for length in range(1, len(parts)):
            import_module(".".join(parts[:length]))
        return import_module(name)
