"""pyarrow, DuckDB, polars and DataFusion as readers and writers of one file, and what each of them cannot do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from interop_tables import FLAT, canonical, encodings_of

import pyparq


def with_pyarrow(path: Path) -> pa.Table:
    return pq.ParquetFile(path, page_checksum_verification=True).read()


def with_duckdb(path: Path) -> pa.Table:
    with duckdb.connect() as connection:
        return connection.read_parquet(str(path)).to_arrow_table()


def with_polars(path: Path) -> pa.Table:
    # glob=False: a name may hold characters that mean something in a pattern.
    return pl.read_parquet(path, glob=False).to_arrow()


def with_datafusion(path: Path) -> pa.Table:
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    return context.sql("select * from t").to_arrow_table()


def with_pyparq(path: Path) -> pa.Table:
    return pyparq.read_table(path).to_arrow()


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "pyarrow": with_pyarrow, "duckdb": with_duckdb, "polars": with_polars, "datafusion": with_datafusion,
}  # fmt: skip


def readers_of(encodings: dict[str, str]) -> dict[str, Callable[[Path], pa.Table]]:
    """The readers that know these encodings of columns of :data:`interop_tables.FLAT`: polars knows few of
    FIXED_LEN_BYTE_ARRAY, DuckDB no BYTE_STREAM_SPLIT of it, pyarrow only PLAIN for dictionaries."""
    fixed = {n: e for n, e in encodings.items() if encodings_of(FLAT[n].type) == encodings_of(pa.binary(1))}
    halves = encodings.get("float16")
    categories = any(pa.types.is_dictionary(FLAT[name].type) for name in encodings)
    unknown = {
        "duckdb": bool(halves) or "BYTE_STREAM_SPLIT" in fixed.values(),
        "polars": bool(fixed),
        "pyarrow": categories,
    }
    return {name: read for name, read in READERS.items() if not unknown.get(name)}


def check_readers(path: Path, expected: pa.Table, readers: dict[str, Callable[[Path], pa.Table]] = READERS) -> None:
    """Each reader finds the same columns with the same values."""
    for engine, read in readers.items():
        misread = all_nan(path) if engine == "datafusion" else set()
        found = read(path)
        assert found.column_names == expected.column_names, engine
        compare(found.drop_columns(list(misread)), expected.drop_columns(list(misread)), engine)


def all_nan(path: Path) -> set[str]:
    """Columns with a row group of nothing but NaN, which has no bounds. DataFusion 55 overlooks such row groups: when
    the others hold one number only, it takes the column for constant and shows NaN as that number."""
    metadata, names = pq.read_metadata(path), set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            floats = chunk.physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY")
            if floats and chunk.is_stats_set and not chunk.statistics.has_min_max and not chunk.statistics.null_count:
                names.add(chunk.path_in_schema)
    return names & set(metadata.schema.to_arrow_schema().names)


def same_column(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    """Whether pyarrow itself finds them equal: quicker than value by value. It does not tell zeros and NaNs apart, so
    columns with floats are never said to be the same."""
    if found.type != expected.type or "float" in str(found.type) or "double" in str(found.type):
        return False
    return bool(found.equals(expected))


def compare(found: pa.Table, expected: pa.Table, engine: str, rows: list[int] | None = None) -> None:
    """All rows of ``expected`` were found, or those at the positions ``rows``."""
    rows = list(range(expected.num_rows)) if rows is None else rows
    assert found.column_names == expected.column_names, engine
    assert found.num_rows == len(rows), engine
    for name in expected.column_names:
        if rows == list(range(expected.num_rows)) and same_column(found[name], expected[name]):
            continue
        ours, everything = canonical(found[name]), canonical(expected[name])
        theirs = [everything[row] for row in rows]
        if pa.types.is_binary(found.schema.field(name).type) or pa.types.is_large_binary(found.schema.field(name).type):
            theirs = [v.encode() if isinstance(v, str) else v for v in theirs]  # polars' JSON
        elif "uuid" in str(expected.schema.field(name).type):
            ours = [bytes.fromhex(v.replace("-", "")) if isinstance(v, str) else v for v in ours]  # DuckDB's text
        assert ours == theirs, (engine, name)


# ---- writers ---------------------------------------------------------------------------------------------------------


def by_pyarrow(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    if any(pa.types.is_timestamp(f.type) and f.type.unit == "ns" for f in table.schema):
        options = {**options, "version": "2.6"}  # the older ones make microseconds of them
    pq.write_table(table, path, **options)


def by_duckdb(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    given = ", ".join(f"{name} {value!r}" for name, value in options.items())
    with duckdb.connect() as connection:
        connection.register("source", table.combine_chunks())  # it refuses structs below an offset
        connection.execute(f"copy source to '{path}' (format parquet{', ' * bool(given)}{given})")


def by_polars(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, **options)


def by_datafusion(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    columns = {name: datafusion.ParquetColumnOptions(**given) for name, given in options.get("columns", {}).items()}
    options = {k: v for k, v in options.items() if k != "columns"} | {"column_specific_options": columns}
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    frame = context.from_arrow(table.combine_chunks())  # it panics on some structs below an offset
    frame.write_parquet_with_options(path, datafusion.ParquetWriterOptions(**options))
    if path.is_dir():  # it makes a directory of the name unless the name has an extension that it knows
        (part,) = path.iterdir()
        os.replace(part, path.with_suffix(".part"))
        path.rmdir()
        os.replace(path.with_suffix(".part"), path)


WRITERS: dict[str, Callable[[pa.Table, Path, dict[str, Any]], None]] = {
    "pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars, "datafusion": by_datafusion,
}  # fmt: skip


def with_encodings(writer: str, options: dict[str, Any], encodings: dict[str, str]) -> dict[str, Any]:
    """The writer's options, such that columns are in the given encodings."""
    if writer == "pyarrow":
        return {**options, "use_dictionary": False, "column_encoding": encodings, "store_decimal_as_integer": True}
    if writer == "datafusion":
        columns = {n: {"encoding": e.lower(), "dictionary_enabled": False} for n, e in encodings.items()}
        return {**options, "columns": columns}
    # DuckDB chooses among the newer encodings by itself; polars has no choice.
    return {**options, "parquet_version": "v2"} if writer == "duckdb" else options


OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "pyarrow": st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "version": st.sampled_from(["1.0", "2.4", "2.6"]),
            "use_dictionary": st.booleans(),
            "dictionary_pagesize_limit": st.sampled_from([20, 1 << 20]),
            "row_group_size": st.sampled_from([7, 1 << 20]),
            "data_page_size": st.sampled_from([10, 1 << 20]),
            "write_batch_size": st.sampled_from([3, 1024]),
            "write_page_index": st.booleans(),
            "write_page_checksum": st.booleans(),
            "write_statistics": st.booleans(),
            "store_schema": st.booleans(),
            "store_decimal_as_integer": st.booleans(),
            "use_compliant_nested_type": st.booleans(),
        }
    ),
    "duckdb": st.fixed_dictionaries(
        {
            "codec": st.sampled_from(["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"]),
            "row_group_size": st.sampled_from([10, 100_000]),
            "dictionary_size_limit": st.sampled_from([1, 100_000]),
        }
    ),
    "polars": st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4"]),
            "row_group_size": st.sampled_from([5, 1 << 20]),
            "data_page_size": st.sampled_from([10, 1 << 20]),
            "statistics": st.sampled_from([True, False, "full"]),
        }
    ),
    "datafusion": st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["uncompressed", "snappy", "gzip(6)", "zstd(3)", "brotli(4)", "lz4_raw"]),
            "dictionary_enabled": st.booleans(),
            "dictionary_page_size_limit": st.sampled_from([20, 1 << 20]),
            "data_page_row_count_limit": st.sampled_from([3, 20_000]),
            "write_batch_size": st.sampled_from([3, 1024]),
            "max_row_group_size": st.sampled_from([7, 1 << 20]),
            "bloom_filter_on_write": st.booleans(),
            "skip_arrow_metadata": st.booleans(),
            "statistics_enabled": st.sampled_from(["none", "chunk", "page"]),
        }
    ),
}
