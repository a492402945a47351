"""The open files of a write, and the summaries of what was written.

Rows wait until their partition has a full row group, and then go to its file. ``max_memory`` limits the bytes of
waiting rows, and the number of open files is limited. A partition's rows wait as long as there is room. So data that
are not sorted by the partition columns make few files, too.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from pyparq.arrow.layouts import normal_schema
from pyparq.arrow.record_batch import RecordBatch
from pyparq.datasets.write.targets import Kept
from pyparq.errors import ParquetError, SchemaError, located
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import MAGIC
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.types import Schema
from pyparq.io.fetch import Fetcher
from pyparq.io.sink import Sink
from pyparq.options import ReadOptions, WriteOptions
from pyparq.read.footers.footer_read import read_footer
from pyparq.runtime.threads import map_tasks
from pyparq.write.file import FileWriter, checked_pairs, discard_at_exit
from pyparq.write.row_groups import RowBuffer, RowGroup
from pyparq.write.shredding import needs_rows, plan_with_shredding

Folders = tuple[str, ...]
_NEARLY_FULL = 0.95
"""Share of a file's maximum size from which on the file is full: the next row group would be a small one."""
_AT_ONCE = 16
"""Files that are completed together. Each of their row groups is in memory, encoded."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits: when a file ends and the next one begins, and how many rows may wait in memory."""

    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    max_open_files: int = 128
    max_memory: int = 256 << 20


@dataclass(slots=True)
class MadeFile:
    """A complete file."""

    folders: Folders
    sink: Sink
    num_rows: int
    num_bytes: int
    footer: tt.FileMetaData | None
    """Where summaries are written."""


@dataclass(slots=True)
class _Open:
    """A file that is being written."""

    writer: FileWriter
    num_rows: int = 0
    footer: bytes | None = None
    """Once it is complete."""


class RollingFiles:
    """Takes rows by partition and writes them to files, which ``open_sink`` opens for a partition's folders."""

    def __init__(
        self,
        source: Schema,
        options: WriteOptions,
        limits: FileLimits,
        open_sink: Callable[[Folders], Sink],
        keep_footers: bool,
    ) -> None:
        """``source``: the original schema of the data, with dictionaries and other layouts."""
        self._options = given = options
        self._source, self._schema = source, normal_schema(source)
        self._key_values = checked_pairs(given.key_value_metadata or {})
        self._planned = None if needs_rows(given) else plan_with_shredding(self._schema, given, source)
        self._limits = limits
        self._open_sink = open_sink
        self._keep_footers = keep_footers
        rows, size = given.row_group_size, given.row_group_bytes
        self._group_rows = rows if limits.max_rows_per_file is None else min(rows, limits.max_rows_per_file)
        self._group_bytes = min(size, limits.max_memory, limits.max_bytes_per_file or size)
        self._waiting: dict[Folders, RowBuffer] = {}
        self._open: OrderedDict[Folders, _Open] = OrderedDict()
        self._num_bytes = 0
        self.made: list[MadeFile] = []

    def add(self, folders: Folders, batch: RecordBatch) -> None:
        """Add rows of a partition. They may wait, so their buffers must not change."""
        waiting = self._waiting.get(folders)
        if waiting is None:
            waiting = self._waiting[folders] = RowBuffer(self._group_rows, self._group_bytes)
        before = waiting.num_bytes
        waiting.add(batch)
        self._num_bytes += waiting.num_bytes - before
        while waiting.has_full_group:
            self._write_group(folders)
        while self._num_bytes > self._limits.max_memory:
            self._write_group(max(self._waiting, key=lambda other: self._waiting[other].num_bytes))

    def own(self) -> None:
        """Copy the waiting rows, so that the caller may change its arrays."""
        for waiting in (*self._waiting.values(), *(opened.writer.rows for opened in self._open.values())):
            waiting.own()

    def close(self) -> list[MadeFile]:
        """Write the waiting rows, and complete all files, several at a time."""
        left = deque(self._waiting)
        while left:
            room = max(self._limits.max_open_files - len(self._open), 1)
            some = [left.popleft() for _ in range(min(len(left), room, _AT_ONCE))]
            map_tasks(
                _close, [rows for folders in some for rows in self._last_rows(folders)], self._options.use_threads
            )
            for folders in [other for other in some if other in self._open]:
                self._complete(folders)
        return self.made

    def _last_rows(self, folders: Folders) -> list[tuple[_Open, RowGroup]]:
        """The last rows of a partition's file, if there are any. Those before them are written."""
        waiting = self._waiting[folders]
        while waiting.num_rows:
            opened = self._opened(folders)
            most = self._rows_left(opened)
            if waiting.num_rows <= most and waiting.num_bytes <= self._group_bytes:
                return [(opened, self._taken(opened, waiting, most))]
            self._write_group(folders)
        return []

    def add_empty(self, folders: Folders) -> None:
        """Add a file without rows, which shows the columns."""
        self._opened(folders)
        self._complete(folders)

    def abort(self) -> None:
        """Discard the files that are not complete."""
        for opened in self._open.values():
            opened.writer.discard()
        self._open.clear()

    # ---- inside --------------------------------------------------------------------------------------------------

    def _write_group(self, folders: Folders) -> None:
        """Write one row group to the partition's file."""
        opened = self._opened(folders)
        with located(file=opened.writer.sink.name):
            opened.writer.add_group(self._taken(opened, self._waiting[folders], self._rows_left(opened)))
            opened.writer.flush()
        if self._is_full(opened):
            self._complete(folders)

    def _taken(self, opened: _Open, waiting: RowBuffer, most: int) -> RowGroup:
        """The rows of the next row group of a file, which wait no longer. ``most``: their maximum number."""
        waiting.max_rows = most
        before = waiting.num_bytes
        group = waiting.take_group()
        self._num_bytes += waiting.num_bytes - before
        waiting.max_rows = self._group_rows
        opened.num_rows += group.num_rows
        return group

    def _rows_left(self, opened: _Open) -> int:
        """Maximum number of rows of the next row group of a file."""
        rows, size = self._group_rows, self._limits.max_bytes_per_file
        if self._limits.max_rows_per_file is not None:
            rows = min(rows, self._limits.max_rows_per_file - opened.num_rows)
        if size is not None and opened.num_rows:
            position = opened.writer.sink.position
            rows = min(rows, int((size - position) / (position / opened.num_rows)))
        return max(rows, 1)

    def _is_full(self, opened: _Open) -> bool:
        rows, size = self._limits.max_rows_per_file, self._limits.max_bytes_per_file
        return (rows is not None and opened.num_rows >= rows) or (
            size is not None and opened.writer.sink.position >= _NEARLY_FULL * size
        )

    def _opened(self, folders: Folders) -> _Open:
        opened = self._open.get(folders)
        if opened is not None:
            self._open.move_to_end(folders)
            return opened
        while len(self._open) >= self._limits.max_open_files:
            self._complete(next(iter(self._open)))
        sink = self._open_sink(folders)
        try:
            planned = self._planned
            if planned is None:  # its first rows decide
                first = self._waiting[folders].first() if folders in self._waiting else []
                planned = plan_with_shredding(self._schema, self._options, self._source, first)
            writer = FileWriter(sink, planned, self._schema, {**self._key_values})
            writer.layout.start()
        except BaseException:
            sink.abort()
            raise
        discard_at_exit(writer)
        opened = self._open[folders] = _Open(writer)
        return opened

    def _complete(self, folders: Folders) -> None:
        opened = self._open[folders]
        if opened.footer is None:
            _close((opened, None))
        del self._open[folders]
        footer, sink = None, opened.writer.sink
        if self._keep_footers and opened.footer is not None:
            footer = deserialize(tt.FileMetaData, opened.footer)[0]
        self.made.append(MadeFile(folders, sink, opened.num_rows, sink.position, footer))


def _close(last: tuple[_Open, RowGroup | None]) -> None:
    """Write the last rows of a file, and complete it."""
    opened, rows = last
    try:
        if rows is not None:
            opened.writer.add_group(rows)
        footer = opened.writer.finish()
    except ParquetError as error:
        error.locate(file=opened.writer.sink.name)
        raise
    opened.writer.commit()
    opened.footer = footer


def summary_files(made: Sequence[tuple[str, tt.FileMetaData | None]], kept: Kept) -> dict[str, bytes]:
    """Both summaries, of the new files (paths and footers) and of the old files that stay.

    Raises :class:`SchemaError` where the files do not have one schema, and what a damaged or encrypted footer raises.
    """
    footers = [*((path, footer) for path, footer in made if footer is not None), *_footers(kept)]
    if not footers:
        return {}
    groups = []
    first_path, first = footers[0]
    for path, footer in sorted(footers, key=lambda item: item[0]):
        if footer.schema != first.schema:
            raise SchemaError(
                f"_metadata needs files of one schema, but this one is not like {first_path}. Leave write_metadata out",
                file=path,
            )
        groups += [_located(group, path) for group in footer.row_groups]
    whole, common = copy(first), copy(first)
    whole.row_groups, whole.num_rows = groups, sum(group.num_rows for group in groups)
    common.row_groups, common.num_rows = [], 0
    return {"_metadata": _summary(whole), "_common_metadata": _summary(common)}


def _footers(kept: Kept) -> list[tuple[str, tt.FileMetaData]]:
    found = []
    for path, opened in kept:
        source = opened()
        try:
            with located(file=path):
                found.append((path, read_footer(Fetcher(source), ReadOptions())[0].full()))
        finally:
            source.close()
    return found


def _located(group: tt.RowGroup, path: str) -> tt.RowGroup:
    """A row group as another file lists it. Its number in its own file means nothing there."""
    moved = copy(group)
    moved.ordinal = None
    moved.columns = []
    for chunk in group.columns:
        moved.columns.append(copy(chunk))
        moved.columns[-1].file_path = path
    return moved


def _summary(footer: tt.FileMetaData) -> bytes:
    data = serialize(footer)
    return b"".join((MAGIC, data, len(data).to_bytes(4, "little"), MAGIC))
