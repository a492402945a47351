"""The footers of a dataset's files: many are read at a time, and they are decoded once for all files that are alike.

Footers of local files are kept longer than a dataset, up to :data:`MOST_BYTES` in all, in their stored form: an
encrypted one stays encrypted. The key is the file's path, size, both its times and inode.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyparq import kernels
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.read.footer_kinds import forget_kinds, kinds_of
from pyparq.datasets.read.open_files import (
    FileStatus,
    ListedFile,
    fetcher_of,
    file_status,
    is_as_listed,
    is_remote,
    open_listed,
    status_of,
)
from pyparq.datasets.read.stored_footer import AT_A_TIME, SETTLED_NS, StoredFooter, tail_of
from pyparq.encryption.reading import CLEAR_FILE
from pyparq.errors import ParquetError, located
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.io.fetch import Fetcher
from pyparq.io.source import begin
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import MANY_REMOTE_TAIL, open_footer, stored_footer
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import FileSchema
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import map_tasks

MOST_BYTES = 64 << 20
"""Of all footers that are kept beyond their dataset."""
OVERHEAD = 512
"""Bytes that a kept footer takes besides its own, at least."""


_kept: OrderedDict[str, StoredFooter] = OrderedDict()
_size = 0
_lock = threading.Lock()


@fork_safety.in_child
def _forget_footers() -> None:
    global _lock, _size
    _lock = threading.Lock()
    _size = 0
    _kept.clear()
    forget_kinds()


def _known(path: str, status: FileStatus) -> StoredFooter | None:
    with _lock:
        found = _kept.get(path)
        if found is None or found.status != status:
            return None
        _kept.move_to_end(path)
        return found


def _keep(path: str, footer: StoredFooter, now: int) -> None:
    global _size
    size = len(footer.data) + OVERHEAD
    if size > MOST_BYTES // 4 or now - footer.status.mtime_ns < SETTLED_NS:
        return
    with _lock:
        before = _kept.pop(path, None)
        _size += size - (0 if before is None else len(before.data) + OVERHEAD)
        _kept[path] = footer._replace(requests=0, bytes=0)
        while _size > MOST_BYTES:
            _, oldest = _kept.popitem(last=False)
            _size -= len(oldest.data) + OVERHEAD


def read_stored(files: Sequence[DataFile], options: ReadOptions) -> list[StoredFooter | None]:
    """The footers of files. Those of local files are read many at a time. ``None`` for a file that must be opened by
    itself: it is not local, it has changed since it was listed, or something is wrong with it."""
    found: list[StoredFooter | None] = [None] * len(files)
    if kernels.read_footers is None:
        return found
    paths = _local_paths(files)
    missing = []
    for k, path in paths.items():
        status = _listed_status(files[k])
        found[k] = None if status is None else _known(path, status)
        if found[k] is None:
            missing.append(k)
    parts = [missing[k : k + AT_A_TIME] for k in range(0, len(missing), AT_A_TIME)]
    read = map_tasks(lambda part: _read([paths[k] for k in part], options), parts, options.use_threads)
    now = time.time_ns()
    for k, footer in zip(missing, (footer for part in read for footer in part), strict=True):
        if footer is not None and is_as_listed(files[k], footer.status):
            found[k] = footer
            _keep(paths[k], footer, now)
    return found


def _local_paths(files: Sequence[DataFile]) -> dict[int, str]:
    """Absolute paths of the local files, by their positions in the list."""
    paths = {k: file.where for k, file in enumerate(files) if isinstance(file.where, str) and "://" not in file.where}
    if os.sep == "/" and all(path[:1] == "/" for path in paths.values()):
        return paths  # the usual case, which costs a microsecond each
    try:
        folder = os.getcwd()
    except FileNotFoundError:  # it was removed: opening the files reports what is missing
        return {}
    return {k: os.path.join(folder, path) for k, path in paths.items()}


def _listed_status(file: DataFile) -> FileStatus | None:
    if file.inode is not None and file.size is not None and file.mtime_ns is not None and file.ctime_ns is not None:
        return file_status(file.size, file.mtime_ns, file.inode, file.ctime_ns)
    try:
        return status_of(os.stat(file.where))
    except OSError:
        return None  # opening the file raises the error


def _read(paths: Sequence[str], options: ReadOptions) -> list[StoredFooter | None]:
    assert kernels.read_footers is not None
    read = kernels.read_footers(list(map(os.fsencode, paths)), tail_of(options), options.limits.max_footer)
    return [None if end is None else StoredFooter(FileStatus(*end[:4]), *end[4:]) for end in read]


class Footers:
    """The footers of a dataset's files, each read once."""

    def __init__(
        self, files: Sequence[DataFile], options: ReadOptions, storage_options: Mapping[str, Any] | None
    ) -> None:
        self._files = files
        self._options = options
        self._storage_options = storage_options
        self._stored: dict[int, StoredFooter] = {}
        self._asked: set[int] = set()
        self._fetchers: dict[int, Fetcher] = {}
        """Of the remote files whose footers were read."""
        self._errors: dict[int, ParquetError | OSError] = {}
        """Of remote files whose footers could not be read."""
        self._frames: dict[int, int] = {}
        """The number of the kind of each file's footer. Footers of one kind are equal except for rows and row
        groups."""
        self._rows: dict[int, int] = {}
        self._models: dict[int, OpenFile] = {}
        """By frame: a file whose decoded footer others share."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process reads them anew: open files stay here."""
        return Footers, (self._files, self._options, self._storage_options)

    def read(self, numbers: Iterable[int], each: Callable[[Callable[[int], None], list[int]], Any]) -> list[int]:
        """Read the footers of the files with these numbers, where many can be read together. Returns the numbers of the
        files that must be opened one by one. ``each`` calls a function for many remote files at the same time."""
        wanted = list(numbers)
        new = [k for k in wanted if k not in self._asked]
        if len(new) > 1:
            self._asked.update(new)
            for k, stored in zip(new, read_stored([self._files[k] for k in new], self._options), strict=True):
                if stored is not None:
                    self._stored[k] = stored
            each(self._read_remote, [k for k in new if k not in self._stored and is_remote(self._files[k])])
            self._compare([k for k in new if k in self._stored])
        return [k for k in wanted if k not in self._stored]

    def begin(self) -> None:
        """A scan begins: remote files may have been replaced since the last one."""
        for fetcher in self._fetchers.values():
            begin(fetcher.source)

    def _read_remote(self, k: int) -> None:
        """Read the footer of one remote file. Its error, if any, is raised when the file is opened."""
        try:
            fetcher = fetcher_of(self._files[k], self._options, self._storage_options)
            with located(file=fetcher.source.name):
                encrypted, data = stored_footer(fetcher, self._options, MANY_REMOTE_TAIL)
        except (ParquetError, OSError) as error:
            self._errors[k] = error
            return
        status, counts = FileStatus(fetcher.source.size, 0, 0, 0), fetcher.counts
        self._fetchers[k] = fetcher
        self._stored[k] = StoredFooter(status, encrypted, bytes(data), counts.requests, counts.bytes)

    def kinds(self) -> list[int] | None:
        """One file per kind of footer, in the order of the files. No other footer is kept. ``None`` if all files must
        be opened to know."""
        found = kinds_of(self._files, self._options)
        if found is None:
            return None
        new = {k: footer for k, footer in found.firsts if k not in self._stored}
        self._stored |= new
        self._compare(list(new))
        return sorted([*(k for k, _ in found.firsts), *found.odd])

    def _compare(self, new: list[int]) -> None:
        """Compare the footers, and note the rows of the files, where no key is needed."""
        if self._options.decryption is not None:
            return
        known = list(dict.fromkeys(self._frames.values()))
        compared = known + [k for k in new if not self._stored[k].encrypted]
        frames, rows = kernels.footer_frames([self._stored[k].data for k in compared])
        for k, frame, count in zip(compared, frames.tolist(), rows.tolist(), strict=True):
            if frame >= 0:
                self._frames[k], self._rows[k] = compared[frame], count

    def num_rows(self, k: int) -> int | None:
        """Rows of file ``k``, if its footer was read and is not in doubt."""
        return self._rows.get(k)

    def frame(self, k: int) -> int | None:
        """A value that is equal for files with footers of one kind. ``None`` if the kind is not known."""
        return self._frames.get(k)

    def stored(self, k: int) -> StoredFooter:
        """The stored footer of a file that has a :meth:`frame`."""
        return self._stored[k]

    def cost_of(self, numbers: Iterable[int]) -> tuple[int, int, int]:
        """Requests and bytes that reading the footers of these files took, and the size of the files."""
        read = [self._stored[k] for k in numbers if k in self._stored]
        return sum(f.requests for f in read), sum(f.bytes for f in read), sum(f.status.size for f in read)

    def fetcher(self, k: int) -> Fetcher | None:
        """What has read the footer of a remote file. ``None`` for a local file."""
        return self._fetchers.get(k)

    def open(self, k: int) -> OpenFile:
        """File ``k`` with its footer decoded.

        Raises :class:`pyparq.CorruptFileError` and the like, with the name of the file.
        """
        file, stored, error = self._files[k], self._stored.get(k), self._errors.pop(k, None)
        if error is not None:
            raise error
        if stored is None:
            return open_listed(file, self._options, self._storage_options)
        if k in self._fetchers:
            with located(file=file.name):
                return self._decoded(k, self._fetchers[k], stored)
        source = ListedFile(file, stored.status)
        with located(file=source.name):
            fetcher = Fetcher(source, self._options.coalesce_gap)
            fetcher.counts.requests, fetcher.counts.bytes = stored.requests, stored.bytes
            fetcher.counts.ranges = stored.requests
            return self._decoded(k, fetcher, stored)

    def _decoded(self, k: int, fetcher: Fetcher, stored: StoredFooter) -> OpenFile:
        frame = self._frames.get(k)
        model = None if frame is None else self._models.get(frame)
        if model is not None:
            footer = LazyFileMetaData(stored.data, model.footer)
            shared = FileSchema(model.tree, model.key_values, model.fields)
            return OpenFile(fetcher, footer, CLEAR_FILE, self._options, shared)
        footer, decryption = open_footer(stored.encrypted, memoryview(stored.data), fetcher.source, self._options)
        opened = OpenFile(fetcher, footer, decryption, self._options)
        if frame is not None:
            self._models[frame] = opened
        return opened
