"""A file without some of its rows: row groups that keep all rows are copied, the others are made anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pyparq.arrow.pandas_key import PANDAS, in_other_order
from pyparq.arrow.schema.hints import ARROW_SCHEMA
from pyparq.arrow.schema.keys import keys_of, with_keys
from pyparq.encryption.writing import CLEAR_FILE, FileEncryption
from pyparq.format import ttypes as tt
from pyparq.index.row_ranges import Int64Array, RowRanges, Rows, as_mask, rows_of
from pyparq.index.statistics import writer_is_trusted
from pyparq.io.sink import Sink
from pyparq.maintenance.footer_edit import BOUNDS, OLD_BOUNDS, FooterTree, needs_its_writer
from pyparq.maintenance.row_changes.copied_groups import Copied, whole_chunks
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans
from pyparq.maintenance.row_changes.stored_rows import StoredRows, picked, with_rows
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import to_bytes
from pyparq.write.column_plans import SortPlan, WritePlan
from pyparq.write.file_layout import CREATED_BY, FileLayout
from pyparq.write.row_groups import RowGroupEncoder, leaf_bytes
from pyparq.write.shred import LeafData
from pyparq.write.sort import first_unsorted, sort_order


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What happens to the rows of one row group."""

    gone: Rows | None = None
    """Rows that are left out. ``None``: none."""
    changed: Int64Array | None = None
    """Numbers of rows that get other values, rising. They are none of those that are gone."""
    values: Mapping[int, LeafData] = field(default_factory=dict)
    """The other values, by leaf column, a row for each of ``changed``."""


@dataclass(slots=True)
class Counts:
    """What was done to one file."""

    rows_left: int = 0
    copied: int = 0
    """Row groups."""
    made: int = 0
    dropped: int = 0
    bytes_copied: int = 0
    bytes_written: int = 0
    """Bytes of the new file that were not copied."""


class ChangedFile:
    """Writes ``file`` without the rows that ``changes`` name, by row group. The caller commits.

    Raises the errors of a read for damage in row groups that change.
    """

    def __init__(
        self,
        file: OpenFile,
        changes: Mapping[int, GroupChange],
        added: Sequence[Sequence[LeafData]] = (),
        encryption: FileEncryption = CLEAR_FILE,
    ) -> None:
        """``added``: leaves of more row groups, behind those of the file. ``encryption``: of the new file."""
        file.check_chunk_counts()
        file.check_places()
        self.file = file
        self._changes = changes
        self._added = added
        self._encryption = encryption
        self._plans = RowGroupPlans(file, file.options.use_threads)
        self._rows = StoredRows(file, self._plans.tree)
        self._footer = FooterTree(file)
        self.counts = Counts()
        self.why_anew = self._why_anew()
        """Why row groups that keep all rows are made anew, too; empty if they are copied."""

    @property
    def rows_left(self) -> int:
        """Rows of the new file."""
        rows = sum(self.file.num_rows_of(k) for k in range(self.file.num_row_groups))
        gone = sum(change.gone.count for change in self._changes.values() if change.gone is not None)
        return rows - gone + sum(leaves[0].num_rows for leaves in self._added)

    @property
    def bytes_read(self) -> int:
        """Bytes that were fetched of row groups that are made anew."""
        return self._rows.bytes_read

    def _why_anew(self) -> str:
        if self._encryption.encrypts:
            return "encryption binds each row group to its number and its file"
        if needs_its_writer(self.file.created_by):
            return f"readers must know that {self.file.created_by} wrote the pages that would be copied"
        if self._footer.has_unknown_offsets(4):
            return "the footer has fields that are not known and may be offsets"
        return ""

    def write(self, sink: Sink) -> None:
        """Write the whole file."""
        file, counts = self.file, Counts()
        copied = None if self.why_anew else Copied(file, self._footer, self._without_bounds())
        layout = _ChangedLayout(sink, self._plans.default(), self._encryption, self._new_footer())
        layout.start()
        encoder = _Encoder(layout, self._encryption)
        for k in range(file.num_row_groups):
            change = self._changes.get(k)
            if copied is not None and self._copies(k):
                group = copied.copy(k, layout.num_row_groups, sink)
                layout.add_stored(group, self._plans.filter_layout(k))
                counts.copied += 1
                continue
            made = _MadeAnew(self._rows, k, change or GroupChange())
            if made.num_rows:
                plan = self._plans.of(k, made.num_rows / max(file.num_rows_of(k), 1))
                encoder.add(made, plan, sort=change is not None and change.changed is not None)
                counts.made += 1
            else:
                counts.dropped += 1
        for more in self._added:
            encoder.add(_Given(more), self._plans.for_more_rows(), sort=True)
            counts.made += 1
        counts.rows_left = layout.num_rows
        layout.finish({})
        counts.bytes_copied = 0 if copied is None else copied.num_bytes
        counts.bytes_written = sink.position - counts.bytes_copied
        self.counts = counts

    def _copies(self, row_group: int) -> bool:
        """Whether the row group keeps all its rows, and may be copied."""
        return row_group not in self._changes and whole_chunks(self.file, row_group, self._footer.start)

    # ---- what the footer says

    def _new_footer(self) -> tt.FileMetaData:
        """The footer of the new file, without schema and row groups."""
        meta = self.file.footer.meta
        return tt.FileMetaData(
            version=meta.version, row_groups=[], key_value_metadata=self._key_values() or None,
            created_by=self.file.created_by if self._keeps_writer else CREATED_BY, column_orders=meta.column_orders,
        )  # fmt: skip

    @property
    def _keeps_writer(self) -> bool:
        """Whether all row groups are of the file's writer: none is made anew, or the writer is this one."""
        if self.file.created_by == CREATED_BY:
            return True
        if self.why_anew or self._added:
            return False
        for k in range(self.file.num_row_groups):
            change = self._changes.get(k)
            if change is None:
                if not self._copies(k):
                    return False
            elif change.gone is None or change.gone.count < self.file.num_rows_of(k):
                return False
        return True

    def _without_bounds(self) -> dict[int, Sequence[int]]:
        """Bounds that readers would wrongly believe under the new writer's name, by leaf."""
        file = self.file
        if self._keeps_writer:
            return {}
        faulty = (leaf.column for leaf in file.tree.leaves if not writer_is_trusted(leaf.type, file.created_by))
        return dict.fromkeys(faulty, (*OLD_BOUNDS, *BOUNDS))

    def _key_values(self) -> list[Any]:
        """The keys of the file. What they say of its rows is left out: pandas' range of row labels, and the boxes of
        GeoParquet."""
        file = self.file
        stored = {pair.key: pair.value for pair in file.footer.meta.key_value_metadata or ()}
        changed = dict[str, str | bytes | None]()
        schema = replace(file.fields.schema, metadata={k.encode(): to_bytes(v) for k, v in stored.items()})
        pandas = in_other_order(schema).metadata.get(PANDAS)
        if pandas is not None and pandas != to_bytes(stored.get(PANDAS.decode())):
            changed[PANDAS.decode()] = pandas.decode()
        geo = _without_boxes(stored.get("geo"))
        if geo is not None:
            changed["geo"] = geo
        hint = ARROW_SCHEMA.decode()
        if changed and hint in stored:
            there = keys_of(to_bytes(stored[hint]))
            inner = {k.encode(): to_bytes(v) for k, v in changed.items() if k.encode() in there}
            changed[hint] = with_keys(to_bytes(stored[hint]), inner, ()).decode()
        pairs = file.footer.meta.key_value_metadata or ()
        return [tt.KeyValue(key=pair.key, value=changed.get(pair.key, pair.value)) for pair in pairs]


def _without_boxes(stored: str | bytes | None) -> str | None:
    """The key of GeoParquet without the boxes around the geometries of its columns. ``None`` if it has none."""
    try:
        geo = json.loads(stored or "{}")
        boxes = [column for column in geo["columns"].values() if "bbox" in column]
        for column in boxes:
            del column["bbox"]
    # the text comes from a file and may be anything
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):
        return None
    return json.dumps(geo, separators=(",", ":")) if boxes else None


class _MadeAnew:
    """The rows that a row group keeps. Its columns are read by the threads that encode them, so that few of them are
    in memory at a time."""

    def __init__(self, rows: StoredRows, row_group: int, change: GroupChange) -> None:
        self._rows = rows
        self._row_group = row_group
        self._values = change.values
        kept = as_mask(RowRanges.all(rows.begin(row_group)))
        kept = kept if change.gone is None else kept & ~as_mask(change.gone)
        self._kept, self.num_rows = rows_of(kept), kept.count
        self._order = np.arange(self.num_rows)
        """Of the rows, where those from the count on are the changed ones."""
        if change.changed is not None:
            self._order[kept.ranks(change.changed)] = self.num_rows + np.arange(len(change.changed))
        self.sizes = rows.sizes(row_group)
        self.together = rows.together

    def leaves(self, columns: Sequence[int]) -> list[LeafData]:
        """Leaves by their numbers."""
        found = zip(columns, self._rows.leaves(self._row_group, self._kept, columns), strict=True)
        values = self._values
        return [with_rows(leaf, values[k], self._order) if k in values else leaf for k, leaf in found]


class _Given:
    """A row group of leaves that are there."""

    together = None

    def __init__(self, leaves: Sequence[LeafData]) -> None:
        self._leaves = leaves
        self.num_rows = leaves[0].num_rows
        self.sizes = [leaf_bytes(leaf) for leaf in leaves]

    def leaves(self, columns: Sequence[int]) -> list[LeafData]:
        return [self._leaves[k] for k in columns]


class _Encoder:
    """Encodes row groups one after the other. Those of an encrypted file share a plan, as they share a count."""

    def __init__(self, layout: _ChangedLayout, encryption: FileEncryption) -> None:
        self._layout = layout
        self._encryption = encryption
        self._shared: tuple[WritePlan, RowGroupEncoder] | None = None

    def add(self, group: _MadeAnew | _Given, plan: WritePlan, *, sort: bool) -> None:
        """``sort``: put the rows into the order that the row group declares. Rows that only lost some have it."""
        encoder = RowGroupEncoder(plan, self._layout, self._encryption)
        if self._encryption.encrypts:
            if self._shared is None:
                self._shared = plan, encoder
            plan, encoder = self._shared
        if sort and plan.sort is not None:
            group = _Given(_in_order(group.leaves(range(len(group.sizes))), plan.sort))
        try:
            encoder.add_leaves(group.num_rows, group.leaves, group.sizes, group.together)
            encoder.wait_until_stored()
        except BaseException:
            encoder.drop()
            raise


def _in_order(leaves: Sequence[LeafData], sort: SortPlan) -> Sequence[LeafData]:
    """The rows in the order that the row group declares."""
    columns = [leaves[node.column] for node, _ in sort.keys]
    keys = [key for _, key in sort.keys]
    if first_unsorted(columns, keys) is None:
        return leaves
    return picked(leaves, sort_order(columns, keys))


class _ChangedLayout(FileLayout):
    """The layout of a file whose footer is like that of another."""

    def __init__(self, sink: Sink, plan: WritePlan, encryption: FileEncryption, footer: tt.FileMetaData) -> None:
        super().__init__(sink, plan, encryption, footer.version)
        self._like = footer

    def _footer(self, key_values: Any) -> tt.FileMetaData:
        self._like.schema, self._like.num_rows = self._plan.elements, self.num_rows
        return self._like
