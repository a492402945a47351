"""``pyparq.delete``: the other rows stay as other readers see them, and what has no such rows stays byte for byte."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties, OptionError, col
from pyparq.index.row_ranges import RowMask, rows_of
from pyparq.io.sink import open_sink
from pyparq.maintenance.row_changes.changed_file import ChangedFile, GroupChange
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import open_file

FOREIGN = Path(__file__).parents[2] / "testdata" / "foreign"
ROWS, GROUP = 6000, 1000


def table(rows: int = ROWS) -> pa.Table:
    numbers = range(rows)
    tags = [[k, None, k + 1] if k % 5 else ([] if k % 2 else None) for k in numbers]
    return pa.table({
        "id": pa.array(numbers, pa.int64()),
        "name": pa.array([f"name-{k}" if k % 7 else None for k in numbers]),
        "tags": pa.array(tags, pa.list_(pa.int32())),
        "place": pa.array([{"a": k, "b": [str(k)] * (k % 3)} if k % 11 else None for k in numbers]),
        "pairs": pa.array([[(f"k{k}", k)] for k in numbers], pa.map_(pa.string(), pa.int64())),
        "price": pa.array([Decimal(k) / 100 for k in numbers], pa.decimal128(20, 2)),
        "at": pa.array([dt.datetime(2020, 3, 1) + dt.timedelta(hours=k) for k in numbers],
                       pa.timestamp("us", "Europe/Berlin")),
        "flag": pa.array([k % 3 == 0 for k in numbers]),
        "small": pa.array(np.arange(rows) % 100, pa.int8()),
        "kind": pa.array([f"c{k % 10}" for k in numbers]).dictionary_encode(),
        "nothing": pa.nulls(rows),
        "code": pa.array([bytes([k % 256]) * 6 for k in numbers], pa.binary(6)),
    })  # fmt: skip


WRITERS: dict[str, dict[str, Any]] = {
    "default": {},
    "v2": {"data_page_version": "2.0", "write_page_index": True, "compression": "zstd"},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "plain": {"use_dictionary": False, "compression": "none", "write_statistics": False},
    "without hints": {"store_schema": False},
    "sorted": {"sorting_columns": [pq.SortingColumn(0)]},
}


@pytest.mark.parametrize("how", WRITERS)
def test_the_other_rows_stay(tmp_path: Path, how: str) -> None:
    path, data = tmp_path / "a.parquet", table()
    pq.write_table(data, path, row_group_size=GROUP, **WRITERS[how])
    before, old = pq.read_table(path), pq.read_metadata(path)
    report = pyparq.delete(path, ((col("id") >= 1600) & (col("id") < 1700)) | (col("id") >= 5000))
    rest = pc.or_(
        pc.less(before["id"], 1600), pc.and_(pc.greater_equal(before["id"], 1700), pc.less(before["id"], 5000))
    )
    assert pq.read_table(path).equals(before.filter(rest))
    assert pyparq.verify(path).ok
    (file,) = report.files
    assert (file.row_groups_copied, file.row_groups_rewritten, file.row_groups_removed) == (4, 1, 1)
    assert (report.rows_deleted, file.rows_left) == (1100, ROWS - 1100)
    new = pq.read_metadata(path)
    for k in range(new.num_columns):
        was, now = old.row_group(1).column(k), new.row_group(1).column(k)
        assert now.compression == was.compression
        assert (now.statistics is None) == (was.statistics is None)
        if was.path_in_schema != "nothing":  # a dictionary without entries
            assert set(now.encodings) - {"RLE"} == set(was.encodings) - {"RLE"}
            assert now.has_offset_index == was.has_offset_index
    assert new.schema.equals(old.schema)
    assert new.metadata == old.metadata
    assert new.row_group(1).sorting_columns == old.row_group(1).sorting_columns


def test_row_groups_without_such_rows_are_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table(table(), path, row_group_size=GROUP, bloom_filters=["id", "name"])
    stored, old = path.read_bytes(), pq.read_metadata(path)
    pyparq.delete(path, keys={"id": [2500]})
    now, new = path.read_bytes(), pq.read_metadata(path)
    with pyparq.ParquetFile(path) as file:
        assert file.scan([], col("name") == "name-4502").count() == 1
    for k in range(old.num_row_groups):
        for c in range(old.num_columns):
            pieces = []
            for whole, chunk in ((stored, old.row_group(k).column(c)), (now, new.row_group(k).column(c))):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                pieces.append(whole[start : start + chunk.total_compressed_size])
            if k != 2:
                assert pieces[0] == pieces[1]
            elif c == 0:
                assert pieces[0] != pieces[1]


@pytest.mark.parametrize("seed", range(12))
def test_random_filters_leave_what_pyarrow_leaves(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    path, rows = tmp_path / "a.parquet", 3000
    data = pa.table({
        "a": [chosen.choice([None, *range(20)]) for _ in range(rows)],
        "b": [chosen.choice([None, "x", "y", "z", ""]) for _ in range(rows)],
        "c": [chosen.choice([None, float("nan"), chosen.random()]) for _ in range(rows)],
    })  # fmt: skip
    pq.write_table(data, path, row_group_size=chosen.choice([100, 999, 5000]), write_page_index=chosen.random() < 0.5)
    number, text = chosen.randrange(20), chosen.choice(["x", "y", ""])
    a, b, c = pc.field("a"), pc.field("b"), pc.field("c")
    filters = chosen.choice([
        (a == number), (a > number) & (b == text), (a < number) | (b != text), ~(a == number), a.is_null(),
        (c > 0.5) | (a == number), a.isin([number, 3]), ~((a > number) & (b == text)), b.is_valid() & (c < 0.2),
    ])  # fmt: skip
    kept = _rest(data, filters)
    report = pyparq.delete(path, filters, keep_empty=True)
    assert repr(pq.read_table(path).to_pylist()) == repr(kept.to_pylist())
    assert report.rows_deleted == rows - kept.num_rows
    assert not pyparq.delete(path, filters).files, "the second time changes nothing"


def _rest(data: pa.Table, filters: Any) -> pa.Table:
    """The rows for which a filter is false or null."""
    numbered = data.append_column("row", pa.array(range(data.num_rows)))
    gone = set(numbered.filter(filters)["row"].to_pylist())
    return data.take([k for k in range(data.num_rows) if k not in gone])


def _half(path: Path) -> tuple[Any, dict[int, GroupChange], list[int]]:
    """Changes that take rows of every second row group, and the numbers of the rows that stay."""
    chosen = np.random.default_rng(len(path.name))
    file = open_file(path, ReadOptions())
    changes, kept, first = {}, list[int](), 0
    for k in range(file.num_row_groups):
        rows = file.num_rows_of(k)
        gone = chosen.random(rows) < 0.4 if k % 2 == 0 else np.zeros(rows, bool)
        if gone.any():
            changes[k] = GroupChange(rows_of(RowMask.of_bools(gone)))
        kept += (np.flatnonzero(~gone) + first).tolist()
        first += rows
    return file, changes, kept


def _check_half(path: Path, tmp_path: Path) -> None:
    file, changes, kept = _half(path)
    target = tmp_path / "new.parquet"
    sink = open_sink(target)
    ChangedFile(file, changes).write(sink)
    sink.commit()
    wanted = pyparq.read_table(path, rows=np.array(kept, np.int64), variants="stored")
    assert repr(pyparq.read_table(target, variants="stored").to_pylist()) == repr(wanted.to_pylist())
    assert pyparq.verify(target).ok or not pyparq.verify(path).ok


@pytest.mark.parametrize("name", sorted(path.name for path in FOREIGN.glob("*.parquet")))
def test_files_of_other_writers(tmp_path: Path, name: str) -> None:
    """Of Spark, DuckDB, polars, DataFusion and old pyarrow."""
    _check_half(FOREIGN / name, tmp_path)
    before, after = pq.read_schema(FOREIGN / name), pq.read_schema(tmp_path / "new.parquet")
    assert after.equals(before, check_metadata=True)


@pytest.mark.slow
def test_the_public_corpus(corpus: Path, tmp_path: Path) -> None:
    checked = 0
    for path in sorted(corpus.rglob("*.parquet")):
        if "bad_data" in path.parts:
            continue
        try:
            rows = pyparq.read_table(path, variants="stored").num_rows
            known = pyparq.verify(path).ok
        except pyparq.ParquetError:
            continue
        if rows and known:
            _check_half(path, tmp_path)
            checked += 1
    assert checked > 80


def test_duckdb_and_polars_read_what_is_left(tmp_path: Path) -> None:
    data = pl.DataFrame({"id": range(5000), "text": [f"t{k % 50}" for k in range(5000)]})
    for name, write in (
        ("polars", lambda path: data.write_parquet(path, row_group_size=700)),
        ("duckdb", lambda path: duckdb.from_arrow(data.to_arrow()).write_parquet(str(path), row_group_size=2048)),
    ):
        path = tmp_path / f"{name}.parquet"
        write(path)
        assert pyparq.delete(path, "text = 't7' and id > 1000").rows_deleted == 80
        wanted = data.filter(~((pl.col("text") == "t7") & (pl.col("id") > 1000)))
        assert pl.read_parquet(path).equals(wanted)
        assert duckdb.sql(f"select * from '{path}'").pl().equals(wanted)
        assert pyparq.verify(path).ok


# ---- files that go, stay, or are encrypted ---------------------------------------------------------------------------


def test_a_file_without_such_rows_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path)
    before = os.stat(path)
    report = pyparq.delete(path, col("id") == 5, dry_run=True)
    assert report.dry_run
    assert report.rows_deleted == 1
    assert not pyparq.delete(path, col("name") == "nobody").files
    after = os.stat(path)
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def test_a_dry_run_tells_what_a_run_does(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, row_group_size=GROUP)
    dry, done = (pyparq.delete(path, col("id") < 1500, dry_run=dry) for dry in (True, False))
    for name in ("rows_deleted", "rows_left", "row_groups_copied", "row_groups_rewritten", "row_groups_removed",
                 "bytes_copied", "bytes_written", "removed"):  # fmt: skip
        assert getattr(dry.files[0], name) == getattr(done.files[0], name), name
    assert done.files[0].bytes_copied + done.files[0].bytes_written == os.path.getsize(path)


def test_an_empty_file_goes_or_stays_with_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path)
    schema = pq.read_schema(path)
    assert pyparq.delete(path, col("id") >= 0, keep_empty=True).files[0].rows_left == 0
    assert pq.read_schema(path).equals(schema)
    assert pq.read_table(path).num_rows == 0
    pq.write_table(table(), path)
    assert pyparq.delete(path, col("id") >= 0).files[0].removed
    assert not path.exists()


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_keeps_keys_algorithm_and_layout(
    tmp_path: Path, algorithm: Any, plaintext_footer: bool
) -> None:
    path = tmp_path / "a.parquet"
    footer, column = pyparq.EncryptionKey(b"f" * 16, b"the footer's"), pyparq.EncryptionKey(b"c" * 16, b"the name's")
    pyparq.write_table(
        table(), path, row_group_size=GROUP, bloom_filters=["name"],
        encryption=EncryptionProperties(
            footer, {"name": column}, algorithm=algorithm, plaintext_footer=plaintext_footer, aad_prefix="mine"
        ),
    )  # fmt: skip
    keys = DecryptionProperties(b"f" * 16, {"name": b"c" * 16})
    before = pyparq.ParquetFile(path, decryption=keys).metadata.encryption
    report = pyparq.delete(path, col("name") == "name-4502", decryption=keys)
    with pyparq.ParquetFile(path, decryption=keys) as file:
        assert file.metadata.encryption == before
        assert file.read().num_rows == ROWS - 1
    assert pyparq.verify(path, decryption=keys).ok
    assert "encryption" in report.files[0].notes[0]
    with pytest.raises(pyparq.EncryptionError):
        pyparq.read_table(path, ["name"], decryption=DecryptionProperties(b"f" * 16))


def test_without_a_key_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table(table(), path, encryption=EncryptionProperties(b"f" * 16, {"name": b"c" * 16}))
    stored = path.read_bytes()
    with pytest.raises(pyparq.MissingKeyError, match="name"):
        pyparq.delete(path, col("id") == 5, decryption=DecryptionProperties(b"f" * 16))
    assert path.read_bytes() == stored
    assert os.listdir(tmp_path) == ["a.parquet"]


# ---- what the footer says of all rows --------------------------------------------------------------------------------


def test_pandas_gets_the_default_index(tmp_path: Path) -> None:
    import pandas as pd

    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"id": range(100)})
    frame.to_parquet(path)
    pyparq.delete(path, col("id") < 10)
    assert pd.read_parquet(path).equals(frame[10:].reset_index(drop=True))


def test_the_box_of_geoparquet_goes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "bbox": [0, 0, 123.5, 9]}}}
    data = pa.table({"id": range(100)}).replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(data, path)
    assert b"123.5" in path.read_bytes()
    pyparq.delete(path, col("id") < 10)
    assert b"123.5" not in path.read_bytes()
    kept = json.loads(pq.read_schema(path).metadata[b"geo"])
    assert kept["columns"] == {"g": {"encoding": "WKB"}}
    hint = pq.read_metadata(path).metadata[b"ARROW:schema"]
    assert b"123.5" not in base64.b64decode(hint)


def test_the_writer_named_is_the_one_that_wrote_all(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, row_group_size=GROUP)
    name = pq.read_metadata(path).created_by
    pyparq.delete(path, col("id") < 2 * GROUP)
    assert pq.read_metadata(path).created_by == name, "only whole row groups have gone"
    pyparq.delete(path, col("id") == 2 * GROUP)
    assert pq.read_metadata(path).created_by.startswith("pyparq")


# ---- arguments -------------------------------------------------------------------------------------------------------


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, row_group_size=GROUP)
    ids = np.random.default_rng(3).permutation(1_000_000)[:500_000]
    wanted = int((ids < ROWS).sum())
    assert pyparq.delete(path, keys={"id": ids}).rows_deleted == wanted
    left = pq.read_table(path)["id"][:5]
    assert pyparq.delete(path, keys={"id": left, "flag": [True, False]}).rows_deleted == 5
    assert pyparq.delete(path, keys={"name": [None]}).rows_deleted == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either filters or keys"),
        ({"filters": "id = 1", "keys": {"id": [1]}}, "either filters or keys"),
        ({"keys": [1]}, "keys must be a dict"),
        ({"keys": {}}, "keys must be a dict"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(10), path)
    with pytest.raises(OptionError, match=message):
        pyparq.delete(path, **arguments)


def test_bytes_have_no_place_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(10), path)
    with pytest.raises(OptionError, match="in place"):
        pyparq.delete(path.read_bytes(), "id = 1")
    with pytest.raises(pyparq.ColumnNotFoundError, match="idd"):
        pyparq.delete(path, "idd = 1")


def test_a_damaged_page_of_a_row_group_that_changes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table(table(), path, row_group_size=GROUP)
    chunk = pq.read_metadata(path).row_group(2).column(1)
    stored = bytearray(path.read_bytes())
    at = chunk.data_page_offset + chunk.total_compressed_size // 3
    stored[at] ^= 255
    path.write_bytes(stored)
    with pytest.raises(pyparq.CorruptFileError, match="row group 2"):
        pyparq.delete(path, col("id") == 2500)
    assert path.read_bytes() == stored
    assert os.listdir(tmp_path) == ["a.parquet"]
