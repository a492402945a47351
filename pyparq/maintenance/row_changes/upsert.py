"""``upsert``: rows of files that exist are replaced by rows with the same key, and rows with other keys are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Int64Array, concat, take
from pyparq.arrow.ingest import ingest
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.dataset import files_of, key_filter
from pyparq.datasets.files import DatasetFiles
from pyparq.errors import DataError, OptionError, UnsupportedError
from pyparq.filters.expression import Expression
from pyparq.format.schema_node import shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.index.row_ranges import RowMask, Rows, rows_of
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.row_changes.applying import apply, opened, relisted, table_of
from pyparq.maintenance.row_changes.changed_file import GroupChange
from pyparq.maintenance.row_changes.places import ApplyOptions, has_room
from pyparq.maintenance.row_changes.report import ChangeReport
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans
from pyparq.maintenance.row_changes.stored_rows import check_calendar, picked
from pyparq.maintenance.row_changes.table_rows import moves_rows
from pyparq.option_checks import keywords
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.write.shred import LeafData, shred_column

if TYPE_CHECKING:
    from pyparq.encryption.properties import DecryptionProperties, EncryptionProperties


@keywords
def upsert(
    source: Any,
    data: Any,
    key: str | Sequence[str],
    *,
    dry_run: bool = False,
    force: bool = False,
    retries: int = 0,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    encryption: EncryptionProperties | None = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> ChangeReport:
    """Replace rows by the rows of ``data`` with the same key, and add the other rows of ``data``. Row groups without
    such rows are copied byte for byte, and files without them stay untouched.

    ``source``: a file or a folder, at a path or URL, a ``DeltaTable`` or a table of pyiceberg. ``data``: what
    :func:`pyparq.write_table` takes, with all columns of the source, those in the names of folders included; it is held
    in memory. ``key``: the columns of the key. No two rows of ``data`` may have the same key, and none a null or a NaN
    in it. Where several rows of the source have one key, each of them is replaced.

    Rows are replaced in their places. New rows go to the end of a file; in a folder or table to new files, each in the
    partition that it belongs to. So do rows whose partition changes, and those whose file lacks one of the columns.
    With ``retries``, rows with the same keys that another program adds meanwhile are deleted. ``encryption``: of new
    files; an encrypted folder needs it. Files that are there keep their keys. The other arguments are those of
    :func:`pyparq.delete`.

    Returns a :class:`pyparq.ChangeReport`. Raises :class:`pyparq.DataError` and :class:`pyparq.OptionError` for data
    that do not fit, and what :func:`pyparq.delete` raises. The files are then as they were.

    Example::

        pyparq.write_table({"user": [6, 7], "price": [1.0, 2.0]}, "users.parquet")
        pyparq.upsert("users.parquet", [{"user": 7, "price": 9.5}], key="user")
    """
    names = [key] if isinstance(key, str) else list(key)
    again = partial(
        opened, source, storage_options, filesystem, decryption=decryption, limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums, use_threads=use_threads,
    )  # fmt: skip
    dataset = again()
    schema = dataset.schema
    if not names or not all(isinstance(name, str) and name in schema.names for name in names):
        raise OptionError(f"key must name columns of the source, not {key!r}")
    files = files_of(dataset)
    table = table_of(source)
    if table is None and not has_room(files):
        raise UnsupportedError("new rows have no place in a list of files or a pattern: give the folder, or one file")
    if encryption is not None and (table is not None or files.found.is_one_file):
        raise OptionError("encryption is for new files of a folder: a file keeps the keys that it has")
    rows = Upserts(UpsertedRows(data, schema, names), moves_all=table is not None and moves_rows(table, files))
    options = ApplyOptions(
        True, dry_run, force, fsync, progress, table, "MERGE", retries, relisted(source, again), False, encryption
    )
    return apply(dataset, rows.data.filters(), rows.find, options, rows)


def partition_values_of(files: DatasetFiles, number: int) -> dict[str, Any]:
    """The values of a file's partition columns. ``number``: of the file in the dataset."""
    partitions = files.partition_values
    if not partitions.names:
        return {}
    combination = int(partitions.of_file[number])
    columns = [partitions.values(k, combination, 1) for k, _ in enumerate(partitions.fields)]
    return Table(Schema(partitions.fields), [Batch(columns, 1)]).to_pylist()[0]


def keys_of_rows(
    scan: Scan, row_group: int, rows: Rows, names: Sequence[str], values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The values of some columns in some rows of a file. ``values``: of its partition columns."""
    own = [name for name in names if name not in values]
    ranges = rows.ranges if isinstance(rows, RowMask) else rows
    columns = {name: [value] * rows.count for name, value in values.items()}
    if own:
        table = Scan(scan.file.fork(), own, rows={row_group: ranges}).to_table()
        columns |= {name: table.column(name).to_pylist() for name in own}
    return list(zip(*(columns[name] for name in names), strict=True))


class Upserts:
    """Which rows of the data have been found in the files."""

    def __init__(self, data: UpsertedRows, *, moves_all: bool = False) -> None:
        """``moves_all``: rows with the same key go, and those of the data are added: they may belong elsewhere."""
        self.data = data
        self._moves_all = moves_all
        self._placed = False
        self._replaced = np.zeros(data.num_rows, bool)
        self._added = np.zeros(data.num_rows, bool)

    @property
    def replaced(self) -> Int64Array:
        """The rows of the data that have taken the places of others."""
        return np.flatnonzero(self._replaced)

    def begin(self, files: DatasetFiles) -> None:
        """These files are asked."""
        self._files = files
        self._numbers = {file.name: number for number, file in enumerate(files.found.files)}
        self._replaced[:] = False
        self._added[:] = self._placed

    def added(self) -> None:
        """The rows of :meth:`table` are in new files. The same files are asked once more."""
        self._added |= ~self._replaced
        self._replaced[:] = False

    def placed(self) -> None:
        """The rows are in the files. Rows with their keys go from those that are asked from now on."""
        self._placed = True

    def find(self, scan: Scan) -> dict[int, GroupChange]:
        """The rows that a scan finds get the values of the row with their key, or go if they belong elsewhere."""
        found: dict[int, GroupChange] = {}
        tree = RowGroupPlans(scan.file).tree
        names = self._files.partition_values.names
        values = partition_values_of(self._files, self._numbers[scan.file.name])
        fits = not self._moves_all and self.data.fits(scan.file, names)
        stays = self._stays(values) & ~self._added if fits else np.zeros(self.data.num_rows, bool)
        for row_group, rows in scan.matching_rows():
            numbers = rows.rows()
            places = self.data.places_of(keys_of_rows(scan, row_group, rows, self.data.key, values))
            there = places >= 0
            kept = there & stays[places]
            gone = numbers[there & ~kept]
            self._replaced[places[kept]] = True
            if there.any():
                change = self.data.leaves(scan.file, tree, places[kept]) if kept.any() else {}
                mask = _mask(gone, scan.file.num_rows_of(row_group)) if len(gone) else None
                found[row_group] = GroupChange(mask, numbers[kept] if kept.any() else None, change)
        return found

    def table(self) -> Table:
        """The rows to add."""
        return self.data.table(np.flatnonzero(~(self._replaced | self._added)))

    def leaves(self, file: OpenFile) -> list[list[LeafData]]:
        """The same as leaves of row groups as large as the largest of the file."""
        rows = np.flatnonzero(~self._replaced)
        most = max([file.num_rows_of(k) for k in range(file.num_row_groups)], default=0) or 1 << 20
        tree = RowGroupPlans(file).tree
        parts = [rows[k : k + most] for k in range(0, len(rows), most)]
        found = [self.data.leaves(file, tree, part) for part in parts]
        return [[leaves[k] for k in sorted(leaves)] for leaves in found]

    def _stays(self, values: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """The rows of the data that belong to a partition."""
        stays = np.ones(self.data.num_rows, bool)
        for name, value in values.items():
            stays &= np.array([own == value for own in self.data.values_of(name)], bool)
        return stays


def _mask(numbers: Int64Array, num_rows: int) -> Rows:
    mask = np.zeros(num_rows, bool)
    mask[numbers] = True
    return rows_of(RowMask.of_bools(mask))


_SHOWN = 60


def check_names(given: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise :class:`OptionError` for data whose columns are not those of the source."""
    missing = [name for name in wanted if name not in given]
    more = [name for name in given if name not in wanted]
    for names, what in ((missing, "lacks"), (more, "has, and the source has not,")):
        if names:
            raise OptionError(f"the data {what} the columns {', '.join(names)}")


class UpsertedRows:
    """Rows with the columns of a dataset, of which no two have the same key."""

    def __init__(self, data: Any, schema: Schema, key: Sequence[str]) -> None:
        """Raises :class:`OptionError` for columns that are missing or unknown, and :class:`DataError` for keys that are
        null, or there twice."""
        given, _ = ingest(data)
        check_names(given.names, schema.names)
        self.schema = schema
        _, batches = ingest(data, schema)
        self._columns = _joined(list(batches), schema)
        self.num_rows = len(self._columns[0]) if self._columns else 0
        self.key = list(key)
        for name in self.key:
            if schema.field(name).type.children:
                raise OptionError("the key must be columns of single values, and this one is nested", column=name)
        self._places = self._by_key()
        self._leaves: dict[int, tuple[SchemaTree, list[LeafData]]] = {}

    def _by_key(self) -> dict[tuple[Any, ...], int]:
        found: dict[tuple[Any, ...], int] = {}
        for row, values in enumerate(self._key_values(self.key)):
            for name, value in zip(self.key, values, strict=True):
                if value is None or value != value:
                    raise DataError(f"row {row} has no key: it is {'null' if value is None else 'NaN'}", column=name)
            if found.setdefault(values, row) != row:
                shown = ", ".join(f"{name}={value!r:.{_SHOWN}}" for name, value in zip(self.key, values, strict=True))
                raise DataError(f"rows {found[values]} and {row} have the same key: {shown}")
        return found

    def _key_values(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        table = self.table(np.arange(self.num_rows))
        return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))

    def filters(self) -> Expression:
        """True for rows that may have one of the keys: exactly these, if the key is one column."""
        table = self.table(np.arange(self.num_rows))
        return reduce(and_, (key_filter((name,), table.column(name)) for name in self.key))

    def places_of(self, keys: Sequence[tuple[Any, ...]]) -> Int64Array:
        """The row with each of these keys. -1 where there is none."""
        return np.array([self._places.get(values, -1) for values in keys], np.int64)

    def values_of(self, name: str) -> list[Any]:
        """The values of a column."""
        return self.table(np.arange(self.num_rows)).column(name).to_pylist()

    def table(self, rows: Int64Array) -> Table:
        """Some of the rows."""
        columns = [take(column, rows) for column in self._columns]
        return Table(self.schema, [Batch(columns, len(rows))])

    def fits(self, file: OpenFile, others: Sequence[str]) -> bool:
        """Whether a file has all of the columns and no more, beside the ``others``."""
        stored = {node.name for node in file.tree.root.children}
        return {*self.schema.names} - {*others} == stored - {*others}

    def leaves(self, file: OpenFile, tree: SchemaTree, rows: Int64Array) -> dict[int, LeafData]:
        """Some of the rows as the leaves of a file. ``tree``: that of its stored schema.

        Raises :class:`DataError` for values that the file's types cannot hold.
        """
        known = self._leaves.get(id(file.tree))
        if known is None:
            known = self._leaves[id(file.tree)] = file.tree, self._shredded(file, tree)
        return {leaf.node.column: leaf for leaf in picked(known[1], rows)}

    def _shredded(self, file: OpenFile, tree: SchemaTree) -> list[LeafData]:
        fields = file.fields.schema
        own = self.table(np.arange(self.num_rows)).select(fields.names)
        _, batches = ingest(own, Schema(fields.fields))
        columns = _joined(list(batches), fields)
        found: list[LeafData] = []
        reads = file.tree.root.children
        for node, read, column in zip(tree.root.children, reads, columns, strict=True):
            check_calendar(read, column)
            found += shred_column(column, shape_of(node), self.num_rows)
        return found


def _joined(batches: Sequence[RecordBatch], schema: Schema) -> list[Column]:
    """The columns of all batches."""
    if not batches:
        raise OptionError("the data have no rows")
    return [concat([batch.columns[k] for batch in batches]) for k in range(len(schema.fields))]
