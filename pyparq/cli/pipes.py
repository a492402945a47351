"""``-``: standard input as a file, and standard output that gets a file only when it is complete."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

PIPE = "-"
NAME = "<stdin>"
CHUNK = 1 << 20


def source_of(source: str) -> Any:
    """The source that an argument names: a path as it is, and for ``-`` what standard input holds.

    Parquet files are read from their end. So a pipe is copied to a temporary file first, a piece at a time.
    """
    return standard_input() if source == PIPE else source


def standard_input() -> Any:
    """Standard input as a file that can seek."""
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(
            "- reads from a pipe, and standard input is a terminal: cat x.parquet | pyparq ... -",
            ctx=click.get_current_context(),
        )
    given = sys.stdin.buffer
    if _is_whole_file(given):
        return _named(os.fdopen(os.dup(given.fileno()), "rb"))
    spooled = tempfile.TemporaryFile(prefix="pyparq-")  # noqa: SIM115  (the reader keeps it open)
    shutil.copyfileobj(given, spooled, CHUNK)
    spooled.seek(0)
    return _named(spooled)


def _is_whole_file(given: Any) -> bool:
    """Whether it is a file on disk (``< x.parquet``), from its first byte on."""
    try:
        return stat.S_ISREG(os.fstat(given.fileno()).st_mode) and given.tell() == 0
    except (OSError, ValueError):  # no descriptor, or a pipe
        return False


def _named(file: Any) -> Any:
    """Errors show this name."""
    file.raw.name = NAME
    return file


@contextmanager
def complete_output(path: str) -> Iterator[Any]:
    """Where to write a file: ``path``, or for ``-`` a temporary file that goes to standard output when it is done."""
    if path != PIPE:
        yield path
        return
    check_no_terminal()
    with tempfile.TemporaryFile(prefix="pyparq-") as made:
        yield made
        made.seek(0)
        shutil.copyfileobj(made, sys.stdout.buffer, CHUNK)


def check_no_terminal() -> None:
    """Raise a usage error where bytes would go to a terminal."""
    if sys.stdout.isatty():
        raise click.UsageError(
            "a terminal cannot show these bytes: send them to a file (> out.parquet) or to another command",
            ctx=click.get_current_context(),
        )
