"""Footers and indexes of remote files, kept in memory for the next time that a file is opened.

A file is known by its place, the credentials and options that it is reached with, its size and its entity tag. What is
kept is used only after the store has said that the file still has this tag, or in requests that are bound to it
(``If-Match``). It is kept as stored: an encrypted footer stays encrypted.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyparq.errors import OptionError
from pyparq.io.byte_ranges import Range
from pyparq.option_checks import keywords
from pyparq.runtime import fork_safety

OVERHEAD = 200
"""Bytes that a part takes besides its own."""

LARGE = 1 << 10
"""From this many bytes on, a part may be asked for in pieces."""

Identity: TypeAlias = tuple[Any, ...]
"""What a file is known by. It can be hashed."""

_most = 64 << 20
_size = 0
_lock = threading.Lock()
_files: OrderedDict[Identity, KeptFile] = OrderedDict()
"""The one that was used last comes last."""


@fork_safety.in_child
def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


def remote_cache_size() -> int:
    """Maximum number of bytes of footers and indexes of remote files that are kept in memory, in the whole process: 64
    MiB unless :func:`set_remote_cache_size` has changed it.

    Example::

        print(pyparq.remote_cache_size())      # 67108864
    """
    return _most


@keywords
def set_remote_cache_size(size: int) -> None:
    """Set the maximum number of bytes of footers and indexes of remote files that are kept in memory, for the whole
    process. 0 keeps none.

    What was used least recently is dropped first. Raises :class:`pyparq.OptionError` for anything but a whole number of
    at least 0.

    Example::

        pyparq.set_remote_cache_size(256 << 20)
    """
    global _most
    if type(size) is not int or size < 0:
        raise OptionError(f"size must be a whole number of at least 0, not {size!r}")
    with _lock:
        _most = size
        _shrink()


class KeptFile:
    """What is kept of one version of a file: its end from the footer on, and indexes by their place."""

    def __init__(self, size: int, tag: str, footer: bytes) -> None:
        self.size = size
        self.tag = tag
        self.footer = footer
        self.num_bytes = len(footer) + OVERHEAD
        self._parts: dict[int, bytes] = {}
        self._large: list[int] = []
        """Where parts begin that hold more than one thing, such as whole Bloom filters. Ascending."""
        self.is_dropped = False

    def place(self, offset: int, end: int) -> int | None:
        """A number by which :meth:`take` finds the bytes from ``offset`` to ``end``. ``None``: they are not there."""
        for start in (offset, *self._large_before(offset)):
            part = self._parts.get(start)
            if part is not None and end <= start + len(part):
                return start
        return None

    def _large_before(self, offset: int) -> list[int]:
        large = self._large  # another thread may set a longer list
        k = bisect_right(large, offset)
        return large[max(k - 1, 0) : k]

    def take(self, k: int, offset: int, length: int) -> memoryview:
        return memoryview(self._parts[k])[offset - k :][:length]

    def keep(self, parts: Iterable[tuple[Range, memoryview]]) -> None:
        """Keep copies of these parts of the file."""
        global _size
        large = set[int]()
        with _lock:
            for (offset, length), data in parts:
                before = self._parts.get(offset)
                if self.is_dropped or (before is not None and len(before) >= length):
                    continue
                added = length + OVERHEAD if before is None else length - len(before)
                if self.num_bytes + added > _most // 4:
                    continue
                self._parts[offset] = bytes(data)
                if length >= LARGE:
                    large.add(offset)
                self.num_bytes += added
                _size += added
            if large:
                self._large = sorted(large.union(self._large))
            _shrink()


def kept_file(identity: Identity) -> KeptFile | None:
    """What is kept of a file."""
    with _lock:
        found = _files.get(identity)
        if found is not None:
            _files.move_to_end(identity)
        return found


def keep_file(identity: Identity, file: KeptFile) -> None:
    """Keep a file, in the place of another version of it."""
    global _size
    with _lock:
        _drop(identity)
        if file.num_bytes > _most // 4:
            file.is_dropped = True
            return
        _files[identity] = file
        _size += file.num_bytes
        _shrink()


def drop_file(identity: Identity) -> None:
    """Keep a file no longer: it has another version now."""
    with _lock:
        _drop(identity)


def forget_files() -> None:
    """Keep none of the files."""
    with _lock:
        for identity in list(_files):
            _drop(identity)


def digest_of(options: Mapping[str, Any]) -> bytes | None:
    """A value that is equal for equal options of a file system. ``None`` where some are not plain values."""
    if not _is_plain(options):
        return None
    import hashlib  # two milliseconds of an import that local files need not

    return hashlib.blake2b(repr(_sorted(options)).encode(), digest_size=16).digest()


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_plain(item) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bytes))


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted((name, _sorted(item)) for name, item in value.items())
    return [_sorted(item) for item in value] if isinstance(value, (list, tuple)) else value


def _drop(identity: Identity) -> None:
    global _size
    file = _files.pop(identity, None)
    if file is not None:
        file.is_dropped = True
        _size -= file.num_bytes


def _shrink() -> None:
    while _size > _most:
        _drop(next(iter(_files)))
