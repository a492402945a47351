"""Decodes column chunks to columns: prepares calls of the native decoder and converts its results.

One call takes many column chunks and decodes them on the decoder's own threads. The native code knows the rules of
pages and encodings. This module decides the form of each column, supplies the bytes and words the errors.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyparq import kernels
from pyparq.errors import ParquetError
from pyparq.format.compression import library_decoder
from pyparq.format.leaf_values import BinaryValues, Values, count_of
from pyparq.format.schema_node import Node
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import Decoded, Kind, leaf_spec
from pyparq.read.decode.decoded_leaf import is_flat, slot_level
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.decode.refusals import page_of, worded
from pyparq.read.footers.column_chunk import Chunk
from pyparq.runtime.threads import cpu_count

MOST_OFFSET = (1 << 31) - 1
"""A column of more bytes has offsets of 64 bits."""


def _inflate(codec: int, stored: Any, out: Any) -> int:
    """Number of bytes that the Python library of a codec writes to ``out``. -1 if it cannot read ``stored``."""
    decode = library_decoder(codec)
    if decode is None:
        return -1
    try:
        return int(decode(stored, out))
    except Exception:  # the libraries raise their own kinds
        return -1


kernels.set_libraries(zlib.crc32, _inflate)


@dataclass(slots=True)
class Piece:
    """The wanted part of one column chunk."""

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

    def spec(self) -> kernels.PieceSpec:
        """The piece in the form of the native decoder."""
        chunk, pages = self.chunk, self.pages
        places: tuple[Any, Any, Any] = (None, None, None)
        if pages is not None:
            places = pages.ordinals, pages.first_rows, pages.num_rows
        return kernels.PieceSpec(
            chunk.codec, chunk.num_values, chunk.num_rows, chunk.first_page == "dictionary", self.data, *places,
            self.dictionary_apart, self.rows, chunk.crypto.of_pages(),
            None if self.dictionary is None else _known(self.dictionary),
        )  # fmt: skip


@dataclass(slots=True)
class ColumnJob:
    """One output column: pieces of one leaf, one after another."""

    node: Node
    kind: Kind
    pieces: Sequence[Piece]


class PieceError(Exception):
    """The error for data that the decoder refuses, with the column and the piece."""

    def __init__(self, error: BaseException, column: int, piece: int) -> None:
        super().__init__(error)
        self.error = error
        self.column = column
        self.piece = piece


def decode(
    columns: Sequence[ColumnJob], options: ReadOptions, account: Account
) -> tuple[list[Decoded], list[kernels.PieceFacts]]:
    """Decode all ``columns``. The facts are those of all pieces, column by column.

    Of the errors that the threads find, raises the first as :class:`PieceError`.
    """
    jobs = [(spec_of(column.node, column.kind), [piece.spec() for piece in column.pieces]) for column in columns]
    results, facts, refusal = within_memory(partial(kernels.decode_columns, jobs), options, account)
    if refusal is not None:
        raise _refused(refusal, columns, account)
    found = []
    for k, (column, result) in enumerate(zip(columns, results, strict=True)):
        decoded = None if result is None else _checked(result, columns, k, options, account)
        if decoded is None:  # not all pages use the dictionary
            other = ColumnJob(column.node, "stored", column.pieces)
            try:
                (decoded,), again = decode([other], options, account)
                first = sum(len(c.pieces) for c in columns[:k])
                facts[first : first + len(again)] = again
            except PieceError as refused:
                raise PieceError(refused.error, k, refused.piece) from None
        else:
            account.take(decoded.size)
        found.append(decoded)
    return found, facts


def _checked(result: Any, columns: Sequence[ColumnJob], k: int, options: ReadOptions, account: Account) -> Decoded:
    """Check the result of column ``k``. A value that does not fit its type in memory is an error of the piece that
    holds it."""
    column = columns[k]
    try:
        found = Decoded(column.node.type, column.kind, result)
        if found.lost is not None and not is_flat(column.node):
            found.lower_levels(slot_level(column.node), column.node.max_def)
        return found
    except ParquetError as error:
        if len(column.pieces) == 1:
            raise PieceError(error, k, 0) from None
        for number, piece in enumerate(column.pieces):
            try:
                decode([ColumnJob(column.node, column.kind, [piece])], options, account)
            except PieceError as refused:
                raise PieceError(refused.error, k, number) from None
        raise PieceError(error, k, 0) from None


def spec_of(node: Node, kind: Kind = "values") -> kernels.LeafSpec:
    """A leaf in the form of the native decoder."""
    return leaf_spec(node.type, kind, node.max_def, node.max_rep, slot_level(node), not is_flat(node))


def bounds_of(options: ReadOptions, account: Account | Portion) -> tuple[kernels.PageLimits, int, int]:
    """Limits, number of threads, and bytes that are left."""
    return limits_of(options), cpu_count() if options.use_threads else 1, max(account.left, 0)


def within_memory(call: Callable[..., Any], options: ReadOptions, account: Account | Portion) -> Any:
    """The result of ``call(limits, threads, room)``, whose last item is a refusal or ``None``. Threads hold parts of
    columns beside each other: where these do not fit, one thread does the work."""
    limits, threads, room = bounds_of(options, account)
    found = call(limits, threads, room)
    if threads > 1 and found[-1] is not None and found[-1].name == "memory":
        found = call(limits, 1, room)
    return found


def limits_of(options: ReadOptions) -> kernels.PageLimits:
    """Limits in the form of the native decoder."""
    limits = options.limits
    return kernels.PageLimits(
        limits.max_page, limits.max_expansion, limits.expansion_floor, limits.max_values_per_byte, limits.max_column,
        options.verify_checksums, MOST_OFFSET,
    )  # fmt: skip


def _refused(refusal: kernels.DecodeRefusal, columns: Sequence[ColumnJob], account: Account) -> PieceError:
    error = refusal.error
    column = columns[refusal.column]
    if error is None:
        error = worded(refusal, account.refusal)
    page = page_of(refusal)
    if page is not None and hasattr(error, "locate"):
        error.locate(page=page)
    return PieceError(error, refusal.column, min(max(refusal.piece, 0), len(column.pieces) - 1))


def _known(dictionary: Values) -> tuple[int, Any, Any]:
    if isinstance(dictionary, BinaryValues):
        return count_of(dictionary), dictionary.offsets, dictionary.data
    return len(dictionary), None, dictionary.reshape(-1)
