"""Catalogs of folders whose rows change. They have hashes and bounds of rows that go, so they go before the files do:
after a crash between the two, nobody would know that they have to."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence

from pyparq.datasets.catalog.layout import Place
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.files import DatasetFiles
from pyparq.io.url import is_url
from pyparq.maintenance.in_place import local_file
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import map_requests


def remove_catalogs(files: DatasetFiles, changed: Sequence[DataFile]) -> list[str]:
    """Remove the catalogs that may have rows of these files, whether they were used or not. Returns notes about it."""
    catalogs = OldCatalogs(files)
    catalogs.ask(changed)
    for file in changed:
        catalogs.remove_for(file)
    return catalogs.notes


class OldCatalogs:
    """Finds the catalogs that may have rows of files, and removes them when a file turns out to change."""

    def __init__(self, files: DatasetFiles) -> None:
        self._found = files.found
        self._after_fork()
        fork_safety.watch(self)
        self._there: dict[str, Place] = {}
        """By their names."""
        self.notes: list[str] = []

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def ask(self, files: Sequence[DataFile]) -> None:
        """Find the catalogs of these files."""
        wanted = list({place.name: place for file in files for place in _places(self._found, file)}.values())
        there = map_requests(Place.is_there, wanted)
        self._there |= {place.name: place for place, is_there in zip(wanted, there, strict=True) if is_there}

    def remove_for(self, file: DataFile) -> None:
        """Remove the catalogs that may have rows of this file, before it changes."""
        with self._lock:  # the thread of another file may be removing the same one
            for place in _places(self._found, file) if self._there else ():
                if self._there.pop(place.name, None) is not None:
                    place.remove_folder()
                    self.notes.append(
                        f"removed the catalog of {place.name}, which had hashes of the old rows: make it anew with "
                        "pyparq.index_dataset"
                    )


def _places(found: SourceFiles, file: DataFile) -> Iterator[Place]:
    """Where a catalog of this file may lie: in the dataset's folder, and in those above the file as far as the listing
    and names of partitions lead."""
    if found.catalog is not None:
        own = local_file(found.catalog.where)
        yield Place(os.path.abspath(own) if own else found.catalog.where, found.storage_options, found.catalog.fs)
    path = local_file(file.where)
    if path is not None:
        for folder in _above(os.path.dirname(os.path.abspath(path)), os.sep, len(file.folders)):
            yield Place(folder)
    elif is_url(file.where):
        for folder in _above(file.where.rpartition("/")[0], "/", len(file.folders)):
            yield Place(folder, found.storage_options, file.fs)


def _above(folder: str, slash: str, levels: int) -> Iterator[str]:
    """A folder, and those above it: so many, and more while names are those of partitions."""
    while folder and not folder.endswith(slash):
        yield folder
        above, _, name = folder.rpartition(slash)
        if levels <= 0 and "=" not in name:
            return
        folder, levels = above, levels - 1
