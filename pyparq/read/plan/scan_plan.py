"""A pruned scan as a plain value, made in one process and run in others.

A plan says which pages hold rows that can match; running it asks no index again. See :class:`ScanPlan`.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.tabular import widen_columns
from pyparq.column_names import ColumnName
from pyparq.errors import DataError, PlanError
from pyparq.index.row_ranges import RowRanges
from pyparq.options import ReadOptions
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import FileState, OpenFile
from pyparq.read.plan.page_reads import ColumnRead, Pages, pack_ranges, unpack_ranges
from pyparq.runtime.tables import of_header, summed
from pyparq.runtime.text import printable

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

    num_bytes = summed("num_bytes", of="reads")

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


class Joined:
    """What plans have in common."""

    __slots__ = ()
    source = of_header("source", str)
    limit = property(attrgetter("header.limit"), doc="As in the header.")

    def join(self, results: Iterable[Any]) -> Table:
        """Combine the results of the parts from :meth:`split`, in part order, into one table of at most ``limit`` rows.

        ``results`` are tables, or other objects with ``__arrow_c_stream__``. Once there are ``limit`` rows, no more
        results are requested. Raises :class:`DataError` if there are no results, or if their columns differ in name or
        type.
        """
        schema, batches, left = None, list[Batch](), self.limit
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


@dataclass(frozen=True, slots=True, repr=False)
class ScanPlan(Joined):
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

    columns = property(attrgetter("header.columns"), doc="As in the header.")
    filters = property(attrgetter("header.filters"), doc="As in the header.")
    options = of_header("options", ReadOptions)
    made_for = of_header("made_for", FileState)
    num_bytes = summed("num_bytes", "Most bytes of data pages and dictionaries that a run reads.", of="row_groups")

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


Needs = Mapping[int, RowRanges]
"""Rows that have to be read, by leaf column."""


def check_state(plan: ScanPlan, file: OpenFile) -> None:
    """Raise :class:`PlanError` if this is another file, or if the file has changed."""
    if plan.made_for != file.identity:
        raise PlanError(
            "the file changed since the plan was made, or the plan was made for another file "
            f"(planned for {plan.made_for}; this file: {file.identity}): make the plan again",
            file=file.name,
        )


def check_row_groups(groups: Sequence[RowGroupPlan], file: OpenFile) -> None:
    """Check the row groups of a plan: each exists and occurs once, and its rows are rows of the row group."""
    if len({group.row_group for group in groups}) != len(groups):
        raise PlanError("the plan contains a row group twice", file=file.name)
    for group in groups:
        k = group.row_group
        if not 0 <= k < file.num_row_groups or group.num_rows != file.num_rows_of(k):
            raise PlanError(f"the file has no row group {k} of {group.num_rows} rows", file=file.name)
        within = RowRanges.all(group.num_rows) if group.within is None else group.within
        for rows, outer in ((within, None), (group.maybe, within), (group.sure, group.maybe)):
            if not _are_rows(rows, group.num_rows) or (outer is not None and rows & ~outer):
                raise PlanError("the plan has rows that are not there", file=file.name, row_group=k)


def _are_rows(rows: RowRanges, num_rows: int) -> bool:
    if not rows:
        return True
    starts, ends = rows.starts, rows.ends
    inside = rows.num_rows == num_rows and starts[0] >= 0 and ends[-1] <= num_rows
    return bool(inside and (ends > starts).all() and (starts[1:] > ends[:-1]).all())


def check_reads(group: RowGroupPlan, file: OpenFile, first: Needs, rest: Needs) -> dict[int, ColumnRead]:
    """The planned reads by leaf column.

    Raises :class:`PlanError` unless there is exactly one read for each needed column. Its pages must lie within the
    column chunk and hold the rows that the plan lists. Other pages would give other rows.
    """
    planned: dict[int, ColumnRead] = {}
    for reads, needs in ((group.filter_reads, first), (group.output_reads, rest)):
        _check_columns([read.column for read in reads], needs, group, file)
        for read in reads:
            chunk = file.chunk(group.row_group, file.tree.leaves[read.column])
            if not _fits(read, chunk):
                raise _error("the plan has pages that are not in the column chunk", read, file)
            if needs[read.column] & ~read.row_ranges(group.num_rows):
                raise _error("the plan does not read all rows that can match", read, file)
            planned[read.column] = read
    return planned


def _check_columns(have: Sequence[int], needs: Collection[int], group: RowGroupPlan, file: OpenFile) -> None:
    if sorted(have) == sorted(needs):
        return
    odd = sorted(set(have) ^ set(needs)) or sorted(have)
    names = ", ".join(leaf.dotted for leaf in file.tree.leaves if leaf.column in odd)
    raise PlanError(
        f"the plan does not read each column that its scan needs exactly once ({names})",
        file=file.name, row_group=group.row_group,
    )  # fmt: skip


def _error(what: str, read: ColumnRead, file: OpenFile) -> PlanError:
    return PlanError(f"{what}: the plan was altered", file=file.name, row_group=read.row_group, column=read.name)


def _fits(read: ColumnRead, chunk: Chunk) -> bool:
    if read.row_group != chunk.row_group or read.name != chunk.name:
        return False
    if read.whole is not None and read.whole != (chunk.start, chunk.size):
        return False
    if read.pages is None:
        return read.whole is not None and read.dictionary is None
    first = chunk.start
    if read.dictionary is not None:
        start, length = read.dictionary
        if start != chunk.start or length <= 0:
            return False
        first = start + length
    whole = chunk.num_rows if read.whole is not None else read.num_rows
    return _are_pages(read.pages, first, chunk) and read.num_rows == whole == int(read.pages.num_rows.sum())


def _are_pages(pages: Pages, first: int, chunk: Chunk) -> bool:
    """Whether these are consecutive pages from byte ``first`` of the file on, within the chunk and its rows."""
    if len(pages) == 0:
        return first <= chunk.end
    offsets, sizes, rows, counts = pages.offsets, pages.sizes, pages.first_rows, pages.num_rows
    if min(int(pages.ordinals[0]), int(rows[0]), int(offsets[0]) - first) < 0:
        return False
    if int(sizes.min()) <= 0 or int(counts.min()) < 0 or (pages.ordinals[1:] <= pages.ordinals[:-1]).any():
        return False
    apart = (offsets[1:] - offsets[:-1] >= sizes[:-1]) & (rows[1:] - rows[:-1] >= counts[:-1])
    # Compares the rest of the chunk with the size: sums of invented numbers could wrap around.
    ends = chunk.end - int(offsets[-1]) >= int(sizes[-1]) and chunk.num_rows - int(rows[-1]) >= int(counts[-1])
    return bool(apart.all()) and ends
