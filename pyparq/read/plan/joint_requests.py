"""What a read of a remote file asks for in one step, though only part of it may turn out to be needed.

Each stage of pruning needs what the one before has left, so a local file is read stage by stage. A store answers a
request after many milliseconds, in which it could have sent megabytes. There, the bytes that later steps are likely to
need are asked for with those that the next one needs, and a lookup of few rows takes four steps:

1. the end of the file, with the footer;
2. ColumnIndexes, OffsetIndexes, Bloom filter blocks, dictionaries that are tested;
3. the pages of the filter columns;
4. the pages of the other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyparq.io.byte_ranges import Range
from pyparq.io.early_requests import Ahead
from pyparq.io.fetch import Fetcher

MOST = 8 << 20
"""Bytes asked for in one step before it is known that they are needed. A store sends as many in about the time that it
takes to answer one more request."""
GAP = 128 << 10
"""Bytes between two ranges that become one request, instead of :data:`pyparq.io.fetch.REMOTE_GAP`: these requests do
not wait for each other. Single blocks of Bloom filters would be joined across whole filters."""


def pays(fetcher: Fetcher) -> bool:
    """Whether requests of this file take so long that asking for more at once is worth it."""
    return not fetcher.source.is_local


def hold(fetcher: Fetcher, kinds: Iterable[Sequence[Range]]) -> Ahead:
    """Ask for ranges of several kinds in one step. The most useful come first: where a kind is too large it is left
    out, and asked for when it is needed."""
    wanted, left = list[Range](), MOST
    for ranges in kinds:
        size = sum(length for _, length in ranges)
        if size <= left:
            left -= size
            wanted += ranges
    return fetcher.hold(wanted, GAP)
