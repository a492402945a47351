"""The encoding of a column that none was asked for: candidates are tried on the first page's values, and measured.

What is compared are bytes as they would be stored: encoded, then compressed with the column's codec. ``CANDIDATES``
are the encodings that pyarrow, DuckDB, polars, DataFusion and Spark all read, in version 1 and 2 pages; each replaces
the best before it when it takes at most ``MOST[encoding]`` of its bytes. docs/encodings.md has the measurements that
the thresholds come from. Dictionaries are another matter (:mod:`pyparq.write.encode`): they need the whole chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq import compression, encodings, forks
from pyparq.encodings import (
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    PLAIN,
    RLE,
    plain,
    rle,
)
from pyparq.format import ttypes as tt
from pyparq.schemas.types import LeafType, Physical
from pyparq.schemas.values import BinaryValues, Values, count_of, plain_size, same_values, slice_of
from pyparq.write.encode import DictionarySection, known_dictionary, share_of_plain, try_dictionary

if TYPE_CHECKING:
    from pyparq.options import WriteOptions
    from pyparq.write.plan import ColumnPlan
    from pyparq.write.shred import LeafData

CANDIDATES: dict[Physical, tuple[int, ...]] = {
    Physical.BOOLEAN: (RLE,),
    Physical.INT32: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    Physical.INT64: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    Physical.FLOAT: (BYTE_STREAM_SPLIT,),
    Physical.DOUBLE: (BYTE_STREAM_SPLIT,),
    Physical.BYTE_ARRAY: (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY),
}
"""For fixed-length byte arrays there is none that DuckDB and polars both read."""

MOST = {
    RLE: 0.9,
    DELTA_BINARY_PACKED: 0.95,
    BYTE_STREAM_SPLIT: 0.9,
    DELTA_LENGTH_BYTE_ARRAY: 1.0,  # faster than PLAIN in every reader: it need not be smaller
    DELTA_BYTE_ARRAY: 0.6,  # each value waits for the one before it: two to five times slower to read
}
"""Share of the bytes of the best encoding so far that a candidate may take, at most."""

MOST_OF_DICTIONARY = 0.8
"""The same against a dictionary, which readers prefer: it also answers filters."""

DICTIONARY_SETTLES = 0.25
"""A dictionary of at most this share of PLAIN's bytes (before compression) is kept without trying anything else."""

MIN_VALUES = 256
"""Fewer values than this tell nothing, and there is nothing to gain."""

KEY = "pyparq.encoding"
"""Key of the record in the metadata of the column chunk that decided: ``encoding=bytes`` per value of the sample, the
encoding that was taken first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for a column, and from what."""

    encoding: int = PLAIN
    sizes: dict[int, float] = field(default_factory=dict)
    """Stored bytes per value of the sample, by encoding; empty when nothing was measured."""

    def record(self) -> tt.KeyValue | None:
        """For the metadata of the chunk that decided."""
        if not self.sizes:
            return None
        order = sorted(self.sizes, key=lambda e: (e != self.encoding, e))
        return tt.KeyValue(KEY, " ".join(f"{e}={self.sizes[e]:.3g}" for e in order))


def parse_record(text: str) -> dict[int, float] | None:
    """The sizes of a :meth:`Choice.record`, the chosen encoding first; ``None`` for anything else."""
    try:
        pairs = [item.split("=") for item in text.split()]
        return {int(encoding): float(size) for encoding, size in pairs}
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Decision:
    """How the values of a column chunk are written."""

    dictionary: DictionarySection | None
    encoding: int
    """Of the values without a dictionary."""
    record: tt.KeyValue | None
    """What the choice came from, in the chunk that made it."""
    distinct: int | None
    """Different values, where a complete dictionary (kept or not) has counted them."""


def decide(data: LeafData, plan: ColumnPlan, options: WriteOptions, choices: Choices, row_group: int) -> Decision:
    """Dictionary or not, and which encoding otherwise, for one chunk."""
    values, dictionary = data.values, None
    if plan.entries:
        dictionary = _known(data, plan, options, choices)
        if dictionary is not None:
            return Decision(dictionary, PLAIN, None, len(np.unique(dictionary.indices)))
    if plan.dictionary:
        dictionary = try_dictionary(values, plan.leaf, options.dictionary_pagesize_limit, plan.keep_dictionary)
    distinct = count_of(dictionary.entries) if dictionary is not None and dictionary.complete else None
    if plan.encoding is not None:
        return Decision(dictionary, plan.encoding, None, distinct)
    if plan.entries:  # pyarrow makes dictionaries of no other encoding
        return Decision(dictionary, PLAIN, None, distinct)
    if dictionary is not None and dictionary.complete and share_of_plain(dictionary, values) <= DICTIONARY_SETTLES:
        return Decision(dictionary, PLAIN, None, distinct)
    # The page that decides is the first one that this encoding would have to hold.
    start = len(dictionary.indices) if dictionary is not None and not dictionary.complete else 0
    choice, here = choices.of(slice_of(values, start, count_of(values)), plan, options, row_group)
    if dictionary is not None and beats_dictionary(choice, dictionary, plan, options):
        dictionary = None
    return Decision(dictionary, choice.encoding, choice.record() if here else None, distinct)


def _known(data: LeafData, plan: ColumnPlan, options: WriteOptions, choices: Choices) -> DictionarySection | None:
    """The dictionary that the values come from; ``None`` where it is not to be kept, or cannot be."""
    known, section = data.known, None
    if not count_of(data.values) and (known is None or not count_of(known.values)):
        return None  # nothing but nulls, of no dictionary
    if known is not None and plan.dictionary:
        section = known_dictionary(data.values, known.values, plan.leaf, options.dictionary_pagesize_limit)
    if known is None or section is None or known.source is None or not choices.agrees(plan.column, known.values):
        choices.reordered.add(plan.column)
    return section


def choose(values: Values, plan: ColumnPlan, options: WriteOptions) -> Choice:
    """Try the candidates on the values of a first page."""
    sample = first_page(values, options)
    count, leaf = count_of(sample), plan.leaf
    candidates = candidates_of(leaf, plan.codec)
    if count < MIN_VALUES or not candidates:
        return Choice()
    sizes = {e: stored_size(plan, encodings.encode(e, sample, leaf)) / count for e in (PLAIN, *candidates)}
    best = PLAIN
    for candidate in candidates:
        if sizes[candidate] <= MOST[candidate] * sizes[best]:
            best = candidate
    return Choice(best, sizes)


def candidates_of(leaf: LeafType, codec: int) -> tuple[int, ...]:
    """Encodings worth trying for a leaf."""
    found = CANDIDATES.get(leaf.physical, ())
    # Without a codec the split streams are as long as the values, and Spark does not read them as unsigned numbers.
    if codec == compression.UNCOMPRESSED or (leaf.kind == "uint" and leaf.bits >= 32):
        found = tuple(e for e in found if e != BYTE_STREAM_SPLIT)
    return found


def beats_dictionary(choice: Choice, section: DictionarySection, plan: ColumnPlan, options: WriteOptions) -> bool:
    """Does the chosen encoding take clearly less than a dictionary (which is smaller than PLAIN)?"""
    if choice.encoding == PLAIN:
        return False
    covered = len(section.indices)
    indices = section.indices[: min(covered, options.max_rows_per_page)]
    per_value = stored_size(plan, rle.encode_indices(indices, count_of(section.entries))) / len(indices)
    if choice.sizes[choice.encoding] >= MOST_OF_DICTIONARY * per_value + plain_size(section.entries) / covered:
        return False
    some = first_page(section.entries, options)
    stored = stored_size(plan, plain.encode(some, plan.leaf)) * plain_size(section.entries) / plain_size(some)
    return choice.sizes[choice.encoding] < MOST_OF_DICTIONARY * (per_value + stored / covered)


def first_page(values: Values, options: WriteOptions) -> Values:
    """The values that one page takes: up to ``max_rows_per_page`` of them, and about ``data_page_size`` bytes."""
    count = min(count_of(values), options.max_rows_per_page)
    if isinstance(values, BinaryValues):
        offsets = values.offsets[: count + 1]
        count = max(int((offsets - offsets[0]).searchsorted(options.data_page_size, side="right")) - 1, min(count, 1))
    return slice_of(values, 0, count)


def stored_size(plan: ColumnPlan, body: Any) -> int:
    """Bytes that an encoded page body takes behind the column's codec."""
    return memoryview(compression.compress(plan.codec, body, plan.level)).nbytes


class Choices:
    """The choices of one file: each column's first row group decides, later ones wait for it and follow.

    A first row group that holds too little to decide leaves every later one to decide for itself.
    """

    def __init__(self, columns: int) -> None:
        self._decided = [Event() for _ in range(columns)]
        self._found: list[Choice | None] = [None] * columns
        self._entries: dict[int, Values] = {}
        self._after_fork()
        forks.watch(self)
        self.reordered: set[int] = set()
        """Columns of dictionaries whose entries are not in all row groups those of one dictionary in its order."""

    def _after_fork(self) -> None:
        self._lock = Lock()

    def of(self, values: Values, plan: ColumnPlan, options: WriteOptions, row_group: int) -> tuple[Choice, bool]:
        """The choice for a column chunk, and whether it was made there."""
        if row_group:
            self._decided[plan.column].wait()
            found = self._found[plan.column]
            return (found, False) if found is not None else (choose(values, plan, options), True)
        made = choose(values, plan, options)
        if made.sizes:
            self._found[plan.column] = made
        self._decided[plan.column].set()
        return made, True

    def agrees(self, column: int, entries: Values) -> bool:
        """Are these the entries of the column's other row groups?"""
        with self._lock:
            first = self._entries.setdefault(column, entries)
        return first is entries or same_values(first, entries)

    def release(self, columns: Iterable[int]) -> None:
        """Let nobody wait (any longer) for these columns: their first row group is encoded, or failed, or dropped."""
        for column in columns:
            self._decided[column].set()
