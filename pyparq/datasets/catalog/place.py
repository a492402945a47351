"""The folder of a catalog, on a local disk or in a store."""

from __future__ import annotations

import datetime as dt
import os
import posixpath
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyparq.datasets.catalog.checked_source import CheckedSource
from pyparq.datasets.catalog.layout import FOLDER, HEAD, Head, Part, Segment, parse_head
from pyparq.errors import OptionError
from pyparq.io.byte_ranges import Source
from pyparq.io.folders import Changes, Folders
from pyparq.io.locations import file_system, path_on
from pyparq.io.remote_sinks import sink_on
from pyparq.io.retry import Retry
from pyparq.io.sink import Sink, own_sink
from pyparq.io.source import LocalFile, source_on
from pyparq.io.url import expanded, is_url, local_path, shown
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file

HEAD_BYTES = 1 << 20
"""Bytes of ``catalog.json`` that the first request asks for. Few are larger."""
WHOLE = 16 << 20
"""Parts up to this size are read at once where all of them is needed: 10^5 files take 4 MB."""
ABANDONED = 24 * 3600
"""Seconds after which a part that no catalog names is removed: the run that wrote it has ended."""


class Place:
    """The catalog's folder of a dataset."""

    def __init__(
        self, root: str, storage_options: Mapping[str, Any] | None = None, fs: Any = None, retry: Retry | None = None
    ) -> None:
        """``root``: path or URL of the dataset. ``fs``: its file system, if it is known. ``retry``: how reads that fail
        for the moment are made again."""
        self.retry = retry or Retry()
        self.fs = fs
        """``None`` for a local folder."""
        self.root = local_path(root) or expanded(root)
        """The path of the dataset on its file system."""
        self.root_name = self.root
        if is_url(root):
            if fs is None:
                self.fs, path = file_system(root, "reading", "read from", storage_options)
            else:
                path = path_on(fs, root)
            self.root, self.root_name = path.rstrip("/"), shown(root)
        self._folder = posixpath.join(self.root, FOLDER)
        self.name = posixpath.join(self.root_name, FOLDER)
        self._options = storage_options

    @property
    def is_local(self) -> bool:
        return self.fs is None

    def _path(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def _name(self, name: str) -> str:
        return posixpath.join(self.name, name)

    def _source(self, name: str) -> Source:
        if self.fs is None:
            return LocalFile(self._path(name))
        source = source_on(self.fs, self._path(name), self._name(name))
        source.retry = self.retry
        return source

    def head(self) -> Head | None:
        """What the catalog states; ``None`` where there is none. Raises what :func:`parse_head` does."""
        try:
            source = self._source(HEAD)
            try:
                return parse_head(_whole(source), self._name(HEAD))
            finally:
                source.close()
        except FileNotFoundError:
            return None

    def checked(self, part: Part) -> CheckedSource:
        return CheckedSource(lambda: self._source(part.name), part, self._name(part.name), self.is_local)

    def opened(self, part: Part, whole: bool = False) -> OpenFile:
        """A part, with its footer. ``whole``: all of it is needed, and is read at once if it is small."""
        tail = part.size if whole and part.size <= WHOLE else max(part.tail, 8)
        return open_file(self.checked(part), ReadOptions(tail_size=tail, coalesce_gap=0, use_threads=False))

    # ---- writing

    def begin(self) -> None:
        """Make the folder."""
        if self.fs is None:
            if os.path.islink(self._folder):
                raise OptionError(
                    "the catalog's folder is a link to another folder: remove the link", file=self._folder
                )
            os.makedirs(self._folder, exist_ok=True)
        else:
            Changes(self.fs, self._options).make_folder(self._folder, self.name)

    def sink(self, name: str) -> Sink:
        """What a new part is written to."""
        if self.fs is None:
            return own_sink(self._path(name))
        return sink_on(self.fs, self._path(name), self._name(name))

    def put(self, head: Head, stale: Collection[str] = ()) -> None:
        """Make this the catalog. ``stale``: parts that are removed, which the catalog before it did not name."""
        data = head.to_bytes()
        if self.fs is None:
            sink = own_sink(self._path(HEAD), fsync=True)
            sink.write([data])
            sink.commit()
        else:
            Changes(self.fs, self._options).put(self._path(HEAD), data, self._name(HEAD))
        kept = {HEAD, *head.previous, *(part.name for part in head.parts)}
        with suppress(OSError):  # what is left over is removed by the next update
            for name in {*stale, *self._abandoned()} - kept:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a part, if it is there."""
        with suppress(FileNotFoundError):
            if self.fs is None:
                os.unlink(self._path(name))
            else:
                Changes(self.fs, self._options).remove(self._path(name), self._name(name))

    def remove_all(self, segments: Iterable[Segment]) -> None:
        """Remove the parts of these segments."""
        for segment in segments:
            self.remove(segment.part.name)

    def _abandoned(self) -> list[str]:
        """The files of the folder that have not changed for a day."""
        before = time.time() - ABANDONED
        if self.fs is None:
            with os.scandir(self._folder) as entries:
                return [entry.name for entry in entries if entry.is_file() and entry.stat().st_mtime < before]
        times = {posixpath.basename(str(info["name"])): _time(info) for info in Folders(self.fs).entries(self._folder)}
        return [name for name, at in times.items() if at < before]


def _time(info: Mapping[str, Any]) -> float:
    """When a store says that a file was written; now, if it does not say so."""
    found = next((info[key] for key in ("LastModified", "last_modified", "updated") if info.get(key)), None)
    return found.timestamp() if isinstance(found, dt.datetime) else time.time()


def _whole(source: Source) -> bytes | memoryview:
    read_end = getattr(source, "read_end", None)
    end = memoryview(b"") if read_end is None else read_end(HEAD_BYTES)
    start = source.size - len(end)
    return end if start == 0 else b"".join((source.read_ranges([(0, start)])[0], end))
