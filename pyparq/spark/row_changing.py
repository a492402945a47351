"""``delete``, ``update`` and ``upsert``: rows of a folder's files changed by many tasks, and one commit for all.

The driver plans: partitions, statistics, indexes and the catalog leave the files that may hold such rows. Tasks change
these, into staging (:mod:`pyparq.spark.row_change_tasks`). Keys and rows of a DataFrame are written into staging in
order (:mod:`pyparq.spark.staged_rows`), and each task reads those that are within the bounds of its files.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.datasets.common_schema import tree_of
from pyparq.datasets.dataset import dataset, files_of
from pyparq.datasets.scan import DatasetPlan, DatasetPlanHeader
from pyparq.datasets.write.targets import Sources
from pyparq.errors import ChangedMeanwhile, OptionError, located
from pyparq.filters.expression import top_names
from pyparq.format.types import Schema
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.kept_storage import without_marks
from pyparq.maintenance.row_changes.old_catalogs import remove_catalogs
from pyparq.maintenance.row_changes.places import new_file_options
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.row_changes.upsert import check_names
from pyparq.option_checks import keywords
from pyparq.spark.choosing import Columns, columns_of_places, columns_that_occur
from pyparq.spark.columns import is_column, taken
from pyparq.spark.file_jobs import balanced
from pyparq.spark.job_log import tell_job
from pyparq.spark.literals import Session
from pyparq.spark.names import AnyCase
from pyparq.spark.options import check_factory, keys_of
from pyparq.spark.question import Question, partition_names, schema_of
from pyparq.spark.reading import planned, question_of
from pyparq.spark.rewriting import check_defaults
from pyparq.spark.row_change_tasks import Changed, Changes, Work, add_staged, change_files
from pyparq.spark.session import check_session, learner, parallelism, time_zone
from pyparq.spark.staged_rows import StagedRows, of_range, packed, staged_rows, unpacked
from pyparq.spark.tasks import OF_WRITES, PER_SLOT, Progress, Watch, here, in_tasks
from pyparq.spark.translate import columns_needed, new_value, parsed
from pyparq.spark.writing import WriteJob, WriteRequest, begin, committer_of, one_folder, run_write, sources_of

if TYPE_CHECKING:
    from pyparq.arguments import Filters

REPORT = (
    "path string, rows_deleted long, rows_updated long, rows_added long, rows_left long, row_groups_copied long, "
    "row_groups_rewritten long, row_groups_removed long, bytes_read long, bytes_copied long, bytes_written long, "
    "removed boolean, seconds double"
)
"""Columns of the report: Spark's text of the schema."""


@keywords
def delete(
    spark: Any,
    source: Any,
    filters: Filters | None = None,
    *,
    keys: Any = None,
    dry_run: bool = False,
    keep_empty: bool = False,
    decryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Delete the rows of a folder for which ``filters`` is true, on Spark's workers. Row groups without such rows are
    copied byte for byte, and files without them stay untouched.

    ``source``: a folder or its URL. ``filters``: as in :func:`pyparq.spark.read`. Rows for which it is null stay.
    ``keys``: a DataFrame instead, of columns that the folder has too: rows go whose values in all of these are those
    of one of its rows. A null matches nothing. It is not collected. ``dry_run``: write nothing there, and return the
    same report. ``keep_empty``: keep files of which no row is left; they are removed otherwise. The others: as in
    :func:`pyparq.spark.compact`.

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
        spark, source, filters, None if keys is None else _Frame(keys, None),
        Work("delete", None, keep_empty, dry_run, decryption), force, storage_options, table, progress,
    )  # fmt: skip


@keywords
def update(
    spark: Any,
    source: Any,
    filters: Filters,
    values: Mapping[str, Any] | None = None,
    *,
    expressions: Mapping[str, str] | None = None,
    dry_run: bool = False,
    decryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Give the rows of a folder for which ``filters`` is true other values in some columns, on Spark's workers.

    ``values``: as in :func:`pyparq.update`: constants (text is text), ``None`` and pyparq's expressions; and a
    ``Column`` of Spark. ``expressions``: SQL of Spark instead, such as ``{"price": "price * 2"}``. Of Spark's
    expressions, columns, constants, ``+ - * /``, ``upper``, ``lower``, ``length`` and the parts of dates are known, and
    others are refused by name (:class:`pyparq.FilterError`). Numbers are computed exactly, and what the column cannot
    hold is an error. The others, the commit and the report: as in :func:`delete`.

    Example::

        import pyparq.spark as ps

        ps.update(spark, "events/", "user = 7", {"email": None}, expressions={"price": "price * 2"}).show()
    """
    if not isinstance(values or {}, Mapping) or not isinstance(expressions or {}, Mapping):
        raise OptionError(f"values must be a dict of a column to its value, not {values!r:.80}")
    given = {**(values or {}), **{name: _Sql(text) for name, text in (expressions or {}).items()}}
    if not given or len(given) < len(values or {}) + len(expressions or {}):
        raise OptionError("give values={column: value}, or expressions={column: SQL}, and each column once")
    if filters is None:
        raise OptionError("give filters: which rows to update")
    return _run(
        spark, source, filters, None, Work("update", given, True, dry_run, decryption), force, storage_options,
        table, progress,
    )  # fmt: skip


@dataclass(frozen=True)
class _Sql:
    """A new value as SQL."""

    text: str


def _new_values(values: Mapping[str, Any], schema: Schema, question: Question, spark: Any) -> tuple[Any, set[str]]:
    """The values, with those of Spark as pyparq has them, under the names that the files have. And the columns that
    expressions of Spark look at."""
    tree, tested = tree_of(schema), set[str]()
    tree = tree if question.case_sensitive else AnyCase(tree.root, tree.leaves)
    session, found = Session(question.zone, question.ansi), dict[str, Any]()
    names = [name for leaf in tree.leaves for name in leaf.path]
    for name, value in values.items():
        node = tree.find(name)
        if isinstance(value, _Sql) or is_column(value):
            condition = parsed(str(value.text), names) if isinstance(value, _Sql) else taken(value, spark)
            tested |= set(columns_needed(condition, tree) or ())
            with located(column=node.dotted):
                value = new_value(condition, tree, session, node)
        found[node.path[0] if len(node.path) == 1 else name] = value
    return found, tested


@keywords
def upsert(
    spark: Any,
    source: Any,
    df: Any,
    key: str | Sequence[str],
    *,
    dry_run: bool = False,
    decryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Replace rows of a folder by the rows of a DataFrame with the same key, and add its other rows, on Spark's
    workers.

    ``df``: rows with all columns of the folder, those in the names of folders included, in any order. It is not
    collected. It may read the same folder. ``key``: the columns of the key, one or several; columns in the names of
    folders may be among them. The rules are those of :func:`pyparq.upsert`: no two rows of ``df`` may have the same
    key, and none a null or a NaN in it (:class:`pyparq.DataError`, and nothing is changed). A row whose partition
    changes moves. Rows are added in new files, each in the partition that it belongs to. The others, the commit and the
    report: as in :func:`delete`.

    Example::

        import pyparq.spark as ps

        news = spark.createDataFrame([(7, "a@b.c")], "user long, email string")
        ps.upsert(spark, "users/", news, key="user").show()
    """
    names = (key,) if isinstance(key, str) else tuple(key)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"key must name columns of the folder, not {key!r}")
    work = Work("upsert", None, True, dry_run, decryption)
    return _run(spark, source, None, _Frame(df, names), work, force, storage_options, table, progress)


@dataclass(frozen=True)
class _Frame:
    """Keys or rows of the user."""

    rows: Any
    """The DataFrame."""
    key: tuple[str, ...] | None
    """``None``: all of its columns are keys."""

    def spelled(self, schema: Schema, case_sensitive: bool, is_upsert: bool) -> tuple[list[str], list[str]]:
        """The DataFrame's columns, and the key, as the files call them.

        Raises :class:`OptionError` and :class:`ColumnNotFoundError` for columns that do not fit.
        """
        known = {name if case_sensitive else name.lower(): name for name in schema.names}

        def own(name: str) -> str:
            return known.get(name if case_sensitive else name.lower(), name)

        names = [own(name) for name in self.rows.columns]
        key = names if self.key is None else [own(name) for name in self.key]
        for name in key:
            schema.field(name)
        if len(set(names)) < len(names) or not names:
            raise OptionError(f"the DataFrame must have columns, each name once, and not {self.rows.columns}")
        if is_upsert:
            check_names(names, schema.names)
        return names, key

    def with_texts(self, names: Sequence[str], texts: Set[str]) -> Any:
        """The DataFrame, with columns as text that are the names of folders: ``true`` is text there.

        ``names``: of its columns in the files.
        """
        if texts.isdisjoint(names):
            return self.rows
        quoted = ("`" + name.replace("`", "``") + "`" for name in names)
        plain = self.rows.toDF(*names)
        return plain.selectExpr(
            *(f"cast({q} as string) as {q}" if name in texts else q for q, name in zip(quoted, names, strict=True))
        )


def _run(
    spark: Any, path: Any, filters: Any, frame: _Frame | None, work: Work, force: bool, storage_options: Any,
    table: str | None, progress: Progress | None,
) -> Any:  # fmt: skip
    check_session(spark)
    check_factory(work.decryption)
    watch = Watch(spark, progress)
    where, storage_options = one_folder(spark, path, storage_options, work.name)
    remote, learn = storage_options if is_url(where) else None, learner(spark, table, where)
    question = question_of(
        spark, where, filters=filters, decryption=work.decryption, small=0, storage_options=remote
    )  # fmt: skip
    sources = here(spark, sources_of, where, remote)
    with watch:
        alike, by_catalog = _columns(spark, question)
        plan = None if frame is not None and by_catalog else planned(spark, question)
    paths = _relative(where, sources)
    if plan is None:  # the catalog rules out files once the keys are known
        schema, partitions = here(spark, schema_of, question), here(spark, partition_names, question)
    else:
        schema, partitions = plan.header.schema, [field.name for field in plan.header.partitions]
    columns = None if frame is None else frame.spelled(schema, question.case_sensitive, frame.key is not None)
    tested = set[str]() if columns is None else {*columns[1]}
    if work.values is not None:
        values, tested = _new_values(work.values, schema, question, spark)
        work = replace(work, values=values)
    _check(schema, partitions, work)
    tested |= set() if plan is None else set(top_names(plan.header.filters))
    check_defaults(alike, tested | set(work.values or ()))
    zone = time_zone(spark)
    request = WriteRequest(
        where, "overwrite", without_marks(schema), (), {}, storage_options, force, None, sources, zone=zone
    )
    job = begin(spark, request)
    assert job is not None  # for mode "ignore" alone

    def tasks() -> list[Changed]:
        staged = None
        if frame is not None and columns is not None:
            texts = {name for name in partitions if schema.field(name).type.kind == "string"}
            staged = staged_rows(frame.with_texts(columns[0], texts), *columns, job, are_rows=frame.key is not None)
        left = plan
        if left is None and staged is not None:
            left = planned(spark, replace(question, filters=staged.filters()))
        assert left is not None
        left = replace(left, files=tuple(file for file in left.files if file.where in paths))
        payloads = [(part, {f.where: paths[f.where] for f in part.files}) for part in _parts(spark, left)]
        found: list[Changes] = in_tasks(spark, change_files, payloads, work, staged, job, errors=OF_WRITES)
        changed = [one for changes in found for one in changes.files]
        if work.name == "upsert" and staged is not None:
            changed += _added(spark, left.header, work, staged, found, job, next(iter(paths)))
        return changed

    changed: list[Changed] = run_write(spark, job, watch, tasks, _given_up if work.dry_run else commit_changes)
    if not work.dry_run:
        learn()
    reports = [one.report for one in changed]
    rows = sum(one.rows_deleted + one.rows_updated + one.rows_added for one in reports)
    name = f"{work.name} (dry run)" if work.dry_run else work.name
    tell_job(name, where, len(changed), rows, sum(one.bytes_written + one.bytes_copied for one in reports))
    return spark.createDataFrame([_row(one) for one in changed], REPORT)


def _check(schema: Schema, partitions: Collection[str], work: Work) -> None:
    """Raise what is wrong before any task."""
    for name in work.values or ():
        if name in partitions:
            raise OptionError("the names of folders hold the column, so rows would have to move", column=str(name))
        schema.field(name)


def _columns(spark: Any, question: Question) -> tuple[list[Columns], bool]:
    """The columns of the files, each once; and whether a catalog knows all files."""
    about = question.case_sensitive, question.decryption, question.storage_options
    alike, places, by_catalog = here(spark, columns_that_occur, question.source, *about, question.many)
    if places:
        step = -(-len(places) // (PER_SLOT * parallelism(spark)))
        payloads = [(places[k : k + step], *about) for k in range(0, len(places), step)]
        alike = [one for found in in_tasks(spark, columns_of_places, payloads) for one in found]
    return alike, by_catalog


def _relative(where: str, sources: Sources) -> dict[str, str]:
    """The paths of the files relative to the folder, by their places."""
    root = where.rstrip("/") if is_url(where) else os.path.abspath(local_path(where) or where)
    found = {posixpath.join(root, path): path for path in sources.states}
    if found.keys() != sources.places:  # the listing names the folder otherwise
        found = {place: path for place in sources.places for path in sources.states if place.endswith("/" + path)}
    return found


def _parts(spark: Any, plan: DatasetPlan) -> list[DatasetPlan]:
    """The files of each task."""
    groups = balanced(plan.files, [file.num_bytes for file in plan.files], PER_SLOT * parallelism(spark))
    return [replace(plan, files=tuple(group)).trimmed() for group in groups]


def _row(one: Changed) -> tuple[Any, ...]:
    r = one.report
    return (
        one.path, r.rows_deleted, r.rows_updated, r.rows_added, r.rows_left, r.row_groups_copied,
        r.row_groups_rewritten, r.row_groups_removed, r.bytes_read, r.bytes_copied, r.bytes_written,
        r.removed, r.seconds,
    )  # fmt: skip


# ---- rows that are added ---------------------------------------------------------------------------------------------

BYTES_OF_TASK = 1 << 27
"""Of staged rows, about, that one task adds to new files: few of them make few files."""


def _added(
    spark: Any, header: DatasetPlanHeader, work: Work, staged: StagedRows, found: Sequence[Changes], job: WriteJob,
    first: str,
) -> list[Changed]:  # fmt: skip
    """The new files of the staged rows that have not taken the places of others. ``first``: a file of the folder."""
    replaced = np.unique(np.concatenate([np.empty(0, np.int64), *(unpacked(one.replaced) for one in found)]))
    rows = staged.num_rows - len(replaced)
    if not rows:
        return []
    if work.dry_run:
        report = ChangedFileReport(job.target, rows_added=rows, rows_left=rows, notes=("rows of new files",))
        return [Changed(job.target, report, None)]
    names, schema = tuple(field.name for field in header.partitions), header.schema
    options = here(spark, _options_of_new, first, schema, work.decryption, job, names)
    made = replace(job, partition_cols=names, options=options)
    payloads = [(k, part, schema) for k, part in enumerate(_few_bytes(staged, replaced))]
    written = in_tasks(spark, add_staged, payloads, made, errors=OF_WRITES)
    return [one for files in written for one in files]


def _few_bytes(staged: StagedRows, replaced: Any) -> list[list[tuple[str, bytes]]]:
    """The staged files that each task adds, with the numbers of the rows that it leaves out."""
    groups: list[list[tuple[str, bytes]]] = []
    left = 0
    for file in staged.files:
        done = of_range(replaced, file.number)
        if len(done) == file.num_rows:
            continue
        size = file.num_bytes * (file.num_rows - len(done)) // file.num_rows
        if not groups or size > left:
            groups.append([])
            left = BYTES_OF_TASK
        groups[-1].append((file.place, packed(done)))
        left -= size
    return groups


def _options_of_new(
    first: str, schema: Schema, decryption: str | None, job: WriteJob, names: Sequence[str]
) -> dict[str, Any]:
    remote = job.storage_options if is_url(first) else None
    opened = files_of(dataset([first], decryption=keys_of(decryption), storage_options=remote)).open(0)
    assert opened is not None  # errors are raised
    return new_file_options(opened, schema, names)


# ---- the end ---------------------------------------------------------------------------------------------------------


def _given_up(job: WriteJob, replies: Sequence[Changed]) -> list[Changed]:
    committer_of(job.staging, job.storage_options).abort()
    return list(replies)


def commit_changes(job: WriteJob, replies: Sequence[Changed]) -> list[Changed]:
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
