"""Compact protocol codec: what it accepts and refuses, and that the pure Python decoder agrees with it."""

from __future__ import annotations

import contextlib
import gc
import random
import struct
import threading
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TType

from pyparq.errors import CorruptFileError
from pyparq.format import thrift_codec
from pyparq.format.generated import ttypes
from pyparq.format.generated.rules import RULES
from pyparq.format.thrift_codec import (
    ThriftDecodeError,
    ThriftEncodeError,
    ThriftTruncatedError,
    deserialize,
    deserialize_lists,
    serialize,
)
from pyparq.kernels._native import KernelError, ThriftRules, ThriftTruncated

NAMES = [row[0] for row in RULES]
UNIONS = {row[0] for row in RULES if row[1]}
REQUIRED = {row[0]: [f[1] for f in row[2] if f[5] & 1] for row in RULES}

SCALARS = {
    TType.BOOL: [True, False],
    TType.BYTE: [0, 1, -1, 127, -128],
    TType.I16: [0, 1, -1, 32767, -32768],
    TType.I32: [0, 1, -1, 64, 2**31 - 1, -(2**31)],
    TType.I64: [0, 1, -1, 300, 2**63 - 1, -(2**63)],
    TType.DOUBLE: [0.0, -0.0, 1.5, float("inf"), 5e-324],
}


def filled(rng: random.Random, cls: type, optional: float = 1.0) -> Any:
    """An object of a generated class with random values, unions with one member set."""
    value = cls()
    spec = [row for row in cls.thrift_spec if row]  # type: ignore[attr-defined]
    if cls.__name__ in UNIONS:
        spec = [rng.choice(spec)]
    for _, kind, name, args, _ in spec:
        wanted = name in REQUIRED[cls.__name__] or cls.__name__ in UNIONS
        if not wanted and rng.random() > optional:
            continue
        if kind == TType.LIST:
            made = [one(rng, args[0], args[1], optional) for _ in range(rng.choice([0, 1, 3, 14, 15, 40]))]
        else:
            made = one(rng, kind, args, optional)
        setattr(value, name, made)
    return value


def one(rng: random.Random, kind: int, args: Any, optional: float) -> Any:
    if kind == TType.STRUCT:
        return filled(rng, args[0], optional)
    if kind == TType.STRING:
        return rng.choice(["", "a", "grüße", "\U0001f600" * 40]) if args == "UTF8" else rng.randbytes(7)
    return rng.choice(SCALARS[kind])


def slow(cls: type, data: bytes) -> Any:
    value = cls()
    thrift_codec._slow_protocol(BytesIO(data)).readStruct(value, cls.thrift_spec)  # type: ignore[attr-defined]
    return value


NOTHING_KNOWN = ThriftRules([("Any", False, [])])


def stepped_over(data: bytes) -> int:
    """The struct's end, found by the wire alone: every field is one that the rules do not know."""
    end, _ = NOTHING_KNOWN.check(data, 0, 0)
    return end


def page_header() -> bytes:
    inner = ttypes.DataPageHeader(
        num_values=20_000, encoding=8, definition_level_encoding=3, repetition_level_encoding=3
    )
    return serialize(
        ttypes.PageHeader(
            type=0, uncompressed_page_size=1 << 20, compressed_page_size=77, crc=-5, data_page_header=inner
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_through_both_decoders(name: str) -> None:
    cls = getattr(ttypes, name)
    rng = random.Random(name)
    for optional in (0.0, 0.5, 1.0):
        # RowGroups full of column chunks get large: fewer rounds say as much.
        for _ in range(2 if name in ("RowGroup", "FileMetaData") else 6):
            value = filled(rng, cls, min(optional, 0.3) if name == "FileMetaData" else optional)
            data = serialize(value)
            assert deserialize(cls, data) == (value, len(data))
            assert slow(cls, data) == value
            assert thrift_codec._encode_slowly(value, cls.thrift_spec) == data
            assert stepped_over(data) == len(data)


def test_wire_bytes_by_hand() -> None:
    # Field 1 (i64, zigzag 600 -> 0x258 -> varint d8 04), field 2 (i32 77), field 3 (i64 20000), stop.
    data = bytes.fromhex("16b009 159a01 16c0b802 00")
    location, end = deserialize(ttypes.PageLocation, data)
    assert (location.offset, location.compressed_page_size, location.first_row_index) == (600, 77, 20_000)
    assert end == len(data)
    assert serialize(location) == data


def test_offset_and_buffer_kinds() -> None:
    header = page_header()
    data = b"\xff" * 13 + header + b"trailing"
    views: list[Any] = [data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)]
    for view in views:
        decoded, end = deserialize(ttypes.PageHeader, view, 13)
        assert end == 13 + len(header)
        assert decoded.crc == -5
        assert decoded.data_page_header is not None
        assert decoded.data_page_header.num_values == 20_000
    for offset in (-1, len(data) + 1, 2**62):
        with pytest.raises(ThriftDecodeError):
            deserialize(ttypes.PageHeader, data, offset)


def test_every_truncation_says_so() -> None:
    rng = random.Random(1)
    for name in NAMES:
        data = serialize(filled(rng, getattr(ttypes, name), 0.2))
        for n in range(0, len(data), max(1, len(data) // 300)):
            with pytest.raises(ThriftTruncatedError):
                deserialize(getattr(ttypes, name), data[:n])
            with pytest.raises(ThriftTruncated):
                stepped_over(data[:n])


@pytest.mark.parametrize("name", [name for name in NAMES if REQUIRED[name]])
def test_each_required_field_is_required(name: str) -> None:
    cls = getattr(ttypes, name)
    value = filled(random.Random(name), cls, 0.2)
    spec = cls.thrift_spec
    for field in REQUIRED[name]:
        kept = getattr(value, field)
        setattr(value, field, None)
        data = thrift_codec._encode_slowly(value, spec)
        if (name, field) in thrift_codec.NOT_NEEDED:
            assert not getattr(deserialize(cls, data)[0], field)
        else:
            with pytest.raises(ThriftDecodeError, match=f"{name} lacks its required field {field}"):
                deserialize(cls, data)
        with pytest.raises(ThriftEncodeError, match=field):
            serialize(value)
        setattr(value, field, kept)


BAD: dict[str, tuple[str, bytes]] = {
    # (class, bytes): each would decode, or do damage, without the check
    "list longer than the bytes": ("OffsetIndex", bytes.fromhex("19fc ffffffff0f 00")),
    "list of nothing, two billion times": ("OffsetIndex", bytes.fromhex("19f0 ffffffff07 00")),
    "unknown list longer than the bytes": ("OffsetIndex", bytes.fromhex("f9fb ffffffff07 00")),
    "unknown map longer than the bytes": ("OffsetIndex", bytes.fromhex("fb ffffffff07 88 00")),
    "string longer than the bytes": ("KeyValue", bytes.fromhex("18 ffffffff07 6100")),
    "string length that is negative as int32": ("KeyValue", bytes.fromhex("18 ffffffff0f 6100")),
    "varint too long": ("SortingColumn", bytes.fromhex("15 808080808000 11 11 00")),
    "varint too large": ("SortingColumn", bytes.fromhex("15 ffffffff1f 11 11 00")),
    "varint without an end": ("SortingColumn", b"\x15" + b"\x80" * 40),
    "i16 too large": ("RowGroup", bytes.fromhex("190c 1600 1600 44 808004 00")),
    "field twice": ("DecimalType", bytes.fromhex("1502 1504 0504 04 00")),
    "required field of another type": ("DecimalType", bytes.fromhex("1602 1504 00")),
    "element type of another kind": ("OffsetIndex", bytes.fromhex("1916 00 00")),
    "field type 14": ("DecimalType", bytes.fromhex("1502 1504 1e 00")),
    "field type 15": ("DecimalType", bytes.fromhex("1502 1504 1f 00")),
    "field type 0 with an id": ("DecimalType", bytes.fromhex("1502 1504 10 00")),
    "bool element that is none": ("ColumnIndex", bytes.fromhex("191103 190800 1908 1500 00")),
    "union with two members": ("TimeUnit", bytes.fromhex("1c00 1c00 00")),
    "name that is not UTF-8": ("SchemaElement", bytes.fromhex("4801ff 00")),
    "overlong UTF-8": ("SchemaElement", bytes.fromhex("4802c080 00")),
    "UTF-8 surrogate": ("SchemaElement", bytes.fromhex("4803eda080 00")),
    "beyond Unicode": ("SchemaElement", bytes.fromhex("4804f4908080 00")),
    "UTF-8 cut off": ("SchemaElement", bytes.fromhex("4802e282 00")),
    "deep structs": ("DecimalType", b"\x15\x02\x15\x04" + b"\xfc" * 100_000),
    "deep lists": ("DecimalType", b"\x15\x02\x15\x04\xf9" + b"\x19" * 100_000),
    "deep maps": ("DecimalType", b"\x15\x02\x15\x04\xfb" + b"\x01\xbb" * 100_000),
    "field ids beyond 16 bits": ("DecimalType", b"\x15\x02\x15\x04" + b"\xf1" * 3000 + b"\x00"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_bytes_are_refused(what: str) -> None:
    name, data = BAD[what]
    with pytest.raises(ThriftDecodeError) as caught:
        deserialize(getattr(ttypes, name), data)
    assert isinstance(caught.value, CorruptFileError)
    assert isinstance(caught.value, ValueError)
    assert name in str(caught.value)


def test_unknown_fields_are_passed_over() -> None:
    future = (
        bytes.fromhex("1502 1504")  # scale, precision
        + bytes.fromhex("01 c801")  # long-form id 100: bool true
        + bytes.fromhex("13 07 14 e807 15 9a01 16 9a01")
        + b"\x17" + struct.pack("<d", 1.5)
        + bytes.fromhex("18 03 616263 19 21 0102 1a 35 020406 1c 1c00 00")
        + bytes.fromhex("1b 02 58 02 0161 04 0162")  # map<i32, binary>
        + bytes.fromhex("1b 00 00")  # empty map; stop
    )  # fmt: skip
    decoded, end = deserialize(ttypes.DecimalType, future)
    assert (decoded.scale, decoded.precision) == (1, 2)
    assert end == len(future) == stepped_over(future)


def test_nesting_up_to_the_cap_decodes() -> None:
    # The cap must stay under the decoder's own, so that what the check lets through decodes.
    def nested(depth: int) -> bytes:
        return b"\x15\x02\x15\x04" + b"\xfc" * depth + b"\x00" * depth + b"\x00"

    refused = next(depth for depth in range(1, 200) if not decodes(nested(depth)))
    assert 20 < refused < 64
    with pytest.raises(ThriftDecodeError, match="nested too deeply"):
        deserialize(ttypes.DecimalType, nested(refused))


def decodes(data: bytes) -> bool:
    try:
        return deserialize(ttypes.DecimalType, data)[0].precision == 2
    except ThriftDecodeError:
        return False


def test_unknown_enum_and_union_values() -> None:
    header = ttypes.DictionaryPageHeader(num_values=1, encoding=99)
    assert deserialize(ttypes.DictionaryPageHeader, serialize(header))[0].encoding == 99
    order, _ = deserialize(ttypes.ColumnOrder, bytes.fromhex("9c00 00"))
    assert order == ttypes.ColumnOrder()


def test_metadata_values_may_be_raw_bytes() -> None:
    pairs = [
        ttypes.KeyValue(key="raw", value=b"\x80\x04\xff"),
        ttypes.KeyValue(key="text", value="grüße"),
        ttypes.KeyValue(key="none"),
    ]
    meta = ttypes.FileMetaData(
        version=1,
        schema=[ttypes.SchemaElement(name="r")],
        num_rows=0,
        row_groups=[],
        key_value_metadata=pairs,
    )
    data = serialize(meta)
    decoded, _ = deserialize(ttypes.FileMetaData, data)
    assert [pair.value for pair in decoded.key_value_metadata or []] == [b"\x80\x04\xff", "grüße", None]
    assert decoded.schema == meta.schema
    assert serialize(decoded) == data
    key = bytes.fromhex("1801ff 00")
    with pytest.raises(ThriftDecodeError, match=r"KeyValue\.key is not UTF-8"):
        deserialize(ttypes.KeyValue, key)


@pytest.mark.parametrize(
    "value",
    [
        ttypes.SortingColumn(column_idx=2**31, descending=True, nulls_first=False),
        ttypes.SortingColumn(column_idx="1", descending=True, nulls_first=False),  # type: ignore[arg-type]
        ttypes.KeyValue(key="\ud800"),
        ttypes.OffsetIndex(page_locations=[ttypes.PageLocation(offset=1)]),
        ttypes.OffsetIndex(page_locations=5),  # type: ignore[arg-type]
        ttypes.OffsetIndex(page_locations=[object()]),  # type: ignore[list-item]
        ttypes.TimeUnit(MILLIS=ttypes.MilliSeconds(), MICROS=ttypes.MicroSeconds()),
    ],
)
def test_values_that_do_not_fit_are_not_written(value: object) -> None:
    with pytest.raises(ThriftEncodeError):
        serialize(value)


@pytest.mark.fuzz
def test_damaged_bytes_agree_with_the_pure_decoder_or_fail() -> None:
    rng = random.Random(20260819)
    good = 0
    for round_number in range(6000):
        cls = getattr(ttypes, NAMES[round_number % len(NAMES)])
        data = bytearray(serialize(filled(rng, cls, 0.15 if cls is ttypes.FileMetaData else 0.5)))
        del data[2000:]
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decoded, end = deserialize(cls, bytes(data))
        except ThriftDecodeError:
            continue
        good += 1
        raw = any(isinstance(v, bytes) for v in values_of(decoded))
        assert raw or repr(slow(cls, bytes(data[:end]))) == repr(decoded)  # repr: NaN equals itself
    assert 300 < good < 5000


def values_of(value: Any) -> list[Any]:
    """Every KeyValue.value inside."""
    if isinstance(value, ttypes.KeyValue):
        return [value.value]
    if isinstance(value, list):
        return [found for item in value for found in values_of(item)]
    return [found for name in getattr(value, "__slots__", ()) for found in values_of(getattr(value, name))]


@pytest.mark.fuzz
def test_random_bytes_never_do_worse_than_an_error() -> None:
    rng = random.Random(7)
    for _ in range(20_000):
        data = rng.randbytes(rng.randint(0, 60))
        cls = getattr(ttypes, rng.choice(NAMES))
        with contextlib.suppress(ThriftDecodeError):
            deserialize(cls, data)
        with contextlib.suppress(KernelError):
            assert 0 < stepped_over(data) <= len(data)


def test_garbage_collector_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift_codec, "PAUSE_GC_FROM", 1)
    states: list[bool] = []
    header = page_header()
    decode = thrift_codec.fastbinary.decode_compact

    def watched(*args: Any) -> Any:
        states.append(gc.isenabled())
        return decode(*args)

    monkeypatch.setattr(thrift_codec, "fastbinary", SimpleNamespace(decode_compact=watched))
    assert gc.isenabled()
    threads = [
        threading.Thread(target=lambda: [deserialize(ttypes.PageHeader, header) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(states) == 800
    assert not any(states)
    assert gc.isenabled()
    gc.disable()
    try:
        deserialize(ttypes.PageHeader, header)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_without_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    header = page_header()
    fast, _ = deserialize(ttypes.PageHeader, header)
    monkeypatch.setattr(thrift_codec, "fastbinary", None)
    assert deserialize(ttypes.PageHeader, header + b"more") == (fast, len(header))
    assert serialize(fast) == header
    with pytest.raises(ThriftDecodeError):
        deserialize(ttypes.PageHeader, header[:-1])
    with pytest.raises(ThriftEncodeError):
        serialize(ttypes.PageHeader(type=0))


OFFSET_INDEXES = st.builds(
    ttypes.OffsetIndex,
    page_locations=st.lists(
        st.builds(
            ttypes.PageLocation,
            offset=st.integers(-(2**63), 2**63 - 1),
            compressed_page_size=st.integers(-(2**31), 2**31 - 1),
            first_row_index=st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=20,
    ),
    unencoded_byte_array_data_bytes=st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
)


def as_lists(index: ttypes.OffsetIndex) -> list[list[int] | None]:
    pages, sizes = index.page_locations, index.unencoded_byte_array_data_bytes
    names = ("offset", "compressed_page_size", "first_row_index")
    return [[getattr(page, name) for name in names for page in pages], sizes]


@given(index=OFFSET_INDEXES, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_lists_are_what_the_structs_say(index: ttypes.OffsetIndex, before: bytes, after: bytes) -> None:
    data = serialize(index)
    found, end = deserialize_lists(ttypes.OffsetIndex, before + data + after, len(before))
    assert end == len(before) + len(data)
    assert [None if part is None else part.tolist() for part in found] == as_lists(index)


@given(
    index=OFFSET_INDEXES,
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 400),
)
def test_damaged_lists_fail_as_damaged_structs_do(
    index: ttypes.OffsetIndex, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(serialize(index))
    for place, value in changes:
        data[place % len(data)] = value
    damaged = bytes(data[: max(cut, 1)])
    try:
        expected, end = deserialize(ttypes.OffsetIndex, damaged)
    except ThriftDecodeError as error:
        with pytest.raises(type(error)):
            deserialize_lists(ttypes.OffsetIndex, damaged)
        return
    found, found_end = deserialize_lists(ttypes.OffsetIndex, damaged)
    assert found_end == end
    assert [None if part is None else part.tolist() for part in found] == as_lists(expected)
