"""Plain fields of Arrow schemas by the kernel: what pyarrow wrote comes out, and damaged bytes give nothing wrong.

The oracle is the reader in Python (``arrow/schema/ipc_read.py``), which checks every offset by itself.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from pyparq import kernels
from pyparq.arrow.schema.ipc_read import HintError, HintSchema, PlainHint

PLAIN: dict[str, pa.DataType] = {
    "n": pa.null(), "b": pa.bool_(), "c": pa.int8(), "C": pa.uint8(), "s": pa.int16(), "S": pa.uint16(),
    "i": pa.int32(), "I": pa.uint32(), "l": pa.int64(), "L": pa.uint64(), "e": pa.float16(), "f": pa.float32(),
    "g": pa.float64(), "u": pa.string(), "U": pa.large_string(), "vu": pa.string_view(), "z": pa.binary(),
    "Z": pa.large_binary(), "vz": pa.binary_view(), "w:7": pa.binary(7), "tdD": pa.date32(), "tdm": pa.date64(),
    "tts": pa.time32("s"), "ttm": pa.time32("ms"), "ttu": pa.time64("us"), "ttn": pa.time64("ns"),
    "tss:": pa.timestamp("s"), "tsn:": pa.timestamp("ns"), "tsu:Asia/Tokyo": pa.timestamp("us", "Asia/Tokyo"),
    "tDs": pa.duration("s"), "tDm": pa.duration("ms"), "tDn": pa.duration("ns"), "d:9,2": pa.decimal128(9, 2),
    "d:50,-3,256": pa.decimal256(50, -3), "d:5,1,32": pa.decimal32(5, 1), "d:12,3,64": pa.decimal64(12, 3),
}  # fmt: skip
MORE: dict[str, pa.DataType] = {
    "list": pa.list_(pa.int32()), "struct": pa.struct([("a", pa.int32())]), "map": pa.map_(pa.string(), pa.int32()),
    "dictionary": pa.dictionary(pa.int8(), pa.string()), "fixed list": pa.list_(pa.int32(), 3),
    "list view": pa.list_view(pa.int32()), "run ends": pa.run_end_encoded(pa.int32(), pa.string()),
    "interval": pa.month_day_nano_interval(), "union": pa.sparse_union([pa.field("a", pa.int32())]),
}  # fmt: skip


def message(*fields: pa.Field) -> bytes:
    return bytes(pa.schema(list(fields)).serialize())


@pytest.mark.parametrize("form", PLAIN)
def test_a_plain_field(form: str) -> None:
    hints = HintSchema(message(pa.field("first", pa.int8()), pa.field("größe", PLAIN[form])))
    assert hints.plain(1) == PlainHint("größe", form)
    assert (hints.field(1).name, hints.field(1).format) == ("größe", form)
    assert hints.plain(0) == PlainHint("first", "c")


@pytest.mark.parametrize("name", MORE)
def test_a_field_that_is_more(name: str) -> None:
    assert HintSchema(message(pa.field("x", MORE[name]))).plain(0) is None


def test_metadata_makes_a_field_more() -> None:
    hints = HintSchema(message(pa.field("x", pa.int8(), metadata={"a": "b"}), pa.field("y", pa.int8())))
    assert hints.plain(0) is None
    assert hints.plain(1) == PlainHint("y", "c")


def test_places_that_are_not_there() -> None:
    hints = HintSchema(message(pa.field("x", pa.int8())))
    assert hints.plain(1) is None
    assert kernels.arrow_schema_field(b"", 0, 0) is None
    assert kernels.arrow_schema_field(b"\xff" * 64, 0, 5) is None
    assert kernels.arrow_schema_field(b"\x01\0\0\0", 1 << 62, 0) is None
    for offset, index in ((-1, 0), (0, -1)):
        with pytest.raises(kernels.KernelError, match="negative"):
            kernels.arrow_schema_field(b"\x01\0\0\0", offset, index)


def compared(data: bytes) -> int:
    """How many fields the kernel gives; each is as the reader in Python has it."""
    try:
        hints = HintSchema(data)
    except HintError:
        return 0
    found = 0
    for k in range(min(len(hints), 50)):
        plain = hints.plain(k)
        if plain is None:
            continue
        found += 1
        field = hints.field(k)
        assert (field.name, field.format) == (plain.name, plain.format)
        assert field.num_children == 0
        assert not field.is_dictionary
        assert field.metadata == {}
    return found


def test_damaged_bytes() -> None:
    """Bytes changed, cut off, and offsets that point anywhere: the kernel says the same as Python, or nothing."""
    rng = random.Random(18)
    types = [*PLAIN.values(), *MORE.values()]
    whole = message(*(pa.field(f"column {k}", kind) for k, kind in enumerate(types)))
    assert compared(whole) == len(PLAIN)
    found = 0
    for _ in range(3_000):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 5, 40))):
            at = rng.randrange(len(damaged))
            damaged[at] = rng.choice((0, 1, 4, 127, 128, 255, rng.randrange(256)))
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        found += compared(bytes(damaged))
    assert found > 10_000
