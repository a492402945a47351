"""Tables of Delta Lake and Apache Iceberg as their own packages open them: which files a version has, under which
names, without which rows, and which of them the statistics in its log rule out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.file_columns import Matching
from pyparq.datasets.partitions import Partitions
from pyparq.errors import ChangedFileError, CorruptFileError, ParquetError
from pyparq.filters.leaf_tests import Test, domain_dtype
from pyparq.filters.literal import locate
from pyparq.filters.predicate import Predicate
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType, Schema
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.index.statistics import Bounds
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import forget_context, without_secrets


class Stated(NamedTuple):
    """What a log says of one column, an entry per file. ``None`` or -1 where it says nothing."""

    lows: Sequence[Any]
    """No value of the file is below it."""
    highs: Sequence[Any]
    """No value of the file is above it."""
    null_counts: Int64Array
    exact: bool = False
    """The values are those of a partition column: one per file, and ``None`` is a null."""


class LogStatistics:
    """The statistics of files in a log, asked column by column."""

    def stated(self, node: Node) -> Stated | None:
        """What the log says of a leaf of the table's schema. ``None`` if it says nothing."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The log's knowledge of the data files, by their numbers in the dataset."""

    kind: str
    """``"Delta Lake"`` or ``"Apache Iceberg"``."""
    num_rows: Int64Array
    """Stored rows of each file, deleted ones included. -1 where the log does not say it."""
    deleted: Mapping[int, Int64Array]
    """Row numbers, rising, of the rows of a file that the table no longer has. Files without such rows are missing."""
    statistics: LogStatistics
    """The log's statistics of the files' columns."""
    folder: str
    """The path or URL of the table's folder. Files elsewhere may belong to other tables."""

    def rows_left(self, k: int) -> int:
        """Rows of file ``k`` that the table has. -1 where the log does not say it."""
        stored = int(self.num_rows[k])
        return stored if stored < 0 else stored - len(self.deleted.get(k, ()))

    def kept(self, k: int, counts: Sequence[int], name: str) -> dict[int, RowRanges]:
        """The rows of file ``k`` that the table has, by row group. Row group ``g`` has ``counts[g]`` rows. Raises
        :class:`ChangedFileError` if the log and the file do not fit together."""
        gone, total = self.deleted[k], sum(counts)
        if len(gone) and (int(gone[0]) < 0 or int(gone[-1]) >= total):
            raise ChangedFileError(
                f"the table's log says that row {int(gone[-1])} is deleted, but the file has {total} rows: the file is "
                "not the one that the log describes",
                file=name,
            )
        ends = np.cumsum(counts, dtype=np.int64).tolist()
        edges = np.searchsorted(gone, [0, *ends]).tolist()
        kept = {}
        for group, (count, end) in enumerate(zip(counts, ends, strict=True)):
            rows = gone[edges[group] : edges[group + 1]] - (end - count)
            left = ~RowRanges.from_rows(rows, count)
            if left:
                kept[group] = left
        return kept


class OpenedTable(NamedTuple):
    """A table at one version."""

    root: str
    """What messages call the table."""
    files: tuple[DataFile, ...]
    schema: Schema
    """Of the table, with its own names and the partition columns, in the table's order."""
    partitions: Partitions
    """The columns whose values the log holds."""
    matching: Matching
    known: TableFiles
    version: tuple[str, int] | None
    """The id of the table, and its version or snapshot."""
    catalog: DataFile | None
    """Where a catalog of its keys is, or may be."""


@contextmanager
def foreign_metadata(table: Any) -> Iterator[None]:
    """What the table's own library raises for metadata that it cannot read, as a :class:`CorruptFileError`."""
    try:
        yield
    except (ParquetError, OSError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of Rust
            raise
        text = without_secrets(f"{type(error).__name__}: {error}", "", getattr(table, "_storage_options", None))
        forget_context(CorruptFileError(f"the table's metadata cannot be read: {text}"))


_ICEBERG = {
    "s3.endpoint": "endpoint_url", "s3.access-key-id": "key", "s3.secret-access-key": "secret",
    "s3.session-token": "token", "s3.anonymous": "anon", "adls.account-name": "account_name",
    "adls.account-key": "account_key", "adls.sas-token": "sas_token", "adls.connection-string": "connection_string",
    "adls.tenant-id": "tenant_id", "adls.client-id": "client_id", "adls.client-secret": "client_secret",
    "gcs.project-id": "project", "gcs.oauth2.token": "token",
}  # fmt: skip
"""Properties of Iceberg's FileIO, and the same options of fsspec's file systems."""
_ONLY = {"s3": "s3.", "s3a": "s3.", "s3n": "s3.", "gs": "gcs.", "abfs": "adls.", "abfss": "adls.", "wasbs": "adls."}
"""Properties that mean the store of a URL."""


def store_options_of(table: Any) -> Mapping[str, Any] | None:
    """The settings that the table's own library uses. ``None`` where it has none: then the environment decides."""
    if format_of(table) == DELTA:
        found = getattr(table, "_storage_options", None)
        return dict(found) if found else None
    is_scan = hasattr(table, "plan_files")
    return _of_iceberg(str(table.table_metadata.location if is_scan else table.location()), table.io)


def _of_iceberg(location: str, io: Any) -> Mapping[str, Any] | None:
    prefix = _ONLY.get(location.partition("://")[0])
    if prefix is None:
        return None
    given = {name: value for name, value in io.properties.items() if name.startswith(prefix)}
    found: dict[str, Any] = {_ICEBERG[name]: value for name, value in given.items() if name in _ICEBERG}
    if "anon" in found:
        found["anon"] = str(found["anon"]).lower() == "true"
    if region := given.get("s3.region"):
        found["client_kwargs"] = {"region_name": region}
    return found or None


Mask = npt.NDArray[np.bool_]


class FileBounds:
    """The bounds of all files of a table, asked column by column."""

    def __init__(self, table: TableFiles, partitions: Partitions) -> None:
        self._table = table
        self._partitions = partitions
        self._places = {field.name: k for k, field in enumerate(partitions.fields)}
        self._known: dict[Node, Bounds | None] = {}

    def may_match(self, predicate: Predicate) -> Mask:
        """The files in which a row may match. ``predicate`` is bound to the table's schema."""

        def of_test(test: Test) -> Mask | None:
            bounds = self._of(test.node)
            return None if bounds is None else test.verdict(bounds).some

        return predicate.units_left(of_test, len(self._table.num_rows))

    def _of(self, node: Node) -> Bounds | None:
        if node not in self._known:
            place = self._places.get(node.path[0])
            stated = self._table.statistics.stated(node) if place is None else _of_partition(self._partitions, place)
            unusable = stated is None or node.max_rep > 0
            self._known[node] = None if unusable else _as_bounds(stated, node, self._table.num_rows)  # type: ignore[arg-type]
        return self._known[node]


def _of_partition(partitions: Partitions, place: int) -> Stated:
    distinct = partitions.columns[place].to_pylist()
    each = [distinct[k] for k in partitions.of_file.tolist()]
    return Stated(each, each, np.full(len(each), -1, np.int64), exact=True)


def _as_bounds(stated: Stated, node: Node, num_rows: Int64Array) -> Bounds:
    """The statements as bounds in the leaf's comparable domain."""
    leaf, count = node.type, len(num_rows)
    mins, maxs = (np.zeros(count, domain_dtype(leaf)) for _ in range(2))
    known = np.zeros(count, bool)
    for k, (low, high) in enumerate(zip(stated.lows, stated.highs, strict=True)):
        found = None if low is None or high is None else _edges(leaf, low, high)
        if found is not None:
            mins[k], maxs[k] = found
            known[k] = True
    nulls, unknown = stated.null_counts, np.full(count, -1, np.int64)
    if stated.exact:
        missing = np.array([low is None for low in stated.lows], bool)
        return Bounds(leaf, mins, maxs, known, np.where(missing, num_rows, 0), unknown, num_rows, missing)
    all_null = (nulls >= 0) & (nulls == num_rows)
    # What the log counts below a struct is not defined: whether the struct's own nulls are included.
    nulls, all_null = (nulls, all_null) if len(node.path) == 1 else (unknown, all_null & False)
    return Bounds(leaf, mins, maxs, known, nulls, unknown, num_rows, all_null)


def _edges(leaf: LeafType, low: Any, high: Any) -> tuple[Any, Any] | None:
    """The largest value of the domain that is not above ``low``, and the smallest that is not below ``high``."""
    try:
        below, above = locate(leaf, low, "").below, locate(leaf, high, "").above
    except ParquetError:  # the log keeps it in a form that the column's type does not have
        return None
    if below is None or above is None or below != below or above != above or below > above:
        return None
    return below, above
