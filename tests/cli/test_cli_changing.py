"""``pyparq delete``, ``update`` and ``upsert``."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused, run


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


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A table of Delta Lake. The values of its partitions look like numbers, and are none."""
    deltalake = pytest.importorskip("deltalake")
    data = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "p": ["1", "1", "2"]})
    deltalake.write_deltalake(tmp_path / "orders", data, partition_by=["p"])
    return tmp_path / "orders"


def ordered(folder: Path) -> list[tuple[int, str, str]]:
    import deltalake

    found = deltalake.DeltaTable(folder).to_pyarrow_table().sort_by("id")
    return [(row["id"], row["name"], row["p"]) for row in found.to_pylist()]


def test_a_delta_table(orders: Path, tmp_path: Path) -> None:
    before = ordered(orders)
    for call in (("delete", orders, "--key", "id=1"), ("update", orders, "--key", "id=1", "--set", "name = 'x'")):
        result = run(*call)  # a warning comes first: the folder is read without its log
        assert result.exit_code == 2
        said = result.stderr.splitlines()[-1]
        assert f"deltalake.DeltaTable('{orders}')" in said
        assert "--table delta" in said
    assert ordered(orders) == before
    as_json("delete", orders, "--table", "delta", "--key", "id=1", "--dry-run", "--json")
    assert ordered(orders) == before
    report = as_json("delete", orders, "--table", "delta", "--key", "id=1", "--key", "id=7", "--json")
    assert report["rows_deleted"] == 1
    assert any("vacuum" in note for note in report["notes"])
    ok("update", orders, "--table", "delta", "--key", "p=2", "--set", "name = 'x'")
    pq.write_table(pa.table({"id": [2, 9], "name": ["B", "I"], "p": ["2", "3"]}), tmp_path / "new.parquet")
    ok("upsert", orders, tmp_path / "new.parquet", "--key", "id", "--table", "delta")
    assert ordered(orders) == [(2, "B", "2"), (3, "x", "2"), (9, "I", "3")]


def test_no_delta_table(lake: Path, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "one source" in refused(2, "delete", lake, orders, "--table", "delta", "--key", "id=1")
    assert "is no table of Delta Lake" in refused(1, "delete", lake, "--table", "delta", "--key", "id=1")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert "pip install" in refused(1, "delete", orders, "--table", "delta", "--key", "id=1")
