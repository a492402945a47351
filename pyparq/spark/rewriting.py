"""``rewrite``: a dataset's files made anew on Spark's workers, without the rows passing through the JVM."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.job_sources import Sources
from pyparq.errors import ChangedMeanwhile, OptionError, UnsupportedError
from pyparq.filters.expression import top_names
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.kept_storage import ROW_METADATA, defaults_of, storage_kept, without_marks
from pyparq.spark import stores
from pyparq.spark.columns import taken
from pyparq.spark.file_columns import Columns, columns_of_files, options_for
from pyparq.spark.file_jobs import REPORT
from pyparq.spark.keys import check_factory
from pyparq.spark.partition_types import folders_of
from pyparq.spark.paths import absolute
from pyparq.spark.planning import as_stored, planned
from pyparq.spark.progress import Progress, Watch
from pyparq.spark.question import Question, parts_of, pickled
from pyparq.spark.session import check_session, is_ansi, is_case_sensitive, is_connect, many_files, time_zone
from pyparq.spark.settings import obeyed, of_session
from pyparq.spark.work import ask, replies
from pyparq.spark.write_tasks import WriteJob
from pyparq.spark.writing import MODES, check_target, committed_or_aborted, committer_of

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
    the properties on each worker. ``storage_options``: for URLs, of the source and of the target. The others, and
    ``options``, are those of :func:`pyparq.spark.write`.

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
    storage_options = stores.storage_options(spark, storage_options, where, place)
    check_target(place, storage_options if is_url(place) else None)
    for_source = storage_options if "://" in str(where) else None
    question = _question(spark, where, columns, filters, partitions, decryption, for_source)
    commits = committer_of(spark)
    in_place = mode == "overwrite" and _is_same(where, place)
    sources = commits.sources(where, for_source) if in_place else None  # with the names that the plan has
    with watch:
        question = as_stored(spark, question)
        plan = _only(planned(spark, question), sources)
    own = tuple(field.name for field in plan.header.partitions)
    names = own if partition_cols is None else _names(partition_cols)
    mode, options = obeyed(MODES[mode], () if in_place else names, options, of_session(spark))
    schema, kept = without_marks(plan.schema), storage_kept(plan.schema, options, names)
    parts = [(plan, kept)]
    if in_place:
        alike = _columns(spark, where, question)
        _check_defaults(alike, top_names(plan.header.filters))
        parts = _by_columns(plan, alike, options, names)
    staging = commits.start(place, mode, schema, names, kept, storage_options, force)
    if staging is None:
        return spark.createDataFrame([], REPORT)
    job = WriteJob(staging, schema, names, encryption, kept, storage_options, sources, zone=time_zone(spark))
    jobs = [(replace(job, schema=without_marks(part.schema), options=own), part) for part, own in parts]
    work = [(own, payload) for own, part in jobs for payload in _parts(part, question)]
    return spark.createDataFrame(_report(spark, commits, watch, job, work, decryption), REPORT)


def _check_defaults(alike: Collection[Columns], tested: Collection[str]) -> None:
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
    plan: DatasetPlan, alike: Mapping[Columns, frozenset[str]], options: Mapping[str, Any], names: Sequence[str]
) -> list[tuple[DatasetPlan, dict[str, Any]]]:
    """The files of each set of columns, and write options for new files of them. ``names``: partition columns.

    Raises :class:`ChangedMeanwhile` for a plan with files that are not among them.
    """
    found = []
    for have, places in alike.items():
        part = have.narrowed(plan, places)
        found.append((part, options_for(options, plan.schema, part.schema, names)))
    if sum(len(part.files) for part, _ in found) < len(plan.files):
        raise ChangedMeanwhile("the files have changed since this job began, so nothing is replaced: run the job again")
    return found


def _columns(spark: Any, where: str, question: Question) -> dict[Columns, frozenset[str]]:
    """The files of the folder by their columns, looked at where the files are."""
    about = where, question.case_sensitive, question.decryption, question.storage_options
    found: dict[Columns, frozenset[str]] = (
        ask(spark, "columns", *about) if is_connect(spark) else columns_of_files(*about)
    )
    return found


def _question(
    spark: Any, where: Any, columns: Names | None, filters: Filters | None, partitions: int | None,
    decryption: str | None, storage_options: Any,
) -> Question:  # fmt: skip
    """The read of the source."""
    return Question(
        where, columns, taken(filters, spark), None, partitions, 0, decryption, "raise", False, storage_options,
        is_case_sensitive(spark),
        many=many_files(spark), zone=time_zone(spark), folders=folders_of(spark),
        ansi=is_ansi(spark),
    )  # fmt: skip


def _names(partition_cols: Sequence[str] | str) -> tuple[str, ...]:
    return (partition_cols,) if isinstance(partition_cols, str) else tuple(partition_cols)


def _report(
    spark: Any, commits: Any, watch: Watch, job: WriteJob, parts: Sequence[tuple[WriteJob, bytes]], decryption: Any
) -> list[tuple[Any, ...]]:
    """Run the job. Each part has the job of its own columns. Returns a row for each new file."""
    began = time.perf_counter()
    jobs = list(dict.fromkeys(id(own) for own, _ in parts))
    work = [pickle.dumps((k, jobs.index(id(own)), payload)) for k, (own, payload) in enumerate(parts)]
    settings = {"jobs": list({id(own): own for own, _ in parts}.values()), "decryption": decryption}
    report = committed_or_aborted(
        commits, job, watch, lambda: replies(spark, "rewrite", work, settings) if work else []
    )
    seconds = time.perf_counter() - began
    return [(f.path, True, None, f.num_rows, None, None, 0, f.num_bytes, seconds, None) for f in report.files]


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


def _parts(plan: DatasetPlan, question: Question) -> list[bytes]:
    """What each task rewrites."""
    count = question.parts or parts_of(plan.num_bytes, 1)
    return pickled(plan.split(count)) if plan.files else []
