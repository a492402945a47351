"""The schema of a dataset is the common schema of all its files, whatever a filter leaves of them.

The footers of all local files are read for it, and those of up to :data:`FEW_REMOTE` remote files. If there are more,
and partitions rule most of them out, the first and the last file stand for all: partitions are often ordered by time,
and columns are added over time. A file that does not agree with these two is then an error; the schema never changes
silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.read.projection import Projection
from pyparq.errors import ParquetError, SchemaError
from pyparq.filters.expression import Expression
from pyparq.runtime.threads import REQUESTS

FEW_REMOTE = REQUESTS
"""Up to this many remote files, all footers are read, even if partitions rule files out. That takes one round of
requests."""


def project_all(
    dataset: DatasetFiles, left: Sequence[int], columns: Iterable[Any] | str | None, expression: Expression | None
) -> Projection:
    """The result of a scan of the files ``left``. Columns and types are those of the whole dataset.

    Raises :class:`ColumnNotFoundError` and :class:`FilterError` like :class:`Projection`, and :class:`SchemaError` if
    the files have no common schema.
    """
    partitions, case_sensitive = dataset.partition_values.fields, dataset.matching.case_sensitive
    count = len(dataset.found.files)
    if dataset.knows_schema or not dataset.is_remote or count <= FEW_REMOTE or len(left) == count:
        return Projection(dataset.schema_of(left), columns, expression, partitions, case_sensitive)
    ends = [0, count - 1]
    of_left = dataset.schema_of_some([*left, *ends], left)
    try:
        made = Projection(dataset.schema_of_some(ends), columns, expression, partitions, case_sensitive)
    except ParquetError:  # for example a column that only other files have
        return Projection(dataset.schema_of(left), columns, expression, partitions, case_sensitive)
    seen = Projection(of_left, columns, expression, partitions, case_sensitive)
    if seen.base.fields != made.base.fields:
        raise SchemaError(
            f"files that the filter leaves have other columns or types than the first and the last of the {count:,} "
            "remote files, and the footers of the others were not read. Call .schema of the dataset before, which "
            "reads all footers, or give schema=, or name the columns",
            file=dataset.root,
        )
    return made
