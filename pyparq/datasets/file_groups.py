"""Files of one kind that are asked one question: which of their row groups can match, and the small ones read as one.

Opening a file, planning a read and decoding it have costs that do not depend on its size. Files with equal footers,
except for rows and row groups, share these costs:

- Each test of the filter is evaluated once over the statistics of all row groups, its hashes are computed once, and
  native code reads one 32-byte block of each Bloom filter. Nothing is read of a file that its statistics rule out. The
  answers are those of :mod:`pyparq.read.plan.prune`.
- Small files are laid end to end, their row groups become those of one file, and one scan reads them all.

If anything about a file is unusual, or fails, it is read by itself, and the error names the file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.footers import AT_A_TIME, Footers, StoredFooter
from pyparq.encryption.reading import CLEAR_FILE
from pyparq.errors import ChangedFileError, CorruptFileError
from pyparq.filters.bound import Constant
from pyparq.filters.leaf_tests import Test
from pyparq.format.chunk_numbers import BoundPlaces, ChunkNumbers
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node
from pyparq.format.thrift_codec import column_chunks_of_footers
from pyparq.index.row_ranges import Int64Array
from pyparq.index.statistics import bounds_of_numbers
from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import Fetcher, IOCounts
from pyparq.options import ReadOptions
from pyparq.read.footers.chunks import Chunk, ChunkTable, LeafSet, Mask, check_numbers
from pyparq.read.footers.open_file import OpenFile, omits_dictionary_header
from pyparq.read.footers.schemas import FileSchema
from pyparq.read.plan.candidates import StageReport
from pyparq.read.scan import Scan
from pyparq.runtime.threads import map_tasks, runs_within

OFFSET_BITS = 40
"""Each file has this many bits of the joined offsets, so no request spans two files."""
MOST_STORED = 8 << 20
"""Maximum number of stored bytes of joined files that are in memory at a time."""
MOST_OF_FILE = 2 << 20
"""Maximum number of bytes that are read of a file which is joined. Larger files are read one by one: the costs per file
do not matter there."""
MOST_ROW_GROUPS = 1024

ABSENT, UNUSABLE = 0, 2
"""Answers of :func:`pyparq.kernels.probe_filters`."""
BEHIND = 8
"""Bytes that end a file, behind all filters."""

Hashes = npt.NDArray[np.uint64]
Answer = npt.NDArray[np.uint8]


# ---- column chunks --------------------------------------------------------------------------------------------------


class FileChunks(NamedTuple):
    """The chunks of some leaves in all row groups of some files, file by file."""

    first: Int64Array
    """For each file the number of its first row group among all; then the total."""
    rows: Int64Array
    """Of each row group."""
    stack: Int64Array
    """The numbers of the chunks: kind, row group, leaf."""
    start: Int64Array
    size: Int64Array
    sound: Mask
    """A mask of the files in which nothing is unusual. Numbers of the other files must not be used."""

    def of_leaf(self, j: int) -> ChunkNumbers:
        """The numbers of the chunks of one leaf."""
        return ChunkNumbers(*self.stack[:, :, j])

    def stack_of(self, j: int) -> Int64Array:
        """The numbers of the chunks of one leaf in one array: kind, row group."""
        return np.ascontiguousarray(self.stack[:, :, j])

    @property
    def file_of(self) -> Int64Array:
        """For each row group, the position of its file."""
        return np.repeat(np.arange(len(self.sound)), np.diff(self.first))

    def any_of(self, row_groups: Mask) -> Mask:
        """The files that have any of these row groups."""
        found = np.zeros(len(self.sound), np.bool_)
        found[self.file_of[row_groups]] = True
        return found


def chunks_of_files(model: OpenFile, nodes: Sequence[Node], footers: Sequence[StoredFooter]) -> FileChunks:
    """The chunks of ``nodes`` (in the order of the columns) in the files with these footers, which are like that of
    ``model``."""
    leaves = model.fields.leaf_set(tuple([node.column for node in nodes]))
    first, rows, stack = column_chunks_of_footers(
        [footer.data for footer in footers], leaves.columns, leaves.stored_paths, len(model.tree.leaves)
    )
    sizes = np.repeat(np.array([footer.status.size for footer in footers], np.int64), np.diff(first))
    start, size, odd = check_numbers(stack, leaves, rows, sizes)
    usual = np.full(len(footers), not omits_dictionary_header(model.created_by))
    found = FileChunks(first, rows, stack, start, size, usual)
    usual &= ~found.any_of(odd.any(axis=1) | (rows <= 0))
    return found


class ChunksOfKind(NamedTuple):
    """The chunks of some columns in files that have equal schemas."""

    file: OpenFile
    """One of the files."""
    rows: Int64Array
    """Of each row group."""
    size: Int64Array
    """In bytes, of each row group and leaf."""
    numbers: ChunkNumbers


def chunks_by_kind(files: DatasetFiles, numbers: Sequence[int], columns: Collection[str]) -> Iterator[ChunksOfKind]:
    """The chunks of these top-level columns in these files: of files of one kind together, of unusual ones file by
    file."""
    files.read_stored(numbers)
    wanted, unusual = np.array(numbers, np.int64), list[int]()
    frames = files.footers.frames[wanted]
    for frame in np.unique(frames).tolist():
        members = wanted[frames == frame].tolist()
        file = files.open(members[0]) if frame >= 0 else None
        if file is None:
            unusual += members
            continue
        found = chunks_of_files(file, _leaves_of(file, columns), files.footers.stored(members))
        sound = found.sound[found.file_of]
        yield ChunksOfKind(file, found.rows[sound], found.size[sound], ChunkNumbers(*found.stack[:, sound]))
        unusual += [members[k] for k in np.flatnonzero(~found.sound)]
    for _, file in files.open_all(sorted(unusual)):
        table = file.chunk_table(range(file.num_row_groups), _leaves_of(file, columns))
        yield ChunksOfKind(file, table.num_rows, table.size, table.numbers)


def _leaves_of(file: OpenFile, columns: Collection[str]) -> list[Node]:
    return [leaf for leaf in file.tree.leaves if leaf.path[0] in columns]


# ---- the group ------------------------------------------------------------------------------------------------------


class _Joinable(NamedTuple):
    """What of a group's files can be read as one."""

    nodes: list[Node]
    """The leaves that the scan reads."""
    chunks: FileChunks
    sizes: list[int]
    """For each file the bytes of these leaves; -1 for a file that must be read by itself."""
    options: ReadOptions
    """To read joined files with."""


class FileGroup:
    """Files of a dataset of one kind, and a scan that asks the question of one of them."""

    def __init__(self, scan: Scan, numbers: list[int], footers: Footers, files: Sequence[DataFile]) -> None:
        """``numbers``: those of the files in the dataset."""
        self.scan = scan
        self.numbers = numbers
        self._place = {number: k for k, number in enumerate(numbers)}
        self.footers, self.fetchers = footers.stored(numbers), footers.fetchers(numbers)
        self.paths = [str(files[k].where) for k in numbers]
        self._known: _Joinable | None = None
        self.row_groups: dict[int, list[int]] = {}
        """Those in which a row can match, by file. Files that must be asked by themselves are missing."""
        self.unasked: set[int] = set()
        """Files with Bloom filters that have to be requested."""
        self.reports: list[StageReport] = []
        """What each index ruled out, for ``explain()``."""

    def chunks_of(self, nodes: Sequence[Node]) -> FileChunks:
        """The column chunks of these leaves in all of the files."""
        return chunks_of_files(self.scan.file, nodes, self.footers)

    def among(self, numbers: Collection[int]) -> FileGroup:
        """The files that are among ``numbers``."""
        if all(number in numbers for number in self.numbers):
            return self
        other = copy(self)
        kept = [k for k, number in enumerate(self.numbers) if number in numbers]
        for name in ("numbers", "footers", "fetchers", "paths"):
            setattr(other, name, [getattr(self, name)[k] for k in kept])
        other._known = None
        other._place = {number: k for k, number in enumerate(other.numbers)}
        return other

    def prune(self) -> None:
        """Ask the statistics and the Bloom filters of all files."""
        if tests := [t for t in dict.fromkeys(self.scan.predicate.tests()) if isinstance(t, Test)]:
            self._prune(Pruning(self, tests))

    def _prune(self, pruning: Pruning) -> None:
        options = self.scan.file.options
        if options.use_statistics:
            pruning.by_statistics()
        if options.use_bloom_filters:
            pruning.by_bloom_filters()
        first, left = pruning.chunks.first, np.flatnonzero(pruning.left)
        files = pruning.chunks.file_of[left]
        self.row_groups = {k: [] for k, usual in zip(self.numbers, pruning.usual.tolist(), strict=True) if usual}
        for file, group in zip(files.tolist(), (left - first[files]).tolist(), strict=True):
            groups = self.row_groups.get(self.numbers[file])
            if groups is not None:
                groups.append(group)

    # ---- small files as one

    def _joinable(self) -> _Joinable:
        """What of the files can be joined."""
        if self._known is None:
            self._known = self._look_at_chunks()
        return self._known

    def _look_at_chunks(self) -> _Joinable:
        scan, leaves = self.scan, self.scan.file.tree.leaves
        columns = {leaf.column for output in scan.outputs for leaf in output.leaves} | scan.predicate.columns()
        nodes = [leaves[column] for column in sorted(columns or {0})]
        chunks = self.chunks_of(nodes)
        stored = np.append(0, np.cumsum(chunks.size.sum(axis=1)))[chunks.first]
        sizes, good = np.diff(stored), chunks.sound.copy()
        if not isinstance(scan.predicate, Constant):  # an index might rule out some pages
            numbers = ChunkNumbers(*chunks.stack)
            indexed = (numbers.offset_index_offset != 0) & (numbers.data_pages != 1)
            good &= ~chunks.any_of(indexed.any(axis=1))
        good &= (sizes <= MOST_OF_FILE) & np.array([not f.status.size >> OFFSET_BITS for f in self.footers], np.bool_)
        # The chunks are small: asking an index or a dictionary of each would cost more than it saves.
        options = replace(scan.file.options, use_page_index=False, use_dictionaries=False)
        return _Joinable(nodes, chunks, np.where(good, sizes, -1).tolist(), options)

    def joinable(self) -> dict[int, tuple[int, int, int]]:
        """Bytes to read of each file that can be read with others, its row groups and its rows."""
        sizes, chunks = self._joinable().sizes, self._joinable().chunks
        rows = np.diff(np.append(0, np.cumsum(chunks.rows))[chunks.first]).tolist()
        facts = zip(self.numbers, sizes, np.diff(chunks.first).tolist(), rows, strict=True)
        return {k: (size, groups, rows) for k, size, groups, rows in facts if size >= 0}

    def as_one(self, numbers: Sequence[int]) -> ConcatenatedFile:
        """These files as one."""
        known = self._joinable()
        places = [self._place[number] for number in numbers]
        parts = [Part(self.paths[k], self.footers[k], self.row_groups.get(self.numbers[k])) for k in places]
        return ConcatenatedFile(self.scan.file, known.options, known.nodes, parts, known.chunks, places)


def runs(numbers: Sequence[int], groups: Mapping[int, FileGroup], most_rows: int | None = None) -> Iterator[list[int]]:
    """Two or more neighbouring files that can be joined. Neighbours, because the order of files is the order of rows.
    ``groups``: by file."""
    joinable: dict[int, tuple[int, int, int]] = {}
    for group in dict.fromkeys(groups.values()):
        joinable |= group.joinable()
    for can_join, alike in groupby(numbers, lambda number: groups[number] if number in joinable else None):
        if can_join is not None:
            members = list(alike)
            sizes, row_groups, rows = zip(*map(joinable.__getitem__, members), strict=True)
            limits = (sizes, MOST_STORED), (row_groups, MOST_ROW_GROUPS), (rows, most_rows or sum(rows))
            yield from (run for run in runs_within(members, *limits) if len(run) > 1)


# ---- which row groups can match -------------------------------------------------------------------------------------


class Pruning:
    """The row groups that are left of a group's files, test by test."""

    def __init__(self, group: FileGroup, tests: Sequence[Test]) -> None:
        self._group = group
        self._tests = tests
        self._nodes = sorted({test.node for test in tests}, key=lambda node: node.column)
        self.chunks = group.chunks_of(self._nodes)
        self.usual = self.chunks.sound.copy()
        """A mask of the files whose answers count."""
        self._maybe = {test: np.ones(len(self.chunks.rows), np.bool_) for test in tests}
        self.left: Mask
        """The row groups in which a row can match."""
        self._narrow()
        self._cost = 0, 0
        """Requests and bytes of the filters."""

    def _narrow(self) -> None:
        """Only the file by itself answers tests of computed values."""
        self.left = self._group.scan.predicate.units_left(self._maybe.get, len(self.chunks.rows))

    def _report(self, name: str, asked: int, before: Mask, requests: int = 0, size: int = 0) -> None:
        """Note what an index has left of the row groups of ``before``."""
        after, rows = self.left, self.chunks.rows
        counts = int(before.sum()), int(after.sum()), int(rows[before].sum()), int(rows[after].sum())
        self._group.reports.append(StageReport(name, asked, *counts, 0, 0, requests, size))

    def by_statistics(self) -> None:
        before, model = self.left, self._group.scan.file
        places = BoundPlaces([footer.data for footer in self._group.footers], self.chunks.file_of)
        bounds = {
            node: bounds_of_numbers(
                node.type, self.chunks.stack_of(j), places, model.column_order(node), model.created_by
            )
            for j, node in enumerate(self._nodes)
        }
        for test in self._tests:
            self._maybe[test] = test.verdict(bounds[test.node]).some
        self._narrow()
        self._report("statistics", len(self._nodes) * len(before), before)

    def by_bloom_filters(self) -> None:
        group = self._group
        if kernels.probe_filters is None:  # the system has no positioned reads
            group.unasked.update(k for k, fetcher in zip(group.numbers, group.fetchers, strict=True) if fetcher)
            return
        before = self.left
        asked = sum(map(self._ask_filters, self._tests))
        if asked:
            self._report("bloom filter", asked, before, *self._cost)

    def _ask_filters(self, test: Test) -> int:
        """Remove the row groups whose Bloom filters contain none of the literals. A file with an unusable filter is no
        longer ``usual``. Returns the number of filters that were asked."""
        files, chunks = self.chunks.file_of, self.chunks.of_leaf(self._nodes.index(test.node))
        has_filter = chunks.bloom_filter_offset > 0
        if not has_filter.any():
            return 0
        asked = np.flatnonzero(self.left & self._maybe[test] & has_filter & self.usual[files])
        hashes = test.hashes() if len(asked) else None
        if hashes is None:
            return 0
        flat = np.array(sorted({h for alternatives in hashes for h in alternatives}), np.uint64)
        local = np.array([fetcher is None for fetcher in self._group.fetchers], np.bool_)[files[asked]]
        answer = np.ones(len(asked), np.uint8)
        answer[local] = self._by_paths(chunks, asked[local], flat)
        answer[~local] = self._by_memory(chunks, asked[~local], flat)
        self._maybe[test] = self._maybe[test].copy()
        self._maybe[test][asked] = answer != ABSENT
        self._narrow()
        self.usual[files[asked[answer == UNUSABLE]]] = False
        return len(asked)

    def _by_paths(self, chunks: ChunkNumbers, asked: Int64Array, hashes: Hashes) -> Answer:
        """The answers of filters in local files."""
        paths = [os.fsencode(path) for path in self._group.paths]
        statuses = np.array([footer.status for footer in self._group.footers], np.int64)
        options, probe = self._group.scan.file.options, kernels.probe_filters
        assert probe is not None

        def answers(part: Int64Array) -> tuple[Answer, int, int]:
            files = self.chunks.file_of[part]
            first, last = int(files[0]), int(files[-1]) + 1
            return probe(
                paths[first:last], statuses[first:last].reshape(-1), files - first, chunks.bloom_filter_offset[part],
                chunks.bloom_filter_length[part], hashes, options.limits.max_bloom_filter,
            )  # fmt: skip

        parts = [asked[k : k + AT_A_TIME] for k in range(0, len(asked), AT_A_TIME)]
        found = map_tasks(answers, parts, options.use_threads)
        requests, size = self._cost
        self._cost = requests + sum(one[1] for one in found), size + sum(one[2] for one in found)
        return np.concatenate([np.zeros(0, np.uint8), *(one[0] for one in found)])

    def _by_memory(self, chunks: ChunkNumbers, asked: Int64Array, hashes: Hashes) -> Answer:
        """The answers of filters in remote files, as far as they came with the footers or are kept."""
        answer = np.ones(len(asked), np.uint8)
        offsets, lengths = chunks.bloom_filter_offset[asked].tolist(), chunks.bloom_filter_length[asked].tolist()
        files = self.chunks.file_of[asked].tolist()
        for place, (k, offset, length) in enumerate(zip(files, offsets, lengths, strict=True)):
            found = self._by_tail(k, offset, length, hashes)
            if found is None:
                self._group.unasked.add(self._group.numbers[k])
            else:
                answer[place] = found
        return answer

    def _by_tail(self, k: int, offset: int, length: int, hashes: Hashes) -> int | None:
        """The answer of a filter of the file at place ``k``. ``None`` if its bytes have to be requested."""
        fetcher = self._group.fetchers[k]
        assert fetcher is not None
        assert kernels.probe_open_filters is not None
        end, tail = self._group.footers[k].status.size, fetcher.tail
        if offset < end - len(tail):
            kept = None if length <= 0 else fetcher.kept_part(offset, length)
            if kept is None:
                return None
            end, tail = offset + length + BEHIND, memoryview(bytes(kept) + bytes(BEHIND))  # as if the file ended there
        elif length > 0:
            fetcher.keep_indexes([(offset, length)])
        place, size = np.array([offset], np.int64), np.array([length], np.int64)
        most = self._group.scan.file.options.limits.max_bloom_filter
        return int(kernels.probe_open_filters(-1, end, tail, place, size, hashes, most)[0][0])


# ---- small files laid end to end ------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One of the joined files."""

    path: str
    footer: StoredFooter
    row_groups: list[int] | None
    """Those in which a row can match, where that is known."""


class ConcatenatedSource:
    """Local files laid end to end, each at a multiple of ``1 << OFFSET_BITS``.

    Raises :class:`ChangedFileError` if one of them has changed.
    """

    is_local = True

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name = name
        self.size = len(parts) << OFFSET_BITS
        self._paths = [os.fsencode(part.path) for part in parts]
        self._statuses = np.array([part.footer.status for part in parts], np.int64).reshape(-1)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        assert kernels.read_many_ranges is not None
        places, lengths = np.array(ranges, np.int64).T.copy()
        order = np.argsort(places, kind="stable")
        sorted_places, sorted_lengths = places[order], lengths[order]
        files, offsets = sorted_places >> OFFSET_BITS, sorted_places & ((1 << OFFSET_BITS) - 1)
        buffer = memoryview(kernels.take_memory(int(lengths.sum())).data)
        done = kernels.read_many_ranges(self._paths, self._statuses, files, offsets, sorted_lengths, buffer)
        if done < len(ranges):
            raise ChangedFileError("the file has changed", file=os.fsdecode(self._paths[int(files[done])]))
        ends = np.empty(len(ranges), np.int64)
        ends[order] = np.cumsum(sorted_lengths)
        return [buffer[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]

    def close(self) -> None:
        """Nothing to close: no file is open between two reads."""


class ConcatenatedFooter:
    """The footers of several files as one footer, with everything that :class:`OpenFile` and pruning ask of a
    footer."""

    def __init__(self, model: LazyFileMetaData, parts: Sequence[Part], first: Int64Array, rows: Int64Array) -> None:
        """``first``: for each file the number of its first row group among all; then the total."""
        self.meta = model.meta
        self.rows = rows
        self._model = model
        self._data = [part.footer.data for part in parts]
        self._first = first
        self._decoded: dict[int, LazyFileMetaData] = {}

    @property
    def num_row_groups(self) -> int:
        return len(self.rows)

    def num_rows(self, row_group: int) -> int:
        return int(self.rows[row_group])

    def num_columns(self, row_group: int) -> int:
        return self._model.num_columns(0)

    def column_chunk(self, row_group: int, column: int) -> Any:
        """A column chunk with offsets in the joined files."""
        file = int(np.searchsorted(self._first, row_group, "right")) - 1
        footer = self._decoded.get(file)
        if footer is None:
            footer = self._decoded[file] = LazyFileMetaData(self._data[file], self._model)
        raw = copy(footer.column_chunk(row_group - int(self._first[file]), column))
        raw.meta_data = copy(raw.meta_data)
        for struct, name in _OFFSETS_OF_CHUNKS:
            owner = raw.meta_data if struct else raw
            offset = getattr(owner, name)
            if offset is not None and offset > 0:
                setattr(owner, name, offset + (file << OFFSET_BITS))
        return raw

    @property
    def places(self) -> BoundPlaces:
        """Places of bounds are numbered like those of files."""
        return BoundPlaces(self._data, shift=OFFSET_BITS)


_OFFSETS_OF_CHUNKS = [
    (True, "data_page_offset"), (True, "dictionary_page_offset"), (True, "bloom_filter_offset"),
    (False, "offset_index_offset"), (False, "column_index_offset"),
]  # fmt: skip
_OFFSETS = [ChunkNumbers._fields.index(name) for _, name in _OFFSETS_OF_CHUNKS]
_PLACES = [ChunkNumbers._fields.index(name) for name in ("min_value", "max_value", "min", "max")]


class ConcatenatedFile(OpenFile):
    """Files laid end to end. Only leaves whose chunks were looked up can be read."""

    def __init__(
        self, model: OpenFile, options: ReadOptions, nodes: Sequence[Node], parts: Sequence[Part], chunks: FileChunks,
        files: Sequence[int],
    ) -> None:  # fmt: skip
        """``nodes``: the leaves of ``chunks``. ``files``: the positions of ``parts`` in them."""
        groups = [np.arange(chunks.first[k], chunks.first[k + 1]) for k in files]
        first = np.cumsum([0, *map(len, groups)])
        taken = np.concatenate(groups)
        rows = chunks.rows[taken]
        footer: Any = ConcatenatedFooter(model.footer, parts, first, rows)
        fetcher = Fetcher(ConcatenatedSource(parts[0].path, parts), model.fetcher.gap)
        self._files, self._bytes = len(parts), sum(part.footer.status.size for part in parts)
        super().__init__(fetcher, footer, CLEAR_FILE, options, FileSchema(model.tree, model.key_values, model.fields))
        read = [part.footer for part in parts]
        requests = sum(footer.requests for footer in read)
        self.open_counts = IOCounts(requests, sum(footer.bytes for footer in read), requests)
        self.of_group = np.repeat(np.arange(len(files)), [len(part) for part in groups])
        """Of each row group the place of its file among the parts."""
        base = (self.of_group << OFFSET_BITS)[:, None]
        stack = chunks.stack[:, taken]
        for kind in _OFFSETS:
            stack[kind] += np.where(stack[kind] > 0, base, 0)
        for kind in _PLACES:
            stack[kind] += np.where(stack[kind] >= 0, base, 0)
        columns = np.array([node.column for node in nodes], np.int64)
        start, odd = chunks.start[taken] + base, np.zeros((len(taken), len(nodes)), np.bool_)
        whole = ChunkTable(np.arange(len(taken)), columns, rows, stack, start, chunks.size[taken], odd)
        self._tables = {column: (whole, j) for j, column in enumerate(columns.tolist())}
        wanted = [part.row_groups for part in parts]
        self.row_groups = [
            int(first[k]) + group
            for k, chosen in enumerate(wanted)
            for group in (range(len(groups[k])) if chosen is None else chosen)
        ]
        """Those in which a row can match."""

    @property
    def name(self) -> str:
        return f"{self.fetcher.source.name} and {self._files - 1:,} more"

    @property
    def num_bytes(self) -> int:
        return self._bytes

    def place_of(self, row_group: int) -> tuple[int, int]:
        """The place of a row group's file among the parts, and its number in that file."""
        place = int(self.of_group[row_group])
        return place, row_group - int(np.searchsorted(self.of_group, place))

    def chunk_table(self, row_groups: Sequence[int] | Int64Array, nodes: Sequence[Node] | LeafSet) -> ChunkTable:
        nodes = nodes.nodes if isinstance(nodes, LeafSet) else nodes
        places = [self._tables[node.column][1] for node in nodes]
        return self._tables[nodes[0].column][0].part(np.asarray(row_groups, np.int64), places)

    def look_up(self, row_groups: Sequence[int], nodes: Iterable[Node]) -> None:
        """Nothing to do: all chunks are known."""

    def _chunk(self, row_group: int, node: Node) -> Chunk:
        raise CorruptFileError("the chunks of this column were not looked up")
