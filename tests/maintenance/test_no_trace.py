"""Nothing of a deleted row is left in the bytes, whatever its type, and whatever described it."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain_pages import plain_bytes

import pyparq
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file
from pyparq.read.plan.bloom_probe import read_filter

ROWS, GROUP = 6000, 500
CHOSEN = random.Random(11)
RAW = [CHOSEN.randbytes(15) + b"?" for _ in range(ROWS)]
"""Unique bytes for each row: their parts are in each column."""
NUMBERS = [int.from_bytes(raw[:8], "little", signed=True) for raw in RAW]
GONE = sorted(CHOSEN.sample(range(ROWS), 1000))
KEPT = sorted(set(range(ROWS)) - set(GONE))


def table() -> pa.Table:
    stamps = [number % 10**18 for number in NUMBERS]
    return pa.table({
        "id": range(ROWS), "number": pa.array(NUMBERS, pa.int64()), "bytes": [b"b" + raw for raw in RAW],
        "fixed": pa.array(RAW, pa.binary(16)), "nano": pa.array(stamps, pa.timestamp("ns")),
        "double": pa.array([struct.unpack("<d", raw[8:])[0] for raw in RAW], pa.float64()),
        "money": pa.array([Decimal(int.from_bytes(raw[:14], "little", signed=True)) for raw in RAW],
                          pa.decimal128(38, 0)),
        "items": [[raw.hex(), f"x{raw.hex()}"][: k % 3] for k, raw in enumerate(RAW)],
        "place": [{"name": f"p{raw.hex()}"} for raw in RAW],
    })  # fmt: skip


def needles(k: int, stamp: int) -> dict[str, bytes]:
    """What a row leaves in plain pages."""
    raw = RAW[k]
    days, clock = divmod(stamp, 86_400 * 10**9)
    return {
        "number": raw[:8], "bytes": raw, "double": raw[8:], "int96": struct.pack("<qi", clock, days + 2_440_588),
        "money": int.from_bytes(raw[:14], "little", signed=True).to_bytes(16, "big", signed=True)[-14:],
        "text": raw.hex().encode(),
    }  # fmt: skip


WRITTEN: list[dict[str, Any]] = [
    {"compression": "none"},
    {"compression": "none", "row_group_size": ROWS},  # so many that codes are kept, and not values
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "snappy", "data_page_version": "2.0", "use_dictionary": False, "sorting_columns": True},
    {"compression": "gzip", "use_dictionary": False},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", WRITTEN)
def test_values_of_all_types(tmp_path: Path, options: dict[str, Any]) -> None:
    path, options = tmp_path / "a.parquet", dict(options)
    if options.pop("sorting_columns", False):
        options["sorting_columns"] = pq.SortingColumn.from_ordering(table().schema, [("id", "ascending")])
    pq.write_table(
        table(), path, use_deprecated_int96_timestamps=True, write_page_index=True,
        **{"row_group_size": GROUP, **options},
    )  # fmt: skip
    pyparq.add_indexes(path, bloom_filters=["number", "bytes", "fixed", "money", "place.name", "items.list.element"])
    stamps = [number % 10**18 for number in NUMBERS]
    before = plain_bytes(path)
    assert all(needle in before for k in GONE[:20] for needle in needles(k, stamps[k]).values() if k % 3)
    assert pyparq.delete(path, keys={"id": GONE}).rows_deleted == 1000
    after = plain_bytes(path)
    left = [(k, name) for k in GONE for name, needle in needles(k, stamps[k]).items() if needle in after]
    assert left == []
    assert all(needle in after for k in KEPT[:20] for needle in needles(k, stamps[k]).values() if k % 3)
    assert pq.read_table(path, coerce_int96_timestamp_unit="ns").equals(table().take(KEPT))
    assert pyparq.verify(path).ok
    file = open_file(path, ReadOptions())
    asked = hits = 0
    for k in range(file.num_row_groups):
        for name, values in (("number", NUMBERS), ("bytes", [b"b" + raw for raw in RAW]), ("fixed", RAW)):
            found = read_filter(file.chunk(k, file.tree.find(name)), file.fetcher, file.options.limits)
            assert found is not None
            asked += len(GONE)
            hits += int(found.check([values[k] for k in GONE]).sum())
    assert hits <= asked * 0.03


# ---- what describes rows ---------------------------------------------------------------------------------------------


def described(path: Path) -> list[Any]:
    """What a file says of its chunks and pages, beside where they lie."""
    file, found = open_file(path, ReadOptions()), list[Any]()
    for k in range(file.num_row_groups):
        for leaf in file.tree.leaves:
            meta = file.chunk(k, leaf).meta
            meta.statistics.distinct_count = None  # known where a dictionary was kept
            found.append((
                leaf.dotted, meta.num_values, meta.statistics, meta.size_statistics, meta.geospatial_statistics,
                stored_index(file, k, leaf),
            ))  # fmt: skip
    return found


def stored_index(file: OpenFile, row_group: int, leaf: Any) -> bytes:
    raw = file.chunk(row_group, leaf).raw
    if not raw.column_index_offset:
        return b""
    (data,) = file.fetcher.fetch([(raw.column_index_offset, raw.column_index_length)])
    return bytes(data)


def points(rows: range) -> list[bytes | None]:
    """Points as WKB: those of rows that go are far away."""
    return [None if k % 50 == 7 else struct.pack("<BIdd", 1, 1, *((900.0, -700.0) if k % 10 == 0 else (k / 100, 1.0)))
            for k in rows]  # fmt: skip


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_statistics_are_those_of_a_file_that_never_had_the_rows(tmp_path: Path, version: Any) -> None:
    """Rows that go are the smallest and largest, the only nulls and NaNs, the longest texts, and the far points."""
    rows, schema = range(600), pyparq.schema({
        "id": "int64", "text": "string?", "number": "double?", "deep": "list<list<string?>?>?", "place": "geometry?",
        "kind": "string?", "when": "timestamp[us]?",
    })  # fmt: skip
    data = [
        {"id": k, "text": ("" if k % 20 else "z" * 80) if k % 10 == 0 else f"m{k:04}",
         "number": (None if k % 20 else float("nan")) if k % 10 == 0 else k / 3,
         "deep": ([["x" * 50, None], None] if k % 20 else None) if k % 10 == 0 else [[f"d{k}"]],
         "place": place, "kind": "gone" if k % 10 == 0 else f"k{k % 4}",
         "when": (-(2**62) if k % 20 else 2**62) if k % 10 == 0 else k * 10**9}
        for k, place in zip(rows, points(rows), strict=True)
    ]  # fmt: skip
    for row in data:
        row["when"] = np.datetime64(row["when"] // 10**4, "us")
    options: dict[str, Any] = {
        "row_group_size": 200, "max_rows_per_page": 50, "data_page_version": version, "compression": "none",
        "write_size_statistics": True,
    }  # fmt: skip
    pyparq.write_table(data, tmp_path / "a.parquet", schema=schema, **options)
    kept = [row for row in data if row["id"] % 10]
    pyparq.write_table(kept, tmp_path / "b.parquet", schema=schema, **options | {"row_group_size": 180})
    assert described(tmp_path / "a.parquet") != described(tmp_path / "b.parquet")
    pyparq.delete(tmp_path / "a.parquet", keys={"id": list(range(0, 600, 10))})
    assert described(tmp_path / "a.parquet") == described(tmp_path / "b.parquet")
    assert pyparq.verify(tmp_path / "a.parquet").ok
    stored = plain_bytes(tmp_path / "a.parquet")
    for trace in (b"z" * 10, b"x" * 10, b"gone", struct.pack("<d", 900.0), struct.pack("<d", -700.0)):
        assert trace not in stored


def test_a_dictionary_that_kept_rows_share(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    names = [("shared" if k % 2 else "secret") if k % 5 == 0 else f"n{k % 3}" for k in range(1000)]
    shares = [name if name != "shared" or k % 15 else "shared" for k, name in enumerate(names)]
    pq.write_table(pa.table({"id": range(1000), "name": shares}), path, row_group_size=300)
    assert b"secret" in plain_bytes(path)
    pyparq.delete(path, keys={"id": [k for k in range(1000) if k % 10 == 0 or (k % 5 == 0 and k % 3 == 0)]})
    stored = plain_bytes(path)
    assert b"secret" not in stored
    assert b"shared" in stored
    assert pq.read_table(path)["name"].to_pylist() == [
        name for k, name in enumerate(shares) if not (k % 10 == 0 or (k % 5 == 0 and k % 3 == 0))
    ]


@pytest.mark.parametrize("writer", ["pyarrow", "pyparq"])
def test_a_dictionary_that_is_kept(tmp_path: Path, writer: str) -> None:
    """The new chunk has the entries of the old one that are left, in their order, whatever the type."""
    rows, path, rng = 20_000, tmp_path / "a.parquet", np.random.default_rng(5)
    known, places = rng.choice(2**21, 600, replace=False), rng.integers(0, 600, rows)
    present = rng.random(rows) > 0.1
    numbers = pa.array(np.where(present, known[places], 0), mask=~present)
    stored = pa.table({
        "id": range(rows), "number": numbers, "date": numbers.cast(pa.int32()).cast(pa.date32()),
        "double": numbers.cast(pa.float64()), "text": numbers.cast(pa.string()),
        "fixed": pa.array([None if v is None else b"v%07d" % v for v in numbers.to_pylist()], pa.binary(8)),
        "nulls": pa.nulls(rows, pa.string()), "lists": [[str(k % 50)] * (k % 3) for k in range(rows)],
    })  # fmt: skip
    kept_whole = ["number", "date", "double", "text", "fixed"]
    if writer == "pyarrow":
        pq.write_table(stored, path, row_group_size=rows, write_page_index=True)
    else:
        pyparq.write_table(stored, path, row_group_size=rows)

    def check(left: pa.Table) -> None:
        assert pq.read_table(path).equals(left)
        assert pyparq.verify(path).ok
        group = pq.ParquetFile(path).metadata.row_group(0)
        for name in kept_whole:
            chunk = group.column(stored.column_names.index(name))
            assert "RLE_DICTIONARY" in chunk.encodings, name
            told = chunk.statistics.distinct_count
            if writer == "pyparq" and name != "double":  # pyarrow states none, and nobody of floats
                assert told == len(set(left[name].to_pylist()) - {None}), name
            else:
                assert told is None, name

    check(stored)
    for most in (20, 30):  # the second time, of a file whose dictionaries were kept once
        gone = places < most
        pyparq.delete(path, keys={"id": np.flatnonzero(gone & present)})
        check(stored.filter(pa.array(~(gone & present))))
        bytes_left = plain_bytes(path)
        assert not any(b"v%07d" % value in bytes_left for value in known[:most])
        assert b"v%07d" % known[40] in bytes_left


def test_summaries_that_hold_bounds(tmp_path: Path) -> None:
    folder, collected = tmp_path / "lake", list[Any]()
    data = pa.table({"g": [k % 3 for k in range(300)], "name": [f"person-{k:05}" for k in range(300)]})
    pq.write_to_dataset(data, folder, partition_cols=["g"], metadata_collector=collected)
    schema = pq.ParquetFile(next(folder.rglob("*.parquet"))).schema_arrow
    pq.write_metadata(schema, folder / "_metadata", metadata_collector=collected)
    pq.write_metadata(schema, folder / "_common_metadata")
    assert b"person-00000" in (folder / "_metadata").read_bytes()
    report = pyparq.delete(folder, "name = 'person-00000'")
    assert not (folder / "_metadata").exists()
    assert sum("_metadata" in note for note in report.notes) == 2
    assert not [path for path in folder.rglob("*") if path.is_file() and b"person-00000" in path.read_bytes()]


def test_the_boxes_of_geoparquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    geo = (
        '{"version":"1.1.0","primary_column":"place","columns":{"place":{"encoding":"WKB","geometry_types":["Point"],'
        '"bbox":[-700.0,0.0,900.0,9.0],"covering":{"bbox":{"xmin":["box","xmin"],"ymin":["box","ymin"],'
        '"xmax":["box","xmax"],"ymax":["box","ymax"]}}}}}'
    )
    boxes = [{"xmin": 900.0, "ymin": -700.0, "xmax": 900.0, "ymax": -700.0} if k % 10 == 0 else
             {"xmin": k / 100, "ymin": 1.0, "xmax": k / 100, "ymax": 1.0} for k in range(100)]  # fmt: skip
    data = pa.table({"id": range(100), "place": pa.array(points(range(100)), pa.binary()), "box": boxes})
    pq.write_table(data.replace_schema_metadata({"geo": geo}), path, compression="none")
    pyparq.delete(path, keys={"id": list(range(0, 100, 10))})
    stored = plain_bytes(path)
    assert not [trace for trace in (b"900.0", b"-700.0", struct.pack("<d", 900.0)) if trace in stored]
    key = (pq.read_schema(path).metadata or {})[b"geo"]
    assert b"covering" in key
    assert b'"bbox":[' not in key
