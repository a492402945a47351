"""Requests that a read of a remote file makes in one step, although it may not need all of them.

Each stage of pruning needs the result of the stage before it, so a local file is read stage by stage. A store takes
many milliseconds to answer a request, in which it could send megabytes. So the bytes that later steps will likely need
are requested together with those of the next step. A lookup of few rows then takes four steps:

1. the end of the file, with the footer;
2. ColumnIndexes, OffsetIndexes, Bloom filter blocks, dictionaries that are tested;
3. the pages of the filter columns;
4. the pages of the other columns.

Small pages and column chunks come one step earlier (:mod:`pyparq.read.plan.spare_bytes`). So it takes two or three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import EarlyRequests, Fetcher

MOST = 8 << 20
"""Bytes that are requested in one step before they are known to be needed. A store sends about as many in the time that
one more request takes."""
GAP = 128 << 10
"""Maximum number of bytes between two ranges that become one request, in place of :data:`pyparq.io.fetch.REMOTE_GAP`.
These requests run at the same time. A larger gap would join the blocks of Bloom filters across whole filters."""

MOST_CHUNKS = 1000
"""Maximum number of column chunks whose metadata and page locations are looked at before they are known to be
needed."""


def pays(fetcher: Fetcher) -> bool:
    """Whether requests to this file take so long that asking for more at once pays."""
    return not fetcher.source.is_local


def chosen(kinds: Iterable[Sequence[Range]]) -> list[Range]:
    """The ranges of several kinds that are requested in one step. The most useful kinds come first. A kind that is too
    large is left out, and requested later when it is needed."""
    wanted, left = list[Range](), MOST
    for ranges in kinds:
        size = sum(length for _, length in ranges)
        if size <= left:
            left -= size
            wanted += ranges
    return wanted


def hold(fetcher: Fetcher, ranges: Sequence[Range]) -> EarlyRequests:
    """Request the :func:`chosen` ranges in one step."""
    return fetcher.hold(ranges, GAP)
