"""The files of a catalog: their names, ``catalog.json``, which says what they hold, the folder in which they lie, on a
local disk or in a store, and the proof of every byte.

``catalog.json`` is replaced last, so that a catalog is there as a whole or not at all. It names the other files with
their sizes and checksums. Those are never changed: an update writes new ones under new names. A catalog that is wrong
would lose rows without a word. So nothing of it is believed that is not covered by the checksums: footers, page
headers and indexes neither.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
import posixpath
import secrets
import shutil
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from pyparq.errors import ChecksumError, CorruptFileError, OptionError, UnsupportedError
from pyparq.io.byte_ranges import Range, Source
from pyparq.io.folders import Changes, Folders
from pyparq.io.locations import file_system, path_on
from pyparq.io.remote_sinks import sink_on
from pyparq.io.retry import Retry
from pyparq.io.sink import Sink, own_sink
from pyparq.io.source import LocalFile, source_on
from pyparq.io.url import expanded, is_url, local_path, shown
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file

FOLDER = "_pyparq_catalog"
HEAD = "catalog.json"
Key: TypeAlias = tuple[Any, ...]
"""A key column: its path in files, or its field id alone for a table that finds columns by it."""
VERSION = 1
"""Must grow with every change in the contents or the meaning of a catalog."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a catalog."""

    name: str
    size: int
    rows: int
    block: int
    """Bytes of each block that has a checksum."""
    checks: bytes = field(repr=False)
    """The CRC-32 of each block, four bytes each, little-endian."""
    tail: int = 0
    """Bytes at the end of the file with its footer and page indexes."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part with keys. Its hashes are sorted, and those of other segments of the column may lie between them."""

    part: Part
    column: int
    """Number of the key column."""
    bits: int
    """The upper bits of the XXH64 hashes that are stored."""
    low: int
    high: int
    """The smallest and the largest of the stored hashes."""


@dataclass(frozen=True, slots=True)
class Head:
    """What ``catalog.json`` states."""

    columns: tuple[Key, ...]
    """The key columns."""
    kinds: tuple[bytes, ...]
    """Footers without row groups: one for each kind of file."""
    files: Part
    bounds: Part | None
    segments: tuple[Segment, ...]
    num_files: int
    next_number: int
    """Number for the next file. Numbers are never used again."""
    partitions: Mapping[str, str] | None
    """The partition columns of folders called ``name=value``, with their types. ``None`` if folders do not agree."""
    kind_order: tuple[int, ...]
    """The kinds of the files, in the order in which they first occur in the dataset."""
    is_complete: bool
    """Whether no file of the dataset was left out."""
    previous: tuple[str, ...] = ()
    """Parts of the catalog before this one, which readers may still use."""
    table: tuple[str, int] | None = None
    """The id of the table that it was made from, and the version or snapshot. ``None`` for a folder."""
    checksum: str = ""
    """Of the contents: it tells one catalog from another."""

    @property
    def parts(self) -> list[Part]:
        bounds = [] if self.bounds is None else [self.bounds]
        return [self.files, *bounds, *(segment.part for segment in self.segments)]

    def to_bytes(self) -> bytes:
        """As it is stored."""
        stated = {
            "format": "pyparq catalog", "version": VERSION, "columns": self.columns,
            "kinds": [_text(zlib.compress(kind)) for kind in self.kinds],
            "files": _part_state(self.files), "bounds": None if self.bounds is None else _part_state(self.bounds),
            "segments": [{**asdict(segment), "part": _part_state(segment.part)} for segment in self.segments],
            "num_files": self.num_files, "next_number": self.next_number,
            "partitions": None if self.partitions is None else dict(self.partitions),
            "kind_order": self.kind_order, "is_complete": self.is_complete, "previous": self.previous,
            "table": self.table,
        }  # fmt: skip
        return json.dumps({"checksum": _checksum(stated), "catalog": stated}, indent=1).encode()


def parse_head(data: bytes | memoryview, name: str) -> Head:
    """Raises :class:`CorruptFileError` for damage, and :class:`UnsupportedError` for a catalog of another version."""
    try:
        given = json.loads(bytes(data))
        stated, checksum = given["catalog"], given["checksum"]
        version = stated["version"]
        if _checksum(stated) != checksum:
            raise ValueError("its checksum does not fit its contents")
        if version != VERSION:
            raise UnsupportedError(
                f"the catalog has the form of another version of pyparq ({version}, not {VERSION}): make it anew with "
                "pyparq.index_dataset", file=name,
            )  # fmt: skip
        return replace(_head(stated), checksum=checksum)
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        raise CorruptFileError(f"the catalog is damaged: {error}", file=name) from None


def _head(stated: Mapping[str, Any]) -> Head:
    return Head(
        columns=tuple(tuple(path) for path in stated["columns"]),
        kinds=tuple(zlib.decompress(base64.b64decode(kind)) for kind in stated["kinds"]),
        files=_part(stated["files"]),
        bounds=None if stated["bounds"] is None else _part(stated["bounds"]),
        segments=tuple(Segment(**{**segment, "part": _part(segment["part"])}) for segment in stated["segments"]),
        num_files=stated["num_files"], next_number=stated["next_number"], partitions=stated["partitions"],
        kind_order=tuple(stated["kind_order"]), is_complete=stated["is_complete"],
        previous=tuple(map(_plain, stated["previous"])), table=tuple(stated.get("table") or ()) or None,
    )  # fmt: skip


def _part_state(part: Part) -> dict[str, Any]:
    return {**asdict(part), "checks": _text(part.checks)}


def _part(stated: Mapping[str, Any]) -> Part:
    return Part(**{**stated, "name": _plain(stated["name"]), "checks": base64.b64decode(stated["checks"])})


def _plain(name: str) -> str:
    """A name in the catalog's folder. A catalog may come from elsewhere, and name anything."""
    if name in ("", ".", "..") or posixpath.basename(name) != name or os.path.basename(name) != name:
        raise ValueError(f"{name!r} is not the name of a part")
    return name


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _checksum(stated: Any) -> str:
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def new_name(kind: str) -> str:
    """A name that no part has yet. It does not end as data files do: globs of other tools, ``**/*.parquet``, would take
    the part for data."""
    return f"{kind}-{secrets.token_hex(8)}.catalog"


BLOCK = 64 << 10
"""Bytes that a checksum covers, at least."""
MOST_BLOCKS = 8192
"""Checksums of a part. Larger parts have larger blocks."""
KEPT = 64
"""Blocks that stay in memory, those used last."""


class CheckedSource:
    """A part of a catalog."""

    def __init__(self, opened: Callable[[], Source], part: Part, name: str, is_local: bool, start: int = 0) -> None:
        """``opened``: opens the file, once for each read if it is local. ``start``: where the part begins in it."""
        self.name = name
        self.is_local = is_local
        self.size = part.size
        self._part, self._start = part, start
        self._checks = np.frombuffer(part.checks, "<u4")
        self._opened = opened
        self._source: Source | None = None
        self._kept: OrderedDict[int, memoryview] = OrderedDict()
        if len(self._checks) != -(-part.size // part.block):
            raise CorruptFileError("the catalog is damaged: a part has too few checksums", file=name)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        size, block = self.size, self._part.block
        if any(start < 0 or start + length > size for start, length in ranges):
            raise CorruptFileError("the file ends within a range that is read", file=self.name)
        needed = {k for start, length in ranges for k in range(start // block, -(-(start + length) // block))}
        have = dict(self._kept.copy())
        missing = sorted(needed - have.keys())
        have |= self._read(missing) if missing else {}
        for k in missing[-KEPT:]:
            self._kept[k] = have[k]
        while len(self._kept) > KEPT:
            with suppress(KeyError):  # another thread has done it
                self._kept.popitem(last=False)
        return [self._cut(have, start, length) for start, length in ranges]

    def _cut(self, have: dict[int, memoryview], start: int, length: int) -> memoryview:
        block = self._part.block
        first, last = start // block, -(-(start + length) // block)
        data = have[first] if last - first == 1 else memoryview(b"".join(have[k] for k in range(first, last)))
        return data[start - first * block : start - first * block + length]

    def _read(self, numbers: list[int]) -> dict[int, memoryview]:
        """These blocks, whose checksums fit. Neighbours are one request."""
        runs: list[list[int]] = []
        for k in numbers:
            if runs and k == runs[-1][1]:
                runs[-1][1] = k + 1
            else:
                runs.append([k, k + 1])
        block, at, found = self._part.block, self._start, dict[int, memoryview]()
        ranges = [(at + first * block, min(last * block, self.size) - first * block) for first, last in runs]
        for (first, last), data in zip(runs, self._bytes(ranges), strict=True):
            for k in range(first, last):
                piece = data[(k - first) * block : (k + 1 - first) * block]
                if zlib.crc32(piece) != int(self._checks[k]):
                    raise ChecksumError(
                        "the catalog is damaged: make it anew with pyparq.index_dataset", file=self.name
                    )
                found[k] = piece
        return found

    def _bytes(self, ranges: list[Range]) -> list[memoryview]:
        if not self.is_local:
            self._source = self._source or self._opened()
            return self._source.read_ranges(ranges)
        source = self._opened()
        try:
            return source.read_ranges(ranges)
        finally:
            source.close()

    def close(self) -> None:
        """Nothing is open between two reads."""


class CheckingSink:
    """A sink that computes the checksums of what is written to it."""

    def __init__(self, sink: Sink, block: int = BLOCK) -> None:
        self.name = sink.name
        self._sink = sink
        self._block = block
        self._checks: list[int] = []
        self._crc, self._room = 0, block

    @property
    def position(self) -> int:
        return self._sink.position

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
            while len(view):
                taken, view = view[: self._room], view[self._room :]
                self._crc = zlib.crc32(taken, self._crc)
                self._room -= len(taken)
                if not self._room:
                    self._end_block()
        self._sink.write(parts)

    def _end_block(self) -> None:
        self._checks.append(self._crc)
        self._crc, self._room = 0, self._block

    def commit(self) -> None:
        self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()

    def part(self, name: str, rows: int, tail: int) -> Part:
        """What was written."""
        if self._room < self._block:
            self._end_block()
        checks = np.array(self._checks, "<u4").tobytes()
        return Part(name, self.position, rows, self._block, checks, tail)


def block_for(size: int) -> int:
    """The block size for a part of about ``size`` bytes."""
    block = BLOCK
    while size > block * MOST_BLOCKS:
        block *= 2
    return block


HEAD_BYTES = 1 << 20
"""Bytes of ``catalog.json`` that the first request asks for. Few are larger."""
WHOLE = 16 << 20
"""Parts up to this size are read at once where all of them is needed: 10^5 files take 4 MB."""
ABANDONED = 24 * 3600
"""Seconds after which a part that no catalog names is removed: the run that wrote it has ended."""


class Place:
    """The catalog's folder of a dataset."""

    def __init__(
        self, root: str, storage_options: Mapping[str, Any] | None = None, fs: Any = None, retry: Retry | None = None
    ) -> None:
        """``root``: path or URL of the dataset. ``fs``: its file system, if it is known. ``retry``: how reads that fail
        for the moment are made again."""
        self.retry = retry or Retry()
        self.fs = fs
        """``None`` for a local folder."""
        self.root = local_path(root) or expanded(root)
        """The path of the dataset on its file system."""
        self.root_name = self.root
        if is_url(root):
            if fs is None:
                self.fs, path = file_system(root, "reading", "read from", storage_options)
            else:
                path = path_on(fs, root)
            self.root, self.root_name = path.rstrip("/"), shown(root)
        self._folder = posixpath.join(self.root, FOLDER)
        self.name = posixpath.join(self.root_name, FOLDER)
        self._options = storage_options

    @property
    def is_local(self) -> bool:
        return self.fs is None

    def is_there(self) -> bool:
        """Whether there is a folder for a catalog. A store is asked."""
        return os.path.isdir(self._folder) if self.fs is None else Folders(self.fs, self.retry).is_folder(self._folder)

    def remove_folder(self) -> None:
        """Remove the catalog with all that is in its folder. Readers ask the files then."""
        if self.is_local:
            shutil.rmtree(self._folder)
        else:
            Changes(self.fs, self._options).remove_folder(self._folder, self.name)

    def _path(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def _name(self, name: str) -> str:
        return posixpath.join(self.name, name)

    def _source(self, name: str) -> Source:
        if self.fs is None:
            return LocalFile(self._path(name))
        source = source_on(self.fs, self._path(name), self._name(name))
        source.retry = self.retry
        return source

    def head(self) -> Head | None:
        """What the catalog states; ``None`` where there is none. Raises what :func:`parse_head` does."""
        try:
            source = self._source(HEAD)
            try:
                return parse_head(_whole(source), self._name(HEAD))
            finally:
                source.close()
        except FileNotFoundError:
            return None

    def checked(self, part: Part) -> CheckedSource:
        return CheckedSource(lambda: self._source(part.name), part, self._name(part.name), self.is_local)

    def opened(self, part: Part, whole: bool = False) -> OpenFile:
        """A part, with its footer. ``whole``: all of it is needed, and is read at once if it is small."""
        tail = part.size if whole and part.size <= WHOLE else max(part.tail, 8)
        return open_file(self.checked(part), ReadOptions(tail_size=tail, coalesce_gap=0, use_threads=False))

    # ---- writing

    def begin(self) -> None:
        """Make the folder."""
        if self.fs is None:
            if os.path.islink(self._folder):
                raise OptionError(
                    "the catalog's folder is a link to another folder: remove the link", file=self._folder
                )
            os.makedirs(self._folder, exist_ok=True)
        else:
            Changes(self.fs, self._options).make_folder(self._folder, self.name)

    def sink(self, name: str) -> Sink:
        """What a new part is written to."""
        if self.fs is None:
            return own_sink(self._path(name))
        return sink_on(self.fs, self._path(name), self._name(name))

    def put(self, head: Head, stale: Collection[str] = ()) -> None:
        """Make this the catalog. ``stale``: parts that are removed, which the catalog before it did not name."""
        data = head.to_bytes()
        if self.fs is None:
            sink = own_sink(self._path(HEAD), fsync=True)
            sink.write([data])
            sink.commit()
        else:
            Changes(self.fs, self._options).put(self._path(HEAD), data, self._name(HEAD))
        kept = {HEAD, *head.previous, *(part.name for part in head.parts)}
        with suppress(OSError):  # what is left over is removed by the next update
            for name in {*stale, *self._abandoned()} - kept:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a part, if it is there."""
        with suppress(FileNotFoundError):
            if self.fs is None:
                os.unlink(self._path(name))
            else:
                Changes(self.fs, self._options).remove(self._path(name), self._name(name))

    def remove_all(self, segments: Iterable[Segment]) -> None:
        """Remove the parts of these segments."""
        for segment in segments:
            self.remove(segment.part.name)

    def _abandoned(self) -> list[str]:
        """The files of the folder that have not changed for a day."""
        before = time.time() - ABANDONED
        if self.fs is None:
            with os.scandir(self._folder) as entries:
                return [entry.name for entry in entries if entry.is_file() and entry.stat().st_mtime < before]
        times = {posixpath.basename(str(info["name"])): _time(info) for info in Folders(self.fs).entries(self._folder)}
        return [name for name, at in times.items() if at < before]


def _time(info: Mapping[str, Any]) -> float:
    """When a store says that a file was written; now, if it does not say so."""
    found = next((info[key] for key in ("LastModified", "last_modified", "updated") if info.get(key)), None)
    return found.timestamp() if isinstance(found, dt.datetime) else time.time()


def _whole(source: Source) -> bytes | memoryview:
    end = end_of(source)
    start = source.size - len(end)
    return end if start == 0 else b"".join((source.read_ranges([(0, start)])[0], end))


def end_of(source: Source) -> memoryview:
    """The last :data:`HEAD_BYTES` of a file, and its size with them."""
    read_end = getattr(source, "read_end", None)
    if read_end is not None:
        return memoryview(read_end(HEAD_BYTES))
    length = min(source.size, HEAD_BYTES)
    return source.read_ranges([(source.size - length, length)])[0]
