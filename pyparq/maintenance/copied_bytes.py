"""Copies bytes from one file into another."""

from __future__ import annotations

from pyparq.io.byte_ranges import Source
from pyparq.io.sink import LocalSink, Sink
from pyparq.io.source import LocalFile
from pyparq.runtime.threads import check_stopped

_PIECE, _REMOTE_PIECE = 8 << 20, 32 << 20
"""Bytes that are in memory at a time, if the system cannot copy them itself. Each request to a store takes long, so its
pieces are larger."""


def copy_range(sink: Sink, source: Source, start: int, stop: int) -> None:
    """Append bytes ``[start, stop)`` of ``source`` to ``sink``. Raises :class:`CorruptFileError` if the source ends
    before."""
    if isinstance(sink, LocalSink) and isinstance(source, LocalFile):
        sink.take_range(source.fileno(), start, stop)
        return
    piece = _PIECE if source.is_local else _REMOTE_PIECE
    for at in range(start, stop, piece):
        check_stopped()
        sink.write(source.read_ranges([(at, min(piece, stop - at))]))
