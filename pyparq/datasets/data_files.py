"""The files of a dataset, as a listing shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyparq.datasets.unfinished_writes import StoreWrite, Unfinished
from pyparq.errors import CorruptFileError
from pyparq.io.file_versions import Stated
from pyparq.io.table_formats import Managed
from pyparq.io.url import is_url, shown

SUMMARIES = ("_metadata", "_common_metadata")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a dataset. It can be pickled if ``where`` can."""

    name: str
    """As messages and the ``filename`` column show it."""
    where: Any
    """What :func:`pyparq.io.source.open_source` opens: a path, a URL, bytes or a file object."""
    folders: tuple[str, ...] = ()
    """Names of the folders between the dataset's root and the file."""
    size: int | None = None
    """Bytes, where the listing says so."""
    mtime_ns: int | None = None
    inode: int | None = None
    ctime_ns: int | None = None
    """Of a local file. No program can set it, so it tells of writes that have left size and time as they were."""
    above: tuple[str, ...] = ()
    """Names of the folders called ``name=value`` above the root, for files that were named or found by a pattern."""
    logged: tuple[str, str, int] | None = None
    """Of a table's file: the path in the log, the id of the table, and milliseconds since 1970 if the log says when it
    was made. A table never changes a file, so this tells each from all others."""
    fs: Any = field(default=None, compare=False, repr=False)
    """The fsspec file system that listed it. It may hold credentials, so it is not pickled."""
    listed: Stated | None = field(default=None, compare=False, repr=False)
    """What that file system says of its version."""

    def is_as_listed(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Whether a local file is as it was listed. A table's log lists the size alone."""
        return self.size is None or (
            size == self.size and self.mtime_ns in (None, mtime_ns) and self.ctime_ns in (None, ctime_ns)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        stated = self.size, self.mtime_ns, self.inode, self.ctime_ns
        return DataFile, (self.name, self.where, self.folders, *stated, self.above, self.logged)


def data_file(path: str, size: int | None, root: str, logged: tuple[str, str, int] | None = None) -> DataFile:
    """The file at a path or URL of a log. Raises :class:`CorruptFileError` for one that is not where the table is."""
    where = plain_place(path) if isinstance(path, str) else ""
    if not where or "\0" in where or is_url(where) is not is_url(plain_place(root)):
        raise CorruptFileError(f"the table's log names a file that is not where the table is: {path!r}", file=root)
    return DataFile(shown(where) if is_url(where) else where, where, (), size, logged=logged)


def plain_place(uri: str) -> str:
    """A local file's or folder's path. Names in logs of Iceberg are not URL-encoded. Other URLs stay as they are."""
    if not uri.startswith("file:/"):
        return uri
    return "/" + uri.removeprefix("file:").lstrip("/")


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source."""

    root: str
    """What the source is called."""
    files: tuple[DataFile, ...]
    is_one_file: bool = False
    """Whether the source names one file, and cannot stand for several."""
    storage_options: Mapping[str, Any] | None = None
    tables: tuple[Managed, ...] = ()
    """Tables of a table format, as far as the listing of a URL shows them."""
    unfinished: tuple[Unfinished, ...] = ()
    """Commits that have begun and not ended. The files are the ones from before these commits."""
    store_writes: tuple[StoreWrite, ...] = ()
    """Writes to a store that have not ended. The files are the ones from before them or, where they count, after."""
    streams: tuple[str, ...] = ()
    """Folders whose files were chosen by the log of a stream of Spark."""
    catalog: DataFile | None = None
    """The folder itself, if it has a catalog. Of a table the folder that may have one, or a Puffin file."""
    version: tuple[str, int] | None = None
    """Of a table: its id, and the version or the snapshot."""


def is_hidden(name: str) -> bool:
    """Whether readers of datasets ignore a file or folder with this name."""
    return name.startswith((".", "_")) and "=" not in name


def partition_folders_of(folder: str) -> tuple[str, ...]:
    """The names of the form ``name=value`` on the path of a folder or URL."""
    if "=" not in folder:
        return ()
    return tuple(name for name in folder.partition("?")[0].split("/") if name.find("=") > 0)


def folders_between(root: str, folder: str) -> tuple[str, ...]:
    inner = folder[len(root) :].strip("/") if folder.startswith(root) else ""
    return tuple(inner.split("/")) if inner else ()
