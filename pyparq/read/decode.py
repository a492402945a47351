"""Decode the pages of one column chunk into one column.

A :class:`ChunkDecoder` holds the dictionary and the growing column; pages go in, in row order, and each is decoded
once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pyparq import encodings
from pyparq.encodings import DICTIONARY_ENCODINGS, plain, rle
from pyparq.errors import CorruptFileError, UnsupportedError, located
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.builder import Builder, Valid, make_builder
from pyparq.read.open import Chunk
from pyparq.read.pages import PageParts, Scratch, StoredPage, num_levels_of, open_dictionary, open_page
from pyparq.read.physical import check_utf8
from pyparq.schema.values import BinaryValues, Values, count_of


def decode_dictionary(page: StoredPage, chunk: Chunk, options: ReadOptions) -> Values:
    """The entries of a dictionary page."""
    with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
        data, count = open_dictionary(page, chunk, options)
        leaf = chunk.node.type
        if count > 0 and not leaf.is_binary and leaf.width * count > len(data):
            raise CorruptFileError(f"a dictionary of {count} entries in {len(data)} bytes")
        try:
            values = plain.decode(data, count, leaf)
        except KernelError as error:
            raise CorruptFileError(f"bad dictionary: {error}") from error
        if leaf.is_text and isinstance(values, BinaryValues):
            check_utf8(values)
        return values


class ChunkDecoder:
    """Pages of one chunk in, one column out."""

    def __init__(self, chunk: Chunk, options: ReadOptions, num_slots: int, dictionary: Values | None = None) -> None:
        self.chunk = chunk
        self.options = options
        self.dictionary = dictionary
        self.pages_decoded = 0
        self.dictionary_decoded = 0
        self._scratch = Scratch()
        self._leaf = chunk.node.type
        self._checks_text = self._leaf.is_text
        self.builder: Builder = make_builder(self._leaf, num_slots, self._data_guess(num_slots))

    def _data_guess(self, num_slots: int) -> int:
        """Bytes of byte strings to expect, from what the whole chunk holds; a guess, the buffer grows."""
        meta = self.chunk.meta
        sizes = meta.size_statistics
        known = sizes.unencoded_byte_array_data_bytes if sizes is not None else None
        total = meta.total_uncompressed_size if known is None or known < 0 else known
        share = total * num_slots // max(meta.num_values, 1)
        # A declared size is not yet a checked one: the guess stays within what the stored bytes make plausible.
        return int(min(share, self.chunk.size * 64 + 1024)) + 64

    def feed(self, pages: Iterable[StoredPage]) -> None:
        """Decode pages in order; a dictionary page among them becomes the dictionary."""
        for page in pages:
            if page.ordinal == "dictionary":
                if self.dictionary is None:
                    self.dictionary = decode_dictionary(page, self.chunk, self.options)
                    self.dictionary_decoded = 1
                continue
            with located(row_group=self.chunk.row_group, column=self.chunk.name, page=page.ordinal):
                self.feed_page(page)

    def feed_page(self, page: StoredPage, expected_rows: int | None = None) -> None:
        """Decode one data page; ``expected_rows`` is what the OffsetIndex says of it."""
        if expected_rows is not None and num_levels_of(page) != expected_rows:
            raise CorruptFileError(f"a page of {num_levels_of(page)} rows, its OffsetIndex says {expected_rows}")
        if self.builder.length + num_levels_of(page) > self.chunk.meta.num_values:
            raise CorruptFileError(f"more than the declared {self.chunk.meta.num_values} values")
        self._append(open_page(page, self.chunk, self.options, self._scratch))
        self.pages_decoded += 1

    def _append(self, parts: PageParts) -> None:
        valid = None if parts.def_levels is None else self._valid_of(parts)
        if parts.encoding in DICTIONARY_ENCODINGS:
            entries = self.dictionary
            if entries is None:
                raise CorruptFileError("a dictionary-encoded page without a dictionary page")
            indices = self._indices(parts, count_of(entries))
            self.builder.append_indices(entries, indices, valid, parts.num_levels)
            return
        values = encodings.decode(parts.encoding, parts.data, parts.num_values, self._leaf)
        if self._checks_text and isinstance(values, BinaryValues):
            check_utf8(values)
        self.builder.append(values, valid, parts.num_levels)

    def _valid_of(self, parts: PageParts) -> Valid:
        levels = parts.def_levels
        assert levels is not None
        if self.chunk.node.max_def == 1:
            return levels  # the levels are the validity
        return np.asarray(levels == self.chunk.node.max_def).view(np.uint8)

    @staticmethod
    def _indices(parts: PageParts, limit: int) -> npt.NDArray[np.int32]:
        try:
            return rle.decode_indices(parts.data, parts.num_values, limit)
        except KernelError as error:
            raise CorruptFileError(f"bad dictionary indices: {error}") from error


def require_flat(chunk: Chunk) -> None:
    """Nested leaves are assembled elsewhere."""
    if chunk.node.max_rep:
        raise UnsupportedError("nested columns are not read yet", column=chunk.name)
