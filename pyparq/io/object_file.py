"""Objects in stores of obstore (https://developmentseed.org/obstore): S3, Google Cloud Storage, Azure and others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from pyparq.errors import ChangedFileError, CorruptFileError, OptionError, UnsupportedError
from pyparq.io.byte_ranges import Range
from pyparq.io.file_versions import Stated
from pyparq.io.fsspec_file import FsspecFile
from pyparq.io.kept_files import Identity, digest_of
from pyparq.io.object_requests import (
    CHANGED,
    NOT_IN_A_FORK,
    AnsweredError,
    are_lost,
    get_object,
    head_object,
    interruptibly,
    is_an_answer,
    note_use,
    plainly,
)
from pyparq.io.object_store import ObjectSystem
from pyparq.io.retry import Retry
from pyparq.io.url import add_tries
from pyparq.runtime.safe_repr import printable
from pyparq.runtime.threads import MANY_REQUESTS, Task, map_requests, request_pool

T = TypeVar("T")

PART = 16 << 20
"""Bytes of a part of an upload: 10,000 of them are allowed on S3."""

MOST_PUT = 5_000 << 20
"""Bytes that one request puts, at most: Azure's limit, which is a little below that of S3."""

SCHEMES = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


class ObjectFile:
    """A file in an obstore store: ``pyparq.read_table(pyparq.ObjectFile(store, "a/b.parquet"))``. It can be written to,
    too: ``pyparq.write_table(data, pyparq.ObjectFile(store, "a/b.parquet"))``.

    ``store``: an ``obstore.store.S3Store``, ``GCSStore``, ``AzureStore``, ``HTTPStore`` and so on, with its credentials
    and options. ``path``: of the object in the store. Making one asks nothing of the server.

    Its requests take much less time on the client than those of fsspec's file systems (docs/urls.md). Needs the package
    obstore, which ``pip install 'pyparq[obstore]'`` installs. It cannot be read in a forked child of a process that has
    used obstore.

    The read raises the errors that a URL gives, and :class:`ChangedFileError` if the object is replaced meanwhile.

    Example::

        from obstore.store import MemoryStore

        store = MemoryStore()
        with open("flights.parquet", "rb") as file:
            store.put("a/flights.parquet", file.read())
        table = pyparq.read_table(pyparq.ObjectFile(store, "a/flights.parquet"), columns=["flight"])
    """

    is_local = False
    retry = Retry()
    """How often failed requests are repeated, in addition to obstore's own repetitions."""
    most_repeats: int | None = 1
    """At most as often as this: obstore repeats most requests by itself. ``None``: it does not."""
    at_a_time = MANY_REQUESTS
    """Requests of one step that are made at a time."""

    def __init__(self, store: Any, path: str) -> None:
        if not isinstance(path, str) or not (hasattr(store, "get") and hasattr(store, "head")):
            raise OptionError("ObjectFile takes a store of obstore and a path: ObjectFile(S3Store(...), 'a/b.parquet')")
        self.store = store
        self.path = path
        self.name = _name(store, path)
        self._size: int | None = None
        self._etag: str | None = None
        self._modified: Any = None
        self._version: str | None = None
        self._closed = False
        self._has_ranges = False
        """The store has served one."""

    def _instead(self) -> FsspecFile | None:
        """The same file by fsspec, where that reads it."""
        return None

    @property
    def road(self) -> str:
        """The library that makes the requests."""
        return "obstore" if self._instead() is None else "fsspec"

    @printable
    def __repr__(self) -> str:
        return f"<ObjectFile {self.name}>"

    @property
    def place(self) -> tuple[ObjectSystem, str]:
        """The store as a file system, and the path on it."""
        return ObjectSystem(self.store, _name(self.store, "") + "/", ""), self.path

    @property
    def size(self) -> int:
        """Size of the object in bytes. Asks the server, unless a read has told it."""
        other = self._instead()
        if other is not None:
            return other.size
        if self._size is None:
            self._check_usable()
            self._learn(self._asked(lambda: head_object(self.store, self.path)))
        assert self._size is not None
        return self._size

    @property
    def identity(self) -> Identity | None:
        """What the object is known by in this process; ``None`` where that does not tell stores apart."""
        other, store = self._instead(), self.store
        if other is not None:
            return other.identity
        if type(store).__name__ not in SCHEMES or not _has_hash(store.credential_provider):
            return None
        options = digest_of({"config": dict(store.config), "client": dict(store.client_options or {})})
        given = str(store.prefix or ""), store.credential_provider
        return None if options is None else (type(store), options, *given, self.path)

    @property
    def tag(self) -> str | None:
        """The strong entity tag of the object that was opened, once an answer has told it."""
        other = self._instead()
        if other is not None:
            return other.tag
        return self._etag if self._etag is not None and self._etag.startswith('"') else None

    def is_listed_as(self, size: int, tag: str) -> bool:
        """Whether a listing of the folder says that the object has this size and entity tag."""
        return False

    def go_on(self, size: int, etag: str | None) -> None:
        """Read an object whose size and entity tag another reader has learnt."""
        other = self._instead()
        if other is not None:
            other.go_on(size, etag)
        self._size, self._etag = size, etag

    def read_end(self, length: int) -> memoryview:
        """The last ``length`` bytes, all of a shorter object, in one request that also tells its size."""
        self._check_usable()
        if self._size is None:
            with self._plain_errors(), _others_ignored():
                answer, data = get_object(self.store, self.path, {"range": {"suffix": length}})
                size = int(answer.meta["size"])
                if len(data) == min(length, size) and tuple(answer.range) == (size - len(data), size):
                    self._learn(answer.meta)
                    self._has_ranges = True
                    return data
        # The object is empty, the store (Azure) does not serve ranges from the end, or the answer was not whole.
        start = max(self.size - length, 0)
        return self.read_ranges([(start, self.size - start)])[0] if self.size else memoryview(b"")

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        other = self._instead()
        if other is not None:
            return other.read_ranges(ranges)
        self._check_usable()
        return [self._again(ranges[0])] if len(ranges) == 1 else map_requests(self._again, ranges, self.at_a_time)

    def _again(self, wanted: Range) -> memoryview:
        return self._asked(lambda: self._range(wanted))

    def _asked(self, ask: Callable[[], T]) -> T:
        """The result of a request."""

        def in_plain_words() -> T:
            try:
                with self._plain_errors():
                    return ask()
            except UnsupportedError:
                if not self._has_ranges:
                    raise
                reason = "the server answers with other than the range that was asked for"
                raise OSError(errno.EIO, reason, self.name) from None

        try:
            retry = self.retry if self.most_repeats is None else self.retry.at_most(self.most_repeats)
            return retry.once(in_plain_words)
        except AnsweredError as error:
            plain = error.plain()
            add_tries(plain, error)
            raise plain from None
        except OSError as error:
            add_tries(error, error)
            raise

    def _range(self, wanted: Range) -> memoryview:
        offset, length = wanted
        options: dict[str, Any] = {"range": (offset, offset + length)}
        if self._etag is not None and self._etag.startswith('"'):  # a weak tag matches nothing
            options["if_match"] = self._etag
        answer, data = get_object(self.store, self.path, options)
        self._check_same(answer.meta)
        if len(data) == length:
            self._has_ranges = True
            return data
        if offset + length > self.size:
            raise CorruptFileError(
                f"the file ends within the range of {length} bytes at offset {offset}", file=self.name
            )
        raise ConnectionError(errno.EIO, f"the server sends {len(data)} bytes instead of {length}", self.name)

    def _check_same(self, meta: Any) -> None:
        """Check that the answer comes from the same object, for stores that ignore ``if_match`` or have no tag for
        it."""
        if self._size is None:
            self._learn(meta)
            return
        etag, modified = meta.get("e_tag"), meta.get("last_modified")
        by_tag = self._etag is not None and etag is not None
        same = etag == self._etag if by_tag else self._modified in (None, modified)
        if int(meta["size"]) != self._size or not same:
            raise ChangedFileError(CHANGED, file=self.name)

    def check_now(self) -> None:
        """Ask whether the object is still the one that was read. Raises :class:`ChangedFileError` if it is not."""
        other = self._instead()
        if other is not None:
            other.check_now()
            return
        self._check_usable()
        self._check_same(self._asked(lambda: head_object(self.store, self.path)))

    def state(self) -> tuple[Any, ...]:
        """The store's current information about the object, which changes when the object is replaced. Asks the
        server."""
        other = self._instead()
        if other is not None:
            return other.state()
        self._check_usable()
        meta = self._asked(lambda: head_object(self.store, self.path))
        return meta["size"], meta.get("e_tag"), meta.get("version"), meta.get("last_modified")

    @property
    def version(self) -> dict[str, str]:
        """What tells the object that was opened from others of its name, as obstore's updates take it. Empty before the
        first request, and where the store has nothing of the kind."""
        found = {"e_tag": self._etag, "version": self._version}
        return {name: value for name, value in found.items() if value is not None}

    def put(self, data: Any, only: Mapping[str, str] | None = None) -> None:
        """Put an object in this place: the bytes of an open file. ``only``: the version that it may replace.

        Raises :class:`ChangedFileError` where there is another version. Stores that cannot be told so, and all for what
        is too large for one request, are asked for their version before.
        """
        self._check_usable()
        is_large = only is not None and data.seek(0, os.SEEK_END) > MOST_PUT
        data.seek(0)
        if only is not None and is_large:
            with self._plain_errors():
                self._check_current(only)
                interruptibly(lambda: self.put_in_parts(data))
            return
        mode = "overwrite" if only is None else dict(only)
        with self._plain_errors():
            try:
                interruptibly(lambda: self._writing.put(self.path, data, mode=mode))
            except Exception as error:
                if only is None or type(error).__name__ not in ("NotSupportedError", "NotImplementedError"):
                    raise
                self._check_current(only)
                data.seek(0)
                self._writing.put(self.path, data)

    @property
    def _writing(self) -> Any:
        """The store for changes."""
        return self.store

    def put_in_parts(self, data: Any) -> None:
        """Put an object in this place: what an open file has, or an iterator gives. Raises what obstore raises."""
        self._check_usable()
        self._writing.put(self.path, data, chunk_size=PART, max_concurrency=4)

    def _check_current(self, only: Mapping[str, str]) -> None:
        now = ObjectFile(self.store, self.path)
        now._learn(head_object(self.store, self.path))
        if now.version != only:
            raise ChangedFileError(CHANGED, file=self.name) from None

    def close(self) -> None:
        self._closed = True

    def _learn(self, meta: Any) -> None:
        self._size = int(meta["size"])
        self._version = meta.get("version") or None
        self._etag, self._modified = meta.get("e_tag") or None, meta.get("last_modified")

    def _check_usable(self) -> None:
        if self._closed:
            raise OptionError("the file is closed", file=self.name)
        if are_lost():
            raise OptionError(NOT_IN_A_FORK, file=self.name)
        note_use()

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plainly(self.name)


class StoreFile(ObjectFile):
    """A file behind a URL. In a forked child, where obstore does not work, fsspec reads on."""

    def __init__(self, system: ObjectSystem, path: str, name: str, listed: Stated | None = None) -> None:
        """``listed``: what a listing of the folder says of the file."""
        super().__init__(system.store, system.key(path))
        self.name = name
        if not system.repeats:
            self.most_repeats = None
        self._system = system
        self._full_path = path
        self._listed = listed
        self._is_left = system.is_odd(path)
        """To fsspec."""
        self._other: FsspecFile | None = None
        self._early: Task[memoryview] | None = None

    def _instead(self) -> FsspecFile | None:
        if not (self._is_left or are_lost()):
            return None
        if self._other is None:
            fs = self._system.behind_fsspec()
            self._other = FsspecFile(fs, self._full_path, self.name, self._listed)
            if self._size is not None:
                self._other.go_on(self._size, self._etag)
        self._other.retry, self._other.at_a_time = self.retry, self.at_a_time
        return self._other

    @property
    def place(self) -> tuple[ObjectSystem, str]:
        return self._system, self._full_path

    @property
    def _writing(self) -> Any:
        return self._system.writing

    def begin_end(self, length: int) -> None:
        """Begin to read the last ``length`` bytes. The next :meth:`read_end` has them."""
        if self._instead() is None:
            self._early = Task(self._end, length)
            self._early.start(request_pool)

    def read_end(self, length: int) -> memoryview:
        early, self._early = self._early, None
        return self._end(length) if early is None or are_lost() else early.result()

    def _end(self, length: int) -> memoryview:
        other = self._instead()
        if other is not None:
            return other.read_end(length)
        try:
            listed = None if self._listed is None or self._size is not None else self._listed.size
            if listed is not None and not self._system.ends_by_length:
                return self._listed_end(listed, length)
            end = super().read_end(length)
        except UnsupportedError:  # the server knows no ranges
            if self._has_ranges:
                raise
            self._is_left = True
            return self._end(length)
        self._check_listed(self.size)
        return end

    def _listed_end(self, size: int, length: int) -> memoryview:
        """The end of a file that a listing tells the size of. The answer tells whether it is still that file."""
        self._check_usable()
        if size == 0:
            return memoryview(b"")
        start = max(size - length, 0)
        try:
            data = self._again((start, size - start))
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, ChangedFileError, CorruptFileError):
            self._check_listed(self.size)  # a shorter file has no such range
            raise
        self._check_listed(self.size)
        return data

    def _check_listed(self, size: int) -> None:
        if self._listed is not None:
            self._listed.check_opened(size, self._etag, self._listed_tag(self._listed), self.name)

    def is_listed_as(self, size: int, tag: str) -> bool:
        listed = self._listed
        return listed is not None and (listed.size, self._listed_tag(listed)) == (size, tag.strip('"'))

    def _listed_tag(self, listed: Stated) -> str | None:
        return dict(listed.tags).get(self._system.tag)

    def close(self) -> None:
        super().close()
        if self._other is not None:
            self._other.close()


def _has_hash(value: Any) -> bool:
    try:
        hash(value)  # a tuple, or a frozen dataclass, may hold what has none
    except TypeError:
        return False
    return True


@contextmanager
def _others_ignored() -> Iterator[None]:
    """Of the first request: what is neither an answer nor a refusal is left to the next way to ask."""
    try:
        yield
    except Exception as error:
        if is_an_answer(error):
            raise


def _name(store: Any, path: str) -> str:
    """The object's name in messages, without secrets."""
    scheme, place = SCHEMES.get(type(store).__name__, ("", ""))
    config = getattr(store, "config", None) or {}
    root = f"{scheme}://{config[place]}" if place and place in config else f"<{type(store).__name__}>"
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    return "/".join(part for part in (root, prefix, path.lstrip("/")) if part)
