"""Finds the end of a column chunk. The size in the footer is a hint; the page headers decide."""

from __future__ import annotations

from pyparq.errors import CorruptFileError, LimitError
from pyparq.read.decode.chunk_pages import ChunkPages
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile


def beyond_its_size(file: OpenFile, chunk: Chunk, data: memoryview) -> Chunk | None:
    """The chunk with the length of its pages, if these hold the stated number of values only behind the stated end.

    ``None`` if they do not, or if ``data`` holds all of them. Encrypted chunks are not extended.
    """
    if chunk.crypto.encrypted or _end_of_pages(chunk, data, file) is not None:
        return None
    room = file.room_at(chunk.row_group, chunk.start)
    if room <= len(data):
        return None
    (longer,) = file.fetcher.fetch([(chunk.start, room)])
    end = _end_of_pages(chunk, longer, file)
    return None if end is None else chunk.of_size(end)


def _end_of_pages(chunk: Chunk, data: memoryview, file: OpenFile) -> int | None:
    try:
        pages = ChunkPages(data, chunk, file.options, Account(file.options.limits))
        pages.check()
    except (CorruptFileError, LimitError):
        return None
    return pages.size


def check_end(file: OpenFile, chunk: Chunk, data: memoryview, at: int, ordinal: int) -> None:
    """Raise :class:`CorruptFileError` if data page ``ordinal`` of the chunk follows at ``data[at]``, behind the pages
    with the stated number of values. Its values would be lost silently."""
    stated = min(len(data), chunk.numbers.total_compressed_size)
    if at >= stated or chunk.crypto.encrypted or file.begins_at(chunk.row_group, chunk.start + at):
        return
    try:
        pages = ChunkPages(data[at:], chunk, file.options, Account(file.options.limits)).pages
    except LimitError:
        return
    if pages and pages[0].offset == chunk.start and pages[0].num_values:  # (otherwise it is padding)
        raise CorruptFileError(
            f"the column chunk declares {chunk.num_values} values, but another page of {pages[0].num_values} follows",
            page=ordinal,
        )
