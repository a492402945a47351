"""What one stage of pruning did, for :meth:`pyparq.Scan.explain`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class StageReport:
    """The effect and the cost of one stage: row groups, rows and pages before and after, requests and bytes."""

    name: str
    asked: int
    """Indexes asked (chunks)."""
    row_groups_before: int
    row_groups_after: int
    rows_before: int
    rows_after: int
    pages_before: int
    pages_after: int
    requests: int
    bytes: int
