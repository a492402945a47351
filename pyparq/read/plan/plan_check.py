"""Checks that a plan fits the file that runs it, and is consistent. Nothing is read for a plan that is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyparq.errors import PlanError
from pyparq.index.row_ranges import RowRanges
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_reads import ColumnRead, Pages
from pyparq.read.plan.scan_plan import RowGroupPlan, ScanPlan

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
