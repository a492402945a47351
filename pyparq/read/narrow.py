"""Keep only some rows of a leaf within lists while a chunk is decoded: which entries these have, only the levels of a
page tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import encodings
from pyparq.encodings import plain
from pyparq.errors import CorruptFileError
from pyparq.index.row_ranges import RowRanges
from pyparq.read.pages import PageParts
from pyparq.read.sparse import pick
from pyparq.schemas.types import LeafType
from pyparq.schemas.values import Values

Int64Array = npt.NDArray[np.int64]


class Narrower:
    """Finds the wanted rows in pages that are opened one after another."""

    def __init__(self, max_def: int, rows: RowRanges) -> None:
        self._max_def = max_def
        self._wanted = rows.rows()

    def narrow(self, parts: PageParts, first: int) -> tuple[PageParts, Int64Array]:
        """The page's levels at the wanted rows, and which of its values (nulls not counted) these have.

        ``first`` is the next row to start."""
        entries = self._entries(parts, first)
        reps, defs = parts.rep_levels, parts.def_levels
        values = entries
        if defs is not None:
            values = _values_at(defs == self._max_def, entries)
            defs = defs[entries]
        if reps is not None:
            reps = reps[entries]
        return PageParts(len(entries), reps, defs, len(values), parts.encoding, parts.data), values

    def _entries(self, parts: PageParts, first: int) -> Int64Array:
        reps = parts.rep_levels
        assert reps is not None
        # The first entries may continue the row before, where pages do not begin with one.
        if first == 0 and len(reps) and reps[0] != 0:
            raise CorruptFileError("the first repetition level is not 0, but a row must start with 0")
        row_of = np.cumsum(reps == 0, dtype=np.int64)
        started = int(row_of[-1]) if len(row_of) else 0
        wanted = np.zeros(started + 1, np.bool_)
        places = self._wanted.searchsorted((first - 1, first + started))
        wanted[self._wanted[places[0] : places[1]] - first + 1] = True
        return np.flatnonzero(wanted[row_of])


def _values_at(present: npt.NDArray[np.bool_], entries: Int64Array) -> Int64Array:
    """Which of the values that are present the given entries have."""
    if not len(entries):
        return entries
    first = entries[0]
    near = present[first : entries[-1] + 1]
    numbers = np.cumsum(near, dtype=np.int64) + (np.count_nonzero(present[:first]) - 1)
    wanted = entries - first
    return np.asarray(numbers[wanted[near[wanted]]])


def decode_at(encoding: int, data: Any, count: int, leaf: LeafType, places: Int64Array) -> Values:
    """The values at ``places`` of a whole page of ``count`` that is not dictionary-encoded.

    Raises :class:`CorruptFileError` or :class:`KernelError` for bytes that do not decode, :class:`UnsupportedError`
    for an unknown encoding.
    """
    if encoding == encodings.PLAIN and leaf.is_binary:
        return plain.decode_binary_at(data, count, places)
    return pick(encodings.decode(encoding, data, count, leaf), places)
