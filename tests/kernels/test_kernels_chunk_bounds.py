"""Numbers of many column chunks against plain Python: their places, their bounds and counts; Bloom filters of one open
file."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format import ttypes as tt
from pyparq.format.chunk_numbers import ODD, BoundPlaces, ChunkNumbers
from pyparq.format.thrift_codec import deserialize, deserialize_column_index, serialize
from pyparq.format.types import LeafType, Physical
from pyparq.index.bloom_filter import BLOCK_BYTES, BloomFilter, serialize_filter
from pyparq.index.statistics import bounds_of_numbers, bounds_of_stored
from pyparq.kernels import ColumnIndexArrays, KernelError

KINDS = len(ChunkNumbers._fields)
PLACE = {name: k for k, name in enumerate(ChunkNumbers._fields)}


# ---- places


def test_chunks_are_checked_as_in_plain_python() -> None:
    rng = random.Random(5)
    groups, columns = 60, 3
    stack = np.zeros((KINDS, groups, columns), np.int64)
    types, repeated = [1, 2, 6], [0, 1, 0]
    rows, sizes = np.full(groups, 10), np.array([rng.choice([1000, 1007]) for _ in range(groups)])
    for i in range(groups):
        for j in range(columns):
            stack[PLACE["flags"], i, j] = rng.choice([0, 2, 4, 6, ODD])
            stack[PLACE["type"], i, j] = rng.choice([types[j]] * 5 + [7])
            stack[PLACE["num_values"], i, j] = rng.choice([10, 10, 10, 11, -1])
            stack[PLACE["data_page_offset"], i, j] = rng.choice([4, 3, 0, 500, 991, 992, -4, 1 << 62])
            stack[PLACE["dictionary_page_offset"], i, j] = rng.choice([0, 0, 4, 400, -1, 600])
            stack[PLACE["total_compressed_size"], i, j] = rng.choice([1, 488, 492, 500, 992, 0, -1, (1 << 63) - 1])
    for given in (sizes, sizes[:1]):
        start, size, odd = kernels.check_chunks(
            stack.reshape(-1), np.array(types), np.array(repeated, np.uint8), rows, given
        )
        for i in range(groups):
            for j in range(columns):
                chunk = ChunkNumbers(*stack[:, i, j].tolist())
                first = [o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o > 0]
                k, end = i * columns + j, int(given[i if len(given) > 1 else 0]) - 8
                counted = chunk.num_values == 10 or (repeated[j] and chunk.num_values >= 0)
                sound = not chunk.flags & ODD and chunk.type == types[j] and counted and bool(first)
                sound = sound and 4 <= min(first) < end and 0 < chunk.total_compressed_size <= end - min(first)
                assert odd[k] == (not sound)
                if sound:
                    assert (start[k], size[k]) == (min(first), chunk.total_compressed_size)
    assert 0 < odd.sum() < groups * columns


def test_arrays_that_do_not_fit_are_refused() -> None:
    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    stack, flag = np.zeros(KINDS, np.int64), np.zeros(1, np.uint8)
    assert [len(a) for a in kernels.check_chunks(none, one, flag, none, one)] == [0, 0, 0]
    for args in (
        (stack[:-1], one, flag, one, one), (stack, one, np.zeros(2, np.uint8), one, one),
        (stack, one, flag, np.ones(2, np.int64), one), (stack, one, flag, one, none),
    ):  # fmt: skip
        with pytest.raises(KernelError):
            kernels.check_chunks(*args)
    with pytest.raises(KernelError):
        kernels.chunk_counts(stack[:-1], False)
    for args in (
        ([b""], none, 0, stack[:-1], True, True, 8, 0), ([b""], np.zeros(2, np.int64), 0, stack, True, True, 8, 0),
        ([b""], none, 63, stack, True, True, 8, 0), ([b""], none, -1, stack, True, True, 8, 0),
        ([b""], none, 0, stack, True, True, 2, 0), ([b""], none, 0, stack, True, True, 8, 4),
        ([b""], none, 0, stack, True, True, 4, 3), ([1], none, 0, stack, True, True, 8, 0),
        ([b""], none, 0, stack, True, True, 0, 2),
    ):  # fmt: skip
        with pytest.raises((KernelError, TypeError)):
            kernels.number_bounds(*args)


# ---- bounds


LEAVES = [
    LeafType(Physical.INT32, "int", bits=32), LeafType(Physical.INT64, "int", bits=64),
    LeafType(Physical.INT32, "uint", bits=32), LeafType(Physical.INT64, "uint", bits=64),
    LeafType(Physical.FLOAT, "float"), LeafType(Physical.DOUBLE, "double"), LeafType(Physical.BOOLEAN, "bool"),
    LeafType(Physical.BYTE_ARRAY, "string"),
]  # fmt: skip


def _value(rng: random.Random, width: int) -> bytes | None:
    nan = struct.pack("<f" if width == 4 else "<d", float("nan"))
    other = rng.choice([None, b"", bytes(width), bytes(width + 1), b"\xff" * width, nan[:width], b"\1" * width])
    return other if rng.random() < 0.6 else rng.randbytes(width)


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.kind + str(leaf.bits))
@pytest.mark.parametrize("form", ["one buffer", "a buffer each", "numbers above the place"])
def test_bounds_of_numbers_are_those_of_stored_bytes(leaf: LeafType, form: str) -> None:
    rng, count = random.Random(leaf.kind + form), 300
    footers = [b"", bytearray(), bytearray()]
    of = np.array([rng.choice([1, 2]) if form != "one buffer" else 1 for _ in range(count)])
    stack = np.full((KINDS, count), -1, np.int64)
    pairs: list[tuple[Any, Any]] = []
    for k in range(count):
        stored = {name: _value(rng, max(leaf.width, 1)) for name in ("min_value", "max_value", "min", "max")}
        buffer = footers[of[k]]
        assert isinstance(buffer, bytearray)
        for name, value in stored.items():
            if value is not None:
                above = int(of[k]) << 40 if form == "numbers above the place" else 0
                stack[PLACE[name], k] = len(buffer) + above
                stack[PLACE[f"{name}_size"], k] = len(value)
                buffer += value
        new = stored["min_value"] is not None or stored["max_value"] is not None
        old = (stored["min"], stored["max"]) if leaf.kind not in ("uint", "string") else (None, None)
        pairs.append((stored["min_value"], stored["max_value"]) if new else old)
        for name in ("null_count", "nan_count", "num_values"):
            stack[PLACE[name], k] = rng.choice([-5, -1, 0, 3, 7])
    places = {
        "one buffer": BoundPlaces([footers[1]]),
        "a buffer each": BoundPlaces(footers, of),
        "numbers above the place": BoundPlaces(footers, shift=40),
    }[form]
    found = bounds_of_numbers(leaf, stack, places)
    counts = [np.maximum(stack[PLACE[name]], -1) for name in ("null_count", "nan_count")]
    expected = bounds_of_stored(leaf, *zip(*pairs, strict=True), *counts, stack[PLACE["num_values"]])  # type: ignore[arg-type]
    good = expected.has_bounds
    assert found.has_bounds.tolist() == good.tolist()
    assert 0 < good.sum() < count
    assert found.mins[good].tolist() == expected.mins[good].tolist()
    assert found.maxs[good].tolist() == expected.maxs[good].tolist()
    for name in ("null_counts", "nan_counts", "counts", "all_null"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name


def test_places_outside_of_a_footer_are_refused() -> None:
    stack = np.full((KINDS, 1), -1, np.int64)
    stack[PLACE["max_value"]], stack[PLACE["max_value_size"]] = 0, 8
    for place, size, places in (
        (1, 8, BoundPlaces([bytes(8)])), (0, 9, BoundPlaces([bytes(8)])), (0, -1, BoundPlaces([bytes(8)])),
        (1 << 62, 8, BoundPlaces([bytes(8)])), (0, 8, BoundPlaces([])), (0, 8, BoundPlaces([bytes(8)], np.array([1]))),
        (0, 8, BoundPlaces([bytes(8)], np.array([-1]))), (1 << 40, 8, BoundPlaces([bytes(8)], shift=40)),
    ):  # fmt: skip
        stack[PLACE["min_value"]], stack[PLACE["min_value_size"]] = place, size
        with pytest.raises(KernelError):
            bounds_of_numbers(LEAVES[1], stack, places)


# ---- a ColumnIndex


def _as_struct(found: ColumnIndexArrays, width: int) -> tuple[Any, ...]:
    bounds = [part if width == 0 else len(part[0]) for part in (found.lower, found.upper)]
    numbers = (found.null_counts, found.repetition_histograms, found.definition_histograms, found.nan_counts)
    lists = [None if part is None else part.tolist() for part in numbers]
    return found.null_pages.tolist(), *bounds, found.order, *lists


def _expected(index: tt.ColumnIndex, width: int) -> tuple[Any, ...]:
    bounds = [part if width == 0 else len(part) for part in (index.min_values, index.max_values)]
    lists = [
        index.null_counts, index.repetition_level_histograms, index.definition_level_histograms, index.nan_counts,
    ]  # fmt: skip
    return index.null_pages, *bounds, index.boundary_order, *lists


def _indexes() -> list[tuple[bytes, int]]:
    low = [struct.pack("<q", n) for n in (3, -1, 70)]
    return [
        (serialize(tt.ColumnIndex([], [], [], 0)), 8),
        (serialize(tt.ColumnIndex([False, True, False], [low[0], b"", low[1]], [low[2], b"", low[0]], 1)), 8),
        (serialize(tt.ColumnIndex([False] * 3, low, low, 2, [0, 1, 5], nan_counts=[0, 0, 1 << 40])), 8),
        (serialize(tt.ColumnIndex([False] * 20, [b"a"] * 20, [b"b" * 300] * 20, 0, [1] * 20, [1] * 40, [2] * 60)), 0),
    ]


@pytest.mark.parametrize("k", range(4))
def test_a_column_index_is_read_as_its_decoder_reads_it(k: int) -> None:
    data, width = _indexes()[k]
    assert _as_struct(deserialize_column_index(data, width, 0), width) == _expected(
        deserialize(tt.ColumnIndex, data)[0], width
    )
    rng, agreed = random.Random(k), 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 5])):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            expected = _expected(deserialize(tt.ColumnIndex, bytes(damaged))[0], width)
        except CorruptFileError as error:
            with pytest.raises(type(error)):
                deserialize_column_index(bytes(damaged), width, 0)
            continue
        agreed += 1
        assert _as_struct(deserialize_column_index(bytes(damaged), width, 0), width) == expected
    assert agreed > 20


def test_bounds_of_a_column_index() -> None:
    data = _indexes()[2][0]
    found = deserialize_column_index(data, 8, 0)
    (low, usable), (high, _) = found.lower, found.upper
    assert (low.tolist(), usable.tolist(), high.tolist()) == ([3, -1, 70], [True] * 3, [3, -1, 70])
    assert deserialize_column_index(data, 4, 0).lower[1].tolist() == [False] * 3
    with pytest.raises(CorruptFileError):
        deserialize_column_index(data, 3, 0)


# ---- Bloom filters of one open file


def _filters(path: Path) -> tuple[list[tuple[int, int]], list[set[int]], int]:
    """A file of three filters: their places, the hashes in each, and the file's size."""
    rng, places, held, data = random.Random(2), [], [], b"PAR1"
    for size in (BLOCK_BYTES, 64 * BLOCK_BYTES, 1024 * BLOCK_BYTES):
        hashes = [rng.getrandbits(64) for _ in range(size // BLOCK_BYTES * 8)]
        one = BloomFilter.empty(size)
        one.insert_hashes(np.array(hashes, np.uint64))
        header, bitset = serialize_filter(one.bitset)
        places.append((len(data), len(header) + size))
        held.append(set(hashes))
        data += header + bitset.tobytes() + bytes(rng.randrange(50))
    data += bytes(8)
    path.write_bytes(data)
    return places, held, len(data)


@pytest.mark.parametrize("tail", [0, 12, 40_000, 1 << 20])
@pytest.mark.parametrize("known", [True, False])
def test_filters_of_an_open_file(tmp_path: Path, tail: int, known: bool) -> None:
    path = tmp_path / "filters"
    places, held, size = _filters(path)
    end = path.read_bytes()[max(size - tail, 0) :]
    offsets = np.array([offset for offset, _ in places])
    lengths = np.array([length if known else 0 for _, length in places])
    rng, fd = random.Random(4), os.open(path, os.O_RDONLY)
    assert kernels.probe_open_filters is not None
    try:
        for _ in range(40):
            asked = [rng.choice([rng.getrandbits(64), rng.choice(sorted(rng.choice(held)))])]
            asked += [rng.getrandbits(64) for _ in range(rng.choice([0, 0, 3]))]
            hashes = np.array(asked, np.uint64)
            found, requests, read = kernels.probe_open_filters(fd, size, end, offsets, lengths, hashes, 1 << 20)
            data = path.read_bytes()
            for k, (offset, length) in enumerate(places):
                bits = np.frombuffer(data, np.uint8, length // 32 * 32, offset + length % 32)
                assert found[k] == int(any(BloomFilter(bits.copy()).check_hash(h) for h in asked))
            assert (requests == 0) == (read == 0)
            if tail == 1 << 20:
                assert requests == 0
        none = kernels.probe_open_filters(fd, size, b"", offsets, lengths, np.zeros(0, np.uint64), 1 << 20)
        assert none[0].tolist() == [0, 0, 0]
        one = np.array([1], np.uint64)
        small = kernels.probe_open_filters(fd, size, b"", offsets, lengths, one, 2048)
        assert small[0].tolist()[2] == 2  # more than is allowed
        for offset, length in ((0, 10), (-5, 10), (size, 10), (size - 9, 2), (5, 1 << 40), (4, -1), (5, 0), (5, 70)):
            answer = kernels.probe_open_filters(fd, size, b"", np.array([offset]), np.array([length]), one, 1 << 20)
            assert answer[0].tolist() == [2], (offset, length)
        for args in ((offsets, lengths[:1], b""), (offsets, lengths, bytes(size + 1))):
            with pytest.raises(KernelError):
                kernels.probe_open_filters(fd, size, args[2], args[0], args[1], one, 1 << 20)
        # A file that is shorter than it was.
        gone = kernels.probe_open_filters(fd, size + 4096, b"", offsets + size, lengths, one, 1 << 20)
        assert gone[0].tolist() == [2, 2, 2]
    finally:
        os.close(fd)
