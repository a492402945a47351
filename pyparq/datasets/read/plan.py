"""A pruned scan of many files as a plain value, made in one process and run in others.

See :class:`DatasetPlan`. It holds one :class:`FilePlan` per file that has rows which can match, and each of these holds
row groups as :class:`pyparq.ScanPlan` does.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.table import Table
from pyparq.column_names import ColumnName
from pyparq.datasets.discovery import DataFile
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching
from pyparq.errors import PlanError
from pyparq.format.types import Field, Schema
from pyparq.io.url import is_url
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import FileState
from pyparq.read.plan.scan_plan import NOT_PLANNED, PlanHeader, RowGroupPlan, ScanPlan, check_version, join_results

if TYPE_CHECKING:
    from pyparq.datasets.read.scan import DatasetScan

DATASET_PLAN_VERSION = 2
"""Goes up with every change of what a pickled plan of a dataset holds or means."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What is read of one file."""

    name: str
    """Of the file, as messages and the ``filename`` column show it."""
    where: str
    """Absolute path or URL of the file."""
    size: int | None
    """Bytes of a remote file, where its listing says so: asking again costs a request."""
    combination: int
    """Row of the plan's partition values."""
    made_for: FileState
    """The file as it was: row numbers and offsets mean nothing in any other."""
    row_groups: tuple[RowGroupPlan, ...]

    @property
    def num_bytes(self) -> int:
        """Upper bound for the data page and dictionary bytes that a run reads."""
        return sum(group.num_bytes for group in self.row_groups)

    def scan_plan(
        self, columns: Sequence[ColumnName] | None, filters: Any, options: ReadOptions, limit: int | None
    ) -> Any:
        """The plan of this file alone, with ``columns`` and ``filters`` as the file names them."""
        return PlanHeader(
            self.name, None if columns is None else list(columns), filters, options, limit, self.made_for
        ).plan(self.row_groups)


@dataclass(frozen=True, slots=True)
class DatasetPlanHeader:
    """What all parts of a plan share: the question, the options, and the schema of the dataset."""

    source: str
    columns: Any
    filters: Any
    schema: Schema
    """Of the dataset: the columns that the question names, partition columns included."""
    partitions: tuple[Field, ...]
    by: Matching
    on_error: str
    options: ReadOptions
    """But for ``decryption``, ``limits`` and ``use_threads``: those are the running process's."""
    limit: int | None
    """Rows to return at most, of those that match; of the whole plan, not of each part."""
    result: Schema
    """Schema of the rows that a run returns."""

    def plan(self, values: Sequence[Column], files: Iterable[FilePlan]) -> DatasetPlan:
        """The plan, or the part of it, that has these files; their partition ``values`` by combination."""
        return DatasetPlan(self, tuple(values), tuple(files))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {f.name: getattr(self, f.name) for f in fields(DatasetPlanHeader)}
        state["by"] = (self.by.by, self.by.case_sensitive, sorted(self.by.apart))
        state["options"] = {
            f.name: getattr(self.options, f.name) for f in fields(ReadOptions) if f.name not in NOT_PLANNED
        }
        # The filter is a pickle within the pickle: one of another version is refused before that is opened.
        state["filters"] = None if self.filters is None else pickle.dumps(self.filters, pickle.HIGHEST_PROTOCOL)
        return _header, (DATASET_PLAN_VERSION, state)


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A pruned scan of a dataset as a plain value: it can be printed, pickled, and split into parts that run elsewhere.

    :meth:`pyparq.DatasetScan.plan` and :meth:`pyparq.Dataset.plan` make it. :meth:`scan` runs it: in any process that
    can open the files under the same paths or URLs. Keys, limits, threads and storage options are given there; they do
    not travel in a plan. Everything else comes from the plan.

    **What a run reads.** Each file's footer is read again, in one request: the plan does not hold it. This also checks
    that the file is the one the plan was made for (:class:`pyparq.PlanError`). No index is read again.

    **Parts.** :meth:`split` divides a plan by bytes, between row groups. A part is itself a plan. Parts that are
    pickled together store their common :attr:`header` once. To send parts separately, send the header once, and
    ``part.values`` and ``part.files`` for each part; ``header.plan(values, files)`` makes the part again.

    **Limits.** A part returns at most ``limit`` rows; :meth:`join` takes the first ``limit`` rows of all.

    A pickled plan has a version. A plan in the form of another version is refused. As with any pickle, load only what
    you trust.
    """

    header: DatasetPlanHeader
    values: tuple[Column, ...]
    """Partition values: one column per partition, one row per combination that occurs."""
    files: tuple[FilePlan, ...]

    @property
    def source(self) -> str:
        """What the dataset is called."""
        return self.header.source

    @property
    def schema(self) -> Schema:
        """Schema of the rows that a run returns."""
        return self.header.result

    @property
    def limit(self) -> int | None:
        return self.header.limit

    @property
    def num_bytes(self) -> int:
        """Upper bound for the data page and dictionary bytes that a run reads."""
        return sum(file.num_bytes for file in self.files)

    @property
    def num_rows(self) -> int:
        """Rows that may match."""
        return sum(group.maybe.count for file in self.files for group in file.row_groups)

    def split(self, parts: int | None = None) -> list[DatasetPlan]:
        """Split into at most ``parts`` plans of similar size in bytes, in row order; by default one per file.

        A file with several row groups may end up in several parts. There is always at least one part. For a plan
        without rows it is the plan itself. Raises :class:`pyparq.PlanError` if ``parts`` is less than 1.
        """
        if parts is not None and parts < 1:
            raise PlanError(f"parts must be at least 1, not {parts}")
        if parts is None:
            return [self._part([file]) for file in self.files] or [self]
        # A row group without bytes (a count) still has to be opened.
        groups = [(k, group, group.num_bytes + 1) for k, file in enumerate(self.files) for group in file.row_groups]
        total, before = max(sum(size for _, _, size in groups), 1), 0
        cut: list[dict[int, list[RowGroupPlan]]] = [{} for _ in range(min(parts, max(len(groups), 1)))]
        for k, group, size in groups:
            cut[min(len(cut) * (2 * before + size) // (2 * total), len(cut) - 1)].setdefault(k, []).append(group)
            before += size
        chosen = ([replace(self.files[k], row_groups=tuple(found)) for k, found in part.items()] for part in cut)
        return [self._part(files) for files in chosen if files] or [self]

    def trimmed(self) -> DatasetPlan:
        """The same plan with those partition values only that its files have."""
        return self._part(self.files)

    def _part(self, files: Sequence[FilePlan]) -> DatasetPlan:
        """The plan with these files, and the partition values that they have."""
        used = sorted({file.combination for file in files})
        place = {combination: k for k, combination in enumerate(used)}
        values = [take(column, np.array(used, np.int64)) for column in self.values]
        return self.header.plan(values, (replace(file, combination=place[file.combination]) for file in files))

    def scan(self, **options: Any) -> DatasetScan:
        """The scan that this plan describes, with all that a scan of a dataset can do.

        ``options``: ``storage_options`` and ``progress`` as in :func:`pyparq.dataset`, and ``decryption``, ``limits``
        and ``use_threads`` of :class:`pyparq.ReadOptions`. Raises :class:`pyparq.OptionError` for others: they are part
        of the plan.
        """
        from pyparq.datasets.read.plan_scan import scan_of_plan  # which needs this module

        return scan_of_plan(self, **options)

    def join(self, results: Iterable[Any]) -> Table:
        """Combine the results of the parts from :meth:`split`, in part order, into one table of at most ``limit`` rows.

        ``results`` are tables, or other objects with ``__arrow_c_stream__``. Raises :class:`pyparq.DataError` if there
        are no results, or if their columns differ in name or type.
        """
        return join_results(results, self.limit)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plan, (DATASET_PLAN_VERSION, self.header, self.values, self.files)

    def __str__(self) -> str:
        groups = sum(len(file.row_groups) for file in self.files)
        lines = [
            f"plan for {self.source}: {len(self.files):,} files, {groups:,} row groups, {self.num_rows:,} rows that "
            f"may match, at most {self.num_bytes:,} bytes"
        ]
        for file in self.files[:_SHOWN]:
            rows = sum(group.maybe.count for group in file.row_groups)
            numbers = ", ".join(str(group.row_group) for group in file.row_groups)
            lines.append(f"  {file.name}: row groups {numbers}: {rows:,} rows, {file.num_bytes:,} bytes")
        if len(self.files) > _SHOWN:
            lines.append(f"  … {len(self.files) - _SHOWN:,} more files")
        return "\n".join(lines)


_SHOWN = 20
"""Files that a printed plan lists."""


def file_plan(file: DataFile, combination: int, plan: ScanPlan) -> FilePlan:
    """What ``plan`` reads of ``file``. Raises :class:`PlanError` for a file that another process cannot open."""
    if not isinstance(file.where, str):
        raise PlanError(
            "only files with a path or URL can be planned: give the dataset paths or URLs, not bytes or open files",
            file=file.name,
        )
    remote = is_url(file.where)
    where = file.where if remote else os.path.abspath(file.where)
    return FilePlan(file.name, where, file.size if remote else None, combination, plan.made_for, plan.row_groups)


def within_limit(plans: Iterable[FilePlan], limit: int | None) -> list[FilePlan]:
    """The plans with rows, but for row groups that lie behind ``limit`` rows that surely match."""
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


def planned_partitions(plan: DatasetPlan) -> Partitions:
    """The partition columns of a plan's files."""
    of_file = np.array([file.combination for file in plan.files], np.int64)
    return Partitions(plan.header.partitions, plan.values, of_file)


# ---- pickles: plain values under a version, which is looked at first ------------------------------------------------


def _plan(version: Any, header: DatasetPlanHeader, values: Any, files: Any) -> DatasetPlan:
    check_version(version, DATASET_PLAN_VERSION)
    return DatasetPlan(header, values, files)


def _header(version: Any, state: dict[str, Any]) -> DatasetPlanHeader:
    check_version(version, DATASET_PLAN_VERSION)
    question = None if state["filters"] is None else pickle.loads(state["filters"])
    by, case_sensitive, apart = state["by"]
    made = {"by": Matching(by, case_sensitive, frozenset(apart)), "options": ReadOptions.make(state["options"])}
    return DatasetPlanHeader(**state | {"filters": question, **made})
