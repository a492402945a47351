"""The pages of a column chunk one by one: their headers and contents, as the native decoder finds them.

A scan does not ask for single pages. ``verify``, ``add_indexes`` and pruning by dictionaries do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.format.encodings import DELTA_BYTE_ARRAY, DICTIONARY_ENCODINGS
from pyparq.format.leaf_values import BinaryValues, Values, count_of, empty_values, from_plain_bytes
from pyparq.format.types import LeafType, Physical
from pyparq.options import ReadOptions
from pyparq.read.decode.decoder import Piece, limits_of, spec_of
from pyparq.read.decode.memory_account import Account, Share
from pyparq.read.decode.page_values import PageRun
from pyparq.read.decode.physical_values import check_utf8
from pyparq.read.decode.refusals import page_of, worded
from pyparq.read.footers.column_chunk import Chunk

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 1, 2, 3
"""Numbers of ``PageType`` in parquet.thrift."""

WITHOUT_END = (1 << 62) - 1
_GRANT = 1 << 20
"""Minimum number of bytes that the decoder gets when it asks for memory, if that many are left."""


class ChunkPages:
    """The pages in ``data``, which starts with the first page of ``chunk``.

    Pages are listed until they hold the values that the chunk declares; with ``to_the_end``, to the end of ``data``.
    What cannot be a page behind that many values is left alone. What is decoded is counted in ``share``.
    """

    def __init__(
        self, data: memoryview, chunk: Chunk, options: ReadOptions, share: Share | Account, to_the_end: bool = False
    ) -> None:
        self.data = data
        self.chunk = chunk
        self.fault: ParquetError | None = None
        """Why the list ends early."""
        self._share = share
        self._granted = 0
        leaf, self._untyped = _spec(chunk)
        self._native = kernels.PageReader(leaf, Piece(chunk, data).spec(), limits_of(options), chunk.start)
        refusal = self._native.list_pages(to_the_end, self._more, max(share.left, 0))
        self.num_values: int = self._native.num_values
        """Of all pages, nulls included."""
        self.size: int = self._native.end
        """Bytes of all pages with their headers."""
        self.uncompressed: int = self._native.uncompressed
        """The same before compression; headers count as they are stored."""
        self.dictionary = self._native.dictionary()
        self.pages = self._native.pages()
        if refusal is not None and (self.num_values < chunk.num_values or not self.pages):
            self.fault = self._error(refusal)

    def check(self) -> None:
        """Raise :class:`ParquetError` unless the pages hold exactly the values that the chunk declares."""
        if self.fault is not None:
            raise self.fault
        declared = self.chunk.num_values
        if self.num_values < declared:
            raise CorruptFileError(
                f"the column chunk declares {declared} values, but its pages end after {self.num_values}"
            )
        if self.num_values > declared:
            raise CorruptFileError(f"the column chunk declares {declared} values, but its pages hold {self.num_values}")

    def entries(self, check_text: bool = False) -> Values | None:
        """The entries of the dictionary; ``None`` without a dictionary page. With ``check_text``, text must be
        UTF-8."""
        if self.dictionary is None:
            return None
        if self._untyped is not None:
            raise self._untyped
        found, refusal = self._native.entries(self._more, max(self._share.left, 0))
        if refusal is not None:
            raise self._error(refusal)
        count, offsets, data = found
        values = _values(self.chunk.node.type, count, data if offsets is None else (offsets, data))
        if check_text and self.chunk.node.type.is_text and isinstance(values, BinaryValues):
            with located(page="dictionary"):
                check_utf8(values)
        return values

    def decode(
        self, first: int = 0, last: int = WITHOUT_END, window: int = WITHOUT_END, entries: Values | None = None,
        with_values: bool = True,
    ) -> PageRun:  # fmt: skip
        """What the pages from number ``first`` on hold, none behind number ``last``, until they take ``window`` bytes.

        ``entries``: of the dictionary. Without ``with_values``, their levels alone. What the call before has given out
        is not counted any more.
        """
        if self._untyped is not None:
            raise self._untyped
        count = -1 if entries is None else count_of(entries)
        found, refusal = self._native.decode(
            first, last, window, count, with_values, self._more, max(self._share.left, 0)
        )
        if found is None:
            raise self._error(refusal)
        pages = self.pages[first : first + found.count]
        leaf, values = self.chunk.node.type, found.values
        coded = np.array([page.encoding in DICTIONARY_ENCODINGS for page in pages], bool)
        direct = 0 if values is None or leaf.is_binary else len(values) // leaf.width
        return PageRun(
            found.numbers.reshape(-1, 5), coded, found.repetition_levels, found.definition_levels, found.codes,
            empty_values(leaf) if values is None else _values(leaf, direct, values),
            any(page.encoding == DELTA_BYTE_ARRAY for page in pages),
        )  # fmt: skip

    def release(self, alive: int) -> None:
        """Of what was given out, ``alive`` bytes are still looked at. Nothing is decoded any more."""
        self._share.give(self._granted - alive)
        self._granted = alive

    def _more(self, missing: int) -> tuple[int, int]:
        size = max(missing, min(_GRANT, self._share.left // 8))
        self._share.take(size)
        self._granted += size
        return size, max(self._share.left, 0)

    def _error(self, refusal: Any) -> ParquetError:
        error = worded(refusal, self._share.refusal) if refusal.error is None else refusal.error
        if not isinstance(error, ParquetError):
            raise error
        page = page_of(refusal)
        return error if page is None else error.locate(page=page)


def _spec(chunk: Chunk) -> tuple[kernels.LeafSpec, ParquetError | None]:
    """The leaf in the form of the native decoder. Headers can be read even if its type is not known. Then decoding
    values raises the error."""
    node = chunk.node
    try:
        return spec_of(node), None
    except ParquetError as error:
        return kernels.LeafSpec(Physical.BYTE_ARRAY, 0, node.max_def, node.max_rep), error


def _values(leaf: LeafType, count: int, stored: Any) -> Values:
    if leaf.is_binary:
        return BinaryValues(*stored)
    if leaf.physical == Physical.BOOLEAN:
        found: npt.NDArray[Any] = stored[:count]
        return found
    return from_plain_bytes(stored, count, leaf)
