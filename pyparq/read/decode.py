"""Decode the pages of one column chunk into one column.

A :class:`ChunkDecoder` holds the dictionary and the growing column; pages go in, in row order, and each is decoded
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np

from pyparq.encodings import DICTIONARY_ENCODINGS, encoding_name, plain, rle
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.index.row_ranges import RowRanges
from pyparq.kernels import KernelError, leaf_slots
from pyparq.options import ReadOptions
from pyparq.read.account import Account, Share
from pyparq.read.ahead import OpenedPage, Slots, open_ahead
from pyparq.read.builder import Builder, EncodedPage, FixedBuilder, Valid, make_builder
from pyparq.read.dictionary import DictionaryBuilder
from pyparq.read.leaf import DecodedLeaf, is_flat, slot_level
from pyparq.read.many import SpelledPage, Together
from pyparq.read.narrow import Int64Array, Narrower, decode_at
from pyparq.read.open import Chunk
from pyparq.read.page_reads import Pages
from pyparq.read.pages import (
    Levels,
    PageBuffers,
    PageParts,
    PageWalk,
    StoredPage,
    num_levels_of,
    open_dictionary,
    open_page,
    room_of,
)
from pyparq.read.physical import check_utf8, converted_size, to_column
from pyparq.read.sparse import Picked, SparseRows
from pyparq.read.views import ViewBuilder
from pyparq.schemas.values import BinaryValues, Values, concat_values, count_of, size_of
from pyparq.threads import check_stopped

WAITING = 1 << 20
"""Bytes of pages, opened, levels included, that one call opens, and one decodes where they are of a dictionary. Between
two calls a thread needs the GIL, and waits where another has it. More gained nothing when it was measured."""

SURELY_FITS = 1 << 20
"""Slots that nobody asks beforehand whether there is memory for: they are counted when it is taken."""

WaitingPage = tuple[int | str, EncodedPage, int]
"""The ordinal of a page that is opened and not yet decoded, its indices, and their encoding."""

Kind = Literal["values", "dictionary", "views"]
"""What a leaf of byte arrays is built as."""

_MAKE = {"values": make_builder, "dictionary": DictionaryBuilder, "views": ViewBuilder}

_encoding_of = itemgetter(4)
"""Of a :data:`~pyparq.read.many.SpelledPage`."""


def dictionary_room(page: StoredPage) -> int:
    """Bytes that a dictionary takes at most, inflated and decoded: an entry of text has four for its length, and gets
    an offset of eight."""
    return 4 * page.header.uncompressed_page_size


def decode_dictionary(page: StoredPage, chunk: Chunk, options: ReadOptions, share: Share | Account) -> Values:
    """The entries of a dictionary page, which ``share`` counts from then on. Text is UTF-8."""
    values = decode_entries(page, chunk, options, share)
    if chunk.node.type.is_text and isinstance(values, BinaryValues):
        with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
            check_utf8(values)
    return values


def decode_entries(page: StoredPage, chunk: Chunk, options: ReadOptions, share: Share | Account) -> Values:
    """As :func:`decode_dictionary`, without a look at what text holds."""
    with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
        share.take(dictionary_room(page))
        data, count = open_dictionary(page, chunk, options)
        leaf = chunk.node.type
        if count > 0 and not leaf.is_binary and leaf.width * count > len(data):
            raise CorruptFileError(f"the dictionary page declares {count} entries but has only {len(data)} bytes")
        try:
            return plain.decode(data, count, leaf)
        except KernelError as error:
            raise CorruptFileError(f"the dictionary page is invalid: {error}") from error


class ChunkDecoder:
    """Pages of one chunk in, one column out."""

    def __init__(
        self,
        chunk: Chunk,
        options: ReadOptions,
        num_slots: int,
        dictionary: Values | None = None,
        kind: Kind = "values",
        only: RowRanges | None = None,
        buffers: PageBuffers | None = None,
        account: Account | None = None,
    ) -> None:
        """``num_slots`` is how many elements to expect, a guess; ``only`` the rows to keep of those in the pages.
        ``buffers`` may be used again after :meth:`finish`; ``account`` is that of the read."""
        self.chunk = chunk
        self.options = options
        self.dictionary = dictionary
        self.pages_decoded = 0
        self.dictionary_decoded = 0
        self._dictionary_size = 0
        self._levels_taken = 0
        self._buffers = PageBuffers() if buffers is None else buffers
        self._waiting: list[WaitingPage] = []
        self._waiting_bytes = 0
        self._leaf = chunk.node.type
        self._checks_text = self._leaf.is_text
        self._slot_level = slot_level(chunk.node)
        self._keeps_levels = not is_flat(chunk.node)
        self._def_levels: list[Levels | None] = []
        self._rep_levels: list[Levels] = []
        self.num_levels = 0
        self.row = 0
        """The next row to start, where only some are kept; whoever skips pages sets it."""
        nested = chunk.node.max_rep > 0
        self._share = Share(Account(options.limits) if account is None else account)
        if only is not None:
            self._share.take(only.count * 8)  # their numbers
        self._narrower = None if only is None or not nested else Narrower(chunk.node.max_def, only)
        self._sparse = None if only is None or nested else SparseRows(chunk, options, only, self._buffers, self._share)
        if not nested and num_slots > SURELY_FITS:
            self._share.check(num_slots * (4 if self._leaf.is_binary else self._leaf.width))
        self.builder: Builder | DictionaryBuilder | ViewBuilder = _MAKE[kind](
            self._leaf, num_slots, self._data_guess(num_slots), options.limits.max_column, self._share
        )

    def _data_guess(self, num_slots: int) -> int:
        """Bytes of byte strings to expect, from what the whole chunk holds; a guess, the buffer grows."""
        meta = self.chunk.meta
        sizes = meta.size_statistics
        known = sizes.unencoded_byte_array_data_bytes if sizes is not None else None
        total = max(meta.total_uncompressed_size, self.chunk.size) if known is None or known < 0 else known
        share = total * num_slots // max(meta.num_values, 1)
        # A declared size is not yet a checked one: the guess stays within what the stored bytes make plausible.
        return int(min(share, self.chunk.size * 64 + 1024)) + 64

    def feed(self, pages: Iterable[StoredPage], ahead: bool = False) -> None:
        """Decode pages in order; a dictionary page among them becomes the dictionary. ``ahead``: with a second thread
        to open some of them."""
        for page, parts, placed in self._opened(pages, ahead):
            check_stopped()
            if page.ordinal == "dictionary":
                if self.dictionary is None:
                    self.dictionary = decode_dictionary(page, self.chunk, self.options, self._share)
                    self._dictionary_size = size_of(self.dictionary)
                    self.dictionary_decoded = 1
                continue
            with located(row_group=self.chunk.row_group, column=self.chunk.name, page=page.ordinal):
                self.feed_page(page, None, parts, placed)

    def feed_chunk(self, walk: PageWalk) -> None:
        """Decode all pages of a whole column chunk."""
        together = Together(self.chunk, self.options, self._buffers, self._share) if self._keeps_all else None
        while True:
            # A dictionary page is special; where it must be the first, nobody need find that out.
            if together is not None and (walk.at or self.chunk.first_page == 0) and not self._feed_next(walk, together):
                together = None
            page = walk.next_page()
            if page is None:
                return
            self.feed([page])

    def _feed_next(self, walk: PageWalk, together: Together) -> bool:
        """Decode pages as long as they can be opened together; whether those behind the next may be tried again."""
        fed = False
        while True:
            check_stopped()
            if self._waiting:
                self._settle()
            self._buffers.clear()
            try:
                opened = together.next(walk, WAITING)
            except ParquetError:  # what it is, and where, is said when it happens again
                return False
            if not opened:
                return fed or walk.ordinal == 0
            fed = True
            if self._keeps_levels:
                self._take_levels(sum(page[0] for page in opened))
            self._append_run(walk.ordinal - len(opened), opened)
            self.num_levels = self.chunk.meta.num_values - walk.left
            self.pages_decoded += len(opened)

    @property
    def _keeps_all(self) -> bool:
        return self._narrower is None and self._sparse is None

    def _take_levels(self, count: int) -> None:
        """Those of so many entries stay until they are joined, which makes them anew."""
        size = count * ((self.chunk.node.max_def > 0) + (self.chunk.node.max_rep > 0))
        self._share.take(2 * size)
        self._levels_taken += size

    def _count(self, levels: int) -> None:
        if self.num_levels + levels > self.chunk.meta.num_values:
            raise CorruptFileError(
                f"the pages hold more values than the column chunk declares ({self.chunk.meta.num_values})"
            )
        self.num_levels += levels

    def _opened(self, pages: Iterable[StoredPage], ahead: bool) -> Iterable[OpenedPage]:
        if ahead and self._keeps_all:
            return open_ahead(pages, self.chunk, self.options, self._room, self._share)
        return ((page, None, False) for page in pages)

    def _room(self, count: int) -> Slots | None:
        """The next ``count`` slots, where every level is one."""
        self._settle()  # those that wait have slots before these
        builder = self.builder
        return builder.room(count) if isinstance(builder, FixedBuilder) and not self._keeps_levels else None

    def feed_page(
        self,
        page: StoredPage,
        expected_rows: int | None = None,
        parts: PageParts | None = None,
        placed: bool = False,
    ) -> None:
        """Decode one data page; ``expected_rows`` is what the OffsetIndex says of it, ``parts`` the page opened,
        ``placed`` says that its values are in the slots that :meth:`_room` gave for them."""
        count = num_levels_of(page)
        self._count(count)
        if self._sparse is not None:
            self._feed_sparse(page, count, expected_rows, self._sparse)
            return
        if parts is None:
            if not self._waiting:
                self._buffers.clear()
            self._share.make_room(self._waiting_bytes + room_of(page, self.chunk.node))
            parts = open_page(page, self.chunk, self.options, self._buffers)
        if expected_rows is not None:
            _check_rows(parts, expected_rows)
        if self._keeps_levels:
            self._take_levels(count)
        if placed:
            assert isinstance(self.builder, FixedBuilder)
            self._settle()
            self.builder.pass_over(count)
        elif self._narrower is not None:
            self._append_narrowed(parts, *self._narrower.narrow(parts, self.row))
            self.row += _rows_of(parts)
        else:
            self._append(page.ordinal, parts)
        self.pages_decoded += 1

    def feed_many(self, pages: Pages, stored: Sequence[memoryview], at: int) -> int:
        """Decode pages of a plan together from page ``at`` on, as far as :class:`SparseRows` can; how many they are."""
        if self._sparse is None:
            return 0
        count = self._sparse.take_many(pages, stored, at, self._num_entries())
        self._count(sum(pages.num_rows[at : at + count].tolist()))
        self.pages_decoded += count
        return count

    def _feed_sparse(self, page: StoredPage, count: int, expected_rows: int | None, sparse: SparseRows) -> None:
        """Decode the wanted rows of a page. Pages of a plan hold some, others may not even have to be opened."""
        if expected_rows is not None and count != expected_rows:
            raise _wrong_rows(count, expected_rows)
        if sparse.take(page, self.row, count, self._num_entries()):
            self.pages_decoded += 1
        self.row += count

    def _num_entries(self) -> int | None:
        return None if self.dictionary is None else count_of(self.dictionary)

    def check_end(self) -> None:
        """After the last page of a whole chunk of which some rows were kept: :class:`CorruptFileError` unless all rows
        came by."""
        if self.row != self.chunk.num_rows and not self._keeps_all:
            raise CorruptFileError(f"the pages hold {self.row} rows, but the row group has {self.chunk.num_rows}")

    def finish(self, rows: RowRanges) -> DecodedLeaf:
        """The decoded leaf; ``rows`` are those that the pages hold."""
        self._settle()
        if self._sparse is not None:
            self._append_picked(self._sparse)
        builder = self.builder
        converted = 0
        if isinstance(builder, (DictionaryBuilder, ViewBuilder)):
            column = builder.column()
        else:
            converted = converted_size(builder.length, self._leaf)
            self._share.take(converted)
            column = to_column(builder, self._leaf)
        leaf = DecodedLeaf(self.chunk.node, column, self._all_def_levels(), self._all_rep_levels(), rows)
        self._share.settle(converted + builder.held + self._levels_taken + self._dictionary_size)
        leaf.check_rows()
        if leaf.rep_levels is None and column.length != rows.count:
            raise CorruptFileError(f"the pages hold {column.length} values for {rows.count} rows")
        return leaf

    def release(self) -> None:
        """Nothing of this is used: it failed."""
        self._share.settle(0)

    def _all_def_levels(self) -> Levels | None:
        if not self._keeps_levels or all(levels is None for levels in self._def_levels):
            return None
        return np.concatenate([levels for levels in self._def_levels if levels is not None])

    def _all_rep_levels(self) -> Levels | None:
        if self.chunk.node.max_rep == 0:
            return None
        return np.concatenate(self._rep_levels) if self._rep_levels else np.empty(0, np.uint8)

    def _slots(self, parts: PageParts) -> tuple[int, Valid | None]:
        """(slots, their validity) of a page."""
        if self._keeps_levels:
            return self._place_levels(parts)
        return parts.num_levels, parts.def_levels  # the levels of a flat column are its validity

    def _append_narrowed(self, parts: PageParts, narrowed: PageParts, places: Int64Array) -> None:
        """Some of a page's values, with the levels of ``narrowed``."""
        count, valid = self._slots(narrowed)
        try:
            if parts.encoding in DICTIONARY_ENCODINGS:
                entries = self._entries()
                indices = rle.decode_indices(parts.data, parts.num_values, count_of(entries))
                self.builder.append_indices(entries, indices[places], valid, count)
                return
            values = decode_at(parts.encoding, parts.data, parts.num_values, self._leaf, places)
        except KernelError as error:
            raise _bad_values(parts.encoding, error) from error
        self._check_text(values)
        self.builder.append(values, valid, count)

    def _append_picked(self, sparse: SparseRows) -> None:
        """What was picked, pages of a kind together."""
        sparse.settle(self._num_entries())
        for is_indices, group in groupby(sparse.picked, lambda picked: picked.is_indices):
            pages = list(group)
            levels = _joined_levels(pages, self.chunk.node.max_def)
            num_rows = sum(page.num_rows for page in pages)
            count, valid = self._slots(PageParts(num_rows, None, levels, 0, 0, b""))
            if is_indices:
                indices = np.concatenate([page.values for page in pages if isinstance(page.values, np.ndarray)])
                self.builder.append_indices(self._entries(), indices, valid, count)
            else:
                values = concat_values([page.values for page in pages], self._leaf)
                self._check_text(values)
                self.builder.append(values, valid, count)

    def _append(self, ordinal: int | str, parts: PageParts) -> None:
        page = parts.data, parts.num_values, self._slots(parts)[1]
        if parts.encoding in DICTIONARY_ENCODINGS:
            self._entries()
            self._waiting.append((ordinal, page, parts.encoding))
            self._waiting_bytes += len(parts.data) + (0 if page[2] is None else len(page[2]))
            if self._waiting_bytes >= WAITING:
                self._settle()
            return
        self._settle()
        self._append_encoded(parts.encoding, page)

    def _append_run(self, ordinal: int, opened: list[SpelledPage]) -> None:
        """Pages that follow each other, the first of them number ``ordinal``. Those of a dictionary are decoded by one
        call."""
        self._settle()
        try:
            for encoding, group in groupby(opened, _encoding_of):
                pages = self._encoded(group)
                if encoding in DICTIONARY_ENCODINGS:
                    self._append_indices([(ordinal + k, page, encoding) for k, page in enumerate(pages)])
                    ordinal += len(pages)
                    continue
                for page in pages:
                    self._append_encoded(encoding, page)
                    ordinal += 1
        except ParquetError as error:  # a context per page would take as long as its Python does
            error.locate(row_group=self.chunk.row_group, column=self.chunk.name, page=ordinal)
            raise

    def _encoded(self, pages: Iterable[SpelledPage]) -> list[EncodedPage]:
        if not self._keeps_levels:  # the levels of a flat column are its validity
            return [(data, present, valid) for _, _, valid, present, _, data in pages]
        return [(page[5], page[3], self._place_levels(PageParts(*page))[1]) for page in pages]

    def _append_encoded(self, encoding: int, page: EncodedPage) -> None:
        try:
            values = self.builder.append_encoded(encoding, page)
        except KernelError as error:
            raise _bad_values(encoding, error) from error
        self._check_text(values)

    def _settle(self) -> None:
        """Decode the pages that wait for it."""
        if not self._waiting:
            return
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._append_indices(waiting)

    def _append_indices(self, pages: list[WaitingPage]) -> None:
        try:
            self.builder.append_pages(self._entries(), [page for _, page, _ in pages])
        except KernelError:
            self._find_fault(pages)
            raise

    def _find_fault(self, pages: list[WaitingPage]) -> None:
        """Raise what is wrong with the first page of these that does not decode."""
        for ordinal, page, encoding in pages:
            try:
                self.builder.append_pages(self._entries(), [page])
            except KernelError as error:
                fault = _bad_values(encoding, error)
                fault.locate(page=ordinal)
                raise fault from error

    def _entries(self) -> Values:
        if self.dictionary is None:
            raise CorruptFileError("the page is dictionary-encoded, but the column chunk has no dictionary page")
        return self.dictionary

    def _check_text(self, values: Values) -> None:
        if self._checks_text and isinstance(values, BinaryValues):
            check_utf8(values)

    def _place_levels(self, parts: PageParts) -> tuple[int, Valid | None]:
        """Keep the levels of a nested leaf; (slots, their validity) of the page."""
        if parts.rep_levels is not None:
            self._rep_levels.append(parts.rep_levels)
        levels, maximum = parts.def_levels, self.chunk.node.max_def
        if levels is None:
            if maximum:
                self._def_levels.append(np.full(parts.num_levels, maximum, np.uint8))
            return parts.num_levels, None
        self._def_levels.append(levels)
        return leaf_slots(levels, self._slot_level, maximum)


def _bad_values(encoding: int, error: KernelError) -> CorruptFileError:
    return CorruptFileError(f"bad {encoding_name(encoding)} data: {error}")


def _joined_levels(pages: list[Picked], maximum: int) -> Levels | None:
    """The definition levels of all pages, ``None`` where all are the maximum."""
    if all(page.def_levels is None for page in pages):
        return None
    return np.concatenate(
        [np.full(p.num_rows, maximum, np.uint8) if p.def_levels is None else p.def_levels for p in pages]
    )


def _rows_of(parts: PageParts) -> int:
    """Rows that start in a page."""
    return parts.num_levels if parts.rep_levels is None else int(np.count_nonzero(parts.rep_levels == 0))


def _check_rows(parts: PageParts, expected: int) -> None:
    """A page read by its OffsetIndex must hold the rows that this says, from the start of the first one."""
    rows = _rows_of(parts)
    if rows and parts.rep_levels is not None and parts.rep_levels[0] != 0:
        raise CorruptFileError("the page starts in the middle of a row")
    if rows != expected:
        raise _wrong_rows(rows, expected)


def _wrong_rows(rows: int, expected: int) -> CorruptFileError:
    return CorruptFileError(f"the page has {rows} rows, but the OffsetIndex says {expected}")
