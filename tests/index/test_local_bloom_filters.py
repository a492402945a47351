"""Bloom filters of a local file, asked by one call: damage is told, and what they took is counted."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import pyparq
from pyparq import col
from pyparq.errors import CorruptIndexWarning


def test_a_damaged_filter_of_a_local_file_is_told_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"id": pa.array(np.random.default_rng(1).permutation(4000) * 2)})
    pyparq.write_table(table, path, row_group_size=1000, bloom_filters=["id"], write_page_index=False)
    with pyparq.ParquetFile(path) as file:
        offset = file.metadata.row_group(1).column("id").bloom_filter_offset
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)
    for tail in (8, 1 << 20):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with pyparq.ParquetFile(path, tail_size=tail) as file:
                scan = file.scan(filters=col("id") == 4001)
                assert scan.to_table().num_rows == 0
                assert [stage.row_groups_after for stage in scan.explain().stages if "bloom" in stage.name] == [1]
        assert [w.category for w in told] == [CorruptIndexWarning]
        for wanted in (0, 2, 4444):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CorruptIndexWarning)
                found = pyparq.read_table(path, filters=col("id") == wanted, tail_size=tail)
            assert found.to_pydict() == {"id": [wanted]}


def test_a_local_file_counts_what_its_filters_took(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"id": pa.array(np.random.default_rng(1).permutation(40_000) * 2)})
    pyparq.write_table(table, path, row_group_size=10_000, bloom_filters=["id"])
    costs = {}
    for tail in (8, 1 << 24):
        with pyparq.ParquetFile(path, tail_size=tail) as file:
            explained = file.scan(filters=(col("id") == 40_003) & (col("id") < 70_000)).explain()
        (stage,) = [stage for stage in explained.stages if stage.name == "bloom filter"]
        assert (stage.asked, stage.row_groups_before, stage.row_groups_after) == (4, 4, 0)
        costs[tail] = stage.requests, stage.bytes
        assert explained.bytes_fetched >= stage.bytes
    assert costs[1 << 24] == (0, 0)
    assert costs[8][0] == 8  # header and block
    assert costs[8][1] <= 4 * 64
