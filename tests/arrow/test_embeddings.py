"""Arrays of two and more dimensions: lists of one length, in files, in other libraries and back, without a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.ingest import ingest

RNG = np.random.default_rng(7)
ARRAYS = {
    "float32": RNG.random((50, 384), dtype=np.float32),
    "float64": RNG.random((50, 3)),
    "int8": RNG.integers(-9, 9, (50, 16), dtype=np.int8),
    "bool": RNG.random((50, 3)) < 0.5,
    "three dimensions": RNG.integers(0, 255, (50, 4, 2), dtype=np.uint8),
    "not contiguous": np.asfortranarray(RNG.random((50, 5))),
    "reversed": RNG.random((50, 5))[::-1],
    "one row": RNG.random((1, 5)),
    "no rows": np.zeros((0, 5), np.float32),
    "times": np.arange(100).astype("M8[us]").reshape(50, 2),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_go_to_files_and_back(kind: str, tmp_path: Path) -> None:
    array, path = ARRAYS[kind], tmp_path / "f.parquet"
    pyparq.write_table({"id": np.arange(len(array)), "v": array}, path, row_group_size=20)
    found = pyparq.read_table(path)["v"].to_numpy()
    assert found.dtype == array.dtype
    assert found.shape == array.shape or not len(array)
    assert np.array_equal(found.reshape(array.shape), array)
    assert pq.read_table(path)["v"].to_pylist() == array.tolist()
    assert pl.read_parquet(path)["v"].to_list() == array.tolist()


def test_nothing_is_copied(tmp_path: Path) -> None:
    array = RNG.random((50, 384), dtype=np.float32)
    _, batches = ingest({"v": array})
    (batch,) = batches
    assert np.shares_memory(batch.columns[0].to_numpy(), array)
    pyparq.write_table({"v": array}, tmp_path / "f")
    column = pyparq.read_table(tmp_path / "f")["v"]
    assert np.shares_memory(column.to_numpy(), column.to_numpy())


def test_masked_items_are_nulls(tmp_path: Path) -> None:
    array = np.ma.MaskedArray(np.arange(6.0).reshape(3, 2), [[0, 1], [0, 0], [1, 1]])
    pyparq.write_table({"v": array}, tmp_path / "f")
    assert pq.read_table(tmp_path / "f")["v"].to_pylist() == [[0.0, None], [2.0, 3.0], [None, None]]
    found = pyparq.read_table(tmp_path / "f")["v"].to_numpy()
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("rows", [
    [[1.0, 2.0], None, [3.0, 4.0]], [[1.0], [2.0, 3.0]], [["a", "b"]], [[]], [],
], ids=str)  # fmt: skip
def test_other_lists_are_objects(rows: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": rows}), tmp_path / "f")
    found = pyparq.read_table(tmp_path / "f")["v"].to_numpy()
    assert (found.dtype, found.tolist()) == (np.dtype(object), rows)


def test_lists_of_one_length_of_other_writers(tmp_path: Path) -> None:
    """Spark and polars have no type for it, or write plain lists."""
    array = RNG.random((50, 4), dtype=np.float32)
    pq.write_table(pa.table({"v": pa.array(array.tolist(), pa.list_(pa.float32()))}), tmp_path / "f", row_group_size=7)
    assert np.array_equal(pyparq.read_table(tmp_path / "f")["v"].to_numpy(), array)


@pytest.mark.parametrize(("text", "type_"), [
    ("float32[384]", pa.list_(pa.field("element", pa.float32(), False), 384)),
    ("float32?[3]", pa.list_(pa.field("element", pa.float32()), 3)),
    ("uint8[3][2]", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.uint8(), False), 3), False), 2)),
    ("timestamp[us][2]", pa.list_(pa.field("element", pa.timestamp("us"), False), 2)),
    ("fixed[16][2]", pa.list_(pa.field("element", pa.binary(16), False), 2)),
    ("binary[16]", pa.binary(16)),
])  # fmt: skip
def test_text_of_schemas(text: str, type_: Any) -> None:
    made = pyparq.schema({"v": f"{text}?", "w": text})
    assert pa.schema(made) == pa.schema([pa.field("v", type_), pa.field("w", type_, False)])
    assert pyparq.schema({"v": str(made.field("w").type)}).field("v").type.format == made.field("w").type.format


def test_bad_texts() -> None:
    for text in ("float32[0]", "float32[", "float32[x]", "float32[1", "fixed_size_list[3]", "float32[12345678901]"):
        with pytest.raises(pyparq.SchemaError):
            pyparq.schema({"v": text})
    with pytest.raises(pyparq.SchemaError, match="item"):
        pyparq.schema({"v": "fixed_size_list[0]<int8>"})


def test_a_declared_length_is_checked(tmp_path: Path) -> None:
    pyparq.write_table({"v": [[1.0, 2.0]]}, tmp_path / "f", schema={"v": "float32[2]"})
    assert pq.read_schema(tmp_path / "f").field("v").type.list_size == 2
    with pytest.raises(pyparq.DataError):
        pyparq.write_table({"v": [[1.0, 2.0, 3.0]]}, tmp_path / "g", schema={"v": "float32[2]"})
