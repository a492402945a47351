"""An upload of a large object in parts, which goes on in a thread while the next bytes are made."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

_PIECE = 4 << 20
"""Bytes that are handed over at a time."""
_PIECES = 4
"""That wait at most, so that memory stays bounded."""
_STEP = 0.1
"""Seconds between two looks at whether the other side still works."""


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
