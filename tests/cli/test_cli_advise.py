"""advise: what it says pays does pay when the command is run, and it says so where nothing does."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, run

import pyparq
from pyparq.maintenance.advise import advise


def unsorted(path: Path) -> Path:
    rng = np.random.default_rng(3)
    key = rng.integers(0, 20_000, 60_000) * 5
    pq.write_table(pa.table({"key": key, "name": [f"a name of number {k}" for k in key]}), path, write_page_index=True)
    return path


def test_advice_that_pays_comes_true(tmp_path: Path) -> None:
    path = unsorted(tmp_path / "in put.parquet")
    advice: dict[str, Any] = as_json("advise", path, "--json")
    assert advice["rows"] == 60_000
    base, trials = advice["trials"][0], {t["change"]: t for t in advice["trials"]}
    assert trials["sorted by key"]["pays"]
    assert trials["sorted by key"]["bytes"] < base["bytes"] * 0.95
    assert trials["sorted by key"]["rows_left"] < base["rows_left"]
    assert "--sort-by" in advice["command"]
    words = shlex.split(advice["command"])
    assert words[:3] == ["pyparq", "rewrite", str(path)]
    made = tmp_path / "new.parquet"
    assert run(*words[1:4], made, *words[5:]).exit_code == 0
    told = advice["trials"][-1]
    assert told["options"] == base["options"] | advice["options"]
    assert abs(made.stat().st_size / told["bytes"] - 1) < 0.05  # the whole file was the sample
    with pyparq.ParquetFile(made) as new, pyparq.ParquetFile(path) as old:
        assert new.metadata.num_rows == old.metadata.num_rows
        question = pyparq.col("name") == old.read(["name"]).to_pydict()["name"][7]
        rows = [f.scan(["name"], question).explain(execute=False).candidate_rows for f in (new, old)]
    assert rows[0] < rows[1]
    assert "try: pyparq rewrite" in ok("advise", path)


def test_a_sample_is_enough_and_spread_over_the_file(tmp_path: Path) -> None:
    path = unsorted(tmp_path / "in.parquet")
    advice = as_json("advise", path, "--rows", 6_000, "--json")
    assert advice["rows"] == 6_000
    assert advice["trials"][0]["bytes"] < path.stat().st_size / 4


def test_nothing_pays_for_random_numbers(tmp_path: Path) -> None:
    values = np.frombuffer(np.random.default_rng(1).bytes(80_000), "<f8")
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet", compression="none", use_dictionary=False)
    assert ok("advise", tmp_path / "x.parquet").endswith("nothing pays: the file is well written as it is\n")
    assert as_json("advise", tmp_path / "x.parquet", "--json")["command"] is None


def test_encodings_of_the_file_are_compared_with_ours(tmp_path: Path) -> None:
    """A dictionary of values that all differ, as pyarrow writes it, is larger than the values."""
    table = pa.table({"id": np.arange(20_000) * 7, "f": np.arange(20_000) % 2 == 0})
    pq.write_table(table, tmp_path / "a.parquet", compression="none", row_group_size=20_000)
    advice = as_json("advise", tmp_path / "a.parquet", "--json")
    before, after = advice["trials"][:2]
    assert before["options"]["column_encoding"] == {"id": "RLE_DICTIONARY", "f": "PLAIN"}
    with pyparq.ParquetFile(tmp_path / "a.parquet") as file:  # the trial has the bytes of the real file
        stored = sum(file.metadata.row_group(0).column(k).total_compressed_size for k in range(2))
    assert abs(before["bytes"] / stored - 1) < 0.05
    assert after["change"] == "encodings chosen anew"
    assert after["pays"]
    assert after["bytes"] < before["bytes"] / 2
    assert advice["options"]["column_encoding"] is None
    made = tmp_path / "new.parquet"
    pyparq.rewrite(tmp_path / "a.parquet", made, **advice["options"])
    assert abs(made.stat().st_size / advice["trials"][-1]["bytes"] - 1) < 0.05


FILES = Path(__file__).resolve().parents[2] / "testdata"


@pytest.mark.parametrize("path", [FILES / "lzo.parquet", *sorted(FILES.glob("types/*.parquet")),
                                  *sorted(FILES.glob("foreign/*.parquet"))], ids=lambda p: p.name)  # fmt: skip
def test_files_of_other_writers(path: Path) -> None:
    with pyparq.ParquetFile(path) as file:
        advice = advise(file, rows=500)
    assert len(advice.trials) > 3
    assert all(trial.bytes > 0 for trial in advice.trials)


def test_files_with_nothing_to_measure(tmp_path: Path) -> None:
    for name, table in (("none", pa.table({})), ("empty", pa.table({"a": pa.array([], pa.int64())})),
                        ("nulls", pa.table({"a": pa.array([None, None], pa.string()), "b": [[1], None]}))):  # fmt: skip
        pq.write_table(table, tmp_path / f"{name}.parquet")
        said = ok("advise", tmp_path / f"{name}.parquet")
        assert "nothing to measure" in said or "nothing pays" in said or "try:" in said
