"""Lines in the log of the driver (``pyparq.spark``, level INFO): what each job has read, passed over and written."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.scan import DatasetPlan

LOG = logging.getLogger("pyparq.spark")


@dataclass(frozen=True)
class Left:
    """What a plan leaves to be read."""

    all_files: int
    """Of the source."""
    files: int
    row_groups: int
    narrowed: int
    """Data pages to be read of column chunks of which others are passed over."""
    rows: int
    """That may match."""
    num_bytes: int
    """Of the pages."""

    @classmethod
    def of(cls, plan: DatasetPlan, all_files: int) -> Left:
        groups = [group for file in plan.files for group in file.row_groups]
        pages = sum(len(read.pages.ordinals) for g in groups for read in g.reads if read.pages is not None)
        return cls(all_files, len(plan.files), len(groups), pages, plan.num_rows, plan.num_bytes)

    def __str__(self) -> str:
        pages = f", {self.narrowed:,} pages of chunks that are read in part" if self.narrowed else ""
        return (
            f"{self.files:,} of {self.all_files:,} files left, {self.row_groups:,} row groups{pages}, at most "
            f"{self.rows:,} rows in {self.num_bytes:,} bytes of pages"
        )


def tell_read(what: str, source: Any, filters: Any, left: Left | None, how: str) -> None:
    """A read or a count. ``how``: what becomes of what is left."""
    if LOG.isEnabledFor(logging.INFO):
        where = "" if filters is None else f" where {filters}"
        LOG.info("%s %s%s: %s; %s", what, source, where, "footers alone answer" if left is None else left, how)


def tell_job(what: str, target: Any, files: int, rows: int, num_bytes: int) -> None:
    """A job that has written or looked at files."""
    LOG.info("%s %s: %s files, %s rows, %s bytes", what, target, f"{files:,}", f"{rows:,}", f"{num_bytes:,}")
