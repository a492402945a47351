"""A file may be changed in place only if no crashed commit is about to remove it.

The commit's record describes the file as it was. The changed file would look like another program's new file. It would
stay when the commit is completed, and bring the old rows back. So such a commit is completed first, which removes the
file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from pyparq.datasets.data_files import SourceFiles
from pyparq.datasets.discovery import discover
from pyparq.datasets.write.commit import complete_crashed, recover_dataset
from pyparq.errors import ChangedMeanwhile, UnfinishedWriteWarning
from pyparq.io.file_lock import locked_folder
from pyparq.io.retry import Retry


@contextmanager
def settled(path: str) -> Iterator[None]:
    """Hold the locks of the folders whose commits may remove the local file ``path``, and complete crashed commits
    there.

    These are the file's folder and the folders above it, as far as they are partitions. Raises
    :class:`ChangedMeanwhile` if such a commit is under way, :class:`CorruptFileError` for a damaged commit record, and
    ``OSError`` as the operating system does.
    """
    paths = {os.path.abspath(path), os.path.realpath(path)}
    with ExitStack() as held:
        for folder in dict.fromkeys(folder for name in sorted(paths) for folder in _folders(name)):
            try:
                has_lock = held.enter_context(locked_folder(folder, patient=False))
            except OSError:  # not readable, so this user cannot commit there either
                continue
            complete_crashed(folder, paths, has_lock)
        yield


def _folders(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    yield folder
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
        yield folder


def found_to_change(
    source: Any, storage_options: Mapping[str, Any] | None = None, retry: Retry | None = None
) -> SourceFiles:
    """The files of a source that are about to be changed in place. Crashed writes there are completed first, because
    the old files of a commit must not be changed.

    Raises :class:`ChangedMeanwhile` while a program commits a write there, and the errors of
    :func:`pyparq.datasets.discovery.discover`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWriteWarning)
        found = discover(source, storage_options, retry)
        if found.store_writes:
            target = found.store_writes[0].target
            raise ChangedMeanwhile(
                f"a write to the folder has not ended. If no program writes there, pyparq.recover_dataset({target!r}) "
                "ends it",
                file=target,
            )
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
