"""Column chunks in other files (`file_path` in the footer): one typed error for each of them, and never wrong rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hostile_structs import Workpiece

import pyparq
from pyparq import col
from pyparq.errors import OptionError, UnsupportedError

N = 5000
TABLE = pa.table({"a": np.arange(N), "b": [f"text {k % 97}" for k in range(N)], "c": np.arange(N) / 8})


def split(paths: dict[str, str]) -> bytes:
    """A file of pyarrow's that says of some columns that their chunks are in other files."""
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=2000, data_page_size=1000, write_page_index=True)
    piece = Workpiece(sink.getvalue())
    for row_group in piece.meta.row_groups:
        for chunk in row_group.columns:
            chunk.file_path = paths.get(chunk.meta_data.path_in_schema[0])
    return bytes(piece.with_footer(piece.meta))


@pytest.mark.parametrize("elsewhere", ["b.parquet", "deep/er/b.parquet", "../b.parquet", "/etc/passwd", "b\0"])
def test_such_a_column_is_refused_and_the_others_are_read(tmp_path: Path, elsewhere: str) -> None:
    data, path = split({"b": elsewhere}), tmp_path / "main.parquet"
    path.write_bytes(data)
    pq.write_table(TABLE, tmp_path / "b.parquet")  # it is not opened
    for source in (path, data):
        assert pyparq.read_table(source, columns=["a", "c"]).to_arrow().equals(TABLE.select(["a", "c"]))
        for ask in (
            lambda source=source: pyparq.read_table(source),
            lambda source=source: pyparq.read_table(source, columns=["b"]),
            lambda source=source: pyparq.read_table(source, columns=["a"], filters=col("b") == "text 5"),
            lambda source=source: pyparq.read_table(source, filters=col("a") == 4711),
        ):
            with pytest.raises(UnsupportedError, match=r"stored in another file.*column b"):
                ask()
        with pyparq.ParquetFile(source) as file:
            with pytest.raises(UnsupportedError, match=r"stored in another file.*column b"):
                file.take([7, 4999, 3])
            with pytest.raises(UnsupportedError, match=r"stored in another file.*column b"):
                list(file.scan(filters=col("c") >= 600).iter_batches())
    with pytest.raises(UnsupportedError, match=r"stored in another file.*column b"):
        pyparq.dataset(tmp_path / "main.parquet").read()


def test_the_summary_of_a_dataset(tmp_path: Path) -> None:
    """``_metadata`` refers to the columns of other files. pyarrow follows it."""
    rows = TABLE.slice(0, 400).append_column("part", pa.array(["x", "y"] * 200))
    pyparq.write_dataset(rows, tmp_path / "ds", partition_cols=["part"], write_metadata=True)
    summary = tmp_path / "ds" / "_metadata"
    with pytest.raises(UnsupportedError, match="stored in another file"):
        pyparq.read_table(summary)
    theirs: list[dict[str, Any]] = ds.parquet_dataset(summary).to_table().select(["a", "b", "c"]).to_pylist()
    wanted = sorted(rows.drop(["part"]).to_pylist(), key=lambda row: row["a"])
    assert sorted(theirs, key=lambda row: row["a"]) == wanted


def test_the_option_is_gone() -> None:
    with pytest.raises((OptionError, TypeError), match="external_columns"):
        pyparq.read_table(split({}), external_columns=True)
