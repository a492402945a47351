"""Open the pages of one column chunk on two threads, where it is all there is to read: half of them are checked,
inflated and, where their place is known, decoded beside the thread that decodes the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy.typing as npt

from pyparq import encodings
from pyparq.errors import located
from pyparq.options import ReadOptions
from pyparq.read.account import Share
from pyparq.read.open import Chunk
from pyparq.read.pages import PageBuffers, PageParts, StoredPage, num_levels_of, open_page, room_of
from pyparq.threads import Task, check_stopped, stop_all

WINDOW = 16 << 20
"""Inflated bytes of the pages that are shared out at a time; half of them lie open at once."""

Slots = npt.NDArray[Any]
OpenedPage = tuple[StoredPage, PageParts | None, bool]
"""A page; its parts, ``None`` where it is still to be opened; whether its values are in their slots already."""


def open_ahead(
    pages: Iterable[StoredPage],
    chunk: Chunk,
    options: ReadOptions,
    room: Callable[[int], Slots | None],
    share: Share,
) -> Iterator[OpenedPage]:
    """The pages in order, the later half of each window opened. ``room`` gives the next so many slots of the column, if
    values may be put there before those in front of them are; ``share`` counts what lies open."""
    window: list[StoredPage] = []
    size = 0
    for page in pages:
        if page.ordinal == "dictionary":  # the first of all
            yield page, None, False
            continue
        window.append(page)
        size += page.header.uncompressed_page_size
        if size >= WINDOW:
            yield from _shared_out(window, size, chunk, options, room, share)
            window, size = [], 0
    yield from _shared_out(window, size, chunk, options, room, share)


def _shared_out(
    window: list[StoredPage],
    size: int,
    chunk: Chunk,
    options: ReadOptions,
    room: Callable[[int], Slots | None],
    share: Share,
) -> Iterator[OpenedPage]:
    own, mine = 0, 0
    while own < len(window) and mine * 2 < size:
        mine += window[own].header.uncompressed_page_size
        own += 1
    later = window[own:]
    share.beside = 0
    share.make_room(sum(room_of(page, chunk.node) for page in later))
    share.beside = share.room
    slots = room(sum(map(num_levels_of, window)))
    if slots is not None:
        slots = slots[sum(map(num_levels_of, window[:own])) :]
    opened = Task(_open_all, later, chunk, options, slots)
    try:
        opened.start()
        for page in window[:own]:
            yield page, None, False
        yield from opened.result()
    finally:  # whatever became of the first half: nobody works on bytes that are given up
        stop_all([opened])


def _open_all(pages: list[StoredPage], chunk: Chunk, options: ReadOptions, slots: Slots | None) -> list[OpenedPage]:
    """Each in buffers of its own: all stay open."""
    opened: list[OpenedPage] = []
    at = 0
    for page in pages:
        check_stopped()
        with located(row_group=chunk.row_group, column=chunk.name, page=page.ordinal):
            parts = open_page(page, chunk, options, PageBuffers())
            end = at + parts.num_levels
            placed = slots is not None and _placed(parts, chunk, slots[at:end])
        opened.append((page, parts, placed))
        at = end
    return opened


def _placed(parts: PageParts, chunk: Chunk, slots: Slots) -> bool:
    """Decode the values into their slots, where that is all there is to it."""
    if parts.num_values != parts.num_levels or parts.encoding in encodings.DICTIONARY_ENCODINGS:
        return False
    encodings.decode(parts.encoding, parts.data, parts.num_values, chunk.node.type, slots)
    parts.data = b""
    return True
