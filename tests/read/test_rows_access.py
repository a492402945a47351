"""Row access: row numbers, slices, limits; the right rows, from no more pages than hold them."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counting import CountingFile
from nested_tables import FILES, ROWS, TABLE, within_rows

import pyparq
from pyparq import col
from pyparq.errors import CorruptIndexWarning, OptionError
from pyparq.read.decode.chunk_pages import ChunkPages, PageValues
from pyparq.read.decode.memory_account import Account

COUNT = len(ROWS)


@pytest.fixture(scope="module", params=list(FILES))
def data(request: pytest.FixtureRequest) -> bytes:
    return FILES[request.param]()


@pytest.fixture(scope="module")
def whole(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def check(found: pyparq.Table, expected: pa.Table) -> None:
    """NaN is not equal to itself, so values are compared as they print."""
    assert repr(found.to_arrow().to_pylist()) == repr(expected.to_pylist())
    assert found.to_arrow().validate(full=True) is None


CHOICES: list[list[int]] = [
    [0],
    [COUNT - 1],
    [5, 3, 3, 1100, 699, 700, 5],
    [],
    sorted(random.Random(1).sample(range(COUNT), 40)),
    [random.Random(2).randrange(COUNT) for _ in range(60)],
    list(range(COUNT)),
    list(reversed(range(690, 720))),
]


@pytest.mark.parametrize("rows", CHOICES, ids=lambda rows: f"{len(rows)}-{rows[:2]}")
@pytest.mark.parametrize("columns", [None, ["ls.y", "id"], ["ll"], ["s"]], ids=str)
def test_take(data: bytes, whole: pa.Table, rows: list[int], columns: list[str] | None) -> None:
    with pyparq.ParquetFile(data) as file:
        found = file.take(rows, columns)
        everything = file.read(columns).to_arrow()
    check(found, everything.take(pa.array(rows, pa.int64())))
    if columns is None:
        check(found, whole.take(pa.array(rows, pa.int64())))


@pytest.mark.parametrize(
    "rows", [np.array([3, 1], np.uint8), range(4, 9), pa.array([7, 2]), slice(3, 6), (2, 1)], ids=str
)
def test_kinds_of_row_numbers(rows: Any) -> None:
    numbers = list(range(3, 6)) if isinstance(rows, slice) else [int(str(k)) for k in rows]
    with pyparq.ParquetFile(FILES["ours"]()) as file:
        assert file.take(rows, ["id"]).to_pydict()["id"] == numbers


SLICES = [
    (0, 10),
    (0, None),
    (50, 51),
    (695, 705),
    (1190, 5000),
    (-10, None),
    (-20, -10),
    (10, 10),
    (20, 10),
    (5000, 6000),
]


@pytest.mark.parametrize(("start", "stop"), SLICES)
def test_slices(data: bytes, whole: pa.Table, start: int, stop: int | None) -> None:
    rows = range(COUNT)[start:stop]
    with pyparq.ParquetFile(data) as file:
        check(file.read_rows(start, stop), whole.slice(rows.start, len(rows)))
    check(pyparq.read_table(data, rows=slice(start, stop)), whole.slice(rows.start, len(rows)))


def test_slices_with_steps(whole: pa.Table, data: bytes) -> None:
    check(pyparq.read_table(data, rows=slice(3, 1000, 97)), whole.take(list(range(3, 1000, 97))))


@pytest.mark.parametrize("limit", [0, 1, 30, 699, 700, 701, 5000])
def test_limits(data: bytes, whole: pa.Table, limit: int) -> None:
    with pyparq.ParquetFile(data) as file:
        check(file.head(limit), whole.slice(0, limit))
        scan = file.scan(["id"], limit=limit)
        assert scan.count() == min(limit, COUNT)
        assert sum(b.num_rows for b in scan.iter_batches(7)) == min(limit, COUNT)


FILTERS = col("l").contains(3) | (col("s.a") > 18)


@pytest.mark.parametrize("limit", [0, 1, 40, 200, 5000])
@pytest.mark.parametrize(
    "rows", [None, slice(100, 900), [3, 50, 60, 61, 62, 63, 64, 1000, 1001, 1002]], ids=["all", "slice", "few"]
)
def test_limits_and_rows_of_a_filter(data: bytes, limit: int, rows: Any) -> None:
    allowed = range(COUNT) if rows is None else range(COUNT)[rows] if isinstance(rows, slice) else rows
    matching = pyparq.read_table(data, ["id"], FILTERS).to_pydict()["id"]
    expected = [k for k in matching if k in allowed][:limit]
    assert len(matching) > 200
    with pyparq.ParquetFile(data) as file:
        scan = file.scan(["id", "ls.y"], FILTERS, rows=rows, limit=limit)
        assert scan.to_table().to_pydict()["id"] == expected
        assert scan.count() == len(expected)
        assert [v for b in scan.iter_batches(11) for v in b.to_table().to_pydict()["id"]] == expected
        assert file.execute(scan.plan()).to_pydict()["id"] == expected


def test_rows_and_row_groups(data: bytes, whole: pa.Table) -> None:
    check(pyparq.read_table(data, row_groups=[1], rows=slice(690, 710)), whole.slice(700, 10))
    check(
        pyparq.read_table(data, row_groups=[1, 0], limit=510), pa.concat_tables([whole.slice(700), whole.slice(0, 10)])
    )


def test_no_columns(data: bytes) -> None:
    with pyparq.ParquetFile(data) as file:
        assert file.take([4, 4, 900], []).num_rows == 3
        assert file.head(20, []).num_rows == 20


@pytest.mark.parametrize("rows", [[COUNT], [-1], [0, 10**12], range(COUNT - 1, COUNT + 1)], ids=str)
def test_rows_that_do_not_exist(data: bytes, rows: Any) -> None:
    with pytest.raises(OptionError, match=f"does not exist: the file has {COUNT}"), pyparq.ParquetFile(data) as file:
        file.take(rows)


@pytest.mark.parametrize("rows", [[1.5], ["a"], 3, [[1], [2]], [True, False], "12", [None]], ids=str)
def test_what_are_no_row_numbers(rows: Any) -> None:
    with pyparq.ParquetFile(FILES["ours"]()) as file:
        with pytest.raises(OptionError, match="rows must be a slice or"):
            file.take(rows)
        with pytest.raises(OptionError, match="rows must be a slice or"):
            file.scan(rows=rows)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "3"], ids=str)
def test_what_is_no_limit(limit: Any) -> None:
    with pytest.raises(OptionError, match="limit"):
        pyparq.read_table(FILES["ours"](), limit=limit)


# ---- what it costs


def pages_of(file: pyparq.ParquetFile, columns: Sequence[int], rows: Sequence[int]) -> tuple[int, int, int]:
    """(data pages that hold any of ``rows``, their bytes, bytes of dictionaries and OffsetIndexes beside them)."""
    pages = size = beside = first = 0
    for k in range(file.num_row_groups):
        count = file.metadata.row_group(k).num_rows
        inside = [r - first for r in rows if first <= r < first + count]
        first += count
        for column in columns if inside else ():
            locations = file.page_locations(k, column)
            assert locations is not None
            touched = np.unique(np.searchsorted(locations.first_rows, inside, side="right") - 1)
            pages += len(touched)
            size += int(locations.sizes[touched].sum())
            chunk = file.metadata.row_group(k).column(column)
            beside += int(locations.offsets[0]) - chunk.file_offset + chunk.raw.offset_index_length
    return pages, size, beside


def big_file() -> bytes:
    rng = np.random.default_rng(5)
    count = 60_000
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * 2), pa.array(rng.integers(0, 9**9, count * 2))
    )
    table = pa.table({
        "n": rng.integers(0, 1 << 60, count),
        "word": [f"word {k % 500:05d}" for k in range(count)],
        "l": lists,
        "s": pa.StructArray.from_arrays([pa.array(rng.random(count))], ["x"]),
    })  # fmt: skip
    sink = io.BytesIO()
    pyparq.write_table(table, sink, row_group_size=20_000, max_rows_per_page=1000)
    return sink.getvalue()


BIG = big_file()


@pytest.mark.parametrize(
    "rows", [[7], [59_999, 3], [100, 101, 999, 1000, 25_500], list(range(0, 60_000, 6000))], ids=str
)
@pytest.mark.parametrize("leaves", [[0], [1], [0, 1, 2, 3]], ids=str)
def test_take_reads_the_touched_pages(rows: list[int], leaves: list[int]) -> None:
    counting = CountingFile(BIG)
    with pyparq.ParquetFile(counting, coalesce_gap=0) as file:
        columns = [file.tree.leaves[k].path[0] for k in leaves]
        opened = counting.num_bytes
        table = file.take(rows, columns)
        spent = counting.num_bytes - opened
        pages, size, beside = pages_of(file, leaves, sorted(set(rows)))
        scan = file.scan(columns, rows=sorted(set(rows)))
        scan.to_table()
        assert scan.reader.counts.data_pages == pages
    assert table.num_rows == len(rows)
    tail = 16 << 10  # what opening has read is not read again
    assert size - tail <= spent <= size + beside


def test_head_reads_the_first_pages() -> None:
    with pyparq.ParquetFile(BIG) as file:
        explained = file.scan(limit=1500).explain()
    assert explained.rows == 1500
    assert explained.pages_decoded == 2 * 4


def test_a_limited_filter_stops_at_the_row_group_that_fills_it() -> None:
    with pyparq.ParquetFile(BIG) as file:
        scan = file.scan(["s"], col("word") == "word 00003", limit=5)
        assert scan.to_table().num_rows == 5
        assert scan.reader.counts.data_pages <= 20 + 5  # the words of one row group; the pages of s that hold five rows


def test_without_an_index_whole_chunks_are_read_but_not_decoded() -> None:
    sink = io.BytesIO()
    pyparq.write_table(TABLE.select(["id", "l"]), sink, write_page_index=False, max_rows_per_page=100)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        scan = file.scan(["id"], rows=[5, 150, 151])
        assert scan.to_table().to_pydict()["id"] == [5, 150, 151]
        assert scan.reader.counts.data_pages == 2
        assert file.take([1199, 0], ["l"]).to_pydict()["l"] == [ROWS[1199]["l"], ROWS[0]["l"]]


def test_nested_projection_reads_only_its_leaves() -> None:
    """Bytes of one field of a list of structs: its chunks, not those of its siblings."""
    data = FILES["ours"]()
    for name, leaf in (("ls.y", "ls.list.element.y"), ("s.in.b", "s.in.b"), ("ls.z", "ls.list.element.z.list.element")):
        counting = CountingFile(data)
        with pyparq.ParquetFile(counting, tail_size=8, coalesce_gap=0) as file:
            opened = counting.num_bytes
            file.read([name])
            chunks = [file.metadata.row_group(k).column(leaf) for k in range(2)]
        assert counting.num_bytes - opened == sum(c.total_compressed_size for c in chunks)


def first_repetitions(data: bytes, column: str) -> list[int]:
    """The repetition level that each data page begins with."""
    with pyparq.ParquetFile(data) as file:
        inner = file._file
        found = []
        for k in range(file.num_row_groups):
            chunk = inner.chunk(k, next(file.tree.find(column).leaves()))
            (raw,) = inner.fetcher.fetch([(chunk.start, chunk.size)])
            run = ChunkPages(raw, chunk, inner.options, Account(inner.options.limits)).decode(with_values=False)
            for levels in PageValues(chunk.node, run, None).rep_levels:
                assert levels is not None
                found.append(int(levels[0]))
        return found


def test_the_files_of_pages_within_rows_have_such_pages() -> None:
    for name in ("within rows", "within rows, plain"):
        starts = first_repetitions(FILES[name](), "ls.x")
        assert len(starts) > 15
        assert sum(starts) > 5
        assert max(first_repetitions(FILES[name](), "l")) == 1


ASKED = [
    (["ls"], {"rows": [50, 650, 1000]}),
    (["ls.y", "l"], {"rows": slice(55, 64)}),
    (["id", "ls"], {"filters": col("ls.x").contains(20)}),
    (["id"], {"filters": col("l").contains(3)}),
    (["ls.z"], {"filters": col("id") == 180}),
    (["l"], {"limit": 70}),
    (["ll"], {"filters": col("ll").is_null()}),
]


@pytest.mark.parametrize(("columns", "asked"), ASKED, ids=lambda x: str(x))
def test_an_index_over_pages_within_rows_is_not_used(columns: list[str], asked: dict[str, Any]) -> None:
    """No OffsetIndex is legal there; one that is there all the same is noticed and left, and the rows are right."""
    data, honest = within_rows(index=True), FILES["ours"]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptIndexWarning)
        found = pyparq.read_table(data, columns, **asked)
    assert found.num_rows > 0
    check(found, pyparq.read_table(honest, columns, **asked).to_arrow())


def test_an_index_over_pages_within_rows_is_named() -> None:
    with pytest.warns(CorruptIndexWarning, match=r"in the middle of a row|rows, but the OffsetIndex"):
        pyparq.read_table(within_rows(index=True), ["ls"], rows=[50, 650])


@pytest.mark.parametrize("rows", [[25, 3, 3, 99], list(range(10, 30)), []], ids=str)
def test_take_gives_the_types_of_a_read(rows: list[int]) -> None:
    """Types that ARROW:schema hints at, and dictionaries that differ from row group to row group."""
    words = [None if k % 9 == 0 else f"w{k // 10}" for k in range(100)]
    table = pa.table({
        "d": pa.array(words).dictionary_encode(),
        "view": pa.array([None if w is None else w * 9 for w in words], pa.string_view()),
        "big": pa.array(words, pa.large_string()),
        "pair": pa.array([[k, None] for k in range(100)], pa.list_(pa.int16(), 2)),
        "zoned": pa.array(range(100), pa.timestamp("us", "Europe/Berlin")),
        "long": pa.array([[k] * (k % 3) for k in range(100)], pa.large_list(pa.int8())),
        "dl": pa.array([[w] * (k % 3) for k, w in enumerate(words)]),
    })  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=20)
    with pyparq.ParquetFile(sink.getvalue(), read_dictionary=["dl"]) as file:
        found = file.take(rows)
        assert found.schema == file.read().schema
    expected = {name: [values[k] for k in rows] for name, values in table.to_pydict().items()}
    arrow = found.to_arrow()
    arrow.validate(full=True)
    assert arrow.to_pydict() == expected
    assert [f.type for f in arrow.schema][:-1] == [f.type for f in table.schema][:-1]


@pytest.mark.parametrize("make", [pq.write_table, pyparq.write_table], ids=["pyarrow", "ours"])
def test_nested_columns_without_rows(make: Any) -> None:
    sink = io.BytesIO()
    make(TABLE.slice(0, 0), sink)
    data = sink.getvalue()
    assert pq.read_table(io.BytesIO(data)).num_rows == 0
    with pyparq.ParquetFile(data) as file:
        assert file.read().to_arrow().schema.types == TABLE.schema.types
        for filters in (col("l").contains(1), ~col("l").contains(1), col("s").is_null(), ~col("ls").is_null()):
            assert file.read(["ls.y"], filters).num_rows == 0
        assert file.take([]).num_rows == file.head(3).num_rows == file.read_rows(0, 9).num_rows == 0
        with pytest.raises(OptionError, match="the file has 0"):
            file.take([0])


def test_lists_that_are_all_empty_or_null() -> None:
    for values in ([[]] * 50, [None] * 50, [[], None] * 25, [[None]] * 50):
        table = pa.table({"l": pa.array(values, pa.list_(pa.int32())), "k": range(50)})
        sink = io.BytesIO()
        pyparq.write_table(table, sink, max_rows_per_page=10)
        with pyparq.ParquetFile(sink.getvalue()) as file:
            assert file.take([49, 0], ["l"]).to_pydict()["l"] == [values[49], values[0]]
            for filters, keep in (
                (col("l").contains(1), lambda v: False),
                (~col("l").contains(1), lambda v: v is not None),
                (col("l").is_null(), lambda v: v is None),
            ):
                found = file.read(["k"], filters).to_pydict()["k"]
                assert found == [k for k, v in enumerate(values) if keep(v)]
