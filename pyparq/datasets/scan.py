"""A scan of many files, and its plan. A scan makes a plan, and a plan makes the scan again in another process.

Partitions rule files out, and the scans of the other files run. See :class:`DatasetScan` and :class:`DatasetPlan`. A
plan holds one :class:`FilePlan` per file with rows that can match. Each of these holds row groups, as
:class:`pyparq.ScanPlan` does.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.tabular import widen_columns
from pyparq.datasets.catalog.answers import files_left
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.explain import DatasetExplanation, FileScan, explain_run
from pyparq.datasets.file_columns import Matching
from pyparq.datasets.files import DatasetFiles, Progress
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.query import FilesLeft, Query
from pyparq.datasets.reader import FilePlan, Reader
from pyparq.datasets.tables import FileBounds
from pyparq.errors import OptionError, ParquetError, PlanError
from pyparq.filters.bind import bind
from pyparq.filters.expression import Expression
from pyparq.format.types import Field, Schema, schema_view
from pyparq.option_checks import as_columns, methods_told
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import StageReport
from pyparq.read.plan.scan_plan import NOT_PLANNED, Joined, RowGroupPlan, check_version, plan_options
from pyparq.read.scan import BATCH_ROWS, Scan, all_batches, same_question
from pyparq.read.streams import Convertible, ScanStream
from pyparq.runtime.messages import debug_logger
from pyparq.runtime.tables import html_view, of_header, summed, viewable
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names


@methods_told
class DatasetScan(Convertible["DatasetScan"]):
    """A lazy read of a dataset: some ``columns`` of the rows where ``filters`` is true.

    :meth:`Dataset.scan` makes it. Making it reads no rows: it rules out files by their partitions, and reads footers
    for the schema, which is that of all files. Like :class:`pyparq.Scan` it is an Arrow stream.

    Example::

        scan = pyparq.dataset("flights/").scan(["flight"], pyparq.col("dest") == "LAX")
        for batch in scan.iter_batches():
            print(batch.num_rows)
    """

    def __init__(
        self,
        dataset: DatasetFiles,
        columns: Names | None,
        filters: Filters | None,
        limit: int | None,
        plan: DatasetPlan | None = None,
    ) -> None:
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
            raise OptionError(f"limit must be a whole number of at least 0, not {limit!r}")
        self._dataset = dataset
        self._plan = plan
        self.columns = columns if columns is None else as_columns(columns)
        self.limit = limit
        numbers = None if plan is None else list(range(len(plan.files)))
        self._query = Query(dataset, self.columns, filters, numbers)
        self.filters = self._query.expression
        numbers = self._query.numbers
        if "logging" in sys.modules and (logger := debug_logger("datasets")) is not None:
            logger.debug("%s: partitions leave %d of %d files", dataset.root, len(numbers), len(dataset.files))
        self._left = FilesLeft(numbers) if plan is not None else _files_left(dataset, self._query)
        self._passed_over = dataset.total - len(dataset.found.files)
        self._reads = Reader(self._query, self._left, None if plan is None else plan.files, limit)

    @printable
    def __repr__(self) -> str:
        return f"<DatasetScan of {self._dataset.found.root}: {', '.join(self.schema.names)} where {self.filters!r}>"

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("filter", "true" if self.filters is None else repr(self.filters)),
            ("limit", "none" if self.limit is None else f"{self.limit:,}"),
            ("files", f"{len(self._reads.numbers):,} left of {self._dataset.total:,}"),
        ]
        return html_view(f"DatasetScan of {self._dataset.root}", facts, *schema_view(self.schema))

    @property
    def schema(self) -> Schema:
        """Schema of the result: see :attr:`Dataset.schema`."""
        return self._query.schema

    @property
    def rows_returned(self) -> int | None:
        """Number of rows that the scan has returned. ``None`` if it has not run."""
        return self._reads.rows_returned

    @property
    def share_read(self) -> float:
        """How far :meth:`iter_batches` has come in the files, from 0 to 1."""
        return self._reads.share_read

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Files that were left out so far, with what was wrong (``on_error="skip"``)."""
        return [(name, f"the file is left out: {error}") for name, error in self._dataset.skipped]

    # ---- what a user calls

    def to_table(self) -> Table:
        """All matching rows as a table, in the order of the files. Files are read in parallel."""
        return Table(*widen_columns(self.schema, self._gathered(all_batches)))

    def iter_batches(self, batch_size: int | None = BATCH_ROWS) -> Generator[Batch]:
        """Matching rows as :class:`pyparq.Batch` values of at most ``batch_size`` rows (``None``: a whole row group).

        A batch holds rows of one row group of one file. Only one row group is in memory at a time, plus the batches
        that the caller keeps. With ``on_error="skip"`` a file that turns out damaged ends early: rows of its row groups
        before the damage have been returned.
        """
        if batch_size is not None and batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size}")
        yield from self._reads.batches(batch_size)

    def rows(self, by_file: Iterable[tuple[int, Any]]) -> Table:
        """Rows of some files, whatever the filter: pairs of a file and its rows."""
        return Table(*widen_columns(self.schema, list(self._reads.rows(by_file))))

    def count(self) -> int:
        """Number of rows that match. Reads no column where footers and indexes give the answer."""
        total = self._reads.count()
        return total if self.limit is None else min(total, self.limit)

    def plan(self) -> DatasetPlan:
        """What the scan will read, as a value that can be pickled and split: see :class:`pyparq.DatasetPlan`.

        Prunes with the indexes of all files, but reads no data. With a ``limit``, files behind enough rows that surely
        match are not opened. Raises :class:`pyparq.PlanError` for files that have neither path nor URL.
        """
        return planner_of(self).plan()

    def explain(self, *, execute: bool = True) -> DatasetExplanation:
        """What was left out by partitions, what each index removed in all files, and the bytes and requests it took.

        Runs the scan (the rows are thrown away) unless it has run; ``execute=False`` only prunes.
        """
        ran = self._reads.pruned(execute=execute)
        return explain_run(
            ran,
            source=self._dataset.root,
            columns=self.schema.names,
            predicate="true" if self.filters is None else repr(self.filters),
            files=self._dataset.total,
            files_opened=len(self._reads.numbers),
            catalog_knows=self._left.known + self._passed_over,
            catalog_rules_out=self._left.ruled_out + self._passed_over,
            rows=self.rows_returned,
            ruled_out_by="partitions" if self._dataset.table is None else "partitions and the log",
        )

    def _gathered(self, ask: Callable[[Scan], list[Batch]]) -> list[Batch]:
        return self._reads.gathered(ask)

    def _stream(self) -> ScanStream:
        again = DatasetScan(self._dataset, self.columns, self.filters, self.limit, self._plan)
        return ScanStream(again, self._dataset.root)

    def _asking(self, columns: Names | None, filters: Filters | None, limit: int | None = None) -> DatasetScan:
        if self._plan is not None:  # its reads are those of its own question
            raise OptionError("the scan runs a plan: give columns= and filters= to what makes the plan")
        return DatasetScan(self._dataset, columns, filters, limit)


def _files_left(dataset: DatasetFiles, query: Query) -> FilesLeft:
    """The files that a table's log, and the catalog, leave for a filter."""
    numbers = query.numbers
    if query.expression is None:
        return FilesLeft(numbers)
    if dataset.table is not None:
        bounds, projection = FileBounds(dataset.table, dataset.partition_values), query.projection
        left = bounds.may_match(bind(query.expression, projection.tree, projection.shown))
        numbers = [k for k in numbers if left[k]]
        if len(numbers) < 2:  # the catalog takes more requests than a file
            return FilesLeft(numbers)
    return FilesLeft(numbers) if dataset.known is None else files_left(dataset.known, numbers, query)


def file_scans_of(scan: DatasetScan) -> list[FileScan]:
    """The scans of the files that partitions leave, each with all its row groups, in the order of the files. They have
    not run."""
    return scan._reads.make_scans(scan._reads.numbers, join=False, known={})


class MatchingFiles:
    """The files in which a row may match, for modules that change them. Each can be asked again after it changed."""

    def __init__(self, scan: DatasetScan, numbers: Iterable[int] | None = None) -> None:
        """``numbers``: the files to ask. ``None``: all of them."""
        self._scan = scan
        if numbers is not None:
            some = {*numbers}
            scan._reads.numbers = [number for number in scan._reads.numbers if number in some]

    expression = property(attrgetter("_scan._query.expression"), doc="The filter.")

    @property
    def files(self) -> DatasetFiles:
        """The files that are asked: those that a trusted catalog leaves, else all."""
        return self._scan._dataset

    def candidates(self) -> list[FileScan]:
        """The files that partitions, a catalog, statistics and Bloom filters leave, each with a scan that has not
        run. Small local files are left only where rows match."""
        return self._scan._reads.matching_files()

    @property
    def reports(self) -> list[StageReport]:
        """What asking files together has ruled out."""
        return self._scan._reads.pruned(execute=False).reports

    def open(self, number: int) -> OpenFile | None:
        """File ``number`` with its footer. ``None`` for a file that is left out."""
        return self._scan._dataset.open(number)

    def ask(self, number: int, file: OpenFile) -> Scan | None:
        """The same question to ``file``, which has the place of a file of the dataset. ``None``: no row can match."""
        query = self._scan._query
        model = query.scan(file, query.rest(number))
        return None if model is None else same_question(model, file.fork(), None, None)


class Planner:
    """Makes the plan of a scan: as a whole, or file by file for processes that share the work."""

    def __init__(self, files: DatasetFiles, query: Query, reads: Reader, limit: int | None) -> None:
        self._files = files
        self._reads = reads
        self._known: dict[int, list[int]] | None = None
        self.header = DatasetPlanHeader(
            files.root, query.columns, query.expression, query.projection.base, files.partition_values.fields,
            files.matching, files.on_error, plan_options(files.options), limit, query.schema,
        )  # fmt: skip
        """What all plans of the scan share."""

    numbers = property(attrgetter("_reads.numbers"), doc="Numbers of the files that partitions do not rule out.")

    def plan(self) -> DatasetPlan:
        """The plan of the whole scan."""
        if self.header.limit is None:
            return self.assembled(plan for _, plan in self.plan_files())
        plans = map(self._plan_file, self._reads.scans_in_order())
        return self.assembled(plan for plan in plans if plan is not None)

    def files_left(self) -> list[int]:
        """Numbers of the files that statistics and Bloom filters leave too. Takes little time a file."""
        if self._known is None:
            self._known = self._reads.row_groups_left(self.numbers)
        return [number for number in self.numbers if self._known.get(number) != []]

    def plan_files(self, numbers: Sequence[int] | None = None) -> list[tuple[int, FilePlan]]:
        """The numbers of the files in which a row may match, and the reads of each. ``numbers``: only of these."""
        scans = self._reads.make_scans(self.numbers if numbers is None else numbers, join=False, known=self._known)
        plans = self._files.map_files(self._plan_file, scans)
        return [(scan.numbers[0], plan) for scan, plan in zip(scans, plans, strict=True) if plan and plan.row_groups]

    def assembled(self, plans: Iterable[FilePlan]) -> DatasetPlan:
        """The plan of the scan, from the plans of its files in their order."""
        values = self._files.partition_values.columns
        return self.header.plan(values, _within_limit(plans, self.header.limit)).trimmed()

    def _plan_file(self, file_scan: FileScan) -> FilePlan | None:
        (number,) = file_scan.numbers
        try:
            plan = file_scan.scan.plan()
        except (ParquetError, OSError) as error:
            self._files.leave_out(number, error)
            return None
        self._reads.done(number)
        return FilePlan.of(self._files.found.files[number], int(self._files.partition_values.of_file[number]), plan)


def planner_of(scan: DatasetScan) -> Planner:
    """Makes the plan of this scan, for modules that share the work among processes."""
    return Planner(scan._dataset, scan._query, scan._reads, scan.limit)


def _within_limit(plans: Iterable[FilePlan], limit: int | None) -> list[FilePlan]:
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


DATASET_PLAN_VERSION = 3
"""Must grow with every change in the contents or the meaning of a pickled plan."""


@dataclass(frozen=True, slots=True)
class DatasetPlanHeader:
    """The part of a plan that all its parts share: the question, the options, and the schema of the dataset."""

    source: str
    columns: Any
    filters: Any
    schema: Schema
    """The columns of the dataset that the question names, partition columns included."""
    partitions: tuple[Field, ...]
    by: Matching
    on_error: str
    options: ReadOptions
    """All options except ``decryption``, ``limits`` and ``use_threads``, which the running process decides."""
    limit: int | None
    """Maximum number of matching rows to return, for the whole plan."""
    result: Schema
    """Schema of the rows that a run returns."""

    def plan(self, values: Sequence[Column], files: Iterable[FilePlan]) -> DatasetPlan:
        """The plan, or a part of it, with these files and their partition ``values`` by combination."""
        return DatasetPlan(self, tuple(values), tuple(files))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {f.name: getattr(self, f.name) for f in fields(DatasetPlanHeader)}
        state["by"] = (self.by.by, self.by.case_sensitive, sorted(self.by.apart), dict(self.by.stored))
        state["options"] = {
            f.name: getattr(self.options, f.name) for f in fields(ReadOptions) if f.name not in NOT_PLANNED
        }
        # The filter is a pickle inside the pickle, so that another version is refused before the filter is unpickled.
        state["filters"] = None if self.filters is None else pickle.dumps(self.filters, pickle.HIGHEST_PROTOCOL)
        return _header, (DATASET_PLAN_VERSION, state)


@dataclass(frozen=True, slots=True, repr=False)
class DatasetPlan(Joined):
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

    Example::

        plan = pyparq.dataset("flights/").plan(["flight"], pyparq.col("dest") == "LAX")
        results = [part.scan().to_table() for part in plan.split(2)]    # in any process
        table = plan.join(results)
    """

    header: DatasetPlanHeader
    values: tuple[Column, ...]
    """Partition values: one column per partition, one row per combination that occurs."""
    files: tuple[FilePlan, ...]

    schema = of_header("result", Schema)
    num_bytes = summed("num_bytes", "Upper bound for the data page and dictionary bytes that a run reads.")

    @property
    def num_rows(self) -> int:
        """Number of rows that may match."""
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
        """The same plan with only the partition values that its files have."""
        return self._part(self.files)

    def _part(self, files: Sequence[FilePlan]) -> DatasetPlan:
        """The plan with these files and their partition values."""
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
        return _scan_of(self, **options)

    def matching(self, filters: Expression | None, **options: Any) -> MatchingFiles:
        """The files of the plan, asked for ``filters`` instead, and each as a whole. ``options``: as in
        :meth:`scan`."""
        return MatchingFiles(self.files_scan((), filters, **options))

    def files_scan(self, columns: Any, filters: Expression | None = None, **options: Any) -> DatasetScan:
        """A scan of the plan's files as wholes, with another question. ``options``: as in :meth:`scan`."""
        header = replace(self.header, columns=columns, filters=filters, limit=None)
        return _scan_of(replace(self, header=header), as_planned=False, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plan, (DATASET_PLAN_VERSION, self.header, self.values, self.files)

    @printable
    def __repr__(self) -> str:
        return f"<DatasetPlan for {self.source}: {len(self.files):,} files, at most {self.num_bytes:,} bytes>"

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


def _scan_of(
    plan: DatasetPlan,
    *,
    as_planned: bool = True,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DatasetScan:
    """The scan that ``plan`` describes: see :meth:`DatasetPlan.scan`. ``as_planned``: read what the plan says of each
    file; otherwise all of its files are asked again."""
    unknown = [name for name in options if name not in NOT_PLANNED]
    if unknown:
        raise OptionError(
            f"{', '.join(unknown)}: not an option for running a plan, which has the options that it was made with. "
            f"Options here: storage_options, progress, {', '.join(NOT_PLANNED)}"
        )
    header = plan.header
    own = {name: value for name, value in options.items() if value is not None}
    files = tuple(DataFile(file.name, file.where, (), file.size) for file in plan.files)
    of_file = np.array([file.combination for file in plan.files], np.int64)
    partitions = Partitions(header.partitions, plan.values, of_file)
    dataset = DatasetFiles(
        SourceFiles(plan.source, files, False, storage_options), partitions, header.schema,
        ReadOptions.make({**{f.name: getattr(header.options, f.name) for f in fields(ReadOptions)}, **own}),
        header.by, header.on_error, progress,
    )  # fmt: skip
    return DatasetScan(dataset, header.columns, header.filters, header.limit, plan if as_planned else None)


# ---- pickles: plain values with a version, which is checked first


def _plan(version: Any, header: DatasetPlanHeader, values: Any, files: Any) -> DatasetPlan:
    check_version(version, DATASET_PLAN_VERSION)
    return DatasetPlan(header, values, files)


def _header(version: Any, state: dict[str, Any]) -> DatasetPlanHeader:
    check_version(version, DATASET_PLAN_VERSION)
    question = None if state["filters"] is None else pickle.loads(state["filters"])
    by, case_sensitive, apart, stored = state["by"]
    made = {"by": Matching(by, case_sensitive, frozenset(apart), stored), "options": ReadOptions.make(state["options"])}
    return DatasetPlanHeader(**state | {"filters": question, **made})
