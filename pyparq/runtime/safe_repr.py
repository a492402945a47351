"""A ``__repr__`` that never raises.

Debuggers, loggers and error reporters print the objects of every frame that an error passed through: ones whose
``__init__`` raised half way, too, and ones over bytes that make no sense.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def printable(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """The result of ``method``, or a shorter text for an object that is only half built."""

    @wraps(method)
    def print_it(self: Any) -> str:
        try:
            return method(self)
        except AttributeError:
            return f"<{type(self).__name__}, not complete>"
        except Exception as error:
            return f"<{type(self).__name__}, unreadable: {type(error).__name__}>"

    return print_it
