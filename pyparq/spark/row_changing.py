"""``delete`` and ``update``: rows of a folder's files changed by many tasks, and one commit for all of them.

The driver plans: partitions, statistics, indexes and the catalog leave the files that may hold such rows. Tasks change
these as :func:`pyparq.delete` does, into staging: row groups without such rows are copied byte for byte. Keys of a
DataFrame are written into staging in order, and each task reads those that are within the bounds of its files.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.datasets.dataset import dataset, files_of, key_filter
from pyparq.datasets.scan import DatasetPlan, MatchingFiles
from pyparq.datasets.write.commit import StagedFiles
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.store_commit import StagedObjects, StoreStaging
from pyparq.datasets.write.write_dataset import StagedPart, write_staged
from pyparq.errors import ChangedMeanwhile, OptionError, located
from pyparq.filters.expression import col, top_names
from pyparq.index.row_mask import RowMask, rows_of
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.file_facts import facts_in
from pyparq.maintenance.kept_storage import without_marks
from pyparq.maintenance.row_changes.changed_file import GroupChange
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.file_change import FileChange, rows_go, written
from pyparq.maintenance.row_changes.old_catalogs import remove_catalogs
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.row_changes.update import rows_change
from pyparq.read.footers.metadata import FileMetaData
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.spark.choosing import columns_of_files
from pyparq.spark.compacting import OF_PIECES, place_staged
from pyparq.spark.file_jobs import balanced
from pyparq.spark.keys import check_factory
from pyparq.spark.question import Question
from pyparq.spark.reading import part_scan, planned, question_of
from pyparq.spark.rewriting import check_defaults
from pyparq.spark.session import absolute, check_session, is_connect, parallelism, store_options
from pyparq.spark.tasks import OF_WRITES, PER_SLOT, Progress, Watch, attempt, here, in_tasks, over_partitions
from pyparq.spark.writing import WriteJob, WriteRequest, begin, check_target, committer_of, run_write, sources_of

if TYPE_CHECKING:
    from pyparq.arguments import Filters

REPORT = (
    "path string, rows_deleted long, rows_updated long, rows_left long, row_groups_copied long, "
    "row_groups_rewritten long, row_groups_removed long, bytes_read long, bytes_copied long, bytes_written long, "
    "removed boolean, seconds double"
)
"""Columns of the report: Spark's text of the schema."""

KEYS_AT_ONCE = 1_000_000
"""Keys that a task holds and asks for together."""


def delete(
    spark: Any,
    path: Any,
    filters: Filters | None = None,
    *,
    keys: Any = None,
    dry_run: bool = False,
    keep_empty: bool = False,
    decryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Any:
    """Delete the rows of a folder for which ``filters`` is true, on Spark's workers. Row groups without such rows are
    copied byte for byte, and files without them stay untouched.

    ``path``: a folder or its URL. ``filters``: as in :func:`pyparq.spark.read`. Rows for which it is null stay.
    ``keys``: a DataFrame of one column instead: rows go whose value in the column of that name is one of its values.
    It is not collected. ``dry_run``: write nothing there, and return the same report. ``keep_empty``: keep files of
    which no row is left; they are removed otherwise. The others: as in :func:`pyparq.spark.compact`.

    The job runs now, and commits once, as :func:`pyparq.spark.compact` does: files that are added meanwhile stay, and
    are not searched. A file that changes meanwhile is an error (:class:`pyparq.ChangedFileError`), and nothing is
    replaced. A catalog of the folder is removed. Returns a DataFrame with one row for each file that changed, as
    :class:`pyparq.ChangeReport` has them.

    Example::

        import pyparq.spark as ps

        ps.delete(spark, "events/", "user = 7").show()
    """
    if (filters is None) == (keys is None):
        raise OptionError("give either filters or keys: which rows to delete")
    return _run(
        spark, path, filters, keys, _Work("delete", None, keep_empty, dry_run, decryption), force, storage_options,
        progress,
    )  # fmt: skip


def update(
    spark: Any,
    path: Any,
    filters: Filters,
    values: Mapping[str, Any],
    *,
    dry_run: bool = False,
    decryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Any:
    """Give the rows of a folder for which ``filters`` is true other values in some columns, on Spark's workers.

    ``values``: as in :func:`pyparq.update`: constants, ``None`` and pyparq's expressions. The others, the commit and
    the report: as in :func:`delete`.

    Example::

        import pyparq.spark as ps

        ps.update(spark, "events/", "user = 7", {"email": None}).show()
    """
    if not isinstance(values, Mapping) or not values:
        raise OptionError(f"values must be a dict of a column to its value, not {values!r:.80}")
    if filters is None:
        raise OptionError("give filters: which rows to update")
    return _run(
        spark, path, filters, None, _Work("update", dict(values), True, dry_run, decryption), force, storage_options,
        progress,
    )  # fmt: skip


@dataclass(frozen=True)
class _Work:
    """What a task does to rows. It is pickled."""

    name: str
    values: dict[str, Any] | None
    """``None``: the rows go."""
    keep_empty: bool
    dry_run: bool
    decryption: str | None

    def find(self, scan: Scan) -> Mapping[int, GroupChange]:
        return rows_go(scan) if self.values is None else rows_change(scan, self.values)


@dataclass(frozen=True)
class _Keys:
    """Keys in staging."""

    name: str
    """The column."""
    places: tuple[str, ...]


@dataclass(frozen=True)
class _Changed:
    """A file that a task has changed."""

    path: str
    """Relative to the folder."""
    report: ChangedFileReport
    part: StagedPart | None
    """``None``: the file goes."""


def _run(
    spark: Any, path: Any, filters: Any, keys: Any, work: _Work, force: bool, storage_options: Any,
    progress: Progress | None,
) -> Any:  # fmt: skip
    check_session(spark)
    check_factory(work.decryption)
    watch = Watch(spark, progress)
    where = absolute(path, is_connect(spark))
    if not isinstance(where, str):
        raise OptionError(f"{work.name} takes one folder")
    storage_options = store_options(spark, storage_options, where)
    check_target(where, storage_options if is_url(where) else None)
    remote = storage_options if is_url(where) else None
    question = question_of(
        spark, where, filters=filters, decryption=work.decryption, small=0, storage_options=remote
    )  # fmt: skip
    sources = here(spark, sources_of, where, remote)
    with watch:
        plan = planned(spark, question)
    paths = _relative(where, sources)
    plan = replace(plan, files=tuple(file for file in plan.files if file.where in paths))
    _check(spark, plan, question, work, keys)
    request = WriteRequest(
        where, "overwrite", without_marks(plan.schema), (), {}, storage_options, force, None, sources
    )
    job = begin(spark, request)
    assert job is not None  # for mode "ignore" alone

    def tasks() -> list[_Changed]:
        staged = None if keys is None else _staged_keys(keys, job)
        payloads = [(part, {f.where: paths[f.where] for f in part.files}) for part in _parts(spark, plan)]
        found = in_tasks(spark, _change_files, payloads, work, staged, job, errors=OF_WRITES)
        return [one for changed in found for one in changed]

    changed: list[_Changed] = run_write(spark, job, watch, tasks, _given_up if work.dry_run else commit_changes)
    return spark.createDataFrame([_row(one) for one in changed], REPORT)


def _check(spark: Any, plan: DatasetPlan, question: Question, work: _Work, keys: Any) -> None:
    """Raise what is wrong before any task."""
    header = plan.header
    partitions = {field.name for field in header.partitions}
    for name in work.values or ():
        if name in partitions:
            raise OptionError("the names of folders hold the column, so rows would have to move", column=str(name))
        header.schema.field(name)
    if keys is not None:
        if len(keys.columns) != 1:
            raise OptionError(f"keys must have one column, with the name of a column of the files, not {keys.columns}")
        header.schema.field(keys.columns[0])
    tested = {keys.columns[0]} if keys is not None else set(top_names(header.filters))
    alike = here(
        spark, columns_of_files, question.source, question.case_sensitive, work.decryption, question.storage_options
    )
    check_defaults(alike, tested | set(work.values or ()))


def _relative(where: str, sources: Sources) -> dict[str, str]:
    """The paths of the files relative to the folder, by their places."""
    root = where.rstrip("/") if is_url(where) else os.path.abspath(local_path(where) or where)
    found = {posixpath.join(root, path): path for path in sources.states}
    if found.keys() != sources.places:  # the listing names the folder otherwise
        found = {place: path for place in sources.places for path in sources.states if place.endswith("/" + path)}
    return found


def _parts(spark: Any, plan: DatasetPlan) -> list[DatasetPlan]:
    """The files of each task."""
    groups: Any = balanced([(_Sized(file.num_bytes), file) for file in plan.files], PER_SLOT * parallelism(spark))  # type: ignore[misc]
    return [replace(plan, files=tuple(file for _, file in group)).trimmed() for group in groups]


@dataclass(frozen=True)
class _Sized:
    size: int


def _row(one: _Changed) -> tuple[Any, ...]:
    r = one.report
    return (
        one.path, r.rows_deleted, r.rows_updated, r.rows_left, r.row_groups_copied, r.row_groups_rewritten,
        r.row_groups_removed, r.bytes_read, r.bytes_copied, r.bytes_written, r.removed, r.seconds,
    )  # fmt: skip


# ---- keys ------------------------------------------------------------------------------------------------------------


def _staged_keys(keys: Any, job: WriteJob) -> _Keys:
    """The keys as files in staging, in order: each holds a range of them."""
    (name,) = keys.columns
    plain = keys.toDF("key").where("key is not null").distinct()
    written_to = over_partitions(plain.repartitionByRange("key").sortWithinPartitions("key"), _write_keys, job)
    return _Keys(name, tuple(place for places in written_to for place in places))


def _write_keys(batches: Any, job: WriteJob) -> list[str]:
    import pyarrow as pa

    first = next(iter(batches), None)
    if first is None:
        return []

    def all_batches() -> Iterator[Any]:
        yield first
        yield from batches

    rows = pa.RecordBatchReader.from_batches(first.schema, all_batches())
    made = write_staged(
        rows, job.staging, attempt(), partition_cols=(), schema=rows.schema, even_empty=False, prefix="keys",
        options={**OF_PIECES, "write_statistics": True}, storage_options=job.storage_options,
    )  # fmt: skip
    return [place_staged(part.file.staged, job) for part in made]


def _key_chunks(keys: _Keys, file: OpenFile, storage_options: Any) -> Iterator[Any]:
    """The keys that may be in a file, so many at a time."""
    import pyarrow as pa

    if not keys.places:
        return
    remote = storage_options if any("://" in place for place in keys.places) else None
    staged = dataset(list(keys.places), storage_options=remote)
    (name,) = staged.schema.names
    low, high = _bounds(file, keys.name)
    within = None if low is None else (col(name) >= low) & (col(name) <= high)
    waiting, count = list[Any](), 0
    for batch in pa.RecordBatchReader.from_stream(staged.scan([name], within)):
        waiting.append(batch.column(0))
        count += len(batch)
        if count >= KEYS_AT_ONCE:
            yield pa.concat_arrays(waiting)
            waiting, count = [], 0
    if count:
        yield pa.concat_arrays(waiting)


def _bounds(file: OpenFile, name: str) -> tuple[Any, Any]:
    for column in facts_in(FileMetaData(file), file.tree).columns:
        if column.path == (name,):
            return column.low, column.high
    return None, None


# ---- tasks -----------------------------------------------------------------------------------------------------------


def _change_files(
    plan: DatasetPlan, paths: Mapping[str, str], work: _Work, keys: _Keys | None, job: WriteJob
) -> list[_Changed]:
    """Change some files, into staging."""
    target: StagedFiles | StagedObjects
    if isinstance(job.staging, StoreStaging):
        target = StagedObjects(job.staging, attempt(), job.storage_options)
    else:
        target = StagedFiles(job.staging, attempt())
    found = []
    for k in range(len(plan.files)):
        part = replace(plan, files=plan.files[k : k + 1]).trimmed()
        changed = _change_file(part, paths[part.files[0].where], work, keys, job, target)
        if changed is not None:
            found.append(changed)
    return found


def _change_file(
    part: DatasetPlan, path: str, work: _Work, keys: _Keys | None, job: WriteJob, target: StagedFiles | StagedObjects
) -> _Changed | None:
    (file,) = part.files
    store = job.storage_options if is_url(file.where) else None
    with located(file=file.name):
        matching = MatchingFiles(part_scan(part, work.decryption, store))
        opened = matching.open(0)
        assert opened is not None  # errors are raised
        find: Callable[[Scan], Mapping[int, GroupChange]] = work.find
        scan: Scan | None
        if keys is not None:
            scan, find = Scan(opened.fork(), [], row_groups=[]), _ByKeys(part, keys, work, store).find
        else:
            scan = matching.ask(0, opened)
        if scan is None:
            return None
        change = FileChange(scan, find, work.keep_empty)
        if not change.changes:
            return None
        if change.removes:
            return _Changed(path, change.report(path), None)
        if work.dry_run:
            written(change, NoSink(file.name))
            return _Changed(path, change.report(path), None)
        place = _new_name(path, job)
        sink = target.sink(place, False)
        written(change, sink)
        size = sink.position
        sink.commit()
        report = change.report(path)
        return _Changed(path, report, StagedPart(target.staged(place), report.rows_left, size))


def _new_name(path: str, job: WriteJob) -> str:
    """A local file keeps its name. In a store, where files are placed one by one, the old one stays for readers."""
    if not isinstance(job.staging, StoreStaging):
        return path
    stem, _, suffix = path.rpartition(".")
    return f"{stem}-{attempt()}-{posixpath.basename(job.staging.folder).rpartition('-')[2]}.{suffix}"


@dataclass
class _ByKeys:
    """Finds the rows of a file that have one of the keys."""

    part: DatasetPlan
    keys: _Keys
    work: _Work
    storage_options: Any

    def find(self, scan: Scan) -> dict[int, GroupChange]:
        gone: dict[int, np.ndarray[Any, Any]] = {}
        for chunk in _key_chunks(self.keys, scan.file, self.storage_options):
            header = replace(self.part.header, filters=key_filter((self.keys.name,), chunk))
            asked = MatchingFiles(
                part_scan(replace(self.part, header=header), self.work.decryption, self.storage_options)
            )
            found = asked.ask(0, scan.file)
            for row_group, rows in () if found is None else found.matching_rows():
                mask = gone.setdefault(row_group, np.zeros(scan.file.num_rows_of(row_group), bool))
                mask[rows.rows()] = True
        return {k: GroupChange(gone=rows_of(RowMask.of_bools(mask))) for k, mask in gone.items() if mask.any()}


# ---- the end ---------------------------------------------------------------------------------------------------------


def _given_up(job: WriteJob, replies: Sequence[_Changed]) -> list[_Changed]:
    committer_of(job.staging, job.storage_options).abort()
    return list(replies)


def commit_changes(job: WriteJob, replies: Sequence[_Changed]) -> list[_Changed]:
    """Put the new files into the places of the old ones. Raises :class:`ChangedMeanwhile` for a file that has changed
    since the job began."""
    if not replies:
        return _given_up(job, replies)
    committer = committer_of(job.staging, job.storage_options)
    try:
        assert job.sources is not None
        paths = {one.path for one in replies}
        if len(paths) < len(replies):
            raise ChangedMeanwhile("a file was changed by two tasks: run the job again", file=job.target)
        states = {path: state for path, state in job.sources.states.items() if path in paths}
        remote = job.storage_options if is_url(job.target) else None
        files = files_of(dataset(job.target, storage_options=remote))
        old = [f for f in files.found.files if posixpath.join(*f.folders, posixpath.basename(f.name)) in paths]
        remove_catalogs(files, old)  # first: after a crash between the two, nobody would
        committer.commit(
            [one.part.file for one in replies if one.part is not None], sources=Sources(states, frozenset())
        )
    except BaseException:
        committer.abort()
        raise
    return list(replies)
