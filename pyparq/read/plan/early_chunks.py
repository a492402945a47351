"""Small column chunks of a remote file, requested beside the indexes that may rule them out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.format.schema_node import Node
from pyparq.io.byte_ranges import Range
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.joint_requests import MOST_CHUNKS
from pyparq.read.plan.row_groups import Selection
from pyparq.read.plan.spare_bytes import SpareBytes

FEW = 4
"""Row groups whose chunks are requested beside their Bloom filters, at most: a filter rules out most row groups, and
each chunk is a request."""


class EarlyChunks:
    """The column chunks that a scan reads if its indexes rule nothing out."""

    def __init__(self, file: OpenFile, spare: SpareBytes, tested: Sequence[Node], outputs: Sequence[Node]) -> None:
        """``tested``: the leaves of the filter, which are read first. ``outputs``: those of the result."""
        self._file = file
        self._spare = spare
        self._kinds = tested, [node for node in outputs if node not in tested]
        self._taken = 0

    def begin(self, selections: Sequence[Selection], indexes: Sequence[Range], filters: int) -> None:
        """Request the chunks of these row groups without waiting, if they have few bytes and any of the ``indexes`` has
        to be waited for: all chunks, or those of the filter alone. The bytes are kept until the scan ends.

        ``filters``: the number of Bloom filters among the indexes.
        """
        fetcher = self._file.fetcher
        many = filters > FEW or len(selections) * sum(map(len, self._kinds)) > MOST_CHUNKS
        if many or not fetcher.missing_bytes([indexes]):
            return
        with suppress(ParquetError):  # the read meets the error again, if it needs the chunk
            tested, others = self._kinds
            for nodes in ([*tested, *others], tested):
                groups = [self._places(selection, nodes) for selection in selections]
                size = fetcher.missing_bytes(groups)
                if self._spare.take(size):
                    self._taken = size
                    fetcher.begin_groups(groups)
                    return

    def settle(self, is_needed: bool) -> None:
        """Say whether any row group is left: the chunks are then needed."""
        if is_needed:
            self._spare.give_back(self._taken)
        self._taken = 0

    def _places(self, selection: Selection, nodes: Sequence[Node]) -> list[Range]:
        chunks = [self._file.chunk(selection.row_group, node) for node in nodes]
        return [(chunk.start, chunk.size) for chunk in chunks]
