"""Cutting pages and choosing encodings, against plain counting."""

from __future__ import annotations

import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, write

from pyparq.errors import DataError
from pyparq.format import ttypes as tt
from pyparq.format.compression import codec_number
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.schema_node import shapes
from pyparq.format.types import Schema
from pyparq.write.column_plans import make_plan
from pyparq.write.shred import LeafData, shred_column

RLE_DICTIONARY, PLAIN = tt.Encoding.RLE_DICTIONARY, tt.Encoding.PLAIN


def leaf_data(array: pa.Array) -> LeafData:
    from pyparq.arrow.ingest import ingest
    from pyparq.options import WriteOptions

    schema, batches = ingest(pa.table({"x": array}))
    plan = make_plan(Schema(schema.fields), WriteOptions())
    batch = next(batches)
    return shred_column(batch.columns[0], shapes(plan.tree.root)[0], batch.num_rows)[0]


def as_rows(data: LeafData) -> list[tuple[int, int]]:
    """(slots, values) of each row, by plain counting."""
    rows: list[tuple[int, int]] = []
    for slot in range(data.num_slots):
        starts = data.rep_levels is None or data.rep_levels[slot] == 0
        present = data.def_levels is None or data.def_levels[slot] == data.node.max_def
        if starts:
            rows.append((1, int(present)))
        else:
            rows[-1] = (rows[-1][0] + 1, rows[-1][1] + int(present))
    return rows


ARRAYS = {
    "required": lambda k: pa.array(range(k)),
    "nullable": lambda k: pa.array([None if i % 3 == 0 else i for i in range(k)], pa.int64()),
    "all null": lambda k: pa.nulls(k, pa.int32()),
    "text": lambda k: pa.array([None if i % 5 == 0 else "x" * (i * 7919 % 300) for i in range(k)]),
    "lists": lambda k: pa.array([None if i % 7 == 0 else [i] * (i * 31 % 9) for i in range(k)], pa.list_(pa.int64())),
    "lists of text": lambda k: pa.array([["y" * (j * 50) for j in range(i % 5)] for i in range(k)]),
}


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(ARRAYS)), rows=st.integers(1, 300), max_rows=st.integers(1, 120),
    max_bytes=st.integers(1, 5000),
)  # fmt: skip
def test_pages_are_cut_at_rows_and_limits(name: str, rows: int, max_rows: int, max_bytes: int) -> None:
    data = leaf_data(ARRAYS[name](rows))
    file = write(
        pa.table({"x": ARRAYS[name](rows)}), max_rows_per_page=max_rows, data_page_size=max_bytes,
        column_encoding="PLAIN", use_dictionary=False, data_page_version="2.0",
    )  # fmt: skip
    counted = as_rows(data)
    slots = np.append(0, np.cumsum([s for s, _ in counted]))
    values = np.append(0, np.cumsum([v for _, v in counted]))
    bits = (data.node.max_def.bit_length() if data.def_levels is not None else 0) + data.node.max_rep.bit_length()
    lengths = np.diff(data.values.offsets) if isinstance(data.values, BinaryValues) else None

    def size(first: int, last: int) -> int:
        of = slice(int(values[first]), int(values[last]))
        content = 4 * (of.stop - of.start) + int(lengths[of].sum()) if lengths is not None else 0
        if lengths is None:
            content = (of.stop - of.start) * data.node.type.width
        return content + int(slots[last] - slots[first]) * bits // 8

    pages = [page.detail for page in file.pages(0, 0)]
    edges = np.append(0, np.cumsum([page.num_rows for page in pages])).tolist()
    assert edges[-1] == rows
    for page, first, last in zip(pages, edges, edges[1:], strict=False):
        assert 0 < last - first <= max_rows
        assert page.num_values == slots[last] - slots[first]
        assert page.num_nulls == page.num_values - (values[last] - values[first])
        assert size(first, last) <= max_bytes or last - first == 1
        # Nothing was cut short: one row more would have passed a limit.
        if last - first < max_rows and last != rows:
            assert size(first, last + 1) > max_bytes


ANY: list[int] = np.random.default_rng(5).integers(-(1 << 63), (1 << 63) - 1, 40_000).tolist()
"""Numbers that only PLAIN suits."""


def encodings_of(file: Written, column: int = 0) -> list[int]:
    return [p.detail.encoding for p in file.pages(0, column)]


def read_back(file: Written) -> list[object]:
    column: list[object] = pq.read_table(io.BytesIO(file.data)).column(0).to_pylist()
    return column


def test_dictionary_where_it_pays() -> None:
    few = write({"x": np.arange(10_000) % 100})
    assert encodings_of(few) == [PLAIN, RLE_DICTIONARY]
    unique = write({"x": np.array(ANY[:10_000])})
    assert encodings_of(unique) == [PLAIN]
    assert unique.chunk(0, 0).meta_data.dictionary_page_offset is None
    for file, count in ((few, 100), (unique, 10_000)):
        assert len(set(read_back(file))) == count


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_fallback_keeps_the_pages_that_pay(nulls: bool, text: bool) -> None:
    numbers = [k * k % 50 for k in range(40_000)] + ANY
    values: list[object] = [f"value {k}" for k in numbers] if text else list(numbers)
    if nulls:
        values = [None if k % 4 == 0 else v for k, v in enumerate(values)]
    file = write({"x": values}, dictionary_pagesize_limit=4096, max_rows_per_page=5000)
    kinds = encodings_of(file)
    assert kinds[0] == PLAIN
    switch = kinds.index(rest := kinds[-1], 1)
    assert rest == (tt.Encoding.DELTA_LENGTH_BYTE_ARRAY if text else PLAIN)
    assert switch >= 9  # eight pages of few values, and the one in which the dictionary filled up
    assert kinds[1:switch] == [RLE_DICTIONARY] * (switch - 1)
    assert kinds[switch:] == [rest] * (len(kinds) - switch)
    stats = [(s.page_type, s.encoding, s.count) for s in file.chunk(0, 0).meta_data.encoding_stats]
    assert stats == [(2, PLAIN, 1), (0, RLE_DICTIONARY, switch - 1), (0, rest, len(kinds) - switch)]
    assert file.pages(0, 0)[0].header.uncompressed_page_size <= 4096
    assert read_back(file) == values


def test_fallback_drops_pages_that_do_not_pay() -> None:
    values = list(range(20_000))
    file = write({"x": values}, dictionary_pagesize_limit=8192, max_rows_per_page=500)
    assert set(encodings_of(file)) == {tt.Encoding.DELTA_BINARY_PACKED}
    assert {p.header.type for p in file.pages(0, 0)} == {tt.PageType.DATA_PAGE}
    assert read_back(file) == values


def test_dictionary_in_the_middle_of_a_list() -> None:
    rows = [[k % 3, k % 5] * 10 for k in range(500)] + [list(range(k, k + 20)) for k in range(0, 20_000, 20)]
    file = write({"x": rows}, dictionary_pagesize_limit=2000, max_rows_per_page=100)
    assert RLE_DICTIONARY in encodings_of(file)
    assert encodings_of(file)[-1] == PLAIN
    assert read_back(file) == rows


def test_a_first_value_beyond_the_limit() -> None:
    values = ["x" * 5000, "y"] * 10
    for limit in (0, 100):
        file = write({"x": values}, dictionary_pagesize_limit=limit)
        assert encodings_of(file) == [PLAIN]
        assert read_back(file) == values
    forced = write({"x": values}, dictionary_pagesize_limit=100, column_encoding="DICTIONARY")
    assert encodings_of(forced) == [PLAIN]
    assert read_back(forced) == values


def test_encodings_per_column() -> None:
    data = {"a": np.arange(1000), "b": np.arange(1000) % 7, "flag": np.arange(1000) % 3 == 0, "n": {"x": [1]}}
    data["n"] = [{"x": k % 4, "y": str(k % 4)} for k in range(1000)]  # type: ignore[assignment]
    file = write(data, column_encoding={"a": "rle_dictionary", "flag": "RLE", "n.y": "PLAIN"})
    assert [encodings_of(file, c)[-1] for c in range(5)] == [
        RLE_DICTIONARY, RLE_DICTIONARY, tt.Encoding.RLE, RLE_DICTIONARY, PLAIN,
    ]  # fmt: skip
    assert pq.read_table(io.BytesIO(file.data)).to_pydict()["flag"] == list(data["flag"])
    off = write(data, use_dictionary=False)
    assert RLE_DICTIONARY not in {e for c in range(5) for e in encodings_of(off, c)}
    for only in (["b"], {"a": False, "flag": False, "n": False}):
        file = write(data, use_dictionary=only)
        assert [encodings_of(file, c)[-1] == RLE_DICTIONARY for c in range(5)] == [False, True, False, False, False]
    group = write(data, use_dictionary={"a": False, "b": False, "n": False, "n.x": True})
    assert [encodings_of(group, c)[-1] == RLE_DICTIONARY for c in range(5)] == [False, False, False, True, False]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_booleans_in_both_encodings(version: str) -> None:
    values = [random.Random(3).choice([True, False, None]) for _ in range(100)] + [True] * 5000 + [None] * 3000
    for encoding, number in (("PLAIN", PLAIN), ("RLE", tt.Encoding.RLE)):
        file = write({"x": values}, column_encoding=encoding, data_page_version=version, max_rows_per_page=1000)
        assert set(encodings_of(file)) == {number}
        assert read_back(file) == values


def test_page_limits_hold_in_the_file() -> None:
    texts = [f"{k:06d}" * (k % 50) for k in range(30_000)]
    file = write({"x": texts}, use_dictionary=False, data_page_size=64_000, compression=None)
    pages = file.pages(0, 0)
    assert max(p.header.uncompressed_page_size for p in pages) <= 64_000 + 16  # the levels' own bytes
    assert sum(p.header.uncompressed_page_size for p in pages) / len(pages) > 60_000
    big = write({"x": ["a" * 3_000_000, "b" * 10, "c" * 2_000_000]}, compression=None)
    assert [p.detail.num_values for p in big.pages(0, 0)] == [1, 1, 1]
    default = write({"x": np.random.default_rng(1).integers(0, 1 << 60, 50_000)})
    assert [p.detail.num_values for p in default.pages(0, 0)] == [20_000, 20_000, 10_000]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4_raw", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_codecs_and_empty_bodies(codec: str, version: str) -> None:
    table = pa.table(
        {
            "n": pa.nulls(100, pa.int64()),
            "s": pa.array([None, "", "x"] * 33 + [None]),
            "r": pa.array(range(100)),
            "empty": pa.array([[]] * 100, pa.list_(pa.int32())),
        }
    )
    file = write(table, compression=codec, data_page_version=version, max_rows_per_page=30)
    assert pq.read_table(io.BytesIO(file.data), page_checksum_verification=True).to_pydict() == table.to_pydict()
    assert {c.meta_data.codec for c in file.meta.row_groups[0].columns} == {codec_number(codec)}


def test_compression_per_column_and_levels() -> None:
    data = {"a": np.arange(50_000), "b": np.arange(50_000), "c": np.arange(50_000)}
    file = write(data, compression={"a": "zstd", "b": "gzip"}, compression_level={"a": 19, "b": 1})
    assert [file.chunk(0, c).meta_data.codec for c in range(3)] == [6, 2, 1]
    text = {"a": [f"{k * 7919 % 10_007} of {k % 97} lines" for k in range(20_000)]}
    sizes = [
        write(text, compression="gzip", compression_level=k, use_dictionary=False)
        .chunk(0, 0)
        .meta_data.total_compressed_size
        for k in (1, 9)
    ]
    assert sizes[0] > sizes[1]


def test_a_row_beyond_the_largest_page_is_refused() -> None:
    size = 1 << 31
    data = pa.py_buffer(np.zeros(size, np.uint8))  # memory that nobody wrote to takes none
    offsets = pa.py_buffer(np.array([0, size], np.int64))
    table = pa.table({"x": pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, data])})
    with pytest.raises(DataError, match=r"row 0 of the row group takes 2147483652 bytes") as caught:
        write(table, use_dictionary=False)
    assert (caught.value.row_group, caught.value.column) == (0, "x")
