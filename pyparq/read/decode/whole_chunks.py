"""Decodes whole column chunks that are described by arrays: one call for all chunks of a read, without Python per
chunk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column, NativeColumn
from pyparq.format.types import DataType
from pyparq.index.row_mask import Words
from pyparq.kernels import DecodedColumn
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import Decoded, column_of, native_type
from pyparq.read.decode.decoder import PieceError, spec_of, within_memory
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.decode.refusals import worded
from pyparq.read.footers.leaf_set import LeafSet

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
    lengths, described = np.array(runs, np.int64), _specs(leaves).leaves
    found, totals, refusal = within_memory(
        lambda limits, threads, room: kernels.decode_chunks(
            described, lengths, num_rows, codec, num_values, has_dictionary, start, size, read, limits, threads, room,
            list(wanted),
        ), options, account,
    )  # fmt: skip
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
        for node, type_, native in zip(leaves.nodes, _specs(leaves).types, natives, strict=True)
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
