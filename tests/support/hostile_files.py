"""Files to damage, and where in them what lies."""

from __future__ import annotations

import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyparq
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import deserialize

Spans = list[list[int]]

ROWS = 480


def sample_table(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """Every flat kind, with nulls, NaN, both zeros, empty strings, sorted and shuffled columns."""
    rng = np.random.default_rng(seed)
    holes = rng.random(rows) < 0.15
    floats = rng.normal(size=rows).round(2)
    floats[::17], floats[::23], floats[::29] = np.nan, -0.0, 0.0
    words = np.array(["", "a", "bee", "été", "longer than the others " * 2])
    numbers = rng.integers(-1000, 1000, rows)
    return pa.table(
        {
            "sorted": pa.array(np.arange(rows, dtype=np.int64) * 3),
            "small": pa.array(rng.integers(0, 5, rows).astype(np.int32), mask=holes),
            "tiny": pa.array(rng.integers(-128, 128, rows).astype(np.int8)),
            "big": pa.array(rng.integers(0, 1 << 63, rows).astype(np.uint64) * 2),
            "float": pa.array(floats, mask=holes),
            "single": pa.array(floats.astype(np.float32)),
            "flag": pa.array(rng.random(rows) < 0.5, mask=holes),
            "word": pa.array(words[rng.integers(0, len(words), rows)], mask=holes),
            "id": pa.array([f"{n:09x}" for n in rng.integers(0, 1 << 35, rows)]),
            "raw": pa.array([bytes(rng.integers(0, 256, n % 7).astype(np.uint8)) for n in range(rows)]),
            "fixed": pa.array([b"%05d" % n for n in rng.integers(0, 50, rows)], pa.binary(5)),
            "price": pa.array([Decimal(int(n)) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array(numbers.astype(np.int32), pa.date32()),
            "time": pa.array(numbers * 1_000_003, pa.timestamp("us", "UTC")),
            "void": pa.nulls(rows, pa.int32()),
        },
        schema=None,
    )


FILTERS: list[Any] = [
    [["sorted", ">", 600], ["sorted", "<", 700]],
    [["sorted", "==", 333]],
    [["id", "==", "000000000"]],
    [["word", "in", ["bee", "no"]], ["small", ">=", 3]],
    [["float", "<", 0.0], ["flag", "==", True]],
    [["single", "==", 0.0]],
    [["fixed", ">", "00040"], ["tiny", "!=", 0]],
    [["price", "<=", -3.5]],
    [["big", ">", 1 << 62]],
    [["raw", "<", "@"], ["small", "not in", [1, 2]]],
]
"""In a form that JSON can carry."""


def pyarrow_files(folder: Path) -> list[Path]:
    """The sample in all codecs, both page versions, with and without dictionaries."""
    table = sample_table()
    bloom = {name: {"fpp": 0.05, "ndv": 240} for name in ("sorted", "id", "word", "float")}
    paths = []
    for k, codec in enumerate(("none", "snappy", "gzip", "zstd", "lz4", "brotli")):
        for version in ("1.0", "2.0"):
            path = folder / f"pyarrow_{codec}_{version[0]}.parquet"
            pq.write_table(
                table, path, row_group_size=ROWS // 2, compression=codec, data_page_version=version,
                use_dictionary=["small", "word", "fixed", "price"] if (k + (version == "1.0")) % 2 else True,
                data_page_size=400, write_batch_size=50, write_page_index=True, write_page_checksum=True,
                bloom_filter_options=bloom, store_decimal_as_integer=k % 3 == 0, store_schema=k % 2 == 0,
            )  # fmt: skip
            paths.append(path)
    return paths


def nested_table(rows: int = ROWS) -> pa.Table:
    """Lists, structs and maps, with nulls and empty ones at every depth."""
    rng = np.random.default_rng(11)

    def numbers(depth: int) -> Any:
        if rng.random() < 0.12:
            return None
        count = int(rng.integers(0, 4))
        return [int(rng.integers(0, 9)) if depth == 0 else numbers(depth - 1) for _ in range(count)]

    def thing() -> Any:
        return (
            None
            if rng.random() < 0.1
            else {"x": int(rng.integers(0, 50)), "words": ["a", None, "bc"][: int(rng.integers(0, 4))]}
        )

    return pa.table(
        {
            "sorted": pa.array(np.arange(rows, dtype=np.int64) * 3),
            "list": pa.array([numbers(0) for _ in range(rows)], pa.list_(pa.int32())),
            "deep": pa.array([numbers(2) for _ in range(rows)], pa.list_(pa.list_(pa.list_(pa.int16())))),
            "things": pa.array(
                [[thing() for _ in range(int(rng.integers(0, 3)))] for _ in range(rows)],
                pa.list_(pa.struct({"x": pa.int64(), "words": pa.list_(pa.string())})),
            ),
            "map": pa.array(
                [[(f"k{k}", k) for k in range(n % 4)] for n in range(rows)], pa.map_(pa.string(), pa.int64())
            ),
            "struct": pa.array(
                [thing() for _ in range(rows)], pa.struct({"x": pa.int64(), "words": pa.list_(pa.string())})
            ),
        }
    )


NESTED_FILTERS: list[Any] = [[["sorted", ">", 600], ["sorted", "<", 700]], [["sorted", "==", 333]]]

ENCODED = {
    "sorted": "DELTA_BINARY_PACKED", "small": "DELTA_BINARY_PACKED", "float": "BYTE_STREAM_SPLIT",
    "word": "DELTA_LENGTH_BYTE_ARRAY", "id": "DELTA_BYTE_ARRAY", "fixed": "BYTE_STREAM_SPLIT",
    "raw": "DELTA_BYTE_ARRAY", "flag": "RLE",
}  # fmt: skip


def other_files(folder: Path) -> list[tuple[Path, list[Any]]]:
    """The other encodings, and nested columns: files with the filters for them."""
    made: list[tuple[Path, list[Any]]] = []
    for codec, version in (("none", "2.0"), ("snappy", "1.0")):
        options: dict[str, Any] = {
            "compression": codec, "data_page_version": version, "row_group_size": ROWS // 2, "data_page_size": 400,
            "write_batch_size": 50, "write_page_index": True, "write_page_checksum": True,
        }  # fmt: skip
        encoded, nested = folder / f"encoded_{codec}.parquet", folder / f"nested_{codec}.parquet"
        pq.write_table(sample_table(), encoded, use_dictionary=False, column_encoding=ENCODED, **options)
        pq.write_table(nested_table(), nested, store_schema=False, **options)
        made += [(encoded, FILTERS), (nested, NESTED_FILTERS)]
    return made


def own_files(folder: Path) -> list[Path]:
    """The sample as this library writes it, in both layouts."""
    write = getattr(pyparq, "write_table", None)
    if write is None:
        return []
    paths = []
    for codec, version, layout in (
        ("none", "1.0", "footer"), ("snappy", "1.0", "row_group"),
        ("zstd", "2.0", "footer"), ("gzip", "2.0", "row_group"),
    ):  # fmt: skip
        path = folder / f"pyparq_{codec}_{version[0]}.parquet"
        write(
            sample_table(), path, row_group_size=ROWS // 2, compression=codec, data_page_version=version,
            max_rows_per_page=60, bloom_filters={"sorted": 0.05, "id": 0.05, "word": 0.05, "float": 0.05},
            bloom_filter_layout=layout,
        )  # fmt: skip
        paths.append(path)
    return paths


def regions(data: bytes) -> dict[str, Spans]:
    """Where page bodies (all under a CRC), page headers, indexes, Bloom filters and the footer lie."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = LazyFileMetaData(data[-8 - size : -8])
    found: dict[str, Spans] = {name: [] for name in ("body", "header", "index", "bloom")}
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns(group)):
            chunk = footer.column_chunk(group, column)
            _add_pages(data, chunk.meta_data, found)
            for at, length in (
                (chunk.column_index_offset, chunk.column_index_length),
                (chunk.offset_index_offset, chunk.offset_index_length),
            ):
                if at:
                    found["index"].append([at, at + length])
            at = chunk.meta_data.bloom_filter_offset
            if at:
                found["bloom"].append([at, at + 40])
    found["unchecked"] = found["body"]
    found["footer"] = [[len(data) - 8 - size, len(data)]]
    found["anywhere"] = [[0, len(data)]]
    return {kind: spans for kind, spans in found.items() if spans}


def _add_pages(data: bytes, meta: Any, found: dict[str, Spans]) -> None:
    start = min(o for o in (meta.dictionary_page_offset or 1 << 62, meta.data_page_offset))
    at = start
    while at < start + meta.total_compressed_size:
        header, body = deserialize(tt.PageHeader, data, at)
        end = body + header.compressed_page_size
        assert header.crc is not None, "a page without CRC"
        assert zlib.crc32(data[body:end]) == header.crc & 0xFFFFFFFF
        found["header"].append([at, body])
        if end > body:
            found["body"].append([body, end])
        at = end
