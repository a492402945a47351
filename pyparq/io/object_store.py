"""A store of obstore with the methods of an fsspec file system that pyparq uses.

So folders, patterns, datasets and commits do not know which of the two they work on. Paths are those of fsspec: the
bucket, and the key in it. Keys that obstore cannot name (``a//b``, ``a/../b``) are left to fsspec.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from pyparq.errors import ChangedFileError, OptionError
from pyparq.io.object_requests import (
    CHANGED,
    NOT_IN_A_FORK,
    OddKeyError,
    are_lost,
    get_object,
    head_object,
    interruptibly,
    note_use,
    plainly,
)
from pyparq.io.url import shown
from pyparq.runtime.text import printable

P = ParamSpec("P")
T = TypeVar("T")

_ODD = re.compile(r"(?:^|/)\.{0,2}(?=/|$)|[\x00-\x1f\x7f]")
"""Keys with empty names, with ``.`` or ``..`` as a name, or with control characters."""
_PAGE = 1000
"""Entries of a listing that come at a time."""


def _by_store(method: Callable[Concatenate[ObjectSystem, str, P], T]) -> Callable[Concatenate[ObjectSystem, str, P], T]:
    """A method that the file system of fsspec carries out for paths that obstore cannot name."""

    @wraps(method)
    def either(self: ObjectSystem, path: str, *args: P.args, **options: P.kwargs) -> T:
        if not self.is_odd(path) and not self._lists_odd:
            try:
                with plainly(self.name(path)):
                    return interruptibly(lambda: method(self, path, *args, **options))
            except OddKeyError:  # in a listing
                self._lists_odd = True
        found: T = getattr(self.behind_fsspec(), method.__name__)(path, *args, **options)
        return found

    return cast("Callable[Concatenate[ObjectSystem, str, P], T]", either)


class Opened(Protocol):
    """How the store was opened. It can be pickled."""

    def by_fsspec(self) -> Any:
        """The file system of fsspec for the same store."""

    def reopened(self) -> Any:
        """The store, or the file system of fsspec, opened again in another process."""


PART = 16 << 20
"""Bytes of a part of an upload: 10,000 of them are allowed on S3."""
MOST_PUT = 5_000 << 20
"""Bytes that one request puts, at most: Azure's limit, which is a little below that of S3."""
MOST_COPIED = 5 << 30
"""Bytes that S3 copies in one request, at most."""


class ObjectSystem:
    """One store: a bucket, or what a user's store shows of one."""

    is_object_store = True

    def __init__(
        self, store: Any, url: str, root: str, *, writing: Callable[[], Any] | None = None, tag: str = "ETag",
        options: Mapping[str, Any] | None = None, opened: Opened | None = None,
    ) -> None:  # fmt: skip
        """``store``: of obstore. ``url`` and ``root``: how URLs and paths of its objects begin. ``writing``: makes the
        store for changes; ``None``: the same. ``tag``: what entity tags are called in the answers of fsspec's file
        system for the same store. ``options``: storage options, whose secrets errors must not show. ``opened``: opens
        that file system; ``None``: there is none."""
        self.store = store
        self._make_writing = writing
        self._writing: Any = None
        self.repeats = writing is None
        """Whether the store makes requests that failed again by itself."""
        self.protocol = url.partition("://")[0]
        self.storage_options = dict(options or {})
        self.ends_by_length = tag != "etag"
        """Whether the last bytes of an object can be asked for without its size. Azure has no such request."""
        self._url = url
        self._root = root
        self.tag = tag
        self._opened = opened
        self._lists_odd = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._opened is None:
            return ObjectSystem, (self.store, self._url, self._root)
        return self._opened.reopened, ()

    @printable
    def __repr__(self) -> str:
        return f"<ObjectSystem {shown(self._url)}>"

    @property
    def writing(self) -> Any:
        """The store for changes. It makes requests that failed again by itself: parts of an upload, and no more."""
        if self._writing is None:  # two threads may make two, of which one is kept
            self._writing = self.store if self._make_writing is None else self._make_writing()
        return self._writing

    # ---- names ----

    def unstrip_protocol(self, path: str) -> str:
        return self._url + path[len(self._root) :] if self._root else self._url + path

    def _strip_protocol(self, url: str) -> str:
        return (self._root + url[len(self._url) :] if url.startswith(self._url) else url).rstrip("/")

    def name(self, path: str) -> str:
        return shown(self.unstrip_protocol(path))

    def key(self, path: str) -> str:
        """The key of an object in the store."""
        return path[len(self._root) :].strip("/")

    def is_odd(self, path: str) -> bool:
        """Whether obstore cannot name it, or cannot be used in this process."""
        key = path[len(self._root) :].removeprefix("/" if self._root else "").removesuffix("/")
        return are_lost() or bool(key and _ODD.search(key))

    @property
    def has_fsspec(self) -> bool:
        """Whether there is a file system of fsspec for the same store."""
        return self._opened is not None

    def behind_fsspec(self) -> Any:
        """The file system of fsspec for the same store. Raises :class:`OptionError` where there is none."""
        if self._opened is None:
            reason = (
                NOT_IN_A_FORK
                if are_lost()
                else "obstore has no empty names, '.' and '..' in keys: give a URL, which fsspec opens too"
            )
            raise OptionError(reason, file=shown(self._url))
        return self._opened.by_fsspec()

    # ---- what is there ----

    def invalidate_cache(self, path: str | None = None) -> None:
        """Nothing is kept."""

    @_by_store
    def find(self, path: str, detail: bool = True) -> dict[str, dict[str, Any]]:
        """All objects below a folder; the object itself where it is one."""
        found = dict(self._below(self.key(path)))
        if not found and self.key(path):
            found = self._one(path)
        return found

    def _one(self, path: str) -> dict[str, dict[str, Any]]:
        return {path: self._described(head_object(self.store, self.key(path)))}

    def _below(self, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
        metas = list(self._listed(key))
        folders = _folders_of(str(meta["path"]) for meta in metas)
        for meta in metas:
            if meta["size"] or (str(meta["path"]) not in folders and self._is_object(str(meta["path"]), key)):
                described = self._described(meta)
                yield described["name"], described

    def _is_object(self, key: str, folder: str) -> bool:
        """Whether an empty object has this key, and not the key with a ``/`` behind it: such objects mark folders."""
        if key == folder:
            return False
        try:
            head_object(self.store, key)
        except FileNotFoundError:
            return False
        return True

    def _listed(self, key: str, by: Any = None) -> Iterator[Any]:
        self._used()
        for part in (by or self.store).list(f"{key}/" if key else None, chunk_size=_PAGE):
            yield from part

    @_by_store
    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
        """What lies in one folder."""
        self._used()
        key = self.key(path)
        found = self.store.list_with_delimiter(f"{key}/" if key else None)
        folders = [{"name": self._path(str(at)), "size": 0, "type": "directory"} for at in found["common_prefixes"]]
        objects = [self._described(meta) for meta in found["objects"] if str(meta["path"]) != key]
        if key and not folders and not found["objects"]:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return sorted(folders + objects, key=lambda info: str(info["name"]))

    @_by_store
    def info(self, path: str) -> dict[str, Any]:
        self._used()
        try:
            if self.key(path):
                return self._described(head_object(self.store, self.key(path)))
        except FileNotFoundError:
            if not self._has(self.key(path)):
                raise
        return {"name": path.rstrip("/"), "size": 0, "type": "directory"}

    @_by_store
    def isdir(self, path: str) -> bool:
        return not self.key(path) or self._has(self.key(path))

    def _has(self, key: str) -> bool:
        return any(True for _ in self._listed(key))

    @_by_store
    def cat_file(self, path: str) -> bytes:
        self._used()
        return bytes(get_object(self.store, self.key(path), {})[1])

    def _described(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        """As fsspec has it."""
        found = {"name": self._path(str(meta["path"])), "size": int(meta["size"]), "type": "file"}
        return found | {self.tag: meta.get("e_tag"), "LastModified": meta.get("last_modified")}

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if self._root else key

    # ---- changes ----

    def put(self, path: str, data: Any, name: str, only: Mapping[str, str] | None = None) -> str | None:
        """Put the bytes of an open file. ``only``: the version that they may replace. Returns the name of the new
        version, where the store has told it.

        Raises :class:`ChangedFileError` where there is another version. Stores that cannot be told so, and all for what
        is too large for one request, are asked for their version before.
        """
        self._used()
        key, is_large = self.key(path), only is not None and data.seek(0, os.SEEK_END) > MOST_PUT
        data.seek(0)
        with plainly(name):
            if only is not None and is_large:
                self._check_version(key, only, name)
                interruptibly(lambda: self.put_in_parts(path, data))
                return None
            try:
                mode = "overwrite" if only is None else dict(only)
                body = data if only is None else _mapped(data)
                answer = interruptibly(lambda: self.writing.put(key, body, mode=mode))
            except Exception as error:
                if only is None or type(error).__name__ not in ("NotSupportedError", "NotImplementedError"):
                    raise
                self._check_version(key, only, name)
                data.seek(0)
                answer = self.writing.put(key, data)
        return answer.get("version") or None

    def put_in_parts(self, path: str, data: Any) -> None:
        """Put what an open file has, or an iterator gives. Raises what obstore raises.

        Where the answer to the last request was lost, the store knows no such upload: the object is looked at then."""
        self._used()
        key, sent = self.key(path), 0

        def counted() -> Iterator[bytes]:
            nonlocal sent
            for piece in iter(lambda: data.read(1 << 20), b"") if hasattr(data, "read") else data:
                sent += len(piece)
                yield piece

        def seen() -> tuple[Any, ...]:
            with suppress(Exception):  # a key that may write need not be allowed to look
                return tuple(self.writing.head(key).get(name) for name in ("size", "e_tag"))
            return (None,)

        before = seen()
        try:
            self.writing.put(key, counted(), chunk_size=PART, max_concurrency=4)
        except Exception as error:
            if "NoSuchUpload" not in str(error) or seen() == before or seen()[0] != sent:
                raise

    def _check_version(self, key: str, only: Mapping[str, str], name: str) -> None:
        meta = head_object(self.writing, key)
        if {part: meta[part] for part in ("e_tag", "version") if meta.get(part)} != only:
            raise ChangedFileError(CHANGED, file=name) from None

    @_by_store
    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        """A small object. In mode ``"create"`` where there is none, else ``FileExistsError``."""
        self._used()
        self.writing.put(self.key(path), data, mode=mode)

    @_by_store
    def replace_content(self, path: str, before: bytes, data: bytes) -> None:
        """Put ``data`` into an object that holds ``before``. An object that holds anything else stays as it is.

        Raises :class:`ChangedFileError` where it was replaced at the last moment. Stores that know no conditional
        writes are not told so.
        """
        self._used()
        answer, found = get_object(self.writing, self.key(path), {})
        if found != before:
            return
        version = {name: answer.meta.get(name) for name in ("e_tag", "version") if answer.meta.get(name)}
        try:
            self.writing.put(self.key(path), data, mode=version or "overwrite")
        except Exception as error:
            if type(error).__name__ in ("PreconditionError", "AlreadyExistsError"):
                raise ChangedFileError(CHANGED, file=self.name(path)) from None
            if type(error).__name__ not in ("NotSupportedError", "NotImplementedError"):
                raise
            self.writing.put(self.key(path), data)

    @_by_store
    def cp_file(self, path: str, target: str) -> None:
        """A copy within the store. S3 copies large objects only in parts, which fsspec's file system knows."""
        self._used()
        try:
            self.writing.copy(self.key(path), self.key(target))
        except Exception:
            if self._opened is None or self.writing.head(self.key(path))["size"] <= MOST_COPIED:
                raise
            self._opened.by_fsspec().cp_file(path, target)

    def makedirs(self, path: str, exist_ok: bool = True) -> None:
        """A store has no folders without objects."""

    @_by_store
    def rm_file(self, path: str) -> None:
        self._used()
        self.writing.delete(self.key(path))

    @_by_store
    def rm(self, path: str, recursive: bool = False) -> None:
        """Remove an object, and with ``recursive`` all below it."""
        self._used()
        keys = [str(m["path"]) for m in self._listed(self.key(path), self.writing)] if recursive else [self.key(path)]
        for first in range(0, len(keys), _PAGE):
            self.writing.delete(keys[first : first + _PAGE])

    def _used(self) -> None:
        note_use()


def _mapped(data: Any) -> Any:
    """The bytes of an open file, which are not read into memory where the system can map them. obstore reads the files
    that it puts with a condition whole."""
    with suppress(OSError, ValueError, AttributeError):  # it has no descriptor, or no bytes
        if getattr(data, "_rolled", True):  # else a SpooledTemporaryFile would begin to be a real file
            data.flush()
            return mmap.mmap(data.fileno(), 0, access=mmap.ACCESS_READ)
    return data


def _folders_of(keys: Iterable[str]) -> set[str]:
    """All folders that these keys lie in."""
    found: set[str] = set()
    for key in keys:
        folder = key.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found
