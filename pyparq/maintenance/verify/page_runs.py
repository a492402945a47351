"""Pages that are opened together by one native loop, as far as they are of the usual kind.

Page by page, what Python has to do takes as long as inflating a small one, and keeps other threads waiting. All others
are opened by ``pages.py``, which says what is wrong with one.
"""

from __future__ import annotations

import zlib
from typing import Any

from pyparq import kernels
from pyparq.errors import UnsupportedError
from pyparq.format.compression import SNAPPY, library_decoder, most_per_byte
from pyparq.options import ReadOptions
from pyparq.read.decode.memory_account import Share
from pyparq.read.decode.pages import Levels, PageBuffers, PageWalk
from pyparq.read.footers.column_chunk import Chunk

SpelledPage = tuple[int, Levels | None, Levels | None, int, int, Any]
"""What :class:`~pyparq.read.decode.pages.PageParts` holds, in its order."""

_CRC = kernels.Crc32(zlib.crc32, getattr(zlib, "__file__", ""))


class Together:
    """Opens pages of one chunk into ``buffers``."""

    def __init__(self, chunk: Chunk, options: ReadOptions, buffers: PageBuffers, share: Share) -> None:
        self._share = share
        limits, meta = options.limits, chunk.meta
        self._terms = (
            chunk.node.max_def, chunk.node.max_rep, limits.max_page, limits.expansion_floor, limits.max_expansion,
            limits.max_values_per_byte, most_per_byte(meta.codec),
        )  # fmt: skip
        self._crc = _CRC if options.verify_checksums and not chunk.crypto.authenticates_pages else None
        try:
            decode = library_decoder(meta.codec)
        except UnsupportedError:
            decode = _no_decoder
        self._inflater = kernels.Inflater(
            decode, meta.codec == SNAPPY, buffers.decompressed, chunk.crypto.unsealer(buffers.decrypted)
        )

    def next(self, walk: PageWalk, window: int) -> list[SpelledPage]:
        """The next pages of a whole chunk, until ``window`` bytes of values and levels are there, no more values than
        are declared; none where the next one is special.

        Raises :class:`LimitError` for a page that takes more memory than may be taken."""
        while True:
            found, end, lacking = kernels.open_run(
                walk.data, walk.at, walk.ordinal, walk.left, self._terms, window, self._share.room,
                self._inflater, self._crc,
            )  # fmt: skip
            if not lacking:
                break
            self._share.make_room(lacking)
        walk.at = end
        walk.passed(sum(page[0] for page in found), len(found))
        return found


def _no_decoder(stored: Any, out: Any) -> int:
    """Of a codec that no library reads: pages of nothing, or stored as they are, can be read all the same."""
    return -1
