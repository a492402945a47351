"""Make ``foreign/``: one small table as other implementations write it, and what is in it.

    python testdata/make_foreign.py [writer ...]      (all of them: pyarrow duckdb polars datafusion spark)

Needs the peers (``pip install '.[test]'``), Java for Spark; pyparq takes no part. ``expected.json`` holds the values of
every column in the form described at :func:`plain`, the columns of every file, and the rows that some filters select.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent / "foreign"
ROWS = 60
WORDS = ["", "a", "é", "日本", "\U0001f600", "x" * 70, "\0", "zebra"]
NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

# ---- the table -------------------------------------------------------------------------------------------------------


def make_table() -> pa.Table:
    """Every type, nulls in patterns of their own, a few values that repeat and many that do not."""
    rng = random.Random(2026)

    def some(edges: list[Any], draw: Any, null_every: int) -> list[Any]:
        values = [rng.choice(edges) if rng.random() < 0.3 else draw() for _ in range(ROWS)]
        return [None if null_every and k % null_every == 1 else v for k, v in enumerate(values)]

    def whole(low: int, high: int) -> Any:
        return lambda: rng.randint(low, high)

    columns: dict[str, pa.Array] = {"row": pa.array(range(ROWS), pa.int32())}
    columns["bool"] = pa.array(some([True], lambda: rng.random() < 0.2, 7), pa.bool_())
    for bits in (8, 16, 32, 64):
        top = 1 << bits - 1
        columns[f"int{bits}"] = pa.array(some([-top, top - 1, 0], whole(-top, top - 1), 5), f"int{bits}")
        columns[f"uint{bits}"] = pa.array(some([2 * top - 1, top, 0], whole(0, 2 * top - 1), 6), f"uint{bits}")
    floats = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.5]
    for bits in (16, 32, 64):
        numbers = some(floats, lambda: rng.randint(-2000, 2000) / 8, 4)
        columns[f"float{bits}"] = pa.array(numbers, pa.float16() if bits == 16 else f"float{bits}")
    columns["string"] = pa.array(some(WORDS, lambda: rng.choice(WORDS), 9), pa.string())
    urls = [f"https://example.org/flights/2013/{k:04d}?from={'JFK' if k % 2 else 'EWR'}" for k in range(ROWS)]
    columns["url"] = pa.array(rng.sample(urls, ROWS), pa.string())
    columns["binary"] = pa.array(
        some([b"", b"\xff" * 70, b"\0"], lambda: rng.randbytes(rng.randint(0, 9)), 8), pa.binary()
    )
    columns["fixed"] = pa.array(some([b"\0" * 7, b"\xff" * 7], lambda: rng.randbytes(7), 10), pa.binary(7))
    columns["date"] = pa.array(some([0, -1, -719_162], whole(-100_000, 100_000), 3), pa.int32()).cast(pa.date32())
    day = 86_400 * 10**9
    for unit in ("ms", "us", "ns"):
        kind = pa.time32("ms") if unit == "ms" else pa.time64(unit)
        columns[f"time_{unit}"] = pa.array(some([0, day // NS[unit] - 1], whole(0, day // NS[unit] - 1), 6), kind)
        far = 9 * 10**18 // NS[unit]
        zone = "UTC" if unit == "us" else None
        columns[f"ts_{unit}"] = pa.array(some([far, -far, -1, 0], whole(-far, far), 11), pa.timestamp(unit, zone))
    for digits, scale in ((9, 2), (18, 6), (38, 10)):
        top = 10**digits - 1
        numbers = [None if v is None else Decimal(f"{v}e-{scale}") for v in some([top, -top, 0], whole(-top, top), 5)]
        columns[f"decimal{digits}"] = pa.array(numbers, pa.decimal128(digits, scale))
    columns["nothing"] = pa.nulls(ROWS, pa.int32())
    columns["always"] = pa.array([42] * ROWS, pa.int64())
    lists = some([[], [None], [1, None, 2]], lambda: [rng.randint(0, 9) for _ in range(rng.randint(0, 5))], 7)
    columns["list"] = pa.array(lists, pa.list_(pa.int64()))
    members = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    structs = some([{"a": None, "b": None}], lambda: {"a": rng.randint(0, 9), "b": rng.sample(WORDS, 2)}, 6)
    columns["struct"] = pa.array(structs, members)
    pairs = some([[]], lambda: [(w, rng.choice([None, 1])) for w in rng.sample(WORDS, rng.randint(0, 3))], 5)
    columns["map"] = pa.array(pairs, pa.map_(pa.string(), pa.int32()))
    required = {"row", "url", "always"}
    schema = pa.schema([pa.field(n, c.type, nullable=n not in required) for n, c in columns.items()])
    return pa.table(list(columns.values()), schema=schema)


def plain(array: pa.Array) -> list[Any]:
    """JSON values: instants and times of day as whole nanoseconds, dates as days, floats as their shortest text, bytes
    in hexadecimal, decimals as text without an exponent, maps as lists of pairs."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        numbers = array.cast(pa.int32() if kind == pa.time32("ms") else pa.int64()).to_pylist()
        return [None if v is None else v * NS[kind.unit] for v in numbers]
    if pa.types.is_date(kind):
        return array.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    values = array.to_pylist()
    if pa.types.is_floating(kind):
        return [None if v is None else repr(float(v)) for v in values]
    if pa.types.is_decimal(kind):
        return [None if v is None else f"{v:f}" for v in values]
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if v is None else v.hex() for v in values]
    return values  # type: ignore[no-any-return]


# ---- the files -------------------------------------------------------------------------------------------------------

NOT_SPARK = ("uint", "float16", "fixed", "time_", "ts_ns")
FILES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    # name: (writer, its options, beginnings of the names of columns that it cannot write or would change)
    "pyarrow_v1": ("pyarrow", {"row_group_size": 30, "max_rows_per_page": 10, "write_page_index": True,
                               "write_page_checksum": True, "store_schema": False,
                               "bloom_filter_options": {"url": {"ndv": 40}, "int64": {"ndv": 40}}}, ()),
    "pyarrow_v2": ("pyarrow", {"data_page_version": "2.0", "compression": "zstd", "use_dictionary": False,
                               "write_page_checksum": True, "store_decimal_as_integer": True}, ()),
    "pyarrow_old": ("pyarrow", {"version": "1.0", "compression": "gzip", "use_deprecated_int96_timestamps": True,
                                "use_compliant_nested_type": False, "dictionary_pagesize_limit": 60,
                                "write_batch_size": 10, "store_schema": False}, ("time_ns",)),
    "pyarrow_encodings": ("pyarrow", {"use_dictionary": False, "compression": "none", "column_encoding": {
        "int32": "DELTA_BINARY_PACKED", "int64": "DELTA_BINARY_PACKED", "string": "DELTA_LENGTH_BYTE_ARRAY",
        "url": "DELTA_BYTE_ARRAY", "fixed": "DELTA_BYTE_ARRAY", "binary": "DELTA_BYTE_ARRAY", "bool": "RLE",
        "float32": "BYTE_STREAM_SPLIT", "float64": "BYTE_STREAM_SPLIT", "uint64": "BYTE_STREAM_SPLIT",
        "decimal38": "BYTE_STREAM_SPLIT"}}, ()),
    "duckdb_v1": ("duckdb", {"codec": "snappy", "row_group_size": 2048}, ("float16",)),
    "duckdb_v2": ("duckdb", {"codec": "zstd", "parquet_version": "v2"}, ("float16",)),
    "polars": ("polars", {"compression": "zstd", "row_group_size": 30, "data_page_size": 500, "statistics": "full"},
               ()),
    "datafusion_v1": ("datafusion", {"compression": "lz4_raw", "max_row_group_size": 30, "write_batch_size": 10,
                                     "data_page_row_count_limit": 10, "bloom_filter_on_write": True,
                                     "bloom_filter_ndv": 40, "skip_arrow_metadata": True}, ()),
    "datafusion_v2": ("datafusion", {"compression": "snappy", "writer_version": "2.0", "dictionary_enabled": False},
                      ()),
    "spark_v1": ("spark", {"compression": "snappy", "parquet.page.row.count.limit": 10,
                           "parquet.page.size.row.check.min": 1, "parquet.page.size.row.check.max": 1,
                           "parquet.bloom.filter.enabled#url": "true", "parquet.enable.dictionary#url": "false",
                           "parquet.bloom.filter.expected.ndv#url": 100}, NOT_SPARK),
    "spark_v2": ("spark", {"compression": "zstd", "parquet.writer.version": "PARQUET_2_0",
                           "parquet.enable.dictionary": "false"}, NOT_SPARK),
    "spark_lz4": ("spark", {"compression": "lz4"}, NOT_SPARK),
}  # fmt: skip


def by_pyarrow(table: pa.Table, path: Path, options: dict[str, Any]) -> str:
    pq.write_table(table, path, **options)
    return pa.__version__


def by_duckdb(table: pa.Table, path: Path, options: dict[str, Any]) -> str:
    import duckdb

    given = ", ".join(f"{name} {value!r}" for name, value in options.items())
    with duckdb.connect() as connection:
        connection.register("source", table)
        connection.execute(f"copy source to '{path}' (format parquet, {given})")
    return str(duckdb.__version__)


def by_polars(table: pa.Table, path: Path, options: dict[str, Any]) -> str:
    import polars as pl

    pl.DataFrame(table).write_parquet(path, **options)
    return str(pl.__version__)


def by_datafusion(table: pa.Table, path: Path, options: dict[str, Any]) -> str:
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.from_arrow(table).write_parquet_with_options(path, datafusion.ParquetWriterOptions(**options))
    return str(datafusion.__version__)


def by_spark(table: pa.Table, path: Path, options: dict[str, Any]) -> str:
    import pyspark
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    kind = "INT96" if path.stem == "spark_v1" else "TIMESTAMP_MICROS"
    session.conf.set("spark.sql.parquet.outputTimestampType", kind)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.parquet"
        pq.write_table(table, source, store_schema=False)
        writer = session.read.parquet(str(source)).coalesce(1).write
        for name, value in options.items():
            writer = writer.option(name, str(value))
        writer.parquet(f"{folder}/out")
        (part,) = Path(folder, "out").glob("part-*.parquet")
        shutil.copyfile(part, path)
    return str(pyspark.__version__)


WRITERS = {
    "pyarrow": by_pyarrow,
    "duckdb": by_duckdb,
    "polars": by_polars,
    "datafusion": by_datafusion,
    "spark": by_spark,
}

# ---- the answers -----------------------------------------------------------------------------------------------------


def answers(values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Filters (pyarrow's tuples) and the rows that they select, by plain Python over the table."""
    urls, numbers, floats = values["url"], values["int64"], values["float64"]
    seen = next(v for v in numbers if v is not None and abs(v) > 10)
    small = [None if v is None else math.inf if v == "nan" else float(v) for v in floats]
    cases: list[tuple[list[Any], list[bool]]] = [
        ([["row", ">=", 43]], [k >= 43 for k in range(ROWS)]),
        ([["row", "==", 41]], [k == 41 for k in range(ROWS)]),
        ([["url", "==", urls[57]]], [u == urls[57] for u in urls]),
        ([["url", "==", "https://example.org/nowhere"]], [False] * ROWS),
        ([["url", "<", urls[5]]], [u < urls[5] for u in urls]),
        ([["int64", "==", seen]], [v == seen for v in numbers]),
        ([["int64", "==", 3]], [v == 3 for v in numbers]),
        ([["int64", "!=", seen]], [v is not None and v != seen for v in numbers]),
        ([["float64", "<", 1.5]], [v is not None and v < 1.5 for v in small]),
        ([["float64", "==", 0.0]], [v == 0.0 for v in small]),
        ([["string", "in", ["é", "zebra"]]], [v in ("é", "zebra") for v in values["string"]]),
        ([["string", "==", "yak"]], [False] * ROWS),
        ([["always", ">", 42]], [False] * ROWS),
        ([["nothing", "==", 1]], [False] * ROWS),
        ([["row", "<", 20], ["bool", "==", True]], [k < 20 and values["bool"][k] is True for k in range(ROWS)]),
    ]
    return [{"filter": f, "rows": [k for k, true in enumerate(truth) if true]} for f, truth in cases]


def main(writers: list[str]) -> None:
    table = make_table()
    values = {name: plain(table[name].combine_chunks()) for name in table.column_names}
    HERE.mkdir(exist_ok=True)
    stated = HERE / "expected.json"
    files = json.loads(stated.read_text("utf-8"))["files"] if stated.exists() else {}
    for name, (writer, options, left_out) in FILES.items():
        if writer not in writers:
            continue
        names = [n for n in table.column_names if not n.startswith(left_out)] if left_out else table.column_names
        path = HERE / f"{name}.parquet"
        path.unlink(missing_ok=True)
        version = WRITERS[writer](table.select(names), path, options)
        files[name] = {"writer": f"{writer} {version}", "columns": names}
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    columns = ",\n".join(f"  {json.dumps(n)}: {json.dumps(v, ensure_ascii=False)}" for n, v in values.items())
    known = ",\n".join(f"  {json.dumps(n)}: {json.dumps(files[n])}" for n in FILES if n in files)
    asked = ",\n".join(f"  {json.dumps(a, ensure_ascii=False)}" for a in answers(values))
    text = f'{{"files": {{\n{known}\n}},\n"answers": [\n{asked}\n],\n"columns": {{\n{columns}\n}}}}\n'
    stated.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or list(WRITERS))
