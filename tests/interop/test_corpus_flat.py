"""Other people's files: every plain file of apache/parquet-testing reads with right values, or says why not
(``test_corpus_whole`` holds that none is forgotten).

Right means: as pyarrow reads it, bit for bit (and as DuckDB does, and as the expected CSV says, where there is one).
Each file is also read column by column, row group by row group and with filters, and compared with the whole.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import corpus_path

import pyparq
from pyparq import col
from pyparq.errors import ChecksumError, EncryptionError, FilterError

CORPUS = corpus_path() or Path("/nowhere")
DATA = CORPUS / "data"

READ = """
    alltypes_dictionary alltypes_plain alltypes_plain.snappy alltypes_tiny_pages alltypes_tiny_pages_plain binary
    binary_truncated_min_max byte_array_decimal column_chunk_key_value_metadata concatenated_gzip_members
    data_index_bloom_encoding_stats data_index_bloom_encoding_with_length datapage_v1-snappy-compressed-checksum
    datapage_v1-uncompressed-checksum datapage_v2_empty_datapage.snappy dict-page-offset-zero fixed_length_byte_array
    fixed_length_decimal fixed_length_decimal_legacy float16_nonzeros_and_nans float16_zeros_and_nans
    floating_orders_nan_count hadoop_lz4_compressed hadoop_lz4_compressed_larger int32_decimal int32_with_null_pages
    int64_decimal lz4_raw_compressed lz4_raw_compressed_larger nan_in_stats nation.dict-malformed
    non_hadoop_lz4_compressed overflow_i16_page_cnt page_v2_empty_compressed plain-dict-uncompressed-checksum
    rle-dict-snappy-checksum rle_boolean_encoding single_nan sort_columns unknown-logical-type

    geospatial/crs-arbitrary-value geospatial/crs-default geospatial/crs-geography geospatial/crs-projjson
    geospatial/crs-srid geospatial/geography-lines geospatial/geography-points geospatial/geography-polygons
    geospatial/geospatial geospatial/geospatial-with-nan

    list_columns map_no_value nested_lists.snappy nested_maps.snappy nested_structs.rust nonnullable.impala null_list
    nullable.impala nulls.snappy old_list_structure repeated_no_annotation repeated_primitive_no_list

    byte_stream_split.zstd byte_stream_split_extended.gzip datapage_v2.snappy delta_binary_packed delta_byte_array
    delta_encoding_optional_column delta_encoding_required_column delta_length_byte_array
""".split()  # noqa: SIM905
"""Read with the values that pyarrow reads."""

OTHERWISE = {"incorrect_map_schema": [{"my_map": [("parent", "another"), ("name", "report")]}]}
"""Read, but not by pyarrow: the values."""
BEYOND_NANOSECONDS = ("int96_from_spark",)
"""Refused by default: INT96 that no timestamp[ns] holds."""

DAMAGED = ("datapage_v1-corrupt-checksum", "rle-dict-uncompressed-corrupt-checksum")
HUGE = ("large_string_map.brotli",)
"""Two values of 1 GiB: not read by default."""

EXPECTED_CSV = {
    "delta_binary_packed": "delta_binary_packed_expect.csv",
    "delta_byte_array": "delta_byte_array_expect.csv",
    "delta_encoding_optional_column": "delta_encoding_optional_column_expect.csv",
    "delta_encoding_required_column": "delta_encoding_required_column_expect.csv",
}

pytestmark = pytest.mark.usefixtures("corpus")


def path_of(name: str) -> Path:
    return DATA / f"{name}.parquet"


@lru_cache(maxsize=4)
def whole(name: str) -> pa.Table:
    return pq.read_table(path_of(name))


# ---- equal to the bit


def plain(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def identical(ours: Any, theirs: Any) -> bool:
    """Same type, same nulls, same bits: NaN equals itself, and -0.0 does not equal 0.0."""
    a, b = plain(ours), plain(theirs)
    if a.type != b.type or len(a) != len(b):
        return False
    if not pa.types.is_floating(a.type):
        return bool(a.equals(b))
    if not a.is_valid().equals(b.is_valid()):
        return False
    bits = f"u{a.type.bit_width // 8}"
    first, second = (x.drop_null().to_numpy(zero_copy_only=False).view(bits) for x in (a, b))
    return np.array_equal(first, second)


def assert_identical(ours: pa.Table, theirs: pa.Table) -> None:
    assert ours.column_names == theirs.column_names
    assert ours.num_rows == theirs.num_rows
    for name in ours.column_names if len(set(ours.column_names)) == ours.num_columns else []:
        assert identical(ours.column(name), theirs.column(name)), name


# ---- whole, in parts


@pytest.mark.parametrize("name", READ)
def test_whole(name: str) -> None:
    ours = pyparq.read_table(path_of(name)).to_arrow()
    assert_identical(ours, whole(name))
    assert_identical(pyparq.read_table(path_of(name), use_page_index=False, use_threads=False).to_arrow(), whole(name))


@pytest.mark.parametrize("name", OTHERWISE)
def test_whole_where_pyarrow_fails(name: str) -> None:
    assert pyparq.read_table(path_of(name)).to_arrow().to_pylist() == OTHERWISE[name]


@pytest.mark.parametrize("name", READ)
def test_single_columns(name: str) -> None:
    table = whole(name)
    with pyparq.ParquetFile(path_of(name)) as file:
        for column in table.column_names:
            one = file.read([column]).to_arrow()
            assert one.column_names == [column]
            assert identical(one.column(0), table.column(column)), column


@pytest.mark.parametrize("name", READ)
def test_row_groups(name: str) -> None:
    table = whole(name)
    with pyparq.ParquetFile(path_of(name)) as file:
        at = 0
        for k in range(file.num_row_groups):
            part = file.read_row_group(k).to_arrow()
            assert_identical(part, table.slice(at, part.num_rows))
            at += part.num_rows
        assert at == table.num_rows == file.metadata.num_rows


@pytest.mark.parametrize("name", READ)
def test_batches(name: str) -> None:
    """Slices of seven rows, one after another, are the whole."""
    table = whole(name)
    with pyparq.ParquetFile(path_of(name)) as file:
        size = 7 if table.num_rows < 2000 else 1999
        batches = list(file.iter_batches(size))
        assert all(0 < b.num_rows <= size for b in batches)
        together = pyparq.Table(file.schema_arrow, batches).to_arrow()
    assert_identical(together, table)


# ---- filters against brute force


def key(value: Any) -> Any:
    """NaN above every number and equal to itself; the zeros equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


OPS: dict[str, Any] = {
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
}


def is_filterable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType))


def literals(values: list[Any]) -> list[Any]:
    """Two values that occur; Python's own kinds."""
    there = [v for v in values if v is not None]
    chosen = [there[k] for k in sorted({0, len(there) // 2})] if there else []
    return [v.to_pydatetime() if hasattr(v, "to_pydatetime") else v for v in chosen]


@pytest.mark.sweep(3)
@pytest.mark.filterwarnings("ignore:page index ignored.*null counts:pyparq.errors.CorruptIndexWarning")
@pytest.mark.parametrize("name", [n for n in READ if "geo" not in n])
def test_filters(name: str) -> None:
    """Every column with values of its own, by == < >= != and null tests: the rows of the whole that pass."""
    table = whole(name)
    rows = pa.array(np.arange(table.num_rows))
    with pyparq.ParquetFile(path_of(name)) as file:
        first = table.column_names[0]
        for column in table.column_names:
            if not is_filterable(table.schema.field(column).type):
                continue
            values = table.column(column).to_pylist()
            large = table.num_rows > 5000
            for literal in literals(values)[: 1 if large else 2]:
                for op, passes in list(OPS.items())[: 2 if large else 4]:
                    mask = [v is not None and passes(key(v), key(literal)) for v in values]
                    kept = rows.filter(pa.array(mask))
                    got = file.read(list(dict.fromkeys([first, column])), [(column, op, literal)]).to_arrow()
                    assert identical(got.column(column), pc.take(table.column(column), kept)), (column, op, literal)
                    assert identical(got.column(first), pc.take(table.column(first), kept)), (column, op, literal)
            nulls = file.read([column], col(column).is_null()).num_rows
            assert nulls == table.column(column).null_count
            assert file.read([column], col(column).is_valid()).num_rows == table.num_rows - nulls


def test_filters_without_an_order() -> None:
    """Geometry has no order: a comparison is refused and named, a null test is not."""
    path = path_of("geospatial/geospatial")
    with pytest.raises(FilterError, match="geometry"):
        pyparq.read_table(path, filters=col("geometry") == b"x")
    assert (
        pyparq.read_table(path, filters=col("geometry").is_null()).num_rows
        == whole("geospatial/geospatial").column("geometry").null_count
    )


def test_int96() -> None:
    """Instants beyond the range of 64 bits are refused (pyarrow wraps them around), and read in a coarser unit."""
    path = path_of("int96_from_spark")
    at = col("a") == dt.datetime(2024, 1, 1, 20, 34, 56, 123456)
    for filters in (None, at):
        with pytest.raises(pyparq.DataError, match=r'="us".*row group 0, column a'):
            pyparq.read_table(path, filters=filters, coerce_int96_timestamp_unit="ns")
    exact = pyparq.read_table(path, filters=at).to_arrow()  # of Spark's files in microseconds
    assert exact["a"].cast(pa.int64()).to_pylist() == [1704141296123456]
    found = pyparq.read_table(path, coerce_int96_timestamp_unit="ms").to_arrow()["a"].cast(pa.int64()).to_pylist()
    spark = [1704141296123, 1704070800000, 253402225200000, 1735599600000, None, 9089380393200000]
    assert found == spark  # the last one is the year 290000, whose days Spark wrapped around
    kept = pyparq.read_table(path, filters=at, coerce_int96_timestamp_unit="ms").to_arrow()
    assert kept.num_rows == 0  # .123456 is finer than what is shown


# ---- other witnesses


DUCKDB_DIFFERS = {
    "byte_stream_split_extended.gzip": "DuckDB refuses it",
    "map_no_value": "DuckDB refuses it",
    "nested_structs.rust": "instants that Python cannot hold",
}


@pytest.mark.parametrize("name", [n for n in READ if "geo" not in n and n not in DUCKDB_DIFFERS])
def test_as_duckdb_reads_it(name: str) -> None:
    ours = pyparq.read_table(path_of(name)).to_arrow()
    theirs = duckdb.sql(f"from read_parquet('{path_of(name)}')").to_arrow_table()
    assert theirs.num_rows == ours.num_rows
    for column in theirs.column_names:
        got = [simple(v) for v in ours.column(column).to_pylist()]
        assert got == [simple(v) for v in theirs.column(column).to_pylist()], column


def simple(value: Any) -> Any:
    """What both mean: zones, units and kinds of bytes aside."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, list):
        return [simple(v) for v in value]
    if isinstance(value, tuple):
        return tuple(simple(v) for v in value)
    if isinstance(value, dict):
        return {k: simple(v) for k, v in value.items()}
    return value


@pytest.mark.parametrize("name", EXPECTED_CSV)
def test_expected_csv(name: str) -> None:
    with open(DATA / EXPECTED_CSV[name], newline="") as file:
        header, *lines = csv.reader(file)
    table = pyparq.read_table(path_of(name)).to_arrow()
    assert [c.strip() for c in header] == [c.strip(" :") for c in table.column_names]
    assert len(lines) == table.num_rows
    for k, column in enumerate(table.columns):
        assert ["" if v is None else str(v) for v in column.to_pylist()] == [line[k] for line in lines]


# ---- what is not read


@pytest.mark.filterwarnings("ignore:the footer's signature was not checked")
def test_encrypted_without_keys() -> None:
    files = sorted(DATA.rglob("*.parquet.encrypted"))
    assert len(files) > 10
    for path in files:
        with pytest.raises(EncryptionError, match="encrypted"):
            pyparq.read_table(path)


# ---- checksums, right and wrong


def test_wrong_page_checksums() -> None:
    """Page 0 of column a and page 1 of column b are wrong; the others are right."""
    path = path_of("datapage_v1-corrupt-checksum")
    for column, page in (("a", 0), ("b", 1)):
        with pytest.raises(ChecksumError) as caught:
            pyparq.read_table(path, columns=[column])
        assert (caught.value.column, caught.value.page, caught.value.row_group) == (column, page, 0)
    assert_identical(pyparq.read_table(path, verify_checksums=False).to_arrow(), pq.read_table(path))
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(path, page_checksum_verification=True)


def test_wrong_dictionary_checksums() -> None:
    path = path_of("rle-dict-uncompressed-corrupt-checksum")
    columns = pq.read_schema(path).names
    assert len(columns) == 2
    for column in columns:
        with pytest.raises(ChecksumError) as caught:
            pyparq.read_table(path, columns=[column])
        assert (caught.value.column, caught.value.page) == (column, "dictionary")
    assert_identical(pyparq.read_table(path, verify_checksums=False).to_arrow(), pq.read_table(path))


@pytest.mark.parametrize(
    "name",
    [
        "datapage_v1-snappy-compressed-checksum", "datapage_v1-uncompressed-checksum",
        "plain-dict-uncompressed-checksum", "rle-dict-snappy-checksum",
    ],
)  # fmt: skip
def test_right_checksums_are_checked(name: str) -> None:
    """The pages carry CRCs, and one changed byte is noticed."""
    data = bytearray(path_of(name).read_bytes())
    with pyparq.ParquetFile(bytes(data)) as file:
        (first, *_) = file.pages(0, 0)
        assert first.has_crc
        locations = file.page_locations(0, 0)
        assert locations is not None
        first_data = int(locations.offsets[0])
        end = first_data if first.ordinal == "dictionary" else first_data + int(locations.sizes[0])
        data[end - 1] ^= 1  # the last byte of the first page's body
    with pytest.raises(ChecksumError):
        pyparq.read_table(bytes(data))


# ---- single facts that the notes tell


def test_unknown_annotation_reads_as_its_physical_type() -> None:
    with pyparq.ParquetFile(path_of("unknown-logical-type")) as file:
        assert [f.type.kind for f in file.schema_arrow] == ["string", "binary"]


def test_nan_in_old_statistics_is_not_believed() -> None:
    """The maximum is NaN: nothing may be pruned by it."""
    found = pyparq.read_table(path_of("nan_in_stats"), filters=col("x") >= 1.0).to_arrow()
    assert found.num_rows == 2


def test_key_values_of_column_chunks() -> None:
    with pyparq.ParquetFile(path_of("column_chunk_key_value_metadata")) as file:
        found = [c.key_value_metadata for c in file.metadata.row_group(0).columns]
    assert found[0] == {b"foo": b"bar", b"thisiskeywithoutvalue": b""}


def test_bloom_filters_of_the_corpus() -> None:
    for name in ("data_index_bloom_encoding_stats", "data_index_bloom_encoding_with_length"):
        with pyparq.ParquetFile(path_of(name)) as file:
            bloom = file.bloom_filter(0, "String")
            assert bloom is not None
            assert bloom.check(["Hello", "This is", "a", "test", "How", "are you", "doing ", "today"]).all()
            assert not bloom.check("I'm not there")
            explained = file.scan(filters=col("String") == "I'm not there").explain()
            assert explained.rows == 0
            assert file.read(filters=col("String") == "Hello").num_rows == 1


@pytest.mark.slow
def test_two_gibibytes_in_one_column() -> None:
    """Values of 1 GiB each, which int32 offsets do not reach together; takes some 5 GiB of memory."""
    with pyparq.ParquetFile(path_of(HUGE[0])) as file:
        maps = file.read().to_arrow()["arr"].combine_chunks()
        assert (maps.type.key_type, maps.offsets.to_pylist()) == (pa.large_string(), [0, 1, 2])
        assert pc.binary_length(maps.keys).to_pylist() == [1 << 30] * 2
        letters = np.frombuffer(maps.keys.buffers()[2], np.uint8)
        assert (len(letters), letters.min(), letters.max()) == (2 << 30, ord("a"), ord("a"))
        assert maps.items.to_pylist() == [1, 1]
        del maps, letters
        for batch in file.iter_batches():  # one type for all: two batches
            assert batch.num_rows == 1
            assert pa.record_batch(batch).schema.field("arr").type == pa.map_(pa.string(), pa.int32())
