"""Files beside a Parquet file: external key material lives there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyparq.errors import EncryptionError, LimitError, ParquetError
from pyparq.io.changes import Changes
from pyparq.io.remote import FsspecFile
from pyparq.io.sink import FsspecSink, Sink, open_sink
from pyparq.io.source import Source, open_source

MAX_SIBLING = 64 << 20
"""Bytes of a sibling that are read; a key's material takes some 400."""


def base_name(name: str) -> str:
    """Last part of a path or URL."""
    return name.rpartition("/")[2] if "://" in name else os.path.basename(name)


@dataclass(frozen=True, slots=True)
class Sibling:
    """A file in the folder of another: on the same file system, which is ``None`` for local paths and for URLs."""

    fs: Any
    path: str
    name: str

    def source(self) -> Source:
        return open_source(self.path) if self.fs is None else FsspecFile(self.fs, self.path, self.name)

    def sink(self, fsync: bool) -> Sink:
        return open_sink(self.path, fsync) if self.fs is None else FsspecSink(self.fs, self.path, self.name)

    def remove(self) -> None:
        if self.fs is None:
            os.unlink(self.path)
        else:
            Changes(self.fs).remove(self.path, self.name)


def sibling_of(file: Source | Sink, sibling: str) -> Sibling:
    """``sibling`` in the folder of a file that is read or written.

    Raises :class:`EncryptionError` for what has no folder (bytes, file objects without a name).
    """
    name, fs = file.name, getattr(file, "fs", None)
    if getattr(file, "in_staging", False):
        raise EncryptionError(
            "the files of a dataset cannot have key material in files of its own. Use internal_key_material=True",
            file=name,
        )
    if name.startswith("<"):
        raise EncryptionError(
            f"{sibling!r} must be in the same directory as the file: give the file's path or URL, not {name}"
        )
    if fs is not None:
        path = str(getattr(file, "path", ""))
        return Sibling(fs, _beside(path.partition("?")[0] if "://" in path else path, sibling), _beside(name, sibling))
    path = _beside(name, sibling) if "://" in name else os.path.join(os.path.dirname(name), sibling)
    return Sibling(None, path, path)


def _beside(path: str, sibling: str) -> str:
    return f"{path.rpartition('/')[0]}/{sibling}"


@contextmanager
def sibling_stored(file: Sink, sibling: str, data: bytes, fsync: bool = False) -> Iterator[None]:
    """Store ``data`` as ``sibling``; when what is done within fails, what was there before comes back."""
    place = sibling_of(file, sibling)
    before: bytes | None = data  # where nobody may read what is there, the new stays: nothing else is known
    with suppress(OSError, ParquetError):
        try:
            before = read_sibling(file, sibling)
        except FileNotFoundError:
            before = None
    _store(place, data, fsync)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # what failed first is what the caller has to know
            if before is None:
                place.remove()
            else:
                _store(place, before, fsync)
        raise


def _store(place: Sibling, data: bytes, fsync: bool) -> None:
    sink = place.sink(fsync)
    try:
        sink.write([data])
        sink.commit()
    except BaseException:
        sink.abort()
        raise


def read_sibling(file: Source | Sink, sibling: str) -> bytes:
    """The bytes of ``sibling`` beside a file.

    Raises ``OSError`` when it is not there, :class:`LimitError` when it is too large.
    """
    source = sibling_of(file, sibling).source()
    try:
        if source.size > MAX_SIBLING:
            raise LimitError(f"{sibling!r} has {source.size} bytes: key material has at most {MAX_SIBLING}")
        return bytes(source.read_ranges([(0, source.size)])[0])
    finally:
        source.close()
