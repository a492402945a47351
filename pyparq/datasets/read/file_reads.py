"""Reads the files of a dataset's scan, one after the other or many at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pyparq.arrow.table import Batch
from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.read.early_scans import InTurn
from pyparq.datasets.read.file_plan import FilePlan
from pyparq.datasets.read.file_scans import ConcatenatedScan, FileScan, FileScans
from pyparq.datasets.read.filter import FilterParts
from pyparq.datasets.read.known_files import Narrowed
from pyparq.datasets.read.projection import Projection
from pyparq.datasets.read.stored_footer import AT_A_TIME
from pyparq.errors import ParquetError
from pyparq.filters.expression import Known
from pyparq.read.plan.candidates import StageReport
from pyparq.read.scan import prune


class Run(NamedTuple):
    """What an explanation is made of."""

    scans: list[FileScan | ConcatenatedScan]
    asked: set[int]
    """Files that were asked together, before their scans."""
    reports: list[StageReport]
    """What that ruled out."""
    requests: int = 0
    """For the footers of files without a scan."""
    bytes: int = 0
    file_bytes: int = 0
    """The size of these files."""


def numbers_of(scan: FileScan | ConcatenatedScan) -> list[int]:
    """The files that a scan reads."""
    return scan.numbers if isinstance(scan, ConcatenatedScan) else [scan.number]


class FileReads:
    """Reads the files that partitions and the catalog have left. It keeps the scans that ran, for the explanation."""

    def __init__(
        self,
        files: DatasetFiles,
        parts: FilterParts,
        projection: Projection,
        left: Narrowed,
        plans: Sequence[FilePlan] | None,
        limit: int | None,
    ) -> None:
        """``left``: the files that partitions and the catalog leave. ``plans``: the reads of each file, if the scan was
        planned before."""
        self._files = files
        self._parts = parts
        self._projection = projection
        self._limit = limit
        self.numbers = left.numbers
        self._scans = FileScans(files, parts, projection, plans, left)
        self.rows_returned: int | None = None
        self.share_done = 0.0
        """How far :meth:`batches` has come in the files, from 0 to 1."""
        self.ran: list[FileScan | ConcatenatedScan] = []
        """The scans that have run, or are about to."""
        self.asked: set[int] = set()
        """Files that were asked together. Their scans do not know what was ruled out before them."""
        self._reached: int | None = None
        """Number of files that a stream has reached. ``None``: no stream has run."""

    def all_batches(self, *, together: bool = True) -> list[Batch]:
        """All matching rows, in the order of the files. Files are read in parallel."""
        if self._limit is not None:
            return list(self.batches(None))
        self._begin()
        scans = self.all_scans() if together else self.file_scans(together=False)
        read = self._files.map_files(self._read_any, scans, self._files.at_a_time())
        batches = [batch for part in read for batch in part]
        self.rows_returned = sum(batch.num_rows for batch in batches)
        return batches

    def batches(self, batch_size: int | None) -> Generator[Batch]:
        """Matching rows, in the order of the files; one row group of one file is in memory at a time."""
        self._begin()
        self.rows_returned, self._reached = 0, 0
        for at, number, file_scan in self._in_turn():
            self._reached = at + 1
            if file_scan is not None:
                for batch in self._batches_of(file_scan, batch_size):
                    self.rows_returned += batch.num_rows
                    self.share_done = (at + file_scan.scan.share_done) / len(self.numbers)
                    yield batch
            self.done(number)
        self.share_done = 1.0

    def _begin(self) -> None:
        """Forget the run before: each explanation tells of one."""
        self.ran, self.asked = [], set()
        self._scans.reports.clear()

    def rows(self, by_file: Iterable[tuple[int, Any]]) -> Iterator[Batch]:
        """Rows of some files: pairs of a file and its rows (a slice, or row numbers that rise)."""
        for number, rows in by_file:
            file_scan = self._scans.of_file(number, None, rows=rows)
            if file_scan is not None:
                yield from self._batches_of(file_scan, None)

    def count(self) -> int:
        """Number of matching rows of the whole scan, without its limit."""
        whole, undecided = self._decided()
        self._files.know_rows(whole)
        total = sum(map(self._rows_of, whole))
        if undecided:
            scans = self.all_scans(undecided)
            total += sum(self._files.map_files(self._count_any, scans, self._files.at_a_time()))
        return total

    def scans_in_order(self) -> Iterator[FileScan]:
        """The scans of the files, each made when it is asked for, with the limit of the whole."""
        scans = (self._scans.of_file(number, self._limit) for number in self.numbers)
        return (file_scan for file_scan in scans if file_scan is not None)

    def pruned(self, *, execute: bool) -> Run:
        """The scans that ran, each with the effect of its indexes. ``execute``: the files are read if they have not
        been; otherwise their indexes are asked."""
        if execute and self.rows_returned is None:
            self.all_batches()
        if not self.ran and self.rows_returned is None:
            self._begin()
            self.all_scans(self.numbers[: self._reached])
        for scan in self.ran:
            prune(scan.scan)
        left = set(self.numbers[: self._reached])
        left -= {number for scan in self.ran for number in numbers_of(scan)}
        return Run(self.ran, self.asked, self._scans.reports, *self._files.footers_read(left))

    def _decided(self) -> tuple[list[int], list[int]]:
        """Two groups of files, by their partitions: those of which all rows match, and those in which columns
        decide."""
        split: tuple[list[int], list[int]] = [], []
        for number in self.numbers:
            combination = int(self._files.partition_values.of_file[number])
            split[not isinstance(self._parts.rest(combination), Known)].append(number)
        return split

    def _rows_of(self, number: int) -> int:
        try:
            rows = self._files.num_rows_of(number)
        except (ParquetError, OSError) as error:
            self._files.leave_out(number, error)
            return 0
        self.done(number)
        return rows

    def all_scans(self, numbers: Sequence[int] | None = None) -> list[FileScan | ConcatenatedScan]:
        """The scans of the files in which a row may match, in the order of the files. Many small files share one
        scan."""
        wanted = list(self.numbers if numbers is None else numbers)
        groups = self._row_groups(wanted)
        joined = self._scans.joined([number for number in wanted if groups.get(number) != []], groups)
        covered = {number for scan in joined for number in scan.numbers}
        others = self.file_scans([number for number in wanted if number not in covered], groups=groups)
        self.ran = sorted([*joined, *others], key=lambda scan: scan.number)
        return self.ran

    def _row_groups(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """The row groups that can match, of files that are asked together."""
        groups = self._scans.row_groups(numbers)
        self.asked.update(groups)
        return groups

    def file_scans(
        self,
        numbers: Sequence[int] | None = None,
        *,
        together: bool = True,
        groups: dict[int, list[int]] | None = None,
    ) -> list[FileScan]:
        """The scans of the files in which a row may match.

        ``together``: many files are asked at once. Otherwise each file is asked by itself, and its scan reports the
        effect of its indexes. ``groups``: the answers, if the files were asked already.
        """
        wanted = list(self.numbers if numbers is None else numbers)
        if groups is None:
            groups = self._row_groups(wanted) if together else {}
        self._files.open_all(number for number in wanted if groups.get(number) != [])
        found = []
        for number in wanted:
            left = groups.get(number)
            file_scan = None if left == [] else self._scans.of_file(number, self._limit, left)
            if file_scan is not None:
                found.append(file_scan)
            elif groups:
                self.done(number)
        self.ran = list(found)
        return found

    def _in_turn(self) -> Iterator[tuple[int, int, FileScan | None]]:
        """The position of each file, its number and its scan, until the limit is reached. The scan is ``None`` if no
        row of the file matches."""
        options, files = self._files.options, self._files.found.files
        if not self._files.is_remote or self._limit is not None or not options.use_threads:
            return self._one_by_one()
        return iter(
            InTurn(
                self._one_by_one(),
                lambda item: None if item[2] is None else item[2].scan,
                lambda item: files[item[1]].size or 0,
                options.prefetch_bytes,
            )
        )

    def _one_by_one(self) -> Iterator[tuple[int, int, FileScan | None]]:
        for at, number, row_groups in self._in_order():
            left = None if self._limit is None else self._limit - (self.rows_returned or 0)
            if left == 0:
                return
            yield at, number, None if row_groups == [] else self._scans.of_file(number, left, row_groups)

    def _in_order(self) -> Iterator[tuple[int, int, list[int] | None]]:
        """The position of each file, its number, and the row groups that can match, if they are known. Some files are
        asked together before the first of them is read, but not remote ones that a limit may make needless."""
        alone = self._limit is not None and self._files.is_remote
        for first in range(0, len(self.numbers), AT_A_TIME):
            numbers = self.numbers[first : first + AT_A_TIME]
            groups = {} if alone else self._row_groups(numbers)
            for at, number in enumerate(numbers, first):
                yield at, number, groups.get(number)

    def _read(self, file_scan: FileScan) -> list[Batch]:
        try:
            table = file_scan.scan.to_table()
            made = [self._scans.adapted(file_scan, batch.columns, batch.num_rows) for batch in table.batches]
        except (ParquetError, OSError) as error:
            self._files.leave_out(file_scan.number, error)
            return []
        self.done(file_scan.number)
        return made

    def _read_any(self, scan: FileScan | ConcatenatedScan) -> list[Batch]:
        if isinstance(scan, FileScan):
            return self._read(scan)
        try:
            table = scan.scan.to_table()
            made = self._scans.adapted_of_many(scan, table.batches)
        except (ParquetError, OSError):  # reading them one by one raises the error
            return [batch for file_scan in self._one_by_one_of(scan) for batch in self._read(file_scan)]
        for number in scan.numbers:
            self.done(number)
        return made

    def _count_any(self, scan: FileScan | ConcatenatedScan) -> int:
        if isinstance(scan, FileScan):
            return self._count(scan)
        try:
            counted = scan.scan.count()
        except (ParquetError, OSError):
            return sum(map(self._count, self._one_by_one_of(scan)))
        for number in scan.numbers:
            self.done(number)
        return counted

    def _one_by_one_of(self, scan: ConcatenatedScan) -> Iterator[FileScan]:
        self.ran = [other for other in self.ran if other is not scan]
        for number in scan.numbers:
            file_scan = self._scans.of_file(number, None)
            if file_scan is not None:
                self.ran.append(file_scan)
                yield file_scan

    def _batches_of(self, file_scan: FileScan, batch_size: int | None) -> Iterator[Batch]:
        self.ran.append(replace(file_scan))
        try:
            for batch in file_scan.scan.batches(batch_size):
                made = self._scans.adapted(file_scan, batch.columns, batch.num_rows)
                made.schema = self._projection.schema
                yield made
        except (ParquetError, OSError) as error:
            self._files.leave_out(file_scan.number, error)

    def _count(self, file_scan: FileScan) -> int:
        try:
            counted = file_scan.scan.count()
        except (ParquetError, OSError) as error:
            self._files.leave_out(file_scan.number, error)
            return 0
        self.done(file_scan.number)
        return counted

    def done(self, number: int) -> None:
        if self._files.progress is not None:
            self._files.progress(bisect_left(self.numbers, number) + 1, len(self.numbers))
