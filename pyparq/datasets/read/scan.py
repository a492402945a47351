"""A scan over the files of a dataset: files left out by their partitions, then the scans of the others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyparq.arrow.table import Batch, Table
from pyparq.arrow.wide_offsets import widen_columns
from pyparq.datasets.read.early_scans import InTurn
from pyparq.datasets.read.explain import DatasetExplanation, carry_over, explain_files
from pyparq.datasets.read.file_scans import FileScan, FileScans, JoinedScan
from pyparq.datasets.read.filter import FilterParts
from pyparq.datasets.read.plan import DatasetPlan, DatasetPlanHeader, FilePlan, file_plan, within_limit
from pyparq.datasets.read.stored_footer import AT_A_TIME
from pyparq.datasets.read.whole_schema import project_all
from pyparq.errors import OptionError, ParquetError
from pyparq.filters.expression import Known
from pyparq.filters.tuple_filters import parse_filters
from pyparq.format.types import Schema
from pyparq.kernels import arrow_stream
from pyparq.read.arrow_stream import ScanStream
from pyparq.read.plan.scan_plan import plan_options
from pyparq.read.scan import BATCH_ROWS
from pyparq.runtime.safe_repr import printable

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names
    from pyparq.datasets.read.dataset import Dataset


class DatasetScan:
    """A lazy read of a dataset: some ``columns`` of the rows where ``filters`` is true.

    :meth:`Dataset.scan` makes it. Making it reads no rows: it rules out files by their partitions, and reads footers
    for the schema, which is that of all files. Like :class:`pyparq.Scan` it is an Arrow stream.
    """

    def __init__(
        self,
        dataset: Dataset,
        columns: Names | None,
        filters: Filters | None,
        limit: int | None,
        plan: DatasetPlan | None = None,
    ) -> None:
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
            raise OptionError(f"limit must be a whole number of at least 0, not {limit!r}")
        self._dataset = dataset
        self._plan = plan
        self.columns = columns if columns is None or isinstance(columns, str) else list(columns)
        self.filters = filters
        self.limit = limit
        expression = parse_filters(filters)
        self._parts = FilterParts(expression, dataset._partitions, dataset._by.case_sensitive)
        self._numbers = self._parts.files_left() if plan is None else list(range(len(plan.files)))
        self._projection = project_all(dataset, self._numbers, self.columns, expression)
        self._scans = FileScans(dataset, self._parts, self._projection, plan)
        self.rows_returned: int | None = None
        self.share_done = 0.0
        """How much of the files :meth:`batches` has gone through, 0 to 1."""
        self._ran: list[FileScan] = []
        self._together = False
        """Many files were asked at once, so that their own scans cannot tell what was removed."""
        self._ran_together: list[FileScan] = []
        self._joined = False
        """Files were read as if they were one."""
        self._reached: int | None = None
        """How many of the files a stream has come to; ``None``: no stream has run."""

    @printable
    def __repr__(self) -> str:
        return f"<DatasetScan of {self._dataset._found.root}: {', '.join(self.schema.names)} where {self.filters!r}>"

    @property
    def schema(self) -> Schema:
        """Schema of the result: see :attr:`Dataset.schema`."""
        return self._projection.schema

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Files that were left out so far, with what was wrong (``on_error="skip"``)."""
        return [(name, f"the file is left out: {error}") for name, error in self._dataset.skipped]

    @property
    def schema_asked(self) -> Schema:
        """The dataset's schema, but for columns that neither the result nor the filter names."""
        return self._projection.base

    # ---- what a user calls

    def to_table(self) -> Table:
        """All matching rows as a table, in the order of the files. Files are read in parallel."""
        return self._to_table()

    def _to_table(self, *, together: bool = True) -> Table:
        if self.limit is not None:
            batches = list(self.batches(None))
        else:
            scans = self._all_scans() if together else self._file_scans(together=False)
            read = self._dataset.map_files(self._read_any, scans, self._dataset.at_a_time())
            batches = [batch for part in read for batch in part]
        self.rows_returned = sum(batch.num_rows for batch in batches)
        return Table(*widen_columns(self.schema, batches))

    def batches(self, batch_size: int | None = BATCH_ROWS) -> Generator[Batch]:
        """Matching rows as :class:`pyparq.Batch` values of at most ``batch_size`` rows (``None``: a whole row group).

        A batch holds rows of one row group of one file. Only one row group is in memory at a time, plus the batches
        that the caller keeps. With ``on_error="skip"`` a file that turns out damaged ends early: rows of its row groups
        before the damage have been returned.
        """
        if batch_size is not None and batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size}")
        self.rows_returned, self._ran, self._reached = 0, [], 0
        self._ran_together = self._ran
        for at, number, file_scan in self._in_turn():
            self._reached = at + 1
            if file_scan is not None:
                for batch in self._batches_of(file_scan, batch_size):
                    self.rows_returned += batch.num_rows
                    self.share_done = (at + file_scan.scan.share_done) / len(self._numbers)
                    yield batch
            self._done(number)
        self.share_done = 1.0

    def count(self) -> int:
        """Number of rows that match. Reads no column where footers and indexes give the answer."""
        whole, undecided = self._decided()
        self._dataset.know_rows(whole)
        total = sum(map(self._rows_of, whole))
        if undecided:
            scans = self._all_scans(undecided)
            counts = self._dataset.map_files(self._count_any, scans, self._dataset.at_a_time())
            total += sum(counts)
        return total if self.limit is None else min(total, self.limit)

    def plan(self) -> DatasetPlan:
        """What the scan will read, as a value that can be pickled and split: see :class:`pyparq.DatasetPlan`.

        Prunes with the indexes of all files, but reads no data. With a ``limit``, files behind enough rows that surely
        match are not opened. Raises :class:`pyparq.PlanError` for files that have neither path nor URL.
        """
        if self.limit is None:
            return self.assembled(plan for _, plan in self.plan_files())
        scans = (self._scans.of_file(number, self.limit) for number in self._numbers)
        plans = (self._plan_file(file_scan) for file_scan in scans if file_scan is not None)
        return self.assembled(plan for plan in plans if plan is not None)

    def plan_files(self) -> list[tuple[int, FilePlan]]:
        """The numbers of the files in which a row may match, and what will be read of each."""
        scans = self._file_scans()
        plans = self._dataset.map_files(self._plan_file, scans)
        return [(scan.number, plan) for scan, plan in zip(scans, plans, strict=True) if plan is not None]

    def assembled(self, plans: Iterable[FilePlan]) -> DatasetPlan:
        """The plan of the scan from those of its files, which come in their order."""
        dataset = self._dataset
        header = DatasetPlanHeader(
            dataset.root, self.columns, self.filters, self.schema_asked, dataset._partitions.fields, dataset._by,
            dataset._on_error, plan_options(dataset._options), self.limit, self.schema,
        )  # fmt: skip
        return header.plan(dataset._partitions.columns, within_limit(plans, self.limit)).trimmed()

    def _plan_file(self, file_scan: FileScan) -> FilePlan | None:
        file = self._dataset._found.files[file_scan.number]
        try:
            plan = file_scan.scan.plan()
        except (ParquetError, OSError) as error:
            self._dataset.leave_out(file_scan.number, error)
            return None
        self._done(file_scan.number)
        return file_plan(file, file_scan.combination, plan)

    def explain(self, *, execute: bool = True) -> DatasetExplanation:
        """What was left out by partitions, what each index removed in all files, and the bytes and requests it took.

        Runs the scan (the rows are thrown away) unless it has run; ``execute=False`` only prunes. Where small files
        were read as one, it is run again, file by file.
        """
        if self._joined or (execute and self.rows_returned is None):
            self._joined = self._together = False
            self._to_table(together=False)
        ran = self._ran
        if self._together or not ran:
            ran = self._file_scans(self._numbers[: self._reached], together=False)
        for file_scan in ran:
            file_scan.scan._prune()
        if self._together:  # the scans that ran have not seen what was removed before
            carry_over(self._ran_together, ran)
        return explain_files(self, ran)

    def __arrow_c_schema__(self) -> object:
        return ScanStream(self._again()).get_schema()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The matching rows as a stream of Arrow batches (PyCapsule interface), those of :meth:`batches`."""
        return arrow_stream(ScanStream(self._again()))

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[Batch]]:
        stream = ScanStream(self._again())
        return stream.schema, stream

    def _again(self) -> DatasetScan:
        return DatasetScan(self._dataset, self.columns, self.filters, self.limit, self._plan)

    @property
    def num_files(self) -> int:
        """Files of the dataset."""
        return len(self._dataset._found.files)

    @property
    def opened(self) -> list[int]:
        """Numbers of the files that are not ruled out by their partitions."""
        return self._numbers

    @property
    def file(self) -> DatasetScan:
        """What a stream asks for a name, and whether it is open."""
        return self

    @property
    def name(self) -> str:
        """What messages call the source."""
        return self._dataset._found.root

    def check_open(self) -> None:
        """A dataset has nothing to close."""

    # ---- file by file

    def _decided(self) -> tuple[list[int], list[int]]:
        """The files all of whose rows match, as their partitions tell, and those whose columns have a say in it."""
        split: tuple[list[int], list[int]] = [], []
        for number in self._numbers:
            combination = int(self._dataset._partitions.of_file[number])
            split[not isinstance(self._parts.rest(combination), Known)].append(number)
        return split

    def _rows_of(self, number: int) -> int:
        try:
            rows = self._dataset._num_rows(number)
        except (ParquetError, OSError) as error:
            self._dataset.leave_out(number, error)
            return 0
        self._done(number)
        return rows

    def _all_scans(self, numbers: Sequence[int] | None = None) -> list[FileScan | JoinedScan]:
        """The scans of the files in which a row may match, in the order of the files; many small ones have one."""
        wanted = list(self._numbers if numbers is None else numbers)
        groups = self._scans.row_groups(wanted)
        joined = self._scans.joined([number for number in wanted if groups.get(number) != []], groups)
        self._joined = bool(joined)
        covered = {number for scan in joined for number in scan.numbers}
        others = self._file_scans([number for number in wanted if number not in covered], groups=groups)
        return sorted([*joined, *others], key=lambda scan: scan.number)

    def _file_scans(
        self,
        numbers: Sequence[int] | None = None,
        *,
        together: bool = True,
        groups: dict[int, list[int]] | None = None,
    ) -> list[FileScan]:
        """The scans of the files in which a row may match. ``together``: many files are asked at once; otherwise each
        file is, and its scan reports what its indexes removed. ``groups``: what they have answered, if they have."""
        wanted = list(self._numbers if numbers is None else numbers)
        if groups is None:
            groups = self._scans.row_groups(wanted) if together else {}
        self._together = self._together or bool(groups)
        self._dataset.open_all(number for number in wanted if groups.get(number) != [])
        found = []
        for number in wanted:
            left = groups.get(number)
            file_scan = None if left == [] else self._scans.of_file(number, self.limit, left)
            if file_scan is not None:
                found.append(file_scan)
            elif groups:
                self._done(number)
        self._ran = found
        if together:
            self._ran_together = found
        return found

    def _in_turn(self) -> Iterator[tuple[int, int, FileScan | None]]:
        """The place of each file, its number and its scan, until there are as many rows as were asked for. ``None``
        where no row of the file matches."""
        options, files = self._dataset._options, self._dataset._found.files
        if not self._dataset.is_remote or self.limit is not None or not options.use_threads:
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
            left = None if self.limit is None else self.limit - (self.rows_returned or 0)
            if left == 0:
                return
            yield at, number, None if row_groups == [] else self._scans.of_file(number, left, row_groups)

    def _in_order(self) -> Iterator[tuple[int, int, list[int] | None]]:
        """The place of each file, its number, and the row groups that can match where that is known; some files are
        asked together, before the first of them is read."""
        for first in range(0, len(self._numbers), AT_A_TIME):
            numbers = self._numbers[first : first + AT_A_TIME]
            groups = self._scans.row_groups(numbers)
            self._together = self._together or bool(groups)
            for at, number in enumerate(numbers, first):
                yield at, number, groups.get(number)

    def _read(self, file_scan: FileScan) -> list[Batch]:
        try:
            table = file_scan.scan.to_table()
            made = [self._scans.adapted(file_scan, batch.columns, batch.num_rows) for batch in table.batches]
        except (ParquetError, OSError) as error:
            self._dataset.leave_out(file_scan.number, error)
            return []
        self._done(file_scan.number)
        return made

    def _read_any(self, scan: FileScan | JoinedScan) -> list[Batch]:
        if isinstance(scan, FileScan):
            return self._read(scan)
        try:
            table = scan.scan.to_table()
            made = self._scans.adapted_of_many(scan, table.batches)
        except (ParquetError, OSError):  # one by one, they say what is wrong
            return [batch for file_scan in self._one_by_one_of(scan) for batch in self._read(file_scan)]
        for number in scan.numbers:
            self._done(number)
        return made

    def _count_any(self, scan: FileScan | JoinedScan) -> int:
        if isinstance(scan, FileScan):
            return self._count(scan)
        try:
            counted = scan.scan.count()
        except (ParquetError, OSError):
            return sum(map(self._count, self._one_by_one_of(scan)))
        for number in scan.numbers:
            self._done(number)
        return counted

    def _one_by_one_of(self, scan: JoinedScan) -> Iterator[FileScan]:
        for number in scan.numbers:
            file_scan = self._scans.of_file(number, None)
            if file_scan is not None:
                yield file_scan

    def _batches_of(self, file_scan: FileScan, batch_size: int | None) -> Iterator[Batch]:
        self._ran.append(replace(file_scan))
        try:
            for batch in file_scan.scan.batches(batch_size):
                made = self._scans.adapted(file_scan, batch.columns, batch.num_rows)
                made.schema = self.schema
                yield made
        except (ParquetError, OSError) as error:
            self._dataset.leave_out(file_scan.number, error)

    def _count(self, file_scan: FileScan) -> int:
        try:
            counted = file_scan.scan.count()
        except (ParquetError, OSError) as error:
            self._dataset.leave_out(file_scan.number, error)
            return 0
        self._done(file_scan.number)
        return counted

    def _done(self, number: int) -> None:
        if self._dataset._progress is not None:
            self._dataset._progress(bisect_left(self._numbers, number) + 1, len(self._numbers))
