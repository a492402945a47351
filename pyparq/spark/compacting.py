"""``compact``: the small files of each partition joined, and rows put in order, by many tasks.

What a task makes goes to staging, and one commit replaces the chosen files and no others. Where the rows of a partition
are put in order over several files, a first round of tasks writes them into pieces by ranges, within staging, and a
second round makes a file of each range. Rows do not pass through the JVM, so columns keep their types exactly.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from pyparq.arrow.ingest import ingest
from pyparq.arrow.pandas_key import in_other_order
from pyparq.arrow.record_batch import BatchStream, RecordBatch
from pyparq.datasets.common_schema import COMPACTION, tree_of
from pyparq.datasets.dataset import dataset
from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.write_dataset import write_staged
from pyparq.errors import DataError, OptionError
from pyparq.format.types import Schema
from pyparq.io.url import is_url
from pyparq.option_checks import keywords
from pyparq.option_values import SortKey, sort_keys
from pyparq.options import WriteOptions
from pyparq.spark.choosing import Choice, Group, Wanted, choose, options_for
from pyparq.spark.options import check_factory, obeyed, of_session
from pyparq.spark.ordering import Numbers, Order
from pyparq.spark.question import Question, as_stored, parts_of
from pyparq.spark.reading import part_scan, planned, question_of
from pyparq.spark.session import check_session, is_case_sensitive, learner, parallelism
from pyparq.spark.staged_rows import OF_PIECES, place_staged
from pyparq.spark.tasks import Progress, Watch, attempt, here, in_tasks
from pyparq.spark.writing import TaskReply, WriteJob, WriteRequest, begin, one_folder, run_write, stage
from pyparq.write.column_plans import make_plan
from pyparq.write.external_sort import ExternalSorter

REPORT = (
    "partition string, files_before long, files_after long, rows long, bytes_before long, bytes_after long, "
    "seconds double"
)
"""Columns of the report: Spark's text of the schema."""

MOST_COLUMNS = 8
"""Of a Z-order."""


@keywords
def compact(
    spark: Any,
    source: Any,
    *,
    target_size: int | str = "256MB",
    sort_by: Any = None,
    zorder_by: Sequence[str] | str | None = None,
    bloom_filters: Any = None,
    keep_old: float | str = 0,
    decryption: str | None = None,
    encryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Join the small files of each partition of a folder, and put rows in order. Other files are not touched.

    Only files that have the same columns are joined: Spark gives a column's DEFAULT for files without the column.

    ``source``: a folder. ``target_size``: the compressed size of a file, in bytes or as ``"256MB"`` (2**20 bytes each).
    Files below three quarters of it count as small. They are joined where that makes fewer files. ``sort_by``: an order
    as in :func:`pyparq.write_table`; files that do not declare it are rewritten too. ``zorder_by``: columns that a
    search may name alone or together. Rows that are near in all of them go together (Z-order). Files that this function
    has not put in the same order before are rewritten. ``bloom_filters``: as in :func:`pyparq.write_table`; by default
    those of the chosen files, as with ``compression``. ``keep_old``: how long replaced files stay for readers of pyparq
    that have listed them before, in seconds or as ``"1h"``; the next run after that removes them. ``decryption``,
    ``encryption``: names of functions that make the properties on each worker; files of encrypted folders are sorted
    one by one. ``force``: write even where Delta Lake, Iceberg or Hudi manages the folder. ``storage_options``: for the
    file system of a URL. ``table``: as in :func:`pyparq.spark.write`. ``progress``: as in
    :func:`pyparq.spark.read`. ``options``: those of :func:`pyparq.spark.write` for each file.

    The job runs now, and commits once, as :func:`pyparq.spark.rewrite` in place does: files that are added meanwhile
    stay, and a chosen file that changes is an error (:class:`pyparq.ChangedFileError`). A second run does nothing.
    Returns a DataFrame with one row for each partition that changed: ``partition, files_before, files_after, rows,
    bytes_before, bytes_after, seconds``.

    Example::

        import pyparq.spark as ps

        ps.compact(spark, "flights/", sort_by=["dest"]).show()
    """
    check_session(spark)
    check_factory(decryption)
    check_factory(encryption, "encryption")
    wanted, keep_seconds = _wanted(target_size, sort_by, zorder_by), _seconds(keep_old)
    where, storage_options = one_folder(spark, source, storage_options, "compact")
    if keep_seconds and is_url(where):
        raise OptionError("keep_old needs a file system: on a store, let the store keep versions of its objects")
    began, watch, learn = time.perf_counter(), Watch(spark, progress), learner(spark, table, where)
    choice: Choice = here(spark, choose, where, wanted, decryption, storage_options, is_case_sensitive(spark))
    if not choice.groups:
        return spark.createDataFrame([], REPORT)
    places = [place for group in choice.groups for place in group.files]
    question = question_of(
        spark, places, decryption=decryption, small=0, storage_options=storage_options, partitioning=None
    )
    with watch:
        question = here(spark, as_stored, question)
        plan = planned(spark, question)
    given = _options(spark, plan, choice, wanted, options, bloom_filters)
    request = WriteRequest(
        where, "overwrite", plan.schema, (), given, storage_options, force, encryption, choice.sources,
        keep_old=keep_seconds,
    )  # fmt: skip
    job = begin(spark, request)
    assert job is not None  # for mode "ignore" alone
    made = list[tuple[Group, TaskReply]]()

    def tasks() -> list[TaskReply]:
        for run in _runs(spark, job, question, wanted, choice, plan):
            made.extend(run.files())
        return [reply for _, reply in made]

    run_write(spark, job, watch, tasks)
    learn()
    return spark.createDataFrame(_report(choice, made, time.perf_counter() - began), REPORT)


def _wanted(target_size: int | str, sort_by: Any, zorder_by: Any) -> Wanted:
    if sort_by and zorder_by:
        raise OptionError("give either sort_by or zorder_by, not both")
    names = [zorder_by] if isinstance(zorder_by, str) else list(zorder_by or ())
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or len(names) > MOST_COLUMNS:
        raise OptionError(
            f"zorder_by must be names of at most {MOST_COLUMNS} columns, each once, not {zorder_by!r}. With each "
            "column more the others skip less"
        )
    keys = tuple(SortKey(name) for name in names) if names else sort_keys(sort_by)
    return Wanted(_size(target_size), keys, bool(names))


def _size(given: int | str) -> int:
    """A number of bytes. Raises :class:`OptionError` for what is none."""
    units = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
    found = re.fullmatch(r"\s*(\d{1,15})\s*([kmgt]?)(?:i?b)?\s*", str(given).lower())
    size = int(found[1]) << units[found[2]] if found and not isinstance(given, (bool, float)) else 0
    if size < 1:
        raise OptionError(f'target_size must be a number of bytes, or text such as "256MB", not {given!r}')
    return size


def _seconds(given: float | str) -> float:
    """A time in seconds. Raises :class:`OptionError` for what is none."""
    units = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|min|h|d|)", str(given).lower())
    if found is None or isinstance(given, bool):
        raise OptionError(f'keep_old must be a number of seconds, or text such as "1h", not {given!r}')
    return float(found[1]) * units[found[2]]


def _options(
    spark: Any, plan: DatasetPlan, choice: Choice, wanted: Wanted, options: Mapping[str, Any], bloom_filters: Any
) -> dict[str, Any]:
    """The options of each new file. Raises :class:`OptionError` and :class:`ColumnNotFoundError` before any task."""
    session = of_session(spark)
    _, given = obeyed("overwrite", (), options, session)
    if "compression" not in options and choice.codec is not None:
        given["compression"] = choice.codec
    if bloom_filters is None:
        bloom_filters = list(choice.blooms)
    if bloom_filters:
        given["bloom_filters"] = bloom_filters
    if wanted.keys and not wanted.interleaved:
        given["sort_by"] = list(wanted.keys)
    marks = {COMPACTION: wanted.mark(secrets.token_hex(8)), **dict(given.get("key_value_metadata", {}))}
    given = {**given, "key_value_metadata": marks}
    for key in wanted.keys if wanted.interleaved else ():
        Schema(plan.schema.fields).field(str(key.name))
    make_plan(plan.schema, WriteOptions.make({name: value for name, value in given.items() if name in _FIELDS}))
    return given


_FIELDS = frozenset(WriteOptions.__dataclass_fields__)


def _dotted(name: Any, plan: DatasetPlan) -> str:
    """The column of a sort key. Raises :class:`ColumnNotFoundError`."""
    tree = tree_of(plan.schema)
    return (tree.leaves[name] if isinstance(name, int) else tree.find(name)).dotted


def _runs(
    spark: Any, job: WriteJob, question: Question, wanted: Wanted, choice: Choice, plan: DatasetPlan
) -> Iterator[_Run]:
    """The tasks for the files of each set of columns."""
    numbers = count()
    for columns in dict.fromkeys(group.columns for group in choice.groups):
        groups = [group for group in choice.groups if group.columns == columns]
        places = {place for group in groups for place in group.files}
        own = columns.narrowed(plan, places)
        options = options_for(job.options, plan.schema, own.schema)
        make_plan(own.schema, WriteOptions.make({k: v for k, v in options.items() if k in _FIELDS}))
        keys = tuple(key for key in wanted.keys if columns.has(_dotted(key.name, plan)))
        wanted_here = replace(wanted, keys=keys, interleaved=wanted.interleaved and bool(keys))
        run_job = replace(job, schema=own.schema, options=options)
        yield _Run(spark, run_job, question, wanted_here, groups, own, numbers)


@dataclass
class _Run:
    """The tasks for files that have the same columns."""

    spark: Any
    job: WriteJob
    question: Question
    wanted: Wanted
    groups: Sequence[Group]
    plan: DatasetPlan
    numbers: Iterator[int]
    """Of the new files."""

    def files(self) -> list[tuple[Group, TaskReply]]:
        """Make all files: the group that each is of, and what a task has written.

        Raises :class:`DataError` where rows were lost or doubled.
        """
        plans = self._plans(self.plan)
        ranged = {k for k, group in enumerate(self.groups) if self._is_ranged(group)}
        sampled = {k for k in range(len(plans)) if k in ranged or self.wanted.interleaved}
        orders = self._orders(plans, sampled)
        pieces = self._pieces({k: plans[k] for k in ranged}, orders)
        work, of_files = list[tuple[Any, ...]](), list[Group]()
        for k, (group, plan) in enumerate(zip(self.groups, plans, strict=True)):
            order = orders[k][0] if k in orders and self.wanted.interleaved else None
            if k in ranged:
                work += [(next(self.numbers), group.folders, None, places, order) for places in pieces[k]]
            else:
                parts = plan.split(1 if order is not None else group.count)
                work += [(next(self.numbers), group.folders, part, (), order) for part in parts]
            of_files += [group] * (len(work) - len(of_files))
        found = list(zip(of_files, self._asked(_write_file, work), strict=True))
        self._check_rows(found)
        return found

    def _is_ranged(self, group: Group) -> bool:
        """Whether the rows are put in order over several files."""
        names = set(self.plan.schema.names)
        plain = all(isinstance(key.name, str) and key.name in names for key in self.wanted.keys)
        secret = self.question.decryption is not None or self.job.encryption is not None
        return bool(self.wanted.keys) and group.count > 1 and plain and not secret

    def _plans(self, plan: DatasetPlan) -> list[DatasetPlan]:
        """The plan of each group's files."""
        by_place = {file.where: file for file in plan.files}
        return [
            replace(plan, files=tuple(by_place[place] for place in group.files if place in by_place)).trimmed()
            for group in self.groups
        ]

    def _orders(self, plans: Sequence[DatasetPlan], groups: Collection[int]) -> dict[int, tuple[Order, Numbers]]:
        """The order of the rows of each group, and where its files begin, from a sample of the key columns."""
        import pyarrow as pa

        if not groups:
            return {}
        names = [(str(key.name),) for key in self.wanted.keys]
        asked = self._parts({k: plans[k] for k in groups})
        samples: dict[int, list[Any]] = {k: [] for k in groups}
        for (k, _), stream in zip(asked, self._asked(_sample, [(part, names) for _, part in asked]), strict=True):
            samples[k].append(pa.ipc.open_stream(stream).read_all())
        found = {}
        for k, tables in samples.items():
            sample = pa.concat_tables(tables)
            order = Order.of_sample(self.wanted.keys, self.wanted.interleaved, sample)
            found[k] = order, order.cuts(sample, self.groups[k].count)
        return found

    def _pieces(
        self, plans: Mapping[int, DatasetPlan], orders: Mapping[int, tuple[Order, Numbers]]
    ) -> dict[int, list[list[str]]]:
        """The rows of each group, parted into ranges: the places of the pieces of each range, in order."""
        asked = self._parts(plans)
        by_range: dict[int, dict[int, list[str]]] = {k: {} for k in plans}
        replied = self._asked(_write_pieces, [(part, *orders[k]) for k, part in asked])
        for (k, _), made in zip(asked, replied, strict=True):
            for number, place in made:
                by_range[k].setdefault(number, []).append(place)
        return {k: [ranges[number] for number in sorted(ranges)] for k, ranges in by_range.items()}

    def _parts(self, plans: Mapping[int, DatasetPlan]) -> list[tuple[int, DatasetPlan]]:
        """The plans of groups, parted for tasks: at least as many as run at a time."""
        each = -(-parallelism(self.spark) // max(len(plans), 1))
        return [
            (k, part) for k, plan in plans.items() if plan.files for part in plan.split(parts_of(plan.num_bytes, each))
        ]

    def _asked(self, task: Callable[..., Any], payloads: Sequence[tuple[Any, ...]]) -> list[Any]:
        return in_tasks(self.spark, task, payloads, self.job, self.question.decryption)

    def _check_rows(self, found: Sequence[tuple[Group, TaskReply]]) -> None:
        for group in self.groups:
            rows = sum(part.num_rows for part in _made(group, found))
            if rows != group.num_rows:
                raise DataError(
                    f"{group.num_rows:,} rows were to be compacted, and {rows:,} were written: nothing is replaced",
                    file="/".join(group.folders) or self.job.staging.target,
                )


def _made(group: Group, found: Sequence[tuple[Group, TaskReply]]) -> list[Any]:
    """The new files of a group."""
    return [part for other, reply in found if other is group for part in reply.parts]


def _report(choice: Choice, found: Sequence[tuple[Group, TaskReply]], seconds: float) -> list[tuple[Any, ...]]:
    """A row for each partition."""
    rows: dict[str, list[int]] = {}
    for group in choice.groups:
        made = _made(group, found)
        facts = (len(group.files), len(made), group.num_rows, group.num_bytes, sum(part.num_bytes for part in made))
        name = "/".join(group.folders)
        rows[name] = [a + b for a, b in zip(rows.get(name, [0] * len(facts)), facts, strict=True)]
    return [(name, *facts, seconds) for name, facts in rows.items()]


# ---- tasks: take samples, part rows into ranges, write files ---------------------------------------------------------

_RANGE, _NUMBER = "pyparq.range", "pyparq.number"
"""Columns of pieces: which range a row is in, and its number in the order."""
SAMPLE_ROWS = 1 << 14
"""Rows that one task takes into the sample."""
SORT_BYTES = 1 << 30
"""Memory of one task for sorting: more rows wait in temporary files."""


def _sample(plan: DatasetPlan, names: list[tuple[str]], job: WriteJob, decryption: str | None) -> bytes:
    """Some rows of the key columns, evenly spread, as an Arrow stream: of the files that begin in the plan."""
    import pyarrow as pa

    plan = replace(plan, files=tuple(file for file in plan.files if file.row_groups[0].row_group == 0)).trimmed()
    step = max(plan.num_rows // SAMPLE_ROWS, 1)
    sink, first = pa.BufferOutputStream(), 0
    reader = pa.RecordBatchReader.from_stream(part_scan(plan, decryption, job.storage_options, names))
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            picked = np.arange(first, batch.num_rows, step)
            first = (first - batch.num_rows) % step
            writer.write_batch(batch.take(pa.array(picked)))
    return bytes(sink.getvalue())


def _write_pieces(
    plan: DatasetPlan, order: Order, begins: Numbers, job: WriteJob, decryption: str | None
) -> list[tuple[int, str]]:
    """The rows, each in the piece of its range, which is a file in staging: the range and the place of each piece."""
    rows = _numbered(part_scan(plan, decryption, job.storage_options), order, begins)
    made = write_staged(
        rows, job.staging, attempt(), partition_cols=(_RANGE,), schema=rows.schema, even_empty=False, prefix="piece",
        options=OF_PIECES, storage_options=job.storage_options,
    )  # fmt: skip
    return [
        (int(part.file.path.split("/")[0].rpartition("=")[2]), place_staged(part.file.staged, job)) for part in made
    ]


def _write_file(
    number: int, folders: tuple[str, ...], plan: DatasetPlan | None, pieces: Sequence[str], order: Order | None,
    job: WriteJob, decryption: str | None,
) -> TaskReply:  # fmt: skip
    """A new file of the rows of a plan or of pieces. ``order``: a Z-order that its rows are put in; a sort order is an
    option of the file."""
    rows: Any
    if plan is not None:
        rows = part_scan(plan, decryption, job.storage_options)
        rows = rows if order is None else _unnumbered(_numbered(rows, order), job, in_order=True)
    else:
        remote = job.storage_options if any("://" in place for place in pieces) else None
        rows = dataset(list(pieces), storage_options=remote).scan()
        rows = _unnumbered(rows, job, in_order=order is not None)
    made = stage(rows, job, number, attempt())
    inner = "/".join(folders)
    placed = (replace(part, file=replace(part.file, path=os.path.join(inner, part.file.path))) for part in made.parts)
    return TaskReply(number, tuple(placed))


def _numbered(scan: Any, order: Order, begins: Numbers | None = None) -> Any:
    """The rows, with their number in the order as the last column. ``begins``: and with the range that they are in,
    after it."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(scan)
    schema = reader.schema.append(pa.field(_NUMBER, pa.int64()))
    schema = schema if begins is None else schema.append(pa.field(_RANGE, pa.int32()))

    def batches() -> Iterator[Any]:
        for batch in reader:
            added = [order.numbers(batch)]
            if begins is not None:
                added.append(np.searchsorted(begins, added[0], side="right").astype(np.int32))
            yield pa.RecordBatch.from_arrays([*batch.columns, *map(pa.array, added)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _unnumbered(rows: Any, job: WriteJob, *, in_order: bool) -> BatchStream:
    """The rows without their numbers, which are the last column; ``in_order``: sorted by them."""
    schema, batches = ingest(rows)
    own = replace(schema, fields=schema.fields[:-1])
    if in_order:
        batches, own = _sorted(schema, batches, job), in_other_order(own)
    return BatchStream(own, (RecordBatch(batch.columns[:-1], batch.num_rows) for batch in batches))


def _sorted(schema: Schema, batches: Iterator[RecordBatch], job: WriteJob) -> Iterator[RecordBatch]:
    plan = make_plan(schema, WriteOptions(sort_by=[_NUMBER]))
    sorter = ExternalSorter(plan, SORT_BYTES, None, job.encryption is not None)
    try:
        for batch in batches:
            sorter.add(batch)
        yield from sorter.batches()
    finally:
        sorter.close()
