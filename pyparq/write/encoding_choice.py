"""Chooses the encoding of a column by measuring: candidates are tried on the first page, of texts on a part of it.

The sizes that are compared are stored sizes: encoded, then compressed with the column's codec. ``CANDIDATES`` are the
encodings that pyarrow, DuckDB, polars, DataFusion and Spark all read, in version 1 and 2 pages. A candidate replaces
the best one so far if it takes at most ``MOST[encoding]`` of its bytes. docs/encodings.md has the measurements behind
the thresholds. Dictionaries are decided elsewhere (``encode/encoding_choice.cpp``), because they need the whole chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Condition, Lock

from pyparq.format import compression
from pyparq.format.compression import (
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    RLE,
)
from pyparq.format.leaf_values import Values, same_values
from pyparq.format.types import LeafType, Physical
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import check_stopped

CANDIDATES: dict[Physical, tuple[int, ...]] = {
    Physical.BOOLEAN: (RLE,),
    Physical.INT32: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    Physical.INT64: (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT),
    Physical.FLOAT: (BYTE_STREAM_SPLIT,),
    Physical.DOUBLE: (BYTE_STREAM_SPLIT,),
    Physical.BYTE_ARRAY: (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY),
}
"""By physical type. Fixed-length byte arrays have no candidate that both DuckDB and polars read."""

MOST = {
    RLE: 0.9,
    DELTA_BINARY_PACKED: 0.95,
    BYTE_STREAM_SPLIT: 0.9,
    DELTA_LENGTH_BYTE_ARRAY: 1.0,  # faster to read than PLAIN in every reader, so it need not be smaller
    DELTA_BYTE_ARRAY: 0.6,  # each value depends on the one before: two to five times slower to read
}
"""Maximum share of the bytes of the best encoding so far that a candidate may take."""

MOST_OF_DICTIONARY = 0.8
"""The same against a dictionary. Readers prefer dictionaries, which also answer filters."""

DICTIONARY_SETTLES = 0.25
"""A dictionary of at most this share of PLAIN's bytes (before compression) is kept without trying other encodings."""

MIN_VALUES = 256
"""Fewer values decide nothing, and could gain nothing."""

KEY = "pyparq.encoding"
"""Key of the record in the metadata of the column chunk that decided: ``encoding=bytes`` per value of the sample, the
chosen encoding first."""


def parse_record(text: str) -> dict[int, float] | None:
    """The sizes of a :meth:`Choice.record`, the chosen encoding first; ``None`` for anything else."""
    try:
        pairs = [item.split("=") for item in text.split()]
        return {int(encoding): float(size) for encoding, size in pairs}
    except ValueError:
        return None


_POLL = 0.1
"""Seconds between two checks of a waiting thread whether it has to stop."""


def candidates_of(leaf: LeafType, codec: int) -> tuple[int, ...]:
    """Encodings to try for a leaf."""
    found = CANDIDATES.get(leaf.physical, ())
    # Without a codec the split streams are as long as the values. Spark does not read them as unsigned numbers.
    if codec == compression.UNCOMPRESSED or (leaf.kind == "uint" and leaf.bits >= 32):
        found = tuple(e for e in found if e != BYTE_STREAM_SPLIT)
    return found


class Choices:
    """The choices of one file. Each column's first row group decides, and later ones wait for it and follow.

    If the first row group has too few values to decide, every later one decides for itself.
    """

    def __init__(self, columns: int) -> None:
        self._decided = [False] * columns
        self._found: list[tuple[int, float] | None] = [None] * columns
        self._entries: dict[int, Values] = {}
        self._lock = Lock()
        self._news = Condition(self._lock)
        fork_safety.watch(self)
        self.reordered: set[int] = set()
        """Dictionary columns whose row groups do not all have the entries of one dictionary in its order."""

    def _after_fork(self) -> None:
        self._lock = Lock()
        self._news = Condition(self._lock)

    def decided(self, columns: Sequence[int], choice: Callable[[int], tuple[int, float] | None]) -> None:
        """The first row group's choices: encoding and stored bytes per value. ``None`` if it made none. ``choice``: by
        the place among ``columns``."""
        for k, column in enumerate(columns):
            self._found[column] = choice(k)

    def of(self, column: int) -> tuple[int, float] | None:
        """The first row group's choice, for a later row group. Waits until it is made."""
        if not self._decided[column]:
            with self._news:
                while not self._decided[column]:
                    check_stopped()
                    self._news.wait(_POLL)
        return self._found[column]

    def agrees(self, column: int, entries: Values) -> bool:
        """Whether these are the entries of the column's other row groups."""
        with self._lock:
            first = self._entries.setdefault(column, entries)
        return first is entries or same_values(first, entries)

    def release(self, columns: Iterable[int]) -> None:
        """Stop all waiting for these columns: their first row group is encoded, or has failed, or was dropped."""
        with self._news:
            for column in columns:
                self._decided[column] = True
            self._news.notify_all()
