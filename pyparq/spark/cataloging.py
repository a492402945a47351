"""``index_dataset`` as Spark jobs: tasks read the keys of shares of the files, and others join them."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyparq.datasets.catalog.key_table import bits_for
from pyparq.spark import stores
from pyparq.spark.catalog_tasks import STEPS, CatalogJob, Todo
from pyparq.spark.files import PER_SLOT
from pyparq.spark.paths import absolute
from pyparq.spark.session import check_session, is_connect, parallelism
from pyparq.spark.work import ask, replies

if TYPE_CHECKING:
    from pyparq.column_names import Names
    from pyparq.datasets.catalog.index_dataset import CatalogReport

JOINED_ROWS = 8_000_000
"""Entries that one task joins: 400 MB of memory."""
FEWEST = 16
"""Files of a share, if there are so many."""


def index_dataset(
    spark: Any,
    source: Any,
    columns: Names | None = None,
    *,
    rebuild: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> CatalogReport:
    """Make a catalog of the keys in a dataset, or bring it up to date, on Spark's workers.

    The parameters and the report are those of :func:`pyparq.index_dataset`. Tasks read shares of the files that are new
    or have changed; others join the keys, each a range of the hashes. The catalog appears when all is done. The folder
    must be one that all workers see: in a store, or on a disk that they share.

    Example::

        import pyparq.spark as ps

        ps.index_dataset(spark, "flights/", ["tailnum"])
    """
    check_session(spark)
    where = absolute(source, is_connect(spark))
    job = CatalogJob(where, columns, rebuild, stores.storage_options(spark, storage_options, where))
    todo: Todo = _here(spark, "todo", job)
    count = max(min(PER_SLOT * parallelism(spark), -(-len(todo.files) // FEWEST)), 1)
    parts = [todo.files[k::count] for k in range(count)] if todo.files else []
    shares = _tasks(spark, job, [("share", todo.names, part) for part in parts])
    segments = [segment for share in shares for segment in share.segments]
    joins = [
        ("join", column, [s for s in segments if s.column == column], wanted, todo.next_number)
        for column, before in enumerate(todo.rows)
        for wanted in _ranges([s for s in segments if s.column == column], before)
    ]
    joined = [segment for found in _tasks(spark, job, joins) for segment in found]
    report: CatalogReport = _here(spark, "finish", job, todo.before, shares, joined)
    return report


def _ranges(segments: list[Any], before: int) -> list[tuple[int, int, int]]:
    """The ranges of hashes that tasks join: from, to, and the bits of the hashes that are stored."""
    rows = sum(segment.part.rows for segment in segments)
    bits, count = bits_for(rows + before), -(-rows // JOINED_ROWS)
    ends = [(k << bits) // count for k in range(count + 1)] if count else []
    return [(low, high - 1, bits) for low, high in itertools.pairwise(ends)]


def _here(spark: Any, step: str, *arguments: Any) -> Any:
    """A step that one process does, where the files are."""
    if is_connect(spark):
        return ask(spark, "catalog", step, *arguments)
    return STEPS[step](*arguments)


def _tasks(spark: Any, job: CatalogJob, work: list[tuple[Any, ...]]) -> list[Any]:
    """Steps for several processes. The job goes to them as a setting: it may hold secrets."""
    return replies(spark, "catalog", [pickle.dumps(one) for one in work], {"job": job}) if work else []
