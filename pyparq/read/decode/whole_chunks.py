"""Decodes whole column chunks that are described by arrays: one call for all chunks of a read, without Python per
chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column, NativeColumn
from pyparq.format.types import DataType
from pyparq.index.row_mask import Words
from pyparq.kernels import DecodedColumn
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import column_of, native_type
from pyparq.read.decode.decoder import PieceError, bounds_of, spec_of
from pyparq.read.decode.memory_account import Account
from pyparq.read.decode.refusals import worded
from pyparq.read.footers.leaf_set import LeafSet


class WholeChunks(NamedTuple):
    """Column chunks in the clear, all rows. The arrays are int64, row groups x columns; ``num_rows`` per row group."""

    num_rows: Any
    codec: Any
    num_values: Any
    has_dictionary: Any
    """1 where the first page is the dictionary page."""
    start: Any
    size: Any


def decode_chunks(
    leaves: LeafSet,
    runs: Sequence[int],
    chunks: WholeChunks,
    read: list[tuple[int, Any]],
    options: ReadOptions,
    account: Account,
    wanted: Sequence[Words | None] = (),
) -> tuple[list[DecodedColumn], kernels.ChunkTotals]:
    """Decode whole chunks.

    ``runs``: how many row groups are joined, for each run of them. Columns come in the same order. ``read``: offsets in
    the file, and the bytes there. ``wanted``: for each run a bitmap of the rows to decode, or ``None`` for all of them.
    A row group without such rows need not be in ``read``. Raises :class:`PieceError` without naming the chunk.
    """
    num_rows, codec, num_values, has_dictionary, start, size = (array.ravel() for array in chunks)
    found, totals, refusal = kernels.decode_chunks(
        _specs(leaves).leaves, np.array(runs, np.int64), num_rows, codec, num_values, has_dictionary, start, size, read,
        *bounds_of(options, account), list(wanted),
    )  # fmt: skip
    if refusal is not None:
        raise PieceError(refusal.error or worded(refusal, account.refusal), 0, 0)
    account.take(totals.num_bytes)
    return found, totals


def columns_of(leaves: LeafSet, natives: Sequence[DecodedColumn]) -> list[Column]:
    """The results of :func:`decode_chunks` for each leaf, as columns of their types."""
    return [
        column_of(node.type, native) if type_ is None or native.has_wide_offsets else NativeColumn(type_, native)
        for node, type_, native in zip(leaves.nodes, _specs(leaves).types, natives, strict=True)
    ]


class _Specs(NamedTuple):
    """For each leaf of a :class:`LeafSet`, its description for the decoder."""

    leaves: list[kernels.LeafSpec]
    types: list[DataType | None]
    """As :func:`native_type` has them."""


def _specs(leaves: LeafSet) -> _Specs:
    known: _Specs | None = leaves.decoded
    if known is None:
        types = [native_type(node.type) for node in leaves.nodes]
        known = leaves.decoded = _Specs([spec_of(node) for node in leaves.nodes], types)
    return known
