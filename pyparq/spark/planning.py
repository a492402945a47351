"""Decides which process plans a read: the driver, a task of a Connect session, or, for many files, a Spark job.

Such a job has one task per share of the files. It reads their footers and indexes, and returns the planned reads of
each file as a row. The parts of all shares make one plan, the same that one process would have made.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyparq.datasets.dataset import dataset_of
from pyparq.datasets.files import DatasetFiles, Surveyed
from pyparq.datasets.reader import FilePlan
from pyparq.datasets.scan import DatasetPlan, DatasetScan, planner_of
from pyparq.datasets.shares import Share, shares_of
from pyparq.errors import CorruptIndexWarning
from pyparq.format.types import Schema
from pyparq.runtime.messages import warn_caller
from pyparq.spark.files import PER_SLOT
from pyparq.spark.planning_tasks import ShareReply
from pyparq.spark.question import (
    Listing,
    Question,
    Reply,
    dataset_scan,
    is_small,
    planned_or_listed,
    replied,
    reply_to,
)
from pyparq.spark.question import as_stored as variants_as_stored
from pyparq.spark.session import is_connect, parallelism
from pyparq.spark.skipped import left_out
from pyparq.spark.work import ask, replies


def reply(spark: Any, question: Question) -> Reply:
    """Plan a read, and read at once what is small; all of it where the files are.

    Raises what :func:`pyparq.dataset` and its scans raise.
    """
    far = is_connect(spark)
    found: Reply | Listing
    if far:
        found = ask(spark, "question", question, parallelism(spark))
    else:
        found = replied(question, lambda: parallelism(spark))
    if isinstance(found, Reply):
        return found
    with left_out() as said:
        if question.counts and question.filters is None:
            return Reply(None, _rows(spark, question, found), (), tuple(said()))
        plan = _by_tasks(spark, question, found)
        if far and is_small(plan, question):
            made: Reply = ask(spark, "answer", plan, question, parallelism(spark))
            return replace(made, skipped=(*said(), *made.skipped))
        return reply_to(plan, question, lambda: parallelism(spark), said)


def as_stored(spark: Any, question: Question) -> Question:
    """The question with shredded Variants as they are stored, where that is possible."""
    found: Question = ask(spark, "as_stored", question) if is_connect(spark) else variants_as_stored(question)
    return found


def planned(spark: Any, question: Question) -> DatasetPlan:
    """The plan of a read, made where the files are."""
    found: DatasetPlan | Listing = (
        ask(spark, "whole_plan", question) if is_connect(spark) else planned_or_listed(question)
    )
    return _by_tasks(spark, question, found) if isinstance(found, Listing) else found


# ---- many files ----------------------------------------------------------------------------------------------------


def _by_tasks(spark: Any, question: Question, listing: Listing) -> DatasetPlan:
    """The plan of many files, made by tasks."""
    here = listing.dataset_files(question)
    shares = shares_of(here, _tasks(spark, question, here))
    replies = _asked(spark, question, shares)
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
        asked = _asked(spark, resolved, [shares[k] for k in again], schema=planner_of(scan).schema)
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
    surveyed = _surveyed(_asked(spark, question, shares, counts=True))
    here = here.with_survey(surveyed)
    for number, error in sorted(surveyed.failed.items()):
        here.leave_out(number, error)
    dataset_scan(question, dataset_of(here))  # raises where the files have no common schema
    return int(surveyed.rows.sum())


def _tasks(spark: Any, question: Question, here: DatasetFiles) -> int:
    """How many tasks plan: one for each quarter of what one process would plan, and some for each slot at most."""
    return min(PER_SLOT * parallelism(spark), -(-4 * len(here.files) // max(question.many, 1)))


def _asked(
    spark: Any, question: Question, shares: Sequence[Share], *, schema: Schema | None = None, counts: bool = False
) -> list[ShareReply]:
    """The replies of the tasks of the shares. The question goes to them as a setting: it may hold secrets, which must
    not show in Spark's UI."""
    if not shares:
        return []
    settings = {"question": question, "schema": schema, "counts": counts}
    return replies(spark, "share", [pickle.dumps(share) for share in shares], settings)


def _surveyed(found: Sequence[ShareReply]) -> Surveyed:
    """What the tasks found in the footers."""
    failed = {number: error for reply in found for number, error in reply.failed.items()}
    return Surveyed([reply.survey for reply in found if reply.survey is not None], failed)
