"""The files from which a job makes new ones. The job replaces these files and no others, and only if they are
unchanged."""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.discovery import discover
from pyparq.datasets.kept_files import State
from pyparq.errors import ChangedMeanwhile, ManagedTableWarning, UnfinishedWriteWarning
from pyparq.io.url import is_url


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of a folder with their state at the beginning of a job. It can be pickled."""

    states: Mapping[str, State]
    """By path, relative to the folder."""
    places: frozenset[str]
    """Their absolute paths or URLs, as a plan has them."""

    @classmethod
    def of(cls, files: Iterable[DataFile]) -> Sources:
        """The files of a listed folder."""
        listed = list(files)
        return cls({_relative(file): _state(file) for file in listed}, frozenset(map(place_of, listed)))

    @classmethod
    def listed(cls, folder: str, storage_options: Any = None) -> Sources:
        """The files that are in the folder now."""
        with warnings.catch_warnings():
            for kind in (ManagedTableWarning, UnfinishedWriteWarning):  # readers of the folder get the warning
                warnings.simplefilter("ignore", kind)
            return cls.of(discover(folder, storage_options).files)

    def replaced(self, now: Callable[[str], State | None], folder: str) -> list[str]:
        """The paths of the files. ``now`` gives the current state of a file, ``None`` if it is gone. Raises
        :class:`ChangedMeanwhile` if a file has changed: its new contents would be lost."""
        for path, state in self.states.items():
            found = now(path)
            if found != state:
                what = "is gone" if found is None else "has changed"
                raise ChangedMeanwhile(
                    f"the file {what} since this job read it, so nothing is replaced: run the job again",
                    file=os.path.join(folder, path),
                )
        return sorted(self.states)


def _relative(file: DataFile) -> str:
    return posixpath.join(*file.folders, posixpath.basename(file.name))


def place_of(file: DataFile) -> str:
    """The absolute path or URL of a listed file, as a plan has it."""
    where = str(file.where)
    return where if is_url(where) else os.path.abspath(where)


def _state(file: DataFile) -> State:
    return file.size, file.mtime_ns, file.inode, file.ctime_ns
