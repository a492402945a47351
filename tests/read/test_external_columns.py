"""Column chunks in other files: read where that is asked for, from files below the folder of their file."""

from __future__ import annotations

import io
import os
import pickle
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
from pyparq.errors import CorruptFileError, OptionError, ParquetError, UnsupportedError

N = 5000
TABLE = pa.table({"a": np.arange(N), "b": [f"text {k % 97}" for k in range(N)], "c": np.arange(N) / 8})


def split(folder: Path, paths: dict[str, str | None], **options: Any) -> Path:
    """A file of pyarrow's whose chunks of some columns are only in copies of it; its own pages of them are zeros."""
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=2000, data_page_size=1000, write_page_index=True, **options)
    data = bytearray(sink.getvalue())
    piece = Workpiece(bytes(data))
    for row_group in piece.meta.row_groups:
        for chunk in row_group.columns:
            meta = chunk.meta_data
            chunk.file_path = paths.get(meta.path_in_schema[0])
            if chunk.file_path is None:
                continue
            start = min(o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset) if o > 0)
            data[start : start + meta.total_compressed_size] = bytes(meta.total_compressed_size)
            target = folder / chunk.file_path
            if (
                "\0" not in chunk.file_path
                and os.path.realpath(target).startswith((f"{folder}/b", f"{folder}/c", f"{folder}/d"))
                and not target.exists()
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(sink.getvalue())
    broken = Workpiece(bytes(data))
    path = folder / "main.parquet"
    path.write_bytes(broken.with_footer(piece.meta))
    return path


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_columns_of_other_files(tmp_path: Path, compression: str) -> None:
    path = split(tmp_path, {"b": "b.parquet", "c": "deep/er/c.parquet"}, compression=compression)
    assert pyparq.read_table(path, external_columns=True).to_arrow().equals(TABLE)
    found = pyparq.read_table(path, columns=["c"], filters=col("b") == "text 5", external_columns=True).to_arrow()
    assert found["c"].to_pylist() == [k / 8 for k in range(5, N, 97)]
    found = pyparq.read_table(path, filters=col("a") == 4711, external_columns=True).to_arrow()
    assert found.to_pylist() == TABLE.slice(4711, 1).to_pylist()
    with pyparq.ParquetFile(path, external_columns=True) as file:
        assert file.take([7, 4999, 3]).to_arrow().to_pylist() == TABLE.take([7, 4999, 3]).to_pylist()
        batches = list(file.scan(filters=col("c") >= 600).batches())
        assert sum(batch.num_rows for batch in batches) == 200


def test_the_summary_of_a_dataset(tmp_path: Path) -> None:
    """``_metadata`` refers to the columns of other files. pyarrow follows it too."""
    rows = TABLE.slice(0, 400)
    rows = rows.append_column("part", pa.array(["x", "y"] * 200))
    pyparq.write_dataset(rows, tmp_path / "ds", partition_cols=["part"], write_metadata=True)
    summary = tmp_path / "ds" / "_metadata"
    with pytest.raises(pyparq.UnsupportedError, match="external_columns=True"):
        pyparq.read_table(summary)
    wanted = sorted(rows.drop(["part"]).to_pylist(), key=lambda row: row["a"])
    ours = pyparq.read_table(summary, external_columns=True).to_pylist()
    assert sorted(ours, key=lambda row: row["a"]) == wanted
    found = pyparq.read_table(summary, filters=col("a") == 77, external_columns=True).to_pylist()
    assert found == rows.drop(["part"]).slice(77, 1).to_pylist()
    theirs = ds.parquet_dataset(summary).to_table().select(["a", "b", "c"]).to_pylist()
    assert sorted(theirs, key=lambda row: row["a"]) == wanted


def test_a_plan_runs_elsewhere(tmp_path: Path) -> None:
    path = split(tmp_path, {"b": "b.parquet", "c": "c.parquet"})
    with pyparq.ParquetFile(path, external_columns=True) as file:
        plan = pickle.loads(pickle.dumps(file.scan(filters=col("c") < 1).plan()))
    with pyparq.ParquetFile(path, external_columns=True) as other:
        assert other.execute(plan).to_arrow().equals(TABLE.slice(0, 8))


def test_only_where_it_is_asked_for(tmp_path: Path) -> None:
    path = split(tmp_path, {"b": "b.parquet"})
    assert pyparq.read_table(path, columns=["a", "c"]).num_rows == N
    with pytest.raises(UnsupportedError, match=r"'b\.parquet': external_columns=True.*main\.parquet.*column b"):
        pyparq.read_table(path)
    with pytest.raises(UnsupportedError, match=r"local files.*column b"):
        pyparq.read_table(path.read_bytes(), external_columns=True)
    with pytest.raises(OptionError, match="external_columns"):
        pyparq.read_table(path, external_columns="yes")


@pytest.mark.parametrize(
    "outside",
    ["../b.parquet", "x/../../b.parquet", "/etc/passwd", "http://host/b.parquet", "file:///b.parquet", "C:\\b.parquet",
     "\\\\host\\b.parquet", "..\\b.parquet", "x/..", "b\0.parquet"],
)  # fmt: skip
def test_no_way_out_of_the_folder(tmp_path: Path, outside: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "b.parquet").write_bytes(b"secret")
    path = split(folder, {"b": outside})
    assert pyparq.read_table(path, columns=["a"], external_columns=True).num_rows == N
    with pytest.raises(UnsupportedError, match=r"below the folder of this one.*column b"):
        pyparq.read_table(path, external_columns=True)


def test_no_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    path = split(folder, {"b": "b.parquet"})
    (folder / "b.parquet").rename(tmp_path / "b.parquet")
    (folder / "b.parquet").symlink_to(tmp_path / "b.parquet")
    with pytest.raises(UnsupportedError, match=r"a link out of the folder.*column b"):
        pyparq.read_table(path, external_columns=True)
    (folder / "b.parquet").unlink()
    (tmp_path / "b.parquet").rename(folder / "real.parquet")
    (folder / "b.parquet").symlink_to("real.parquet")  # a link that stays inside
    assert pyparq.read_table(path, external_columns=True).to_arrow().equals(TABLE)


def test_missing_short_and_foreign_files(tmp_path: Path) -> None:
    path = split(tmp_path, {"b": "b.parquet"})
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:1000])
    with pytest.raises(CorruptFileError, match=r"outside 'b\.parquet'.*column b"):
        pyparq.read_table(path, external_columns=True)
    (tmp_path / "b.parquet").write_bytes(np.random.default_rng(1).bytes(len(whole)))
    with pytest.raises(ParquetError, match="column b"):
        pyparq.read_table(path, external_columns=True)
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.parquet"):
        pyparq.read_table(path, external_columns=True)
    (tmp_path / "b.parquet").mkdir()
    with pytest.raises(IsADirectoryError):
        pyparq.read_table(path, external_columns=True)


def test_a_summary_reads_the_whole_folder(tmp_path: Path) -> None:
    """`_metadata` of pyarrow: footers of several files, whose chunks all lie elsewhere."""
    footers: list[Any] = []
    for k in range(3):
        name = f"part-{k}.parquet"
        pq.write_table(TABLE.slice(k * 1000, 1000), tmp_path / name, metadata_collector=footers)
        footers[-1].set_file_path(name)
    pq.write_metadata(TABLE.schema, tmp_path / "_metadata", footers)
    assert pyparq.read_table(tmp_path / "_metadata", external_columns=True).to_arrow().equals(TABLE.slice(0, 3000))
