"""The column chunks of many files with equal footers (except for rows and row groups), as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyparq.datasets.read.stored_footer import StoredFooter
from pyparq.format.chunk_numbers import ChunkNumbers, stored_path
from pyparq.format.schema_node import Node
from pyparq.format.thrift_codec import column_chunks_of_footers
from pyparq.index.row_ranges import Int64Array
from pyparq.read.footers.chunks import LeafSet, Mask, check_numbers
from pyparq.read.footers.open_file import OpenFile, omits_dictionary_header


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
    columns = np.array([node.column for node in nodes], np.int64)
    first, rows, stack = column_chunks_of_footers(
        [footer.data for footer in footers], columns, [stored_path(node.path) for node in nodes], len(model.tree.leaves)
    )
    sizes = np.repeat(np.array([footer.status.size for footer in footers], np.int64), np.diff(first))
    start, size, odd = check_numbers(stack, LeafSet(nodes), rows, sizes)
    usual = np.full(len(footers), not omits_dictionary_header(model.created_by))
    found = FileChunks(first, rows, stack, start, size, usual)
    usual &= ~found.any_of(odd.any(axis=1) | (rows <= 0))
    return found
