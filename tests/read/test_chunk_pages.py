"""The pages of a column chunk one by one, as the native decoder finds them, against the Thrift structs and pyarrow."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyparq
from pyparq import kernels
from pyparq.errors import CorruptFileError, LimitError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import ThriftDecodeError, deserialize, serialize
from pyparq.limits import Limits
from pyparq.options import ReadOptions
from pyparq.read.decode.chunk_pages import WITHOUT_END, ChunkPages, PageValues
from pyparq.read.decode.memory_account import Account, Share
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import open_file

INT32 = kernels.LeafSpec(1, 4, 0, 0)
"""A required leaf as the decoder takes it."""
LIMITS = kernels.PageLimits(1 << 30, 1 << 20, 1 << 20, 1 << 40, 1 << 30, False, 1 << 31)
I32 = st.integers(-(2**31), 2**31 - 1)
COUNT = st.integers(0, 2**31 - 1)
STATISTICS = st.none() | st.builds(tt.Statistics, min=st.none() | st.binary(), null_count=st.none() | I32)
V1 = st.builds(
    tt.DataPageHeader, num_values=COUNT, encoding=I32, definition_level_encoding=I32, repetition_level_encoding=I32,
    statistics=STATISTICS,
)  # fmt: skip
V2 = st.builds(
    tt.DataPageHeaderV2, num_values=COUNT, num_nulls=I32, num_rows=I32, encoding=I32,
    definition_levels_byte_length=I32, repetition_levels_byte_length=I32, is_compressed=st.booleans(),
    statistics=STATISTICS,
)  # fmt: skip
ENTRIES = st.builds(
    tt.DictionaryPageHeader, num_values=I32, encoding=I32, is_sorted=st.sampled_from([None, True, False])
)
CRC = st.none() | I32
HEADERS = (
    st.builds(tt.PageHeader, type=st.just(0), crc=CRC, data_page_header=V1, dictionary_page_header=st.none() | ENTRIES)
    | st.builds(tt.PageHeader, type=st.just(3), crc=CRC, data_page_header_v2=V2, data_page_header=st.none() | V1)
    | st.builds(tt.PageHeader, type=st.just(2), crc=CRC, dictionary_page_header=ENTRIES)
)


def listed(data: bytes) -> tuple[kernels.PageReader, Any]:
    """A reader over the page that is the whole of ``data``, and its refusal."""
    reader = kernels.PageReader(INT32, kernels.PieceSpec(0, 1 << 62, 0, False, data), LIMITS, 0)
    return reader, reader.list_pages(True, lambda missing: (missing, 1 << 40), 1 << 40)


def told(reader: kernels.PageReader) -> list[Any]:
    found: list[Any] = []
    for page in reader.pages():
        sizes = (page.offset, page.size, page.stored, page.uncompressed)
        found.append((
            *sizes, page.type, page.num_values, page.encoding, page.num_nulls, page.num_rows, page.has_crc,
            page.has_statistics,
        ))  # fmt: skip
    if (last := reader.dictionary()) is None:
        return [*found, None]
    sizes = (last.offset, last.size, last.stored, last.uncompressed)
    return [*found, (*sizes, last.num_values, last.encoding, last.is_sorted, last.has_crc)]


def expected_of(header: Any, start: int, size: int) -> list[Any]:
    """What a reader says of a page of ``size`` bytes whose header takes ``start``."""
    whole = (0, start + size, size, header.uncompressed_page_size)
    if header.type == 2:
        inner = header.dictionary_page_header
        return [(*whole, inner.num_values, inner.encoding, bool(inner.is_sorted), header.crc is not None)]
    inner = header.data_page_header_v2 if header.type == 3 else header.data_page_header
    flags = (header.crc is not None, inner.statistics is not None)
    more = (inner.num_nulls, inner.num_rows) if header.type == 3 else (None, None)
    return [(*whole, header.type, inner.num_values, inner.encoding, *more, *flags), None]


@given(header=HEADERS, body=st.binary(max_size=20))
def test_headers_are_what_the_struct_says(header: tt.PageHeader, body: bytes) -> None:
    header.compressed_page_size = header.uncompressed_page_size = len(body)
    stored = serialize(header)
    reader, refusal = listed(stored + body)
    assert refusal is None
    assert told(reader) == expected_of(header, len(stored), len(body))
    assert reader.end == len(stored) + len(body)


@given(
    header=HEADERS,
    changes=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 200),
)
def test_damaged_headers_say_what_the_struct_says(
    header: tt.PageHeader, changes: list[tuple[int, int]], cut: int
) -> None:
    """What neither refuses says the same to both. The reader looks at less: it passes over statistics."""
    header.compressed_page_size = header.uncompressed_page_size = 0
    data = bytearray(serialize(header))
    for place, value in changes:
        data[place % len(data)] = value
    damaged = bytes(data[: max(cut, 1)])
    reader, refusal = listed(damaged)
    try:
        expected, end = deserialize(tt.PageHeader, damaged)
    except ThriftDecodeError:
        assert reader.end <= len(damaged)
        return
    if refusal is None and end == len(damaged) and expected.type in (0, 2, 3):
        assert told(reader) == expected_of(expected, end, 0)


# ---- values


ROWS = 5000
TABLE = pa.table({
    "n": pa.array([None if k % 7 == 0 else k for k in range(ROWS)], pa.int32()),
    "s": pa.array([f"text {k % 40}" for k in range(ROWS)]),
    "u": pa.array([None if k % 3 == 0 else f"text {k}" for k in range(ROWS)]),
    "l": pa.array([None if k % 5 == 0 else list(range(k % 4)) for k in range(ROWS)], pa.list_(pa.int64())),
    "b": pa.array([k % 3 == 0 for k in range(ROWS)]),
    "f": pa.array([bytes([k % 251] * 5) for k in range(ROWS)], pa.binary(5)),
    "z": pa.array([None] * ROWS, pa.int32()),
})  # fmt: skip


def stored(version: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        TABLE, sink, data_page_version=version, data_page_size=2000, write_batch_size=100, use_dictionary=["s", "n"],
        column_encoding={"u": "DELTA_BYTE_ARRAY"}, row_group_size=ROWS,
    )  # fmt: skip
    return sink.getvalue()


def chunk_of(data: bytes, column: int, limits: Limits | None = None) -> tuple[memoryview, Chunk, ReadOptions]:
    file = open_file(data, ReadOptions() if limits is None else ReadOptions(limits=limits))
    chunk = file.chunk(0, file.tree.leaves[column])
    (raw,) = file.fetcher.fetch([(chunk.start, chunk.size)])
    return raw, chunk, file.options


@pytest.mark.parametrize("window", [1, 3000, WITHOUT_END])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("column", range(len(TABLE.column_names)))
def test_runs_of_pages_hold_what_pyarrow_reads(column: int, version: str, window: int) -> None:
    data, chunk, options = chunk_of(stored(version), column)
    account = Account(options.limits)
    pages = ChunkPages(data, chunk, options, account)
    pages.check()
    entries = pages.entries()
    found: list[Any] = []
    rows = slots = first = 0
    while first < len(pages.pages):
        run = PageValues(chunk.node, pages.decode(first, window=window, entries=entries), entries)
        for k in range(run.num_pages):
            page = pages.pages[first + k]
            assert run.num_levels[k] == page.num_values
            assert page.num_rows in (None, run.num_rows[k])
            assert page.num_nulls in (None, run.num_levels[k] - run.num_present[k])
            values = run.page_values(k)
            found += values.tolist()
            assert len(values.tolist()) == run.num_present[k]
        rows, slots, first = rows + int(run.num_rows.sum()), slots + int(run.num_levels.sum()), first + run.num_pages
    assert first == len(pages.pages)
    assert rows == ROWS
    assert slots == chunk.num_values
    pages.release(0)
    assert account.used == 0
    name = TABLE.column_names[column]
    column_values = TABLE[name].combine_chunks().flatten() if name == "l" else TABLE[name]
    expected = [v for v in column_values.to_pylist() if v is not None]
    if name == "f":
        found = [bytes(v) for v in found]
    assert found == ([v.encode() for v in expected] if name in "su" else expected)


def test_levels_alone_need_no_dictionary() -> None:
    data, chunk, options = chunk_of(stored("1.0"), 1)
    pages = ChunkPages(data, chunk, options, Account(options.limits))
    with pytest.raises(CorruptFileError, match="no dictionary page"):
        pages.decode()
    run = pages.decode(with_values=False)
    assert int(run.numbers[:, 0].sum()) == ROWS
    assert not len(run.codes)


def test_memory_is_taken_before_it_is_used() -> None:
    """A share of a small account refuses what does not fit, and what was granted is given back in the end."""
    limits = Limits(max_memory=40_000)
    data, chunk, options = chunk_of(stored("1.0"), 2, limits)
    account = Account(limits)
    share = Share(account)
    pages = ChunkPages(data, chunk, options, share)
    with pytest.raises(LimitError, match=r"more than limits.max_memory \(40000\)"):
        pages.decode()
    run = pages.decode(window=1)
    assert run.numbers.shape == (1, 5)
    assert 0 < account.used <= 40_000
    pages.release(0)
    share.set_held(0)
    assert account.used == 0


def test_a_fault_leaves_the_pages_before_it() -> None:
    raw, chunk, options = chunk_of(stored("1.0"), 2)
    whole = ChunkPages(raw, chunk, options, Account(options.limits))
    third = whole.pages[2].offset - chunk.start
    damaged = bytearray(raw)
    damaged[third : third + 8] = b"\xff" * 8
    pages = ChunkPages(memoryview(damaged), chunk, options, Account(options.limits))
    assert [page.offset for page in pages.pages] == [page.offset for page in whole.pages[:2]]
    assert pages.size == third
    with pytest.raises(CorruptFileError, match=r"bad page header.*page 2"):
        pages.check()
    assert int(pages.decode().numbers[:, 0].sum()) == sum(page.num_values for page in whole.pages[:2])
    cut = ChunkPages(raw[:third], chunk, options, Account(options.limits))
    with pytest.raises(CorruptFileError, match=f"declares {ROWS} values, but its pages end after"):
        cut.check()


def test_pages_of_a_file_are_those_of_its_chunks() -> None:
    with pyparq.ParquetFile(stored("2.0")) as file:
        first, second, *_ = file.pages(0, "s")
    assert (first.ordinal, first.type, first.num_values) == ("dictionary", "dictionary", 40)
    assert (second.ordinal, second.type, second.encoding) == (0, "data v2", "RLE_DICTIONARY")
