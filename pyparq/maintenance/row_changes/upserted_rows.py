"""The rows of an ``upsert``: found again by their keys, and as the leaves of a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import concat, take
from pyparq.arrow.ingest import ingest
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.dataset import key_filter
from pyparq.errors import DataError, OptionError
from pyparq.filters.expression import Expression
from pyparq.format.nesting import shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.maintenance.row_changes.stored_rows import Int64Array, picked
from pyparq.read.footers.open_file import OpenFile
from pyparq.write.shred import LeafData, shred_column

_SHOWN = 60


class UpsertedRows:
    """Rows with the columns of a dataset, of which no two have the same key."""

    def __init__(self, data: Any, schema: Schema, key: Sequence[str]) -> None:
        """Raises :class:`OptionError` for columns that are missing or unknown, and :class:`DataError` for keys that are
        null, or there twice."""
        given, _ = ingest(data)
        missing = [name for name in schema.names if name not in given.names]
        more = [name for name in given.names if name not in schema.names]
        for names, what in ((missing, "lacks"), (more, "has, and the source has not,")):
            if names:
                raise OptionError(f"the data {what} the columns {', '.join(names)}")
        self.schema = schema
        _, batches = ingest(data, schema)
        self._columns = _joined(list(batches), schema)
        self.num_rows = len(self._columns[0]) if self._columns else 0
        self.key = list(key)
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
        """Whether a file has all of the columns, beside the ``others``."""
        return {*self.schema.names} - {*others} <= {node.name for node in file.tree.root.children}

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
        for node, column in zip(tree.root.children, columns, strict=True):
            found += shred_column(column, shape_of(node), self.num_rows)
        return found


def _joined(batches: Sequence[RecordBatch], schema: Schema) -> list[Column]:
    """The columns of all batches."""
    if not batches:
        raise OptionError("the data have no rows")
    return [concat([batch.columns[k] for batch in batches]) for k in range(len(schema.fields))]
