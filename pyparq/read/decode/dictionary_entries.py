"""The entries of a dictionary page that is read alone, to prune by them."""

from __future__ import annotations

from pyparq.errors import CorruptFileError, located
from pyparq.format.leaf_values import Values, size_of
from pyparq.options import ReadOptions
from pyparq.read.decode.chunk_pages import ChunkPages
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.column_chunk import Chunk


def decode_dictionary(data: memoryview, chunk: Chunk, options: ReadOptions, account: Account) -> Values | None:
    """The entries of the dictionary page that ``data`` begins with, which ``account`` counts from then on; ``None``
    where there is none.

    Raises :class:`CorruptFileError` for a damaged page, and for text that is not UTF-8.
    """
    with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
        pages = ChunkPages(data, chunk, options, account)
        if pages.dictionary is None:
            if pages.fault is not None and not isinstance(pages.fault, CorruptFileError):
                raise pages.fault
            return None
        values = pages.entries(check_text=True)
        assert values is not None
        pages.release(size_of(values))
        return values
