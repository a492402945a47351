"""Targets of bytes on file systems of fsspec, and in stores of obstore."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import IO, Any

from pyparq.io.atomic_write import hidden_name
from pyparq.io.file_objects import Appender, ProcessOwned
from pyparq.io.file_systems import is_of_pyarrow, is_store
from pyparq.io.folders import Changes
from pyparq.io.object_requests import plainly
from pyparq.io.remote_file import RemoteFile
from pyparq.io.url import plain_errors

IN_MEMORY = 32 << 20
"""Bytes that wait in memory until the end. More of them are uploaded in parts, while the next ones are made."""
_PIECE = 4 << 20
"""Bytes that are handed over at a time."""
_PIECES = 4
"""That wait at most, so that memory stays bounded."""
_STEP = 0.1
"""Seconds between two looks at whether the other side still works."""


class FsspecSink(ProcessOwned):
    """A file on an fsspec file system.

    Object stores show an upload only when it is complete: they are written to directly, and an abort discards the
    upload. Other file systems get a temporary name and a rename.
    """

    def __init__(self, fs: Any, path: str, name: str) -> None:
        from fsspec.spec import AbstractBufferedFile

        self.fs = fs
        self.path = path
        self._temporary = path
        self._file: Any = None
        if not _uploads(fs, AbstractBufferedFile):
            folder, slash, last = path.rpartition("/")
            self._temporary = folder + slash + hidden_name(last)
        self._changes = Changes(fs)
        self._file = self._changes.opened(self._temporary, name)
        self._appender = Appender(self._file, name)
        super().__init__(name)

    def replace_only(self, etag: str) -> None:
        """Replace only the object on S3 with this entity tag: :meth:`commit` raises :class:`ChangedFileError` where
        there is another one by then."""
        call = self._file._call_s3

        def conditional(method: str, *options: Any, **more: Any) -> Any:
            if method in ("put_object", "complete_multipart_upload"):
                more["IfMatch"] = etag
            answer = call(method, *options, **more)
            self.new_version = answer.get("VersionId") or self.new_version
            return answer

        self._file._call_s3 = conditional

    @property
    def place(self) -> tuple[Any, str]:
        """The file system, and the path on it."""
        return self.fs, self.path

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.name, self.path, getattr(self.fs, "storage_options", None))

    @property
    def position(self) -> int:
        return self._appender.position

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        with self._plain_errors():
            for part in parts:
                self._appender.write(memoryview(part).cast("B"))

    def commit(self) -> None:
        self._check_process()
        if self._file is None:
            return
        if self.before_commit is not None:
            self.before_commit()
        file, self._file = self._file, None
        try:
            with self._plain_errors():
                file.close()
            if self._temporary != self.path:
                self._changes.rename(self._temporary, self.path, self.name)
        except BaseException:
            with suppress(Exception):
                if self._temporary != self.path:
                    self._changes.remove(self._temporary, self.name)
                else:
                    file.discard()  # the parts of an upload that is not completed would stay
            with suppress(Exception):
                file.closed = True
            raise

    def abort(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            if self._temporary != self.path:
                file.close()
                self._changes.remove(self._temporary, self.name)
            else:
                file.discard()
                file.closed = True  # closing would complete the upload
        except Exception:
            return

    def _let_go(self) -> None:
        file, self._file = self._file, None
        # Closing it, as its end does, would write what it has in its buffer, or complete the upload.
        with suppress(Exception):
            file.closed = True
        with suppress(Exception):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, file.fileno(), inheritable=False)
            finally:
                os.close(nowhere)


def _uploads(fs: Any, buffered: type) -> bool:
    """Whether files of this file system appear only when they are closed. Writing them is then an upload."""
    if is_of_pyarrow(fs):
        return False  # its files cannot be given up
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return bool(protocols & {"s3", "s3a", "gs", "gcs", "abfs", "az", "abfss", "adl", "oss", "oci"}) and hasattr(
        buffered, "discard"
    )


class ObjectSink(ProcessOwned):
    """An object that appears, complete, when it is committed. One request or upload puts it."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__(file.name)
        self._object = file
        self._only: Mapping[str, str] | None = None
        self._waiting: IO[bytes] | None = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # until the commit
        self._appender = Appender(self._waiting, file.name)
        self._upload: Upload | None = None
        self.position = 0

    @property
    def place(self) -> tuple[Any, str]:
        """The store as a file system, and the path on it."""
        return self._object.place

    def replace_only(self, version: Mapping[str, str]) -> None:
        """Replace only this version of the object (:attr:`RemoteFile.stated_version`): :meth:`commit` raises
        :class:`ChangedFileError` where there is another one by then. All bytes wait for that, in a temporary file where
        there are many: stores compare versions for objects that one request puts."""
        self._only = version

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        for part in parts:
            view = memoryview(part).cast("B")
            if self._upload is None and self._only is None and self.position + len(view) > IN_MEMORY:
                self._start_upload()
            if self._upload is None:
                self._appender.write(view)
            else:
                with plainly(self.name):
                    self._upload.write(view)
            self.position += len(view)

    def _start_upload(self) -> None:
        waiting, self._waiting = self._waiting, None
        self._upload = Upload(partial(self._object.fs.put_in_parts, self._object.path))
        assert waiting is not None
        with waiting, plainly(self.name):
            waiting.seek(0)
            while piece := waiting.read(1 << 20):
                self._upload.write(memoryview(piece))

    def commit(self) -> None:
        self._check_process()
        if self.before_commit is not None:
            self.before_commit()
        if self._upload is not None:
            upload, self._upload = self._upload, None
            try:
                with plainly(self.name):
                    upload.finish()
            except BaseException:
                upload.abort()
                raise
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            with waiting:
                waiting.seek(0)
                self.new_version = self._object.fs.put(self._object.path, waiting, self.name, self._only)

    def abort(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()

    def _let_go(self) -> None:
        self._waiting = self._upload = None  # both are the parent's


class _AbortedError(Exception):
    """Makes obstore give up an upload, and remove its parts."""


class Upload:
    """Bytes on their way. It belongs to the process that began it."""

    def __init__(self, put: Callable[[Iterator[bytes]], object]) -> None:
        """``put``: uploads all that an iterator gives. It runs in a thread of its own."""
        self._gathered = bytearray()
        self._pieces: queue.Queue[bytes | None] = queue.Queue(_PIECES)
        self._is_aborted = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(put,), name="pyparq-upload", daemon=True)
        self._thread.start()

    def _run(self, put: Callable[[Iterator[bytes]], object]) -> None:
        try:
            put(self._taken())
        except BaseException as error:
            self._error = error

    def _taken(self) -> Iterator[bytes]:
        while True:
            try:
                piece = self._pieces.get(timeout=_STEP)
            except queue.Empty:
                piece = b""
            if self._is_aborted.is_set():
                raise _AbortedError
            if piece is None:
                return
            if piece:
                yield piece

    def write(self, data: memoryview) -> None:
        """Raises the error in which the upload has ended."""
        self._gathered += data
        if len(self._gathered) >= _PIECE:
            self._hand_over(bytes(self._gathered))
            self._gathered.clear()

    def _hand_over(self, piece: bytes | None) -> None:
        while True:
            if not self._thread.is_alive():
                raise self._error or OSError("the upload has ended too early")
            try:
                return self._pieces.put(piece, timeout=_STEP)
            except queue.Full:
                continue

    def finish(self) -> None:
        """Wait until the object is complete. Raises the error in which the upload has ended."""
        if self._gathered:
            self._hand_over(bytes(self._gathered))
            self._gathered.clear()
        self._hand_over(None)
        while self._thread.is_alive():
            self._thread.join(_STEP)
        if self._error is not None:
            raise self._error

    def abort(self) -> None:
        """Give the upload up, and wait until its parts are removed, but not for long."""
        self._is_aborted.set()
        self._gathered.clear()
        self._thread.join(5.0)


def sink_on(fs: Any, path: str, name: str) -> FsspecSink | ObjectSink:
    """A sink for a file on a file system of fsspec's, or in a store."""
    if not is_store(fs):
        return FsspecSink(fs, path, name)
    if fs.is_odd(path):
        return FsspecSink(fs.behind_fsspec(), path, name)
    return ObjectSink(RemoteFile(fs, path, name))
