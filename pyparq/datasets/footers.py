"""The files of a dataset and their footers: many are read at a time, and decoded once for all files that are alike.

No file holds a descriptor between two reads, as a dataset may have more files than a process may open. Each must be as
it was listed. Footers of one *kind* are equal except for rows and row groups. Encrypted ones are kept as they are
stored.

Footers of local files are kept longer than a dataset, up to :data:`MOST_BYTES` in all, by the file's path and state.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.kept_files import kept_file
from pyparq.encryption.reading import CLEAR_FILE
from pyparq.errors import ChangedFileError, ParquetError, located
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.fetch import Fetcher
from pyparq.io.locations import path_on
from pyparq.io.source import LocalFile, begin, open_source, set_requests, source_on
from pyparq.io.url import is_local_system, is_url
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import LOCAL_TAIL, MANY_REMOTE_TAIL, open_footer, read_footer, stored_footer
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import FileSchema
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import map_tasks

AT_A_TIME = 64
"""Files of one native call: between two, Ctrl-C is noticed."""

Int64Array = npt.NDArray[np.int64]

_T = TypeVar("_T")
_MOVES = 3
"""Of a file by one commit, at most: aside, to where it is kept, or back."""

# ---- one file -------------------------------------------------------------------------------------------------------


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


class ListedFile:
    """A local file that is open only while bytes are read.

    Raises :class:`ChangedFileError` if the file has changed since the first read, so that bytes of two files are never
    mixed.
    """

    is_local = True

    def __init__(self, file: DataFile, status: FileStatus | None = None) -> None:
        """``status``: the state of the file when its footer was read, if it was."""
        self.name = file.name
        self._place = self._path = str(file.where)
        self._moved = False
        """Whether a commit has moved the file, which is kept elsewhere now. That changes its ctime alone."""
        self.status = status_of(self._found(os.stat)) if status is None else status
        """The state of the file at the first read."""
        ctime_ns = (file.ctime_ns or 0) if self._moved else self.status.ctime_ns
        if not file.is_as_listed(self.status.size, self.status.mtime_ns, ctime_ns):
            raise ChangedFileError(
                "the file has changed since the dataset was listed: make the dataset again", file=self.name
            )
        self.size = self.status.size

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        try:
            opened = LocalFile(self._path)
        except FileNotFoundError:
            opened = self._found(LocalFile)
        try:
            now = status_of(os.fstat(opened.fileno()))
            if self._moved:
                now = now._replace(ctime_ns=self.status.ctime_ns)
            if now != self.status:
                raise ChangedFileError("the file has changed while it was read: make the dataset again", file=self.name)
            return opened.read_ranges(ranges)
        finally:
            opened.close()

    def _found(self, use: Callable[[str], _T]) -> _T:
        """What ``use`` gives for the file where it is now. A commit may move it aside, and then to where it is kept, or
        back to its place, between a look and its use."""
        for _ in range(_MOVES):
            try:
                return use(self._path)
            except FileNotFoundError:
                kept = kept_file(self._place)
                self._path, self._moved = kept or self._place, self._moved or kept is not None
        return use(self._path)

    def close(self) -> None:
        """Nothing to close: the file is not open between two reads."""


def open_listed(file: DataFile, options: ReadOptions, storage_options: Mapping[str, Any] | None) -> OpenFile:
    """Read the footer of a dataset's file.

    Raises :class:`pyparq.CorruptFileError` and the like, with the name of the file.
    """
    fetcher = _fetcher_of(file, options, storage_options)
    with located(file=fetcher.source.name):
        footer, decryption = read_footer(fetcher, options, MANY_REMOTE_TAIL)
        return OpenFile(fetcher, footer, decryption, options)


def _fetcher_of(file: DataFile, options: ReadOptions, storage_options: Mapping[str, Any] | None) -> Fetcher:
    """What reads the bytes of a dataset's file."""
    source = _source_of(file, storage_options)
    set_requests(source, options.retries, options.retry_wait, options.max_requests)
    return Fetcher(source, options.coalesce_gap)


def _source_of(file: DataFile, storage_options: Mapping[str, Any] | None) -> Source:
    if isinstance(file.where, str) and "://" not in file.where:
        is_other = os.path.lexists(file.where) and not os.path.isfile(file.where)
        return LocalFile(file.where) if is_other else ListedFile(file)
    if file.fs is not None:
        return source_on(file.fs, path_on(file.fs, file.where), file.name, file.listed)
    return open_source(file.where, storage_options if is_url(file.where) else None)


def is_remote(file: DataFile) -> bool:
    """Whether requests to the file take milliseconds."""
    where = file.where
    if file.fs is not None or is_url(where) or getattr(where, "is_local", True) is False:
        return True
    fs = getattr(where, "fs", None)  # what fsspec opens has one
    return fs is not None and not is_local_system(fs)


# ---- many files -----------------------------------------------------------------------------------------------------


class StoredFooter(NamedTuple):
    """The stored bytes of a footer."""

    status: FileStatus
    encrypted: bool
    data: bytes
    requests: int
    bytes: int
    """What reading it cost."""


MOST_BYTES = 64 << 20
"""Of all footers that are kept beyond their dataset. Reading the footers of 200 files again takes 1 ms, keeping 0.1."""
OVERHEAD = 512
"""Bytes that a kept footer takes besides its own, at least."""
SETTLED_NS = 2_000_000_000
"""A file that was changed within this time before it was read may change again without a new time or size."""

MOST_LISTINGS = 4
"""Listings whose kinds of footers are remembered, the last ones."""

_Kinds = tuple[dict[int, StoredFooter], list[int]]
_kinds: OrderedDict[tuple[bytes, bytes, int, int], _Kinds] = OrderedDict()
_Key = tuple[str, int | None, int | None, int | None, int]
"""The absolute path of a listed file, and its state."""
_kept: OrderedDict[_Key, StoredFooter] = OrderedDict()
_size = 0
_lock = threading.Lock()


@fork_safety.in_child
def forget_footers() -> None:
    """Keep no footers beyond their datasets, as in a process that has just begun."""
    global _lock, _size
    _lock = threading.Lock()
    _size = 0
    _kept.clear()
    _kinds.clear()


def _keep(read: Iterable[tuple[_Key, StoredFooter]]) -> None:
    """Keep these footers, those that were used last."""
    global _size
    before = time.time_ns() - SETTLED_NS
    with _lock:
        for key, footer in read:
            if footer.status.mtime_ns <= before and len(footer.data) + OVERHEAD <= MOST_BYTES // 4 and key not in _kept:
                _kept[key] = footer._replace(requests=0, bytes=0)
                _size += len(footer.data) + OVERHEAD
        while _size > MOST_BYTES:
            _size -= len(_kept.popitem(last=False)[1].data) + OVERHEAD


def _find_kept(keys: Mapping[int, _Key]) -> dict[int, StoredFooter]:
    """Those of these footers that are kept."""
    with _lock:
        found = {k: _kept[key] for k, key in keys.items() if key in _kept}
        for k in found:
            _kept.move_to_end(keys[k])
    return found


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
        unknown = np.full((2, len(files)), -1, np.int64)
        self.frames: Int64Array = unknown[0]
        """For each file a number that is equal for footers of one kind; -1 where the kind is not known."""
        self.rows: Int64Array = unknown[1]
        """Rows of each file; -1 where its footer was not read, or is in doubt."""
        self._models: dict[int, OpenFile] = {}
        """By frame: a file whose decoded footer others share."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process reads them anew: open files stay here."""
        return Footers, (self._files, self._options, self._storage_options)

    def read(self, numbers: Iterable[int], each: Callable[[Callable[[int], None], list[int]], Any]) -> list[int]:
        """Read the footers of the files with these numbers, where many can be read together. Returns the numbers of the
        files that must be opened one by one: each is the only one, has changed since it was listed, or is damaged.
        ``each`` calls a function for many remote files at the same time."""
        wanted = list(numbers)
        new = [k for k in wanted if k not in self._asked]
        if len(new) > 1:
            self._asked.update(new)
            local = [k for k in new if isinstance(self._files[k].where, str) and "://" not in self._files[k].where]
            if kernels.read_footers is not None:
                self._read_local(local)
            if len(local) < len(new):
                each(self._read_remote, [k for k in new if k not in self._stored and is_remote(self._files[k])])
            self._compare([k for k in new if k in self._stored])
        return [k for k in wanted if k not in self._stored]

    def _read_local(self, numbers: Sequence[int]) -> None:
        files, most = self._files, self._options.limits.max_footer
        keys: dict[int, _Key] = {
            k: (file.where, file.size, file.mtime_ns, file.inode, file.ctime_ns)
            for k in numbers
            if (file := files[k]).ctime_ns is not None and file.where[:1] == "/"
        }
        kept = _find_kept(keys)
        self._stored |= {k: footer for k, footer in kept.items() if len(footer.data) <= most}
        numbers = [k for k in numbers if k not in self._stored]
        paths = [os.fsencode(files[k].where) for k in numbers]
        starts = range(0, len(paths), AT_A_TIME)
        assert kernels.read_footers is not None
        read, tail = kernels.read_footers, self._local_tail()
        parts = map_tasks(lambda k: read(paths[k : k + AT_A_TIME], tail, most), starts, self._options.use_threads)
        for k, end in zip(numbers, [end for part in parts for end in part], strict=True):
            if end is None:
                continue
            file, (size, mtime, _, ctime) = files[k], end[:4]
            as_listed = file.size == size and file.mtime_ns == mtime and file.ctime_ns == ctime
            if as_listed or file.is_as_listed(size, mtime, ctime):
                self._stored[k] = StoredFooter(FileStatus(*end[:4]), *end[4:])
        _keep([(keys[k], self._stored[k]) for k in numbers if k in self._stored and k in keys])

    def _local_tail(self) -> int:
        """Number of bytes at the end of a local file that are read first."""
        return min(max(self._options.tail_size or LOCAL_TAIL, 8), 1 << 20)

    def begin(self) -> None:
        """A scan begins: remote files may have been replaced since the last one."""
        for fetcher in self._fetchers.values():
            begin(fetcher.source)

    def _read_remote(self, k: int) -> None:
        """Read the footer of one remote file. Its error, if any, is raised when the file is opened."""
        try:
            fetcher = _fetcher_of(self._files[k], self._options, self._storage_options)
            with located(file=fetcher.source.name):
                encrypted, data = stored_footer(fetcher, self._options, MANY_REMOTE_TAIL)
        except (ParquetError, OSError) as error:
            self._errors[k] = error
            return
        status, counts = FileStatus(fetcher.source.size, 0, 0, 0), fetcher.counts
        self._fetchers[k] = fetcher
        self._stored[k] = StoredFooter(status, encrypted, bytes(data), counts.requests, counts.bytes)

    def kinds(self) -> list[int] | None:
        """One file per kind of footer, and all files whose kind cannot be told, in the order of the files. The common
        schema needs no others, so they cost no Python object. ``None`` if each file must be opened to know: some are
        not local, their state is not in the listing, or they need keys."""
        listing = _listing(self._files) if self._options.decryption is None else None
        if listing is None or kernels.footer_kinds is None:
            return None
        firsts, odd = self._kinds_of(*listing)
        new = {k: footer for k, footer in firsts.items() if k not in self._stored}
        self._stored |= new
        self._compare(list(new))
        one_of_each = {frame: k for k, frame in reversed([(k, int(self.frames[k])) for k in firsts])}
        return sorted([*one_of_each.values(), *odd])

    def _kinds_of(self, paths: list[bytes], statuses: Int64Array) -> _Kinds:
        """Some footers that all kinds are among, and the files whose kind cannot be told."""
        tail, most = self._local_tail(), self._options.limits.max_footer
        key = b"\0".join(paths), statuses.tobytes(), tail, most
        with _lock:
            known = _kinds.get(key)
        if known is not None:
            return known
        assert kernels.footer_kinds is not None
        now, read, starts = time.time_ns(), kernels.footer_kinds, range(0, len(paths), AT_A_TIME)
        parts = map_tasks(
            lambda k: read(paths[k : k + AT_A_TIME], statuses[k : k + AT_A_TIME].reshape(-1), tail, most),
            starts, self._options.use_threads,
        )  # fmt: skip
        firsts, odd = dict[int, StoredFooter](), list[int]()
        for start, (places, ends, strange) in zip(starts, parts, strict=True):
            stored = (StoredFooter(FileStatus(*end[:4]), *end[4:]) for end in ends)  # native code has read them
            firsts |= zip((places + start).tolist(), stored, strict=True)
            odd += (strange + start).tolist()
        if now - int(statuses[:, 1].max(initial=0)) >= SETTLED_NS and all(path[:1] == b"/" for path in paths):
            with _lock:
                _kinds[key] = firsts, odd
                while len(_kinds) > MOST_LISTINGS:
                    _kinds.popitem(last=False)
        return firsts, odd

    def _compare(self, new: Sequence[int]) -> None:
        """Compare the footers, and note the rows of the files, where no key is needed."""
        if self._options.decryption is not None or not new:
            return
        known = list(dict.fromkeys(self.frames[self.frames >= 0].tolist()))
        compared = known + [k for k in new if not self._stored[k].encrypted]
        frames, rows = kernels.footer_frames([self._stored[k].data for k in compared])
        places = np.array(compared, np.int64)
        sound = frames >= 0
        self.frames[places[sound]] = places[frames[sound]]
        self.rows[places[sound]] = rows[sound]

    def frame(self, k: int) -> int | None:
        """The number of the kind of a file's footer. ``None`` if the kind is not known."""
        found = int(self.frames[k])
        return None if found < 0 else found

    def stored(self, numbers: Iterable[int]) -> list[StoredFooter]:
        """The stored footers of files whose kinds are known."""
        return [self._stored[k] for k in numbers]

    def cost_of(self, numbers: Iterable[int]) -> tuple[int, int, int]:
        """Requests and bytes that reading the footers of these files took, and the size of the files."""
        read = [self._stored[k] for k in numbers if k in self._stored]
        return sum(f.requests for f in read), sum(f.bytes for f in read), sum(f.status.size for f in read)

    def fetchers(self, numbers: Iterable[int]) -> list[Fetcher | None]:
        """What has read the footer of each remote file. ``None`` for a local file."""
        return [self._fetchers.get(k) for k in numbers]

    def open(self, k: int) -> OpenFile:
        """File ``k`` with its footer decoded.

        Raises :class:`pyparq.CorruptFileError` and the like, with the name of the file.
        """
        file, stored, error = self._files[k], self._stored.get(k), self._errors.pop(k, None)
        if error is not None:
            raise error
        if stored is None:
            return open_listed(file, self._options, self._storage_options)
        fetcher = self._fetchers.get(k)
        with located(file=file.name):
            if fetcher is None:
                fetcher = Fetcher(ListedFile(file, stored.status), self._options.coalesce_gap)
                counts = fetcher.counts
                counts.requests, counts.ranges, counts.bytes = stored.requests, stored.requests, stored.bytes
            return self._decoded(k, fetcher, stored)

    def _decoded(self, k: int, fetcher: Fetcher, stored: StoredFooter) -> OpenFile:
        frame = int(self.frames[k])
        model = self._models.get(frame)
        if model is not None:
            footer = LazyFileMetaData(stored.data, model.footer)
            shared = FileSchema(model.tree, model.key_values, model.fields)
            return OpenFile(fetcher, footer, CLEAR_FILE, self._options, shared)
        footer, decryption = open_footer(stored.encrypted, memoryview(stored.data), fetcher.source, self._options)
        opened = OpenFile(fetcher, footer, decryption, self._options)
        if frame >= 0:
            self._models[frame] = opened
        return opened


def _listing(files: Sequence[DataFile]) -> tuple[list[bytes], Int64Array] | None:
    """The paths and states of local files. ``None`` where one is not local, or was named and not listed."""
    wheres = [file.where for file in files]
    if not wheres or not all(isinstance(where, str) for where in wheres):
        return None
    paths = list(map(os.fsencode, wheres))
    if any(b"://" in path or b"\0" in path for path in paths):
        return None
    statuses = np.empty((len(files), 4), np.int64)
    try:
        statuses[:, 0] = [file.size for file in files]  # type: ignore[assignment]
        statuses[:, 1] = [file.mtime_ns for file in files]  # type: ignore[assignment]
        statuses[:, 2] = np.array([file.inode for file in files], np.uint64).view(np.int64)
        statuses[:, 3] = [file.ctime_ns for file in files]  # type: ignore[assignment]
    except TypeError:  # None: a file that was named
        return None
    return paths, statuses
