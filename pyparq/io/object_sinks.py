"""Objects that are written to stores of obstore."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from pyparq.io.object_stores import ObjectFile
from pyparq.io.process_ownership import ProcessOwned
from pyparq.io.short_writes import Appender

_IN_MEMORY = 32 << 20
"""Bytes that wait in memory. More of them wait in a temporary file."""


class ObjectSink(ProcessOwned):
    """An object that appears, complete, when it is committed. One request or upload puts it."""

    def __init__(self, file: ObjectFile) -> None:
        super().__init__(file.name)
        self._object = file
        self._only: Mapping[str, str] | None = None
        self._waiting: IO[bytes] | None = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  # until the commit
        self._appender = Appender(self._waiting, file.name)

    @property
    def position(self) -> int:
        return self._appender.position

    def replace_only(self, version: Mapping[str, str]) -> None:
        """Replace only this version of the object (:attr:`ObjectFile.version`): :meth:`commit` raises
        :class:`ChangedFileError` where there is another one by then."""
        self._only = version

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        for part in parts:
            self._appender.write(memoryview(part).cast("B"))

    def commit(self) -> None:
        self._check_process()
        if self._waiting is None:
            return
        waiting, self._waiting = self._waiting, None
        with waiting:
            waiting.seek(0)
            self._object.put(waiting, self._only)

    def abort(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()

    def _let_go(self) -> None:
        self._waiting = None  # the file is the parent's
