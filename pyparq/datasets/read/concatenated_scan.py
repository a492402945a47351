"""Reads many small files of one schema as if they were one file.

Opening a file, planning a read and decoding it have costs that do not depend on its size. Files with equal footers,
except for rows and row groups, share these costs: they are laid end to end, their row groups become those of one file,
and one scan reads them all. If anything about a file is unusual, or fails, the files are read one by one, and the error
names the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyparq import kernels
from pyparq.datasets.read.file_chunks import FileChunks, chunks_of_files
from pyparq.datasets.read.stored_footer import StoredFooter
from pyparq.encryption.reading import CLEAR_FILE
from pyparq.errors import ChangedFileError, CorruptFileError
from pyparq.format.chunk_numbers import BoundPlaces, ChunkNumbers
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import Int64Array
from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import Fetcher, IOCounts
from pyparq.read.footers.chunks import Chunk, ChunkTable, LeafSet
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import FileSchema

APART = 40
"""Each file has this many bits of the joined offsets, so no request spans two files."""
MOST_STORED = 8 << 20
"""Maximum number of stored bytes of joined files that are in memory at a time."""
MOST_OF_FILE = 2 << 20
"""Maximum number of bytes that are read of a file which is joined. Larger files are read one by one: the costs per file
do not matter there."""
MOST_ROW_GROUPS = 1024


class Part(NamedTuple):
    """One of the joined files."""

    path: str
    footer: StoredFooter
    row_groups: list[int] | None
    """Those in which a row can match, where that is known."""


class ConcatenatedSource:
    """Local files laid end to end, each at a multiple of ``1 << APART``.

    Raises :class:`ChangedFileError` if one of them has changed.
    """

    is_local = True

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name = name
        self.size = len(parts) << APART
        self._paths = [os.fsencode(part.path) for part in parts]
        self._statuses = np.array([part.footer.status for part in parts], np.int64).reshape(-1)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        assert kernels.read_many_ranges is not None
        places, lengths = np.array(ranges, np.int64).T.copy()
        order = np.argsort(places, kind="stable")
        sorted_places, sorted_lengths = places[order], lengths[order]
        files, offsets = sorted_places >> APART, sorted_places & ((1 << APART) - 1)
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
                setattr(owner, name, offset + (file << APART))
        return raw

    @property
    def places(self) -> BoundPlaces:
        """Places of bounds are numbered like those of files."""
        return BoundPlaces(self._data, shift=APART)


_OFFSETS_OF_CHUNKS = [
    (True, "data_page_offset"), (True, "dictionary_page_offset"), (True, "bloom_filter_offset"),
    (False, "offset_index_offset"), (False, "column_index_offset"),
]  # fmt: skip
_OFFSETS = [ChunkNumbers._fields.index(name) for _, name in _OFFSETS_OF_CHUNKS]
_PLACES = [ChunkNumbers._fields.index(name) for name in ("min_value", "max_value", "min", "max")]


class ConcatenatedFile(OpenFile):
    """Files laid end to end. Only leaves whose chunks were looked up can be read."""

    def __init__(
        self, model: OpenFile, nodes: Sequence[Node], parts: Sequence[Part], chunks: FileChunks, files: Sequence[int]
    ) -> None:
        """``nodes``: the leaves of ``chunks``. ``files``: the positions of ``parts`` in them."""
        groups = [np.arange(chunks.first[k], chunks.first[k + 1]) for k in files]
        first = np.cumsum([0, *map(len, groups)])
        taken = np.concatenate(groups)
        rows = chunks.rows[taken]
        footer: Any = ConcatenatedFooter(model.footer, parts, first, rows)
        # The chunks are small: asking an index or a dictionary of each would cost more than it saves.
        options = replace(model.options, use_page_index=False, use_dictionaries=False)
        fetcher = Fetcher(ConcatenatedSource(parts[0].path, parts), model.fetcher.gap)
        self._files, self._bytes = len(parts), sum(part.footer.status.size for part in parts)
        super().__init__(fetcher, footer, CLEAR_FILE, options, FileSchema(model.tree, model.key_values, model.fields))
        read = [part.footer for part in parts]
        requests = sum(footer.requests for footer in read)
        self.open_counts = IOCounts(requests, sum(footer.bytes for footer in read), requests)
        self.of_group = np.repeat(np.arange(len(files)), [len(part) for part in groups])
        """Of each row group the place of its file among the parts."""
        base = (self.of_group << APART)[:, None]
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

    def chunk_table(self, row_groups: Sequence[int] | Int64Array, nodes: Sequence[Node] | LeafSet) -> ChunkTable:
        nodes = nodes.nodes if isinstance(nodes, LeafSet) else nodes
        places = [self._tables[node.column][1] for node in nodes]
        return self._tables[nodes[0].column][0].part(np.asarray(row_groups, np.int64), places)

    def look_up(self, row_groups: Sequence[int], nodes: Iterable[Node]) -> None:
        """Nothing to do: all chunks are known."""

    def _chunk(self, row_group: int, node: Node) -> Chunk:
        raise CorruptFileError("the chunks of this column were not looked up")


class Joint:
    """Files with equal footers except for rows and row groups. The small ones can share a scan."""

    def __init__(
        self, model: OpenFile, nodes: Sequence[Node], selective: bool, numbers: Sequence[int], parts: Sequence[Part]
    ) -> None:
        """``nodes``: the leaves that a scan reads. ``selective``: whether a filter may leave out rows of a row
        group."""
        self._model = model
        self._nodes = sorted(nodes, key=lambda node: node.column)
        self._parts = parts
        self._places = {number: k for k, number in enumerate(numbers)}
        self._chunks = chunks_of_files(model, self._nodes, [part.footer for part in parts])
        first = self._chunks.first
        stored = np.append(0, np.cumsum(self._chunks.size.sum(axis=1)))
        self._stored = (stored[first[1:]] - stored[first[:-1]]).tolist()
        self._groups = np.diff(first).tolist()
        good = self._chunks.sound.copy()
        if selective:  # an index might rule out some pages
            numbered = ChunkNumbers(*self._chunks.stack)
            indexed = (numbered.offset_index_offset != 0) & (numbered.data_pages != 1)
            good &= ~self._chunks.any_of(indexed.any(axis=1))
        self._good = good.tolist()

    def takes(self, number: int) -> tuple[int, int] | None:
        """Bytes to read of a file, and its row groups. ``None`` if the file must be read by itself."""
        k = self._places[number]
        if not self._good[k] or self._stored[k] > MOST_OF_FILE or self._parts[k].footer.status.size >> APART:
            return None
        return self._stored[k], self._groups[k]

    def file(self, numbers: Sequence[int]) -> ConcatenatedFile:
        """These files as one."""
        places = [self._places[number] for number in numbers]
        return ConcatenatedFile(self._model, self._nodes, [self._parts[k] for k in places], self._chunks, places)


def runs(numbers: Sequence[int], joints: Mapping[int, Joint]) -> Iterator[list[int]]:
    """Two or more neighbouring files that can be joined. Neighbours, because the order of files is the order of
    rows."""
    run: list[int] = []
    stored = groups = 0
    for number in numbers:
        joint = joints.get(number)
        takes = None if joint is None else joint.takes(number)
        size, count = takes or (0, 0)
        if run and (
            takes is None
            or joints[run[0]] is not joint
            or stored + size > MOST_STORED
            or groups + count > MOST_ROW_GROUPS
        ):
            if len(run) > 1:
                yield run
            run, stored, groups = [], 0, 0
        if takes is not None:
            run.append(number)
            stored, groups = stored + size, groups + count
    if len(run) > 1:
        yield run
