"""A file is changed in place only when no crashed commit is about to take it away.

The commit's record tells the file as it was. The changed one would look like another program's new file, stay when the
commit is completed, and bring the old rows back. So such a commit is completed first, which takes the file away.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from pyparq.datasets.discovery import Found, discover
from pyparq.datasets.write.commit import complete_crashed, recover_dataset
from pyparq.errors import ChangedMeanwhile, UnfinishedWriteWarning
from pyparq.io.file_lock import locked_folder
from pyparq.io.retry import Retry


@contextmanager
def settled(path: str) -> Iterator[None]:
    """Hold the locks of the folders whose commits may take the local file ``path`` away, and complete those that have
    crashed. Folders are its own, and those above it as long as they are partitions.

    Raises :class:`ChangedMeanwhile` where such a commit is under way, :class:`CorruptFileError` for a commit record
    that is damaged, and ``OSError`` as the operating system does.
    """
    paths = {os.path.abspath(path), os.path.realpath(path)}
    with ExitStack() as held:
        for folder in dict.fromkeys(folder for name in sorted(paths) for folder in _folders(name)):
            try:
                has_lock = held.enter_context(locked_folder(folder, patient=False))
            except OSError:  # not ours to read: then it is not ours to commit to either
                continue
            complete_crashed(folder, paths, has_lock)
        yield


def _folders(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    yield folder
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
        yield folder


def found_to_change(source: Any, storage_options: Mapping[str, Any] | None = None, retry: Retry | None = None) -> Found:
    """The files of a source that are about to be changed in place. Writes there that have crashed are completed first:
    the old files of a commit are no place to change anything.

    Raises :class:`ChangedMeanwhile` while a program commits a write there, and what
    :func:`pyparq.datasets.discovery.discover` raises.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWriteWarning)
        found = discover(source, storage_options, retry)
        if not found.unfinished:
            return found
        for folder in {commit.target for commit in found.unfinished}:
            recover_dataset(folder)
        found = discover(source, storage_options, retry)
    if found.unfinished:
        raise ChangedMeanwhile(
            "another program is putting new files into their places: try again", file=found.unfinished[0].target
        )
    return found
