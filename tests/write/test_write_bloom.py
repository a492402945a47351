"""Bloom filters of written files: who has one, how large it is, what it says, and which options there are."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from written import Written, write

from pyparq.errors import ColumnNotFoundError, OptionError
from pyparq.index.bloom_filter import false_positive_rate

N = 3_000
RNG = np.random.default_rng(19)
TABLE = pa.table(
    {
        "id": RNG.permutation(N) * 2,
        "few": np.arange(N) % 50,
        "text": [None if k % 3 == 0 else f"text {k}" for k in range(N)],
        "flag": np.arange(N) % 2 == 0,
        "items": pa.array([[k, None, k + 1] if k % 4 else None for k in range(N)]),
    }
)
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def holds(bitset: bytes, plain: bytes) -> bool:
    """The specification's filter_check, on the PLAIN bytes of a value."""
    value = xxhash.xxh64_intdigest(plain)
    block = ((value >> 32) * (len(bitset) // 32)) >> 32
    words = struct.unpack_from("<8I", bitset, 32 * block)
    key = value & 0xFFFFFFFF
    return all(word >> (((key * salt) & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, SALT, strict=True))


def plain(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else struct.pack("<q", value)


def filters(file: Written, group: int = 0) -> list[bool]:
    return [file.bitset(group, c) is not None for c in range(5)]


def test_every_value_is_found_and_absent_ones_are_rare() -> None:
    file = write(TABLE, bloom_filters={"id": 0.01, "text": 0.01, "items": 0.01, "few": 0.01}, row_group_size=1000)
    for g in range(3):
        part = TABLE.slice(g * 1000, 1000)
        values = {
            0: part["id"].to_pylist(), 1: part["few"].to_pylist(), 2: part["text"].to_pylist(),
            4: [v for row in part["items"].to_pylist() if row for v in row],
        }  # fmt: skip
        for column, present in values.items():
            bitset = file.bitset(g, column)
            assert bitset is not None
            assert all(holds(bitset, plain(v)) for v in present if v is not None)
        absent = sum(holds(file.bitset(g, 0) or b"", plain(2 * k + 1)) for k in range(20_000))
        assert absent <= 0.011 * 20_000


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [False] * 5),
        ({"bloom_filters": True}, [True, True, True, False, True]),
        ({"bloom_filters": ["text", "items"]}, [False, False, True, False, True]),
        ({"bloom_filters": {"id": 0.001, "text": True, "few": False}}, [True, False, True, False, False]),
        ({"bloom_filters": {"items.list.element": 0.01}}, [False] * 4 + [True]),
        ({"bloom_filter_options": {"id": {"fpp": 0.1}}}, [True, False, False, False, False]),
        ({"bloom_filter_options": {"id": True, "few": "auto"}}, [True, False, False, False, False]),
        ({"bloom_filters": True, "bloom_filter_options": "auto"}, [True, False, True, False, True]),
        ({"bloom_filters": True, "bloom_filter_options": {"few": "auto"}}, [True, False, True, False, True]),
        ({"bloom_filters": True, "bloom_filter_options": {"id": {"bytes": 64}}}, [True, True, True, False, True]),
        ({"bloom_filters": ["id"], "bloom_filter_options": {"text": {"ndv": 9}}}, [True, False, True, False, False]),
    ],
)  # fmt: skip
def test_who_gets_a_filter(options: dict[str, Any], expected: list[bool]) -> None:
    assert filters(write(TABLE, **options)) == expected


def size(**options: Any) -> int:
    file = write(TABLE, bloom_filter_options={"id": options})
    bitset = file.bitset(0, 0)
    assert bitset is not None
    assert file.chunk(0, 0).meta_data.bloom_filter_length > len(bitset)
    return len(bitset)


def test_sizes() -> None:
    exact = size(fpp=0.01, power_of_two=False)
    assert exact % 32 == 0
    assert false_positive_rate(exact // 32, N) <= 0.01 < false_positive_rate(exact // 32 - 1, N)
    default = size(fpp=0.01)
    assert default & (default - 1) == 0
    assert exact <= default < 2 * exact
    assert size(bytes=32) == 32
    assert size(bytes=96, power_of_two=False) == 96
    assert size(ndv=100_000) == size(ndv=100_000, fpp=0.01) > default
    assert size(max_bytes=1024) == 1024
    assert size(fpp=0.0001) > default
    assert size(ndv=0) == 32


def test_the_distinct_values_are_counted() -> None:
    """Not the rows: repeated values and nulls take no room."""
    repeated = write({"x": np.repeat(np.arange(100), 1000)}, bloom_filters=["x"], use_dictionary=False)
    assert len(repeated.bitset(0, 0) or b"") == 256  # 100 values at about 11 bits
    nulls = write({"x": pa.nulls(1000, pa.int64())}, bloom_filters=["x"])
    assert nulls.bitset(0, 0) == bytes(32)


def test_dictionary_or_not_makes_the_same_filter() -> None:
    data = {"x": [f"v{k % 300}" for k in range(5000)]}
    one, other = (write(data, bloom_filters=["x"], use_dictionary=d).bitset(0, 0) for d in (True, False))
    assert one == other is not None


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2"])
def test_both_zeros_are_inserted(zero: float, kind: str) -> None:
    bitset = write({"x": np.array([1.5, zero], kind)}, bloom_filters={"x": 0.0001}).bitset(0, 0)
    assert bitset is not None
    for value in (0.0, -0.0, 1.5):
        assert holds(bitset, np.array(value, kind).tobytes())
    without = write({"x": np.array([1.5, 2.5], kind)}, bloom_filters={"x": 0.0001}).bitset(0, 0)
    assert without is not None
    assert not holds(without, np.array(0.0, kind).tobytes())


@pytest.mark.parametrize(
    "options",
    [
        {"bloom_filters": {"id": 0}}, {"bloom_filters": {"id": 1.0}}, {"bloom_filters": {"id": "yes"}},
        {"bloom_filters": ["flag"]}, {"bloom_filters": {"flag": 0.01}}, {"bloom_filter_options": {"flag": {}}},
        {"bloom_filter_options": {"id": {"fp": 0.1}}}, {"bloom_filter_options": {"id": {"ndv": -1}}},
        {"bloom_filter_options": {"id": {"bytes": 100}}}, {"bloom_filter_options": {"id": {"bytes": 96}}},
        {"bloom_filter_options": {"id": {"max_bytes": 16}}}, {"bloom_filter_options": {"id": {"bytes": 256 << 20}}},
        {"bloom_filter_layout": "middle"},
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        write(TABLE, **options)


def test_an_unknown_column() -> None:
    for options in ({"bloom_filters": ["idd"]}, {"bloom_filter_options": {"idd": {}}}):
        with pytest.raises(ColumnNotFoundError, match="did you mean 'id'"):
            write(TABLE, **options)
