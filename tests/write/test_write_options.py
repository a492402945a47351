"""Write options: checked when given, resolved per column, wrong ones named."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.schema.from_text import schema
from pyparq.errors import ColumnNotFoundError, OptionError, UnsupportedError
from pyparq.option_values import SortKey, sort_keys
from pyparq.options import WriteOptions
from pyparq.write.column_plans import make_plan

SCHEMA = schema({"id": "int64", "name": "string?", "flag": "bool", "x": "double?"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compresion": "zstd"}, "did you mean 'compression'"),
        ({"compression": "sappy"}, "sappy"),
        ({"compression": {"id": "lzo"}}, "LZO is only read"),
        ({"compression": "zstd", "compression_level": 50}, "levels go from"),
        ({"compression": "snappy", "compression_level": 3}, "no compression levels"),
        ({"row_group_size": 0}, "row_group_size must be"),
        ({"row_group_size": True}, "row_group_size must be"),
        ({"row_group_bytes": 0}, "row_group_bytes must be"),
        ({"data_page_size": -1}, "data_page_size must be"),
        ({"data_page_size": 1 << 31}, "at most 1 GiB"),
        ({"max_rows_per_page": 1.5}, "max_rows_per_page must be"),
        ({"dictionary_pagesize_limit": 1 << 40}, "dictionary_pagesize_limit"),
        ({"data_page_version": "3.0"}, "data_page_version"),
        ({"column_encoding": {"id": "RLE"}}, "RLE cannot hold INT64.*column id"),
        ({"column_encoding": {"id": "PLANE"}}, "unknown encoding 'PLANE'"),
        ({"column_encoding": {"flag": "RLE_DICTIONARY"}}, "cannot hold BOOLEAN.*column flag"),
        ({"write_statistics": 7}, "write_statistics must be"),
        ({"write_page_index": "yes"}, "write_page_index must be True or False"),
    ],
)
def test_wrong_options_say_what_is_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        pyparq.ParquetWriter(io.BytesIO(), SCHEMA, **options)


@pytest.mark.parametrize("option", ["use_dictionary", "write_statistics", "bloom_filters"])
def test_unknown_columns_in_lists(option: str) -> None:
    with pytest.raises(ColumnNotFoundError, match="did you mean 'name'"):
        pyparq.ParquetWriter(io.BytesIO(), SCHEMA, **{option: ["nam"]})


@pytest.mark.parametrize("option", ["compression", "compression_level", "column_encoding", "use_dictionary"])
def test_unknown_columns_in_mappings(option: str) -> None:
    value = {"compression": "zstd", "compression_level": 1, "column_encoding": "PLAIN", "use_dictionary": False}[option]
    with pytest.raises(ColumnNotFoundError, match="did you mean 'name'"):
        pyparq.ParquetWriter(io.BytesIO(), SCHEMA, **{option: {"nam": value}})


def test_options_are_frozen_and_have_the_promised_defaults() -> None:
    options = WriteOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.compression = "zstd"  # type: ignore[misc]
    assert (options.max_rows_per_page, options.data_page_size, options.row_group_size) == (20_000, 1 << 20, 1 << 20)
    assert (options.dictionary_pagesize_limit, options.write_page_checksum, options.write_page_index) == (
        1 << 20,
        True,
        True,
    )


def test_one_level_for_columns_with_and_without_codec() -> None:
    plan = make_plan(
        SCHEMA, WriteOptions(compression={"id": "zstd", "name": None, "flag": None, "x": "gzip"}, compression_level=5)
    )
    assert [(c.codec, c.level) for c in plan.columns] == [(6, 5), (0, None), (0, None), (2, 5)]


def test_plans_per_column() -> None:
    plan = make_plan(SCHEMA, WriteOptions(use_dictionary=["id"], column_encoding={"flag": "RLE"}, bloom_filters=True))
    assert [c.dictionary for c in plan.columns] == [True, False, False, False]
    assert [c.encoding for c in plan.columns] == [None, None, 3, None]
    assert [c.bloom is not None for c in plan.columns] == [True, True, False, True]
    assert [c.column for c in plan.columns] == [0, 1, 2, 3]


def test_sort_keys_in_every_form() -> None:
    assert sort_keys(None) == ()
    assert sort_keys("a") == (SortKey("a"),)
    assert sort_keys(["a", ("b",), ("c", "descending"), ("d", "ascending", "nulls_first"), SortKey("e", True)]) == (
        SortKey("a"), SortKey("b"), SortKey("c", True), SortKey("d", False, True), SortKey("e", True),
    )  # fmt: skip


def test_types_that_parquet_does_not_have() -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    with pytest.raises(UnsupportedError, match="column x"):
        pyparq.write_table(pa.table({"x": union}), io.BytesIO())


def test_a_dict_of_options_may_change_between_two_files(tmp_path: Path) -> None:
    """Plans are kept for the next file of a schema. They must not keep what the caller changes."""
    table, codecs = pyparq.read_table(_written(tmp_path / "first.parquet")), {"id": "zstd"}
    for codec in ("zstd", "gzip"):
        codecs["id"] = codec
        pyparq.write_table(table, tmp_path / "out.parquet", compression=codecs)
        assert pq.read_metadata(tmp_path / "out.parquet").row_group(0).column(0).compression == codec.upper()


def _written(path: Path) -> Path:
    pyparq.write_table({"id": [1, 2, 3]}, path)
    return path
