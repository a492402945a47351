"""``rewrite``: a dataset's files made anew on Spark's workers, without the rows passing through the JVM."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.targets import Sources
from pyparq.errors import ChangedMeanwhile, OptionError, UnsupportedError
from pyparq.filters.expression import top_names
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.kept_storage import ROW_METADATA, defaults_of, storage_kept, without_marks
from pyparq.spark.choosing import Columns, columns_of_files, options_for
from pyparq.spark.file_jobs import REPORT
from pyparq.spark.options import check_factory, obeyed, of_session
from pyparq.spark.question import Question, as_stored, parts_of, pickled
from pyparq.spark.reading import part_scan, planned, question_of
from pyparq.spark.session import absolute, check_session, is_connect, learner, store_options, time_zone
from pyparq.spark.tasks import OF_WRITES, Progress, Watch, attempt, here, in_tasks
from pyparq.spark.writing import (
    MODES,
    TaskReply,
    WriteJob,
    WriteRequest,
    begin,
    check_target,
    run_write,
    sources_of,
    stage,
)

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names


def rewrite(
    spark: Any,
    source: Any,
    target: Any = None,
    *,
    mode: str | None = None,
    partition_cols: Sequence[str] | str | None = None,
    columns: Names | None = None,
    filters: Filters | None = None,
    partitions: int | None = None,
    decryption: str | None = None,
    encryption: str | None = None,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    table: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Rewrite a dataset: join small files, sort, compress otherwise, encrypt, leave rows or columns out.

    ``source``: as in :func:`pyparq.dataset`. ``target``: a folder. Without it, all files of the folder ``source`` are
    replaced together, and new files are made of files that have the same columns: Spark gives a column's DEFAULT for
    files without the column. Files that are added meanwhile stay. A file that changes meanwhile is an error, and
    nothing is replaced (:class:`pyparq.ChangedFileError`). ``columns``, ``filters``: what to keep. ``partition_cols``:
    by default those of the source. ``partitions``: maximum number of tasks, by default one for each 128 MiB of pages.
    Each task writes one file for each folder that it has rows for. ``decryption``: the name of a function that makes
    the properties on each worker. ``storage_options``: for URLs, of the source and of the target. ``table``: the table
    of the catalog whose files the target has. The others, and ``options``, are those of :func:`pyparq.spark.write`.

    The job runs now. Returns a DataFrame with one row per new file, with the columns of the report of
    :func:`pyparq.spark.add_indexes`.

    Example::

        import pyparq.spark as ps

        ps.rewrite(spark, "flights/", "sorted", sort_by=["dest"], compression="zstd")
    """
    check_session(spark)
    check_factory(decryption)
    check_factory(encryption, "encryption")
    watch = Watch(spark, progress)
    where, place, mode = _places(source, target, mode, is_connect(spark))
    storage_options = store_options(spark, storage_options, where, place)
    check_target(place, storage_options if is_url(place) else None)
    learn = learner(spark, table, place)
    for_source = storage_options if "://" in str(where) else None
    question = question_of(
        spark, where, columns=columns, filters=filters, partitions=partitions, decryption=decryption,
        storage_options=for_source,
    )  # fmt: skip
    in_place = mode == "overwrite" and _is_same(where, place)
    sources = here(spark, sources_of, where, for_source) if in_place else None  # with the names that the plan has
    with watch:
        question = here(spark, as_stored, question)
        plan = _only(planned(spark, question), sources)
    own = tuple(field.name for field in plan.header.partitions)
    names = own if partition_cols is None else _names(partition_cols)
    mode, options = obeyed(MODES[mode], () if in_place else names, options, of_session(spark))
    schema, kept = without_marks(plan.schema), storage_kept(plan.schema, options, names)
    parts = _by_columns(spark, plan, where, question, options, names) if in_place else [(plan, kept)]
    pieces = [(k, piece) for k, (part, _) in enumerate(parts) for piece in _pieces(part, question)]
    zone = time_zone(spark)
    job = begin(
        spark, WriteRequest(place, mode, schema, names, kept, storage_options, force, encryption, sources, zone)
    )
    if job is None:
        return spark.createDataFrame([], REPORT)
    began = time.perf_counter()

    def tasks() -> list[TaskReply]:
        jobs = [replace(job, schema=without_marks(part.schema), options=own) for part, own in parts]
        payloads = [(number, *piece) for number, piece in enumerate(pieces)]
        return in_tasks(spark, _rewrite_part, payloads, jobs, decryption, errors=OF_WRITES)

    report = run_write(spark, job, watch, tasks)
    learn()
    seconds = time.perf_counter() - began
    rows = [(f.path, True, None, f.num_rows, None, None, 0, f.num_bytes, seconds, None) for f in report.files]
    return spark.createDataFrame(rows, REPORT)


def _rewrite_part(number: int, k: int, part: bytes, jobs: Sequence[WriteJob], decryption: str | None) -> TaskReply:
    """What one task does: its part of the rows, written to staging."""
    scan = part_scan(pickle.loads(part), decryption, jobs[k].storage_options)
    return stage(scan, jobs[k], number, attempt())


def check_defaults(alike: Collection[Columns], tested: Collection[str]) -> None:
    """Raise :class:`UnsupportedError` for a filter on a column for which Spark gives its DEFAULT where files do not
    have it: here it is null, and rows for which the default passes would be left out."""
    described = [have.described for have in alike if have.described is not None]
    given = {name for text in described for name in defaults_of({ROW_METADATA.encode(): text})}
    for name in sorted(given.intersection(tested)):
        if not all(have.has(name) for have in alike):
            raise UnsupportedError(
                "Spark gives this column's DEFAULT for files that do not have it, and for the filter it is null: give "
                "another folder as the target, or rewrite without it first",
                column=name,
            )


def _by_columns(
    spark: Any, plan: DatasetPlan, where: str, question: Question, options: Mapping[str, Any], names: Sequence[str]
) -> list[tuple[DatasetPlan, dict[str, Any]]]:
    """The files of each set of columns, and write options for new files of them. ``names``: partition columns.

    Raises :class:`ChangedMeanwhile` for a plan with files that are not among them.
    """
    about = where, question.case_sensitive, question.decryption, question.storage_options
    alike: dict[Columns, frozenset[str]] = here(spark, columns_of_files, *about)
    check_defaults(alike, top_names(plan.header.filters))
    found = []
    for have, places in alike.items():
        part = have.narrowed(plan, places)
        found.append((part, options_for(options, plan.schema, part.schema, names)))
    if sum(len(part.files) for part, _ in found) < len(plan.files):
        raise ChangedMeanwhile("the files have changed since this job began, so nothing is replaced: run the job again")
    return found


def _names(partition_cols: Sequence[str] | str) -> tuple[str, ...]:
    return (partition_cols,) if isinstance(partition_cols, str) else tuple(partition_cols)


def _only(plan: DatasetPlan, sources: Sources | None) -> DatasetPlan:
    """The plan without files that were added meanwhile. These stay as they are."""
    if sources is None:
        return plan
    return replace(plan, files=tuple(file for file in plan.files if file.where in sources.places))


def _is_same(source: Any, target: str) -> bool:
    """Whether both name one folder. Links are seen through where the folder is seen here."""
    if not isinstance(source, str):
        return False
    one, other = (local_path(path) or path for path in (source, target))
    return one.rstrip("/") == other.rstrip("/") or bool(os.path.realpath(one) == os.path.realpath(other))


def _places(source: Any, target: Any, mode: str | None, far: bool) -> tuple[Any, str, str]:
    where = absolute(source, far)
    if target is not None:
        chosen = mode or "error"
    elif not isinstance(where, str) or mode not in (None, "overwrite"):
        raise OptionError("without a target, the source must be one folder, and it is overwritten: give a target")
    else:
        chosen = "overwrite"
    if chosen not in MODES:
        raise OptionError(f"mode must be {', '.join(map(repr, MODES))}, not {chosen!r}")
    return where, where if target is None else absolute(os.fspath(target), far), chosen


def _pieces(plan: DatasetPlan, question: Question) -> list[bytes]:
    """What each task rewrites."""
    count = question.parts or parts_of(plan.num_bytes, 1)
    return pickled(plan.split(count)) if plan.files else []
