"""``delete``: rows removed from files that exist. ``update``: they get other values in some columns: constants, nulls,
or expressions of the row. Only row groups that hold such rows are made anew.

A column keeps its type. A value that the type cannot hold exactly is refused. In columns of floats, numbers become the
nearest float.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.ingest import ingest
from pyparq.datasets.dataset import key_filter
from pyparq.errors import DataError, OptionError, located
from pyparq.filters.bind import computed_value
from pyparq.filters.computed import BINARY, BOOL, NUMBER, TEXT, BoundValue, Texts, Vector
from pyparq.filters.exact_numbers import Exact
from pyparq.filters.expression import Expression, Value
from pyparq.filters.times import timestamp_ns
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_node import Node, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Field, Schema
from pyparq.index.row_ranges import Int64Array, RowRanges, Rows
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.row_changes.applying import apply, opened, relisted, table_of
from pyparq.maintenance.row_changes.changed_file import GroupChange
from pyparq.maintenance.row_changes.file_change import rows_go
from pyparq.maintenance.row_changes.places import ApplyOptions
from pyparq.maintenance.row_changes.report import ChangeReport
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans
from pyparq.maintenance.row_changes.stored_rows import check_calendar, picked
from pyparq.option_checks import keywords
from pyparq.read.column_reads import ColumnReader
from pyparq.read.column_reads import Wanted as WantedRows
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import Selection
from pyparq.read.scan import Scan
from pyparq.write.shred import LeafData, concat_leaf_data, shred_column

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.encryption.properties import DecryptionProperties


@keywords
def delete(
    source: Any,
    filters: Filters | None = None,
    *,
    keys: Mapping[str | tuple[str, ...], Any] | None = None,
    keep_empty: bool = False,
    dry_run: bool = False,
    force: bool = False,
    retries: int = 0,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> ChangeReport:
    """Delete the rows for which ``filters`` is true. Row groups without such rows are copied byte for byte, and files
    without them stay untouched.

    ``source``: a file (a path or URL), or many: a folder, a glob, a list, a :class:`pyparq.Dataset`. A ``DeltaTable``
    or a table of pyiceberg gets new files by one commit (docs/delta-and-iceberg.md). ``filters``: as in
    :func:`pyparq.read_table`. Rows for which it is null stay. ``keys``: instead of ``filters``, ``{column: keys}`` with
    a list or array of up to a million values. With several columns, a row must have a key of each. ``keep_empty``: keep
    files of which no row is left, with their schema; they are removed otherwise. ``dry_run``: write nothing, and return
    the same report. ``force``: also change files of a table of Delta Lake, Apache Iceberg or Apache Hudi. ``retries``:
    how often to start again if another program has changed or added files meanwhile (docs/deleting.md). ``progress``:
    called with the number of files done and the number of files that may hold such rows. ``storage_options``,
    ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``decryption``: keys. Encrypted files keep them, with
    their algorithm and layout. ``fsync``: flush new files to disk before they get their names. Other options: as in
    :class:`pyparq.ReadOptions`.

    The files of a local folder change together. Others are replaced one by one, each only if it has not changed
    meanwhile. No value of a deleted row is left in the new files. docs/deleting.md has the details.

    Returns a :class:`pyparq.ChangeReport`. Raises :class:`pyparq.ChangedFileError` and
    :class:`pyparq.WriteConflictError` where another program changes the same files more than ``retries`` times, and
    what :func:`pyparq.dataset` raises. The files are then as they were.

    Example::

        pyparq.write_table({"user": [6, 7, 7]}, "logins.parquet")
        report = pyparq.delete("logins.parquet", pyparq.col("user") == 7)
        print(report)
    """
    again = partial(
        opened, source, storage_options, filesystem, decryption=decryption, limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums, use_threads=use_threads,
    )  # fmt: skip
    dataset = again()
    asked = rows_asked_for(filters, keys)
    options = ApplyOptions(
        keep_empty, dry_run, force, fsync, progress, table_of(source), "DELETE", retries, relisted(source, again),
        only_removes=True,
    )  # fmt: skip
    return apply(dataset, asked, rows_go, options)


def rows_asked_for(filters: Filters | None, keys: Mapping[Any, Any] | None) -> Any:
    """The filter that ``filters`` or ``keys`` say."""
    if (filters is None) == (keys is None):
        raise OptionError("give either filters or keys={column: keys}: which rows to change")
    if keys is None:
        return filters
    if not isinstance(keys, Mapping) or not keys:
        raise OptionError(f"keys must be a dict of a column to its keys, not {keys!r:.80}")
    return reduce(and_, (key_filter((name,) if isinstance(name, str) else name, of) for name, of in keys.items()))


if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.encryption.properties import DecryptionProperties


@keywords
def update(
    source: Any,
    filters: Filters | None,
    values: Mapping[str, Any],
    *,
    keys: Mapping[str | tuple[str, ...], Any] | None = None,
    dry_run: bool = False,
    force: bool = False,
    retries: int = 0,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> ChangeReport:
    """Change values of some columns, in the rows for which ``filters`` is true. Row groups without such rows are copied
    byte for byte, and files without them stay untouched.

    ``values``: ``{column: value}``; a value is a constant, ``None`` for null, or an expression of the row's columns
    such as ``pyparq.col("price") * 2``. All expressions see the row as it was. A column keeps its type: a value that it
    cannot hold exactly is refused, but numbers in columns of floats become the nearest float. Dates and times may be
    text, as in filters. Only whole columns can get values, and not those by which a folder or table is partitioned. The
    other arguments are those of :func:`pyparq.delete`.

    If a row group declares an order, its rows are sorted again.

    Returns a :class:`pyparq.ChangeReport`. Raises :class:`pyparq.DataError` and :class:`pyparq.OptionError` for values
    that do not fit, null in a required column included, and what :func:`pyparq.delete` raises. The files are then as
    they were.

    Example::

        pyparq.write_table({"user": [6, 7], "email": ["a@b.c", "d@e.f"], "price": [1.0, 2.0]}, "prices.parquet")
        pyparq.update("prices.parquet", pyparq.col("user") == 7, {"email": None, "price": pyparq.col("price") * 2})
    """
    if not isinstance(values, Mapping) or not values:
        raise OptionError(f"values must be a dict of a column to its value, not {values!r:.80}")
    again = partial(
        opened, source, storage_options, filesystem, decryption=decryption, limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums, use_threads=use_threads,
    )  # fmt: skip
    dataset, table = again(), table_of(source)
    for name in values:
        if name in dataset.partitions.names:
            where = "the names of folders hold" if table is None else "the table is partitioned by"
            raise OptionError(f"{where} the column, so rows would have to move", column=str(name))

    def find(scan: Scan) -> dict[int, GroupChange]:
        return rows_change(scan, values)

    asked = rows_asked_for(filters, keys)
    same = not any(isinstance(value, Value) for value in values.values())
    return apply(dataset, asked, find, ApplyOptions(
        True, dry_run, force, fsync, progress, table, "UPDATE", retries, relisted(source, again), same,
        columns=tuple(name if isinstance(name, str) else name[0] for name in values),
    ))  # fmt: skip


def rows_change(scan: Scan, values: Mapping[Any, Any]) -> dict[int, GroupChange]:
    """The rows of a scan get these values."""
    new: NewValues | None = None
    found: dict[int, GroupChange] = {}
    for row_group, rows in scan.matching_rows():
        if new is None:
            new = NewValues(scan.file, RowGroupPlans(scan.file).tree, values)
        found[row_group] = GroupChange(None, rows.rows(), new.leaves(row_group, rows))
    return found


class NewValues:
    """The new values of some columns, for the rows of one file."""

    def __init__(self, file: OpenFile, tree: SchemaTree, values: Mapping[Any, Any]) -> None:
        """``tree``: that of the file's stored schema.

        Raises :class:`ColumnNotFoundError`, :class:`FilterError` and :class:`OptionError` for values that do not fit
        their columns.
        """
        self._file = file
        self._reader = ColumnReader(file)
        self._constants: dict[int, list[LeafData]] = {}
        """By top-level column: the leaves of one row."""
        self._computed: list[tuple[Node, Field, BoundValue]] = []
        for name, value in values.items():
            node = _top(tree, name)
            place = tree.root.children.index(node)
            field = file.fields.schema.fields[place]
            with located(file=file.name, column=node.dotted):
                self._add(node, place, field, value)

    def _add(self, node: Node, place: int, field: Field, value: Any) -> None:
        if isinstance(value, Value):
            bound = computed_value(value, self._file.tree, self._file.fields.shown)
            if bound.family not in (NUMBER, TEXT, BINARY, BOOL):
                raise OptionError(f"{value!r} cannot be stored: only numbers and strings can be computed")
            self._computed.append((node, field, bound))
        elif isinstance(value, Expression):
            raise OptionError(f"{value!r} is a condition, and not a value")
        else:
            read = self._file.tree.root.children[place]
            self._constants[place] = _leaves(node, field, [_constant(value, node)], read)

    def leaves(self, row_group: int, rows: Rows) -> dict[int, LeafData]:
        """The new values of these rows, by leaf column."""
        found: dict[int, LeafData] = {}
        zeros = np.zeros(rows.count, np.int64)
        for leaves in self._constants.values():
            found |= {leaf.node.column: leaf for leaf in picked(leaves, zeros)}
        columns = self._columns(row_group, rows)
        for node, field, bound in self._computed:
            with located(file=self._file.name, row_group=row_group, column=node.dotted):
                vector = bound.of_rows(columns)
                values = _python_values(vector, bound.family, node, rows.rows())
                found |= {leaf.node.column: leaf for leaf in _leaves(node, field, values)}
        return found

    def _columns(self, row_group: int, rows: Rows) -> dict[int, Column]:
        """The columns that are computed with."""
        nodes = {leaf.node.column: leaf.node for _, _, bound in self._computed for leaf in bound.leaves()}
        if not nodes:
            return {}
        whole = RowRanges.all(self._file.num_rows_of(row_group))
        selection = Selection(row_group, whole, whole)
        self._reader.account.restart()
        decoded = self._reader.read([WantedRows.at(selection, node, rows) for node in nodes.values()])
        return {leaf.node.column: leaf.column for leaf in decoded}


def _top(tree: SchemaTree, name: Any) -> Node:
    node = tree.find(name)
    if node.parent is not tree.root:
        raise OptionError("only whole columns get other values, and this one is part of another", column=node.dotted)
    return node


def _constant(value: Any, node: Node) -> Any:
    """A constant as the column's type takes it: dates and times may be ISO 8601 text, as in filters."""
    kind = node.type.kind if node.is_leaf else ""
    try:
        if isinstance(value, str) and kind == "date":
            return dt.date.fromisoformat(value.strip())
        if isinstance(value, str) and kind == "time":
            return dt.time.fromisoformat(value.strip())
        if isinstance(value, str) and kind in ("timestamp", "int96"):
            return _moment(value)
    except ValueError as error:
        raise OptionError(f"{value!r:.60} does not fit the column: {error}") from None
    if isinstance(value, Decimal) and kind in FLOAT_KINDS:
        return float(value)
    if isinstance(value, Decimal) and kind in ("int", "uint"):
        return _integer(*value.as_integer_ratio())
    return Decimal(value) if isinstance(value, Decimal) else value


def _moment(text: str) -> Any:
    found = timestamp_ns(text)
    if found is None or found[0] != int(found[0]):
        raise ValueError("it has digits beyond nanoseconds")
    ns, aware = int(found[0]), found[1]
    if not aware:
        return np.datetime64(ns, "ns")
    if ns % 1000:
        raise ValueError("with a zone, text has microseconds at most")
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=ns // 1000)


def _leaves(node: Node, field: Field, values: Sequence[Any], read: Node | None = None) -> list[LeafData]:
    """The leaves of a column with these Python values. ``read``: the node by which the file is read, where the values
    may be days."""
    batches = [batch for batch in ingest({field.name: list(values)}, Schema((field,)))[1] if batch.num_rows]
    for batch in batches:
        if read is not None:
            check_calendar(read, batch.columns[0])
    shape = shape_of(node)
    parts = [shred_column(batch.columns[0], shape, batch.num_rows) for batch in batches]
    return [concat_leaf_data(same) for same in zip(*parts, strict=True)]


def _python_values(vector: Vector, family: str, node: Node, rows: Int64Array) -> list[Any]:
    """The values of a vector, as the column's type takes them. ``rows``: their numbers in the row group."""
    count = len(rows)
    valid = np.ones(count, bool) if vector.valid is None else np.broadcast_to(vector.valid, (count,))
    data = vector.data
    if isinstance(data, Texts):
        words = np.broadcast_to(data.objects(), (count,))
        values: list[Any] = [word.decode() if family == TEXT else word for word in words.tolist()]
    elif isinstance(data, Exact):
        nums, dens = (np.broadcast_to(part, (count,)).tolist() for part in (data.num, data.den))
        make, values = _number_maker(node), []
        for row, num, den, ok in zip(rows.tolist(), nums, dens, valid.tolist(), strict=True):
            try:
                values.append(make(num, den) if ok else None)
            except DataError as error:
                raise DataError(f"row {row}: {error.message}") from None
    else:
        values = np.broadcast_to(data, (count,)).tolist()
    if not node.max_def and not valid.all():
        raise DataError(f"row {rows[np.argmin(valid)]} would be null, but the column is required (not nullable)")
    return [value if ok else None for value, ok in zip(values, valid.tolist(), strict=True)]


def _number_maker(node: Node) -> Any:
    if node.type.kind in FLOAT_KINDS:
        return lambda num, den: num / den
    if node.type.kind == "decimal":
        scale, most = node.type.scale, 10**node.type.precision
        return lambda num, den: _decimal(Fraction(num, den), scale, most)
    signed = node.type.kind == "int"
    if signed or node.type.kind == "uint":
        bits = node.type.bits
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return lambda num, den: _within(_integer(num, den), low, high)
    return _integer


def _within(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise DataError(f"{value} is not in the range of the column's type, {low} to {high}")
    return value


def _integer(num: int, den: int) -> Any:
    whole, rest = divmod(num, den)
    if rest:
        raise DataError(f"{Fraction(num, den)} is no whole number, and the column holds only these")
    return whole


def _decimal(value: Fraction, scale: int, most: int) -> Decimal:
    digits = value * 10**scale
    if digits.denominator != 1:
        raise DataError(f"{value} has more than {scale} digits behind the point")
    if abs(digits) >= most:
        raise DataError(f"{value} has more digits than the {len(str(most)) - 1} of the column")
    sign, number = int(digits < 0), abs(digits.numerator)
    return Decimal((sign, tuple(map(int, str(number))), -scale))
