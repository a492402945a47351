"""What a catalog takes from files, and how it becomes parts of the catalog.

One process reads all files, or each task of Spark reads a share of them. Entries of keys are sorted in memory, or in
runs where they are too many.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pyparq.datasets.catalog.bounds_table import StatisticsRows, statistics_of
from pyparq.datasets.catalog.file_table import (
    MOST_KINDS,
    State,
    age_ns,
    key_columns,
    kind_key,
    kind_of,
    path_of,
    state_of,
)
from pyparq.datasets.catalog.key_table import SCHEMA, Columns, KeyTable, UInt64Array, bits_for
from pyparq.datasets.catalog.layout import CheckingSink, Key, Part, Place, Segment, block_for, new_name
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.footers import SETTLED_NS, is_remote, open_listed
from pyparq.errors import ChangedFileError, ParquetError, UnsupportedError
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.option_values import Encoding
from pyparq.options import ReadOptions
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_statistics import Wanted, survey_chunk
from pyparq.runtime.threads import REQUESTS, cpu_count, map_requests, map_tasks
from pyparq.write.file import ParquetWriter


def write_part(
    place: Place, kind: str, schema: Any, tables: Iterable[Any], most_rows: int,
    encodings: Mapping[str, Encoding] | None = None, page_rows: int = 20_000,
) -> Part:  # fmt: skip
    """A new part with these rows, at most ``most_rows``. ``encodings``: of columns without a dictionary."""
    name, given = new_name(kind), dict(encodings or {})
    sink = CheckingSink(place.sink(name), block_for(most_rows * 8))
    with ParquetWriter(
        sink, schema, compression="zstd", max_rows_per_page=page_rows, column_encoding=given or None,
        use_dictionary=not given, write_page_checksum=True,
    ) as writer:  # fmt: skip
        for table in tables:
            writer.write(table)
    metadata = writer.metadata
    assert metadata is not None
    chunks = [chunk for group in metadata.row_groups for chunk in group.columns]
    places = [p for c in chunks for p in (c.column_index_offset, c.offset_index_offset) if p]
    end = sink.position
    return sink.part(name, metadata.num_rows, end - min(places, default=max(end - (64 << 10), 0)))


ENCODINGS: dict[str, Encoding] = dict.fromkeys(("hash", "file", "row_group"), "DELTA_BINARY_PACKED")
PAGE_ROWS = 8192
"""Rows of a page: 40 KB. A key reads one page."""
PIECE_ROWS = 1 << 18
"""Entries that are written at a time."""


def ordered(columns: Columns) -> Columns:
    """In the order of a key table, each row once."""
    hashes, files, row_groups = columns
    order = np.lexsort((row_groups, files, hashes))
    hashes, files, row_groups = hashes[order], files[order], row_groups[order]
    new = np.ones(len(hashes), bool)
    new[1:] = (np.diff(hashes) != 0) | (np.diff(files) != 0) | (np.diff(row_groups) != 0)
    return (hashes, files, row_groups) if new.all() else (hashes[new], files[new], row_groups[new])


def asked_at_once(segments: Sequence[Segment]) -> int:
    """The most segments that may have one hash."""
    ranges = [(s.low << (64 - s.bits), ((s.high + 1) << (64 - s.bits)) - 1) for s in segments]
    return max((sum(low <= at <= high for low, high in ranges) for at, _ in ranges), default=0)


def write_segment(place: Place, column: int, bits: int, pieces: Iterator[Columns], most_rows: int) -> Iterator[Segment]:
    """A new segment with these rows, which come in order, in pieces that are not empty. None where there are none."""
    first = next(pieces, None)
    if first is None:
        return
    ends = [int(first[0][0])]

    def tables() -> Iterator[dict[str, Any]]:
        for piece in itertools.chain([first], pieces):
            ends.append(int(piece[0][-1]))
            yield dict(zip(SCHEMA.names, piece, strict=True))

    part = write_part(place, "keys", SCHEMA, tables(), most_rows, ENCODINGS, PAGE_ROWS)
    yield Segment(part, column, bits, ends[0], ends[-1])


def merged(place: Place, column: int, tables: Sequence[KeyTable], live: Any, most: int, bits: int) -> Iterator[Segment]:
    """The rows of several segments in new ones of about ``most`` rows, without those of files that are not ``live`` (a
    mask by the number of the file). Each new segment has a range of hashes of its own. ``bits``: those to store, if the
    segments have them."""
    bits = min(bits, *(table.segment.bits for table in tables))
    for low, end in _split(0, 1 << bits, -(-sum(table.part.rows for table in tables) // most)):
        yield from merged_range(place, column, tables, live, (low, end - 1, bits))


def _split(low: int, end: int, count: int) -> Iterable[tuple[int, int]]:
    """A range of hashes as so many."""
    return itertools.pairwise(low + (end - low) * k // count for k in range(count + 1))


def merged_range(
    place: Place, column: int, tables: Sequence[KeyTable], live: Any, wanted: tuple[int, int, int]
) -> Iterator[Segment]:
    """The rows of one range of hashes: from, to, and their bits."""
    low, high, bits = wanted
    rows = (sum(table.part.rows for table in tables) * (high + 1 - low)) >> bits

    def pieces() -> Iterator[Columns]:
        for first, end in _split(low, high + 1, rows // PIECE_ROWS + 1):
            parts = [table.between(first, end - 1, bits) for table in tables]
            hashes, files, row_groups = (np.concatenate([part[k] for part in parts]) for k in range(3))
            kept = live[files]
            if kept.any():
                yield ordered((hashes[kept], files[kept], row_groups[kept]))

    yield from write_segment(place, column, bits, pieces(), rows)


IN_MEMORY = 1 << 22
"""Entries that are sorted in memory: 100 MB while they are."""
SEGMENT_ROWS = 32_000_000
"""Entries of a segment: 160 MB."""


class Runs:
    """The entries of one key column."""

    def __init__(self, place: Place, column: int) -> None:
        self._place = place
        self._column = column
        self._hashes: list[UInt64Array] = []
        self._owners: list[tuple[int, int]] = []
        self._count = 0
        self._written: list[Segment] = []

    def add(self, number: int, row_group: int, hashes: Any) -> None:
        """The hashes of one row group of a file, in order."""
        self._hashes.append(hashes)
        self._owners.append((number, row_group))
        self._count += len(hashes)
        if self._count >= IN_MEMORY:
            self._written += self._flushed(64)

    def _flushed(self, bits: int) -> Iterator[Segment]:
        """What is in memory, as a segment."""
        return write_segment(self._place, self._column, bits, self._taken(bits), self._count)

    def _taken(self, bits: int) -> Iterator[Columns]:
        """What is in memory, in order, a piece at a time."""
        if not self._count:
            return
        owners = np.array(self._owners, np.uint32)
        owner = np.repeat(np.arange(len(owners), dtype=np.uint32), list(map(len, self._hashes)))
        hashes = np.concatenate(self._hashes)
        self._hashes, self._owners, self._count = [], [], 0
        hashes >>= np.uint64(64 - bits)
        order = np.argsort(hashes, kind="stable")  # quick, as the parts are in order
        for rows in np.split(order, range(PIECE_ROWS, len(order), PIECE_ROWS)):
            of_rows = owners[owner[rows]]
            yield ordered((hashes[rows], of_rows[:, 0], of_rows[:, 1]))

    def written(self) -> list[Segment]:
        """All entries as segments with whole hashes."""
        self._written += self._flushed(64)
        return self._written

    def segments(self, before: int, live: Any) -> list[Segment]:
        """All entries as segments. ``before``: entries of the column that the catalog has already. ``live``: a mask of
        the numbers of files."""
        if not self._written:
            return list(self._flushed(bits_for(self._count + before)))
        total = sum(segment.part.rows for segment in self.written())
        tables = [KeyTable(self._place, segment) for segment in self._written]
        try:
            return list(merged(self._place, self._column, tables, live, SEGMENT_ROWS, bits_for(total + before)))
        finally:
            self._place.remove_all(self._written)


@dataclass(frozen=True)
class FileEntries:
    """The entries that were read from one file."""

    file: DataFile
    state: State
    kind: tuple[Any, ...]
    stored_kind: Callable[[], bytes]
    rows: tuple[int, ...]
    """Of each row group."""
    footer: int
    """Bytes of the footer."""
    keys: dict[tuple[int, int], UInt64Array]
    """By key column and row group: hashes, each once, sorted."""
    statistics: Mapping[str, tuple[list[Any], ...]]
    """By leaf."""


def entries_of(
    file: DataFile, names: Sequence[Key], options: ReadOptions, storage_options: Mapping[str, Any] | None
) -> FileEntries:
    """Read the key columns of a file.

    Raises :class:`pyparq.UnsupportedError` for an encrypted file, and for one whose versions cannot be told apart;
    :class:`pyparq.CorruptFileError` for damage; :class:`pyparq.ChangedFileError` if it is not as it was listed.
    """
    state = state_of(file)
    if state is None:
        raise UnsupportedError("the listing has neither a tag nor a time of the file", file=file.name)
    opened = open_listed(file, options, storage_options)
    try:
        if opened.decryption.info is not None:
            raise UnsupportedError("the file is encrypted, and a catalog is not", file=file.name)
        opened.check_chunk_counts()
        opened.check_places()
        footer: LazyFileMetaData = opened.footer
        rows = tuple(opened.num_rows_of(group) for group in range(opened.num_row_groups))
        return FileEntries(
            file, state, kind_key(footer), partial(kind_of, footer), rows, len(footer.stored), _keys(opened, names),
            statistics_of(opened),
        )  # fmt: skip
    finally:
        opened.close()


def _keys(file: OpenFile, names: Sequence[Key]) -> dict[tuple[int, int], UInt64Array]:
    account = Account(file.options.limits)
    found: dict[tuple[int, int], UInt64Array] = {}
    for leaf, column in key_columns(file.footer, names).items():
        node = file.tree.leaves[leaf]
        for group in range(file.num_row_groups):
            if file.num_rows_of(group):
                chunk = file.chunk(group, node)
                survey = survey_chunk(file, chunk, file.column_order(node), Wanted(hashes=True), account)
                hashes = np.zeros(0, np.uint64) if survey.hashes is None else survey.hashes
                found[column, group] = np.unique(hashes)
    return found


AT_A_TIME = 64
"""Files that are read before their entries are taken over."""

Numbered = tuple[int, DataFile]
Progress = Callable[[int, int], Any]


@dataclass
class ShareResult:
    """What was read. It can be pickled."""

    files: list[dict[str, Any]]
    """Rows of the table of files. ``kind`` is a place in ``kinds``."""
    kinds: list[bytes]
    statistics: StatisticsRows
    left_out: list[tuple[str, str]]
    segments: list[Segment]
    """The parts of keys that were written, with whole hashes. They are in no order."""


class ShareReader:
    """Reads files one after the other, many at a time."""

    def __init__(
        self, place: Place, names: Sequence[Key], options: ReadOptions,
        storage_options: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self._place = place
        self._names = names
        self._threads = options.use_threads
        self._options = ReadOptions(limits=options.limits, use_threads=False)
        self._storage_options = storage_options
        self._kinds: dict[Any, int] = {}
        self.runs = [Runs(place, k) for k in range(len(names))]
        self.result = ShareResult([], [], StatisticsRows(), [], [])

    def read(self, files: Sequence[Numbered], progress: Progress | None = None) -> None:
        """Read these files, which come with the numbers that they get."""
        ready = self._settled(files)
        for first in range(0, len(ready), AT_A_TIME):
            part = ready[first : first + AT_A_TIME]
            for (number, file), entries in zip(part, self._each([file for _, file in part]), strict=True):
                self._take(number, file, entries)
            if progress is not None:
                progress(first + len(part), len(ready))

    def written(self) -> ShareResult:
        """What was read, with all keys in files."""
        for runs in self.runs:
            self.result.segments += runs.written()
        return self.result

    def _settled(self, files: Sequence[Numbered]) -> list[Numbered]:
        """The files whose time of change tells their version. Those that are too new are waited for."""
        now = time.time_ns()
        ages = [age_ns(file, now) for _, file in files]
        wait = max((SETTLED_NS - age for age in ages if age is not None and 0 <= age < SETTLED_NS), default=0)
        if wait:
            time.sleep(wait / 1e9)
        ready = []
        for (number, file), age in zip(files, ages, strict=True):
            if age is not None and age < 0:
                self._leave_out(file, "its time of change lies in the future, or is not known")
            else:
                ready.append((number, file))
        return ready

    def _leave_out(self, file: DataFile, reason: str) -> None:
        self.result.left_out.append((file.name, reason))

    def _each(self, files: Sequence[DataFile]) -> list[FileEntries | Exception]:
        def read(file: DataFile) -> FileEntries | Exception:
            try:
                return entries_of(file, self._names, self._options, self._storage_options)
            except (ParquetError, OSError) as error:
                return error

        if any(map(is_remote, files[:1])) and self._threads:
            return map_requests(read, files, REQUESTS)
        return map_tasks(read, files, self._threads and cpu_count() > 1)

    def _take(self, number: int, file: DataFile, read: FileEntries | Exception) -> None:
        if isinstance(read, ChangedFileError):
            return self._leave_out(file, "it was changed while it was read")
        if isinstance(read, Exception):
            return self._leave_out(file, str(read))
        kind = self._kind(read)
        if kind is None:
            return self._leave_out(file, f"there are more than {MOST_KINDS:,} kinds of files")
        size, mtime, inode, version = read.state
        self.result.files.append({
            "number": number, "path": path_of(file), "size": size, "mtime_ns": mtime, "inode": inode,
            "version": version, "kind": kind, "rows": sum(read.rows), "row_groups": len(read.rows),
            "footer": read.footer,
        })  # fmt: skip
        self.result.statistics.add(number, read.rows, read.statistics)
        for (column, group), hashes in read.keys.items():
            self.runs[column].add(number, group, hashes)
        return None

    def _kind(self, read: FileEntries) -> int | None:
        known = self._kinds.get(read.kind)
        if known is None and len(self.result.kinds) < MOST_KINDS:
            known = self._kinds[read.kind] = len(self.result.kinds)
            self.result.kinds.append(read.stored_kind())
        return known
