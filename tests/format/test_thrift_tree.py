"""The tree of a serialized Thrift struct: untouched parts come out byte for byte, damaged bytes give a typed error."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from conftest import corpus_path
from rewritten import footer_bytes
from written import written

import pyparq
from pyparq.errors import ParquetError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.thrift_tree import I32, I64, LIST, STRUCT, ThriftList, ThriftStruct

CORPUS = corpus_path()


def open_all(tree: ThriftStruct) -> None:
    """Open every struct and list below, so that all of it is put together again."""
    for field in tree.fields:
        if field.wire == STRUCT:
            inner = tree.struct(field.number)
            assert inner is not None
            open_all(inner)
        elif field.wire == LIST:
            found = tree.list(field.number)
            assert found is not None
            for k in range(len(found) if found.wire == STRUCT else 0):
                open_all(found.struct(k))


def round_trip(data: bytes) -> bytes:
    tree, end = ThriftStruct.parse(data)
    assert tree.serialize() == data[:end]
    open_all(tree)
    return tree.serialize()


def test_footers_of_the_corpus_come_out_as_they_were(corpus: Path) -> None:
    seen = 0
    for path in sorted(corpus.rglob("*.parquet")):
        data = path.read_bytes()
        if data[-4:] == b"PAR1":
            footer = footer_bytes(data)
            assert round_trip(footer) == footer[: ThriftStruct.parse(footer)[1]]
            seen += 1
    assert seen > 200


def test_what_no_writer_should_do_stays() -> None:
    """Long forms of headers and numbers, fields out of order, types that parquet.thrift does not use."""
    for data in (
        b"\x05\x02\x0e\x00",  # a field header in the long form where the short one would do
        b"\x15\x8e\x80\x00\x00",  # a number with bytes to spare
        b"\x19\xfc\x01\x00\x00",  # the long form of a list of one
        b"\x65\x02\x05\x02\x04\x00",  # field 6, then field 1
        b"\x11\x12\x1d" + bytes(16) + b"\x17" + bytes(8) + b"\x1b\x01\x85\x01\x61\x02\x00",  # bools, uuid, double, map
        b"\x0c\xfe\xff\x03\x18\x03abc\x00\x00",  # a struct in field 32767
    ):
        assert round_trip(data) == data


def test_changes_in_places() -> None:
    data = serialize(tt.ColumnChunk(file_offset=4, offset_index_offset=100, offset_index_length=9))
    tree, _ = ThriftStruct.parse(data)
    tree.set_integer(4, I64, 1 << 40)
    tree.set_integer(7, I32, 12)
    tree.set_integer(6, I64, 77)
    tree.set_binary(1, b"elsewhere")
    changed, _ = deserialize(tt.ColumnChunk, tree.serialize())
    assert (changed.file_path, changed.file_offset, changed.offset_index_offset) == ("elsewhere", 4, 1 << 40)
    assert (changed.offset_index_length, changed.column_index_offset, changed.column_index_length) == (9, 77, 12)
    for number in (1, 4, 6, 7):
        tree.remove(number)
    tree.set_integer(4, I64, 100)
    assert tree.serialize() == data


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, -64, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1])
def test_numbers(value: int) -> None:
    tree = ThriftStruct()
    tree.set_integer(2, I64, value)
    assert ThriftStruct.parse(tree.serialize())[0].integer(2) == value
    assert deserialize(tt.ColumnChunk, tree.serialize())[0].file_offset == value


@pytest.mark.parametrize("count", [0, 1, 14, 15, 16, 200])
def test_lists_of_any_length(count: int) -> None:
    orders = ThriftList(STRUCT)
    for _ in range(count):
        order = ThriftStruct()
        order.set_struct(1, ThriftStruct())
        orders.append(order)
    tree, _ = ThriftStruct.parse(serialize(tt.FileMetaData(1, [tt.SchemaElement(name="r")], 0, [])))
    tree.set_list(7, orders)
    footer, _ = deserialize(tt.FileMetaData, tree.serialize())
    assert [order.TYPE_ORDER for order in footer.column_orders] == [tt.TypeDefinedOrder()] * count


def test_the_last_of_two_fields_counts() -> None:
    tree, _ = ThriftStruct.parse(b"\x26\x02\x06\x04\x06\x00")
    assert tree.integer(2) == 3
    tree.set_integer(2, I64, 7)
    assert tree.serialize() == b"\x26\x02\x06\x04\x0e\x00"


def test_wrong_types_are_refused() -> None:
    tree, _ = ThriftStruct.parse(b"\x15\x02\x18\x01a\x00")
    for ask in (lambda: tree.binary(1), lambda: tree.integer(2), lambda: tree.struct(1), lambda: tree.list(1)):
        with pytest.raises(ParquetError, match="is not"):
            ask()


def test_nesting_is_bounded() -> None:
    with pytest.raises(ParquetError, match="nested too deeply"):
        ThriftStruct.parse(b"\x1c" * 5_000 + b"\x00" * 5_001)
    with pytest.raises(ParquetError, match="nested too deeply"):
        ThriftStruct.parse(b"\x19" + b"\x19" * 5_000)


def test_counts_are_checked_before_anything_is_allocated() -> None:
    for data in (b"\x19\xfc\xff\xff\xff\xff\x0f", b"\x18\xff\xff\xff\xff\x0f", b"\x1b\xff\xff\xff\xff\x0f\x55"):
        with pytest.raises(ParquetError):
            ThriftStruct.parse(data + b"\x00" * 8)


def damaged(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out))
        how = chance.random()
        if how < 0.6:
            out[at] = chance.randrange(256)
        elif how < 0.8:
            del out[at : at + chance.randint(1, 9)]
        else:
            out[at:at] = bytes(chance.choices(range(256), k=chance.randint(1, 9)))
        if not out:
            break
    return bytes(out)


def exercise(data: bytes) -> None:
    """What is parsed comes out as it was, or there is a typed error."""
    try:
        tree, end = ThriftStruct.parse(data)
    except ParquetError:
        return
    assert tree.serialize() == data[:end]
    try:
        open_all(tree)
    except ParquetError:
        return
    assert tree.serialize() == data[:end]


def some_footer() -> bytes:
    return footer_bytes(
        written({"a": [1, 2, 3], "b": ["x", None, "z"]}, row_group_size=1, key_value_metadata={"k": "v"})
    )


def test_damaged_footers() -> None:
    data, chance = some_footer(), random.Random(16)
    for _ in range(3_000):
        exercise(damaged(data, chance))
    for end in range(len(data)):
        exercise(data[:end])


@pytest.mark.fuzz
def test_damaged_footers_at_length() -> None:
    data, chance = some_footer(), random.Random()
    for _ in range(200_000):
        exercise(damaged(data, chance))


def test_damaged_footers_of_files(tmp_path: Path) -> None:
    """A file whose footer is damaged is refused with a typed error, or indexed: its bytes stay in any case."""
    whole = written({"a": list(range(500)), "b": [f"v{i}" for i in range(500)]}, max_rows_per_page=100)
    footer, chance = footer_bytes(whole), random.Random(4)
    outcomes: dict[Any, int] = {}
    for k in range(150):
        changed = damaged(footer, chance)
        data = whole[: len(whole) - 8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
        path = tmp_path / f"{k}.parquet"
        path.write_bytes(data)
        try:
            report = pyparq.add_indexes(path, bloom_filters=True, replace=True)
            outcomes[report.files_written] = outcomes.get(report.files_written, 0) + 1
        except ParquetError as error:
            outcomes[type(error).__name__] = outcomes.get(type(error).__name__, 0) + 1
            assert path.read_bytes() == data
    assert outcomes.get("CorruptFileError", 0) > 10
