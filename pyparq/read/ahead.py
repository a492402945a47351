"""Open the pages of one column chunk on two threads, where it is all there is to read: half of them are checked and
inflated beside the thread that decodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from pyparq.errors import located
from pyparq.options import ReadOptions
from pyparq.read.open import Chunk
from pyparq.read.pages import PageBuffers, PageParts, StoredPage, open_page
from pyparq.threads import pool

WINDOW = 16 << 20
"""Inflated bytes of the pages that are shared out at a time; half of them lie open at once."""

OpenedPage = tuple[StoredPage, PageParts | None]


def open_ahead(pages: Iterable[StoredPage], chunk: Chunk, options: ReadOptions) -> Iterator[OpenedPage]:
    """The pages in order, the later half of each window opened; ``None`` beside those that are still to be opened."""
    window: list[StoredPage] = []
    size = 0
    for page in pages:
        if page.ordinal == "dictionary":  # the first of all
            yield page, None
            continue
        window.append(page)
        size += page.header.uncompressed_page_size
        if size >= WINDOW:
            yield from _shared_out(window, size, chunk, options)
            window, size = [], 0
    yield from _shared_out(window, size, chunk, options)


def _shared_out(window: list[StoredPage], size: int, chunk: Chunk, options: ReadOptions) -> Iterator[OpenedPage]:
    own, mine = 0, 0
    while own < len(window) and mine * 2 < size:
        mine += window[own].header.uncompressed_page_size
        own += 1
    later = window[own:]
    opened: Future[list[PageParts]] = pool().submit(_open_all, later, chunk, options)
    try:
        for page in window[:own]:
            yield page, None
        yield from zip(later, opened.result(), strict=True)
    finally:  # whatever became of the first half: nobody works on bytes that are given up
        opened.cancel()
        if not opened.cancelled():
            opened.exception()


def _open_all(pages: list[StoredPage], chunk: Chunk, options: ReadOptions) -> list[PageParts]:
    """Each in buffers of its own: all stay open."""
    opened = []
    for page in pages:
        with located(row_group=chunk.row_group, column=chunk.name, page=page.ordinal):
            opened.append(open_page(page, chunk, options, PageBuffers()))
    return opened
