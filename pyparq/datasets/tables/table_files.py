"""What the log of a table says of its data files, beyond their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.errors import ChangedFileError
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowRanges

Int64Array = npt.NDArray[np.int64]


class Stated(NamedTuple):
    """What a log says of one column, an entry per file. ``None`` or -1 where it says nothing."""

    lows: Sequence[Any]
    """No value of the file is below it."""
    highs: Sequence[Any]
    """No value of the file is above it."""
    null_counts: Int64Array
    exact: bool = False
    """The values are those of a partition column: one per file, and ``None`` is a null."""


class LogStatistics:
    """The statistics of files in a log, asked column by column."""

    def stated(self, node: Node) -> Stated | None:
        """What the log says of a leaf of the table's schema. ``None`` if it says nothing."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The log's knowledge of the data files, by their numbers in the dataset."""

    kind: str
    """``"Delta Lake"`` or ``"Apache Iceberg"``."""
    num_rows: Int64Array
    """Stored rows of each file, deleted ones included. -1 where the log does not say it."""
    deleted: Mapping[int, Int64Array]
    """Row numbers, rising, of the rows of a file that the table no longer has. Files without such rows are missing."""
    statistics: LogStatistics
    """The log's statistics of the files' columns."""
    folder: str
    """The path or URL of the table's folder. Files elsewhere may belong to other tables."""

    def rows_left(self, k: int) -> int:
        """Rows of file ``k`` that the table has. -1 where the log does not say it."""
        stored = int(self.num_rows[k])
        return stored if stored < 0 else stored - len(self.deleted.get(k, ()))

    def kept(self, k: int, counts: Sequence[int], name: str) -> dict[int, RowRanges]:
        """The rows of file ``k`` that the table has, by row group. Row group ``g`` has ``counts[g]`` rows. Raises
        :class:`ChangedFileError` if the log and the file do not fit together."""
        gone, total = self.deleted[k], sum(counts)
        if len(gone) and (int(gone[0]) < 0 or int(gone[-1]) >= total):
            raise ChangedFileError(
                f"the table's log says that row {int(gone[-1])} is deleted, but the file has {total} rows: the file is "
                "not the one that the log describes",
                file=name,
            )
        ends = np.cumsum(counts, dtype=np.int64).tolist()
        edges = np.searchsorted(gone, [0, *ends]).tolist()
        kept = {}
        for group, (count, end) in enumerate(zip(counts, ends, strict=True)):
            rows = gone[edges[group] : edges[group + 1]] - (end - count)
            left = ~RowRanges.from_rows(rows, count)
            if left:
                kept[group] = left
        return kept
