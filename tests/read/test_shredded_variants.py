"""Variants: shredded ones put together, values from and to Python, and bytes that are no Variant."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.arrow.variant_values import decode, encode
from pyparq.errors import CorruptFileError, DataError, OptionError, ParquetError

EMPTY = b"\x11\x00\x00"
NULL = b"\x00"


def names(*texts: str) -> bytes:
    """The metadata with these names, in their order."""
    metadata = bytes([1, len(texts)])
    for k in range(len(texts) + 1):
        metadata += bytes([sum(len(text.encode()) for text in texts[:k])])
    return metadata + "".join(texts).encode()


def variant(value: Any) -> bytes:
    return encode(value)[1]


def written(path: Path, rows: list[Any], type_: pa.DataType) -> Path:
    """A file with the Variants ``v``, which are given as they are stored."""
    field = pa.field("v", type_, metadata={"PARQUET:logical_type": "VARIANT"})
    table = pa.table([pa.array(range(len(rows)), pa.int64()), pa.array(rows, type_)], schema=pa.schema(
        [pa.field("id", pa.int64(), False), field]
    ))  # fmt: skip
    pyparq.write_table(table, path, row_group_size=3, max_rows_per_page=2)
    return path


SHREDDED = pa.struct([
    pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary()),
    pa.field("typed_value", pa.struct([
        pa.field("n", pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())]), False),
        pa.field("tags", pa.struct([
            pa.field("value", pa.binary()),
            pa.field("typed_value", pa.list_(pa.field("element", pa.struct([
                pa.field("value", pa.binary()), pa.field("typed_value", pa.string()),
            ]), False))),
        ]), False),
    ])),
])  # fmt: skip
NAMES = names("n", "tags", "z")
NOTHING = {"value": None, "typed_value": None}
FIVE = {"value": None, "typed_value": 5}
ROWS: list[tuple[Any, Any]] = [
    # what is stored, and what it is
    ({"metadata": NAMES, "value": None, "typed_value": {"n": FIVE, "tags": NOTHING}}, {"n": 5}),
    (None, None),
    ({"metadata": NAMES, "value": NULL, "typed_value": None}, None),
    ({"metadata": NAMES, "value": variant("text"), "typed_value": None}, "text"),
    (
        {
            "metadata": NAMES, "value": b"\x02\x01\x02\x00\x02\x0c\x07",
            "typed_value": {
                "n": {"value": NULL, "typed_value": None},
                "tags": {"value": None, "typed_value": [
                    {"value": None, "typed_value": "a"}, {"value": variant(1.5), "typed_value": None},
                    {"value": None, "typed_value": "x" * 100},
                ]},
            },
        },
        {"n": None, "tags": ["a", 1.5, "x" * 100], "z": 7},
    ),
    ({"metadata": NAMES, "value": None, "typed_value": {"n": NOTHING, "tags": NOTHING}}, {}),
    ({"metadata": NAMES, "value": None, "typed_value": None}, None),
]  # fmt: skip


@pytest.fixture
def shredded(tmp_path: Path) -> Path:
    return written(tmp_path / "v.parquet", [row for row, _ in ROWS], SHREDDED)


def test_parts_are_put_together(shredded: Path) -> None:
    expected = [value for _, value in ROWS]
    table = pyparq.read_table(shredded)
    assert str(table.schema.field("v").type) == "struct<metadata: binary, value: binary>"
    assert table.schema.field("v").metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert table["v"].to_pylist() == expected
    assert list(table["v"]) == expected
    assert [row["v"] for row in table.to_pylist()] == expected
    assert table.to_pydict()["v"] == expected
    assert table["v"][4] == expected[4]
    with pyparq.ParquetFile(shredded) as file:
        batches = list(file.scan(filters=col("id") >= 3).iter_batches(2))
        assert [row["v"] for batch in batches for row in batch.to_pylist()] == expected[3:]
        assert file.read_rows(1, 5)["v"].to_pylist() == expected[1:5]
        assert file.scan(["id"]).to_table().num_rows == len(ROWS)
    # The struct of its columns: all of them on request, or some of them by name.
    stored = pyparq.read_table(shredded, variants="stored")
    assert stored.to_arrow()["v"].to_pylist() == pq.read_table(shredded)["v"].to_pylist()
    part = pyparq.read_table(shredded, columns=[("v", "typed_value", "n", "typed_value")])
    assert part["v"].to_pylist()[:2] == [{"typed_value": {"n": {"typed_value": 5}}}, None]
    kept = pyparq.read_table(shredded, filters=col("v", "typed_value", "n", "typed_value") == 5)
    assert kept["v"].to_pylist() == [{"n": 5}]
    with pytest.raises(OptionError, match="variants"):
        pyparq.read_table(shredded, variants="whole?")


def test_a_table_shows_what_they_hold(shredded: Path) -> None:
    text = repr(pyparq.read_table(shredded))
    assert "variant" in text
    assert '{"n": 5}' in text
    assert '"tags": ["a", 1.5' in text
    assert "0x" not in text


def test_arrow_gets_whole_variants(shredded: Path) -> None:
    """Each row is the metadata as it is stored, and a value that another reader of Variants takes."""
    rows = pyparq.read_table(shredded).to_arrow()["v"]
    for row, (stored, expected) in zip(rows.to_pylist(), ROWS, strict=True):
        if stored is None:
            assert row is None
        else:
            assert row["metadata"] == stored["metadata"]
            assert decode(row["metadata"], row["value"]) == expected


def test_variants_in_lists_structs_and_maps(tmp_path: Path) -> None:
    nested = pa.struct(
        [pa.field("x", pa.list_(pa.field("element", SHREDDED, metadata={"PARQUET:logical_type": "VARIANT"})))]
    )
    rows = [{"x": [row for row, _ in ROWS]}, {"x": []}, {"x": None}, None, {"x": [ROWS[0][0]]}]
    table = pa.table([pa.array(rows, nested)], names=["s"])
    pyparq.write_table(table, tmp_path / "n.parquet")
    values = [value for _, value in ROWS]
    expected = [{"x": values}, {"x": []}, {"x": None}, None, {"x": values[:1]}]
    assert pyparq.read_table(tmp_path / "n.parquet")["s"].to_pylist() == expected


def test_a_folder_of_files_that_are_shredded_in_different_ways(shredded: Path) -> None:
    folder = shredded.parent / "t"
    folder.mkdir()
    shredded.rename(folder / "1.parquet")
    numbers = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary()),
                         pa.field("typed_value", pa.int32())])  # fmt: skip
    written(folder / "2.parquet", [{"metadata": EMPTY, "value": None, "typed_value": 8}], numbers)
    schema = pyparq.schema({"id": "int64", "v": "variant?"})
    pyparq.write_table([{"id": 9, "v": [1]}], folder / "3.parquet", schema=schema)
    expected = [*(value for _, value in ROWS), 8, [1]]
    assert pyparq.read_table(folder)["v"].to_pylist() == expected
    pyparq.rewrite(folder, folder.parent / "one.parquet")
    assert pyparq.read_table(folder.parent / "one.parquet")["v"].to_pylist() == expected


def test_a_rewrite_keeps_how_they_are_stored(shredded: Path) -> None:
    target = shredded.parent / "again.parquet"
    pyparq.rewrite(shredded, target, compression="zstd")
    assert pq.read_table(target).schema.field("v").type == pq.read_table(shredded).schema.field("v").type
    assert pyparq.read_table(target)["v"].to_pylist() == [value for _, value in ROWS]
    assert pyparq.verify(target).ok


# ---- other writers


def test_duckdb_shreds_by_default(tmp_path: Path) -> None:
    made = """
        select i as id, case
            when i % 3 = 0 then {'a': i, 'b': 'x' || i, 'l': [i, null], 's': {'d': date '2024-01-01' + i::int}}::variant
            when i % 3 = 1 then i::variant
        end v from range(3000) r(i)
    """
    day = dt.date(2024, 1, 1)
    expected = [
        {"a": i, "b": f"x{i}", "l": [i, None], "s": {"d": day + dt.timedelta(i)}}
        if i % 3 == 0
        else i
        if i % 3 == 1
        else None
        for i in range(3000)
    ]
    for number, options in enumerate(("", "(shredding {v: 'STRUCT(a BIGINT, b INTEGER)'}, row_group_size 2048)")):
        path = tmp_path / f"{number}.parquet"
        duckdb.sql(f"copy ({made}) to '{path}' {options}")
        assert any(
            "typed_value" in name for name in pq.read_metadata(path).schema.to_arrow_schema().field("v").type.names
        )
        assert pyparq.read_table(path)["v"].to_pylist() == expected
        ours = tmp_path / "ours.parquet"
        pyparq.write_table(pyparq.read_table(path), ours)
        same = f"from '{path}' a join '{ours}' b using (id) where a.v::json is not distinct from b.v::json"
        assert duckdb.sql(f"select count(*) {same}").fetchall() == [(3000,)]


# ---- values


VALUES: list[Any] = [
    None, True, False, 0, 127, -128, 128, -32768, 40_000, 1 << 31, -(1 << 63), 1 << 70, -(10**37), 1.5, float("inf"),
    "", "ü", "x" * 63, "x" * 64, "日本" * 500, b"", b"\x00\xff", Decimal("1.50"), Decimal("-0.001"), Decimal(10**20),
    dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.datetime(1500, 1, 1, 2, 3, 4, 5),
    dt.datetime(2024, 3, 10, tzinfo=dt.UTC),
    dt.time(23, 59, 59, 999_999), uuid.UUID(int=7), [], {}, [[[]]], {"a": {"b": [None]}}, {"": 1, "b": 2, "a": 3},
    {str(k): k for k in range(300)}, list(range(70_000)), [None] * 256,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back(value: Any) -> None:
    made = decode(*encode(value))
    assert made == value or (made is None and value is None)
    assert type(made) is type(value) or isinstance(value, int)


def test_other_libraries_write_the_same_bytes() -> None:
    """A few values by hand, from the tables of VariantEncoding.md."""
    assert encode({"b": 1, "a": "x"}) == (b"\x11\x02\x00\x01\x02ab", b"\x02\x02\x00\x01\x00\x02\x04\x05x\x0c\x01")
    assert encode([None, True, -1])[1] == b"\x03\x03\x00\x01\x02\x04\x00\x04\x0c\xff"
    assert encode(Decimal("12.345"))[1] == b"\x20\x03\x39\x30\x00\x00"
    assert encode(dt.date(1970, 1, 2))[1] == b"\x2c\x01\x00\x00\x00"
    assert encode(np.float32(1.5))[1] == b"\x38\x00\x00\xc0\x3f"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({1: 2}, "not a string"), (object(), "type object"), (Decimal("NaN"), "NaN"), (10**38, "38 digits"),
        (Decimal(1).scaleb(-39), "38 digits"), (dt.time(1, tzinfo=dt.UTC), "time zone"), (["\ud800"], "surrogate"),
        ({"\ud800": 1}, "surrogate"),
    ],
    ids=["key", "object", "nan", "large", "scale", "zone", "text", "name"],
)  # fmt: skip
def test_values_that_no_variant_holds(value: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        encode(value)
    schema = pyparq.schema({"v": "variant"})
    with pytest.raises(DataError, match=r"row 1.*column v|cannot be stored"):
        pyparq.write_table([{"v": 1}, {"v": value}], tmp_path / "t.parquet", schema=schema)
    assert not list(tmp_path.iterdir())


def test_deep_values() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    assert decode(*encode(deep)) == deep
    for _ in range(1_000):
        deep = [deep]
    with pytest.raises(DataError, match="nest"):
        encode(deep)
    nested = NULL
    for _ in range(1_000):
        nested = b"\x07\x01\x00\x00" + len(nested).to_bytes(2, "little") + nested
    with pytest.raises(DataError, match="levels"):
        decode(EMPTY, nested)


# ---- bytes from outside


def test_items_that_overlap_are_refused() -> None:
    """A hundred levels of arrays whose two elements are the same bytes would be 2^100 values."""
    nested = NULL
    for _ in range(100):
        nested = b"\x07\x02\x00\x00\x00\x00" + len(nested).to_bytes(2, "little") + nested
    with pytest.raises(DataError, match="overlap"):
        decode(EMPTY, nested)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"metadata": b"", "value": NULL}, "the metadata is empty"),
        ({"metadata": b"\x02\x00\x00", "value": NULL}, "version 2"),
        ({"metadata": b"\x01\xff\x00", "value": NULL}, "more names"),
        ({"metadata": b"\x01\x01\x00\x09a", "value": NULL}, "outside of it"),
        ({"metadata": EMPTY, "value": b""}, "empty"),
        ({"metadata": EMPTY, "value": b"\xfc"}, "type 63"),
        ({"metadata": EMPTY, "value": b"\x18\x01"}, "cut short"),
        ({"metadata": EMPTY, "value": b"\x40\xff\xff\xff\xff"}, "cut short"),
        ({"metadata": EMPTY, "value": b"\x13\xff\xff\xff\xff\x00"}, "more items"),
        ({"metadata": EMPTY, "typed_value": {"n": {"typed_value": 1}}}, "lacks the field name 'n'"),
        ({"metadata": NAMES, "value": b"\x0c\x05", "typed_value": {"n": {"typed_value": 1}}}, "no object"),
        ({"metadata": NAMES, "value": b"\x02\x01\x09\x00\x01\x00", "typed_value": {}}, "field id 9"),
        ({"metadata": NAMES, "value": b"\x02\x02\x02\x02\x00\x01\x02\x00\x00", "typed_value": {}}, "'z' twice"),
        ({"metadata": NAMES, "typed_value": {"n": {"value": NULL, "typed_value": 1}}}, "both there"),
    ],
    ids=range(14),
)  # fmt: skip
def test_invalid_variants(row: dict[str, Any], told: str, tmp_path: Path) -> None:
    filled = {"value": None, "typed_value": None, **row}
    if filled["typed_value"] is not None:
        fields = {name: {**NOTHING, **filled["typed_value"].get(name, {})} for name in ("n", "tags")}
        filled["typed_value"] = fields
    path = written(tmp_path / "bad.parquet", [ROWS[0][0], filled], SHREDDED)
    with pytest.raises(CorruptFileError, match=rf"row 1: .*{told}.*column v"):
        pyparq.read_table(path)
    assert pyparq.read_table(path, columns=["id"]).num_rows == 2


def test_random_bytes_give_values_or_typed_errors() -> None:
    rng = random.Random(5)
    good = [encode(value) for value in VALUES if not isinstance(value, list) or len(value) < 1000]
    for _ in range(20_000):
        metadata, value = map(bytearray, rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            part = value if rng.random() < 0.8 else metadata
            if part:
                part[rng.randrange(min(len(part), 40))] = rng.randrange(256)
        with suppress(DataError):
            decode(bytes(metadata), bytes(value[: rng.randrange(len(value) + 1)] if rng.random() < 0.2 else value))


def test_damaged_rows_give_values_or_typed_errors(tmp_path: Path) -> None:
    rng = random.Random(6)
    for number in range(150):
        rows = []
        for stored, _ in ROWS:
            row = dict(stored or ROWS[0][0])
            for part in ("metadata", "value"):
                if row[part] and rng.random() < 0.5:
                    changed = bytearray(row[part])
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
                    row[part] = bytes(changed)
            rows.append(row)
        path = written(tmp_path / f"{number}.parquet", rows, SHREDDED)
        with suppress(ParquetError):
            pyparq.read_table(path)["v"].to_pylist()
        path.unlink()
