"""``merge``: row groups of many files copied into one, judged by other readers and byte by byte."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import ok

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, OptionError, SchemaError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.read.plan.page_indexes import has_column_index, has_offset_index


def table(start: int, rows: int = 500) -> pa.Table:
    numbers = range(start, start + rows)
    return pa.table({
        "id": pa.array(numbers, pa.int64()),
        "text": [None if k % 9 == 0 else f"text {k % 40}" for k in numbers],
        "price": pa.array([Decimal(k) / 100 for k in numbers], pa.decimal128(30, 2)),
        "day": [dt.date(2020, 1, 1) + dt.timedelta(k % 700) for k in numbers],
        "list": [[k] * (k % 3) for k in numbers],
        "deep": [{"a": k, "b": [{"c": str(k)}]} for k in numbers],
    })  # fmt: skip


def write(path: Path, data: pa.Table, by: str = "pyparq", **options: Any) -> Path:
    if by == "pyarrow":
        pq.write_table(data, path, row_group_size=200, write_page_index=True, data_page_size=512, **options)
    else:
        pyparq.write_table(data, path, row_group_size=200, max_rows_per_page=50, bloom_filters=["id"], **options)
    return path


@pytest.fixture
def mixed(tmp_path: Path) -> list[Path]:
    """Three files, by pyparq and by pyarrow."""
    bys = ("pyparq", "pyarrow", "pyparq")
    return [write(tmp_path / f"{k}.parquet", table(1000 * k), by) for k, by in enumerate(bys)]


def chunks_of(path: Path) -> list[dict[str, Any]]:
    """What each column chunk holds: its pages, filter and ColumnIndex by their bytes, and relative page offsets."""
    data = path.read_bytes()
    found = []
    with pyparq.ParquetFile(path) as opened:
        file = opened._file
        for k in range(file.num_row_groups):
            for leaf in file.tree.leaves:
                chunk = file.chunk(k, leaf)
                raw, meta = chunk.raw, chunk.meta
                one = {"pages": hashlib.sha256(data[chunk.start : chunk.end]).hexdigest(), "rows": chunk.num_rows}
                if meta.bloom_filter_offset:
                    at = meta.bloom_filter_offset
                    one["bloom"] = hashlib.sha256(data[at : at + meta.bloom_filter_length]).hexdigest()
                if has_column_index(chunk):
                    at = raw.column_index_offset
                    one["index"] = hashlib.sha256(data[at : at + raw.column_index_length]).hexdigest()
                if has_offset_index(chunk):
                    at = raw.offset_index_offset
                    index = deserialize(tt.OffsetIndex, data[at : at + raw.offset_index_length])[0]
                    one["places"] = [p.offset - chunk.start for p in index.page_locations]
                    one["first rows"] = [p.first_row_index for p in index.page_locations]
                found.append(one)
    return found


def changed(path: Path, change: Callable[[Any], None]) -> Path:
    """The file with another footer."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = deserialize(tt.FileMetaData, data[-8 - size : -8])[0]
    change(footer)
    new = serialize(footer)
    path.write_bytes(data[: -8 - size] + new + len(new).to_bytes(4, "little") + b"PAR1")
    return path


def test_everybody_reads_all_rows_in_order(tmp_path: Path, mixed: list[Path]) -> None:
    target = tmp_path / "all.parquet"
    report = pyparq.merge(mixed, target)
    expected = pa.concat_tables([table(1000 * k) for k in range(3)]).to_pylist()
    assert pq.read_table(target).to_pylist() == expected
    assert pyparq.read_table(target).to_pylist() == expected
    assert duckdb.sql(f"from '{target}'").to_arrow_table().to_pylist() == expected
    assert pl.read_parquet(target).to_arrow().to_pylist() == expected
    assert (report.num_files, report.num_rows, report.num_row_groups) == (3, 1500, 9)
    assert report.num_bytes == target.stat().st_size
    meta = pq.read_metadata(target)
    assert (meta.num_rows, meta.num_row_groups) == (1500, 9)
    assert f"9 row groups, 1,500 rows, {report.num_bytes:,} bytes; row groups have " in repr(report)
    assert report.advice.endswith("pyparq.rewrite makes fewer, larger ones, read more quickly")
    assert pyparq.merge(mixed[:1], tmp_path / "one").advice in repr(pyparq.merge(mixed[:1], tmp_path / "one"))
    large = {"x": np.random.default_rng(0).random(600_000)}
    pyparq.write_table(large, tmp_path / "large", row_group_size=200_000)
    assert pyparq.merge([tmp_path / "large"], tmp_path / "same").advice == ""


def test_pages_filters_and_indexes_are_copied(tmp_path: Path, mixed: list[Path]) -> None:
    pyparq.merge(mixed, tmp_path / "all.parquet")
    assert pyparq.verify(tmp_path / "all.parquet").ok
    expected = [chunk for path in mixed for chunk in chunks_of(path)]
    assert chunks_of(tmp_path / "all.parquet") == expected
    assert sum("bloom" in chunk for chunk in expected) == 6
    assert sum("index" in chunk for chunk in expected) == 9 * 7
    footer = deserialize(tt.FileMetaData, _footer(tmp_path / "all.parquet"))[0]
    assert [group.ordinal for group in footer.row_groups] == list(range(9))
    indexes = [c.column_index_offset for g in footer.row_groups for c in g.columns]
    offsets = [c.offset_index_offset for g in footer.row_groups for c in g.columns]
    assert indexes == sorted(indexes)
    assert max(indexes) < min(offsets)
    assert offsets == sorted(offsets)


def _footer(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def test_indexes_are_used_in_the_new_file(tmp_path: Path, mixed: list[Path]) -> None:
    target = tmp_path / "all.parquet"
    pyparq.merge(mixed, target)
    with pyparq.ParquetFile(target) as file:
        for value in (7, 1234, 2499):
            scan = file.scan(filters=col("id") == value)
            assert [row["id"] for row in scan.to_table().to_pylist()] == [value]
            assert scan.explain().pages_decoded < 12
        assert file.scan(filters=col("id") == 250_000).count() == 0
        assert file.scan(filters=col("text") == "text 7").count() == sum(
            v == "text 7" for k in range(3) for v in table(1000 * k)["text"].to_pylist()
        )


def test_many_files_of_a_folder(tmp_path: Path) -> None:
    for k in range(300):
        pyparq.write_table({"id": np.arange(k * 10, k * 10 + 10)}, tmp_path / f"{k:04d}.parquet")
    done: list[tuple[int, int]] = []
    pyparq.merge(tmp_path, tmp_path / "0000.parquet", progress=lambda *step: done.append(step))  # one of the files
    assert pq.read_table(tmp_path / "0000.parquet")["id"].to_pylist() == list(range(3000))
    assert done == [(k + 1, 300) for k in range(300)]
    assert pyparq.merge(pyparq.dataset(str(tmp_path / "00[12]*")), tmp_path / "x").num_files == 20


def test_files_without_rows(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a", table(0, 5).slice(0, 0)),
        write(tmp_path / "b", table(0, 5)),
        write(tmp_path / "c", table(0, 5).slice(0, 0)),
    ]
    assert pyparq.merge(files, tmp_path / "all").num_rows == 5
    assert pq.read_table(tmp_path / "all").num_rows == 5
    assert pyparq.merge(files[:1], tmp_path / "none").num_rows == 0
    assert pq.read_table(tmp_path / "none").schema.names == table(0).column_names


# ---- one footer for all --------------------------------------------------------------------------------------------


def bounds(path: Path, column: int) -> list[bool]:
    """Which row groups have bounds of a column."""
    meta = pq.read_metadata(path)
    return [meta.row_group(k).column(column).statistics.has_min_max for k in range(meta.num_row_groups)]


def test_one_writer_stays(tmp_path: Path) -> None:
    files = [write(tmp_path / str(k), table(1000 * k), "pyarrow") for k in range(2)]
    assert pyparq.merge(files, tmp_path / "all").notes == ()
    assert pq.read_metadata(tmp_path / "all").created_by == pq.read_metadata(files[0]).created_by
    old = "parquet-mr version 1.7.0 (build x)"
    for path in files:
        changed(path, lambda footer: setattr(footer, "created_by", old))
    pyparq.merge(files, tmp_path / "all")
    assert pq.read_metadata(tmp_path / "all").created_by == old


def test_bounds_that_nobody_would_have_believed_are_left_out(tmp_path: Path) -> None:
    """Under our name they would be: here they are wrong, as that writer had them."""
    price = 2
    files = [write(tmp_path / "a", table(0, 100), "pyarrow"), write(tmp_path / "b", table(1000, 100))]

    def spoil(footer: Any) -> None:
        footer.created_by = "parquet-cpp version 1.3.0"
        statistics = footer.row_groups[0].columns[price].meta_data.statistics
        statistics.min_value, statistics.max_value = statistics.max_value, statistics.max_value

    changed(files[0], spoil)
    report = pyparq.merge(files, tmp_path / "all")
    assert pq.read_metadata(tmp_path / "all").created_by.startswith("pyparq version")
    assert bounds(tmp_path / "all", price) == [False, True]
    assert bounds(tmp_path / "all", 0) == [True, True]
    assert len(report.notes) == 1
    assert "column price: no bounds, as parquet-cpp version 1.3.0 may have them wrong" in report.notes[0]
    for value in (0, 50, 1050):
        number = Decimal(value) / 100
        assert pyparq.read_table(tmp_path / "all", filters=col("price") == number).num_rows == 1
        query = f"select count(*) from read_parquet('{tmp_path}/all') where price = {number}"
        assert duckdb.sql(query).fetchall() == [(1,)]
    assert pq.read_metadata(tmp_path / "all").row_group(0).column(price).statistics.null_count == 0


def test_files_without_column_orders(tmp_path: Path) -> None:
    files = [write(tmp_path / str(k), table(1000 * k, 100)) for k in range(2)]
    changed(files[0], lambda footer: setattr(footer, "column_orders", None))
    report = pyparq.merge(files, tmp_path / "all")
    assert bounds(tmp_path / "all", 0) == [False, True]
    assert len(report.notes) == 7
    assert pyparq.read_table(tmp_path / "all", filters=col("id") == 7).num_rows == 1
    changed(files[1], lambda footer: setattr(footer, "column_orders", None))
    assert pyparq.merge(files, tmp_path / "all").notes == ()


def test_keys_of_metadata(tmp_path: Path) -> None:
    keys = [{"same": "1", "mine": "a", "other": "x"}, {"same": "1", "other": "y"}, {"same": "1", "last": b"\xff"}]
    files = [write(tmp_path / str(k), table(0, 5), key_value_metadata=key) for k, key in enumerate(keys)]
    assert pyparq.merge(files, tmp_path / "all").dropped_keys == ("other",)
    found = pyparq.read_metadata(tmp_path / "all").metadata
    assert found == {b"same": b"1", b"mine": b"a", b"last": b"\xff"}
    report = pyparq.merge(files, tmp_path / "all", key_value_metadata={"other": "z", "mine": None})
    assert report.dropped_keys == ()
    assert pyparq.read_metadata(tmp_path / "all").metadata[b"other"] == b"z"


def test_pandas_and_arrow_metadata_survive(tmp_path: Path) -> None:
    import pandas as pd

    frames = [pd.DataFrame({"x": pd.Categorical(["a", "b"] * n)}, index=range(n, 3 * n)) for n in (2, 3)]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    pyparq.merge(tmp_path, tmp_path / "all")
    read = pd.read_parquet(tmp_path / "all")
    assert read["x"].tolist() == ["a", "b"] * 5
    assert str(read["x"].dtype) == "category"


def test_keys_by_which_spark_reads_values(tmp_path: Path) -> None:
    days = pa.table({"day": pa.array([-171600], pa.date32())})
    spark = "org.apache.spark."
    modern = {spark + "version": "3.5.0"}
    legacy = {spark + "version": "4.0.0", spark + "legacyDateTime": "", spark + "timeZone": "Europe/Berlin"}
    other = {**legacy, spark + "version": "4.1.0", spark + "timeZone": "Asia/Tokyo"}  # dates have no zone
    files = [tmp_path / str(k) for k in range(3)]
    for file, keys in zip(files, (modern, legacy, other), strict=True):
        pyparq.write_table(days, file, key_value_metadata=keys)
    one, moved = pyparq.read_table(files[0])["day"].to_pylist(), pyparq.read_table(files[1])["day"].to_pylist()
    assert one != moved
    for pair in (files[:2], files[1::-1]):
        with pytest.raises(UnsupportedError, match=r"different calendars.*pyparq\.rewrite.*column day"):
            pyparq.merge(pair, tmp_path / "all")
    pyparq.merge(files[1:], tmp_path / "all")
    assert pyparq.read_table(tmp_path / "all")["day"].to_pylist() == moved * 2
    pyparq.rewrite(files, tmp_path / "new.parquet")
    assert pyparq.read_table(tmp_path / "new.parquet")["day"].to_pylist() == one + moved * 2


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pyparq.UnverifiedFooterWarning")
def test_what_cannot_be_merged(tmp_path: Path) -> None:
    first = write(tmp_path / "first", table(0, 5))
    other = write(tmp_path / "other", table(0, 5).set_column(1, "text", pa.array([1] * 5)))
    target = write(tmp_path / "target", table(0, 5))
    before = target.read_bytes()
    with pytest.raises(SchemaError, match=rf"does not have the schema of {first}.*file {other}, column text"):
        pyparq.merge([first, other], target)
    more = write(tmp_path / "more", table(0, 5).append_column("more", pa.array([1] * 5)))
    with pytest.raises(SchemaError, match="column more"):
        pyparq.merge([first, more], target)
    keys = pyparq.EncryptionProperties(footer_key=b"0123456789abcdef")
    clear = pyparq.EncryptionProperties(footer_key=b"0123456789abcdef", plaintext_footer=True)
    for properties in (keys, clear):
        sealed = write(tmp_path / "sealed", table(0, 5), encryption=properties)
        with pytest.raises(UnsupportedError, match=rf"encrypted files cannot be merged.*file {sealed}"):
            pyparq.merge([first, sealed], target)
    old = changed(write(tmp_path / "old", table(0, 5)), lambda f: setattr(f, "created_by", "parquet-mr version 1.6.0"))
    with pytest.raises(UnsupportedError, match=r"wrote these pages.*Use pyparq\.rewrite"):
        pyparq.merge([first, old], target)
    (tmp_path / "broken").write_bytes(first.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match="broken"):
        pyparq.merge([first, tmp_path / "broken"], target)
    with pytest.raises(OptionError, match="no files"):
        pyparq.merge([], target)
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    with pytest.raises(OptionError, match="Delta Lake"):
        pyparq.merge([first], tmp_path / "table" / "new")
    assert target.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "broken", "first", "more", "old", "other", "sealed", "table", "target"
    ]  # fmt: skip


def test_urls_and_file_objects(tmp_path: Path, mixed: list[Path]) -> None:
    import io

    import fsspec

    fs = fsspec.filesystem("memory")
    for path in mixed:
        fs.pipe_file(f"/{tmp_path.name}/{path.name}", path.read_bytes())
    pyparq.merge(f"memory://{tmp_path.name}/*.parquet", f"memory://{tmp_path.name}-all.parquet")
    assert pyparq.read_table(f"memory://{tmp_path.name}-all.parquet").num_rows == 1500
    out = io.BytesIO()
    pyparq.merge([path.read_bytes() for path in mixed], out)
    assert pq.read_table(io.BytesIO(out.getvalue())).num_rows == 1500


def test_the_command(tmp_path: Path, mixed: list[Path]) -> None:
    target = tmp_path / "all.parquet"
    told = ok("merge", *mixed, "-o", target)
    first, advice = told.splitlines()
    assert first == f"{target}: 3 files, 9 row groups, 1,500 rows, {target.stat().st_size:,} bytes"
    assert advice.startswith("row groups have ")
    assert pq.read_table(target).num_rows == 1500


@pytest.mark.parametrize("other", [pa.duration("ms"), pa.int64()], ids=str)
def test_durations_of_two_units(tmp_path: Path, other: pa.DataType) -> None:
    """They are stored as plain integers. rewrite joins two units, and refuses durations with integers."""
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for file, type_ in zip(files, (pa.duration("s"), other), strict=True):
        pq.write_table(pa.table({"k": [1], "v": [{"d": 1000}]}).cast(pa.schema({
            "k": pa.int64(), "v": pa.struct({"d": type_})})), file)  # fmt: skip
    with pytest.raises(SchemaError, match=r"duration.*plain numbers.*pyparq\.rewrite") as error:
        pyparq.merge(files, tmp_path / "all.parquet")
    assert (error.value.file, error.value.column) == (str(files[1]), "v")
    assert not (tmp_path / "all.parquet").exists()
    if other == pa.int64():
        with pytest.raises(SchemaError, match="no common type"):
            pyparq.rewrite(files, tmp_path / "all.parquet")
    else:
        pyparq.rewrite(files, tmp_path / "all.parquet")
        due = [dt.timedelta(seconds=1000), dt.timedelta(seconds=1)]
        assert [row["d"] for row in pq.read_table(tmp_path / "all.parquet")["v"].to_pylist()] == due


def test_arrow_types_that_differ_are_joined(tmp_path: Path) -> None:
    """Where one column differs, the others keep their Arrow types, and the one has a type that fits both files."""
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    zones = ("America/New_York", "Asia/Tokyo")
    for k, file in enumerate(files):
        text = pa.array(["u"]).dictionary_encode() if k else pa.array(["v"], pa.large_string())
        columns = {"d": pa.array([k], pa.duration("s")), "c": text, "t": pa.array([k], pa.timestamp("us", zones[k]))}
        pq.write_table(pa.table(columns).replace_schema_metadata({"owner": "me", "day": str(k)}), file)
    report = pyparq.merge(files, tmp_path / "all.parquet", key_value_metadata={"new": "n"})
    assert report.dropped_keys == ("day",)
    assert pq.read_schema(tmp_path / "all.parquet").metadata == {b"owner": b"me", b"new": b"n"}
    found = pq.read_table(tmp_path / "all.parquet")
    assert found.schema.field("d").type == pa.duration("s")
    assert found.schema.field("t").type == pa.timestamp("us", zones[0])
    due = pa.concat_tables(
        [pq.read_table(file).set_column(1, "c", pq.read_table(file)["c"].cast(pa.string())).cast(pa.schema({
            "d": pa.duration("s"), "c": pa.string(), "t": pa.timestamp("us", "UTC")})) for file in files]
    )  # fmt: skip
    assert found.cast(due.schema).equals(due)
    assert pyparq.read_table(tmp_path / "all.parquet").to_arrow().cast(due.schema).equals(due)
