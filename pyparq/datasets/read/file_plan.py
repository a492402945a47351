"""The reads of one file of a dataset, as a plain value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyparq.column_names import ColumnName
from pyparq.datasets.data_files import DataFile
from pyparq.errors import PlanError
from pyparq.io.url import is_url
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import FileState
from pyparq.read.plan.scan_plan import PlanHeader, RowGroupPlan, ScanPlan


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The reads of one file."""

    name: str
    """The name of the file, for messages and the ``filename`` column."""
    where: str
    """Absolute path or URL of the file."""
    size: int | None
    """Size of a remote file in bytes, if its listing has it. This saves a request."""
    combination: int
    """Row of the plan's partition values."""
    made_for: FileState
    """The state of the file: row numbers and offsets are valid for this state only."""
    row_groups: tuple[RowGroupPlan, ...]

    @property
    def num_bytes(self) -> int:
        """An upper bound for the bytes of data pages and dictionaries that a run reads."""
        return sum(group.num_bytes for group in self.row_groups)

    def scan_plan(
        self, columns: Sequence[ColumnName] | None, filters: Any, options: ReadOptions, limit: int | None
    ) -> Any:
        """The plan of this file alone. ``columns`` and ``filters`` use the names of the file."""
        return PlanHeader(
            self.name, None if columns is None else list(columns), filters, options, limit, self.made_for
        ).plan(self.row_groups)


def file_plan(file: DataFile, combination: int, plan: ScanPlan) -> FilePlan:
    """The reads of ``plan`` in ``file``. Raises :class:`PlanError` for a file that another process cannot open."""
    if not isinstance(file.where, str):
        raise PlanError(
            "only files with a path or URL can be planned: give the dataset paths or URLs, not bytes or open files",
            file=file.name,
        )
    remote = is_url(file.where)
    where = file.where if remote else os.path.abspath(file.where)
    return FilePlan(file.name, where, file.size if remote else None, combination, plan.made_for, plan.row_groups)


def within_limit(plans: Iterable[FilePlan], limit: int | None) -> list[FilePlan]:
    """The plans of files with rows, without the row groups behind the first ``limit`` rows that certainly match."""
    left, kept = limit, list[FilePlan]()
    for plan in plans:
        if left is not None and left <= 0:
            break
        groups = []
        for group in plan.row_groups:
            if group.maybe.count and (left is None or left > 0):
                groups.append(group)
                left = None if left is None else left - group.sure.count
        if groups:
            kept.append(replace(plan, row_groups=tuple(groups)))
    return kept
