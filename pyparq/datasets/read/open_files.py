"""The open files of a dataset. They hold no descriptor between reads, and must be as they were listed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyparq.datasets.data_files import DataFile
from pyparq.errors import ChangedFileError, located
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.fetch import Fetcher
from pyparq.io.locations import path_on
from pyparq.io.source import LocalFile, open_source, set_requests, source_on
from pyparq.io.url import is_local_system, is_url
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import MANY_REMOTE_TAIL, read_footer
from pyparq.read.footers.open_file import OpenFile


class FileStatus(NamedTuple):
    """Tells whether a file has changed."""

    size: int
    mtime_ns: int
    inode: int
    """As a signed 64-bit number, because native code compares it so. Some file systems use all bits."""
    ctime_ns: int
    """No program can set it, so it tells of writes that have left size and time as they were."""


def status_of(status: os.stat_result) -> FileStatus:
    return file_status(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def file_status(size: int, mtime_ns: int, inode: int, ctime_ns: int) -> FileStatus:
    return FileStatus(size, mtime_ns, inode - (1 << 64) if inode >= 1 << 63 else inode, ctime_ns)


def is_as_listed(file: DataFile, status: FileStatus) -> bool:
    return file.is_as_listed(status.size, status.mtime_ns, status.ctime_ns)


class ListedFile:
    """A local file that is open only while bytes are read. A dataset may have more files than a process may open.

    Raises :class:`ChangedFileError` if the file has changed since the first read, so that bytes of two files are never
    mixed.
    """

    is_local = True

    def __init__(self, file: DataFile, status: FileStatus | None = None) -> None:
        """``status``: the state of the file when its footer was read, if it was."""
        self.name = file.name
        self._path = str(file.where)
        self._status = status_of(os.stat(self._path)) if status is None else status
        if not is_as_listed(file, self._status):
            raise ChangedFileError(
                "the file has changed since the dataset was listed: make the dataset again", file=self.name
            )
        self.size = self._status.size

    @property
    def status(self) -> FileStatus:
        """The state of the file at the first read."""
        return self._status

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        opened = LocalFile(self._path)
        try:
            if status_of(os.fstat(opened.fileno())) != self._status:
                raise ChangedFileError("the file has changed while it was read: make the dataset again", file=self.name)
            return opened.read_ranges(ranges)
        finally:
            opened.close()

    def close(self) -> None:
        """Nothing to close: the file is not open between two reads."""


def open_listed(file: DataFile, options: ReadOptions, storage_options: Mapping[str, Any] | None) -> OpenFile:
    """Read the footer of a dataset's file.

    Raises :class:`pyparq.CorruptFileError` and the like, with the name of the file.
    """
    fetcher = fetcher_of(file, options, storage_options)
    with located(file=fetcher.source.name):
        footer, decryption = read_footer(fetcher, options, MANY_REMOTE_TAIL)
        return OpenFile(fetcher, footer, decryption, options)


def fetcher_of(file: DataFile, options: ReadOptions, storage_options: Mapping[str, Any] | None) -> Fetcher:
    """What reads the bytes of a dataset's file."""
    source = source_of(file, storage_options)
    set_requests(source, options.retries, options.retry_wait, options.max_requests)
    return Fetcher(source, options.coalesce_gap)


def is_remote(file: DataFile) -> bool:
    """Whether requests to the file take milliseconds."""
    where = file.where
    if file.fs is not None or is_url(where) or getattr(where, "is_local", True) is False:
        return True
    fs = getattr(where, "fs", None)  # what fsspec opens has one
    return fs is not None and not is_local_system(fs)


def source_of(file: DataFile, storage_options: Mapping[str, Any] | None) -> Source:
    if isinstance(file.where, str) and "://" not in file.where:
        return ListedFile(file) if os.path.isfile(file.where) else LocalFile(file.where)
    if file.fs is not None:
        return source_on(file.fs, path_on(file.fs, file.where), file.name, file.listed)
    return open_source(file.where, storage_options if is_url(file.where) else None)
