"""``pyparq index-dataset``, and other commands and polars over a folder with a catalog."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_files import ok, refused
from conftest import require

import pyparq


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(4):
        path = tmp_path / "lake" / f"{k}.parquet"
        path.parent.mkdir(exist_ok=True)
        pyparq.write_table({"id": range(k * 10, (k + 1) * 10), "name": [f"n{k}"] * 10}, path)
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return tmp_path / "lake"


def test_made_and_updated(folder: Path) -> None:
    made = ok("index-dataset", folder, "id", "name")
    assert "catalog written: 4 files, 4 read, 0 removed; 44 entries for id, name" in made
    assert "nothing to do" in ok("index-dataset", folder)
    assert json.loads(ok("index-dataset", folder, "id", "--rebuild", "--json"))["columns"] == ["id"]
    (folder / "bad.parquet").write_bytes(b"no parquet")
    os.utime(folder / "bad.parquet", (1_600_000_000, 1_600_000_000))
    assert "left out" in ok("index-dataset", folder)


def test_what_is_wrong_is_said(folder: Path) -> None:
    assert "no catalog to update" in refused(2, "index-dataset", folder)
    assert "nothing" in refused(2, "index-dataset", folder, "nothing")


def test_commands_use_it(folder: Path) -> None:
    ok("index-dataset", folder, "id")
    assert "and the catalog 3 of the 4 that it knows" in ok("explain", folder, "-w", "id = 13")
    assert '"n1"' in ok("lookup", folder, "id", "13", "--json")
    assert ok("count", folder, "-w", "id > 5").strip().startswith("34")
    ok("verify", folder)


def test_polars_uses_it(folder: Path) -> None:
    pl = require("polars")
    ok("index-dataset", folder, "id")
    (folder / "0.parquet").rename(folder / "4.parquet")  # known no more, and read all the same
    frame = pyparq.polars.scan(folder).filter(pl.col("id").is_in([3, 13, 99])).collect()
    assert sorted(frame["id"].to_list()) == [3, 13]
