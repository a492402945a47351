"""``pyparq delete``, ``update`` and ``upsert``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for k in range(2):
        ids = range(100 * k, 100 * k + 100)
        pq.write_table(
            pa.table({"id": ids, "name": [f"n{i}" for i in ids]}), folder / f"{k}.parquet", row_group_size=50
        )
    return folder


def rows(folder: Path) -> dict[int, str]:
    found = pq.read_table(folder)
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def test_delete(lake: Path, tmp_path: Path) -> None:
    before = rows(lake)
    assert "1 of 2 files (nothing was written)" in ok("delete", lake, "--where", "id = 120", "--dry-run")
    assert rows(lake) == before
    report = as_json("delete", lake, "--where", "id = 120", "--json")
    assert (report["rows_deleted"], report["files"][0]["row_groups_copied"]) == (1, 1)
    listed = tmp_path / "forget.txt"
    listed.write_text("n3\n\nn150\nnobody\n")
    assert as_json("delete", lake, "--keys-file", f"name={listed}", "--json")["rows_deleted"] == 2
    pq.write_table(pa.table({"name": ["n4", "n5"]}), tmp_path / "forget.parquet")
    assert as_json("delete", lake, "--keys-file", f"name={tmp_path}/forget.parquet", "--json")["rows_deleted"] == 2
    assert as_json("delete", lake, "--key", "id=7", "--key", "id=8", "--json")["rows_deleted"] == 2
    assert rows(lake) == {k: v for k, v in before.items() if k not in (120, 3, 150, 4, 5, 7, 8)}
    assert "no row changed; 0 of 2 files" in ok("delete", lake, "--key", "id=7")


def test_update(lake: Path) -> None:
    before = rows(lake)
    ok("update", lake, "--where", "id in (3, 130)", "--set", "name = 'it''s gone'")
    ok("update", lake, "--key", "id=5", "--set", "name = null")
    ok("update", lake, "--where", "id in (6, 7)", "--set", "id = id * 2 + 1000", "--set", "name = upper(name)")
    kept = {key: name for key, name in before.items() if key not in (6, 7)}
    assert rows(lake) == {**kept, 3: "it's gone", 130: "it's gone", 5: None, 1012: "N6", 1014: "N7"}
    for text, message in (
        ("name = gone", "Write text as 'gone'"), ("name", "COLUMN = VALUE"), ("name = ", "cannot be parsed"),
        ("name > 5", "COLUMN = VALUE"), ("nobody = 5", "nobody"), ("id = 1 + 2", "a value is needed"),
        ("name = 'a' and id = 5", "COLUMN = VALUE"),
    ):  # fmt: skip
        assert message in refused(2, "update", lake, "--where", "id = 1", "--set", text), text


def test_upsert(lake: Path, tmp_path: Path) -> None:
    before = rows(lake)
    pq.write_table(pa.table({"id": [3, 500], "name": ["new", "newer"]}), tmp_path / "new.parquet")
    report = as_json("upsert", lake, tmp_path / "new.parquet", "--key", "id", "--json")
    assert (report["rows_updated"], report["rows_added"]) == (1, 1)
    assert rows(lake) == {**before, 3: "new", 500: "newer"}


def test_mistakes(lake: Path) -> None:
    assert "give either --where" in refused(2, "delete", lake)
    assert "give either --where" in refused(2, "delete", lake, "--where", "id = 1", "--key", "id=1")
    assert "must be COLUMN=" in refused(2, "delete", lake, "--key", "id")
    assert "--set" in refused(2, "update", lake, "--where", "id = 1")
    assert "nobody" in refused(2, "delete", lake, "--key", "nobody=1")


def test_retries(lake: Path) -> None:
    report = as_json("delete", lake, "--key", "id=3", "--retries", 2, "--json")
    assert (report["rows_deleted"], report["notes"]) == (1, [])
