"""Files that lie beside a Parquet file, written: the external key material is put in place with the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from pyparq.encryption.material import external_json, parse_external, when_replaced, while_replaced
from pyparq.errors import ChangedFileError, EncryptionError, ParquetError
from pyparq.io.byte_ranges import Source
from pyparq.io.file_lock import locked_folder
from pyparq.io.folders import Changes, Folders
from pyparq.io.remote_sinks import sink_on
from pyparq.io.siblings import Sibling, read_sibling, sibling_of
from pyparq.io.sink import Sink, own_sink


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
                        _remove(place) if before is None else _store(place, before, fsync)
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
    sink = own_sink(place.path, fsync) if place.fs is None else sink_on(place.fs, place.path, place.name)
    try:
        sink.write([data])
        sink.commit()
    except BaseException:
        sink.abort()
        raise


def _remove(place: Sibling) -> None:
    if place.fs is None:
        os.unlink(place.path)
    else:
        Changes(place.fs).remove(place.path, place.name)
