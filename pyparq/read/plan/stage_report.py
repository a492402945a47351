"""What one stage of pruning did, for :meth:`pyparq.Scan.explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


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


def log_stages(logger: Logger, source: str, reports: Sequence[StageReport]) -> None:
    """Write a debug line for each stage."""
    for stage in reports:
        logger.debug(
            "%s: pruned by %s: row groups %d -> %d, rows %d -> %d, %d indexes asked, %d requests, %d bytes",
            source, stage.name, stage.row_groups_before, stage.row_groups_after, stage.rows_before, stage.rows_after,
            stage.asked, stage.requests, stage.bytes,
        )  # fmt: skip
