"""Decodes column chunks to columns: prepares calls of the native decoder and converts its results.

One call takes many column chunks and decodes them on the decoder's own threads. The native code knows the rules of
pages and encodings. This module decides the form of each column, supplies the bytes and words the errors.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column, NativeColumn
from pyparq.arrow.column_operations import MOST_OFFSET
from pyparq.errors import ChecksumError, CorruptFileError, DataError, LimitError, ParquetError, UnsupportedError
from pyparq.format.compression import codec_name, encoding_name, library_decoder, unreadable
from pyparq.format.leaf_values import BinaryValues, Values, count_of
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, Physical
from pyparq.index.row_ranges import Words
from pyparq.kernels import DecodedColumn, DecodeRefusal
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import (
    Decoded,
    Kind,
    column_of,
    leaf_spec,
    native_type,
    too_many_bits,
    too_many_digits,
)
from pyparq.read.decode.leaves import is_flat
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.footers.chunks import Chunk, LeafSet
from pyparq.runtime.threads import cpu_count


def page_of(refusal: DecodeRefusal) -> int | str | None:
    """The page of a refusal, as errors name it. ``None`` if the fault is in no page."""
    return {-1: None, -2: "dictionary"}.get(refusal.page, refusal.page)


_CORRUPT: dict[str, Callable[[DecodeRefusal], str]] = {
    "stored_size": lambda r: f"the page header declares {r.a} bytes, but the column chunk has only {r.b} left",
    "negative_size": lambda r: f"the page header declares {r.a} uncompressed bytes",
    "impossible_size": lambda r: f"the page of {r.a} bytes cannot decompress to {r.b} bytes",
    "page_header": lambda r: f"bad page header: {_text(r)}",
    "pages_end": lambda r: f"the column chunk declares {r.a} values, but its pages end after {r.b}",
    "pages_hold_more": lambda r: f"the column chunk declares {r.a} values, but its pages hold {r.b}",
    "more_than_declared": lambda r: f"the pages hold more values than the column chunk declares ({r.a})",
    "dictionary_not_first": lambda r: "the dictionary page is not the first page of its column chunk",
    "no_data_header": lambda r: "the data page has no data page header",
    "negative_values": lambda r: f"the page header declares {r.a} values",
    "no_dictionary_header": lambda r: "the dictionary page has no dictionary page header",
    "negative_entries": lambda r: f"the dictionary page declares {r.a} entries",
    "dictionary_size": lambda r: f"the dictionary page declares {r.a} entries but has only {r.b} bytes",
    "dictionary_values": lambda r: f"the dictionary page is invalid: {_text(r)}",
    "uncompressed_size": lambda r: (
        f"the page header declares {r.a} bytes, but the uncompressed page has {r.b}"
    ),
    "levels_v2": lambda r: f"the levels declare {r.a} + {r.b} bytes, but the page has {r.c}",
    "ends_before_levels": lambda r: "the page ends before its levels",
    "levels_size": lambda r: f"the levels declare {r.a} bytes, but the page has only {r.b} left",
    "levels": lambda r: f"bad levels: {_text(r)}",
    "level": lambda r: f"the page has a level of {r.a}, but the maximum is {r.b}",
    "no_dictionary": lambda r: "the page is dictionary-encoded, but the column chunk has no dictionary page",
    "no_indices": lambda r: "the dictionary-encoded page has no data",
    "values": lambda r: f"bad {encoding_name(r.a)} data: {_text(r)}",
    "encoding_type": lambda r: f"encoding {encoding_name(r.a)} cannot hold {Physical(r.b).name} values",
    "plain_booleans": lambda r: f"the page has {r.a} bytes for {r.b} PLAIN booleans",
    "plain_size": lambda r: f"the page has {r.a} bytes for {r.b} PLAIN values of {r.c} bytes",
    "plain_byte_arrays": lambda r: f"the page has {r.a} bytes, too few for {r.b} PLAIN byte arrays",
    "rle_length": lambda r: "the RLE boolean page ends before its length field",
    "rle_size": lambda r: f"the RLE boolean page declares {r.a} bytes, but only {r.b} follow",
    "split_size": lambda r: f"the page has {r.a} bytes for {r.b} BYTE_STREAM_SPLIT values of {r.c} bytes",
    "fixed_length": lambda r: f"the page has DELTA_BYTE_ARRAY values that are not {r.a} bytes long",
    "utf8": lambda r: (
        f"value {r.a} of the page is not UTF-8: {r.text!r}...; read it with binary_columns=[...] to get bytes"
    ),
    "page_rows": lambda r: f"the page has {r.a} rows, but the OffsetIndex says {r.b}",
    "mid_row": lambda r: "the page starts in the middle of a row",
    "first_repetition": lambda r: f"the first repetition level is {r.a}, but a row must start with 0",
    "rows_held": lambda r: f"the pages hold {r.a} rows, but the row group has {r.b}",
    "too_many_values": lambda r: "the pages hold more values than the rows that they are for",
}  # fmt: skip

_LIMITS: dict[str, Callable[[DecodeRefusal], str]] = {
    "max_page": lambda r: f"the page of {r.a} bytes decompresses to {r.b}: more than limits.max_page ({r.c})",
    "max_expansion": lambda r: (
        f"the page of {r.a} bytes decompresses to {r.b}: more than limits.max_expansion ({r.c}) allows"
    ),
    "values_per_byte": lambda r: (
        f"the page declares {r.a} values in {r.b} bytes: more than limits.max_values_per_byte allows"
    ),
    "max_column": lambda r: f"the decoded column chunk takes {r.a} bytes: more than limits.max_column ({r.b})",
}


def worded(refusal: DecodeRefusal, too_much: Callable[[int, int], ParquetError]) -> ParquetError:
    """The error to raise, without its place. ``too_much(size, held)``: the error for a read that needs ``size`` more
    bytes than the ``held`` ones of this call."""
    name = refusal.name
    if name == "memory":
        return too_much(refusal.a, refusal.b)
    if name == "crc":
        advice = "" if refusal.a else ". Some writers store 0 for every page: verify_checksums=False reads these"
        return ChecksumError(f"the page does not match its CRC (stored {refusal.a:#010x}){advice}")
    if name in _LIMITS:
        return LimitError(_LIMITS[name](refusal))
    if name == "encoding":
        return UnsupportedError(f"{encoding_name(refusal.a)} is not supported; a newer pyparq may read it")
    if name == "dictionary_encoding":
        return UnsupportedError(f"the dictionary page has encoding {encoding_name(refusal.a)}, which is not supported")
    if name == "inflated_size":
        return _not_inflated(refusal)
    if name == "decimal_digits":
        return DataError(too_many_digits(refusal.a))
    if name == "integer_bits":
        return DataError(too_many_bits(refusal.a, bool(refusal.b)))
    if name in _CORRUPT:
        return CorruptFileError(_CORRUPT[name](refusal))
    return CorruptFileError(f"{name}: {_text(refusal)}")


def _not_inflated(refusal: DecodeRefusal) -> ParquetError:
    codec, found, due = refusal.a, refusal.b, refusal.c
    if (reason := unreadable(codec)) is not None:
        return UnsupportedError(reason)
    if found < 0:
        return CorruptFileError(
            f"the {codec_name(codec)} data is invalid, or decompresses to more than the {due} bytes that the page "
            "header declares"
        )
    return CorruptFileError(
        f"the {codec_name(codec)} data decompresses to {found} bytes, but the page header declares {due}"
    )


def _text(refusal: Any) -> str:
    return str(refusal.text.decode("utf-8", "replace"))


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
            found.lower_levels(column.node.slot_level, column.node.max_def)
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
    return leaf_spec(node.type, kind, node.max_def, node.max_rep, node.slot_level, not is_flat(node))


def within_memory(call: Callable[..., Any], options: ReadOptions, account: Account | Portion) -> Any:
    """The result of ``call(limits, threads, room)``, whose last item is a refusal or ``None``. Threads hold parts of
    columns beside each other: where these do not fit, one thread does the work."""
    limits, room = limits_of(options), max(account.left, 0)
    threads = cpu_count() if options.use_threads else 1
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


NativeLeaf: TypeAlias = DecodedColumn | tuple[DecodedColumn, list[Any]]
"""A decoded leaf. Codes come with the dictionaries of the row groups."""


def decode_chunks(
    leaves: LeafSet,
    runs: Sequence[int],
    chunks: tuple[Any, ...],
    read: list[tuple[int, Any]],
    options: ReadOptions,
    account: Account | Portion,
    wanted: Sequence[Words | None] = (),
) -> tuple[list[NativeLeaf | None], kernels.ChunkTotals]:
    """Decode whole chunks.

    ``chunks``: as :meth:`ChunkTable.whole` describes them. ``runs``: how many row groups are joined, for each run of
    them. Columns come in the same order. ``read``: offsets in the file, and the bytes there. ``wanted``: for each run a
    bitmap of the rows to decode, or ``None`` for all of them. A row group without such rows need not be in ``read``. A
    leaf whose codes are asked for is ``None`` where a page has no codes. Raises :class:`PieceError` without naming the
    chunk.
    """
    num_rows, codec, num_values, has_dictionary, start, size = chunks
    lengths, described = np.array(runs, np.int64), (leaves.decoded or _specs(leaves)).leaves
    call = partial(
        kernels.decode_chunks, described, lengths, num_rows, codec, num_values, has_dictionary, start, size, read,
        wanted=list(wanted),
    )  # fmt: skip
    found, totals, refusal = within_memory(call, options, account)
    if refusal is not None:
        raise PieceError(refusal.error or worded(refusal, account.refusal), 0, 0)
    account.take(totals.num_bytes)
    return found, totals


def columns_of(leaves: LeafSet, natives: Sequence[NativeLeaf]) -> list[Column]:
    """The results of :func:`decode_chunks` for each leaf, as columns of their types, or of codes."""
    return [
        Decoded(node.type, "codes", (native[0], [_joined(native[1])])).column
        if isinstance(native, tuple)
        else column_of(node.type, native)
        if type_ is None or native.has_wide_offsets
        else NativeColumn(type_, native)
        for node, type_, native in zip(leaves.nodes, (leaves.decoded or _specs(leaves)).types, natives, strict=True)
    ]


def _joined(dictionaries: Sequence[Any]) -> tuple[int, Any, Any]:
    """The dictionaries of several row groups, of byte arrays, as one."""
    there = [found for found in dictionaries if found is not None]
    starts = accumulate((int(edges[-1]) for _, edges, _ in there), initial=0)
    edges = [part[1:] + start for (_, part, _), start in zip(there, starts, strict=False)]
    data = [part[: edges[-1]] for _, edges, part in there]
    none = np.zeros(0, np.uint8)
    return sum(found[0] for found in there), np.concatenate(([0], *edges)), np.concatenate((none, *data))


class _Specs(NamedTuple):
    """For each leaf of a :class:`LeafSet`, its description for the decoder."""

    leaves: list[kernels.LeafSpec]
    types: list[DataType | None]
    """As :func:`native_type` has them."""


def _specs(leaves: LeafSet) -> _Specs:
    known: _Specs | None = leaves.decoded
    if known is None:
        types = [native_type(node.type) for node in leaves.nodes]
        coded = zip(leaves.nodes, leaves.coded, strict=True)
        known = leaves.decoded = _Specs([spec_of(node, "codes" if c else "values") for node, c in coded], types)
    return known
