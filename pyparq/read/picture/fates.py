"""What a query made of each page: which stage ruled it out, or that it was read."""

from __future__ import annotations

import numpy as np

from pyparq.filters.predicate import Constant
from pyparq.index.bounds import BoolArray, Int64Array
from pyparq.read.picture.placed_pages import Key, PlacedPages
from pyparq.read.plan.trace import StageTrace, Trace
from pyparq.read.scan import Scan

NO_QUERY, READ, STATISTICS, BLOOM, DICTIONARY, PAGE_INDEX, VALUES, NOT_ASKED, SURE, PARTITION, OTHER = range(11)
"""No query. Read. Ruled out by statistics, Bloom filter, dictionary or ColumnIndex. Not read because the values of the
filter columns left no row of it. Of a column that the query does not name. Not needed, because indexes prove that all
rows match. In a file that partitions rule out. Ruled out by a stage that has no colour of its own."""

_STAGES = {"statistics": STATISTICS, "bloom filter": BLOOM, "dictionary": DICTIONARY, "column index": PAGE_INDEX}


class Fates:
    """The fates of the pages of one file."""

    def __init__(self, scan: Scan, trace: Trace) -> None:
        self._scan = scan
        self._trace = trace
        self._outputs = {leaf.column for output in scan.outputs for leaf in output.leaves}
        self._tested = scan.predicate.columns()
        self._pages_read: dict[Key, set[int] | None] = dict.fromkeys(trace.whole)
        self._dictionaries = self._asked("dictionary")
        self._take_reads()

    def _take_reads(self) -> None:
        for read in self._trace.reads:
            key = read.row_group, read.column
            if read.whole is not None or self._pages_read.get(key, set()) is None:
                self._pages_read[key] = None  # all
            elif read.pages is not None:
                pages = self._pages_read.setdefault(key, set())
                assert pages is not None
                pages.update(read.pages.ordinals.tolist())
            if read.dictionary is not None:
                self._dictionaries.add(key)

    def _asked(self, name: str) -> set[Key]:
        return {key for stage in self._trace.stages if stage.name == name for key in stage.asked}

    @property
    def asked_filters(self) -> set[Key]:
        """The chunks whose Bloom filter was asked."""
        return self._asked("bloom filter")

    @property
    def asked_indexes(self) -> set[Key]:
        """The chunks whose ColumnIndex was asked."""
        return self._asked("column index")

    def dictionary_read(self, key: Key) -> bool:
        """Whether the dictionary of a chunk was read."""
        return key in self._dictionaries or self._pages_read.get(key, set()) is None

    def of_pages(self, key: Key, pages: PlacedPages) -> list[int]:
        """The fate of each page of a chunk."""
        row_group, column = key
        if column not in self._outputs and column not in self._tested:
            return [NOT_ASKED] * len(pages)
        fates = self._by_stages(row_group, pages)
        read = self._pages_read.get(key, set())
        if read is None:
            fates[:] = READ
        elif read:
            fates[[k for k in read if k < len(pages)] if pages.known else slice(None)] = READ
        # Filter columns are read wherever the indexes leave a doubt.
        fates[fates == NO_QUERY] = VALUES if column in self._outputs else SURE
        return [int(fate) for fate in fates.tolist()]

    def _by_stages(self, row_group: int, pages: PlacedPages) -> Int64Array:
        fates = np.zeros(len(pages), np.int64)
        alive = np.ones(len(pages), np.bool_)
        predicate = self._scan.predicate
        if isinstance(predicate, Constant) and not predicate.value:
            fates[:] = STATISTICS
        for stage in self._trace.stages:
            left = _touches(stage, row_group, pages)
            fates[alive & ~left] = _STAGES.get(stage.name, OTHER)
            alive &= left
        return fates


def _touches(stage: StageTrace, row_group: int, pages: PlacedPages) -> BoolArray:
    """Which pages hold a row that the stage has left."""
    rows = stage.left.get(row_group)
    if rows is None:
        return np.zeros(len(pages), np.bool_)
    first, end = pages.first_rows, pages.first_rows + pages.num_rows
    touched: BoolArray = rows.starts.searchsorted(end, "left") > rows.ends.searchsorted(first, "right")
    return touched
