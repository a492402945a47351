"""Keys looked up in many files: as a scan with the same keys, whatever indexes the files have."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from encryption_tools import FOOTER
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_by_one import read_one_by_one

import pyparq
from pyparq import col
from pyparq.errors import (
    ChangedFileError,
    ColumnNotFoundError,
    CorruptFileError,
    CorruptIndexWarning,
    FilterError,
    OptionError,
    SkippedFileWarning,
)

FILES = 30
ROWS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random ids, each in one row of one file, written by pyarrow and by us, with Bloom filters and without."""
    folder = tmp_path_factory.mktemp("lookup")
    ids = np.random.default_rng(5).permutation(FILES * ROWS) * 2
    for k in range(FILES):
        part = ids[k * ROWS : (k + 1) * ROWS]
        table = pa.table(
            {
                "id": part,
                "text": [f"t{i}" if i % 3 else None for i in part.tolist()],
                "small": pa.array(part.astype(np.float32) / 4),
                "when": pa.array(part.astype("M8[us]")),
                "file": np.full(ROWS, k),
            }
        )
        target = folder / f"part={k % 3}" / f"f{k:02d}.parquet"
        target.parent.mkdir(exist_ok=True)
        names = ["id", "text", "small", "when"]
        if k % 3 == 0:
            pyparq.write_table(table, target, bloom_filters=names, row_group_size=40)
        elif k % 3 == 1:
            options = {name: {"ndv": ROWS, "fpp": 0.01} for name in names}
            pq.write_table(table, target, bloom_filter_options=options, write_page_index=True)
        else:
            pq.write_table(table, target, row_group_size=70)
    return folder


def same(found: pyparq.Table, expected: pyparq.Table) -> None:
    assert found.to_arrow().equals(expected.to_arrow())


# ---- answers -------------------------------------------------------------------------------------------------------


def test_one_key(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    expected = pads.dataset(folder, partitioning="hive").to_table(filter=pc.field("id") == 1234)
    found = ds.lookup("id", 1234).to_arrow()
    assert found.num_rows == 1
    assert found.select(expected.column_names).cast(expected.schema).equals(expected)
    for key in (np.int32(1234), np.array(1234), pa.scalar(1234), decimal.Decimal(1234), 1234.0):
        same(ds.lookup("id", key), ds.lookup("id", [1234]))
    assert ds.lookup("text", "t1234").to_pydict()["id"] == [1234]
    assert ds.lookup("text", b"t1234").num_rows == 1
    assert ds.lookup("id", 1235).num_rows == 0
    assert ds.lookup("id", 1235).schema == ds.schema


def test_many_keys_against_others(folder: Path) -> None:
    keys = np.arange(0, 6100, 7)
    found = pyparq.dataset(folder).lookup("id", keys, columns=["id", "text", "file"]).to_arrow()
    glob = f"{folder}/*/*.parquet"
    by_duckdb = duckdb.sql(
        f"select id, text, file from '{glob}' where id in ({', '.join(map(str, keys))})"
    ).to_arrow_table()
    by_polars = pl.scan_parquet(glob).filter(pl.col("id").is_in(keys)).select("id", "text", "file").collect()
    by_pyarrow = pads.dataset(folder, partitioning="hive").to_table(["id", "text", "file"], pc.field("id").isin(keys))
    assert found.num_rows == len(np.arange(0, 6000, 14))
    assert found.to_pylist() == by_pyarrow.to_pylist() == by_polars.to_dicts()
    assert sorted(found["id"].to_pylist()) == sorted(by_duckdb["id"].to_pylist())


@pytest.mark.parametrize(
    "keys",
    [
        [10, 12, 10, 9, 12],
        (10, 12, 9),
        {10, 12},
        np.array([10, 12, 12], np.int16),
        pa.array([10, 12]),
        pa.chunked_array([[10], [12, None]]),
        pd.Series([10, 12]),
        pl.Series([10, 12]),
        [10, None, 12],
        [10, float("nan"), 12],
        range(10, 13),
        (k for k in (10, 12)),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_kinds_of_keys(folder: Path, keys: Any) -> None:
    found = pyparq.dataset(folder).lookup("id", keys).to_pydict()["id"]
    assert sorted(found) == [10, 12]


def test_rows_come_in_the_order_of_files_each_once(tmp_path: Path) -> None:
    for k in range(5):
        pyparq.write_table({"id": [k, 7, 7, 9], "row": [0, 1, 2, 3]}, tmp_path / f"{k}.parquet", bloom_filters=["id"])
    found = pyparq.dataset(tmp_path).lookup("id", [9, 7, 7], filename=True).to_pydict()
    assert found["row"] == [1, 2, 3] * 5
    assert [Path(name).name for name in found["filename"]] == [f"{k}.parquet" for k in range(5) for _ in range(3)]


def test_no_keys_and_null_keys(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    for none in ([], [None], None, [pd.NA, np.datetime64("NaT")], pa.array([], pa.int64()), pa.nulls(3)):
        assert ds.lookup("text", none).num_rows == 0, none
    assert ds.lookup("text", [None, "t4"]).num_rows == 1


def test_keys_of_other_types(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    assert ds.lookup("small", [0.5, np.float32(1.0)]).to_pydict()["id"].__len__() == 2
    assert ds.lookup("when", dt.datetime(1970, 1, 1, 0, 0, 0, 10)).to_pydict()["id"] == [10]
    assert ds.lookup("when", np.array([10, 12], "M8[us]")).num_rows == 2
    assert ds.lookup("id", [10.5, 2**70]).num_rows == 0
    with pytest.raises(FilterError, match="id"):
        ds.lookup("id", "ten")
    with pytest.raises(FilterError, match="id"):
        ds.lookup("id", [b"10"])
    with pytest.raises(ColumnNotFoundError):
        ds.lookup("nothing", 1)
    with pytest.raises(OptionError, match="filter"):
        ds.lookup("id", col("id") == 3)


def test_names_of_files(folder: Path, tmp_path: Path) -> None:
    ds = pyparq.dataset(folder)
    found = ds.lookup("id", [100, 200], columns=["id"], filename=True)
    assert found.schema.names == ["id", "filename"]
    for key, name in zip(*found.to_pydict().values(), strict=True):
        assert key in pq.read_table(name)["id"].to_pylist()
    assert ds.lookup("id", 100, filename="where").schema.names[-1] == "where"
    assert ds.lookup("id", 101, filename=True).schema.names[-1] == "filename"
    assert "filename" not in ds.lookup("id", 100).schema.names
    with pytest.raises(OptionError, match="another name"):
        ds.lookup("id", 100, filename="text")
    with pytest.raises(OptionError, match="another name"):
        pyparq.dataset(folder, filename=True).lookup("id", 100, filename=True)


def test_partition_columns(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    same(ds.lookup("part", [0, 2]), ds.read(filters=col("part").isin([0, 2])))
    same(ds.lookup("part", 9), ds.read(filters=col("part") == 9))
    for row in ds.lookup("id", [4, 6, 8, 10]).to_arrow().to_pylist():
        assert row["file"] % 3 == row["part"]


def test_files_of_other_schemas(tmp_path: Path) -> None:
    types = [pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.decimal128(9, 2), None]
    for k, type_ in enumerate(types * 2):
        columns: dict[str, Any] = {"n": list(range(5))}
        if type_ is not None:
            number = decimal.Decimal if pa.types.is_decimal(type_) else int
            columns = {"id": pa.array([number(k * 100 + i) for i in range(5)], type_), **columns}
        if k > 5:
            columns = dict(reversed(columns.items()))
        writer = pyparq.write_table if k % 2 else pq.write_table
        writer(pa.table(columns), tmp_path / f"{k:02d}.parquet")
    ds = pyparq.dataset(tmp_path, schema={"id": "decimal(20, 2)?", "n": "int64"})
    keys = [2, 101, 203, 304, 400, 602, 1000, 1001, 5, None]
    same(ds.lookup("id", keys), ds.read(filters=col("id").isin(keys)))
    assert ds.lookup("id", keys).num_rows == 8


# ---- as a scan of each file ----------------------------------------------------------------------------------------


def each_file(ds: pyparq.Dataset, column: str, keys: Any) -> list[dict[str, Any]]:
    """The rows of all files, of each by a scan of its own without any index."""
    rows: list[dict[str, Any]] = []
    for name in ds.files:
        table = pyparq.read_table(
            name, filters=col(column).isin(keys), use_statistics=False, use_bloom_filters=False, use_page_index=False,
            use_dictionaries=False,
        )  # fmt: skip
        rows += table.to_pylist()
    return rows


VALUES = {
    "int32": st.integers(-5, 40),
    "int64": st.one_of(st.integers(-5, 40), st.just(2**62)),
    "uint32": st.integers(0, 40),
    "float32": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0]),
    "float64": st.sampled_from([0.0, -0.0, 0.1, float("nan"), 3.0]),
    "string": st.sampled_from(["", "a", "ab", "b\0", "é", "x" * 70]),
    "binary": st.sampled_from([b"", b"\xff", b"\0", b"ab"]),
    "bool": st.booleans(),
    "date32": st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 20)),
    "timestamp[us]": st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
    "decimal(9, 2)": st.decimals(-3, 3, places=2, allow_nan=False),
    "decimal(30, 2)": st.decimals(-3, 3, places=2, allow_nan=False),
}


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[list[Any]], list[Any]]:
    type_ = draw(st.sampled_from(sorted(VALUES)))
    value = st.one_of(st.none(), VALUES[type_])
    files = draw(st.lists(st.lists(value, max_size=12), min_size=2, max_size=6))
    here = [v for values in files for v in values]
    key = st.one_of(value, st.sampled_from(here)) if here else value
    return type_, files, draw(st.lists(key, max_size=70))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=questions(), seed=st.integers(0, 2**31))
def test_lookups_are_scans(tmp_path_factory: pytest.TempPathFactory, question: Any, seed: int) -> None:
    type_, files, keys = question
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("any")
    for k, values in enumerate(files):
        pyparq.write_table(
            {"key": values, "n": list(range(len(values)))}, folder / f"{k}.parquet",
            schema={"key": f"{type_}?", "n": "int32"},
            bloom_filters=["key"] if type_ != "bool" and rng.random() < 0.8 else None,
            bloom_filter_layout=["footer", "row_group"][int(rng.integers(2))], row_group_size=int(rng.integers(1, 9)),
        )  # fmt: skip
    ds = pyparq.dataset(folder)
    found = ds.lookup("key", keys).to_pylist()
    for _ in range(2):
        assert repr(found) == repr(each_file(ds, "key", keys))
        found = pa.table(ds.scan(filters=col("key").isin(keys))).to_pylist()  # a stream, and from kept footers
        found = pyparq.dataset(folder).read(filters=col("key").isin(keys)).to_pylist()


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_filter_asked_of_many_files_at_once(folder: Path, data: st.DataObject) -> None:
    number = st.integers(-3, 6100)
    test = st.one_of(
        st.builds(lambda v: col("id") == v, number),
        st.builds(lambda v: col("id") < v, number),
        st.builds(lambda v: col("file") >= v % 30, number),
        st.builds(lambda v: col("text") == f"t{v}", number),
        st.builds(lambda v: col("small").isin([v / 4, 3.0]), number),
        st.just(col("text").is_null()),
        st.builds(lambda v: col("part") == v % 4, number),
    )
    filters = data.draw(
        st.recursive(
            test,
            lambda inner: st.one_of(
                st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner),
                st.builds(lambda a: ~a, inner),
            ),
            max_leaves=5,
        )
    )  # fmt: skip
    ds = pyparq.dataset(folder)
    scan = ds.scan(filters=filters)
    apart = read_one_by_one(ds.scan(filters=filters))  # each file by itself
    same(scan.to_table(), apart)
    assert ds.count(filters) == apart.num_rows
    assert sum(batch.num_rows for batch in ds.iter_batches(filters=filters)) == apart.num_rows
    assert scan.explain().rows == apart.num_rows


# ---- files that are not as they should be ---------------------------------------------------------------------------


def write_some(folder: Path, count: int = 6, **options: Any) -> list[Path]:
    paths = [folder / f"{k}.parquet" for k in range(count)]
    for k, path in enumerate(paths):
        pyparq.write_table({"id": np.arange(k, 600, count)}, path, bloom_filters={"id": 0.001}, **options)
    return paths


def metadata_of(path: Path) -> Any:
    with pyparq.ParquetFile(path) as file:
        return file.metadata.row_group(0).column("id")._chunk.meta


def test_a_damaged_filter_is_ignored(tmp_path: Path) -> None:
    paths = write_some(tmp_path)
    data = bytearray(paths[3].read_bytes())
    offset = metadata_of(paths[3]).bloom_filter_offset
    data[offset : offset + 8] = b"\xff" * 8
    paths[3].write_bytes(data)
    ds = pyparq.dataset(tmp_path)
    with pytest.warns(CorruptIndexWarning, match=r"3\.parquet|Bloom filter"):
        assert ds.lookup("id", 15).num_rows == 1


def test_a_filter_that_lies_rules_files_out(tmp_path: Path) -> None:
    """The filters are what decides: zeros in place of one hide its rows, in a lookup as in a scan of the file."""
    paths = write_some(tmp_path)
    meta = metadata_of(paths[3])
    data = bytearray(paths[3].read_bytes())
    end = meta.bloom_filter_offset + meta.bloom_filter_length
    data[meta.bloom_filter_offset + 24 : end] = bytes(end - meta.bloom_filter_offset - 24)
    paths[3].write_bytes(data)
    ds = pyparq.dataset(tmp_path)
    assert ds.lookup("id", 15).num_rows == ds.lookup("id", list(range(3, 600, 6))).num_rows == 0
    assert ds.lookup("id", 16).num_rows == 1
    off = pyparq.dataset(tmp_path, use_bloom_filters=False)
    assert off.lookup("id", 15).num_rows == 1


def test_files_that_change_or_go(tmp_path: Path) -> None:
    paths = write_some(tmp_path)
    ds = pyparq.dataset(tmp_path)
    assert ds.count() == 600
    pyparq.write_table({"id": [1, 2, 3]}, paths[3])
    with pytest.raises(ChangedFileError, match=r"3\.parquet"):
        ds.lookup("id", 15)
    assert ds.lookup("id", 10**6).num_rows == 0  # by the statistics alone
    paths[3].unlink()
    with pytest.raises(FileNotFoundError):
        ds.lookup("id", 15)
    skipping = pyparq.dataset([*paths[:3], *paths[4:]], on_error="skip")
    assert skipping.count() == 500
    paths[4].write_bytes(b"PAR1")
    with pytest.warns(SkippedFileWarning):
        assert skipping.lookup("id", [15, 16, 17]).to_pydict()["id"] == [17]


def test_statistics_without_the_numbers_to_believe_them(tmp_path: Path) -> None:
    """A chunk that states more values than its row group has rows: its statistics are not believed."""
    paths = write_some(tmp_path, 3)
    data = paths[1].read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    changed = footer.replace(b"\x16\x90\x03", b"\x16\x92\x03", 1)  # 200 values
    assert changed != footer
    paths[1].write_bytes(data[: -8 - size] + changed + data[-8:])
    ds = pyparq.dataset(tmp_path)
    for key in (1, 4, 5000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected: Any = read_one_by_one(ds.scan(filters=col("id") == key)).num_rows
            except CorruptFileError as error:
                expected = type(error)
            try:
                found: Any = ds.lookup("id", key).num_rows
            except CorruptFileError as error:
                found = type(error)
        assert found == expected


def test_encrypted_files(tmp_path: Path) -> None:
    for k in range(4):
        table = {"id": np.arange(k, 400, 4), "n": np.full(100, k)}
        keys = pyparq.EncryptionProperties(footer_key=FOOTER, plaintext_footer=k % 2 == 0)
        pyparq.write_table(table, tmp_path / f"{k}.parquet", encryption=keys, bloom_filters=["id"])
    ds = pyparq.dataset(tmp_path, decryption=pyparq.DecryptionProperties(footer_key=FOOTER))
    assert ds.lookup("id", [5, 6, 7, 1000]).to_pydict() == {"id": [5, 6, 7], "n": [1, 2, 3]}
    assert ds.lookup("id", 1000).num_rows == 0


def test_files_in_memory(tmp_path: Path) -> None:
    paths = write_some(tmp_path)
    assert pyparq.dataset([path.read_bytes() for path in paths]).lookup("id", [3, 9]).num_rows == 2
    mixed = [path.read_bytes() if k % 2 else path for k, path in enumerate(paths)]
    assert pyparq.dataset(mixed).lookup("id", [3, 8, 700]).to_pydict() == {"id": [8, 3]}


def test_remote_files(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in write_some(tmp_path):
        memory.pipe(f"/lookup/{path.name}", path.read_bytes())
    found = pyparq.dataset("memory://lookup").lookup("id", [3, 8], filename=True).to_pydict()
    assert found["id"] == [8, 3]
    assert [name.rpartition("/")[2] for name in found["filename"]] == ["2.parquet", "3.parquet"]


def test_filters_of_parquet_mr(corpus: Path) -> None:
    """Filters whose length the footer does not have, and filters whose length it has, in files by parquet-mr."""
    names = ("data_index_bloom_encoding_stats.parquet", "data_index_bloom_encoding_with_length.parquet")
    ds = pyparq.dataset([corpus / "data" / name for name in names for _ in range(2)])
    assert ds.lookup("String", ["Hello", "nobody"]).to_pydict() == {"String": ["Hello"] * 4}
    scan = ds.scan(filters=col("String") == "nobody")
    assert scan.to_table().num_rows == 0
    assert scan._reads.scans == []  # the statistics would let it pass


# ---- what it costs -------------------------------------------------------------------------------------------------


def test_only_few_files_are_opened(folder: Path) -> None:
    """Files without the key are ruled out by one block of their filters: their pages are never looked at."""
    ds = pyparq.dataset(folder)
    scan = ds.scan(filters=col("id") == 1234)
    assert scan.to_table().num_rows == 1
    filtered = [file_scan for file_scan in scan._reads.scans if "part=2" not in file_scan.scan.file.name]
    assert len(filtered) <= 3
    assert scan.explain().rows == 1


def bytes_read() -> int:
    """By this process, so far."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count what a process reads")
@pytest.mark.parametrize("filters", [None, (col("id") == 1234) | (col("id") == 77), col("id") < 0, col("id") >= 10])
def test_explanations_tell_what_ran(folder: Path, filters: Any) -> None:
    """However many files are asked and read at once: an explanation reads nothing, and its bytes are those of the
    run."""
    files = [pyparq.ParquetFile(path) for path in sorted(folder.rglob("*.parquet"))]
    alone = [file.scan(filters=filters).explain() for file in files]
    rows = sum(one.rows or 0 for one in alone)
    left = sum(one.candidate_rows for one in alone)
    for run in (lambda scan: scan.to_table(), lambda scan: list(scan.iter_batches())):
        scan = pyparq.dataset(folder).scan(filters=filters)
        before = bytes_read()
        run(scan)
        read = bytes_read() - before
        for execute in (False, True, False):
            before = bytes_read()
            found = scan.explain(execute=execute)
            assert bytes_read() - before < 1_000  # of /proc/self/io
            assert found.rows == rows
            assert found.candidate_rows >= left  # files that are read as one are not asked for pages
        assert read < 1_000 or found.bytes_fetched > read * 0.9
        assert found.bytes_fetched <= read + found.file_bytes  # the footers may have been read for the schema
        assert sum(part.bytes_fetched for part in found.parts) <= found.bytes_fetched
        by_name = {stage.name: stage for stage in found.stages}
        own = [stage for one in alone for stage in one.stages if stage.name == "statistics"]
        assert not own or by_name["statistics"].row_groups_after == sum(stage.row_groups_after for stage in own)
        assert scan.to_table().num_rows == rows


def test_an_explanation_of_a_stream_that_was_left(folder: Path) -> None:
    head = pyparq.dataset(folder).scan(filters=col("id") >= 0)
    next(iter(head.iter_batches()))
    assert len(head.explain(execute=False).parts) == 1


CODE = """
import resource, sys
import pyparq
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
ds = pyparq.dataset(sys.argv[1])
print(ds.lookup("id", [3, 4000, 4001, 10**6]).num_rows, ds.count(), len(ds.files), ds.lookup("n", 5).num_rows)
"""


@pytest.mark.slow
def test_more_files_than_descriptors(tmp_path: Path) -> None:
    """5,000 files where a process may open 256."""
    originals = []
    for k in range(50):
        path = tmp_path / f"o{k}"
        pyparq.write_table({"id": np.arange(k * 100, k * 100 + 100), "n": np.full(100, k)}, path, bloom_filters=["id"])
        originals.append(path)
    data = tmp_path / "data"
    data.mkdir()
    for k in range(5000):
        os.link(originals[k % 50], data / f"{k:04d}.parquet")
    run = subprocess.run([sys.executable, "-c", CODE, str(data)], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout.split() == ["300", "500000", "5000", "10000"]
