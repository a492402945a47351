"""A pruned scan as a plain value, made in one process and run in others.

A plan says which pages hold rows that can match; running it asks no index again. See :class:`ScanPlan`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.wide_offsets import widen_columns
from pyparq.column_names import ColumnName
from pyparq.errors import DataError, PlanError
from pyparq.index.row_ranges import RowRanges
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import FileState
from pyparq.read.plan.packed_integers import pack_ranges, unpack_ranges
from pyparq.read.plan.page_reads import ColumnRead, Pages
from pyparq.runtime.safe_repr import printable

PLAN_VERSION = 1
"""Must grow with every change in the contents or the meaning of a pickled plan."""

NOT_PLANNED = ("decryption", "limits", "max_requests", "prefetch_bytes", "use_threads")
"""Options that the file which runs a plan decides. Keys are not sent along, and a plan must not decide how much memory
another machine may use."""


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """One row group of a plan: the rows that can match, the rows that certainly match, and the reads of each column."""

    row_group: int
    num_rows: int
    maybe: RowRanges
    sure: RowRanges
    filter_reads: tuple[ColumnRead, ...]
    """Read first; they decide which rows survive."""
    output_reads: tuple[ColumnRead, ...]
    """At most: only the pages with surviving rows are read."""
    within: RowRanges | None = None
    """The requested rows, matching or not. ``None`` means all."""

    @property
    def reads(self) -> tuple[ColumnRead, ...]:
        return self.filter_reads + self.output_reads

    @property
    def num_bytes(self) -> int:
        return sum(read.num_bytes for read in self.reads)

    def __reduce__(self) -> tuple[Any, ...]:
        sets = [None if rows is None else pack_ranges(rows) for rows in (self.maybe, self.sure, self.within)]
        reads = [[_read_state(read) for read in part] for part in (self.filter_reads, self.output_reads)]
        return _row_group, (PLAN_VERSION, self.row_group, self.num_rows, sets, reads)


@dataclass(frozen=True, slots=True)
class PlanHeader:
    """The part of a plan that all its parts share: the question, the options, and the file."""

    source: str
    columns: list[ColumnName] | None
    filters: Any
    options: ReadOptions
    """All options except those in :data:`NOT_PLANNED`."""
    limit: int | None
    """Maximum number of matching rows to return, for the whole plan."""
    made_for: FileState
    """The state of the file: row numbers and offsets are valid for this file only."""

    def plan(self, row_groups: Iterable[RowGroupPlan]) -> ScanPlan:
        """The plan, or a part of it, with these ``row_groups``."""
        return ScanPlan(self, tuple(row_groups))

    def __reduce__(self) -> tuple[Any, ...]:
        options = {f.name: getattr(self.options, f.name) for f in fields(ReadOptions) if f.name not in NOT_PLANNED}
        # The filter is a pickle inside the pickle, so that another version is refused before the filter is unpickled.
        filters = None if self.filters is None else pickle.dumps(self.filters, pickle.HIGHEST_PROTOCOL)
        state = self.source, self.columns, filters, options, self.limit, tuple(self.made_for)
        return _header, (PLAN_VERSION, state)


@dataclass(frozen=True, slots=True, repr=False)
class ScanPlan:
    """A pruned scan as a plain value: it can be printed, pickled, and split into parts that run elsewhere.

    :meth:`pyparq.ParquetFile.execute` runs it, :meth:`pyparq.ParquetFile.scan_of` makes a scan of it. Keys, limits and
    threads come from the file that runs the plan; everything else comes from the plan.

    **What a run reads.** Opening the file reads its footer in one request, as always: the plan does not hold it.
    This also checks that the file is the one the plan was made for. The run then reads the pages of ``filter_reads``,
    and those pages of ``output_reads`` that hold matching rows. It reads no index again.

    **Parts.** :meth:`split` divides a plan by row groups, :meth:`join` combines the results of the parts. A part is
    itself a plan. Parts that are pickled together store their common :attr:`header` once. The header holds the filter,
    with every literal of a long ``isin``. To send parts separately, send the header once and ``part.row_groups`` for
    each part; ``header.plan(row_groups)`` makes the part again.

    **Limits.** Without a filter, planning applies the limit: all parts together have at most ``limit`` rows. With a
    filter, the plan cannot know which parts have matching rows. Each part then returns at most ``limit`` rows, and
    :meth:`join` takes the first ``limit`` of all.

    A pickled plan has a version. A plan in the form of another version is refused. As with any pickle, load only what
    you trust.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            plan = file.scan(["dest"], pyparq.col("flight") < 50).plan()
            results = [file.execute(part) for part in plan.split(2)]    # in any process
            table = plan.join(results)
    """

    header: PlanHeader
    row_groups: tuple[RowGroupPlan, ...]

    @property
    def source(self) -> str:
        """Name of the file."""
        return self.header.source

    @property
    def columns(self) -> list[ColumnName] | None:
        return self.header.columns

    @property
    def filters(self) -> Any:
        return self.header.filters

    @property
    def options(self) -> ReadOptions:
        return self.header.options

    @property
    def limit(self) -> int | None:
        return self.header.limit

    @property
    def made_for(self) -> FileState:
        return self.header.made_for

    @property
    def num_bytes(self) -> int:
        """Upper bound for the data page and dictionary bytes that a run reads."""
        return sum(group.num_bytes for group in self.row_groups)

    def split(self, parts: int | None = None) -> list[ScanPlan]:
        """Split into at most ``parts`` plans of similar size in bytes, in row order; by default one per row group.

        There is always at least one part. For a plan without row groups it is the plan itself. Raises
        :class:`PlanError` if ``parts`` is less than 1.
        """
        if parts is not None and parts < 1:
            raise PlanError(f"parts must be at least 1, not {parts}")
        if parts is None or parts >= len(self.row_groups):
            return [replace(self, row_groups=(group,)) for group in self.row_groups] or [self]
        cut: list[list[RowGroupPlan]] = [[] for _ in range(parts)]
        total, before = max(self.num_bytes, 1), 0
        for group in self.row_groups:
            size = group.num_bytes
            cut[min(parts * (2 * before + size) // (2 * total), parts - 1)].append(group)
            before += size
        return [replace(self, row_groups=tuple(groups)) for groups in cut if groups]

    def join(self, results: Iterable[Any]) -> Table:
        """Combine the results of the parts from :meth:`split`, in part order, into one table of at most ``limit`` rows.

        ``results`` are tables, or other objects with ``__arrow_c_stream__``. Once there are ``limit`` rows, no more
        results are requested. Raises :class:`DataError` if there are no results, or if their columns differ in name or
        type.
        """
        return join_results(results, self.limit)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plan, (PLAN_VERSION, self.header, self.row_groups)

    @printable
    def __repr__(self) -> str:
        return f"<ScanPlan for {self.source}: {len(self.row_groups):,} row groups, at most {self.num_bytes:,} bytes>"

    def __str__(self) -> str:
        lines = [
            f"plan for {self.source} ({self.made_for}): {len(self.row_groups)} row groups, "
            f"at most {self.num_bytes:,} bytes"
        ]
        for group in self.row_groups:
            lines.append(f"  row group {group.row_group}: {group.maybe.count:,} of {group.num_rows:,} rows")
            for read in group.reads:
                pages = "all pages" if read.pages is None or read.whole else f"{len(read.pages)} pages"
                lines.append(f"    {read.name}: {pages}, {read.num_bytes:,} bytes")
        return "\n".join(lines)


def plan_options(options: ReadOptions) -> ReadOptions:
    """The options of a reader that are part of a plan."""
    defaults = ReadOptions()
    return replace(options, **{name: getattr(defaults, name) for name in NOT_PLANNED})


def join_results(results: Iterable[Any], limit: int | None) -> Table:
    """The rows of ``results`` in one table, at most ``limit`` of them: see :meth:`ScanPlan.join`."""
    schema, batches, left = None, list[Batch](), limit
    for result in results:
        table = result if isinstance(result, Table) else _as_table(result)
        if left is not None:
            table = table.slice(0, left)
            left -= table.num_rows
        schema = table.schema if schema is None else schema
        if schema.names != table.schema.names:
            raise DataError(f"a part has the columns {table.schema.names}, but the first part has {schema.names}")
        batches += (Batch(list(b.columns), b.num_rows) for b in table.batches)
        if left == 0:
            break
    if schema is None:
        raise DataError("there are no results to join: a plan has at least one part")
    schema, batches = widen_columns(schema, batches)
    for field, found in ((f, b.columns[k].type) for b in batches for k, f in enumerate(schema.fields)):
        if found != field.type:
            raise DataError(f"the parts have different types: {field.type} and {found}", column=field.name)
    return Table(schema, batches)


def _as_table(result: Any) -> Table:
    schema, batches = batches_from_arrow(result)
    return Table(schema, [Batch(*batch) for batch in batches])


# ---- pickles: plain values with a version, which is checked first


def check_version(version: Any, ours: int = PLAN_VERSION) -> None:
    """Raises :class:`PlanError` for a plan in the form of another version."""
    if version != ours:
        raise PlanError(
            f"another version of pyparq pickled this plan (plan version {version}, this pyparq reads version {ours}): "
            "make the plan again"
        )


def _plan(version: Any, header: PlanHeader, row_groups: tuple[RowGroupPlan, ...]) -> ScanPlan:
    check_version(version)
    return ScanPlan(header, row_groups)


def _header(version: Any, state: tuple[Any, ...]) -> PlanHeader:
    check_version(version)
    source, columns, filters, options, limit, made_for = state
    question = None if filters is None else pickle.loads(filters)
    return PlanHeader(source, columns, question, ReadOptions.make(options), limit, FileState(*made_for))


def _read_state(read: ColumnRead) -> tuple[Any, ...]:
    pages = None if read.pages is None else read.pages.packed()
    return read.column, read.name, pages, read.dictionary, read.whole, read.num_rows


def _read(row_group: int, state: tuple[Any, ...]) -> ColumnRead:
    column, name, pages, *rest = state
    return ColumnRead(row_group, column, name, None if pages is None else Pages.unpacked(*pages), *rest)


def _row_group(version: Any, row_group: int, num_rows: int, sets: list[Any], reads: list[Any]) -> RowGroupPlan:
    check_version(version)
    maybe, sure, within = (None if packed is None else unpack_ranges(packed, num_rows) for packed in sets)
    assert maybe is not None
    assert sure is not None
    first, rest = (tuple(_read(row_group, state) for state in part) for part in reads)
    return RowGroupPlan(row_group, num_rows, maybe, sure, first, rest, within)
