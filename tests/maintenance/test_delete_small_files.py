"""``pyparq.delete`` in folders of small files, which are asked together for the rows that match."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import CorruptFileError, col

FILES = 12


def lake(folder: Path, rng: random.Random) -> pa.Table:
    """Small files by several writers, in partitions; some have no rows of a kind. Returns all rows."""
    parts = []
    for k in range(FILES):
        rows = rng.choice([0, 1, 5, 40])
        ids = [rng.choice([None, *range(30)]) for _ in range(rows)]
        data = pa.table(
            {"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i}" for i in range(rows)], pa.string())}
        )
        path = folder / f"g={k % 3}" / f"part-{k}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if rng.random() < 0.5:
            pq.write_table(data, path, row_group_size=rng.choice([3, 100]))
        else:
            options: dict[str, Any] = {"bloom_filters": ["id"]} if rng.random() < 0.5 else {}
            pyparq.write_table(data, path, row_group_size=rng.choice([3, 100]), **options)
        parts.append(data.append_column("g", pa.array([k % 3] * rows, pa.int64())))
    return pa.concat_tables(parts)


def in_order(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = zip(*(table[name].to_pylist() for name in ("g", "id", "name")), strict=True)
    return sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1], row[2]))


@pytest.mark.parametrize("seed", range(6))
def test_random_folders_against_pyarrow(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for case in range(3):
        folder = tmp_path / str(case)
        rows = lake(folder, rng)
        kind, low = rng.choice(["keys", "range", "both", "null"]), rng.randrange(30)
        keys = rng.sample(range(40), rng.choice([1, 3, 20]))
        ours, theirs = {
            "keys": (col("id").isin(keys), pc.field("id").isin(keys)),
            "range": (col("id") < low, pc.field("id") < low),
            "both": ((col("g") == 1) & (col("id") >= low), (pc.field("g") == 1) & (pc.field("id") >= low)),
            "null": (col("id").is_null(), pc.field("id").is_null()),
        }[kind]
        gone = rows.filter(theirs).num_rows
        assert pyparq.delete(folder, ours, dry_run=True).rows_deleted == gone
        report = pyparq.delete(folder, ours)
        assert report.rows_deleted == gone
        assert report.files_total == FILES
        hit = rows.filter(pc.if_else(pc.is_null(mask := rows_mask(rows, theirs)), True, pc.invert(mask)))
        left = pads.dataset(folder, partitioning=pads.partitioning(flavor="hive")).to_table() if files(folder) else None
        assert (in_order(left.select(["id", "name", "g"])) if left is not None else []) == in_order(hit)
        assert pyparq.verify(folder).ok if files(folder) else True


def rows_mask(rows: pa.Table, condition: pc.Expression) -> pa.ChunkedArray:
    return pads.dataset(rows).to_table(columns={"mask": condition})["mask"]


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.parquet"))


def test_a_damaged_file_among_them_is_named(tmp_path: Path) -> None:
    for k in range(6):
        pyparq.write_table({"id": list(range(200))}, tmp_path / f"part-{k}.parquet", use_dictionary=False)
    bad = tmp_path / "part-3.parquet"
    data = bytearray(bad.read_bytes())
    data[40:60] = bytes(20)
    bad.write_bytes(data)
    before = {path.name: path.read_bytes() for path in files(tmp_path)}
    with pytest.raises(CorruptFileError, match=r"part-3\.parquet"):
        pyparq.delete(tmp_path, col("id") == 7)
    assert {path.name: path.read_bytes() for path in files(tmp_path)} == before
