"""``pyparq lookup``: keys on the command line, rows of many files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from cli_files import ok, refused

import pyparq


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookup")
    for k in range(4):
        table = pa.table({"id": range(k, 40, 4), "tail": [f"N{i}" for i in range(k, 40, 4)], "raw": [bytes([k])] * 10})
        pyparq.write_table(table, folder / f"{k}.parquet", bloom_filters=["id", "tail"])
    return folder


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_rows_of_many_files(folder: Path) -> None:
    found = rows(ok("lookup", folder, "id", "7", "6", "999", "-c", "tail", "--json"))
    assert found == [{"tail": "N6"}, {"tail": "N7"}]
    table = ok("lookup", f"{folder}/*.parquet", "tail", "N7")
    assert "N7" in table
    assert "1 row" in table
    assert ok("lookup", folder / "3.parquet", "id", "7", "-c", "id", "--csv").split() == ["id", "7"]
    assert len(rows(ok("lookup", folder, "raw", "0x02", "--json"))) == 10
    assert "0 rows" in ok("lookup", folder, "id", "999")


def test_names_of_files(folder: Path) -> None:
    (found,) = rows(ok("lookup", folder, "id", "5", "-c", "id", "--path", "--json"))
    assert found == {"id": 5, "filename": str(folder / "1.parquet")}


def test_keys_from_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("N3\nN5\n")
    found = rows(ok("lookup", folder, "tail", "N4", "--from", tmp_path / "keys", "-c", "id", "--json"))
    assert found == [{"id": 4}, {"id": 5}, {"id": 3}]
    (tmp_path / "none").write_text("")
    assert ok("lookup", folder, "tail", "--from", tmp_path / "none", "--json") == ""


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    assert "give at least one key" in refused(2, "lookup", folder, "id")
    assert "'ten' is not a value of type int64" in refused(2, "lookup", folder, "id", "ten")
    assert "nothing" in refused(2, "lookup", folder, "nothing", "1")
    assert "only one of" in refused(2, "lookup", folder, "id", "1", "--json", "--csv")
    (tmp_path / "empty").mkdir()
    assert "no data files" in refused(1, "lookup", tmp_path / "empty", "id", "1")
