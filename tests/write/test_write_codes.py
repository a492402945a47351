"""Columns that keep their dictionary: written from its codes, the same files as from values that are spelled out."""

from __future__ import annotations

import datetime
import io
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.column_operations import binary_column, slice_column, take, trimmed
from pyparq.arrow.layouts import SpelledColumn
from pyparq.arrow.to_python import column_to_pylist
from pyparq.errors import DataError
from pyparq.format.types import DataType
from pyparq.kernels import ArraysChunk, ColumnRules, EncodedChunks, FileRules, FlatArray, KernelError, LeafOrder
from pyparq.write import flat_columns

ROWS = 5_000
RNG = np.random.default_rng(8)
FEW, MANY = RNG.integers(0, 5, ROWS), RNG.integers(0, 500, ROWS)
SOME = RNG.random(ROWS) < 0.2
WORDS = pa.array([f"wörd {k * 7919 % 1000}" * (k % 4) + str(k) for k in range(500)])


def coded(values: pa.Array, codes: Any, nulls: Any = None, index: Any = np.int32) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(index), mask=nulls), values)


COLUMNS = {
    "words": coded(WORDS, MANY),
    "nulls": coded(WORDS, MANY, SOME),
    "int8": coded(WORDS[:5], FEW, SOME, np.int8),
    "uint64": coded(WORDS, MANY, index=np.uint64),
    "unused entries": coded(WORDS, MANY // 10),
    "entries twice": coded(pa.array(["x", "y", "x", "z", "y"]), FEW, SOME),
    "an entry that is null": coded(pa.array(["x", None, "y", "z", ""]), FEW),
    "large": coded(WORDS.cast(pa.large_string()), MANY, SOME),
    "views": coded(WORDS.cast(pa.string_view()), MANY),
    "bytes": coded(pa.array([bytes([k, 255]) * k for k in range(5)]), FEW),
    "fixed": coded(pa.array([bytes([k] * 5) for k in range(5)], pa.binary(5)), FEW, SOME),
    "integers": coded(pa.array(RNG.integers(-(1 << 40), 1 << 40, 500)), MANY, SOME),
    "small integers": coded(pa.array(np.arange(5, dtype=np.int16)), FEW),
    "floats": coded(pa.array([1.5, 0.0, -0.0, float("nan"), 3.0]), FEW, SOME),
    "halves": coded(pa.array(np.array([1, 2, 0, 4, 5], np.float16)), FEW),
    "booleans": coded(pa.array([True, False]), FEW % 2),
    "dates": coded(pa.array([datetime.date(2000, 1, k + 1) for k in range(5)]), FEW, SOME),
    "seconds": coded(pa.array(np.arange(5), pa.timestamp("s")), FEW),
    "decimals": coded(pa.array([Decimal(k * 1000) / 100 for k in range(5)], pa.decimal128(30, 2)), FEW, SOME),
    "all null": coded(WORDS, MANY, np.ones(ROWS, np.bool_)),
    "no entries": coded(pa.array([], pa.string()), FEW * 0, np.ones(ROWS, np.bool_)),
    "as many entries as rows": coded(pa.array([f"{k:08}" * 4 for k in range(ROWS)]), RNG.permutation(ROWS)),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "small pages, version 2": {"max_rows_per_page": 300, "data_page_version": "2.0", "compression": "zstd"},
    "row groups": {"row_group_size": 1_100, "use_threads": False},
    "by bytes": {"row_group_bytes": 20_000},
    "filters": {"bloom_filters": True, "row_group_size": 2_000},
    "entries do not fit": {"dictionary_pagesize_limit": 300, "row_group_size": 2_000, "bloom_filters": True},
    "no dictionary": {"use_dictionary": False},
    "no statistics": {"write_statistics": False, "write_size_statistics": False, "write_page_index": False},
    "no schema of Arrow's": {"store_schema": False},
    "sorted": {"sort_by": ["a"], "row_group_size": 2_000},
}


def written(data: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(data, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_the_same_files(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": COLUMNS[name]}).slice(3)
    data = written(table, **options)
    monkeypatch.setattr(flat_columns, "code_parts", lambda *_: None)
    assert written(table, **options) == data
    if options.get("sort_by") is None:
        expected = repr(table["a"].to_pylist())  # as text: a NaN is like another
        assert repr(pyparq.read_table(data)["a"].to_pylist()) == expected
        assert repr(pq.read_table(pa.BufferReader(data))["a"].to_pylist()) == expected


@pytest.mark.parametrize("name", ["words", "nulls", "int8", "unused entries", "all null"])
def test_the_dictionary_comes_back(name: str) -> None:
    """Its entries in their order, used or not, from every row group."""
    table = pa.table({"a": COLUMNS[name]})
    for found in (
        pq.read_table(pa.BufferReader(written(table, row_group_size=1_700)), read_dictionary=["a"]),
        pa.table(pyparq.read_table(written(table, row_group_size=1_700))),
    ):
        for chunk in found["a"].chunks:
            assert chunk.dictionary.to_pylist() == COLUMNS[name].dictionary.to_pylist()


def test_batches_with_dictionaries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [["p", "q"], ["p", "q"], ["q", "p"], ["p", "q", "r"], [], ["z"]]
    batches = [
        pa.record_batch(
            {"a": coded(pa.array(some, pa.string()), np.arange(90) % max(len(some), 1), np.full(90, not some))}
        )
        for some in entries
    ]
    table = pa.Table.from_batches(batches)
    files = [written(table, row_group_size=size) for size in (45, 90, 180, 1_000)]
    for data in files:
        assert pyparq.read_table(data)["a"].to_pylist() == table["a"].to_pylist()
    monkeypatch.setattr(flat_columns, "code_parts", lambda *_: None)
    assert [written(table, row_group_size=size) for size in (45, 90, 180, 1_000)] == files


def test_frames() -> None:
    names = [None if gone else f"e{k}" for k, gone in zip(FEW, SOME, strict=True)]
    frame = pl.DataFrame(
        {
            "c": pl.Series(names, dtype=pl.Categorical),
            "e": pl.Series(names, dtype=pl.Enum([f"e{k}" for k in range(7)])),
        }
    )
    assert pl.read_parquet(io.BytesIO(written(frame, row_group_size=1_000))).equals(frame)


def test_what_a_column_may_not_hold() -> None:
    required = pa.schema([pa.field("a", pa.dictionary(pa.int32(), pa.string()), nullable=False)])
    with pytest.raises(DataError, match=f"row {int(np.argmax(SOME))} is null, but the column is required"):
        written(pa.table([COLUMNS["nulls"]], schema=required))
    edges, data = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffb")
    text = pa.Array.from_buffers(pa.string(), 3, [None, edges, data])
    with pytest.raises(DataError, match="row 2: b'\\\\xff' is not valid UTF-8"):
        written(pa.table({"a": coded(text, np.array([0, 2, 1]))}))
    unused = pyparq.read_table(written(pa.table({"a": coded(text, np.array([0, 2, 0]))})))
    assert unused["a"].to_pylist() == ["a", "b", "a"]


# ---- the column between


TEXT = binary_column(DataType("u"), np.array([0, 1, 3, 6], np.int32), np.frombuffer(b"abbccc", np.uint8))


def test_values_are_spelled_out_when_they_are_asked_for() -> None:
    mask = np.array([True, False, True, True, True])
    column = SpelledColumn(DataType("U"), TEXT, np.array([2, 0, 0, 1, 2], np.int32), mask)
    expected = ["ccc", None, "a", "bb", "ccc"]
    assert column_to_pylist(column) == expected
    assert (len(column), column.null_count, column.offset) == (5, 1, 0)
    part = slice_column(SpelledColumn(column.type, TEXT, column.codes, mask), 1, 4)
    assert isinstance(part, SpelledColumn)
    assert (column_to_pylist(part), part.null_count) == (expected[1:4], 1)
    assert column_to_pylist(slice_column(part, 1, 3)) == expected[2:4]
    assert column_to_pylist(pickle.loads(pickle.dumps(part))) == expected[1:4]
    assert column_to_pylist(trimmed(part)) == expected[1:4]
    rows = np.array([4, 1, 1, 0])
    assert column_to_pylist(take(part, np.array([2, 0]))) == ["bb", None]
    taken = take(column, rows)
    assert isinstance(taken, SpelledColumn)
    assert (column_to_pylist(taken), taken.null_count) == (["ccc", None, None, "ccc"], 2)
    with pytest.raises(DataError, match="the column has 5 rows"):
        take(column, np.array([5]))
    assert column.text_bytes(0, 5) == 3 + 1 + 1 + 2 + 3
    assert column.text_bytes(2, 4) == 3
    taken.dictionary = None
    for bare in (taken, slice_column(taken, 0, 3), take(taken, np.arange(3)), pickle.loads(pickle.dumps(taken))):
        assert column_to_pylist(bare)[:3] == ["ccc", None, None]
        assert bare.dictionary is None
    with pytest.raises(AttributeError, match="'buffer'"):
        column.buffer  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_take_them_as_before(name: str) -> None:
    array = COLUMNS[name]
    table = pyparq.Table.from_arrow(pa.table({"a": array}))
    assert repr(table["a"].to_pylist()) == repr(array.to_pylist())
    assert repr(table.slice(100, 50)["a"].to_pylist()) == repr(array[100:150].to_pylist())
    assert repr(pa.table(table)["a"].to_pylist()) == repr(array.to_pylist())


# ---- the kernel


def encoded(physical: int, width: int, parts: list[Any], rows: int, dictionary: Any) -> bytes:
    file = FileRules(1, 100, 1 << 20, 1 << 20, 64, 64, 4096, True, True, 256, 0.25, 0.8, "key", None, 1)
    order = LeafOrder(0, width, False, False, False)
    column = ColumnRules(
        file, order, physical, width, 1, 0, 0, None, -1 << 30, True, False, -1, [], True, False, 0, 0, ["a"], []
    )
    chunks = EncodedChunks()
    job = ArraysChunk(column, [FlatArray(*part) for part in parts], rows, dictionary)
    assert chunks.encode([job], lambda: None) is None
    return b"".join(part.tobytes() for part in chunks.take())


CODES, INT64, BYTE_ARRAY = 11, 2, 6
THREE = np.array([10, 20, 30])
TEXTS = b"\1\0\0\0a\2\0\0\0bb\0\0\0\0"
ZEROS = np.zeros(4, np.int32)


def part(codes: Any, length: int = 4, offset: int = 0, validity: Any = None) -> tuple[Any, ...]:
    return CODES, length, offset, validity, codes, None


@pytest.mark.parametrize(
    ("physical", "width", "given", "dictionary"),
    [
        (INT64, 8, part(np.array([0, 1, 2, 3], np.int32)), (THREE, 3, None)),
        (INT64, 8, part(np.array([0, 1, -1, 2], np.int32)), (THREE, 3, None)),
        (INT64, 8, part(ZEROS[:3]), (THREE, 3, None)),
        (INT64, 8, part(ZEROS, offset=1), (THREE, 3, None)),
        (INT64, 8, part(ZEROS, length=-1), (THREE, 3, None)),
        (INT64, 8, part(ZEROS, length=5), (THREE, 3, None)),
        (INT64, 8, part(ZEROS, length=1 << 60), (THREE, 3, None)),
        (INT64, 8, part(ZEROS, validity=b""), (THREE, 3, None)),
        (INT64, 8, part(ZEROS), (THREE, 2, None)),
        (INT64, 8, part(ZEROS), (THREE, 4, None)),
        (INT64, 8, part(ZEROS), (THREE, 1 << 62, None)),
        (INT64, 8, part(ZEROS), (THREE, -1, None)),
        (INT64, 8, part(ZEROS), (b"", 0, None)),
        (INT64, 8, part(ZEROS), (THREE, 3, np.array([3], np.int32))),
        (INT64, 8, part(ZEROS), (THREE, 3, np.array([-1], np.int32))),
        (INT64, 8, part(ZEROS), (THREE, 3, np.array([], np.int32))),
        (INT64, 8, part(ZEROS), (THREE, 3, np.array([0]))),
        (INT64, 8, part(ZEROS), (THREE, 3)),
        (INT64, 8, part(ZEROS), None),
        (INT64, 8, (0, 4, 0, None, np.zeros(4), None), (THREE, 3, None)),
        (INT64, 8, (99, 4, 0, None, np.zeros(4), None), (THREE, 3, None)),
        (0, 1, part(ZEROS), (b"\1", 1, None)),
        (BYTE_ARRAY, 0, part(ZEROS), (TEXTS, 2, None)),
        (BYTE_ARRAY, 0, part(ZEROS), (TEXTS, 4, None)),
        (BYTE_ARRAY, 0, part(ZEROS), (TEXTS[:-1], 3, None)),
        (BYTE_ARRAY, 0, part(ZEROS), (b"\xff\xff\xff\xffa", 1, None)),
        (BYTE_ARRAY, 0, part(ZEROS), (b"abc", 1, None)),
    ],
)
def test_codes_that_make_no_sense(physical: int, width: int, given: Any, dictionary: Any) -> None:
    with pytest.raises(KernelError):
        encoded(physical, width, [given], 4, dictionary)


def test_dictionaries_with_wrong_bytes() -> None:
    """They are refused, or written as what they say; nothing else happens."""
    outcomes = {True: 0, False: 0}
    for _ in range(3_000):
        plain = np.frombuffer(TEXTS, np.uint8)[: int(RNG.integers(8, len(TEXTS) + 1))].copy()
        plain[RNG.integers(0, len(plain), 1)] = RNG.integers(0, 5)
        codes = RNG.integers(0, 3, 50).astype(np.int32)
        try:
            encoded(BYTE_ARRAY, 0, [part(codes, 50)], 50, (plain, int(RNG.integers(2, 4)), None))
            outcomes[True] += 1
        except KernelError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 20


def test_several_arrays_and_places() -> None:
    there = np.packbits([1, 0, 1, 1], bitorder="little")
    parts = [
        part(np.array([9, 2, 1, 0, 1], np.int32), offset=1, validity=None),
        part(np.array([0, 99, 2, 1], np.int32), validity=there),
    ]
    places = np.array([1, 0, 1], np.int32)
    found = encoded(BYTE_ARRAY, 0, parts, 8, (b"\1\0\0\0x\1\0\0\0y", 2, places))
    header_and_entries = found.index(b"\1\0\0\0x\1\0\0\0y")
    assert header_and_entries > 0
    # levels: 5 present, null, 2 present (bit-packed); then indices of one bit: 1 0 1 0 1 1 0
    assert found.endswith(bytes([1, 3, 0b0110101]))
