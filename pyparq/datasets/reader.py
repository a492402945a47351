"""Reads the files of a dataset's scan: each by a scan of its own, or many small ones by one scan.

A scan is made of what is known before: the files and row groups that partitions, a catalog, statistics and Bloom
filters leave; or a plan. One loop runs the scans, in parallel or one after the other, and keeps them for the
explanation.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pyparq import kernels
from pyparq.arrow.table import Batch
from pyparq.column_names import ColumnName
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.explain import FileScan, Run
from pyparq.datasets.file_columns import Adapter
from pyparq.datasets.file_groups import ConcatenatedFile, FileGroup, runs
from pyparq.datasets.footers import AT_A_TIME
from pyparq.datasets.query import FilesLeft, Query
from pyparq.errors import ParquetError, PlanError, located
from pyparq.filters.expression import Expression, Known
from pyparq.io.url import is_url
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import FileState, OpenFile
from pyparq.read.plan.candidates import StageReport
from pyparq.read.plan.scan_plan import PlanHeader, RowGroupPlan, ScanPlan
from pyparq.read.scan import Scan, all_batches, prune, same_question
from pyparq.runtime.tables import summed
from pyparq.runtime.threads import Task, request_pool

T = TypeVar("T")

ALONE, JOINED = 8, 1 << 17
"""Files that a stream begins with, one by one, and rows of small files that are read as one behind them, at most."""
FILES_AHEAD = 8
"""Remote files whose indexes and first row groups are requested before they are needed, at most."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The reads of one file, as a plain value."""

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

    @classmethod
    def of(cls, file: DataFile, combination: int, plan: ScanPlan) -> FilePlan:
        """The reads of ``plan`` in ``file``. Raises :class:`PlanError` for a file that another process cannot open."""
        if not isinstance(file.where, str):
            raise PlanError(
                "only files with a path or URL can be planned: give the dataset paths or URLs, not bytes or open files",
                file=file.name,
            )
        remote = is_url(file.where)
        where = file.where if remote else os.path.abspath(file.where)
        return cls(file.name, where, file.size if remote else None, combination, plan.made_for, plan.row_groups)

    num_bytes = summed("num_bytes", "Most bytes of data pages and dictionaries that a run reads.", of="row_groups")

    def scan_plan(
        self, columns: Sequence[ColumnName] | None, filters: Any, options: ReadOptions, limit: int | None
    ) -> ScanPlan:
        """The plan of this file alone. ``columns`` and ``filters`` use the names of the file."""
        names = None if columns is None else list(columns)
        return PlanHeader(self.name, names, filters, options, limit, self.made_for).plan(self.row_groups)


class Reader:
    """Reads the files that partitions and the catalog have left."""

    def __init__(self, query: Query, left: FilesLeft, plans: Sequence[FilePlan] | None, limit: int | None) -> None:
        """``plans``: the reads of each file, if the scan was planned before."""
        self._files = query.files
        self._query = query
        self._left = left
        self._plans = plans
        self._limit = limit
        self.numbers = left.numbers
        self.rows_returned: int | None = None
        self.share_read = 0.0
        """How far :meth:`iter_batches` has come in the files, from 0 to 1."""
        self._reached: int | None = None
        """Number of files that a stream has reached. ``None``: no stream has run."""
        self._begin()

    def _begin(self) -> None:
        """Forget the run before: each explanation tells of one."""
        self.scans: list[FileScan] = []
        """The scans that have run, or are about to."""
        self._asked: set[int] = set()
        """Files that were asked in groups. Their scans do not know what was ruled out before them."""
        self._reports: list[StageReport] = []
        self._own_filters: set[int] = set()
        """Remote files whose Bloom filters did not come with their footers."""

    # ---- what a scan of the dataset calls

    def gathered(self, ask: Callable[[Scan], list[Batch]] = all_batches) -> list[Batch]:
        """What ``ask`` gives for the scan of each file, in the order of the files, which are read in parallel. By
        default all matching rows. With a limit always these."""
        if self._limit is not None:
            return list(self.batches(None))
        self._begin()
        read = self._each(self.make_scans(self.numbers), lambda one: self._adapted(one, ask(one.scan)))
        batches = [batch for part in read for batch in part]
        self.rows_returned = sum(batch.num_rows for batch in batches)
        return batches

    def batches(self, batch_size: int | None) -> Generator[Batch]:
        """Matching rows, in the order of the files; one row group of one file is in memory at a time, or those of small
        files that are read together."""
        self._begin()
        self.rows_returned, self._reached = 0, 0
        ahead = self._files.is_remote and self._limit is None and self._files.options.use_threads
        in_turn = self._one_by_one(join=batch_size is not None and self._limit is None and self._can_join)
        for at, number, file_scan in self._requested_ahead(in_turn) if ahead else in_turn:
            self._reached = at + 1
            if file_scan is not None:
                for batch in self._stream(file_scan, batch_size):
                    self.rows_returned += batch.num_rows
                    self.share_read = (at + file_scan.scan.share_read) / len(self.numbers)
                    yield batch
            self.done(number)
        self.share_read = 1.0

    def matching_files(self) -> list[FileScan]:
        """Scans of the files in which a row may match, in the order of the files. Small local files were read together,
        so rows do match in those of them that are left."""
        found = self._each(self.make_scans(self.numbers), self._left_of)
        self.scans = [file_scan for part in found for file_scan in part]
        return self.scans

    def _left_of(self, file_scan: FileScan) -> list[FileScan]:
        """The scans of the files that are left of those that were joined."""
        file = file_scan.scan.file
        if not isinstance(file, ConcatenatedFile):
            return [file_scan]
        all_batches(file_scan.scan)
        matching: dict[int, list[int]] = {}
        for row_group in sorted(k for k, rows in file_scan.scan.rows_of_groups.items() if rows):
            place, own = file.place_of(row_group)
            matching.setdefault(file_scan.numbers[place], []).append(own)
        scans = (self._scan_of(number, None, groups) for number, groups in matching.items())
        return [scan for scan in scans if scan is not None]

    def rows(self, by_file: Iterable[tuple[int, Any]]) -> Iterator[Batch]:
        """Rows of some files: pairs of a file and its rows (a slice, or row numbers that rise)."""
        for number, rows in by_file:
            file_scan = self._scan_of(number, None, rows=rows)
            if file_scan is not None:
                yield from self._stream(file_scan, None)

    def count(self) -> int:
        """Number of matching rows of the whole scan, without its limit."""
        numbers = np.array(self.numbers, np.int64)
        whole, undecided = list[int](), list[int]()
        for rest, same in self._query.filter.by_rest(numbers):
            (whole if isinstance(rest, Known) else undecided).extend(numbers[same].tolist())
        self._files.know_rows(whole)
        total = sum(map(self._rows_of, sorted(whole)))
        if undecided:
            total += sum(self._each(self.make_scans(sorted(undecided)), lambda file_scan: file_scan.scan.count()))
        return total

    def scans_in_order(self) -> Iterator[FileScan]:
        """The scans of the files, each made when it is asked for, with the limit of the whole."""
        scans = (self._scan_of(number, self._limit) for number in self.numbers)
        return (file_scan for file_scan in scans if file_scan is not None)

    def pruned(self, *, execute: bool) -> Run:
        """The scans that ran, each with the effect of its indexes. ``execute``: the files are read if they have not
        been; otherwise their indexes are asked."""
        if execute and self.rows_returned is None:
            self.gathered()
        reached = self.numbers[: self._reached]
        if not self.scans and self.rows_returned is None:
            self._begin()
            self.make_scans(reached)
        for file_scan in self.scans:
            prune(file_scan.scan)
        without_scan = set(reached).difference(*(file_scan.numbers for file_scan in self.scans))
        return Run(self.scans, self._asked, self._reports, *self._files.footers.cost_of(without_scan))

    def done(self, number: int) -> None:
        if self._files.progress is not None:
            self._files.progress(bisect_left(self.numbers, number) + 1, len(self.numbers))

    # ---- making scans

    def row_groups_left(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """The row groups that can match, by file. A file that is missing has to be asked by itself."""
        return self._groups(numbers, join=False)[1]

    def make_scans(
        self, numbers: Sequence[int], *, join: bool = True, known: dict[int, list[int]] | None = None
    ) -> list[FileScan]:
        """The scans of the files in which a row may match, in the order of the files. ``join``: small files may share
        one scan. Files of one kind are asked in groups, unless it is ``known`` which row groups can match."""
        join = join and self._can_join
        groups, row_groups = self._groups(numbers, join) if known is None else ([], known)
        wanted = [number for number in numbers if row_groups.get(number) != []]
        found = list(self._joined(groups, wanted)) if join and len(wanted) > 1 else []
        in_joined = {number for file_scan in found for number in file_scan.numbers}
        single = [number for number in wanted if number not in in_joined]
        self._files.open_all(single)
        for number in single:
            file_scan = self._scan_of(number, self._limit, row_groups.get(number))
            if file_scan is not None:
                found.append(file_scan)
            elif row_groups:
                self.done(number)
        if self._files.progress is not None and len(wanted) < len(numbers):
            for number in set(numbers).difference(wanted):
                self.done(number)
        self.scans = sorted(found, key=lambda file_scan: file_scan.numbers[0])
        return self.scans

    @property
    def _can_join(self) -> bool:
        return not self._files.is_remote and kernels.read_many_ranges is not None

    def _groups(self, numbers: Sequence[int], join: bool) -> tuple[list[FileGroup], dict[int, list[int]]]:
        """Groups of files that are alike, and the row groups that can match, by file. Files of an unknown kind and
        files that are left out are in no group."""
        files, groups, row_groups = self._files, list[FileGroup](), dict[int, list[int]]()
        filtered = self._query.expression is not None
        if len(numbers) < 2 or not (join or filtered) or (self._plans is not None and (filtered or not join)):
            return groups, row_groups
        for rest, alike in self._alike(numbers):
            members = alike if self._plans is None else [k for k in alike if self._is_whole(k, self._plans[k])]
            if len(members) < 2:
                continue  # nothing is shared
            file = files.open(members[0])
            scan = None if file is None else self._query.scan(file, rest)
            if scan is not None:
                groups.append(FileGroup(scan, members, files.footers, files.found.files))
            elif file is not None:
                row_groups |= {number: [] for number in members}  # the filter is never true for such a file
        for group in groups if filtered else ():
            group.prune()
            self._reports += group.reports
            self._own_filters |= group.unasked
            row_groups |= group.row_groups
        self._asked.update(row_groups)
        return groups, row_groups

    def _is_whole(self, number: int, plan: FilePlan) -> bool:
        """Whether the plan of a file reads all of its rows, and was made for the file as it is."""
        footers = self._files.footers
        rows = [group.num_rows for group in plan.row_groups if group.within is None and group.maybe.is_all]
        (stored,) = footers.stored([number])
        is_same = plan.made_for == (stored.status.size, zlib.crc32(stored.data))
        return is_same and len(rows) == len(plan.row_groups) and sum(rows) == footers.rows[number]

    def _alike(self, numbers: Sequence[int]) -> Iterator[tuple[Expression, list[int]]]:
        """The files of one kind for which the partitions leave the same part of the filter."""
        files = self._files
        files.read_stored(numbers)
        odd = files.unreadable.keys() | (files.table.deleted.keys() if files.table is not None else ())
        found = np.array([k for k in numbers if k not in odd] if odd else numbers, np.int64)
        frames = files.footers.frames[found]
        for rest, same in self._query.filter.by_rest(found):
            for frame in np.unique(frames[same & (frames >= 0)]).tolist():
                yield rest, found[same & (frames == frame)].tolist()

    def _joined(
        self, groups: Sequence[FileGroup], wanted: Sequence[int], most_rows: int | None = None
    ) -> Iterator[FileScan]:
        """Scans of neighbouring small local files that are alike. ``most_rows``: of those that are read as one."""
        left = frozenset(wanted)
        parts = [group.among(left) for group in groups if group.scan.file.tree.leaves]
        group_of = {number: group for group in parts if len(group.numbers) > 1 for number in group.numbers}
        for run in runs(wanted, group_of, most_rows):
            group = group_of[run[0]]
            file = group.as_one(run)
            scan = same_question(group.scan, file, file.row_groups, None, ask_filters=False)
            yield FileScan(run, scan, self._adapter(group.scan.file))

    def _scan_of(
        self, number: int, limit: int | None, row_groups: Sequence[int] | None = None, rows: Any = None
    ) -> FileScan | None:
        """The scan of a file. ``None`` if no row of the file matches, or if the file is left out. ``row_groups``: those
        that can match. ``rows``: of a scan without a plan, the only rows to read."""
        file = self._files.open(number)
        if file is None:
            return None
        rest = self._query.rest(number)
        if self._plans is not None:
            return self._planned(self._plans[number], number, file, rest, limit)
        model = self._query.scan(file, rest)
        if model is None:
            return None
        if self._files.table is not None:
            rows = self._files.stored_rows(number, file, rows)
        groups = self._left.groups.get(number)
        ask = (row_groups is None or number in self._own_filters) and number not in self._left.by_keys
        if groups is not None and row_groups is not None:
            groups = sorted(set(groups) & set(row_groups))
        scan = same_question(
            model, file.fork(), row_groups if groups is None else groups, limit, ask_filters=ask, rows=rows
        )
        return FileScan([number], scan, self._adapter(file))

    def _planned(
        self, plan: FilePlan, number: int, file: OpenFile, rest: Expression, limit: int | None
    ) -> FileScan | None:
        question, adapter = self._query.in_file(rest, file), self._query.adapter(file)
        if isinstance(question, Known) and question.value is not True:
            return None
        filters = None if isinstance(question, Known) else question
        try:
            scan = Scan.of_plan(file.fork(), plan.scan_plan(adapter.columns, filters, self._files.options, limit))
        except ParquetError as error:  # the file has changed
            self._files.leave_out(number, error)
            return None
        return FileScan([number], scan, adapter)

    def _adapter(self, file: OpenFile) -> Adapter | None:
        return None if self._query.own_scan is not None else self._query.adapter(file)

    # ---- running scans

    def _each(self, scans: list[FileScan], answer: Callable[[FileScan], T]) -> list[T]:
        """The answers of the scans, in their order."""
        files = self._files
        found = files.map_files(lambda one: self._answers(one, answer), scans, files.is_remote and files.at_a_time())
        return [one for part in found for one in part]

    def _answers(self, file_scan: FileScan, answer: Callable[[FileScan], T]) -> list[T]:
        """The answer of a scan. If it fails, files that were read as one are asked one by one, and a single file is
        left out, or raises the error."""
        try:
            found = [answer(file_scan)]
        except (ParquetError, OSError) as error:
            if len(file_scan.numbers) == 1:
                self._files.leave_out(file_scan.numbers[0], error)
                return []
            self.scans = [other for other in self.scans if other is not file_scan]
            return [one for number in file_scan.numbers for one in self._answer_alone(number, answer)]
        for number in file_scan.numbers:
            self.done(number)
        return found

    def _answer_alone(self, number: int, answer: Callable[[FileScan], T]) -> list[T]:
        file_scan = self._scan_of(number, None)
        if file_scan is None:
            return []
        self.scans.append(file_scan)
        return self._answers(file_scan, answer)

    def _stream(self, file_scan: FileScan, batch_size: int | None) -> Iterator[Batch]:
        self.scans.append(file_scan)
        if len(file_scan.numbers) > 1:
            # If one of them fails, they are read one by one: so no batch is given out before.
            for part in self._answers(file_scan, lambda one: self._adapted(one, [*one.scan.iter_batches(batch_size)])):
                for batch in part:
                    batch.schema = self._query.schema
                    yield batch
            return
        try:
            for batch in file_scan.scan.iter_batches(batch_size):
                (made,) = self._adapted(file_scan, [batch])
                made.schema = self._query.schema
                yield made
        except (ParquetError, OSError) as error:
            self._files.leave_out(file_scan.numbers[0], error)

    def _adapted(self, file_scan: FileScan, batches: Sequence[Batch]) -> list[Batch]:
        """The batches in the dataset's types, with the values of partitions. A batch may have rows of several files."""
        if file_scan.adapter is None:
            return list(batches)
        partitions, scan, made, at = self._files.partition_values, file_scan.scan, list[Batch](), 0
        combinations, ends = partitions.of_file[file_scan.numbers], np.zeros(0, np.int64)
        if isinstance(scan.file, ConcatenatedFile):
            combinations = combinations[scan.file.of_group]
            ends = np.cumsum([scan.rows_of_groups.get(group, 0) for group in range(scan.file.num_row_groups)])
        for batch in batches:
            with located(file=scan.file.name):
                own = iter(file_scan.adapter.adapt(batch.columns, batch.num_rows))
            counts = np.array([batch.num_rows])
            if len(combinations) > 1:
                counts = np.diff(np.clip(ends - at, 0, batch.num_rows), prepend=0)
                at += batch.num_rows
            columns = [
                next(own) if k is None else partitions.values_of(k, combinations, counts) for k in self._query.places
            ]
            made.append(Batch(columns, batch.num_rows))
        return made

    def _rows_of(self, number: int) -> int:
        try:
            rows = self._files.num_rows_of(number)
        except (ParquetError, OSError) as error:
            self._files.leave_out(number, error)
            return 0
        self.done(number)
        return rows

    # ---- one after the other

    def _one_by_one(self, *, join: bool) -> Iterator[tuple[int, int, FileScan | None]]:
        """The position of each file, its number and its scan, until the limit is reached. The scan is ``None`` if no
        row of the file matches. ``join``: small files may come as one, with the number of the last. Some files
        are asked together before the first of them is read, but not remote ones that a limit may make needless."""
        needless = self._limit is not None and self._files.is_remote
        for first in range(0, len(self.numbers), AT_A_TIME):
            numbers = self.numbers[first : first + AT_A_TIME]
            groups, row_groups = ([], {}) if needless else self._groups(numbers, join)
            # Who takes one batch waits for one file: the first ones come alone.
            wanted = [number for number in numbers[max(ALONE - first, 0) :] if row_groups.get(number) != []]
            joined = {scan.numbers[-1]: scan for scan in self._joined(groups, wanted, JOINED)} if join else {}
            within = {number for scan in joined.values() for number in scan.numbers}
            for at, number in enumerate(numbers, first):
                left = None if self._limit is None else self._limit - (self.rows_returned or 0)
                if left == 0:
                    return
                if number not in within:
                    known = row_groups.get(number)
                    yield at, number, None if known == [] else self._scan_of(number, left, known)
                elif number in joined:
                    yield at, number, joined[number]

    def _requested_ahead(
        self, items: Iterator[tuple[int, int, FileScan | None]]
    ) -> Iterator[tuple[int, int, FileScan | None]]:
        """The same, with the next remote files begun while one is read: their indexes are asked, and their first row
        groups are requested, as long as these files have fewer than ``prefetch_bytes`` in all."""
        files, most = self._files.found.files, self._files.options.prefetch_bytes
        ahead: deque[tuple[tuple[int, int, FileScan | None], Task[None] | None]] = deque()

        def begin() -> None:
            while not ahead or (len(ahead) < FILES_AHEAD and sum(files[i[1]].size or 0 for i, _ in ahead) < most):
                item = next(items, None)
                if item is None:
                    return
                task = None if item[2] is None else Task(item[2].scan.begin)
                ahead.append((item, task))
                if task is not None:
                    task.start(request_pool)

        try:
            begin()
            while ahead:
                item, task = ahead.popleft()
                begin()
                if task is not None:
                    with suppress(ParquetError, OSError):  # reading the file meets the error again
                        task.result()
                yield item
        finally:
            if ahead:  # no call without need: see Scan._by_row_group
                _stop(ahead)


def _stop(ahead: Iterable[tuple[tuple[int, int, FileScan | None], Task[None] | None]]) -> None:
    for (_, _, file_scan), task in ahead:
        if task is not None and file_scan is not None:
            task.stopped = True
            file_scan.scan.cancel()
