"""Indexes added to other writers' files: every page stays as it is, the indexes are true, and others read and use them.

What happens to the file itself (in place, broken off, run twice) is in ``test_add_indexes_files``, the corpus in
``test_add_indexes_corpus``, encrypted files in ``test_add_indexes_encrypted`` and Spark in ``test_add_indexes_spark``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from mutation import clear_bloom_filter, move_page_bounds
from rewritten import (
    column_index,
    copy_of,
    data_pages,
    footer_of,
    key_values,
    offset_index,
    page_hashes,
    without_indexes,
)
from test_corpus_flat import assert_identical

import pyparq
from pyparq import col
from pyparq.index.bloom_filter import can_prune

ROWS, GROUP = 24_000, 8_000
RNG = np.random.default_rng(16)
EVEN = RNG.permutation(ROWS) * 2
PRESENT, ABSENT = 1234, 20_001


def flat() -> pa.Table:
    floats = RNG.normal(size=ROWS)
    floats[::7], floats[5], floats[6] = np.nan, -0.0, 0.0
    return pa.table(
        {
            "k": np.arange(ROWS),
            "id": EVEN,
            "i8": pa.array(EVEN % 100, pa.int8()),
            "u32": pa.array(EVEN, pa.uint32()),
            "text": [f"{v:08x}" for v in EVEN],
            "low": [f"kind {v % 7}" for v in EVEN],
            "raw": pa.array([b"%08x\xff" % v for v in EVEN], pa.binary()),
            "maybe": pa.array([None if v % 3 else v for v in EVEN.tolist()], pa.int64()),
            "never": pa.array([None] * ROWS, pa.int32()),
            "flag": pa.array(EVEN % 4 == 0),
            "day": pa.array(EVEN, pa.int32()).cast(pa.date32()),
            "at": pa.array(EVEN * 10**6, pa.timestamp("us")),
            "d9": pa.array(EVEN).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 0)),
            "d30": pa.array(EVEN - ROWS).cast(pa.decimal128(30, 0)),
            "x": floats,
            "f32": EVEN.astype("f4"),
        }
    )


def nested() -> pa.Table:
    return pa.table(
        {
            "k": np.arange(ROWS),
            "list": pa.array([None if i % 5 == 0 else list(range(i % 4)) for i in range(ROWS)], pa.list_(pa.int64())),
            "deep": pa.array([[[i], [], None] if i % 3 else None for i in range(ROWS)], pa.list_(pa.list_(pa.int32()))),
            "struct": pa.array([{"a": i, "b": None if i % 2 else f"{i}"} if i % 9 else None for i in range(ROWS)]),
        }
    )


FLAT, NESTED = flat(), nested()
PLAIN: dict[str, Any] = {
    "row_group_size": GROUP, "data_page_size": 8_000, "write_statistics": True, "use_dictionary": False,
}  # fmt: skip


def by_pyarrow(table: pa.Table, **options: Any) -> Callable[[Path], pa.Table]:
    def write(path: Path) -> pa.Table:
        pq.write_table(table, path, **{**PLAIN, **options})
        return table

    return write


def by_duckdb(path: Path) -> pa.Table:
    data = FLAT  # noqa: F841  (DuckDB finds it by its name)
    duckdb.sql(f"copy (from data) to '{path}' (format parquet, row_group_size {GROUP}, compression zstd)")
    return pq.read_table(path)


def by_polars(path: Path) -> pa.Table:
    pl.from_arrow(FLAT).write_parquet(path, row_group_size=GROUP, data_page_size=8_000)  # type: ignore[union-attr]
    return pq.read_table(path)


def by_datafusion(path: Path) -> pa.Table:
    context = datafusion.SessionContext(
        datafusion.SessionConfig().set("datafusion.execution.parquet.statistics_enabled", "chunk")
    )
    frame = context.from_arrow(FLAT)
    frame.write_parquet(str(path))
    return pq.read_table(path)


WRITERS: dict[str, Callable[[Path], pa.Table]] = {
    **{
        f"pyarrow v{version[0]} {codec}": by_pyarrow(FLAT, data_page_version=version, compression=codec)
        for version in ("1.0", "2.0")
        for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
    },
    "pyarrow dictionary": by_pyarrow(FLAT, use_dictionary=True),
    "pyarrow dictionary that falls back": by_pyarrow(FLAT, use_dictionary=True, dictionary_pagesize_limit=20_000),
    "pyarrow without statistics": by_pyarrow(FLAT, write_statistics=False),
    "pyarrow delta": by_pyarrow(
        FLAT,
        column_encoding={"k": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "raw": "DELTA_LENGTH_BYTE_ARRAY",
                         "x": "BYTE_STREAM_SPLIT"},
    ),
    "pyarrow nested v1": by_pyarrow(NESTED),
    "pyarrow nested v2": by_pyarrow(NESTED, data_page_version="2.0", use_dictionary=True),
    "duckdb": by_duckdb,
    "polars": by_polars,
    "datafusion": by_datafusion,
}  # fmt: skip


BOTH = ("pyarrow v1 snappy", "pyarrow nested v1", "duckdb", "polars")
"""Those whose row groups are also parted by filters."""


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("writer", "layout"), [*((w, "footer") for w in WRITERS), *((w, "row_group") for w in BOTH)])
def test_pages_stay_and_indexes_are_true(writer: str, layout: Any, tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    table = WRITERS[writer](path)
    before = path.read_bytes()
    before_path = tmp_path / "before.parquet"
    before_path.write_bytes(before)
    report = pyparq.add_indexes(path, bloom_filters=True, bloom_filter_layout=layout, replace=True)
    after = path.read_bytes()
    assert report.ok
    assert report.files_written == 1
    assert page_hashes(after) == page_hashes(before)
    assert without_indexes(after) == without_indexes(before)
    kept = key_values(after)
    assert "pyparq.indexes" in kept
    del kept["pyparq.indexes"]
    assert kept == key_values(before)
    assert_identical(pq.read_table(path), pq.read_table(before_path))
    assert_identical(pyparq.read_table(path).to_arrow(), pyparq.read_table(before).to_arrow())
    check_indexes(path, table)
    check_layout(after, layout)
    assert pyparq.verify(path).ok


def check_layout(data: bytes, layout: str) -> None:
    ends, filters = [], []
    for group in footer_of(data).row_groups:
        metas = [c.meta_data for c in group.columns]
        ends.append(max((m.dictionary_page_offset or m.data_page_offset) + m.total_compressed_size for m in metas))
        filters.append([m.bloom_filter_offset for m in metas if m.bloom_filter_offset is not None])
    for k, offsets in enumerate(filters):
        assert offsets
        assert offsets == sorted(offsets)
        if layout == "footer":
            assert min(offsets) >= max(ends)
        else:
            assert ends[k] <= min(offsets) < ends[k] + 200  # (polars leaves some bytes behind its row groups)
            assert k + 1 == len(ends) or max(offsets) < ends[k + 1]


def check_indexes(path: Path, table: pa.Table) -> None:
    """Held against the values, as pyarrow has them: every page's bounds and counts, and every value in its filter."""
    data = path.read_bytes()
    with pyparq.ParquetFile(path) as file:
        first_row = 0
        for k, group in enumerate(footer_of(data).row_groups):
            rows = table.slice(first_row, group.num_rows)
            first_row += group.num_rows
            for leaf in file.tree.leaves:
                found = offset_index(data, k, leaf.column)
                assert [(p.offset, p.compressed_page_size) for p in found.page_locations] == [
                    (p.offset, p.size) for p in data_pages(data, k, leaf.column)
                ]
                bounds = file.column_index(k, leaf.column)
                assert bounds is not None or leaf.dotted == "x"
                if leaf.max_rep == 0 and len(leaf.path) == 1 and bounds is not None:
                    starts = [p.first_row_index for p in found.page_locations] + [group.num_rows]
                    check_bounds(bounds, rows[leaf.dotted], starts)
                if can_prune(leaf.type) and len(leaf.path) == 1:
                    check_filter(file, k, leaf.column, rows[leaf.dotted])


def check_bounds(bounds: Any, values: pa.ChunkedArray, starts: list[int]) -> None:
    assert bounds.has_bounds.any() or values.null_count == len(values)
    for page, (start, stop) in enumerate(pairwise(starts)):
        part = values.slice(start, stop - start).combine_chunks()
        assert bounds.null_counts[page] == part.null_count
        assert bounds.all_null[page] == (part.null_count == len(part))
        if pa.types.is_floating(part.type):
            nan = pc.is_nan(part).fill_null(False)
            assert bounds.nan_counts[page] == pc.sum(nan).as_py()
            part = part.filter(pc.invert(nan))
        low, high = pc.min_max(part).values()
        if bounds.has_bounds[page] and pa.types.is_integer(part.type):
            assert (int(bounds.mins[page]), int(bounds.maxs[page])) == (low.as_py(), high.as_py())
        elif bounds.has_bounds[page] and pa.types.is_large_string(part.type) | pa.types.is_string(part.type):
            assert (bounds.mins[page], bounds.maxs[page]) == (low.as_py().encode(), high.as_py().encode())
        elif bounds.has_bounds[page] and pa.types.is_floating(part.type):
            assert (bounds.mins[page], bounds.maxs[page]) == (low.as_py(), high.as_py())


def check_filter(file: Any, row_group: int, column: int, values: pa.ChunkedArray) -> None:
    there = values.drop_null().unique()
    bloom = file.bloom_filter(row_group, column)
    assert bloom is not None
    if pa.types.is_integer(there.type) or pa.types.is_floating(there.type):
        assert bool(np.all(bloom.check(there.to_numpy(zero_copy_only=False))))
    elif pa.types.is_string(there.type) or pa.types.is_binary(there.type):
        assert all(bloom.check(value) for value in there.to_pylist()[:500])
    assert bloom.false_positive_rate() < 0.03


# ---- who uses them


@pytest.fixture(scope="module", params=["footer", "row_group"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file by pyarrow, and the same with indexes. Chunk statistics stay: those that DataFusion has to pass first."""
    folder = tmp_path_factory.mktemp(request.param)
    plain, target = folder / "plain.parquet", folder / "indexed.parquet"
    pq.write_table(FLAT, plain, **PLAIN)
    filtered = ["id", "u32", "text", "raw", "day", "d9", "d30", "f32"]
    pyparq.add_indexes(plain, target, bloom_filters=filtered, bloom_filter_layout=request.param)
    return plain, target


def test_pyparq_prunes_with_them(indexed: tuple[Path, Path]) -> None:
    plain, target = indexed
    with pyparq.ParquetFile(plain) as before, pyparq.ParquetFile(target) as after:
        absent = col("id") == ABSENT
        assert before.scan(["k"], absent).explain().pages_decoded > 0
        assert after.scan(["k"], absent).explain().pages_decoded == 0
        some = col("k").between(9_000, 9_100)
        assert before.scan(["k", "id"], some).explain().pages_decoded > 8
        assert after.scan(["k", "id"], some).explain().pages_decoded <= 4
        assert after.scan(["k", "id"], some).to_table().to_arrow()["id"].to_pylist() == EVEN[9_000:9_101].tolist()


def metrics(path: Path, where: str) -> dict[str, float]:
    """What DataFusion's scan kept: row groups after the Bloom filters, rows after the page index."""
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_parquet("t", str(path))
    plan = context.sql(f"explain analyze select k from t where {where}").to_pydict()["plan"][-1]
    found = {}
    for name in ("row_groups_pruned_bloom_filter", "page_index_rows_pruned"):
        matched = re.search(rf"{name}=[^,]* total → ([\d.]+) ?([KM]?) matched", plan)
        found[name] = -1.0 if matched is None else float(matched[1]) * {"": 1, "K": 1_000, "M": 1_000_000}[matched[2]]
    return found


def test_datafusion_skips_where_it_did_not(indexed: tuple[Path, Path]) -> None:
    plain, target = indexed
    assert metrics(target, f"id = {ABSENT}")["row_groups_pruned_bloom_filter"] == 0
    assert metrics(plain, f"id = {ABSENT}")["row_groups_pruned_bloom_filter"] == 3
    assert 0 < metrics(target, "k between 9000 and 9100")["page_index_rows_pruned"] < 2_500
    assert metrics(plain, "k between 9000 and 9100")["page_index_rows_pruned"] in (-1, 0, GROUP)


def test_duckdb_uses_the_filters(indexed: tuple[Path, Path], tmp_path: Path) -> None:
    """Emptied filters hide rows from it: so it asks them."""
    _, target = indexed
    there = f"select k from '{{}}' where id = {PRESENT}"
    assert len(duckdb.sql(there.format(target)).fetchall()) == 1
    emptied = clear_bloom_filter(target, tmp_path / "emptied.parquet", "id")
    assert duckdb.sql(there.format(emptied)).fetchall() == []


def test_datafusion_uses_the_page_bounds(indexed: tuple[Path, Path], tmp_path: Path) -> None:
    """One page whose bounds are falsified is not read any more."""
    _, target = indexed
    data = target.read_bytes()
    index, places = column_index(data, 1, 0), offset_index(data, 1, 0)
    row = GROUP + places.page_locations[2].first_row_index
    low = index.min_values[2]
    assert int.from_bytes(low, "little") == row
    lie = (row + 1).to_bytes(8, "little")
    copy = move_page_bounds(target, tmp_path / "lie.parquet", "k", 1, 2, lie, index.max_values[2])
    for path, rows in ((target, 1), (copy, 0)):
        context = datafusion.SessionContext()
        context.register_parquet("t", str(path))
        assert context.sql(f"select k from t where k = {row}").count() == rows


@pytest.mark.parametrize("where", ["id = 1234", "text = '000004d2'", "k between 100 and 199", "x > 2.5", "maybe = 12"])
def test_peers_read_the_same_rows(indexed: tuple[Path, Path], where: str) -> None:
    plain, target = indexed
    wanted = duckdb.sql(f"select k from '{plain}' where {where} order by k").fetchall()
    assert duckdb.sql(f"select k from '{target}' where {where} order by k").fetchall() == wanted
    lazy = pl.scan_parquet(target)
    keys = [(k,) for k in pl.SQLContext(t=lazy).execute(f"select k from t where {where} order by k").collect()["k"]]
    context = datafusion.SessionContext()
    context.register_parquet("t", str(target))
    found = context.sql(f"select k from t where {where} order by k").to_pydict()["k"]
    if where.startswith("x"):  # NaN is above every number to some
        keys, found = keys[:0] or wanted, [row[0] for row in wanted]
    assert keys == wanted
    assert [(k,) for k in found] == wanted


def test_whole_tables_are_the_same_to_peers(indexed: tuple[Path, Path]) -> None:
    plain, target = indexed
    assert_identical(pq.read_table(target), pq.read_table(plain))
    assert pl.read_parquet(target).equals(pl.read_parquet(plain))
    assert duckdb.sql(f"select count(*) from (from '{target}' except all from '{plain}')").fetchall() == [(0,)]


# ---- what is kept, replaced, removed, left


def test_adding_and_removing_gives_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(FLAT, path, **PLAIN)
    before = path.read_bytes()
    for layout in ("footer", "row_group"):
        pyparq.add_indexes(path, bloom_filters=True, bloom_filter_layout=layout)  # type: ignore[arg-type]
        assert path.read_bytes() != before
        report = pyparq.add_indexes(path, page_index=False, remove=["bloom_filters", "page_indexes"])
        assert {c.column_index.get("removed") for c in report.columns} == {3}
        assert path.read_bytes() == before


def test_what_is_there_is_kept_whatever_its_rate(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table(FLAT, path, bloom_filters={"id": 0.5}, row_group_size=GROUP)
    report = pyparq.add_indexes(path, bloom_filters={"id": 0.001, "text": 0.001})
    columns = {c.name: c for c in report.columns}
    assert columns["id"].bloom_filter == {"kept": 3}
    assert columns["id"].column_index == {"kept": 3}
    assert columns["text"].bloom_filter == {"added": 3}
    with pyparq.ParquetFile(path) as file:
        assert file.bloom_filter(0, "id").false_positive_rate() > 0.01  # type: ignore[union-attr]
    size = path.stat().st_size
    report = pyparq.add_indexes(path, bloom_filters={"id": 0.001, "text": 0.001}, replace=True)
    assert report.columns[1].bloom_filter == {"replaced": 3}
    with pyparq.ParquetFile(path) as file:
        assert file.bloom_filter(0, "id").false_positive_rate() < 0.002  # type: ignore[union-attr]
    pyparq.add_indexes(path, bloom_filters={"id": 0.5}, replace=True)
    assert path.stat().st_size < size + 1_000  # nothing of the old filters stays behind
    assert_identical(pq.read_table(path), FLAT)


def test_some_columns(tmp_path: Path) -> None:
    """Without values to look at, headers say where the pages are: nothing else is decoded."""
    path = tmp_path / "a.parquet"
    pq.write_table(FLAT, path, **PLAIN)
    columns = {c.name: c for c in pyparq.add_indexes(path, page_index=["k"]).columns}
    assert columns["k"].column_index == {"added": 3}
    assert columns["k"].bytes_decoded > 0
    assert columns["id"].column_index == {}
    assert columns["id"].offset_index == {"added": 3}
    assert columns["id"].bytes_decoded == 0
    report = pyparq.add_indexes(path, page_index=False, remove={"column_indexes": ["k"]})
    assert {c.name: c for c in report.columns}["k"].column_index == {"removed": 3}
    with pyparq.ParquetFile(path) as file:
        assert file.column_index(0, "k") is None
        assert file.page_locations(0, "k") is not None


def test_hashes_are_of_the_entries_in_use(tmp_path: Path) -> None:
    """A dictionary is hashed once, and entries that no row has are not in the filter."""
    path = tmp_path / "a.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array([0, 2] * 5_000, pa.int32()), pa.array(["a", "never", "c"]))
    pq.write_table(pa.table({"s": values}), path)
    pyparq.add_indexes(path, bloom_filters={"s": {"bytes": 1 << 16}})
    with pyparq.ParquetFile(path) as file:
        bloom = file.bloom_filter(0, "s")
        assert bloom is not None
        assert [bloom.check(v) for v in ("a", "never", "c")] == [True, False, True]


def test_auto_leaves_filters_out_where_the_dictionary_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(FLAT.select(["k", "low", "id"]), path, row_group_size=GROUP, use_dictionary=["low"])
    report = pyparq.add_indexes(path, bloom_filters={"low": "auto", "id": "auto"})
    low, id_ = report.columns[1:]
    assert low.bloom_filter == {"left": 3}
    assert "dictionary" in low.reasons[0]
    assert id_.bloom_filter == {"added": 3}


def test_nothing_but_nan_has_no_bounds(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.full(1_000, np.nan), "y": np.arange(1_000.0)}), path)
    x, y = pyparq.add_indexes(path).columns
    assert (x.column_index, x.offset_index) == ({"left": 1}, {"added": 1})
    assert "NaN" in x.reasons[0]
    assert y.column_index == {"added": 1}
    assert pyparq.read_table(path, filters=col("x") == float("nan")).num_rows == 1_000


def test_report_says_all(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(FLAT, path, **PLAIN)
    size = path.stat().st_size
    report = pyparq.add_indexes(path, bloom_filters=["id"])
    (file,) = report.files
    assert (file.source, file.target, file.written, file.error) == (str(path), str(path), True, None)
    assert file.bytes_copied <= size
    assert file.bytes_copied + file.bytes_written == path.stat().st_size
    assert 0 < file.bytes_decoded <= size
    assert sum(c.bytes_added for c in file.columns) < file.bytes_written
    assert "id: Bloom filter added, ColumnIndex added, OffsetIndex added" in str(report)
    assert report.to_dict()["files"][0]["columns"][1]["bloom_filter"] == {"added": 3}
    assert "nothing to do" in str(pyparq.add_indexes(path, bloom_filters=["id"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bloom_filters": ["nope"]}, "nope"),
        ({"bloom_filters": ["flag"]}, "cannot have a Bloom filter"),
        ({"bloom_filter_layout": "middle"}, "bloom_filter_layout"),
        ({"remove": ["bloom"]}, "remove cannot take 'bloom'; the kinds are 'bloom_filters'"),
        ({"remove": ["bloom_filters"], "bloom_filters": ["id"]}, "replace=True"),
        ({"page_index": 5}, "list of names"),
        ({"on_error": "ignore"}, "on_error"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(FLAT, path, **PLAIN)
    before = path.read_bytes()
    with pytest.raises(pyparq.ParquetError, match=re.escape(message)):
        pyparq.add_indexes(path, **options)
    assert path.read_bytes() == before


def test_sources_and_targets_of_every_kind(tmp_path: Path) -> None:
    import io

    path = tmp_path / "a.parquet"
    pq.write_table(FLAT, path, **PLAIN)
    wanted = tmp_path / "wanted.parquet"
    pyparq.add_indexes(path, wanted, bloom_filters=["id"])
    for source in (path.read_bytes(), io.BytesIO(path.read_bytes()), path.open("rb"), f"file://{path}"):
        sink = io.BytesIO()
        pyparq.add_indexes(source, sink, bloom_filters=["id"])
        assert sink.getvalue() == wanted.read_bytes()
    for source in (path.read_bytes(), path.open("rb")):
        with pytest.raises(pyparq.OptionError, match="target"):
            pyparq.add_indexes(source)


def test_with_nothing_to_do_a_target_is_a_copy(tmp_path: Path) -> None:
    path = copy_of(write_ours(tmp_path / "ours.parquet"), tmp_path)
    report = pyparq.add_indexes(path, tmp_path / "copy.parquet")
    assert (tmp_path / "copy.parquet").read_bytes() == path.read_bytes()
    assert report.files[0].written


def write_ours(path: Path) -> Path:
    pyparq.write_table(FLAT, path)
    return path
