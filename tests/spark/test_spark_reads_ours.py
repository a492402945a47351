"""Spark reads our files: flat types x nulls x encodings x codecs x page versions x Bloom layouts, value for value."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark_tools import load

import pyparq

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

ROWS = 240
NULLS = ("required", "nullable", "sparse", "empty")
"""No nulls allowed; none there; half of them; nothing but nulls."""


def _ints(rng: np.random.Generator, dtype: str) -> pa.Array:
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, ROWS, dtype=dtype, endpoint=True)
    values[:2] = info.min, info.max
    return pa.array(values)


def _floats(rng: np.random.Generator, dtype: str) -> pa.Array:
    values = (rng.normal(size=ROWS) * 10.0 ** rng.integers(-20, 20, ROWS)).astype(dtype)
    values[:6] = np.nan, -0.0, 0.0, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal
    return pa.array(values)


def _bytes(rng: np.random.Generator, lengths: np.ndarray[Any, Any]) -> list[bytes]:
    return [rng.bytes(int(n)) for n in lengths]


def _within(rng: np.random.Generator, kind: pa.DataType, low: int, high: int) -> pa.Array:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(rng.integers(low, high, ROWS), width).cast(kind)


def _decimals(rng: np.random.Generator, precision: int, scale: int) -> pa.Array:
    digits = ["".join(map(str, row)) for row in rng.integers(0, 10, (ROWS, precision))]
    digits[0] = "9" * precision
    texts = [
        ("-" if k % 2 else "") + d[: precision - scale] + "." + d[precision - scale :] for k, d in enumerate(digits)
    ]
    return pa.array([t.rstrip(".") for t in texts]).cast(pa.decimal128(precision, scale))


def columns(rng: np.random.Generator) -> dict[str, pa.Array]:
    """One array of ``ROWS`` values of every flat type that Spark reads without being told how."""
    day, year = 86_400, 365 * 86_400
    found = {f"{s}int{b}": _ints(rng, f"{s}int{b}") for s in ("", "u") for b in (8, 16, 32, 64)}
    found |= {f"float{b}": _floats(rng, f"float{b}") for b in (32, 64)}
    found |= {
        "bool": pa.array(rng.random(ROWS) < 0.5),
        "string": pa.array(["".join(chr(c) for c in rng.integers(0x20, 0xD000, n)) for n in rng.integers(0, 9, ROWS)]),
        "large_string": pa.array([f"v{n}" for n in rng.integers(0, 50, ROWS)], pa.large_string()),
        "binary": pa.array(_bytes(rng, rng.integers(0, 20, ROWS)), pa.binary()),
        "fixed": pa.array(_bytes(rng, np.full(ROWS, 7)), pa.binary(7)),
        "json": pa.array(['{"a": 1}', "[]", "null"] * (ROWS // 3), pa.json_()),
        "date": _within(rng, pa.date32(), -700_000, 700_000),
        "time_us": _within(rng, pa.time64("us"), 0, day * 10**6),
        "time_ns": _within(rng, pa.time64("ns"), 0, day * 10**9),
        **{
            f"ts_{unit}{zone or ''}": _within(rng, pa.timestamp(unit, zone), -100 * year * per, 100 * year * per)
            for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
            for zone in (None, "UTC")
        },
        **{f"decimal{p}": _decimals(rng, p, s) for p, s in ((1, 0), (9, 2), (18, 18), (19, 3), (38, 10))},
    }
    return found


def make(rng: np.random.Generator, repeat: bool) -> pa.Table:
    """Every type in every kind of nullness. ``repeat``: few distinct values, so that a dictionary pays."""
    arrays, fields = [], []
    for (name, values), nulls in itertools.product(columns(rng).items(), NULLS):
        array = values.take(pa.array(rng.integers(0, 12, ROWS))) if repeat else values
        if nulls in ("sparse", "empty"):
            gone = np.ones(ROWS, bool) if nulls == "empty" else rng.random(ROWS) < 0.5
            array = array.take(pa.array(np.arange(ROWS), mask=gone))
        arrays.append(array)
        fields.append(pa.field(f"{name}_{nulls}", array.type, nullable=nulls != "required"))
    return pa.table(arrays, schema=pa.schema(fields))


def as_spark_gives(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values in the type that Spark has for them."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if array.type == pa.timestamp("ns") or array.type == pa.timestamp("ns", "UTC"):
        array = array.cast(pa.int64())
    return array.cast(kind)


def bits(array: pa.Array) -> pa.Array:
    """Floats as integers with one NaN, so that zeros keep their signs and NaNs compare."""
    if not pa.types.is_floating(array.type):
        return array
    wide = array.to_numpy(zero_copy_only=False).astype("f8" if array.type == pa.float64() else "f4")
    wide[np.isnan(wide)] = np.nan
    return pa.array(wide.view(f"i{wide.itemsize}"), mask=np.asarray(array.is_null()))


EXPECTED_TYPES = {
    "uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0),
    "fixed": pa.binary(), "json": pa.string(), "large_string": pa.string(),
    "time_us": pa.time64("ns"), "time_ns": pa.time64("ns"),
    "ts_s": pa.timestamp("us"), "ts_ms": pa.timestamp("us"),
    "ts_sUTC": pa.timestamp("us", "UTC"), "ts_msUTC": pa.timestamp("us", "UTC"),
    "ts_ns": pa.int64(), "ts_nsUTC": pa.int64(),
}  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")
    spark.conf.unset("spark.sql.legacy.parquet.nanosAsLong")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
def test_every_flat_type(session: Any, tmp_path: Path, codec: str, version: str, layout: str, dictionary: bool) -> None:
    seed = ["none", "snappy", "zstd", "gzip"].index(codec) * 8 + (version == "2.0") * 4 + (layout == "footer") * 2
    table = make(np.random.default_rng(seed + dictionary), repeat=dictionary)
    path = tmp_path / "ours.parquet"
    pyparq.write_table(
        table, path, compression=codec, data_page_version=version, bloom_filter_layout=layout, bloom_filters=True,
        use_dictionary=dictionary, max_rows_per_page=50, row_group_size=ROWS // 2 + 10,
    )  # fmt: skip
    found = load(session, path).toArrow()
    assert found.column_names == table.column_names
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = found[name].type
        base = name.rsplit("_", 1)[0]
        assert kind == EXPECTED_TYPES.get(base, column.type), name
        expected = bits(as_spark_gives(column.combine_chunks(), kind))
        assert bits(found[name].combine_chunks()).equals(expected), name


def test_the_files_are_what_the_cases_say(tmp_path: Path) -> None:
    """Dictionaries, page versions and Bloom filters really vary over the cases above."""
    for dictionary, version in itertools.product((True, False), ("1.0", "2.0")):
        path = tmp_path / "ours.parquet"
        table = make(np.random.default_rng(5), repeat=dictionary)
        pyparq.write_table(
            table, path, use_dictionary=dictionary, data_page_version=version, bloom_filters=True, max_rows_per_page=50
        )
        with pyparq.ParquetFile(path) as file:
            chunk = file.metadata.row_group(0).column("large_string_sparse")
            assert chunk.has_dictionary_page is dictionary
            assert chunk.bloom_filter_offset
            kinds = {p.type for p in file.pages(0, "large_string_sparse")} - {"dictionary"}
            assert kinds == {"data v1" if version == "1.0" else "data v2"}


def test_many_values(session: Any, tmp_path: Path) -> None:
    """Pages of the default size, long runs, dictionaries that overflow, several row groups."""
    rows = 150_000
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "sorted": np.arange(rows),
            "runs": pa.array(np.repeat(np.arange(rows // 500), 500), pa.int32()),
            "wide": [f"{k:030d}" for k in rng.permutation(rows)],
            "few": pa.array([None if k % 5 == 0 else f"c{k % 200}" for k in range(rows)]),
            "flag": rng.random(rows) < 0.01,
            "money": pa.array(rng.integers(0, 10**12, rows)).cast(pa.decimal128(20, 0)),
        }
    )
    for version in ("1.0", "2.0"):
        path = tmp_path / f"v{version}.parquet"
        pyparq.write_table(
            table, path, data_page_version=version, row_group_size=40_000, dictionary_pagesize_limit=100_000,
            bloom_filters=["wide", "sorted"], column_encoding={"flag": "RLE"} if version == "2.0" else None,
        )  # fmt: skip
        found = load(session, path).toArrow()
        for name in table.column_names:
            assert found[name].combine_chunks().equals(table[name].combine_chunks()), (version, name)


ENCODED = {
    "DELTA_BINARY_PACKED": ("int32", "int64", "uint16", "date", "ts_usUTC", "decimal9", "decimal18"),
    "DELTA_LENGTH_BYTE_ARRAY": ("string", "binary"),
    "DELTA_BYTE_ARRAY": ("string", "binary", "fixed", "decimal38"),
    "BYTE_STREAM_SPLIT": ("float32", "float64", "int32", "int64", "fixed", "decimal38"),
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_other_encoding(session: Any, tmp_path: Path, version: str) -> None:
    rng = np.random.default_rng(9)
    types = columns(rng)
    table = pa.table(
        {
            f"{encoding} {name} {nulls}": types[name].take(
                pa.array(np.arange(ROWS), mask=rng.random(ROWS) < (0.4 if nulls else 0))
            )
            for encoding, names in ENCODED.items()
            for name in names
            for nulls in (False, True)
        }
    )
    path = tmp_path / "ours.parquet"
    pyparq.write_table(
        table, path, column_encoding={name: name.split()[0] for name in table.column_names}, max_rows_per_page=100,
        data_page_version=version, compression="lz4_raw",
    )  # fmt: skip
    with pyparq.ParquetFile(path) as file:
        for chunk in file.metadata.row_group(0).columns:
            assert set(chunk.encodings) == {"RLE", chunk.path_in_schema.split()[0]}
    found = load(session, path).toArrow()
    for name, column in zip(table.column_names, table.columns, strict=True):
        expected = bits(as_spark_gives(column.combine_chunks(), found[name].type))
        assert bits(found[name].combine_chunks()).equals(expected), name


def test_no_rows(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "ours.parquet"
    table = make(np.random.default_rng(1), repeat=False).slice(0, 0)
    pyparq.write_table(table, path, bloom_filters=True)
    found = load(session, path)
    assert found.columns == table.column_names
    assert found.count() == 0


REFUSED = {
    "uuid": (pa.array([b"0123456789abcdef", None], pa.uuid()), "binary", lambda a: a.storage.cast(pa.binary())),
    "half": (
        pa.array(np.array([1.5, -0.0], np.float16)),
        "binary",
        lambda a: pa.array([v.tobytes() for v in a.to_numpy()]),
    ),
    "time_ms": (pa.array([1, 86_399_999], pa.time32("ms")), "int", lambda a: a.cast(pa.int32())),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_spark_takes_only_as_something_else(session: Any, tmp_path: Path, name: str) -> None:
    """Spark 4.3 has no such types; with a schema it reads the bytes (``PARQUET_TYPE_ILLEGAL`` without)."""
    array, kind, reading = REFUSED[name]
    path = tmp_path / "ours.parquet"
    pyparq.write_table(pa.table({name: array}), path)
    with pytest.raises(Exception, match="PARQUET_TYPE_ILLEGAL"):
        load(session, path)
    found = load(session, path, schema=f"{name} {kind}").toArrow()
    assert found[name].combine_chunks().equals(reading(array))
