"""diff and split: against what pyarrow says of the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import ROWS, as_json, ok, refused, run, sample, write_sample

import pyparq


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("diff") / "sample.parquet")


def difference(*args: Any) -> dict[str, Any]:
    """The document, and the exit code that belongs to it."""
    result = run("diff", *args, "--json")
    document: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == int(document["differs"]), result.stderr
    return document


def test_no_differences_however_files_are_written(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(sample(), other, compression="gzip", row_group_size=333, data_page_version="2.0")
    assert difference(file, other) == {
        "old": str(file), "new": str(other), "schema": [], "metadata": [], "differs": False,
        "rows": {"old": ROWS, "new": ROWS, "same": ROWS, "changed": 0, "removed": 0, "added": 0,
                 "changed_columns": {}, "looked_at": None, "examples": []},
    }  # fmt: skip
    assert ok("diff", file, other, "--key", "id") == "no differences\n"


def test_rows_by_key(file: Path, tmp_path: Path) -> None:
    table = sample()
    rng = np.random.default_rng(1)
    ids = table["id"].to_numpy()
    gone, changed = ids[[5, 700]], ids[[10, 2000, 3999]]
    notes = [f"new {i}" if i in changed else n for i, n in zip(ids, table["note"].to_pylist(), strict=True)]
    new = table.set_column(table.schema.get_field_index("note"), "note", pa.array(notes))
    new = new.filter(pa.array(~np.isin(ids, gone)))
    more = new.slice(0, 4).set_column(0, "id", pa.array([100_001, 100_003, 100_005, 100_007]))
    new = pa.concat_tables([new, more]).take(rng.permutation(ROWS + 2))
    pq.write_table(new, tmp_path / "new.parquet", row_group_size=500)
    rows = difference(file, tmp_path / "new.parquet", "--key", "id")["rows"]
    assert (rows["changed"], rows["removed"], rows["added"], rows["same"]) == (3, 2, 4, ROWS - 5)
    assert rows["changed_columns"] == {"note": 3}
    found = {kind: [e["where"]["id"] for e in rows["examples"] if e["change"] == kind]
             for kind in ("changed", "removed", "added")}  # fmt: skip
    assert found["changed"] == list(changed)
    assert found["removed"] == list(gone)
    assert sorted(found["added"]) == [100_001, 100_003, 100_005, 100_007]
    example = rows["examples"][0]["cells"]
    assert example == {"note": [table["note"][10].as_py(), f"new {ids[10]}"]}
    text = run("diff", file, tmp_path / "new.parquet", "-k", "id", "--show", 1).stdout
    assert "4,000 rows and 4,002 rows: 3,995 the same, 3 changed, 2 removed, 4 added" in text
    assert f"changed id={ids[10]}" in text
    assert text.count("added id=") == 1


def test_rows_by_position(tmp_path: Path) -> None:
    old = pa.table({"a": range(100_000), "b": ["x"] * 100_000})
    values = old["a"].to_pylist()
    values[70_001] = -1
    new = pa.table({"a": [*values, 5, 6], "b": ["x"] * 100_002})
    for name, table, size in (("old", old, 7_000), ("new", new, 30_000)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=size)
    rows = difference(tmp_path / "old.parquet", tmp_path / "new.parquet")["rows"]
    assert (rows["same"], rows["changed"], rows["removed"], rows["added"]) == (99_999, 1, 0, 2)
    assert rows["examples"] == [
        {"change": "changed", "where": {"row": 70_001}, "cells": {"a": [70_001, -1]}},
        {"change": "added", "where": {"row": 100_000}, "cells": {}},
        {"change": "added", "where": {"row": 100_001}, "cells": {}},
    ]


def test_schema_and_metadata(tmp_path: Path) -> None:
    old = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"], "gone": [1]}).replace_schema_metadata(
        {"k": "1", "l": "2"}
    )
    new = pa.table({"b": ["x"], "a": pa.array([1], pa.int64()), "more": [1.5]}).replace_schema_metadata({"k": "3"})
    for name, table in (("old", old), ("new", new)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    found = difference(tmp_path / "old.parquet", tmp_path / "new.parquet")
    assert {(d["column"], d["change"], d["old"], d["new"]) for d in found["schema"]} == {
        ("gone", "removed", "int64", None), ("more", "added", None, "float64"), ("a", "type", "int32", "int64"),
        (None, "order", "a, b, gone", "b, a, more"),
    }  # fmt: skip
    assert found["metadata"] == [{"key": "k", "old": "1", "new": "3"}, {"key": "l", "old": "2", "new": None}]
    assert found["rows"]["same"] == 1  # an int32 of 1 is an int64 of 1
    assert difference(tmp_path / "old.parquet", tmp_path / "new.parquet", "--only", "rows")["differs"] is False
    text = run("diff", tmp_path / "old.parquet", tmp_path / "new.parquet").stdout
    assert "gone    removed  int64" in text


def test_edges_of_diff(file: Path, tmp_path: Path) -> None:
    none, empty, odd = tmp_path / "none.parquet", tmp_path / "empty.parquet", tmp_path / "odd.parquet"
    pq.write_table(pa.table({}), none)
    pq.write_table(sample().slice(0, 0), empty)
    pq.write_table(pa.table({"\x1b[31m\n": [1, 2, 2], "n": [7, 8, 7], "deep": [[{"x": "é\n"}], None, []]}), odd)
    assert difference(none, none)["differs"] is False
    assert difference(empty, empty, "--key", "id")["differs"] is False
    assert difference(empty, file, "--only", "rows", "--key", "id")["rows"]["added"] == ROWS
    assert difference(odd, odd)["rows"]["same"] == 3
    assert "comes more than once" in refused(1, "diff", odd, odd, "--key", "n")
    assert "did you mean 'id'" in refused(2, "diff", file, file, "--key", "idd")
    assert "\x1b" not in run("diff", odd, none).stdout


@pytest.mark.parametrize(
    ("option", "rows"), [(("--rows", 1500), [1500, 1500, 1000]), (("--files", 3), [1334, 1334, 1332])]
)
def test_split_by_rows(file: Path, tmp_path: Path, option: tuple[Any, ...], rows: list[int]) -> None:
    report = as_json("split", file, "-o", tmp_path / "out", *option, "--json")
    assert [f["num_rows"] for f in report["files"]] == rows
    assert [pq.read_metadata(f["path"]).num_rows for f in report["files"]] == rows
    assert pyparq.read_table(tmp_path / "out").select(["id"]).to_arrow().equals(sample().select(["id"]))


def test_split_by_value_and_size(file: Path, tmp_path: Path) -> None:
    assert "4,000 rows" in ok("split", file, "-o", tmp_path / "by", "--by", "flag")
    for value, name in ((True, "true"), (False, "false")):
        (path,) = (tmp_path / "by" / f"flag={name}").iterdir()
        want = sample().filter(pa.compute.equal(sample()["flag"], value))["id"]
        assert pq.ParquetFile(path).read(["id"])["id"].equals(want)
    ok("split", file, "-o", tmp_path / "size", "--bytes", "20k")
    sizes = [p.stat().st_size for p in (tmp_path / "size").iterdir()]
    assert len(sizes) > 2
    assert "one of --rows" in refused(2, "split", file, "-o", tmp_path / "x")
    refused(1, "split", file, "-o", tmp_path / "by", "--rows", 5)  # it has files
