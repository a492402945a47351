"""An OffsetIndex whose pages have moved: all but the offsets stays as it is."""

from __future__ import annotations

import random

import pytest

from pyparq.errors import CorruptFileError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.thrift_tree import BINARY, I32, I64, ThriftStruct
from pyparq.maintenance.footer_edit import moved_offset_index


def _index(offsets: list[int], unencoded: list[int] | None = None) -> bytes:
    pages = [
        tt.PageLocation(offset=at, compressed_page_size=k + 1, first_row_index=7 * k) for k, at in enumerate(offsets)
    ]
    return serialize(tt.OffsetIndex(page_locations=pages, unencoded_byte_array_data_bytes=unencoded))


def test_offsets_follow_and_the_rest_stays() -> None:
    rng = random.Random(5)
    for count in (0, 1, 2, 14, 15, 16, 300):
        offsets = sorted(rng.randrange(4, 1 << rng.randrange(3, 62)) for _ in range(count))
        sizes = [rng.randrange(1 << 40) for _ in offsets]
        new = {at: rng.choice([at, 0, at + 1, at - 1, rng.randrange(1 << 62)]) for at in offsets}
        found, _ = deserialize(tt.OffsetIndex, moved_offset_index(memoryview(_index(offsets, sizes)), new.__getitem__))
        wanted, _ = deserialize(tt.OffsetIndex, _index([new[at] for at in offsets], sizes))
        assert found == wanted


def test_unknown_fields_and_bytes_behind_stay() -> None:
    tree, _ = ThriftStruct.parse(_index([100, 200]))
    tree.set_binary(99, b"of the index")
    pages = tree.list(1)
    assert pages is not None
    pages.struct(0).set_binary(-5, b"of a page")
    stored = tree.serialize() + b"behind"
    assert moved_offset_index(memoryview(stored), lambda at: at) == stored
    moved = moved_offset_index(memoryview(stored), lambda at: at + 1000)
    again, end = ThriftStruct.parse(moved)
    assert again.binary(99) == b"of the index"
    assert moved[end:] == b"behind"
    found = again.list(1)
    assert found is not None
    assert [found.struct(k).integer(1) for k in range(2)] == [1100, 1200]
    assert found.struct(0).binary(-5) == b"of a page"


def test_a_shorter_integer_becomes_a_long_one() -> None:
    tree, _ = ThriftStruct.parse(_index([100]))
    pages = tree.list(1)
    assert pages is not None
    pages.struct(0).set_integer(1, I32, 100)
    moved, _ = ThriftStruct.parse(moved_offset_index(memoryview(tree.serialize()), lambda _: 1 << 40))
    found = moved.list(1)
    assert found is not None
    field = found.struct(0).field(1)
    assert field is not None
    assert field.wire == I64
    assert found.struct(0).integer(1) == 1 << 40


@pytest.mark.parametrize("stored", ["binary offset", "no list", "no structs", "too short"])
def test_another_form_is_refused(stored: str) -> None:
    tree, _ = ThriftStruct.parse(_index([100]))
    if stored == "binary offset":
        pages = tree.list(1)
        assert pages is not None
        page = pages.struct(0)
        page.remove(1)
        page.set_binary(1, b"100")
        assert page.field(1).wire == BINARY  # type: ignore[union-attr]
    elif stored == "no list":
        tree.remove(1)
        tree.set_binary(1, b"100")
    data = tree.serialize()
    if stored == "no structs":
        data = bytes([0x19, 0x16, 0x02, 0])  # a list of one i64
    elif stored == "too short":
        data = data[:-2]
    with pytest.raises(CorruptFileError, match="OffsetIndex cannot be moved"):
        moved_offset_index(memoryview(data), lambda at: at + 1)
