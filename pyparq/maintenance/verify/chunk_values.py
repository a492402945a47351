"""The decoded values of a whole column chunk, with the place in the file of each value or dictionary code."""

from __future__ import annotations

import numpy as np

from pyparq.format.leaf_values import size_of
from pyparq.read.decode.chunk_pages import ChunkPages, PageRun, PageValues


class ChunkValues(PageValues):
    """The decoded pages of one column chunk."""

    def __init__(self, pages: ChunkPages) -> None:
        """Raises :class:`ParquetError`, with the page, if a page does not decode."""
        self.chunk = pages.chunk
        entries = pages.entries()
        counts = [page.num_values for page in pages.pages]
        last = max((k + 1 for k, count in enumerate(counts) if count), default=0)
        run = pages.decode(last=last, entries=entries)
        super().__init__(pages.chunk.node, _padded(run, len(counts) - last, pages.chunk.node.max_rep > 0), entries)
        pages.release(self.size + (0 if entries is None else size_of(entries)))
        self.first_rows = np.cumsum(self.num_rows) - self.num_rows
        """The row that each page begins with."""

    def row_of(self, page: int, value: int) -> int:
        """The row of value number ``value`` of a page, nulls not counted."""
        defs, reps = self.def_levels[page], self.rep_levels[page]
        slot = value if defs is None else int(np.flatnonzero(defs == self.chunk.node.max_def)[value])
        before = slot if reps is None else int(np.count_nonzero(reps[: slot + 1] == 0)) - 1
        return int(self.first_rows[page]) + before

    def place_of_code(self, code: int) -> tuple[int, int]:
        """The first page and row with this dictionary code."""
        at = int(np.flatnonzero(self.codes == code)[0])
        k = int(np.searchsorted(self.code_edges, at, side="right")) - 1
        page = int(self.coded_pages[k])
        return page, self.row_of(page, at - int(self.code_edges[k]))

    def place_of_value(self, at: int) -> tuple[int, int]:
        """The page and row of value number ``at``, counted among the values that are not dictionary-encoded."""
        k = int(np.searchsorted(self.value_edges, at, side="right")) - 1
        page = int(self.direct_pages[k])
        return page, self.row_of(page, at - int(self.value_edges[k]))


def _padded(run: PageRun, count: int, nested: bool) -> PageRun:
    """The run with ``count`` more pages without values. Pages behind the last value are not opened."""
    if not count:
        return run
    empty = np.tile(np.array([0, 0, 0, 0 if nested else -1, -1], np.int64), (count, 1))
    return run._replace(
        numbers=np.concatenate([run.numbers, empty]), is_coded=np.concatenate([run.is_coded, np.zeros(count, bool)])
    )
