"""Files in stores that pyparq has opened by their URLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyparq.errors import ChangedFileError, CorruptFileError, UnsupportedError
from pyparq.io.byte_ranges import Range
from pyparq.io.file_versions import Stated
from pyparq.io.kept_files import Identity
from pyparq.io.object_stores import ObjectFile
from pyparq.io.object_system import ObjectSystem
from pyparq.io.object_threads import are_lost
from pyparq.io.remote import FsspecFile
from pyparq.runtime.threads import Task, request_pool


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
        self._other: FsspecFile | None = None
        self._early: Task[memoryview] | None = None
        if system.is_odd(path):
            self._instead()

    def _instead(self) -> FsspecFile:
        """The same file, by fsspec."""
        if self._other is None:
            fs = self._system.behind_fsspec()
            self._other = FsspecFile(fs, self._full_path, self.name, self._listed)
            if self._size is not None:
                self._other.go_on(self._size, self._etag)
        self._other.retry, self._other.at_a_time = self.retry, self.at_a_time
        return self._other

    @property
    def _writing(self) -> Any:
        return self._system.writing

    @property
    def road(self) -> str:
        return "fsspec" if self.is_elsewhere else "obstore"

    @property
    def is_elsewhere(self) -> bool:
        """Whether fsspec reads it."""
        return self._other is not None or are_lost()

    @property
    def size(self) -> int:
        return self._instead().size if self.is_elsewhere else super().size

    def begin_end(self, length: int) -> None:
        """Begin to read the last ``length`` bytes. The next :meth:`read_end` has them."""
        if not self.is_elsewhere:
            self._early = Task(self._end, length)
            self._early.start(request_pool)

    def read_end(self, length: int) -> memoryview:
        early, self._early = self._early, None
        return self._end(length) if early is None or are_lost() else early.result()

    def _end(self, length: int) -> memoryview:
        if self.is_elsewhere:
            return self._instead().read_end(length)
        try:
            listed = None if self._listed is None or self._size is not None else self._listed.size
            if listed is not None and not self._system.ends_by_length:
                return self._listed_end(listed, length)
            end = super().read_end(length)
            self._check_listed(self.size)
            return end
        except UnsupportedError:  # the server knows no ranges
            if self._has_ranges:
                raise
            return self._instead().read_end(length)

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
        if self._listed is None:
            return
        if self._listed.size not in (None, size):
            raise ChangedFileError(
                f"the file has {size} bytes, but had {self._listed.size} when the dataset was listed: make the "
                "dataset again",
                file=self.name,
            )
        etag = self._listed_tag(self._listed)
        if self._etag is not None and etag not in (None, self._etag.removeprefix("W/").strip('"')):
            raise ChangedFileError("the file is not the one that was listed: make the dataset again", file=self.name)

    @property
    def identity(self) -> Identity | None:
        return self._instead().identity if self.is_elsewhere else super().identity

    @property
    def tag(self) -> str | None:
        return self._instead().tag if self.is_elsewhere else super().tag

    def is_listed_as(self, size: int, tag: str) -> bool:
        listed = self._listed
        return listed is not None and (listed.size, self._listed_tag(listed)) == (size, tag.strip('"'))

    def go_on(self, size: int, etag: str | None) -> None:
        if self.is_elsewhere:
            self._instead().go_on(size, etag)
        else:
            super().go_on(size, etag)

    def _listed_tag(self, listed: Stated) -> str | None:
        return next((tag for name, tag in listed.tags if name == self._system.tag), None)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        return self._instead().read_ranges(ranges) if self.is_elsewhere else super().read_ranges(ranges)

    def check_now(self) -> None:
        if self.is_elsewhere:
            self._instead().check_now()
        else:
            super().check_now()

    def state(self) -> tuple[Any, ...]:
        if not self.is_elsewhere:
            return super().state()
        found = self._instead().fs.info(self._full_path)
        return tuple(
            sorted((name, str(found[name])) for name in ("size", "ETag", "etag", "LastModified") if name in found)
        )

    def close(self) -> None:
        super().close()
        if self._other is not None:
            self._other.close()
