"""Makes files from files, each in its place or at a target: which files a source has, and the run over one of them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.discovery import discover
from pyparq.encryption.material import parse_external, parse_fields, reference_of, sibling_name
from pyparq.errors import ChangedFileError, ChangedMeanwhile, EncryptionError, OptionError, ParquetError, located
from pyparq.io.companion_files import material_stored
from pyparq.io.file_systems import takes_several
from pyparq.io.folders import Changes
from pyparq.io.locations import file_system, path_on
from pyparq.io.object_file import ObjectFile
from pyparq.io.remote_file import RemoteFile
from pyparq.io.retry import Retry
from pyparq.io.siblings import base_name, read_sibling
from pyparq.io.sink import LocalSink, Sink, copied_in_store, copy_range, kept_version, open_sink, replacing_sink
from pyparq.io.source import names_many, open_source
from pyparq.io.table_formats import Known, check_streams, format_of
from pyparq.io.url import is_url, local_path, shown
from pyparq.maintenance.in_place import (
    InPlace,
    ask_whether_managed,
    check_not_managed,
    check_not_managed_remotely,
    check_unchanged,
    found_to_change,
    is_same_file,
    local_file,
    state_of,
)
from pyparq.maintenance.report import Outcome
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file
from pyparq.runtime.threads import map_requests, runs_within

ATTEMPTS = 20
"""How often a file that changes all the time is begun anew."""

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], Any]
"""Called with the number of files done, and of all."""


class Writer(Protocol):
    """Writes the new file to a sink, which the caller commits."""

    def write(self, sink: Sink) -> None: ...


class Removal:
    """The file goes, and no other takes its place. Only for files in their own place."""


Prepare = Callable[[OpenFile], "Writer | Removal | None"]
"""Looks at a file. Returns what writes the new one, or ``None`` if nothing has to be changed."""


@dataclass(frozen=True, slots=True)
class Job:
    """The source and the target of one file."""

    source: Any
    target: Any
    """``None``: its own place."""
    options: ReadOptions
    storage_options: Mapping[str, Any] | None = None
    force: bool = False
    fsync: bool = False
    known: Known = field(default_factory=dict, compare=False, repr=False)
    """Of the folders in the store, shared by the jobs of one call."""
    size: int | None = None
    """Bytes of a source that other ones may be worked on beside (:func:`side_by_side`)."""
    opened: OpenFile | None = None
    """The source, where it is open already: an object in a store, which is replaced only as it was read."""


def run(job: Job, prepare: Prepare) -> Outcome:
    """Run a job.

    An in-place job starts again if the file has changed in the meantime, so ``prepare`` may be called several times.
    Raises :class:`OptionError` for a source that cannot be replaced in place, and for files of a table format. Raises
    :class:`ChangedFileError` for a file that changes all the time.
    """
    path = local_file(job.source)
    if job.target is None or (path is not None and is_same_file(path, job.target)):
        if path is not None:
            return _in_place(job, path, prepare)
        if not is_url(job.source) and not isinstance(job.source, ObjectFile):
            raise OptionError(
                f"a {type(job.source).__name__} cannot be replaced in place: "
                "give a path, a URL, an ObjectFile or a target"
            )
        return _to_target(job, job.source, prepare, copies=False)
    return _to_target(job, job.target, prepare, copies=True)


def _in_place(job: Job, path: str, prepare: Prepare) -> Outcome:
    check_not_managed(path, job.force)
    for _ in range(ATTEMPTS):
        place = InPlace(path)
        try:
            return _replace(job, place, prepare)
        except ChangedMeanwhile:
            continue
        finally:
            place.close()
    raise ChangedFileError("the file changes all the time: other programs write to it", file=path)


def _replace(job: Job, place: InPlace, prepare: Prepare) -> Outcome:
    with located(file=place.path):
        try:
            file = open_file(place.source, job.options)
            writer = prepare(file)
            if writer is None:
                return Outcome(False, place.path)
            if isinstance(writer, Removal):
                return Outcome(True, place.path, tuple(place.remove()))
            sink = LocalSink(place.real, job.fsync)
            try:
                _write(writer, sink)
                return Outcome(True, place.path, tuple(place.commit(sink)))
            finally:
                sink.abort()
        except (ParquetError, OSError):
            place.check()  # the failure may come from a change of the file
            raise


def _to_target(job: Job, target: Any, prepare: Prepare, copies: bool) -> Outcome:
    source = open_source(job.source, job.storage_options) if job.opened is None else job.opened.fetcher.source
    try:
        with located(file=source.name):
            if not copies and isinstance(source, RemoteFile):
                check_not_managed_remotely(source, job.force, job.known)
            before = state_of(source)
            file = job.opened or open_file(source, job.options)
            writer = prepare(file)
            if writer is None and not copies:
                return Outcome(False, source.name)
            if isinstance(writer, Removal):
                _remove(source, job)
                return Outcome(True, source.name, old_version=kept_version(source, None))
            writer = writer or _Copy(file)
            if copies:
                sink = open_sink(target, job.fsync, job.storage_options if is_url(target) else None)
            else:
                sink = replacing_sink(target, file.fetcher.source, job.fsync, job.storage_options)
            try:
                _write(writer, sink)
                if copies:
                    check_unchanged(file.fetcher.source, before)
                with _key_material(file, sink, job.fsync):
                    sink.commit()
            finally:
                sink.abort()
            old_version = "" if copies else kept_version(source, sink)
            return Outcome(True, sink.name, copied_in_store=copied_in_store(sink), old_version=old_version)
    finally:
        if source is not job.source and job.opened is None:
            source.close()


def _remove(source: Any, job: Job) -> None:
    """Remove an object that is still as it was read."""
    if not isinstance(source, RemoteFile):
        raise OptionError("only a file at a path or URL can be removed", file=source.name)
    source.check_now()
    Changes(source.fs, job.storage_options).remove(source.path, source.name)


def _key_material(file: OpenFile, sink: Sink, fsync: bool) -> AbstractContextManager[Any]:
    """Store the key material that lies beside an encrypted file beside its copy, too."""
    info = file.decryption.info
    if info is None or info.key_metadata is None:
        return nullcontext()
    try:
        if reference_of(parse_fields(info.key_metadata)) is None:
            return nullcontext()
    except EncryptionError:  # another kind of key metadata
        return nullcontext()
    source = file.fetcher.source
    material = parse_external(read_sibling(source, sibling_name(base_name(source.name))))
    return material_stored(sink, sibling_name(base_name(sink.name)), material, fsync)


def _write(writer: Writer, sink: Sink) -> None:
    """Write the file. If the disk is full, the error names the new file."""
    try:
        writer.write(sink)
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = sink.name
        raise


class _Copy:
    """The unchanged file."""

    def __init__(self, file: OpenFile) -> None:
        self._fetcher = file.fetcher

    def write(self, sink: Sink) -> None:
        copy_range(sink, self._fetcher, 0, self._fetcher.source.size)


# ---- the files of a source -------------------------------------------------------------------------------------------


def jobs_of(
    source: Any,
    target: Any,
    options: ReadOptions,
    storage_options: Mapping[str, Any] | None,
    force: bool,
    fsync: bool,
) -> list[Job]:
    """The files of a source with their targets.

    Raises ``FileNotFoundError`` if there are none, and :class:`OptionError` if two files would get one target.
    """
    source = opened_table(source)
    if not isinstance(source, Dataset) and not names_many(source):
        return [Job(source, target, options, storage_options, force, fsync)]
    if isinstance(source, Dataset):
        if target is not None:
            check_no_table(source)
        own = files_of(source)
        found, storage_options = own.found, own.found.storage_options or storage_options
        if options.decryption is None:
            options = replace(options, decryption=own.options.decryption)
    else:
        retry = Retry(options.retries, options.retry_wait)
        found = (found_to_change if target is None else discover)(source, storage_options, retry)
    files = found.files
    listed, known = isinstance(source, (list, tuple)), dict[str, Any]()
    if target is None:
        check_streams(found.streams, force)
        if not force:
            ask_whether_managed(((f.fs, path_on(f.fs, f.where)) for f in files if f.fs is not None), known)
    targets = [None] * len(files) if target is None else _targets(files, target, listed, storage_options)
    return [
        Job(file.where, place, options, storage_options, force, fsync, known, size_in_store(file))
        for file, place in zip(files, targets, strict=True)
    ]


AT_A_TIME, TOGETHER = 64, 32 << 20
"""Small objects in a store that are worked on at the same time, and how many bytes they may have together."""


def size_in_store(file: DataFile) -> int | None:
    """The bytes of an object of which several can be asked for at the same time. ``None`` for any other file."""
    return file.size if file.fs is not None and takes_several(file.fs) else None


def side_by_side(
    function: Callable[[T], R], items: Sequence[T], sizes: Sequence[int | None], progress: Progress | None = None
) -> list[R]:
    """``[function(item) for item in items]``. Small objects in a store are worked on at the same time: their requests
    take most of the time. Other files come one after the other, so that one of them is in memory.

    ``sizes``: :func:`size_in_store` of each. ``progress``: called with the number of items done, and of all."""
    results = list[R]()
    counted = [TOGETHER + 1 if size is None else size for size in sizes]
    for part in runs_within(items, (counted, TOGETHER), ([1] * len(items), AT_A_TIME)):
        results += map_requests(function, part, AT_A_TIME) if len(part) > 1 else [function(part[0])]
        if progress is not None:
            progress(len(results), len(items))
    return results


def opened_table(source: Any) -> Any:
    """A table of Delta Lake or Iceberg as a dataset. Any other source is returned as it is."""
    return Dataset(source) if format_of(source) is not None else source


def check_no_table(source: Dataset) -> None:
    """Raise :class:`OptionError` for the dataset of a table of Delta Lake or Iceberg: copies of its files would bring
    deleted rows back, and lose the table's names and partitions."""
    table = files_of(source).table
    if table is not None:
        raise OptionError(
            f"{source.root} is a table of {table.kind}, and copies of its files would bring deleted rows back: "
            "pyparq.rewrite writes the rows that it has"
        )


def _targets(
    files: tuple[DataFile, ...], target: Any, listed: bool, storage_options: Mapping[str, Any] | None
) -> list[str]:
    """The target of each file in the folder ``target``: the same relative path as below the source's root."""
    if not isinstance(target, (str, os.PathLike)):
        raise OptionError(f"the target of many files must be a folder, not {type(target).__name__}")
    folder = os.fsdecode(os.fspath(target))
    remote = is_url(folder)
    folder = folder if remote else local_path(folder) or folder
    if not remote and os.path.exists(folder) and not os.path.isdir(folder):
        raise OptionError(f"the target of many files must be a folder, and {folder!r} is a file")
    found: dict[str, str] = {}
    for file, inner in zip(files, _inner_paths(files, listed), strict=True):
        if inner in found:
            raise OptionError(f"{found[inner]} and {file.name} would both be written to {inner!r} in the target folder")
        found[inner] = file.name
    if remote:
        return _in_remote_folder(folder.rstrip("/"), list(found), storage_options)
    places = [os.path.join(folder, inner) for inner in found]
    for place in places:
        os.makedirs(os.path.dirname(place), exist_ok=True)
    return places


def _in_remote_folder(folder: str, inner: list[str], storage_options: Mapping[str, Any] | None) -> list[str]:
    """The targets, whose folders are made: some remote file systems have real ones."""
    fs, path = file_system(folder, "writing", "write to", storage_options)
    changes = Changes(fs, storage_options)
    for name in sorted({posixpath.dirname(name) for name in inner}):
        changes.make_folder(posixpath.join(path, name).rstrip("/"), posixpath.join(shown(folder), name))
    return [f"{folder}/{name}" for name in inner]


def _inner_paths(files: tuple[DataFile, ...], listed: bool) -> list[str]:
    """The path of each file below the root. A list has no root of its own; the common folder of all files takes its
    place."""
    if not listed:
        return [posixpath.join(*file.folders, posixpath.basename(file.name)) for file in files]
    paths = [file.name if is_url(file.name) else os.path.abspath(file.name) for file in files]
    root = os.path.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    return [posixpath.relpath(path, root) for path in paths]
