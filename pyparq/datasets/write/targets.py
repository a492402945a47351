"""Where the files of a write go, and which files they replace: what local folders and stores have in common. And the
files from which a job makes new ones: it replaces these and no others, and only if they are unchanged."""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from pyparq.datasets.data_files import SUMMARIES, DataFile, is_hidden
from pyparq.datasets.discovery import discover
from pyparq.datasets.kept_files import PREFIX, State
from pyparq.datasets.partitions import unescaped
from pyparq.errors import ChangedMeanwhile, ManagedTableWarning, OptionError, UnfinishedWriteWarning
from pyparq.io.byte_ranges import Source
from pyparq.io.file_lock import FOLDER_LOCK
from pyparq.io.sink import Sink
from pyparq.io.url import is_url
from pyparq.runtime.messages import warn_caller


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


NOT_EMPTY = 'the folder is not empty. Give mode="append", "overwrite" or "overwrite_partitions"'
FILLED = "another program has written to the folder meanwhile"
MODES = ("error", "append", "overwrite", "overwrite_partitions", "overwrite_files")
Kept = Sequence[tuple[str, Callable[[], Source]]]
"""The files that stay: their paths, and what opens them."""
Summary = Callable[[Kept], Mapping[str, bytes]]
"""More files, by path."""


class Target(Protocol):
    """A folder that a write puts its files into."""

    name: str
    sources: Sources | None
    """The files that the write replaces; ``None``: those that its mode says."""

    def begin(self, template: str) -> None:
        """Called once, before the first file. ``template``: how the files are called, with ``{i}`` for a number."""

    def sink(self, path: str, fsync: bool) -> Sink:
        """A new file, which will be called ``path``, relative to the folder."""

    def data_file(self) -> str | None:
        """The path of a data file that is there already."""

    def commit(self, paths: Sequence[str], fsync: bool, summary: Summary | None) -> list[str]:
        """Make the files visible, and remove those that they replace; the paths of these."""

    def abort(self) -> None:
        """Remove what was written."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete file in staging, which a task passes to the committer. It can be pickled."""

    staged: str
    """Its path there (:meth:`Staging.place`)."""
    path: str
    """Where it belongs, relative to the target folder."""


@contextmanager
def tidying(target: str) -> Iterator[None]:
    """Errors after the last rename do not fail the write: repeating it would add the files twice."""
    try:
        yield
    except Exception as error:
        warn_caller(f"the write to {target} is committed: do not repeat it. But what comes after that failed: {error}")
    except BaseException as error:
        error.add_note(f"The write to {target} is committed. Do not repeat it.")
        raise


# ---- files that a write replaces -------------------------------------------------------------------------------------

_MAGICS = (b"PAR1", b"PARE")

Values = tuple[tuple[str, str], ...]
"""A partition: names and values of its columns, in the order of the folders."""


def is_empty(target: str) -> bool:
    """Whether a folder holds nothing except writes that are under way."""
    with os.scandir(target) as entries:
        return all(entry.name.startswith(PREFIX) or entry.name == FOLDER_LOCK for entry in entries)


def partition_of(folders: Iterable[str]) -> Values:
    """The partition of folders: ``name=value``, however that is escaped. Of a folder of another name, the name is empty
    and the value is what it is called."""
    parts = (folder.partition("=") for folder in folders)
    return tuple((unescaped(name), unescaped(value)) if equals else ("", name) for name, equals, value in parts)


def check_partitions(there: str, names: Sequence[str], mode: str, target: str) -> None:
    """Raise :class:`OptionError` where new files, which stay beside a data file that is ``there``, would lie in folders
    of other partition columns. No reader could tell the columns of such a folder."""
    folders = there.split("/")[:-1]
    found = [name for name, _ in partition_of(folders)]
    if mode in ("append", "overwrite_partitions") and set(found) != set(names) and "" not in found:
        raise OptionError(
            f"the partition columns of the files there are {', '.join(found) or 'none'}, but those of the new files "
            f"are {', '.join(names) or 'none'}: give partition_cols={found}, or another folder",
            file=os.path.join(target, there),
        )


def data_files(target: str, partitions: set[Values] | None = None) -> list[str]:
    """The Parquet files below ``target``, as relative paths; only in some partitions, if these are given.

    A Parquet file begins with the format's magic bytes and is not hidden. Other files are not replaced. Raises
    :class:`OptionError` for links to folders, whose files lie elsewhere.
    """
    return list(_walk(target, (), partitions))


def _walk(target: str, folders: tuple[str, ...], wanted: set[Values] | None) -> Iterator[str]:
    here = partition_of(folders)
    inside = wanted is None or any(here[: len(values)] == values for values in wanted)
    if not inside and not any(values[: len(here)] == here for values in wanted or ()):
        return
    try:
        with os.scandir(os.path.join(target, *folders)) as entries:
            kept = sorted((e for e in entries if not is_hidden(e.name)), key=lambda e: e.name)
    except FileNotFoundError:
        if not folders:
            raise
        return  # a partition that was removed just now
    for entry in kept:
        if entry.is_dir():
            if entry.is_symlink():
                raise OptionError(
                    f"{entry.path} is a link to another folder. Files there are not replaced: remove the link first"
                )
            yield from _walk(target, (*folders, entry.name), wanted)
        elif inside and _is_parquet(entry.path):
            yield os.path.join(*folders, entry.name)


def _is_parquet(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) in _MAGICS
    except FileNotFoundError:  # a link to nowhere
        return False


def companions(target: str, files: Iterable[str]) -> list[str]:
    """Files that become stale with ``files``: Hadoop's checksums of them, and the summaries of the folder."""
    beside = (os.path.join(os.path.dirname(f), f".{os.path.basename(f)}.crc") for f in [*files, *SUMMARIES])
    return [name for name in (*beside, *SUMMARIES) if os.path.lexists(os.path.join(target, name))]
