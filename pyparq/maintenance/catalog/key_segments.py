"""Makes segments of the key table: out of rows, and out of other segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyparq.datasets.catalog.key_table import SCHEMA, Columns, KeyTable
from pyparq.datasets.catalog.layout import Place, Segment
from pyparq.maintenance.catalog.part_writing import write_part
from pyparq.option_values import Encoding

ENCODINGS: dict[str, Encoding] = dict.fromkeys(("hash", "file", "row_group"), "DELTA_BINARY_PACKED")
PAGE_ROWS = 8192
"""Rows of a page: 40 KB. A key reads one page."""


def ordered(columns: Columns) -> Columns:
    """In the order of a key table, each row once."""
    hashes, files, row_groups = columns
    order = np.lexsort((row_groups, files, hashes))
    hashes, files, row_groups = hashes[order], files[order], row_groups[order]
    new = np.ones(len(hashes), bool)
    new[1:] = (np.diff(hashes) != 0) | (np.diff(files) != 0) | (np.diff(row_groups) != 0)
    return (hashes, files, row_groups) if new.all() else (hashes[new], files[new], row_groups[new])


def asked_at_once(segments: Sequence[Segment]) -> int:
    """The most segments that may have one hash."""
    ranges = [(s.low << (64 - s.bits), ((s.high + 1) << (64 - s.bits)) - 1) for s in segments]
    return max((sum(low <= at <= high for low, high in ranges) for at, _ in ranges), default=0)


def write_segment(place: Place, column: int, bits: int, columns: Columns) -> Segment:
    """A new segment with these rows, which are in order. There must be some."""
    table = dict(zip(("hash", "file", "row_group"), columns, strict=True))
    part = write_part(place, "keys", SCHEMA, [table], ENCODINGS, PAGE_ROWS)
    return Segment(part, column, bits, int(columns[0][0]), int(columns[0][-1]))


def merged(place: Place, column: int, tables: Sequence[KeyTable], live: Any, most: int, bits: int) -> Iterator[Segment]:
    """The rows of several segments in new ones of about ``most`` rows, without those of files that are not ``live`` (a
    mask by the number of the file). Each new segment has a range of hashes of its own. ``bits``: those to store, if the
    segments have them."""
    bits = min(bits, *(table.segment.bits for table in tables))
    count = -(-sum(table.part.rows for table in tables) // most)
    ends = [(k << bits) // count for k in range(count + 1)]
    for low, high in itertools.pairwise(ends):
        yield from merged_range(place, column, tables, live, (low, high - 1, bits))


def merged_range(
    place: Place, column: int, tables: Sequence[KeyTable], live: Any, wanted: tuple[int, int, int]
) -> Iterator[Segment]:
    """The rows of one range of hashes: from, to, and their bits."""
    parts = [table.between(*wanted) for table in tables]
    columns = [np.concatenate([part[k] for part in parts]) for k in range(3)]
    kept = live[columns[1]]
    rows = ordered((columns[0][kept], columns[1][kept], columns[2][kept]))
    if len(rows[0]):
        yield write_segment(place, column, wanted[2], rows)
