"""The schema of a dataset is the common schema of all its files, whatever a filter leaves of them.

The footers of all local files are read for it, and those of up to :data:`FEW_REMOTE` remote files. If there are more,
and partitions rule most of them out, the first and the last file stand for all: partitions are often ordered by time,
and columns are added over time. A file that does not agree with these two is then an error; the schema never changes
silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyparq.arrow.table import Table
from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.read.one_schema import Common
from pyparq.datasets.read.projection import Projection
from pyparq.datasets.read.schema_tree import tree_of
from pyparq.errors import ColumnNotFoundError, ParquetError, SchemaError
from pyparq.filters.expression import Expression, simplified, tested_paths
from pyparq.filters.given import as_expression
from pyparq.format.schema_tree import SchemaTree
from pyparq.runtime.threads import REQUESTS

FEW_REMOTE = REQUESTS
"""Up to this many remote files, all footers are read, even if partitions rule files out. That takes one round of
requests."""


def expression_of(dataset: DatasetFiles, filters: Any) -> Expression | None:
    """A filter in any form as an expression. The columns that it may name are those of all files."""

    def common() -> Common:
        return dataset.common(range(len(dataset.found.files)))

    def tree() -> SchemaTree:
        return tree_of(common().schema, case_sensitive=dataset.matching.case_sensitive)

    try:
        return as_expression(filters, tree, lambda: Table(common().schema, []))
    except ColumnNotFoundError:
        for name, error in common().clashes.items():
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(filters)):
                raise error from None
        raise


def project_all(
    dataset: DatasetFiles, left: Sequence[int], columns: Iterable[Any] | str | None, expression: Expression | None
) -> Projection:
    """The result of a scan of the files ``left``. Columns and types are those of the whole dataset. Only columns that
    are asked for need a common type.

    Raises :class:`ColumnNotFoundError` and :class:`FilterError` like :class:`Projection`, and :class:`SchemaError` if
    the files have no common schema.
    """
    partitions, case_sensitive = dataset.partition_values.fields, dataset.matching.case_sensitive

    def projected(common: Common) -> Projection:
        schema = common.for_all_columns() if columns is None else common.schema
        try:
            return Projection(schema, columns, expression, partitions, case_sensitive)
        except ColumnNotFoundError:
            asked = _named(columns, expression)
            for name, error in common.clashes.items():
                if name in asked:
                    raise error from None
            raise

    count = len(dataset.found.files)
    if dataset.knows_schema or not dataset.is_remote or count <= FEW_REMOTE or len(left) == count:
        return projected(dataset.common(left))
    ends = [0, count - 1]
    of_left = dataset.common_of_some([*left, *ends], left)
    try:
        made = projected(dataset.common_of_some(ends))
    except ParquetError:  # for example a column that only other files have
        return projected(dataset.common(left))
    seen = projected(of_left)
    if seen.base.fields != made.base.fields:
        raise SchemaError(
            f"files that the filter leaves have other columns or types than the first and the last of the {count:,} "
            "remote files, and the footers of the others were not read. Call .schema of the dataset before, which "
            "reads all footers, or give schema=, or name the columns",
            file=dataset.root,
        )
    return made


def _named(columns: Iterable[Any] | str | None, expression: Expression | None) -> set[str]:
    """Names of columns that are asked for, and the beginnings of dotted names."""
    paths: list[Any] = list(columns or ())

    def look(test: Expression) -> Expression:
        paths.extend(tested_paths(test))
        return test

    if expression is not None:
        simplified(expression, look)
    names = [path if isinstance(path, str) else path[0] for path in paths if isinstance(path, (str, tuple))]
    return {name[: k or None] for name in names for k in (0, *(k for k, char in enumerate(name) if char == "."))}
