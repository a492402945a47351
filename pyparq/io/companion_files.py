"""Files that lie beside a Parquet file. External key material is stored in one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from pyparq.encryption.material import external_json, parse_external, when_replaced, while_replaced
from pyparq.errors import ChangedFileError, EncryptionError, LimitError, ParquetError
from pyparq.io.byte_ranges import Source
from pyparq.io.file_lock import locked_folder
from pyparq.io.folders import Changes, Folders
from pyparq.io.remote_sinks import sink_on
from pyparq.io.sink import Sink, own_sink
from pyparq.io.source import LocalFile, source_on

MAX_SIBLING = 64 << 20
"""Maximum size of a sidecar in bytes. The material of one key takes about 400."""


def base_name(name: str) -> str:
    """Last part of a path or URL."""
    return name.rpartition("/")[2] if "://" in name else os.path.basename(name)


@dataclass(frozen=True, slots=True)
class Sibling:
    """A file in the folder of another file: on the same file system, which is ``None`` for local paths."""

    fs: Any
    path: str
    name: str

    def source(self) -> Source:
        return LocalFile(self.path) if self.fs is None else source_on(self.fs, self.path, self.name)

    def sink(self, fsync: bool) -> Sink:
        return own_sink(self.path, fsync) if self.fs is None else sink_on(self.fs, self.path, self.name)

    def remove(self) -> None:
        if self.fs is None:
            os.unlink(self.path)
        else:
            Changes(self.fs).remove(self.path, self.name)


def sibling_of(file: Source | Sink, sibling: str) -> Sibling:
    """``sibling`` in the folder of a file that is read or written. Raises :class:`EncryptionError` if there is no
    folder (bytes, file objects without a name)."""
    name, (fs, path) = file.name, getattr(file, "place", (None, ""))
    if getattr(file, "in_staging", False):
        raise EncryptionError(
            "the files of a dataset cannot have key material in files of its own. Use internal_key_material=True",
            file=name,
        )
    if fs is None and name.startswith("<"):
        raise EncryptionError(
            f"{sibling!r} must be in the same directory as the file: give the file's path or URL, not {name}"
        )
    if fs is None:
        path = os.path.join(os.path.dirname(name), sibling)
        return Sibling(None, path, path)
    path = path.partition("?")[0] if "://" in path else path
    return Sibling(fs, path.rpartition("/")[0] + "/" * ("/" in path) + sibling, f"{name.rpartition('/')[0]}/{sibling}")


@contextmanager
def material_stored(file: Sink, sibling: str, material: Mapping[str, str], fsync: bool = False) -> Iterator[None]:
    """Store the key material of ``file`` as ``sibling``, while the code in this context puts the file in place.

    Until the file has its name, the stored material is valid for the older file as well. If the code in the context
    fails, the old material comes back. Two writers of one local file do this one after the other.
    """
    place = sibling_of(file, sibling)
    with _lock_of(place):
        known, before = _before(file, sibling)
        old = _parsed(before)
        final = when_replaced(old, material)
        stored = external_json(while_replaced(old, material) if old else final)
        if stored != before:
            _store(place, stored, fsync)
        try:
            yield
        except BaseException:
            if known and stored != before:
                with suppress(Exception):  # the caller needs the first error
                    if not _may_need(file, place):
                        place.remove() if before is None else _store(place, before, fsync)
            raise
        with suppress(Exception):  # the file has its name, and the stored material is valid for it
            _store_rest(file, place, sibling, stored, old, final, fsync)


def change_material(file: Source, sibling: str, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
    """Put what ``change`` makes of the key material ``sibling`` of ``file`` in its place.

    Raises :class:`ChangedFileError` if it was written meanwhile.
    """
    place, before = sibling_of(file, sibling), read_sibling(file, sibling)
    made = external_json(change(parse_external(before)))
    with _lock_of(place):
        if read_sibling(file, sibling) != before:
            raise ChangedFileError(f"{sibling!r} was written meanwhile: its keys were not changed", file=file.name)
        _store(place, made, fsync=True)


def _lock_of(place: Sibling) -> AbstractContextManager[Any]:
    """The lock of the folder. A context that does nothing if there are no locks."""
    if place.fs is not None:
        return nullcontext()
    return locked_folder(os.path.dirname(os.path.abspath(place.path)), patient=False)


def _may_need(file: Sink, place: Sibling) -> bool:
    """Whether the new file may be in place after all: the answer of a server may be lost. The stored material is valid
    for the older file too."""
    if place.fs is None:
        return False
    return Folders(place.fs).info(getattr(file, "place", (None, ""))[1]) is not None


def _before(file: Sink, sibling: str) -> tuple[bool, bytes | None]:
    """Whether the stored material is known, and the material (``None`` if there is none).

    Raises ``OSError`` if it cannot be read now: the older file may need it.
    """
    try:
        return True, read_sibling(file, sibling)
    except FileNotFoundError:
        return True, None
    except (PermissionError, ParquetError):  # not readable, or too large: the new material stays
        return False, None


def _parsed(stored: bytes | None) -> dict[str, str]:
    try:
        return {} if stored is None else parse_external(stored)
    except EncryptionError:
        return {}


def _store_rest(
    file: Sink, place: Sibling, sibling: str, stored: bytes, old: Mapping[str, str], final: dict[str, str], fsync: bool
) -> None:
    """Store the material of the new file alone, once it has its name. Without locks, another writer may have stored its
    own in the meantime. That one stays."""
    if place.fs is not None:
        now = _parsed(_before(file, sibling)[1])
        final = {**{k: v for k, v in now.items() if k not in old}, **final}
    wanted = external_json(final)
    if wanted != stored:
        _store(place, wanted, fsync)


def _store(place: Sibling, data: bytes, fsync: bool) -> None:
    sink = place.sink(fsync)
    try:
        sink.write([data])
        sink.commit()
    except BaseException:
        sink.abort()
        raise


def read_sibling(file: Source | Sink, sibling: str) -> bytes:
    """The bytes of ``sibling`` beside a file. Raises ``OSError`` if it does not exist, :class:`LimitError` if it is too
    large."""
    source = sibling_of(file, sibling).source()
    try:
        if source.size > MAX_SIBLING:
            raise LimitError(f"{sibling!r} has {source.size} bytes: key material has at most {MAX_SIBLING}")
        return bytes(source.read_ranges([(0, source.size)])[0])
    finally:
        source.close()
