"""Rows of a part in the pages that may have some values: all their columns in one step.

A scan with a filter reads the filter's column first and the others then. Here pages are small, and a step takes longer
than their bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq.arrow.table import Table
from pyparq.filters.expression import col
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan


def rows_near(file: OpenFile, column: str, values: Any) -> Table:
    """The rows of all pages in which ``column`` may have one of the values."""
    firsts = np.cumsum(file.footer.rows) - file.footer.rows
    found = [np.zeros(0, np.int64)]
    for group in Scan(file.fork(), [column], col(column).isin(values)).plan().row_groups:
        for start, end in zip(group.maybe.starts.tolist(), group.maybe.ends.tolist(), strict=True):
            found.append(np.arange(start, end) + firsts[group.row_group])
    return Scan(file.fork(), rows=np.concatenate(found)).to_table()
