"""Objects that are written to stores of obstore."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from pyparq.io.object_errors import plainly
from pyparq.io.object_stores import ObjectFile
from pyparq.io.process_ownership import ProcessOwned
from pyparq.io.short_writes import Appender
from pyparq.io.uploads import Upload

IN_MEMORY = 32 << 20
"""Bytes that wait in memory until the end. More of them are uploaded in parts, while the next ones are made."""


class ObjectSink(ProcessOwned):
    """An object that appears, complete, when it is committed. One request or upload puts it."""

    def __init__(self, file: ObjectFile) -> None:
        super().__init__(file.name)
        self._object = file
        self._only: Mapping[str, str] | None = None
        self._waiting: IO[bytes] | None = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # until the commit
        self._appender = Appender(self._waiting, file.name)
        self._upload: Upload | None = None
        self.position = 0

    def replace_only(self, version: Mapping[str, str]) -> None:
        """Replace only this version of the object (:attr:`ObjectFile.version`): :meth:`commit` raises
        :class:`ChangedFileError` where there is another one by then. All bytes wait for that, in a temporary file where
        there are many: stores compare versions for objects that one request puts."""
        self._only = version

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        for part in parts:
            view = memoryview(part).cast("B")
            if self._upload is None and self._only is None and self.position + len(view) > IN_MEMORY:
                self._begin_upload()
            if self._upload is None:
                self._appender.write(view)
            else:
                with plainly(self.name):
                    self._upload.write(view)
            self.position += len(view)

    def _begin_upload(self) -> None:
        waiting, self._waiting, self._upload = self._waiting, None, self._object.upload()
        assert waiting is not None
        with waiting, plainly(self.name):
            waiting.seek(0)
            while piece := waiting.read(1 << 20):
                self._upload.write(memoryview(piece))

    def commit(self) -> None:
        self._check_process()
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
                self._object.put(waiting, self._only)

    def abort(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()

    def _let_go(self) -> None:
        self._waiting = self._upload = None  # both are the parent's
