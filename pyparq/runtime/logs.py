"""Debug lines, under the name ``pyparq`` and a child for each package: ``pyparq.io``, ``pyparq.read`` and so on.

A program that has not imported ``logging`` has not asked for any. So pyparq does not import it, and code that is on the
path of each read looks for it itself before it calls anything here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

DEBUG = 10
"""``logging.DEBUG``."""

_loggers: dict[str, Logger] = {}


def debug_logger(package: str) -> Logger | None:
    """The logger ``pyparq.<package>`` where it takes debug lines, else ``None``."""
    logger = _loggers.get(package)
    if logger is None:
        get = getattr(sys.modules.get("logging"), "getLogger", None)
        if get is None:
            return None
        logger = _loggers[package] = get(f"pyparq.{package}")
    return logger if logger.isEnabledFor(DEBUG) else None
