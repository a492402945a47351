"""Integers of 128 bits, which polars has and neither Arrow nor Parquet: files of polars and ours, both ways."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pyparq
import pyparq.polars
from pyparq import UnsupportedError

WIDE = {pl.Int128: (-(2**127), 2**127 - 1), pl.UInt128: (0, 2**128 - 1)}


def frame(kind: Any, rows: int, seed: int) -> pl.DataFrame:
    draw, (least, most) = random.Random(seed), WIDE[kind]
    edges = [None, 0, 1, least, most, 2**63, 2**64 - 1]
    values = [draw.choice(edges) if draw.random() < 0.5 else draw.randint(least, most) for _ in range(rows)]
    lists = [None if k % 5 == 0 else values[: k % 4] for k in range(rows)]
    return pl.DataFrame({
        "n": pl.Series(values, dtype=kind), "l": pl.Series(lists, dtype=pl.List(kind)),
        "s": pl.Series([{"q": v} for v in values], dtype=pl.Struct({"q": kind})),
        "a": pl.Series([[v, 7] for v in values], dtype=pl.Array(kind, 2)),
    })  # fmt: skip


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("rows", [0, 1, 150])
def test_both_ways(tmp_path: Path, kind: Any, rows: int) -> None:
    wide, theirs, ours = frame(kind, rows, rows), tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    wide.write_parquet(theirs)
    pyparq.write_table(wide, ours, row_group_size=100)
    for path in (theirs, ours):
        table = pyparq.read_table(path)
        assert table.to_polars().equals(wide)
        assert table.to_pylist() == wide.to_dicts()
        assert pl.DataFrame(table).equals(wide)
        assert pyparq.Table.from_polars(wide).equals(table)
        assert pl.read_parquet(path).equals(wide)
        assert table.to_pandas()["n"].tolist() == wide["n"].to_list()
    assert pyparq.verify(ours).ok  # the bounds that polars writes for UInt128 are wrong, and found
    pyparq.rewrite(theirs, tmp_path / "again.parquet")
    assert pl.read_parquet(tmp_path / "again.parquet").equals(wide)


@pytest.mark.parametrize("kind", WIDE)
def test_no_bounds_that_lead_astray(tmp_path: Path, kind: Any) -> None:
    """polars takes bounds for numbers with their highest byte first, and keeps the lowest first in the pages."""
    wide, theirs, ours = frame(kind, 300, 5).select("n"), tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    wide.write_parquet(theirs)
    pyparq.write_table(wide, ours, row_group_size=20)
    for value in (1, 2**63, WIDE[kind][1]):
        rows = wide.filter(pl.col("n") == pl.lit(value, dtype=kind))
        assert rows.height > 0
        for path in (theirs, ours):
            assert pl.scan_parquet(path).filter(pl.col("n") == pl.lit(value, dtype=kind)).collect().equals(rows)
            assert pyparq.polars.scan(path).filter(pl.col("n") == pl.lit(value, dtype=kind)).collect().equals(rows)
            stored = pyparq.col("n") == value.to_bytes(16, "little")
            assert pyparq.count(path, stored) == rows.height
            with pytest.raises(pyparq.FilterError, match="give bytes"):
                pyparq.count(path, pyparq.col("n") == value)


def test_what_pyarrow_does_not_take(tmp_path: Path) -> None:
    table = pyparq.Table.from_polars(pl.DataFrame({"n": pl.Series([1], dtype=pl.Int128)}))
    for part in (table, table.batches[0]):
        with pytest.raises(UnsupportedError, match=r"pyarrow does not take the .*_pli128"):
            part.to_arrow()
    pyparq.write_table({"n": pl.Series([2**100, None], dtype=pl.Int128)}, tmp_path / "a.parquet")
    assert pyparq.read_table(tmp_path / "a.parquet").to_pydict() == {"n": [2**100, None]}
    pyparq.write_table(table, tmp_path / "b.parquet", store_schema=False)
    assert pyparq.read_table(tmp_path / "b.parquet")["n"].to_pylist() == [(1).to_bytes(16, "little")]
