"""Column chunks become columns: what the native decoder is asked, and what is made of its answer.

One call takes many column chunks and decodes them on threads of its own. It knows the rules of pages and encodings;
what a column is to be, where bytes come from and what an error says is decided here.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyparq import kernels
from pyparq.errors import ParquetError, UnsupportedError
from pyparq.format.compression import library_decoder
from pyparq.format.leaf_values import BinaryValues, Values, count_of
from pyparq.format.schema_node import Node
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import Decoded, Kind, leaf_terms
from pyparq.read.decode.decoded_leaf import is_flat, slot_level
from pyparq.read.decode.memory_account import Account
from pyparq.read.decode.refusals import Refusal, worded
from pyparq.read.footers.column_chunk import Chunk
from pyparq.runtime.threads import cpu_count

MOST_OFFSET = (1 << 31) - 1
"""A column of more bytes has offsets of 64 bits."""


def _inflate(codec: int, stored: Any, out: Any) -> int:
    """Bytes that a codec's library for Python writes to ``out``; -1 where it cannot read ``stored``."""
    try:
        decode = library_decoder(codec)
        return -1 if decode is None else int(decode(stored, out))
    except UnsupportedError:
        return -1
    except Exception:  # the libraries raise their own kinds
        return -1


kernels.set_libraries(zlib.crc32, _inflate)


@dataclass(slots=True)
class Piece:
    """What is wanted of one column chunk."""

    chunk: Chunk
    data: Any
    """The bytes of the whole chunk, or a list: those of its dictionary page, if ``dictionary_apart``, and of pages."""
    pages: Any = None
    """:class:`~pyparq.read.plan.page_reads.Pages` where ``data`` is a list."""
    dictionary_apart: bool = False
    rows: Any = None
    """``None`` for all rows; (starts, ends) of ranges; or a bitmap with a bit for each row of the row group."""
    dictionary: Values | None = None
    """Its dictionary, where that is known."""

    def terms(self) -> tuple[Any, ...]:
        """As the native decoder takes it."""
        chunk, pages = self.chunk, self.pages
        places = (None, None, None) if pages is None else (pages.ordinals, pages.first_rows, pages.num_rows)
        return (
            chunk.codec, chunk.num_values, chunk.num_rows, chunk.first_page == "dictionary", pages is None, self.data,
            *places, self.dictionary_apart, self.rows, chunk.crypto.of_pages(),
            None if self.dictionary is None else _known(self.dictionary),
        )  # fmt: skip


@dataclass(slots=True)
class Column:
    """One column of the output: pieces of one leaf, one after another."""

    node: Node
    kind: Kind
    pieces: Sequence[Piece]


class Refused(Exception):
    """What the decoder refuses, and which piece of which column."""

    def __init__(self, error: BaseException, column: int, piece: int) -> None:
        super().__init__(error)
        self.error = error
        self.column = column
        self.piece = piece


Facts = tuple[int, int, int]
"""Of a piece: where its pages end in a whole chunk, data pages and dictionary pages that were decoded."""


def decode(columns: Sequence[Column], options: ReadOptions, account: Account) -> tuple[list[Decoded], list[Facts]]:
    """Decode all ``columns``; the facts are those of all pieces, column by column.

    Raises :class:`Refused` with the first of the errors that the threads find.
    """
    jobs = [(terms_of(column.node, column.kind), [piece.terms() for piece in column.pieces]) for column in columns]
    results, facts, refusal = kernels.decode_columns(jobs, *bounds_of(options, account))
    if refusal is not None:
        raise _refused(Refusal(*refusal), columns, account)
    found = []
    for k, (column, result) in enumerate(zip(columns, results, strict=True)):
        decoded = None if result is None else _checked(result, columns, k, options, account)
        if decoded is None:  # not all pages are of the dictionary
            other = Column(column.node, "stored", column.pieces)
            try:
                (decoded,), again = decode([other], options, account)
                first = sum(len(c.pieces) for c in columns[:k])
                facts[first : first + len(again)] = again
            except Refused as refused:
                raise Refused(refused.error, k, refused.piece) from None
        else:
            account.take(decoded.size)
        found.append(decoded)
    return found, facts


def _checked(result: Any, columns: Sequence[Column], k: int, options: ReadOptions, account: Account) -> Decoded:
    """What came of column ``k``. A value that its type in memory cannot hold is refused with the piece that has it."""
    column = columns[k]
    try:
        found = Decoded(column.node.type, column.kind, result)
        if found.lost is not None and not is_flat(column.node):
            found.lower_levels(slot_level(column.node), column.node.max_def)
        return found
    except ParquetError as error:
        if len(column.pieces) == 1:
            raise Refused(error, k, 0) from None
        for number, piece in enumerate(column.pieces):
            try:
                decode([Column(column.node, column.kind, [piece])], options, account)
            except Refused as refused:
                raise Refused(refused.error, k, number) from None
        raise Refused(error, k, 0) from None


def terms_of(node: Node, kind: Kind = "values") -> tuple[int, ...]:
    """A leaf as the native decoder takes it."""
    return leaf_terms(node.type, kind, node.max_def, node.max_rep, slot_level(node), not is_flat(node))


def bounds_of(options: ReadOptions, account: Account) -> tuple[tuple[int, ...], int, int]:
    """Limits, threads, and the bytes that are left."""
    return limits_of(options), cpu_count() if options.use_threads else 1, max(account.left, 0)


def limits_of(options: ReadOptions) -> tuple[int, ...]:
    """Limits as the native decoder takes them."""
    limits = options.limits
    return (
        limits.max_page, limits.max_expansion, limits.expansion_floor, limits.max_values_per_byte, limits.max_column,
        options.verify_checksums, MOST_OFFSET,
    )  # fmt: skip


def _refused(refusal: Refusal, columns: Sequence[Column], account: Account) -> Refused:
    error = refusal.error
    column = columns[refusal.job]
    if error is None:
        error = worded(refusal, account.refusal)
    place = refusal.place
    if place is not None and hasattr(error, "locate"):
        error.locate(page=place)
    return Refused(error, refusal.job, min(max(refusal.piece, 0), len(column.pieces) - 1))


def _known(dictionary: Values) -> tuple[int, Any, Any]:
    if isinstance(dictionary, BinaryValues):
        return count_of(dictionary), dictionary.offsets, dictionary.data
    return len(dictionary), None, dictionary.reshape(-1)
