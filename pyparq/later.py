"""Modules that load with their first use: whole, whichever threads ask for them at once.

An import of ``a.b`` holds the lock of ``a.b`` while it waits for ``a``; where ``a`` imports ``b`` itself, another
thread waits the other way round. Python resolves that by handing out half a module: one of the two gets an ImportError.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any

from pyparq.forks import in_child

_lock = threading.RLock()


@in_child
def _forget_lock() -> None:
    global _lock
    _lock = threading.RLock()


@cache
def load(name: str) -> Any:
    """The module called ``name``, imported by one thread at a time and after the packages that it stands in.

    Raises what the import raises."""
    with _lock:
        parts = name.split(".")
        for length in range(1, len(parts)):
            import_module(".".join(parts[:length]))
        return import_module(name)
