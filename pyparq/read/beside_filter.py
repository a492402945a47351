"""What the other columns of a remote file will need, requested while the filter columns are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.format.schema_node import Node
from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import EarlyRequests
from pyparq.read.column_reads import ColumnReader
from pyparq.read.plan.page_indexes import offset_index_range
from pyparq.read.plan.page_reads import ColumnRead, plan_column
from pyparq.read.plan.prune import chunks_to_locate
from pyparq.read.plan.row_groups import Selection
from pyparq.read.plan.spare_bytes import TRIP


class BesideFilter:
    """Requests for the other columns of some row groups: for the pages of all rows that can match, if they have few
    bytes, or else for the places of pages."""

    def __init__(self, columns: ColumnReader, selections: Sequence[Selection], nodes: Sequence[Node]) -> None:
        """``nodes``: the leaves of the result that are not in the filter."""
        self._spare = columns.spare
        self._file = columns.file
        self._selections = selections
        self._nodes = nodes
        self._taken = 0
        self._ahead: EarlyRequests | None = None

    def begin(self, *, with_pages: bool) -> None:
        """Request them without waiting. ``with_pages``: pages, too."""
        if with_pages and self._begin_pages():
            return
        if self._file.options.use_page_index:
            narrowed = [s for s in self._selections if s.narrows]
            self._ahead = self._file.fetcher.begin(self._places_of_pages(narrowed))

    def settle(self, is_needed: bool) -> None:
        """Release what was requested. ``is_needed``: whether any row is left."""
        if is_needed and self._spare is not None:
            self._spare.give_back(self._taken)
        if self._ahead is not None:
            self._file.fetcher.forget(self._ahead)

    def _begin_pages(self) -> bool:
        """Returns whether the pages are few enough bytes."""
        if self._spare is None:
            return False
        with suppress(ParquetError):  # the read meets the error again, if it needs the column
            groups, left = list[list[Range]](), TRIP
            for selection in self._selections:
                groups.append([place for read in self._reads(selection) for place in read.ranges])
                left -= sum(size for _, size in groups[-1])
                if left < 0:
                    return False
            groups.append(self._places_of_pages(self._selections))
            size = self._file.fetcher.missing_bytes(groups)
            if self._spare.take(size):
                self._taken = size
                self._ahead = self._file.fetcher.begin_groups(groups)
                return True
        return False

    def _reads(self, selection: Selection) -> Iterator[ColumnRead]:
        """The pages that hold rows which can match. Where pages are not known, the whole chunks."""
        for node in self._nodes:
            if selection.planned is not None:
                yield selection.planned[node.column].narrowed(selection.maybe)
            else:
                chunk = self._file.chunk(selection.row_group, node)
                yield plan_column(chunk, selection.maybe, selection.locations.get(node.column))[0]

    def _places_of_pages(self, selections: Sequence[Selection]) -> list[Range]:
        if not self._file.options.use_page_index:
            return []
        chunks = chunks_to_locate(self._file, selections, self._nodes)
        return [place for chunk in chunks for place in offset_index_range(chunk, self._file)]
