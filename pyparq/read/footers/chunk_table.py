"""The column chunks of a file as arrays of the shape (row groups, columns), checked against the schema and the file at
once.

A chunk with anything unusual is only marked here. :meth:`pyparq.read.footers.open_file.OpenFile.chunk` then looks at it
by itself: it reads the chunk anyway, or raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.chunk_numbers import ALL_DICTIONARY, HAS_STATISTICS, ChunkNumbers
from pyparq.format.encodings import BIT_PACKED, DICTIONARY_ENCODINGS, PLAIN_DICTIONARY, RLE
from pyparq.read.footers.leaf_set import LeafSet

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

DATA_PAGE, DATA_PAGE_V2 = 0, 3

_CODEC, _NUM_VALUES, _DICTIONARY_PAGE = (
    ChunkNumbers._fields.index(name) for name in ("codec", "num_values", "dictionary_page_offset")
)


class ChunkTable:
    """Column chunks of some leaves in some row groups. :meth:`pyparq.read.footers.open_file.OpenFile.chunk_table` makes
    it.

    ``row_groups`` and ``num_rows`` have an int64 per row group, ``columns`` has one per leaf. Every other array has the
    shape (row groups, columns), int64 or bool. A decoder of many chunks needs ``start``, ``size``, ``num_values``,
    ``codec`` and ``first_page``. They are checked against the schema and the file where ``encrypted`` is false. The
    arrays must not be changed.
    """

    __slots__ = (
        "_places",
        "_stack",
        "any_encrypted",
        "columns",
        "encrypted",
        "num_rows",
        "odd",
        "row_groups",
        "size",
        "start",
    )

    start: Int64Array
    """Offset of the first byte: the dictionary page, or the first data page."""
    size: Int64Array
    """Bytes of all pages with their headers. ``start + size`` lies within the file."""
    encrypted: Mask
    """True for chunks whose modules only :meth:`pyparq.read.footers.open_file.OpenFile.chunk` can open."""
    odd: Mask
    """True for chunks that were looked at one by one. The places of their bounds are not known, although they may have
    bounds."""

    def __init__(
        self, row_groups: Int64Array, columns: Int64Array, num_rows: Int64Array, stack: Int64Array,
        start: Int64Array, size: Int64Array, odd: Mask,
    ) -> None:  # fmt: skip
        """``stack``: all numbers in one array. Its first axis is the kind of number."""
        self.row_groups = row_groups
        self.columns = columns
        self.num_rows = num_rows
        self.start = start
        self.size = size
        self.odd = odd
        self.encrypted = np.zeros(odd.shape, np.bool_)
        self.any_encrypted = False
        self._stack = stack
        self._places: dict[int, int] | None = None

    def numbers_at(self, i: int, j: int) -> ChunkNumbers:
        """The numbers of one chunk."""
        return ChunkNumbers(*self._stack[:, i, j].tolist())

    def of_column(self, j: int) -> ChunkNumbers:
        """The numbers of one leaf, one array per kind."""
        return ChunkNumbers(*self._stack[:, :, j])

    def stack_of(self, j: int) -> Int64Array:
        """The numbers of one leaf in one array. Its first axis is the kind of number."""
        return np.ascontiguousarray(self._stack[:, :, j])

    def part(self, places: Int64Array, columns: Sequence[int]) -> ChunkTable:
        """The table of some of its row groups and leaves, given by their positions."""
        stack = self._stack[:, places][:, :, columns]
        start, size = self.start[places][:, columns], self.size[places][:, columns]
        return ChunkTable(
            self.row_groups[places], self.columns[columns], self.num_rows[places], stack, start, size,
            self.odd[places][:, columns],
        )  # fmt: skip

    def whole(self, places: list[int], columns: slice) -> tuple[Int64Array, ...]:
        """Row groups and leaves at these positions for the decoder: the rows of each row group, and of all chunks, row
        group by row group, the codec, the number of values, 1 for a dictionary page in front, the start and the
        size."""
        start, stack = self.start[places, columns], self._stack
        found = (
            stack[_CODEC][places, columns], stack[_NUM_VALUES][places, columns],
            (stack[_DICTIONARY_PAGE][places, columns] == start).astype(np.int64), start, self.size[places, columns],
        )  # fmt: skip
        return self.num_rows[places], *[array.ravel() for array in found]

    def put(self, i: int, j: int, start: int, size: int, numbers: ChunkNumbers, encrypted: bool) -> None:
        """Fill in the numbers of a chunk that was looked at by itself."""
        self.start[i, j], self.size[i, j], self.encrypted[i, j] = start, size, encrypted
        self.any_encrypted |= encrypted
        self._stack[:, i, j] = numbers

    @property
    def numbers(self) -> ChunkNumbers:
        """What the footer states about the chunks. ``num_values`` of a flat column is replaced by the number of
        rows."""
        return ChunkNumbers(*self._stack)

    @property
    def has_dictionary_first(self) -> Int64Array:
        """1 for each chunk that starts with its dictionary page."""
        found: Int64Array = (self._stack[_DICTIONARY_PAGE] == self.start).astype(np.int64)
        return found

    @property
    def first_page(self) -> Int64Array:
        """Ordinal of the page that each chunk starts with: 0 for a data page, -1 for the dictionary page."""
        found: Int64Array = -self.has_dictionary_first
        return found

    def place(self, row_group: int) -> int | None:
        """The position of a row group in the table."""
        if self._places is None:
            self._places = {number: k for k, number in enumerate(self.row_groups.tolist())}
        return self._places.get(row_group)


def check_numbers(
    stack: Int64Array, leaves: LeafSet, num_rows: Int64Array, file_size: int | Int64Array
) -> tuple[Int64Array, Int64Array, Mask]:
    """Start and size of chunks in files of ``file_size`` bytes (one for all row groups, or one for each), and a mask of
    the unusual ones. Unusual chunks must be looked at one by one: none of their numbers may be used."""
    sizes = np.array([file_size]) if isinstance(file_size, int) else file_size
    start, size, odd = kernels.check_chunks(stack.reshape(-1), leaves.types, leaves.repeated, num_rows, sizes)
    shape = len(num_rows), len(leaves)
    return start.reshape(shape), size.reshape(shape), odd.reshape(shape)


def numbers_of(raw: Any, meta: Any) -> ChunkNumbers:
    """The numbers of one chunk whose metadata are decoded. The places of its bounds are -1, because the bounds are not
    in the footer."""
    statistics, stats = meta.statistics, meta.encoding_stats
    flags = ALL_DICTIONARY if is_fully_dictionary(meta) else 0
    if statistics is not None:
        flags |= HAS_STATISTICS
    pages = sum(s.count for s in stats if s.page_type in (DATA_PAGE, DATA_PAGE_V2)) if stats else -1
    return ChunkNumbers(
        flags,
        -1 if meta.type is None else meta.type,
        meta.codec,
        meta.num_values,
        meta.total_uncompressed_size,
        meta.total_compressed_size,
        meta.data_page_offset or 0,
        meta.dictionary_page_offset or 0,
        meta.bloom_filter_offset or 0,
        meta.bloom_filter_length or 0,
        raw.offset_index_offset or 0,
        raw.offset_index_length or 0,
        raw.column_index_offset or 0,
        raw.column_index_length or 0,
        _count(statistics, "null_count"),
        _count(statistics, "nan_count"),
        pages,
        -1, 0, -1, 0, -1, 0, -1, 0,
    )  # fmt: skip


def _count(statistics: Any, name: str) -> int:
    stored = getattr(statistics, name, None)
    return -1 if stored is None else stored


def is_fully_dictionary(meta: Any) -> bool:
    """Whether every data page is certainly dictionary-encoded.

    ``encoding_stats`` tell it page by page. Without them, only PLAIN_DICTIONARY beside level encodings proves it. A
    chunk that lists RLE_DICTIONARY proves nothing: it may list PLAIN for its dictionary page, or for data pages that
    fell back to PLAIN.
    """
    stats = meta.encoding_stats
    if stats:
        data = [s for s in stats if s.page_type in (DATA_PAGE, DATA_PAGE_V2) and s.count != 0]
        return bool(data) and all(s.encoding in DICTIONARY_ENCODINGS for s in data)
    encodings = set(meta.encodings or ())
    return PLAIN_DICTIONARY in encodings and encodings <= {PLAIN_DICTIONARY, RLE, BIT_PACKED}
