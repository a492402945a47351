"""``read`` and ``count``: plan once, answer at once what is small, and let Spark's workers read the rest.

The driver plans, or a task of a Connect session, or, for many files, a Spark job. Such a job has one task per share of
the files. It reads their footers and indexes, and replies the planned reads of each file. The parts of all shares make
one plan, the same that one process would have made.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.dataset import dataset_of
from pyparq.datasets.files import DatasetFiles, Survey, Surveyed
from pyparq.datasets.reader import FilePlan
from pyparq.datasets.scan import DatasetPlan, DatasetScan, planner_of
from pyparq.datasets.shares import Share, shares_of, survey
from pyparq.errors import CorruptIndexWarning, OptionError, ParquetError, PlanError
from pyparq.format.types import Schema
from pyparq.options import ReadOptions
from pyparq.runtime.messages import warn_caller
from pyparq.spark.columns import is_column, taken
from pyparq.spark.file_choice import as_spark
from pyparq.spark.job_log import Left, LeftOut, left_out, note, tell_read, warn
from pyparq.spark.options import check_factory, keys_of
from pyparq.spark.own_reader import OwnRead, Wanted, check_engine, check_reader, own_frame, own_read
from pyparq.spark.question import (
    SMALL,
    Listing,
    Question,
    Reply,
    by_of,
    dataset_scan,
    is_small,
    planned_or_listed,
    read_options,
    replied,
    reply_to,
    schema_given,
)
from pyparq.spark.session import (
    absolute,
    check_session,
    is_ansi,
    is_case_sensitive,
    is_connect,
    many_files,
    parallelism,
    store_options,
    time_zone,
)
from pyparq.spark.tasks import PER_SLOT, Progress, Watch, here, in_tasks, over_payloads
from pyparq.spark.types import SparkTypes, folders_of

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.column_names import Names


def read(
    spark: Any,
    source: Any,
    *,
    columns: Names | None = None,
    filters: Filters | None = None,
    schema: Any = None,
    partitions: int | None = None,
    small: int = SMALL,
    decryption: str | None = None,
    on_error: str | None = None,
    skipped_to: Any = None,
    truncate: bool = False,
    residual: bool = False,
    engine: str = "auto",
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Parquet files as a Spark DataFrame. Only the pages that can hold matching rows are read.

    ``spark``: the session, classic or Connect. ``source``: a file, folder, glob, URL or a list of these, as in
    :func:`pyparq.dataset`; it must mean the same on every worker. ``columns`` and ``filters``: as in
    :func:`pyparq.read_table`; names are matched as ``spark.sql.caseSensitive`` says. A filter may also be a condition
    in Spark's SQL, or a ``Column``. ``residual``: leave parts of it that pyparq cannot evaluate to Spark, and skip rows
    by the rest. Filters that are applied to the DataFrame later skip nothing: give them here. ``schema``: the schema to
    read the files with; a Spark schema or its text will do. ``partitions``: most partitions of the DataFrame; by
    default as many as the session has cores. ``small``: read at once, without a Spark job, where at most so many bytes
    of pages are left. ``decryption``: the name of a function that makes the keys on a worker (``"module:function"``).
    ``on_error``: ``"skip"`` leaves out files that cannot be read, ``"skip_missing"`` those that are gone when they are
    read, ``"raise"`` raises; by default what ``spark.sql.files.ignoreCorruptFiles`` and ``ignoreMissingFiles`` say. It
    warns of those found now. ``skipped_to``: a folder, the same for all workers, that gets a note (JSON with ``path``
    and ``error``) of each file that is left out, now or when the DataFrame is used. ``truncate``: cut nanoseconds to
    the microseconds that Spark has. ``engine``: who reads the planned pages: ``"spark"`` (Spark's own reader),
    ``"pyparq"``, or ``"auto"``: Spark's where most rows of the files are left and it gives the same rows and types, and
    pyparq otherwise. ``progress``: called while Spark's tasks plan, as in :func:`pyparq.spark.write`; Spark itself
    shows how the DataFrame is read later. ``options``: of :func:`pyparq.dataset` and :class:`pyparq.ReadOptions`, and
    those of Spark's readers: ``pathGlobFilter``, ``recursiveFileLookup``, ``modifiedAfter``, ``modifiedBefore``,
    ``ignoreCorruptFiles``, ``ignoreMissingFiles``, ``mergeSchema``.

    The DataFrame is a snapshot of the files that are there now. A file that changes before it is read is an error
    (:class:`pyparq.PlanError`). Raises :class:`pyparq.UnsupportedError` for a column that Spark has no type for.

    Example::

        import pyparq.spark as ps

        df = ps.read(spark, "flights/", columns=["flight"], filters="dest = 'LAX'")
        df.show(3)
    """
    if columns is not None and not isinstance(columns, str) and not list(columns):
        raise OptionError("a DataFrame needs a column: name one in columns, or use pyparq.spark.count")
    question = question_of(
        spark, source, columns=columns, filters=filters, schema=schema, partitions=partitions, small=small,
        decryption=decryption, on_error=on_error, skipped_to=skipped_to, truncate=truncate,
        residual=residual, engine=engine, storage_options=storage_options, **options,
    )  # fmt: skip
    with Watch(spark, progress):
        frame = _frame(spark, question)
    return _filtered(frame, filters, columns) if residual else frame


def _frame(spark: Any, question: Question) -> Any:
    """The DataFrame that answers the question, except for the conditions that are left to Spark."""
    found = reply(spark, question)
    _tell(spark, question, found.skipped)
    assert found.schema is not None  # it is no number of rows
    types = SparkTypes(found.schema, truncate=question.truncate)
    made = own_frame(spark, found.own, types.spark.names) if isinstance(found.own, OwnRead) else found.own
    if not isinstance(made, str):
        tell_read("read", question.source, question.filters, found.left, "read by Spark's own reader")
        return made
    check_reader(question.engine, made)
    if isinstance(found.own, OwnRead):
        found = reply(spark, replace(question, engine="pyparq"))
    how = "answered without a job" if found.answer is not None else f"{len(found.parts):,} tasks will read it"
    how = f"{made and f'by pyparq, as {made}: '}{how}"
    line = tell_read("read", question.source, question.filters, found.left, how)
    if isinstance(found.answer, bytes):
        return spark.createDataFrame(_table(found.answer), schema=types.spark)
    return over_payloads(spark, read_part, found.parts, types.spark, question.settings(), name=f"pyparq {line}")


def _filtered(frame: Any, condition: Any, columns: Any) -> Any:
    """The rows where Spark finds the condition true, without the columns that were read for it alone."""
    kept = frame.where(condition)
    if columns is None:
        return kept
    count = 1 if isinstance(columns, str) else len(list(columns))
    return kept.select(*("`" + name.replace("`", "``") + "`" for name in frame.columns[:count]))


def count(
    spark: Any, source: Any, filters: Filters | None = None, *, progress: Progress | None = None, **options: Any
) -> int:
    """The number of rows that match. Without a filter only footers are read.

    ``options``: the parameters of :func:`read`, but for ``columns`` and ``truncate``.

    Example::

        import pyparq.spark as ps

        print(ps.count(spark, "flights/", "dest = 'LAX'"))
    """
    if not {"columns", "truncate"}.isdisjoint(options):
        raise OptionError("a count takes neither columns nor truncate")
    if options.get("residual"):
        with Watch(spark, progress):
            frame = _frame(spark, question_of(spark, source, columns=[], filters=filters, **options))
            return int(frame.where(filters).count())
    question = question_of(spark, source, columns=[], filters=filters, counts=True, **options)
    with Watch(spark, progress):
        found = reply(spark, question)
        parts = [] if isinstance(found.answer, int) else [(part,) for part in found.parts]
        counted = in_tasks(spark, _count_part, parts, question.settings())
    _tell(spark, question, [*found.skipped, *(file for _, said in counted for file in said)])
    rows = found.answer if isinstance(found.answer, int) else sum(rows for rows, _ in counted)
    tell_read("count", question.source, question.filters, found.left, f"{rows:,} rows, {len(parts):,} tasks")
    return rows


def _tell(spark: Any, question: Question, skipped: Sequence[LeftOut]) -> None:
    """Warn of files that were left out, and write notes where the files are. The folder is made even if there is
    nothing to note: so it can be read."""
    warn(skipped)
    if question.skipped_to is not None:
        here(spark, note, question.skipped_to, skipped, question.storage_options)


def question_of(
    spark: Any,
    source: Any,
    *,
    columns: Any = None,
    filters: Any = None,
    schema: Any = None,
    partitions: int | None = None,
    small: int = SMALL,
    decryption: Any = None,
    on_error: str | None = None,
    skipped_to: Any = None,
    truncate: bool = False,
    residual: bool = False,
    engine: str = "pyparq",
    storage_options: Any = None,
    counts: bool = False,
    **options: Any,
) -> Question:
    """What was asked, with its options checked."""
    check_session(spark)
    check_factory(decryption)
    check_engine(engine)
    if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
        raise OptionError(f"partitions must be at least 1, not {partitions!r}")
    if not isinstance(small, int) or small < 0:
        raise OptionError(f"small must be a number of bytes, at least 0, not {small!r}")
    zone = time_zone(spark)
    own = as_spark(options, on_error, zone, spark.conf.get)
    options = own.others if own.partitioned else {"partitioning": None, **own.others}
    if skipped_to is not None and own.on_error == "raise":
        raise OptionError('skipped_to needs on_error="skip": otherwise no file is left out')
    if residual and not (isinstance(filters, str) or is_column(filters)):
        raise OptionError("residual=True needs a filter that Spark understands too: SQL text or a Column")
    source = absolute(source, is_connect(spark))
    storage_options = store_options(spark, storage_options, source)
    known = {"partitioning", "filename", "by"}
    ReadOptions.check_known({k: v for k, v in options.items() if k not in known}, tuple(known))
    return Question(
        source, columns, taken(filters, spark), arrow_schema(schema), partitions, small, decryption, own.on_error,
        truncate, storage_options, is_case_sensitive(spark), options, counts,
        None if skipped_to is None else absolute(skipped_to, is_connect(spark)), many_files(spark),
        zone, folders_of(spark), residual, is_ansi(spark), engine, own.choice,
    )  # fmt: skip


def arrow_schema(schema: Any) -> Any:
    """A Spark schema (or its text) as Arrow's; everything else as it is."""
    if isinstance(schema, str):
        from pyspark.sql.types import StructType

        schema = StructType.fromDDL(schema)
    if schema is None or not type(schema).__module__.startswith("pyspark."):
        return schema
    from pyspark.sql.pandas.types import to_arrow_schema

    return parse_schema(to_arrow_schema(schema, timezone="UTC"))


def _table(answer: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(answer).read_all()


# ---- plans -----------------------------------------------------------------------------------------------------------


def reply(spark: Any, question: Question) -> Reply:
    """Plan a read, and read at once what is small; all of it where the files are.

    Raises what :func:`pyparq.dataset` and its scans raise.
    """
    # A task cannot ask the session.
    slots = partial(int, parallelism(spark)) if is_connect(spark) else partial(parallelism, spark)
    found: Reply | Listing = here(spark, replied, question, slots)
    if isinstance(found, Reply):
        return found
    with left_out() as said:
        if question.counts and question.filters is None:
            return Reply(None, _rows(spark, question, found), (), tuple(said()))
        plan = _by_tasks(spark, question, found)
        files = found.dataset_files(question)
        own = here(spark, own_read, Wanted.by(plan, files), files, question)
        made: Reply = (
            here(spark, _answered, plan, question, slots)
            if is_small(plan, question) and isinstance(own, str)
            else reply_to(plan, question, slots, own=own)
        )
        left = Left.of(plan, found.found.files)
        return replace(made, skipped=(*said(), *made.skipped), left=left)


def _answered(plan: DatasetPlan, question: Question, slots: Callable[[], int]) -> Reply:
    """What a plan that many tasks have made comes to."""
    with left_out() as said:
        return reply_to(plan, question, slots, said)


def planned(spark: Any, question: Question) -> DatasetPlan:
    """The plan of a read, made where the files are."""
    found: DatasetPlan | Listing = here(spark, planned_or_listed, question)
    return _by_tasks(spark, question, found) if isinstance(found, Listing) else found


# ---- many files ----------------------------------------------------------------------------------------------------


def _by_tasks(spark: Any, question: Question, listing: Listing) -> DatasetPlan:
    """The plan of many files, made by tasks."""
    here = listing.dataset_files(question)
    shares = shares_of(here, _tasks(spark, question, here))
    replies = _asked(spark, shares, question)
    if question.schema is not None:
        scan = dataset_scan(question, dataset_of(here))
    else:
        surveyed = _surveyed(replies)
        here = here.with_survey(surveyed)
        scan = dataset_scan(question, dataset_of(here))
        again = [
            k
            for k, share in enumerate(shares)
            if replies[k].plans is None or not surveyed.are_like_all(share.numbers, here.matching)
        ]
        # The schema of a plan is what its parts are run with: it has the columns that the question names.
        resolved = replace(question, columns=scan.columns, filters=scan.filters, case_sensitive=True, zone=None)
        asked = _asked(spark, [shares[k] for k in again], resolved, schema=planner_of(scan).header.schema)
        for k, found in zip(again, asked, strict=True):
            replies[k] = found
    return _assembled(here, scan, replies)


def _assembled(here: DatasetFiles, scan: DatasetScan, replies: Sequence[ShareReply]) -> DatasetPlan:
    """One plan of what the tasks found."""
    planner = planner_of(scan)
    left, plans = set(planner.numbers), list[FilePlan]()
    for found in replies:
        for number, error in sorted(found.failed.items()):
            if number in left and number not in here.unreadable:
                here.leave_out(number, error)
        for said in found.said:
            warn_caller(said, CorruptIndexWarning)
        for number, made in found.plans or ():
            plans.append(replace(made, combination=int(here.partition_values.of_file[number])))
    return planner.assembled(plans)


def _rows(spark: Any, question: Question, listing: Listing) -> int:
    """The rows of all files, by their footers."""
    here = listing.dataset_files(question)
    shares = shares_of(here, _tasks(spark, question, here))
    surveyed = _surveyed(_asked(spark, shares, question, counts=True))
    here = here.with_survey(surveyed)
    for number, error in sorted(surveyed.failed.items()):
        here.leave_out(number, error)
    dataset_scan(question, dataset_of(here))  # raises where the files have no common schema
    return int(surveyed.rows.sum())


def _tasks(spark: Any, question: Question, here: DatasetFiles) -> int:
    """How many tasks plan: one for each quarter of what one process would plan, and some for each slot at most."""
    return min(PER_SLOT * parallelism(spark), -(-4 * len(here.files) // max(question.many, 1)))


def _asked(
    spark: Any, shares: Sequence[Share], question: Question, *, schema: Schema | None = None, counts: bool = False
) -> list[ShareReply]:
    """The replies of the tasks of the shares."""
    return in_tasks(spark, share_reply, [(share,) for share in shares], question, schema, counts)


def _surveyed(found: Sequence[ShareReply]) -> Surveyed:
    """What the tasks found in the footers."""
    failed = {number: error for reply in found for number, error in reply.failed.items()}
    return Surveyed([reply.survey for reply in found if reply.survey is not None], failed)


# ---- tasks -----------------------------------------------------------------------------------------------------------


def part_scan(plan: DatasetPlan, decryption: str | None, storage_options: Any, columns: Any = None) -> DatasetScan:
    """The scan of a part of a plan, or of these columns of its files, with one thread: Spark runs a task on a core."""
    scan = plan.scan if columns is None else partial(plan.files_scan, columns)
    return scan(decryption=keys_of(decryption), storage_options=storage_options, use_threads=False)


def read_part(plan: DatasetPlan, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The rows of a part of a plan, in Spark's types."""
    scan = part_scan(plan, settings["decryption"], settings["storage_options"])
    try:
        yield from SparkTypes(plan.schema, truncate=settings["truncate"]).cast(scan)
    except OSError as error:  # by way of Arrow, which has no other for a file that is gone
        gone = [file.name for file in plan.files if "://" not in file.where and not os.path.lexists(file.where)]
        if not gone and FileNotFoundError.__name__ not in str(error):
            raise
        raise PlanError(GONE, file=(gone or [plan.source])[0]) from None
    if settings["skipped_to"] is not None and scan.skipped:
        note(settings["skipped_to"], [LeftOut(*file) for file in scan.skipped], settings["storage_options"])


def _count_part(part: bytes, settings: Mapping[str, Any]) -> tuple[int, list[LeftOut]]:
    """The number of matching rows in a part of a plan, and the files that were left out."""
    with left_out() as said:
        return part_scan(pickle.loads(part), settings["decryption"], settings["storage_options"]).count(), said()


GONE = (
    "the file is gone since this DataFrame was made: another job has removed or replaced it (an overwrite, compact or "
    "rewrite). Make the DataFrame again, by pyparq.spark.read or load, and repeat the query"
)


@dataclass(frozen=True)
class ShareReply:
    """What the task of a share found."""

    survey: Survey | None
    """``None`` if the schema was given, so that it is not needed."""
    plans: list[tuple[int, FilePlan]] | None
    """Of its files by their numbers in the dataset. ``None``: the question cannot be asked of these files alone."""
    failed: dict[int, ParquetError | OSError]
    """Files that cannot be read, by the same numbers."""
    said: tuple[str, ...]
    """Of indexes that are damaged."""


def share_reply(share: Share, question: Question, schema: Schema | None, counts: bool) -> ShareReply:
    """What one task does. ``schema``: that of all files, once it is known. ``counts``: only rows are wanted."""
    declared = schema if schema is not None else schema_given(question)
    is_local = all("://" not in str(file.where) for file in share.files)
    # Spark has as many tasks at a time as there are cores; requests wait for each other otherwise.
    options = read_options(question, keys_of(question.decryption), use_threads=not is_local)
    files = share.dataset_files(declared, by_of(question), question.storage_options, options)
    seen, plans = None, None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", CorruptIndexWarning)
        if counts or declared is None:
            seen = survey(files)
        if not counts:
            try:
                plans = [
                    (share.first + k, plan)
                    for k, plan in planner_of(dataset_scan(question, dataset_of(files))).plan_files()
                ]
            except ParquetError:
                if schema is not None:
                    raise
    said = tuple(str(warning.message) for warning in heard if issubclass(warning.category, CorruptIndexWarning))
    return ShareReply(seen, plans, {share.first + k: error for k, error in files.unreadable.items()}, said)
