"""``merge``: files of one schema joined into one by copying their row groups byte for byte, below one footer with one
writer, one set of column orders and one set of keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyparq.arrow.schema.hints import ARROW_SCHEMA
from pyparq.arrow.schema.ipc_write import stored_schema
from pyparq.arrow.schema.keys import keys_of
from pyparq.datasets.common_schema import unify
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.discovery import discover
from pyparq.datasets.footers import open_listed
from pyparq.datasets.joint_keys import joint_keys
from pyparq.errors import EncryptionError, OptionError, SchemaError, UnsupportedError
from pyparq.format.hybrid_calendar import LEGACY_DATES, LEGACY_INT96, TIME_ZONE, VERSION, Hybrid, hybrid_of
from pyparq.format.types import DataType, Schema
from pyparq.index.statistics import writer_is_trusted
from pyparq.io.locations import both_located
from pyparq.io.sink import Sink, copy_range, open_sink, replace_only
from pyparq.io.url import is_url, local_path
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import check_no_table, opened_table
from pyparq.maintenance.footer_edit import (
    BOUNDS,
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    OFFSET_INDEX_LENGTH,
    OFFSET_INDEX_OFFSET,
    OLD_BOUNDS,
    FooterTree,
    moved_offset_index,
    needs_its_writer,
)
from pyparq.maintenance.in_place import check_not_managed, identity_of, is_same_file, remove_stale, replaced_source
from pyparq.maintenance.index_layout import Layout, free_ranges
from pyparq.maintenance.indexed_file import RECORD_KEY
from pyparq.option_checks import keywords
from pyparq.options import ReadOptions
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import to_bytes
from pyparq.read.plan.page_indexes import check_own_index, has_column_index, has_offset_index
from pyparq.runtime.tables import html_view, viewable
from pyparq.runtime.text import printable
from pyparq.write.file_layout import CREATED_BY
from pyparq.write.schema_hint import text_key, text_value

SMALL = 1 << 20
"""Row groups with fewer bytes cost more than they are worth."""


@dataclass(frozen=True, slots=True, repr=False)
class MergeReport:
    """What :func:`pyparq.merge` has done.

    Example::

        report = pyparq.merge(["flights.parquet", "flights.parquet"], "twice.parquet")
        print(report.num_files, report.num_rows)
    """

    target: str
    num_files: int
    num_rows: int
    num_row_groups: int
    num_bytes: int
    """Bytes of the new file."""
    dropped_keys: tuple[str, ...] = ()
    """Keys of metadata that are left out, because the files have different values for them. A key that is kept without
    a part has the part in parentheses: ``pandas (price)``."""
    notes: tuple[str, ...] = ()
    """What else is not as it was in the files."""

    @property
    def advice(self) -> str:
        """What to do about row groups that are too small to be read quickly; empty where they are not."""
        size = self.num_bytes // max(self.num_row_groups, 1)
        if self.num_row_groups < 2 or size >= SMALL:
            return ""
        return f"row groups have {size:,} bytes on average: pyparq.rewrite makes fewer, larger ones, read more quickly"

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("files", f"{self.num_files:,}"),
            ("written", f"{self.num_row_groups:,} row groups, {self.num_rows:,} rows, {self.num_bytes:,} bytes"),
            *(("note", note) for note in (*self.notes, self.advice) if note),
        ]
        return html_view(f"MergeReport {self.target}", facts)

    @printable
    def __repr__(self) -> str:
        done = f"{self.num_files:,} files, {self.num_row_groups:,} row groups, {self.num_rows:,} rows"
        more = f"; {self.advice}" if self.advice else ""
        return f"<MergeReport {self.target}: {done}, {self.num_bytes:,} bytes{more}>"


@keywords
def merge(
    source: Any,
    target: Any,
    *,
    key_value_metadata: Mapping[str, str | bytes | None] | None = None,
    force: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    limits: Limits | None = None,
    fsync: bool = False,
) -> MergeReport:
    """Join files of one schema into one file. Row groups, Bloom filters and page indexes are copied as they are, and
    nothing is decoded.

    ``source``: a list, folder or glob of files, or a :class:`pyparq.Dataset`; their row groups follow in that order.
    Values in the names of folders are not stored. ``target``: where the new file goes; it may be one of the files.
    ``key_value_metadata``: keys to set in the footer. Without it, a key is kept where all files that have it agree, and
    those of pandas and GeoParquet are joined. ``force``: write even into a folder that Delta Lake, Iceberg or Hudi
    manages. ``progress``: called with the number of files done and the number of files. ``storage_options``,
    ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``limits``: what a footer may demand. ``fsync``: flush
    the file to disk before it gets its name.

    A footer names one writer, and readers know faults of some. If all files have the same one, its name is kept.
    Otherwise the new file names pyparq, and bounds that readers would not have believed are left out
    (docs/rewriting.md). Row groups stay as small as they are: :func:`pyparq.rewrite` makes larger ones.

    Raises :class:`pyparq.SchemaError`, which names both files, for files of different schemas or units of durations,
    :class:`pyparq.UnsupportedError` for encrypted files and for those of a writer whose pages need its name, and
    :class:`pyparq.ChangedFileError` where the target is one of the files, and another program changed it meanwhile.

    Example::

        report = pyparq.merge("flights/*/*.parquet", "all.parquet")
        print(report)
    """
    source, target, storage_options = both_located(source, target, filesystem, storage_options)
    own = identity_of(target)
    listed, storage_options = _listed(source, storage_options)
    if not is_url(target) and isinstance(target, (str, os.PathLike)):
        path = os.fsdecode(target)
        check_not_managed(local_path(path) or path, force)
    parts = _parts(listed, ReadOptions(limits=limits or DEFAULT_LIMITS), storage_options)
    footer = MergedFooter(parts)
    sink = open_sink(target, fsync, storage_options if is_url(target) else None)
    try:
        if any(is_same_file(file.where, target) for file in listed):
            replace_only(sink, replaced_source(own, target))
        _copy(parts, sink, progress)
        sink.write(footer.parts(key_value_metadata or {}))
        sink.commit()
    finally:
        sink.abort()
    if isinstance(target, (str, os.PathLike)) and not is_url(target):
        remove_stale(local_path(os.fsdecode(target)) or os.fsdecode(target))
    return MergeReport(
        sink.name, len(parts), footer.num_rows, footer.num_row_groups, sink.position, footer.dropped_keys, footer.notes
    )


def _parts(files: Sequence[DataFile], options: ReadOptions, storage_options: Mapping[str, Any] | None) -> list[Part]:
    """The opened files. Raises an error for one that cannot be joined to the first."""
    parts: list[Part] = []
    for file in files:
        try:
            opened = open_listed(file, options, storage_options)
        except EncryptionError:
            raise encrypted(file.name) from None
        check_part(opened, parts[0].file if parts else opened)
        parts.append(Part(opened))
    return parts


def _copy(parts: list[Part], sink: Sink, progress: Callable[[int, int], Any] | None) -> None:
    """Everything before the footer."""
    sink.write([b"PAR1"])
    for done, part in enumerate(parts):
        part.copy(sink)
        if progress is not None:
            progress(done + 1, len(parts))
    for part in parts:
        part.store_column_indexes(sink)
    for part in parts:
        part.store_offset_indexes(sink)


def _listed(files: Any, storage_options: Mapping[str, Any] | None) -> tuple[tuple[DataFile, ...], Any]:
    files = opened_table(files)
    if isinstance(files, Dataset):
        check_no_table(files)
        found = files_of(files).found
    else:
        found = discover(files, storage_options)
    if not found.files:
        raise OptionError("there are no files to merge")
    return found.files, found.storage_options or storage_options


# ---- files, and the footer of all ------------------------------------------------------------------------------------


_MAGIC = 4
"""Bytes in front of the data."""


class Part:
    """A file on its way into another one: :meth:`copy` first, then its indexes in any order."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.footer = FooterTree(file)
        if self.footer.has_unknown_offsets(_MAGIC):
            raise UnsupportedError(
                "the footer has fields that are not known and may be offsets, which would be wrong in another file. "
                "Use pyparq.rewrite",
                file=file.name,
            )
        file.check_chunk_counts()
        file.check_places()
        self._chunks = [file.chunk(k, leaf) for k in range(file.num_row_groups) for leaf in file.tree.leaves]
        for chunk in self._chunks:
            check_own_index(file, chunk)
        self._layout = Layout(self.footer.start)
        self._layout.cuts = free_ranges(self._indexes(), self._others(), self.footer.start)
        self._layout.place_all()
        self._shift = 0
        self.without_bounds: dict[int, tuple[int, ...]] = {}
        """For each leaf column, the fields of its statistics to leave out. Its ColumnIndexes are left out too."""

    def _indexes(self) -> list[tuple[int, int]]:
        """The places of the page indexes. They are stored anew, together with those of the other files."""
        found = []
        for chunk in self._chunks:
            if has_column_index(chunk):
                found.append((chunk.raw.column_index_offset, chunk.raw.column_index_length))
            if has_offset_index(chunk):
                found.append((chunk.raw.offset_index_offset, chunk.raw.offset_index_length))
        return [(start, start + size) for start, size in found]

    def _others(self) -> list[tuple[int, int]]:
        """Other known places. A filter may not state its length, so no cut begins inside one."""
        found = [(chunk.start, chunk.end) for chunk in self._chunks]
        for chunk in self._chunks:
            start = chunk.meta.bloom_filter_offset
            if start:
                found.append((start, start + max(chunk.meta.bloom_filter_length or 0, 1)))
        return found

    def copy(self, sink: Sink) -> None:
        """Append everything except the page indexes, and rebuild the offsets in the footer."""
        self._shift = sink.position - _MAGIC
        for start, stop in self._layout.pieces():
            copy_range(sink, self.file.fetcher, max(start, _MAGIC), stop)
        by_place = {(chunk.row_group, chunk.node.column): chunk for chunk in self._chunks}
        self.footer.move(self._moved, lambda k, column: by_place[k, column])
        for chunk in self._chunks:
            fields = self.without_bounds.get(chunk.node.column)
            if fields:
                self.footer.chunk(chunk.row_group, chunk.node.column).drop_bounds(fields)

    def store_column_indexes(self, sink: Sink) -> None:
        """Append the ColumnIndexes as they are."""
        kept = [c for c in self._chunks if has_column_index(c) and not self.without_bounds.get(c.node.column)]
        ranges = [(c.raw.column_index_offset, c.raw.column_index_length) for c in kept]
        stored = dict(zip(map(_key, kept), self.file.fetcher.fetch(ranges), strict=True))
        for chunk in self._chunks:
            data = stored.get(_key(chunk))
            self._place(sink, chunk, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH, None if data is None else bytes(data))

    def store_offset_indexes(self, sink: Sink) -> None:
        """Append the OffsetIndexes for the new places of the pages."""
        kept = [c for c in self._chunks if has_offset_index(c)]
        ranges = [(c.raw.offset_index_offset, c.raw.offset_index_length) for c in kept]
        stored = dict(zip(map(_key, kept), self.file.fetcher.fetch(ranges), strict=True))
        for chunk in self._chunks:
            data = stored.get(_key(chunk))
            moved = None if data is None else moved_offset_index(data, self._moved)
            self._place(sink, chunk, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, moved)

    def _place(self, sink: Sink, chunk: Chunk, offset: int, length: int, data: bytes | None) -> None:
        place = None
        if data is not None:
            place = sink.position, len(data)
            sink.write([data])
        self.footer.chunk(*_key(chunk)).place_index(offset, length, place)

    def _moved(self, at: int) -> int:
        return self._layout.moved(at) + self._shift


def _key(chunk: Chunk) -> tuple[int, int]:
    return chunk.row_group, chunk.node.column


def check_part(file: OpenFile, first: OpenFile) -> None:
    """Raise :class:`UnsupportedError` for an encrypted file, and :class:`SchemaError` for one with another schema than
    the first."""
    if file.decryption.info is not None:
        raise encrypted(file.name)
    if file.footer.schema_bytes == first.footer.schema_bytes:
        return
    mine, theirs = file.footer.schema(), first.footer.schema()
    if mine[1:] == theirs[1:]:  # the root's own attributes do not matter
        return
    here = {leaf.dotted: (leaf.path, str(leaf.element)) for leaf in file.tree.leaves}
    there = {leaf.dotted: (leaf.path, str(leaf.element)) for leaf in first.tree.leaves}
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    raise SchemaError(
        f"the file does not have the schema of {first.name}, and files are merged without changing their data. "
        "Use pyparq.rewrite",
        file=file.name,
        column=names[0] if names else None,
    )


def encrypted(name: str) -> UnsupportedError:
    """Encryption binds each page to its file and to the number of its row group."""
    return UnsupportedError(
        "encrypted files cannot be merged, as their pages are bound to their file. Use pyparq.rewrite with the keys",
        file=name,
    )


# ---- the footer ------------------------------------------------------------------------------------------------------


MOST_ROWS = (1 << 63) - 1
"""``FileMetaData.num_rows`` has 64 bits."""
_HINT = ARROW_SCHEMA.decode()
_SPARK = tuple(key.decode() for key in (VERSION, LEGACY_DATES, LEGACY_INT96, TIME_ZONE))
"""These keys together tell the calendar of dates and timestamps."""


class MergedFooter:
    """Decides before any write what the merged files lose. :meth:`parts` is called when all are stored.

    Raises :class:`UnsupportedError` for files that readers would read differently under one footer.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        files = [part.file for part in parts]
        _check_calendars(files)
        self._one_writer = len({file.created_by for file in files}) == 1
        self._ordered = next((part for part in parts if part.file.footer.meta.column_orders), None)
        self.num_rows = sum(file.num_rows_of(k) for file in files for k in range(file.num_row_groups))
        if self.num_rows > MOST_ROWS:
            raise UnsupportedError(f"the files have {self.num_rows} rows together: more than a Parquet file can count")
        self.num_row_groups = sum(file.num_row_groups for file in files)
        notes = [note for part in parts for note in self._checked(part)]
        schemas = list({id(file.tree): (file.name, file.fields.schema) for file in reversed(files)}.values())[::-1]
        _check_durations(schemas)
        self._keys, self.dropped_keys = _joint_keys(files, unify(schemas).for_all_columns())
        self.notes = tuple(notes)

    def _checked(self, part: Part) -> list[str]:
        """Drop the bounds of a file that would have another meaning under the common footer, or would wrongly be
        believed."""
        file = part.file
        if not self._one_writer and needs_its_writer(file.created_by):
            raise UnsupportedError(
                f"readers must know that {file.created_by} wrote these pages, but the other files have another writer. "
                "Use pyparq.rewrite",
                file=file.name,
            )
        notes = []
        for leaf in file.tree.leaves:
            if not self._one_writer and not writer_is_trusted(leaf.type, file.created_by):
                part.without_bounds[leaf.column] = (*OLD_BOUNDS, *BOUNDS)
                notes.append(f"{file.name}, column {leaf.dotted}: no bounds, as {file.created_by} may have them wrong")
            elif self._order(file, leaf.column) != self._order(None, leaf.column):
                part.without_bounds[leaf.column] = BOUNDS
                notes.append(f"{file.name}, column {leaf.dotted}: no bounds, as the other files have another order")
        return notes

    def _order(self, file: OpenFile | None, column: int) -> Any:
        """The ColumnOrder of a leaf in a file, or in the new file."""
        if file is None:
            file = None if self._ordered is None else self._ordered.file
        orders = None if file is None else file.footer.meta.column_orders
        return orders[column] if orders and column < len(orders) else None

    def parts(self, key_values: Mapping[str, str | bytes | None]) -> list[Any]:
        """The end of the new file, with ``key_values`` set."""
        first, others = self._parts[0], self._parts[1:]
        if first.footer.join([part.footer for part in others]):
            self.notes += ("fields of the footers that are not known are left out, as they differ",)
        if not self._one_writer:
            first.footer.set_created_by(CREATED_BY)
        if self._ordered is not None and self._ordered is not first:
            first.footer.copy_column_orders(self._ordered.footer)
        given = {text_key(key): text_value(key, value) for key, value in key_values.items()}
        self.dropped_keys = tuple(key for key in self.dropped_keys if key not in given)
        kept = {**self._keys, **given}
        there = keys_of(to_bytes(kept.get(_HINT)))
        gone = {*_keys_of(first.file), *(key.decode() for key in there)} - kept.keys()
        first.footer.change_table_keys(kept, gone)
        return first.footer.parts()


def _keys_of(file: OpenFile) -> dict[str, str | bytes | None]:
    return {pair.key: pair.value for pair in file.footer.meta.key_value_metadata or ()}


def _joint_keys(files: Sequence[OpenFile], common: Schema) -> tuple[dict[str, str | bytes | None], tuple[str, ...]]:
    """The keys that hold for all files, and the keys that are left out. ``common``: the schema of all rows."""
    found = [_keys_of(file) for file in files]
    schemas = [replace(file.fields.schema, metadata=_own_keys(keys)) for file, keys in zip(files, found, strict=True)]
    held, dropped = joint_keys(schemas, common, several=len(files) > 1)
    # With the values of a file as they are: a key may have none, or no text.
    values = {key.encode(): value for keys in reversed(found) for key, value in keys.items()}
    joint = {key.decode(): values[key] if to_bytes(values[key]) == v else text_value(key, v) for key, v in held.items()}
    if not all(RECORD_KEY in keys for keys in found):  # it would name columns without indexes of pyparq's
        joint.pop(RECORD_KEY, None)
    if _calendar_of(joint) != _calendar_of(found[0]):
        joint = {key: value for key, value in joint.items() if key not in _SPARK}
        joint |= {key: value for key, value in found[0].items() if key in _SPARK}
    hint = _joint_hint(files, found, replace(common, metadata=held))
    if hint is not None:
        joint = {_HINT: hint, **joint}
    return joint, tuple(key for key in dropped if key not in joint and key != RECORD_KEY)


def _own_keys(keys: Mapping[str, str | bytes | None]) -> dict[bytes, bytes]:
    return {key.encode(): to_bytes(value) for key, value in keys.items() if key != _HINT}


def _joint_hint(
    files: Sequence[OpenFile], found: Sequence[Mapping[str, str | bytes | None]], common: Schema
) -> str | bytes | None:
    """The Arrow schema of the rows: that of the first file that has one, if it says of the columns what all say."""
    stored = next((keys[_HINT] for keys in found if _HINT in keys), None)
    if stored is None or all(file.fields.schema.fields == common.fields for file in files):
        return stored
    return stored_schema(common)


def _check_durations(schemas: Sequence[tuple[str, Schema]]) -> None:
    """Check that durations have one unit. Only ``ARROW:schema`` says which, so the stored numbers would be confused."""
    first, fields = schemas[0]
    for name, schema in schemas[1:]:
        for field, other in zip(fields, schema, strict=True):
            if list(_durations(field.type)) != list(_durations(other.type)):
                raise SchemaError(
                    f"the column is {other.type} here and {field.type} in {first}: durations are stored as plain "
                    "numbers, which would be confused. Use pyparq.rewrite",
                    file=name,
                    column=field.name,
                )


def _durations(type_: DataType) -> Iterator[str]:
    """For each leaf of a type, the unit of its durations, or ``""``."""
    type_ = type_.dictionary or type_
    if not type_.children:
        yield type_.unit if type_.kind == "duration" else ""
    for child in type_.children:
        yield from _durations(child.type)


def _calendar_of(keys: Mapping[str, str | bytes | None]) -> Hybrid | None:
    return hybrid_of({key.encode(): to_bytes(value) for key, value in keys.items()})


def _check_calendars(files: Sequence[OpenFile]) -> None:
    """Check that stored days and points in time mean the same in all files."""
    first = [leaf.type.hybrid for leaf in files[0].tree.leaves]
    for file in files[1:]:
        for leaf, calendar in zip(file.tree.leaves, first, strict=True):
            if leaf.type.hybrid != calendar:
                raise UnsupportedError(
                    f"here and in {files[0].name}, Spark stored the values by different calendars or in different time "
                    "zones (the keys org.apache.spark.legacyDateTime and the like). Use pyparq.rewrite",
                    file=file.name,
                    column=leaf.dotted,
                )
