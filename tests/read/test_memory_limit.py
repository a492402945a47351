"""``limits.max_memory``: what one read has decoded and alive at once, counted before it is allocated."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import OPTIONAL, REPEATED, REQUIRED, Column, Page, group, leaf, make
from hostile_pages import bombs

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, LimitError
from pyparq.kernels import buffers
from pyparq.limits import Limits
from pyparq.read.decode import memory_account as account

MIB = 1 << 20
SLACK = 12 * MIB
"""Beside what is counted: the file's bytes, and what a few pages take on their way."""


def peak_of(read: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(data: bytes, most: int, **options: Any) -> str:
    """What a read says that may take ``most`` bytes; it took no more."""
    caught: list[LimitError] = []

    def read() -> None:
        with pytest.raises(LimitError) as error:
            pyparq.read_table(data, limits=Limits(max_memory=most), **options)
        caught.append(error.value)

    assert peak_of(read) < most + SLACK
    return str(caught[0])


def file_of(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def nulls(count: int, pages: int) -> bytes:
    """A file of a few hundred bytes: pages of nothing but nulls."""
    run, header = b"", count << 1
    while header > 127:
        run += bytes([header & 127 | 128])
        header >>= 7
    page = Page(count, b"", definition=run + bytes([header]) + b"\0")
    elements = [group("root", None, 1), leaf("x", OPTIONAL, 2)]
    return make(elements, [Column([page] * pages, max_def=1, type_=2)], count * pages)


def test_a_few_bytes_do_not_make_gigabytes() -> None:
    data = nulls(1 << 26, 4)
    assert len(data) < 404
    for options in ({}, {"use_threads": False}, {"columns": ["x"], "filters": col("x").is_null()}):
        assert "limits.max_memory (67108864) [file <bytes>, row group 0, column x" in refused(data, 64 * MIB, **options)
    assert pyparq.read_table(nulls(1 << 20, 4), limits=Limits(max_memory=64 * MIB)).num_rows == 4 << 20


@pytest.mark.slow
def test_the_bombs_take_no_more_than_is_allowed() -> None:
    for name, data in bombs():

        def read(data: bytes = data) -> None:
            with pytest.raises((LimitError, pyparq.errors.CorruptFileError)):
                pyparq.read_table(data, limits=Limits(max_memory=64 * MIB))

        assert peak_of(read) < 64 * MIB + SLACK, name


ROWS = 400_000
TABLES: dict[str, pa.Table] = {
    "numbers": pa.table({"n": np.arange(ROWS), "m": np.arange(ROWS)}),
    "nulls": pa.table({"n": pa.nulls(ROWS, pa.int64()), "m": pa.nulls(ROWS, pa.float64())}),
    "text": pa.table({"n": [f"value {k}" for k in range(ROWS)]}),
    "few words": pa.table({"n": [f"a word that is not short, {k % 3}" for k in range(ROWS)]}),
    "lists": pa.table({"n": [[k, None] for k in range(ROWS)]}),
    "structs": pa.table({"n": [{"a": k, "b": None} for k in range(ROWS)]}),
    "decimals": pa.table({"n": pa.array(np.arange(ROWS)).cast(pa.decimal128(19, 0))}),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("use_threads", [True, False])
def test_every_kind_is_counted(name: str, use_threads: bool) -> None:
    """Half of what the table holds is too little; a few times as much is enough."""
    data = file_of(TABLES[name], compression="zstd", store_decimal_as_integer=True)
    table = pyparq.read_table(data)
    assert "limits.max_memory" in refused(data, table.nbytes // 2, use_threads=use_threads)
    enough = pyparq.read_table(data, limits=Limits(max_memory=4 * table.nbytes + 16 * MIB), use_threads=use_threads)
    assert enough.to_arrow().equals(table.to_arrow())


def test_dictionaries_and_their_columns_count() -> None:
    table = pa.table({"n": [f"{k:0200d}" for k in range(20_000)]})
    data = file_of(table, dictionary_pagesize_limit=1 << 30)
    for options in ({}, {"read_dictionary": ["n"]}):
        assert "limits.max_memory" in refused(data, 4 * MIB, **options)
    large = Limits(max_memory=40 * MIB)
    assert pyparq.read_table(data, limits=large).to_arrow().equals(table)
    with pytest.raises(LimitError, match=r"limits.max_memory"):  # pruning alone
        pyparq.read_table(data, filters=col("n") == "x", limits=Limits(max_memory=MIB), use_statistics=False)


def test_a_page_larger_than_what_is_left() -> None:
    data = file_of(pa.table({"n": np.zeros(MIB)}), data_page_size=64 * MIB, use_dictionary=False, max_rows_per_page=MIB,
                   row_group_size=8 * MIB, write_batch_size=8 * MIB)  # fmt: skip
    assert len(pyparq.ParquetFile(data).pages(0, 0)) == 1
    assert "limits.max_memory" in refused(data, 9 * MIB)
    assert pyparq.read_table(data, limits=Limits(max_memory=24 * MIB)).num_rows == MIB


@pytest.fixture(scope="module")
def many_groups() -> bytes:
    table = pa.table({"n": np.arange(1_000_000), "s": pa.array(np.arange(1_000_000)).cast(pa.string())})
    return file_of(table, row_group_size=50_000)


def test_a_stream_has_one_row_group_alive(many_groups: bytes) -> None:
    """It may be of any length; a table of all of it is refused."""
    limits = Limits(max_memory=6 * MIB)
    rows = 0
    with pyparq.ParquetFile(many_groups, limits=limits) as file:
        for batch in file.iter_batches(10_000):
            rows += batch.num_rows
        assert rows == 1_000_000
        assert sum(b.num_rows for b in file.scan(filters=col("n") >= 0).iter_batches()) == 1_000_000
        assert file.scan(filters=col("n") % 2 == 0 if hasattr(col("n"), "__mod__") else col("n") > 5).count() > 0
        with pytest.raises(LimitError, match=r"limits.max_memory"):
            file.read()
        with pytest.raises(LimitError, match=r"limits.max_memory"):
            file.scan(filters=col("n") >= 0, limit=900_000).to_table()
        assert file.read_row_group(3).num_rows == 50_000
        assert sum(b.num_rows for b in file.iter_batches()) == 1_000_000  # nothing of what failed is still counted


def test_what_a_read_counts_is_given_back(many_groups: bytes) -> None:
    """All but what the table and its dictionaries hold, which the scan keeps."""
    with pyparq.ParquetFile(many_groups) as file:
        scan = file.scan()
        table = scan.to_table()
        used = scan.reader.account.used
    assert table.nbytes <= used < 3 * table.nbytes


def test_few_rows_count_little(many_groups: bytes) -> None:
    limits = Limits(max_memory=8 * MIB)
    with pyparq.ParquetFile(many_groups, limits=limits) as file:
        assert file.take([5, 999_999], ["n"]).to_pydict() == {"n": [5, 999_999]}


def test_rows_that_are_only_claimed() -> None:
    """Memory is taken for values that pages declare, not for those that the footer does."""
    page = Page(1 << 20, b"", definition=b"\x80\x80\x80\x01\0")
    elements = [group("root", None, 1), leaf("x", OPTIONAL, 2)]
    data = make(elements, [Column([page], max_def=1, type_=2, num_values=1 << 40)], 1 << 40)

    def read() -> None:
        with pytest.raises(CorruptFileError, match="declares 1099511627776 values, but its pages end after 1048576"):
            pyparq.read_table(data)

    assert peak_of(read) < 2 * MIB


def test_levels_of_lists_count() -> None:
    """Empty lists have levels, and no slots."""
    run = handmade.runs([0], 1)[:0] + b"\x80\x80\x80\x08\0"
    page = Page(1 << 23, b"", run, run)
    elements = [group("root", None, 1), leaf("x", REPEATED)]
    data = make(elements, [Column([page], 1, 1)], 1 << 23)
    assert "limits.max_memory" in refused(data, 16 * MIB)
    assert pyparq.read_table(data, limits=Limits(max_memory=256 * MIB)).num_rows == 1 << 23


def test_prefixes_that_grow() -> None:
    """DELTA_BYTE_ARRAY: each value shares all of a long one."""
    table = pa.table({"s": ["x" * 100_000] * 1_000})
    data = file_of(table, use_dictionary=False, column_encoding={"s": "DELTA_BYTE_ARRAY"}, max_rows_per_page=1_000)
    assert len(data) < 200_000
    assert "limits.max_memory" in refused(data, 32 * MIB)
    assert pyparq.read_table(data).to_arrow().equals(table)


def test_pages_decoded_on_several_threads() -> None:
    data = file_of(pa.table({"n": np.random.default_rng(1).random(1_000_000)}), use_dictionary=False)
    assert "limits.max_memory" in refused(data, 6 * MIB)
    assert pyparq.read_table(data, limits=Limits(max_memory=40 * MIB)).num_rows == 1_000_000


def test_the_default_is_the_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limits().max_memory is None
    assert account.Account(Limits()).most == pyparq.kernels.buffers.memory_size()
    account._memory_there_is.cache_clear()
    monkeypatch.setattr(account, "memory_size", lambda: 32 * MIB)
    try:
        with pytest.raises(LimitError, match=r"limits.max_memory \(33554432\)"):
            pyparq.read_table(nulls(1 << 23, 1))
        account._memory_there_is.cache_clear()
        monkeypatch.setattr(account, "memory_size", lambda: 0)  # nobody tells
        assert pyparq.read_table(nulls(1 << 20, 1)).num_rows == 1 << 20
    finally:
        account._memory_there_is.cache_clear()


def test_control_groups_within_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest limit of all that the process is in."""
    whole = buffers.memory_size()
    (tmp_path / "own").write_text("0::/a/none\n")
    monkeypatch.setattr(buffers, "OWN_GROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(buffers, "CGROUPS", str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "memory.max").write_text("max\n")
    assert buffers.memory_size() == whole
    (tmp_path / "a" / "memory.max").write_text("123456789\n")
    assert buffers.memory_size() == 123456789


X = leaf("x", REQUIRED)


def test_no_row_at_all() -> None:
    data = make([group("root", None, 1), X], [Column([])], 0)
    assert pyparq.read_table(data, limits=Limits(max_memory=0)).num_rows == 0


def test_views_are_counted() -> None:
    """Views that a hint asks for take 16 bytes a row, and the strings nothing where they are short."""
    rows = 1 << 20
    table = pa.table({"s": pa.array(["x"] * rows, pa.string_view())})
    plain = file_of(table, use_dictionary=False)
    assert pyparq.read_table(plain, limits=Limits(max_memory=64 * MIB)).num_rows == rows
    assert pyparq.read_table(plain, limits=Limits(max_memory=14 * MIB), use_arrow_schema=False).num_rows == rows
    assert "limits.max_memory" in refused(plain, 14 * MIB)


def test_rows_that_are_taken_again_and_again_are_counted() -> None:
    data = file_of(pa.table({"s": ["y" * MIB, "z"], "l": [[1] * 1000, None]}))
    with pyparq.ParquetFile(data, limits=Limits(max_memory=64 * MIB)) as file:
        assert file.take([0] * 8).num_rows == 8
        assert file.take([1] * 100_000).num_rows == 100_000
        for columns in (["s"], ["l"]):
            with pytest.raises(LimitError, match=r"limits\.max_memory"):
                file.take([0] * 100_000, columns)
