"""A read as one value, and what it comes to once it is planned: an answer, or parts for Spark's workers.

Planning runs where the files are: in the driver of a classic session, in a task for Spark Connect.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq.datasets.dataset import Dataset, dataset
from pyparq.datasets.plan import DatasetPlan
from pyparq.errors import SkippedFileWarning
from pyparq.filters.expression import AllOf, Expression
from pyparq.schemas.types import Schema
from pyparq.spark.keys import keys_of
from pyparq.spark.names import Names
from pyparq.spark.types import SparkTypes

DECODED = 8
"""An answer is made at once only while its rows take at most so many times ``small`` in memory."""

ANSWER_ROWS = 100_000
"""And only while there are so few: Spark makes a partition of every 10,000 rows that it is handed."""


@dataclass(frozen=True)
class Question:
    """What :func:`pyparq.spark.read` was asked. It is pickled for Spark Connect."""

    source: Any
    columns: Any
    filters: Any
    schema: Any
    parts: int | None
    """At most; ``None``: as many as the session runs at a time."""
    small: int
    decryption: str | None
    on_error: str
    truncate: bool
    storage_options: Any
    case_sensitive: bool
    options: dict[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """What the tasks that read the parts have to know."""
        return {
            "truncate": self.truncate, "decryption": self.decryption, "storage_options": self.storage_options,
        }  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """What planning came to."""

    schema: Schema
    """Of the result, in pyparq's types."""
    answer: bytes | None
    """The rows, as an Arrow stream in Spark's types; ``None`` where the parts have to be read."""
    parts: tuple[bytes, ...]
    """Pickled plans."""
    skipped: tuple[str, ...]
    """What was said of files that were left out."""


def answered(question: Question, slots: Callable[[], int]) -> Reply:
    """Plan a read, and read at once what is small. ``slots``: how many tasks the session runs at a time; called only
    where a job is needed.

    Raises what :func:`pyparq.dataset` and its scans raise, and :class:`UnsupportedError` for a column that Spark has no
    type for.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", SkippedFileWarning)
        plan = planned(question)
        types = SparkTypes(plan.schema, truncate=question.truncate)
        answer = _answer(plan, types, question)
    skipped = tuple(str(w.message) for w in heard if issubclass(w.category, SkippedFileWarning))
    parts = () if answer is not None else tuple(pickled(plan.split(question.parts or slots())))
    return Reply(plan.schema, answer, parts, skipped)


def counted(question: Question, slots: Callable[[], int]) -> int | list[bytes]:
    """The number of matching rows where planning tells it, or the parts to count."""
    ds = _dataset(question)
    if question.filters is None:
        return ds.count()
    plan = _plan(question, ds)
    if plan.num_bytes <= question.small:
        return int(_run(plan, question).count())
    return pickled(plan.split(question.parts or slots()))


def planned(question: Question, also: Expression | None = None) -> DatasetPlan:
    """The plan of the read; ``also``: a filter besides the question's."""
    return _plan(question, _dataset(question), also)


def schema_of(question: Question) -> Schema:
    """Schema of the result. Reads footers, and no index."""
    ds = _dataset(question)
    return ds.scan(Names(ds, question.case_sensitive).columns(question.columns)).schema


def pickled(parts: Sequence[DatasetPlan]) -> list[bytes]:
    """The parts as they are sent to Spark's workers."""
    return [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts]


def _dataset(question: Question) -> Dataset:
    return dataset(
        question.source, schema=question.schema, on_error=question.on_error, decryption=keys_of(question.decryption),
        storage_options=question.storage_options, **question.options,
    )  # fmt: skip


def _plan(question: Question, ds: Dataset, also: Expression | None = None) -> DatasetPlan:
    names = Names(ds, question.case_sensitive)
    given = question.filters
    if isinstance(given, str):
        from pyparq.sql.where import parse_where

        given = parse_where(given, names.tree)
    asked = [part for part in (names.filters(given), also) if part is not None]
    filters = AllOf(tuple(asked)) if len(asked) > 1 else asked[0] if asked else None
    return ds.plan(names.columns(question.columns), filters)


def _run(plan: DatasetPlan, question: Question) -> Any:
    return plan.scan(decryption=keys_of(question.decryption), storage_options=question.storage_options)


def _answer(plan: DatasetPlan, types: SparkTypes, question: Question) -> bytes | None:
    """The rows, if they are few enough; ``None`` otherwise."""
    import pyarrow as pa

    surely = sum(group.sure.count for file in plan.files for group in file.row_groups)
    if plan.num_bytes > question.small or surely > ANSWER_ROWS:
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
