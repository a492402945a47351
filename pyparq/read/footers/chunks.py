"""One column chunk of an open file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.encryption.reading import CLEAR, ChunkDecryption
from pyparq.format.chunk_numbers import ALL_DICTIONARY, HAS_STATISTICS, ChunkNumbers, Int64Array, bit_of, stored_path
from pyparq.format.compression import BIT_PACKED, DICTIONARY_ENCODINGS, PLAIN_DICTIONARY, RLE
from pyparq.format.lazy_footer import MAGIC, TRAILER, LazyFileMetaData
from pyparq.format.schema_node import Node

FEW = 32
"""Chunks up to which lists are quicker than arrays."""


class Chunk:
    """One column chunk. Its place is checked against the file."""

    __slots__ = ("_footer", "_meta", "crypto", "node", "num_rows", "numbers", "row_group", "size", "start")

    node: Node
    row_group: int
    num_rows: int
    numbers: ChunkNumbers
    """What the footer says of it."""
    start: int
    """Offset of the first byte: the dictionary page, or the first data page."""
    size: int
    """Bytes of all pages with their headers."""
    crypto: ChunkDecryption
    """What its modules pass through on their way in."""

    def __init__(
        self, footer: LazyFileMetaData, node: Node, row_group: int, num_rows: int, numbers: ChunkNumbers, start: int,
        size: int, crypto: ChunkDecryption = CLEAR, meta: Any = None,
    ) -> None:  # fmt: skip
        """``meta``: the ColumnMetaData, if they are decoded already."""
        self._footer = footer
        self._meta = meta
        self.crypto = crypto
        self.node = node
        self.num_rows = num_rows
        self.numbers = numbers
        self.row_group = row_group
        self.size = size
        self.start = start

    @property
    def raw(self) -> Any:
        """ColumnChunk as in the footer."""
        return self._footer.column_chunk(self.row_group, self.node.column)

    @property
    def meta(self) -> Any:
        """The ColumnMetaData."""
        if self._meta is None:
            self._meta = self.raw.meta_data
        return self._meta

    @property
    def codec(self) -> int:
        """The CompressionCodec."""
        return self.numbers.codec  # type: ignore[no-any-return]

    @property
    def num_values(self) -> int:
        """Number of values, nulls included. For a flat column it is the number of rows."""
        return self.numbers.num_values  # type: ignore[no-any-return]

    @property
    def first_page(self) -> int | str:
        """Ordinal of the page that the chunk starts with: 0, or ``"dictionary"``."""
        return "dictionary" if self.numbers.dictionary_page_offset == self.start else 0

    @property
    def is_all_dictionary(self) -> bool:
        """Whether every data page is certainly dictionary-encoded."""
        return bool(self.numbers.flags & ALL_DICTIONARY)

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def name(self) -> str:
        return self.node.dotted

    def of_size(self, size: int) -> Chunk:
        """The same chunk with another size in bytes."""
        other = copy(self)
        other.size = size
        return other


class LeafSet:
    """Some leaves of one schema, each once. It must not be changed."""

    __slots__ = ("coded", "columns", "decoded", "nodes", "numbers", "repeated", "stored_paths", "types")

    def __init__(self, nodes: Iterable[Node], coded: Container[int] = ()) -> None:
        """``coded``: the columns that come as codes of dictionaries."""
        self.nodes = list(nodes)
        self.coded = [node.column in coded for node in self.nodes]
        """Which of them come as codes of dictionaries."""
        self.numbers = [node.column for node in self.nodes]
        """Their places in a row group, also as the array ``columns``."""
        self.columns = np.array(self.numbers, np.int64)
        self.types = np.array([node.element.type for node in self.nodes], np.int64)
        """Their physical types."""
        self.repeated = np.array([node.max_rep > 0 for node in self.nodes], np.uint8)
        """Which of them are in lists."""
        self.stored_paths = [stored_path(node.path) for node in self.nodes]
        """Their `path_in_schema` as column chunks have it."""
        self.decoded: Any = None
        """The description of the leaves for the decoder, kept for :mod:`pyparq.read.decode.decoder`."""

    def __len__(self) -> int:
        return len(self.nodes)


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
    ``codec`` and ``has_dictionary_first``. They are checked against the schema and the file where ``encrypted`` is
    false. The arrays must not be changed.
    """

    __slots__ = (
        "_places", "_stack", "any_encrypted", "columns", "encrypted", "num_rows", "odd", "row_groups", "size",
        "start",
    )  # fmt: skip

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

    def any_overlap(self) -> bool:
        """Whether any two chunks share bytes."""
        start, size = self.start.reshape(-1), self.size.reshape(-1)
        if len(start) <= FEW:
            behind = 0
            for begin, length in sorted(zip(start.tolist(), size.tolist(), strict=True)):
                if begin < behind:
                    return True
                behind = begin + length
            return False
        order = np.argsort(start, kind="stable")
        ends = (start + size)[order]
        return bool((start[order][1:] < ends[:-1]).any())

    def may_leave_out_pages(self) -> bool:
        """Whether a chunk has an OffsetIndex, and more than one page as far as is known."""
        numbers = self.numbers
        unknown = (numbers.offset_index_offset != 0) & (numbers.data_pages < 0)
        return bool((unknown | (numbers.data_pages > 1)).any())

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
        sum(set(map(bit_of, meta.encodings or ()))),  # one bit may stand for several
        sum({bit_of(s.page_type) for s in stats or ()}),
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


# ---- where the parts of a file begin, and which column chunks begin at the same place
#
# Sizes in the footer are hints, and sound writers are known to declare a few bytes too many. The start of a chunk is no
# hint: nothing else tells where it is. So operations on a whole file end each chunk where the next one begins, and
# refuse a chunk that begins where another does. Then no byte is read as part of two chunks, and a small file cannot
# cause endless work.


Key = tuple[int, int]
"""(row group, leaf column)."""

SLAB = 1 << 16
"""Column chunks whose numbers are in memory at a time."""
KEPT = 16
"""Row groups whose places are kept."""


class Neighbours:
    """Where column chunks, indexes and Bloom filters begin, of one row group and the one behind it."""

    def __init__(self, footer: LazyFileMetaData, file_size: int) -> None:
        self._footer = footer
        self._end = file_size - TRAILER
        self._known: dict[int, list[int]] = {}

    def behind(self, row_group: int, place: int) -> int:
        """The first start behind ``place``, or the end of the file."""
        found = self._end
        for places in self._near(row_group):
            k = bisect_right(places, place)
            if k < len(places):
                found = min(found, places[k])
        return found

    def has(self, row_group: int, place: int) -> bool:
        """Whether something begins at ``place``."""
        for places in self._near(row_group):
            k = bisect_left(places, place)
            if k < len(places) and places[k] == place:
                return True
        return False

    def _near(self, row_group: int) -> list[list[int]]:
        return [self._places(k) for k in range(row_group, min(row_group + 2, self._footer.num_row_groups))]

    def _places(self, row_group: int) -> list[int]:
        known = self._known.get(row_group)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[row_group] = self._listed(row_group)
        return known

    def _listed(self, row_group: int) -> list[int]:
        found: list[int | None] = []
        for column in range(self._footer.num_columns(row_group)):
            raw = self._footer.column_chunk(row_group, column)
            found += [raw.offset_index_offset, raw.column_index_offset]
            if raw.meta_data is not None:
                meta = raw.meta_data
                starts = [o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset or 0) if o > 0]
                found += [min(starts, default=None), meta.bloom_filter_offset]
        return sorted({place for place in found if place is not None and len(MAGIC) <= place < self._end})


class ModulePlaces:
    """Which column chunk owns the index or Bloom filter at a place: the first one that asked for it.

    The owned parts are no longer than the file together, so no byte is read again and again.
    """

    def __init__(self, file_size: int) -> None:
        self._owners: dict[int, Key] = {}
        self._left = file_size

    def belongs(self, place: int, length: int | None, row_group: int, column: int) -> bool:
        """Whether these ``length`` bytes at ``place`` belong to that chunk. Bytes without an owner belong to it from
        now on."""
        key, size = (row_group, column), max(length or 0, 0)
        owner = self._owners.get(place)
        if owner is None and size <= self._left:
            owner = self._owners.setdefault(place, key)
            self._left -= size
        return owner == key


class ChunkPlaces:
    """Where all column chunks of a file begin."""

    def __init__(self, starts: Int64Array) -> None:
        """``starts``: int64, row groups x leaves. 0 for a chunk without pages, or whose start is not known."""
        self._num_leaves = starts.shape[1]
        flat = starts.reshape(-1)
        placed = np.flatnonzero(flat)
        self._chunks = placed[np.argsort(flat[placed], kind="stable")]
        self._starts = flat[self._chunks]
        self._shared = np.sort(self._chunks[1:][self._starts[1:] == self._starts[:-1]])

    def first_at(self, start: int) -> Key | None:
        """The first chunk, in the order of the footer, that begins at this place."""
        k = int(np.searchsorted(self._starts, start))
        if k == len(self._starts) or self._starts[k] != start:
            return None
        row_group, column = divmod(int(self._chunks[k]), self._num_leaves)
        return row_group, column

    def behind(self, place: int) -> int | None:
        """The place where the next chunk begins."""
        k = int(np.searchsorted(self._starts, place, side="right"))
        return int(self._starts[k]) if k < len(self._starts) else None

    def first_shared(self) -> Key | None:
        """The first chunk that begins at the same place as an earlier chunk."""
        if not len(self._shared):
            return None
        row_group, column = divmod(int(self._shared[0]), self._num_leaves)
        return row_group, column

    def is_shared(self, row_group: int, column: int) -> bool:
        """Whether a chunk begins at the same place as an earlier chunk of the footer."""
        chunk = row_group * self._num_leaves + column
        k = int(np.searchsorted(self._shared, chunk))
        return k < len(self._shared) and bool(self._shared[k] == chunk)


def places_of(
    footer: LazyFileMetaData, leaves: Sequence[Node], file_size: int, start_of: Callable[[int, Node], int] | None
) -> ChunkPlaces:
    """Where all column chunks of a file of ``file_size`` bytes begin. Does not report wrong places.

    ``start_of``: for an encrypted file, whose columns' metadata may be encrypted. It gives the start of one chunk, by
    row group and leaf; 0 for a chunk without pages, or one that cannot be opened.
    """
    chosen = LeafSet(leaves)
    groups, step = footer.num_row_groups, max(SLAB // max(len(chosen), 1), 1)
    starts = np.zeros((groups, len(chosen)), np.int64)
    if start_of is not None:
        for row_group in range(groups):
            starts[row_group] = [start_of(row_group, node) for node in chosen.nodes]
        return ChunkPlaces(starts)
    for first in range(0, groups if len(chosen) else 0, step):
        part = np.arange(first, min(first + step, groups))
        starts[first : first + step] = _starts(footer, part, chosen, file_size)
    return ChunkPlaces(starts)


def _starts(footer: LazyFileMetaData, groups: Int64Array, leaves: LeafSet, file_size: int) -> Int64Array:
    rows = footer.rows[groups]
    stack = footer.chunk_numbers(groups, leaves.columns, leaves.stored_paths, len(leaves))
    start, _, _ = check_numbers(stack, leaves, rows, file_size)
    numbers = ChunkNumbers(*stack)
    holds = (numbers.total_compressed_size != 0) | (numbers.num_values != 0) | (rows[:, None] != 0)
    inside = (start >= len(MAGIC)) & (start < file_size - TRAILER)
    return np.where(holds & inside, start, 0)
