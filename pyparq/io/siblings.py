"""Files that lie beside a Parquet file, read. External key material is stored in one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from pyparq.errors import EncryptionError, LimitError
from pyparq.io.byte_ranges import Source
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


def sibling_of(file: Any, sibling: str) -> Sibling:
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


def read_sibling(file: Any, sibling: str) -> bytes:
    """The bytes of ``sibling`` beside a file. Raises ``OSError`` if it does not exist, :class:`LimitError` if it is too
    large."""
    source = sibling_of(file, sibling).source()
    try:
        if source.size > MAX_SIBLING:
            raise LimitError(f"{sibling!r} has {source.size} bytes: key material has at most {MAX_SIBLING}")
        return bytes(source.read_ranges([(0, source.size)])[0])
    finally:
        source.close()
