"""A scan: one question to one file, answered as a table, batches, a stream, a count or a plan."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow import pandas_key
from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import Int64Array, bytes_taken, concat, take
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.tabular import widen_columns
from pyparq.errors import LimitError, OptionError
from pyparq.filters import bind as binding
from pyparq.filters import expression as expressions
from pyparq.filters import given
from pyparq.filters import predicate as predicates
from pyparq.filters.bound import TRUE, Constant
from pyparq.format.schema_node import Node
from pyparq.format.types import Schema, schema_view
from pyparq.index.row_ranges import RowRanges, Rows
from pyparq.io.byte_ranges import Range
from pyparq.option_checks import as_columns, methods_told
from pyparq.read import explain as explanations
from pyparq.read.batch_types import Stream, restore_batches
from pyparq.read.column_reads import ColumnReader, Wanted
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import Output
from pyparq.read.plan import prune as pruning
from pyparq.read.plan import scan_plan
from pyparq.read.plan.ahead import EarlyReads, SpareBytes
from pyparq.read.plan.candidates import Selection, StageReport, Trace
from pyparq.read.plan.page_reads import with_pages
from pyparq.read.projection import project, ranges_by_group, row_numbers
from pyparq.read.row_group_reads import RowGroupReader
from pyparq.read.streams import Convertible, ScanStream, set_last_apart, slices
from pyparq.runtime.tables import html_view, viewable
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names
    from pyparq.read.plan.scan_plan import ScanPlan

BATCH_ROWS = 65_536
"""Rows of a batch where nothing else is asked for."""


@methods_told
class Scan(Convertible["Scan"]):
    """A lazy read of one file: some ``columns`` of the rows where ``filters`` is true.

    :meth:`pyparq.ParquetFile.scan` makes it. It reads nothing until one of its methods needs data.

    Any library that supports the Arrow PyCapsule interface can read a scan as a stream, one row group at a time:
    ``duckdb.sql("from scan")``, ``polars.DataFrame(scan)``, ``pyarrow.RecordBatchReader.from_stream(scan)``. So can
    ``pyparq.write_table(scan, ...)``, even when it writes to the path that the scan reads from.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            scan = file.scan(["dest"], pyparq.col("flight") < 50)
            print(scan.count())
            for batch in scan.iter_batches():
                print(batch.num_rows)
    """

    def __init__(
        self,
        file: OpenFile,
        columns: Names | None = None,
        filters: Filters | None = None,
        row_groups: Sequence[int] | None = None,
        *,
        rows: Any = None,
        limit: int | None = None,
    ) -> None:
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
            raise OptionError(f"limit must be a whole number of at least 0, not {limit!r}")
        if columns is not None and not isinstance(columns, expressions.Expression):
            columns = as_columns(columns)
        whole = file.fields.projection if columns is None else None
        self.projection = whole or project(file.tree, columns, file.fields)
        self.outputs: list[Output] = self.projection.outputs
        self.columns = None if columns is None else list(columns)
        self.filters: expressions.Expression | None = None
        self.predicate: predicates.Predicate = TRUE
        if filters is not None:
            self.filters = given.as_expression(filters, lambda: file.tree, lambda: Table(file.fields.schema, []))
            self.predicate = binding.bind(self.filters, file.tree, file.fields.shown)
        self.limit = limit
        self._ask_filters = True
        self._set_up(file, row_groups, rows)

    def _set_up(
        self, file: OpenFile, row_groups: Sequence[int] | None, rows: Any = None, spare: SpareBytes | None = None
    ) -> None:
        """Set the state of a scan that has read nothing yet."""
        self.file = file
        count = file.footer.num_row_groups
        self.row_groups = [*range(count)] if row_groups is None else _checked_row_groups(row_groups, count)
        self._within: dict[int, RowRanges] = {}
        if rows is not None or self.limit is not None:
            self._choose_rows(rows)
        self._read_by(ColumnReader(file, spare))
        self.reports: list[StageReport] = []
        self.rows_returned: int | None = None
        self.share_read = 0.0
        """How far :meth:`iter_batches` has come, from 0 to 1."""
        self._selections: list[Selection] | None = None
        self._trace: Trace | None = None
        self._begun = False

    def _read_by(self, reader: ColumnReader) -> None:
        self.reader = reader
        self._groups = RowGroupReader(self.file, reader, self.projection, self.predicate, self._within)
        self.rows_of_groups = self._groups.rows_of_groups

    @classmethod
    def of_plan(cls, file: OpenFile, plan: ScanPlan) -> Scan:
        """The scan that ``plan`` describes: see :meth:`pyparq.ParquetFile.scan_of`."""
        scan_plan.check_state(plan, file)
        own = {name: getattr(file.options, name) for name in scan_plan.NOT_PLANNED}
        scan = cls(file.with_options(replace(plan.options, **own)), plan.columns, plan.filters, [], limit=plan.limit)
        scan._take(plan.row_groups)
        return scan

    @printable
    def __repr__(self) -> str:
        return f"<Scan of {self.file.name}: {', '.join(o.field.name for o in self.outputs)} where {self.predicate}>"

    @viewable
    def _repr_html_(self) -> str:
        facts = [("filter", str(self.predicate)), ("limit", "none" if self.limit is None else f"{self.limit:,}")]
        return html_view(f"Scan of {self.file.name}", facts, *schema_view(self.schema))

    # ---- what a user calls

    @property
    def schema(self) -> Schema:
        """Schema of the result, as far as the footer shows it. Data can change it in two ways. In a table, a string
        column of more than 2 GiB becomes ``large_string`` (in batches it never does). A type from ``ARROW:schema``
        that does not fit the data is ignored."""
        return Schema(self.projection.fields, self.file.fields.metadata)

    def to_table(self) -> Table:
        """All matching rows as a table. Columns of all row groups are read in parallel."""
        return self._table(self._all_batches())

    def rows_at(self, places: Int64Array) -> Table:
        """The matching rows with the numbers ``places``, counted from 0, in this order. Numbers may repeat."""
        batches = self._all_batches()
        if batches:
            with self._groups.context:
                batches = [Batch([self._at(places, batches, k) for k in range(len(self.outputs))], len(places))]
        table = self._table(batches)
        return Table(pandas_key.at_places(table.schema, places), table.batches)

    def _at(self, places: Int64Array, batches: Sequence[Batch], k: int) -> Column:
        """Column ``k`` at ``places``. The memory of the copy is counted first."""
        parts = [batch.columns[k] for batch in batches]
        if len(parts) > 1:
            self.reader.account.take(sum(map(bytes_held, parts)))
        whole = concat(parts)
        self.reader.account.take(bytes_taken(whole, places))
        return take(whole, places)

    def _all_batches(self) -> list[Batch]:
        selections = self._prune(to_read=True)
        if self.reader.account.used:
            self.reader.account.restart()
        if not selections:
            self.cancel()
            return []
        if self.limit is not None and not isinstance(self.predicate, Constant):
            return [b for part, _, _ in self._by_row_group(all_stay=True) for b in part]
        try:
            return [b for b in self._groups.run(selections) if b.num_rows]
        finally:
            self.cancel()

    def _table(self, batches: list[Batch]) -> Table:
        return Table(*widen_columns(self._restored(batches), batches))

    def _restored(self, batches: list[Batch]) -> Schema:
        """The schema of all rows, whose columns get the types of ``ARROW:schema``."""
        self.rows_returned = sum([b.num_rows for b in batches])
        schema = self.schema
        if not self.projection.is_as_stored:
            with self._groups.context:
                most = self.file.options.limits.max_column
                schema = restore_batches(batches, self.outputs, schema, most, self.reader.account)
        return schema

    def iter_batches(self, batch_size: int | None = BATCH_ROWS) -> Generator[Batch]:
        """Matching rows in order, as :class:`pyparq.Batch` values. Each has at most ``batch_size`` rows
        (``None``: a whole row group) and less than 2 GiB of text per column. All have the same schema.

        Behind the first eight, small row groups are read together. A batch may then hold rows of several; with ``None``
        it never does. Only the selected pages of one row group, or of small ones with 131,072 rows together, are in
        memory at a time, plus the batches that the caller keeps. A ``for`` loop keeps the previous batch; with ``None``
        that is a whole row group.

        Raises :class:`LimitError` for a single row of more than 2 GiB. Raises :class:`CorruptFileError` if a type from
        ``ARROW:schema`` turns out not to fit the data after the first batch, so that a column would change its type.
        """
        if batch_size is not None and batch_size < 1:
            raise OptionError(f"batch_size must be at least 1, not {batch_size}")
        self.rows_returned = 0
        stream = Stream(self.outputs, self.schema, self.file.options.limits.max_column, self.reader.account)
        for batches, begin, end in self._by_row_group(apart=batch_size is None):
            with self._groups.context:
                if batch_size is not None:
                    set_last_apart(batches, batch_size)
                stream.fit(batches)
            rows, given = sum(batch.num_rows for batch in batches), 0
            for part in slices(batches, batch_size):
                self.rows_returned += part.num_rows
                given += part.num_rows
                self.share_read = begin + (end - begin) * given / rows
                yield part
                del part  # no name here may keep a batch alive while the next one is made
        self.share_read = 1.0

    def begin(self) -> None:
        """Request what pruning and the first row groups of :meth:`iter_batches` will need. Useful for remote files."""
        self._request_ahead(self._prune(to_read=True), self.outputs)

    def _request_ahead(self, selections: list[Selection], outputs: list[Output]) -> None:
        """Request the first reads of the row groups, unless a ``limit`` may make them needless."""
        prefetch = self.reader.prefetch
        if prefetch is not None and not self._begun and (self.limit is None or isinstance(self.predicate, Constant)):
            self._begun = True
            prefetch.follow(self._reads_to_come(selections, outputs))

    def cancel(self) -> None:
        """Drop the requests that were made ahead."""
        self._begun = False
        if self.reader.prefetch is not None:
            self.reader.prefetch.stop()
        if self.file.fetcher.ahead:
            self.file.fetcher.forget_all()

    def _by_row_group(self, all_stay: bool = False, apart: bool = False) -> Iterator[tuple[list[Batch], float, float]]:
        """The batches of each row group, or of several small ones unless ``apart``, until the limit is reached.

        They come with two numbers between 0 and 1: the share of all rows to read that lie before them, and the share up
        to their end. ``all_stay``: the caller keeps the batches, so that all of them count for ``limits.max_memory``.
        """
        left, alive, seen = self.limit, 0, 0
        selections = self._prune(to_read=True)
        total = max(sum(selection.maybe.count for selection in selections), 1)
        if not all_stay and not self.projection.leaves and isinstance(self.predicate, Constant):
            self._check_rows_alone(total)
        try:
            self.begin()
            refused = list[Selection]()
            for k, part in enumerate(_with_refused(self._groups.in_groups(selections, apart), refused)):
                if left == 0:
                    return
                if k == 1:
                    self._groups.check_overlaps(selections)
                self.reader.account.restart(alive)
                # The memory of pruning is used again. The memory of decoding these row groups is released with them.
                fresh = [replace(s, dictionaries=dict(s.dictionaries), locations=dict(s.locations)) for s in part]
                batches = self._run(fresh, refused, limit=left)
                if batches is None:
                    continue
                if left is not None:
                    left -= sum(batch.num_rows for batch in batches)
                if all_stay:
                    alive += sum(bytes_held(column) for batch in batches for column in batch.columns)
                begin, seen = seen / total, seen + sum(s.maybe.count for s in part)
                yield batches, begin, seen / total
                del batches
        finally:
            # Python prints an interrupt that arrives while it drops a generator. Code without calls gives it no place.
            if self.reader.prefetch is not None or self.file.fetcher.ahead:
                self.cancel()

    def _run(self, part: list[Selection], refused: list[Selection], **asked: Any) -> list[Batch] | None:
        """The batches of row groups that are read together. ``None`` if a limit refuses them: they are put into
        ``refused``, and are read one by one then."""
        try:
            return self._groups.run(part, **asked)
        except LimitError:
            if len(part) == 1:
                raise
            refused += part
            return None

    def _check_rows_alone(self, rows: int) -> None:
        """Raise :class:`LimitError` for batches without columns whose row count is larger than any file of this size
        could hold. No page proves that these rows exist, so the batches could go on without end."""
        size, most = self.file.fetcher.source.size, self.file.options.limits.max_values_per_byte
        if rows > size * most:
            raise LimitError(
                f"the file declares {rows} rows in {size} bytes, and no column is read: more than "
                f"limits.max_values_per_byte ({most}) allows",
                file=self.file.name,
            )

    def _reads_to_come(self, selections: list[Selection], outputs: list[Output]) -> Iterator[list[Range]]:
        """The first reads of the following row groups, as far as they are known."""
        for selection in selections:
            first = self._groups.filter_columns(selection)
            leaves = [] if first else [leaf for output in outputs for leaf in output.leaves]
            wanted = first or [Wanted(selection, leaf, selection.sure) for leaf in leaves]
            if not self.reader.not_located([w for w in wanted if not w.rows.is_all]):
                yield from self.reader.steps(wanted)

    def _stream(self) -> ScanStream:
        again = self._again()
        return ScanStream(again, again.file.name, again.file.check_open)

    def _asking(self, columns: Names | None, filters: Filters | None, limit: int | None = None) -> Scan:
        return Scan(self.file.fork(), columns, filters, self.row_groups, rows=self._within or None, limit=limit)

    def _again(self) -> Scan:
        """The same question, unread, with its own counts."""
        other = copy(self)
        other.file = self.file.fork()
        other._read_by(ColumnReader(other.file))
        other.reports, other.rows_returned, other._begun = [], None, False
        planned = [s for s in self._selections or () if s.planned is not None]
        other._selections = [replace(s, dictionaries={}) for s in planned] or None
        return other

    def count(self) -> int:
        """Number of rows that match. Reads no column where the indexes alone give the answer."""
        selections = self._prune(to_read=True, outputs=[])
        if isinstance(self.predicate, Constant):
            return sum(s.maybe.count for s in selections)
        total = 0
        try:
            self._request_ahead(selections, [])
            refused = list[Selection]()
            for part in _with_refused(self._groups.in_groups(selections, counted=self.limit is None), refused):
                wanted = None if self.limit is None else self.limit - total
                if wanted == 0:
                    break
                self.reader.account.restart()
                batches = self._run(part, refused, outputs=[], limit=wanted)
                total += sum(b.num_rows for b in batches or ())
        finally:
            self.cancel()
        return total

    def matching_rows(self) -> Iterator[tuple[int, Rows]]:
        """The row groups that have matching rows, and which rows of them match. Only columns of the filter are read,
        one row group at a time, and none where the indexes alone give the answer."""
        try:
            for selection in self._prune(to_read=True, outputs=[]):
                self.reader.account.restart()
                rows = self._groups.matches(selection)
                if rows:
                    yield selection.row_group, rows
        finally:
            self.cancel()

    def plan(self) -> ScanPlan:
        """What the scan will read (:class:`pyparq.ScanPlan`). It prunes, and reads no data."""
        with self._groups.context:
            # Dictionaries that pruning decoded are not part of the plan. The executor reads them again where it needs
            # them.
            parts = [self._all_wanted(replace(s, dictionaries={})) for s in self._prune()]
            wanted = [w for first, rest in parts for w in first + rest]
            self.file.look_up(sorted({w.selection.row_group for w in wanted}), [w.node for w in wanted])
            # Filtering may narrow column chunks that are read whole now. That takes their page locations.
            self.reader.locate([w for first, rest in parts for w in first + rest if first or not w.rows.is_all])
            groups = [self._plan_row_group(s, *part) for s, part in zip(self._prune(), parts, strict=True)]
        self.file.fetcher.forget_all()
        file = self.file
        header = scan_plan.PlanHeader(
            file.name, self.columns, self.filters, scan_plan.plan_options(file.options), self.limit, file.identity
        )
        return header.plan(groups)

    def _all_wanted(self, selection: Selection) -> tuple[list[Wanted], list[Wanted]]:
        """The filter columns, and the other columns for all rows that can match. Filtering may leave fewer rows of the
        latter."""
        first = self._groups.filter_columns(selection)
        columns = {w.node.column for w in first}
        leaves = (leaf for output in self.outputs for leaf in output.leaves if leaf.column not in columns)
        return first, [Wanted(selection, leaf, selection.maybe) for leaf in leaves]

    def _plan_row_group(self, selection: Selection, first: list[Wanted], rest: list[Wanted]) -> scan_plan.RowGroupPlan:
        reads = [self.reader.plan(first), self.reader.plan(rest)]
        if first and selection.planned is None:
            for k, (w, read) in enumerate(zip(rest, reads[1], strict=True)):
                chunk = self.file.chunk(selection.row_group, w.node)
                reads[1][k] = with_pages(read, chunk, selection.locations.get(w.node.column))
        return scan_plan.RowGroupPlan(
            selection.row_group, selection.num_rows, selection.maybe, selection.sure, tuple(reads[0]), tuple(reads[1]),
            self._within.get(selection.row_group),
        )  # fmt: skip

    def explain(self, *, execute: bool = True) -> explanations.Explanation:
        """What each index removed, and how many pages, ranges, requests and bytes the scan needed.

        Runs the scan (the rows are thrown away) unless it has run; ``execute=False`` only prunes.
        """
        if execute and self.rows_returned is None:
            self.to_table()
        return explanations.explain_read(
            self.file, self.reader.counts, self._prune(), columns=self.schema.names, predicate=str(self.predicate),
            stages=tuple(self.reports), rows=self.rows_returned,
        )  # fmt: skip

    # ---- the line from pruning to batches

    def _choose_rows(self, rows: Any) -> None:
        """Keep the row groups that hold any of ``rows``. A limit on unfiltered rows also chooses rows here."""
        if isinstance(rows, dict):
            self._within = rows
            self.row_groups = [k for k in self.row_groups if k in rows]
        elif rows is not None:
            counts = [self.file.num_rows_of(k) for k in range(self.file.num_row_groups)]
            numbers = row_numbers(rows, sum(counts))
            self._within = ranges_by_group(numbers if isinstance(numbers, slice) else np.unique(numbers), counts)
            self.row_groups = [k for k in self.row_groups if k in self._within]
        if self.limit is None or not isinstance(self.predicate, Constant):
            return
        left, chosen = self.limit, []
        for k in self.row_groups:
            asked = self._within.get(k) or RowRanges.all(self.file.num_rows_of(k))
            if left == 0:
                break
            self._within[k] = asked.head(left)
            left -= self._within[k].count
            chosen.append(k)
        self.row_groups = chosen

    def _prune(self, *, to_read: bool = False, outputs: list[Node] | None = None) -> list[Selection]:
        """The row groups in which a row can match. ``to_read``: their rows are read next. ``outputs``: the leaves to
        read for them, if not those of the result."""
        if self._selections is None and isinstance(self.predicate, Constant):
            self._selections = _all_rows(self.file, self.row_groups, self._within) if self.predicate.value else []
        if self._selections is None:
            with self._groups.context:
                leaves = self.projection.leaves.nodes if outputs is None else outputs
                pruner = pruning.Pruner(
                    self.file, self.predicate, self.row_groups, self._within, self.reader.account, leaves,
                    ask_filters=self._ask_filters, trace=self._trace,
                    early=self._early_reads() if to_read and self.reader.prefetch is not None else None,
                )  # fmt: skip
                self._selections = pruner.run()
                self.reader.account.keep()
                self.reports = pruner.reports
                if self.reader.logger is not None:
                    pruning.log_stages(self.reader.logger, self.file.name, self.reports)
                self.reader.counts.dictionary_pages += pruner.dictionaries_decoded
        return self._selections

    def _early_reads(self) -> EarlyReads | None:
        """What may be read beside the indexes."""
        if self.limit is not None or self.predicate.asks_variants:
            return None  # a Variant needs other columns in each row group
        return EarlyReads(self.file, self.reader.spare)

    def _take(self, groups: Sequence[scan_plan.RowGroupPlan]) -> None:
        """Take the pruned row groups and the planned reads from a plan."""
        scan_plan.check_row_groups(groups, self.file)
        self.row_groups = [group.row_group for group in groups]
        self._within |= {group.row_group: group.within for group in groups if group.within is not None}
        self._selections = []
        for group in groups:
            selection = Selection(group.row_group, group.maybe, group.sure)
            needs = [{w.node.column: w.rows for w in wanted} for wanted in self._all_wanted(selection)]
            selection.planned = scan_plan.check_reads(group, self.file, *needs)
            self._selections.append(selection)


def same_question(
    scan: Scan, file: OpenFile, row_groups: Sequence[int] | None, limit: int | None, *, ask_filters: bool = True,
    rows: Any = None,
) -> Scan:  # fmt: skip
    """What ``scan`` asks, asked of a file that shares its file's schema tree. ``ask_filters``: the file's Bloom filters
    have not been asked yet. ``rows``: a slice of the file's rows, row numbers, or row ranges by row
    group."""
    other = object.__new__(Scan)
    other.__dict__.update(scan.__dict__)
    other.limit = limit
    other._ask_filters = ask_filters
    other._set_up(file, row_groups, rows, scan.reader.spare)
    return other


def _all_rows(file: OpenFile, row_groups: Sequence[int], within: Mapping[int, RowRanges]) -> list[Selection]:
    """The selections of a read without a filter: all requested rows. Equal sets of rows are shared."""
    found: list[Selection] = []
    whole: dict[int, RowRanges] = {}
    counts = file.rows_of(np.array(row_groups, np.int64)).tolist()
    for place, (k, num_rows) in enumerate(zip(row_groups, counts, strict=True)):
        rows = within.get(k)
        if rows is None:
            rows = whole.get(num_rows)
            if rows is None:
                rows = whole[num_rows] = RowRanges.all(num_rows)
        if rows.count:
            found.append(Selection(k, rows, rows, place=place))
    return found


def all_batches(scan: Scan) -> list[Batch]:
    """The batches of :meth:`Scan.to_table`. They may differ in the width of offsets."""
    batches = scan._all_batches()
    scan._restored(batches)
    return batches


def traced(scan: Scan) -> Trace:
    """From now on, note what each stage leaves, every read and every request of ``scan``, which has not run yet."""
    trace = Trace()
    scan._trace = scan.reader.trace = trace
    scan.file.fetcher.log = trace.requests
    return trace


def prune(scan: Scan) -> None:
    """Ask the indexes now what a scan has to read, if they have not been asked."""
    scan._prune()


def _with_refused(parts: Iterator[list[Selection]], refused: list[Selection]) -> Iterator[list[Selection]]:
    """All ``parts``. Behind each follow the row groups that were put into ``refused`` meanwhile, one by one."""
    for part in parts:
        yield part
        while refused:
            yield [refused.pop(0)]


def _checked_row_groups(row_groups: Sequence[int], count: int) -> list[int]:
    try:
        chosen = [index(k) for k in row_groups]
    except TypeError:
        raise OptionError(f"row_groups must be a list of row group numbers, not {row_groups!r}") from None
    for k in chosen:
        if not 0 <= k < count:
            raise OptionError(f"row group {k} does not exist: the file has {count} row groups, numbered from 0")
    if len(set(chosen)) != len(chosen):
        raise OptionError("row_groups names a row group twice")
    return chosen
