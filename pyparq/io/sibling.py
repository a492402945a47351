"""Files beside a Parquet file: external key material lives there."""

from __future__ import annotations

import os

from pyparq.errors import EncryptionError, LimitError
from pyparq.io.sink import open_sink
from pyparq.io.source import open_source

MAX_SIBLING = 64 << 20
"""Bytes of a sibling that are read; a key's material takes some 400."""


def base_name(name: str) -> str:
    """Last part of a path or URL."""
    return name.rpartition("/")[2] if "://" in name else os.path.basename(name)


def sibling_path(name: str, sibling: str) -> str:
    """Path or URL of ``sibling`` in the folder of the file called ``name``.

    Raises :class:`EncryptionError` for what has no folder (bytes, file objects without a name).
    """
    if name.startswith("<"):
        raise EncryptionError(f"{sibling!r} is looked for beside the file: give the file's path or URL, not {name}")
    if "://" in name:
        return f"{name.rpartition('/')[0]}/{sibling}"
    return os.path.join(os.path.dirname(name), sibling)


def write_sibling(name: str, sibling: str, data: bytes) -> None:
    """Store ``data`` as ``sibling``; what was there is replaced at once."""
    sink = open_sink(sibling_path(name, sibling))
    try:
        sink.write([data])
        sink.commit()
    except BaseException:
        sink.abort()
        raise


def read_sibling(name: str, sibling: str) -> bytes:
    """The bytes of ``sibling``. Raises ``OSError`` when it is not there, :class:`LimitError` when it is too large."""
    source = open_source(sibling_path(name, sibling))
    try:
        if source.size > MAX_SIBLING:
            raise LimitError(f"{sibling!r} of {source.size} bytes: more than {MAX_SIBLING} are no key material")
        return bytes(source.read_ranges([(0, source.size)])[0])
    finally:
        source.close()
