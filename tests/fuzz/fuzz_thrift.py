"""Footers, other Thrift structs, page indexes and Bloom filters."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from fuzz_input import check, number, own, refused, split

from pyparq.errors import ParquetError
from pyparq.format import thrift_codec
from pyparq.format.generated import ttypes
from pyparq.format.generated.rules import RULES
from pyparq.kernels import (
    ThriftRules,
    bytes_at,
    check_page_locations,
    moved_offset_index,
    probe_open_filters,
    sbbf_check,
    thrift_index_footer,
    thrift_split_list,
    thrift_split_struct,
)

_KINDS = {row[0]: k for k, row in enumerate(RULES)}
_RULES = ThriftRules(RULES)
_NOTHING = os.open(os.devnull, os.O_RDONLY)


def footer(data: Any) -> None:
    """Where things lie in a FileMetaData, and the numbers of its column chunks."""
    _, stored = split(data)
    with refused:
        _, schema, _, _, starts, chunks = thrift_index_footer(stored)
        places = starts.reshape(-1)
        check(bool((places <= len(stored)).all()), "a place outside")
        for start in chunks[:4]:
            with refused:
                _RULES.chunk_numbers(stored, np.array([start], np.int64), _KINDS["ColumnChunk"], [b"\x18\x01a"])
        with refused:
            thrift_split_list(stored, int(schema[0]))
    with refused:
        raw = bytes(stored)
        found = _RULES.chunks_of_footers([raw, raw], np.array([0, 1], np.int64), _KINDS["ColumnChunk"], [b"", b""], 2)
        numbers = found[2]
        if numbers.size:
            sizes = numbers.reshape(-1)[: min(numbers.size, 8)]
            bytes_at([raw], np.zeros(len(sizes), np.int64), sizes.copy(), np.full(len(sizes), 4, np.int64))
    with refused:
        _RULES.check(stored, 0, _KINDS["FileMetaData"])


def struct(data: Any) -> None:
    """Any struct: checked, taken apart, and decoded to an object and back."""
    head, stored = split(data)
    kind = head[0] % len(RULES)
    with refused:
        end, _ = _RULES.check(stored, 0, kind)
        check(0 < end <= len(stored), "it ends outside")
        check(thrift_split_struct(stored, 0)[0] == end, "two ends")
    with refused:
        _RULES.lists(stored, 0, kind)
    with refused:
        thrift_split_struct(stored, 0)
    if head[1] & 7 == 0:
        try:
            made, _ = thrift_codec.deserialize(getattr(ttypes, RULES[kind][0]), bytes(stored))
        except (ParquetError, ValueError):
            return
        # What it holds may lack what the format requires (NOT_NEEDED): then it is not written.
        try:
            raw = thrift_codec.serialize(made)
        except Exception:
            return
        again, _ = thrift_codec.deserialize(type(made), raw)
        # NaN is no finding: it is not equal to itself.
        check(again == made or b"nan" in repr(made).encode(), "another object comes back")


def column_index(data: Any) -> None:
    """ColumnIndex and OffsetIndex."""
    head, stored = split(data)
    with refused:
        check(bytes(moved_offset_index(stored, lambda at: at)) == bytes(stored), "it has changed")
        _RULES.lists(moved_offset_index(stored, lambda at: at ^ 1), 0, _KINDS["OffsetIndex"])
    width, kind = ((0, 0), (4, 0), (8, 0), (4, 1), (8, 1), (4, 2), (8, 2), (1, 3))[head[0] % 8]
    with refused:
        found = _RULES.column_index(stored, _KINDS["ColumnIndex"], width, kind)
        pages, sides = len(found.null_pages), (found.lower, found.upper)
        if width == 0:
            check(all(len(b) <= len(stored) for bounds in sides for b in bounds), "bounds too long")
        else:
            check(all(len(part) <= max(pages, len(stored)) for bounds in sides for part in bounds), "too many bounds")
    with refused:
        _, lists = _RULES.lists(stored, 0, _KINDS["OffsetIndex"])
        if lists and lists[0] is not None:
            size = len(stored) if head[1] & 1 else number(head, 2, 4)
            check(0 <= check_page_locations(lists[0], number(head, 6), 4, size) <= 3, "another verdict")


def bloom(data: Any) -> None:
    """The header and the bitset of a Bloom filter, at the end of a file."""
    head, stored = split(data)
    hashes = np.frombuffer(head[8:24], np.uint64).copy()
    before = number(head, 0) % 128
    offset, length = before + head[2] % 8, number(head, 3) if head[5] & 1 else len(stored)
    with refused:
        assert probe_open_filters is not None
        answers, _, _ = probe_open_filters(
            _NOTHING, before + len(stored), stored, np.array([offset, before, -offset], np.int64),
            np.array([length, 0, length], np.int64), hashes[: head[6] % 3], 1 << 20,
        )  # fmt: skip
        check(bool((answers <= 2).all()), "another answer")
    with refused:
        bits = own(stored[: len(stored) // 32 * 32])
        sbbf_check(bits, hashes)
