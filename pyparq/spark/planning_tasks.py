"""What the tasks that plan a read of many files do: each reads the footers and indexes of its share."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from pyparq.datasets.dataset import dataset_of
from pyparq.datasets.files import Survey
from pyparq.datasets.reader import FilePlan
from pyparq.datasets.scan import planner_of
from pyparq.datasets.shares import Share, survey
from pyparq.errors import CorruptIndexWarning, ParquetError
from pyparq.format.types import Schema
from pyparq.spark.keys import keys_of
from pyparq.spark.question import Question, by_of, dataset_scan, read_options, schema_given


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
