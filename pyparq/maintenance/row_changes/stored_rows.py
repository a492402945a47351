"""Rows of a row group as leaves: values and levels as they are stored, whatever types Arrow would show.

Nothing is translated on the way to the new file: INT96 stays INT96, days of an old calendar stay, and lists keep the
form that their writer chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.errors import UnsupportedError, located, reading
from pyparq.format.hybrid_calendar import unmoved_from
from pyparq.format.leaf_values import count_of, entries
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.index.row_ranges import Int64Array, RowRanges, Rows
from pyparq.read.column_reads import ColumnReader
from pyparq.read.column_reads import Wanted as WantedRows
from pyparq.read.decode.leaves import DecodedLeaf, is_flat, spelled_out
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import Selection
from pyparq.write.physical_values import leaf_values
from pyparq.write.shred import Known, LeafData, concat_leaf_data
from pyparq.write.sort import Rows as Picked


def check_calendar(node: Node, column: Column) -> None:
    """Raise :class:`UnsupportedError` for values that the calendar of a file of old Spark does not store as they are:
    days before 15 October 1582, and times before 3 January 1900. ``node``: the column, as the file is read."""
    hybrid = [leaf.type for leaf in node.leaves() if leaf.type.hybrid]
    if not hybrid or column.null_count == len(column):
        return
    known, (leaf, *others) = column.valid_mask(), hybrid
    if others or not node.is_leaf:
        raise UnsupportedError("days of the old calendar inside other columns cannot get values", column=node.dotted)
    if column.type.kind == "timestamp":
        leaf = replace(leaf, unit=_UNITS[column.type.format[2]])
    values = np.asarray(column.values())
    if (values if known is None else values[known]).min() < unmoved_from(leaf):
        raise UnsupportedError(
            "the file has the calendar of old Spark: days before 15 October 1582 and times before 3 January 1900 "
            "cannot be written there, as it stores them in another way",
            column=node.dotted,
        )


_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}

REQUEST_BYTES = 8 << 20
"""Of columns in a store that are fetched together. Two such parts are in memory at a time."""


class StoredRows:
    """Reads rows of a file as leaves of ``tree``, the tree of its stored schema."""

    def __init__(self, file: OpenFile, tree: SchemaTree) -> None:
        options = replace(
            file.options, use_arrow_schema=False, coerce_int96_timestamp_unit="bytes", read_dictionary=(),
            binary_columns=(), variants="stored", out_of_range="raise",
        )  # fmt: skip
        self._file = file.with_options(options)
        self._tree = tree
        self._reader = ColumnReader(self._file)

    @property
    def bytes_read(self) -> int:
        """Bytes that were fetched for the rows."""
        return self._file.fetcher.counts.bytes

    def begin(self, row_group: int) -> int:
        """The number of rows of a row group. Those that were read before are not held any more."""
        self._reader.account.restart()
        return self._file.num_rows_of(row_group)

    def sizes(self, row_group: int) -> list[int]:
        """About as many bytes as the leaves of a row group take."""
        chunks = (self._file.chunk(row_group, leaf) for leaf in self._file.tree.leaves)
        return [max(chunk.meta.total_uncompressed_size, 0) for chunk in chunks]

    @property
    def together(self) -> int | None:
        """How many bytes of columns are worth a request. ``None``: any."""
        return None if self._file.fetcher.source.is_local else REQUEST_BYTES

    def leaves(self, row_group: int, rows: Rows, columns: Sequence[int]) -> list[LeafData]:
        """Some leaves of a row group at these rows."""
        stored = [self._file.tree.leaves[k] for k in columns]
        whole = RowRanges.all(self._file.num_rows_of(row_group))
        selection = Selection(row_group, whole, whole)
        with reading(file=self._file.name):
            wanted = [_as_codes(WantedRows.at(selection, leaf, rows)) for leaf in stored]
            decoded = self._reader.read(wanted)
            return [self._leaf(row_group, *one) for one in zip(decoded, columns, strict=True)]

    def _leaf(self, row_group: int, decoded: DecodedLeaf, number: int) -> LeafData:
        column, count, node = decoded.column, decoded.rows.count, self._tree.leaves[number]
        valid = column.valid_mask()
        defs, reps = decoded.def_levels, decoded.rep_levels
        if node.type.kind == "null":
            valid = np.zeros(len(column), np.bool_)
        if is_flat(decoded.node):
            defs = None if valid is None or not node.max_def else valid.astype(np.uint8)
        known = None
        if column.dictionary is not None:
            known = _used_entries(column, column.dictionary, valid, node, self._file.chunk(row_group, decoded.node))
            with located(row_group=row_group, column=node.dotted):
                column = spelled_out(column, self._reader.account, self._file.options.limits.max_column)
        values = leaf_values(column, valid, node.type, check_text=False)
        return LeafData(node, count, decoded.num_levels, values, defs, reps, known)


def _as_codes(wanted: WantedRows) -> WantedRows:
    """The same, as codes of the chunk's dictionary where all pages have them: the new chunk gets their entries, and
    no value is looked up in a dictionary again."""
    flat = is_flat(wanted.node)
    return replace(wanted, tested=flat, by_entries=flat)


def _used_entries(column: Column, dictionary: Column, valid: Any, node: Node, chunk: Chunk) -> Known:
    """The entries of a dictionary that values have, each once if the chunk's statistics say so. No other entry may get
    into a new file: it may be a value of a row that is gone."""
    codes = np.asarray(column.values(), np.int32)
    codes = codes if valid is None else codes[valid]
    stored = leaf_values(dictionary, None, node.type, check_text=False)
    used = np.zeros(count_of(stored), np.bool_)
    used[codes] = True
    statistics = chunk.meta.statistics
    distinct = -1 if statistics is None or statistics.distinct_count != len(used) else int(np.count_nonzero(used))
    if not used.all():
        kept, places = np.flatnonzero(used), np.empty(len(used), np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        codes, stored = places[codes], entries(stored, kept)
    return Known(stored, None, codes, distinct)


def with_rows(old: LeafData, new: LeafData, order: Int64Array) -> LeafData:
    """The rows ``order`` of a leaf: numbers from the old ones' count on are those of the new ones."""
    return Picked(concat_leaf_data([old, new])).pick(order)


def picked(leaves: Sequence[LeafData], order: Int64Array) -> list[LeafData]:
    """Some rows of leaves, in this order."""
    return [Picked(leaf).pick(order) for leaf in leaves]
