"""A read as one value, and the result of planning it: an answer, or parts for Spark's workers.

This runs where the files are: in the driver of a classic session, or in a task for Spark Connect.
:mod:`pyparq.spark.reading` calls it, and also shares the planning of many files among tasks.
"""

from __future__ import annotations

import errno
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.data_files import SourceFiles
from pyparq.datasets.dataset import Dataset, dataset, files_of, with_files
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.partitions import HiveFolders, Partitions
from pyparq.datasets.scan import DatasetPlan, DatasetScan, planner_of
from pyparq.errors import FilterError, OptionError
from pyparq.filters.conditions import Condition
from pyparq.filters.expression import AllOf, Expression
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.io.table_formats import format_of
from pyparq.maintenance.kept_storage import variants_as_stored
from pyparq.options import ReadOptions
from pyparq.spark.file_choice import FileChoice, NoneLeft
from pyparq.spark.job_log import Left, LeftOut, left_out
from pyparq.spark.literals import Session
from pyparq.spark.names import Names
from pyparq.spark.options import keys_of
from pyparq.spark.own_reader import MOST_PATHS, OwnRead, Wanted, own_read
from pyparq.spark.translate import columns_needed, filter_of, parsed
from pyparq.spark.types import SparkTypes

SMALL = 8 << 20
"""Bytes of pages up to which a read is answered where it is planned. The data source reads them in one partition."""

DECODED = 8
"""An answer is made at once only while its rows take at most so many times ``small`` in memory."""

ANSWER_ROWS = 100_000
"""And only while there are so few: Spark makes a partition of every 10,000 rows that it is handed. One partition of the
data source too has no more."""

PART_BYTES = 128 << 20
"""Bytes of pages that one task reads, about, at most: what ``spark.sql.files.maxPartitionBytes`` is by default. A row
group is never cut."""


def parts_of(num_bytes: int, at_least: int) -> int:
    """How many parts so many bytes of pages make."""
    return max(-(-num_bytes // PART_BYTES), at_least)


@dataclass(frozen=True)
class Question:
    """What :func:`pyparq.spark.read` or :func:`pyparq.spark.count` was asked. It is pickled for tasks."""

    source: Any
    columns: Any
    filters: Any
    schema: Any
    parts: int | None
    """At most; ``None``: as many as the session runs at a time, or more where they would be large."""
    small: int
    decryption: str | None
    on_error: str
    truncate: bool
    storage_options: Any
    case_sensitive: bool
    options: dict[str, Any] = field(default_factory=dict)
    counts: bool = False
    """Only the number of rows is asked for."""
    skipped_to: str | None = None
    """Folder for notes of files that are left out."""
    many: int = sys.maxsize
    """Of more files, tasks read the footers."""
    zone: str | None = ""
    """The session's time zone, for literals that have none. ``""``: it is not known. ``None``: no literal needs it."""
    folders: HiveFolders | None = None
    """How the values in folders called ``name=value`` get their types, where nothing else is asked for."""
    residual: bool = False
    """Spark applies the filter too: parts of it that have no equal here keep all rows, and its columns are read."""
    ansi: bool = True
    """``spark.sql.ansi.enabled``: which types Spark brings values of different types to."""
    engine: str = "pyparq"
    """Who reads what is planned: ``"pyparq"``, ``"spark"``, or ``"auto"``, which is who takes less time."""
    choice: FileChoice = FileChoice()  # noqa: RUF009
    """Which files of the source are read."""

    def __post_init__(self) -> None:
        # It stays with the files when the names in the question are spelled.
        object.__setattr__(self, "options", {"case_sensitive": self.case_sensitive, **self.options})

    def settings(self) -> dict[str, Any]:
        """What the tasks that read the parts have to know."""
        return {
            "truncate": self.truncate, "decryption": self.decryption, "storage_options": self.storage_options,
            "skipped_to": self.skipped_to,
        }  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """What planning came to."""

    schema: Schema | None
    """Of the result, in pyparq's types; ``None`` for a number of rows."""
    answer: bytes | int | None
    """The rows, as an Arrow stream in Spark's types, or their number; ``None`` where the parts have to be read."""
    parts: tuple[bytes, ...]
    """Pickled plans."""
    skipped: tuple[LeftOut, ...]
    own: OwnRead | str = ""
    """How Spark's own reader reads instead; or why it does not."""
    left: Left | None = None
    """What the plan leaves; ``None`` where footers answer."""


@dataclass(frozen=True)
class Listing:
    """The files of a source, where there are so many that tasks plan them."""

    found: SourceFiles
    partitions: Partitions

    @staticmethod
    def of(ds: Dataset) -> Listing:
        """The files of this dataset."""
        files = files_of(ds)
        return Listing(files.found, files.partition_values)

    def dataset_files(self, question: Question) -> DatasetFiles:
        """The files of the dataset, without keys: none of them is opened here."""
        return DatasetFiles(
            self.found, self.partitions, schema_given(question), read_options(question), by_of(question),
            question.on_error,
        )  # fmt: skip


_AS_SPARK = {"coerce_int96_timestamp_unit": "us", "int96_adjusted_to_utc": True}
"""Options of :class:`ReadOptions` that have other defaults here: INT96 is Spark's own timestamp, an instant with
microseconds."""

_OF_DATASETS = ("partitioning", "filename", "by")
"""Options of :func:`pyparq.dataset` that are not in :class:`ReadOptions`."""


def read_options(question: Question, decryption: Any = None, *, use_threads: bool = True) -> ReadOptions:
    """How the question says that each file is read."""
    given = {name: value for name, value in _as_spark(question).items() if name not in _OF_DATASETS}
    return ReadOptions.make({"use_threads": use_threads, **given, "decryption": decryption})


def _as_spark(question: Question) -> dict[str, Any]:
    """The options of the question. The unit that suits the values of INT96 is Spark's own."""
    options = {**_AS_SPARK, **question.options}
    unit = options["coerce_int96_timestamp_unit"]
    return {**options, "coerce_int96_timestamp_unit": "us" if unit == "auto" else unit}


def schema_given(question: Question) -> Schema | None:
    return None if question.schema is None else parse_schema(question.schema)


def by_of(question: Question) -> str:
    return str(question.options.get("by", "name"))


def replied(question: Question, slots: Callable[[], int]) -> Reply | Listing:
    """Plan a read, and read at once what is small; or, where there are many files, say which they are. ``slots``: how
    many tasks the session runs at a time; called only where a job is needed.

    Raises what :func:`pyparq.dataset` and its scans raise, and :class:`UnsupportedError` for a column that Spark has no
    type for.
    """
    with left_out() as skipped:
        ds = _dataset(question)
        files, for_tasks = files_of(ds), _is_for_tasks(ds, question)
        if question.counts and question.filters is None and not for_tasks:
            return Reply(None, ds.count(), (), tuple(skipped()))
        if for_tasks and (question.filters is not None or not _may_be_own(files, question)):
            return Listing.of(ds)
        planner = planner_of(dataset_scan(question, ds))
        left = planner.files_left() if _may_be_own(files, question) else []
        if len(left) > MOST_PATHS:  # no plan of each file is made to find out
            own = own_read(Wanted(planner.header, left), files, question, planner.plan_files)
            if isinstance(own, OwnRead):
                told = Left.of_files(files.found.files, left, own.fit.row_groups, own.fit.rows, own.fit.num_bytes)
                return Reply(planner.header.result, None, (), tuple(skipped()), own, told)
        if for_tasks:
            return Listing.of(ds)
        plan = planner.plan()
        made = reply_to(plan, question, slots, skipped, own_read(Wanted.by(plan, files), files, question))
        return replace(made, left=left_of(plan, ds))


def _may_be_own(files: DatasetFiles, question: Question) -> bool:
    """Whether Spark's own reader may read, as far as can be told without a footer."""
    is_wanted = not question.counts and question.engine != "pyparq" and question.on_error == "raise"
    return is_wanted and not files.is_remote and all(isinstance(file.where, str) for file in files.found.files)


def left_of(plan: DatasetPlan, ds: Dataset) -> Left:
    """What the plan leaves of the dataset. The footers of its files were read for it."""
    names, listed = {file.name for file in plan.files}, files_of(ds).found.files
    opened = files_of(ds).open_all([k for k, file in enumerate(listed) if file.name in names])
    return Left.of(plan, listed, sum(file.num_row_groups for _, file in opened))


def planned_or_listed(question: Question) -> DatasetPlan | Listing:
    """The plan of a read; or, where there are many files, which they are."""
    ds = _dataset(question)
    return Listing.of(ds) if _is_for_tasks(ds, question) else dataset_scan(question, ds).plan()


def reply_to(
    plan: DatasetPlan,
    question: Question,
    slots: Callable[[], int],
    skipped: Callable[[], list[LeftOut]] = list,
    own: OwnRead | str = "",
) -> Reply:
    """Read what is small, and cut up what is not. ``skipped``: files that have been left out. ``own``: by
    :func:`pyparq.spark.own_reader.own_read`."""
    answer: bytes | int | None = None
    if question.counts:
        answer = _number(plan, question)
    elif isinstance(own, str):
        answer = _answer(plan, SparkTypes(plan.schema, truncate=question.truncate), question)
    has_parts = answer is None and isinstance(own, str)
    parts = [] if not has_parts else pickled(plan.split(question.parts or parts_of(plan.num_bytes, slots())))
    return Reply(None if question.counts else plan.schema, answer, tuple(parts), tuple(skipped()), own)


def planned(question: Question, also: Expression | None = None) -> tuple[DatasetPlan, Left]:
    """The plan of the read, made here; ``also``: a filter besides the question's, which Spark applies itself too."""
    ds = _dataset(question)
    plan = dataset_scan(question, ds, also).plan()
    return plan, left_of(plan, ds)


def _is_for_tasks(ds: Dataset, question: Question) -> bool:
    """Whether tasks share the planning of many files. The log of a table is here, and rules out most files. So does a
    catalog that knows all files, if it leaves few of them."""
    if len(ds.files) <= question.many or files_of(ds).table is not None:
        return False
    known = files_of(ds).known
    if known is None or not known.are_all:
        return True
    if question.counts and question.filters is None:
        return False
    return len(planner_of(dataset_scan(question, ds)).numbers) > question.many


def as_stored(question: Question) -> Question:
    """The question with shredded Variants as they are stored, where all of its files have shredded them alike."""
    ds = _dataset(question)
    if len(ds.files) > question.many or variants_as_stored(ds) is ds:
        return question
    return replace(question, options={**question.options, "variants": "stored"})


def schema_of(question: Question) -> Schema:
    """Schema of the result. Reads footers, and no index."""
    ds = _dataset(question)
    return ds.scan(Names(ds, question.case_sensitive, None).columns(question.columns)).schema


def partition_names(question: Question) -> list[str]:
    """Names of the partition columns, as the folders spell them."""
    return _dataset(question).partitions.names


def pickled(parts: Sequence[DatasetPlan]) -> list[bytes]:
    """The parts as they are sent to Spark's workers."""
    return [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts]


def _dataset(question: Question) -> Dataset:
    options = _as_spark(question)
    if (
        question.folders is not None
        and format_of(question.source) is None
        and options.get("partitioning", "hive") == "hive"
    ):
        options["partitioning"] = question.folders
    ds = dataset(
        question.source, schema=question.schema, on_error=question.on_error, decryption=keys_of(question.decryption),
        storage_options=question.storage_options, **options,
    )  # fmt: skip
    if question.schema is not None:
        files_of(ds).tells_left_out = False  # Spark's schemas choose columns
    return _chosen(ds, question) if question.choice else ds


def _chosen(ds: Dataset, question: Question) -> Dataset:
    """The dataset with the files that are to be read. Its partition columns have the types that all folders give."""
    files = files_of(ds)
    if files.table is not None:
        raise OptionError("the log of a table says which files are read: leave pathGlobFilter and the like out")
    numbers = question.choice.numbers(files.found.files)
    if not numbers and question.schema is None:
        raise NoneLeft(errno.ENOENT, "no file is left by pathGlobFilter and the like", files.root)
    left = files.only(numbers)
    left.tells_left_out = files.tells_left_out
    return with_files(ds, left)


def dataset_scan(question: Question, ds: Dataset, also: Expression | None = None) -> DatasetScan:
    """The scan of the dataset that answers the question, with names as the dataset spells them."""
    names = Names(ds, question.case_sensitive, question.zone)
    given, columns = question.filters, names.columns(question.columns)
    if isinstance(given, (str, Condition)):
        given, columns = _translated(given, columns, names.tree, question)
    filters = names.filters(given)
    if also is not None:
        try:
            return ds.scan(columns, also if filters is None else AllOf((filters, also)))
        except FilterError:
            pass  # a comparison that Spark makes and we do not: Spark makes it again
    return ds.scan(columns, filters)


def _translated(given: str | Condition, columns: Any, tree: SchemaTree, question: Question) -> tuple[Any, Any]:
    """A condition of Spark as a filter, and the columns to read: with those that Spark looks at, where it does."""
    if isinstance(given, str):
        given = parsed(given, [name for leaf in tree.leaves for name in leaf.path])
    session = Session(question.zone, question.ansi)
    if not question.residual:
        return filter_of(given, tree, session), columns
    needed = columns_needed(given, tree)
    if columns is not None:
        asked = [tree.find(name).path for name in columns]
        nested = sorted({path[0] for path in asked if len(path) > 1})
        if nested:
            raise OptionError(f"residual=True takes whole columns: give {nested[0]!r} in columns, not a field of it")
        tops = [path[0] for path in asked]
        columns = [(name,) for name in dict.fromkeys([*tops, *needed])] if needed is not None else []
        columns = columns or None  # a DataFrame has columns, also where only its rows are counted
    return filter_of(given, tree, session, residual=True), columns


def _run(plan: DatasetPlan, question: Question) -> Any:
    return plan.scan(decryption=keys_of(question.decryption), storage_options=question.storage_options)


def is_small(plan: DatasetPlan, question: Question) -> bool:
    """Whether so little is left to read that a job would take longer."""
    return plan.num_bytes <= question.small and len(plan.files) <= question.many


def surely(plan: DatasetPlan) -> int:
    """Rows that match without a doubt."""
    return sum(group.sure.count for file in plan.files for group in file.row_groups)


def _number(plan: DatasetPlan, question: Question) -> int | None:
    """The number of rows, if the plan says it or few bytes do; ``None`` otherwise."""
    sure = surely(plan)
    if sure == plan.num_rows:
        return sure
    return int(_run(plan, question).count()) if is_small(plan, question) else None


def _answer(plan: DatasetPlan, types: SparkTypes, question: Question) -> bytes | None:
    """The rows, if they are few enough; ``None`` otherwise."""
    import pyarrow as pa

    if not is_small(plan, question) or surely(plan) > ANSWER_ROWS:
        return None
    # createDataFrame fails on a table without any batch: the first one may have no rows.
    batches, size, rows = [pa.RecordBatch.from_pylist([], types.arrow)], 0, 0
    for batch in types.cast(_run(plan, question)):
        size += batch.nbytes
        rows += batch.num_rows
        if size > DECODED * question.small or rows > ANSWER_ROWS:
            return None
        batches.append(batch)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, types.arrow) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
